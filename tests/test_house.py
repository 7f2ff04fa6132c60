"""The house rules hold for every file, and each check really finds a planted fault."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from house import (
    ANY_ROOM,
    MAX_FILE_LINES,
    MAX_FUNCTION_LINES,
    MAY_IMPORT,
    import_faults,
    name_faults,
    room_of,
    size_faults,
)
from verigrad.algorithms import presets
from verigrad.config import make_recipe, read_recipe, write_recipe

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "verigrad"
FILES = {str(p.relative_to(SOURCE)): p.read_text("utf-8") for p in sorted(SOURCE.rglob("*.py"))}
PRESET_NAMES = frozenset(presets.names())

WITHOUT_TORCH = (
    "types",
    "errors",
    "config",
    "objective",
    "runlog",
    "problems",
    "verifiers",
    "audit",
    "doctor",
    "board",
    "backends",
    "cli",
)


def lines_of(faults: list[list[str]]) -> str:
    return "\n".join(line for some in faults for line in some)


def test_rooms_import_only_what_the_table_allows():
    assert len(FILES) > 100
    assert not lines_of([import_faults(path, text) for path, text in FILES.items()])


def test_the_table_keeps_the_house_apart():
    apart = ("verifiers", "rollout", "algorithms")
    for room in apart:
        assert not MAY_IMPORT[room] & set(apart)
    assert not MAY_IMPORT["training"] & {"audit", "board", "preflight", "pipelines"}
    for room, allowed in MAY_IMPORT.items():
        assert room not in allowed
        assert allowed <= set(MAY_IMPORT), f"{room} may import a room that isn't in the table"
        assert not allowed & ANY_ROOM, f"{room} may import the command line"


def test_the_table_has_no_way_round():
    """No room reaches itself: what it may import never imports it back."""
    for room in MAY_IMPORT:
        seen, waiting = set(), set(MAY_IMPORT[room])
        while waiting:
            other = waiting.pop()
            seen.add(other)
            waiting |= MAY_IMPORT[other] - seen
        assert room not in seen


def test_files_and_functions_stay_short():
    assert not lines_of([size_faults(path, text) for path, text in FILES.items()])


def test_the_trainer_never_reads_an_objectives_name():
    training = {path: text for path, text in FILES.items() if room_of(path) == "training"}
    assert "training/grpo.py" in training
    assert not lines_of([name_faults(path, text, PRESET_NAMES) for path, text in training.items()])


def test_every_room_but_the_heavy_ones_loads_without_torch():
    rooms = [r for r in WITHOUT_TORCH if f"{r}.py" in FILES or f"{r}/__init__.py" in FILES]
    assert {"types", "problems", "verifiers", "audit", "board", "cli"} <= set(rooms)
    modules = [
        "verigrad." + path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for path in FILES
        if room_of(path) in {*rooms, "commands"}
    ]
    code = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]:\n"
        "    importlib.import_module(name)\n"
        "    if 'torch' in sys.modules:\n"
        "        sys.exit(f'{name} imports torch')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *modules],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(SOURCE.parent)},
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", sorted(ROOT.glob("recipes/*.toml")), ids=lambda p: p.stem)
def test_every_shipped_recipe_reads_and_survives_being_written(path, tmp_path):
    recipe = read_recipe(path)
    presets.resolve(recipe.objective.preset, recipe.objective_overrides)
    (tmp_path / "resolved.toml").write_text(write_recipe(recipe), encoding="utf-8")
    assert read_recipe(tmp_path / "resolved.toml") == recipe != make_recipe({})


def test_modules_beside_the_tests_have_names_of_their_own():
    """pytest imports them by file name alone, so two of one name hide each other."""
    names = [p.name for p in (ROOT / "tests").rglob("*.py") if p.name != "conftest.py"]
    assert [name for name, count in Counter(names).items() if count > 1] == []


# The checks themselves: each finds the fault planted in a small text.


@pytest.mark.parametrize(
    ("path", "text", "other"),
    [
        ("algorithms/losses.py", "from verigrad.verifiers import base\n", "verifiers"),
        ("verifiers/base.py", "import verigrad.rollout.native\n", "rollout"),
        ("training/run.py", "def f():\n    from verigrad.audit import audit\n", "audit"),
        ("rollout/http.py", "from verigrad import training\n", "training"),
        ("board/page.py", "from ..training.run import train\n", "training"),
        ("problems/load.py", "from .. import runlog\n", "runlog"),
        ("errors.py", "from verigrad.types import Group\n", "types"),
        ("runlog/reader.py", "from verigrad.config import Recipe\n", "config"),
        (
            "types.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import verigrad.config\n",
            "config",
        ),
        ("training/grpo.py", "from verigrad.cli import main\n", "cli"),
    ],
)
def test_a_forbidden_import_is_found(path, text, other):
    (fault,) = import_faults(path, text)
    assert fault.startswith(f"{path}:") and fault.endswith(f"may not import {other}")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("algorithms/losses.py", "from verigrad.algorithms.kl import k3\nimport torch\n"),
        ("training/run.py", "from verigrad.verifiers import make_verifier\n"),
        ("board/server.py", "from . import page\nfrom .page import Page\n"),
        ("commands/check.py", "from verigrad.training import run\n"),
        ("audit/run.py", "from verigrad import __version__\n"),
    ],
)
def test_an_allowed_import_is_no_fault(path, text):
    assert import_faults(path, text) == []


def test_a_room_outside_the_table_is_found():
    assert import_faults("helpers/misc.py", "") == [
        "helpers/misc.py: room 'helpers' is not in the import table"
    ]


def test_a_long_file_and_a_long_function_are_found():
    body = "    x = 1\n" * (MAX_FUNCTION_LINES - 1)
    assert size_faults("a.py", f"def f():\n{body}") == []
    method = "class C:\n    async def f(self):\n" + "        x = 1\n" * MAX_FUNCTION_LINES
    assert size_faults("a.py", method) == ["a.py:2: f has 61 lines, more than 60"]
    assert size_faults("a.py", "x = 1\n" * MAX_FILE_LINES) == []
    assert size_faults("a.py", "x = 1\n" * 401) == ["a.py: 401 lines, more than 400"]
    assert size_faults("training/grpo.py", "x = 1\n" * 121) == [
        "training/grpo.py: 121 lines, more than 120"
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('if preset == "dapo":\n    pass\n', "names the preset 'dapo'"),
        ("x = {'gspo': 1}\n", "names the preset 'gspo'"),
        ("y = name == 'sft'\n", "names the preset 'sft'"),
        ("match name:\n    case 'pass_at_k':\n        pass\n", "names the preset 'pass_at_k'"),
        ("if objective.name in known:\n    pass\n", "reads an objective's name"),
        ("print(run.objective.name)\n", "reads an objective's name"),
    ],
)
def test_a_trainer_that_knows_a_preset_is_found(text, fault):
    line = 2 if "match" in text else 1
    assert name_faults("training/x.py", text, PRESET_NAMES) == [f"training/x.py:{line}: {fault}"]


def test_names_of_other_things_are_no_fault():
    text = '"""DAPO and dapo in a sentence."""\nx = verifier.name\nz = {"phase": "sft"}\n'
    assert name_faults("training/x.py", text, PRESET_NAMES) == []
