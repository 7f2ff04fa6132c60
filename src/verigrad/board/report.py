"""report.html: a whole run on one page that stands alone. Inline SVG, CSS and JS; no network."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from verigrad.board import report_parts as parts
from verigrad.board.state import duration
from verigrad.board.summary import ordered, summarize
from verigrad.runlog import RunReader, write_atomic


def write_report(run_dir: str | Path) -> Path:
    """Write report.html into the run directory (whole or not at all) and return its path."""
    reader = RunReader(run_dir)
    path = reader.path / "report.html"
    write_atomic(path, render_report(reader))
    return path


def render_report(run: RunReader, *, live: bool = False) -> str:
    """Return the page as text. ``live`` adds the lines that fetch it again while the run goes
    on."""
    summary = summarize(run)
    rows = run.metrics()
    evaluations = ordered(run.evaluations())
    recipe = parts.recipe_of(run)
    sections = [
        _head(run, summary, recipe),
        parts.headline(summary, len(rows)),
        parts.hero_chart(rows, run.evaluations()),
        parts.evaluation_section(evaluations),
        parts.chart_grid(rows, run.metrics(phase="sft")),
        parts.findings_section(summary["findings"]),
        parts.samples_section(evaluations),
        parts.groups_section(run),
        parts.details_section(run.recipe_text(), run.environment(), _audit(run)),
    ]
    title = f"verigrad: {run.path.name}"
    script = _resource("page.js") + ("\nverigradLive();" if live else "")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_resource('page.css')}</style></head>"
        f"<body><main>{''.join(sections)}</main>"
        f"<script>{script}</script></body></html>\n"
    )


def _head(run: RunReader, summary: Mapping[str, Any], recipe: Mapping[str, Any]) -> str:
    """The title line: which run, what on what, when, how long, and the state it is in."""
    state = str(summary["status"])
    environment = run.environment()
    facts = [
        ("model", recipe.get("model", {}).get("path")),
        ("problems", recipe.get("problems", {}).get("source")),
        ("verifier", recipe.get("verifier", {}).get("name")),
        ("objective", recipe.get("objective", {}).get("preset")),
        ("seed", recipe.get("training", {}).get("seed")),
        ("steps", f"{summary['steps']} in {duration(summary['seconds'])}"),
        ("started", environment.get("started")),
    ]
    shown = "".join(
        f"<span><i>{escape(k)}</i> {escape(str(v))}</span>" for k, v in facts if v is not None
    )
    message = f'<p class="message">{escape(summary["message"])}</p>' if summary["message"] else ""
    return (
        f'<header><div class="row"><h1>{escape(run.path.name)}</h1>'
        f'<span class="state {escape(state)}">{escape(state)}</span>'
        '<button id="theme" type="button" title="dark or light">◐</button></div>'
        f'<p class="facts">{shown}</p>{message}</header>'
    )


def _audit(run: RunReader) -> dict[str, Any] | None:
    """The audit of the reward, where one was kept beside the run."""
    path = run.path / "audit.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _resource(name: str) -> str:
    return resources.files("verigrad.board").joinpath(name).read_text(encoding="utf-8")
