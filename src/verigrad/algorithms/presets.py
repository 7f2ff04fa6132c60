"""The published objectives by name. Loads without torch; the values live in ``catalogue_*.py``.

A new objective that fits the axes is one Preset in one of those files, and appears everywhere: in
recipes, ``objective list``, the docs' table and the invariance tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from verigrad.algorithms import (
    catalogue_core,
    catalogue_gradients,
    catalogue_offline,
    catalogue_regions,
    catalogue_systems,
)
from verigrad.algorithms.checks import changed
from verigrad.algorithms.no_ops import warnings_for as warnings_for
from verigrad.algorithms.preset import Preset
from verigrad.errors import RecipeError, nearest
from verigrad.objective import Objective

PRESETS: dict[str, Preset] = {
    preset.name: preset
    for catalogue in (
        catalogue_core,
        catalogue_gradients,
        catalogue_regions,
        catalogue_systems,
        catalogue_offline,
    )
    for preset in catalogue.PRESETS
}


def names() -> tuple[str, ...]:
    """Every preset, in the catalogue's order."""
    return tuple(PRESETS)


def get(name: str) -> Preset:
    """The preset of this name. Raises RecipeError with the nearest name."""
    key = name.lower().replace("-", "_")
    if key not in PRESETS:
        raise RecipeError(f"objective.preset = {name!r} is not known.{nearest(key, PRESETS)}")
    return PRESETS[key]


def resolve(preset: str, overrides: Mapping[str, Any]) -> Objective:
    """The preset with these axes changed, each checked. Raises RecipeError naming value and remedy.

    >>> resolve("dapo", {"clip_high": 0.4}).clip_high
    0.4
    """
    return changed(get(preset).objective, overrides)
