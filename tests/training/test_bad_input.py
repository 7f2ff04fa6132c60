"""What a user gets wrong is refused before a model is loaded: the value, the place, the remedy."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tiny_runs import recipe, run

import verigrad.training.run as module
from verigrad.config import make_recipe
from verigrad.errors import MissingExtraError, UsageError
from verigrad.training.run import train


@pytest.fixture(autouse=True)
def no_model_is_loaded(monkeypatch):
    """Fail where a model would be loaded: the fault must be found before."""

    def loaded(*_: object) -> None:
        raise AssertionError("a model was loaded before the input was refused")

    monkeypatch.setattr(module, "make_policy", loaded)


def problems_file(folder: Path, *lines: str) -> str:
    file = folder / "problems.jsonl"
    file.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return str(file)


def row(**columns: object) -> str:
    return json.dumps(columns)


GOOD = [row(question=f"What is {i} + 1?", answer=str(i + 1)) for i in range(20)]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "problems.jsonl"),
        ([row(task="a", answer="1")], "question"),
        ([row(question="a")], "answer"),
        ([*GOOD, "{not json"], "problems.jsonl:21"),
        ([*GOOD, row(question=7, answer="1")], "problems.jsonl:21"),
    ],
    ids=["empty", "no prompt column", "no answer column", "malformed", "prompt is no text"],
)
def test_problem_files(tmp_path, lines, message):
    source = problems_file(tmp_path, *lines)
    with pytest.raises(UsageError) as error:
        run(tmp_path, "run", f"problems.source='{source}'")
    assert message in str(error.value)
    assert error.value.exit_code == 2
    assert not (tmp_path / "run").exists()


def test_an_answer_the_verifier_cannot_use_names_the_problem_and_the_remedy(tmp_path):
    source = problems_file(tmp_path, *GOOD, row(question="How many?", answer="a few"))
    chosen = make_recipe(
        {
            "model": {"path": "tiny"},
            "problems": {"source": source},
            "verifier": {"name": "number"},
            "evaluation": {"problems": 5},
        }
    )
    with pytest.raises(UsageError, match="a few") as error:
        train(chosen, run_dir=tmp_path / "run")
    assert "problems.unverifiable = 'drop'" in str(error.value)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("rollout.group_size=1", "rollout.group_size"),
        ("training.steps=0", "training.steps"),
        ("training.stepps=3", "Did you mean 'steps'"),
        ("rollot.group_size=4", "Did you mean 'rollout'"),
        ("objective.baseline=group_men", "group_mean"),
        ("objective.preset=grppo", "grpo"),
        ("verifier.name=maths", "Did you mean 'math'"),
        ("objective.baseline=critic", "objective.baseline"),
        ("problems.source=nowhere.jsonl", "nowhere.jsonl"),
        ("model.path=./nowhere", "./nowhere"),
    ],
)
def test_settings(tmp_path, override, message):
    with pytest.raises(UsageError) as error:
        run(tmp_path, "run", override)
    assert message in str(error.value)
    assert error.value.exit_code == 2


def test_an_existing_run_is_never_overwritten(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "recipe.toml").write_text("# a run\n")
    with pytest.raises(UsageError, match="exists already"):
        run(tmp_path, "run")
    assert (tmp_path / "run" / "recipe.toml").read_text() == "# a run\n"


def test_force_does_not_delete_what_is_no_run(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("precious")
    with pytest.raises(UsageError, match="is not a run"):
        run(tmp_path, "thesis", force=True)
    assert (tmp_path / "thesis" / "chapter.tex").read_text() == "precious"


def test_a_run_directory_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        train(recipe(tmp_path), run_dir=tmp_path / "file" / "run")


def test_a_missing_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    file = tmp_path / "problems.parquet"
    file.write_bytes(b"PAR1")
    with pytest.raises(MissingExtraError, match=r"verigrad\[data\]"):
        run(tmp_path, "run", f"problems.source='{file}'")
