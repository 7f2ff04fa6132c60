"""The command line in the process of the test, with runs to read and stand-ins for the slow
rooms."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.testing import CliRunner, Result

sys.path.insert(0, str(Path(__file__).parents[1] / "board"))

from verigrad.cli import app

TINY = """# A recipe for the tests. Second sentence.
[model]
path = "tiny"
[problems]
source = "sums:?digits=1"
[training]
steps = 3
"""


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Result]:
    """Run a command line in an empty folder that holds tiny.toml."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.toml").write_text(TINY, encoding="utf-8")
    runner = CliRunner()

    def call(*words: str, stdin: str | None = None) -> Result:
        return runner.invoke(app, list(words), input=stdin, catch_exceptions=True)

    return call


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put functions where a verb imports them from, without loading the room they belong to."""

    def put(name: str, **functions: Any) -> None:
        package, _, leaf = name.rpartition(".")
        module = ModuleType(name)
        for key, value in functions.items():
            setattr(module, key, value)
        if package not in ("", "verigrad"):
            parent = ModuleType(package)
            parent.__path__ = []  # type: ignore[attr-defined]
            setattr(parent, leaf, module)
            monkeypatch.setitem(sys.modules, package, parent)
        monkeypatch.setitem(sys.modules, name, module)

    return put
