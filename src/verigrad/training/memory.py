"""A simple memory plan: keep activations where they fit, compute them again where they don't.

The numbers are bytes; they count what the graph of one packed micro-batch keeps between forward
and backward.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

from verigrad.training.backbone import Parts
from verigrad.training.llama import is_llama_like
from verigrad.training.packing import Layout

SHARE = 0.5
"""Share of the free memory that the graph may take; gradients, tiles and the head need the rest."""


def kept_bytes(parts: Parts, num_tokens: int, dtype: torch.dtype) -> int:
    """Bytes that the graph of ``num_tokens`` packed tokens keeps when nothing is computed again.

    A Llama-like layer keeps two float32 residual streams and, in the compute dtype, two normed
    inputs, queries, keys, values, the attention output, gate, up and their product; other models'
    own modules keep about three times that.
    """
    config: Any = parts.backbone.config
    hidden = config.hidden_size
    heads = config.num_attention_heads
    size = getattr(config, "head_dim", None) or hidden // heads
    keys = getattr(config, "num_key_value_heads", None) or heads
    inner = getattr(config, "intermediate_size", None) or 4 * hidden
    narrow = 2 * hidden + size * (2 * heads + 2 * keys) + 3 * inner
    a_layer = 2 * 4 * hidden + (2 if dtype is torch.bfloat16 else 4) * narrow
    factor = 1 if is_llama_like(parts.backbone) else 3
    return factor * num_tokens * config.num_hidden_layers * a_layer


def free_bytes(device: torch.device) -> int:
    """Memory that can still be taken: of the GPU, or of the machine or its cgroup."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    free = _meminfo()
    limit, used = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
    if limit.exists() and used.exists():
        text = limit.read_text().strip()
        if text != "max":
            free = min(free, max(0, int(text) - int(used.read_text())))
    return free


def _meminfo() -> int:
    file = Path("/proc/meminfo")
    if file.exists():
        for line in file.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    # Without /proc (macOS) half of the machine's memory is a careful guess.
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def needs_recompute(parts: Parts, layout: Layout, dtype: torch.dtype) -> bool:
    """True where the graph of this micro-batch would take more than half of the free memory."""
    if not torch.is_grad_enabled():
        return False
    kept = kept_bytes(parts, len(layout.ids_N), dtype)
    return kept > SHARE * free_bytes(layout.ids_N.device)
