import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judging import judge, outcome

from verigrad.types import Outcome
from verigrad.verifiers import make_verifier
from verigrad.verifiers.jsonvalid import SchemaError, check_schema, first_fault, read_json, same

VALID = [
    ({"type": "integer"}, [1, 1.0, -3], [1.5, True, "1", None]),
    ({"type": ["string", "null"]}, ["a", None], [1]),
    ({"enum": [1, "a", [1]]}, [1, 1.0, "a", [1]], [True, "b", [1, 1]]),
    ({"const": {"a": 1}}, [{"a": 1.0}], [{"a": True}, {}]),
    ({"required": ["a"]}, [{"a": 1}, "not an object"], [{}]),
    (
        {"properties": {"a": {"type": "string"}}, "additionalProperties": False},
        [{}, {"a": ""}],
        [{"b": 1}, {"a": 1}],
    ),
    ({"additionalProperties": {"type": "integer"}}, [{"x": 1}], [{"x": "1"}]),
    ({"patternProperties": {"^n_": {"type": "number"}}}, [{"n_a": 1, "b": ""}], [{"n_a": ""}]),
    ({"propertyNames": {"maxLength": 2}}, [{"ab": 1}], [{"abc": 1}]),
    ({"dependentRequired": {"a": ["b"]}}, [{"b": 1}, {"a": 1, "b": 1}], [{"a": 1}]),
    ({"minProperties": 1, "maxProperties": 2}, [{"a": 1}], [{}, {"a": 1, "b": 1, "c": 1}]),
    ({"items": {"type": "integer"}}, [[], [1, 2]], [[1, "2"]]),
    ({"prefixItems": [{"type": "string"}], "items": False}, [["a"], []], [["a", 1], [1]]),
    ({"contains": {"const": 1}, "maxContains": 2}, [[1], [1, 1, 2]], [[2], [1, 1, 1]]),
    (
        {"minItems": 1, "maxItems": 2, "uniqueItems": True},
        [[1], [1, True]],
        [[], [1, 1.0], [1, 2, 3]],
    ),
    ({"minLength": 1, "maxLength": 2, "pattern": "^a"}, ["a", "ab"], ["", "b", "abc"]),
    ({"minimum": 1, "exclusiveMaximum": 3}, [1, 2.9], [0, 3]),
    ({"maximum": 3, "exclusiveMinimum": 1}, [3, 1.1], [1, 3.1]),
    ({"multipleOf": 0.1}, [0.3, 1.1, 2], [0.35]),
    ({"allOf": [{"minimum": 1}, {"maximum": 2}]}, [1, 2], [0, 3]),
    ({"anyOf": [{"type": "string"}, {"minimum": 2}]}, ["a", 2], [1]),
    ({"oneOf": [{"multipleOf": 2}, {"multipleOf": 3}]}, [2, 3], [6, 5]),
    ({"not": {"type": "null"}}, [1], [None]),
    (
        {"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"minimum": 5}},
        ["ab", 5],
        ["a", 4],
    ),
    (
        {
            "$ref": "#/$defs/n",
            "$defs": {
                "n": {"properties": {"next": {"$ref": "#/$defs/n"}, "v": {"type": "integer"}}}
            },
        },
        [{"v": 1, "next": {"v": 2}}],
        [{"next": {"next": {"v": "x"}}}],
    ),
    (True, [1, None], []),
    (False, [], [1, None]),
]


@pytest.mark.parametrize(("schema", "good", "bad"), VALID)
def test_json_schema_keywords(schema, good, bad):
    check_schema(schema)
    assert [first_fault(v, schema) for v in good] == [None] * len(good)
    assert all(first_fault(v, schema) for v in bad)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"typ": "x"}, "'typ' is not supported"),
        ({"unevaluatedProperties": False}, "not supported"),
        ({"type": "int"}, "'int' is not one of"),
        ({"properties": {"a": {"pattern": "("}}}, "schema.properties.a.pattern"),
        ({"$ref": "https://example.com/x"}, "only references inside"),
        ({"items": 3}, "neither an object nor a boolean"),
    ],
)
def test_a_schema_that_would_be_half_understood_is_refused(schema, words):
    with pytest.raises(SchemaError, match=None) as error:
        check_schema(schema)
    assert words in str(error.value)


def test_a_looping_reference_ends():
    with pytest.raises(SchemaError, match="may loop"):
        first_fault(1, {"$ref": "#"})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
)


@settings(deadline=None)
@given(JSON)
def test_const_accepts_itself_and_json_text_round_trips(value):
    assert first_fault(value, {"const": value}) is None
    assert same(read_json(json.dumps(value)), value)


@pytest.mark.parametrize(
    "text", ["NaN", "[Infinity]", '{"a": 1, "a": 2}', "{'a': 1}", "", "[" * 100_000]
)
def test_strict_json_only(text):
    with pytest.raises(ValueError):
        read_json(text)


def test_json_schema_verifier_and_fences():
    options = {"definition": {"type": "object", "required": ["a"]}}
    v = make_verifier("json_schema", options=options)
    assert outcome(v, '<think>{"b"}</think>{"a": 1}', None) == "correct"
    assert outcome(v, 'Here:\n```json\n{"a": 1}\n```\nDone.', None) == "correct"
    assert outcome(v, 'Here: {"a": 1}', None) == "unparsed"
    assert outcome(v, '{"b": 1}', None) == "wrong"
    bare = make_verifier("json_schema", options={**options, "fenced": "refused"})
    assert outcome(bare, '```json\n{"a": 1}\n```', None) == "unparsed"


def test_json_fields_give_the_share_that_is_right():
    v = make_verifier("json_schema", options={"definition": {"type": "object"}, "match": "fields"})
    verdict = judge(v, '{"a": 1, "b": 3, "c": 9}', '{"a": 1.0, "b": 2}')
    assert verdict.reward == 0.5 and dict(verdict.parts) == {"a": 1.0, "b": 0.0}
    assert outcome(v, "{}", "{}") == "broken", "an empty gold never scores"
    equal = make_verifier("json_schema", options={"definition": {}, "match": "equal"})
    assert outcome(equal, "[1, 2]", "[1, 2]") == "correct"
    assert outcome(equal, "[2, 1]", "[1, 2]") == "wrong"


def test_a_schema_of_the_rows_own_even_with_patterns():
    v = make_verifier("json_schema", options={"deadline_s": 0.5})
    row = {"schema": json.dumps({"type": "string", "pattern": "^(a+)+$"})}
    assert outcome(v, '"aaa"', None, **row) == "correct"
    assert outcome(v, '"b"', None, **row) == "wrong"
    late = judge(v, json.dumps("a" * 60 + "b"), None, **row)
    assert late.outcome is Outcome.BROKEN and "deadline" in late.reason
    assert outcome(v, "1", None) == "broken"


def test_regex_groups_golds_and_runaway_patterns():
    v = make_verifier("regex", options={"pattern": r"ANSWER: (\w+)", "group": 1})
    assert outcome(v, "ANSWER: 41 no, ANSWER: 42") == "correct"
    assert outcome(v, "ANSWER: 41") == "wrong"
    assert outcome(v, "42") == "unparsed"
    assert outcome(v, "ANSWER: 42", "") == "broken"
    inline = make_verifier("regex", options={"pattern": "is {answer}$"})
    assert outcome(inline, "it is 4.2", "4.2") == "correct"
    assert outcome(inline, "it is 4x2", "4.2") == "wrong", "the gold is escaped"
    runaway = make_verifier("regex", options={"pattern": "(a+)+$", "full": True, "deadline_s": 0.5})
    verdict = judge(runaway, "a" * 60 + "b")
    assert verdict.outcome is Outcome.BROKEN and "deadline" in verdict.reason
