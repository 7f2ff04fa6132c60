"""What an audit says: findings with a stable shape, one row per probe, a verdict and a grade."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Severity = Literal["fail", "warn", "info"]
Verdict = Literal["pass", "warn", "fail"]

FATAL = frozenset(
    {
        "gold_refused",
        "constant_reward",
        "length_reward",
        "blind_reward",
        "hangs",
        "crashes",
        "nan_reward",
        "non_deterministic",
        "runs_completion_as_code",
    }
)
"""Findings that make the grade F by themselves: no run can be built on such a reward."""


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
    """One question put to the reward: how often it was asked, how often the answer was bad, one example.

    ``status`` is pass, warn, fail, or skip; a skipped row says in ``example`` why it does not apply.
    """

    name: str
    asks: str
    status: Literal["pass", "warn", "fail", "skip"]
    checked: int
    failed: int
    example: str = ""


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The audit of one verifier: ``verdict`` is fail when it should not be trained on.

    ``grade`` runs from A (nothing found) over B (one or two warnings), C (more warnings) and D (one
    failure) to F (a fatal failure, or several). ``notes`` state what was assumed or skipped.
    """

    verifier: str
    verdict: Verdict
    grade: Literal["A", "B", "C", "D", "F"]
    findings: tuple[Finding, ...]
    probes: tuple[ProbeRow, ...]
    notes: tuple[str, ...]
    problems: int
    checks: int
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return plain data with the stable names ``verdict`` and ``findings`` (and the rest)."""
        return asdict(self)

    def lines(self) -> list[str]:
        """Return the report as text, one line each: verdict, probe table, notes, findings."""
        out = [
            f"audit of {self.verifier}: {self.verdict.upper()}, grade {self.grade} "
            f"({self.problems} problems, {self.checks} checks, {self.seconds:.1f} s)",
            "",
        ]
        width = max((len(row.name) for row in self.probes), default=0)
        for row in self.probes:
            count = "" if row.status == "skip" else f"{row.failed} of {row.checked} bad"
            out.append(f"  {row.status:<4}  {row.name:<{width}}  {count:<16}  {row.asks}")
            if row.example:
                out.append(f"        {'':<{width}}  {row.example}")
        if self.notes:
            out += ["", *(f"note: {note}" for note in self.notes)]
        for f in self.findings:
            out += ["", f"{f.severity}: {f.name}", f"  seen:   {f.evidence}"]
            out += [f"  cause:  {f.cause}", f"  remedy: {f.remedy}"]
        return out


def grade_of(findings: Sequence[Finding]) -> tuple[Verdict, Literal["A", "B", "C", "D", "F"]]:
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
    quoted = repr(text)
    if len(quoted) <= limit:
        return quoted
    half = (limit - 5) // 2
    return f"{quoted[:half]} ... {quoted[-half:]}"


def by_name(findings: Sequence[Finding]) -> Mapping[str, Finding]:
    """Return the findings keyed by name; each name occurs once in a report."""
    return {f.name: f for f in findings}
