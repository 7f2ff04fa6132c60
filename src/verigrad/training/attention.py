"""Attention over a packed tree: exact, shared keys read once, own backward.

Shape legend: N packed tokens, H query heads, K key heads, R = H / K queries a key head, D head
size; S siblings, L queries of a tile, C own keys of a tile, A ancestor tokens.

Work goes tile by tile: some siblings of a family, some of their queries. The scores of a tile
against the ancestors are one matrix product a key head, whatever the number of siblings, since
siblings see the same ancestors; the scores against the own node are batched over siblings.
Nothing as large as N x N is ever held, and the backward pass computes the scores again (Dao et
al. 2022, section 3.1) from the log-sum-exp that the forward kept. All products and sums are
float32, whatever the inputs are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from verigrad.training.packing import Family

TILE_SCORES = 2_000_000
"""Scores that one tile holds at most (8 MB in float32)."""
QUERY_BLOCK = 256
"""Queries of one node in one tile at most: a long prompt skips the blocks above the diagonal."""


@dataclass(frozen=True)
class Scoring:
    """A score is ``cap * tanh(scale * q.k / cap)``; keys lie at most ``window - 1`` tokens back."""

    scale: float
    softcap: float | None = None
    window: int | None = None


def tree_attention(
    q_NHD: Tensor,
    k_NKD: Tensor,
    v_NKD: Tensor,
    *,
    families: tuple[Family, ...],
    positions_N: Tensor,
    scoring: Scoring,
) -> Tensor:
    """Attention of every packed token to its ancestors and to its own node up to itself.

    Returns N x H x D in the dtype of the queries. Differentiable in queries, keys and values.
    """
    # Autocast would turn the products into bfloat16.
    with torch.autocast(q_NHD.device.type, enabled=False):
        return _TreeAttention.apply(q_NHD, k_NKD, v_NKD, families, positions_N, scoring)


@dataclass(frozen=True)
class _Tile:
    """Some siblings of a family and some of their queries."""

    query_SL: Tensor
    """Packed place of each query; beyond a node's end the place of its first token."""
    real_SL: Tensor
    real_n: Tensor
    """Which of the S x L queries are real, as flat places; ``place_n`` are their packed places."""
    place_n: Tensor
    own_SC: Tensor
    """Packed place of each own key, from the node's first token to the tile's last query."""
    ancestors_A: Tensor | None
    first: int
    """Place of the tile's first query within its node."""


def tiles(families: tuple[Family, ...], num_heads: int, device: torch.device) -> tuple[_Tile, ...]:
    """Cut families into tiles of at most TILE_SCORES scores (or one block of one sibling).

    Every layer asks for the same tiles, forward and backward, so the last few answers are kept.
    """
    return _cut(families, num_heads, device, TILE_SCORES, QUERY_BLOCK)


@lru_cache(maxsize=4)
def _cut(
    families: tuple[Family, ...], num_heads: int, device: torch.device, most: int, block: int
) -> tuple[_Tile, ...]:
    out: list[_Tile] = []
    for family in families:
        above = None
        num_above = sum(end - begin for begin, end in family.ancestors)
        if family.ancestors:
            above = torch.cat([torch.arange(b, e, device=device) for b, e in family.ancestors])
        begin = family.start
        place = 0
        while place < len(family.lengths):
            longest = family.lengths[place]
            per_node = num_heads * min(longest, block) * (num_above + longest)
            count = max(1, min(len(family.lengths) - place, most // per_node))
            lengths = family.lengths[place : place + count]
            longest = max(lengths)
            length_S = torch.tensor(lengths, device=device)
            begin_S = begin + torch.cumsum(length_S, 0) - length_S
            for first in range(0, longest, block):
                last = min(longest, first + block)
                out.append(_tile(begin_S, length_S, above, first, last))
            begin += sum(lengths)
            place += count
    return tuple(out)


def _tile(begin_S: Tensor, length_S: Tensor, above: Tensor | None, first: int, last: int) -> _Tile:
    step_C = torch.arange(last, device=begin_S.device)
    inside_SC = step_C < length_S[:, None]
    own_SC = begin_S[:, None] + torch.where(inside_SC, step_C, 0)
    query_SL, real_SL = own_SC[:, first:], inside_SC[:, first:]
    real_n = real_SL.reshape(-1).nonzero()[:, 0]
    place_n = query_SL.reshape(-1)[real_n]
    return _Tile(query_SL, real_SL, real_n, place_n, own_SC, above, first)


def _grouped(x_NHD: Tensor, place_SL: Tensor, num_key_heads: int) -> Tensor:
    """Rows of a tile as K x S x L x R x D, float32."""
    S, L = place_SL.shape
    D = x_NHD.shape[-1]
    rows = x_NHD[place_SL.reshape(-1)].float()
    return rows.view(S, L, num_key_heads, -1, D).permute(2, 0, 1, 3, 4).contiguous()


class _Scored:
    """Scores of one tile: own keys (KS x LR x C) and ancestors (K x SLR x A), with those keys."""

    def __init__(
        self, tile: _Tile, q_NHD: Tensor, k_NKD: Tensor, positions_N: Tensor, how: Scoring
    ) -> None:
        K, D = k_NKD.shape[1], k_NKD.shape[2]
        S, L = tile.query_SL.shape
        C = tile.own_SC.shape[1]
        self.q = _grouped(q_NHD, tile.query_SL, K).mul_(how.scale)
        R = self.q.shape[3]
        self.shape = (K, S, L, R, D, C)
        self.key_own = _grouped(k_NKD, tile.own_SC, K).view(K * S, C, D)
        self.own = torch.bmm(self.q.view(K * S, L * R, D), self.key_own.transpose(1, 2))
        self.key_above = self.above = None
        if tile.ancestors_A is not None:
            self.key_above = k_NKD[tile.ancestors_A].float().transpose(0, 1).contiguous()
            self.above = torch.bmm(self.q.view(K, S * L * R, D), self.key_above.transpose(1, 2))
        if how.softcap is not None:
            for scores in self.parts():
                scores.div_(how.softcap).tanh_().mul_(how.softcap)
        self._mask(tile, positions_N, how)

    def parts(self) -> list[Tensor]:
        return [self.own] if self.above is None else [self.own, self.above]

    def _mask(self, tile: _Tile, positions_N: Tensor, how: Scoring) -> None:
        K, S, L, R, _, C = self.shape
        at = torch.arange(C, device=self.own.device)
        later_LC = at > (tile.first + torch.arange(L, device=self.own.device))[:, None]
        own = self.own.view(K * S, L, R, C)
        own.masked_fill_(later_LC[:, None, :], -math.inf)
        if how.window is None:
            return
        from_L = tile.first + torch.arange(L, device=self.own.device)
        own.masked_fill_((at <= from_L[:, None] - how.window)[:, None, :], -math.inf)
        if self.above is not None:
            back_SLA = positions_N[tile.query_SL][..., None] - positions_N[tile.ancestors_A]
            far_SLA = (back_SLA >= how.window)[:, :, None, :]
            self.above.view(K, S, L, R, -1).masked_fill_(far_SLA, -math.inf)


class _TreeAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, q_NHD: Tensor, k_NKD: Tensor, v_NKD: Tensor,
        families: tuple[Family, ...], positions_N: Tensor, how: Scoring,
    ) -> Tensor:  # fmt: skip
        out_NHD, lse_NH = attend(q_NHD, k_NKD, v_NKD, families, positions_N, how)
        ctx.save_for_backward(q_NHD, k_NKD, v_NKD, out_NHD, lse_NH, positions_N)
        ctx.families, ctx.how = families, how
        return out_NHD

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q_NHD, k_NKD, v_NKD, out_NHD, lse_NH, positions_N = ctx.saved_tensors
        dq_NHD, dk_NKD, dv_NKD = attend_backward(
            grads[0], q_NHD, k_NKD, v_NKD, out_NHD, lse_NH, ctx.families, positions_N, ctx.how
        )
        return (
            dq_NHD.to(q_NHD.dtype), dk_NKD.to(k_NKD.dtype), dv_NKD.to(v_NKD.dtype), None, None, None
        )  # fmt: skip


def attend(
    q_NHD: Tensor, k_NKD: Tensor, v_NKD: Tensor, families: tuple[Family, ...],
    positions_N: Tensor, how: Scoring,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Attention without a graph: output in the dtype of the values, and log-sum-exp N x H."""
    out_NHD = torch.empty(q_NHD.shape, dtype=v_NKD.dtype, device=q_NHD.device)
    lse_NH = torch.empty(q_NHD.shape[:2], dtype=torch.float32, device=q_NHD.device)
    for tile in tiles(families, q_NHD.shape[1], q_NHD.device):
        scored = _Scored(tile, q_NHD, k_NKD, positions_N, how)
        K, S, L, R, D, C = scored.shape
        value_own = _grouped(v_NKD, tile.own_SC, K).view(K * S, C, D)
        top = scored.own.amax(-1).view(K, S * L * R, 1)
        if scored.above is not None:
            top = torch.maximum(top, scored.above.amax(-1, keepdim=True))
        own = scored.own.sub_(top.view(K * S, L * R, 1)).exp_()
        total = own.sum(-1).view(K, S * L * R, 1)
        out = torch.bmm(own, value_own).view(K, S * L * R, D)
        if scored.above is not None:
            above = scored.above.sub_(top).exp_()
            total = total + above.sum(-1, keepdim=True)
            value_above = v_NKD[tile.ancestors_A].float().transpose(0, 1)
            out = torch.baddbmm(out, above, value_above)
        out = out.div_(total).view(K, S, L, R, D).permute(1, 2, 0, 3, 4).reshape(S * L, K * R, D)
        lse = (top + total.log()).view(K, S, L, R).permute(1, 2, 0, 3).reshape(S * L, K * R)
        out_NHD[tile.place_n] = out[tile.real_n].to(out_NHD.dtype)
        lse_NH[tile.place_n] = lse[tile.real_n]
    return out_NHD, lse_NH


def attend_backward(
    do_NHD: Tensor, q_NHD: Tensor, k_NKD: Tensor, v_NKD: Tensor, out_NHD: Tensor, lse_NH: Tensor,
    families: tuple[Family, ...], positions_N: Tensor, how: Scoring,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Gradients of queries, keys and values, float32, from what ``attend`` returned."""
    dq_NHD = torch.zeros(q_NHD.shape, dtype=torch.float32, device=q_NHD.device)
    dk_NKD = torch.zeros(k_NKD.shape, dtype=torch.float32, device=q_NHD.device)
    dv_NKD = torch.zeros_like(dk_NKD)
    delta_NH = (do_NHD.float() * out_NHD.float()).sum(-1)
    for tile in tiles(families, q_NHD.shape[1], q_NHD.device):
        scored = _Scored(tile, q_NHD, k_NKD, positions_N, how)
        _tile_backward(tile, scored, how, v_NKD, do_NHD, lse_NH, delta_NH, dq_NHD, dk_NKD, dv_NKD)
    return dq_NHD, dk_NKD, dv_NKD


def _per_row(x_NH: Tensor, tile: _Tile, num_key_heads: int, padding: float) -> Tensor:
    """One number a query and head as K x SLR x 1; ``padding`` beyond a node's end."""
    S, L = tile.query_SL.shape
    rows = x_NH[tile.query_SL].masked_fill(~tile.real_SL[..., None], padding)
    rows = rows.view(S, L, num_key_heads, -1).permute(2, 0, 1, 3).contiguous()
    return rows.view(num_key_heads, -1, 1)


def _tile_backward(
    tile: _Tile, scored: _Scored, how: Scoring, v_NKD: Tensor, do_NHD: Tensor, lse_NH: Tensor,
    delta_NH: Tensor, dq_NHD: Tensor, dk_NKD: Tensor, dv_NKD: Tensor,
) -> None:  # fmt: skip
    """Add one tile's part to the gradients of queries, keys and values.

    A padding query has lse = inf, so its probabilities, and with them all its gradients, are 0.
    """
    K, S, L, R, D, C = scored.shape
    lse = _per_row(lse_NH, tile, K, math.inf)
    delta = _per_row(delta_NH, tile, K, 0.0)
    do = _grouped(do_NHD, tile.query_SL, K).view(K, S * L * R, D)
    dq = scored.q.new_empty(K, S * L * R, D)
    pieces: list[tuple[Tensor, Tensor, Tensor, int, int]] = [
        (scored.own, scored.key_own, tile.own_SC, K * S, L * R)
    ]
    if scored.above is not None and scored.key_above is not None:
        assert tile.ancestors_A is not None
        pieces.append((scored.above, scored.key_above, tile.ancestors_A, K, S * L * R))
    for number, (scores, keys, places, batch, rows) in enumerate(pieces):
        flat_places = places.reshape(-1)
        values = (
            _grouped(v_NKD, tile.own_SC, K).view(K * S, C, D)
            if number == 0
            else v_NKD[flat_places].float().transpose(0, 1)
        )
        slope = None
        if how.softcap is not None:
            slope = (1 - (scores / how.softcap).square_()).nan_to_num_(0.0, 0.0, 0.0)
        p = scores.sub_(lse.view(batch, rows, 1)).exp_()
        do_here = do.view(batch, rows, D)
        dv = torch.bmm(p.transpose(1, 2), do_here)
        ds = torch.bmm(do_here, values.transpose(1, 2)).sub_(delta.view(batch, rows, 1)).mul_(p)
        if slope is not None:
            ds.mul_(slope)
        dk = torch.bmm(ds.transpose(1, 2), scored.q.view(batch, rows, D))
        if number == 0:
            torch.bmm(ds, keys, out=dq.view(batch, rows, D))
        else:
            dq.baddbmm_(ds, keys)
        for total, part in ((dk_NKD, dk), (dv_NKD, dv)):
            total.index_add_(0, flat_places, part.view(K, -1, D).transpose(0, 1))
    dq = dq.view(K, S, L, R, D).permute(1, 2, 0, 3, 4).reshape(S * L, K * R, D)
    dq_NHD[tile.place_n] = dq[tile.real_n].mul_(how.scale)
