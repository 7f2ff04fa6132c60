"""Any reasoning-gym task as a source: ``gym:chain_sum?size=500``. Needs the extra ``gym``.

Options are the fields of the task's own configuration, with ``size`` (training problems, default
1000) and ``seed``. The generated entry stays whole in ``info["entry"]``, which the scorer reads.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, get_args, get_origin, get_type_hints

from verigrad.errors import MissingExtraError, nearest
from verigrad.problems.source import Source, check_options, integer_option
from verigrad.types import Message, Problem

DEFAULT_SIZE = 1000
_HELDOUT_SEED = 1_000_003
"""Held-out entries come from this seed whatever the run's: the same for every run."""


def gym_problems(
    source: Source, *, seed: int, side: str, heldout: int, report: list[str]
) -> list[Problem]:
    """Return the entries of a task as problems; the two sides come from different seeds.

    Small tasks repeat themselves, so the held-out side is asked for more than it must give.
    RecipeError for an unknown task, option or value, MissingExtraError without reasoning-gym.
    """
    config = _config(source)
    size = integer_option(source, "size", DEFAULT_SIZE, low=1) or DEFAULT_SIZE
    own = integer_option(source, "seed", None, low=0)
    if side == "heldout":
        size, own = heldout, (own or 0) + _HELDOUT_SEED
    else:
        own = seed if own is None else own
        report.append(f"{source.key} = {source.text!r}: {size} entries generated, seed {own}")
    if size == 0:
        return []
    entries = _entries(source, config, size=4 * size if side == "heldout" else size, seed=own)
    problems = [_problem(source, entry, own, i) for i, entry in enumerate(entries)]
    if side != "heldout":
        return problems
    distinct = list({p.question: p for p in problems}.values())
    if len(distinct) < heldout:
        raise source.fault(
            f"gives only {len(distinct)} different held-out problems, and {heldout} are wanted. "
            f"Set evaluation.problems to at most {len(distinct)}, or make the task larger."
        )
    return distinct[:heldout]


def _config(source: Source) -> dict[str, Any]:
    """The options as the task's own configuration values."""
    tasks = _tasks(source)
    if source.where not in tasks:
        raise source.fault(f"unknown reasoning-gym task.{nearest(source.where, tasks)}")
    config_class = tasks[source.where][1]
    hints = get_type_hints(config_class)
    known = [f.name for f in dataclasses.fields(config_class)]
    check_options(source, known)
    return {
        name: _value(source, name, text, hints[name])
        for name, text in source.options.items()
        if name not in ("size", "seed")
    }


def _tasks(source: Source) -> Mapping[str, Any]:
    try:
        from reasoning_gym.factory import DATASETS
    except ImportError:
        raise MissingExtraError("reasoning-gym", "gym", f"{source.key} = {source.text!r}") from None
    return DATASETS


def _value(source: Source, name: str, text: str, hint: Any) -> Any:
    """An option's text as the type that the configuration declares; ``a,b`` for lists."""
    options = [h for h in get_args(hint) if h is not type(None)] or [hint]
    kind = options[0]
    if text.casefold() in ("none", "null") and type(None) in get_args(hint):
        return None
    origin = get_origin(hint) if get_origin(hint) in (list, tuple) else get_origin(kind)
    try:
        if origin in (list, tuple) or hint in (list, tuple):
            return _items(text, (get_args(hint) or (str,))[0])
        return _scalar(text, kind)
    except ValueError:
        shown = getattr(kind, "__name__", str(kind))
        raise source.fault(f"option {name} = {text!r} is not of the type {shown}.") from None


def _scalar(text: str, kind: Any) -> Any:
    if kind is bool:
        if text.casefold() not in ("true", "false", "1", "0"):
            raise ValueError(text)
        return text.casefold() in ("true", "1")
    if kind in (int, float):
        return kind(text)
    if kind is str:
        return text
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _items(text: str, kind: Any) -> list[Any]:
    if text.startswith("["):
        return list(json.loads(text))
    return [_scalar(part.strip(), kind) for part in text.split(",")]


def _entries(
    source: Source, config: Mapping[str, Any], *, size: int, seed: int
) -> list[dict[str, Any]]:
    import reasoning_gym

    try:
        dataset = reasoning_gym.create_dataset(source.where, size=size, seed=seed, **config)
        return [dataset[i] for i in range(size)]
    except (AssertionError, ValueError, TypeError, IndexError, KeyError) as error:
        raise source.fault(f"reasoning-gym refuses it: {error or type(error).__name__}.") from None


def _problem(source: Source, entry: Mapping[str, Any], seed: int, index: int) -> Problem:
    answer = entry.get("answer")
    return Problem(
        id=f"gym:{source.where}:{seed}:{index}",
        messages=(Message("user", str(entry["question"])),),
        answer=None if answer is None else str(answer),
        data_source=source.where,
        info={"entry": dict(entry), "metadata": entry.get("metadata", {})},
    )
