"""The report: verdict and grade by rule, stable JSON names, plain aligned lines."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from planted import Planted, honest, substring, sums

from verigrad.audit import AuditReport, Finding, audit_verifier
from verigrad.audit.catalogue import CONTRACT, KINDS, WORDS
from verigrad.audit.report import grade_of, shown


def found(*severities: str, name: str = "negation_accepted") -> list[Finding]:
    return [Finding(name, s, "seen", "cause", "remedy") for s in severities]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("findings", "verdict", "grade"),
    [
        (found(), "pass", "A"),
        (found("info"), "pass", "A"),
        (found("warn", "warn"), "warn", "B"),
        (found("warn", "warn", "warn"), "warn", "C"),
        (found("fail", "warn"), "fail", "D"),
        (found("fail", "fail"), "fail", "F"),
        (found("fail", name="hangs"), "fail", "F"),
    ],
)
def test_grades(findings: list[Finding], verdict: str, grade: str) -> None:
    assert grade_of(findings) == (verdict, grade)


def test_json_has_the_stable_names() -> None:
    data = json.loads(json.dumps(audit_verifier(Planted(substring), sums()).to_json()))
    assert {"verdict", "findings", "grade", "probes"} <= set(data)
    assert data["verdict"] == "fail"
    assert set(data["findings"][0]) == {"name", "severity", "evidence", "cause", "remedy"}
    assert set(data["probes"][0]) == {"name", "asks", "status", "checked", "failed", "example"}
    (row,) = [p for p in data["probes"] if p["name"] == "gold_mentioned"]
    assert row["checked"] == row["failed"] == 20
    assert row["example"].startswith("sum-0 (gold '214')")


def test_lines_are_plain_aligned_and_fit_the_terminal() -> None:
    lines = audit_verifier(Planted(substring), sums()).lines()
    assert lines[0] == "FAIL  grade F  audit of substring"
    assert all(len(line) <= 100 for line in lines)
    assert "fail  substring_reward" in lines
    table = [line for line in lines if line.startswith(("  pass  ", "  fail  ", "  warn  "))]
    columns = {line.index("/") for line in table if "/" in line}
    assert len(table) > 20 and max(columns) - min(columns) <= 4
    assert not any("\x1b" in line for line in lines)


def test_every_name_has_a_cause_and_a_remedy() -> None:
    names = {kind.finding for kind in KINDS.values()}
    names |= {name for _, names in CONTRACT.values() for name in names}
    assert names <= set(WORDS)


def test_every_finding_and_probe_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "audit.md").read_text(encoding="utf-8")
    assert [name for name in WORDS if f"`{name}`" not in page] == []
    assert [name for name in [*KINDS, *CONTRACT] if name not in page] == []


def test_a_long_text_is_shown_by_its_ends() -> None:
    assert shown("a" * 10) == "'aaaaaaaaaa'"
    long = shown("a" * 1000 + "b" * 1000)
    assert long.startswith("'aaa") and long.endswith("bbb'") and len(long) <= 90


def test_the_audit_is_fast_enough_to_begin_every_training() -> None:
    report: AuditReport = audit_verifier(Planted(honest), sums(64))
    assert report.problems == 64
    assert report.seconds < 3.0


def test_the_room_loads_without_torch() -> None:
    code = "import sys, verigrad.audit; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
