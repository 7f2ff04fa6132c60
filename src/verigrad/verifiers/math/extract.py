r"""Which answer does a completion assert? One, outside the thinking, not negated, not one of many.

In order: the last ``\boxed``, ``<answer>`` tags, ``####``, "the answer is ..."; in lenient mode
also the last number.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from verigrad.verifiers.answers import after_thinking

Mode = Literal["strict", "lenient"]
_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{")
_TAG = re.compile(r"<answer>((?:(?!<answer>).)*?)</answer>", re.DOTALL)
_HASHES = re.compile(r"####\s*([^\n]+)")
_PHRASE = re.compile(
    r"(?:\bfinal\s+answer|\banswer|\bresult|\bsolution)\s*(?:\*\*)?\s*"
    r"(?:is(?:\s+therefore|\s+thus|\s+simply)?\s*:?|:|=|must\s+be|should\s+be|would\s+be)\s*(?:\*\*)?\s*",
    re.IGNORECASE,
)
_HEADING = re.compile(r"^[#*\s]*(?:final\s+)?answer[*:\s]*\n+", re.IGNORECASE | re.MULTILINE)
_CORRECTION = re.compile(
    r"\b(?:wait|actually|wrong|incorrect|mistaken?|correct(?:ion|ing|ed)|instead|oops|sorry|rather|"
    r"scratch\s+that|let\s+me\s+(?:re|fix|correct|double)|not\s+right|isn't\s+right|on\s+second|"
    r"hmm|revis(?:e|ed|ing)|re-?check(?:ing)?|recomput\w*|i\s+made\s+an?\s+error)\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"(?:\bnot|n't|\bnever|\brule\s+out|\bruled\s+out|\bexclude|\bcannot\s+be|\brather\s+than|"
    r"\binstead\s+of|\bother\s+than|\bunlike)"
    r"(?:\s+(?:equal(?:\s+to)?|be|the|answer|is|definitely|simply|just|in|fact|likely|a|an|as|to|"
    r"correct|value|number|necessarily|exactly|certainly))*\s*[:$\s\\(\[*]*$",
    re.IGNORECASE,
)
_REFUTED = re.compile(
    r"^[\s$.,)\]\\*]*(?:is|was|would\s+be|seems|looks|cannot\s+be|can't\s+be|isn't|is\s+not)\s+"
    r"(?:(?:clearly|definitely|just|also|not|a|an|the|obviously)\s+)*"
    r"(?:wrong|incorrect|false|impossible|invalid|not|right\s+out|correct|mistake|answer|it)\b",
    re.IGNORECASE,
)
_HEDGE = re.compile(
    r"\b(?:one\s+of|either|possible\s+answers?|candidates?|guess(?:es)?|could\s+be\s+any|"
    r"cannot\s+tell|not\s+sure\s+which|any\s+of)\b",
    re.IGNORECASE,
)
_RIVAL_BEFORE = re.compile(
    r"(?:\beither\b[^.\n]{0,80}\s|\d[\s$\\)\]]{0,6})or\s+[$\s\\(\[*]*$", re.IGNORECASE
)
_RIVAL_AFTER = re.compile(
    r"[\s$\\)\]*,]{0,8}\bor\s+(?:maybe\s+|perhaps\s+|possibly\s+|else\s+)?[$\\(]{0,3}"
    r"([-+]?(?:\d[\d,]*(?:\.\d+)?(?:/\d+)?|\\[A-Za-z]+(?:\{[^{}]{0,200}\}){1,2}))"
    r"(?![\w ]*(?:form|decimal))",
    re.IGNORECASE,
)
"""Another candidate joined to the box by ``or``."""
_RESTATED = re.compile(
    r"(?:\b(?:it|that|this)(?:['’]s|\s+(?:is|should\s+be|must\s+be))\s+[$\\(]{0,3}([-+]?\d[\d.,/]*)"
    r"|([-+]?\d[\d.,/]*)[$\\)]{0,3}\s+is\s+(?:right|correct|the\s+(?:right|correct)?\s*answer))",
    re.IGNORECASE,
)
_FINAL = re.compile(
    r"\bfinal\s+answer\b[\s*_:#]*(?:is|=|therefore|thus)?[\s*_:$\\(\[]*$", re.IGNORECASE
)
_LEAD = re.compile(
    r"\\text\s*\{\s*(?:(?:so|thus|hence|therefore),?\s+)?(?:the\s+)?(?:final\s+|correct\s+)?answer"
    r"(?:\s+is|\s*:)?\s*:?\s*(?:\}\s*:?|(?=\S[^{}]*\}$))",
    re.IGNORECASE,
)
_LAST_NUMBER = re.compile(
    r"(?<![\w.])[-−+]?\$?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:/\d+)?%?(?![\w])"
)


_DIGIT = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class Found:
    """The answers a completion asserts: one, or the several boxes of one joint answer, or none."""

    answers: tuple[str, ...]
    reason: str = ""
    """Why there is none."""
    asserted: bool = True
    """False when something is boxed or stated and does not count (hedged, negated)."""


def find(text: str, *, mode: Mode, same: Callable[[str, str], bool]) -> Found:
    """Return what the completion asserts. ``same`` says whether two boxes hold one answer."""
    rest = after_thinking(text)
    if not rest.strip():
        return Found((), "nothing follows the thinking" if text.strip() else "it is empty")
    spans = boxes(rest)
    if any(rest[start:end].strip() for start, end in spans):
        return _from_boxes(rest, [s for s in spans if rest[s[0] : s[1]].strip()], same)
    if spans:
        return Found((), "the box is empty")
    tags = [t.strip() for t in _TAG.findall(rest) if t.strip()]
    if tags:
        return _agree(tags, "<answer> tags", same)
    if hashes := _HASHES.findall(rest):
        return Found((hashes[-1].strip(),))
    return _from_phrases(rest, mode)


def boxes(text: str) -> list[tuple[int, int]]:
    """Return where the content of each balanced, outermost box starts and ends, in one pass."""
    starts = {m.end() - 1 for m in _BOX.finditer(text)}
    if not starts:
        return []
    closes: dict[int, int] = {}
    stack: list[int] = []
    for m in re.finditer(r"\\.|[{}]", text, re.DOTALL):
        if m[0] == "{":
            stack.append(m.start())
        elif m[0] == "}" and stack:
            closes[stack.pop()] = m.start()
        elif m[0][0] == "\\" and (m.end() - 1) in starts and m.end() == m.start() + 2:
            continue
    found: list[tuple[int, int]] = []
    for start in sorted(starts):
        end = closes.get(start, -1)
        if end >= 0 and (not found or start > found[-1][1]):
            found.append((start + 1, end))
    return found


def _from_boxes(rest: str, spans: list[tuple[int, int]], same: Callable[[str, str], bool]) -> Found:
    start, end = spans[-1]
    answer = _without_lead(rest[start:end].strip())
    before = rest[max(0, start - 120) : start]
    before = before[: before.rfind("\\")]
    tail = rest[end + 1 : end + 2_000]
    if _NEGATED.search(before[-80:]):
        return Found((), "the boxed answer is negated", asserted=False)
    rival = _RIVAL_AFTER.match(tail)
    if _RIVAL_BEFORE.search(before) or (rival and not same(rival[1].rstrip(","), answer)):
        return Found((), "the box is one of several candidates", asserted=False)
    refuted = _REFUTED.match(tail)
    if refuted and re.search(
        r"wrong|incorrect|false|not|impossible|invalid|n't|mistake", refuted[0]
    ):
        later = _correction_after(tail)
        return later or Found((), "the boxed answer is taken back", asserted=False)
    later = _correction_after(tail)
    if later and (_DIGIT.search(later.answers[0]) or not _DIGIT.search(answer)):
        return later
    spans = [s for s in spans[:-1] if not _is_denied(rest, s)] + spans[-1:]
    texts = list(dict.fromkeys(rest[s:e].strip() for s, e in spans))
    distinct: list[str] = []
    for text in texts[:20]:
        if not any(same(text, known) for known in distinct):
            distinct.append(text)
    if len(distinct) == 1 and len(texts) <= 20:
        return Found((answer,))
    between = rest[spans[-2][1] : start] if len(spans) > 1 else ""
    concluded = _CORRECTION.search(between) or _only_final(rest, spans, answer, same)
    if concluded and not _HEDGE.search(between):
        return Found((answer,))
    if _HEDGE.search(rest) or len(texts) > 20:
        return Found((), f"{len(spans)} boxes hold different answers", asserted=False)
    return Found(tuple(distinct), f"{len(distinct)} different answers are boxed")


def _is_denied(rest: str, span: tuple[int, int]) -> bool:
    """Whether the words before a box say what the answer is not."""
    before = rest[max(0, span[0] - 120) : span[0]]
    return _NEGATED.search(before[: before.rfind("\\")]) is not None


def _only_final(
    rest: str, spans: list[tuple[int, int]], answer: str, same: Callable[[str, str], bool]
) -> bool:
    """True where the last box is called the final answer, and no box of another answer is."""

    def called_final(start: int) -> bool:
        before = rest[max(0, start - 120) : start]
        return _FINAL.search(before[: before.rfind("\\")]) is not None

    if not called_final(spans[-1][0]):
        return False
    others = [s for s in spans[-20:-1] if called_final(s[0])]
    return all(same(rest[a:b].strip(), answer) for a, b in others)


def _correction_after(tail: str) -> Found | None:
    """The answer stated in words after the last box, when the text says it corrects itself."""
    correction = _CORRECTION.search(tail)
    if correction is None:
        return None
    phrase = _last_phrase(tail[correction.start() :])
    if phrase is None and (restated := list(_RESTATED.finditer(tail, correction.start()))):
        phrase = (restated[-1][1] or restated[-1][2]).rstrip(".,")
    return None if phrase is None else Found((phrase,))


def _without_lead(answer: str) -> str:
    r"""The answer without ``\text{The answer is }`` in front of it."""
    lead = _LEAD.match(answer)
    if lead is None:
        return answer
    rest = answer[lead.end() :].strip()
    return (rest[:-1] if lead[0].count("}") == 0 else rest).strip() or answer


def _last_phrase(text: str) -> str | None:
    matches = list(_PHRASE.finditer(text)) or list(_HEADING.finditer(text))
    if not matches:
        return None
    line = text[matches[-1].end() :].lstrip().split("\n", 1)[0]
    return _trim(line)


def _trim(line: str) -> str | None:
    """The answer at the head of a line of prose: the mathematics, without the sentence around."""
    line = line.strip().strip("*_`").strip()
    for opened, closed in (("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]")):
        if line.startswith(opened):
            inner, found, _ = line[len(opened) :].partition(closed)
            if found:
                return inner.strip() or None
    line = re.split(
        r"(?<=[^\d\s])\.\s|\.\s+[A-Z]|\.$|\s+(?:because|since|which|so|where)\s|,\s+I\s", line
    )[0]
    return line.strip().rstrip(".!*_`").strip() or None


def _from_phrases(rest: str, mode: Mode) -> Found:
    phrase = _last_phrase(rest)
    if phrase is not None:
        if re.match(r"(?:\w+\s+){0,2}not\b|n't\b|unknown|unclear", phrase, re.IGNORECASE):
            return Found((), "the answer is negated", asserted=False)
        return Found((phrase,))
    if mode == "lenient":
        numbers = list(_LAST_NUMBER.finditer(rest))
        if numbers:
            last = numbers[-1]
            if _NEGATED.search(rest[max(0, last.start() - 80) : last.start()]):
                return Found((), "the last number is negated", asserted=False)
            return Found((last[0],))
    return Found((), "no box, no answer phrase and no #### line")


def _agree(texts: list[str], what: str, same: Callable[[str, str], bool]) -> Found:
    last = texts[-1]
    if len(texts) > 20 or not all(same(text, last) for text in texts):
        return Found((), f"{len(texts)} {what} hold different answers", asserted=False)
    return Found((last,))
