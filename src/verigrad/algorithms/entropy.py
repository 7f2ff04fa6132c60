"""Entropy: the controlled bonus and the tokens of highest entropy. Shapes: B completions, T
tokens."""

from __future__ import annotations

import torch
from torch import Tensor

from verigrad.objective import Objective


def next_coef(objective: Objective, coef: float, measured: float) -> float:
    """The entropy weight for the next update, from the mean entropy measured in this one
    (nats/token).

    adaptive (Skywork-OR1 2505.22312): up by entropy_step at or below the target, down above it,
    within [0, entropy_coef_max]. Otherwise the weight stays.
    """
    if objective.entropy != "adaptive":
        return coef
    step = (
        objective.entropy_step if measured <= objective.entropy_target else -objective.entropy_step
    )
    return min(max(coef + step, 0.0), objective.entropy_coef_max)


def active_coef(objective: Objective, coef: float, measured: float) -> float:
    """The weight that acts now: an adaptive one only while entropy is at or below its target."""
    if objective.entropy == "none":
        return 0.0
    if objective.entropy == "adaptive" and measured > objective.entropy_target:
        return 0.0
    return coef


def top_entropy(entropy_BT: Tensor, mask_BT: Tensor, frac: float) -> Tensor:
    """True for the ``frac`` of trained tokens with the highest entropy in the batch: (B, T) bool.

    The threshold is the (1 - frac) quantile over all trained tokens of the batch (80/20 rule,
    2506.01939); ties at it are kept.
    """
    mask_BT = mask_BT.bool()
    if frac >= 1 or not bool(mask_BT.any()):
        return mask_BT
    values = entropy_BT[mask_BT].to(torch.float64).sort().values
    position = (1 - frac) * (values.numel() - 1)
    below, part = int(position), position - int(position)
    above = min(below + 1, values.numel() - 1)
    threshold = values[below] + part * (values[above] - values[below])
    return mask_BT & (entropy_BT.to(torch.float64) >= threshold)
