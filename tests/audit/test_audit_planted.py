"""Each planted fault is named, with an example in the evidence; the honest reward passes clean."""

from __future__ import annotations

import time

import planted
import pytest
from planted import ByRank, Misshapen, Mutating, Planted, Signals, sums

from verigrad.audit import AuditReport, Finding, audit_spec, audit_verifier
from verigrad.types import Message, Problem


def ask(verifier: object, **settings: object) -> AuditReport:
    return audit_verifier(verifier, sums(), start_s=2.0, deadline_s=1.0, **settings)  # type: ignore[arg-type]


def named(report: AuditReport, name: str) -> Finding:
    found = {f.name: f for f in report.findings}
    assert name in found, f"{name} is not among {sorted(found)}"
    return found[name]


def test_an_honest_reward_passes_clean() -> None:
    report = ask(Planted(planted.honest))
    assert report.findings == ()
    assert (report.verdict, report.grade) == ("pass", "A")
    assert report.problems == 20
    assert {row.status for row in report.probes} <= {"pass", "skip"}


def test_the_tutorial_regex_scores_nothing() -> None:
    report = audit_spec("tutorial_regex")
    finding = named(report, "gold_refused")
    assert "scores every right answer as wrong: 0 of 64 pass" in finding.evidence
    assert "\\\\boxed{" in finding.evidence  # the completion is shown, quoted
    assert named(report, "constant_reward").severity == "fail"
    assert (report.verdict, report.grade) == ("fail", "F")


FAULTS = [
    (planted.substring, "substring_reward", "fail", "At first I thought of 214"),
    (planted.length, "length_reward", "fail", "characters) gets 0.00"),
    (planted.short_is_good, "length_reward", "fail", "sum-0"),
    (planted.constant, "constant_reward", "fail", "got reward 1"),
    (planted.box_only, "blind_reward", "fail", "(gold '214')"),
    (planted.raises_sometimes, "raises", "fail", "ValueError: unexpected token (line "),
    (planted.nan, "nan_reward", "fail", "problem 'sum-0', '': reward is NaN"),
    (planted.infinite, "infinite_reward", "fail", "reward is -inf"),
    (planted.nothing, "no_reward", "warn", "with reward None"),
    (planted.words, "wrong_type", "fail", "reward is a str"),
    (planted.wide, "out_of_range", "warn", "reward -20"),
    (planted.random_at_times, "non_deterministic", "fail", "asked again"),
    (planted.leaves, "crashes", "fail", "problem 'sum-0', ''"),
    (planted.evaluates, "runs_completion_as_code", "fail", "'__import__'"),
    (planted.praises, "keywords_accepted", "fail", "is correct, reward 1"),
    (planted.rounds, "near_miss_accepted", "fail", "off by one"),
    (planted.low_paid, "not_called_correct", "warn", "reward 0.5"),
    (planted.remembers, "keeps_memory", "warn", "KiB more are held"),
]


@pytest.mark.parametrize(("reward", "name", "severity", "example"), FAULTS)
def test_a_planted_fault_is_named_with_an_example(
    reward: planted.Reward, name: str, severity: str, example: str
) -> None:
    report = ask(Planted(reward))
    finding = named(report, name)
    assert finding.severity == severity
    assert example in finding.evidence
    assert finding.cause and finding.remedy
    assert report.verdict == ("fail" if severity == "fail" else "warn")


@pytest.mark.parametrize(
    ("verifier", "name", "example"),
    [
        (Mutating("info"), "mutates_inputs", "problem.info differ after the call"),
        (Mutating("group"), "mutates_inputs", "reordered"),
        (ByRank(), "depends_on_group", "in reverse order"),
        (Misshapen(), "wrong_length", "1 verdicts for"),
        (Signals(), "depends_on_thread", "main thread"),
    ],
    ids=lambda v: getattr(v, "name", None),
)
def test_a_fault_of_the_group_is_named(verifier: object, name: str, example: str) -> None:
    assert example in named(ask(verifier), name).evidence


def test_what_follows_from_a_larger_fault_is_not_repeated() -> None:
    names = {f.name for f in ask(Planted(planted.substring)).findings}
    assert "spray_accepted" not in names and "candidates_accepted" not in names
    names = {f.name for f in ask(Planted(planted.box_only)).findings}
    assert names == {"blind_reward"}


def test_one_text_that_hangs_is_named_and_the_rest_is_asked() -> None:
    report = ask(Planted(planted.hangs_on_powers))
    finding = named(report, "hangs")
    assert "9^{9^{9^{9}}}" in finding.evidence
    assert "no verdict within 1 s" in finding.evidence
    assert [f.name for f in report.findings] == ["hangs"]
    assert report.checks > 500


def test_a_reward_that_always_hangs_does_not_hang_the_audit() -> None:
    started = time.monotonic()
    report = ask(Planted(planted.hangs))
    assert time.monotonic() - started < 10
    assert (report.verdict, report.grade) == ("fail", "F")
    assert named(report, "hangs").severity == "fail"
    assert any("never returned" in note for note in report.notes)


def test_a_pattern_that_keeps_the_interpreter_lock_is_ended_too() -> None:
    assert "9**9" in named(ask(Planted(planted.holds_the_lock)), "hangs").evidence


def test_without_a_child_process_the_faults_are_named_too() -> None:
    report = ask(Planted(planted.substring), isolate=False)
    assert named(report, "substring_reward").severity == "fail"
    assert named(ask(Planted(planted.hangs_on_powers), isolate=False), "hangs")


def test_a_gold_that_cannot_be_read_is_counted() -> None:
    problems = [*sums(19), Problem("blank", (Message("user", "What is love?"),), "")]
    finding = named(audit_verifier(Planted(planted.honest), problems), "unusable_gold")
    assert finding.severity == "warn"
    assert "1 of 20 problems, such as 'blank'" in finding.evidence
