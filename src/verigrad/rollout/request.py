"""What is asked of an engine, checked whole before anything runs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from verigrad.errors import UsageError
from verigrad.types import Prompt, Sampling


def check_request(
    prompts: Sequence[Prompt],
    sampling: Sampling,
    *,
    group_size: int,
    context: int | None,
    vocab_size: int | None,
) -> None:
    """Raise UsageError, naming value and remedy, for what no engine can do.

    ``context`` is the model's window in tokens and ``vocab_size`` its vocabulary (None: unknown).
    """
    _check_sampling(sampling)
    if group_size < 1:
        raise UsageError(
            f"group_size = {group_size}: at least one completion per prompt is needed."
        )
    for index, prompt in enumerate(prompts):
        _check_prompt(prompt, index, sampling, context=context, vocab_size=vocab_size)


def _check_sampling(sampling: Sampling) -> None:
    s = sampling
    faults = [
        (s.max_new_tokens < 1, "max_new_tokens", s.max_new_tokens, "must be at least 1"),
        (
            not math.isfinite(s.temperature) or s.temperature < 0,
            "temperature",
            s.temperature,
            "must be 0 (greedy) or a positive number",
        ),
        (not 0 < s.top_p <= 1, "top_p", s.top_p, "must lie in (0, 1]; 1 keeps all tokens"),
        (s.top_k < 0, "top_k", s.top_k, "must be 0 (keep all) or positive"),
        (not 0 <= s.min_p < 1, "min_p", s.min_p, "must lie in [0, 1); 0 keeps all tokens"),
        ("" in s.stop, "stop", s.stop, "must not hold an empty string: it would stop at once"),
        (
            s.thinking_budget is not None and s.thinking_budget < 0,
            "thinking_budget",
            s.thinking_budget,
            "must be None (no budget), 0 (no thinking) or a number of tokens",
        ),
    ]
    for wrong, name, value, remedy in faults:
        if wrong:
            raise UsageError(f"sampling.{name} = {value!r} {remedy}.")


def _check_prompt(
    prompt: Prompt, index: int, sampling: Sampling, *, context: int | None, vocab_size: int | None
) -> None:
    where = f"prompt {index} (problem {prompt.problem.id!r})"
    ids = prompt.token_ids
    if not ids:
        raise UsageError(
            f"{where} has no tokens. Give the question a text, or the tokenizer a chat template or "
            f"a beginning-of-sequence token."
        )
    if vocab_size is not None and not 0 <= min(ids) <= max(ids) < vocab_size:
        wrong = next(i for i in ids if not 0 <= i < vocab_size)
        raise UsageError(
            f"{where} holds token id {wrong}, outside the model's vocabulary of {vocab_size}. "
            f"Use the tokenizer that belongs to the model."
        )
    if context is None:
        return
    if len(ids) >= context:
        raise UsageError(
            f"{where} has {len(ids)} tokens; the model's context window is {context}. Shorten it, "
            f"or set problems.max_prompt_tokens with problems.over_length."
        )
    if len(ids) + sampling.max_new_tokens > context:
        raise UsageError(
            f"{where} has {len(ids)} tokens, and max_new_tokens = {sampling.max_new_tokens} would "
            f"pass the model's context window of {context}. Set rollout.max_new_tokens to at most "
            f"{context - len(ids)}."
        )
