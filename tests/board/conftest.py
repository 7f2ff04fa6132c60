"""Runs to read, made once for the whole room."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from make_run import make_run

from verigrad.runlog import RunReader


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> RunReader:
    """A finished run of 30 steps that had a cold start."""
    return RunReader(make_run(tmp_path_factory.mktemp("runs") / "lab", steps=30, cold_start=True))


@pytest.fixture
def empty(tmp_path: Path) -> RunReader:
    """A run that was started and has no step yet."""
    (tmp_path / "recipe.toml").write_text('[model]\npath = "tiny"\n', encoding="utf-8")
    return RunReader(tmp_path)
