r"""Generated sums: ``What is 3 + 4?`` with the solution ``3 + 4 = \boxed{7}``.

    sums:?digits=1&terms=2&ops=add&count=60

    digits   digits of each number, 1 to 9, a number or a range (default 1)
    terms    numbers in a sum, 2 to 6 (default 2)
    ops      add, subtract, multiply (default add); one sum has one of them
    count    training problems (default 2000, or all there are)
    seed     order and choice of the training problems (default the recipe's training.seed)

Numbers are at least 1 and differences at least 0. About a quarter of all sums, always the
same ones, is held out whatever the seed; ``3 + 4`` and ``4 + 3`` fall on the same side.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from verigrad.problems.source import (
    Source,
    check_options,
    integer_option,
    names_option,
    span_option,
)
from verigrad.problems.text import belongs_to_heldout
from verigrad.types import Message, Problem

OPS: Mapping[str, str] = {"add": "+", "subtract": "-", "multiply": "*"}
OPTIONS = ("digits", "terms", "ops", "count", "seed")
_ENUMERABLE = 200_000
"""Spaces up to this size are listed whole, so that every sum is found."""
_STALE = 20_000


@dataclass(frozen=True, slots=True)
class SumSettings:
    """The options of a ``sums:`` source, read and checked."""

    digits: tuple[int, int] = (1, 1)
    terms: tuple[int, int] = (2, 2)
    ops: tuple[str, ...] = ("add",)
    count: int | None = None
    seed: int | None = None


def read_sum_settings(source: Source) -> SumSettings:
    """Return the settings of a ``sums:`` source. Raises RecipeError for what they cannot be."""
    if source.where:
        raise source.fault(f"{source.where!r} must follow a '?', as in 'sums:?digits=1'.")
    check_options(source, OPTIONS)
    ops = names_option(source, "ops", OPS) if "ops" in source.options else ("add",)
    return SumSettings(
        digits=span_option(source, "digits", (1, 1), low=1, high=9),
        terms=span_option(source, "terms", (2, 2), low=2, high=6),
        ops=ops,
        count=integer_option(source, "count", None, low=1),
        seed=integer_option(source, "seed", None, low=0),
    )


def sum_problems(settings: SumSettings, *, seed: int, heldout: bool) -> Iterator[Problem]:
    """Yield distinct sums of the training side or of the held-out side, until there are no more."""
    rng = random.Random(f"sums {seed} {heldout}")
    for operator, numbers in _sums(settings, rng):
        if operator == "-" and numbers[0] < sum(numbers[1:]):
            continue
        alike = sorted(numbers) if operator != "-" else list(numbers)
        if belongs_to_heldout(f"{operator} {alike}") is heldout:
            yield _phrase(operator, numbers)


def _sums(settings: SumSettings, rng: random.Random) -> Iterator[tuple[str, tuple[int, ...]]]:
    low, high = 10 ** (settings.digits[0] - 1), 10 ** settings.digits[1] - 1
    values = range(max(1, low), high + 1)
    operators = [OPS[name] for name in settings.ops]
    terms = range(settings.terms[0], settings.terms[1] + 1)
    if len(operators) * sum(len(values) ** t for t in terms) <= _ENUMERABLE:
        every = [
            (o, numbers)
            for o in operators
            for t in terms
            for numbers in itertools.product(values, repeat=t)
        ]
        order = [rng.random() for _ in every]
        yield from (every[i] for i in sorted(range(len(every)), key=order.__getitem__))
        return
    seen: set[tuple[str, tuple[int, ...]]] = set()
    stale = 0
    while stale < _STALE:
        stale += 1
        operator = operators[int(rng.random() * len(operators))]
        length = terms[int(rng.random() * len(terms))]
        numbers = tuple(_draw(settings.digits, rng) for _ in range(length))
        if (operator, numbers) not in seen:
            seen.add((operator, numbers))
            stale = 0
            yield operator, numbers


def _draw(digits: tuple[int, int], rng: random.Random) -> int:
    """Draw the number of digits first, so that short numbers are not drowned by long ones."""
    width = digits[0] + int(rng.random() * (digits[1] - digits[0] + 1))
    low, high = max(1, 10 ** (width - 1)), 10**width - 1
    return low + int(rng.random() * (high - low + 1))


def _phrase(operator: str, numbers: tuple[int, ...]) -> Problem:
    shown = f" {operator} ".join(map(str, numbers))
    if operator == "+":
        answer = sum(numbers)
    elif operator == "-":
        answer = numbers[0] - sum(numbers[1:])
    else:
        answer = math.prod(numbers)
    info = {"solution": f"{shown} = \\boxed{{{answer}}}"}
    turn = Message("user", f"What is {shown}?")
    return Problem(f"sums:{shown.replace(' ', '')}", (turn,), str(answer), "sums", info)
