"""Small things about texts that several files need: one normal form, one stable hash."""

from __future__ import annotations

import hashlib
import re
import unicodedata

from verigrad.types import Problem

_BEFORE_STOP = re.compile(r" ([.,;:?!])(?= |$)")


def normalise(text: str) -> str:
    """Return the text in the form in which two questions count as the same.

    Compatibility characters unified, case folded, white space made one blank, none before a stop.
    """
    text = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return _BEFORE_STOP.sub(r"\1", text)


def problem_key(problem: Problem) -> str:
    """The normalised question: all turns of a conversation, or the one user turn."""
    if len(problem.messages) == 1:
        return normalise(problem.messages[0].content)
    turns = (f"{m.role}: {normalise(m.content)}" for m in problem.messages if m.role != "system")
    return "\n".join(turns)


def stable_hash(text: str, *, digits: int = 16) -> str:
    """A hash that is the same on every machine, in every process: so many hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:digits]


def belongs_to_heldout(skeleton: str) -> bool:
    """True for the fixed quarter of generated problems that no seed ever trains on."""
    return int(stable_hash(skeleton, digits=8), 16) % 4 == 0
