"""What a foreign reward returned, as a verdict: a finite number is a reward, all else is BROKEN
with a reason."""

# Rows and replies are other people's data: their types are checked at run time.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, SupportsFloat

from verigrad.types import Outcome, Verdict
from verigrad.verifiers.base import ABSTAINS, explain


class Fault(Exception):
    """The reward broke its contract; the message becomes the reason of a BROKEN verdict."""


def failed(error: Exception) -> Verdict:
    """Return the BROKEN verdict of a call that raised."""
    if isinstance(error, Fault):
        return Verdict.broken(str(error))
    return Verdict.broken(f"raised {explain(error)}")


def to_verdict(raw: Any, correct_at: float) -> Verdict:
    """Return the verdict of one completion: ``raw`` is a number, None, a mapping with a score,
    or a Verdict."""
    if isinstance(raw, Verdict):
        return raw
    if raw is None:
        return Verdict.broken(ABSTAINS)
    try:
        if isinstance(raw, Mapping):
            return _from_mapping(raw, correct_at)
        reward = to_number(raw)
    except Fault as fault:
        return Verdict.broken(str(fault))
    return _scored(reward, reward >= correct_at)


def _from_mapping(raw: Mapping[Any, Any], correct_at: float) -> Verdict:
    """verl's dict: ``score`` is the reward, ``acc`` says whether it is right, other numbers
    become parts."""
    key = next((k for k in ("score", "reward", "rewards") if k in raw), None)
    if key is None:
        keys = ", ".join(sorted(map(str, raw)))
        raise Fault(f"returned a dict without 'score' (keys: {keys}): wrong type")
    if raw[key] is None:
        return Verdict.broken(ABSTAINS)
    reward = to_number(_single(raw[key]))
    acc = _part(raw["acc"]) if "acc" in raw else None
    parts: dict[str, float] = {}
    for name, value in raw.items():
        number = None if name == key else _part(value)
        if number is not None:
            parts[str(name)] = number
    verdict = _scored(reward, bool(acc) if acc is not None else reward >= correct_at)
    said = raw.get("pred", raw.get("extracted"))
    return Verdict(verdict.outcome, verdict.reward, "", None if said is None else str(said), parts)


def _scored(reward: float, correct: bool) -> Verdict:
    return Verdict(Outcome.CORRECT if correct else Outcome.WRONG, reward)


def _part(value: Any) -> float | None:
    """A number for the log, or None: texts and other notes are not rewards."""
    try:
        return to_number(_single(value))
    except Fault:
        return None


def _single(value: Any) -> Any:
    """OpenRLHF hands back lists and tensors of one row."""
    if isinstance(value, (list, tuple)) or (hasattr(value, "shape") and len(value.shape) > 0):
        rows = to_rows(value)
        if len(rows) != 1:
            raise Fault(f"returned {len(rows)} rewards for one completion")
        return rows[0]
    return value


def to_number(raw: Any) -> float:
    """Return a finite float. Raises Fault for NaN, infinity, and what is not a number."""
    if isinstance(raw, (str, bytes)) or not isinstance(raw, SupportsFloat):
        raise Fault(f"returned a {type(raw).__name__}, neither a number nor None: wrong type")
    try:
        number = float(raw)
    except Exception as error:
        raise Fault(
            f"returned a {type(raw).__name__} that is not a number: wrong type ({explain(error)})"
        ) from None
    if math.isnan(number):
        raise Fault("the reward is NaN (nan), not a finite number")
    if math.isinf(number):
        raise Fault(f"the reward is infinite ({number}), not a finite number")
    return number


def to_rows(raw: Any) -> Sequence[Any]:
    """Return a batch of rewards (a list, a tuple, an array, a tensor) as a list."""
    if hasattr(raw, "tolist") and not isinstance(raw, (list, tuple)):
        raw = raw.tolist()
    if isinstance(raw, (str, bytes, Mapping)) or not isinstance(raw, Sequence):
        raise Fault(f"returned a {type(raw).__name__} instead of a list of rewards: wrong type")
    return raw
