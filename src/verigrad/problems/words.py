r"""Generated word problems in the manner of GSM8K: question, exact answer, worked solution.

    words:?steps=1..2&max_number=20&kinds=collecting,shopping&ops=add,subtract&count=2000

    steps        calculations a problem needs, 1 to 3, a number or a range (default 1..2)
    max_number   largest number that is drawn (default 20)
    max_result   largest number that is worked out on the way (default 10 * max_number)
    kinds        subjects, comma separated (default all; see KINDS)
    ops          calculations allowed: add, subtract, multiply, divide (default all)
    count        training problems (default 2000, or all there are)
    style        of the solution: "plain" (``3 + 4 = 7. The answer is \boxed{7}.``) or "sentences"
    seed         of the training problems (default the recipe's training.seed)

Every number is a whole number of at least 2. A *skeleton* is a template with its numbers; a fixed
quarter of all skeletons is held out, whatever the seed, so no problem of training turns up in the
evaluation with other names in it, and runs with other seeds are measured on the same problems.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from verigrad.problems.source import (
    Source,
    check_options,
    integer_option,
    names_option,
    span_option,
)
from verigrad.problems.text import belongs_to_heldout, stable_hash
from verigrad.problems.word_template import Template
from verigrad.problems.word_templates import TEMPLATES
from verigrad.problems.word_things import NAMES, THINGS
from verigrad.types import Message, Problem

KINDS: tuple[str, ...] = tuple(dict.fromkeys(t.kind for t in TEMPLATES))
OPS: Mapping[str, str] = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}
STYLES = ("plain", "sentences")
OPTIONS = ("steps", "max_number", "max_result", "kinds", "ops", "count", "style", "seed")

_BRACKET = re.compile(r"\[([^=\]]+)=([a-z])\]")
_TOKEN = re.compile(r"[a-z]|\d+|[-+*/]")
_MAX_FACTOR = 9
_PERCENTAGES = (10, 20, 25, 50, 75)
_REDRAWS = 40
"""Tries a template gets, so that those whose numbers rarely come out whole are not drowned."""
_COMMON, _PASSED_OVER = 0.06, 0.9
"""An answer with a larger share than the first is passed over with the second probability, so that
always saying the same number earns little."""
_STALE = 5_000
"""So many tries in a row without a new problem: there are no more."""


@dataclass(frozen=True, slots=True)
class WordSettings:
    """The options of a ``words:`` source, read and checked."""

    steps: tuple[int, int] = (1, 2)
    max_number: int = 20
    max_result: int = 200
    kinds: tuple[str, ...] = KINDS
    ops: tuple[str, ...] = tuple(OPS)
    count: int | None = None
    style: str = "plain"
    seed: int | None = None

    def templates(self) -> tuple[Template, ...]:
        """The templates that these settings allow."""
        allowed = {OPS[name] for name in self.ops}
        return tuple(
            t
            for t in TEMPLATES
            if self.steps[0] <= t.steps <= self.steps[1]
            and t.kind in self.kinds
            and _operators(t) <= allowed
        )


def read_word_settings(source: Source) -> WordSettings:
    """Return the settings of a ``words:`` source. Raises RecipeError for what they cannot be."""
    if source.where:
        raise source.fault(f"{source.where!r} must follow a '?', as in 'words:?steps=1..2'.")
    check_options(source, OPTIONS)
    max_number = integer_option(source, "max_number", 20, low=4, high=100_000) or 20
    style = source.options.get("style", "plain")
    if style not in STYLES:
        raise source.fault(f"option style = {style!r} is not one of {', '.join(STYLES)}.")
    settings = WordSettings(
        steps=span_option(source, "steps", (1, 2), low=1, high=3),
        max_number=max_number,
        max_result=integer_option(source, "max_result", 10 * max_number, low=4) or 0,
        kinds=names_option(source, "kinds", KINDS),
        ops=names_option(source, "ops", OPS),
        count=integer_option(source, "count", None, low=1),
        style=style,
        seed=integer_option(source, "seed", None, low=0),
    )
    if not settings.templates():
        raise source.fault(
            f"no template has {settings.steps[0]} to {settings.steps[1]} steps, "
            f"the kinds {', '.join(settings.kinds)} and only the ops {', '.join(settings.ops)}. "
            "Allow more steps, kinds or ops."
        )
    return settings


def word_problems(settings: WordSettings, *, seed: int, heldout: bool) -> Iterator[Problem]:
    """Yield distinct problems of one side, training or held-out, until there are no more."""
    rng = random.Random(f"words {seed} {heldout}")
    templates = settings.templates()
    seen: set[str] = set()
    answers: Counter[str | None] = Counter()
    stale = 0
    while stale < _STALE:
        stale += 1
        template = templates[int(rng.random() * len(templates))]
        numbers = _draw_numbers(template, settings, rng)
        if numbers is None:
            continue
        skeleton = f"{template.name} {sorted(numbers.items())}"
        if belongs_to_heldout(skeleton) is not heldout:
            continue
        problem = _phrase(template, numbers, settings.style, rng)
        if problem.question in seen:
            continue
        if answers[problem.answer] > _COMMON * len(seen) + 1 and rng.random() < _PASSED_OVER:
            continue
        seen.add(problem.question)
        answers[problem.answer] += 1
        stale = 0
        yield problem


def _phrase(
    template: Template, numbers: Mapping[str, int], style: str, rng: random.Random
) -> Problem:
    """Put names, things and numbers into the template."""
    words = {**_words(rng), **{name: str(value) for name, value in numbers.items()}}
    question = _fill(template.question, words)
    lines = [_BRACKET.findall(line)[0] for line in template.solution]
    worked = [f"{_show(left, numbers)} = {numbers[name]}" for left, name in lines]
    answer = str(numbers[lines[-1][1]])
    if style == "sentences":
        shown = [
            _BRACKET.sub(lambda _, w=w: w, _fill(line, words))
            for line, w in zip(template.solution, worked, strict=True)
        ]
    else:
        shown = [f"{w}." for w in worked]
    solution = " ".join([*shown, f"The answer is \\boxed{{{answer}}}."])
    info = {
        "solution": solution,
        "template": template.name,
        "kind": template.kind,
        "steps": template.steps,
    }
    id_ = f"words:{stable_hash(question, digits=12)}"
    return Problem(id_, (Message("user", question),), answer, "words", info)


def _words(rng: random.Random) -> dict[str, str]:
    """Three different names, two different things, the pronouns of the first name."""
    names = _pick(NAMES, 3, rng)
    things = _pick(THINGS, 2, rng)
    he = names[0][1]
    his = {"he": "his", "she": "her"}[he]
    (i1, i), (j1, j) = things
    return {
        "X": names[0][0], "Y": names[1][0], "Z": names[2][0],
        "he": he, "He": he.capitalize(), "his": his,
        "i": i, "i1": i1, "j": j, "j1": j1,
    }  # fmt: skip


def _pick(
    items: Sequence[tuple[str, str]], count: int, rng: random.Random
) -> list[tuple[str, str]]:
    """Different items, drawn with ``random()`` alone, whose stream no Python version changes."""
    left = list(items)
    return [left.pop(int(rng.random() * len(left))) for _ in range(count)]


def _fill(text: str, words: Mapping[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda m: words[m[1]], text)


def _show(expression: str, numbers: Mapping[str, int]) -> str:
    """``a+b`` as ``3 + 4``."""
    return " ".join(str(numbers.get(token, token)) for token in _TOKEN.findall(expression))


def _draw_numbers(
    template: Template, settings: WordSettings, rng: random.Random
) -> dict[str, int] | None:
    """Draw the variables and work out every line; None when a number is not allowed."""
    for _ in range(_REDRAWS):
        numbers = _draw_once(template, settings, rng)
        if numbers is not None:
            return numbers
    return None


def _draw_once(
    template: Template, settings: WordSettings, rng: random.Random
) -> dict[str, int] | None:
    numbers: dict[str, int] = {}
    for name, kind, expression in _variables(template):
        if kind:
            numbers[name] = _draw(kind, settings.max_number, rng)
            continue
        value = evaluate(expression, numbers)
        if value is None or not 2 <= value <= settings.max_result:
            return None
        numbers[name] = value
    for line in template.solution:
        left, name = _BRACKET.findall(line)[0]
        value = evaluate(left, numbers)
        if value is None or not 2 <= value <= settings.max_result:
            return None
        numbers[name] = value
    return numbers


def _draw(kind: str, max_number: int, rng: random.Random) -> int:
    if kind == "p":
        return _PERCENTAGES[int(rng.random() * len(_PERCENTAGES))]
    high = max_number if kind == "n" else min(_MAX_FACTOR, max_number)
    return 2 + int(rng.random() * (high - 1))


@cache
def _variables(template: Template) -> tuple[tuple[str, str, str], ...]:
    """``k:k t=k*m`` as (name, kind, "") where drawn and (name, "", expression) where derived."""
    found: list[tuple[str, str, str]] = []
    for item in template.variables.split():
        name, equals, expression = item.partition("=")
        if equals:
            found.append((name, "", expression))
        else:
            name, _, kind = item.partition(":")
            found.append((name, kind, ""))
    return tuple(found)


@cache
def _operators(template: Template) -> frozenset[str]:
    shown = "".join(left for line in template.solution for left, _ in _BRACKET.findall(line))
    return frozenset(shown) & frozenset("+-*/")


def evaluate(expression: str, numbers: Mapping[str, int]) -> int | None:
    """Work out ``a*p/100`` from left to right; None when a division leaves a remainder."""
    tokens = _TOKEN.findall(expression)
    value = numbers[tokens[0]] if tokens[0] in numbers else int(tokens[0])
    for operator, token in zip(tokens[1::2], tokens[2::2], strict=True):
        right = numbers[token] if token in numbers else int(token)
        if operator == "/" and value % right:
            return None
        value = {"+": value + right, "-": value - right, "*": value * right}.get(
            operator, value // right if right else 0
        )
    return value
