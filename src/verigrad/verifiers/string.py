"""Text answers: equality after a stated normalisation, containment, or token F1."""

# Rows and replies are other people's data: their types are checked at run time.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from verigrad.types import Completion, Problem, Verdict
from verigrad.verifiers.answers import Place, find_answer, plain_text
from verigrad.verifiers.base import TextVerifier, column, graded

_PUNCTUATION = {ord(c): " " for c in string.punctuation}


class StringVerifier(TextVerifier):
    """The answer text equals the gold text (or one of several) after normalisation; F1 gives
    partial credit."""

    kind: ClassVar[str] = "string"

    mode: Literal["strict", "lenient"] = "strict"
    """lenient: without a box or tag, the phrase "answer is ..." or the last line counts."""
    place: Place = "auto"
    """Where the answer stands: auto (box, else tag), box, tag, line (the last one) or whole."""
    match: Literal["equal", "contains", "f1"] = "equal"
    """equal; contains (the gold's words stand in the answer, easy to game: prefer equal); f1
    (shared words)."""
    ignore_case: bool = True
    """Compare case-folded."""
    ignore_punctuation: bool = False
    """Compare with punctuation turned into spaces."""
    ignore_articles: bool = False
    """Compare without a, an and the."""
    golds: str = "answer"
    """Column with the gold: a text, or a list of texts of which any one is right."""
    threshold: float = 1.0
    """With f1: the score from which the outcome counts as correct."""

    def judge(self, problem: Problem, completion: Completion) -> Verdict:
        answer, why = find_answer(completion.text, place=self.place, lenient=self.mode == "lenient")
        if answer is None:
            return Verdict.unparsed(why)
        said = self._normal(answer)
        golds = [self._normal(gold) for gold in _golds(column(problem, self.golds))]
        if self.match == "f1":
            score = max(word_f1(said, gold) for gold in golds)
            return graded(score, correct=score >= self.threshold, extracted=answer)
        if self.match == "contains":
            hit = any(re.search(rf"(?<!\w){re.escape(gold)}(?!\w)", said) for gold in golds)
        else:
            hit = said in golds
        return (
            Verdict.correct(extracted=answer)
            if hit
            else Verdict.wrong("differs from the gold", answer)
        )

    def check_gold(self, problem: Problem) -> str | None:
        golds = _golds(column(problem, self.golds))
        if not golds:
            return f"column {self.golds!r} has no gold text"
        if not all(self._normal(gold) for gold in golds):
            return f"a gold in column {self.golds!r} is empty after normalisation"
        return None

    def render_gold(self, problem: Problem) -> str | None:
        golds = _golds(column(problem, self.golds))
        return render_answer(golds[0], self.place) if golds else None

    def _normal(self, text: str) -> str:
        text = unicodedata.normalize("NFKC", plain_text(text))
        if self.ignore_case:
            text = text.casefold()
        if self.ignore_punctuation:
            text = text.translate(_PUNCTUATION)
        words = text.split()
        if self.ignore_articles:
            words = [w for w in words if w.casefold() not in ("a", "an", "the")]
        return " ".join(words)


def _golds(value: Any) -> list[str]:
    if value is None:
        return []
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [str(v) for v in value]
    return [str(value)]


def word_f1(answer: str, gold: str) -> float:
    """Harmonic mean of the precision and recall of words, with multiplicity (SQuAD's F1)."""
    said, wanted = Counter(answer.split()), Counter(gold.split())
    shared = (said & wanted).total()
    if shared == 0:
        return 0.0
    return 2 * shared / (said.total() + wanted.total())


def render_answer(answer: str, place: Place) -> str:
    """Return a completion that states the answer in the given place."""
    if place == "tag":
        return f"<answer>{answer}</answer>"
    if place in ("line", "whole"):
        return answer
    return f"The answer is \\boxed{{{answer}}}."
