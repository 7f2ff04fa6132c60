"""Sums, means and deviations within groups. Shapes: B completions, N part rewards, K groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

NOISE = 4 * torch.finfo(torch.float32).eps
"""Rewards that differ by less than this share of the largest are equal: what summing floats
leaves."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Which row belongs to which group. ``row_B`` numbers the groups 0..K-1, ``size_K`` counts
    rows."""

    row_B: Tensor
    size_K: Tensor

    @property
    def num(self) -> int:
        """How many groups there are."""
        return int(self.size_K.numel())

    def sum(self, x_B: Tensor) -> Tensor:
        """Sum of ``x_B`` over each group: (K,)."""
        return torch.zeros(self.num, dtype=x_B.dtype, device=x_B.device).index_add(
            0, self.row_B, x_B
        )

    def mean(self, x_B: Tensor) -> Tensor:
        """Mean of ``x_B`` over each group: (K,)."""
        return self.sum(x_B) / self.size_K

    def extreme(self, x_B: Tensor, which: Literal["amax", "amin"]) -> Tensor:
        """Largest or smallest of ``x_B`` in each group: (K,)."""
        start = torch.zeros(self.num, dtype=x_B.dtype, device=x_B.device)
        return start.scatter_reduce(0, self.row_B, x_B, which, include_self=False)

    def std(self, x_B: Tensor, *, ddof: int) -> Tensor:
        """Standard deviation of ``x_B`` in each group: (K,); 0 where a group has too few rows."""
        deviation_B = x_B - self.mean(x_B)[self.row_B]
        freedom_K = (self.size_K - ddof).clamp(min=1)
        return (self.sum(deviation_B.square()) / freedom_K).sqrt()


def number_groups(group_index_B: Tensor) -> Groups:
    """Number the groups of any integer labels; rows of a group need not be adjacent."""
    labels_K = group_index_B.sort().values
    first_K = torch.ones_like(labels_K, dtype=torch.bool)
    first_K[1:] = labels_K[1:] != labels_K[:-1]
    labels_K = labels_K[first_K]
    row_B = torch.searchsorted(labels_K, group_index_B.contiguous())
    size_K = torch.bincount(row_B, minlength=labels_K.numel())
    return Groups(row_B, size_K)


def silent_rows(rewards_B: Tensor, group_index_B: Tensor) -> Tensor:
    """True for rows of a group whose rewards are all equal, up to float noise: (B,) bool.

    Such a group says nothing about which completion is better. The noise allowed is four float32
    steps of the group's largest reward, so 0.1 + 0.2 equals 0.3.
    """
    groups = number_groups(group_index_B)
    rewards_B = rewards_B.to(torch.float64)
    high_K, low_K = groups.extreme(rewards_B, "amax"), groups.extreme(rewards_B, "amin")
    size_K = torch.maximum(high_K.abs(), low_K.abs())
    return ((high_K - low_K) <= NOISE * size_K)[groups.row_B]


def is_constant(x_B: Tensor) -> bool:
    """Whether all values are equal, up to float noise."""
    spread = float(x_B.max() - x_B.min())
    return spread <= NOISE * float(x_B.abs().max())


def weighted_std(x_B: Tensor, weight_B: Tensor, *, ddof: int) -> Tensor:
    """Standard deviation where row b counts ``weight_B[b]`` times (a token count): scalar."""
    total = weight_B.sum()
    mean = (x_B * weight_B).sum() / total
    square = ((x_B - mean).square() * weight_B).sum()
    return (square / (total - ddof).clamp(min=1)).sqrt()
