"""Are two values equal? Exactly for fractions; for everything else at fixed points, twice."""

# mpmath carries no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import hashlib
from fractions import Fraction
from typing import Any

from verigrad.verifiers.math.limits import TooLarge, Unreadable
from verigrad.verifiers.math.values import DIGITS, Evaluator, letters, numeric_lock

Node = tuple[Any, ...]
_SALTS = (1, 2, 3, 4, 5)
_SIGN_FLIPS = (0, 0, 1, 2, 3)
"""Of five points two are all positive; the rest mix signs, so that |x| is not x."""


def point(names: set[str], index: int) -> dict[str, Fraction]:
    """Return fixed rational values for letters; the same names get the same values anywhere."""
    found: dict[str, Fraction] = {}
    for name in sorted(names):
        digest = hashlib.blake2b(f"{name}:{_SALTS[index]}".encode(), digest_size=4).digest()
        number = int.from_bytes(digest, "big")
        value = Fraction(number % 89 + 11, 17 + (number >> 8) % 23)
        flips = _SIGN_FLIPS[index]
        found[name] = -value if (flips and (number >> 16) % 2 == flips % 2) or flips == 3 else value
    return found


def values_at(
    nodes: list[Node], names: set[str], index: int, *, digits: int = DIGITS[0], sign: int = 1
) -> list[Any]:
    """Return the nodes' values at one fixed point, lifted to complex unless all are fractions."""
    with numeric_lock():
        evaluator = Evaluator(point(names, index), digits=digits, sign=sign)
        found = [evaluator.value(node) for node in nodes]
        if all(isinstance(v, Fraction) for v in found):
            return found
        return [evaluator.lift(v) for v in found]


def close(a: Any, b: Any, digits: int) -> bool:
    """Return whether two values agree: exactly for fractions, else to most of their digits."""
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a == b
    size = max(abs(a), abs(b))
    if size == 0:
        return True
    gap = abs(a - b)
    return bool(
        gap * 10 ** (digits * 3 // 4) < max(size, 1)
        if size < 1
        else gap * 10 ** (digits * 3 // 4) < size
    )


def _real(value: Any) -> bool:
    if isinstance(value, Fraction):
        return True
    return bool(abs(value.imag) * 10**40 < max(abs(value), 1))


def same_value(a: Node, b: Node, *, sign_a: int = 1, sign_b: int = 1) -> bool:
    """Return whether two trees are equal as numbers or as functions of their letters.

    A point where just one side is real is left out: identities hold on the common domain.
    TooLarge when one cannot be worked out and the trees differ.
    """
    if a == b and sign_a == sign_b:
        return True
    names = letters(a) | letters(b)
    indices = range(len(_SALTS)) if names else range(1)
    compared = 0
    for index in indices:
        for digits in DIGITS:
            try:
                (x,) = values_at([a], names, index, digits=digits, sign=sign_a)
                (y,) = values_at([b], names, index, digits=digits, sign=sign_b)
            except ZeroDivisionError:
                if not names:
                    return False
                break
            exact = isinstance(x, Fraction) and isinstance(y, Fraction)
            if not exact:
                x, y = _lifted(x, y, digits)
            if names and _real(x) != _real(y):
                break
            if not close(x, y, digits):
                return False
            compared += 1
            if exact:
                break
    return compared > 0


def _lifted(x: Any, y: Any, digits: int) -> tuple[Any, Any]:
    evaluator = Evaluator({}, digits=digits)
    return evaluator.lift(x), evaluator.lift(y)


def proportion(a: Node, b: Node) -> int:
    """Return the sign of c when ``a = c b`` for a nonzero real constant c, else 0."""
    names = letters(a) | letters(b)
    ratio: Any = None
    for index in range(len(_SALTS)):
        try:
            x, y = values_at([a, b], names, index)
        except ZeroDivisionError:
            continue
        except (TooLarge, Unreadable):
            return 1 if a == b else 0
        tiny = Fraction(1, 10**45)
        if abs(x) < tiny or abs(y) < tiny:
            if abs(x) < tiny and abs(y) < tiny:
                continue
            return 0
        current = x / y
        if ratio is not None:
            if isinstance(ratio, Fraction) != isinstance(current, Fraction):
                ratio, current = _lifted(ratio, current, DIGITS[0])
            if not close(ratio, current, DIGITS[0]):
                return 0
        ratio = current
    if ratio is None or not _real(ratio):
        return 0
    positive = ratio > 0 if isinstance(ratio, Fraction) else ratio.real > 0
    return 1 if positive else -1


def has_sign(node: Any) -> bool:
    """Return whether a plus-minus stands anywhere in the tree."""
    if not isinstance(node, tuple):
        return False
    return node[:1] == ("pm",) or any(has_sign(part) for part in node)
