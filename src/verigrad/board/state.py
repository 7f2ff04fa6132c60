"""What a running view knows: every record it heard, kept in the shape the panels draw."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from verigrad.board.groups import ShownGroup, from_live


@dataclass(slots=True)
class RunState:
    """The live picture of one run; ``hear(kind, record)`` is a run listener."""

    title: str = "run"
    started: float = field(default_factory=time.monotonic)
    ran_before_s: float = 0.0
    state: str = "starting"
    message: str = ""
    step: int = 0
    steps: int = 0
    rows: list[dict[str, Any]] = field(default_factory=list)
    sft_rows: list[dict[str, Any]] = field(default_factory=list)
    evaluations: dict[str, dict[str, Any]] = field(default_factory=dict)
    findings: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    environment: dict[str, Any] = field(default_factory=dict)
    progress: dict[str, Any] | None = None
    group: ShownGroup | None = None

    def hear(self, kind: str, record: Mapping[str, Any]) -> None:
        """Take in one record of a run."""
        if kind == "metrics":
            self._metrics(dict(record))
        elif kind == "progress":
            self.progress = dict(record)
        elif kind == "group":
            group = record["group"]
            shown = group if isinstance(group, ShownGroup) else from_live(record["step"], group)
            self.group = shown if shown.completions else self.group
        elif kind == "status":
            self.state = str(record.get("state", ""))
            self.message = str(record.get("message") or "")
            self.step = int(record.get("step") or self.step)
            self.steps = int(record.get("steps") or self.steps)
        elif kind == "evaluation":
            self.evaluations[str(record["name"])] = dict(record)
            self.progress = None
        elif kind == "finding":
            self.findings.append(dict(record))
        elif kind == "note":
            self.notes.append(str(record.get("text", "")))
        elif kind == "environment":
            self.environment = dict(record)

    def series(self, name: str) -> list[float]:
        """Return one metric over the steps so far, without the steps that lack it."""
        return [float(r[name]) for r in self.rows if r.get(name) is not None]

    def last(self, name: str) -> float | None:
        """Return the newest value of a metric."""
        if not self.rows:
            return None
        value = self.rows[-1].get(name)
        return None if value is None else float(value)

    @property
    def elapsed_s(self) -> float:
        """Seconds the run has taken, those before this view was opened included."""
        return self.ran_before_s + time.monotonic() - self.started

    @property
    def eta_s(self) -> float | None:
        """Seconds left as the run estimates them, else from the mean of the last steps."""
        reported = self.last("eta_s")
        if reported is not None:
            return reported
        recent = self.series("step_s")[-10:]
        if not recent or not self.steps:
            return None
        return (self.steps - self.step) * sum(recent) / len(recent)

    def _metrics(self, record: dict[str, Any]) -> None:
        if record.get("phase", "rl") == "sft":
            self.sft_rows.append(record)
            return
        self.rows.append(record)
        self.step = int(record.get("step", self.step))
        self.progress = None


def duration(seconds: float | None) -> str:
    """Return seconds as 0:07, 12:30 or 1:02:03; a dash where unknown.

    >>> duration(754)
    '12:34'
    """
    if seconds is None:
        return "–"
    whole = max(0, round(seconds))
    hours, rest = divmod(whole, 3600)
    minutes, secs = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{secs:02}" if hours else f"{minutes}:{secs:02}"


def smooth(values: list[float], span: float | None = None) -> list[float]:
    """Return the values smoothed over ``span`` steps (about a tenth of the curve) without a lag.

    The mean of an exponential moving average run forwards and one run backwards, both corrected at
    their
    start: the line neither trails the points nor invents values beyond them.
    """
    span = span or max(3.0, len(values) / 10)
    forwards = _moving_average(values, span)
    backwards = _moving_average(values[::-1], span)[::-1]
    return [(a + b) / 2 for a, b in zip(forwards, backwards, strict=True)]


def _moving_average(values: list[float], span: float) -> list[float]:
    keep = 1 - 2 / (span + 1)
    total, weight, out = 0.0, 0.0, []
    for value in values:
        total = keep * total + (1 - keep) * value
        weight = keep * weight + (1 - keep)
        out.append(total / weight)
    return out
