"""Everything one run holds while it lasts: the recipe's parts, made once and handed around."""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch

from verigrad.config import Recipe
from verigrad.objective import Objective
from verigrad.problems import ProblemSet, draw
from verigrad.runlog import RunWriter
from verigrad.training.checkpoint import TrainerState
from verigrad.training.policy import Policy
from verigrad.types import Engine, Prompt, Sampling, Verifier


class Interrupt:
    """Turns the first Ctrl-C into a question asked between steps; the second one stops at once."""

    def __init__(self) -> None:
        self.asked = False
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._hear)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt(
                "stopped at once; nothing newer than the last checkpoint is kept"
            )
        self.asked = True


@dataclass
class Session:
    """One run's parts. ``state`` is the only thing here that changes from step to step."""

    recipe: Recipe
    objective: Objective
    policy: Policy
    optimizer: torch.optim.Optimizer
    engine: Engine
    verifier: Verifier
    strict: Verifier
    lenient: Verifier
    problems: ProblemSet
    prompts: Sequence[Prompt]
    heldout: Sequence[Prompt]
    log: RunWriter
    interrupt: Interrupt
    state: TrainerState
    seen_findings: set[str] = field(default_factory=set)
    memory: dict[str, Any] = field(default_factory=dict)
    """What tripwires remember from one step to the next."""

    @property
    def sampling(self) -> Sampling:
        """How rollouts are sampled."""
        r = self.recipe.rollout
        return Sampling(
            max_new_tokens=r.max_new_tokens,
            temperature=r.temperature,
            top_p=r.top_p,
            top_k=r.top_k,
            min_p=r.min_p,
            stop=r.stop,
            thinking_budget=r.thinking_budget,
        )

    def draw(self, first: int, count: int) -> list[Prompt]:
        """The prompts at positions ``first .. first + count - 1`` of the endless order."""
        training = self.recipe.training
        return [
            self.prompts[i]
            for position in range(first, first + count)
            for i in draw(
                len(self.prompts), step=position + 1, prompts_per_step=1, seed=training.seed,
                shuffle=self.recipe.problems.shuffle,
            )
        ]  # fmt: skip

    def find(
        self, name: str, severity: str, *, evidence: str, cause: str, remedy: str, step: int
    ) -> None:
        """Report a finding the first time it is seen."""
        if name not in self.seen_findings:
            self.seen_findings.add(name)
            self.log.finding(
                name, severity, evidence=evidence, cause=cause, remedy=remedy, step=step
            )
