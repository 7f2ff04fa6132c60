"""The shapes an answer can have around its values: lists, sets, tuples, relations, matrices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any

from verigrad.verifiers.math.limits import Unreadable
from verigrad.verifiers.math.tokens import Token
from verigrad.verifiers.math.units import Unit, factor, read_unit

Node = tuple[Any, ...]
END = Token("end", "")
_RELATIONS = {
    "le": "<=", "leq": "<=", "leqslant": "<=", "ge": ">=", "geq": ">=", "geqslant": ">=",
    "ne": "!=", "neq": "!=", "in": "in", "approx": "~", "equiv": "equiv", "lt": "<", "gt": ">",
    "sim": "~", "to": "to", "rightarrow": "to", "subset": "subset", "subseteq": "subset",
    "notin": "notin", "colon": ":", "implies": "to",
}  # fmt: skip
_SIGNS = frozenset(("=", "<", ">", ":"))
_SEPARATORS = frozenset((",", ";", "or", "and"))
_OR_COMMANDS = {"lor": "or", "vee": "or", "land": "and", "wedge": "and"}
_MATRICES = frozenset(
    ["pmatrix", "bmatrix", "vmatrix", "Bmatrix", "matrix", "smallmatrix", "array"]
)
_FENCES = {"lvert": ("rvert", "abs"), "lfloor": ("rfloor", "floor"), "lceil": ("rceil", "ceil")}
_CURRENCIES = {"euro": "euro", "pounds": "GBP", "yen": "yen"}


class Shapes(ABC):
    """The part of the parser that reads what stands around values."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at: int = 0
        self.depth = 0
        self.bars = 0
        self.money = ""

    @abstractmethod
    def sum_(self) -> Node: ...

    @abstractmethod
    def primary(self) -> Node: ...

    @abstractmethod
    def power(self) -> Node: ...

    @abstractmethod
    def script(self) -> Node: ...

    @abstractmethod
    def lowered(self) -> Node: ...

    @abstractmethod
    def term(self) -> Node: ...

    @abstractmethod
    def argument(self) -> Node: ...

    def peek(self, ahead: int = 0) -> Token:
        at = self.at + ahead
        return self.tokens[at] if at < len(self.tokens) else END

    def next(self) -> Token:
        token = self.peek()
        self.at += 1
        return token

    def is_cmd(self, name: str) -> bool:
        token = self.peek()
        return token.kind == "cmd" and token.text == name

    def expect(self, text: str) -> None:
        token = self.next()
        if token.kind != "op" or token.text != text:
            raise Unreadable(f"{text!r} is missing before {token.text!r}")

    def answer(self) -> Node:
        """A whole answer: one relation, or several separated by commas, ``or``, ``and``."""
        if not self.tokens:
            raise Unreadable("there is nothing to read")
        if self.tokens[-1].text in (".", ",", ";") and self.tokens[-1].kind == "op":
            self.tokens.pop()
        items, joins = self.listed()
        if len(items) == 1:
            return items[0]
        return ("list", tuple(items), "and" if joins == {"and"} else "or")

    def listed(self) -> tuple[list[Node], set[str]]:
        items, joins = [self.relation()], set[str]()
        while (join := self.separator()) is not None:
            joins.add(join)
            items.append(self.relation())
        return items, joins

    def separator(self) -> str | None:
        token = self.peek()
        if token.kind == "op" and token.text in _SEPARATORS:
            self.next()
            after = self.peek()
            if token.text in ",;" and after.kind == "op" and after.text in ("or", "and"):
                return self.next().text
            return token.text
        if token.kind == "cmd" and token.text in _OR_COMMANDS:
            self.next()
            return _OR_COMMANDS[token.text]
        return None

    def relation(self) -> Node:
        items, signs = [self.union()], list[str]()
        while (sign := self.relation_sign()) is not None:
            signs.append(sign)
            items.append(self.union())
        if not signs:
            return items[0]
        if "~" in signs:
            items, signs = _exact_part(items, signs)
            if not signs:
                return items[0]
        if set(signs) == {":"}:
            return ("ratio", tuple(items))
        if ":" in signs:
            items, signs = _with_ratios(items, signs)
        return ("rel", tuple(items), tuple(signs))

    def relation_sign(self) -> str | None:
        token = self.peek()
        if token.kind == "op" and token.text in _SIGNS:
            return self.next().text
        if token.kind == "text" and token.text == "to":
            self.next()
            return ":"
        if token.kind == "cmd" and token.text in _RELATIONS:
            return _RELATIONS[self.next().text]
        return None

    def union(self) -> Node:
        items, signs = [self.quantity()], set[str]()
        while self.peek().kind == "cmd" and self.peek().text in ("cup", "cap", "setminus"):
            signs.add(self.next().text)
            items.append(self.quantity())
        if not signs:
            return items[0]
        if signs == {"cup"}:
            return ("union", tuple(items))
        return ("opaque", "-".join(sorted(signs)), tuple(items))

    def quantity(self) -> Node:
        """A value with its unit: ``5 cm``, ``$12``, ``30%``, ``90°``, ``5 feet 3 inches``."""
        token = self.peek()
        if token.kind == "text" and self.peek(1).kind == "text":
            return self.sentence()
        if token.kind == "cmd" and token.text in _CURRENCIES:
            self.next()
            return ("unit", self.sum_(), read_unit(_CURRENCIES[token.text]))
        money, self.money = self.money, ""
        node = self.sum_()
        found = read_unit(self.money) if self.money else None
        self.money = money
        node, degrees = _strip_degrees(node)
        if degrees:
            found = read_unit("degree")
            if self.peek().kind in ("sym", "text") and self.peek().text in ("C", "F"):
                self.next()
        unit, any_words = self.unit()
        if node[0] == "text":
            return node if not any_words else self.fail_text()
        unit = unit or found
        if unit is None:
            return node
        return self.compound(node, unit) if self.peek().kind == "num" else ("unit", node, unit)

    def compound(self, node: Node, unit: Unit) -> Node:
        """A quantity in two units of one kind, added up in the first: ``5 feet 3 inches``."""
        rest = self.quantity()
        scale = factor(unit, rest[2]) if rest[0] == "unit" else None
        if scale is None or scale == 1 or unit.power != 1:
            raise Unreadable("two quantities stand side by side")
        return ("unit", ("add", (node, ("mul", (("num", scale), rest[1]), "sign"))), unit)

    def fail_text(self) -> Node:
        raise Unreadable("words stand where a value should")

    def sentence(self) -> Node:
        words: list[str] = []
        while self.peek().kind in ("text", "sym"):
            words.append(self.next().text)
        return ("text", " ".join(words))

    def unit(self) -> tuple[Unit | None, bool]:
        words: list[str] = []
        power = 1
        while True:
            token = self.peek()
            if token.kind == "text" and token.text != "to":
                words.append(self.next().text)
            elif token.text == "%" and token.kind == "op" and not words:
                self.next()
                words.append("percent")
            elif words and token.kind == "op" and token.text == "^":
                self.next()
                raised = self.script()
                if raised[0] != "num" or raised[1].denominator != 1 or raised[1] > 9:
                    raise Unreadable("a unit carries a power that is not a small integer")
                power = int(raised[1])
            elif token.text == "/" and token.kind == "op" and self.peek(1).kind == "text":
                self.next()
                words.append("/")
            else:
                break
        return (read_unit(" ".join(words), power) if words else None), bool(words)

    def bracket(self, opened: str, closed: str) -> Node:
        """What follows an opening bracket: one value, or a tuple, or an interval."""
        bars, self.bars = self.bars, 0
        token = self.peek()
        if token.kind == "op" and token.text in (")", "]"):
            raise Unreadable("a pair of brackets is empty")
        items, _ = self.listed()
        self.bars = bars
        token = self.next()
        if token.kind != "op" or token.text not in (")", "]"):
            raise Unreadable(f"a bracket {opened!r} is never closed")
        if len(items) > 1:
            return ("tuple", opened, token.text, tuple(items))
        if token.text != closed:
            raise Unreadable(f"{opened!r} is closed by {token.text!r}")
        return items[0]

    def set_(self) -> Node:
        if self.peek().text == "\\}":
            self.next()
            return ("set", ())
        items, _ = self.listed()
        token = self.next()
        if len(items) == 1 and token.text == "\\}" and (described := _described(items[0])):
            return described
        if len(items) == 1 and (token.text in ("|", ":", "mid") or items[0][0] == "ratio"):
            if items[0][0] == "ratio":
                raise Unreadable("a set is described in a way that is not read")
            items = [("list", tuple(self.listed()[0]), "and")]
            token = self.next()
            items = [items[0][1][0]] if len(items[0][1]) == 1 else items
            if token.text == "\\}":
                return items[0]
        if token.kind != "op" or token.text != "\\}":
            raise Unreadable("a set is never closed")
        return ("set", tuple(items))

    def named(self, name: str) -> Node:
        """Commands that are neither constants nor functions of the table."""
        if name in ("emptyset", "varnothing"):
            return ("set", ())
        if name == "begin":
            return self.matrix()
        if name in _FENCES:
            closed, function = _FENCES[name]
            inner = self.sum_()
            if not self.is_cmd(closed):
                raise Unreadable(f"\\{name} is never closed")
            self.next()
            return ("fn", function, (inner,))
        if name == "langle":
            items, _ = self.listed()
            if not self.is_cmd("rangle"):
                raise Unreadable("\\langle is never closed")
            self.next()
            return ("tuple", "(", ")", tuple(items))
        if name in ("sum", "prod", "int"):
            return self.big(name)
        if name in ("overline", "bar", "vec", "hat", "mathbb", "mathcal", "overrightarrow"):
            return ("app", name, (self.argument(),))
        if name in ("angle", "triangle", "measuredangle", "sqrt"):
            return ("app", name, (self.term(),))
        if name in ("fbox", "boxed"):
            return self.argument()
        if name in ("frac", "input", "include", "write", "def", "newcommand", "let", "csname"):
            raise Unreadable(f"\\{name} is not part of an answer")
        return self._symbol_command(name)

    def _symbol_command(self, name: str) -> Node:
        if self.peek().kind == "op" and self.peek().text == "_":
            self.next()
            index = self.lowered()
            return ("app", name + "_", (index,))
        return ("sym", "\\" + name)

    def big(self, name: str) -> Node:
        """A sum, product or integral with its bounds."""
        low: Node | None = None
        high: Node | None = None
        while self.peek().kind == "op" and self.peek().text in ("^", "_"):
            if self.next().text == "_":
                low = self.lowered()
            else:
                high = self.script()
        return ("big", name, low, high, self.term())

    def matrix(self) -> Node:
        self.expect("{")
        kind = ""
        while self.peek().kind in ("sym", "text"):
            kind += self.next().text
        self.expect("}")
        if kind not in _MATRICES:
            raise Unreadable(f"the environment {kind!r} is not a matrix")
        if kind == "array" and self.peek().text == "{":
            while self.peek().kind != "end" and self.next().text != "}":
                continue
        rows: list[tuple[Node, ...]] = []
        row: list[Node] = []
        while not self.is_cmd("end"):
            row.append(self.relation())
            token = self.peek()
            if token.text == "&":
                self.next()
            elif token.text == "\\\\" or self.is_cmd("cr"):
                self.next()
                rows.append(tuple(row))
                row = []
            elif not self.is_cmd("end"):
                raise Unreadable(f"{token.text!r} stands inside a matrix")
        if row:
            rows.append(tuple(row))
        while self.peek().kind != "end" and self.next().text != "}":
            continue
        if len({len(r) for r in rows}) != 1:
            raise Unreadable("the rows of a matrix differ in length")
        return ("matrix", tuple(rows), "v" if kind == "vmatrix" else "")


def _strip_degrees(node: Node) -> tuple[Node, bool]:
    if node[0] == "deg":
        return node[1], True
    if node[0] == "mul" and node[1][0][0] == "deg" and node[1][1] in (("sym", "C"), ("sym", "F")):
        return node[1][0][1], True
    if node[0] == "neg" and node[1][0] == "deg":
        return ("neg", node[1][1]), True
    return node, False


def _described(item: Node) -> Node | None:
    """The condition of ``{x : x > 3}``, which reads as a ratio at first."""
    if item[0] != "rel" or item[1][0][0] != "ratio":
        return None
    ratio = item[1][0][1]
    if len(ratio) != 2 or ratio[0][0] != "sym":
        return None
    return ("rel", (ratio[1], *item[1][1:]), item[2])


def _exact_part(items: list[Node], signs: list[str]) -> tuple[list[Node], list[str]]:
    """What stands before "approximately": the exact value, where there is one."""
    at = signs.index("~")
    if at == 0 and items[0][0] in ("sym", "app", "text"):
        return items, ["=" if s == "~" else s for s in signs]
    return items[: at + 1], signs[:at]


def _with_ratios(items: list[Node], signs: list[str]) -> tuple[list[Node], list[str]]:
    """Join the neighbours of every colon into one ratio."""
    joined: list[Node] = [items[0]]
    kept: list[str] = []
    for sign, item in zip(signs, items[1:], strict=True):
        if sign == ":":
            last = joined.pop()
            joined.append(("ratio", (*(last[1] if last[0] == "ratio" else (last,)), item)))
        else:
            kept.append(sign)
            joined.append(item)
    return joined, kept


ONE = ("num", Fraction(1))
