"""The tiled projection against the whole logits, and the memory it never takes."""

from __future__ import annotations

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from verigrad.training import head
from verigrad.training.head import HeadShape, score_tokens

SHAPES = [HeadShape(), HeadShape(temperature=0.6), HeadShape(0.25, 3.0, 1.7)]


def _slow(hidden, weight, bias, targets, shape: HeadShape):
    """All logits at once, as the model's own head makes them."""
    z = hidden @ weight.T + (0 if bias is None else bias)
    logits = z * shape.scale
    if shape.softcap is not None:
        logits = torch.tanh(logits / shape.softcap) * shape.softcap
    scores = torch.log_softmax(logits / shape.temperature, -1)
    return scores[torch.arange(len(targets)), targets], -(scores.exp() * scores).sum(-1)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("frozen", [False, True])
def test_equals_the_slow_twin(
    monkeypatch: pytest.MonkeyPatch, shape: HeadShape, with_bias: bool, frozen: bool
) -> None:
    monkeypatch.setattr(head, "TILE_LOGITS", 16 * 50)
    torch.manual_seed(0)
    M, V, E = 41, 50, 12
    hidden = torch.randn(M, E, dtype=torch.float64).float().requires_grad_()
    weight = torch.randn(V, E).requires_grad_(not frozen)
    bias = torch.randn(V).requires_grad_(not frozen) if with_bias else None
    targets = torch.randint(V, (M,))
    pull = torch.randn(M)
    inputs = [x for x in (hidden, weight, bias) if x is not None and x.requires_grad]
    want, entropy = _slow(hidden, weight, bias, targets, shape)
    want_grads = torch.autograd.grad((want * pull).sum(), inputs)
    got, got_entropy = score_tokens(hidden, weight, bias, targets, shape=shape)
    got_grads = torch.autograd.grad((got * pull).sum(), inputs)
    torch.testing.assert_close(got, want, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(got_entropy, entropy, atol=1e-5, rtol=1e-5)
    for g, w in zip(got_grads, want_grads, strict=True):
        torch.testing.assert_close(g, w, atol=2e-5, rtol=1e-4)


class _Largest(TorchDispatchMode):
    """The largest tensor any operator made, leaving views aside."""

    def __init__(self) -> None:
        super().__init__()
        self.numel = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for x in out if isinstance(out, (tuple, list)) else (out,):
            if isinstance(x, torch.Tensor):
                self.numel = max(self.numel, x.numel())
        return out


@pytest.mark.parametrize("frozen", [False, True])
def test_no_tensor_holds_tokens_times_vocabulary(
    monkeypatch: pytest.MonkeyPatch, frozen: bool
) -> None:
    monkeypatch.setattr(head, "TILE_LOGITS", 32 * 2000)
    M, V, E = 512, 2000, 8
    hidden = torch.randn(M, E, requires_grad=True)
    weight = torch.randn(V, E, requires_grad=not frozen)
    targets = torch.randint(V, (M,))
    with _Largest() as seen:
        logprobs, _ = score_tokens(hidden, weight, None, targets, shape=HeadShape())
        logprobs.sum().backward()
    assert seen.numel == 32 * 2000
    assert seen.numel < M * V / 10


def test_bf16_hidden_states_get_float32_scores() -> None:
    hidden = torch.randn(5, 8, dtype=torch.bfloat16, requires_grad=True)
    weight = torch.randn(30, 8, requires_grad=True)
    targets = torch.randint(30, (5,))
    logprobs, entropy = score_tokens(hidden, weight, None, targets, shape=HeadShape())
    logprobs.sum().backward()
    assert logprobs.dtype is entropy.dtype is torch.float32
    assert hidden.grad.dtype is torch.bfloat16
    assert weight.grad.dtype is torch.float32
