"""The command line as a whole: help with an example for every verb, exit codes, nothing heavy
loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import verigrad
from verigrad.cli import app

VERBS = ("lab", "train", "eval", "chat", "show", "groups", "diff", "verify", "audit", "objective",
         "recipes", "schema", "watch")  # fmt: skip
NESTED = ("objective list", "objective show", "objective diff", "recipes show", "recipes copy")

runner = CliRunner()


def test_every_agreed_verb_is_there() -> None:
    assert set(VERBS) <= set(get_command(app).commands)  # type: ignore[attr-defined]


@pytest.mark.parametrize("verb", [*VERBS, *NESTED])
def test_help_holds_a_worked_example(verb: str) -> None:
    result = runner.invoke(app, [*verb.split(), "--help"])
    assert result.exit_code == 0
    assert f"Example: verigrad {verb.split()[0]}" in " ".join(result.stdout.split())


def test_unknown_verbs_and_options_are_bad_usage() -> None:
    assert runner.invoke(app, ["trian"]).exit_code == 2
    assert runner.invoke(app, ["train", "x.toml", "--outt", "y"]).exit_code == 2
    assert runner.invoke(app, ["train"]).exit_code == 2


def test_the_version_is_printed() -> None:
    assert runner.invoke(app, ["--version"]).stdout == f"verigrad {verigrad.__version__}\n"


def test_a_usage_error_is_one_message_and_debug_shows_where_it_came_from() -> None:
    plain = runner.invoke(app, ["train", "nope.toml"])
    assert plain.exit_code == 2
    assert plain.stderr.startswith("error: recipe nope.toml does not exist.")
    for words in (["--debug", "train", "nope.toml"], ["train", "nope.toml", "--debug"]):
        raised = runner.invoke(app, words)
        assert type(raised.exception).__name__ == "RecipeError"


def test_the_command_line_loads_without_torch_and_without_sympy() -> None:
    code = (
        "import sys, verigrad.cli, verigrad.board.report, verigrad.board.terminal, "
        "verigrad.board.server; "
        "heavy = [m for m in ('torch', 'transformers', 'sympy', 'starlette') if m in sys.modules]; "
        "sys.exit(', '.join(heavy) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
