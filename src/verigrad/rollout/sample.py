"""Logits -> token and its log-probability: exact temperature, top-k, top-p, min-p; no full sort.

Legend: B rows, V vocabulary. Filters are applied in the order temperature, top-k, top-p, min-p,
each on what the one before left (renormalised), ties at a threshold are kept.

The recorded log-probability is ``log softmax(logits / temperature)`` of the token over the *whole*
vocabulary, in float32: the distribution that the trainer scores. Where a filter is on, it is
therefore not the (larger) probability that the token had within the filtered set. At temperature 0
(greedy) it is taken at temperature 1.
"""

from __future__ import annotations

import torch
from torch import Tensor

from verigrad.types import Sampling

_BLOCK = 256
_FIRST_TOP_P = 64


def sample_rows(
    logits_BV: Tensor, sampling: Sampling, *, noise_B: Tensor, forced_B: Tensor
) -> tuple[Tensor, Tensor]:
    """Choose one token per row; returns ``(tokens_B int64, logprobs_B float32)``.

    ``noise_B`` holds float64 uniforms in [0, 1). Where ``forced_B`` (int64) is not -1 that token is
    taken and only its log-probability is computed. ``logits_BV`` is float32 and is not written to.
    """
    temperature = sampling.temperature or 1.0
    scaled_BV = logits_BV if temperature == 1.0 else logits_BV / temperature
    top_B1 = scaled_BV.amax(dim=-1, keepdim=True)
    if sampling.temperature == 0:
        weights_BV = (scaled_BV - top_B1).exp_()
        tokens_B = scaled_BV.argmax(dim=-1)
        total_B1 = weights_BV.sum(dim=-1, keepdim=True)
    else:
        weights_BV = (scaled_BV - top_B1).exp_()
        total_B1 = weights_BV.sum(dim=-1, keepdim=True)
        tokens_B = _invert_cdf(_filtered(weights_BV, sampling), noise_B)
    tokens_B = torch.where(forced_B >= 0, forced_B, tokens_B)
    chosen_B1 = scaled_BV.gather(1, tokens_B[:, None])
    logprobs_B = (chosen_B1 - top_B1 - total_B1.log()).squeeze(1)
    return tokens_B, logprobs_B


def _filtered(weights_BV: Tensor, sampling: Sampling) -> Tensor:
    """Zero the weights (1 for the likeliest token) that top-k, top-p or min-p removes."""
    V = weights_BV.shape[-1]
    if 0 < sampling.top_k < V:
        least_B1 = weights_BV.topk(sampling.top_k, dim=-1).values[:, -1:]
        weights_BV = torch.where(weights_BV >= least_B1, weights_BV, 0.0)
    if sampling.top_p < 1.0:
        least_B1 = _nucleus_threshold(weights_BV, sampling.top_p)
        weights_BV = torch.where(weights_BV >= least_B1, weights_BV, 0.0)
    if sampling.min_p > 0.0:
        weights_BV = torch.where(weights_BV >= sampling.min_p, weights_BV, 0.0)
    return weights_BV


def _nucleus_threshold(weights_BV: Tensor, top_p: float) -> Tensor:
    """The weight of the last token of the nucleus: kept while the mass of all likelier ones is < p.

    Looks at the largest 64 weights, and at eight times more until every row's nucleus fits: a sort
    of the whole vocabulary is the worst case, not the rule.
    """
    V = weights_BV.shape[-1]
    wanted_B1 = weights_BV.sum(dim=-1, keepdim=True, dtype=torch.float64) * top_p
    count = min(_FIRST_TOP_P, V)
    while True:
        largest = weights_BV.topk(count, dim=-1).values
        reached = largest.cumsum(dim=-1, dtype=torch.float64)
        if count == V or bool((reached[:, -1:] >= wanted_B1).all()):
            break
        count = min(count * 8, V)
    before = reached - largest.double()
    last_B1 = (before < wanted_B1).sum(dim=-1, keepdim=True).clamp_(min=1) - 1
    return largest.gather(1, last_B1)


def _invert_cdf(weights_BV: Tensor, noise_B: Tensor) -> Tensor:
    """The token at which the running sum of the weights passes ``noise * total``.

    Two levels, block sums and then one block: no running sum over the vocabulary is written.
    """
    B, V = weights_BV.shape
    padded = torch.nn.functional.pad(weights_BV, (0, -V % _BLOCK))
    blocks = padded.view(B, -1, _BLOCK)
    reached = blocks.sum(dim=-1, dtype=torch.float64).cumsum(dim=-1)
    goal_B1 = noise_B[:, None] * reached[:, -1:]
    block_B1 = torch.searchsorted(reached, goal_B1, right=True).clamp_(max=reached.shape[1] - 1)
    row_B = torch.arange(B, device=weights_BV.device)
    inside = blocks[row_B, block_B1[:, 0]].cumsum(dim=-1, dtype=torch.float64)
    before = torch.where(block_B1 > 0, reached.gather(1, (block_B1 - 1).clamp_(min=0)), 0.0)
    # Rounding may put the goal at the very end of the block: the last token with weight takes it.
    last_B1 = torch.searchsorted(inside, inside[:, -1:].contiguous(), right=False)
    place_B1 = torch.searchsorted(inside, (goal_B1 - before).contiguous(), right=True)
    return (block_B1 * _BLOCK + torch.minimum(place_B1, last_B1)).squeeze(1)
