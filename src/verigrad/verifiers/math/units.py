"""Units: their names, and how they convert into one another."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

from verigrad.verifiers.math.limits import Unreadable


class Unit(NamedTuple):
    """A unit as (dimension, size in the dimension's first unit, power)."""

    dimension: str
    size: Fraction
    power: int = 1


_METRIC = {
    "milli": ("m", "1/1000"),
    "centi": ("c", "1/100"),
    "deci": ("d", "1/10"),
    "kilo": ("k", "1000"),
    "": ("", "1"),
}
_TABLE: dict[str, tuple[str, Fraction]] = {}


def _add(dimension: str, size: str, names: str) -> None:
    for name in names.split():
        _TABLE[name] = (dimension, Fraction(size))


for _prefix, (_short, _size) in _METRIC.items():
    _long = " ".join(_prefix + n for n in ("meter", "metre"))
    _add("length", _size, f"{_long} {_short}m")
    _add("mass", _size, f"{_prefix}gram {_short}g")
    _long = " ".join(_prefix + n for n in ("liter", "litre"))
    _add("volume", _size, f"{_long} {_short}L {_short}l {_short}l".replace(" l ", " "))
_add("length", "0.0254", "inch inches in")
_add("length", "0.3048", "foot feet ft")
_add("length", "0.9144", "yard yd")
_add("length", "1609.344", "mile mi")
_add("mass", "453.59237", "pound lb lbs")
_add("mass", "28.349523125", "ounce oz")
_add("time", "1", "second sec s")
_add("time", "60", "minute min mins")
_add("time", "3600", "hour hr h hrs")
_add("time", "86400", "day")
_add("time", "604800", "week")
_add("months", "1", "month")
_add("months", "12", "year yr yrs")
_add("money", "1", "dollar usd USD buck")
_add("money", "1/100", "cent ¢ penny pennies")
_add("euro", "1", "euro eur EUR")
_add("pound sterling", "1", "pounds-sterling GBP")
_add("yen", "1", "yen JPY")
_add("angle", "1", "degree deg")
_add("radian", "1", "radian rad rads")
_add("percent", "1", "percent pct")
_SPELLED = {
    "mph": ("mile", "/", "hour"),
    "kph": ("km", "/", "hour"),
    "kmh": ("km", "/", "hour"),
    "kmph": ("km", "/", "hour"),
    "fps": ("foot", "/", "second"),
}
"""Short names of units that are quotients of two."""
_AREA = {"sq": 2, "square": 2, "squared": 2, "cubic": 3, "cubed": 3, "cu": 3}
_DOUBT = frozenset(
    (
        *("not", "wrong", "maybe", "perhaps", "possibly", "incorrect", "false", "never", "unknown"),
        *("neither", "nor", "guess", "unsure", "unlikely", "isn", "t", "something"),
    )
)
"""Words that take the value back: no unit has one."""
_EMPTY = frozenset(
    [
        "a",
        "an",
        "the",
        "of",
        "unit",
        "units",
        "in",
        "total",
        "each",
        "exactly",
        "about",
        "old",
        "long",
        "wide",
        "tall",
    ]
)


def _lookup(word: str) -> tuple[str, Fraction] | None:
    for form in (word, word.lower()):
        if form in _TABLE:
            return _TABLE[form]
        for end in ("s", "es"):
            if form.endswith(end) and len(form) > 2 and form[: -len(end)] in _TABLE:
                return _TABLE[form[: -len(end)]]
    return None


def is_unit(word: str) -> bool:
    """Return whether the word is a unit of the table."""
    lower = word.lower()
    return _lookup(word) is not None or lower in _AREA or lower in _SPELLED or lower == "units"


def read_unit(words: str, power: int = 1) -> Unit | None:
    """Return the unit a few words name, None when they name none (``units``, ``in total``).

    A word outside the table is a dimension of its own: apples are not oranges.
    """
    parts = [w for w in re.findall(r"[A-Za-z¢]+|/", words) if w.lower() not in _EMPTY or w == "in"]
    if doubt := _DOUBT.intersection(w.lower() for w in parts):
        raise Unreadable(f"{min(doubt)!r} is not a unit")
    if len(parts) > 1 and parts[0] == "in":
        parts = parts[1:]
    parts = [p for part in parts for p in _SPELLED.get(part.lower(), (part,))]
    names: list[str] = []
    size = Fraction(1)
    for part in parts:
        lower = part.lower()
        if lower in _AREA:
            power = _AREA[lower]
            continue
        found = _lookup(part)
        if found is not None:
            name, scale = found
            size = size / scale if names and names[-1] in ("/", "per") else size * scale**power
        else:
            name = lower[:-1] if lower.endswith("s") and len(lower) > 3 else lower
        names.append("per" if name == "/" else name)
    if not names:
        return Unit("", Fraction(1), power) if power != 1 else None
    return Unit(" ".join(names), size, power)


def factor(gold: Unit | None, answer: Unit | None) -> Fraction | None:
    """Return what to multiply the answer by to speak in the gold's unit; None when they conflict.

    A unit that is missing on one side is no conflict.
    """
    if gold is None or answer is None:
        return Fraction(1)
    if gold.power != answer.power:
        return None
    if gold.dimension != answer.dimension:
        return Fraction(1) if "" in (gold.dimension, answer.dimension) else None
    return answer.size / gold.size
