"""Where two runs part: recipe keys, then the first step and the first quantity that differ."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from verigrad.errors import RunDirectoryError
from verigrad.runlog import METRICS, RunReader

ROLLOUT_ORDER = (
    "problem_id",
    "prompt",
    "token_ids",
    "sampler_logprobs",
    "completion",
    "outcome",
    "reward",
    "advantage",
)
"""Quantities of a step in causal order: the first that differs is where the runs part."""

METRIC_ORDER = (
    "num_tokens", "reward_mean", "num_trained", "entropy_mean", "sampler_gap_mean", "learning_rate",
    "grad_norm", "update_norm", "fingerprint",
)  # fmt: skip


def compare_runs(a: RunReader, b: RunReader) -> dict[str, Any]:
    """Return ``recipe`` and ``environment`` keys that differ, ``first_difference`` and
    ``identical``.

    ``first_difference`` is None or {step, quantity, where, a, b}. Seconds and rates are no quantity
    of the
    run and are left out. ``steps_compared`` counts the steps both runs have.
    """
    steps_a = {int(r["step"]): r for r in a.metrics()}
    steps_b = {int(r["step"]): r for r in b.metrics()}
    common = sorted(steps_a.keys() & steps_b.keys())
    kept = set(a.rollout_steps()) & set(b.rollout_steps())
    first = None
    for step in common:
        first = _in_rollouts(a, b, step) if step in kept else None
        first = first or _in_metrics(step, steps_a[step], steps_b[step])
        if first:
            break
    recipe = _recipe_keys(a, b)
    return {
        "a": str(a.path),
        "b": str(b.path),
        "recipe": recipe,
        "environment": _differing(_flat(a.environment()), _flat(b.environment()), _VOLATILE),
        "steps": {"a": len(steps_a), "b": len(steps_b)},
        "steps_compared": len(common),
        "first_difference": first,
        "identical": first is None and steps_a.keys() == steps_b.keys(),
    }


_VOLATILE = frozenset({"started"})


def _recipe_keys(a: RunReader, b: RunReader) -> list[dict[str, Any]]:
    flat = []
    for run in (a, b):
        try:
            flat.append(_flat(tomllib.loads(run.recipe_text())))
        except tomllib.TOMLDecodeError as e:
            raise RunDirectoryError(f"{run.path}/recipe.toml is not valid TOML: {e}.") from None
    return _differing(flat[0], flat[1], frozenset())


def _flat(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in data.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            out |= _flat(value, f"{name}.")
        else:
            out[name] = value
    return out


def _differing(
    a: Mapping[str, Any], b: Mapping[str, Any], skip: frozenset[str]
) -> list[dict[str, Any]]:
    keys = [k for k in {**a, **b} if a.get(k) != b.get(k) and k not in skip]
    return [{"key": k, "a": a.get(k), "b": b.get(k)} for k in keys]


def _in_rollouts(a: RunReader, b: RunReader, step: int) -> dict[str, Any] | None:
    rows_a, rows_b = a.rollouts(step), b.rollouts(step)
    for quantity in ROLLOUT_ORDER:
        for one, two in zip(rows_a, rows_b, strict=False):
            if one.get(quantity) != two.get(quantity):
                where = f"group {one.get('group')}, sample {one.get('sample')}"
                left, right = _first_unequal(one.get(quantity), two.get(quantity))
                return _difference(step, quantity, where, left, right)
    if len(rows_a) != len(rows_b):
        return _difference(step, "num_completions", "", len(rows_a), len(rows_b))
    return None


def _first_unequal(a: Any, b: Any) -> tuple[Any, Any]:
    """Return, of two token lists, what stands from the first unequal place on."""
    if not (isinstance(a, list) and isinstance(b, list)):
        return a, b
    place = next(
        (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )
    return (
        {"position": place, "from_there": a[place : place + 8]},
        {"position": place, "from_there": b[place : place + 8]},
    )


def _in_metrics(step: int, a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Any] | None:
    for quantity in _quantities(a, b):
        if a.get(quantity) != b.get(quantity):
            return _difference(step, quantity, "", a.get(quantity), b.get(quantity))
    return None


def _quantities(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[str]:
    """Yield the metrics to compare, causes before effects, the fingerprint last."""
    names = [*METRIC_ORDER[:-1], *METRICS, *a, *b]
    timed = {"tokens_per_s"}
    for name in dict.fromkeys(names):
        if not name.endswith("_s") and name not in timed and name != METRIC_ORDER[-1]:
            yield name
    yield METRIC_ORDER[-1]


def _difference(step: int, quantity: str, where: str, a: Any, b: Any) -> dict[str, Any]:
    return {"step": step, "quantity": quantity, "where": where, "a": a, "b": b}
