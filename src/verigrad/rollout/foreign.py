"""What the engines that are not ours share: seeds, log-probabilities they can promise, records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from verigrad.errors import TrainingError, UsageError
from verigrad.rollout.endings import TextReader, cut_at_stop
from verigrad.rollout.noise import uniforms
from verigrad.rollout.schedule import TAIL_CHARACTERS
from verigrad.types import Completion, FinishReason, Prompt, Sampling

LogprobsMode = Literal["raw", "processed"]
"""What a server reports: before ("raw") or after ("processed") temperature and filters."""


def check_promises(sampling: Sampling, mode: LogprobsMode, *, engine: str) -> None:
    """Raise UsageError where its log-probabilities would not be log softmax(logits / T)."""
    s = sampling
    if s.thinking_budget is not None:
        raise UsageError(
            f"sampling.thinking_budget = {s.thinking_budget} needs tokens inserted midway, "
            f"which the {engine} engine can't do. Set rollout.engine to 'native'."
        )
    if mode == "raw" and s.temperature not in (0.0, 1.0):
        raise UsageError(
            f"sampling.temperature = {s.temperature}: {engine} reports log-probabilities "
            f"before the temperature (raw_logprobs), so training would score another distribution. "
            f"Start it with logprobs mode 'processed_logprobs' and say so, or set temperature to 1."
        )
    filters = [
        f"{name} = {value}"
        for name, value, off in (
            ("top_p", s.top_p, 1.0),
            ("top_k", s.top_k, 0),
            ("min_p", s.min_p, 0.0),
        )
        if value != off
    ]
    if mode == "processed" and filters:
        raise UsageError(
            f"sampling.{filters[0]}: the {engine} engine reports log-probabilities of the filtered "
            f"tokens only (processed_logprobs). Use 'raw' log-probabilities with temperature 1, "
            f"leave the filter off, or set rollout.engine to 'native'."
        )


def completion_seed(seed: int, key: int, sample: int) -> int:
    """A 31-bit seed for one completion, from the run's seed, the prompt's key and its number."""
    number = uniforms(
        seed,
        np.array([key], dtype=np.int64),
        samples=np.array([sample], dtype=np.int64),
        positions=np.array([-1], dtype=np.int64),
    )
    return int(number[0] * 2**31)


def completion_of(
    prompt: Prompt,
    ids: Sequence[int],
    logprobs: Sequence[float | None],
    *,
    sampling: Sampling,
    reader: TextReader,
    ends: frozenset[int],
    finished: str | None,
    version: int,
) -> Completion:
    """One record from what the engine returned; TrainingError where ids and numbers disagree."""
    if not ids or len(ids) != len(logprobs) or any(p is None for p in logprobs):
        raise TrainingError(
            f"The engine returned {len(ids)} tokens with {len(logprobs)} log-probabilities for "
            f"problem {prompt.problem.id!r}; each token needs one, and a completion needs a token."
        )
    text = reader.text(ids)
    cut = cut_at_stop(text, sampling.stop)
    ended = finished == "stop" or ids[-1] in ends or cut is not None
    return Completion(
        text=text if cut is None else cut,
        token_ids=tuple(ids),
        sampler_logprobs=tuple(min(0.0, float(p)) for p in logprobs if p is not None),
        finish_reason=FinishReason.STOP if ended else FinishReason.LENGTH,
        version=version,
        prompt_tail=prompt.text[-TAIL_CHARACTERS:],
    )
