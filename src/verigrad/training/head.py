"""Output projection, log-softmax and entropy, a tile of tokens at a time.

Shape legend: M scored tokens, V vocabulary, E hidden size.

Logits live for one tile only: forward keeps the log-sum-exp of each token and backward computes
the tile's logits again. Memory is therefore one tile and, where the projection is trained, its
gradient; it does not grow with M x V. A frozen projection (LoRA) needs no second look at the
logits: forward keeps ``d logprob / d hidden`` instead, M x E. Sums over the vocabulary and log-
probabilities are float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

TILE_LOGITS = 16_000_000
"""Logits that one tile holds at most (64 MB in float32)."""


@dataclass(frozen=True)
class HeadShape:
    """How logits are made from the projection: ``cap * tanh(scale * z / cap) / temperature``."""

    scale: float = 1.0
    softcap: float | None = None
    temperature: float = 1.0


def score_tokens(
    hidden_ME: Tensor, weight_VE: Tensor, bias_V: Tensor | None, targets_M: Tensor,
    *, shape: HeadShape, backward_dtype: torch.dtype = torch.float32,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return ``(logprobs_M, entropy_M)`` of ``softmax(logits / temperature)``, float32, nats.

    The log-probability is differentiable in hidden, weight and bias; the entropy is not. Scores
    are always made in float32; the matrix products of the backward pass use ``backward_dtype``.
    """
    with torch.autocast(hidden_ME.device.type, enabled=False):
        return _Head.apply(hidden_ME, weight_VE, bias_V, targets_M, shape, backward_dtype)


def tile_rows(vocabulary: int) -> int:
    """Tokens in one tile."""
    return max(16, TILE_LOGITS // vocabulary)


def _logits(hidden: Tensor, weight: Tensor, bias: Tensor | None, shape: HeadShape) -> Tensor:
    """One tile's logits before the temperature, float32."""
    logits = hidden @ weight.T if bias is None else torch.addmm(bias, hidden, weight.T)
    if shape.scale != 1.0:
        logits.mul_(shape.scale)
    if shape.softcap is not None:
        logits.div_(shape.softcap).tanh_().mul_(shape.softcap)
    return logits


def _logit_gradient(
    p: Tensor, logits: Tensor | None, targets: Tensor, grad: Tensor, shape: HeadShape
) -> Tensor:
    """Turn probabilities, in place, into the gradient with respect to the projection's output."""
    p.mul_(-grad[:, None])
    p[torch.arange(len(targets), device=p.device), targets] += grad
    if shape.softcap is not None:
        assert logits is not None
        p.mul_(1 - (logits / shape.softcap).square_())
    factor = shape.scale / shape.temperature
    return p if factor == 1.0 else p.mul_(factor)


class _Head(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor,
        shape: HeadShape, backward_dtype: torch.dtype,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        w = weight.float()
        b = None if bias is None else bias.float()
        M = hidden.shape[0]
        logprobs = torch.empty(M, dtype=torch.float32, device=hidden.device)
        entropy, lse = torch.empty_like(logprobs), torch.empty_like(logprobs)
        needs_hidden, needs_weight, needs_bias = ctx.needs_input_grad[:3]
        frozen = needs_hidden and not needs_weight and not needs_bias
        slope = torch.empty(hidden.shape, device=hidden.device) if frozen else None
        step = tile_rows(weight.shape[0])
        for i in range(0, M, step):
            rows = slice(i, min(M, i + step))
            raw = _logits(hidden[rows].float(), w, b, shape)
            logits = raw if shape.temperature == 1.0 else raw / shape.temperature
            top = logits.amax(-1, keepdim=True)
            p = (logits - top).exp_()
            total = p.sum(-1)
            lse[rows] = top[:, 0] + total.log()
            logprobs[rows] = logits.gather(1, targets[rows, None])[:, 0] - lse[rows]
            mean = torch.bmm(p[:, None, :], logits[:, :, None])[:, 0, 0] / total
            entropy[rows] = lse[rows] - mean
            if slope is not None:
                p.div_(total[:, None])
                ones = torch.ones_like(total)
                slope[rows] = _logit_gradient(p, raw, targets[rows], ones, shape) @ w
        ctx.shape, ctx.step, ctx.product = shape, step, backward_dtype
        if slope is not None:
            ctx.save_for_backward(slope)
        else:
            ctx.save_for_backward(hidden, weight, bias, targets, lse, logprobs)
        ctx.frozen, ctx.dtype = frozen, hidden.dtype
        ctx.mark_non_differentiable(entropy)
        return logprobs, entropy

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad = grads[0].float()
        if ctx.frozen:
            (slope,) = ctx.saved_tensors
            return (slope * grad[:, None]).to(ctx.dtype), None, None, None, None, None
        hidden, weight, bias, targets, lse, logprobs = ctx.saved_tensors
        shape: HeadShape = ctx.shape
        w = weight.to(ctx.product)
        b = None if bias is None else bias.to(ctx.product)
        dhidden = torch.empty_like(hidden) if ctx.needs_input_grad[0] else None
        dw = torch.zeros(weight.shape, device=hidden.device) if ctx.needs_input_grad[1] else None
        db = None if bias is None else torch.zeros(bias.shape, device=hidden.device)
        for i in range(0, hidden.shape[0], ctx.step):
            rows = slice(i, min(hidden.shape[0], i + ctx.step))
            h = hidden[rows].to(ctx.product)
            raw = _logits(h, w, b, shape).float()
            kept = raw.clone() if shape.softcap is not None else None
            p = raw if shape.temperature == 1.0 else raw.div_(shape.temperature)
            p.sub_(lse[rows, None]).exp_()
            # The token's own probability is known exactly, whatever the product was computed in.
            p.scatter_(1, targets[rows, None], logprobs[rows, None].exp())
            dz = _logit_gradient(p, kept, targets[rows], grad[rows], shape)
            if db is not None:
                db += dz.sum(0)
            dz = dz.to(ctx.product)
            if dhidden is not None:
                dhidden[rows] = (dz @ w).to(dhidden.dtype)
            if dw is not None and dz.dtype is torch.float32:
                dw.addmm_(dz.T, h)
            elif dw is not None:
                dw += dz.T @ h
        return dhidden, None if dw is None else dw.to(weight.dtype), db, None, None, None
