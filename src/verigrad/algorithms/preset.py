"""A preset is a value: an objective, its paper, and what is known for and against it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from verigrad.objective import Objective


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """One published combination of axes.

    ``like`` names the neighbour it is told apart from. ``numbers`` are the paper's settings that
    are not axes (learning rate, prompts x group size, ...), as text. ``unsure`` lists axes whose
    value the paper does not state, or that were taken from a second-hand source.
    """

    objective: Objective
    title: str
    source: str
    equation: str
    patches: str
    like: str
    evidence_for: str
    evidence_against: str = "none known here"
    numbers: Mapping[str, str] = field(default_factory=dict[str, str])
    unsure: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The word a recipe writes."""
        return self.objective.name


PAPER: dict[str, Any] = {
    "scale": "group_std",
    "reduction": "sequence_mean",
    "clip_high": 0.2,
    "dual_clip": None,
    "group_filter": "none",
}
"""Where DeepSeekMath's GRPO departs from our defaults; most papers start from it."""


def grpo_like(name: str, **axes: Any) -> Objective:
    """DeepSeekMath's GRPO without its KL, with these axes changed."""
    values: dict[str, Any] = {**PAPER, **axes, "name": name}
    return Objective(**values)
