"""Advantages per token: generalised advantage estimation, returns-to-go. Shapes: B rows, T tokens.

What PPO, VAPO and REINFORCE++ need where the others have one advantage per completion.
"""

from __future__ import annotations

import torch
from torch import Tensor

from verigrad.errors import UsageError
from verigrad.objective import Objective


def needs_token_advantages(objective: Objective) -> bool:
    """Whether advantages differ within a completion, so that token_advantages makes them."""
    if objective.baseline == "critic":
        return True
    return objective.baseline == "batch_mean" and objective.kl == "k1_in_reward"


def token_advantages(
    objective: Objective, *, rewards_BT: Tensor, mask_BT: Tensor, values_BT: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Advantages and the critic's targets: two (B, T) tensors in float32, 0 outside the mask.

    ``rewards_BT`` comes from ``kl.token_rewards``. With a critic: GAE with the policy's lambda
    (length-adaptive where lam_alpha is set), and targets with the critic's. Without: rewards-to-go,
    whose target nobody uses. scale = batch_std whitens over the batch's tokens.
    """
    mask_BT = mask_BT.bool()
    rewards_BT = rewards_BT.to(torch.float64)
    if objective.baseline == "critic":
        if values_BT is None:
            raise UsageError("objective.baseline = 'critic' needs values_BT, the critic's values.")
        values_BT = values_BT.to(torch.float64).detach()
        lam_B = policy_lambda(objective, mask_BT)
        adv_BT = gae(rewards_BT, values_BT, mask_BT, gamma=objective.gamma, lam_B=lam_B)
        critic_B = torch.full_like(lam_B, objective.lam_critic)
        target_BT = gae(rewards_BT, values_BT, mask_BT, gamma=objective.gamma, lam_B=critic_B)
        target_BT = (target_BT + values_BT) * mask_BT
    else:
        adv_BT = target_BT = reward_to_go(rewards_BT, mask_BT, gamma=objective.gamma)
    if objective.scale in ("batch_std", "centered_batch_std"):
        adv_BT = whiten(adv_BT, mask_BT, objective)
    return adv_BT.to(torch.float32), target_BT.to(torch.float32)


def gae(
    rewards_BT: Tensor, values_BT: Tensor, mask_BT: Tensor, *, gamma: float, lam_B: Tensor
) -> Tensor:
    """Generalised advantage estimation over trained tokens: (B, T). 1506.02438 eq. 16.

    delta_t = r_t + gamma V_{t+1} - V_t; A_t = delta_t + gamma lambda A_{t+1}; after the last token
    V is 0. Tokens outside the mask (forced ones, padding) are skipped: what follows them is passed
    on.
    """
    mask_BT = mask_BT.to(rewards_BT.dtype)
    value_next = torch.zeros_like(rewards_BT[:, 0])
    carry = torch.zeros_like(value_next)
    out = torch.zeros_like(rewards_BT)
    for t in range(rewards_BT.shape[1] - 1, -1, -1):
        on = mask_BT[:, t]
        delta = rewards_BT[:, t] + gamma * value_next - values_BT[:, t]
        carry = torch.where(on > 0, delta + gamma * lam_B * carry, carry)
        value_next = torch.where(on > 0, values_BT[:, t], value_next)
        out[:, t] = carry * on
    return out


def policy_lambda(objective: Objective, mask_BT: Tensor) -> Tensor:
    """GAE's lambda of each completion: (B,) float64. VAPO: 1 - 1/(alpha |y|), at least 0."""
    length_B = mask_BT.sum(-1).to(torch.float64)
    if objective.lam_alpha is None:
        return torch.full_like(length_B, objective.lam)
    return (1 - 1 / (objective.lam_alpha * length_B).clamp(min=1e-9)).clamp(min=0.0)


def reward_to_go(rewards_BT: Tensor, mask_BT: Tensor, *, gamma: float) -> Tensor:
    """Discounted sum of this and later rewards at each trained token: (B, T)."""
    zeros_BT = torch.zeros_like(rewards_BT)
    lam_B = torch.ones_like(rewards_BT[:, 0])
    return gae(rewards_BT, zeros_BT, mask_BT, gamma=gamma, lam_B=lam_B)


def whiten(adv_BT: Tensor, mask_BT: Tensor, objective: Objective) -> Tensor:
    """Subtract the mean and divide by the deviation over the batch's tokens; 0 if all are equal."""
    mask_BT = mask_BT.bool()
    values = adv_BT[mask_BT]
    if values.numel() < 2:
        return torch.zeros_like(adv_BT)
    correction = 1 if objective.std == "sample" else 0
    std = values.std(correction=correction)
    if float(values.max() - values.min()) <= 1e-6 * float(values.abs().max()):
        return torch.zeros_like(adv_BT)
    return (adv_BT - values.mean()) / (std + objective.std_eps) * mask_BT
