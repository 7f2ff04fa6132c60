"""The shipped data recipes: each is whole, and its worked examples are right."""

from pathlib import Path

import pytest

from verigrad.config import read_recipe
from verigrad.problems import load_problems
from verigrad.problems.rows import last_box

RECIPES = Path(__file__).resolve().parents[2] / "recipes"
NAMES = ("gsm8k", "svamp", "mawps", "math500")


@pytest.mark.parametrize("name", NAMES)
def test_a_data_recipe_reads_and_takes_its_data_from_an_override(name, tmp_path):
    rows = "".join(f'{{"question": "q{i}?", "answer": "{i}"}}\n' for i in range(300))
    for split in ("train", "test"):
        (tmp_path / f"{split}.jsonl").write_text(rows.replace(': "q', f': "{split} q'))
    recipe = read_recipe(RECIPES / f"{name}.toml", [f"problems.source={tmp_path}"])
    found = load_problems(recipe.problems, seed=0, heldout=recipe.evaluation.problems)
    assert len(found.heldout) == recipe.evaluation.problems
    for turn in recipe.problems.few_shot:
        expression, _, result = turn.answer.split(".")[-3].strip().partition(" = ")
        assert str(eval(expression)) == result == last_box(turn.answer)
