"""Contamination: do held-out questions share long runs of words with training questions?

The measure is the one of GPT-3 (arXiv 2005.14165, appendix C): a question is contaminated when it
shares an n-gram of words, n = 13, with the other side. A question shorter than n words counts when
the other side holds it whole.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from verigrad.errors import UsageError
from verigrad.problems.text import normalise
from verigrad.types import Problem

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Overlap:
    """Which problems of the two sides share an n-gram, by id, and how many were looked at."""

    ngram: int
    num_train: int
    num_heldout: int
    train_ids: tuple[str, ...]
    heldout_ids: tuple[str, ...]

    def lines(self) -> tuple[str, ...]:
        """One line for a person, none when nothing is shared."""
        if not self.heldout_ids:
            return ()
        return (
            f"overlap: {len(self.heldout_ids)} of {self.num_heldout} held-out questions share "
            f"{self.ngram} words in a row with a training question "
            f"({len(self.train_ids)} of {self.num_train}), for example {self.heldout_ids[0]!r}",
        )


def find_overlap(
    train: Sequence[Problem], heldout: Sequence[Problem], *, ngram: int = 13
) -> Overlap:
    """Return the problems of both sides that share ``ngram`` words in a row, in their order.

    Words are compared without case and punctuation. Source: arXiv 2005.14165, appendix C.
    """
    if ngram < 1:
        raise UsageError(f"ngram = {ngram}; an overlap has at least one word.")
    held = [_grams(p, ngram) for p in heldout]
    wanted = set().union(*held) if held else set()
    shared: set[tuple[str, ...]] = set()
    train_ids: list[str] = []
    short = {len(g) for g in wanted if len(g) < ngram}
    for problem in train:
        words = _words(problem)
        found = {g for n in (*short, ngram) for g in _runs(words, n)} & wanted
        found |= {tuple(words)} & wanted
        if found:
            shared |= found
            train_ids.append(problem.id)
    heldout_ids = [p.id for p, grams in zip(heldout, held, strict=True) if grams & shared]
    return Overlap(ngram, len(train), len(heldout), tuple(train_ids), tuple(heldout_ids))


def _words(problem: Problem) -> list[str]:
    return _WORD.findall(normalise(problem.question))


def _grams(problem: Problem, ngram: int) -> set[tuple[str, ...]]:
    words = _words(problem)
    if not words:
        return set()
    return set(_runs(words, min(ngram, len(words))))


def _runs(words: Sequence[str], n: int) -> list[tuple[str, ...]]:
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
