"""An objective is data: one value on each named axis, with its numbers. This file loads without torch.

``algorithms/`` computes it, ``algorithms/presets.py`` names the published combinations, ``backends/`` translates it.
The trainer takes an :class:`Objective` and never reads its name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal


def axis(default: Any, doc: str) -> Any:
    """A dataclass field whose documentation travels with it (into the schema, ``objective show`` and the docs)."""
    return field(default=default, metadata={"doc": doc})


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """One value on each axis of the GRPO family. Defaults are the defensible small-project choice."""

    name: str = axis("custom", "Name shown in headers and logs; nothing reads it.")
    baseline: Literal["group_mean", "leave_one_out", "batch_mean", "none"] = axis(
        "group_mean", "What is subtracted from a reward before it becomes an advantage."
    )
    scale: Literal["group_std", "batch_std", "group_mean", "none"] = axis(
        "none", "What an advantage is divided by."
    )
    ratio: Literal["token", "sequence"] = axis(
        "token", "Importance ratio per token, or its geometric mean over the completion (GSPO)."
    )
    trust_region: Literal["clip", "none"] = axis("clip", "How far a ratio may move the policy.")
    clip_low: float = axis(0.2, "Lower clip: ratios below 1 - clip_low stop pushing down.")
    clip_high: float = axis(0.28, "Upper clip: ratios above 1 + clip_high stop pushing up.")
    dual_clip: float | None = axis(3.0, "Cap on the ratio where the advantage is negative; None is no cap.")
    reduction: Literal["sequence_mean", "token_mean", "constant", "prompt_mean"] = axis(
        "token_mean", "How token losses become one number, over the whole optimiser batch."
    )
    kl: Literal["none", "k2", "k3"] = axis("none", "Estimator of the distance to the reference policy.")
    kl_coef: float = axis(0.0, "Weight of that distance in the loss.")
