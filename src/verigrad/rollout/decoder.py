"""What the scheduler asks of a model: prefill prompts, hold a batch of rows, advance it.

Two decoders exist: ``general.GeneralDecoder`` runs any causal model through transformers' own
modules, ``packed.PackedDecoder`` runs the Llama family with fused and packed weights.

Legend: P prompts, B rows in the batch, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor

from verigrad.errors import UsageError
from verigrad.types import Sampling


@dataclass(frozen=True, slots=True)
class Prefilled:
    """One prompt after its prefill: the logits of its last token and its keys and values.

    ``cache`` belongs to the decoder that made it; ``length`` counts all tokens of the prompt.
    """

    logits_V: Tensor
    cache: Any
    length: int


class Decoder(Protocol):
    """A batch of rows on one model, numbered 0 .. B-1 in the order of ``admit`` and ``keep``."""

    context: int | None
    vocab_size: int

    def open(self, prefix: Sequence[int], *, rows: int, longest: int) -> None:
        """Empty the batch and prefill what all prompts of this call begin with (may be empty).

        ``rows`` bounds the batch and ``longest`` the tokens of a row, its prompt included.
        """
        ...

    def prefill(self, prompts: Sequence[Sequence[int]]) -> list[Prefilled]:
        """Run each prompt once; each begins with the prefix and has at least one token more."""
        ...

    def admit(self, prompt: Prefilled, count: int) -> None:
        """Append ``count`` rows that continue this prompt."""
        ...

    def keep(self, rows: Sequence[int]) -> None:
        """Make row ``rows[i]`` the new row ``i`` and forget all others."""
        ...

    def step(self, tokens: Sequence[int]) -> Tensor:
        """Append one token to each row; float32 logits of shape (B, V) for the next."""
        ...

    def sample(
        self, logits_BV: Tensor, sampling: Sampling, *, noise_B: Tensor, forced_B: Tensor
    ) -> tuple[Tensor, Tensor]:
        """One token per row and its log-probability; the contract of ``sample.sample_rows``."""
        ...

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Copy the policy's weights, named as Hugging Face names them."""
        ...

    def held(self) -> Mapping[str, Tensor]:
        """The weights that are kept as they came, in the decoder's precision."""
        ...


def common_prefix(prompts: Sequence[Sequence[int]], *, least: int = 16) -> tuple[int, ...]:
    """The tokens with which all prompts begin, at most all but the last one of the shortest.

    Fewer than ``least`` shared tokens are not worth a prefill of their own: then it is empty, as it
    is for a single prompt, whose tokens are prefilled once anyway.

    >>> common_prefix([(1, 2, 3), (1, 2, 4)], least=1)
    (1, 2)
    """
    distinct = set(map(tuple, prompts))
    if len(distinct) < 2:
        return ()
    # What the first and the last in order share, all between them share.
    low, high = min(distinct), max(distinct)
    count = 0
    for left, right in zip(low, high, strict=False):
        if left != right:
            break
        count += 1
    count = min(count, min(map(len, prompts)) - 1)
    return tuple(low[:count]) if count >= least else ()


def check_weights(
    weights: Mapping[str, Tensor], shapes: Mapping[str, tuple[int, ...]], *, optional: set[str]
) -> None:
    """Raise UsageError unless the weights are exactly those of the model (names and shapes).

    ``optional`` names may be absent: tied output heads and the like.
    """
    missing = sorted(set(shapes) - set(weights) - optional)
    unknown = sorted(set(weights) - set(shapes) - optional)
    if missing or unknown:
        parts = []
        if missing:
            parts.append(f"{len(missing)} are missing, first {missing[0]!r}")
        if unknown:
            parts.append(f"{len(unknown)} are unknown, first {unknown[0]!r}")
        raise UsageError(
            f"These weights do not belong to the engine's model: {'; '.join(parts)}. Pass the "
            f"policy's state dict under Hugging Face names, adapters merged."
        )
    for name, shape in shapes.items():
        if name in weights and tuple(weights[name].shape) != tuple(shape):
            raise UsageError(
                f"Weight {name!r} has shape {tuple(weights[name].shape)}; the engine's model has "
                f"{tuple(shape)}. Load the engine from the same checkpoint as the policy."
            )
