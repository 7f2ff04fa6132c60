"""Near misses are near, and wrong; what is equal in value is never one."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from verigrad.audit.near import near_misses, value_of
from verigrad.audit.sample import sample_problems


def slips(gold: str, others: tuple[str, ...] = ()) -> dict[str, str]:
    return {near.answer: near.slip for near in near_misses(gold, others, random.Random(0))}


def test_a_whole_number() -> None:
    assert slips("1204") == {
        "1205": "off by one",
        "1203": "off by one",
        "-1204": "sign flipped",
        "12040": "times ten",
        "1204.5": "half added",
        "112049": "gold inside a longer number",
        "2104": "two digits swapped",
        "120": "last digit lost",
    }


def test_zero_has_no_sign_to_flip() -> None:
    assert slips("0") == {
        "1": "off by one",
        "-1": "off by one",
        "109": "gold inside a longer number",
    }


@pytest.mark.parametrize(
    ("gold", "expected"),
    [
        ("0.34", {"0.35", "034", "-0.34"}),
        ("3/4", {"4/4", "3/5", "-3/4", "3", "4/3"}),
        (
            r"-\frac{5}{8}",
            {r"-\frac{6}{8}", r"-\frac{5}{9}", r"\frac{5}{8}", "-5", r"-\frac{8}{5}"},
        ),
        ("(C)", {"(D)"}),
        ("D", {"A"}),
        ("(3, 7)", {"(7, 3)", "(4, 7)"}),
        (r"6\sqrt{2}", {r"6\sqrt{5}"}),
        (r"x \equiv 3 \pmod{7}", set()),
        (r"\text{Tuesday}", set()),
        ("Tuesday", {"not Tuesday", "yadseuTT"}),
    ],
)
def test_other_kinds(gold: str, expected: set[str]) -> None:
    assert set(slips(gold)) == expected


def test_a_value_written_otherwise_is_no_near_miss() -> None:
    assert "0.5" not in slips("1/2", ("0.5", r"\frac{2}{4}"))
    assert slips("1/1").get("1") is None


def test_the_gold_of_another_problem_has_another_value() -> None:
    found = slips("12", ("12.0", "24/2", "77"))
    assert found["77"] == "another problem's gold"
    assert "24/2" not in found


def test_the_worked_solution_is_left_out() -> None:
    assert slips("6 * 7 makes\n#### 42")["43"] == "off by one"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("43,200", Fraction(43200)),
        ("-1.75", Fraction(-7, 4)),
        (r"-\dfrac{3}{9}", Fraction(-1, 3)),
        ("$12$", Fraction(12)),
        ("3/0", None),
        ("1,23", None),
        (r"2\pi", None),
        ("9" * 500, None),
    ],
)
def test_value_of(text: str, value: Fraction | None) -> None:
    assert value_of(text) == value


def test_no_sample_problem_has_a_near_miss_of_its_own_value() -> None:
    golds = [p.answer or "" for p in sample_problems()]
    for gold in golds:
        mine = value_of(gold)
        for near in near_misses(gold, golds, random.Random(1)):
            assert near.answer != gold
            assert mine is None or value_of(near.answer) != mine


def test_the_sample_is_sixty_four_distinct_questions() -> None:
    problems = sample_problems()
    assert len({p.question for p in problems}) == 64
    assert problems == sample_problems()
    assert all(p.answer for p in problems)
