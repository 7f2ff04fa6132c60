"""A foreign reward as a verifier: same calls as ours, every failure a BROKEN verdict with its
reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from verigrad.errors import RecipeError
from verigrad.types import Completion, FinishReason, Outcome, Problem, Verdict
from verigrad.verifiers.base import column, explain
from verigrad.verifiers.foreign.calls import gold_of
from verigrad.verifiers.foreign.runners import LostError, make_runner
from verigrad.verifiers.foreign.spec import ForeignOptions, Framework, Source, Spec, read_options

MAX_LOST = 3
"""Calls lost (late or dead) within one group before its rest is given up."""

_GOLD_FORMATS = (
    "The answer is \\boxed{{{answer}}}.",
    "<answer>{answer}</answer>",
    "#### {answer}",
    "{answer}",
    "<think>\nI work it out.\n</think>\n\\boxed{{{answer}}}",
    "<think>\nI work it out.\n</think>\n<answer>{answer}</answer>",
    "Answer: {answer}",
)
"""How right answers are usually written, tried in this order when the recipe names no
gold_format."""


class ForeignVerifier:
    """Owns the runner of one foreign reward; made by ``make_verifier`` (a spec) or
    ``wrap_reward`` (a function)."""

    def __init__(self, source: Source, options: ForeignOptions) -> None:
        self.source = source
        self.options = options
        self.num_lost = 0
        self._runner = make_runner(source, options)
        self.plan = self._runner.start()

    @property
    def name(self) -> str:
        """The spec, as the recipe names it."""
        return self.source.spec.text

    def describe(self) -> str:
        """Return the resolved call as one line."""
        where = (
            "in this process"
            if self._runner.__class__.__name__ == "ThreadRunner"
            else "in a worker process"
        )
        return (
            f"{self.name} -> {self.plan.describe()}, {where}, {self.options.deadline_s:g} s a "
            f"completion"
        )

    def verify(self, problem: Problem, completions: Sequence[Completion]) -> list[Verdict]:
        """Return one verdict for each completion; whatever goes wrong is BROKEN for the
        completion it concerns."""
        fault = self.check_gold(problem)
        if fault is not None:
            return [Verdict.broken(fault) for _ in completions]
        verdicts: list[Verdict] = []
        singly, lost = False, 0
        while len(verdicts) < len(completions):
            rest = completions[len(verdicts) :]
            batched = self.plan.framework in ("trl", "verigrad") and not singly
            limit_s = self.options.deadline_s * (len(rest) if batched else 1)
            try:
                for _, verdict in self._runner.judge(problem, rest, singly=singly, limit_s=limit_s):
                    verdicts.append(verdict)
            except LostError as error:
                self.num_lost += 1
                if batched and len(rest) > 1:
                    singly = True  # find the culprit: the others must not suffer for it
                    continue
                lost += 1
                verdicts.append(Verdict.broken(f"{self.name}: {error}"))
                if lost >= MAX_LOST:
                    left = len(completions) - len(verdicts)
                    reason = f"{self.name}: not called, {lost} of this group missed the deadline"
                    verdicts += [Verdict.broken(reason)] * left
            except Exception as error:
                # a row that can't be pickled, or a reward that can't be loaded a second time
                left = len(completions) - len(verdicts)
                verdicts += [Verdict.broken(f"{self.name}: raised {explain(error)}")] * left
        return verdicts

    def check_gold(self, problem: Problem) -> str | None:
        """Return None when the row has every column that the reward's parameters need, else what
        is missing."""
        for parameter, source in self.plan.sources:
            if parameter not in self.plan.needed:
                continue
            if source == "gold" and gold_of(problem) is None:
                return (
                    f"the problem has no answer, which {self.plan.name}'s parameter {parameter!r} "
                    f"needs"
                )
            if source.startswith("column:") and column(problem, source[7:]) is None:
                has = ", ".join(sorted(problem.info)) or "none"
                return (
                    f"the row has no column {source[7:]!r}, which {self.plan.name}'s parameter "
                    f"{parameter!r} needs (columns: {has})"
                )
        return None

    def render_gold(self, problem: Problem) -> str | None:
        """Return the gold in ``gold_format``, or in the first usual format that the reward
        accepts."""
        answer = gold_of(problem)
        if answer is None:
            return None
        answer = str(answer)
        if self.options.gold_format is not None:
            return self.options.gold_format.replace("{answer}", answer)
        final = answer.rpartition("####")[2].strip()
        candidates = [f.format(answer=final) for f in _GOLD_FORMATS]
        for text in candidates:
            verdict = self.verify(problem, [_completion(text)])[0]
            if verdict.outcome is Outcome.CORRECT:
                return text
        return candidates[0]

    def close(self) -> None:
        """End the worker process, if there is one."""
        self._runner.close()


def _completion(text: str) -> Completion:
    ids = tuple(range((len(text) + 3) // 4))
    return Completion(text, ids, (0.0,) * len(ids), FinishReason.STOP)


def wrap_reward(
    function: Any, framework: Framework | None = None, *, options: dict[str, Any] | None = None
) -> ForeignVerifier:
    """Return a reward function (or rubric, scorer, verifier object) of this process as a verifier.

    It runs in a thread of this process; a spec string given to ``make_verifier`` runs in a worker
    that can be killed. ``framework`` overrides the recognition. Raises RecipeError when it can't be
    recognised.

    >>> wrap_reward(lambda completion, answer: float(answer in completion)).plan.framework
    'plain'
    """
    name = getattr(function, "__name__", type(function).__name__)
    if not callable(function) and not hasattr(function, "__dict__"):
        raise RecipeError(f"wrap_reward needs a function, a rubric or a scorer, not {function!r}")
    spec = Spec(name, framework, "this process", name)
    return ForeignVerifier(Source(spec, target=function), read_options(name, options or {}))
