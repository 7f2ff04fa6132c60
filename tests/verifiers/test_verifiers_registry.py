import subprocess
import sys

import pytest
from judging import judge

from verigrad.errors import RecipeError
from verigrad.types import Verifier
from verigrad.verifiers import describe, list_verifiers, make_verifier

NEEDED = {
    "regex": {"pattern": "x"},
    "overlong": {"max_tokens": 8, "cache_tokens": 4},
    "length": {"max": 5},
    "judge": {"base_url": "http://localhost:1/v1", "model": "m"},
    "compose": {"parts": [{"name": "number"}]},
    "cosine_length": {"max_tokens": 8, "part": {"name": "number"}},
}


def test_every_listed_verifier_can_be_made_and_described():
    names = [name for name, _, _ in list_verifiers()]
    assert {"math", "string", "number", "format", "choice", "instructions"} <= set(names)
    for name in names:
        verifier = make_verifier(name, options=NEEDED.get(name))
        assert isinstance(verifier, Verifier)
        assert verifier.name in describe(verifier) or name in describe(verifier)


def test_every_listed_verifier_has_a_sentence_and_documented_options():
    for name, sentence, options in list_verifiers():
        assert sentence.endswith("."), name
        assert "mode" not in options, "the mode has a place of its own in the recipe"
        if name != "math":
            assert all(options.values()), f"{name} has an option without a sentence"


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("strng", {}, "Did you mean 'string'?"),
        ("number", {"absolut": 1}, "verifier.options.absolut is not an option of 'number'. Did "
                                   "you mean 'absolute'?"),
        ("number", {"absolute": -1}, "verifier.options.absolute = -1"),
        ("length", {}, "give min, max or both"),
        ("overlong", {"max_tokens": 4, "cache_tokens": 8}, "cache_tokens must not exceed"),
        ("regex", {"pattern": "("}, "not a pattern"),
        ("language", {"target": "eng"}, "Did you mean 'en'?"),
        ("json_schema", {"definition": {"typ": "object"}}, "keyword 'typ' is not supported"),
        ("compose", {"op": "gate", "parts": [{"name": "number"}]}, "at least two parts"),
        ("compose", {"parts": [{"nam": "number"}]}, "verifier.options.parts[0]"),
        ("compose", {"parts": [{"name": "number", "absolut": 1}]}, "parts[0].options.absolut"),
        ("compose", {"parts": [{"name": "number", "weight": "x"}]}, "weight = 'x' is not a number"),
        ("tutorial_regex", {"a": 1}, "It has none"),
    ],
)  # fmt: skip
def test_a_bad_name_or_option_says_where_and_what_to_do(name, options, expected):
    with pytest.raises(RecipeError) as error:
        make_verifier(name, options=options)
    assert expected in str(error.value)
    assert error.value.exit_code == 2


def test_mode_reaches_the_verifier_and_a_bad_one_is_refused():
    lenient = make_verifier("number", mode="lenient")
    assert str(judge(lenient, "so 42").outcome) == "correct"
    assert str(judge(make_verifier("number"), "so 42").outcome) == "unparsed"
    with pytest.raises(RecipeError, match="loose"):
        make_verifier("number", mode="loose")


def test_the_tutorial_regex_scores_zero_on_right_answers():
    verifier = make_verifier("tutorial_regex")
    for answer in ("42", "\\frac{1}{2}"):
        assert judge(verifier, f"\\boxed{{{answer}}}", answer).reward == 0.0


def test_the_room_loads_without_torch():
    code = (
        "import sys, verigrad.verifiers as v; v.make_verifier('number');"
        "sys.exit(any(m in sys.modules for m in ('torch', 'transformers', 'sympy')))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
