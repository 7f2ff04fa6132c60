r"""Ways of writing that are whole phrases: brought to the plain LaTeX that the parser reads.

``{n \choose k}``, ``3 million``, ``1 234 567``, ``0.1666...``, all real numbers, no solution.
"""

from __future__ import annotations

import re

from verigrad.verifiers.math.spelling import closing

_CHOOSE = re.compile(r"\{\s*([^{}]{1,40}?)\s*\\choose\s*([^{}]{1,40}?)\s*\}")
_SCALES = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_SCALE = re.compile(
    r"(?<=\d)\s*(?:\\(?:text|mathrm|textrm|mbox)\s*\{\s*(" + "|".join(_SCALES) + r")\b\s*([^{}]*)\}"
    r"|\s(" + "|".join(_SCALES) + r")\b)",
    re.IGNORECASE,
)
_SPACED = re.compile(r"([-+]?)(\d{1,3}(?: \d{3})+)((?:\.\d+)?)")
_DOTS = re.compile(r"(?<![\d.])(\d*)\.(\d{2,40})\s*(?:\.\.\.|…|\\(?:l|c)?dots(?![A-Za-z]))")
_REALS = re.compile(
    r"(?:[a-z]\s*\\in\s*)?(?:\\mathbb\s*\{?\s*R\s*\}?|\\R|\\(?:text|mathrm)\s*\{\s*(?:all\s+)?"
    r"(?:the\s+)?(?:set\s+of\s+(?:all\s+)?)?real\s+numbers\s*\.?\s*\}|all\s+real\s+numbers)"
)
_NOTHING = re.compile(
    r"(?:\\(?:text|mathrm)\s*\{\s*)?(?:there\s+(?:is|are)\s+)?no\s+(?:real\s+)?"
    r"(?:solutions?|roots?)(?:\s+exists?)?\s*\.?\s*\}?",
    re.IGNORECASE,
)
_DECORATION = re.compile(
    r"\\(?:text)?color\s*\{[A-Za-z]{1,20}\}|\\underline(?=\s*\{)"
    r"|\\(?:checkmark|blacksquare|square|qed)(?![A-Za-z])\s*$"
)
_BASES = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "twelve": 12, "sixteen": 16,
}  # fmt: skip
_BASE = re.compile(r"_\s*\{?\s*\\text\s*\{\s*(" + "|".join(_BASES) + r")\s*\}\s*\}?")
_DESCRIBED = re.compile(r"\\\{\s*([a-z]\s*(?:\\in\s*\\mathbb\s*\{?\s*R\s*\}?\s*)?)\|")
_MONEY = re.compile(r"([-+]?\d[\d.,]*)\s*\\(euro|pounds|yen)\s*")
_DERIVED = re.compile(r"\\frac\s*\{\s*d([a-z])\s*\}\s*\{\s*d[a-z]\s*\}\s*(?==)")
_INVERSE = re.compile(r"([f-h])\s*\^\s*\{\s*-\s*1\s*\}\s*(?=\([a-z]\)\s*=)")


def rewrite(text: str) -> str:
    """Return a respelled answer with its phrases written as plain LaTeX."""
    if text.isalnum():
        return text
    if "choose" in text:
        text = _CHOOSE.sub(r"\\binom{\1}{\2}", text)
    if "\\" in text or "|" in text:
        text = _latex(text)
    while text.startswith("{") and len(text) < 2_000 and closing(text, 0) == len(text) - 1:
        text = text[1:-1].strip()
    if "." in text or "\u2026" in text:
        text = _DOTS.sub(_recurring, text)
    if match := _SPACED.fullmatch(text):
        return match[1] + match[2].replace(" ", "") + match[3]
    text = _INVERSE.sub(r"\1", text, count=1) if "=" in text else text
    text = _SCALE.sub(_scaled, text)
    if _REALS.fullmatch(text):
        return r"(-\infty,\infty)"
    if _NOTHING.fullmatch(text):
        return r"\emptyset"
    return text


def _latex(text: str) -> str:
    text = _DECORATION.sub("", text).strip()
    text = _BASE.sub(lambda m: f"_{{{_BASES[m[1]]}}}", text) if "text" in text else text
    text = _DESCRIBED.sub(r"\\{\1:", text).replace("sq. ", "sq ")
    if money := _MONEY.fullmatch(text):
        return f"\\{money[2]} {money[1]}"
    return _DERIVED.sub(r"\1'", text, count=1)


def _scaled(match: re.Match[str]) -> str:
    power = _SCALES[(match[1] or match[3]).lower()]
    rest = f" \\text{{{match[2]}}}" if match[2] else ""
    return f"\\cdot 10^{{{power}}}{rest}"


def _recurring(match: re.Match[str]) -> str:
    r"""``0.1666...`` is ``0.1\overline{6}``: the shortest block that ends the digits.

    A block of one digit must be seen three times, a longer one twice. Digits without one, as in
    ``3.14159...``, are no exact number and stay as they are.
    """
    whole, digits = match[1], match[2]
    for size in range(1, len(digits) // 2 + 1):
        block, times = digits[-size:], 1
        while digits.endswith(block * (times + 1)):
            times += 1
        if times >= (3 if size == 1 else 2):
            fixed = digits[: len(digits) - size * times]
            return f"{whole or '0'}.{fixed}\\overline{{{block}}}"
    return match[0]
