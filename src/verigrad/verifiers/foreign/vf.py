"""Rewards of the verifiers library: rubrics and environments of its first API, known by their
shape.

The first API (``Rubric(funcs, weights)``, ``load_environment()``) left the package in version 0.4;
the environments written for it run here whether or not the package that is installed still has it.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from typing import Any

from verigrad.types import Completion, Problem
from verigrad.verifiers.foreign.recognise import Plan
from verigrad.verifiers.foreign.results import Fault, to_number
from verigrad.verifiers.foreign.spec import ForeignOptions


async def score_vf(
    target: Any, plan: Plan, options: ForeignOptions, problem: Problem, completion: Completion
) -> Any:
    """Return the weighted sum of a rubric's functions, with each as a part, or one function's
    number."""
    if hasattr(target, "score_trace"):
        return await target.score_trace(problem, completion)
    rubric = getattr(target, "rubric", target)
    offered = _offered(rubric, options, problem, completion)
    functions, weights = rubric_functions(rubric)
    if not functions:
        if not callable(rubric):
            raise Fault(f"{plan.name} has no reward function: neither funcs nor reward_funcs")
        return await _call(rubric, offered, options)
    parts: dict[str, Any] = {}
    total = 0.0
    for function, weight in zip(functions, weights, strict=True):
        value = to_number(await _call(function, offered, options))
        total += weight * value
        parts[getattr(function, "__name__", type(function).__name__)] = value
    return {"score": total, **{k: v for k, v in parts.items() if k not in ("score", "acc")}}


def rubric_functions(rubric: Any) -> tuple[list[Any], list[float]]:
    """Return the functions and weights of a rubric, or of a group of rubrics; nothing for
    anything else."""
    functions: list[Any] = []
    weights: list[float] = []
    for part in getattr(rubric, "rubrics", None) or [rubric]:
        found: Sequence[Any] = _attribute(part, "funcs", "reward_funcs", "get_reward_funcs") or []
        found_weights = _attribute(part, "weights", "reward_weights", "get_reward_weights")
        given: list[float] = [1.0] * len(found) if found_weights is None else list(found_weights)
        if len(given) != len(found):
            raise Fault(f"the rubric has {len(found)} functions and {len(given)} weights")
        functions += list(found)
        weights += given
    return functions, weights


def _attribute(owner: Any, *names: str) -> Any:
    for name in names:
        value = getattr(owner, name, None)
        if value is not None:
            return value() if callable(value) else value
    return None


def _offered(
    rubric: Any, options: ForeignOptions, problem: Problem, completion: Completion
) -> dict[str, Any]:
    """What the first API offers a reward function; it takes what its parameters name."""
    as_text = options.completions == "text"
    prompt = [{"role": m.role, "content": m.content} for m in problem.messages]
    said = [{"role": "assistant", "content": completion.text}]
    info = copy.deepcopy(dict(problem.info))
    answer = problem.answer if problem.answer is not None else ""
    task = str(info.get("task", "default"))
    state = {
        "prompt": prompt,
        "completion": said,
        "answer": answer,
        "info": info,
        "task": task,
        "responses": [],
        "turn": 1,
    }
    return {
        "prompt": problem.question if as_text else prompt,
        "completion": completion.text if as_text else said,
        "answer": answer,
        "state": copy.deepcopy(state),
        "task": task,
        "info": info,
        "parser": getattr(rubric, "parser", None),
        "completion_ids": list(completion.token_ids),
        **getattr(rubric, "class_objects", {}),
    }


async def _call(function: Any, offered: dict[str, Any], options: ForeignOptions) -> Any:
    parameters = inspect.signature(function).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        given = {**offered, **options.arguments}
    else:
        given = {k: v for k, v in {**offered, **options.arguments}.items() if k in parameters}
    value = function(**given)
    return await value if inspect.isawaitable(value) else value
