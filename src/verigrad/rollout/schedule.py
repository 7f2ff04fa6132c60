"""Keeps a decoder's batch full: admits groups, samples, retires finished rows, refills.

Legend: B rows in the batch, V vocabulary.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from verigrad.rollout.decoder import Decoder, Prefilled, common_prefix
from verigrad.rollout.endings import TextReader, Thinking, cut_at_stop, stop_window
from verigrad.rollout.noise import uniforms
from verigrad.types import Completion, FinishReason, Group, Prompt, Sampling

TAIL_CHARACTERS = 64
"""How much of the prompt's end a completion carries for format verifiers."""


@dataclass(slots=True)
class _Row:
    group: int
    sample: int
    thinking: Thinking
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    forced: list[int] = field(default_factory=list)
    queue: deque[int] = field(default_factory=deque)
    reason: FinishReason | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class _Waiting:
    group: int
    first_sample: int
    prefilled: Prefilled


class Schedule:
    """One call of ``generate``: which rows run, which wait, which are done."""

    def __init__(
        self,
        decoder: Decoder,
        reader: TextReader,
        *,
        ends: frozenset[int],
        prompts: Sequence[Prompt],
        sampling: Sampling,
        group_size: int,
        seed: int,
        max_rows: int,
        version: int,
        on_group: Callable[[Group], None] | None,
    ) -> None:
        self._decoder, self._reader, self._ends = decoder, reader, ends
        self._prompts, self._sampling, self._group_size = prompts, sampling, group_size
        self._seed, self._max_rows, self._version = seed, max_rows, version
        self._on_group = on_group
        self._keys = prompt_keys(prompts)
        self._rows: list[_Row] = []
        self._next_prompt = 0
        self._waiting: deque[_Waiting] = deque()
        self._done: list[dict[int, Completion]] = [{} for _ in prompts]
        self._groups: list[Group | None] = [None] * len(prompts)
        self._window = stop_window(sampling.stop)

    def run(self) -> list[Group]:
        """Sample everything; groups in the order of the prompts."""
        prompts = [p.token_ids for p in self._prompts]
        longest = max(map(len, prompts)) + self._sampling.max_new_tokens
        rows = min(self._max_rows, len(prompts) * self._group_size)
        self._decoder.open(common_prefix(prompts), rows=rows, longest=longest)
        least_free = max(1, min(self._group_size, rows // 4))
        while True:
            free = rows - len(self._rows)
            if free >= least_free or not self._rows:
                self._refill(free)
            if not self._rows:
                break
            logits_BV = self._decoder.step([row.tokens[-1] for row in self._rows])
            self._sample(self._rows, logits_BV)
            self._retire()
        return [group for group in self._groups if group is not None]

    def _refill(self, free: int) -> None:
        """Admit rows until the batch is full or no prompt is left; their first token is sampled."""
        while free > 0 and (self._waiting or self._next_prompt < len(self._prompts)):
            if not self._waiting:
                self._prefill(free)
            admitted: list[_Row] = []
            logits: list[Tensor] = []
            while free > 0 and self._waiting:
                fresh, prefilled = self._admit(free)
                admitted += fresh
                logits.append(prefilled.logits_V.expand(len(fresh), -1))
                free -= len(fresh)
            self._sample(admitted, torch.cat(logits))
            free += self._retire()

    def _prefill(self, free: int) -> None:
        """Prefill as many prompts as the free rows can take, at least a batch full of groups.

        One pass over many prompts costs little more than over one; a batch bounds what waits.
        """
        count = max(-(-free // self._group_size), self._max_rows // self._group_size)
        chosen = range(self._next_prompt, min(self._next_prompt + count, len(self._prompts)))
        done = self._decoder.prefill([self._prompts[i].token_ids for i in chosen])
        for group, prefilled in zip(chosen, done, strict=True):
            self._waiting.append(_Waiting(group, 0, prefilled))
        self._next_prompt = chosen.stop

    def _admit(self, free: int) -> tuple[list[_Row], Prefilled]:
        head = self._waiting.popleft()
        count = min(free, self._group_size - head.first_sample)
        self._decoder.admit(head.prefilled, count)
        text = self._prompts[head.group].text
        fresh = [
            _Row(head.group, head.first_sample + i, Thinking(self._sampling, text))
            for i in range(count)
        ]
        self._rows += fresh
        if head.first_sample + count < self._group_size:
            rest = _Waiting(head.group, head.first_sample + count, head.prefilled)
            self._waiting.appendleft(rest)
        return fresh, head.prefilled

    def _sample(self, rows: list[_Row], logits_BV: Tensor) -> None:
        """Append one token to each row, inserted by the thinking budget or sampled."""
        for row in rows:
            if not row.queue and row.thinking.exhausted:
                row.queue.extend(self._reader.closing)
                row.thinking.close()
        forced = [row.queue.popleft() if row.queue else -1 for row in rows]
        noise_B = torch.from_numpy(
            uniforms(
                self._seed,
                np.array([self._keys[row.group] for row in rows], dtype=np.int64),
                samples=np.array([row.sample for row in rows], dtype=np.int64),
                positions=np.array([len(row.tokens) for row in rows], dtype=np.int64),
            )
        )
        device = logits_BV.device
        tokens_B, logprobs_B = self._decoder.sample(
            logits_BV,
            self._sampling,
            noise_B=noise_B.to(device),
            forced_B=torch.tensor(forced, device=device),
        )
        for row, token, logprob, was in zip(
            rows, tokens_B.tolist(), logprobs_B.tolist(), forced, strict=True
        ):
            if was >= 0:
                row.forced.append(len(row.tokens))
            row.tokens.append(token)
            row.logprobs.append(logprob)
            self._judge(row)

    def _judge(self, row: _Row) -> None:
        """Decide whether the newest token ends the row."""
        row.thinking.saw(self._reader, row.tokens)
        if row.tokens[-1] in self._ends:
            row.reason = FinishReason.STOP
            return
        stop = self._sampling.stop
        if stop and cut_at_stop(self._reader.tail(row.tokens, self._window), stop) is not None:
            row.text = cut_at_stop(self._reader.text(row.tokens), stop)
            if row.text is not None:
                row.reason = FinishReason.STOP
                return
        if len(row.tokens) >= self._sampling.max_new_tokens:
            row.reason = FinishReason.LENGTH

    def _retire(self) -> int:
        """Take finished rows out of the batch; how many left."""
        if all(row.reason is None for row in self._rows):
            return 0
        for row in self._rows:
            if row.reason is not None:
                self._finish(row, row.reason)
        before = len(self._rows)
        order = compaction([row.reason is None for row in self._rows])
        self._decoder.keep(order)
        self._rows = [self._rows[i] for i in order]
        return before - len(order)

    def _finish(self, row: _Row, reason: FinishReason) -> None:
        prompt = self._prompts[row.group]
        done = self._done[row.group]
        done[row.sample] = Completion(
            text=self._reader.text(row.tokens) if row.text is None else row.text,
            token_ids=tuple(row.tokens),
            sampler_logprobs=tuple(row.logprobs),
            finish_reason=reason,
            version=self._version,
            prompt_tail=prompt.text[-TAIL_CHARACTERS:],
            forced=tuple(row.forced),
        )
        if len(done) == self._group_size:
            group = Group(prompt, tuple(done[i] for i in range(self._group_size)))
            self._groups[row.group] = group
            if self._on_group is not None:
                self._on_group(group)


def compaction(alive: Sequence[bool]) -> list[int]:
    """An order of the living rows that moves as few as possible: the last ones fill the holes.

    >>> compaction([True, False, True, True])
    [0, 3, 2]
    """
    count = sum(alive)
    spare = [i for i in range(count, len(alive)) if alive[i]]
    return [i if alive[i] else spare.pop() for i in range(count)]


def prompt_keys(prompts: Sequence[Prompt]) -> list[int]:
    """One random key per prompt: a hash of problem id, tokens and how often it came before.

    Neither the place in the call nor the other prompts enter; a repeated prompt gets fresh noise.
    """
    seen: dict[tuple[str, tuple[int, ...]], int] = {}
    keys = []
    for prompt in prompts:
        name = (prompt.problem.id, tuple(prompt.token_ids))
        repeat = seen[name] = seen.get(name, -1) + 1
        digest = hashlib.blake2b(repr((*name, repeat)).encode(), digest_size=8).digest()
        keys.append(int.from_bytes(digest, "little", signed=True))
    return keys
