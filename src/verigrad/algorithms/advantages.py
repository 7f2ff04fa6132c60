"""Rewards to advantages: a baseline is subtracted, then a scale divided by.

All statistics are taken in float64. A group of equal rewards gets exactly 0 whatever their value,
and adding a constant to all rewards changes nothing, for every baseline that is relative to
something. Shapes: B completions, N part rewards.
"""

from __future__ import annotations

import torch
from torch import Tensor

from verigrad.algorithms.groups import (
    Groups,
    is_constant,
    number_groups,
    silent_rows,
    weighted_std,
)
from verigrad.errors import UsageError
from verigrad.objective import Objective


def advantages(
    rewards_B: Tensor,
    group_index_B: Tensor,
    objective: Objective,
    *,
    lengths_B: Tensor,
    parts_BN: Tensor | None = None,
    baseline_B: Tensor | None = None,
) -> Tensor:
    """One advantage per completion: (B,) float32.

    ``group_index_B`` labels groups with any integers. ``lengths_B`` counts trained tokens (used by
    length_weighted and by batch_unit = tokens). ``parts_BN`` holds part rewards, needed only by
    parts = normalize_each. ``baseline_B`` is the reward of each prompt's greedy completion
    (baseline = greedy).
    Raises UsageError for non-finite rewards (what went wrong upstream must not become a silent
    zero) and for inputs that the objective needs and did not get.
    """
    _check(rewards_B, objective, parts_BN, baseline_B)
    groups = number_groups(group_index_B)
    rewards_B = rewards_B.to(torch.float64)
    lengths_B = lengths_B.to(torch.float64)
    if objective.pass_at_k != "none":
        return pass_at_k(rewards_B, group_index_B, objective).to(torch.float32)
    if objective.parts == "normalize_each" and parts_BN is not None:
        return _normalized_parts(parts_BN, group_index_B, objective, lengths_B).to(torch.float32)
    centered_B = _subtract_baseline(
        rewards_B, group_index_B, groups, objective, lengths_B=lengths_B, baseline_B=baseline_B
    )
    scaled_B = _divide_by_scale(centered_B, rewards_B, groups, objective, lengths_B=lengths_B)
    return scaled_B.to(torch.float32)


def _check(
    rewards_B: Tensor, objective: Objective, parts_BN: Tensor | None, baseline_B: Tensor | None
) -> None:
    finite_B = torch.isfinite(rewards_B)
    if not bool(finite_B.all()):
        row = int((~finite_B).nonzero()[0])
        raise UsageError(
            f"reward of row {row} is {float(rewards_B[row])}; a verifier returns finite numbers. "
            "Return None (BROKEN) where no reward exists."
        )
    if objective.baseline == "critic":
        raise UsageError(
            "objective.baseline = 'critic' takes its advantages from algorithms.critic.gae, which "
            "needs values; advantages() has none."
        )
    if objective.baseline == "greedy" and baseline_B is None:
        raise UsageError(
            "objective.baseline = 'greedy' needs baseline_B, the reward of each prompt's greedy "
            "completion; sample one per prompt, or choose baseline = 'group_mean'."
        )
    if objective.parts == "normalize_each":
        if parts_BN is None:
            raise UsageError(
                "objective.parts = 'normalize_each' needs the part rewards (parts_BN); use a "
                "verifier that returns parts, or parts = 'sum'."
            )
        if objective.part_weights and len(objective.part_weights) != parts_BN.shape[1]:
            raise UsageError(
                f"objective.part_weights has {len(objective.part_weights)} weights for "
                f"{parts_BN.shape[1]} part rewards; give one each, or none to weigh all 1."
            )


def _subtract_baseline(
    rewards_B: Tensor,
    group_index_B: Tensor,
    groups: Groups,
    objective: Objective,
    *,
    lengths_B: Tensor,
    baseline_B: Tensor | None,
) -> Tensor:
    """Reward minus baseline; exactly 0 in groups (or batches) of equal rewards."""
    baseline = objective.baseline
    if baseline == "none":
        return rewards_B
    if baseline == "greedy":
        assert baseline_B is not None
        return rewards_B - baseline_B.to(torch.float64)
    if baseline == "batch_mean":
        if is_constant(rewards_B):
            return torch.zeros_like(rewards_B)
        weight_B = lengths_B if objective.batch_unit == "tokens" else torch.ones_like(rewards_B)
        return rewards_B - (rewards_B * weight_B).sum() / weight_B.sum()
    return center(rewards_B, group_index_B, groups, baseline=baseline, lengths_B=lengths_B)


def center(
    rewards_B: Tensor, group_index_B: Tensor, groups: Groups, *, baseline: str, lengths_B: Tensor
) -> Tensor:
    """Reward minus its group's mean, leave-one-out mean or length-weighted mean: (B,) float64.

    leave_one_out is G/(G-1) times group_mean, exactly (Kool et al. 2019); a group of one has no
    other completion and gets 0. length_weighted is OPO's sum(l r)/sum(l) (2505.23585).
    """
    if baseline == "length_weighted":
        mean_K = groups.sum(rewards_B * lengths_B) / groups.sum(lengths_B).clamp(min=1e-12)
    else:
        mean_K = groups.mean(rewards_B)
    centered_B = rewards_B - mean_K[groups.row_B]
    if baseline == "leave_one_out":
        size_B = groups.size_K[groups.row_B].to(torch.float64)
        centered_B = centered_B * size_B / (size_B - 1).clamp(min=1)
    return centered_B.masked_fill(silent_rows(rewards_B, group_index_B), 0.0)


def _divide_by_scale(
    centered_B: Tensor,
    rewards_B: Tensor,
    groups: Groups,
    objective: Objective,
    *,
    lengths_B: Tensor,
) -> Tensor:
    ddof = 1 if objective.std == "sample" else 0
    weight_B = lengths_B if objective.batch_unit == "tokens" else torch.ones_like(rewards_B)
    if objective.scale == "none":
        return centered_B
    if objective.scale == "group_std":
        std_B = groups.std(rewards_B, ddof=ddof)[groups.row_B]
        return standardize(centered_B, std_B, eps=objective.std_eps)
    if objective.scale == "group_mean":
        mean_B = groups.mean(rewards_B)[groups.row_B]
        if bool((mean_B < 0).any()):
            raise UsageError(
                "objective.scale = 'group_mean' needs rewards of at least 0, but a group's mean "
                f"is {float(mean_B.min())}; score wrong as 0, not below."
            )
        return torch.where(mean_B > 0, centered_B / mean_B.clamp(min=1e-12), 0.0)
    source_B = rewards_B if objective.scale == "batch_std" else centered_B
    if is_constant(source_B):
        return torch.zeros_like(centered_B) if objective.baseline != "none" else centered_B
    std = weighted_std(source_B, weight_B, ddof=ddof)
    return standardize(centered_B, std.expand_as(centered_B), eps=objective.std_eps)


def standardize(centered_B: Tensor, std_B: Tensor, *, eps: float) -> Tensor:
    """Divide by ``std + eps``; exactly 0 where the deviation is 0."""
    return torch.where(std_B > 0, centered_B / (std_B + eps).clamp(min=1e-300), 0.0)


def _normalized_parts(
    parts_BN: Tensor, group_index_B: Tensor, objective: Objective, lengths_B: Tensor
) -> Tensor:
    """GDPO (2601.05242): each part reward standardised in its group, weighted and added.

    The sum is then divided by its own batch deviation where scale asks for one, after subtracting
    its batch mean (which is 0 unless groups differ in size). A part that is constant in a group
    adds 0.
    """
    groups = number_groups(group_index_B)
    ddof = 1 if objective.std == "sample" else 0
    weights = objective.part_weights or (1.0,) * parts_BN.shape[1]
    total_B = torch.zeros(parts_BN.shape[0], dtype=torch.float64, device=parts_BN.device)
    for n, weight in enumerate(weights):
        part_B = parts_BN[:, n].to(torch.float64)
        centered_B = center(
            part_B, group_index_B, groups, baseline="group_mean", lengths_B=lengths_B
        )
        std_B = groups.std(part_B, ddof=ddof)[groups.row_B]
        total_B = total_B + weight * standardize(centered_B, std_B, eps=objective.std_eps)
    if objective.scale == "none" or objective.scale == "group_std":
        return total_B
    if is_constant(total_B):
        return torch.zeros_like(total_B)
    weight_B = lengths_B if objective.batch_unit == "tokens" else torch.ones_like(total_B)
    mean = (total_B * weight_B).sum() / weight_B.sum()
    std = weighted_std(total_B, weight_B, ddof=ddof)
    return standardize(total_B - mean, std.expand_as(total_B), eps=objective.std_eps)


def pass_at_k(rewards_B: Tensor, group_index_B: Tensor, objective: Objective) -> Tensor:
    """Advantages that reward a group for its best of k: (B,) float64.

    best_minus_second (2503.19595): only a single best completion gets reward max - second, so two
    correct ones in a binary group give 0. analytic (2508.10751): with N completions of which M are
    wrong, R = 1 - C(M,k)/C(N,k) and s = sqrt(R(1-R)); correct ones get (1-R)/s, wrong ones
    (1 - R - C(M-1,k-1)/C(N-1,k-1))/s. A reward counts as correct above 0.5. Constant groups get 0.
    """
    groups = number_groups(group_index_B)
    out_B = torch.zeros_like(rewards_B, dtype=torch.float64)
    silent_B = silent_rows(rewards_B, group_index_B)
    for label in range(groups.num):
        rows = (groups.row_B == label).nonzero().squeeze(-1)
        if bool(silent_B[rows[0]]) or len(rows) < 2:
            continue
        group = rewards_B[rows]
        if objective.pass_at_k == "best_minus_second":
            top = group.topk(2).values
            out_B[rows[int(group.argmax())]] = top[0] - top[1]
        else:
            out_B[rows] = _analytic_pass_at_k(group > 0.5, objective.k)
    return out_B


def _analytic_pass_at_k(correct_G: Tensor, k: int) -> Tensor:
    from math import comb

    n, wrong = correct_G.numel(), int((~correct_G).sum())
    if k > n:
        raise UsageError(f"objective.k = {k} exceeds the group size {n}; lower k or sample more.")
    mean = 1 - comb(wrong, k) / comb(n, k)
    deviation = (mean * (1 - mean)) ** 0.5
    if deviation == 0:
        return torch.zeros_like(correct_G, dtype=torch.float64)
    right = (1 - mean) / deviation
    bad = (1 - mean - comb(wrong - 1, k - 1) / comb(n - 1, k - 1)) / deviation
    return torch.where(correct_G, right, bad).to(torch.float64)
