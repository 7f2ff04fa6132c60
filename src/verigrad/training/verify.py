"""Completions -> verdicts, while the engine still samples the other groups."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

from verigrad.errors import VerifierError
from verigrad.types import Group, Outcome, Verdict, Verifier


class Judge:
    """Verifies groups on a thread of its own as they come in; verdicts return in the order of the
    groups.

    A verifier that raises or answers with the wrong number of verdicts makes its group BROKEN,
    never wrong.
    """

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="verify")
        self._pending: dict[int, Future[Group]] = {}

    def hear(self, group: Group) -> None:
        """Start verifying a group that has just ended."""
        self._pending[id(group.prompt)] = self._pool.submit(verify, group, self._verifier)

    def verdicts(self, groups: Sequence[Group]) -> list[Group]:
        """The same groups with their verdicts."""
        judged: list[Group] = []
        for group in groups:
            waiting = self._pending.pop(id(group.prompt), None)
            done = waiting.result() if waiting is not None else None
            if done is None or done.completions != group.completions:
                done = verify(group, self._verifier)
            judged.append(done)
        return judged

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


def verify(group: Group, verifier: Verifier) -> Group:
    """The group with one verdict per completion."""
    problem, n = group.prompt.problem, len(group.completions)
    try:
        verdicts = list(verifier.verify(problem, group.completions))
    except Exception as e:
        # The verifier's edge: its failure is counted and shown, and never scored as a wrong answer.
        verdicts = [Verdict.broken(f"{verifier.name} raised {type(e).__name__}: {e}")] * n
    if len(verdicts) != n:
        reason = f"{verifier.name} returned {len(verdicts)} verdicts for {n} completions"
        verdicts = [Verdict.broken(reason)] * n
    return replace(group, verdicts=tuple(verdicts))


def check_broken(groups: Sequence[Group], *, limit: float, step: int) -> None:
    """Raise VerifierError where a larger share than ``limit`` of the verdicts is BROKEN."""
    verdicts = [v for group in groups for v in group.verdicts]
    broken = [v for v in verdicts if v.outcome is Outcome.BROKEN]
    if verdicts and len(broken) > limit * len(verdicts):
        raise VerifierError(
            f"step {step}: {len(broken)} of {len(verdicts)} verdicts are BROKEN, more than "
            f"verifier.max_broken_frac = {limit} allows. The first reason: {broken[0].reason} Mend "
            "the verifier (`verigrad audit`), or raise the limit."
        )
