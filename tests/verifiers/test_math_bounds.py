"""Pathological completions are wrong, soon and the same everywhere; nothing is ever run."""

from __future__ import annotations

import multiprocessing
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verigrad.types import Outcome
from verigrad.verifiers.math import judge

HOSTILE = [
    "9^{9^{9^{9}}}",
    "\\frac{5^{(5^{(5^{(5^5)})} - 4)} - 5}{16}",
    "(10^{9})!",
    "((((9!)!)!)!)!",
    "\\binom{1000000000}{500000000}",
    "\\sum_{k=1}^{1000000000} \\frac{1}{k^2}",
    "\\sum_{a=1}^{999}\\sum_{b=1}^{999}\\sum_{c=1}^{999} abc",
    "\\int_0^{1} x^{x^{x^{x}}} \\, dx",
    "(" * 3000 + "5",
    "(" * 5000 + "5" + ")" * 5000,
    "\\sqrt{" * 300 + "2" + "}" * 300,
    "9" * 19_000,
    "9" * 1_000_000,
    "1e999999",
    "e^{e^{e^{e^{e}}}}",
    "\\sin(10^{10^{10}})",
    "5" + "!" * 1000,
    "-" * 5000 + "5",
    "x" * 5000,
    ",".join(["\\sqrt{2}"] * 2000),
    ",".join(f"\\sqrt{{{n}}}" for n in range(399)),
    "+".join(f"\\sqrt{{{n}}}" for n in range(900)),
    "+".join(f"\\frac{{1}}{{{n}^{{900}}}}" for n in range(2, 300)),
    "{" * 4000 + "}" * 4000,
    "\\frac" * 3000,
    "\\text{" * 3000,
    "|" * 3000,
    "\\begin{pmatrix}" * 500,
    "\\left" * 3000,
    "0^{-1}",
    "\\frac{1}{0}",
    "\\log_1 5",
    "\\tan 90^\\circ",
    "\x00\ud7ff\U0010ffff",
]
GOLDS = ["42", "\\sqrt{2}", "x^2+1", "\\{1,2\\}", "x<3", "(1,2)"]


@pytest.mark.parametrize("gold", GOLDS)
def test_hostile_answers_are_wrong_and_cheap(gold: str) -> None:
    for answer in HOSTILE:
        started = time.perf_counter()
        verdict = judge(gold, f"\\boxed{{{answer}}}")
        assert verdict.outcome in (Outcome.WRONG, Outcome.UNPARSED), answer[:60]
        assert time.perf_counter() - started < 5, answer[:60]


def test_a_huge_gold_equals_itself_and_no_other() -> None:
    assert judge("9^{9^{9}}", "\\boxed{9^{9^{9}}}").outcome is Outcome.CORRECT
    assert judge("9^{9^{9}}", "\\boxed{9^{9^{8}}}").outcome is Outcome.WRONG


def test_megabytes_of_prose_and_boxes_are_read_in_one_pass() -> None:
    for text in ("word " * 400_000, "\\boxed{" * 150_000, "\\boxed{1}" * 100_000, "{" * 10**6):
        started = time.perf_counter()
        assert judge("42", text).outcome is not Outcome.CORRECT
        assert time.perf_counter() - started < 10


def test_code_is_never_run(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    for code in (
        f"__import__('os').system('touch {canary}')",
        f"\\pi and open('{canary}','w')",
        f"[exec(\"open('{canary}','w')\")]",
        'eval("1")',
        "().__class__.__base__.__subclasses__()",
        "\\input{/etc/passwd}",
    ):
        assert judge("1", f"\\boxed{{{code}}}").outcome is not Outcome.CORRECT
    assert not canary.exists()


def cases(n: int) -> list[tuple[str, str]]:
    """A mixture of ordinary checks with one hostile in a hundred."""
    usual = [
        ("42", "\\boxed{42}"),
        ("\\frac{1}{2}", "\\boxed{0.5}"),
        ("\\sqrt{8}", "\\boxed{2\\sqrt{2}}"),
        ("x^2-1", "\\boxed{(x-1)(x+1)}"),
        ("x<3", "\\boxed{(-\\infty,3)}"),
        ("\\{1,2\\}", "\\boxed{1,2,3}"),
        ("\\pi", "\\boxed{3.14}"),
        ("\\sin 2x", "\\boxed{2\\sin x\\cos x}"),
    ]
    bad = [f"\\boxed{{{a}}}" for a in HOSTILE if len(a) < 20_000]
    return [
        ("42", bad[k // 100 % len(bad)]) if k % 100 == 0 else usual[k % len(usual)]
        for k in range(n)
    ]


def outcome(case: tuple[str, str]) -> str:
    return judge(*case).outcome.value


def run_threads(rows: list[tuple[str, str]]) -> list[str]:
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(outcome, rows))


def compare_with_threads_and_processes(n: int) -> None:
    rows = cases(n)
    alone = [outcome(row) for row in rows]
    assert run_threads(rows) == alone
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        halves = pool.map(run_threads, [rows[: n // 2], rows[n // 2 :]])
    assert halves[0] + halves[1] == alone


def test_threads_and_processes_say_the_same() -> None:
    compare_with_threads_and_processes(600)


@pytest.mark.slow
def test_ten_thousand_checks_on_threads_and_processes_say_the_same() -> None:
    compare_with_threads_and_processes(10_000)


@given(st.text(alphabet="0123456789xyei+-*/^_{}()[]|,.=<>!\\ %$fracsqtpmbo", max_size=60))
@settings(max_examples=300, deadline=None)
def test_any_text_gets_a_verdict(text: str) -> None:
    verdict = judge("\\frac{17}{23}", f"\\boxed{{{text}}}")
    assert verdict.outcome is not Outcome.BROKEN
    assert judge("\\frac{17}{23}", f"\\boxed{{{text}}}") == verdict
    judge(text, f"\\boxed{{{text}}}")


@given(st.fractions(max_denominator=10**6), st.fractions(max_denominator=10**6))
@settings(max_examples=200, deadline=None)
def test_fractions_are_equal_exactly_when_their_values_are(a: object, b: object) -> None:
    right = judge(str(a), f"\\boxed{{{b}}}").outcome is Outcome.CORRECT
    assert right == (a == b)


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=5), st.integers(-9, 9))
@settings(max_examples=100, deadline=None)
def test_polynomials_are_equal_to_their_factors(roots: list[int], shift: int) -> None:
    coefficients = [1]
    for root in roots:
        longer = [*coefficients, 0]
        for k, value in enumerate(coefficients):
            longer[k + 1] -= root * value
        coefficients = longer
    degree = len(roots)
    terms = "+".join(f"({c})x^{{{degree - k}}}" for k, c in enumerate(coefficients))
    factors = "".join(f"(x-({root}))" for root in roots)
    assert judge(terms, f"\\boxed{{{factors}}}").outcome is Outcome.CORRECT
    shifted = judge(terms, f"\\boxed{{{factors}+({shift})}}").outcome is Outcome.CORRECT
    assert shifted == (shift == 0)
