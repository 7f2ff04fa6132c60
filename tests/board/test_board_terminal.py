"""The terminal view, drawn into a text console, and following a run that is being written."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from make_run import evaluation, make_run, one_group, rewards_of, step_record
from rich.console import Console

from verigrad.board.groups import question_in, read_groups
from verigrad.board.panels import group_panel, summary_panel
from verigrad.board.state import RunState
from verigrad.board.summary import summarize
from verigrad.board.terminal import LivePage, Tail, follow, watching
from verigrad.errors import RunDirectoryError
from verigrad.runlog import RunReader, RunWriter


def _console(width: int = 130, height: int = 44, *, terminal: bool = False) -> Console:
    return Console(file=io.StringIO(), width=width, height=height, force_terminal=terminal)


def _text(console: Console, piece: object) -> str:
    with console.capture() as capture:
        console.print(piece)
    return capture.get()


def _heard(steps: int = 12) -> RunState:
    state = RunState(title="lab")
    state.hear("status", {"state": "running", "step": 0, "steps": 20})
    state.hear("evaluation", {"name": "before", **evaluation(0.15, step=0)})
    for step, reward in enumerate(rewards_of(20, 0)[:steps], 1):
        state.hear("metrics", step_record(step, reward=reward))
    state.hear("group", {"step": steps, "group": one_group(1, right=2)})
    state.hear("finding", {"name": "truncation", "severity": "warn", "evidence": "30% cut",
                           "cause": "short", "remedy": "raise max_new_tokens"})  # fmt: skip
    state.hear("progress", {"phase": "generate", "done": 32, "total": 64})
    return state


def test_the_page_shows_what_a_person_asks_for() -> None:
    console = _console()
    page = _text(console, LivePage(_heard()).render(console))
    for text in ("step 12/20", "generate 32/64", "training reward", "all right", "mixed",
                 "all wrong", "truncated", "unparsed", "entropy", "tokens/s", "left",
                 "before training", "15.0%", "2 of 4 right", "30% cut",
                 "raise max_new_tokens"):  # fmt: skip
        assert text in page, text
    assert "loss" not in page


@pytest.mark.parametrize(("width", "height"), [(80, 24), (60, 18), (200, 60), (130, 30)])
def test_the_page_fits_the_terminal(width: int, height: int) -> None:
    console = _console(width, height)
    lines = _text(console, LivePage(_heard()).render(console)).rstrip("\n").splitlines()
    assert len(lines) <= height
    assert max(len(line) for line in lines) <= width


def test_the_page_can_be_drawn_before_anything_happened() -> None:
    console = _console()
    assert "waiting for the first step" in _text(console, LivePage(RunState()).render(console))


def test_without_a_terminal_there_is_one_line_per_step() -> None:
    console = _console()
    with watching(console, title="lab") as listener:
        listener("status", {"state": "running", "step": 0, "steps": 20})
        listener("metrics", step_record(1, reward=0.25))
        listener("metrics", {"step": 1, "phase": "sft", "loss": 1.5})
        listener("evaluation", {"name": "after", **evaluation(0.5, step=1)})
        listener("progress", {"phase": "generate", "done": 1, "total": 2})
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert len(lines) == 3
    assert lines[0].startswith("step 1/20  reward 0.250  ")
    assert lines[1] == "cold start step 1 loss 1.500"
    assert lines[2].startswith("held out after GRPO: pass@1 50.0% [")


def test_quiet_keeps_only_trouble() -> None:
    console = _console()
    with watching(console, title="lab", quiet=True) as listener:
        listener("metrics", step_record(1, reward=0.25))
        listener("finding", {"name": "n", "severity": "info", "evidence": "e"})
        listener("finding", {"name": "dead", "severity": "fail", "evidence": "all [silent]",
                             "cause": "c", "remedy": "r"})  # fmt: skip
    assert console.file.getvalue() == "fail: dead: all [silent] cause: c remedy: r\n"  # type: ignore[attr-defined]


def test_on_a_terminal_the_view_hears_the_run() -> None:
    console = _console(terminal=True)
    with watching(console, title="lab") as listener:
        listener("status", {"state": "running", "step": 0, "steps": 20})
        listener("metrics", step_record(1, reward=0.25))
    assert "step 1/20" in console.file.getvalue()  # type: ignore[attr-defined]


def test_a_tail_tells_only_what_is_new(tmp_path: Path) -> None:
    heard: list[tuple[str, int]] = []
    run = make_run(tmp_path / "r", steps=3, done=False)
    tail = Tail(run, lambda kind, record: heard.append((kind, int(record.get("step") or 0))))
    assert tail.poll() == "running"
    assert [s for k, s in heard if k == "metrics"] == [1, 2, 3]
    heard.clear()
    writer = RunWriter(run)
    writer.metrics(step_record(4, reward=0.5))
    writer.rollouts(4, [one_group(0, right=4), one_group(1, right=1)], {})
    writer.status("done", step=4, steps=4)
    assert tail.poll() == "done"
    assert [s for k, s in heard if k == "metrics"] == [4]
    assert [s for k, s in heard if k == "group"] == [4]


def test_watching_a_finished_run_ends(finished: RunReader) -> None:
    console = _console()
    follow(finished.path, console)
    assert "step 30/30" in console.file.getvalue()  # type: ignore[attr-defined]


def test_groups_are_read_with_their_question_and_kind(finished: RunReader) -> None:
    groups = read_groups(finished, step=1)
    assert [g.num_right for g in groups] == [1, 2, 3]
    assert groups[0].question.startswith("What is ")
    assert groups[0].is_kind("mixed")
    assert groups[0].is_kind("truncated")
    assert not groups[0].is_kind("right")
    assert groups[0].completions[0].advantage == 0.5


def test_a_missing_group_names_those_there_are(finished: RunReader) -> None:
    with pytest.raises(RunDirectoryError, match="has no group 9; it has 0 to 2"):
        read_groups(finished, step=1, group=9)


@pytest.mark.parametrize(
    ("prompt", "question"),
    [
        ("<|im_start|>user\nA?<|im_end|>\n<|im_start|>assistant\nB<|im_end|>\n"
         "<|im_start|>user\nWhat is 1 + 1?<|im_end|>\n<|im_start|>assistant\n", "What is 1 + 1?"),
        ("<start_of_turn>user\nHow many?<end_of_turn>\n<start_of_turn>model\n", "How many?"),
        ("What is 2 + 2?", "What is 2 + 2?"),
    ],
)  # fmt: skip
def test_the_question_is_found_in_a_rendered_prompt(prompt: str, question: str) -> None:
    assert question_in(prompt) == question


def test_a_group_panel_shows_all_verdicts_and_no_markup_is_obeyed(finished: RunReader) -> None:
    group = read_groups(finished, step=1, group=0)[0]
    text = _text(_console(), group_panel(group, rows=None, text_limit=None))
    for part in ("✓", "✗", "?", "(+0.50)", "[cut]", "no \\boxed{} found", "<b>&"):
        assert part in text, part


def test_the_summary_panel_names_both_ends(finished: RunReader) -> None:
    text = _text(_console(), summary_panel(summarize(finished)))
    for part in ("done", "held out, base", "held out, before RL", "held out, after RL", "78.0%"):
        assert part in text, part


def test_a_measurement_alone_shows_its_progress_and_no_curve() -> None:
    state = RunState(title="eval")
    state.hear("progress", {"phase": "evaluate", "done": 50, "total": 200})
    console = _console()
    page = _text(console, LivePage(state, training=False).render(console))
    assert "evaluate 50/200" in page
    assert "training reward" not in page
    assert "step" not in page
