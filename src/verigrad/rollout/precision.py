"""Which precision is faster here: measured on the model's own shapes in under a second."""

from __future__ import annotations

import time
from typing import Any, Literal

import torch
from torch import Tensor

from verigrad.rollout.linear import PackedLinear

DECODE_ROWS, TRAIN_ROWS = 32, 512
_SECONDS = 0.8
_WIDEST = 4096


def measure_precision(config: Any) -> tuple[Literal["fp32", "bf16"], str]:
    """The faster of fp32 and bf16 for this model on the CPU, and one sentence why.

    Times the up-projection of a ``config`` (Hugging Face; its ``hidden_size`` and
    ``intermediate_size``, each capped at 4096) as decoding sees it, 32 rows by packed weights, and
    as training sees it, 512 rows forward and backward. bf16 must be at least 1.1 times as fast over
    both, or fp32, which is exact, is kept. Returns within about a second.
    """
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    width = min(int(text.hidden_size), _WIDEST)
    inner = min(int(getattr(text, "intermediate_size", None) or 4 * width), _WIDEST)
    timed = {
        dtype: (_Decode(width, inner, dtype), _Train(width, inner, dtype))
        for dtype in (torch.float32, torch.bfloat16)
    }
    best = {dtype: [float("inf")] * 2 for dtype in timed}
    start = time.perf_counter()
    rounds = 0
    # Interleaved minima: a busy neighbour slows both sides or is not counted.
    while rounds < 2 or (time.perf_counter() - start < _SECONDS and rounds < 20):
        for dtype, works in timed.items():
            for i, work in enumerate(works):
                began = time.perf_counter()
                work()
                if rounds:
                    best[dtype][i] = min(best[dtype][i], time.perf_counter() - began)
        rounds += 1
    return _verdict(best[torch.float32], best[torch.bfloat16])


def _verdict(fp32: list[float], bf16: list[float]) -> tuple[Literal["fp32", "bf16"], str]:
    decode, train = (a / b for a, b in zip(fp32, bf16, strict=True))
    speed = (decode * train) ** 0.5
    measured = f"bf16 runs {decode:.1f}x fp32 in decoding and {train:.1f}x in training here"
    if speed >= 1.1:
        return "bf16", f"{measured}; master weights stay fp32"
    return "fp32", f"{measured}, which is not worth its rounding"


class _Decode:
    def __init__(self, width: int, inner: int, dtype: torch.dtype) -> None:
        self._linear = PackedLinear(torch.full((inner, width), 0.01), None, dtype)
        self._x = torch.ones(DECODE_ROWS, width, dtype=dtype)

    def __call__(self) -> Tensor:
        with torch.no_grad():
            return self._linear(self._x)


class _Train:
    def __init__(self, width: int, inner: int, dtype: torch.dtype) -> None:
        self._weight = torch.full((inner, width), 0.01, dtype=dtype, requires_grad=True)
        self._x = torch.ones(TRAIN_ROWS, width, dtype=dtype)

    def __call__(self) -> None:
        with torch.enable_grad():
            out = torch.nn.functional.linear(self._x, self._weight)
            torch.autograd.grad(out, self._weight, torch.ones_like(out))
