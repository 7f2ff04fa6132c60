"""Every command of the README runs, and every file it names is there."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from verigrad.config import make_recipe

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"`verigrad ([^`]+)`", README)


def verigrad(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "verigrad.cli", *words],
        cwd=cwd, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder that looks like the clone, with a short run of the tiny recipe in it."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "recipes").symlink_to(ROOT / "recipes")
    cases = '{"gold": "1/2", "completion": "\\\\boxed{0.5}", "expected": true}\n'
    (folder / "CASES.jsonl").write_text(cases, encoding="utf-8")
    command = next(c for c in COMMANDS if c.startswith("train"))
    short = ["training.steps=2", "cold_start.epochs=2", "--quiet"]
    done = verigrad(*command.split(), *short, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize(
    "command", [c for c in COMMANDS if c.split()[0] not in ("lab", "train", "chat")]
)
def test_a_readme_command_runs(place, command):
    done = verigrad(*command.split(), cwd=place)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_chat_answers(place):
    done = verigrad("chat", "runs/tiny", "--once", "What is 1 + 1?", cwd=place)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("verb", sorted({c.split()[0] for c in COMMANDS}))
def test_every_verb_has_help_with_an_example(tmp_path, verb):
    done = verigrad(verb, "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert "verigrad" in done.stdout


def test_the_recipe_shown_is_a_recipe():
    (text,) = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
    recipe = make_recipe(tomllib.loads(text))
    assert recipe.objective.preset == "dapo"


def test_every_linked_file_is_there():
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert links and all((ROOT / link).is_file() for link in links)


def test_the_two_commands_are_make_targets():
    targets = re.findall(r"^make (\w+)", README, re.MULTILINE)
    assert targets == ["lab", "test"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert all(f"\n{target}:" in makefile for target in targets)
