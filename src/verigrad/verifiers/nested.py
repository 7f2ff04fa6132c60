"""Options of the verifiers that contain others, and how they are built."""

# Rows and replies are other people's data: their types are checked at run time.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import Field

from verigrad.config import Section
from verigrad.errors import RecipeError, nearest
from verigrad.types import Verifier
from verigrad.verifiers.compose import ComposeVerifier, CosineLengthVerifier, Op, WeightedPart

Make = Callable[[Mapping[str, Any], str], Verifier]
"""Builds the verifier of one part's table; the text says where the table stands."""

_PART_KEYS = ("name", "mode", "weight", "label", "decides", "options")


class ComposeOptions(Section):
    """Several verifiers as one: a weighted sum, a gate, all of them or any of them."""

    op: Op = "sum"
    """sum (weighted), gate (all but the last must be correct, then the last counts), all
    (smallest reward), any (largest reward)."""
    parts: list[dict[str, Any]] = Field(min_length=1)
    """Tables with name, and if wanted mode, weight, label (its name in logs), decides (its
    outcome is the sum's); every other key is an option of that verifier."""


class CosineOptions(Section):
    """Another verifier's verdict, its reward shaped by a cosine over the completion's length."""

    part: dict[str, Any] = Field(default_factory=lambda: {"name": "math"})
    """The verifier that says what is right: a table with name, and if wanted mode and its
    options."""
    max_tokens: int = Field(ge=1)
    """Length at which the cosine ends; usually rollout.max_new_tokens."""
    correct: tuple[float, float] = (1.0, 0.5)
    """Reward of a right answer at length 0 and at max_tokens."""
    wrong: tuple[float, float] = (-1.0, -0.5)
    """Reward of a wrong answer at length 0 and at max_tokens."""
    exceeded: float | None = None
    """Reward from max_tokens on, whatever the answer; without it the cosine's end."""


def make_compose(options: ComposeOptions, make: Make) -> ComposeVerifier:
    """Return the composition. Raises RecipeError for a part without a name or with a bad option."""
    where = [f"verifier.options.parts[{i}]" for i in range(len(options.parts))]
    tables = [_part_table(t, w) for t, w in zip(options.parts, where, strict=True)]
    labels = [str(t.get("label", t["name"])) for t in tables]
    seen: Counter[str] = Counter()
    parts: list[WeightedPart] = []
    for table, label, place in zip(tables, labels, where, strict=True):
        seen[label] += 1
        unique = label if seen[label] == 1 else f"{label}_{seen[label]}"
        weight = table.get("weight", 1.0)
        if isinstance(weight, bool) or not isinstance(weight, (int, float)):
            raise RecipeError(f"{place}.weight = {weight!r} is not a number.")
        decides = bool(table.get("decides", False))
        parts.append(WeightedPart(unique, make(table, place), float(weight), decides))
    if sum(p.decides for p in parts) > 1:
        raise RecipeError("verifier.options.parts: only one part may have decides = true.")
    if options.op != "sum" and any(p.decides for p in parts):
        raise RecipeError(
            f"decides belongs to op = 'sum'; op = {options.op!r} has an outcome of its own."
        )
    if options.op == "gate" and len(parts) < 2:
        raise RecipeError(
            "op = 'gate' needs at least two parts: the gates first, what they guard last."
        )
    return ComposeVerifier(options.op, tuple(parts))


def make_cosine(options: CosineOptions, make: Make) -> CosineLengthVerifier:
    """Return the shaped verifier. Raises RecipeError for a bad part."""
    table = _part_table(options.part, "verifier.options.part")
    if "weight" in table:
        raise RecipeError(
            "verifier.options.part.weight has no meaning here: give correct and wrong."
        )
    return CosineLengthVerifier(
        make(table, "verifier.options.part"),
        options.max_tokens,
        options.correct,
        options.wrong,
        options.exceeded,
    )


def split_part(table: Mapping[str, Any]) -> tuple[str, str, dict[str, Any]]:
    """Return name, mode and options of a part's table: every key that is not a part's own is an
    option."""
    inline = {k: v for k, v in table.items() if k not in _PART_KEYS}
    return table["name"], table.get("mode", "strict"), {**inline, **table.get("options", {})}


def _part_table(table: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(table, Mapping) or not isinstance(table.get("name"), str):
        keys = [str(k) for k in table] if isinstance(table, Mapping) else []
        hint = nearest(keys[0], _PART_KEYS) if keys else ""
        raise RecipeError(f"{place} = {table!r} needs a name, the verifier of this part.{hint}")
    if not isinstance(table.get("options", {}), Mapping):
        raise RecipeError(f"{place}.options = {table['options']!r} is not a table.")
    return table
