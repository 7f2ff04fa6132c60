"""Log-probabilities of completion tokens, with gradients: one packed forward, or its slow twin.

Shape legend: B completions, T completion tokens of the longest row, V vocabulary.

``packed`` runs rows as one sequence without padding in which text that rows share stands once,
and projects completion tokens only, tile by tile. ``plain`` is one padded forward with all
logits. Both give the same numbers; the tests hold values and every parameter's gradient together.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from verigrad.errors import UsageError
from verigrad.training.backbone import Parts, hidden_states, packing_fault, take_apart
from verigrad.training.head import score_tokens
from verigrad.training.memory import needs_recompute
from verigrad.training.packing import check_rows, pack, plan_micro_batches

__all__ = [
    "TokenScores",
    "completion_logprobs",
    "packing_fault",
    "plan_micro_batches",
    "round_masters_once",
]

Precision = Literal["fp32", "bf16"]
Method = Literal["packed", "plain"]


@dataclass(frozen=True)
class TokenScores:
    """Scores of completion tokens, float32, 0 beyond a row's length."""

    logprobs_BT: Tensor
    entropy_BT: Tensor
    """Entropy of the distribution each token was drawn from, nats; no gradient."""
    method: Method = "packed"
    """How the scores were computed: ``plain`` also where a model can't be packed."""
    fallback: str | None = None
    """Why ``packed`` became ``plain``."""


def completion_logprobs(
    model: nn.Module,
    prompts: Sequence[Sequence[int]],
    completions: Sequence[Sequence[int]],
    *,
    group_index: Sequence[int],
    temperature: float = 1.0,
    precision: Precision = "fp32",
    method: Method = "packed",
) -> TokenScores:
    """Score each completion token: ``log softmax(logits / temperature)``, differentiable, B x T.

    T is the longest completion; beyond a row's length scores are 0. Rows of a group that have the
    same prompt share its computation. ``bf16`` computes matrix products in bfloat16 from float32
    master weights; sums, log-softmax and the gradients of the masters stay float32. A model that
    can't be packed is scored plainly, with a warning that says why. Raises UsageError for lists
    of different lengths, an empty prompt, a temperature that isn't positive, or an unknown
    precision or method.
    """
    check_rows(prompts, completions, group_index)
    if not temperature > 0:
        raise UsageError(f"temperature = {temperature}: log-probabilities need one above 0.")
    if precision not in ("fp32", "bf16"):
        raise UsageError(f"precision = {precision!r}: choose 'fp32' or 'bf16'.")
    if method not in ("packed", "plain"):
        raise UsageError(f"method = {method!r}: choose 'packed' or 'plain'.")
    how: dict[str, Any] = {"temperature": temperature, "precision": precision}
    if method == "plain":
        return plain_scores(model, prompts, completions, group_index, **how)
    fault = packing_fault(model)
    if fault is not None:
        warnings.warn(f"scored without packing: {fault}", stacklevel=2)
        return plain_scores(model, prompts, completions, group_index, fallback=fault, **how)
    parts = take_apart(model)
    assert isinstance(parts, Parts)
    return packed_scores(model, parts, prompts, completions, group_index, **how)


def packed_scores(
    model: nn.Module, parts: Parts, prompts: Sequence[Sequence[int]],
    completions: Sequence[Sequence[int]], group_index: Sequence[int],
    *, temperature: float, precision: Precision,
) -> TokenScores:  # fmt: skip
    """The packed path, for rows and a model that were checked."""
    weight = parts.projection.weight
    layout = pack(prompts, completions, group_index=group_index, device=weight.device)
    if not len(layout.targets_M):
        return _nothing(len(prompts), layout.width, weight)
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    hidden_ME = hidden_states(
        parts, layout, dtype=dtype, recompute=needs_recompute(parts, layout, dtype)
    )
    logprobs_M, entropy_M = score_tokens(
        hidden_ME, weight, parts.projection.bias, layout.targets_M,
        shape=parts.head_shape(temperature), backward_dtype=dtype,
    )  # fmt: skip
    return TokenScores(layout.scatter(logprobs_M), layout.scatter(entropy_M.detach()))


def plain_scores(
    model: nn.Module, prompts: Sequence[Sequence[int]], completions: Sequence[Sequence[int]],
    group_index: Sequence[int], *, temperature: float, precision: Precision,
    fallback: str | None = None,
) -> TokenScores:  # fmt: skip
    """The slow twin: rows padded on the right, one forward of the whole model, all logits."""
    device = next(model.parameters()).device
    rows = [[*p, *c] for p, c in zip(prompts, completions, strict=True)]
    width = max(len(row) for row in rows)
    T = max(len(c) for c in completions)
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    mask = torch.zeros(len(rows), width, dtype=torch.long)
    for b, row in enumerate(rows):
        ids[b, : len(row)] = torch.tensor(row)
        mask[b, : len(row)] = 1
    with _autocast(device, precision):
        logits = model(input_ids=ids.to(device), attention_mask=mask.to(device)).logits
    scores = torch.log_softmax(logits.float() / temperature, -1)
    entropy = -(scores.exp() * scores).sum(-1).detach()
    logprobs_BT = scores.new_zeros(len(rows), T)
    entropy_BT = scores.new_zeros(len(rows), T)
    for b, (p, c) in enumerate(zip(prompts, completions, strict=True)):
        at = slice(len(p) - 1, len(p) - 1 + len(c))
        target = torch.tensor(list(c), dtype=torch.long, device=device)
        logprobs_BT[b, : len(c)] = scores[b, at].gather(1, target[:, None])[:, 0]
        entropy_BT[b, : len(c)] = entropy[b, at]
    return TokenScores(logprobs_BT, entropy_BT, "plain", fallback)


def _autocast(device: torch.device, precision: Precision) -> Any:
    if precision == "fp32":
        return nullcontext()
    return torch.autocast(device.type, dtype=torch.bfloat16)


def _nothing(rows: int, width: int, like: Tensor) -> TokenScores:
    """Scores of rows without a token; they need a gradient, so a caller's backward pass runs."""
    zero = torch.zeros(rows, width, device=like.device, requires_grad=torch.is_grad_enabled())
    return TokenScores(zero, zero.detach().clone())


def round_masters_once(model: nn.Module) -> float:
    """Round float32 weights, in place, to values bfloat16 can hold; return the share that changed.

    Weights dequantised from GGUF often sit on exact bfloat16 rounding ties, where the smallest
    step flips the bf16 copy by a whole unit in the direction of the gradient. Rounded once at
    load, a flip needs half a unit.
    """
    changed = total = 0
    with torch.no_grad():
        for p in model.parameters():
            if p.dtype is not torch.float32:
                continue
            rounded = p.bfloat16().float()
            changed += int((rounded != p).sum())
            total += p.numel()
            p.copy_(rounded)
    return changed / total if total else 0.0
