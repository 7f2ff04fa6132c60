"""Trust regions: how far a ratio may move the policy. Shapes: B completions, T completion tokens.

Each function takes :class:`Terms` and returns the loss per token (to be minimised) and which tokens
it held back. Outside the mask the ratio is 1 and the log-probability 0, and the reduction's weight
is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from verigrad.algorithms.ratios import sequence_mean_log
from verigrad.objective import Objective


@dataclass(frozen=True, slots=True)
class Terms:
    """What a trust region may look at; all (B, T), logs and probabilities in the loss's dtype.

    ``log_ratio`` is at the objective's ratio level, ``token_log_ratio`` always per token.
    """

    logprobs: Tensor
    token_log_ratio: Tensor
    log_ratio: Tensor
    advantages: Tensor
    mask: Tensor


@dataclass(frozen=True, slots=True)
class Held:
    """Loss per token and the tokens whose push was stopped: below, above, or by the dual clip."""

    loss: Tensor
    low: Tensor
    high: Tensor
    dual: Tensor


TrustRegion = Callable[[Terms, Objective], Held]


def _never(terms: Terms) -> Tensor:
    return torch.zeros_like(terms.advantages, dtype=torch.bool)


def _by_sign(up: Tensor, positive: float, negative: float, like: Tensor) -> Tensor:
    """One number where ``up``, the other elsewhere, in full precision (two scalars would be
    float32)."""
    return torch.where(up, torch.full_like(like, positive), torch.full_like(like, negative))


def clip(terms: Terms, objective: Objective) -> Held:
    """-min(rA, clip(r, 1-low, 1+high) A), and where A < 0 at least ``dual_clip`` A.

    The gradient is 0 only for A > 0, r > 1+high and for A < 0, r < 1-low (PPO 1707.06347 eq. 7);
    the dual clip (1912.09729) also stops A < 0, r > c, which PPO leaves unbounded. INTELLECT-2's
    two-sided delta is the same thing under another name.
    """
    ratio, adv = terms.log_ratio.exp(), terms.advantages
    low, high = 1 - objective.clip_low, 1 + objective.clip_high
    surrogate = torch.minimum(ratio * adv, ratio.clamp(low, high) * adv)
    dual = _never(terms)
    if objective.dual_clip is not None:
        dual = (adv < 0) & (ratio > objective.dual_clip)
        floor = objective.dual_clip * adv
        surrogate = torch.where(adv < 0, torch.maximum(surrogate, floor), surrogate)
    return Held(-surrogate, (adv < 0) & (ratio < low), (adv > 0) & (ratio > high), dual)


def clip_weight(terms: Terms, objective: Objective) -> Held:
    """-sg(clip(r, 1-low, 1+high)) A log pi: no token is ever dropped. CISPO, 2506.13585 eq. 4."""
    ratio, adv = terms.log_ratio.exp(), terms.advantages
    low, high = 1 - objective.clip_low, 1 + objective.clip_high
    weight = ratio.clamp(low, high).detach()
    some = adv != 0
    return Held(
        -weight * adv * terms.logprobs, some & (ratio < low), some & (ratio > high), _never(terms)
    )


def clip_log(terms: Terms, objective: Objective) -> Held:
    """-min(A log r, A clip(log r, log(1-low), log(1+high))). CPGD, 2505.12504."""
    log_ratio, adv = terms.log_ratio, terms.advantages
    low = math.log(1 - objective.clip_low) if objective.clip_low < 1 else -math.inf
    high = math.log(1 + objective.clip_high)
    surrogate = torch.minimum(log_ratio * adv, log_ratio.clamp(low, high) * adv)
    held_low, held_high = (adv < 0) & (log_ratio < low), (adv > 0) & (log_ratio > high)
    return Held(-surrogate, held_low, held_high, _never(terms))


def soft_gate(terms: Terms, objective: Objective) -> Held:
    """-A (4/tau) sigmoid(tau (r-1)); tau by the sign of A. Slope 1 at r = 1. SAPO, 2511.20347."""
    ratio, adv = terms.log_ratio.exp(), terms.advantages
    tau = _by_sign(adv > 0, objective.gate_positive, objective.gate_negative, adv)
    gate = torch.sigmoid(tau * (ratio - 1)) * 4 / tau
    return Held(-adv * gate, _never(terms), _never(terms), _never(terms))


def gamma_weight(terms: Terms, objective: Objective) -> Held:
    """-sg(W^k exp(lambda (1-W))) A log pi; k and lambda by the sign of A. VESPO, 2602.10693."""
    adv = terms.advantages
    (k_up, lam_up), (k_down, lam_down) = objective.gamma_positive, objective.gamma_negative
    up = adv >= 0
    k, lam = _by_sign(up, k_up, k_down, adv), _by_sign(up, lam_up, lam_down, adv)
    weight = (k * terms.log_ratio + lam * (1 - terms.log_ratio.exp())).exp().detach()
    return Held(-weight * adv * terms.logprobs, _never(terms), _never(terms), _never(terms))


def geometric_clip(terms: Terms, objective: Objective) -> Held:
    """-A exp(mean of log-ratios, each clipped on one side at -low or +high). GMPO, 2507.20673.

    The clip is in log space (0.4 means a ratio of e^0.4) and per token, before the mean.
    """
    log_ratio, adv = terms.token_log_ratio, terms.advantages
    low, high = -objective.clip_low, objective.clip_high
    clipped = torch.where(adv > 0, log_ratio.clamp(max=high), log_ratio.clamp(min=low))
    ratio = sequence_mean_log(clipped, terms.mask).exp()
    held_low, held_high = (adv < 0) & (log_ratio < low), (adv > 0) & (log_ratio > high)
    return Held(-adv * ratio.expand_as(adv), held_low, held_high, _never(terms))


def _masked(terms: Terms, objective: Objective, held_low: Tensor, held_high: Tensor) -> Held:
    """-sg(min(r, cap)) A log pi on the tokens that no divergence holds back."""
    ratio = terms.log_ratio.exp()
    cap = objective.dual_clip if objective.dual_clip is not None else math.inf
    keep = ~(held_low | held_high)
    weight = (ratio.clamp(max=cap) * keep).detach()
    loss = -weight * terms.advantages * terms.logprobs
    return Held(loss, held_low, held_high, keep & (ratio > cap))


def mask_tv(terms: Terms, objective: Objective) -> Held:
    """Drop a token once |pi - pi_old| exceeds low/high in the direction of A. DPPO, 2602.04879."""
    now = terms.logprobs.detach().exp()
    old = (terms.logprobs - terms.token_log_ratio).detach().exp()
    moved, adv = now - old, terms.advantages
    held_low, held_high = (
        (adv < 0) & (-moved > objective.clip_low),
        (adv > 0) & (moved > objective.clip_high),
    )
    return _masked(terms, objective, held_low, held_high)


def mask_kl(terms: Terms, objective: Objective) -> Held:
    """As mask_tv with the binary KL(old || now) of taking the sampled token or any other."""
    log_now = terms.logprobs.detach().clamp(max=0.0)
    log_old = (terms.logprobs - terms.token_log_ratio).detach().clamp(max=0.0)
    now, old = log_now.exp(), log_old.exp()
    rest = ((1 - old + 1e-8) / (1 - now + 1e-8)).log()
    distance = old * (log_old - log_now) + (1 - old) * rest
    adv = terms.advantages
    held_low = (adv < 0) & (now < old) & (distance > objective.clip_low)
    held_high = (adv > 0) & (now > old) & (distance > objective.clip_high)
    return _masked(terms, objective, held_low, held_high)


def taper_negative(terms: Terms, objective: Objective) -> Held:
    """A > 0: -A log pi. A < 0: -sg(clip(r, 0, 1)) A log pi, so it fades as r falls. TOPR,
    2503.14286."""
    adv = terms.advantages
    fade = terms.log_ratio.clamp(max=0.0).exp().detach()
    weight = torch.where(adv < 0, fade, 1.0)
    capped = (adv < 0) & (terms.log_ratio > 0)
    return Held(-weight * adv * terms.logprobs, _never(terms), _never(terms), capped)


def score(terms: Terms, objective: Objective) -> Held:
    """-A log pi: REINFORCE, the ratio is ignored."""
    loss = -terms.advantages * terms.logprobs
    return Held(loss, _never(terms), _never(terms), _never(terms))


def unbounded(terms: Terms, objective: Objective) -> Held:
    """-rA: the importance-weighted policy gradient without any bound."""
    loss = -terms.log_ratio.exp() * terms.advantages
    return Held(loss, _never(terms), _never(terms), _never(terms))


REGIONS: dict[str, TrustRegion] = {
    "clip": clip,
    "clip_weight": clip_weight,
    "clip_log": clip_log,
    "soft_gate": soft_gate,
    "gamma_weight": gamma_weight,
    "geometric_clip": geometric_clip,
    "mask_tv": mask_tv,
    "mask_kl": mask_kl,
    "taper_negative": taper_negative,
    "clip_cov": clip,
    "kl_cov": unbounded,
    "score": score,
    "none": unbounded,
}
"""The trust_region axis. clip_cov and kl_cov add a selection of tokens (filters.selection) to
theirs."""
