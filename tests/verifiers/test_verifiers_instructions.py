import json

import pytest
from judging import judge, outcome

from verigrad.verifiers import make_verifier
from verigrad.verifiers.instructions import IFEVAL, KINDS
from verigrad.verifiers.instructions.counting import sentences, words

EN = "We know that this is the answer to it"

CASES = [
    ("keywords:existence", {"keywords": ["apple", "pear"]}, "Apples and a PEAR", "an apple"),
    (
        "keywords:frequency",
        {"keyword": "go", "frequency": 2, "relation": "at least"},
        "go, Go",
        "go",
    ),
    (
        "keywords:frequency",
        {"keyword": "go", "frequency": 2, "relation": "less than"},
        "go",
        "go go",
    ),
    ("keywords:forbidden_words", {"forbidden_words": ["cat"]}, "concatenate", "A Cat."),
    (
        "keywords:letter_frequency",
        {"letter": "e", "let_frequency": 3, "let_relation": "at least"},
        "Eerie",
        "eel",
    ),
    (
        "language:response_language",
        {"language": "de"},
        "Das ist die Antwort und sie ist nicht falsch.",
        EN,
    ),
    (
        "length_constraints:number_sentences",
        {"num_sentences": 2, "relation": "at least"},
        "Dr. Smith has 3.5 apples. He eats one!",
        "Mr. Smith ate 3.5 apples, i.e. many.",
    ),
    (
        "length_constraints:number_paragraphs",
        {"num_paragraphs": 2},
        "one\n***\ntwo",
        "one\n***\n\n***\ntwo",
    ),
    (
        "length_constraints:number_words",
        {"num_words": 3, "relation": "less than"},
        "two words",
        "now three words",
    ),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "then"},
        "First.\n\nThen, so.",
        "Then.\n\nFirst.",
    ),
    (
        "detectable_content:number_placeholders",
        {"num_placeholders": 2},
        "[name] at [place]",
        "[name] []",
    ),
    (
        "detectable_content:postscript",
        {"postscript_marker": "P.S."},
        "Bye.\nP.S. Write soon.",
        "Bye. P.S.",
    ),
    (
        "detectable_content:postscript",
        {"postscript_marker": "P.P.S"},
        "x\nP.P.S: more",
        "x\nP.S. more",
    ),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "* a\n- b", "* a\n* b\n* c"),
    (
        "detectable_format:constrained_response",
        {},
        "My answer is maybe.",
        "My answer is yes. My answer is no.",
    ),
    (
        "detectable_format:number_highlighted_sections",
        {"num_highlights": 2},
        "*one* **two**",
        "*one* ** **",
    ),
    (
        "detectable_format:multiple_sections",
        {"section_spliter": "Section", "num_sections": 2},
        "Section 1\na\nSection 2\nb",
        "Section 1\na",
    ),
    ("detectable_format:json_format", {}, '```json\n{"a": 1}\n```', "{a: 1}"),
    ("detectable_format:title", {}, "<<A poem>>\nroses", "<< >>\nroses"),
    ("combination:two_responses", {}, "one\n******\ntwo", "one\n******\none"),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Say hi."}, "Say hi. Hi!", "Say hi."),
    (
        "startend:end_checker",
        {"end_phrase": "Any questions?"},
        "So. Any questions?",
        "Any questions? No.",
    ),
    ("startend:quotation", {}, '"all of it"', '"half" of it'),
    (
        "change_case:capital_word_frequency",
        {"capital_frequency": 2, "capital_relation": "at least"},
        "NASA and ESA",
        "NASA and Esa",
    ),
    ("change_case:english_capital", {}, EN.upper(), EN),
    ("change_case:english_lowercase", {}, EN.lower(), EN),
    ("punctuation:no_comma", {}, "one two", "one, two"),
    ("keywords:word_once", {"keyword": "cat"}, "a cat concatenates", "cat and cat"),
    ("keywords:unique_words", {}, "every word differs", "the word the"),
    ("first_word:first_word_answer", {"first_word": "yes"}, "Yes, sure", "sure, yes"),
    ("last_word:last_word_answer", {"last_word": "end"}, "this is the end.", "the end is here"),
    ("startend:start_checker", {"start_phrase": "dear all"}, "Dear all, hi", "Hi, dear all"),
    (
        "length_constraints:number_characters",
        {"num_characters": 5, "relation": "at most"},
        "12345",
        "123456",
    ),
    ("length_constraints:number_lines", {"num_lines": 2}, "a\n\nb", "a\nb\nc"),
    ("detectable_format:number_numbered_lists", {"num_items": 2}, "1. a\n2. b", "1. a\n3. b"),
    (
        "detectable_format:code_block",
        {"language": "python"},
        "```python\nx = 1\n```",
        "```\nx = 1\n```",
    ),
    (
        "detectable_format:table",
        {"num_rows": 2},
        "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |",
        "| a |\n|---|\n| 1 |",
    ),
    ("detectable_format:square_brackets", {}, "[all]", "[half] of it"),
    ("punctuation:no_exclamation", {}, "calm.", "loud!"),
    ("punctuation:forbidden_characters", {"characters": ";:"}, "a - b", "a; b"),
]


@pytest.mark.parametrize(("kind", "given", "good", "bad"), CASES)
def test_each_kind_accepts_the_good_and_refuses_the_bad(kind, given, good, bad):
    v = make_verifier("instructions", options={"constraints": [{"kind": kind, **given}]})
    assert outcome(v, good) == "correct"
    verdict = judge(v, bad)
    assert str(verdict.outcome) == "wrong" and verdict.reward == 0.0
    assert kind in verdict.reason


def test_every_kind_has_a_case_and_ifevals_25_are_all_here():
    assert {kind for kind, _, _, _ in CASES} == set(KINDS)
    assert len(IFEVAL) == 25


def test_ifeval_rows_in_all_three_spellings():
    ids = ["punctuation:no_comma", "length_constraints:number_words"]
    kwargs = [{"num_words": None}, {"num_words": 2, "relation": "at least", "keyword": None}]
    v = make_verifier("instructions")
    rows = [
        {"instruction_id_list": ids, "kwargs": kwargs},
        {"instruction_id_list": json.dumps(ids), "kwargs": json.dumps(kwargs)},
        {"constraints": [{"kind": ids[0]}, {"kind": ids[1], "num_words": 2}]},
    ]
    for row in rows:
        assert outcome(v, "two words", None, **row) == "correct"
        assert outcome(v, "two, words", None, **row) == "wrong"
    gold = json.dumps([{"instruction_id": ids, "kwargs": kwargs}])
    assert outcome(v, "two words", gold) == "correct"


def test_share_gives_partial_credit_and_names_each_part():
    v = make_verifier("instructions", options={"credit": "share"})
    two = {"kind": "keywords:word_once"}
    row = [{**two, "keyword": "a"}, {**two, "keyword": "b"}, {"kind": "punctuation:no_comma"}]
    verdict = judge(v, "a c, d", None, constraints=row)
    assert verdict.reward == pytest.approx(1 / 3)
    assert dict(verdict.parts) == {
        "keywords:word_once": 1,
        "keywords:word_once#2": 0,
        "punctuation:no_comma": 0,
    }


def test_lenient_is_ifevals_loose_accuracy():
    row = {"constraints": [{"kind": "startend:start_checker", "start_phrase": "Dear"}]}
    text = "Sure, here it is:\nDear all"
    assert outcome(make_verifier("instructions"), text, None, **row) == "wrong"
    assert outcome(make_verifier("instructions", mode="lenient"), text, None, **row) == "correct"
    assert (
        outcome(make_verifier("instructions", mode="lenient"), "**Dear** all", None, **row)
        == "correct"
    )


@pytest.mark.parametrize(
    ("row", "words_of_it"),
    [
        ({}, "no instructions"),
        ({"constraints": [{"kind": "keywords:existance"}]}, "Did you mean 'keywords:existence'?"),
        ({"constraints": [{"kind": "keywords:word_once"}]}, "needs the setting 'keyword'"),
        ({"constraints": [{"kind": "punctuation:no_comma", "x": 1}]}, "no setting 'x'"),
        ({"instruction_id_list": ["a", "b"], "kwargs": [{}]}, "2 instructions and 1 tables"),
        ({"constraints": "{not json"}, "can't be read"),
    ],
)
def test_unusable_instructions_are_broken_never_right(row, words_of_it):
    verdict = judge(make_verifier("instructions"), "anything", None, **row)
    assert str(verdict.outcome) == "broken" and words_of_it in verdict.reason


def test_only_what_follows_the_thinking_is_held_to_the_instructions():
    row = {"constraints": [{"kind": "punctuation:no_comma"}]}
    v = make_verifier("instructions")
    assert outcome(v, "<think>a, b, c</think>done", None, **row) == "correct"
    assert outcome(v, "<think>never closed", None, **row) == "unparsed"


def test_counting_by_hand():
    assert len(sentences("Dr. A. Smith paid 3.50, e.g. today. Right? Yes!\n\nA last one")) == 4
    assert words("It's a well-known fact") == ["It's", "a", "well-known", "fact"]
