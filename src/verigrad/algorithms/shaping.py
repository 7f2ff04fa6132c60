"""What a reward also says: length, truncation, repetition. Shapes: B completions.

Shaping happens before advantages. It changes the number a group compares, so a term that depends on
the group (min_max, pass_rate) is computed over the same group.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from verigrad.algorithms.groups import number_groups
from verigrad.errors import UsageError
from verigrad.objective import Objective

CORRECT_ABOVE = 0.5
"""A reward above this counts as correct where shaping must tell right from wrong."""


def shaped_rewards(
    rewards_B: Tensor,
    group_index_B: Tensor,
    objective: Objective,
    *,
    lengths_B: Tensor,
    max_tokens: int,
    token_ids: Sequence[Sequence[int]] | None = None,
) -> Tensor:
    """Rewards after the objective's shaping: (B,), float32. A default objective changes nothing.

    ``lengths_B`` counts completion tokens, ``max_tokens`` is the limit; ``token_ids`` is needed by
    repetition_penalty. Terms add up: wrong_reward, then overlong, length and repetition.
    """
    out_B = objective.wrong_reward + rewards_B.to(torch.float32) * (1 - objective.wrong_reward)
    correct_B = rewards_B > CORRECT_ABOVE
    if objective.overlong_cache_frac > 0:
        cache = objective.overlong_cache_frac * max_tokens
        penalty_B = soft_overlong(lengths_B, max_tokens=max_tokens, cache=cache)
        out_B = out_B + objective.overlong_penalty * penalty_B
    if objective.length_reward == "min_max":
        bonus_B = min_max_length(correct_B, group_index_B, lengths_B)
        out_B = out_B + objective.length_coef * bonus_B
    elif objective.length_reward == "cosine":
        target_B = cosine_length(correct_B, lengths_B, max_tokens=max_tokens)
        out_B = out_B + objective.length_coef * (target_B - out_B)
    elif objective.length_reward == "pass_rate":
        penalty_B = pass_rate_length(correct_B, group_index_B, lengths_B, max_tokens=max_tokens)
        out_B = out_B + objective.length_coef * penalty_B
    if objective.repetition_penalty > 0:
        if token_ids is None:
            raise UsageError(
                "objective.repetition_penalty needs the completions' token ids (token_ids); give "
                "them, or set repetition_penalty = 0."
            )
        share_B = repetition(token_ids, n=objective.repetition_ngram).to(out_B.device)
        out_B = out_B - objective.repetition_penalty * share_B
    return out_B


def soft_overlong(lengths_B: Tensor, *, max_tokens: int, cache: float) -> Tensor:
    """0 up to max_tokens - cache, then falling to -1 at max_tokens: (B,). DAPO eq. 13.

    >>> soft_overlong(torch.tensor([16384, 18432, 20480]), max_tokens=20480, cache=4096).tolist()
    [-0.0, -0.5, -1.0]
    """
    over_B = lengths_B.to(torch.float32) - (max_tokens - cache)
    return -(over_B / cache).clamp(0.0, 1.0)


def min_max_length(correct_B: Tensor, group_index_B: Tensor, lengths_B: Tensor) -> Tensor:
    """0.5 - (length - min)/(max - min) in the group; a wrong one gets at most 0: (B,).

    A group of equal lengths gets 0. Kimi k1.5, 2501.12599 section 2.3.3.
    """
    groups = number_groups(group_index_B)
    length_B = lengths_B.to(torch.float32)
    low_B = groups.extreme(length_B, "amin")[groups.row_B]
    high_B = groups.extreme(length_B, "amax")[groups.row_B]
    spread_B = high_B - low_B
    bonus_B = 0.5 - (length_B - low_B) / spread_B.clamp(min=1)
    bonus_B = torch.where(correct_B, bonus_B, bonus_B.clamp(max=0.0))
    return torch.where(spread_B > 0, bonus_B, 0.0)


def cosine_length(
    correct_B: Tensor,
    lengths_B: Tensor,
    *,
    max_tokens: int,
    correct: tuple[float, float] = (1.0, 0.5),
    wrong: tuple[float, float] = (-1.0, -0.5),
) -> Tensor:
    """A reward that moves along half a cosine from its value at length 0 to that at the limit:
    (B,).

    Short beats long where correct; long beats short where wrong. 2502.03373 (its own values are 2
    to 1 and -10 to 0; these are TRL's).
    """
    progress_B = (lengths_B.to(torch.float32) / max_tokens).clamp(0.0, 1.0)
    wave_B = 0.5 * (1 + torch.cos(math.pi * progress_B))
    right_B = correct[1] + (correct[0] - correct[1]) * wave_B
    bad_B = wrong[1] + (wrong[0] - wrong[1]) * wave_B
    return torch.where(correct_B, right_B, bad_B)


def pass_rate_length(
    correct_B: Tensor, group_index_B: Tensor, lengths_B: Tensor, *, max_tokens: int
) -> Tensor:
    """-(pass rate of the group) * length / limit: brevity is asked for where it is easy: (B,)."""
    groups = number_groups(group_index_B)
    rate_B = groups.mean(correct_B.to(torch.float32))[groups.row_B]
    return -rate_B * lengths_B.to(torch.float32) / max_tokens


def repetition(token_ids: Sequence[Sequence[int]], *, n: int) -> Tensor:
    """1 - (different n-grams / n-grams) of each completion: (B,) in [0, 1); 0 below n tokens."""
    shares: list[float] = []
    for row in token_ids:
        grams = [tuple(row[i : i + n]) for i in range(len(row) - n + 1)]
        shares.append(1 - len(set(grams)) / len(grams) if grams else 0.0)
    return torch.tensor(shares, dtype=torch.float32)
