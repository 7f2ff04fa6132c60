"""The terminal view of a run: a live page on a terminal, one line per step elsewhere; and following
a run directory."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.console import Group as Stack
from rich.layout import Layout
from rich.live import Live
from rich.markup import escape
from rich.panel import Panel

from verigrad.board import panels
from verigrad.board.groups import read_groups
from verigrad.board.state import RunState, duration
from verigrad.board.summary import ordered, title_of
from verigrad.runlog import Listener, RunReader

REFRESH_HZ = 2
POLL_S = 0.5
CURVE_ROWS = 9
NARROW = 88
ALL_ROWS = 200
ENDED = ("done", "failed", "interrupted")


@contextmanager
def watching(
    console: Console, *, title: str, quiet: bool = False, training: bool = True
) -> Iterator[Listener]:
    """Give a run listener that shows the run while inside: live on a terminal, else plain lines.

    ``quiet`` shows only warnings and failures. ``training`` False leaves out the
    curve: a measurement has none.
    """
    state = RunState(title=title)
    if quiet:
        yield PlainLog(console, state, only_trouble=True)
        return
    if not console.is_terminal or console.is_dumb_terminal:
        yield PlainLog(console, state)
        return
    page = LivePage(state, training=training)
    with Live(
        get_renderable=lambda: page.render(console),
        console=console,
        refresh_per_second=REFRESH_HZ,
        vertical_overflow="crop",
    ):
        yield state.hear


class LivePage:
    """Draws a RunState to fit the console."""

    def __init__(
        self, state: RunState, *, height: int | None = None, training: bool = True
    ) -> None:
        self._state, self._height, self._training = state, height, training

    def render(self, console: Console) -> RenderableType:
        """The whole page; pieces that do not fit the height are left out, the least important
        first."""
        state, width, height = self._state, console.width, self._height or console.height
        pieces: list[tuple[RenderableType, int]] = [
            (panels.header_panel(state, state.elapsed_s, width), 3),
        ]
        if self._training:
            pieces.append((self._middle(width), CURVE_ROWS + 2))
        if width < NARROW and state.rows:
            pieces.append((panels.signal_lines(state, width), 3))
        left = height - 1 - sum(rows for _, rows in pieces)
        for piece in (self._heldout(width), self._findings(), self._group(width, left)):
            if piece is None:
                continue
            rows = len(console.render_lines(piece, console.options, pad=False))
            if rows <= left:
                pieces.append((piece, rows))
                left -= rows
        return Stack(*(p for p, _ in pieces))

    def _middle(self, width: int) -> RenderableType:
        state = self._state
        if width < NARROW:
            return panels.reward_panel(state, width=width, height=CURVE_ROWS)
        side = max(43, min(52, width // 3))
        row = Layout(size=CURVE_ROWS + 2)
        row.split_row(
            Layout(panels.reward_panel(state, width=width - side, height=CURVE_ROWS)),
            Layout(panels.signal_panel(state, width=side), size=side),
        )
        return _Rows(row, CURVE_ROWS + 2)

    def _heldout(self, width: int) -> RenderableType | None:
        rows = ordered(self._state.evaluations)
        if not rows:
            return None
        table = panels.evaluation_table(rows[:1] + rows[1:][-3:], narrow=width < NARROW)
        return Panel(table, border_style=panels.FRAME)

    def _findings(self) -> RenderableType | None:
        return panels.findings_panel(self._state.findings, 2) if self._state.findings else None

    def _group(self, width: int, left: int) -> RenderableType | None:
        if self._state.group is None:
            return None
        limit = max(60, 2 * (width - 12))
        rows = max(2, min(6, (left - 6) // 2))
        return panels.group_panel(self._state.group, rows=rows, text_limit=limit)


class _Rows:
    """Gives a layout a fixed height inside a stack."""

    def __init__(self, layout: Layout, rows: int) -> None:
        self._layout, self._rows = layout, rows

    def __rich_console__(self, console: Console, options: Any) -> Iterator[Any]:
        yield from console.render(self._layout, options.update(height=self._rows))


class PlainLog:
    """One line per step, evaluation, note and finding; a listener."""

    def __init__(self, console: Console, state: RunState, *, only_trouble: bool = False) -> None:
        self._console, self._state, self._only_trouble = console, state, only_trouble

    def __call__(self, kind: str, record: Mapping[str, Any]) -> None:
        self._state.hear(kind, record)
        text = self._line(kind, record)
        if text:
            self._console.print(escape(text), soft_wrap=True)

    def _line(self, kind: str, record: Mapping[str, Any]) -> str:
        if kind == "finding" and record.get("severity") != "info":
            return (
                f"{record.get('severity')}: {record.get('name')}: {record.get('evidence')} "
                f"cause: {record.get('cause')} remedy: {record.get('remedy')}"
            )
        if self._only_trouble:
            return ""
        if kind == "metrics":
            return step_line(self._state, record)
        if kind == "note":
            return str(record.get("text", ""))
        if kind == "evaluation":
            low, high = record.get("low") or 0.0, record.get("high") or 0.0
            return (
                f"held out {title_of(str(record['name']))}: "
                f"pass@1 {record.get('pass_at_1') or 0:.1%} "
                f"[{low:.1%}, {high:.1%}] n={record.get('n')}"
            )
        return ""


def step_line(state: RunState, record: Mapping[str, Any]) -> str:
    """One step as one line of text."""
    if record.get("phase", "rl") == "sft":
        loss = record.get("loss")
        return f"cold start step {record.get('step')}" + (
            "" if loss is None else f" loss {loss:.3f}"
        )
    parts = [f"step {record.get('step')}/{state.steps or '?'}"]
    for label, name, form in (
        ("reward", "reward_mean", "{:.3f}"),
        ("all right", "all_right_frac", "{:.0%}"),
        ("all wrong", "all_wrong_frac", "{:.0%}"),
        ("truncated", "truncated_frac", "{:.0%}"),
        ("unparsed", "unparsed_frac", "{:.0%}"),
        ("entropy", "entropy_mean", "{:.3f}"),
        ("tokens", "completion_tokens_mean", "{:.0f}"),
        ("tok/s", "tokens_per_s", "{:.0f}"),
    ):
        value = record.get(name)
        if value is not None:
            parts.append(f"{label} {form.format(float(value))}")
    parts.append(f"left {duration(state.eta_s)}")
    return "  ".join(parts)


class Tail:
    """Reads what is new in a run directory and tells it to a listener, as the run itself would
    have."""

    def __init__(self, path: Path, listener: Listener) -> None:
        self._reader, self._listener = RunReader(path), listener
        self._rows, self._findings, self._step = 0, 0, 0
        self._seen: dict[str, float] = {}

    def poll(self) -> str:
        """Tell everything new; return the run's state."""
        reader, tell = self._reader, self._listener
        status = reader.status()
        tell("status", status)
        rows = reader.metrics(phase=None)
        # A resumed run may be shorter than what was read: then its rows are read from the end
        # known.
        for row in rows[min(self._rows, len(rows)) :]:
            tell("metrics", row)
        self._rows = len(rows)
        findings = reader.findings()
        for finding in findings[min(self._findings, len(findings)) :]:
            tell("finding", finding)
        self._findings = len(findings)
        for name, record in reader.evaluations().items():
            if self._seen.get(name) != record.get("seconds", 0.0):
                self._seen[name] = record.get("seconds", 0.0)
                tell("evaluation", {**record, "name": name})
        kept = reader.rollout_steps()
        if kept and kept[-1] != self._step:
            self._step = kept[-1]
            groups = read_groups(reader, step=self._step)
            chosen = next((g for g in groups if g.is_kind("mixed")), groups[0])
            tell("group", {"step": self._step, "group": chosen})
        return str(status.get("state", ""))


def follow(path: Path, console: Console, *, once: bool = False) -> None:
    """Show a run directory live until the run ends or Ctrl-C; ``once`` prints the view a single
    time."""
    state = RunState(title=path.name)
    live = console.is_terminal and not console.is_dumb_terminal
    tail = Tail(path, state.hear if live or once else PlainLog(console, state))
    ended = tail.poll() in ENDED
    state.ran_before_s = sum(float(r.get("step_s") or 0.0) for r in [*state.sft_rows, *state.rows])
    page = LivePage(state, height=ALL_ROWS if once else None)
    if once:
        console.print(page.render(console))
        return
    if not live:
        while not ended:
            time.sleep(POLL_S)
            ended = tail.poll() in ENDED
        return
    with Live(
        get_renderable=lambda: page.render(console), console=console, refresh_per_second=REFRESH_HZ
    ):
        try:
            while not ended:
                time.sleep(POLL_S)
                ended = tail.poll() in ENDED
        except KeyboardInterrupt:
            return
