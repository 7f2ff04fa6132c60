"""Sets of reals: intervals, unions and one-letter inequalities, brought to one form."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from verigrad.verifiers.math.equal import same_value, values_at
from verigrad.verifiers.math.values import letters

Node = tuple[Any, ...]
Piece = tuple[Node, bool, Node, bool]
"""(low, low is in, high, high is in)."""
_INF: Node = ("const", "inf")
_LOW: Node = ("neg", _INF)
_FLIP = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!="}


def as_region(node: Node) -> tuple[str, list[Piece]] | None:
    """Return (the letter or "", the pieces in order) of a set of reals, None for anything else."""
    if node[0] == "tuple":
        piece = _interval(node)
        return None if piece is None else ("", [piece])
    if node[0] == "set":
        if any(letters(item) or item[0] in ("tuple", "rel", "text") for item in node[1]):
            return None
        return "", _ordered([(item, True, item, True) for item in node[1]])
    if node[0] == "rel":
        return _relation(node)
    if node[0] == "list" and node[2] == "and":
        return _intersection(node)
    if node[0] == "union" or (node[0] == "list" and node[2] == "or"):
        return _union(node)
    return None


def _union(node: Node) -> tuple[str, list[Piece]] | None:
    name = ""
    pieces: list[Piece] = []
    for item in node[1]:
        part = as_region(item)
        if part is None or (name and part[0] and part[0] != name):
            return None
        name = name or part[0]
        pieces.extend(part[1])
    return name, _ordered(pieces)


def _intersection(node: Node) -> tuple[str, list[Piece]] | None:
    """Inequalities joined by ``and``: the part of the line that all of them allow."""
    name = ""
    low, low_in, high, high_in = _LOW, False, _INF, False
    for item in node[1]:
        part = _relation(item) if item[0] == "rel" else None
        if part is None or len(part[1]) != 1 or (name and part[0] != name):
            return None
        name = part[0]
        bottom, bottom_in, top, top_in = part[1][0]
        if _rank(bottom) > _rank(low) or (_equal(bottom, low) and not bottom_in):
            low, low_in = bottom, bottom_in
        if _rank(top) < _rank(high) or (_equal(top, high) and not top_in):
            high, high_in = top, top_in
    return name, [(low, low_in, high, high_in)]


def _interval(node: Node) -> Piece | None:
    if len(node[3]) != 2:
        return None
    low, high = node[3]
    if letters(low) or letters(high) or {low[0], high[0]} & {"tuple", "rel", "set", "text"}:
        return None
    return low, node[1] == "[" and low != _LOW, high, node[2] == "]" and high != _INF


def _relation(node: Node) -> tuple[str, list[Piece]] | None:
    items, signs = node[1], node[2]
    if signs == ("in",) and items[0][0] == "sym":
        inner = as_region(items[1])
        return None if inner is None else (items[0][1], inner[1])
    if len(signs) == 1 and signs[0] in _FLIP:
        left, right, sign = items[0], items[1], signs[0]
        if right[0] == "sym":
            left, right, sign = right, left, _FLIP[sign]
        return _half_line(left, sign, right)
    if len(signs) == 2 and items[1][0] == "sym":
        low, high = items[0], items[2]
        first, second = signs
        if first in (">", ">=") and second in (">", ">="):
            low, high, first, second = high, low, _FLIP[second], _FLIP[first]
        bounded = not letters(low) and not letters(high)
        if first in ("<", "<=") and second in ("<", "<=") and bounded:
            return items[1][1], [(low, first == "<=", high, second == "<=")]
    return None


def _half_line(left: Node, sign: str, right: Node) -> tuple[str, list[Piece]] | None:
    if left[0] == "neg" and left[1][0] == "sym":
        left, sign, right = left[1], _FLIP[sign], ("neg", right)
    if left[0] != "sym" or letters(right) or right[0] in ("tuple", "set", "text", "unit"):
        return None
    name = str(left[1])
    below: Piece = (_LOW, False, right, sign == "<=")
    above: Piece = (right, sign == ">=", _INF, False)
    pieces: dict[str, list[Piece]] = {
        "<": [below], "<=": [below], ">": [above], ">=": [above], "=": [(right, True, right, True)],
        "!=": [below, above],
    }  # fmt: skip
    return name, pieces[sign]


def _ordered(pieces: list[Piece]) -> list[Piece]:
    """Pieces by their lower end; neighbours that touch are joined."""
    ranked = sorted(pieces, key=lambda piece: (_rank(piece[0]), _rank(piece[2])))
    joined: list[Piece] = []
    for piece in ranked:
        if joined:
            low, low_in, high, high_in = joined[-1]
            touching = _equal(high, piece[0]) and (high_in or piece[1])
            if touching and not _equal(high, _INF):
                joined[-1] = (low, low_in, piece[2], piece[3])
                continue
        joined.append(piece)
    return joined


def _rank(node: Node) -> float:
    if node in (_INF, ("pow", _INF)):
        return float("inf")
    if node == _LOW:
        return float("-inf")
    (value,) = values_at([node], set(), 0)
    return float(value) if isinstance(value, Fraction) else float(value.real)


def _equal(a: Node, b: Node) -> bool:
    if _INF in (a, b) or _LOW in (a, b):
        return a == b
    return same_value(a, b)


def same_region(a: list[Piece], b: list[Piece]) -> bool:
    """Return whether two ordered lists of pieces are the same set."""
    return len(a) == len(b) and all(
        x[1] == y[1] and x[3] == y[3] and _equal(x[0], y[0]) and _equal(x[2], y[2])
        for x, y in zip(a, b, strict=True)
    )
