"""How long a completion is: within bounds, the soft overlong penalty, and the penalty for
repetition."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from verigrad.types import Completion, Problem, Verdict
from verigrad.verifiers.answers import after_thinking
from verigrad.verifiers.base import TextVerifier, graded

Part = Literal["all", "thinking", "answer"]


def part_of(text: str, part: Part) -> str:
    """Return the whole completion, its thinking (all of it when nothing closes it), or what
    follows."""
    if part == "answer":
        return after_thinking(text)
    if part == "thinking":
        thinking, closed, _ = text.rpartition("</think>")
        return (thinking if closed else text).replace("<think>", "")
    return text


class LengthVerifier(TextVerifier):
    """The completion's length lies within bounds, in tokens, words, characters or lines."""

    kind: ClassVar[str] = "length"

    unit: Literal["tokens", "words", "characters", "lines"] = "tokens"
    """What is counted; tokens are those the engine reports, hence of the whole completion."""
    min: int = Field(default=0, ge=0)
    """Shortest length that counts as correct."""
    max: int | None = Field(default=None, ge=1)
    """Longest length that counts as correct."""
    part: Part = "all"
    """all, thinking (up to the last </think>) or answer (after it)."""

    @model_validator(mode="after")
    def _bounds(self) -> LengthVerifier:
        if self.min == 0 and self.max is None:
            raise ValueError(
                "give min, max or both: without a bound every completion would be correct"
            )
        if self.max is not None and self.max < self.min:
            raise ValueError(f"max = {self.max} is smaller than min = {self.min}")
        if self.unit == "tokens" and self.part != "all":
            raise ValueError("tokens are counted for the whole completion only: set part = 'all'")
        return self

    def judge(self, problem: Problem, completion: Completion) -> Verdict:
        length = self._length(completion)
        said = f"{length} {self.unit}"
        if length < self.min:
            return Verdict.wrong(f"{said}, fewer than {self.min}", said)
        if self.max is not None and length > self.max:
            return Verdict.wrong(f"{said}, more than {self.max}", said)
        return Verdict.correct(extracted=said)

    def _length(self, completion: Completion) -> int:
        if self.unit == "tokens":
            return len(completion.token_ids)
        text = part_of(completion.text, self.part)
        if self.unit == "words":
            return len(text.split())
        return len(text) if self.unit == "characters" else len(text.splitlines())


class OverlongVerifier(TextVerifier):
    """DAPO's soft overlong penalty: 0 up to max - cache tokens, falling to -1 at max (eq. 13)."""

    kind: ClassVar[str] = "overlong"

    max_tokens: int = Field(ge=1)
    """L_max: the longest completion the penalty expects; usually rollout.max_new_tokens."""
    cache_tokens: int = Field(ge=1)
    """L_cache: the penalty rises over the last so many tokens."""

    @model_validator(mode="after")
    def _fits(self) -> OverlongVerifier:
        if self.cache_tokens > self.max_tokens:
            raise ValueError(f"cache_tokens must not exceed max_tokens = {self.max_tokens}")
        return self

    def judge(self, problem: Problem, completion: Completion) -> Verdict:
        length = len(completion.token_ids)
        penalty = overlong_penalty(
            length, max_tokens=self.max_tokens, cache_tokens=self.cache_tokens
        )
        return graded(penalty, correct=penalty == 0, reason=f"{length} tokens")


def overlong_penalty(length: int, *, max_tokens: int, cache_tokens: int) -> float:
    """DAPO (arXiv 2503.14476) eq. 13, in [-1, 0].

    >>> [overlong_penalty(n, max_tokens=20, cache_tokens=4) for n in (16, 18, 20, 21)]
    [0.0, -0.5, -1.0, -1.0]
    """
    start = max_tokens - cache_tokens
    if length <= start:
        return 0.0
    return max((start - length) / cache_tokens, -1.0)


class RepetitionVerifier(TextVerifier):
    """Penalty for repeated n-grams: -penalty times the share of n-grams that were seen before."""

    kind: ClassVar[str] = "repetition"

    n: int = Field(default=3, ge=1)
    """Length of the n-grams."""
    penalty: float = Field(default=1.0, ge=0)
    """Size of the penalty of a completion that only repeats itself."""
    unit: Literal["words", "tokens"] = "words"
    """What an n-gram is made of."""
    allowed: float = Field(default=0.5, ge=0, le=1)
    """Repeated share up to which the outcome still counts as correct (the penalty is not
    affected)."""
    part: Part = "all"
    """all, thinking or answer; tokens are those of the whole completion."""

    @model_validator(mode="after")
    def _whole(self) -> RepetitionVerifier:
        if self.unit == "tokens" and self.part != "all":
            raise ValueError("tokens are counted for the whole completion only: set part = 'all'")
        return self

    def judge(self, problem: Problem, completion: Completion) -> Verdict:
        items: Sequence[Any] = completion.token_ids
        if self.unit == "words":
            items = re.findall(r"\w+", part_of(completion.text, self.part).casefold())
        share = repeated_share(items, self.n)
        reason = f"{share:.0%} of its {self.n}-grams repeat earlier ones"
        return graded(-self.penalty * share, correct=share <= self.allowed, reason=reason)


def repeated_share(items: Sequence[Any], n: int) -> float:
    """1 - distinct n-grams / n-grams; 0 where there are fewer than n items.

    >>> repeated_share("a b a b a".split(), 2)
    0.5
    """
    grams = [tuple(items[i : i + n]) for i in range(len(items) - n + 1)]
    return 1 - len(set(grams)) / len(grams) if grams else 0.0
