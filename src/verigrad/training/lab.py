"""The lab: a real language model learns word problems from a verified reward, on a laptop, in
minutes."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from verigrad.config import Recipe, read_recipe
from verigrad.errors import RecipeError
from verigrad.runlog import Listener
from verigrad.training.run import RunSummary, train


def lab_recipe(
    *,
    seed: int = 0,
    steps: int | None = None,
    model: str | None = None,
    problems: str | None = None,
) -> Recipe:
    """The shipped recipe ``lab`` with the curious reader's changes."""
    overrides = [f"training.seed={seed}"]
    if steps is not None:
        overrides.append(f"training.steps={steps}")
    if model is not None:
        overrides.append(f"model.path='{model}'")
    if problems is not None:
        overrides.append(f"problems.source='{problems}'")
    return read_recipe(shipped("lab"), overrides)


def shipped(name: str) -> Path:
    """The file of a shipped recipe, in an installed package or in a source tree."""
    inside = Path(str(resources.files("verigrad"))) / "_recipes" / f"{name}.toml"
    beside = Path(str(resources.files("verigrad"))).parent.parent / "recipes" / f"{name}.toml"
    for path in (inside, beside):
        if path.is_file():
            return path
    raise RecipeError(
        f"shipped recipe {name!r} is missing from this installation; reinstall verigrad."
    )


def lab(
    out: str | Path,
    *,
    seed: int = 0,
    steps: int | None = None,
    model: str | None = None,
    problems: str | None = None,
    force: bool = False,
    resume: bool = False,
    listeners: Sequence[Listener] = (),
) -> RunSummary:
    """Train the lab recipe in ``out``: measure, a cold start only if needed, GRPO, measure
    again."""
    recipe = lab_recipe(seed=seed, steps=steps, model=model, problems=problems)
    return train(recipe, run_dir=out, force=force, resume=resume, listeners=listeners)
