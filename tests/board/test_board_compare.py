"""Where two runs part: planted differences are found at their step and by their first cause."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from make_run import make_run

from verigrad.board.compare import compare_runs
from verigrad.runlog import RunReader


def _pair(tmp_path: Path, **second: Any) -> tuple[RunReader, RunReader]:
    a = make_run(tmp_path / "a", steps=6)
    b = make_run(tmp_path / "b", **{"steps": 6, **second})
    return RunReader(a), RunReader(b)


def _edit(run: RunReader, file: str, line: int, **changes: Any) -> None:
    path = run.path / file
    rows = [json.loads(text) for text in path.read_text().splitlines()]
    rows[line].update(changes)
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))


def test_equal_runs_are_identical_whatever_their_seconds(tmp_path: Path) -> None:
    a, b = _pair(tmp_path)
    _edit(b, "metrics.jsonl", 3, step_s=99.0, tokens_per_s=1.0)
    found = compare_runs(a, b)
    assert found["identical"]
    assert found["first_difference"] is None
    assert found["recipe"] == []
    assert found["steps_compared"] == 6


def test_a_token_is_found_before_the_reward_it_changed(tmp_path: Path) -> None:
    a, b = _pair(tmp_path)
    ids = a.rollouts(4)[2]["token_ids"]
    _edit(b, "rollouts/step-4.jsonl", 2, token_ids=[*ids[:1], 77, *ids[2:]], reward=0.5)
    first = compare_runs(a, b)["first_difference"]
    assert (first["step"], first["quantity"]) == (4, "token_ids")
    assert first["where"] == "group 0, sample 2"
    assert first["a"]["position"] == 1
    assert first["b"]["from_there"][0] == 77


def test_a_metric_is_found_where_the_rollouts_are_equal(tmp_path: Path) -> None:
    a, b = _pair(tmp_path)
    _edit(b, "metrics.jsonl", 1, grad_norm=0.1, update_norm=0.2, fingerprint="other")
    first = compare_runs(a, b)["first_difference"]
    assert (first["step"], first["quantity"], first["b"]) == (2, "grad_norm", 0.1)


def test_the_fingerprint_alone_is_a_difference(tmp_path: Path) -> None:
    a, b = _pair(tmp_path)
    _edit(b, "metrics.jsonl", 5, fingerprint="other")
    first = compare_runs(a, b)["first_difference"]
    assert (first["step"], first["quantity"]) == (6, "fingerprint")


def test_recipe_keys_that_differ_are_named(tmp_path: Path) -> None:
    a, b = _pair(tmp_path, overrides=("rollout.group_size=4",))
    found = compare_runs(a, b)
    assert found["recipe"] == [{"key": "rollout.group_size", "a": 8, "b": 4}]


def test_a_shorter_run_is_not_identical(tmp_path: Path) -> None:
    a, b = _pair(tmp_path, steps=4)
    # The two draw their rewards on curves of different length; only the step count is looked at
    # here.
    found = compare_runs(a, b)
    assert not found["identical"]
    assert found["steps"] == {"a": 6, "b": 4}
