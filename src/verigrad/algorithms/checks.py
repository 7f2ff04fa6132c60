"""Is this objective sound? Errors for values that mean nothing and axes that contradict."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, cast, get_args, get_origin, get_type_hints

from verigrad.errors import RecipeError, nearest
from verigrad.objective import Objective

_POSITIVE = "greater than 0"
_NOT_NEGATIVE = "at least 0"
_SHARE = "between 0 and 1"

_RANGES: dict[str, tuple[Callable[[float], bool], str]] = {
    "clip_low": (lambda x: x >= 0, _NOT_NEGATIVE),
    "clip_high": (lambda x: x >= 0, _NOT_NEGATIVE),
    "dual_clip": (lambda x: x > 1, "greater than 1 (a cap on the ratio), or none"),
    "std_eps": (lambda x: x >= 0, _NOT_NEGATIVE),
    "gate_positive": (lambda x: x > 0, _POSITIVE),
    "gate_negative": (lambda x: x > 0, _POSITIVE),
    "cov_frac": (lambda x: 0 < x <= 1, "greater than 0 and at most 1"),
    "correction_low": (lambda x: x >= 0, _NOT_NEGATIVE),
    "correction_high": (lambda x: x > 0, _POSITIVE),
    "negative_mask": (lambda x: x >= 0, "at least 0 (nats per token), or none"),
    "constant_length": (lambda x: x >= 1, "at least 1, or none"),
    "kl_coef": (lambda x: x >= 0, _NOT_NEGATIVE),
    "reference_every": (lambda x: x >= 1, "at least 1"),
    "reference_mix": (lambda x: 0 < x <= 1, "greater than 0 and at most 1"),
    "drift_coef": (lambda x: x >= 0, _NOT_NEGATIVE),
    "entropy_coef": (lambda x: x >= 0, _NOT_NEGATIVE),
    "entropy_target": (lambda x: x >= 0, _NOT_NEGATIVE),
    "entropy_step": (lambda x: x >= 0, _NOT_NEGATIVE),
    "entropy_coef_max": (lambda x: x >= 0, _NOT_NEGATIVE),
    "entropy_quantile": (lambda x: 0 < x <= 1, "greater than 0 and at most 1"),
    "wrong_reward": (lambda x: x < 1, "below 1, which a correct completion gets"),
    "overlong_cache_frac": (lambda x: 0 <= x <= 1, _SHARE),
    "overlong_penalty": (lambda x: x >= 0, _NOT_NEGATIVE),
    "repetition_penalty": (lambda x: x >= 0, _NOT_NEGATIVE),
    "repetition_ngram": (lambda x: x >= 1, "at least 1"),
    "k": (lambda x: x >= 1, "at least 1"),
    "filter_rounds": (lambda x: x >= 1, "at least 1"),
    "pass_low": (lambda x: 0 <= x <= 1, _SHARE),
    "pass_high": (lambda x: 0 <= x <= 1, _SHARE),
    "retire_pass_rate": (lambda x: 0 < x <= 1, "greater than 0 and at most 1, or none"),
    "gamma": (lambda x: 0 <= x <= 1, _SHARE),
    "lam": (lambda x: 0 <= x <= 1, _SHARE),
    "lam_critic": (lambda x: 0 <= x <= 1, _SHARE),
    "lam_alpha": (lambda x: x > 0, _POSITIVE),
    "value_clip": (lambda x: x > 0, _POSITIVE),
    "value_coef": (lambda x: x >= 0, _NOT_NEGATIVE),
    "positive_nll": (lambda x: x >= 0, _NOT_NEGATIVE),
    "preference_beta": (lambda x: x > 0, _POSITIVE),
    "preference_nll": (lambda x: x >= 0, _NOT_NEGATIVE),
}
_MAY_BE_INFINITE = {"clip_low", "clip_high", "dual_clip", "correction_high"}


def changed(objective: Objective, overrides: Mapping[str, Any]) -> Objective:
    """The objective with these axes set, each checked. Raises RecipeError naming axis and
    remedy."""
    known = {f.name for f in dataclasses.fields(Objective)}
    for name in overrides:
        if name not in known:
            raise RecipeError(f"objective has no axis {name!r}.{nearest(name, known)}")
    hints = get_type_hints(Objective)
    values = {name: _typed(name, value, hints[name]) for name, value in overrides.items()}
    result = dataclasses.replace(objective, **values)
    validate(result)
    return result


def _typed(name: str, value: Any, hint: Any) -> Any:
    """The value as its field's type, or a RecipeError."""
    options = get_args(hint)
    if value is None and type(None) in options:
        return None
    kinds = [o for o in options if isinstance(o, type) and o is not type(None)] or [hint]
    if options and all(isinstance(o, str) for o in options):
        if value in options:
            return value
        allowed, hinted = ", ".join(options), nearest(str(value), options)
        raise RecipeError(f"objective.{name} = {value!r} is not one of {allowed}.{hinted}")
    kind = kinds[0]
    if get_origin(hint) is tuple:
        return _numbers(name, value)
    if kind is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if kind is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    if kind in (bool, str) and isinstance(value, kind):
        return value
    raise RecipeError(f"objective.{name} = {value!r} must be a {kind.__name__}.")


def _numbers(name: str, value: Any) -> tuple[float, ...]:
    numbers: list[float] = []
    for item in cast("list[Any]", value) if isinstance(value, (list, tuple)) else [None]:
        if not isinstance(item, (int, float)) or isinstance(item, bool):
            raise RecipeError(f"objective.{name} = {value!r} must be a list of numbers.")
        numbers.append(float(item))
    return tuple(numbers)


def validate(objective: Objective) -> None:
    """Raise RecipeError for a number outside its range or axes that contradict each other."""
    for name, (good, expected) in _RANGES.items():
        value = getattr(objective, name)
        if value is None:
            continue
        finite = math.isfinite(value) or (name in _MAY_BE_INFINITE and value > 0)
        if not finite or not good(value):
            raise RecipeError(f"objective.{name} = {value} must be {expected}.")
    for name in ("gamma_positive", "gamma_negative"):
        if min(getattr(objective, name)) < 0 or len(getattr(objective, name)) != 2:
            raise RecipeError(
                f"objective.{name} = {getattr(objective, name)} must be two numbers, k and lambda, "
                "of at least 0."
            )
    for wrong, message in _contradictions(objective):
        if wrong:
            raise RecipeError(message)


def _contradictions(o: Objective) -> list[tuple[bool, str]]:
    masked = o.correction.startswith("mask")
    return [
        (
            masked and o.correction_low >= o.correction_high,
            f"objective.correction_low = {o.correction_low} must be below correction_high = "
            f"{o.correction_high}; nothing would be trained on.",
        ),
        (
            o.pass_low > o.pass_high,
            f"objective.pass_low = {o.pass_low} exceeds pass_high = {o.pass_high}; no group could "
            "pass.",
        ),
        (
            o.cov_low >= o.cov_high,
            f"objective.cov_low = {o.cov_low} must be below cov_high = {o.cov_high}.",
        ),
        (
            o.parts == "normalize_each" and o.pass_at_k != "none",
            "objective.parts = 'normalize_each' and pass_at_k cannot both make the advantage; "
            "set one of them to its default.",
        ),
        (
            o.trust_region == "kl_cov" and o.drift != "none",
            "objective.trust_region = 'kl_cov' uses drift_coef for its own tokens; set drift = "
            "'none'.",
        ),
        (
            o.denominator == "sampler" and o.correction not in ("none", "mask_geometric"),
            "objective.denominator = 'sampler' already divides by the sampler; correction = "
            f"{o.correction!r} would count it twice. Set correction = 'none'.",
        ),
        (
            o.entropy == "adaptive" and o.entropy_coef > o.entropy_coef_max,
            f"objective.entropy_coef = {o.entropy_coef} exceeds entropy_coef_max = "
            f"{o.entropy_coef_max}.",
        ),
    ]
