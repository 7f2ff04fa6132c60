"""Does a foreign reward write into its arguments? Its wrapper hands it copies, so nobody would
notice.

The function is loaded in a child process and called through a spy that compares its arguments
before and after. In its own framework those arguments are shared with other rewards and with the
log.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from verigrad.audit.calls import Call, Setting
from verigrad.audit.cases import Form
from verigrad.audit.isolate import Caller
from verigrad.audit.report import shown
from verigrad.types import Completion, Outcome, Problem, Verdict
from verigrad.verifiers.foreign.verifier import ForeignVerifier

_FUNCTIONS = ("trl", "verl", "openrlhf", "plain")
"""Frameworks whose reward is a function of arguments we pass."""


class _Spy:
    """Calls the reward and keeps what it changed; the signature is not asked for again."""

    def __init__(self, target: Any) -> None:
        self._target = target
        self.changed = ""

    def __call__(self, *args: Any, **named: Any) -> Any:
        before = _copies(named)
        reward = self._target(*args, **named)
        for name, old in before.items():
            if not _same(old, named[name]):
                now = shown(named[name], 60)
                self.changed = f"{name} was {shown(old, 60)} before the call and {now} after"
        return reward


class _Spying:
    """A verifier whose reason says what the reward changed."""

    def __init__(self, verifier: ForeignVerifier) -> None:
        self._verifier = verifier
        self.name = verifier.name

    def verify(self, problem: Problem, completions: Sequence[Completion]) -> list[Verdict]:
        """Score the completions through the spy; the reason of each verdict is what was changed."""
        from verigrad.verifiers.foreign.calls import Caller as Scorer
        from verigrad.verifiers.foreign.prepare import prepare

        loaded = prepare(self._verifier.source, self._verifier.options)
        spy = _Spy(loaded.target)
        scorer = Scorer(spy, loaded.plan, loaded.options)
        handed = list(completions)
        for _ in scorer.score(problem, handed, singly=False):
            pass
        return [Verdict(Outcome.WRONG, 0.0, spy.changed)] * len(completions)

    def check_gold(self, problem: Problem) -> str | None:
        """Say nothing: the audit has asked before."""
        return None

    def render_gold(self, problem: Problem) -> str | None:
        """Return None: the audit has asked before."""
        return None


def changed_inputs(setting: Setting, forms: Sequence[Form], *, limit_s: float) -> list[str]:
    """Return what a foreign reward changed in its arguments, one line for each of two problems."""
    verifier = setting.verifier
    if not isinstance(verifier, ForeignVerifier) or verifier.plan.framework not in _FUNCTIONS:
        return []
    if verifier.source.spec.where.startswith("verigrad."):
        return []  # ours, in a worker for its deadline
    found: list[str] = []
    spied = replace(setting, verifier=_Spying(verifier))
    with Caller(spied, deadline_s=limit_s, start_s=limit_s) as caller:
        for form in forms[:2]:
            (reply,) = caller.run([Call("verify", form.problem, (form.text, "I do not know."))])
            if reply.fault:
                return found
            if reply.scores[0].reason:
                found.append(
                    f"problem {setting.problems[form.problem].id!r}: {reply.scores[0].reason}"
                )
    return found


def _copies(named: dict[str, Any]) -> dict[str, Any]:
    copies: dict[str, Any] = {}
    for name, value in named.items():
        try:
            copies[name] = copy.deepcopy(value)
        except Exception:  # a framework's own object (a trainer's state) isn't data to compare
            continue
    return copies


def _same(one: Any, other: Any) -> bool:
    try:
        return bool(one == other)
    except Exception:  # arrays and the like are compared by what they print
        return repr(one) == repr(other)
