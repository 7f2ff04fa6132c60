"""The small operators between matrix products, each with its own backward pass.

Shape legend: N packed tokens, E features, H query heads, K key heads, D head size.

Written out for autograd, a norm, a rotation or a gate keeps several copies of its input. Here each
keeps its input once and computes the rest again. The residual stream is float32; products take
and give the compute dtype.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from verigrad.training.attention import Scoring, attend, attend_backward
from verigrad.training.packing import Family

_copies: WeakTensorKeyDictionary = WeakTensorKeyDictionary()


def low_precision(master: Tensor, dtype: torch.dtype) -> Tensor:
    """A copy of a weight in the compute dtype; on a CPU kept until the weight changes.

    A write through ``.data`` leaves the version counter as it was, so some values are compared too.
    On a GPU a fresh copy costs less than that comparison.
    """
    weight = master.detach()
    if weight.dtype is dtype:
        return weight
    if weight.device.type != "cpu":
        return weight.to(dtype)
    mark = (master._version, master.data_ptr(), dtype)
    sample = weight.view(-1)[:: max(1, weight.numel() // 61)] if weight.is_contiguous() else weight
    known = _copies.get(master)
    if known is None or known[0] != mark or not torch.equal(known[1], sample):
        # A copy made in inference mode could not be kept for a backward pass later.
        with torch.inference_mode(False):
            known = (mark, sample.clone(), master.detach().to(dtype))
        _copies[master] = known
    return known[2]


def linear(x: Tensor, weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> Tensor:
    """``x W^T + b`` in ``dtype`` from master weights; gradients have the masters' dtype."""
    if weight.dtype is dtype:
        return F.linear(x.to(dtype), weight, bias)
    return _Linear.apply(x.to(dtype), weight, bias, dtype)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, dtype: torch.dtype
    ) -> Tensor:
        w = low_precision(weight, dtype)
        ctx.save_for_backward(x if ctx.needs_input_grad[1] else None, w)
        ctx.master = weight.dtype
        return F.linear(x, w, None if bias is None else bias.to(dtype))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, w = ctx.saved_tensors
        dy = grads[0]
        dx = dy @ w if ctx.needs_input_grad[0] else None
        dw = (dy.T @ x).to(ctx.master) if ctx.needs_input_grad[1] else None
        db = dy.sum(0, dtype=torch.float32).to(ctx.master) if ctx.needs_input_grad[2] else None
        return dx, dw, db, None


def rms_norm(x: Tensor, weight: Tensor, eps: float, dtype: torch.dtype) -> Tensor:
    """``weight * x / sqrt(mean(x^2) + eps)`` over the last axis, made in float32."""
    return _RmsNorm.apply(x, weight, eps, dtype)


class _RmsNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float, dtype: torch.dtype) -> Tensor:
        wide = x.float()
        size = torch.linalg.vector_norm(wide, dim=-1, keepdim=True)
        scale = (size.square_() / x.shape[-1] + eps).rsqrt_()
        ctx.save_for_backward(x, weight, scale)
        return (wide * scale).mul_(weight).to(dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, scale = ctx.saved_tensors
        dy = grads[0].float()
        unit = x.float() * scale
        slope = dy * unit
        dw = slope.flatten(0, -2).sum(0) if ctx.needs_input_grad[1] else None
        mean = (slope @ weight.float())[..., None] / x.shape[-1]
        dx = (dy * weight).sub_(unit.mul_(mean)).mul_(scale)
        return dx.to(x.dtype), dw, None, None


def gate(g: Tensor, u: Tensor) -> Tensor:
    """``silu(g) * u``."""
    return _Gate.apply(g, u)


class _Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, g: Tensor, u: Tensor) -> Tensor:
        ctx.save_for_backward(g, u)
        return F.silu(g).mul_(u)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        g, u = ctx.saved_tensors
        dy = grads[0]
        return torch.ops.aten.silu_backward(dy * u, g), F.silu(g).mul_(dy)


def rotate(x_NHD: Tensor, cos_ND: Tensor, sin_ND: Tensor, *, back: bool = False) -> Tensor:
    """Rotary position embedding, halves of a head paired, float32; ``back`` rotates the other way.

    A rotation's transpose is its inverse, so ``back`` is also the backward pass.
    """
    half = x_NHD.shape[-1] // 2
    x = x_NHD.float()
    out = x * cos_ND[:, None]
    sin = sin_ND[:, None]
    lower, upper = out[..., :half], out[..., half:]
    sign = -1.0 if back else 1.0
    lower.addcmul_(x[..., half:], sin[..., half:] if back else sin[..., :half], value=-sign)
    upper.addcmul_(x[..., :half], sin[..., :half] if back else sin[..., half:], value=sign)
    return out


def rotary_tree_attention(
    q_NHD: Tensor, k_NKD: Tensor, v_NKD: Tensor, cos_ND: Tensor, sin_ND: Tensor,
    *, families: tuple[Family, ...], positions_N: Tensor, scoring: Scoring,
) -> Tensor:  # fmt: skip
    """Rotate queries and keys, then attend over the tree; keeps what came before rotation."""
    return _RotaryTree.apply(q_NHD, k_NKD, v_NKD, cos_ND, sin_ND, families, positions_N, scoring)


class _RotaryTree(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, cos: Tensor, sin: Tensor,
        families: tuple[Family, ...], positions: Tensor, how: Scoring,
    ) -> Tensor:  # fmt: skip
        out, lse = attend(rotate(q, cos, sin), rotate(k, cos, sin), v, families, positions, how)
        ctx.save_for_backward(q, k, v, cos, sin, out, lse, positions)
        ctx.families, ctx.how = families, how
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, cos, sin, out, lse, positions = ctx.saved_tensors
        dq, dk, dv = attend_backward(
            grads[0], rotate(q, cos, sin), rotate(k, cos, sin), v, out, lse,
            ctx.families, positions, ctx.how,
        )  # fmt: skip
        dq = rotate(dq, cos, sin, back=True).to(q.dtype)
        dk = rotate(dk, cos, sin, back=True).to(k.dtype)
        return dq, dk, dv.to(v.dtype), None, None, None, None, None
