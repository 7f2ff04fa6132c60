"""From a source to a caller: load the object, make the instance where it is a class, recognise
it."""

from __future__ import annotations

import copy
from typing import Any

from verigrad.errors import RecipeError
from verigrad.verifiers.base import explain
from verigrad.verifiers.foreign.calls import Caller
from verigrad.verifiers.foreign.load import load_target
from verigrad.verifiers.foreign.recognise import is_factory, recognise
from verigrad.verifiers.foreign.spec import ForeignOptions, Source
from verigrad.verifiers.foreign.vf1 import TaskScorer, as_task


def prepare(source: Source, options: ForeignOptions) -> Caller:
    """Load, instantiate and recognise the reward. Raises RecipeError."""
    target = load_target(source)
    if (task := as_task(target)) is not None:
        target = TaskScorer(task, options.arguments)
    elif is_factory(target):
        target = _call_factory(target, source, options)
        options = options.model_copy(update={"arguments": {}})
    plan = recognise(target, source.spec, options)
    return Caller(target, plan, options)


def _call_factory(target: Any, source: Source, options: ForeignOptions) -> Any:
    name = getattr(target, "__name__", source.spec.name)
    try:
        made = target(**copy.deepcopy(options.arguments))
    except Exception as error:
        raise RecipeError(
            f"verifier.name = {source.spec.text!r}: {name} was taken for a class or a factory (no "
            f"parameter is a "
            f"completion) and calling it with verifier.options.arguments = {options.arguments!r} "
            f"failed: {explain(error)}"
        ) from error
    return made
