"""Several verifiers as one: a weighted sum, a gate, all of them, any of them, or a cosine over
length.

Parts keep their names and rewards in ``Verdict.parts``; normalising each reward apart is the
objective's business (its ``combine`` axis), not the verifier's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from verigrad.types import Completion, Outcome, Problem, Verdict, Verifier
from verigrad.verifiers.base import ABSTAINS

Op = Literal["sum", "gate", "all", "any"]


@dataclass(frozen=True)
class WeightedPart:
    """One verifier of a composition, the name of its part, its weight, and whether it decides
    the outcome."""

    name: str
    verifier: Verifier
    weight: float = 1.0
    decides: bool = False


@dataclass(frozen=True)
class ComposeVerifier:
    """Judges with every part and puts their verdicts together.

    ``sum``: the weighted sum of the rewards; the outcome is that of the deciding part (the first,
    unless one says ``decides``). A part that abstains (TRL's None) is left out, one that is BROKEN
    breaks the sum. ``gate``: every part but the last must be correct, or the reward is 0 and the
    outcome wrong; then the last part's verdict holds, times its weight. ``all``: correct when every
    part is, reward the smallest. ``any``: correct when one part is, reward the largest. gate, all
    and any ask a part only about the completions that are still open: put the cheap parts first.
    """

    op: Op
    parts: tuple[WeightedPart, ...]

    @property
    def name(self) -> str:
        """``gate(format, math)``: the operation and its parts."""
        return f"{self.op}({', '.join(p.name for p in self.parts)})"

    def describe(self) -> str:
        """Return the resolved composition as one line."""
        from verigrad.verifiers.registry import describe

        shown = [
            describe(p.verifier) + ("" if p.weight == 1 else f" * {p.weight:g}") for p in self.parts
        ]
        return f"compose {self.op}[{'; '.join(shown)}]"

    def verify(self, problem: Problem, completions: Sequence[Completion]) -> list[Verdict]:
        """Return one verdict for each completion, in order."""
        judge: Callable[..., list[Verdict]] = {
            "sum": self._sum, "gate": self._gate, "all": self._all, "any": self._any,
        }[self.op]  # fmt: skip
        return judge(problem, completions)

    def check_gold(self, problem: Problem) -> str | None:
        """The first part that can't use the problem speaks for all; ``any`` needs one that can."""
        faults = [p.verifier.check_gold(problem) for p in self.parts]
        named = [f"{p.name}: {f}" for p, f in zip(self.parts, faults, strict=True) if f is not None]
        if self.op == "any" and len(named) < len(self.parts):
            return None
        return named[0] if named else None

    def render_gold(self, problem: Problem) -> str | None:
        """The first part's rendering that the whole composition accepts; else the deciding
        part's own."""
        drafts = [p.verifier.render_gold(problem) for p in self.parts]
        answers = [d for d in drafts if d is not None]
        thinking = "<think>\nI work it out.\n</think>\n"
        candidates = [*answers, *(thinking + a for a in answers if "</think>" not in a)]
        for text in candidates:
            if self.verify(problem, [_plain_completion(text)])[0].outcome is Outcome.CORRECT:
                return text
        return drafts[self._decider()] or (answers[0] if answers else None)

    def _decider(self) -> int:
        if self.op == "sum":
            return next((i for i, p in enumerate(self.parts) if p.decides), 0)
        return len(self.parts) - 1 if self.op == "gate" else 0

    def _sum(self, problem: Problem, completions: Sequence[Completion]) -> list[Verdict]:
        columns = [p.verifier.verify(problem, completions) for p in self.parts]
        return [self._add([c[i] for c in columns]) for i in range(len(completions))]

    def _add(self, verdicts: Sequence[Verdict]) -> Verdict:
        total = 0.0
        rewards: dict[str, float] = {}
        for part, verdict in zip(self.parts, verdicts, strict=True):
            if verdict.reward is None:
                if verdict.reason == ABSTAINS:
                    continue
                return Verdict.broken(f"{part.name}: {verdict.reason}")
            rewards[part.name] = verdict.reward
            total += part.weight * verdict.reward
        if not rewards:
            return Verdict.broken(ABSTAINS)
        if not math.isfinite(total):
            return Verdict.broken(f"the weighted sum is {total}, not a finite number")
        decider = verdicts[self._decider()]
        if decider.reward is None:
            decider = next(v for v in verdicts if v.reward is not None)
        reason = "; ".join(
            f"{p.name}: {v.reason}" for p, v in zip(self.parts, verdicts, strict=True) if v.reason
        )
        return Verdict(decider.outcome, total, reason, decider.extracted, rewards)

    def _gate(self, problem: Problem, completions: Sequence[Completion]) -> list[Verdict]:
        def closes(
            part: WeightedPart, verdict: Verdict, rewards: dict[str, float]
        ) -> Verdict | None:
            if part is self.parts[-1]:
                if verdict.reward is None:
                    return Verdict.broken(f"{part.name}: {verdict.reason}")
                reward = part.weight * verdict.reward
                return Verdict(verdict.outcome, reward, verdict.reason, verdict.extracted, rewards)
            return (
                None if verdict.outcome is Outcome.CORRECT else self._closed(part, verdict, rewards)
            )

        return self._cascade(problem, completions, closes)

    def _closed(self, part: WeightedPart, verdict: Verdict, rewards: dict[str, float]) -> Verdict:
        """A gate that does not open: no reward, and its reason."""
        if verdict.reward is None:
            return Verdict.broken(f"{part.name}: {verdict.reason}")
        return Verdict(Outcome.WRONG, 0.0, f"gate {part.name}: {verdict.reason}", None, rewards)

    def _all(self, problem: Problem, completions: Sequence[Completion]) -> list[Verdict]:
        def closes(
            part: WeightedPart, verdict: Verdict, rewards: dict[str, float]
        ) -> Verdict | None:
            if verdict.reward is None:
                return Verdict.broken(f"{part.name}: {verdict.reason}")
            if verdict.outcome is not Outcome.CORRECT:
                reason = f"{part.name}: {verdict.reason}"
                return Verdict(
                    verdict.outcome, min(rewards.values()), reason, verdict.extracted, rewards
                )
            if part is not self.parts[-1]:
                return None
            return Verdict(Outcome.CORRECT, min(rewards.values()), "", verdict.extracted, rewards)

        return self._cascade(problem, completions, closes)

    def _any(self, problem: Problem, completions: Sequence[Completion]) -> list[Verdict]:
        broken: dict[int, str] = {}

        def closes(
            part: WeightedPart, verdict: Verdict, rewards: dict[str, float]
        ) -> Verdict | None:
            if verdict.reward is None:
                broken.setdefault(id(rewards), f"{part.name}: {verdict.reason}")
            elif verdict.outcome is Outcome.CORRECT:
                return Verdict(
                    Outcome.CORRECT, max(rewards.values()), part.name, verdict.extracted, rewards
                )
            if part is not self.parts[-1]:
                return None
            if id(rewards) in broken:
                return Verdict.broken(broken[id(rewards)])
            return Verdict(
                verdict.outcome, max(rewards.values()), "no part accepts it", None, rewards
            )

        return self._cascade(problem, completions, closes)

    def _cascade(
        self,
        problem: Problem,
        completions: Sequence[Completion],
        closes: Callable[[WeightedPart, Verdict, dict[str, float]], Verdict | None],
    ) -> list[Verdict]:
        """Ask the parts in order, each about the completions that no earlier part has closed."""
        final: dict[int, Verdict] = {}
        rewards: list[dict[str, float]] = [{} for _ in completions]
        for part in self.parts:
            still_open = [i for i in range(len(completions)) if i not in final]
            if not still_open:
                break
            verdicts = part.verifier.verify(problem, [completions[i] for i in still_open])
            for i, verdict in zip(still_open, verdicts, strict=True):
                if verdict.reward is not None:
                    rewards[i][part.name] = verdict.reward
                closed = closes(part, verdict, rewards[i])
                if closed is not None:
                    final[i] = closed
        return [final[i] for i in range(len(completions))]


@dataclass(frozen=True)
class CosineLengthVerifier:
    """The cosine reward over length: right answers earn less, wrong ones lose less, the longer they
    are.

    R = end + (start - end) (1 + cos(pi length / max_tokens)) / 2, with (start, end) of the inner
    verdict, and ``exceeded`` from max_tokens on ("Demystifying Long Chain-of-Thought", arXiv
    2502.03373, section 4). The outcome stays the inner one.
    """

    inner: Verifier
    max_tokens: int
    correct: tuple[float, float] = (1.0, 0.5)
    wrong: tuple[float, float] = (-1.0, -0.5)
    exceeded: float | None = None

    @property
    def name(self) -> str:
        """``cosine_length(math)``."""
        return f"cosine_length({self.inner.name})"

    def describe(self) -> str:
        """Return the resolved shaping as one line."""
        from verigrad.verifiers.registry import describe

        (a, b), (c, d) = self.correct, self.wrong
        shape = f"max_tokens={self.max_tokens}, correct {a:g} to {b:g}, wrong {c:g} to {d:g}"
        shape += "" if self.exceeded is None else f", exceeded {self.exceeded:g}"
        return f"cosine_length[{describe(self.inner)}; {shape}]"

    def verify(self, problem: Problem, completions: Sequence[Completion]) -> list[Verdict]:
        """Return one verdict for each completion, in order; BROKEN stays BROKEN."""
        inner = self.inner.verify(problem, completions)
        return [self._shape(v, len(c.token_ids)) for v, c in zip(inner, completions, strict=True)]

    def check_gold(self, problem: Problem) -> str | None:
        """The inner verifier's word."""
        return self.inner.check_gold(problem)

    def render_gold(self, problem: Problem) -> str | None:
        """The inner verifier's rendering."""
        return self.inner.render_gold(problem)

    def _shape(self, verdict: Verdict, length: int) -> Verdict:
        if verdict.reward is None:
            return verdict
        right = verdict.outcome is Outcome.CORRECT
        start, end = self.correct if right else self.wrong
        reward = cosine_reward(length, max_tokens=self.max_tokens, start=start, end=end)
        if self.exceeded is not None and length >= self.max_tokens:
            reward = self.exceeded
        parts = {self.inner.name: verdict.reward, **verdict.parts}
        return Verdict(verdict.outcome, reward, verdict.reason, verdict.extracted, parts)


def cosine_reward(length: int, *, max_tokens: int, start: float, end: float) -> float:
    """From ``start`` at length 0 to ``end`` at ``max_tokens`` (and beyond) along half a cosine.

    >>> [round(cosine_reward(n, max_tokens=100, start=1.0, end=0.5), 4) for n in (0, 50, 100, 200)]
    [1.0, 0.75, 0.5, 0.5]
    """
    progress = min(length / max_tokens, 1.0)
    return end + (start - end) * (1 + math.cos(math.pi * progress)) / 2


def _plain_completion(text: str) -> Completion:
    from verigrad.types import FinishReason

    ids = tuple(range((len(text) + 3) // 4))
    return Completion(text, ids, (0.0,) * len(ids), FinishReason.STOP)
