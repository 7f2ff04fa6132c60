"""Is this objective sound? Errors for values that mean nothing, warnings for silent no-ops."""

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
                f"objective.{name} = {getattr(objective, name)} must be two numbers, k and "
                f"lambda, of at "
                "least 0."
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
            f"pass.",
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
            f"objective.denominator = 'sampler' already divides by the sampler; correction = "
            f"{o.correction!r} would count it twice. Set correction = 'none'.",
        ),
        (
            o.entropy == "adaptive" and o.entropy_coef > o.entropy_coef_max,
            f"objective.entropy_coef = {o.entropy_coef} exceeds entropy_coef_max = "
            f"{o.entropy_coef_max}.",
        ),
    ]


def warnings_for(objective: Objective, *, updates_per_rollout: int) -> list[str]:
    """One sentence for each axis that does nothing here or something other than its name
    suggests."""
    found = _silent_no_ops(objective, on_policy=updates_per_rollout == 1)
    return [message for wrong, message in found if wrong]


def _silent_no_ops(o: Objective, *, on_policy: bool) -> list[tuple[bool, str]]:
    bounded = o.trust_region not in ("score", "none")
    same = on_policy and o.denominator == "old"
    sequence = o.ratio in ("sequence", "sequence_token")
    weight = o.trust_region == "clip_weight"
    return [
        (
            same and bounded and o.trust_region != "kl_cov",
            f"objective.trust_region = {o.trust_region!r} has no effect: with one update per "
            f"rollout the "
            "ratio is 1 (clip_low, clip_high and dual_clip are inert, and a loss near 0 is "
            "normal).",
        ),
        (
            same and o.ratio != "token" and o.trust_region != "geometric_clip",
            f"objective.ratio = {o.ratio!r} has no effect on the ratio's value: with one update "
            f"per "
            "rollout every ratio is 1.",
        ),
        (
            same and o.drift != "none" and o.drift_coef > 0,
            "objective.drift has no effect: with one update per rollout the policy has not left "
            "its start.",
        ),
        (
            sequence and o.trust_region == "clip" and max(o.clip_low, o.clip_high) > 0.02,
            f"objective.ratio = {o.ratio!r} with clip_low = {o.clip_low}, clip_high = "
            f"{o.clip_high}: a "
            "mean over a completion moves about 100 times less than a token, so these never clip. "
            "GSPO "
            "uses 3e-4 and 4e-4.",
        ),
        (
            o.ratio == "product" and o.trust_region == "clip",
            "objective.ratio = 'product' with trust_region = 'clip': the product grows with "
            "length, so a "
            "long completion is clipped after one off-policy update whatever it says.",
        ),
        (
            o.ratio == "token" and o.trust_region == "clip" and 0 < o.clip_high < 0.01,
            f"objective.clip_high = {o.clip_high} is sized for a sequence ratio; with ratio = "
            f"'token' it "
            "holds back nearly every token.",
        ),
        (
            weight and o.clip_high < 1,
            f"objective.clip_high = {o.clip_high} with trust_region = 'clip_weight' caps the "
            f"importance "
            f"weight at {1 + o.clip_high:g}; the method needs a cap of about 5 (clip_high = 4). "
            f"In TRL "
            "the cap is absolute, so its 0.2 scales the whole gradient by 0.2.",
        ),
        *_term_warnings(o),
    ]


def _term_warnings(o: Objective) -> list[tuple[bool, str]]:
    relative = o.baseline not in ("none", "critic")
    return [
        (
            o.kl == "k1" and o.kl_coef > 0,
            "objective.kl = 'k1' in the loss has an expected gradient of 0: it adds noise and no "
            "pull. "
            "Use k1_in_reward, k2 or unbiased_k3.",
        ),
        (
            o.kl == "k3" and o.kl_coef > 0,
            "objective.kl = 'k3' pulls with the gradient of the forward KL(ref || policy), "
            "unbounded "
            "where the policy avoids a token. unbiased_k3 or k2 give the reverse KL.",
        ),
        (
            o.kl != "none" and o.kl_coef == 0,
            f"objective.kl = {o.kl!r} has no effect: kl_coef is 0.",
        ),
        (
            o.kl == "none" and o.kl_coef > 0,
            f"objective.kl_coef = {o.kl_coef} has no effect: kl is none.",
        ),
        (
            o.kl == "none" and o.reference != "frozen",
            f"objective.reference = {o.reference!r} has no effect: kl is none, there is no "
            f"reference.",
        ),
        (
            o.drift != "none" and o.drift_coef == 0,
            f"objective.drift = {o.drift!r} has no effect: drift_coef is 0.",
        ),
        (
            o.trust_region == "kl_cov" and o.drift_coef == 0,
            "objective.trust_region = 'kl_cov' has no effect: drift_coef, its penalty, is 0.",
        ),
        (
            o.entropy == "bonus" and o.entropy_coef == 0,
            "objective.entropy = 'bonus' has no effect: entropy_coef is 0.",
        ),
        (
            o.scale in ("group_std", "batch_std", "centered_batch_std") and o.baseline == "none",
            f"objective.scale = {o.scale!r} without a baseline only rescales the rewards.",
        ),
        (
            o.trust_region == "taper_negative" and o.baseline == "none" and o.wrong_reward >= 0,
            f"objective.trust_region = 'taper_negative' without a baseline needs wrong_reward "
            f"below 0 "
            f"(it is {o.wrong_reward:g}): nothing pushes down.",
        ),
        (
            o.scale == "group_mean" and not relative,
            "objective.scale = 'group_mean' without a group baseline divides the reward by itself.",
        ),
        (
            o.pass_at_k == "analytic" and o.k == 1,
            "objective.pass_at_k = 'analytic' with k = 1 is the ordinary standardised advantage.",
        ),
        (
            o.pass_at_k != "none" and (o.scale != "none" or o.baseline != "group_mean"),
            "objective.baseline and scale have no effect: pass_at_k makes its own advantage.",
        ),
        (
            o.length_reward != "none" and o.length_coef == 0,
            f"objective.length_reward = {o.length_reward!r} has no effect: length_coef is 0.",
        ),
        (
            o.mask_truncated and o.overlong_cache_frac > 0,
            "objective.mask_truncated hides the completions that overlong_cache_frac penalises "
            "most; "
            "they still move their group's baseline.",
        ),
        (
            o.reduction == "sequence_sum" and o.ratio == "token" and o.trust_region == "clip",
            "objective.reduction = 'sequence_sum' with a token ratio weighs a completion by its "
            "length; "
            "it is meant for ratio = 'sequence'.",
        ),
        (
            o.group_filter == "none" and o.pass_high < 1,
            "objective.pass_high has no effect: group_filter is none.",
        ),
    ]
