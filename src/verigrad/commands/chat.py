"""``chat``: talk to a trained model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from verigrad.commands.output import say, say_error, stdout
from verigrad.errors import UsageError

_HELP = "/reset forgets the conversation, /system TEXT sets the system turn, /quit leaves."


def register(app: typer.Typer) -> None:
    """Add ``chat``."""
    app.command(
        "chat",
        epilog="Example: [bold]verigrad chat runs/lab[/bold]\n\n"
        'Once: [bold]verigrad chat runs/lab --once "What is 17 + 25?"[/bold]',
    )(chat)


def chat(
    path: Annotated[Path, typer.Argument(help="A run directory or a checkpoint.")],
    once: Annotated[
        str | None, typer.Option("--once", help="Ask this, print the reply, leave.")
    ] = None,
    system: Annotated[
        str | None, typer.Option("--system", help="A system turn to start with.")
    ] = None,
    max_new_tokens: Annotated[int, typer.Option(min=1, help="Longest reply.")] = 256,
    temperature: Annotated[float, typer.Option(min=0, help="0 takes the likeliest token.")] = 0.0,
) -> None:
    """Talk to a trained model; the reply appears as it is sampled."""
    from verigrad.board.summary import find_run
    from verigrad.training.chat import chat_engine
    from verigrad.types import Message

    engine = chat_engine(find_run(path))
    turns: list[Any] = [Message("system", system)] if system else []

    def ask(question: str) -> None:
        turns.append(Message("user", question))
        pieces: list[str] = []
        for piece in engine.reply(turns, max_new_tokens=max_new_tokens, temperature=temperature):
            pieces.append(piece)
            sys.stdout.write(piece)
            sys.stdout.flush()
        sys.stdout.write("\n")
        turns.append(Message("assistant", "".join(pieces)))

    if once is not None:
        ask(once)
        return
    if not sys.stdin.isatty():
        for line in sys.stdin:
            if line.strip():
                ask(line.strip())
        return
    say(f"[dim]{escape(str(path))}. {_HELP}[/dim]")
    _converse(turns, ask)


def _converse(turns: list[Any], ask: Any) -> None:
    """Read questions until the end of input; Ctrl-C stops a reply, and at the prompt leaves."""
    from verigrad.types import Message

    console = stdout()
    while True:
        try:
            line = console.input("[bold cyan]you[/bold cyan] ").strip()
        except (EOFError, KeyboardInterrupt):
            console.print()
            return
        if not line:
            continue
        word, _, rest = line.partition(" ")
        if word in ("/quit", "/exit"):
            return
        if word == "/reset":
            del turns[:]
            say("[dim]forgotten[/dim]")
        elif word == "/system":
            turns[:] = [Message("system", rest)] if rest else []
            say("[dim]system turn set, conversation forgotten[/dim]")
        elif word.startswith("/"):
            say_error(UsageError(f"{word} is not a command. {_HELP}"))
        else:
            try:
                ask(line)
            except KeyboardInterrupt:
                # The question stays, the half reply does not: the next question starts clean.
                turns.pop()
                console.print(" [dim](stopped)[/dim]")
