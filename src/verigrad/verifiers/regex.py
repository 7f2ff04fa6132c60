"""A pattern of the recipe's own, matched in a worker that is killed when the pattern backtracks
for ever."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field, PrivateAttr, field_validator

from verigrad.types import Completion, Problem, Verdict
from verigrad.verifiers.answers import after_thinking
from verigrad.verifiers.base import TextVerifier
from verigrad.verifiers.foreign.verifier import ForeignVerifier
from verigrad.verifiers.isolated import isolated


class RegexVerifier(TextVerifier):
    """The text matches a pattern; with ``group`` the captured text must equal the gold answer."""

    kind: ClassVar[str] = "regex"

    pattern: str = Field(min_length=1)
    """A Python pattern; {answer} in it stands for the gold answer, escaped."""
    group: int | str | None = None
    """Number or name of the group that must equal the gold; of several matches the last one
    counts."""
    full: bool = False
    """The pattern must match the whole text, not only occur in it."""
    ignore_case: bool = False
    """Match without regard to case."""
    dot_all: bool = True
    """The dot also matches line breaks."""
    part: Literal["all", "answer"] = "all"
    """all: the whole completion; answer: what follows the thinking."""
    deadline_s: float = Field(default=5.0, gt=0)
    """Seconds one match may take; later is BROKEN, since the pattern is at fault."""

    _worker: ForeignVerifier | None = PrivateAttr(default=None)

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, value: str) -> str:
        try:
            re.compile(value.replace("{answer}", "x"))
        except re.error as error:
            raise ValueError(f"not a pattern: {error}") from None
        return value

    def verify(self, problem: Problem, completions: Sequence[Completion]) -> list[Verdict]:
        """Return one verdict for each completion, in order."""
        fault = self.check_gold(problem)
        if fault is not None:
            return [Verdict.broken(fault) for _ in completions]
        if self._worker is None:
            arguments = self.model_dump(exclude={"deadline_s"})
            self._worker = isolated(
                self.kind, "regex:match_pattern", arguments=arguments, deadline_s=self.deadline_s
            )
        return self._worker.verify(problem, completions)

    def judge(self, problem: Problem, completion: Completion) -> Verdict:
        return self.verify(problem, [completion])[0]

    def check_gold(self, problem: Problem) -> str | None:
        needs = self.group is not None or "{answer}" in self.pattern
        return "the answer is empty" if needs and not (problem.answer or "").strip() else None


def match_pattern(
    completion: str,
    answer: str | None = None,
    *,
    pattern: str,
    group: int | str | None,
    full: bool,
    ignore_case: bool,
    dot_all: bool,
    part: str,
) -> Verdict:
    """Return the verdict of one match; called in the worker."""
    text = after_thinking(completion) if part == "answer" else completion
    flags = (re.IGNORECASE if ignore_case else 0) | (re.DOTALL if dot_all else 0)
    gold = (answer or "").strip()
    compiled = re.compile(pattern.replace("{answer}", re.escape(gold)), flags)
    matches: list[Any] = list(compiled.finditer(text))
    if full:
        whole = compiled.fullmatch(text.strip())
        matches = [] if whole is None else [whole]
    if not matches:
        return (
            Verdict.wrong("the pattern does not match")
            if group is None
            else Verdict.unparsed("no match")
        )
    if group is None:
        return Verdict.correct(extracted=matches[-1].group()[:200])
    said = (matches[-1].group(group) or "").strip()
    return Verdict.correct(extracted=said) if said == gold else Verdict.wrong("differs", said)
