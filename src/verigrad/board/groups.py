"""Groups of real completions as they are shown: read from a run directory or taken from a live
one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from verigrad.errors import RunDirectoryError
from verigrad.runlog import RunReader
from verigrad.types import Group

_SPECIAL = re.compile(r"<\|[^|<>]{1,40}\|>|</?s>|<(?:start|end)_of_turn>|\[/?INST\]")
_ROLE = re.compile(r"(?:^|\n)(?:user|human)\s*:?\s*\n", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ShownCompletion:
    """One completion with its verdict; ``advantage`` is None where it left before the update."""

    text: str
    outcome: str
    reward: float | None
    advantage: float | None
    num_tokens: int
    truncated: bool
    extracted: str | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ShownGroup:
    """One problem and what was sampled for it in one step."""

    step: int
    number: int
    problem_id: str
    question: str
    answer: str | None
    completions: tuple[ShownCompletion, ...]

    def is_kind(self, kind: str) -> bool:
        """True when the group is right, wrong, mixed, silent, broken (any) or truncated (any)."""
        outcomes = {c.outcome for c in self.completions}
        rewards = {c.reward for c in self.completions if c.reward is not None}
        return {
            "right": outcomes == {"correct"},
            "wrong": "correct" not in outcomes,
            "mixed": "correct" in outcomes and len(outcomes) > 1,
            "silent": len(rewards) <= 1,
            "broken": "broken" in outcomes,
            "truncated": any(c.truncated for c in self.completions),
        }[kind]

    @property
    def num_right(self) -> int:
        """Completions judged correct."""
        return sum(c.outcome == "correct" for c in self.completions)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


def from_live(step: int, group: Group) -> ShownGroup:
    """Return a judged group of a running step as it is shown."""
    shown = [
        ShownCompletion(
            text=completion.text,
            outcome=verdict.outcome.value,
            reward=verdict.reward,
            advantage=None,
            num_tokens=len(completion.token_ids),
            truncated=completion.truncated,
            extracted=verdict.extracted,
            reason=verdict.reason,
        )
        for completion, verdict in zip(group.completions, group.verdicts, strict=False)
    ]
    problem = group.prompt.problem
    return ShownGroup(step, 0, problem.id, problem.question, problem.answer, tuple(shown))


def read_groups(
    run: RunReader, *, step: int | None = None, group: int | None = None
) -> list[ShownGroup]:
    """Return the groups of a kept step (the last by default), or one of them. Raises
    RunDirectoryError."""
    steps = run.rollout_steps()
    if not steps:
        raise RunDirectoryError(
            f"{run.path} kept no rollouts (logging.rollouts = false, or no step yet)."
        )
    rows = run.rollouts(steps[-1] if step is None else step)
    found = _grouped(rows)
    if group is None:
        return found
    one = [g for g in found if g.number == group]
    if not one:
        raise RunDirectoryError(
            f"step {found[0].step} of {run.path} has no group {group}; it has 0 to "
            f"{len(found) - 1}."
        )
    return one


def question_in(prompt: str) -> str:
    """Return the last user turn of a rendered prompt, without chat markers; the tail where none is
    found."""
    text = _SPECIAL.sub("\n", prompt)
    starts = [m.end() for m in _ROLE.finditer(text)]
    body = text[starts[-1] :] if starts else text[-600:]
    body = re.split(r"\n(?:assistant|model)\s*:?\s*(?:\n|$)", body)[0]
    return body.strip()


def _grouped(rows: Sequence[Mapping[str, Any]]) -> list[ShownGroup]:
    by_number: dict[int, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_number.setdefault(int(row["group"]), []).append(row)
    return [
        ShownGroup(
            step=int(members[0]["step"]),
            number=number,
            problem_id=str(members[0].get("problem_id", "")),
            question=question_in(str(members[0].get("prompt", ""))),
            answer=members[0].get("answer"),
            completions=tuple(_completion(m) for m in members),
        )
        for number, members in sorted(by_number.items())
    ]


def _completion(row: Mapping[str, Any]) -> ShownCompletion:
    return ShownCompletion(
        text=str(row.get("completion", "")),
        outcome=str(row.get("outcome", "")),
        reward=row.get("reward"),
        advantage=row.get("advantage"),
        num_tokens=int(row.get("num_tokens") or 0),
        truncated=row.get("finish_reason") == "length",
        extracted=row.get("extracted"),
        reason=str(row.get("reason") or ""),
    )
