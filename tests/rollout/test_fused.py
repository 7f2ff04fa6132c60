"""The compiled kernels against their twins in torch; without a compiler only the reasons remain."""

from __future__ import annotations

from pathlib import Path

import pytest
import rollout_models as models
import torch
from torch.nn import functional as F

from verigrad.rollout import compiled, fused
from verigrad.rollout.compiled import Kernels
from verigrad.rollout.family import shape_of
from verigrad.rollout.fused import FusedDecoder, FusedLinear, fused_kernels, interleaved
from verigrad.rollout.packed import PackedDecoder
from verigrad.types import Sampling

DTYPES = (torch.float32, torch.bfloat16)


def _kernels(dtype: torch.dtype) -> list[Kernels]:
    """The kernels in a list, empty where this machine can't build or run them."""
    found = fused_kernels(shape_of(models.build("llama")), dtype, torch.device("cpu"))
    assert isinstance(found, Kernels) or found.strip()
    return [found] if isinstance(found, Kernels) else []


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", [1, 5, 12, 13, 40])
def test_linear_equals_torch(dtype: torch.dtype, rows: int) -> None:
    torch.manual_seed(rows)
    x, w, b = torch.randn(rows, 96).to(dtype), torch.randn(263, 96).to(dtype), torch.randn(263)
    wanted = F.linear(x.float(), w.float(), b)
    for kernel in _kernels(dtype):
        torch.testing.assert_close(
            FusedLinear(kernel, w, b, dtype, kind=0)(x), wanted, rtol=1e-5, atol=1e-4
        )
        torch.testing.assert_close(
            FusedLinear(kernel, w, b, dtype)(x), wanted.to(dtype), rtol=1e-2, atol=1e-3
        )


@pytest.mark.parametrize("dtype", DTYPES)
def test_gating_equals_torch(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x, w = torch.randn(7, 96).to(dtype), torch.randn(64, 96).to(dtype)
    gate, up = F.linear(x.float(), w.float()).chunk(2, dim=-1)
    for kernel in _kernels(dtype):
        out = FusedLinear(kernel, interleaved(w), None, dtype, kind=2)(x)
        torch.testing.assert_close(out.float(), F.silu(gate) * up, rtol=1e-2, atol=1e-4)


@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3"])
@pytest.mark.parametrize("shared", [0, 20])
def test_step_equals_the_packed_path(kind: str, shared: int) -> None:
    model = models.build(kind, num_attention_heads=6, head_dim=16)
    for kernel in _kernels(torch.float32):
        both = [
            PackedDecoder(model, dtype=torch.float32),
            FusedDecoder(model, dtype=torch.float32, kernel=kernel),
        ]
        first = list(range(5, 45))
        second = [*first[:21], 60, 70]
        seen = []
        for decoder in both:
            decoder.open(first[:shared], rows=4, longest=80)
            one, two = decoder.prefill([first, second])
            decoder.admit(one, 2)
            decoder.admit(two, 1)
            logits = [one.logits_V[None], decoder.step([7, 8, 9])]
            decoder.keep([0, 2])
            decoder.admit(two, 2)
            logits += [decoder.step([i, 5, 6, 7]) for i in range(30)]
            seen.append(torch.cat(logits))
        torch.testing.assert_close(seen[1], seen[0], rtol=1e-4, atol=1e-4)


def test_a_row_does_not_feel_its_neighbours() -> None:
    """Bit for bit: the compiled step sums each row in the same order at any batch size."""
    model = models.build("llama")
    prompt = list(range(5, 25))
    for dtype in DTYPES:
        for kernel in _kernels(dtype):
            decoder = FusedDecoder(model, dtype=dtype, kernel=kernel)
            seen = []
            for rows in (1, 3, 30):
                decoder.open([], rows=30, longest=60)
                decoder.admit(decoder.prefill([prompt])[0], rows)
                seen.append(torch.stack([decoder.step([9] * rows)[0] for _ in range(5)]))
            assert torch.equal(seen[0], seen[1])
            assert torch.equal(seen[0], seen[2])


@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.0])
def test_sampling_equals_torch(temperature: float) -> None:
    torch.manual_seed(0)
    model = models.build("llama")
    logits = torch.randn(400, 263) * 4
    noise = torch.rand(400, dtype=torch.float64)
    forced = torch.full((400,), -1)
    forced[::7] = 11
    sampling = Sampling(max_new_tokens=1, temperature=temperature)
    for kernel in _kernels(torch.float32):
        ours = FusedDecoder(model, dtype=torch.float32, kernel=kernel)
        twin = PackedDecoder(model, dtype=torch.float32)
        tokens, logprobs = ours.sample(logits, sampling, noise_B=noise, forced_B=forced)
        wanted, scores = twin.sample(logits, sampling, noise_B=noise, forced_B=forced)
        assert (tokens != wanted).sum() <= 1  # where the noise falls on a boundary
        same = tokens == wanted
        torch.testing.assert_close(logprobs[same], scores[same], rtol=1e-5, atol=1e-5)
        narrow = Sampling(max_new_tokens=1, temperature=temperature, top_k=3)
        assert torch.equal(
            ours.sample(logits, narrow, noise_B=noise, forced_B=forced)[0],
            twin.sample(logits, narrow, noise_B=noise, forced_B=forced)[0],
        )


def test_reasons_are_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shape = shape_of(models.build("llama"))
    cpu = torch.device("cpu")
    assert "CPU only" in str(fused_kernels(shape, torch.float32, torch.device("meta")))
    odd = shape_of(models.build("llama", hidden_size=72, num_attention_heads=6, head_dim=12))
    assert "vector width" in str(fused_kernels(odd, torch.float32, cpu))
    monkeypatch.setattr(fused, "has_amx", lambda: True)
    assert "AMX" in str(fused_kernels(shape, torch.bfloat16, cpu))
    fresh = compiled.kernels.__wrapped__
    monkeypatch.setattr(compiled, "_cpu_flags", lambda: frozenset({"sse2"}))
    assert "no AVX-512" in fresh()
    monkeypatch.setattr(compiled, "_cpu_flags", lambda: frozenset({"avx512f", "avx512bw"}))
    monkeypatch.setenv("VERIGRAD_CACHE", str(tmp_path))
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert "install g++" in fresh()
    monkeypatch.setenv("CXX", "false")
    assert "could not compile" in fresh()
    monkeypatch.setenv("VERIGRAD_KERNELS", "0")
    assert "VERIGRAD_KERNELS=0" in fresh()
