"""Judged groups -> one batch with advantages. Shape legend: B completions in a batch."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from verigrad.algorithms.advantages import advantages
from verigrad.algorithms.filters import keep_rows
from verigrad.algorithms.shaping import shaped_rewards
from verigrad.objective import Objective
from verigrad.types import Batch, Completion, Group, Verdict


def weigh(groups: Sequence[Group], objective: Objective, *, max_tokens: int) -> Batch:
    """Return the completions that count, each with its advantage; what leaves here is counted.

    A BROKEN verdict leaves its group; a group with fewer than two judged completions has no
    baseline and leaves too. What the objective's group filter drops leaves the reduction as well;
    silent groups that stay (group_filter = none) have advantages of exactly 0 and count there.
    ``max_tokens`` is the longest completion allowed (length shaping needs it).
    """
    useful = useful_groups(groups, objective)
    rows = [
        (g, group, completion, verdict)
        for g, group in enumerate(groups)
        if useful[g]
        for completion, verdict in judged(group)
    ]
    completions = tuple(row[2] for row in rows)
    rewards = tuple(float(row[3].reward or 0.0) for row in rows)
    index_B = torch.tensor([row[0] for row in rows], dtype=torch.long)
    weighed_B = torch.zeros(0)
    if rows:
        lengths_B = torch.tensor([len(c.token_ids) for c in completions])
        shaped_B = shaped_rewards(
            torch.tensor(rewards, dtype=torch.float64), index_B, objective,
            lengths_B=lengths_B, max_tokens=max_tokens,
            token_ids=[c.token_ids for c in completions],
        )  # fmt: skip
        weighed_B = advantages(
            shaped_B, index_B, objective, lengths_B=lengths_B,
            parts_BN=_parts([row[3] for row in rows]),
        )  # fmt: skip
    return Batch(
        prompts=tuple(row[1].prompt for row in rows),
        completions=completions,
        group_index=tuple(row[0] for row in rows),
        rewards=rewards,
        advantages=weighed_B,
        num_groups=len(groups),
        num_silent_groups=sum(is_silent(group) for group in groups),
        num_broken=sum(v.reward is None for group in groups for v in group.verdicts),
    )


def judged(group: Group) -> list[tuple[Completion, Verdict]]:
    """The completions of a group that have a reward."""
    pairs = zip(group.completions, group.verdicts, strict=True)
    return [(c, v) for c, v in pairs if v.reward is not None]


def is_silent(group: Group) -> bool:
    """True where no gradient can come from a group: fewer than two rewards, or all equal."""
    rewards = [v.reward for _, v in judged(group)]
    return len(rewards) < 2 or all(r == rewards[0] for r in rewards)


def useful_groups(groups: Sequence[Group], objective: Objective) -> list[bool]:
    """Which groups the objective trains on: two judged completions, and not filtered out."""
    rewards: list[float] = []
    index: list[int] = []
    for g, group in enumerate(groups):
        pairs = judged(group)
        if len(pairs) >= 2:
            rewards += [float(v.reward or 0.0) for _, v in pairs]
            index += [g] * len(pairs)
    if not index:
        return [False] * len(groups)
    index_B = torch.tensor(index)
    keep_B = keep_rows(torch.tensor(rewards), index_B, objective)
    kept = set(index_B[keep_B].tolist())
    return [g in kept for g in range(len(groups))]


def _parts(verdicts: Sequence[Verdict]) -> torch.Tensor | None:
    """(B, N) named part rewards in the order of the recipe, None where a verdict has none."""
    names = list(verdicts[0].parts)
    if not names or any(list(v.parts) != names for v in verdicts):
        return None
    return torch.tensor([[float(v.parts[n]) for n in names] for v in verdicts])
