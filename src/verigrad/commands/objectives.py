"""``objective list|show|diff``: which computation runs, axis by axis."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.text import Text

from verigrad.commands.output import JsonFlag, print_json, say, stdout


def register(app: typer.Typer) -> None:
    """Add the ``objective`` family."""
    group = typer.Typer(
        help="The objectives: list them, show one axis by axis, compare two.",
        no_args_is_help=True,
        epilog="Example: [bold]verigrad objective diff grpo dapo[/bold]",
        rich_markup_mode="rich",
    )
    group.command("list", epilog="Example: [bold]verigrad objective list[/bold]")(list_objectives)
    group.command(
        "show",
        epilog="Example: [bold]verigrad objective show dapo[/bold]\n\n"
        "What a recipe resolves to: [bold]verigrad objective show my.toml[/bold]",
    )(show_objective)
    group.command("diff", epilog="Example: [bold]verigrad objective diff grpo dr_grpo[/bold]")(
        diff_objectives
    )
    app.add_typer(group, name="objective")


def list_objectives(as_json: JsonFlag = False) -> None:
    """List the named objectives, each with the sentence that says what it is for."""
    from verigrad.algorithms import presets

    if as_json:
        print_json({"presets": [{"name": n, **_axes(n)} for n in presets.names()]})
        return
    from verigrad.algorithms import describe

    _print(describe.list_presets())


def show_objective(
    name: Annotated[str, typer.Argument(help="A preset, or a recipe (.toml).")],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Axes to change: objective.clip_high=0.2")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show an objective: its equation, every axis, what it patches, its nearest neighbour."""
    recipe = recipe_of(name, overrides or [])
    objective = resolve(recipe)
    from verigrad.algorithms import describe, presets

    if as_json:
        print_json(dataclasses.asdict(objective))
    else:
        _print(describe.show(objective))
    updates = recipe.training.updates_per_rollout
    for warning in presets.warnings_for(objective, updates_per_rollout=updates):
        say(f"[yellow]warn[/yellow] {escape(warning)}")


def diff_objectives(
    a: Annotated[str, typer.Argument(help="A preset or a recipe.")],
    b: Annotated[str, typer.Argument(help="Another.")],
    as_json: JsonFlag = False,
) -> None:
    """Show the axes on which two objectives differ."""
    first, second = resolve(recipe_of(a)), resolve(recipe_of(b))
    if as_json:
        left, right = dataclasses.asdict(first), dataclasses.asdict(second)
        axes = {
            k: {"a": left[k], "b": right[k]} for k in left if left[k] != right[k] and k != "name"
        }
        print_json({"a": a, "b": b, "axes": axes})
        return
    from verigrad.algorithms import describe

    _print(describe.diff(first, second))


def recipe_of(name: str, overrides: Iterable[str] = ()) -> Any:
    """Return the recipe meant: a file or a shipped one, or a bare recipe with the preset of that
    name."""
    from verigrad.commands.learn import load_recipe
    from verigrad.config import make_recipe

    if name.endswith(".toml"):
        return load_recipe(name, list(overrides))
    # Through a recipe, so that an override is checked in one place.
    return make_recipe({"objective": {"preset": name}}, overrides, where=name)


def resolve(recipe: Any) -> Any:
    """Return the Objective that a recipe resolves to."""
    from verigrad.algorithms import presets

    return presets.resolve(recipe.objective.preset, recipe.objective_overrides)


def _axes(name: str) -> Mapping[str, Any]:
    axes = dataclasses.asdict(resolve(recipe_of(name)))
    axes.pop("name", None)
    return axes


def _print(value: Any) -> None:
    """Print what ``describe`` returned, a text or lines of it."""
    text = value if isinstance(value, str) else "\n".join(str(line) for line in value)
    stdout().print(Text(text), soft_wrap=True)
