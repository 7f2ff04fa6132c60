"""The command line: parse, call one function, print. Rooms are imported inside the verb that needs
them.

Exit codes: 0 done, 1 failed, 2 bad usage or recipe, 3 refused (audit or floor), 130 interrupted
after a checkpoint.
With ``--json`` a verb prints one object on stdout and everything else on stderr.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from verigrad import __version__
from verigrad.commands import chat, check, learn, objectives, recipes, runs
from verigrad.commands.output import say_error
from verigrad.errors import VerigradError

INTERRUPTED = 130


class Verbs(TyperGroup):
    """The top of the command line: turns what verigrad raises into one message and an exit code."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Accept ``--debug`` in any place, since one adds it to the end of the line that failed."""
        head, tail = args, []
        if "--" in args:
            cut = args.index("--")
            head, tail = args[:cut], args[cut:]
        ctx.meta["debug"] = "--debug" in head
        return super().parse_args(ctx, [a for a in head if a != "--debug"] + tail)

    def invoke(self, ctx: Any) -> Any:
        """Run the verb; a VerigradError becomes its message and exit code, an interruption becomes
        130."""
        try:
            return super().invoke(ctx)
        except VerigradError as error:
            if ctx.meta.get("debug"):
                raise
            say_error(error)
            raise typer.Exit(error.exit_code) from None
        except KeyboardInterrupt:
            if ctx.meta.get("debug"):
                raise
            say_error("interrupted.")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            # `verigrad schema | head` is not a failure; nothing more can be written.
            raise typer.Exit(0) from None


app = typer.Typer(
    cls=Verbs,
    name="verigrad",
    help="Train reasoning language models with rewards that can be verified.",
    epilog="Start with: [bold]verigrad lab[/bold]\n\n"
    "Or copy a recipe: [bold]verigrad recipes copy tiny[/bold]",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"verigrad {__version__}")
        raise typer.Exit()


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error (in any place).")
    ] = False,
) -> None:
    """Train reasoning language models with rewards that can be verified."""


for family in (learn, runs, chat, check, objectives, recipes):
    family.register(app)


def main() -> None:
    """Entry point of the ``verigrad`` command."""
    app()


if __name__ == "__main__":
    main()
