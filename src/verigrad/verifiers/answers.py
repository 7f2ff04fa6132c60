r"""Where the answer stands in a completion: after the thinking, in a box, in a tag, on the last
line.

One answer is asserted. Several different boxes or tags are not an answer (spraying candidates earns
nothing), an empty one is none, and whatever stands inside the thinking does not count.
"""

from __future__ import annotations

import re
from typing import Literal

Place = Literal["auto", "box", "tag", "line", "whole"]
"""auto: box, else tag, else (lenient) the phrase "answer is ..." or the last line. Others name
one place."""

_TAG = re.compile(r"<answer>((?:(?!<answer>).)*?)</answer>", re.DOTALL)
_PHRASE = re.compile(
    r"(?:final answer|correct answer|correct option|correct choice|the "
    r"answer|answer)\s*(?:is|:|=)\s*",
    re.IGNORECASE,
)
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{")


def after_thinking(text: str) -> str:
    """Return what follows the last ``</think>``; nothing when a ``<think>`` was never closed."""
    _, closed, rest = text.rpartition("</think>")
    rest = rest if closed else text
    return "" if "<think>" in rest else rest


def boxes(text: str) -> list[str]:
    r"""Return the contents of every balanced ``\boxed{...}`` or ``\fbox{...}``, outermost ones.

    In order, in one pass: a text of nothing but unclosed boxes costs no more than another.
    """
    starts = [match.end() for match in _BOX.finditer(text)]
    if not starts:
        return []
    closing = _closing_braces(text)
    found: list[str] = []
    position = 0
    for start in starts:
        end = closing.get(start - 1, -1)
        if start >= position and end >= 0:
            found.append(text[start:end])
            position = end + 1
    return found


def _closing_braces(text: str) -> dict[int, int]:
    """Where each brace that is closed is closed; escaped braces do not count."""
    closing: dict[int, int] = {}
    still_open: list[int] = []
    for match in _BRACE.finditer(text):
        if match.group() == "{":
            still_open.append(match.start())
        elif match.group() == "}" and still_open:
            closing[still_open.pop()] = match.start()
    return closing


def find_answer(
    text: str, *, place: Place = "auto", lenient: bool = False
) -> tuple[str | None, str]:
    """Return the one asserted answer and ``""``, or None and the reason why there is none.

    ``text`` is a whole completion; its thinking is left out first.
    """
    rest = after_thinking(text)
    if not rest.strip():
        return None, "nothing follows the thinking"
    if place == "whole":
        return rest.strip(), ""
    if place == "line":
        return rest.strip().splitlines()[-1].strip(), ""
    if place in ("auto", "box") and (found := boxes(rest)):
        return _only(found, "boxes")
    if place in ("auto", "tag") and (found := _TAG.findall(rest)):
        return _only(found, "<answer> tags")
    if lenient:
        return _lenient(rest), ""
    wanted = {
        "auto": "\\boxed{...} or <answer>...</answer>",
        "box": "\\boxed{...}",
        "tag": "<answer>...</answer>",
    }
    return None, f"no {wanted[place]} after the thinking"


def _only(found: list[str], what: str) -> tuple[str | None, str]:
    """The last one, when all say the same; several different ones assert nothing."""
    distinct = {" ".join(item.split()) for item in found}
    if len(distinct) > 1:
        return None, f"{len(distinct)} different {what}"
    answer = found[-1].strip()
    return (answer, "") if answer else (None, f"the {what} are empty")


def _lenient(text: str) -> str:
    """What follows the last answer phrase, up to the end of its line; without one, the last
    line."""
    matches = list(_PHRASE.finditer(text))
    rest = text[matches[-1].end() :] if matches else text.strip().splitlines()[-1]
    line = rest.strip().splitlines()[0] if rest.strip() else text.strip().splitlines()[-1]
    return line.strip().strip("*_`").rstrip(".").strip().strip("*_`$").strip()


def plain_text(answer: str) -> str:
    r"""Return the answer without its LaTeX clothes: ``\text{Paris}`` and ``$Paris$`` are Paris."""
    text = answer.strip().strip("$").strip()
    while match := re.fullmatch(
        r"\\(?:text|textbf|mathrm|mathbf|textit|mathit|operatorname)\s*\{(.*)\}", text, re.DOTALL
    ):
        text = match[1].strip()
    return text
