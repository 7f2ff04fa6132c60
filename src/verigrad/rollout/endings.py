"""Where a completion ends and what of it is text: end tokens, stop strings, thinking budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from verigrad.errors import UsageError
from verigrad.types import Sampling

KEPT_MARKERS = (
    "<think>",
    "</think>",
    "<answer>",
    "</answer>",
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
)
"""Tags that verifiers read. They stay in the text even where a tokenizer lists them as special."""

OPEN, CLOSE = "<think>", "</think>"
_CLOSING = "\n</think>\n\n"


def end_token_ids(tokenizer: Any, model: Any) -> frozenset[int]:
    """Every id that ends a sequence, as tokenizer, generation config or config declare it.

    A padding token is in it only where one of them also declares it an end of sequence.
    """
    generation = getattr(model, "generation_config", None)
    config = getattr(model, "config", None)
    found: set[int] = set()
    for source in (tokenizer, generation, config):
        value = getattr(source, "eos_token_id", None)
        if isinstance(value, int):
            found.add(value)
        elif value is not None:
            found.update(int(v) for v in value)
    if not found:
        raise UsageError(
            "Neither the tokenizer nor the model's generation config declares an end-of-sequence "
            "token, so no completion could ever end by itself. Set tokenizer.eos_token."
        )
    return frozenset(found)


class TextReader:
    """Token ids -> text, without special tokens but with the tags that verifiers read."""

    def __init__(self, tokenizer: Any, ends: frozenset[int]) -> None:
        self._tokenizer = tokenizer
        special = set(getattr(tokenizer, "all_special_ids", ()))
        kept = {
            i for i in special if tokenizer.convert_ids_to_tokens(int(i)) in KEPT_MARKERS
        } - ends
        self._dropped = (special - kept) | ends
        self.closing: tuple[int, ...] = tuple(tokenizer.encode(_CLOSING, add_special_tokens=False))

    def text(self, ids: Sequence[int]) -> str:
        """The text of a completion."""
        return self._tokenizer.decode(
            [i for i in ids if i not in self._dropped],
            skip_special_tokens=False,
            clean_up_tokenization_spaces=False,
        )

    def tail(self, ids: Sequence[int], count: int) -> str:
        """The text of the last ``count`` tokens."""
        return self.text(ids[-count:])


def stop_window(stop: Sequence[str]) -> int:
    """How many last tokens hold any stop string whole: a token is at least one byte, 4 to spare."""
    return max((len(s.encode()) for s in stop), default=0) + 4


def cut_at_stop(text: str, stop: Sequence[str]) -> str | None:
    """The text before the earliest stop string, or None where none occurs."""
    found = [at for at in (text.find(s) for s in stop) if at >= 0]
    return text[: min(found)] if found else None


class Thinking:
    """Counts the tokens of one completion's thinking part and says when it must be closed."""

    def __init__(self, sampling: Sampling, prompt_text: str) -> None:
        self._budget = sampling.thinking_budget
        self._open = prompt_text.rfind(OPEN) > prompt_text.rfind(CLOSE)
        self._closed = False
        self._used = 0

    @property
    def exhausted(self) -> bool:
        """True when the next token must be the first of the closing."""
        return (
            self._budget is not None
            and self._open
            and not self._closed
            and self._used >= self._budget
        )

    def saw(self, reader: TextReader, ids: Sequence[int]) -> None:
        """Take note of the newest token."""
        if self._budget is None or self._closed:
            return
        tail = reader.tail(ids, len(CLOSE) + 4)
        if self._open:
            self._used += 1
            self._closed = CLOSE in tail
        elif OPEN in tail:
            self._open = True

    def close(self) -> None:
        """The closing was inserted."""
        self._closed = True
