"""Random ragged batches, and the loss computed on them whole or in slices."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from verigrad.algorithms.advantages import advantages
from verigrad.algorithms.filters import Selection, needs_selection, selection
from verigrad.algorithms.losses import LossOutput, policy_loss
from verigrad.algorithms.reduce import token_weights
from verigrad.algorithms.returns import needs_token_advantages, token_advantages
from verigrad.objective import Objective

MAX_TOKENS = 12


@dataclass(frozen=True)
class Ragged:
    """A batch of ``groups`` x ``size`` completions of unequal length, in float64."""

    rewards: Tensor
    parts: Tensor
    group: Tensor
    mask: Tensor
    logprobs: Tensor
    old: Tensor
    sampler: Tensor
    ref: Tensor
    entropy: Tensor

    def rows(self, index: Tensor) -> Ragged:
        return Ragged(**{k: v[index] for k, v in self.__dict__.items()})

    def padded(self, extra: int, fill: float) -> Ragged:
        """The same batch, ``extra`` columns wider, with ``fill`` where there is no token."""
        out = {}
        for name, value in self.__dict__.items():
            if value.dim() == 2 and name != "parts":
                pad = torch.zeros(len(value), extra, dtype=value.dtype)
                value = torch.cat([value, pad], dim=1)
            out[name] = value
        wide = Ragged(**out)
        for name in ("logprobs", "old", "sampler", "ref", "entropy"):
            out[name] = torch.where(wide.mask, out[name], fill)
        return Ragged(**out)


def ragged(seed: int, *, groups: int = 3, size: int = 4, move: float = 0.4) -> Ragged:
    """``move`` is the standard deviation of the log-ratios."""
    g = torch.Generator().manual_seed(seed)
    rows = groups * size

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=g, dtype=torch.float64)

    lengths = torch.randint(1, MAX_TOKENS + 1, (rows,), generator=g)
    old = -2 * torch.rand(rows, MAX_TOKENS, generator=g, dtype=torch.float64) - 0.05
    rewards = torch.randint(0, 2, (rows,), generator=g).to(torch.float64)
    return Ragged(
        rewards=rewards,
        parts=torch.stack([rewards, torch.rand(rows, generator=g, dtype=torch.float64)], dim=1),
        group=torch.arange(groups).repeat_interleave(size),
        mask=torch.arange(MAX_TOKENS) < lengths[:, None],
        logprobs=(old + move * normal(rows, MAX_TOKENS)).clamp(max=-0.01),
        old=old,
        sampler=old + 0.2 * normal(rows, MAX_TOKENS),
        ref=old + 0.3 * normal(rows, MAX_TOKENS),
        entropy=torch.rand(rows, MAX_TOKENS, generator=g, dtype=torch.float64),
    )


def batch_advantages(o: Objective, b: Ragged) -> Tensor:
    """(B,), or (B, T) where the objective has one advantage per token."""
    if needs_token_advantages(o):
        rewards = torch.zeros_like(b.old)
        last = b.mask.sum(-1) - 1
        rewards[torch.arange(len(last)), last] = b.rewards
        return token_advantages(o, rewards_BT=rewards, mask_BT=b.mask, values_BT=0.3 * b.entropy)[0]
    return advantages(
        b.rewards,
        b.group,
        o,
        lengths_B=b.mask.sum(-1),
        parts_BN=b.parts,
        baseline_B=torch.full_like(b.rewards, 0.5),
    )


def batch_selection(o: Objective, b: Ragged, adv: Tensor) -> Selection | None:
    if not needs_selection(o):
        return None
    return selection(
        o,
        completion_mask_BT=b.mask,
        advantages_B=adv,
        logprobs_BT=b.logprobs,
        old_logprobs_BT=b.old,
        entropy_BT=b.entropy,
    )


def loss_of(
    o: Objective, b: Ragged, adv: Tensor, weights: Tensor, selected: Selection | None
) -> tuple[LossOutput, Tensor]:
    """The loss and its gradient with respect to the log-probabilities."""
    logprobs = b.logprobs.clone().requires_grad_()
    out = policy_loss(
        o,
        logprobs_BT=logprobs,
        old_logprobs_BT=b.old,
        advantages_B=adv,
        weights_BT=weights,
        completion_mask_BT=b.mask,
        sampler_logprobs_BT=b.sampler,
        ref_logprobs_BT=b.ref,
        entropy_BT=b.entropy,
        selection=selected,
    )
    (grad,) = torch.autograd.grad(out.loss, logprobs)
    return out, grad


def whole(o: Objective, b: Ragged) -> tuple[LossOutput, Tensor]:
    """Loss and gradient of the batch in one piece."""
    adv = batch_advantages(o, b)
    weights = token_weights(b.mask, b.group, o, max_tokens=MAX_TOKENS)
    return loss_of(o, b, adv, weights, batch_selection(o, b, adv))
