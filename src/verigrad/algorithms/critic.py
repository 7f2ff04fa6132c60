"""The critic's side of PPO and VAPO. Shapes: B completions, T completion tokens."""

from __future__ import annotations

import torch
from torch import Tensor

from verigrad.algorithms.losses import LossOutput
from verigrad.objective import Objective


def value_loss(
    objective: Objective,
    *,
    values_BT: Tensor,
    old_values_BT: Tensor,
    targets_BT: Tensor,
    weights_BT: Tensor,
) -> LossOutput:
    """value_coef * sum of 0.5 max((V - R)^2, (clip(V, V_old +- value_clip) - R)^2) * weight.

    Additive over slices of rows like the policy loss. stats: tokens, value_clip (tokens where the
    clipped side is larger), squared_error, loss_value.
    """
    mask_BT = weights_BT > 0
    target_BT, old_BT = targets_BT.detach(), old_values_BT.detach()
    low, high = old_BT - objective.value_clip, old_BT + objective.value_clip
    clipped_BT = torch.minimum(torch.maximum(values_BT, low), high)
    plain_BT, bound_BT = (values_BT - target_BT).square(), (clipped_BT - target_BT).square()
    worst_BT = 0.5 * torch.maximum(plain_BT, bound_BT)
    loss = objective.value_coef * torch.where(mask_BT, worst_BT * weights_BT, 0.0).sum()
    stats = {
        "tokens": mask_BT.sum(),
        "value_clip": ((bound_BT > plain_BT) & mask_BT).sum(),
        "squared_error": torch.where(mask_BT, plain_BT.detach(), 0.0).sum(),
        "loss_value": loss.detach(),
    }
    return LossOutput(loss, stats)


def correct_weights(completion_mask_BT: Tensor, correct_B: Tensor) -> Tensor:
    """1/(tokens of correct completions) at each of them, else 0: (B, T). VAPO's likelihood term.

    Pass it to ``policy_loss`` as ``nll_weights_BT``; computed over the whole optimiser batch.
    """
    mask_BT = completion_mask_BT.bool() & correct_B.bool()[:, None]
    return mask_BT.to(torch.float32) / mask_BT.sum().clamp(min=1)


def explained_variance(values_BT: Tensor, targets_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """1 - Var(R - V)/Var(R) over trained tokens: 1 is a perfect critic, 0 knows only the mean."""
    mask_BT = mask_BT.bool()
    target = targets_BT[mask_BT].to(torch.float64)
    residual = target - values_BT[mask_BT].to(torch.float64)
    return 1 - residual.var(correction=0) / target.var(correction=0).clamp(min=1e-12)
