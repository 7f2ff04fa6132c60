"""What a tripwire is, and what it may look at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from verigrad.training.session import Session
from verigrad.training.update import UpdateStats
from verigrad.types import Batch, Group

Severity = Literal["info", "warn", "fail"]
Seen = TypeVar("Seen")


@dataclass(frozen=True)
class Step:
    """One step as it lies there after the update, the load and the record."""

    run: Session
    step: int
    record: Mapping[str, Any]
    groups: Sequence[Group]
    batch: Batch
    stats: UpdateStats
    version: int
    """Version of the weights after the step; ``run.state.version`` is the one that sampled."""

    @property
    def single_update(self) -> bool:
        """True where the weights that were scored are the weights that sampled."""
        training = self.run.recipe.training
        return training.updates_per_rollout * training.passes_per_rollout == 1


@dataclass(frozen=True)
class Tripwire(Generic[Seen]):
    """A named way to be silently wrong. ``look`` returns the evidence, or None where all is
    well."""

    name: str
    severity: Severity
    look: Callable[[Seen], str | None]
    cause: str
    remedy: str


def report(run: Session, wire: Tripwire[Any], evidence: str | None, *, step: int) -> None:
    """Make a finding of what a tripwire saw."""
    if evidence is not None:
        run.find(
            wire.name, wire.severity, evidence=evidence, cause=wire.cause, remedy=wire.remedy,
            step=step,
        )  # fmt: skip
