r"""Tokens -> tree. A node is a tuple whose first member names its kind; nothing is worked out here.

``num sym const add neg mul div pow fn app fact binom base deg pm sum opaque`` are values;
``tuple set list union matrix rel ratio text unit`` are the shapes an answer can have.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from verigrad.verifiers.math.limits import MAX_CHAIN, MAX_DEPTH, Unreadable
from verigrad.verifiers.math.shapes import Shapes
from verigrad.verifiers.math.spelling import respell
from verigrad.verifiers.math.tokens import FUNCTIONS, Token, read_number, repeating, tokenize

Node = tuple[Any, ...]
END = Token("end", "")
_CONST = {"pi": "pi", "infty": "inf", "mathrm{e}": "e"}
_APPLIED = frozenset("fghFGPQ")
_OPENS = {"(": ")", "[": "]"}
_ALIAS = {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "arcctg": "arccot", "lg": "log",
    "tg": "tan", "ctg": "cot", "cosec": "csc",
}  # fmt: skip
_ARCS = {"sin": "arcsin", "cos": "arccos", "tan": "arctan", "cot": "arccot"}
_STOP_COMMANDS = frozenset(
    [
        "le",
        "leq",
        "ge",
        "geq",
        "ne",
        "neq",
        "in",
        "cup",
        "cap",
        "pm",
        "mp",
        "approx",
        "equiv",
        "to",
        "lor",
        "vee",
        "land",
        "wedge",
        "times",
        "cdot",
        "div",
        "end",
        "setminus",
        "mid",
        "rfloor",
        "rceil",
        "rvert",
        "rangle",
        "leqslant",
        "geqslant",
        "lt",
        "gt",
        "sim",
        "implies",
        "colon",
        "bmod",
        "pmod",
        "subset",
        "subseteq",
        "notin",
        "rightarrow",
        "backslash",
        "ast",
        "quad",
        "text",
    ]
)


class Parser(Shapes):
    """One pass over the tokens of one answer, with one token of look-ahead."""

    def sum_(self) -> Node:
        """Terms joined by plus, minus, plus-minus."""
        self.enter()
        items = [self.signed()]
        while True:
            token = self.peek()
            if token.text in ("+", "-") and token.kind == "op":
                self.next()
                term = self.term()
                items.append(term if token.text == "+" else ("neg", term))
            elif token.kind == "cmd" and token.text in ("pm", "mp"):
                self.next()
                items.append(("pm", token.text, self.term()))
            else:
                break
        self.depth -= 1
        return items[0] if len(items) == 1 else ("add", tuple(items))

    def signed(self) -> Node:
        token = self.peek()
        if token.kind == "op" and token.text in ("+", "-"):
            self.next()
            self.enter()
            inner = self.signed()
            self.depth -= 1
            return inner if token.text == "+" else ("neg", inner)
        if token.kind == "cmd" and token.text in ("pm", "mp"):
            self.next()
            return ("pm", token.text, self.term())
        return self.term()

    def term(self) -> Node:
        """Factors joined by a sign of product or quotient, or by standing side by side."""
        left: Node = self.power()
        for _ in range(MAX_CHAIN):
            token = self.peek()
            if self.is_times(token):
                self.next()
                left = ("mul", (left, self.factor_after_sign()), "sign")
            elif (token.kind == "op" and token.text == "/") or self.is_cmd("div"):
                if self.peek(1).kind == "text":
                    return left
                self.next()
                left = ("div", left, self.factor_after_sign())
            elif self.starts_factor(token):
                left = self.beside(left, token)
            else:
                return left
        raise Unreadable("a product is too long")

    def is_times(self, token: Token) -> bool:
        if token.kind == "op":
            return token.text == "*"
        return token.kind == "cmd" and token.text in ("times", "cdot", "ast")

    def factor_after_sign(self) -> Node:
        token = self.peek()
        if token.kind == "op" and token.text in "+-":
            self.next()
            inner = self.power()
            return ("neg", inner) if token.text == "-" else inner
        return self.power()

    def beside(self, left: Node, token: Token) -> Node:
        """Two factors side by side: a mixed number when both are plain, else a product."""
        if token.kind == "num":
            if left[0] == "num" and left[1].denominator == 1 and token.gap:
                ahead, under = self.peek(1), self.peek(2)
                if ahead.text == "/" and under.kind == "num":
                    self.next()
                    self.next()
                    below = read_number(self.next().text)
                    part = ("div", ("num", read_number(token.text)), ("num", below))
                    return ("mixed", left, part)
            if left[0] == "num":
                raise Unreadable(f"two numbers stand side by side before {token.text!r}")
        right = self.power()
        if left[0] == "num" and left[1].denominator == 1 and right[0] == "div":
            above, below = right[1], right[2]
            if above[0] == "num" and below[0] == "num" and right[3:] == ("frac",):
                return ("mixed", left, right)
        return ("mul", (left, right), "beside")

    def starts_factor(self, token: Token) -> bool:
        if token.kind in ("num", "sym"):
            return True
        if token.kind == "cmd":
            return token.text not in _STOP_COMMANDS
        if token.kind == "op":
            if token.text == "|":
                return self.bars == 0
            return token.text in ("(", "[", "{")
        return False

    def power(self) -> Node:
        self.enter()
        base = self.postfix(self.primary())
        self.depth -= 1
        return base

    def postfix(self, base: Node) -> Node:
        for _ in range(8):
            token = self.peek()
            if token.kind != "op":
                return base
            if token.text == "!":
                self.next()
                base = ("fact", base)
            elif token.text == "^":
                self.next()
                base = ("deg", base) if self.degree_sign() else ("pow", base, self.script())
            elif token.text == "_" and base[0] == "num":
                self.next()
                base = self.based(base)
            elif token.text == "'" and base[0] == "sym":
                self.next()
                base = ("sym", base[1] + "'")
            else:
                return base
        raise Unreadable("too many marks follow one value")

    def based(self, base: Node) -> Node:
        index = self.lowered()
        if index[0] != "num" or base[1].denominator != 1:
            raise Unreadable("a number carries a subscript that is not a base")
        return ("base", str(base[1]), index[1])

    def degree_sign(self) -> bool:
        if self.is_cmd("circ") or self.is_cmd("degree"):
            self.next()
            return True
        if self.peek().text == "{" and self.peek(1).text == "circ" and self.peek(2).text == "}":
            for _ in range(3):
                self.next()
            return True
        return False

    def script(self) -> Node:
        """What stands raised or lowered: a group, or one number, letter or command."""
        token = self.peek()
        if token.text == "{" and token.kind == "op":
            return self.group()
        if token.kind == "op" and token.text in "+-":
            self.next()
            inner = self.script()
            return ("neg", inner) if token.text == "-" else inner
        base = self.primary()
        if self.peek().text == "^" and self.peek().kind == "op":
            self.enter()
            base = self.postfix(base)
            self.depth -= 1
        return base

    def lowered(self) -> Node:
        """A subscript: of ``x_1^2`` the power belongs to the letter, not to its index."""
        token = self.peek()
        if token.kind == "op" and token.text == "{":
            return self.group()
        return self.primary()

    def group(self) -> Node:
        self.expect("{")
        bars, self.bars = self.bars, 0
        inner = self.relation()
        self.bars = bars
        self.expect("}")
        return inner

    def argument(self) -> Node:
        r"""An argument of ``\frac`` or ``\sqrt``: a group, or one digit, letter or command."""
        token = self.peek()
        if token.text == "{" and token.kind == "op":
            return self.group()
        if token.kind == "num" and len(token.text) > 1:
            self.tokens[self.at] = Token("num", token.text[1:])
            return ("num", Fraction(int(token.text[0])))
        return self.primary()

    def primary(self) -> Node:
        self.enter()
        token = self.next()
        if token.kind == "num":
            value = repeating(token.text)
            node: Node = ("num", value if value is not None else read_number(token.text))
            if token.text.startswith("0") and self.peek().text == "_":
                raise Unreadable("a base number with a leading zero")
        elif token.kind == "sym":
            node = self.symbol(token.text)
        elif token.kind == "text":
            node = ("text", token.text)
        elif token.kind == "cmd":
            node = self.command(token.text)
        elif token.text in _OPENS:
            node = self.bracket(token.text, _OPENS[token.text])
        elif token.text == "\\{":
            node = self.set_()
        elif token.text == "{":
            self.at -= 1
            node = self.group()
        elif token.text in ("|", "\\|"):
            self.bars += 1
            inner = self.sum_()
            self.bars -= 1
            self.expect(token.text)
            node = ("fn", "abs", (inner,))
        elif token.text == "\\$":
            self.money = "dollar"
            node = self.power()
        else:
            raise Unreadable(f"{token.text!r} stands where a number or a name should")
        self.depth -= 1
        return node

    def symbol(self, name: str) -> Node:
        if name in ("e", "i") and self.peek().text != "_":
            return ("const", name)
        if self.peek().kind == "op" and self.peek().text == "_":
            self.next()
            index = self.lowered()
            if index[0] in ("num", "sym", "text"):
                name = f"{name}_{index[1]}"
            else:
                return ("app", name + "_", (index,))
        if name in _APPLIED or name[:2] in ("f_", "g_", "P_"):
            while self.peek().text == "'" and self.peek().kind == "op":
                self.next()
                name += "'"
            if self.peek().text == "(" and self.peek().kind == "op":
                self.next()
                inner = self.bracket("(", ")")
                return ("app", name, inner[3] if inner[0] == "tuple" else (inner,))
        return ("sym", name)

    def command(self, name: str) -> Node:
        if name in _CONST:
            return ("const", _CONST[name])
        name = _ALIAS.get(name, name)
        if name == "frac":
            return ("div", self.argument(), self.argument(), "frac")
        if name in ("binom", "dbinom", "tbinom"):
            return ("binom", self.argument(), self.argument())
        if name == "sqrt":
            return self.root()
        if name in FUNCTIONS:
            return self.function(name)
        return self.named(name)

    def root(self) -> Node:
        degree: Node | None = None
        if self.peek().text == "[" and self.peek().kind == "op":
            self.next()
            degree = self.sum_()
            self.expect("]")
        inside = self.argument()
        return ("fn", "sqrt", (inside,)) if degree is None else ("root", degree, inside)

    def function(self, name: str) -> Node:
        """``sin^2 x``, ``sin^{-1} x``, ``log_2 8``, ``ln(x)``, ``cos 2x``."""
        raised: Node | None = None
        base: Node | None = None
        while self.peek().kind == "op" and self.peek().text in ("^", "_"):
            if self.next().text == "^":
                raised = self.script()
            else:
                base = self.lowered()
        if raised == ("neg", ("num", Fraction(1))) and name in _ARCS:
            name, raised = _ARCS[name], None
        if self.peek().text == "(" and self.peek().kind == "op":
            self.next()
            inner = self.bracket("(", ")")
            args = inner[3] if inner[0] == "tuple" else (inner,)
        else:
            args = (self.bare_argument(),)
        node: Node = ("fn", name, args) if base is None else ("fn", name, (*args, base))
        return node if raised is None else ("pow", node, raised)

    def bare_argument(self) -> Node:
        """Factors without brackets after a function's name, up to the next function or sign."""
        token = self.peek()
        if token.kind == "op" and token.text == "-":
            self.next()
            return ("neg", self.power())
        left: Node = self.power()
        for _ in range(MAX_CHAIN):
            token = self.peek()
            if token.kind == "cmd" and token.text in FUNCTIONS:
                return left
            if token.kind == "op" and token.text == "/":
                self.next()
                left = ("div", left, self.power())
            elif self.starts_factor(token) and token.text not in ("(", "["):
                left = self.beside(left, token)
            else:
                return left
        raise Unreadable("a product is too long")

    def enter(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH * 4:
            raise Unreadable("the answer is nested too deeply")


def parse(text: str) -> Node:
    """Return the tree of one answer; Unreadable or TooLarge when it has none."""
    parser = Parser(tokenize(respell(text)))
    node = parser.answer()
    if parser.peek().kind != "end":
        raise Unreadable(f"{parser.peek().text!r} is left over")
    return node
