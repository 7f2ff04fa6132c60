r"""Near misses: answers that look like the gold and are not it, each wrong by construction.

What kind of answer a gold is decides which slips apply: a whole number may be off by one, a
fraction upside down, a choice another letter. Where no slip is certain to change the value (a
symbolic expression, a long text) none is made: a false alarm costs more than a missed probe.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

_INTEGER = re.compile(r"-?\d{1,3}(?:,\d{3})+|-?\d+")
_DECIMAL = re.compile(r"-?\d*\.\d+")
_RATIO = re.compile(r"(-?\d+)/(\d+)")
_FRAC = re.compile(r"(-?)\\([dt]?)frac\{(\d+)\}\{(\d+)\}")
_CHOICE = re.compile(r"\(?([A-J])\)?")
_WORD = re.compile(r"[A-Za-z][A-Za-z ]{1,40}")
_TUPLE = re.compile(r"\((-?\d+(?:\.\d+)?(?:\s*,\s*-?\d+(?:\.\d+)?)+)\)")
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A wrong answer and the slip that made it."""

    answer: str
    slip: str


def core(answer: str) -> str:
    """Return the answer proper: what follows ``####`` where the gold is a worked solution."""
    return answer.rpartition("####")[2].strip()


def value_of(answer: str) -> Fraction | None:
    """Return the exact value of a plainly written number (integer, decimal, fraction), None for all
    else."""
    text = core(answer).strip("$ ").replace("\\!", "").replace("{,}", ",")
    if len(text) > 60:
        return None
    if _INTEGER.fullmatch(text):
        return Fraction(int(text.replace(",", "")))
    if _DECIMAL.fullmatch(text):
        return Fraction(text)
    match = _RATIO.fullmatch(text)
    if match and int(match[2]):
        return Fraction(int(match[1]), int(match[2]))
    match = _FRAC.fullmatch(text)
    if match and int(match[4]):
        return Fraction(int(match[3]), int(match[4])) * (-1 if match[1] else 1)
    return None


def near_misses(answer: str, others: Sequence[str], rng: random.Random) -> list[NearMiss]:
    """Return wrong answers close to ``answer``; ``others`` are golds of other problems. May be
    empty."""
    gold = core(answer).strip("$ ")
    found: list[NearMiss] = []
    for make in (_integer, _decimal, _fraction, _choice, _tuple):
        found += make(gold)
    if not found and _WORD.fullmatch(gold):
        found += [NearMiss(f"not {gold}", "negated"), NearMiss(gold[::-1] + gold[0], "misspelt")]
    if not found:
        found += _altered_number(gold)
    found += _someone_elses(gold, others, rng)
    value = value_of(gold)
    kept: dict[str, NearMiss] = {}
    for near in found:
        same_value = value is not None and value_of(near.answer) == value
        if near.answer != gold and not same_value:
            kept.setdefault(near.answer, near)
    return list(kept.values())


def _integer(gold: str) -> list[NearMiss]:
    if not _INTEGER.fullmatch(gold):
        return []
    n = int(gold.replace(",", ""))
    digits = str(abs(n))
    found = [NearMiss(str(n + 1), "off by one"), NearMiss(str(n - 1), "off by one")]
    if n:
        found.append(NearMiss(str(-n), "sign flipped"))
        found.append(NearMiss(f"{n}0", "times ten"))
        found.append(NearMiss(f"{n}.5", "half added"))
    found.append(NearMiss(f"1{digits}9", "gold inside a longer number"))
    swapped = _swap(digits)
    if swapped:
        found.append(NearMiss(("-" if n < 0 else "") + swapped, "two digits swapped"))
    if len(digits) > 2:
        found.append(NearMiss(("-" if n < 0 else "") + digits[:-1], "last digit lost"))
    return found


def _swap(digits: str) -> str:
    for i in range(len(digits) - 1):
        if digits[i] != digits[i + 1] and not (i == 0 and digits[1] == "0"):
            return digits[:i] + digits[i + 1] + digits[i] + digits[i + 2 :]
    return ""


def _decimal(gold: str) -> list[NearMiss]:
    if not _DECIMAL.fullmatch(gold):
        return []
    whole, _, part = gold.partition(".")
    last = str((int(part[-1]) + 1) % 10)
    found = [
        NearMiss(f"{whole}.{part[:-1]}{last}", "last digit changed"),
        NearMiss(f"{whole}{part}", "decimal point lost"),
    ]
    sign = gold[1:] if gold.startswith("-") else f"-{gold}"
    return [*found, NearMiss(sign, "sign flipped")]


def _fraction(gold: str) -> list[NearMiss]:
    if match := _RATIO.fullmatch(gold):
        minus, top, bottom = gold.startswith("-"), abs(int(match[1])), int(match[2])
        shape = "{}{}/{}"
    elif match := _FRAC.fullmatch(gold):
        minus, top, bottom = bool(match[1]), int(match[3]), int(match[4])
        shape = "{}\\frac{{{}}}{{{}}}"
    else:
        return []
    sign, other = ("-", "") if minus else ("", "-")
    found = [
        NearMiss(shape.format(sign, top + 1, bottom), "numerator off by one"),
        NearMiss(shape.format(sign, top, bottom + 1), "denominator off by one"),
        NearMiss(shape.format(other, top, bottom), "sign flipped"),
        NearMiss(f"{sign}{top}", "denominator lost"),
    ]
    return [*found, NearMiss(shape.format(sign, bottom, top), "upside down")] if top else found


def _choice(gold: str) -> list[NearMiss]:
    match = _CHOICE.fullmatch(gold)
    if not match:
        return []
    letter = match[1]
    other = "ABCD"[("ABCD".index(letter) + 1) % 4] if letter in "ABCD" else "A"
    return [NearMiss(gold.replace(letter, other), "another choice")]


def _tuple(gold: str) -> list[NearMiss]:
    match = _TUPLE.fullmatch(gold)
    if not match:
        return []
    parts = [part.strip() for part in match[1].split(",")]
    found = [NearMiss(f"({', '.join(parts[:-1])})", "last part lost")] if len(parts) > 2 else []
    if parts != parts[::-1]:
        found.append(NearMiss(f"({', '.join(parts[::-1])})", "order reversed"))
    first = value_of(parts[0])
    if first is not None and first.denominator == 1:
        found.append(
            NearMiss(f"({', '.join([str(first + 1), *parts[1:]])})", "first part off by one")
        )
    return found


def _altered_number(gold: str) -> list[NearMiss]:
    """A symbolic gold with its last number three larger: it may differ in form, never in value, by
    chance only.

    A changed constant inside an expression of one term (``3\\sqrt{2}``, ``7\\pi``, ``2x+5``)
    changes its value; golds with several answers or relations are left alone.
    """
    numbers = list(_NUMBER.finditer(gold))
    if not numbers or len(gold) > 60 or re.search(r"\\(pm|mp|pmod|bmod|text)|mod|or|and|_", gold):
        return []
    last = numbers[-1]
    changed = f"{gold[: last.start()]}{int(last[0]) + 3}{gold[last.end() :]}"
    return [NearMiss(changed, "a number altered")]


def _someone_elses(gold: str, others: Sequence[str], rng: random.Random) -> list[NearMiss]:
    """Golds of other problems of the same kind: numbers of another value, words other than this
    one."""
    value = value_of(gold)
    if value is not None:
        pool = [o for o in others if (v := value_of(o)) is not None and v != value]
    elif _WORD.fullmatch(gold):
        said = gold.casefold()
        pool = [
            o for o in others if _WORD.fullmatch(core(o)) and not _overlap(said, core(o).casefold())
        ]
    else:
        return []
    if not pool:
        return []
    return [NearMiss(core(rng.choice(pool)), "another problem's gold")]


def _overlap(one: str, other: str) -> bool:
    return bool(set(one.split()) & set(other.split()))
