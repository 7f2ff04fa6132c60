"""What every verb prints with: one JSON object on stdout, all else on stderr; errors without
traceback."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

JsonFlag = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on stdout, all else on stderr.")
]


def stdout() -> Console:
    """A console on stdout, made at the call so that it follows redirection."""
    return Console(highlight=False)


def stderr() -> Console:
    """A console on stderr, for everything that is not the answer."""
    return Console(stderr=True, highlight=False)


def say_error(error: object) -> None:
    """Print one error message on stderr."""
    stderr().print(f"[bold red]error:[/bold red] {escape(str(error))}", soft_wrap=True)


def say(text: str) -> None:
    """Print a line for a person on stderr, markup allowed."""
    stderr().print(text, soft_wrap=True)


@contextmanager
def stdout_kept_for_json(as_json: bool) -> Iterator[None]:
    """While inside, whatever prints (a reward function, a library) goes to stderr if JSON was asked
    for."""
    if not as_json:
        yield
        return
    with redirect_stdout(sys.stderr):
        yield


def print_json(value: Mapping[str, Any]) -> None:
    """Print one JSON object on stdout; NaN and infinities become null, since JSON has no word for
    them."""
    typer.echo(json.dumps(plain(value), ensure_ascii=False, indent=2, allow_nan=False))


def plain(value: Any) -> Any:
    """Return the value as plain JSON data: records as mappings, paths as text, non-finite numbers
    as None."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, Sequence | set | frozenset):
        return [plain(v) for v in value]
    if isinstance(value, int):
        return int(value)
    if isinstance(value, Path):
        return str(value)
    return str(value)
