"""Tasks of the verifiers library's second API (0.4): the task scores a trace of one question and
one reply.

The library itself runs the task's rewards, with their weights; what is built here is the trace.
"""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import importlib
import inspect
from typing import Any, get_args

from verigrad.types import Completion, Problem
from verigrad.verifiers.base import column, explain
from verigrad.verifiers.foreign.recognise import GOLD_NAMES
from verigrad.verifiers.foreign.results import Fault


class TaskScorer:
    """Scores completions with one Task class; ``arguments`` are its own settings beside the
    row's data."""

    def __init__(self, task: type[Any], arguments: dict[str, Any]) -> None:
        self.task = task
        self.arguments = arguments
        self.data = _data_class(task)

    async def score_trace(self, problem: Problem, completion: Completion) -> dict[str, float]:
        """Return the weighted sum as ``score`` and each reward, unweighted, under its name."""
        task = self.task(self._row(problem), **self.arguments)
        trace = _trace(task, problem, completion)
        await task.score(trace)
        rewards = {name: r for name, r in trace.rewards.items() if r is not None}
        if not rewards:
            raise Fault(
                f"{self.task.__name__} gave no reward: one that needs a runtime can't run here"
            )
        parts = {
            name: float(r.score) for name, r in rewards.items() if name not in ("score", "acc")
        }
        return {"score": float(trace.reward), **parts}

    def _row(self, problem: Problem) -> Any:
        values: dict[str, Any] = {}
        for name in self.data.model_fields:
            value = column(problem, name)
            if value is None and name in GOLD_NAMES:
                value = problem.answer
            if value is None and name == "prompt":
                value = problem.question
            if value is not None:
                values[name] = value
        try:
            return self.data(**values)
        except ValueError as error:
            raise Fault(f"the row is no {self.data.__name__}: {explain(error)}") from None


def as_task(target: Any) -> type[Any] | None:
    """Return the Task class that ``target`` is, or that a Taskset class is made of; None for
    others."""
    if not inspect.isclass(target):
        return None
    if all(hasattr(target, name) for name in ("score", "hooks", "scoring_deferred")):
        return target
    if all(hasattr(target, name) for name in ("load", "include", "INFINITE")):
        found = [a for base in _generic_bases(target) for a in get_args(base)]
        return next((a for a in found if as_task(a) is a and inspect.isclass(a)), None)
    return None


def exported_taskset(module: Any) -> Any:
    """Return the one Taskset that a module defines, None when there is none or more than one."""
    own = [v for v in vars(module).values() if getattr(v, "__module__", "") == module.__name__]
    sets = [v for v in own if inspect.isclass(v) and hasattr(v, "INFINITE") and as_task(v)]
    return sets[0] if len(sets) == 1 else None


def _generic_bases(cls: type[Any]) -> list[Any]:
    return [base for c in cls.__mro__ for base in c.__dict__.get("__orig_bases__", ())]


def _data_class(task: type[Any]) -> type[Any]:
    """The row's class: the first type argument that is a pydantic model with a prompt."""
    for base in _generic_bases(task):
        for argument in get_args(base):
            if inspect.isclass(argument) and "prompt" in getattr(argument, "model_fields", {}):
                return argument
    return importlib.import_module("verifiers.v1").TaskData


def _trace(task: Any, problem: Problem, completion: Completion) -> Any:
    """A finished trace: the question, then the reply, as the library's own records."""
    traces = importlib.import_module("verifiers.v1.trace")
    graph = importlib.import_module("verifiers.v1.graph")
    types = importlib.import_module("verifiers.v1.types")
    nodes = [
        graph.MessageNode(message=types.UserMessage(content=problem.question)),
        graph.MessageNode(
            parent=0, message=types.AssistantMessage(content=completion.text), sampled=True
        ),
    ]
    row = traces.TraceTask.model_construct(type=type(task).__name__, data=task.data)
    return traces.Trace.model_construct(
        task=row, agent=None, nodes=nodes, is_completed=True, ok=True
    )
