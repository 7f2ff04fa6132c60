"""The few numbers a run comes to."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from make_run import evaluation, make_run, rewards_of

from verigrad.board.state import duration, smooth
from verigrad.board.summary import find_run, heldout, ordered, summarize, title_of
from verigrad.runlog import RunReader, RunWriter


def test_rewards_are_means_of_the_first_and_last_ten_steps(finished: RunReader) -> None:
    rewards = rewards_of(30, 0)
    summary = summarize(finished)
    assert summary["reward_first"] == pytest.approx(sum(rewards[:10]) / 10)
    assert summary["reward_last"] == pytest.approx(sum(rewards[20:]) / 10)
    assert (summary["status"], summary["steps"], summary["fingerprint"]) == ("done", 30, "0-001e")


def test_the_cold_start_is_not_credited_to_rl(finished: RunReader) -> None:
    held = summarize(finished)["heldout"]
    assert held["base"]["pass_at_1"] == 0.15
    assert held["before"]["pass_at_1"] == 0.3
    assert held["after"] == {
        k: evaluation(0.78, step=30)[k] for k in ("pass_at_1", "low", "high", "n")
    }


def test_heldout_without_a_last_evaluation_takes_the_newest_during_training() -> None:
    found = heldout(
        {
            "step-100": {"pass_at_1": 0.5},
            "step-20": {"pass_at_1": 0.4},
            "before": {"pass_at_1": 0.1},
        }
    )
    assert found["after"]["pass_at_1"] == 0.5
    assert found["before"] == found["base"]


def test_evaluations_are_ordered_by_step_not_by_text() -> None:
    names = [n for n, _ in ordered({n: {} for n in ("after", "step-100", "step-20", "before")})]
    assert names == ["before", "step-20", "step-100", "after"]
    assert title_of("step-20") == "at step 20"


def test_an_empty_run_has_no_rewards_and_no_checkpoint(empty: RunReader) -> None:
    summary = summarize(empty)
    assert summary["reward_first"] is None
    assert summary["reward_last"] is None
    assert summary["checkpoint"] is None
    assert summary["heldout"] == {"base": None, "before": None, "after": None}


def test_the_newest_run_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for age, name in ((100, "old"), (0, "new")):
        status = make_run(Path("runs") / name, steps=1) / "status.json"
        stamp = status.stat().st_mtime - age
        os.utime(status, (stamp, stamp))
    assert find_run(None) == Path("runs/new")
    assert find_run("old") == Path("runs/old")
    assert json.loads((find_run("old") / "status.json").read_text())["state"] == "done"


def test_smoothing_keeps_a_constant_and_has_no_lag() -> None:
    assert smooth([0.4] * 20) == pytest.approx([0.4] * 20)
    ramp = smooth([float(i) for i in range(101)])
    assert ramp[50] == pytest.approx(50.0)
    assert smooth([]) == []


def test_durations_read_as_clocks() -> None:
    assert [duration(s) for s in (7, 754, 3723, None)] == ["0:07", "12:34", "1:02:03", "–"]


def test_resuming_keeps_the_supervised_steps_and_drops_later_ones(tmp_path: Path) -> None:
    run = make_run(tmp_path / "r", steps=6, cold_start=True)
    RunWriter.reopen(run, step=3)
    reader = RunReader(run)
    assert [r["step"] for r in reader.metrics(phase="sft")] == list(range(1, 9))
    assert [r["step"] for r in reader.metrics()] == [1, 2, 3]
    assert reader.rollout_steps() == [1, 2, 3]
