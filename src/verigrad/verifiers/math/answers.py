"""The text of one answer -> a tree, and the fast paths that need no tree."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from verigrad.verifiers.math.idioms import rewrite
from verigrad.verifiers.math.limits import TooLarge, Unreadable
from verigrad.verifiers.math.parser import parse
from verigrad.verifiers.math.spelling import respell, unwrap

Node = tuple[Any, ...]
_SIMPLE = re.compile(r"[-+]?(?:\d{1,300}(?:\.\d{1,300})?|\.\d{1,300})")
_COMMON = re.compile(
    r"([-+]?)\\[dtc]?frac\{([-+]?\d{1,300})\}\{(\d{1,300})\}|([-+]?\d{1,300})/(\d{1,300})"
)
_WORDS = re.compile(r"[A-Za-z][A-Za-z'’ .,\-]*")
_MATHS = re.compile(r"[\\^_=<>+*/(){}\[\]|]|\d")
_JOINED = re.compile(r"(?:,|\bor\b|\band\b)", re.IGNORECASE)
_LETTER = re.compile(r"\(?\s*([A-J])\s*\)?\s*(?:[.:)]\s*(?P<rest>.*))?", re.DOTALL)


class Read(NamedTuple):
    """One answer as read: its tree, or why it has none, and its plain words."""

    node: Node | None
    fault: str
    words: str


def simple(text: str) -> Fraction | None:
    """Return the value of a plain integer, decimal or common fraction, None for anything else."""
    if _SIMPLE.fullmatch(text):
        return Fraction(text) if text.isascii() else None
    match = _COMMON.fullmatch(text)
    if match is None or not text.isascii():
        return None
    below = int(match[3] or match[5])
    if below == 0:
        return None
    value = Fraction(int(match[2] or match[4]), below)
    return -value if match[1] == "-" else value


@lru_cache(maxsize=4_096)
def read(text: str) -> Read:
    """Return the answer as a tree where it is mathematics and as words where it is words."""
    try:
        spelled = rewrite(respell(text))
    except Unreadable as fault:
        return Read(None, str(fault), "")
    words = unwrap(spelled).strip().rstrip(".")
    if _is_prose(words):
        return Read(("text", words), "", words)
    try:
        return Read(parse(spelled), "", words)
    except (Unreadable, TooLarge) as fault:
        return Read(None, str(fault), words)
    except RecursionError:
        return Read(None, "the answer is nested too deeply", "")


def _is_prose(words: str) -> bool:
    """Words, not letters multiplied: one of them is long, or there are several."""
    if not _WORDS.fullmatch(words) or _JOINED.search(words):
        return False
    parts = words.split()
    known = {"sin", "cos", "tan", "cot", "sec", "csc", "sqrt", "infinity", "inf", "alpha", "theta"}
    if any(p.lower() in known for p in parts):
        return False
    return (
        any(len(p) >= 4 for p in parts)
        or words.lower() in ("yes", "no", "odd", "one", "two")
        or (
            len(parts) == 1
            and len(words) == 3
            and words.isalpha()
            and any(c in "aeiou" for c in words.lower())
        )
    )


def choice_letter(text: str) -> str | None:
    """Return the letter of a multiple choice answer: ``(C)``, ``C``, ``C. 15``, ``C: east``."""
    words = unwrap(respell(text)).strip()
    match = _LETTER.fullmatch(words)
    if match is None:
        return None
    rest = match["rest"] or ""
    if re.search(r"(?:^|[\s,(])[A-J](?:[\s,).:]|$)", rest) or rest.startswith(","):
        return None
    return match[1]


def plain(text: str) -> str:
    """Return an unreadable answer without spaces, for the one comparison left: letter by letter."""
    return re.sub(r"[\s{}]+|\\(?:left|right|,|;|!)", "", respell(text)).rstrip(".")
