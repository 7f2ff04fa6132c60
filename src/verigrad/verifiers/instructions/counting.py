"""Counting for instructions: words, sentences, and what "at least" means."""

from __future__ import annotations

import re

RELATIONS = ("at least", "less than", "at most", "more than", "exactly", "around")

_ABBREVIATION = re.compile(
    r"\b(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc|e\.g|i\.e|cf|Fig|No|Inc|Ltd|Co|U\.S|a\.m|p\.m)\.$",
    re.IGNORECASE,
)
_INITIAL = re.compile(r"(?:^|\s)[A-Z]\.$")
_END = re.compile(r"[.!?]+[\"'”’)\]]*(?=\s|$)|[。！？]")


def words(text: str) -> list[str]:
    """Return the words: runs of letters and digits, with inner apostrophes and hyphens."""
    return re.findall(r"\w+(?:['’-]\w+)*", text)


def sentences(text: str) -> list[str]:
    """Return the sentences; abbreviations, initials and decimals end none. Blank lines end one."""
    found: list[str] = []
    for block in re.split(r"\n\s*\n", text):
        start = 0
        for match in _END.finditer(block):
            piece = block[start : match.end()].strip()
            if _ABBREVIATION.search(piece) or _INITIAL.search(piece):
                continue
            found.append(piece)
            start = match.end()
        found.append(block[start:].strip())
    return [piece for piece in found if re.search(r"\w", piece)]


def compare(count: int, wanted: int, relation: str, what: str) -> str | None:
    """Return None when the count stands in the relation, else a sentence. "around" allows a
    tenth."""
    right = {
        "at least": count >= wanted,
        "less than": count < wanted,
        "at most": count <= wanted,
        "more than": count > wanted,
        "exactly": count == wanted,
        "around": abs(count - wanted) <= max(1, round(wanted / 10)),
    }
    if relation not in right:
        raise ValueError(f"relation {relation!r} is not one of {', '.join(RELATIONS)}")
    return None if right[relation] else f"{count} {what}, not {relation} {wanted}"
