"""Two answers, one question: do they say the same? Shape by shape, then value by value."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, cast

from verigrad.verifiers.math.equal import has_sign, proportion, same_value
from verigrad.verifiers.math.intervals import as_region, same_region
from verigrad.verifiers.math.limits import MAX_ITEMS, TooLarge, Unreadable
from verigrad.verifiers.math.units import Unit, factor, read_unit
from verigrad.verifiers.math.values import charge, letters

Node = tuple[Any, ...]
_ARTICLES = frozenset(["a", "an", "the", "is", "it"])
_FLIP = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!="}
_LOOSE_UNITS = frozenset(["m", "g", "s", "h", "L", "l"])
VALUES = frozenset(
    [
        "num",
        "sym",
        "const",
        "add",
        "neg",
        "mul",
        "div",
        "pow",
        "fn",
        "app",
        "fact",
        "binom",
        "deg",
        "pm",
        "mixed",
        "root",
        "big",
    ]
)


def same(gold: Node, answer: Node) -> bool:
    """Return whether the answer says what the gold says.

    TooLarge or Unreadable when the two cannot be compared within the bounds.
    """
    charge(10)
    if gold == answer:
        return True
    gold, answer = _bare(gold, answer), _bare(answer, gold)
    if gold == answer:
        return True
    if "unit" in (gold[0], answer[0]):
        return _same_quantity(gold, answer)
    if "text" in (gold[0], answer[0]):
        gold, answer = _counted(gold), _counted(answer)
        if gold[0] == "num" == answer[0]:
            return gold[1] == answer[1]
        return _same_text(gold, answer)
    if "matrix" in (gold[0], answer[0]):
        return _same_matrix(gold, answer)
    if "base" in (gold[0], answer[0]):
        return gold == answer
    if "ratio" in (gold[0], answer[0]):
        gold, answer = _quotient(gold, answer), _quotient(answer, gold)
        if "ratio" not in (gold[0], answer[0]):
            return same_value(gold, answer)
        return gold[0] == answer[0] and _same_ratio(gold[1], answer[1])
    region = _same_region(gold, answer)
    if region is not None:
        return region
    if "rel" in (gold[0], answer[0]):
        return gold[0] == answer[0] and _same_relation(gold, answer)
    if gold[0] in ("union", "opaque") or answer[0] in ("union", "opaque"):
        if "opaque" in (gold[0], answer[0]):
            return gold[:2] == answer[:2] and _pairwise(gold[2], answer[2])
        return _as_sets(gold, answer)
    if "tuple" in (gold[0], answer[0]):
        return _same_tuple(_assigned(gold), _assigned(answer))
    if gold[0] in ("set", "list") or answer[0] in ("set", "list"):
        return _as_sets(gold, answer)
    if has_sign(gold) or has_sign(answer):
        return _as_sets(gold, answer)
    return same_value(gold, answer)


def _bare(node: Node, other: Node) -> Node:
    """Drop what only names the answer: ``x = 5`` is 5 and ``x in [1, 2]`` is the interval."""
    if node[0] != "rel":
        return node
    items, signs = node[1], node[2]
    head, tail = items[0], items[-1]
    if signs == ("in",):
        return tail if other[0] != "rel" or other[2] != ("in",) or head == other[1][0] else node
    if set(signs) != {"="} or (other[0] == "rel" and set(other[2]) == {"="}):
        if other[0] == "rel" and set(signs) == {"="} == set(other[2]):
            return _bare_pair(node, other)
        return node
    if len(items) == 2 and tail[0] == "sym" and head[0] in VALUES and not letters(head):
        head, tail = tail, head
    middle = items[1:]
    if not all(same(tail, item) for item in middle[:-1]):
        return node
    names = letters(head)
    if not names and head[0] not in ("text", "app", "ratio", "tuple"):
        return tail if same(tail, head) else node
    constant = not letters(tail) or tail[0] in ("tuple", "set", "text")
    if head[0] in ("app", "text"):
        return tail
    if head[0] == "sym" and head[1] not in letters(tail):
        return tail if constant else node
    if head[0] in ("tuple", "ratio") and tail[0] == head[0]:
        return tail
    if _is_segment(head) or not names:
        return tail
    return node


def _bare_pair(node: Node, other: Node) -> Node:
    """Of two assignments of tuples or functions with one name, compare what is assigned."""
    if node[1][0] == other[1][0] and node[1][-1][0] not in VALUES:
        return node[1][-1]
    return node


def judge_trees(gold: Node, answer: Node) -> bool:
    """Return whether ``answer`` is right for ``gold``: the one direction where the roles differ."""
    if answer[0] == "rel" and gold[0] in VALUES and set(answer[2]) == {"="}:
        head, tail = answer[1][0], answer[1][-1]
        named = head[0] == "sym" and head[1] not in letters(tail) | letters(gold)
        if named and letters(tail) and all(same(tail, m) for m in answer[1][1:-1]):
            answer = tail
    return same(gold, answer)


def _is_segment(node: Node) -> bool:
    """AB, the length of a segment, is written as two or three capital letters side by side."""
    if node[0] == "fn" and node[1] == "abs":
        return _is_segment(node[2][0])
    if node[0] == "app":
        return True
    names: list[str] = []

    def walk(part: Node) -> bool:
        if part[0] == "sym":
            names.append(part[1])
            return bool(re.fullmatch(r"[A-Z]'?", part[1]))
        return part[0] == "mul" and part[2] == "beside" and all(walk(p) for p in part[1])

    return walk(node) and len(names) in (2, 3)


def _same_quantity(gold: Node, answer: Node) -> bool:
    gold_value, gold_unit = _split_unit(gold, answer)
    answer_value, answer_unit = _split_unit(answer, gold)
    scale = factor(gold_unit, answer_unit)
    if scale is None:
        return False
    if scale != 1:
        if answer_value[0] not in VALUES:
            return False
        answer_value = ("mul", (("num", scale), answer_value), "sign")
    return same(gold_value, answer_value)


def _split_unit(node: Node, other: Node) -> tuple[Node, Unit | None]:
    if node[0] == "unit":
        return node[1], node[2]
    if node[0] == "mul" and node[2] == "beside" and other[0] == "unit":
        left, right = node[1]
        power = 1
        if right[0] == "pow" and right[2][0] == "num" and right[2][1] in (2, 3):
            right, power = right[1], int(right[2][1])
        if right[0] == "sym" and right[1] in _LOOSE_UNITS and not letters(other[1]):
            return left, read_unit(right[1], power)
    return node, None


_COUNTS = "zero one two three four five six seven eight nine ten eleven twelve"


def _counted(node: Node) -> Node:
    """A small number written as a word is that number."""
    if node[0] == "text" and node[1].lower() in _COUNTS.split():
        return ("num", Fraction(_COUNTS.split().index(node[1].lower())))
    return node


def _quotient(node: Node, other: Node) -> Node:
    """A ratio of two beside a plain value is a quotient."""
    if node[0] == "ratio" and len(node[1]) == 2 and other[0] in VALUES:
        return ("div", *node[1])
    return node


def _assigned(node: Node) -> Node:
    """``x = 3, y = 4`` beside a tuple is the tuple (3, 4)."""
    if node[0] != "list" or not all(i[0] == "rel" and i[2] == ("=",) for i in node[1]):
        return node
    names = [item[1][0] for item in node[1]]
    if len(set(names)) < len(names) or not all(n[0] == "sym" for n in names):
        return node
    return ("tuple", "(", ")", tuple(item[1][1] for item in node[1]))


def plain_words(text: str) -> str:
    """Return words without case, articles and punctuation."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    kept = [_singular(w) for w in words if w not in _ARTICLES]
    return " ".join(kept or words)


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _same_text(gold: Node, answer: Node) -> bool:
    return _as_words(gold) == _as_words(answer) != ""


def _as_words(node: Node) -> str:
    if node[0] == "text":
        return plain_words(node[1])
    if node[0] == "sym":
        return str(node[1]).lower()
    if node[0] == "mul" and _is_word(node):
        return plain_words("".join(_spelled(node)))
    return ""


def _is_word(node: Node) -> bool:
    return node[0] == "sym" or (node[0] == "mul" and all(_is_word(p) for p in node[1]))


def _spelled(node: Node) -> list[str]:
    return [node[1]] if node[0] == "sym" else [c for p in node[1] for c in _spelled(p)]


def _same_matrix(gold: Node, answer: Node) -> bool:
    if gold[0] == "tuple" == answer[0]:
        return False
    for one, two in ((gold, answer), (answer, gold)):
        if one[0] == "matrix" and two[0] == "tuple" and two[1:3] == ("(", ")"):
            flat = [row[0] for row in one[1]] if all(len(r) == 1 for r in one[1]) else []
            return bool(flat) and _pairwise(flat, two[3])
    if gold[0] != answer[0] or len(gold[1]) != len(answer[1]) or gold[2] != answer[2]:
        return False
    return all(_pairwise(a, b) for a, b in zip(gold[1], answer[1], strict=True))


def _pairwise(gold: Sequence[Node], answer: Sequence[Node]) -> bool:
    return len(gold) == len(answer) and all(same(g, a) for g, a in zip(gold, answer, strict=True))


def _same_tuple(gold: Node, answer: Node) -> bool:
    if gold[0] == "tuple" == answer[0]:
        return gold[1:3] == answer[1:3] and _pairwise(gold[3], answer[3])
    if "set" in (gold[0], answer[0]) or "list" in (gold[0], answer[0]):
        return len(_members(gold)) == 1 == len(_members(answer)) and _as_sets(gold, answer)
    return False


def _members(node: Node) -> list[Node]:
    """The members of a list, set or union; a value with a plus-minus has two."""
    if node[0] in ("set", "list", "union"):
        return [m for item in node[1] for m in _members_of_item(item)]
    return _members_of_item(node)


def _members_of_item(item: Node) -> list[Node]:
    if item[0] == "rel" and item[2] == ("=",) and has_sign(item[1][1]):
        return [("rel", (item[1][0], part), ("=",)) for part in _members_of_item(item[1][1])]
    if item[0] in VALUES and has_sign(item):
        return [_signed(item, 1), _signed(item, -1)]
    if item[0] == "unit" and has_sign(item[1]):
        return [("unit", part, item[2]) for part in _members_of_item(item[1])]
    return [item]


def _signed(node: Any, sign: int) -> Any:
    if not isinstance(node, tuple):
        return node
    if node[:1] == ("pm",):
        inner = _signed(node[2], sign)
        return inner if (sign > 0) == (node[1] == "pm") else ("neg", inner)
    return tuple(_signed(part, sign) for part in cast(Node, node))


def _same_ratio(gold: Sequence[Node], answer: Sequence[Node]) -> bool:
    """Term by term, or up to a common factor where neither side may be a time of day."""
    if _pairwise(gold, answer):
        return True
    if len(gold) != len(answer) or any(item[0] not in VALUES for item in (*gold, *answer)):
        return False
    if _is_time(gold) or _is_time(answer) or any(letters(item) for item in (*gold, *answer)):
        return False
    crossed = [
        (("mul", (g, answer[0]), "sign"), ("mul", (a, gold[0]), "sign"))
        for g, a in zip(gold, answer, strict=True)
    ]
    return all(same_value(x, y) for x, y in crossed)


def _is_time(items: Sequence[Node]) -> bool:
    """Whether a ratio can be read as hours and minutes, or holds a zero."""
    if any(item == ("num", 0) for item in items):
        return True
    first, second = items[0], items[1]
    if first[0] != "num" or second[0] != "num":
        return False
    return first[1] <= 24 and 10 <= second[1] < 60


def _as_sets(gold: Node, answer: Node) -> bool:
    """Every member of each stands in the other; order is free, repeats do not count."""
    left, right = _members(gold), _members(answer)
    if max(len(left), len(right)) > MAX_ITEMS:
        return _pairwise(left, right)
    if all(item[0] == "num" for item in (*left, *right)):
        return {item[1] for item in left} == {item[1] for item in right}
    return _covered(left, right) and _covered(right, left)


def _covered(left: list[Node], right: list[Node]) -> bool:
    return all(any(_try(a, b) for b in right) for a in left)


def _try(a: Node, b: Node) -> bool:
    try:
        return same(a, b)
    except (TooLarge, Unreadable):
        return a == b


def _same_region(gold: Node, answer: Node) -> bool | None:
    """Compare as sets of reals when both can be read so; None when one cannot."""
    kinds = {gold[0], answer[0]}
    if not ("union" in kinds or any(_is_inequality(n) for n in (gold, answer))):
        return None
    left, right = as_region(gold), as_region(answer)
    if left is None or right is None:
        return None
    if left[0] and right[0] and left[0] != right[0]:
        return False
    return same_region(left[1], right[1])


def _is_inequality(node: Node) -> bool:
    if node[0] == "list":
        return all(_is_inequality(item) for item in node[1])
    return node[0] == "rel" and bool(set(node[2]) & {"<", ">", "<=", ">=", "!="})


def _same_relation(gold: Node, answer: Node) -> bool:
    """Equations up to a factor; inequalities up to a positive one, or reversed and negated."""
    a_items, a_signs, b_items, b_signs = gold[1], gold[2], answer[1], answer[2]
    if len(a_items) != len(b_items):
        return False
    if len(a_signs) == 1 and a_signs[0] in _FLIP and b_signs[0] in _FLIP:
        return _same_single(a_items, a_signs[0], b_items, b_signs[0])
    if a_signs == b_signs and _pairwise(a_items, b_items):
        return True
    if all(s in _FLIP for s in b_signs):
        flipped = tuple(_FLIP[s] for s in reversed(b_signs))
        return a_signs == flipped and _pairwise(a_items, b_items[::-1])
    return False


def _solved(items: Sequence[Node]) -> bool:
    """Whether an equation is a letter and its value."""
    one, two = items
    return (one[0] == "sym" and not letters(two)) or (two[0] == "sym" and not letters(one))


def _same_single(a: Sequence[Node], sign: str, b: Sequence[Node], other: str) -> bool:
    if not all(item[0] in VALUES for item in (*a, *b)):
        if sign == other and _pairwise(a, b):
            return True
        return sign == _FLIP[other] and _pairwise(a, b[::-1])
    if any(has_sign(item) for item in (*a, *b)):
        return sign == other and _pairwise(a, b)
    if _solved(a) != _solved(b) and sign == other == "=":
        return False  # x - 2 = 40 is the question of which x = 42 is the answer
    left, right = ("add", (a[0], ("neg", a[1]))), ("add", (b[0], ("neg", b[1])))
    direction = proportion(left, right)
    if direction == 0:
        return False
    if sign in ("=", "!="):
        return sign == other
    return other == (sign if direction > 0 else _FLIP[sign])
