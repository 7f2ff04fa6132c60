"""Verbs that read a run, and ``eval``."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from make_run import evaluation, make_run
from typer.testing import Result

Cli = Callable[..., Result]


def test_show_json_has_the_stable_names(cli: Cli) -> None:
    make_run(Path("runs/a"), steps=12)
    answer = json.loads(cli("show", "a", "--json").stdout)
    names = {"status", "steps", "reward_first", "reward_last", "heldout", "fingerprint", "findings",
             "checkpoint"}  # fmt: skip
    assert names <= answer.keys()
    assert answer["heldout"]["after"].keys() == {"pass_at_1", "low", "high", "n"}


def test_show_writes_the_curve_and_the_report(cli: Cli) -> None:
    run = make_run(Path("runs/a"), steps=12)
    result = cli("show", "--svg", "curve.svg", "--report")
    assert result.exit_code == 0
    assert ET.parse("curve.svg").getroot().tag.endswith("svg")
    assert (run / "report.html").exists()
    assert "training reward" in result.stdout


def test_show_of_an_unwritable_picture_is_bad_usage(cli: Cli) -> None:
    make_run(Path("runs/a"), steps=2)
    assert cli("show", "--svg", "no/such/folder.svg").exit_code == 2


def test_groups_are_chosen_by_kind_and_counted(cli: Cli) -> None:
    make_run(Path("runs/a"), steps=4)
    answer = json.loads(cli("groups", "--step", "4", "--only", "wrong", "--json").stdout)
    assert (answer["step"], answer["groups_in_step"]) == (4, 3)
    assert all(c["outcome"] != "correct" for g in answer["groups"] for c in g["completions"])
    assert len(answer["groups"]) == 1
    shown = cli("groups", "--step", "4", "--group", "2")
    assert "1 of 4 right" in shown.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["groups", "--step", "99"], "kept no rollouts of step 99"),
        (["groups", "--group", "9"], "has no group 9"),
        (["groups", "--only", "odd"], "not one of right, wrong"),
        (["show", "nowhere"], "does not exist"),
        (["diff", "a", "nowhere"], "does not exist"),
        (["show", "."], "is not a run"),
        (["eval", "a", "evaluation.samples=2"], "need --recipe"),
    ],
)
def test_bad_usage_names_the_remedy(cli: Cli, words: list[str], message: str) -> None:
    make_run(Path("runs/a"), steps=1)
    result = cli(*words)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_without_any_run_show_says_so(cli: Cli) -> None:
    result = cli("show")
    assert result.exit_code == 2
    assert "no run under runs/" in result.stderr


def test_diff_prints_the_first_difference(cli: Cli) -> None:
    make_run(Path("runs/a"), steps=3)
    make_run(Path("runs/b"), steps=3, seed=1)
    assert "first difference: step 1, problem_id" in cli("diff", "a", "b").stdout or (
        "first difference: step 1, prompt" in cli("diff", "a", "b").stdout
    )
    same = json.loads(cli("diff", "a", "a", "--json").stdout)
    assert same["identical"] is True


def test_watch_once_prints_the_page(cli: Cli) -> None:
    make_run(Path("runs/a"), steps=5)
    result = cli("watch", "a", "--once")
    assert result.exit_code == 0
    for text in ("step 5/5", "all wrong", "after GRPO", "findings"):
        assert text in result.stdout, text


def test_eval_prints_the_record(cli: Cli, stand_in: Callable[..., None]) -> None:
    seen: list[Any] = []

    def evaluate_checkpoint(path: Path, **settings: Any) -> dict[str, Any]:
        seen.append((path, settings))
        print("noise")
        return {"name": "eval", **evaluation(0.5, step=3)}

    stand_in("verigrad.training.run", evaluate_checkpoint=evaluate_checkpoint)
    make_run(Path("runs/a"), steps=1)
    result = cli("eval", "a", "--problems", "20", "--json")
    assert json.loads(result.stdout)["pass_at_1"] == 0.5
    path, settings = seen[0]
    assert path == Path("runs/a")
    assert (settings["problems"], settings["recipe"]) == (20, None)
    result = cli("eval", "a", "--recipe", "tiny.toml", "evaluation.problems=7")
    assert "50.0%" in result.stdout
    assert seen[1][1]["recipe"].evaluation.problems == 7
