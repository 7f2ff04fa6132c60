from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judging import judge, outcome

from verigrad.verifiers import make_verifier
from verigrad.verifiers.answers import after_thinking, boxes, find_answer, plain_text
from verigrad.verifiers.number import last_number, read_number
from verigrad.verifiers.string import word_f1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"\boxed{\frac{1}{2}}", [r"\frac{1}{2}"]),
        (r"\boxed{a} and \fbox{b}", ["a", "b"]),
        (r"\boxed{\{1, 2\}}", [r"\{1, 2\}"]),
        (r"\boxed{never closed", []),
        (r"\boxed {x}", ["x"]),
    ],
)
def test_boxes_are_balanced(text, expected):
    assert boxes(text) == expected


def test_only_what_follows_the_thinking_counts():
    assert after_thinking("<think>a</think>b") == "b"
    assert after_thinking("a</think>b") == "b", "a template may have opened the thinking"
    assert after_thinking("<think>never closed \\boxed{1}") == ""
    assert after_thinking("no thinking") == "no thinking"


@pytest.mark.parametrize(
    ("text", "place", "lenient", "expected"),
    [
        ("\\boxed{7}", "auto", False, "7"),
        ("<answer> 7 </answer>", "auto", False, "7"),
        ("\\boxed{7} then \\boxed{8}", "auto", False, None),
        ("\\boxed{7} again \\boxed{7}", "auto", False, "7"),
        ("\\boxed{}", "auto", False, None),
        ("<think>\\boxed{7}</think> done", "auto", False, None),
        ("The answer is 7.", "auto", False, None),
        ("The answer is 7.", "auto", True, "7"),
        ("**Final answer:** 7", "auto", True, "7"),
        ("a\n7", "line", False, "7"),
        ("  all of it ", "whole", False, "all of it"),
        ("<answer>7</answer>", "box", False, None),
    ],
)
def test_one_answer_is_asserted_in_its_place(text, place, lenient, expected):
    assert find_answer(text, place=place, lenient=lenient)[0] == expected


def test_plain_text_takes_off_latex_clothes():
    assert plain_text(r"$\text{Paris}$") == "Paris"
    assert plain_text(r"\textbf{\text{ a b }}") == "a b"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,234.5", Fraction(2469, 2)),
        ("-0.25", Fraction(-1, 4)),
        ("−7", Fraction(-7)),
        ("$1,000", Fraction(1000)),
        (r"\$3", Fraction(3)),
        ("3/4", Fraction(3, 4)),
        (r"-\frac{3}{4}", Fraction(-3, 4)),
        ("1.5e3", Fraction(1500)),
        (r"1.5 \times 10^{-3}", Fraction(3, 2000)),
        (r"10{,}080", Fraction(10080)),
        (r"50\%", Fraction(50)),
        ("1,23", None),
        ("(1, 234)", None),
        ("1/0", None),
        ("1e999999999", None),
        ("9^9", None),
        ("1 2", Fraction(12)),
        ("", None),
        ("9" * 1000, None),
    ],
)
def test_read_number_is_exact_and_bounded(text, expected):
    assert read_number(text) == expected


@settings(deadline=None)
@given(st.fractions())
def test_read_number_reads_every_fraction(value):
    assert read_number(f"{value.numerator}/{value.denominator}") == value


@settings(deadline=None)
@given(st.text(max_size=60))
def test_read_number_never_raises(text):
    read_number(text)


def test_number_tolerances():
    exact = make_verifier("number")
    assert outcome(exact, "\\boxed{42.0}") == "correct"
    assert outcome(exact, "\\boxed{42.0000001}") == "wrong", "no tolerance unless asked for"
    close = make_verifier("number", options={"absolute": 0.5})
    assert outcome(close, "\\boxed{42.5}") == "correct"
    assert outcome(close, "\\boxed{42.51}") == "wrong"
    relative = make_verifier("number", options={"relative": 0.1})
    assert outcome(relative, "\\boxed{46.2}") == "correct", "0.1 of 42 is exactly 4.2"
    assert outcome(relative, "\\boxed{46.21}") == "wrong"


def test_number_reads_a_gsm8k_gold_and_refuses_a_text_gold():
    assert outcome(make_verifier("number"), "\\boxed{72}", "She has 48+24.\n#### 72") == "correct"
    assert outcome(make_verifier("number"), "\\boxed{72}", "Paris") == "broken"
    assert outcome(make_verifier("number"), "\\boxed{72}", None) == "broken"
    assert outcome(make_verifier("number"), "\\boxed{72}", "") == "broken"


def test_number_percent_is_an_option():
    assert outcome(make_verifier("number"), "\\boxed{50\\%}", "50") == "correct"
    divide = make_verifier("number", options={"percent": "divide"})
    assert outcome(divide, "\\boxed{50\\%}", "0.5") == "correct"


def test_string_normalises_as_stated():
    v = make_verifier("string")
    assert outcome(v, "\\boxed{\\text{ paris }}", "Paris") == "correct"
    assert outcome(v, "\\boxed{Paris, Texas}", "Paris") == "wrong"
    assert outcome(v, "Paris", "Paris") == "unparsed"
    strict = make_verifier("string", options={"ignore_case": False})
    assert outcome(strict, "\\boxed{paris}", "Paris") == "wrong"
    loose = make_verifier("string", options={"ignore_punctuation": True, "ignore_articles": True})
    assert outcome(loose, "\\boxed{the U.S.A.}", "U S A") == "correct"


def test_string_takes_several_golds_and_refuses_empty_ones():
    v = make_verifier("string", options={"golds": "aliases"})
    assert outcome(v, "\\boxed{NYC}", None, aliases=["New York", "NYC"]) == "correct"
    assert outcome(v, "\\boxed{LA}", None, aliases=["New York", "NYC"]) == "wrong"
    assert outcome(v, "\\boxed{}", None, aliases=[""]) == "broken"
    assert outcome(make_verifier("string"), "\\boxed{x}", "  ") == "broken"


def test_string_f1_is_squads():
    # 2 shared words of 3 said and 4 wanted: P = 2/3, R = 2/4, F1 = 4/7.
    assert word_f1("a b x", "a b c d") == pytest.approx(4 / 7)
    v = make_verifier("string", options={"match": "f1", "threshold": 0.5})
    verdict = judge(v, "\\boxed{a b x}", "a b c d")
    assert verdict.reward == pytest.approx(4 / 7) and str(verdict.outcome) == "correct"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\\boxed{B}", "correct"),
        ("\\boxed{(b)}", "correct"),
        ("\\boxed{\\text{B) Paris}}", "correct"),
        ("\\boxed{Paris}", "correct"),
        ("\\boxed{A}", "wrong"),
        ("\\boxed{Rome}", "wrong"),
        ("\\boxed{A and B}", "unparsed"),
        ("\\boxed{A} or \\boxed{B}", "unparsed"),
        ("The answer is (B).", "correct"),
        ("**Answer: B**", "correct"),
        ("B", "correct"),
        ("A big city", "unparsed"),
    ],
)
def test_choice(text, expected):
    v = make_verifier("choice", mode="lenient")
    for gold in ("B", "1", "Paris"):
        assert outcome(v, text, gold, choices=["Rome", "Paris", "Oslo"]) == expected


def test_choice_refuses_a_gold_that_is_no_option():
    v = make_verifier("choice")
    assert outcome(v, "\\boxed{D}", "D", choices=["Rome", "Paris"]) == "broken"
    labelled = {"label": ["A", "B"], "text": ["x", "y"]}
    assert outcome(v, "\\boxed{B}", "B", choices=labelled) == "correct"
    assert outcome(v, "\\boxed{y}", "1", choices={"A": "x", "B": "y"}) == "correct"
    by_index = make_verifier("choice", options={"gold": "right"})
    assert outcome(by_index, "\\boxed{C}", None, right=2, choices=["x", "y", "z"]) == "correct"


@pytest.mark.parametrize("name", ["number", "string", "choice", "format"])
def test_the_rendered_gold_passes(name):
    from judging import completion, problem

    v = make_verifier(name)
    row = problem("B" if name == "choice" else "42")
    text = v.render_gold(row)
    assert text is not None
    assert str(v.verify(row, [completion(text)])[0].outcome) == "correct"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("so 42.", "42"),
        ("x=42", "42"),
        ("x = -3.5.", "-3.5"),
        ("12 - 5", "5"),
        ("12-5", "5"),
        ("it is 1,234 in all", "1,234"),
        ("half, that is 1/2", "1/2"),
        ("$3.50!", "3.50"),
        ("<think>7</think>8 apples", "8"),
        ("version v2", None),
        ("none", None),
    ],
)
def test_last_number(text, expected):
    assert last_number(text)[0] == expected


@pytest.mark.parametrize("text", ["\\boxed{" * 20_000, "{" * 200_000, "[" * 50_000, "9" * 200_000])
def test_pathological_texts_cost_no_more_than_others(text):
    import time

    started = time.process_time()
    for name in ("number", "string", "choice"):
        assert outcome(
            make_verifier(name, mode="lenient"), text, "7" if name != "choice" else "A"
        ) in (
            "unparsed",
            "wrong",
        )
    assert time.process_time() - started < 5
