r"""One spelling for LaTeX and Unicode variants: what a reader sees as the same becomes the same."""

from __future__ import annotations

import re

from verigrad.verifiers.math.limits import MAX_CHARACTERS, Unreadable

_SUPER = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁽⁾ⁿⁱ", "0123456789+-()ni", strict=True))
_SUB = dict(zip("₀₁₂₃₄₅₆₇₈₉₊₋ₙᵢ", "0123456789+-ni", strict=True))
_VULGAR = {
    "½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4", "⅕": "1/5", "⅖": "2/5",
    "⅗": "3/5", "⅘": "4/5", "⅙": "1/6", "⅚": "5/6", "⅐": "1/7", "⅛": "1/8", "⅜": "3/8",
    "⅝": "5/8", "⅞": "7/8", "⅑": "1/9", "⅒": "1/10",
}  # fmt: skip
_LETTERS = dict(
    zip(
        "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΦΨΩ",
        [
            "alpha",
            "beta",
            "gamma",
            "delta",
            "epsilon",
            "zeta",
            "eta",
            "theta",
            "iota",
            "kappa",
            "lambda",
            "mu",
            "nu",
            "xi",
            "pi",
            "rho",
            "sigma",
            "tau",
            "upsilon",
            "phi",
            "chi",
            "psi",
            "omega",
            "Gamma",
            "Delta",
            "Theta",
            "Lambda",
            "Xi",
            "Pi",
            "Sigma",
            "Phi",
            "Psi",
            "Omega",
        ],
        strict=True,
    )
)
_SIGNS = {
    "−": "-", "–": "-", "﹣": "-", "－": "-", "＋": "+", "×": r"\times ", "·": r"\cdot ",
    "⋅": r"\cdot ", "∙": r"\cdot ", "÷": "/", "⁄": "/", "∕": "/", "≤": r"\le ", "⩽": r"\le ",
    "≥": r"\ge ", "⩾": r"\ge ", "≠": r"\ne ", "≈": r"\approx ", "∈": r"\in ", "∪": r"\cup ",
    "∩": r"\cap ", "∞": r"\infty ", "∅": r"\emptyset ", "±": r"\pm ", "∓": r"\mp ",
    "°": r"^\circ ", "º": r"^\circ ", "∠": r"\angle ", "′": "'", "’": "'", "∖": r"\setminus ",
    "ℝ": r"\mathbb{R}", "→": r"\to ", "€": r"\euro ", "£": r"\pounds ", "¥": r"\yen ",
    "，": ",", "（": "(", "）": ")", "：": ":", "；": ";", "＝": "=", "％": "%", "∶": ":",
    "⟨": r"\langle ", "⟩": r"\rangle ", "⌊": r"\lfloor ", "⌋": r"\rfloor ", "⌈": r"\lceil ",
    "⌉": r"\rceil ", "∛": r"\sqrt[3]", "∜": r"\sqrt[4]", "∑": r"\sum ", "∫": r"\int ",
    "\u00a0": " ", "\u2009": " ", "\u202f": " ", "\u2003": " ",
}  # fmt: skip
_TABLE = str.maketrans(
    {
        **_SIGNS,
        **{k: rf"\frac{{{v.split('/')[0]}}}{{{v.split('/')[1]}}}" for k, v in _VULGAR.items()},
        **{k: rf"\{v} " for k, v in _LETTERS.items()},
        **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff", ""),
    }
)
_RAISED = re.compile("[" + "".join(_SUPER) + "]+")
_LOWERED = re.compile("[" + "".join(_SUB) + "]+")
_ROOT = re.compile(r"√\s*(\d+(?:\.\d+)?|[A-Za-z])?")
_DROPPED = re.compile(
    r"\\(?:left|right|bigl|bigr|Bigl|Bigr|biggl|biggr|big|Big|bigg|Bigg|displaystyle|textstyle|"
    r"limits|nolimits|boldsymbol|hfill|middle)(?![A-Za-z])\.?|(?<!\\)\\[()\[\]]|(?<!\\)\$"
)
_SPACED = re.compile(
    r"\\(?:quad|qquad|space|enspace|thinspace|hspace\{[^{}]*\})(?![A-Za-z])|(?<!\\)\\[,;: ]|~"
)
_GROUP = re.compile(r"(?<=\d)(?:,\s*\\!|\{,\}|\\,)\s*(?=\d{3}(?!\d))")
_FRACTION = re.compile(r"\\[dtc]frac(?![A-Za-z])")
_CLOCK = re.compile(r"\b([AaPp])\.\s?[Mm]\.?(?![A-Za-z])")
_WORDS = re.compile(
    r"\\(?:text|textnormal|textrm|textbf|textit|textsf|mbox|mathrm|mathbf|mathit|mathsf|bf|rm|bm|"
    r"operatorname\*?|hbox|pmb)\s*\{"
)


def respell(text: str) -> str:
    r"""Return ``text`` in plain LaTeX: Unicode signs as commands, sizes and spacing removed.

    Raises Unreadable past the character bound. Thousands joined by ``,\!`` or ``{,}`` keep one mark
    (U+2063) so that they are never read as a list.
    """
    if len(text) > MAX_CHARACTERS:
        raise Unreadable(f"the answer has {len(text)} characters, more than {MAX_CHARACTERS}")
    if not text.isascii():
        text = _RAISED.sub(lambda m: "^{" + "".join(_SUPER[c] for c in m[0]) + "}", text)
        text = _LOWERED.sub(lambda m: "_{" + "".join(_SUB[c] for c in m[0]) + "}", text)
        text = _ROOT.sub(lambda m: rf"\sqrt{{{m[1]}}}" if m[1] else r"\sqrt ", text)
        text = text.translate(_TABLE)
    text = text.replace("{:}", ":")
    text = _GROUP.sub("\u2063", text)
    if "\\" in text or "$" in text or "~" in text:
        text = text.replace(r"\!", "")
        if text.endswith("\\") and not text.endswith("\\\\"):
            text = text[:-1]
        text = _DROPPED.sub(" ", _SPACED.sub(" ", text))
        text = _FRACTION.sub(r"\\frac", text)
    return _CLOCK.sub(r"\1m", text).strip()


def unwrap(text: str) -> str:
    r"""Return ``text`` without the wrappers of upright or bold type: ``\text{a} b`` is ``a b``."""
    found = _WORDS.search(text)
    while found:
        end = closing(text, found.end() - 1)
        if end < 0:
            return text
        inner = text[found.end() : end]
        text = f"{text[: found.start()]} {inner} {text[end + 1 :]}"
        found = _WORDS.search(text)
    return " ".join(text.split())


def closing(text: str, start: int) -> int:
    """Return where the brace that opens at ``start`` closes, or -1."""
    depth = 0
    i = start
    while i < len(text):
        char = text[i]
        if char == "\\":
            i += 2
            continue
        depth += (char == "{") - (char == "}")
        if depth == 0:
            return i
        i += 1
    return -1
