r"""Numbers with a stated tolerance, compared exactly as fractions: no float rounding decides a
verdict."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import ClassVar, Literal

from pydantic import Field

from verigrad.types import Completion, Problem, Verdict
from verigrad.verifiers.answers import Place, after_thinking, find_answer, plain_text
from verigrad.verifiers.base import TextVerifier, column
from verigrad.verifiers.string import render_answer

MAX_CHARACTERS = 400
"""Longest text read as a number."""
MAX_EXPONENT = 400
"""Largest power of ten; float ends near 308."""

_SPACES = re.compile(r"\\[,;:! ]|[\s\u00a0\u2009\u202f~]")
_MINUS = str.maketrans("−–﹣－", "----")
_GROUPED = re.compile(r"\d{1,3}(,\d{3})+(\.\d+)?")
_DECIMAL = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)"
_SCIENTIFIC = re.compile(
    rf"({_DECIMAL})(?:[eE]([+-]?\d+)|(?:\\times|\\cdot|×|\*|x)10\^\{{?([+-]?\d+)\}}?)?"
)
_RATIO = re.compile(
    rf"({_DECIMAL})/({_DECIMAL})|([+-]?)\\[dt]?frac\{{({_DECIMAL})\}}\{{({_DECIMAL})\}}"
)
_LAST = re.compile(
    r"(?<![\w.)\]}])[-+−]?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+|(?=\.\d))(?:\.\d+)?"
    r"(?:[eE][+-]?\d+|/\d+)?%?"
)
"""The last number of a text; a sign right behind a word or a bracket is an operator, not a sign."""


class NumberVerifier(TextVerifier):
    """The answer is a number within a tolerance of the gold; by default the tolerance is zero
    and exact."""

    kind: ClassVar[str] = "number"

    mode: Literal["strict", "lenient"] = "strict"
    """lenient: without a box or tag, the last number after the thinking counts."""
    place: Place = "auto"
    """Where the answer stands: auto (box, else tag), box, tag, line (the last one) or whole."""
    absolute: float = Field(default=0.0, ge=0)
    """Largest distance from the gold that still counts."""
    relative: float = Field(default=0.0, ge=0)
    """Largest distance as a share of the gold's size; the larger of both tolerances holds."""
    percent: Literal["ignore", "divide"] = "ignore"
    """What a percent sign means: nothing (50% is 50), or a hundredth (50% is 0.5)."""
    gold: str = "answer"
    """Column with the gold number."""

    def judge(self, problem: Problem, completion: Completion) -> Verdict:
        answer, why = find_answer(completion.text, place=self.place)
        if answer is None and self.mode == "lenient":
            answer, why = last_number(completion.text)
        if answer is None:
            return Verdict.unparsed(why)
        said = read_number(answer, percent=self.percent)
        if said is None:
            return Verdict.unparsed(f"{answer[:60]!r} is not a number")
        wanted = self._gold(problem)
        assert wanted is not None, "check_gold has read it"
        tolerance = max(Fraction(str(self.absolute)), Fraction(str(self.relative)) * abs(wanted))
        if abs(said - wanted) <= tolerance:
            return Verdict.correct(extracted=answer)
        return Verdict.wrong(f"differs from the gold by {float_of(abs(said - wanted)):.6g}", answer)

    def check_gold(self, problem: Problem) -> str | None:
        if self._gold(problem) is None:
            return (
                f"column {self.gold!r} holds {column(problem, self.gold)!r}, which is not a number"
            )
        return None

    def render_gold(self, problem: Problem) -> str | None:
        value = column(problem, self.gold)
        return None if value is None else render_answer(str(value), self.place)

    def _gold(self, problem: Problem) -> Fraction | None:
        value = column(problem, self.gold)
        if value is None or isinstance(value, bool):
            return None
        return read_number(_last_line_gold(str(value)), percent=self.percent)


def _last_line_gold(text: str) -> str:
    """A GSM8K answer ends in ``#### 72``; any other text is taken whole."""
    return text.rpartition("####")[2]


def read_number(text: str, *, percent: Literal["ignore", "divide"] = "ignore") -> Fraction | None:
    r"""Return the exact value of a number as people and LaTeX write it, or None.

    Reads signs, thousands separators, decimals, ``1.2e-3``, ``1.2\times 10^{-3}``, ``a/b``,
    ``\frac{a}{b}``, a currency sign in front and a percent sign behind. Never evaluates; sizes are
    bounded.
    """
    if len(text) > MAX_CHARACTERS:
        return None
    text = plain_text(text).translate(_MINUS)
    text = _SPACES.sub("", text).replace("{,}", ",").replace("\\%", "%").replace("\\$", "$")
    text = re.sub(r"^([+-]?)[$€£¥]", r"\1", text)
    scale = Fraction(1)
    if text.endswith("%"):
        text = text[:-1]
        scale = Fraction(1, 100) if percent == "divide" else scale
    sign, body = (text[0], text[1:]) if text[:1] in ("+", "-") else ("", text)
    if _GROUPED.fullmatch(body):
        text = sign + body.replace(",", "")
    value = _scientific(text)
    if value is None:
        value = _ratio(text)
    return None if value is None else value * scale


def _scientific(text: str) -> Fraction | None:
    match = _SCIENTIFIC.fullmatch(text)
    if match is None:
        return None
    exponent = int(match[2] or match[3] or 0)
    if abs(exponent) > MAX_EXPONENT:
        return None
    return Fraction(match[1]) * Fraction(10) ** exponent


def _ratio(text: str) -> Fraction | None:
    match = _RATIO.fullmatch(text)
    if match is None:
        return None
    above, below = Fraction(match[1] or match[4]), Fraction(match[2] or match[5])
    if below == 0:
        return None
    return above / below * (-1 if match[3] == "-" else 1)


def last_number(text: str) -> tuple[str | None, str]:
    """Return the last number after the thinking, or None and why."""
    found = [m.group() for m in _LAST.finditer(after_thinking(text))]
    return (found[-1], "") if found else (None, "no number after the thinking")


def float_of(value: Fraction) -> float:
    """The nearest float; infinity where it is too large for one."""
    try:
        return float(value)
    except OverflowError:
        return float("inf")
