"""The recipe: what it refuses, with which words, and that writing and reading are inverse."""

from __future__ import annotations

import tomllib

import pytest

from verigrad.config import (
    Recipe,
    make_recipe,
    read_recipe,
    recipe_schema,
    write_recipe,
)
from verigrad.errors import RecipeError


def refusal(data: dict[str, object], *overrides: str) -> str:
    with pytest.raises(RecipeError) as caught:
        make_recipe(data, overrides)
    assert caught.value.exit_code == 2
    return str(caught.value)


@pytest.mark.parametrize(
    ("data", "key", "meant"),
    [
        ({"trainnig": {}}, "trainnig", "training"),
        ({"training": {"learnig_rate": 1.0}}, "training.learnig_rate", "learning_rate"),
        ({"model": {"lora": {"rnk": 2}}}, "model.lora.rnk", "rank"),
        ({"model": {"tiny": {"num_layrs": 2}}}, "model.tiny.num_layrs", "num_layers"),
        ({"objective": {"clip_hihg": 0.3}}, "objective.clip_hihg", "clip_high"),
        (
            {"problems": {"few_shot": [{"question": "q", "answer": "a", "anser": "b"}]}},
            "problems.few_shot.0.anser",
            "answer",
        ),
    ],
)
def test_an_unknown_key_is_answered_with_the_nearest(data, key, meant):
    assert refusal(data) == f"recipe: unknown key {key!r}. Did you mean {meant!r}?"


def test_a_key_near_to_nothing_is_answered_with_all_names():
    assert (
        refusal({"backend": {"zzz": 1}}) == "recipe: unknown key 'backend.zzz'. Known names: name."
    )


@pytest.mark.parametrize(
    ("data", "value", "meant"),
    [
        ({"rollout": {"engine": "nativ"}}, "rollout.engine = 'nativ'", "native"),
        ({"objective": {"baseline": "group_meen"}}, "= 'group_meen'", "group_mean"),
        ({"verifier": {"mode": "strct"}}, "verifier.mode = 'strct'", "strict"),
    ],
)
def test_an_unknown_choice_is_answered_with_the_nearest(data, value, meant):
    message = refusal(data)
    assert value in message and message.endswith(f" Did you mean {meant!r}?")


def test_an_override_is_checked_like_the_file():
    assert "Did you mean 'steps'?" in refusal({}, "training.stepz=3")
    assert "Did you mean 'cosine'?" in refusal({}, "training.schedule=cosin")


@pytest.mark.parametrize("item", ["training", "training.steps", "steps=3", ".steps=3", "a..b=1"])
def test_an_override_of_another_form_is_refused(item):
    message = refusal({}, item)
    assert repr(item) in message and "training.steps=200" in message


def test_an_override_below_a_value_is_refused():
    assert "'steps' is a value" in refusal({"training": {"steps": 3}}, "training.steps.x=1")


def test_overrides_are_toml_or_a_bare_word_and_the_last_wins():
    recipe = make_recipe(
        {"training": {"steps": 3}},
        [
            "training.steps=4",
            "training.steps=5",
            "training.betas=[0.8, 0.9]",
            "problems.shuffle=false",
            "problems.source=data/train.jsonl",
            'rollout.stop=["\\n\\n"]',
            "model.lora.rank=4",
        ],
    )
    assert recipe.training.steps == 5
    assert recipe.training.betas == (0.8, 0.9)
    assert recipe.problems.shuffle is False
    assert recipe.problems.source == "data/train.jsonl"
    assert recipe.rollout.stop == ("\n\n",)
    assert recipe.model.lora is not None and recipe.model.lora.rank == 4


@pytest.mark.parametrize(
    ("data", "named", "why"),
    [
        ({"rollout": {"group_size": 1}}, "rollout.group_size = 1", "has no baseline"),
        ({"training": {"steps": 0}}, "training.steps = 0", "greater than or equal to 1"),
        ({"training": {"learning_rate": 0.0}}, "training.learning_rate = 0.0", "greater than 0"),
        ({"rollout": {"top_p": 1.5}}, "rollout.top_p = 1.5", "less than or equal to 1"),
        ({"training": {"betas": [0.9]}}, "training.betas.1", "field required"),
        ({"problems": {"answer_format": "x"}}, "problems", "must contain {question}"),
        ({"evaluation": {"samples": 4}}, "evaluation", "needs temperature > 0"),
        ({"evaluation": {"k": [2]}}, "evaluation", "k = 2 needs 1 <= k <= samples"),
        ({"training": 5}, "training = 5", "valid dictionary"),
        ({"training": {"learning_rate": float("inf")}}, "= inf", "finite"),
        ({"rollout": {"temperature": float("nan")}}, "= nan", ""),
    ],
)
def test_an_impossible_value_is_named_with_the_reason(data, named, why):
    message = refusal(data)
    assert named in message and why in message


@pytest.mark.parametrize(
    ("data", "named"),
    [
        ({"training": {"steps": "5"}}, "training.steps = '5'"),
        ({"training": {"learning_rate": "1e-5"}}, "training.learning_rate = '1e-5'"),
        ({"training": {"betas": [0.9, "0.95"]}}, "training.betas.1 = '0.95'"),
        ({"objective": {"clip_low": "0.2"}}, "objective.clip_low = '0.2'"),
        ({"problems": {"shuffle": "true"}}, "problems.shuffle = 'true'"),
    ],
)
def test_a_number_in_quotes_is_refused_with_the_remedy(data, named):
    message = refusal(data)
    assert named in message and "Write it without quotes." in message


@pytest.mark.parametrize(
    ("data", "named"),
    [
        ({"training": {"steps": True}}, "training.steps = True"),
        ({"training": {"steps": 5.5}}, "training.steps = 5.5"),
        ({"problems": {"shuffle": 1}}, "problems.shuffle = 1"),
        ({"model": {"path": 7}}, "model.path = 7"),
        ({"training": {"steps": "many"}}, "training.steps = 'many'"),
    ],
)
def test_no_value_is_taken_for_another_type(data, named):
    message = refusal(data)
    assert named in message and "quotes" not in message


def test_a_whole_number_is_a_real_number_too():
    assert make_recipe({"training": {"weight_decay": 1}}).training.weight_decay == 1.0


def test_every_fault_of_a_recipe_is_told_at_once():
    message = refusal({"training": {"steps": 0, "stepz": 1}, "rollout": {"group_size": 1}})
    assert "training.steps" in message and "training.stepz" in message
    assert "rollout.group_size" in message


def test_a_missing_file_and_broken_toml_are_usage_errors(tmp_path):
    with pytest.raises(RecipeError, match=r"does not exist.*verigrad recipes"):
        read_recipe(tmp_path / "none.toml")
    (tmp_path / "broken.toml").write_text("[training\nsteps = 1")
    with pytest.raises(RecipeError, match=r"broken\.toml is not valid TOML"):
        read_recipe(tmp_path / "broken.toml")
    (tmp_path / "latin.toml").write_bytes(b'[model]\npath = "\xe9"\n')
    with pytest.raises(RecipeError, match="is not valid TOML"):
        read_recipe(tmp_path / "latin.toml")
    with pytest.raises(RecipeError, match="cannot be read"):
        read_recipe(tmp_path)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"objective": {"preset": "dapo", "clip_high": 0.3, "part_weights": [1.0, 2.0]}},
        {"objective": {"dual_clip": None}, "training": {"max_grad_norm": None}},
        {"model": {"lora": {"rank": 4}}, "rollout": {"stop": ["</answer>", '"\n']}},
        {
            "problems": {
                "prefill": "<think>\n",
                "system_prompt": "Réponds: \\boxed{}",
                "few_shot": [{"question": "1 + 1?", "answer": "2"}],
            },
            "verifier": {"name": "number", "options": {"nested": {"tolerance": 0.5}, "l": [1, 2]}},
            "evaluation": {"samples": 4, "k": [1, 4], "temperature": 1.0},
        },
    ],
)
def test_writing_and_reading_gives_an_equal_recipe(data, tmp_path):
    recipe = make_recipe(data)
    (tmp_path / "recipe.toml").write_text(write_recipe(recipe), encoding="utf-8")
    again = read_recipe(tmp_path / "recipe.toml")
    assert again == recipe
    assert again.objective_overrides == recipe.objective_overrides


def test_none_switches_a_number_off_and_stays_text_elsewhere():
    recipe = make_recipe(
        {}, ["training.max_grad_norm=none", "objective.dual_clip=none", "objective.kl=none"]
    )
    assert recipe.training.max_grad_norm is None
    assert recipe.objective_overrides == {"dual_clip": None, "kl": "none"}
    assert tomllib.loads(write_recipe(recipe))["training"]["max_grad_norm"] == "none"
    assert make_recipe({}, ["logging.run=none"]).logging.run == "none"


def test_objective_overrides_hold_what_was_written_in_the_order_of_the_axes():
    recipe = make_recipe({"objective": {"preset": "dapo", "clip_high": 0.3, "clip_low": 0.2}})
    assert list(recipe.objective_overrides.items()) == [("clip_low", 0.2), ("clip_high", 0.3)]
    assert make_recipe({}).objective_overrides == {}


def test_a_recipe_is_frozen_and_is_not_changed_by_its_source():
    source = {"verifier": {"options": {"a": [1]}}}
    recipe = make_recipe(source)
    source["verifier"]["options"]["a"].append(2)
    assert recipe.verifier.options == {"a": [1]}
    with pytest.raises(ValueError, match="frozen"):
        recipe.training.steps = 3  # type: ignore[misc]


def test_every_field_has_a_sentence_in_the_schema():
    schema = recipe_schema()
    sections = {**schema["$defs"], "Recipe": {"properties": {}}}
    bare = [
        f"{name}.{key}"
        for name, section in sections.items()
        for key, field in section["properties"].items()
        if len(field.get("description", "")) < 10 or "\n" in field["description"]
    ]
    assert bare == []
    assert set(schema["properties"]) == set(Recipe.model_fields)
    assert "clip_high" in schema["$defs"]["ObjectiveSection"]["properties"]
    assert all(section["additionalProperties"] is False for section in schema["$defs"].values())
