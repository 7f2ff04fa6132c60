"""What crosses the pipe between a caller and its worker: records as plain tuples, since
read-only mappings don't pickle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from verigrad.types import Completion, FinishReason, Message, Outcome, Problem, Verdict

Packed = tuple[Any, ...]


def pack_problem(problem: Problem) -> Packed:
    """Return the problem as a tuple."""
    turns = [(m.role, m.content) for m in problem.messages]
    return problem.id, turns, problem.answer, problem.data_source, dict(problem.info)


def unpack_problem(packed: Packed) -> Problem:
    """Return the problem of a tuple."""
    id_, turns, answer, source, info = packed
    return Problem(id_, tuple(Message(*turn) for turn in turns), answer, source, info)


def pack_completions(completions: Sequence[Completion]) -> list[Packed]:
    """Return the completions as tuples, without their log-probabilities, which no reward reads."""
    return [
        (c.text, c.token_ids, str(c.finish_reason), c.version, c.prompt_tail, c.forced)
        for c in completions
    ]


def unpack_completions(packed: Sequence[Packed]) -> list[Completion]:
    """Return the completions of a list of tuples."""
    return [
        Completion(text, ids, (0.0,) * len(ids), FinishReason(finish), version, tail, forced)
        for text, ids, finish, version, tail, forced in packed
    ]


def pack_verdict(verdict: Verdict) -> Packed:
    """Return the verdict as a tuple."""
    return (
        str(verdict.outcome),
        verdict.reward,
        verdict.reason,
        verdict.extracted,
        dict(verdict.parts),
    )


def unpack_verdict(packed: Packed) -> Verdict:
    """Return the verdict of a tuple."""
    outcome, reward, reason, extracted, parts = packed
    return Verdict(Outcome(outcome), reward, reason, extracted, parts)
