"""Huge pages for memory that is streamed once per token: packed weights and the cache arena."""

from __future__ import annotations

import ctypes
import mmap
import sys

import torch
from torch import Tensor

_HUGE = 2 * 1024 * 1024


def huge_empty(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """An uninitialised CPU tensor, aligned to 2 MiB, with huge pages asked for where possible.

    Asking is advice: a kernel without transparent huge pages gives ordinary ones, and nothing else
    changes. Small tensors come from torch as usual.
    """
    count = 1
    for size in shape:
        count *= size
    size = count * dtype.itemsize
    if size < _HUGE or not sys.platform.startswith("linux"):
        return torch.empty(shape, dtype=dtype)
    raw = torch.empty(size + _HUGE, dtype=torch.uint8)
    start = -raw.data_ptr() % _HUGE
    aligned = raw[start : start + size]
    _advise(aligned.data_ptr(), size)
    return aligned.view(dtype).view(shape)


def _advise(address: int, size: int) -> None:
    advice = getattr(mmap, "MADV_HUGEPAGE", None)
    if advice is not None:
        libc = ctypes.CDLL(None)
        libc.madvise(ctypes.c_void_p(address), ctypes.c_size_t(size), ctypes.c_int(advice))
