"""The packed decoder of the Llama family: fused projections, one arena, the shared prefix once.

What all prompts of a call begin with is kept once and attended to by all rows together; what
follows lies in an arena with one slot per row. The residual stream is float32 in every precision.

Legend: N tokens, B rows, H heads, K key-value heads, D head size, E hidden size, S arena columns,
V vocabulary, L layers.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from verigrad.rollout.decoder import Prefilled, check_weights
from verigrad.rollout.family import LayerWeights, layer_weights, shape_of
from verigrad.rollout.linear import PackedLinear
from verigrad.rollout.pages import huge_empty
from verigrad.rollout.sample import sample_rows
from verigrad.types import Sampling

Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class PackedLayer:
    """One layer; ``mix`` is silu(gate) * up, the other projections are linear."""

    norm_in: Tensor
    qkv: Any
    q_norm: Tensor | None
    k_norm: Tensor | None
    out: Any
    norm_mid: Tensor
    mix: Any
    down: Any


class PackedDecoder:
    """A Llama-like model in packed form, and the arena its rows live in."""

    def __init__(self, model: nn.Module, *, dtype: torch.dtype) -> None:
        self.shape = shape_of(model)
        self.context = self.shape.context
        self.vocab_size = self.shape.vocab
        self.dtype = dtype
        body: Any = model.model
        self._rotary = copy.deepcopy(body.rotary_emb)
        self._device = body.embed_tokens.weight.device
        state = model.state_dict()
        self._shapes = {name: tuple(tensor.shape) for name, tensor in state.items()}
        self._rope = torch.empty(2, 0, self.shape.head_dim)
        self._arena = torch.empty(0)
        self._prefix = torch.empty(0)
        self._prefix_length = 0
        self._lengths: list[int] = []
        self.load(state)

    def load(self, weights: Mapping[str, Tensor]) -> None:
        optional = {"lm_head.weight"} if self.shape.tied else set()
        check_weights(weights, self._shapes, optional=optional)
        with torch.no_grad():
            self._pack({name: weights[name] for name in self._shapes if name in weights})

    def held(self) -> Mapping[str, Tensor]:
        layers = {
            f"model.layers.{i}.{name}.weight": tensor
            for i, layer in enumerate(self._layers)
            for name, tensor in (
                ("input_layernorm", layer.norm_in), ("post_attention_layernorm", layer.norm_mid),
            )
        }  # fmt: skip
        return {
            "model.embed_tokens.weight": self._embedding, "model.norm.weight": self._norm, **layers
        }  # fmt: skip

    def _pack(self, weights: Mapping[str, Tensor]) -> None:
        table = weights["model.embed_tokens.weight"].detach()
        self._embedding = _copy(table, self.dtype)
        self._norm = _copy(weights["model.norm.weight"], torch.float32)
        head = table if self.shape.tied else weights["lm_head.weight"]
        self._head = self._head_linear(head)
        self._layers = [
            self._pack_layer(layer_weights(weights, i)) for i in range(self.shape.layers)
        ]

    def _linear(self, weight: Tensor, bias: Tensor | None) -> Any:
        return PackedLinear(weight, bias, self.dtype)

    def _head_linear(self, weight: Tensor) -> Any:
        return PackedLinear(weight, None, self.dtype)

    def _gated(self, w: LayerWeights) -> Any:
        both = PackedLinear(w.gate_up, w.gate_up_bias, self.dtype)

        def mix(x: Tensor) -> Tensor:
            gate, up = both(x).chunk(2, dim=-1)
            return nn.functional.silu(gate) * up

        return mix

    def _pack_layer(self, w: LayerWeights) -> PackedLayer:
        return PackedLayer(
            norm_in=_copy(w.norm_in, torch.float32),
            qkv=self._linear(w.qkv, w.qkv_bias),
            q_norm=None if w.q_norm is None else _copy(w.q_norm, torch.float32),
            k_norm=None if w.k_norm is None else _copy(w.k_norm, torch.float32),
            out=self._linear(w.out, w.out_bias),
            norm_mid=_copy(w.norm_mid, torch.float32),
            mix=self._gated(w),
            down=self._linear(w.down, w.down_bias),
        )

    @torch.no_grad()
    def open(self, prefix: Sequence[int], *, rows: int, longest: int) -> None:
        s = self.shape
        self._lengths = []
        if self._rope.shape[1] < longest:
            positions = torch.arange(longest, device=self._device)[None]
            probe = torch.empty(0, dtype=torch.float32, device=self._device)
            self._rope = torch.stack([t[0].float() for t in self._rotary(probe, positions)])
        self._open_arena(rows, longest - len(prefix))
        self._prefix = self._empty((s.layers, 2, s.kv_heads, 0, s.head_dim))
        self._prefix_length = 0
        if prefix:
            done = self.prefill([prefix])[0]
            self._prefix, self._prefix_length = done.cache, done.length

    def _open_arena(self, rows: int, columns: int) -> None:
        s = self.shape
        wanted = (s.layers, 2, rows, s.kv_heads, columns, s.head_dim)
        if self._arena.dim() != 6 or any(
            have < need for have, need in zip(self._arena.shape, wanted, strict=True)
        ):
            # Columns past a row's end have weight 0, and 0 times a stray NaN would still be NaN.
            self._arena = self._empty(wanted).zero_()

    def _empty(self, shape: tuple[int, ...]) -> Tensor:
        if self._device.type == "cpu":
            return huge_empty(shape, self.dtype)
        return torch.empty(shape, dtype=self.dtype, device=self._device)

    @torch.no_grad()
    def prefill(self, prompts: Sequence[Sequence[int]]) -> list[Prefilled]:
        s, before = self.shape, self._prefix_length
        parts = [list(p[before:]) for p in prompts]
        sizes = [len(p) for p in parts]
        ids = torch.tensor([i for p in parts for i in p], device=self._device)
        places = torch.cat([torch.arange(before, before + n) for n in sizes]).to(self._device)
        caches = [self._empty((s.layers, 2, s.kv_heads, n, s.head_dim)) for n in sizes]

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            done = []
            for cache, rows in zip(caches, _spans(sizes), strict=True):
                cache[layer, 0] = k[rows].transpose(0, 1)
                cache[layer, 1] = v[rows].transpose(0, 1)
                done.append(_causal(q[rows], self._prefix[layer], cache[layer]))
            return torch.cat(done)

        x_NE = self._body(ids, places, attend)
        last = torch.tensor(sizes, device=self._device).cumsum(0) - 1
        logits_PV = self._logits(x_NE[last])
        return [
            Prefilled(logits, cache, before + n)
            for logits, cache, n in zip(logits_PV, caches, sizes, strict=True)
        ]

    def admit(self, prompt: Prefilled, count: int) -> None:
        start = len(self._lengths)
        own = prompt.length - self._prefix_length
        self._arena[:, :, start : start + count, :, :own] = prompt.cache[:, :, None]
        self._lengths += [prompt.length] * count

    def keep(self, rows: Sequence[int]) -> None:
        for new, old in enumerate(rows):
            if new != old:
                own = self._lengths[old] - self._prefix_length
                self._arena[:, :, new, :, :own] = self._arena[:, :, old, :, :own]
        self._lengths = [self._lengths[r] for r in rows]

    @torch.no_grad()
    def step(self, tokens: Sequence[int]) -> Tensor:
        B = len(tokens)
        places_B = torch.tensor(self._lengths, device=self._device)
        own_B = places_B - self._prefix_length
        width = int(own_B.max()) + 1
        row_B = torch.arange(B, device=self._device)
        hidden_BS = torch.arange(width, device=self._device) > own_B[:, None]
        mask_BS = torch.zeros(B, width, device=self._device).masked_fill_(hidden_BS, -torch.inf)

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            keys, values = self._arena[layer, 0, :B], self._arena[layer, 1, :B]
            keys[row_B, :, own_B] = k
            values[row_B, :, own_B] = v
            return _attend_rows(
                q, self._prefix[layer], keys[:, :, :width], values[:, :, :width], mask_BS
            )

        ids = torch.tensor(tokens, device=self._device)
        logits = self._logits(self._body(ids, places_B, attend))
        self._lengths = [n + 1 for n in self._lengths]
        return logits

    def sample(
        self, logits_BV: Tensor, sampling: Sampling, *, noise_B: Tensor, forced_B: Tensor
    ) -> tuple[Tensor, Tensor]:
        return sample_rows(logits_BV, sampling, noise_B=noise_B, forced_B=forced_B)

    def _logits(self, x_NE: Tensor) -> Tensor:
        normed = _rms_norm(x_NE, self._norm, self.shape.eps, self.dtype)
        return self._head(normed).float()

    def _body(self, ids_N: Tensor, places_N: Tensor, attend: Attend) -> Tensor:
        """All layers on N tokens; the residual stream, float32, of shape (N, E)."""
        s = self.shape
        x_NE = self._embedding[ids_N].float()
        cos, sin = self._rope[:, places_N].unsqueeze(2)
        heads = (s.heads, s.kv_heads, s.kv_heads)
        for index, layer in enumerate(self._layers):
            normed = _rms_norm(x_NE, layer.norm_in, s.eps, self.dtype)
            qkv = layer.qkv(normed).view(len(ids_N), sum(heads), s.head_dim)
            q, k, v = qkv.split(heads, dim=1)
            if layer.q_norm is not None and layer.k_norm is not None:
                q = _rms_norm(q.float(), layer.q_norm, s.eps, self.dtype)
                k = _rms_norm(k.float(), layer.k_norm, s.eps, self.dtype)
            q, k = _rotate(q, cos, sin), _rotate(k, cos, sin)
            x_NE = x_NE + layer.out(attend(index, q, k, v).reshape(len(ids_N), -1))
            normed = _rms_norm(x_NE, layer.norm_mid, s.eps, self.dtype)
            x_NE = x_NE + layer.down(layer.mix(normed))
        return x_NE


def _copy(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    return tensor.detach().to(dtype, copy=True).contiguous()


def _spans(sizes: Sequence[int]) -> list[slice]:
    spans, start = [], 0
    for size in sizes:
        spans.append(slice(start, start + size))
        start += size
    return spans


def _rms_norm(x: Tensor, weight: Tensor, eps: float, dtype: torch.dtype) -> Tensor:
    scale = torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    return (x * scale * weight).to(dtype)


def _rotate(x_NHD: Tensor, cos_N1D: Tensor, sin_N1D: Tensor) -> Tensor:
    """Rotary embedding (Su et al. 2021, eq. 34) with halves instead of pairs, as Llama has it."""
    x = x_NHD.float()
    low, high = x.chunk(2, dim=-1)
    return (x * cos_N1D + torch.cat((-high, low), dim=-1) * sin_N1D).to(x_NHD.dtype)


def _causal(q_NHD: Tensor, prefix: Tensor, own: Tensor) -> Tensor:
    """Attention of one prompt's tokens to the prefix (2, K, P, D) and causally to their own."""
    N, H, _ = q_NHD.shape
    keys, values = torch.cat([prefix, own], dim=2)
    before = prefix.shape[2]
    mask = torch.ones(N, before + N, dtype=torch.bool, device=q_NHD.device).tril_(before)
    repeat = H // keys.shape[0]
    out = nn.functional.scaled_dot_product_attention(
        q_NHD.transpose(0, 1)[None],
        keys.repeat_interleave(repeat, 0)[None],
        values.repeat_interleave(repeat, 0)[None],
        attn_mask=mask,
    )
    return out[0].transpose(0, 1)


def _attend_rows(
    q_BHD: Tensor, prefix: Tensor, keys_BKSD: Tensor, values_BKSD: Tensor, mask_BS: Tensor
) -> Tensor:
    """One query per row: to the shared prefix in one product, to the row's own slot in another.

    The query heads of a key-value head are rows of its product, so keys are never repeated; one
    softmax, in float32, runs over both parts.
    """
    B, H, D = q_BHD.shape
    K = keys_BKSD.shape[1]
    G, P = H // K, prefix.shape[2]
    q = q_BHD.view(B, K, G, D) * D**-0.5
    own = (q @ keys_BKSD.transpose(2, 3)).float() + mask_BS[:, None, None]
    if P == 0:
        return (own.softmax(-1).to(q.dtype) @ values_BKSD).view(B, H, D)
    q_shared = q.transpose(0, 1).reshape(K, B * G, D)
    shared = (q_shared @ prefix[0].transpose(1, 2)).view(K, B, G, P).transpose(0, 1).float()
    weights = torch.cat([shared, own], dim=-1).softmax(-1).to(q.dtype)
    w_shared = weights[..., :P].transpose(0, 1).reshape(K, B * G, P)
    out_shared = (w_shared @ prefix[1]).view(K, B, G, D).transpose(0, 1)
    return (weights[..., P:] @ values_BKSD + out_shared).view(B, H, D)
