"""Phrases of mathematics, ratios, factorials and the words around a box: each kind by hand."""

from __future__ import annotations

import time

import pytest

from verigrad.verifiers.math import judge
from verigrad.verifiers.math.idioms import rewrite


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"{5 \choose 2}", r"\binom{5}{2}"),
        (r"3 \text{ million dollars}", r"3\cdot 10^{6} \text{dollars}"),
        ("2 thousand", r"2\cdot 10^{3}"),
        ("1 234 567", "1234567"),
        ("1 23", "1 23"),
        ("0.1666...", r"0.1\overline{6}"),
        (r"0.0909\ldots", r"0.\overline{09}"),
        ("3.14159...", "3.14159..."),
        ("0.33", "0.33"),
        (r"x \in \mathbb{R}", r"(-\infty,\infty)"),
        (r"\text{no real solutions}", r"\emptyset"),
        (r"\text{no}", r"\text{no}"),
        ("{{1,2}}", "1,2"),
        ("{1},{2}", "{1},{2}"),
        (r"\color{red}{5}", "5"),
        (r"\underline{5} \checkmark", "5"),
        (r"10110_{\text{two}}", "10110_{2}"),
        (r"3.50\euro ", r"\euro 3.50"),
        (r"\{x | x > 2\}", r"\{x : x > 2\}"),
        (r"\frac{dy}{dx} = 2x", "y'= 2x"),
        ("f^{-1}(x)=2x", "f(x)=2x"),
    ],
)
def test_a_phrase_becomes_plain_latex_and_the_rest_stays(text: str, expected: str) -> None:
    assert rewrite(text) == expected


@pytest.mark.parametrize(
    ("gold", "answer", "expected"),
    [
        ("2:3", "4:6", "correct"),
        ("2:3:5", "4:6:10", "correct"),
        ("2:3", "6:4", "wrong"),
        ("12:00", "1:00", "wrong"),
        ("1:15", "2:30", "wrong"),
        ("2:05", "4:10", "wrong"),
        ("n!", "n(n-1)!", "correct"),
        ("n!", "n(n-2)!", "wrong"),
        (r"A \cap B", r"A\cap B", "correct"),
        (r"A \cap B", r"C \cap D", "wrong"),
        (r"\binom{n}{k}", r"\frac{n!}{k!(n-k)!}", "correct"),
        (r"\binom{n}{k}", r"\frac{n!}{(n-k)!}", "wrong"),
        (r"\sum_{k=1}^{n} k^2", r"\sum_{i=1}^{n} i^2", "correct"),
        (r"\sum_{k=1}^{n} k^2", r"\sum_{i=1}^{n} i^3", "wrong"),
        (r"\sum_{i=1}^{3} i", "6", "correct"),
        ("-1, 2", "{2, -1}", "correct"),
        ("-1, 2", "{2, 1}", "wrong"),
        ("7", "7 = x", "correct"),
        ("42", r"42 \text{ is wrong}", "wrong"),
        ("42", r"42 \text{ maybe}", "wrong"),
        ("x_1^2", "x_1^3", "wrong"),
        ("x_1^2", "x_{1}^{2}", "correct"),
        (r"\int_0^1 x dx", r"\int_0^2 x dx", "wrong"),
        (r"\log_2^2 x", r"(\log_2 x)^2", "correct"),
        (
            r"\begin{pmatrix}1&2\\3&4\end{pmatrix}",
            r"\begin{vmatrix}1&2\\3&4\end{vmatrix}",
            "wrong",
        ),
        ("7", "8 = x", "wrong"),
        (r"10\text{ miles per hour}", r"10\text{ mph}", "correct"),
        (r"10\text{ km/h}", r"10\text{ mph}", "wrong"),
        ("1000000", r"1\text{ million}", "correct"),
        ("1000000", r"1\text{ billion}", "wrong"),
        (r"\frac{1}{3}", "0.333...", "correct"),
        (r"\frac{1}{3}", "0.333", "wrong"),
        (r"\emptyset", r"\text{no solution}", "correct"),
        (r"(-\infty,\infty)", r"\text{all real numbers}", "correct"),
        ("42", r"\text{The answer is } 42", "correct"),
        ("C", r"\text{The answer is C}", "correct"),
    ],
)
def test_values_behind_phrases(gold: str, answer: str, expected: str) -> None:
    assert judge(gold, f"\\boxed{{{answer}}}").outcome == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"The answer is \boxed{42} or 43.", "wrong"),
        (r"The answer is either 41 or $\boxed{42}$.", "wrong"),
        (r"The value, 42 or so, is exactly $\boxed{42}$.", "correct"),
        (r"$\boxed{42}$, or in words forty-two.", "correct"),
        (r"$\boxed{42}$ or $\frac{84}{2}$.", "correct"),
        (r"$\boxed{42}$ or $\frac{86}{2}$.", "wrong"),
        (r"\boxed{42}. Wait, which unit? The answer is in metres.", "correct"),
        (r"\boxed{42}. Wait, I erred. The answer is 43.", "wrong"),
        ("The answer is 42, I think", "correct"),
        (r"It is not \boxed{41}; it is \boxed{42}.", "correct"),
        (r"It is not \boxed{42}; it is \boxed{41}.", "wrong"),
        (r"It is not \boxed{42}; it is not \boxed{41}.", "wrong"),
        (r"I think \boxed{42}. Wait, no, actually 43 is right.", "wrong"),
        (r"\boxed{42}. Wait, let me double-check: $6\cdot 7=42$. Yes.", "correct"),
        (r"Step 1: \boxed{6}. Step 2: \boxed{7}. So the final answer is \boxed{42}.", "correct"),
        (r"One of \boxed{41}, \boxed{43}; the final answer is either or \boxed{42}.", "wrong"),
        (r"\boxed{42} " * 50, "correct"),
        (" ".join(rf"\boxed{{{n}}}" for n in range(43)), "wrong"),
        ("**Final Answer**\n42", "correct"),
    ],
)
def test_words_around_the_boxes(text: str, expected: str) -> None:
    assert judge("42", text).outcome == expected


@pytest.mark.parametrize(
    "text",
    [
        "<answer>" * 100_000,
        "\\boxed{" * 100_000,
        "$ " * 200_000,
        "1,234" * 100_000,
        "the final answer is not " * 20_000,
        "or " * 200_000,
        "wait it is " * 50_000 + "\\boxed{42}" + " wait it is" * 50_000,
        "\\boxed{" + "1 234" * 3_000 + "}",
        "\\boxed{" + "0." + "12" * 9_000 + "...}",
        "\\boxed{" + "{a \\choose " * 1_500 + "}",
    ],
)
def test_long_texts_take_time_in_proportion(text: str) -> None:
    start = time.perf_counter()
    judge("7", text, mode="lenient")
    assert time.perf_counter() - start < 5
