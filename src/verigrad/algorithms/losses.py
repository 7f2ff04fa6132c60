"""The policy loss: one objective, one number. Shapes: B completions, T completion tokens.

``policy_loss`` may be called on any slice of rows of an optimiser batch: with weights and
selections computed over the whole batch, losses, gradients and statistics of the slices add up to
the batch's.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from verigrad.algorithms.corrections import correction_weights, negative_mask
from verigrad.algorithms.filters import Selection
from verigrad.algorithms.kl import drift_term, k3, loss_term
from verigrad.algorithms.ratios import LEVELS, log_ratio
from verigrad.algorithms.trust import REGIONS, Held, Terms
from verigrad.errors import UsageError
from verigrad.objective import Objective


@dataclass(frozen=True, slots=True)
class LossOutput:
    """A scalar loss, and sums over trained tokens (divide by ``stats["tokens"]``).

    stats: tokens; clip_low, clip_high, clip_dual (tokens held back); ratio, log_ratio (of the level
    that the trust region sees); drift_k3 (distance to the update's start); kl (k3 to the
    reference); entropy; correction, corrected (weight, and tokens it changed); dropped (tokens a
    mask silenced). ``stats["loss_policy"]``, ``loss_kl``, ``loss_drift``, ``loss_entropy`` and
    ``loss_nll`` are already weighted: they add up to the loss.
    """

    loss: Tensor
    stats: dict[str, Tensor]


def policy_loss(
    objective: Objective,
    *,
    logprobs_BT: Tensor,
    old_logprobs_BT: Tensor,
    advantages_B: Tensor,
    weights_BT: Tensor,
    completion_mask_BT: Tensor,
    sampler_logprobs_BT: Tensor | None = None,
    ref_logprobs_BT: Tensor | None = None,
    entropy_BT: Tensor | None = None,
    selection: Selection | None = None,
    entropy_coef: float | None = None,
    nll_weights_BT: Tensor | None = None,
) -> LossOutput:
    """Loss of these rows: sum over tokens of (policy + KL + drift - entropy) times their weight.

    ``advantages_B`` is (B,), or (B, T) where a critic or a per-token return gives one per token.
    ``weights_BT`` comes from ``reduce.token_weights`` over the whole optimiser batch, ``selection``
    from ``filters.selection`` over it. ``entropy_coef`` replaces the objective's where a controller
    moves it; ``nll_weights_BT`` weighs the likelihood of correct completions (positive_nll).
    Gradients flow through ``logprobs_BT`` and ``entropy_BT`` only. Computed in float32, or float64
    if given.
    Raises UsageError when the objective needs log-probabilities that were not given.
    """
    mask_BT = completion_mask_BT.bool()
    dtype = torch.promote_types(logprobs_BT.dtype, torch.float32)
    logprobs_BT = torch.where(mask_BT, logprobs_BT.to(dtype), 0.0)
    base_BT = _denominator(objective, old_logprobs_BT, sampler_logprobs_BT).to(dtype).detach()
    token_BT = log_ratio(logprobs_BT, base_BT, mask_BT)
    level_BT = LEVELS[objective.ratio](token_BT, mask_BT)
    adv_BT = _spread(advantages_B, logprobs_BT)
    weights_BT = weights_BT.to(dtype)
    held = REGIONS[objective.trust_region](
        Terms(logprobs_BT, token_BT, level_BT, adv_BT, mask_BT), objective
    )
    factor_BT, stats = _factors(
        objective, old_logprobs_BT, sampler_logprobs_BT, logprobs_BT, adv_BT, mask_BT, selection
    )
    # A token whose weight is 0 must not pass on an infinity: 0 * inf is NaN.
    policy_BT = torch.where(factor_BT == 0, 0.0, held.loss * factor_BT)
    losses = {"loss_policy": (policy_BT * weights_BT).sum()}
    if objective.trust_region == "kl_cov" and selection is not None:
        picked_BT = token_BT.abs() * selection.penalize_BT
        losses["loss_drift"] = objective.drift_coef * (picked_BT * weights_BT).sum()
    losses |= _extra_terms(
        objective, logprobs_BT, ref_logprobs_BT, token_BT, weights_BT, mask_BT, losses
    )
    losses |= _entropy_term(objective, entropy_BT, entropy_coef, weights_BT, mask_BT)
    if objective.positive_nll and nll_weights_BT is not None:
        losses["loss_nll"] = -objective.positive_nll * (logprobs_BT * nll_weights_BT).sum()
    stats |= _sums(mask_BT, held, level_BT, token_BT)
    stats |= _distances(logprobs_BT, ref_logprobs_BT, entropy_BT, mask_BT)
    stats |= {name: value.detach() for name, value in losses.items()}
    return LossOutput(torch.stack(list(losses.values())).sum(), stats)


def _denominator(objective: Objective, old_BT: Tensor, sampler_BT: Tensor | None) -> Tensor:
    if objective.denominator == "old":
        return old_BT
    if sampler_BT is None:
        raise UsageError(
            "objective.denominator = 'sampler' needs the sampler's log-probabilities; take an "
            "engine that reports them, or set objective.denominator = 'old'."
        )
    return sampler_BT


def _spread(advantages_B: Tensor, like_BT: Tensor) -> Tensor:
    """Advantages at every token: (B,) is repeated along T, (B, T) is taken as it is."""
    adv = advantages_B.to(like_BT.dtype).detach()
    return adv if adv.dim() == 2 else adv[:, None].expand_as(like_BT)


def _factors(
    objective: Objective,
    old_BT: Tensor,
    sampler_BT: Tensor | None,
    logprobs_BT: Tensor,
    adv_BT: Tensor,
    mask_BT: Tensor,
    selection: Selection | None,
) -> tuple[Tensor, dict[str, Tensor]]:
    """What multiplies a token's policy loss besides its weight: corrections and masks."""
    factor_BT = mask_BT.to(logprobs_BT.dtype)
    stats: dict[str, Tensor] = {}
    weight_BT = correction_weights(
        objective, old_logprobs_BT=old_BT, sampler_logprobs_BT=sampler_BT, mask_BT=mask_BT
    )
    if weight_BT is not None:
        stats["correction"] = (weight_BT * mask_BT).sum()
        gap_BT = log_ratio(old_BT, sampler_BT if sampler_BT is not None else old_BT, mask_BT)
        stats["corrected"] = ((weight_BT - gap_BT.exp()).abs() > 1e-6)[mask_BT].sum()
        factor_BT = factor_BT * weight_BT.to(factor_BT.dtype)
    behaviour_BT = sampler_BT if sampler_BT is not None else old_BT
    negative_BT = negative_mask(
        objective,
        behaviour_log_ratio_BT=log_ratio(logprobs_BT, behaviour_BT.to(logprobs_BT.dtype), mask_BT),
        advantages_BT=adv_BT,
        mask_BT=mask_BT,
    )
    if negative_BT is not None:
        factor_BT = factor_BT * negative_BT
    if selection is not None:
        factor_BT = factor_BT * selection.train_BT
    stats["dropped"] = ((factor_BT == 0) & mask_BT).sum()
    return factor_BT.detach(), stats


def _extra_terms(
    objective: Objective,
    logprobs_BT: Tensor,
    ref_BT: Tensor | None,
    token_BT: Tensor,
    weights_BT: Tensor,
    mask_BT: Tensor,
    losses: dict[str, Tensor],
) -> dict[str, Tensor]:
    out: dict[str, Tensor] = {}
    kl_BT = loss_term(
        objective,
        logprobs_BT=logprobs_BT,
        ref_logprobs_BT=ref_BT,
        log_ratio_BT=token_BT,
        mask_BT=mask_BT,
    )
    if kl_BT is not None:
        out["loss_kl"] = objective.kl_coef * (kl_BT * weights_BT).sum()
    drift_BT = drift_term(objective, token_BT, mask_BT)
    if drift_BT is not None:
        before = losses.get("loss_drift", torch.zeros_like(losses["loss_policy"]))
        out["loss_drift"] = before + objective.drift_coef * (drift_BT * weights_BT).sum()
    return out


def _entropy_term(
    objective: Objective,
    entropy_BT: Tensor | None,
    entropy_coef: float | None,
    weights_BT: Tensor,
    mask_BT: Tensor,
) -> dict[str, Tensor]:
    coef = objective.entropy_coef if entropy_coef is None else entropy_coef
    if objective.entropy == "none" or coef == 0:
        return {}
    if entropy_BT is None:
        raise UsageError(
            f"objective.entropy = {objective.entropy!r} needs entropy_BT, the entropy at each "
            "token, computed with gradient; give it, or set objective.entropy = 'none'."
        )
    entropy_BT = torch.where(mask_BT, entropy_BT.to(weights_BT.dtype), 0.0)
    return {"loss_entropy": -coef * (entropy_BT * weights_BT).sum()}


@torch.no_grad()
def _sums(mask_BT: Tensor, held: Held, level_BT: Tensor, token_BT: Tensor) -> dict[str, Tensor]:
    token_BT, level_BT = token_BT.detach(), level_BT.detach()
    return {
        "tokens": mask_BT.sum(),
        "clip_low": (held.low & mask_BT).sum(),
        "clip_high": (held.high & mask_BT).sum(),
        "clip_dual": (held.dual & mask_BT).sum(),
        "ratio": (level_BT.exp() * mask_BT).sum(),
        "log_ratio": (level_BT * mask_BT).sum(),
        "drift_k3": ((torch.expm1(token_BT) - token_BT) * mask_BT).sum(),
    }


@torch.no_grad()
def _distances(
    logprobs_BT: Tensor, ref_BT: Tensor | None, entropy_BT: Tensor | None, mask_BT: Tensor
) -> dict[str, Tensor]:
    out: dict[str, Tensor] = {}
    if ref_BT is not None:
        distance_BT = log_ratio(logprobs_BT.detach(), ref_BT.to(logprobs_BT.dtype), mask_BT)
        out["kl"] = (k3(distance_BT) * mask_BT).sum()
    if entropy_BT is not None:
        out["entropy"] = torch.where(mask_BT, entropy_BT.detach(), 0.0).sum()
    return out
