"""Any causal language model, decoded through transformers' own modules.

Rows are kept right-aligned in one padded cache, so that a row's tokens are contiguous and sliding
windows measured in columns are right. Positions count a row's own tokens.

Legend: B rows, S cache columns, V vocabulary.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import DynamicCache

from verigrad.errors import UsageError
from verigrad.rollout.decoder import Prefilled, check_weights
from verigrad.rollout.sample import sample_rows
from verigrad.types import Sampling

Layers = list[tuple[Tensor, Tensor]]


class GeneralDecoder:
    """Holds a private copy of the model in the engine's precision and the batch's cache."""

    def __init__(self, model: nn.Module, *, dtype: torch.dtype) -> None:
        self._model = copy.deepcopy(model).to(dtype).eval().requires_grad_(False)
        config: Any = model.config
        text = config.get_text_config()
        self.context: int | None = getattr(text, "max_position_embeddings", None)
        self.vocab_size = int(text.vocab_size)
        self._device = next(self._model.parameters()).device
        accepted = inspect.signature(self._model.forward).parameters
        self._takes_positions = "position_ids" in accepted
        self._takes_keep = "logits_to_keep" in accepted
        self._cache_name = "cache" if "cache" in accepted else "past_key_values"
        self._prefix: Layers = []
        self._prefix_length = 0
        self._layers: Layers = []
        self._lengths: list[int] = []

    def open(self, prefix: Sequence[int], *, rows: int, longest: int) -> None:
        self._layers, self._lengths = [], []
        self._prefix, self._prefix_length = [], 0
        if prefix:
            _, self._prefix = self._forward(prefix, [])
            self._prefix_length = len(prefix)

    def prefill(self, prompts: Sequence[Sequence[int]]) -> list[Prefilled]:
        done = []
        for prompt in prompts:
            logits_V, layers = self._forward(prompt[self._prefix_length :], self._prefix)
            done.append(Prefilled(logits_V, layers, len(prompt)))
        return done

    def admit(self, prompt: Prefilled, count: int) -> None:
        fresh: Layers = [
            (k.expand(count, -1, -1, -1), v.expand(count, -1, -1, -1)) for k, v in prompt.cache
        ]
        if self._lengths:
            self._layers = [
                (_stack(old_k, new_k), _stack(old_v, new_v))
                for (old_k, old_v), (new_k, new_v) in zip(self._layers, fresh, strict=True)
            ]
        else:
            self._layers = fresh
        self._lengths += [prompt.length] * count

    def keep(self, rows: Sequence[int]) -> None:
        self._lengths = [self._lengths[r] for r in rows]
        if not rows:
            self._layers = []
            return
        index = torch.tensor(rows, device=self._device)
        longest = max(self._lengths)
        self._layers = [(k[index, :, -longest:], v[index, :, -longest:]) for k, v in self._layers]

    @torch.no_grad()
    def step(self, tokens: Sequence[int]) -> Tensor:
        columns = self._layers[0][0].shape[2] + 1
        lengths_B1 = torch.tensor(self._lengths, device=self._device)[:, None]
        column_S = torch.arange(columns, device=self._device)
        mask_BS = (column_S >= columns - 1 - lengths_B1).long()
        ids_B1 = torch.tensor(tokens, device=self._device)[:, None]
        logits, self._layers = self._call(ids_B1, mask_BS, lengths_B1, self._layers)
        self._lengths = [n + 1 for n in self._lengths]
        return logits[:, -1].float()

    def sample(
        self, logits_BV: Tensor, sampling: Sampling, *, noise_B: Tensor, forced_B: Tensor
    ) -> tuple[Tensor, Tensor]:
        return sample_rows(logits_BV, sampling, noise_B=noise_B, forced_B=forced_B)

    def load(self, weights: Mapping[str, Tensor]) -> None:
        own = self._model.state_dict()
        tied = set(getattr(self._model, "_tied_weights_keys", None) or ())
        buffers = {name for name, _ in self._model.named_buffers()}
        shapes = {name: tuple(tensor.shape) for name, tensor in own.items()}
        check_weights(weights, shapes, optional=tied | buffers)
        with torch.no_grad():
            for name, tensor in own.items():
                if name in weights:
                    tensor.copy_(weights[name])

    def held(self) -> Mapping[str, Tensor]:
        return {name: p.detach() for name, p in self._model.named_parameters()}

    @torch.no_grad()
    def _forward(self, ids: Sequence[int], past: Layers) -> tuple[Tensor, Layers]:
        """One row of tokens after ``past``; logits of its last token and the longer cache."""
        before = past[0][0].shape[2] if past else 0
        ids_1T = torch.tensor([list(ids)], device=self._device)
        positions = torch.arange(before, before + len(ids), device=self._device)[None]
        mask = torch.ones(1, before + len(ids), dtype=torch.long, device=self._device)
        logits, layers = self._call(ids_1T, mask, positions, past)
        return logits[0, -1].float(), layers

    def _call(
        self, ids: Tensor, mask: Tensor, positions: Tensor, past: Layers
    ) -> tuple[Tensor, Layers]:
        cache = DynamicCache()
        for layer, (keys, values) in enumerate(past):
            cache.update(keys, values, layer)
        extra: dict[str, Any] = {}
        if self._takes_positions:
            extra["position_ids"] = positions
        if self._takes_keep:
            extra["logits_to_keep"] = 1
        extra[self._cache_name] = cache
        out = self._model(input_ids=ids, attention_mask=mask, use_cache=True, **extra)
        return out.logits, self._read(cache)

    def _read(self, cache: Any) -> Layers:
        layers: list[Any] = [
            (getattr(layer, "keys", None), getattr(layer, "values", None)) for layer in cache.layers
        ]
        if not layers or any(k is None or k.dim() != 4 for k, _ in layers):
            raise UsageError(
                f"{type(self._model).__name__} keeps a state that is no key-value cache, which the "
                f"native engine cannot batch. Set rollout.engine to 'vllm' for this model."
            )
        return layers


def _stack(old: Tensor, new: Tensor) -> Tensor:
    """Join two right-aligned caches (B, H, S, D) along the rows; the shorter is padded left."""
    columns = max(old.shape[2], new.shape[2])
    pad = nn.functional.pad
    return torch.cat(
        [
            pad(old, (0, 0, columns - old.shape[2], 0)),
            pad(new, (0, 0, columns - new.shape[2], 0)),
        ]
    )
