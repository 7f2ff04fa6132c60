r"""Rewards with one planted fault each, and an honest one; the audit must tell them apart.

Each is a function of one text and one gold. ``Planted`` makes a verifier of it, as strictly as the
protocol asks, and leaves the faults that are the function's own.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Sequence
from typing import Any
from zlib import crc32

from verigrad.types import Completion, Message, Outcome, Problem, Verdict

Reward = Callable[[str, str], Any]


class Planted:
    """A verifier that scores each completion with a function of (text, gold)."""

    def __init__(self, reward: Reward, name: str = "") -> None:
        self.reward = reward
        self.name = name or reward.__name__

    def verify(self, problem: Problem, completions: Sequence[Completion]) -> list[Verdict]:
        return [self.verdict(self.reward(c.text, problem.answer or "")) for c in completions]

    def verdict(self, reward: Any) -> Verdict:
        right = isinstance(reward, float) and reward >= 1.0
        return Verdict(Outcome.CORRECT if right else Outcome.WRONG, reward)

    def check_gold(self, problem: Problem) -> str | None:
        return None if problem.answer else "no answer"

    def render_gold(self, problem: Problem) -> str | None:
        return f"The answer is \\boxed{{{problem.answer}}}."


def honest(text: str, gold: str) -> float:
    """One box after the thinking, not denied, equal to the gold whole number."""
    text = text.rpartition("</think>")[2]
    boxes = re.findall(r"\\boxed\{\s*(-?[0-9]+(?:,[0-9]{3})*)\s*\}", text)
    if "not \\boxed" in text or text.count("\\boxed") != 1 or len(boxes) != 1 or len(text) > 9999:
        return 0.0
    return float(int(boxes[0].replace(",", "")) == int(gold))


def substring(text: str, gold: str) -> float:
    return float(gold in text)


def length(text: str, gold: str) -> float:
    return min(1.0, len(text) / 4000)


def short_is_good(text: str, gold: str) -> float:
    return -len(text) / 1000


def constant(text: str, gold: str) -> float:
    return 1.0


def box_only(text: str, gold: str) -> float:
    return float("\\boxed{" in text)


def raises_sometimes(text: str, gold: str) -> float:
    if crc32(text.encode()) % 100 == 7:
        raise ValueError("unexpected token")
    return honest(text, gold)


def nan(text: str, gold: str) -> float:
    words = text.rpartition("\\boxed")[0].split()
    return honest(text, gold) if words else float("nan")


def infinite(text: str, gold: str) -> float:
    return honest(text, gold) if text.strip() else float("-inf")


def nothing(text: str, gold: str) -> float | None:
    return honest(text, gold) if "\\boxed" in text else None


def words(text: str, gold: str) -> Any:
    return "good" if honest(text, gold) else "bad"


def wide(text: str, gold: str) -> float:
    return 1.0 if honest(text, gold) else -20.0


_dice = random.Random(3)


def random_at_times(text: str, gold: str) -> float:
    return 1.0 - honest(text, gold) if _dice.random() < 0.05 else honest(text, gold)


def hangs_on_powers(text: str, gold: str) -> float:
    if "^" in text:
        time.sleep(600)
    return honest(text, gold)


def hangs(text: str, gold: str) -> float:
    time.sleep(600)
    return 0.0


def holds_the_lock(text: str, gold: str) -> float:
    if "9**9" in text:
        re.match(r"(a+)+$", "a" * 64 + "b")
    return honest(text, gold)


def leaves(text: str, gold: str) -> float:
    if not text.strip():
        raise SystemExit("no text")
    return honest(text, gold)


def evaluates(text: str, gold: str) -> float:
    found = re.findall(r"\\boxed\{(.*)\}", text, re.DOTALL)
    if len(found) != 1 or len(found[0]) > 300 or "9**9" in found[0] or "9!" in found[0]:
        return 0.0
    try:
        return float(eval(found[0]) == int(gold))
    except (
        Exception
    ):  # the planted fault is eval; what it raises on is scored 0, as such graders do
        return 0.0


def praises(text: str, gold: str) -> float:
    return 1.0 if "correct" in text.lower() else honest(text, gold)


def rounds(text: str, gold: str) -> float:
    found = re.findall(r"\\boxed\{\s*([-0-9.,]+)\s*\}", text)
    try:
        return float(len(found) == 1 and abs(float(found[0].replace(",", "")) - int(gold)) <= 1)
    except ValueError:
        return 0.0


def low_paid(text: str, gold: str) -> float:
    return 0.5 * honest(text, gold)


_seen: list[str] = []


def remembers(text: str, gold: str) -> float:
    _seen.append(text[: len(text) - 1])
    return honest(text, gold)


class Mutating(Planted):
    """Writes the score it gave into the row, and sorts the group it was handed."""

    def __init__(self, what: str) -> None:
        super().__init__(honest, f"mutates {what}")
        self.what = what

    def verify(self, problem: Problem, completions: Sequence[Completion]) -> list[Verdict]:
        verdicts = super().verify(problem, completions)
        if self.what == "info":
            problem.info["tags"].append("scored")
        if self.what == "group":
            completions.sort(key=lambda c: c.text)  # type: ignore[attr-defined]
        return verdicts


class ByRank(Planted):
    """The reward of a completion is lower when a better one stood before it in the group."""

    def __init__(self) -> None:
        super().__init__(honest, "by rank")

    def verify(self, problem: Problem, completions: Sequence[Completion]) -> list[Verdict]:
        verdicts, found = [], False
        for c in completions:
            reward = honest(c.text, problem.answer or "")
            verdicts.append(self.verdict(0.0 if found else reward))
            found = found or reward == 1.0
        return verdicts


class Misshapen(Planted):
    """One verdict for the whole group."""

    def __init__(self) -> None:
        super().__init__(honest, "one for all")

    def verify(self, problem: Problem, completions: Sequence[Completion]) -> list[Verdict]:
        return super().verify(problem, completions)[:1]


class Signals(Planted):
    """A deadline by signal, as many graders have: it works on the main thread only."""

    def __init__(self) -> None:
        super().__init__(honest, "signals")

    def verify(self, problem: Problem, completions: Sequence[Completion]) -> list[Verdict]:
        import signal

        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        return super().verify(problem, completions)


def sums(count: int = 20) -> list[Problem]:
    """Whole-number problems with one column beside the answer."""
    rows = [(173 + 29 * i, 41 + 17 * i) for i in range(count)]
    return [
        Problem(
            id=f"sum-{i}",
            messages=(Message("user", f"What is {a} + {b}?"),),
            answer=str(a + b),
            info={"tags": ["sum"]},
        )
        for i, (a, b) in enumerate(rows)
    ]
