"""Sampler and trainer disagree: weights and masks. Shapes: B completions, T completion tokens.

The engine that sampled computes probabilities a little differently from the trainer (other kernels,
other precision, older weights). The gap enters the policy gradient as a missing weight old/sampler.
"""

from __future__ import annotations

import torch
from torch import Tensor

from verigrad.algorithms.ratios import log_ratio, product_ratio, sequence_mean_log
from verigrad.errors import UsageError
from verigrad.objective import Objective


def correction_weights(
    objective: Objective,
    *,
    old_logprobs_BT: Tensor,
    sampler_logprobs_BT: Tensor | None,
    mask_BT: Tensor,
) -> Tensor | None:
    """Detached weight of each token for old/sampler: (B, T), or None where nothing corrects.

    truncate_token: min(w, C), TIS. mask_token: w inside [low, high], else 0, IcePop 2510.18855.
    truncate_sequence, mask_sequence: the same with the product over the completion (seq-TIS,
    seq-MIS). mask_geometric: token weights of 1, but 0 for a completion whose geometric mean leaves
    the bounds.
    """
    if objective.correction == "none":
        return None
    if sampler_logprobs_BT is None:
        raise UsageError(
            f"objective.correction = {objective.correction!r} needs the sampler's "
            "log-probabilities; take an engine that reports them, or set objective.correction = "
            "'none'."
        )
    gap_BT = log_ratio(old_logprobs_BT, sampler_logprobs_BT, mask_BT).detach()
    low, high = objective.correction_low, objective.correction_high
    if objective.correction == "mask_geometric":
        mean_BT = sequence_mean_log(gap_BT, mask_BT).exp().expand_as(gap_BT)
        return ((mean_BT >= low) & (mean_BT <= high)).to(gap_BT.dtype)
    if objective.correction in ("truncate_sequence", "mask_sequence"):
        gap_BT = product_ratio(gap_BT, mask_BT)
    weight_BT = gap_BT.exp()
    if objective.correction in ("truncate_token", "truncate_sequence"):
        return weight_BT.clamp(max=high)
    return torch.where((weight_BT >= low) & (weight_BT <= high), weight_BT, 0.0)


def negative_mask(
    objective: Objective, *, behaviour_log_ratio_BT: Tensor, advantages_BT: Tensor, mask_BT: Tensor
) -> Tensor | None:
    """0 for completions with negative advantage that drifted too far, else 1: (B, T), or None if
    off.

    ``behaviour_log_ratio_BT`` is log(pi/sampler) per token. A completion is dropped when the mean
    of log(sampler/pi) over its tokens exceeds negative_mask. DeepSeek-V3.2 2512.02556 eq. 9.
    """
    if objective.negative_mask is None:
        return None
    gap_B1 = -sequence_mean_log(behaviour_log_ratio_BT.detach(), mask_BT)
    dropped_BT = (advantages_BT < 0) & (gap_B1 > objective.negative_mask)
    return (~dropped_BT).to(behaviour_log_ratio_BT.dtype)


def effective_sample_frac(weight_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Effective sample size of the weights over their number, in (0, 1]: scalar. Below 0.3 is
    unwell."""
    weight = weight_BT[mask_BT.bool()]
    return weight.sum().square() / (weight.square().sum() * max(weight.numel(), 1)).clamp(min=1e-30)
