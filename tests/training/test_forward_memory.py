"""The memory plan: what it counts, and when it says no."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
from update_models import make, rows

from verigrad.training import memory
from verigrad.training.backbone import Parts, take_apart
from verigrad.training.packing import pack


def _parts(family: str) -> Parts:
    parts = take_apart(make(family))
    assert isinstance(parts, Parts)
    return parts


def test_kept_bytes_by_hand() -> None:
    # 3 layers, hidden 48, 4 heads and 2 key heads of 12, inner 80:
    # narrow = 2*48 + 12 * (8 + 4) + 3*80 = 480; residuals 2 * 4 * 48 = 384 bytes
    assert memory.kept_bytes(_parts("llama"), 10, torch.float32) == 10 * 3 * (384 + 4 * 480)
    assert memory.kept_bytes(_parts("llama"), 10, torch.bfloat16) == 10 * 3 * (384 + 2 * 480)


def test_kept_bytes_cover_what_the_graph_keeps() -> None:
    """Count every distinct storage that autograd saves, parameters and indices aside."""
    parts = _parts("llama")
    layout = pack(*rows(3, common=10)[:2], group_index=rows(3, common=10)[2])
    seen: dict[int, int] = {}
    own = {p.untyped_storage().data_ptr() for p in parts.causal.parameters()}

    def note(x: torch.Tensor) -> torch.Tensor:
        storage = x.untyped_storage()
        if storage.data_ptr() not in own and x.is_floating_point():
            seen[storage.data_ptr()] = storage.nbytes()
        return x

    from verigrad.training.backbone import hidden_states

    with torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
        hidden_states(parts, layout, dtype=torch.float32, recompute=False)
    planned = memory.kept_bytes(parts, len(layout.ids_N), torch.float32)
    assert 0.7 < sum(seen.values()) / planned < 1.2


def test_recompute_when_memory_is_short_and_only_with_a_graph(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parts = _parts("llama")
    layout = pack([[1, 2]], [[3, 4]], group_index=[0])
    assert memory.free_bytes(torch.device("cpu")) > 1_000_000
    assert not memory.needs_recompute(parts, layout, torch.float32)
    monkeypatch.setattr(memory, "free_bytes", lambda device: 10)
    assert memory.needs_recompute(parts, layout, torch.float32)
    with torch.no_grad():
        assert not memory.needs_recompute(parts, layout, torch.float32)
