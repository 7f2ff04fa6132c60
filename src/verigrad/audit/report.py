"""What an audit says: findings with a stable shape, one row per probe, a verdict and a grade."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Severity = Literal["fail", "warn", "info"]
Verdict = Literal["pass", "warn", "fail"]
Status = Literal["pass", "warn", "fail", "skip"]
Grade = Literal["A", "B", "C", "D", "F"]

FATAL = frozenset(
    {
        "gold_refused",
        "constant_reward",
        "length_reward",
        "blind_reward",
        "substring_reward",
        "hangs",
        "crashes",
        "nan_reward",
        "non_deterministic",
        "runs_completion_as_code",
    }
)
"""Findings that make the grade F by themselves: no run can be built on such a reward."""

WIDTH = 100
"""Columns of the printed report."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong: what was seen, why it is likely so, what to do."""

    name: str
    severity: Severity
    evidence: str
    cause: str
    remedy: str


@dataclass(frozen=True, slots=True)
class ProbeRow:
    """One question put to the reward: how often it was asked, how often the answer was bad, one
    example.

    ``status`` is pass, warn, fail, or skip; a skipped row says in ``example`` why it does not
    apply.
    """

    name: str
    asks: str
    status: Status
    checked: int
    failed: int
    example: str = ""


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The audit of one verifier: ``verdict`` is fail when it should not be trained on.

    ``grade`` runs from A (nothing found) over B (one or two warnings), C (more warnings) and D (one
    failure) to F (a fatal failure, or several). ``notes`` state what was assumed or skipped;
    ``checks`` counts the completions that were judged.
    """

    verifier: str
    verdict: Verdict
    grade: Grade
    findings: tuple[Finding, ...]
    probes: tuple[ProbeRow, ...]
    notes: tuple[str, ...]
    problems: int
    checks: int
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return plain data with the stable names ``verdict findings grade probes`` and the
        rest."""
        plain = asdict(self)
        return {k: list(v) if isinstance(v, tuple) else v for k, v in plain.items()}

    def lines(self) -> list[str]:
        """Return the report as plain text, one line each: verdict, findings, probe table, notes."""
        out = [
            f"{self.verdict.upper()}  grade {self.grade}  audit of {self.verifier}",
            f"      {self.problems} problems, {self.checks} completions, {self.seconds:.1f} s",
        ]
        for f in self.findings:
            out += ["", f"{f.severity}  {f.name}"]
            out += _wrapped("seen", f.evidence) + _wrapped("cause", f.cause)
            out += _wrapped("remedy", f.remedy)
        out += ["", *self._table()]
        if self.notes:
            out.append("")
            for note in self.notes:
                out += _wrapped("note", note)
        return out

    def _table(self) -> list[str]:
        width = max((len(row.name) for row in self.probes), default=0)
        out: list[str] = []
        for row in self.probes:
            if row.status == "skip":
                out.append(f"  {row.status:<4}  {row.name:<{width}}  {'-':>13}  {row.asks}")
                continue
            count = f"{row.checked - row.failed}/{row.checked}"
            out.append(f"  {row.status:<4}  {row.name:<{width}}  {count:>13}  {row.asks}")
        return out


def grade_of(findings: Sequence[Finding]) -> tuple[Verdict, Grade]:
    """Return verdict and grade: A nothing, B up to two warnings, C more, D one failure, F worse."""
    fails = [f.name for f in findings if f.severity == "fail"]
    warns = sum(f.severity == "warn" for f in findings)
    if fails:
        return "fail", "F" if len(fails) > 1 or FATAL & set(fails) else "D"
    if warns:
        return "warn", "B" if warns <= 2 else "C"
    return "pass", "A"


def shown(text: object, limit: int = 90) -> str:
    """Return ``repr`` of a text, its middle left out beyond ``limit`` characters."""
    plain = (
        text
        if not isinstance(text, str) or len(text) <= 2 * limit
        else text[:limit] + text[-limit:]
    )
    quoted = repr(plain)
    if len(quoted) <= limit:
        return quoted
    half = (limit - 5) // 2
    return f"{quoted[:half]} ... {quoted[-half:]}"


def by_name(findings: Sequence[Finding]) -> Mapping[str, Finding]:
    """Return the findings keyed by name; each name occurs once in a report."""
    return {f.name: f for f in findings}


def _wrapped(label: str, text: str) -> list[str]:
    """The text after its label, broken at the report's width, further lines under the first."""
    lead = f"      {label + ':':<8}"
    lines = textwrap.wrap(text, WIDTH - len(lead), break_long_words=False, break_on_hyphens=False)
    return [f"{lead if i == 0 else ' ' * len(lead)}{line}" for i, line in enumerate(lines)]
