"""The run directory: nothing is overwritten unasked, torn tails are mended, names keep meaning."""

from __future__ import annotations

import errno
import json
import os
import re

import pytest

from verigrad.errors import RunDirectoryError
from verigrad.runlog import METRICS, RunReader, RunWriter, read_jsonl, write_atomic
from verigrad.runlog.files import append_line
from verigrad.types import Completion, FinishReason, Group, Message, Problem, Prompt, Verdict


def a_run(path, **settings) -> RunWriter:
    log = RunWriter.create(path, **settings)
    log.recipe("[training]\nsteps = 3\n")
    return log


def a_group() -> Group:
    problem = Problem(id="p0", messages=(Message("user", "1 + 1?"),), answer="2")
    completions = tuple(
        Completion(text, (5, 6)[: i + 1], (-0.25, -1.0 / 3)[: i + 1], FinishReason.STOP, version=7)
        for i, text in enumerate(("2", "3 é\n"))
    )
    verdicts = (Verdict.correct(extracted="2"), Verdict.broken("no gold"))
    return Group(Prompt(problem, "User: 1 + 1?", (1, 2)), completions, verdicts)


def test_an_existing_run_is_refused_and_left_alone(tmp_path):
    a_run(tmp_path / "run").metrics({"step": 1})
    with pytest.raises(RunDirectoryError, match=r"exists already.*--resume.*--force.*--out"):
        RunWriter.create(tmp_path / "run")
    assert RunReader(tmp_path / "run").metrics() == [{"step": 1}]


def test_force_deletes_a_run_and_starts_anew(tmp_path):
    a_run(tmp_path / "run").metrics({"step": 1})
    a_run(tmp_path / "run", force=True)
    assert RunReader(tmp_path / "run").metrics() == []


def test_force_deletes_nothing_that_is_not_a_run(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("text")
    with pytest.raises(RunDirectoryError, match="is not a run: --force will not delete it"):
        RunWriter.create(tmp_path / "thesis", force=True)
    assert (tmp_path / "thesis" / "chapter.tex").read_text() == "text"


def test_an_empty_directory_is_taken_and_a_file_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    assert a_run(tmp_path / "empty").path.is_dir()
    (tmp_path / "file").write_text("x")
    for force in (False, True):
        with pytest.raises(RunDirectoryError, match="is a file"):
            RunWriter.create(tmp_path / "file", force=force)
    with pytest.raises(RunDirectoryError, match="cannot be written"):
        RunWriter.create(tmp_path / "file" / "below")


def test_a_torn_tail_is_left_out_by_the_reader_and_repaired_on_resume(tmp_path):
    log = a_run(tmp_path / "run")
    for step in (1, 2):
        log.metrics({"step": step, "reward_mean": 0.5})
    file = tmp_path / "run" / "metrics.jsonl"
    with open(file, "a", encoding="utf-8") as f:
        f.write('{"step": 3, "reward_m')
    whole = [{"step": 1, "reward_mean": 0.5}, {"step": 2, "reward_mean": 0.5}]
    assert RunReader(tmp_path / "run").metrics() == whole
    log.close()
    again = RunWriter.reopen(tmp_path / "run", step=2)
    again.metrics({"step": 3})
    assert list(read_jsonl(file)) == [*whole, {"step": 3}]


def test_a_tail_torn_within_a_letter_is_repaired(tmp_path):
    a_run(tmp_path / "run").finding("é", "warn", evidence="e", cause="c", remedy="r", step=1)
    file = tmp_path / "run" / "findings.jsonl"
    file.write_bytes(file.read_bytes() + '{"name": "é'.encode()[:-1])
    assert [f["name"] for f in RunReader(tmp_path / "run").findings()] == ["é"]
    RunWriter.reopen(tmp_path / "run", step=1)
    assert file.read_text(encoding="utf-8").endswith('"step": 1}\n')


def test_resuming_drops_what_came_after_the_checkpoint(tmp_path):
    log = a_run(tmp_path / "run")
    log.metrics({"step": 1, "phase": "sft"})
    for step in (1, 2, 3):
        log.metrics({"step": step, "phase": "rl"})
        log.rollouts(step, [a_group()], {})
        log.evaluation(f"step-{step}", {"pass_at_1": 0.5})
        log.finding(f"f{step}", "warn", evidence="e", cause="c", remedy="r", step=step)
    for name in ("before", "after"):
        log.evaluation(name, {"pass_at_1": 0.5})
    log.close()
    RunWriter.reopen(tmp_path / "run", step=2)
    reader = RunReader(tmp_path / "run")
    assert [r["step"] for r in reader.metrics()] == [1, 2]
    assert [r["step"] for r in reader.metrics(phase="sft")] == [1]
    assert [f["name"] for f in reader.findings()] == ["f1", "f2"]
    assert reader.rollout_steps() == [1, 2]
    assert set(reader.evaluations()) == {"before", "step-1", "step-2"}


def test_resuming_before_the_supervised_start_ended_drops_it_too(tmp_path):
    log = a_run(tmp_path / "run")
    log.metrics({"step": 1, "phase": "sft", "loss": 2.0})
    log.close()
    RunWriter.reopen(tmp_path / "run", step=0, cold_started=True)
    assert len(RunReader(tmp_path / "run").metrics(phase="sft")) == 1
    RunWriter.reopen(tmp_path / "run", step=0)
    assert RunReader(tmp_path / "run").metrics(phase="sft") == []


def test_only_a_run_can_be_resumed_or_read(tmp_path):
    with pytest.raises(RunDirectoryError, match=r"is not a run: it has no recipe\.toml"):
        RunWriter.reopen(tmp_path, step=0)
    with pytest.raises(RunDirectoryError, match="is not a run"):
        RunReader(tmp_path)
    with pytest.raises(RunDirectoryError, match="does not exist"):
        RunReader(tmp_path / "none")


def test_an_unknown_metric_is_refused_and_a_part_is_not(tmp_path):
    log = a_run(tmp_path / "run")
    with pytest.raises(AssertionError, match="reward_meen"):
        log.metrics({"step": 1, "reward_meen": 0.5})
    assert RunReader(tmp_path / "run").metrics() == []
    log.metrics({"step": 1, "parts/format": 0.5})
    assert RunReader(tmp_path / "run").metrics() == [{"step": 1, "parts/format": 0.5}]


def test_metric_names_follow_the_house():
    durations = {name for name, meaning in METRICS.items() if meaning.startswith("seconds")}
    assert durations | {"eta_s", "tokens_per_s"} == {n for n in METRICS if n.endswith("_s")}
    shares = {name for name, meaning in METRICS.items() if meaning.startswith("share")}
    assert shares <= {n for n in METRICS if n.endswith("_frac")}
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", name) for name in METRICS)
    assert all(len(meaning) > 5 for meaning in METRICS.values())


def test_a_listener_that_raises_is_dropped_and_the_others_hear_on(tmp_path, capsys):
    heard: list[str] = []

    def broken(kind: str, record: object) -> None:
        heard.append(f"broken {kind}")
        raise RuntimeError("no screen")

    log = a_run(tmp_path / "run", listeners=[broken, lambda kind, record: heard.append(kind)])
    log.metrics({"step": 1})
    log.note("hello")
    assert heard == ["broken metrics", "metrics", "note"]
    warning = capsys.readouterr().err
    assert warning.count("is dropped") == 1 and "no screen" in warning
    assert RunReader(tmp_path / "run").metrics() == [{"step": 1}]


def test_a_step_keeps_every_completion_with_its_verdict(tmp_path):
    log = a_run(tmp_path / "run")
    log.rollouts(4, [a_group(), a_group()], {0: 0.5, 2: -0.5})
    rows = RunReader(tmp_path / "run").rollouts(4)
    assert [(r["group"], r["sample"], r["advantage"]) for r in rows] == [
        (0, 0, 0.5), (0, 1, None), (1, 0, -0.5), (1, 1, None),
    ]  # fmt: skip
    assert [r["outcome"] for r in rows[:2]] == ["correct", "broken"]
    assert [r["reward"] for r in rows[:2]] == [1.0, None]
    assert rows[1]["completion"] == "3 é\n" and rows[1]["token_ids"] == [5, 6]
    assert rows[1]["sampler_logprobs"] == [-0.25, -0.333333] and rows[1]["version"] == 7
    with pytest.raises(RunDirectoryError, match=r"no rollouts of step 5. Kept: \[4\]"):
        RunReader(tmp_path / "run").rollouts(5)


def test_the_newest_checkpoint_is_the_one_that_latest_names(tmp_path):
    log = a_run(tmp_path / "run")
    assert RunReader(log.path).checkpoint() is None
    (log.path / "checkpoints" / "step-2").mkdir()
    write_atomic(log.path / "latest", "step-2")
    assert RunReader(log.path).checkpoint() == log.path / "checkpoints" / "step-2"
    write_atomic(log.path / "latest", "step-9")
    assert RunReader(log.path).checkpoint() is None


def test_a_status_replaces_the_one_before_and_leaves_no_temporary_file(tmp_path):
    log = a_run(tmp_path / "run")
    log.status("running", step=1, steps=3)
    log.status("done", step=3, steps=3, message="all well")
    status = RunReader(log.path).status()
    assert (status["state"], status["step"], status["message"]) == ("done", 3, "all well")
    assert json.loads((log.path / "status.json").read_text())["steps"] == 3
    assert [p.name for p in log.path.iterdir() if p.suffix == ".tmp"] == []


def test_a_second_writer_is_refused_and_told_whose_the_directory_is(tmp_path):
    log = a_run(tmp_path / "run")
    log.metrics({"step": 1})
    for second in (
        lambda: RunWriter.reopen(tmp_path / "run", step=1),
        lambda: RunWriter.create(tmp_path / "run", force=True),
    ):
        with pytest.raises(RunDirectoryError, match=rf"another process \(process {os.getpid()} on"):
            second()
    assert RunReader(tmp_path / "run").metrics() == [{"step": 1}]
    log.status("interrupted", step=1, steps=3)
    RunWriter.reopen(tmp_path / "run", step=1).metrics({"step": 2})
    assert [r["step"] for r in RunReader(tmp_path / "run").metrics()] == [1, 2]


def test_a_line_that_does_not_fit_leaves_nothing_behind(tmp_path, monkeypatch):
    file = tmp_path / "lines.jsonl"
    append_line(file, '{"a": 1}')
    real = os.write

    def full(fd, data):
        if len(data) > 3:
            return real(fd, data[:3])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space"):
            append_line(file, '{"a": 22222}')
    append_line(file, '{"a": 3}')
    assert list(read_jsonl(file)) == [{"a": 1}, {"a": 3}]


@pytest.mark.parametrize("bad", ["{not json}", "[1]", "7"])
def test_a_record_that_was_altered_is_named_and_resume_takes_it_out(tmp_path, bad):
    log = a_run(tmp_path / "run")
    log.metrics({"step": 1})
    file = tmp_path / "run" / "metrics.jsonl"
    file.write_text(f"{bad}\n" + file.read_text())
    with pytest.raises(RunDirectoryError, match=r"metrics\.jsonl:1 is no JSON record.*--resume"):
        RunReader(tmp_path / "run").metrics()
    log.close()
    RunWriter.reopen(tmp_path / "run", step=1)
    assert RunReader(tmp_path / "run").metrics() == [{"step": 1}]


def test_altered_json_files_and_pointers_are_named_or_passed_over(tmp_path):
    log = a_run(tmp_path / "run")
    log.evaluation("before", {"pass_at_1": 0.5})
    log.close()
    (tmp_path / "run" / "status.json").write_text("{")
    with pytest.raises(RunDirectoryError, match=r"status\.json is no JSON object"):
        RunReader(tmp_path / "run").status()
    (tmp_path / "run" / "evaluations" / "before.json").write_text("[")
    RunWriter.reopen(tmp_path / "run", step=1)
    assert RunReader(tmp_path / "run").evaluations() == {}
    for said in ("../..", "step-1/../..", "step-\0", ""):
        (tmp_path / "run" / "latest").write_text(said)
        assert RunReader(tmp_path / "run").checkpoint() is None
