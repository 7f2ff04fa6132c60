r"""Text -> tokens: numbers, commands, letters, words, upright text, signs."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

from verigrad.verifiers.math.limits import MAX_DIGITS, MAX_TOKENS, TooLarge, Unreadable
from verigrad.verifiers.math.spelling import closing
from verigrad.verifiers.math.units import is_unit


class Token(NamedTuple):
    """``kind`` is num, cmd, sym, text or op; ``gap`` says that a space stood before it."""

    kind: str
    text: str
    gap: bool = False


_REPEAT = re.compile(r"(\d*)\.(\d*)(?:\\(?:overline|bar|dot)\s*\{(\d+)\}|\((\d+)\)(?!\d))")
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?![\d,]|\.\d*,)(?:\.\d+)?")
_MARKED = re.compile(r"\d+(?:\u2063\d{3})+(?:\.\d+)?")
_NUMBER = re.compile(r"(?:\d+(?:\.\d+)?|\.\d+)")
_SCIENCE = re.compile(r"[eE]([+-]?\d{1,6})(?![\d.A-Za-z])")
_COMMAND = re.compile(r"\\([A-Za-z]+\*?)|\\(.)", re.DOTALL)
_WORD = re.compile(r"[A-Za-z]+")
_UPRIGHT = {
    "text", "textnormal", "textrm", "textbf", "textit", "textsf", "mbox", "mathrm", "mathbf",
    "mathit", "mathsf", "operatorname", "hbox", "bf", "rm", "bm", "operatorname*", "emph",
}  # fmt: skip
FUNCTIONS = frozenset(
    [
        "sin",
        "cos",
        "tan",
        "cot",
        "sec",
        "csc",
        "arcsin",
        "arccos",
        "arctan",
        "arccot",
        "sinh",
        "cosh",
        "tanh",
        "ln",
        "log",
        "lg",
        "exp",
        "sqrt",
        "gcd",
        "lcm",
        "max",
        "min",
        "det",
        "asin",
        "acos",
        "atan",
        "abs",
        "floor",
        "ceil",
    ]
)
CONNECTIVES = frozenset({"or", "and"})
_NAMED = {"pi": "pi", "infinity": "infty", "inf": "infty", "theta": "theta"}


def read_number(text: str) -> Fraction:
    """Return the literal exactly; TooLarge past the digit bound."""
    if len(text) > MAX_DIGITS:
        raise TooLarge(f"a number of {len(text)} digits")
    return Fraction(text)


def repeating(text: str) -> Fraction | None:
    r"""Return the value of ``0.1\overline{6}`` or ``0.1(6)``, None for anything else."""
    match = _REPEAT.fullmatch(text)
    if match is None:
        return None
    whole, fixed, block = match[1] or "0", match[2], match[3] or match[4]
    if len(whole) + len(fixed) + len(block) > MAX_DIGITS:
        raise TooLarge("a repeating decimal past the digit bound")
    scale = 10 ** len(fixed)
    period = Fraction(int(block), (10 ** len(block) - 1) * scale)
    return Fraction(int(whole + fixed), scale) + period


def tokenize(text: str, *, depth: int = 0) -> list[Token]:
    """Return the tokens of a respelled text; Unreadable for a sign that is not mathematics."""
    tokens: list[Token] = []
    i, gap, brackets = 0, False, 0
    while i < len(text):
        char = text[i]
        if char.isspace():
            gap, i = True, i + 1
            continue
        if len(tokens) > MAX_TOKENS:
            raise Unreadable(f"more than {MAX_TOKENS} tokens")
        if char.isdigit() or (char == "." and text[i + 1 : i + 2].isdigit()):
            i = _number(text, i, tokens, gap, inside=brackets > 0)
        elif char == "\\":
            i = _command(text, i, tokens, gap, depth)
        elif char.isalpha() and char.isascii():
            i = _word(text, i, tokens, gap)
        elif char in "+-*/^_()[]{}|,;:=<>!%&'.":
            brackets += (char in "([") - (char in ")]")
            i = _sign(text, i, tokens, gap)
        elif char == "?" or not char.isascii() or char in '"`@#':
            raise Unreadable(f"{char!r} is not part of an answer")
        else:
            raise Unreadable(f"{char!r} is not mathematics")
        if tokens and tokens[-1].kind == "op" and tokens[-1].text == "\\{":
            brackets += 1
        gap = False
    return tokens


def _number(text: str, i: int, tokens: list[Token], gap: bool, *, inside: bool) -> int:
    if match := _REPEAT.match(text, i):
        tokens.append(Token("num", match[0], gap))
        return match.end()
    match = _MARKED.match(text, i)
    if match is None and not inside and text[i - 1 : i] not in (",", "."):
        match = _GROUPED.match(text, i)
    match = match or _NUMBER.match(text, i)
    if match is None:
        raise Unreadable(f"{text[i : i + 10]!r} is not a number")
    literal, end = re.sub("[,\u2063]", "", match[0]), match.end()
    science = _SCIENCE.match(text, end)
    if science and literal.isascii():
        if abs(int(science[1])) > MAX_DIGITS:
            raise TooLarge(f"an exponent of {science[1]}")
        literal, end = literal + "e" + science[1], science.end()
    tokens.append(Token("num", literal, gap))
    return end


def _command(text: str, i: int, tokens: list[Token], gap: bool, depth: int) -> int:
    match = _COMMAND.match(text, i)
    if match is None:
        raise Unreadable("a lone backslash ends the answer")
    name, end = match[1], match.end()
    if name is None:
        sign = match[2]
        if sign not in "{}%$|\\&_#":
            raise Unreadable(f"\\{sign} is not part of an answer")
        tokens.append(Token("op", "%" if sign == "%" else "\\" + sign, gap))
        return end
    if name in _UPRIGHT:
        start = end
        while start < len(text) and text[start].isspace():
            start += 1
        if text[start : start + 1] == "{":
            stop = closing(text, start)
            if stop < 0 or depth > 8:
                raise Unreadable(f"\\{name}{{ is never closed")
            _upright(text[start + 1 : stop], tokens, gap, depth)
            return stop + 1
        return end
    tokens.append(Token("cmd", name, gap))
    return end


_PLAIN = re.compile(r"[A-Za-z][A-Za-z' \-/]*[.,]?")


def _upright(inner: str, tokens: list[Token], gap: bool, depth: int) -> None:
    """The content of upright type: words are one token, a list of words and mathematics is read."""
    words = inner.strip().rstrip(".")
    gap = gap or inner[:1].isspace()
    parts = words.split()
    if words.lower() in CONNECTIVES:
        tokens.append(Token("op", words.lower(), gap))
    elif _PLAIN.fullmatch(words) and not (CONNECTIVES & {p.lower() for p in parts}):
        single = len(words) == 1 and words.isupper()
        known = words in FUNCTIONS or words in ("e", "i", "d")
        tokens.append(Token("sym" if single or known else "text", words, gap))
        if words in FUNCTIONS:
            tokens[-1] = Token("cmd", words, gap)
    else:
        tokens.extend(tokenize(inner, depth=depth + 1))


def _word(text: str, i: int, tokens: list[Token], gap: bool) -> int:
    match = _WORD.match(text, i)
    assert match is not None
    word, lower = match[0], match[0].lower()
    before = tokens[-1] if tokens else None
    if lower in CONNECTIVES:
        tokens.append(Token("op", lower, gap))
    elif word in FUNCTIONS:
        tokens.append(Token("cmd", word, gap))
    elif lower in _NAMED:
        tokens.append(Token("cmd", _NAMED[lower], gap))
    elif len(word) == 1:
        tokens.append(Token("sym", word, gap))
    elif (before and before.kind in ("num", "op") and is_unit(word)) or (
        len(word) >= 4 and not word.isupper()
    ):
        tokens.append(Token("text", word, gap))
    else:
        tokens.extend(Token("sym", c, gap and k == 0) for k, c in enumerate(word))
    return match.end()


_DOUBLE = {"<=": "le", ">=": "ge", "!=": "ne", "**": "^", "==": "="}


def _sign(text: str, i: int, tokens: list[Token], gap: bool) -> int:
    pair = _DOUBLE.get(text[i : i + 2])
    if pair is None:
        tokens.append(Token("op", text[i], gap))
        return i + 1
    tokens.append(Token("cmd" if pair.isalpha() else "op", pair, gap))
    return i + 2
