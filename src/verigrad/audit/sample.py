r"""Problems for an audit without data: sixty-four small maths problems with golds of many kinds.

Written for this purpose. The answers cover what real sets hold: integers of all sizes, negatives,
decimals, thousands, fractions, radicals, constants, tuples, intervals, expressions, choices and
words.
"""

from __future__ import annotations

from collections.abc import Iterator

from verigrad.types import Message, Problem

_FIXED: tuple[tuple[str, str], ...] = (
    (r"What is $\frac{1}{2} + \frac{1}{4}$?", r"\frac{3}{4}"),
    (r"What is $\frac{2}{3} - \frac{1}{6}$ as a common fraction?", r"\frac{1}{2}"),
    (r"A fair die is rolled. What is the probability of a number above four?", r"\frac{1}{3}"),
    (r"What is the slope of the line through $(0, 3)$ and $(8, -2)$?", r"-\frac{5}{8}"),
    (r"Simplify $\frac{18}{24} \cdot \frac{10}{9}$.", r"\frac{5}{6}"),
    (r"Simplify $\sqrt{72}$.", r"6\sqrt{2}"),
    (r"Simplify $\sqrt{75}$.", r"5\sqrt{3}"),
    (r"What is the area of a circle of radius 5?", r"25\pi"),
    (r"What is the circumference of a circle of radius 9?", r"18\pi"),
    (
        r"A ladder leans on a wall: its foot is 2 m away, its top 3 m up. How long is it?",
        r"\sqrt{13}",
    ),
    (r"What is $0.2 \cdot 1.7$?", "0.34"),
    (r"What is $7.5 - 9.25$?", "-1.75"),
    (r"Write $\frac{5}{8}$ as a decimal.", "0.625"),
    (r"Which point is 4 right of and 1 below $(-1, 3)$?", "(3, 2)"),
    (r"Give the midpoint of $(2, 8)$ and $(10, -4)$.", "(6, 2)"),
    (r"Give polar coordinates of $(0, 3)$ as $(r, \theta)$.", r"\left( 3, \frac{\pi}{2} \right)"),
    (r"For which $x$ is $|x| < 4$? Use interval notation.", "(-4,4)"),
    (r"Expand $(x + 2)(x + 5)$.", "x^2+7x+10"),
    (r"Factor $4y^2 - 9$.", "(2y-3)(2y+3)"),
    (r"Solve $3a + b = 11$ for $b$.", "11-3a"),
    (r"Which is prime? (A) 51 (B) 57 (C) 61 (D) 87", r"\text{(C)}"),
    (r"Which is largest? (A) 2^5 (B) 3^3 (C) 5^2 (D) 28", "A"),
    (r"On which day does a month of 30 days end that began on a Monday?", r"\text{Tuesday}"),
    (
        r"Three sisters: Ada is older than Bea, Bea older than Cleo. Who is the youngest?",
        r"\text{Cleo}",
    ),
    (r"What is 15\% of 80?", "12"),
    (r"A coat costs \$64 and is reduced by a quarter. What does it cost now, in dollars?", "48"),
    (
        r"Two angles of a triangle are $48^\circ$ and $67^\circ$. What is the third, in degrees?",
        "65",
    ),
    (r"What is $2^{10} \cdot 3$?", "3072"),
    (r"How many seconds do twelve hours have?", "43,200"),
    (r"How many ways are there to order the letters of MATHS?", "120"),
    (r"What is the greatest common divisor of 84 and 126?", "42"),
    (r"Convert $1101_2$ to base ten.", "13"),
)
"""Question and gold; the rest of the sample is arithmetic in words, made by a rule below."""

_STORIES = (
    ("Ines has {a} stamps and buys {b} more. How many has she now?", lambda a, b: a + b),
    ("A tank holds {a} litres and loses {b}. How many litres remain?", lambda a, b: a - b),
    ("There are {a} shelves with {b} books each. How many books is that?", lambda a, b: a * b),
    (
        "At noon it was {b} degrees, then it fell by {a}. What is the temperature?",
        lambda a, b: b - a,
    ),
)


def sample_problems() -> tuple[Problem, ...]:
    """Return the sixty-four built-in problems, always the same."""
    rows = [*_FIXED, *_arithmetic(64 - len(_FIXED))]
    return tuple(
        Problem(
            id=f"sample-{i}",
            messages=(Message("user", question),),
            answer=answer,
            data_source="verigrad/audit",
        )
        for i, (question, answer) in enumerate(rows)
    )


def _arithmetic(count: int) -> Iterator[tuple[str, str]]:
    for i in range(count):
        story, rule = _STORIES[i % len(_STORIES)]
        a, b = 23 + 47 * i % 389, 12 + 31 * i % 97
        yield story.format(a=a, b=b), str(rule(a, b))
