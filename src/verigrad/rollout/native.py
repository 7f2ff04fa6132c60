"""The native engine: sampling in this process, with weights that follow the policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from verigrad.errors import UsageError
from verigrad.rollout.decoder import Decoder
from verigrad.rollout.endings import TextReader, end_token_ids
from verigrad.rollout.family import shape_of, unsupported
from verigrad.rollout.fused import FusedDecoder, fused_kernels
from verigrad.rollout.general import GeneralDecoder
from verigrad.rollout.packed import PackedDecoder
from verigrad.rollout.request import check_request
from verigrad.rollout.schedule import Schedule
from verigrad.types import Group, Prompt, Sampling

_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


class NativeEngine:
    """Samples completions from a private copy of ``model``; implements ``verigrad.types.Engine``.

    ``precision`` is that of the engine's weights and cache. ``max_rows`` completions are decoded
    side by side; rows that end make room for the next. ``fast`` asks for the packed path, which
    knows the Llama family; ``kernels`` lets its decoding step be compiled C++ where that can be
    built. ``path`` ("general", "packed" or "fused") and ``reason`` say which one runs and why. The
    model that was handed in is never written to and may be trained on; ``load`` brings its weights
    here.

    Completions carry the log-softmax of ``logits / temperature`` over the whole vocabulary (at
    temperature 0: of the logits). Special tokens are not part of ``text``; the tags in
    ``endings.KEPT_MARKERS`` are, special or not. A stop string is not part of ``text`` but its
    tokens are part of ``token_ids``. The same weights, prompts, sampling and seed give the same
    completions whatever else is in the batch, up to rounding in the matrix products (a token
    changes only where the random number falls within that rounding of a boundary).
    """

    def __init__(
        self,
        model: nn.Module,
        tokenizer: Any,
        *,
        precision: Literal["fp32", "bf16"],
        max_rows: int = 64,
        fast: bool = True,
        kernels: bool = True,
    ) -> None:
        if precision not in _DTYPES:
            raise UsageError(f"precision = {precision!r} is not known. Use 'fp32' or 'bf16'.")
        if max_rows < 1:
            raise UsageError(f"max_rows = {max_rows}: at least one row is needed.")
        self.version = 0
        self._max_rows = max_rows
        self._ends = end_token_ids(tokenizer, model)
        self._reader = TextReader(tokenizer, self._ends)
        self._decoder, self.path, self.reason = _decoder(
            model, _DTYPES[precision], fast=fast, use_kernels=kernels
        )

    def generate(
        self,
        prompts: Sequence[Prompt],
        sampling: Sampling,
        *,
        group_size: int,
        seed: int,
        on_group: Callable[[Group], None] | None = None,
    ) -> list[Group]:
        """Sample ``group_size`` completions per prompt; groups return in the order of the prompts.

        ``on_group`` hears each group as soon as its last completion ends. UsageError for a request
        that cannot be met: bad sampling values, an empty prompt, a row longer than the context.
        """
        check_request(
            prompts,
            sampling,
            group_size=group_size,
            context=self._decoder.context,
            vocab_size=self._decoder.vocab_size,
        )
        if not prompts:
            return []
        return Schedule(
            self._decoder,
            self._reader,
            ends=self._ends,
            prompts=prompts,
            sampling=sampling,
            group_size=group_size,
            seed=seed,
            max_rows=self._max_rows,
            version=self.version,
            on_group=on_group,
        ).run()

    def load(self, weights: Mapping[str, Tensor], *, version: int) -> None:
        """Copy the policy's weights (Hugging Face names); later completions carry ``version``.

        UsageError when a weight is missing, unknown or of another shape; nothing is loaded then.
        """
        self._decoder.load(weights)
        self.version = version

    def held(self) -> Mapping[str, Tensor]:
        """Weights as the decoder holds them, in its precision, under Hugging Face names: those
        that it keeps as they are (packed ones are not among them). Not to be written to."""
        return self._decoder.held()


def _decoder(
    model: nn.Module, dtype: torch.dtype, *, fast: bool, use_kernels: bool
) -> tuple[Decoder, str, str]:
    why_not = unsupported(model) if fast else "fast = False was asked for"
    if why_not is not None:
        return GeneralDecoder(model, dtype=dtype), "general", why_not
    kind = model.config.model_type  # pyright: ignore[reportAttributeAccessIssue]
    body = next(model.parameters())
    found = fused_kernels(shape_of(model), dtype, body.device) if use_kernels else "not asked for"
    if isinstance(found, str):
        reason = f"{kind} is of the Llama family; no compiled step: {found}"
        return PackedDecoder(model, dtype=dtype), "packed", reason
    reason = f"{kind} is of the Llama family; one compiled call per step"
    return FusedDecoder(model, dtype=dtype, kernel=found), "fused", reason
