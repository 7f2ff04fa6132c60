"""``recipes`` and ``schema``: the shipped recipes, one copied to own, and what a recipe may say."""

from __future__ import annotations

import re
import tomllib
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from verigrad.commands.output import JsonFlag, print_json, say, stdout
from verigrad.errors import UsageError, nearest

_EPILOG = "Example: [bold]verigrad recipes copy tiny my.toml && verigrad train my.toml[/bold]"


def register(app: typer.Typer) -> None:
    """Add ``recipes`` and ``schema``."""
    group = typer.Typer(
        help="List the shipped recipes, or copy one to own it.",
        invoke_without_command=True,
        epilog=_EPILOG,
        rich_markup_mode="rich",
    )
    group.callback()(list_recipes)
    group.command("list", epilog=_EPILOG, hidden=True)(_list_again)
    group.command("show", epilog="Example: [bold]verigrad recipes show tiny[/bold]")(show_recipe)
    group.command("copy", epilog=_EPILOG)(copy_recipe)
    app.add_typer(group, name="recipes", epilog=_EPILOG)
    app.command("schema", epilog="Example: [bold]verigrad schema > recipe.schema.json[/bold]")(
        print_schema
    )


def shipped_recipes() -> dict[str, str]:
    """Return {name: TOML text} of the recipes that come with verigrad, installed or in a
    checkout."""
    packaged = resources.files("verigrad").joinpath("_recipes")
    folder = packaged if packaged.is_dir() else Path(__file__).parents[3] / "recipes"
    if not folder.is_dir():
        return {}
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".toml")), key=lambda f: f.name)
    return {f.name.removesuffix(".toml"): f.read_text(encoding="utf-8") for f in files}


def recipe_text(name: str) -> str:
    """Return the text of a shipped recipe. Raises UsageError naming the nearest one."""
    shipped = shipped_recipes()
    key = name.removesuffix(".toml")
    if key not in shipped:
        raise UsageError(f"no shipped recipe is called {name!r}.{nearest(key, shipped)}")
    return shipped[key]


def sentence_of(text: str) -> str:
    """Return the first sentence of the recipe's opening comment: what it is for."""
    lines: list[str] = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("# ").strip())
    text = " ".join(line for line in lines if line)
    return re.split(r"(?<=[.!?])\s", text, maxsplit=1)[0]


def list_recipes(ctx: typer.Context, as_json: JsonFlag = False) -> None:
    """List the shipped recipes."""
    if ctx.invoked_subcommand is None:
        _print_list(as_json)


def _list_again(as_json: JsonFlag = False) -> None:
    """List the shipped recipes."""
    _print_list(as_json)


def _print_list(as_json: bool) -> None:
    rows = []
    for name, text in shipped_recipes().items():
        data = tomllib.loads(text)
        rows.append(
            {
                "name": name,
                "about": sentence_of(text),
                "model": data.get("model", {}).get("path"),
                "problems": data.get("problems", {}).get("source"),
                "preset": data.get("objective", {}).get("preset", "grpo"),
                "steps": data.get("training", {}).get("steps"),
            }
        )
    if as_json:
        print_json({"recipes": rows})
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for r in rows:
        table.add_row(r["name"], r["about"] or r["problems"])
    stdout().print(table)
    say("\nCopy one to own it: [bold]verigrad recipes copy NAME[/bold]")


def show_recipe(name: Annotated[str, typer.Argument(help="Name of a shipped recipe.")]) -> None:
    """Print a shipped recipe."""
    typer.echo(recipe_text(name), nl=False)


def copy_recipe(
    name: Annotated[str, typer.Argument(help="Name of a shipped recipe.")],
    dest: Annotated[
        Path | None, typer.Argument(help="File or folder to write; by default ./NAME.toml.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Copy a shipped recipe, to change it and train with it."""
    text = recipe_text(name)
    file_name = f"{name.removesuffix('.toml')}.toml"
    target = dest or Path(file_name)
    if target.is_dir():
        target = target / file_name
    if target.exists() and not force:
        raise UsageError(
            f"{target} exists already. Overwrite it with --force or name another file."
        )
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    except OSError as e:
        raise UsageError(f"{target} cannot be written: {e.strerror or e}.") from None
    say(f"wrote {target}. Train with: [bold]verigrad train {target}[/bold]")


def print_schema() -> None:
    """Print the JSON Schema of a recipe: every key, its type, default and meaning."""
    from verigrad.config import recipe_schema

    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **recipe_schema()}
    print_json(schema)
