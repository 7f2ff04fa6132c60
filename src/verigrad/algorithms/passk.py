"""Closed forms about a group of samples. Loads without torch."""

from __future__ import annotations

from math import comb

from verigrad.errors import UsageError


def pass_at_k_estimate(n: int, correct: int, k: int) -> float:
    """Unbiased pass@k from n samples of which ``correct`` are right: 1 - C(n-c, k)/C(n, k).

    Chen et al. 2021. Raises UsageError unless 1 <= k <= n and 0 <= correct <= n.

    >>> round(pass_at_k_estimate(16, 3, 8), 4)
    0.9
    """
    if not (1 <= k <= n and 0 <= correct <= n):
        raise UsageError(f"pass@{k} of {correct} right in {n} samples: needs 1 <= k <= n samples.")
    return 1 - comb(n - correct, k) / comb(n, k)


def signal_frac(pass_rate: float, group_size: int) -> float:
    """Share of groups with both right and wrong completions: 1 - p^G - (1-p)^G (2509.25849).

    >>> round(signal_frac(0.1, 8), 2)
    0.57
    """
    return 1 - pass_rate**group_size - (1 - pass_rate) ** group_size
