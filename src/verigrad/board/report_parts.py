"""The sections of report.html, each from plain data to escaped HTML."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from verigrad.board.groups import ShownGroup, read_groups
from verigrad.board.picture import heldout_whiskers, metric_points, smoothed
from verigrad.board.plots import Series, chart, shown, thin
from verigrad.board.summary import title_of
from verigrad.runlog import METRICS, RunReader

Rows = Sequence[Mapping[str, Any]]
SAMPLES = 8

CHARTS: tuple[tuple[str, str, tuple[tuple[str, str, str], ...]], ...] = (
    ("What is cut or unreadable", "share", (
        ("truncated", "truncated_frac", "c4"), ("unparsed", "unparsed_frac", "c3"),
        ("broken", "broken_frac", "c5"))),
    ("Completion length, tokens", "number", (
        ("mean", "completion_tokens_mean", "c1"), ("correct", "tokens_correct_mean", "c2"),
        ("others", "tokens_wrong_mean", "c4"))),
    ("Entropy, nats per token", "number", (("entropy", "entropy_mean", "c1"),)),
    ("Sampler gap, nats per token", "tiny", (("mean gap", "sampler_gap_mean", "c1"),)),
    ("Distance to the reference, nats per token", "number", (("KL", "kl_mean", "c3"),)),
    ("Gradient norm", "number", (("before clipping", "grad_norm", "c1"),)),
    ("Tokens stopped by the clip", "share", (
        ("upper", "clip_high_frac", "c1"), ("lower", "clip_low_frac", "c4"))),
    ("Sampling speed, tokens/s", "number", (("tokens/s", "tokens_per_s", "c1"),)),
)  # fmt: skip
"""Title, unit, and (label, metric, colour) of each small chart; one without data is left out."""

ONLY_WHEN_SEEN = ("Tokens stopped by the clip",)
"""Charts that say nothing while they are zero: with one update per rollout no ratio leaves 1."""

PHASES = (
    ("generate", "generate_s", "c1"),
    ("update", "update_s", "c2"),
    ("verify", "verify_s", "c3"),
    ("load", "load_s", "c5"),
)


def recipe_of(run: RunReader) -> dict[str, Any]:
    """Return the resolved recipe as a mapping; empty where it is missing or torn."""
    try:
        return tomllib.loads(run.recipe_text())
    except tomllib.TOMLDecodeError:
        return {}


def headline(summary: Mapping[str, Any], steps: int) -> str:
    """The numbers that matter, large: held-out accuracy and training reward, before and after."""
    tiles = []
    held = summary["heldout"]
    if held["before"] and held["after"]:
        tiles.append(_tile("held-out accuracy", _percent(held["before"]), _percent(held["after"]),
                           _intervals(held["before"], held["after"])))  # fmt: skip
    elif held["before"]:
        tiles.append(_tile("held-out accuracy before", "", _percent(held["before"]),
                           _interval(held["before"])))  # fmt: skip
    first, last = summary["reward_first"], summary["reward_last"]
    if first is not None and last is not None:
        tiles.append(_tile("training reward", f"{first:.3f}", f"{last:.3f}",
                           "mean of the first and the last ten steps"))  # fmt: skip
    if held["base"] and held["before"] and held["base"] != held["before"]:
        tiles.append(_tile("cold start, held out", _percent(held["base"]), _percent(held["before"]),
                           "the supervised start, before any RL"))  # fmt: skip
    planned = summary.get("steps_planned")
    tiles.append(_tile("steps", "", str(steps), f"of {planned} planned" if planned else ""))
    return f'<section class="tiles">{"".join(tiles)}</section>'


def hero_chart(rows: Rows, evaluations: Mapping[str, Any]) -> str:
    """The training reward with the held-out results on it."""
    points = metric_points(rows, "reward_mean")
    if not points:
        return '<section class="card"><p class="quiet">No step is recorded yet.</p></section>'
    one = Series("reward", smoothed(points), "c1", points)
    held = heldout_whiskers(evaluations, last=points[-1][0])
    svg = chart([one], low=0.0, high=1.0, whiskers=held, size=(1120, 340))
    legend = _legend([("reward, smoothed (dots: each step)", "c1", f"{one.points[-1][1]:.3f}")])
    if held:
        legend += '<span class="key"><b class="diamond"></b>held-out accuracy, 95% interval</span>'
    return _figure("Training reward", legend, svg, [one], "number", wide=True)


def evaluation_section(evaluations: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """The before and after table, with intervals drawn to scale."""
    if not evaluations:
        return ""
    found = [str(k) for _, e in evaluations for k in (e.get("pass_at_k") or {})]
    ks = [k for k in dict.fromkeys(found) if k != "1"]
    head = ["held out", "pass@1", "95% interval", "", "n", *(f"pass@{k}" for k in ks), "strict",
            "lenient", "cut", "unparsed", "broken", "tokens"]  # fmt: skip
    lines = []
    for name, e in evaluations:
        low, high, at = e.get("low"), e.get("high"), e.get("pass_at_1")
        interval = "" if low is None or high is None else f"{low:.1%} – {high:.1%}"
        cells = [
            f"<th>{escape(title_of(name))}</th>", f"<td><b>{_share(at)}</b></td>",
            f"<td>{interval}</td>",
            f'<td class="span">{_span(low, at, high)}</td>',
            f"<td>{escape(str(e.get('n', '')))}</td>",
            *(f"<td>{_share((e.get('pass_at_k') or {}).get(k))}</td>" for k in ks),
            *(f"<td>{_share(e.get(k))}</td>" for k in (
                "strict", "lenient", "truncated_frac", "unparsed_frac", "broken_frac")),
            f"<td>{'' if e.get('tokens_mean') is None else format(e['tokens_mean'], '.0f')}</td>",
        ]  # fmt: skip
        lines.append(f"<tr>{''.join(cells)}</tr>")
    header = "".join(f"<th>{h}</th>" for h in head)
    return (
        '<section class="card"><h2>Held-out accuracy</h2>'
        '<p class="quiet">Problems never trained on; '
        'intervals that do not overlap are a real difference.</p><div class="scroll">'
        f"<table><thead><tr>{header}</tr></thead><tbody>{''.join(lines)}</tbody></table></div></section>"
    )


def chart_grid(rows: Rows, sft: Rows) -> str:
    """The small charts: groups, completions, entropy, gap, time."""
    figures = [_groups_chart(rows)]
    for title, unit, wanted in CHARTS:
        series = [
            Series(label, smoothed(points), colour, points if len(wanted) == 1 else ())
            for label, name, colour in wanted
            if (points := metric_points(rows, name))
        ]
        if title in ONLY_WHEN_SEEN and not any(y for s in series for _, y in s.points):
            continue
        low = 0.0 if unit in ("share", "tiny") else None
        figures.append(_plain_figure(title, series, unit, low, METRICS[wanted[0][1]]))
    timing = [Series(n, p, c) for n, k, c in PHASES if (p := metric_points(rows, k))]
    figures.append(_stacked_figure("Seconds per step, by phase", timing, "seconds", None))
    loss = metric_points(sft, "loss")
    if loss:
        series = [Series("loss", loss, "c3")]
        title = "Cold start: supervised loss, nats per token"
        figures.append(_plain_figure(title, series, "number", None, METRICS["loss"]))
    return f'<section class="grid2">{"".join(figures)}</section>'


def findings_section(findings: Rows) -> str:
    """Every finding: what was seen, why, what to do."""
    if not findings:
        return ""
    items = "".join(
        f'<li class="{escape(str(f.get("severity")))}"><b>{escape(str(f.get("name")))}</b> '
        f'<span class="quiet">step {escape(str(f.get("step", "")))}</span>'
        f"<p>{escape(str(f.get('evidence')))}</p>"
        f"<p class='quiet'>Cause: {escape(str(f.get('cause')))}</p>"
        f"<p>Remedy: {escape(str(f.get('remedy')))}</p></li>"
        for f in findings
    )
    return f'<section class="card"><h2>Findings</h2><ul class="findings">{items}</ul></section>'


def samples_section(evaluations: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """The same held-out problems answered before and after, side by side."""
    kept = [(n, e) for n, e in evaluations if e.get("samples")]
    if not kept:
        return ""
    (first_name, first), (last_name, last) = kept[0], kept[-1]
    later = {str(s.get("problem_id")): s for s in last["samples"]}
    items = []
    for before in first["samples"][:SAMPLES]:
        after = later.get(str(before.get("problem_id"))) if len(kept) > 1 else None
        columns = _sample(title_of(first_name), before)
        if after:
            columns += _sample(title_of(last_name), after)
        items.append(
            f'<article class="pair"><p class="question">{escape(str(before.get("question", "")))}'
            f' <span class="gold">gold {escape(str(before.get("answer")))}</span></p>'
            f'<div class="columns">{columns}</div></article>'
        )
    return f'<section class="card"><h2>Held-out completions</h2>{"".join(items)}</section>'


def groups_section(run: RunReader) -> str:
    """Three groups of the last kept step, each completion with verdict, reward and advantage."""
    if not run.rollout_steps():
        return ""
    groups = read_groups(run)
    telling = sorted(groups, key=lambda g: not g.is_kind("mixed"))[:3]
    body = "".join(_group(g, opened=i == 0) for i, g in enumerate(telling))
    return (
        f'<section class="card"><h2>Groups of step {groups[0].step}</h2><p class="quiet">'
        f"Real completions; the advantage is what the update was told.</p>{body}</section>"
    )


def details_section(
    recipe: str, environment: Mapping[str, Any], audit: Mapping[str, Any] | None
) -> str:
    """Recipe, environment and the audit of the reward, folded."""
    out = f"<details><summary>Recipe</summary><pre>{escape(recipe)}</pre></details>"
    shown_env = json.dumps(environment, indent=2, ensure_ascii=False, default=str)
    out += f"<details><summary>Environment</summary><pre>{escape(shown_env)}</pre></details>"
    if audit:
        text = json.dumps(audit, indent=2, ensure_ascii=False, default=str)
        verdict = f"{audit.get('verdict')}, grade {audit.get('grade')}"
        out += (
            f"<details><summary>Audit of the reward: {escape(verdict)}</summary>"
            f"<pre>{escape(text)}</pre></details>"
        )
    return f'<section class="card">{out}</section>'


def _groups_chart(rows: Rows) -> str:
    right, wrong = metric_points(rows, "all_right_frac"), metric_points(rows, "all_wrong_frac")
    if not right or len(right) != len(wrong):
        return ""
    right, wrong = smoothed(right), smoothed(wrong)
    mixed = [(x, max(0.0, 1 - a - b)) for (x, a), (_, b) in zip(right, wrong, strict=True)]
    series = [Series("all right", right, "c2"), Series("mixed", mixed, "c1"),
              Series("all wrong", wrong, "c4")]  # fmt: skip
    return _stacked_figure("Groups: only mixed ones teach", series, "share", 1.0)


def _plain_figure(
    title: str, series: Sequence[Series], unit: str, low: float | None, note: str
) -> str:
    if not series:
        return ""
    svg = chart(series, unit=unit, low=low)
    legend = _legend([(s.name, s.colour, shown(s.points[-1][1], unit)) for s in series])
    return _figure(title, legend, svg, series, unit, note=note)


def _stacked_figure(title: str, series: Sequence[Series], unit: str, high: float | None) -> str:
    if not series:
        return ""
    steps = set.intersection(*({x for x, _ in s.points} for s in series))
    series = [Series(s.name, [p for p in s.points if p[0] in steps], s.colour) for s in series]
    if not steps:
        return ""
    svg = chart(series, unit=unit, stacked=True, low=0.0, high=high)
    legend = _legend([(s.name, s.colour, shown(s.points[-1][1], unit)) for s in series])
    return _figure(title, legend, svg, series, unit)


def _figure(
    title: str, legend: str, svg: str, series: Sequence[Series], unit: str, *, note: str = "",
    wide: bool = False,
) -> str:  # fmt: skip
    """A chart with its legend, and its numbers for the pointer to read."""
    data = [
        {
            "name": s.name,
            "colour": s.colour,
            "points": [[x, round(y, 9)] for x, y in thin(s.points)],
        }
        for s in series
    ]
    text = json.dumps({"unit": unit, "series": data}).replace("<", "\\u003c")
    hint = f' title="{escape(note)}"' if note else ""
    return (
        f'<figure class="card{" wide" if wide else ""}"><figcaption{hint}><h2>{escape(title)}</h2>'
        f'<div class="legend">{legend}</div></figcaption><div class="plot">{svg}</div>'
        f'<script type="application/json">{text}</script></figure>'
    )


def _legend(items: Sequence[tuple[str, str, str]]) -> str:
    return "".join(
        f'<span class="key"><b class="{colour}"></b>{escape(name)} <em>{escape(value)}</em></span>'
        for name, colour, value in items
    )


def _tile(label: str, before: str, after: str, note: str) -> str:
    arrow = f'<span class="from">{escape(before)} → </span>' if before else ""
    return (
        f'<div class="tile"><span class="label">{escape(label)}</span><span class="value">{arrow}'
        f'{escape(after)}</span><span class="quiet">{escape(note)}</span></div>'
    )


def _sample(title: str, sample: Mapping[str, Any]) -> str:
    outcome = str(sample.get("outcome"))
    return (
        f'<div class="completion {escape(outcome)}"><span class="verdict">{escape(title)}: '
        f"{escape(outcome)}</span><pre>{escape(str(sample.get('completion', '')))}</pre></div>"
    )


def _group(group: ShownGroup, *, opened: bool) -> str:
    lines = []
    for c in group.completions:
        reward = "no reward" if c.reward is None else f"reward {c.reward:g}"
        if c.advantage is not None:
            reward += f", advantage {c.advantage:+.2f}"
        cut = ", cut by the token limit" if c.truncated else ""
        why = f" ({c.reason})" if c.reason and c.outcome != "correct" else ""
        lines.append(
            f'<div class="completion {escape(c.outcome)}">'
            f'<span class="verdict">{escape(c.outcome)}, '
            f"{reward}, {c.num_tokens} tokens{cut}{escape(why)}</span>"
            f"<pre>{escape(c.text)}</pre></div>"
        )
    return (
        f'<details class="group"{" open" if opened else ""}><summary>'
        f"{group.num_right} of {len(group.completions)} right: {escape(group.question[-200:])} "
        f'<span class="gold">gold {escape(str(group.answer))}</span></summary>'
        f'<div class="columns">{"".join(lines)}</div></details>'
    )


def _span(low: float | None, at: float | None, high: float | None) -> str:
    """A small interval drawn to scale between 0 and 100%."""
    if low is None or high is None or at is None:
        return ""
    return (
        '<svg viewBox="0 0 160 14" class="interval">'
        '<line class="grid" x1="0" x2="160" y1="7" y2="7"/>'
        f'<line class="range" x1="{160 * low:.1f}" x2="{160 * high:.1f}" y1="7" y2="7"/>'
        f'<circle cx="{160 * at:.1f}" cy="7" r="4.5"/></svg>'
    )


def _interval(numbers: Mapping[str, Any]) -> str:
    low, high = numbers.get("low"), numbers.get("high")
    span = "" if low is None or high is None else f"[{low:.1%}, {high:.1%}], "
    return f"{span}n = {numbers.get('n')}"


def _intervals(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Both intervals and whether they overlap: the claim a reader would otherwise have to work
    out."""
    ends = [e.get(k) for e in (before, after) for k in ("low", "high")]
    low, high, later_low, later_high = (float("nan") if v is None else float(v) for v in ends)
    if None in ends:
        return _interval(after)
    apart = later_low > high or later_high < low
    return f"{_interval(after)}; the intervals {'do not overlap' if apart else 'overlap'}"


def _percent(numbers: Mapping[str, Any]) -> str:
    return _share(numbers.get("pass_at_1"))


def _share(value: Any) -> str:
    return "" if value is None else f"{float(value):.1%}"
