"""Rows of prompts and completions -> one sequence without padding, shared text once.

Shape legend: B completions, T completion tokens of the longest row, N packed tokens, M scored
completion tokens.

The packed tokens form a tree. What every prompt begins with is the root, the rest of each prompt
hangs below it, and the completions of a prompt hang below that. A token sees all of its ancestors
and, within its own node, what came before. Nodes with the same parent lie side by side: a
*family*, which attention treats as one piece of work. The last token of a completion predicts
nothing that is scored, so it is no input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from verigrad.errors import UsageError

MIN_SHARED = 8
"""Shorter common beginnings stay with each prompt: a further family costs more than it saves."""


@dataclass(frozen=True)
class Family:
    """Sibling nodes, contiguous: they see the same ancestors and, causally, their own node."""

    start: int
    lengths: tuple[int, ...]
    ancestors: tuple[tuple[int, int], ...]
    """Packed ranges ``[begin, end)`` that every token of the family sees in full."""


@dataclass(frozen=True)
class Layout:
    """A packed batch: what to feed, where tokens stand, and what predicts each scored token."""

    ids_N: Tensor
    positions_N: Tensor
    families: tuple[Family, ...]
    predict_M: Tensor
    """Packed place whose hidden state predicts scored token m."""
    targets_M: Tensor
    row_M: Tensor
    column_M: Tensor
    num_rows: int
    width: int
    longest: int
    """Positions of the longest row, prompt included."""

    def scatter(self, values_M: Tensor) -> Tensor:
        """Scored values back in their rows: B x T, zero beyond a row's length. Differentiable."""
        out_BT = values_M.new_zeros(self.num_rows, self.width)
        return out_BT.index_put((self.row_M, self.column_M), values_M)


def check_rows(
    prompts: Sequence[Sequence[int]],
    completions: Sequence[Sequence[int]],
    group_index: Sequence[int],
) -> None:
    """Raise UsageError unless the three lists have one entry a row and every prompt has a token."""
    if not len(prompts) == len(completions) == len(group_index):
        raise UsageError(
            f"{len(prompts)} prompts, {len(completions)} completions and {len(group_index)} group "
            "indices: pass one of each for every row."
        )
    if not prompts:
        raise UsageError("no rows: pass at least one prompt with its completion.")
    for row, prompt in enumerate(prompts):
        if not len(prompt):
            raise UsageError(
                f"the prompt of row {row} is empty, so nothing predicts its first completion "
                "token. Begin it with the beginning-of-sequence token."
            )


def pack(
    prompts: Sequence[Sequence[int]],
    completions: Sequence[Sequence[int]],
    *,
    group_index: Sequence[int],
    device: torch.device | str = "cpu",
) -> Layout:
    """Lay rows out so that text that rows share is there once.

    Rows share a prompt when they have the same group index and the same prompt tokens. Raises
    UsageError for lists of different lengths and for an empty prompt.
    """
    check_rows(prompts, completions, group_index)
    members: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    for row, (group, prompt) in enumerate(zip(group_index, prompts, strict=True)):
        members.setdefault((group, tuple(prompt)), []).append(row)
    shared = _common_length([prompt for _, prompt in members])
    writer = _Writer()
    first_prompt = next(iter(members))[1]
    root = writer.family([first_prompt[:shared]], (), 0)
    trunk = root.ancestors_of(0)
    stems = writer.family([prompt[shared:] for _, prompt in members], trunk, shared)
    score = _Scores()
    for place, ((_, prompt), rows) in enumerate(members.items()):
        above = (*trunk, *stems.ancestors_of(place))
        # Rows of like length lie together, so that tiles of attention carry little padding.
        rows = sorted(rows, key=lambda r: -len(completions[r]))
        leaves = writer.family([tuple(completions[r])[:-1] for r in rows], above, len(prompt))
        for r, begin in zip(rows, leaves.begins, strict=True):
            score.add(r, completions[r], above[-1][1] - 1, begin)
    return Layout(
        ids_N=torch.tensor(writer.ids, dtype=torch.long, device=device),
        positions_N=torch.tensor(writer.positions, dtype=torch.long, device=device),
        families=tuple(writer.families),
        predict_M=torch.tensor(score.predict, dtype=torch.long, device=device),
        targets_M=torch.tensor(score.targets, dtype=torch.long, device=device),
        row_M=torch.tensor(score.row, dtype=torch.long, device=device),
        column_M=torch.tensor(score.column, dtype=torch.long, device=device),
        num_rows=len(prompts),
        width=max(len(c) for c in completions),
        longest=max(writer.positions) + 1,
    )


@dataclass(frozen=True)
class _Nodes:
    """Where the nodes of one family begin and end."""

    begins: tuple[int, ...]
    ends: tuple[int, ...]

    def ancestors_of(self, place: int) -> tuple[tuple[int, int], ...]:
        begin, end = self.begins[place], self.ends[place]
        return ((begin, end),) if end > begin else ()


class _Writer:
    """Packed tokens as they grow, family by family."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.positions: list[int] = []
        self.families: list[Family] = []

    def family(
        self, nodes: Sequence[Sequence[int]], above: tuple[tuple[int, int], ...], position: int
    ) -> _Nodes:
        start = len(self.ids)
        begins: list[int] = []
        for node in nodes:
            begins.append(len(self.ids))
            self.ids.extend(node)
            self.positions.extend(range(position, position + len(node)))
        lengths = tuple(len(node) for node in nodes if len(node))
        if lengths:
            self.families.append(Family(start, lengths, above))
        return _Nodes(tuple(begins), tuple(b + len(n) for b, n in zip(begins, nodes, strict=True)))


class _Scores:
    """Scored tokens: which hidden state predicts which token of which row."""

    def __init__(self) -> None:
        self.predict: list[int] = []
        self.targets: list[int] = []
        self.row: list[int] = []
        self.column: list[int] = []

    def add(self, row: int, completion: Sequence[int], last_of_prompt: int, begin: int) -> None:
        n = len(completion)
        if not n:
            return
        self.predict.append(last_of_prompt)
        self.predict.extend(range(begin, begin + n - 1))
        self.targets.extend(completion)
        self.row.extend([row] * n)
        self.column.extend(range(n))


def _common_length(prompts: Sequence[tuple[int, ...]]) -> int:
    """Tokens that all prompts begin with; 0 for a single prompt or where the saving is small."""
    if len(prompts) < 2:
        return 0
    low, high = min(prompts), max(prompts)
    n = 0
    while n < min(len(low), len(high)) and low[n] == high[n]:
        n += 1
    return n if n >= MIN_SHARED else 0


def plan_micro_batches(
    prompt_lengths: Sequence[int],
    completion_lengths: Sequence[int],
    group_index: Sequence[int],
    *,
    max_tokens: int,
) -> list[list[int]]:
    """Split rows into micro-batches of at most ``max_tokens`` packed tokens, every row once.

    Rows of a group stay together where they fit, and pay for their prompt once; a group that is
    too big is split. A single row above the budget is a micro-batch of its own. Raises UsageError
    for lists of different lengths or a budget below 1.
    """
    if not len(prompt_lengths) == len(completion_lengths) == len(group_index):
        raise UsageError(
            f"{len(prompt_lengths)} prompt lengths, {len(completion_lengths)} completion lengths "
            f"and {len(group_index)} group indices: pass one of each for every row."
        )
    if max_tokens < 1:
        raise UsageError(f"max_tokens = {max_tokens}: a micro-batch needs at least 1 token.")
    groups: dict[int, list[int]] = {}
    for row, group in enumerate(group_index):
        groups.setdefault(group, []).append(row)
    plan: list[list[int]] = []
    open_rows: list[int] = []
    used = 0
    for rows in groups.values():
        for piece, cost in _pieces(rows, prompt_lengths, completion_lengths, max_tokens):
            if open_rows and used + cost > max_tokens:
                plan.append(open_rows)
                open_rows, used = [], 0
            open_rows = [*open_rows, *piece]
            used += cost
    if open_rows:
        plan.append(open_rows)
    return plan


def _pieces(
    rows: Sequence[int], prompt: Sequence[int], completion: Sequence[int], budget: int
) -> list[tuple[list[int], int]]:
    """A group cut into runs of rows that fit, with its cost: one prompt and the completions."""
    pieces: list[tuple[list[int], int]] = []
    piece: list[int] = []
    longest = total = 0
    for row in rows:
        if piece and max(longest, prompt[row]) + total + completion[row] > budget:
            pieces.append((piece, longest + total))
            piece, longest, total = [], 0, 0
        piece.append(row)
        longest = max(longest, prompt[row])
        total += completion[row]
    pieces.append((piece, longest + total))
    return pieces
