"""All that crosses a wall between rooms: Problem, Prompt, Completion, Verdict, Group, Batch.

Data walks one way: ``Problem -> Prompt -> Completion -> Verdict -> Group -> Batch -> weights``.
Every record here is frozen; nobody writes into what it was handed. This file loads without torch.

Shape legend for tensors: P prompts, G group, B completions in a batch, T completion tokens, V
vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from torch import Tensor

EMPTY: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Message:
    """One chat turn. ``role`` is system, user, assistant or tool."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Problem:
    """What is to be solved, and what the verifier may know about it.

    ``messages`` holds the question as chat turns (a plain question is one user turn). ``answer`` is
    the gold answer as text, or None where the verifier needs none (constraints then sit in
    ``info``). ``info`` keeps every other column of the source row untouched.
    """

    id: str
    messages: tuple[Message, ...]
    answer: str | None
    data_source: str = ""
    info: Mapping[str, Any] = field(default_factory=lambda: EMPTY)

    @property
    def question(self) -> str:
        """The last user turn."""
        return next((m.content for m in reversed(self.messages) if m.role == "user"), "")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A problem rendered through a chat template: exactly what the model reads."""

    problem: Problem
    text: str
    token_ids: tuple[int, ...]


class FinishReason(StrEnum):
    """Why a completion ended."""

    STOP = "stop"
    """The model emitted an end-of-sequence token or a stop string."""
    LENGTH = "length"
    """The token limit cut it: the completion is truncated."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What the engine sampled for one prompt.

    ``token_ids`` and ``sampler_logprobs`` have the same length; the end-of-sequence token, when
    sampled, is part of both. ``forced`` lists positions that were inserted (thinking budget) and
    are never trained on. ``prompt_tail`` is the end of the prompt, which a format verifier needs
    when the template prefills ``<think>``. ``version`` is the version of the weights that sampled
    it.
    """

    text: str
    token_ids: tuple[int, ...]
    sampler_logprobs: tuple[float, ...]
    finish_reason: FinishReason
    version: int = 0
    prompt_tail: str = ""
    forced: tuple[int, ...] = ()

    @property
    def truncated(self) -> bool:
        """True when the token limit cut the completion."""
        return self.finish_reason is FinishReason.LENGTH


class Outcome(StrEnum):
    """The four things a verifier can say."""

    CORRECT = "correct"
    WRONG = "wrong"
    UNPARSED = "unparsed"
    """No answer could be found in the completion: wrong, and counted apart."""
    BROKEN = "broken"
    """The gold answer or the verifier failed. No reward: it leaves the group and is counted."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verifier's word on one completion.

    ``reward`` is None exactly when the outcome is BROKEN; otherwise a finite number, 1.0 for
    CORRECT and 0.0 for WRONG and UNPARSED unless partial credit was asked for. ``parts`` holds
    named component rewards, in the order the recipe lists them.
    """

    outcome: Outcome
    reward: float | None
    reason: str = ""
    extracted: str | None = None
    parts: Mapping[str, float] = field(default_factory=lambda: EMPTY)

    @staticmethod
    def correct(reason: str = "", extracted: str | None = None) -> Verdict:
        return Verdict(Outcome.CORRECT, 1.0, reason, extracted)

    @staticmethod
    def wrong(reason: str = "", extracted: str | None = None) -> Verdict:
        return Verdict(Outcome.WRONG, 0.0, reason, extracted)

    @staticmethod
    def unparsed(reason: str = "") -> Verdict:
        return Verdict(Outcome.UNPARSED, 0.0, reason)

    @staticmethod
    def broken(reason: str) -> Verdict:
        return Verdict(Outcome.BROKEN, None, reason)


@runtime_checkable
class Verifier(Protocol):
    """Turns completions into verdicts; every verifier, ours or foreign, is one of these.

    ``verify`` takes one problem and the completions sampled for it and returns one verdict each, in
    order. It never raises for what a completion contains; it returns BROKEN for its own failures
    and for an unusable gold.
    """

    @property
    def name(self) -> str: ...

    def verify(self, problem: Problem, completions: Sequence[Completion]) -> list[Verdict]: ...

    def check_gold(self, problem: Problem) -> str | None:
        """Return None when the problem can be verified, else the reason why not (for example an
        unparsable answer)."""
        ...

    def render_gold(self, problem: Problem) -> str | None:
        """Return a completion text that states the gold answer in the expected format, None where
        no gold exists."""
        ...


@dataclass(frozen=True, slots=True)
class Sampling:
    """How completions are sampled. Neutral by default, never inherited from a model's generation
    config."""

    max_new_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    stop: tuple[str, ...] = ()
    thinking_budget: int | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """The completions sampled for one prompt, and (once judged) one verdict each."""

    prompt: Prompt
    completions: tuple[Completion, ...]
    verdicts: tuple[Verdict, ...] = ()

    @property
    def rewards(self) -> tuple[float | None, ...]:
        """One reward per completion; None where the verdict is BROKEN."""
        return tuple(v.reward for v in self.verdicts)


@runtime_checkable
class Engine(Protocol):
    """Turns prompts into completions. ``load`` is the one arrow that returns: the weights, with
    their version."""

    def generate(
        self,
        prompts: Sequence[Prompt],
        sampling: Sampling,
        *,
        group_size: int,
        seed: int,
        on_group: Callable[[Group], None] | None = None,
    ) -> list[Group]:
        """Sample ``group_size`` completions per prompt. Groups return in prompt order; ``on_group``
        hears each as it ends.

        The same weights, prompts, sampling and seed give the same completions, whatever else is in
        the batch.
        """
        ...

    def load(self, weights: Mapping[str, Tensor], *, version: int) -> None:
        """Take the policy's weights (Hugging Face names); completions sampled from now on carry
        ``version``."""
        ...


@dataclass(frozen=True, slots=True)
class Batch:
    """One optimiser batch: the rows that carry signal, ragged, with their advantages.

    Row b is completion ``completions[b]`` of ``prompts[b]``; ``group_index[b]`` says which group it
    belongs to (rows of one group are adjacent). ``advantages`` is a float32 tensor of shape (B,).
    ``num_*`` count what left before.
    """

    prompts: tuple[Prompt, ...]
    completions: tuple[Completion, ...]
    group_index: tuple[int, ...]
    rewards: tuple[float, ...]
    advantages: Tensor
    num_groups: int
    num_silent_groups: int
    num_broken: int

    def __len__(self) -> int:
        return len(self.completions)
