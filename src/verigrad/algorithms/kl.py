"""Distances between policies, per token, estimated on sampled tokens. Shapes: B completions, T
tokens.

The value of an estimator and the gradient of using it as a loss are different things (on a
categorical, on-policy): k1 in the loss has gradient 0; k2 and ratio*k3 give that of the reverse
KL(pi || ref); k3 gives that of the forward KL(ref || pi); k1 subtracted from the reward gives the
reverse KL.
"""

from __future__ import annotations

import torch
from torch import Tensor

from verigrad.algorithms.ratios import log_ratio
from verigrad.errors import UsageError
from verigrad.objective import Objective


def k1(log_ratio_BT: Tensor) -> Tensor:
    """log(pi/ref): unbiased value, may be negative."""
    return log_ratio_BT


def k2(log_ratio_BT: Tensor) -> Tensor:
    """Half the squared log-ratio: biased value, gradient of the reverse KL."""
    return 0.5 * log_ratio_BT.square()


def k3(log_ratio_BT: Tensor) -> Tensor:
    """ref/pi - log(ref/pi) - 1: unbiased, never negative, gradient of the forward KL. 2402.03300
    eq. 4."""
    return torch.expm1(-log_ratio_BT) + log_ratio_BT


def loss_term(
    objective: Objective,
    *,
    logprobs_BT: Tensor,
    ref_logprobs_BT: Tensor | None,
    log_ratio_BT: Tensor,
    mask_BT: Tensor,
) -> Tensor | None:
    """What the objective adds per token for its KL, before kl_coef: (B, T), or None if nothing.

    ``log_ratio_BT`` is log(pi/pi_old) per token, used by unbiased_k3 = ratio * k3 (DeepSeek-V3.2).
    A k1_in_reward acts through :func:`penalized_rewards` instead.
    """
    if objective.kl in ("none", "k1_in_reward") or objective.kl_coef == 0:
        return None
    if ref_logprobs_BT is None:
        raise UsageError(
            f"objective.kl = {objective.kl!r} with kl_coef = {objective.kl_coef} needs the "
            "reference's log-probabilities (ref_logprobs_BT); give them, or set objective.kl = "
            "'none'."
        )
    distance_BT = log_ratio(logprobs_BT, ref_logprobs_BT, mask_BT)
    if objective.kl == "unbiased_k3":
        return log_ratio_BT.exp() * k3(distance_BT)
    return {"k1": k1, "k2": k2, "k3": k3}[objective.kl](distance_BT)


def penalized_rewards(
    rewards_B: Tensor,
    objective: Objective,
    *,
    old_logprobs_BT: Tensor,
    ref_logprobs_BT: Tensor,
    completion_mask_BT: Tensor,
) -> Tensor:
    """Rewards minus kl_coef times the completion's summed k1, where kl = k1_in_reward: (B,).

    Detached: the gradient of the reverse KL over whole completions comes from the policy gradient
    itself (RLOO 2402.14740). Other objectives get their rewards back.
    """
    if objective.kl != "k1_in_reward":
        return rewards_B
    distance_BT = log_ratio(old_logprobs_BT, ref_logprobs_BT, completion_mask_BT).detach()
    return rewards_B - objective.kl_coef * distance_BT.sum(-1).to(rewards_B.dtype)


def token_rewards(
    rewards_B: Tensor,
    objective: Objective,
    *,
    old_logprobs_BT: Tensor,
    ref_logprobs_BT: Tensor | None,
    completion_mask_BT: Tensor,
) -> Tensor:
    """Per-token rewards: -kl_coef k1 at each token, the outcome at the last one: (B, T).

    What PPO's and REINFORCE++'s returns are made of (InstructGPT; 2501.03262 eq. 3). Without
    k1_in_reward only the outcome remains.
    """
    mask_BT = completion_mask_BT.to(rewards_B.dtype)
    position_T = torch.arange(mask_BT.shape[1], device=mask_BT.device)
    last_B = (position_T * mask_BT).argmax(-1)
    out_BT = torch.zeros_like(mask_BT)
    out_BT.scatter_(1, last_B[:, None], (rewards_B * (mask_BT.sum(-1) > 0))[:, None])
    if objective.kl == "k1_in_reward":
        if ref_logprobs_BT is None:
            raise UsageError("objective.kl = 'k1_in_reward' needs ref_logprobs_BT, and got None.")
        distance_BT = log_ratio(old_logprobs_BT, ref_logprobs_BT, completion_mask_BT).detach()
        out_BT = out_BT - objective.kl_coef * distance_BT.to(out_BT.dtype)
    return out_BT


def drift_term(objective: Objective, log_ratio_BT: Tensor, mask_BT: Tensor) -> Tensor | None:
    """Penalty per token for leaving the policy of the update's start, before drift_coef: (B, T).

    k2 is half the squared log-ratio (DRO, prime-rl); k3 is r - 1 - log r, which estimates KL(old ||
    now) on old samples (CPGD 2505.12504); sequence_k2 is half the squared sum over the completion,
    spread evenly over its tokens so that sequence_sum gives its mean (Kimi k1.5 2501.12599 eq. 3).
    """
    if objective.drift == "none" or objective.drift_coef == 0:
        return None
    if objective.drift == "k2":
        return k2(log_ratio_BT)
    if objective.drift == "k3":
        return torch.expm1(log_ratio_BT) - log_ratio_BT
    mask = mask_BT.to(log_ratio_BT.dtype)
    total = (log_ratio_BT * mask).sum(-1, keepdim=True)
    return (0.5 * total.square() / mask.sum(-1, keepdim=True).clamp(min=1)) * mask


def reference_due(objective: Objective, update: int) -> bool:
    """Whether the reference moves after this update (counted from 1): a reset or one EMA step."""
    return (
        objective.reference != "frozen" and update > 0 and update % objective.reference_every == 0
    )


def moved_reference(ref: Tensor, policy: Tensor, objective: Objective) -> Tensor:
    """The reference's new weights: the policy's (reset, R1 every 400 steps), or a mix (TR-DPO)."""
    mix = 1.0 if objective.reference == "reset" else objective.reference_mix
    return ref + mix * (policy.to(ref.dtype) - ref)
