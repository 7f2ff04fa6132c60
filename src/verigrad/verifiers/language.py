"""Language consistency: the share of words in the target language (DeepSeek-R1, arXiv
2501.12948, 2.3.2)."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, field_validator

from verigrad.errors import nearest
from verigrad.types import Completion, Problem, Verdict
from verigrad.verifiers.base import TextVerifier, column, graded
from verigrad.verifiers.languages import SCRIPTS, share_of
from verigrad.verifiers.length import Part, part_of


class LanguageVerifier(TextVerifier):
    """The reward is the share of the thinking's words that are in the target language (R1)."""

    kind: ClassVar[str] = "language"

    target: str = "en"
    """Language as ISO 639-1 code, or "column:NAME" where each problem names its own."""
    part: Part = "thinking"
    """thinking (R1's choice; the whole completion when it has none), answer or all."""
    threshold: float = Field(default=0.95, gt=0, le=1)
    """Share from which the outcome counts as correct."""

    @field_validator("target")
    @classmethod
    def _known(cls, value: str) -> str:
        if not value.startswith("column:") and value not in SCRIPTS:
            raise ValueError(f"not a known language.{nearest(value, SCRIPTS)}")
        return value

    def judge(self, problem: Problem, completion: Completion) -> Verdict:
        language = self._target(problem)
        share, count = share_of(part_of(completion.text, self.part), language)
        if count == 0:
            return Verdict.unparsed(f"no words in the {self.part} part")
        reason = f"{share:.0%} of {count} words are {language}"
        return graded(share, correct=share >= self.threshold, reason=reason)

    def check_gold(self, problem: Problem) -> str | None:
        language = self._target(problem)
        return (
            None if language in SCRIPTS else f"{self.target} holds {language!r}, no known language"
        )

    def _target(self, problem: Problem) -> str:
        if self.target.startswith("column:"):
            return str(column(problem, self.target.removeprefix("column:")))
        return self.target
