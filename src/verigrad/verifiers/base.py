"""What every verifier of ours has in common: options as typed fields, guarded judging, one way to
speak.

A verifier is a frozen record: its fields are its options, the sentence under each field is its
documentation (``verigrad verify --help`` and docs/verifiers.md show the same). It judges one
completion at a time; whatever it raises becomes a BROKEN verdict, which is counted and has no
reward.
"""

# Rows and replies are other people's data: their types are checked at run time.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from verigrad.config import Section
from verigrad.types import EMPTY, Completion, Outcome, Problem, Verdict

ABSTAINS = "abstains: returned None, which is no reward for this completion"
"""Reason of a BROKEN verdict from a reward function that says the row is not its business (TRL's
None)."""


class TextVerifier(Section, ABC):
    """Base of the verifiers of this room: subclasses state options as fields and implement
    ``judge``."""

    kind: ClassVar[str]
    """The name a recipe uses."""

    @property
    def name(self) -> str:
        """The name a recipe uses, and the one logs show."""
        return self.kind

    @abstractmethod
    def judge(self, problem: Problem, completion: Completion) -> Verdict:
        """Return the verdict on one completion; an exception here becomes BROKEN."""

    def check_gold(self, problem: Problem) -> str | None:
        """Return None when the problem can be verified, else the reason why not."""
        return None

    def render_gold(self, problem: Problem) -> str | None:
        """Return a completion that states the gold answer in the expected format, None without a
        gold."""
        return None

    def verify(self, problem: Problem, completions: Sequence[Completion]) -> list[Verdict]:
        """Return one verdict for each completion, in order; never raises for what a completion
        contains."""
        try:
            fault = self.check_gold(problem)
        except Exception as error:
            fault = explain(error)
        if fault is not None:
            return [Verdict.broken(f"problem {problem.id!r}: {fault}") for _ in completions]
        return [self._guarded(problem, completion) for completion in completions]

    def _guarded(self, problem: Problem, completion: Completion) -> Verdict:
        try:
            return self.judge(problem, completion)
        except Exception as error:  # the verifier's edge: our own failure is BROKEN, never wrong
            return Verdict.broken(f"{self.name}: {explain(error)}")


def explain(error: BaseException) -> str:
    """Return the exception as one line: its type and the start of its message."""
    text = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def graded(
    reward: float,
    *,
    correct: bool,
    reason: str = "",
    extracted: str | None = None,
    parts: Mapping[str, float] = EMPTY,
) -> Verdict:
    """Return a verdict with a reward of its own (partial credit or a penalty); a non-finite one
    is BROKEN."""
    if not math.isfinite(reward):
        return Verdict.broken(f"the reward is {reward}, not a finite number")
    outcome = Outcome.CORRECT if correct else Outcome.WRONG
    return Verdict(outcome, float(reward), reason, extracted, parts)


def column(problem: Problem, name: str) -> Any:
    """Return a column of the problem's row: ``answer``, ``question`` or a key of info, dotted for
    nested ones.

    A missing column is None.
    """
    if name == "answer":
        return problem.answer if problem.answer is not None else problem.info.get("answer")
    if name == "question":
        return problem.info.get("question", problem.question)
    value: Any = problem.info
    for key in name.split("."):
        if not isinstance(value, Mapping) or key not in value:
            return None
        value = value[key]
    return value
