"""A linear layer whose weight is laid out for the matrix library, once per load.

On a CPU the weight is reordered for oneDNN (bf16 and fp32), elsewhere it stays as it is.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

_HINT_ROWS = 64


class PackedLinear:
    """``x_BK -> x_BK @ weight_NK.T + bias_N`` in ``dtype``."""

    def __init__(self, weight_NK: Tensor, bias_N: Tensor | None, dtype: torch.dtype) -> None:
        weight = weight_NK.detach().to(dtype).contiguous()
        self._bias = None if bias_N is None else bias_N.detach().to(dtype)
        self._packed = weight.device.type == "cpu" and _can_pack(dtype)
        if self._packed:
            weight = torch.ops.mkldnn._reorder_linear_weight(weight, _HINT_ROWS)
        elif weight.data_ptr() == weight_NK.data_ptr():
            weight = weight.clone()
        self._weight = weight

    def __call__(self, x: Tensor) -> Tensor:
        if self._packed:
            return torch.ops.mkldnn._linear_pointwise(x, self._weight, self._bias, "none", [], "")
        return nn.functional.linear(x, self._weight, self._bias)


def _can_pack(dtype: torch.dtype) -> bool:
    """Whether this torch has oneDNN's prepacked linear, which is no public operator, and this CPU
    runs it in ``dtype``: bf16 needs AVX-512 or better, and raises elsewhere."""
    if not torch.backends.mkldnn.is_available():
        return False
    if not hasattr(torch.ops.mkldnn, "_reorder_linear_weight"):
        return False
    return dtype != torch.bfloat16 or torch.ops.mkldnn._is_mkldnn_bf16_supported()
