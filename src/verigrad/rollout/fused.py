"""The packed decoder with its decoding step in one compiled call (fused.cpp).

Prefill stays in torch, on the same packed weights. Keys lie as [units of D][columns], so that the
scores of 32 columns are summed side by side; values lie as [columns][D].
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from verigrad.rollout.compiled import Kernels, has_amx, kernels
from verigrad.rollout.decoder import Prefilled
from verigrad.rollout.family import LayerWeights, Shape
from verigrad.rollout.packed import PackedDecoder, PackedLayer
from verigrad.rollout.pages import huge_empty
from verigrad.types import Sampling

_PANEL = 32
_FLOATS, _SAME, _GATED = 0, 1, 2


def fused_kernels(shape: Shape, dtype: torch.dtype, device: torch.device) -> Kernels | str:
    """The kernels if they can run this shape here, else one sentence why not."""
    if device.type != "cpu":
        return "the compiled kernels run on a CPU only"
    if shape.hidden % 32 or shape.inner % 16 or shape.head_dim % 16 or shape.head_dim > 256:
        return "sizes are no multiples of the vector width (hidden 32, inner and head 16)"
    if (shape.heads + 2 * shape.kv_heads) * shape.head_dim % 32:
        return "the stacked projection is no multiple of 32 columns"
    if dtype == torch.bfloat16 and has_amx():
        return "this processor has AMX, which oneDNN uses"
    found = kernels()
    if isinstance(found, Kernels) and dtype == torch.bfloat16 and not found.bf16:
        return "this processor has no AVX512_BF16"
    return found


class FusedLinear:
    """``x_BK -> x_BK @ weight_NK.T + bias_N`` on weights in panels of 32 columns."""

    def __init__(
        self, kernel: Kernels, weight_NK: Tensor, bias_N: Tensor | None, dtype: torch.dtype,
        *, kind: int = _SAME,
    ) -> None:  # fmt: skip
        self._library, self._kind, self._dtype = kernel.library, kind, dtype
        self.columns, self.inner = weight_NK.shape
        self.wide = -(-self.columns // _PANEL) * _PANEL
        source = weight_NK.detach().to(dtype).contiguous()
        self.panels = huge_empty((self.wide * self.inner,), dtype)
        units = self.inner * dtype.itemsize // 4
        self._library.pack_panels(
            _at(source), self.columns, units, _at(self.panels), torch.get_num_threads()
        )
        self.bias = None
        if bias_N is not None:
            padding = (0, self.wide - self.columns)
            self.bias = nn.functional.pad(bias_N.detach().float(), padding).contiguous()

    def __call__(self, x_BK: Tensor) -> Tensor:
        x = x_BK.contiguous()
        wide = self.wide // 2 if self._kind == _GATED else self.wide
        dtype = torch.float32 if self._kind == _FLOATS else self._dtype
        out = torch.empty(len(x), wide, dtype=dtype)
        self._library.packed_linear(
            _at(x), len(x), self.columns, self.inner, _at(self.panels), _at(self.bias),
            self._kind, int(self._dtype == torch.bfloat16), _at(out), torch.get_num_threads(),
        )  # fmt: skip
        return out if self._kind == _GATED else out[:, : self.columns]


def interleaved(gate_up: Tensor) -> Tensor:
    """Rows of gate and up in turns of 16: a panel holds both halves of the same 16 channels."""
    gate, up = gate_up.chunk(2)
    turns = torch.stack([gate.unflatten(0, (-1, 16)), up.unflatten(0, (-1, 16))], dim=1)
    return turns.flatten(0, 2)


class _CLayer(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_void_p)
        for name in (
            "norm_in", "qkv", "qkv_bias", "q_norm", "k_norm", "out", "out_bias",
            "norm_mid", "gate_up", "gate_up_bias", "down", "down_bias",
        )
    ]  # fmt: skip


class _CModel(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("layer", "norm", "head", "cos", "sin")),
        *(
            (name, ctypes.c_int)
            for name in (
                "layers", "hidden", "inner", "heads", "kv_heads", "head_dim", "vocab", "brain",
            )
        ),
        ("eps", ctypes.c_float),
    ]  # fmt: skip


class _CCache(ctypes.Structure):
    _fields_ = [
        *((n, ctypes.c_void_p) for n in ("keys", "values", "prefix_keys", "prefix_values")),
        *((n, ctypes.c_int) for n in ("rows", "columns", "prefix_columns", "prefix_length")),
    ]


class _CSpace(ctypes.Structure):
    _fields_ = [
        *(
            (name, ctypes.c_void_p)
            for name in ("x", "qkv", "logits", "normed", "mixed", "act", "own")
        ),
        *((name, ctypes.c_int) for name in ("count", "logits_columns", "threads")),
    ]


class FusedDecoder(PackedDecoder):
    """A packed decoder whose ``step`` is one call into the compiled library."""

    def __init__(self, model: nn.Module, *, dtype: torch.dtype, kernel: Kernels) -> None:
        self._kernel = kernel
        self._keys = self._values = torch.empty(0)
        super().__init__(model, dtype=dtype)

    def _linear(self, weight: Tensor, bias: Tensor | None) -> FusedLinear:
        return FusedLinear(self._kernel, weight, bias, self.dtype)

    def _head_linear(self, weight: Tensor) -> FusedLinear:
        return FusedLinear(self._kernel, weight, None, self.dtype, kind=_FLOATS)

    def _gated(self, w: LayerWeights) -> FusedLinear:
        bias = None if w.gate_up_bias is None else interleaved(w.gate_up_bias[:, None])[:, 0]
        return FusedLinear(self._kernel, interleaved(w.gate_up), bias, self.dtype, kind=_GATED)

    def open(self, prefix: Sequence[int], *, rows: int, longest: int) -> None:
        super().open(prefix, rows=rows, longest=longest)
        s = self.shape
        columns = _round_up(longest - len(prefix), 32)
        wanted = (s.layers, rows, s.kv_heads, s.head_dim // self._pack_size, columns)
        if self._keys.dim() != 5 or any(
            have < need for have, need in zip(self._keys.shape, wanted, strict=True)
        ):
            self._keys = huge_empty(wanted, torch.int32).zero_()
            shape = (s.layers, rows, s.kv_heads, columns, s.head_dim)
            self._values = huge_empty(shape, self.dtype).zero_()
        length = self._prefix_length
        self._prefix_keys = torch.zeros(
            s.layers, s.kv_heads, wanted[3], _round_up(length, 32) or 32, dtype=torch.int32
        )
        self._prefix_keys[..., :length] = self._units(self._prefix[:, 0])
        self._prefix_values = nn.functional.pad(
            self._prefix[:, 1], (0, 0, 0, self._prefix_keys.shape[3] - length)
        ).contiguous()
        self._make_space(rows)

    def _open_arena(self, rows: int, columns: int) -> None:
        """The arena of the torch path is not needed."""

    @property
    def _pack_size(self) -> int:
        return 4 // self.dtype.itemsize

    def _units(self, keys: Tensor) -> Tensor:
        """[..., n, D] in the engine's precision -> [..., units of D, n] of 32 bits."""
        return keys.contiguous().view(torch.int32).transpose(-1, -2)

    def admit(self, prompt: Prefilled, count: int) -> None:
        rows = slice(len(self._lengths), len(self._lengths) + count)
        own = prompt.length - self._prefix_length
        self._keys[:, rows, :, :, :own] = self._units(prompt.cache[:, 0])[:, None]
        self._values[:, rows, :, :own] = prompt.cache[:, 1][:, None]
        self._lengths += [prompt.length] * count

    def keep(self, rows: Sequence[int]) -> None:
        for new, old in enumerate(rows):
            if new != old:
                own = self._lengths[old] - self._prefix_length
                self._keys[:, new, :, :, :own] = self._keys[:, old, :, :, :own]
                self._values[:, new, :, :own] = self._values[:, old, :, :own]
        self._lengths = [self._lengths[r] for r in rows]

    def step(self, tokens: Sequence[int]) -> Tensor:
        B = len(tokens)
        own = torch.tensor(self._lengths, dtype=torch.int32) - self._prefix_length
        self._space["x"][:B] = self._embedding[torch.tensor(tokens)]
        # A fresh block each step: the caller may still hold the last one.
        logits = torch.empty(B, self._head.wide)
        space = _CSpace(
            *(_at(t) for t in (self._space["x"], self._space["qkv"], logits)),
            *(_at(self._space[n]) for n in ("normed", "mixed", "act")),
            _at(own), B, self._head.wide, torch.get_num_threads(),
        )  # fmt: skip
        model, cache = self._c_model(), self._c_cache()
        self._kernel.library.decode_step(
            ctypes.byref(model), ctypes.byref(cache), ctypes.byref(space)
        )
        self._lengths = [n + 1 for n in self._lengths]
        return logits[:, : self.vocab_size]

    def sample(
        self, logits_BV: Tensor, sampling: Sampling, *, noise_B: Tensor, forced_B: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Inverse-CDF sampling in two passes over the logits; filters are left to torch."""
        if sampling.top_p < 1 or sampling.top_k or sampling.min_p:
            return super().sample(logits_BV, sampling, noise_B=noise_B, forced_B=forced_B)
        B, V = logits_BV.shape
        if logits_BV.stride(1) != 1:
            logits_BV = logits_BV.contiguous()
        tokens, logprobs = torch.empty(B, dtype=torch.int64), torch.empty(B)
        self._kernel.library.sample_tokens(
            _at(logits_BV), B, V, ctypes.c_long(logits_BV.stride(0)),
            ctypes.c_float(1.0 / (sampling.temperature or 1.0)), int(sampling.temperature == 0),
            _at(noise_B), _at(forced_B), _at(tokens), _at(logprobs), torch.get_num_threads(),
        )  # fmt: skip
        return tokens, logprobs

    def _make_space(self, rows: int) -> None:
        s = self.shape
        mixed = s.heads * s.head_dim
        self._space = {
            "x": torch.empty(rows, s.hidden),
            "qkv": torch.empty(rows, mixed + 2 * s.kv_heads * s.head_dim),
            "normed": torch.empty(rows, s.hidden, dtype=self.dtype),
            "mixed": torch.empty(rows, mixed, dtype=self.dtype),
            "act": torch.empty(rows, s.inner, dtype=self.dtype),
        }

    def _c_model(self) -> _CModel:
        s = self.shape
        layers = (_CLayer * s.layers)(*(_c_layer(layer) for layer in self._layers))
        model = _CModel(
            ctypes.addressof(layers), _at(self._norm), _at(self._head.panels),
            _at(self._rope[0]), _at(self._rope[1]), s.layers, s.hidden, s.inner, s.heads,
            s.kv_heads, s.head_dim, s.vocab, int(self.dtype == torch.bfloat16), s.eps,
        )  # fmt: skip
        model.kept = layers  # the structure holds only their address
        return model

    def _c_cache(self) -> _CCache:
        return _CCache(
            _at(self._keys), _at(self._values), _at(self._prefix_keys), _at(self._prefix_values),
            self._keys.shape[1], self._keys.shape[4], self._prefix_keys.shape[3],
            self._prefix_length,
        )  # fmt: skip


def _c_layer(layer: PackedLayer) -> _CLayer:
    parts: list[Any] = [
        layer.norm_in, layer.qkv.panels, layer.qkv.bias, layer.q_norm, layer.k_norm,
        layer.out.panels, layer.out.bias, layer.norm_mid, layer.mix.panels, layer.mix.bias,
        layer.down.panels, layer.down.bias,
    ]  # fmt: skip
    return _CLayer(*(_at(p) for p in parts))


def _at(tensor: Tensor | None) -> ctypes.c_void_p:
    """A pointer to the first element; null for None."""
    return ctypes.c_void_p(None if tensor is None else tensor.data_ptr())


def _round_up(number: int, to: int) -> int:
    return -(-number // to) * to
