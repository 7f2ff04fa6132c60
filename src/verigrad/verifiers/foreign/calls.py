"""Call a reward by its plan: one function for each framework, all of them on copies of what they
are handed."""

# Rows and replies are other people's data: their types are checked at run time.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import asyncio
import copy
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from verigrad.types import Completion, Message, Problem, Verdict
from verigrad.verifiers.base import column
from verigrad.verifiers.foreign.recognise import Plan
from verigrad.verifiers.foreign.results import Fault, failed, to_rows, to_verdict
from verigrad.verifiers.foreign.spec import ForeignOptions


class Caller:
    """A loaded reward, its plan and the event loop its coroutines live on."""

    def __init__(self, target: Any, plan: Plan, options: ForeignOptions) -> None:
        self.target = target
        self.plan = plan
        self.options = options
        self._loop: asyncio.AbstractEventLoop | None = None

    def score(
        self, problem: Problem, completions: Sequence[Completion], *, singly: bool
    ) -> Iterator[tuple[int, Verdict]]:
        """Yield (index, verdict) for each completion, in order.

        A function that takes a whole batch is called once; when that call fails (or ``singly`` is
        set) it is called for each completion, so that only the culprit is BROKEN.
        """
        if self.plan.framework in ("trl", "verigrad") and not singly:
            try:
                verdicts = self._batch(problem, completions)
            except Exception:  # which completion it was is found out below, one by one
                verdicts = None
            if verdicts is not None:
                yield from enumerate(verdicts)
                return
        for i, completion in enumerate(completions):
            yield i, self._one(problem, completion)

    def _one(self, problem: Problem, completion: Completion) -> Verdict:
        try:
            if self.plan.framework in ("trl", "verigrad"):
                return self._batch(problem, [completion])[0]
            raw = self._await(_CALLS[self.plan.framework](self, problem, completion))
            return to_verdict(raw, self.options.correct_at)
        except Exception as error:
            return failed(error)

    def _batch(self, problem: Problem, completions: Sequence[Completion]) -> list[Verdict]:
        if self.plan.framework == "verigrad":
            rows: Sequence[Any] = self.target.verify(_copy(problem), list(completions))
        else:
            rows = to_rows(self._await(_call_trl(self, problem, completions)))
        if len(rows) != len(completions):
            raise Fault(
                f"returned {len(rows)} rewards for {len(completions)} completions: wrong length"
            )
        return [to_verdict(row, self.options.correct_at) for row in rows]

    def _await(self, value: Any) -> Any:
        if not inspect.isawaitable(value):
            return value
        if self._loop is None or self._loop.is_closed() or self._loop.is_running():
            self._loop = asyncio.new_event_loop()
        return self._loop.run_until_complete(_as_coroutine(value))

    def fixed(self, problem: Problem, completion: Completion | None) -> dict[str, Any]:
        """The arguments that the plan takes from the problem's row, and the fixed ones of the
        recipe."""
        values: dict[str, Any] = {}
        for name, source in self.plan.sources:
            if source == "own" or (completion is None and source in ("text", "messages")):
                continue
            optional = source.startswith("column?:")
            value = self._value(source, problem, completion)
            if value is None and optional:
                continue
            if value is None and source.startswith("column:"):
                if name in self.plan.needed:
                    raise Fault(
                        f"the row has no column {source[7:]!r}, which the reward's parameter "
                        f"{name!r} needs"
                    )
                continue
            values[name] = value
        return {**values, **copy.deepcopy(self.options.arguments)}

    def _value(self, source: str, problem: Problem, completion: Completion | None) -> Any:
        if source == "gold":
            return gold_of(problem)
        if source == "question":
            return problem.question
        if source == "row":
            return _row(problem)
        if source in ("text", "messages"):
            assert completion is not None, "only per-completion calls carry a completion"
            return as_form(completion.text, source)
        return copy.deepcopy(column(problem, source.partition(":")[2]))


async def _as_coroutine(value: Any) -> Any:
    return await value


def _copy(problem: Problem) -> Problem:
    return Problem(problem.id, problem.messages, problem.answer, problem.data_source, _row(problem))


def _row(problem: Problem) -> dict[str, Any]:
    return copy.deepcopy(dict(problem.info))


def gold_of(problem: Problem) -> Any:
    """The gold answer: the problem's, else verl's ``reward_model.ground_truth``."""
    if problem.answer is not None:
        return problem.answer
    return copy.deepcopy(column(problem, "reward_model.ground_truth"))


def as_form(text: str, form: str) -> Any:
    """The completion as a text, or as the one assistant message of a chat."""
    return [{"role": "assistant", "content": text}] if form == "messages" else text


def _chat(messages: Sequence[Message]) -> list[dict[str, str]]:
    return [{"role": m.role, "content": m.content} for m in messages]


def _call_trl(caller: Caller, problem: Problem, completions: Sequence[Completion]) -> Any:
    """TRL: one call for the batch, every column repeated, its own arguments by name."""
    plan, n = caller.plan, len(completions)
    form = plan.completions
    own: dict[str, Callable[[], Any]] = {
        "prompts": lambda: [
            _chat(problem.messages) if form == "messages" else problem.question for _ in range(n)
        ],
        "completions": lambda: [as_form(c.text, form) for c in completions],
        "completion_ids": lambda: [list(c.token_ids) for c in completions],
        "trainer_state": _NoTrainerState,
        "log_extra": lambda: _ignore,
        "log_metric": lambda: _ignore,
        "environments": lambda: None,
    }
    declared = {name for name, _ in plan.sources}
    wanted = [k for k in own if k in declared or (plan.rest and k != "environments")]
    arguments = {k: own[k]() for k in wanted}
    columns = caller.fixed(problem, None) if plan.sources else dict(caller.options.arguments)
    fixed = caller.options.arguments
    per_row = {k: v for k, v in columns.items() if k not in fixed and k not in arguments}
    if plan.rest:
        extra = {"answer": gold_of(problem), "solution": gold_of(problem), **_row(problem)}
        per_row = {
            **{k: v for k, v in extra.items() if k not in arguments and k not in fixed},
            **per_row,
        }
    repeated = {k: [copy.deepcopy(v) for _ in range(n)] for k, v in per_row.items()}
    return caller.target(**arguments, **repeated, **copy.deepcopy(fixed))


def _ignore(*_: Any, **__: Any) -> None:
    """TRL's log_extra and log_metric: the run log keeps verdicts, not the function's own notes."""


class _NoTrainerState:
    """Stands for TRL's trainer_state; a reward that depends on the step is not a function of the
    completion."""

    def __getattr__(self, name: str) -> Any:
        raise Fault(f"reads trainer_state.{name}, which only TRL's trainer has")


def _call_verl(caller: Caller, problem: Problem, completion: Completion) -> Any:
    """verl: four named arguments for each completion, and the fixed ones."""
    own: dict[str, Any] = {
        "data_source": problem.data_source,
        "solution_str": completion.text,
        "ground_truth": gold_of(problem),
        "extra_info": _verl_extra(problem),
    }
    declared = {name for name, _ in caller.plan.sources}
    own = {k: v for k, v in own.items() if k in declared or caller.plan.rest}
    return caller.target(**{**caller.fixed(problem, completion), **own})


def _verl_extra(problem: Problem) -> dict[str, Any]:
    """The row's ``extra_info`` column, or the whole row where it has none."""
    extra = column(problem, "extra_info")
    return copy.deepcopy(dict(extra)) if isinstance(extra, Mapping) else _row(problem)


def _call_openrlhf(caller: Caller, problem: Problem, completion: Completion) -> Any:
    """OpenRLHF: lists of one; a query is the prompt followed by the response."""
    own: dict[str, Any] = {
        "queries": [problem.question + completion.text],
        "prompts": [problem.question],
        "labels": [gold_of(problem)],
    }
    declared = {name for name, _ in caller.plan.sources}
    own = {k: v for k, v in own.items() if k in declared or caller.plan.rest}
    raw = caller.target(**{**caller.fixed(problem, completion), **own})
    if isinstance(raw, Mapping):
        return raw
    rows = to_rows(raw)
    if len(rows) != 1:
        raise Fault(f"returned {len(rows)} rewards for 1 completion: wrong length")
    return rows[0]


def _call_plain(caller: Caller, problem: Problem, completion: Completion) -> Any:
    arguments = caller.fixed(problem, completion)
    if caller.plan.rest:
        extra = {k: v for k, v in _row(problem).items() if k not in arguments}
        arguments = {**extra, **arguments}
    return caller.target(**arguments)


def _call_gym(caller: Caller, problem: Problem, completion: Completion) -> Any:
    """reasoning-gym: score_answer(answer, entry); the entry is the row it generated."""
    from verigrad.verifiers.answers import after_thinking, find_answer

    answer, _ = find_answer(completion.text)
    if answer is None:
        answer = after_thinking(completion.text).strip() or None
    return caller.target.score_answer(answer, gym_entry(problem))


def gym_entry(problem: Problem) -> dict[str, Any]:
    """The entry that reasoning-gym generated: ``info.entry``, or put together from question,
    answer and metadata."""
    entry = problem.info.get("entry")
    if isinstance(entry, Mapping):
        return copy.deepcopy(dict(entry))
    metadata = problem.info.get("metadata")
    if not isinstance(metadata, Mapping):
        raise Fault(
            "the row has neither 'entry' nor 'metadata', which a reasoning-gym scorer needs"
        )
    return {
        "question": problem.question,
        "answer": problem.answer,
        "metadata": copy.deepcopy(dict(metadata)),
    }


def _call_vf(caller: Caller, problem: Problem, completion: Completion) -> Any:
    from verigrad.verifiers.foreign.vf import score_vf

    return score_vf(caller.target, caller.plan, caller.options, problem, completion)


_CALLS: dict[str, Callable[[Caller, Problem, Completion], Any]] = {
    "verl": _call_verl,
    "openrlhf": _call_openrlhf,
    "plain": _call_plain,
    "gym": _call_gym,
    "vf": _call_vf,
}
