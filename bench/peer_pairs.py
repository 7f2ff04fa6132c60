"""What a comparison with a peer is made of: a ragged batch, a pair of functions, a verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from verigrad.algorithms.filters import needs_selection, selection
from verigrad.algorithms.losses import policy_loss
from verigrad.algorithms.reduce import token_weights
from verigrad.objective import Objective

MAX_TOKENS = 24
TOLERANCE = 1e-5


@dataclass(frozen=True)
class Ragged:
    """``groups`` prompts with ``size`` completions each, of unequal length; float64 logs."""

    rewards: Tensor
    parts: Tensor
    group: Tensor
    mask: Tensor
    logprobs: Tensor
    old: Tensor
    sampler: Tensor
    ref: Tensor
    entropy: Tensor
    advantages: Tensor
    size: int


def ragged(seed: int, *, groups: int = 4, size: int = 8) -> Ragged:
    """A random batch; log-ratios of 0.3 nats put tokens on both sides of every clip."""
    g = torch.Generator().manual_seed(seed)
    rows = groups * size

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=g, dtype=torch.float64)

    lengths = torch.randint(1, MAX_TOKENS + 1, (rows,), generator=g)
    old = -2 * torch.rand(rows, MAX_TOKENS, generator=g, dtype=torch.float64) - 0.05
    rewards = torch.randint(0, 2, (rows,), generator=g).to(torch.float64)
    return Ragged(
        rewards=rewards,
        parts=torch.stack([rewards, torch.rand(rows, generator=g, dtype=torch.float64)], 1),
        group=torch.arange(groups).repeat_interleave(size),
        mask=torch.arange(MAX_TOKENS) < lengths[:, None],
        logprobs=(old + 0.3 * normal(rows, MAX_TOKENS)).clamp(max=-0.01),
        old=old,
        sampler=old + 0.15 * normal(rows, MAX_TOKENS),
        ref=old + 0.3 * normal(rows, MAX_TOKENS),
        entropy=torch.rand(rows, MAX_TOKENS, generator=g, dtype=torch.float64),
        advantages=normal(rows),
        size=size,
    )


Advantages = Callable[[Ragged], Tensor]
Compute = Callable[[Ragged, Tensor], Tensor]
"""From a batch and its log-probabilities (a leaf with gradient) to a loss, or to advantages."""


@dataclass(frozen=True)
class Pair:
    """One computation of ours and one of a peer.

    ``deviation`` says who departs from the paper and how where the two are not meant to agree.
    ``factor`` is what theirs must be divided by before comparing (a documented constant scale).
    """

    peer: str
    name: str
    ours: Compute
    theirs: Compute
    kind: str = "loss"
    deviation: str = ""
    notes: dict[str, str] = field(default_factory=dict)


def our_loss(objective: Objective, *, advantages: Advantages | None = None) -> Compute:
    """Our loss under this objective, on the batch's random advantages unless others are given."""

    def compute(b: Ragged, logprobs: Tensor) -> Tensor:
        adv = advantages(b) if advantages else b.advantages
        chosen = None
        if needs_selection(objective):
            chosen = selection(
                objective,
                completion_mask_BT=b.mask,
                advantages_B=adv,
                logprobs_BT=logprobs.detach(),
                old_logprobs_BT=b.old,
                entropy_BT=b.entropy,
            )
        return policy_loss(
            objective,
            logprobs_BT=logprobs,
            old_logprobs_BT=b.old,
            advantages_B=adv,
            weights_BT=token_weights(b.mask, b.group, objective, max_tokens=MAX_TOKENS),
            completion_mask_BT=b.mask,
            sampler_logprobs_BT=b.sampler,
            ref_logprobs_BT=b.ref,
            entropy_BT=b.entropy,
            selection=chosen,
        ).loss

    return compute


def difference(pair: Pair, seeds: range) -> tuple[float, float, float]:
    """Largest difference of loss (or value), largest of gradient, and their gradient over ours.

    Gradient differences are relative to the largest gradient entry of ours.
    """
    worst_value, worst_grad, ratio = 0.0, 0.0, 1.0
    for seed in seeds:
        b = ragged(seed)
        found: list[tuple[Tensor, Tensor | None]] = []
        for compute in (pair.ours, pair.theirs):
            logprobs = b.logprobs.clone().requires_grad_()
            torch.manual_seed(seed)
            value = compute(b, logprobs)
            grad = torch.autograd.grad(value, logprobs)[0] if pair.kind == "loss" else None
            found.append((value.detach().double(), grad))
        (mine, my_grad), (its, its_grad) = found
        worst_value = max(worst_value, float((mine - its).abs().max()))
        if my_grad is not None and its_grad is not None:
            scale = float(my_grad.abs().max())
            worst_grad = max(worst_grad, float((my_grad - its_grad).abs().max()) / scale)
            ratio = float(its_grad.norm() / my_grad.norm())
    return worst_value, worst_grad, ratio
