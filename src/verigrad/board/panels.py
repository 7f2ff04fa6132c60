"""The pieces of the terminal view, each drawn from plain data; none of them reads a file or a
clock."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group as Stack
from rich.console import RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from verigrad.board.curves import braille_plot, sparkline
from verigrad.board.groups import ShownCompletion, ShownGroup
from verigrad.board.state import RunState, duration, smooth
from verigrad.board.summary import title_of

MARKS = {
    "correct": ("✓", "green"),
    "wrong": ("✗", "red"),
    "unparsed": ("?", "yellow"),
    "broken": ("!", "magenta"),
}
SEVERITY = {"fail": "red", "warn": "yellow", "info": "blue"}
FRAME = "bright_black"
AXIS = 7


def header_panel(state: RunState, elapsed_s: float, width: int) -> RenderableType:
    """Progress: state, step, a bar, time gone and left, and what is going on inside the step."""
    line = Text(no_wrap=True, overflow="ellipsis")
    colours = {"done": "green", "failed": "red", "interrupted": "yellow"}
    line.append(f" {state.state} ", style=f"bold {colours.get(state.state, 'cyan')}")
    done, total = _within_step(state)
    share = done / total if total else 0.0
    if state.steps or state.step:
        line.append(f"step {state.step}/{state.steps or '?'}  ")
        share = state.step / state.steps if state.steps else 0.0
    line.append_text(_bar(share, max(8, min(40, width - 70))))
    line.append(f"  {duration(elapsed_s)} gone")
    if state.state not in ("done", "failed") and state.eta_s is not None:
        line.append(f" · {duration(state.eta_s)} left", style="bold")
    if state.progress:
        line.append(f"  {state.progress.get('phase', '')} {done}/{total}", style="dim")
    elif state.message:
        line.append(f"  {state.message}", style="dim")
    return Panel(line, title=f"[bold]verigrad[/bold] {escape(state.title)}", title_align="left",
                 border_style=FRAME, padding=(0, 0))  # fmt: skip


def reward_panel(state: RunState, *, width: int, height: int) -> RenderableType:
    """The reward curve: every step faint, the smoothed line bright, the newest mean in the
    title."""
    rewards = state.series("reward_mean")
    if not rewards:
        body: RenderableType = Text(_before_first_step(state), style="dim")
        return Panel(body, title="training reward", title_align="left", border_style=FRAME,
                     height=height + 2)  # fmt: skip
    # The axis starts small, so that a first tenth of success is already seen to climb.
    high = next((h for h in (0.1, 0.25, 0.5, 1.0) if max(rewards) <= h), max(rewards))
    low = min(0.0, *rewards)
    curve = smooth(rewards)
    rows = braille_plot(
        rewards, curve, width=max(10, width - AXIS - 4), height=height, low=low, high=high
    )
    lines = []
    for i, row in enumerate(rows):
        value = high - (high - low) * i / max(1, height - 1)
        label = f"{value:>5.2f} ┤" if i % 2 == 0 or i == height - 1 else "      │"
        lines.append(Text(label, style="bright_black").append_text(row))
    title = f"training reward [bold cyan]{curve[-1]:.3f}[/bold cyan] (this step {rewards[-1]:.3f})"
    return Panel(Stack(*lines), title=title, title_align="left", border_style=FRAME)


def signal_panel(state: RunState, *, width: int) -> RenderableType:
    """Shares of groups, what goes wrong with completions, entropy, length, speed."""
    if not state.rows:
        text = "\n".join(f"· {n}" for n in state.notes[-6:]) or "no step yet"
        return Panel(Text(text, style="dim"), title="notes", title_align="left", border_style=FRAME)
    table = Table.grid(padding=(0, 1), expand=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True, style="bright_black")
    for label, name, form in (
        ("truncated", "truncated_frac", "{:.0%}"),
        ("unparsed", "unparsed_frac", "{:.0%}"),
        ("broken", "broken_frac", "{:.0%}"),
        ("entropy, nats", "entropy_mean", "{:.3f}"),
        ("tokens each", "completion_tokens_mean", "{:.0f}"),
        ("sampler gap, nats", "sampler_gap_mean", "{:.1e}"),
        ("tokens/s", "tokens_per_s", "{:.0f}"),
    ):
        value = state.last(name)
        if value is not None:
            table.add_row(
                label, form.format(value), sparkline(state.series(name), max(6, width - 32))
            )
    body = Stack(group_shares(state, width - 4), table)
    return Panel(body, title="groups and completions", title_align="left", border_style=FRAME)


def signal_lines(state: RunState, width: int) -> RenderableType:
    """The same in three lines, for a narrow terminal."""
    parts = []
    for label, name, form in (
        ("truncated", "truncated_frac", "{:.0%}"),
        ("unparsed", "unparsed_frac", "{:.0%}"),
        ("entropy", "entropy_mean", "{:.2f}"),
        ("tokens", "completion_tokens_mean", "{:.0f}"),
        ("tokens/s", "tokens_per_s", "{:.0f}"),
    ):
        value = state.last(name)
        if value is not None:
            parts.append(f"{label} {form.format(value)}")
    line = Text("  ".join(parts), no_wrap=True, overflow="ellipsis")
    return Stack(group_shares(state, width), line)


def group_shares(state: RunState, width: int) -> RenderableType:
    """One bar of all groups: all right, mixed (the only ones that teach), all wrong; numbers
    below."""
    right, wrong = state.last("all_right_frac") or 0.0, state.last("all_wrong_frac") or 0.0
    mixed = max(0.0, 1 - right - wrong)
    cells_right, cells_wrong = round(right * width), round(wrong * width)
    bar = Text(no_wrap=True)
    bar.append("█" * cells_right, style="green")
    bar.append("█" * max(0, width - cells_right - cells_wrong), style="cyan")
    bar.append("█" * cells_wrong, style="red")
    legend = Text(no_wrap=True)
    legend.append(f"all right {right:.0%}", style="green")
    legend.append(f"  mixed {mixed:.0%}", style="cyan")
    legend.append(f"  all wrong {wrong:.0%}", style="red")
    return Stack(bar, legend)


def evaluation_table(
    evaluations: Sequence[tuple[str, Mapping[str, Any]]], *, narrow: bool = False
) -> RenderableType:
    """Held-out results: pass@1 with its 95% interval, strict and lenient, what was cut or
    unparsed."""
    found = [k for _, e in evaluations for k in (e.get("pass_at_k") or {})]
    ks = [k for k in dict.fromkeys(found) if str(k) != "1"]
    shares = {"lenient": "lenient", "cut": "truncated_frac", "unparsed": "unparsed_frac"}
    if not narrow:
        shares = {"strict": "strict", **shares}
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    table.add_column("held out", no_wrap=True)
    for column in ("pass@1", "95% interval", "n", *shares, *(f"pass@{k}" for k in ks)):
        table.add_column(column, justify="right", no_wrap=True)
    if not narrow:
        table.add_column("tokens", justify="right")
    for name, e in evaluations:
        low, high = e.get("low"), e.get("high")
        tokens = "" if e.get("tokens_mean") is None else f"{e['tokens_mean']:.0f}"
        table.add_row(
            escape(title_of(name)),
            Text(_share(e.get("pass_at_1")), style="bold"),
            "" if low is None or high is None else f"{low:.1%} – {high:.1%}",
            str(e.get("n", "")),
            *(_share(e.get(k)) for k in shares.values()),
            *(_share((e.get("pass_at_k") or {}).get(k)) for k in ks),
            *([] if narrow else [tokens]),
        )
    return table


def group_panel(
    group: ShownGroup, *, rows: int | None = 4, text_limit: int | None = 160
) -> RenderableType:
    """One problem and its completions: verdict, reward, advantage, text (its end where it is
    long)."""
    body: list[RenderableType] = []
    question = group.question if text_limit is None else _clip(group.question, 2 * text_limit)
    body.append(Text(question, style="italic"))
    gold = Text("gold ", style="dim").append(str(group.answer), style="bold")
    body.append(gold.append(f"   {group.num_right} of {len(group.completions)} right", style="dim"))
    chosen = group.completions if rows is None else _telling(group.completions, rows)
    table = Table.grid(padding=(0, 1))
    table.add_column(width=1)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    for c in chosen:
        mark, colour = MARKS.get(c.outcome, ("·", "white"))
        reward = "–" if c.reward is None else f"{c.reward:g}"
        if c.advantage is not None:
            reward += f" ({c.advantage:+.2f})"
        text = Text(c.text.strip() if text_limit is None else _clip(c.text, text_limit))
        if c.truncated:
            text.append(" [cut]", style="yellow")
        if c.outcome in ("broken", "unparsed") and c.reason:
            text.append(f"  ({_clip(c.reason, 80)})", style="dim")
        table.add_row(Text(mark, style=f"bold {colour}"), Text(reward, style=colour), text)
    body.append(table)
    title = f"step {group.step}, problem {escape(group.problem_id)}"
    return Panel(Stack(*body), title=title, title_align="left", border_style=FRAME)


def findings_panel(findings: Sequence[Mapping[str, Any]], limit: int = 3) -> RenderableType:
    """The newest findings: what was seen and what to do."""
    lines = []
    for f in findings[-limit:]:
        text = Text(f"{f.get('severity', '')} ", style=SEVERITY.get(str(f.get("severity")), ""))
        text.append(f"{f.get('name', '')}: ", style="bold")
        text.append(f"{f.get('evidence', '')} ")
        text.append(f"→ {f.get('remedy', '')}", style="dim")
        lines.append(text)
    more = len(findings) - limit
    title = "findings" + (f" (and {more} earlier)" if more > 0 else "")
    return Panel(Stack(*lines), title=title, title_align="left", border_style="yellow")


def summary_panel(summary: Mapping[str, Any]) -> RenderableType:
    """What a run came to, as ``board.summary.summarize`` gives it."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    colour = {"done": "green", "failed": "red", "interrupted": "yellow"}.get(
        summary["status"], "cyan"
    )
    state = Text(summary["status"], style=f"bold {colour}")
    if summary.get("message"):
        state.append(f"  {summary['message']}", style="")
    table.add_row("status", state)
    planned = f" of {summary['steps_planned']}" if summary.get("steps_planned") else ""
    table.add_row("steps", f"{summary['steps']}{planned} in {duration(summary.get('seconds'))}")
    first, last = summary["reward_first"], summary["reward_last"]
    if first is not None and last is not None:
        change = Text(f"{first:.3f} → ").append(f"{last:.3f}", style="bold")
        change.append(f"  ({last - first:+.3f}; mean of the first and last ten steps)", style="dim")
        table.add_row("training reward", change)
    heldout = summary["heldout"]
    base = heldout.get("base")
    if base and heldout["before"] and base != heldout["before"]:
        table.add_row("held out, base", _interval(base))
    for key in ("before", "after"):
        if heldout[key]:
            table.add_row(f"held out, {key} RL", _interval(heldout[key]))
    if summary["checkpoint"]:
        table.add_row("checkpoint", summary["checkpoint"])
    if summary["fingerprint"]:
        table.add_row("fingerprint", str(summary["fingerprint"]))
    parts: list[RenderableType] = [table]
    for f in summary["findings"]:
        severity = str(f.get("severity"))
        line = Text(f"{severity} ", style=SEVERITY.get(severity, ""))
        parts.append(line.append(f"{f.get('name')}: {f.get('evidence')} → {f.get('remedy')}"))
    return Panel(Stack(*parts), title=f"[bold]{escape(summary['run'])}[/bold]", title_align="left",
                 border_style=FRAME)  # fmt: skip


def difference_lines(difference: Mapping[str, Any]) -> list[Text]:
    """Lines on where two runs part, as ``board.compare.compare_runs`` gives it."""
    lines = [Text(f"a  {difference['a']}"), Text(f"b  {difference['b']}")]
    for name in ("recipe", "environment"):
        rows = difference[name]
        lines.append(Text(f"{name}: " + ("same" if not rows else ""), style="bold"))
        lines += [
            Text(f"  {r['key']}: {_value(r['a'])} | {_value(r['b'])}", style="yellow") for r in rows
        ]
    first, compared = difference["first_difference"], difference["steps_compared"]
    if first is None:
        text = f"same in all {compared} common steps"
        if not difference["identical"]:
            text += f" (a has {difference['steps']['a']}, b has {difference['steps']['b']})"
        return [*lines, Text(text, style="green" if compared else "yellow")]
    where = f" ({first['where']})" if first["where"] else ""
    lines.append(
        Text(
            f"first difference: step {first['step']}, {first['quantity']}{where}", style="bold red"
        )
    )
    lines.append(Text(f"  a: {_value(first['a'])}"))
    lines.append(Text(f"  b: {_value(first['b'])}"))
    return lines


def _within_step(state: RunState) -> tuple[int, int]:
    """Return how much of the present phase is done, and of how much."""
    progress = state.progress or {}
    return int(progress.get("done") or 0), int(progress.get("total") or 0)


def _bar(share: float, width: int) -> Text:
    full = round(min(1.0, max(0.0, share)) * width)
    return Text("━" * full, style="bold cyan").append("━" * (width - full), style="bright_black")


def _before_first_step(state: RunState) -> str:
    if state.sft_rows:
        loss = state.sft_rows[-1].get("loss")
        shown = "" if loss is None else f", loss {loss:.3f} nats per token"
        return f"cold start: supervised step {state.sft_rows[-1].get('step')}{shown}"
    return state.notes[-1] if state.notes else "waiting for the first step"


def _telling(completions: Sequence[ShownCompletion], rows: int) -> list[ShownCompletion]:
    """Return a few completions with each outcome among them, in their own order."""
    picked: list[int] = []
    by_outcome: dict[str, list[int]] = {}
    for i, c in enumerate(completions):
        by_outcome.setdefault(c.outcome, []).append(i)
    while len(picked) < min(rows, len(completions)):
        for indices in by_outcome.values():
            if indices and len(picked) < rows:
                picked.append(indices.pop(0))
    return [completions[i] for i in sorted(picked)]


def _clip(text: str, limit: int) -> str:
    """Return the text on one line; beyond ``limit`` its beginning and end, since the answer stands
    last."""
    flat = " ⏎ ".join(line.strip() for line in text.strip().splitlines() if line.strip())
    if len(flat) <= limit:
        return flat
    head = limit // 3
    return f"{flat[:head]} … {flat[-(limit - head - 3) :]}"


def _interval(numbers: Mapping[str, Any]) -> Text:
    text = Text(_share(numbers.get("pass_at_1")), style="bold")
    low, high = numbers.get("low"), numbers.get("high")
    if low is not None and high is not None:
        text.append(f"  [{low:.1%}, {high:.1%}]  n = {numbers.get('n')}", style="dim")
    return text


def _share(value: Any) -> str:
    return "" if value is None else f"{float(value):.1%}"


def _value(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 300 else f"{text[:200]} … {text[-90:]}"
