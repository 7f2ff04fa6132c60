"""From a record of what was seen to rows and findings: who was accepted, who should have been."""

from __future__ import annotations

from collections.abc import Sequence

from verigrad.audit.calls import Score
from verigrad.audit.cases import LENGTHS, Case
from verigrad.audit.catalogue import CONTRACT, KINDS, SEVERITY, WORDS, Kind
from verigrad.audit.observe import Record
from verigrad.audit.report import Finding, ProbeRow, Severity, Status, shown

SAME = 1e-9
"""Rewards nearer than this are the same."""


def judge(record: Record) -> tuple[list[ProbeRow], list[Finding]]:
    """Return one row for each probe and one finding for each thing that is wrong, the worst
    first."""
    record.tops = _standing_out(record)
    bad = {probe: _bad_cases(record, probe, kind) for probe, kind in KINDS.items()}
    overall = _overall(record)
    hidden = _hidden(record, overall, bad)
    findings = [*overall]
    rows = [_contract_row(record, probe, overall) for probe in ("usable", "spread", "length")]
    for probe, kind in KINDS.items():
        asked = [c for c, s in record.seen if c.probe == probe and not s.fault]
        rows.append(_row(record, probe, kind, asked, bad[probe], ran=bool(record.ran_code)))
        if bad[probe] and kind.finding not in hidden:
            findings.append(_case_finding(record, kind, asked, bad[probe]))
    contract = _contract_findings(record)
    rows += [
        _contract_row(record, probe, contract)
        for probe in CONTRACT
        if probe not in ("usable", "spread", "length")
    ]
    order: dict[Severity, int] = {"fail": 0, "warn": 1, "info": 2}
    return rows, sorted([*findings, *contract], key=lambda f: order[f.severity])


def finding(name: str, severity: Severity, evidence: str) -> Finding:
    """Return a finding with the cause and remedy of the catalogue."""
    cause, remedy = WORDS[name]
    return Finding(name, severity, evidence, cause, remedy)


def _accepted(record: Record, case: Case, score: Score) -> bool:
    """An outcome of correct, or a reward as high as this problem's right answer where that stands
    out."""
    if score.outcome == "correct":
        return True
    if score.reward is None or case.probe == "gold":
        return False
    top = record.tops.get(case.problem)
    return top is not None and score.reward >= top - SAME


def _standing_out(record: Record) -> dict[int, float]:
    """Problem -> reward of a right answer that is not called correct and yet beats every near
    miss."""
    tops = {
        c.problem: s.reward
        for c, s in record.seen
        if c.probe == "gold" and s.outcome != "correct" and s.reward is not None
    }
    rest: dict[int, float] = {}
    for case, score in record.seen:
        if case.probe == "near_miss" and score.reward is not None:
            rest[case.problem] = max(rest.get(case.problem, score.reward), score.reward)
    return {n: top for n, top in tops.items() if n in rest and top > rest[n] + SAME}


def _bad_cases(record: Record, probe: str, kind: Kind) -> list[tuple[Case, Score]]:
    """Cases of the probe that an honest reward treats otherwise; broken ones are counted
    elsewhere."""
    refused_golds = {
        c.problem for c, s in record.seen if c.probe == "gold" and not _passes(record, c, s)
    }
    bad: list[tuple[Case, Score]] = []
    for case, score in record.seen:
        if case.probe != probe or score.fault:
            continue
        if probe == "gold":
            wrong = not _passes(record, case, score)
        elif kind.accept:
            wrong = case.problem not in refused_golds and not _accepted(record, case, score)
        else:
            wrong = _accepted(record, case, score)
        if wrong:
            bad.append((case, score))
    return bad


def _passes(record: Record, case: Case, score: Score) -> bool:
    return score.outcome == "correct" or case.problem in record.tops


def _row(
    record: Record,
    probe: str,
    kind: Kind,
    asked: Sequence[Case],
    bad: Sequence[tuple[Case, Score]],
    *,
    ran: bool,
) -> ProbeRow:
    if not asked:
        return ProbeRow(probe, kind.asks, "skip", 0, 0, "nothing of the kind could be made")
    if probe == "code_injection" and ran:
        ran_now = record.ran_code
        return ProbeRow(probe, kind.asks, "fail", len(asked), len(ran_now), f"ran {ran_now[0]!r}")
    if not bad:
        return ProbeRow(probe, kind.asks, "pass", len(asked), 0)
    status: Status = _severity(kind, len(asked), len(bad))
    return ProbeRow(probe, kind.asks, status, len(asked), len(bad), _example(record, *bad[0]))


def _severity(kind: Kind, asked: int, bad: int) -> Status:
    if kind.worst == "fail" and bad <= kind.some_frac * asked:
        return "warn"
    return "fail" if kind.worst == "fail" else "warn"


def _example(record: Record, case: Case, score: Score) -> str:
    problem = record.problems[case.problem]
    said = "" if score.reward is None else f", reward {score.reward:g}"
    why = f" ({' '.join(score.reason.split())[:100]})" if score.reason else ""
    gold = "" if problem.answer is None else f" (gold {shown(problem.answer, 40)})"
    return f"{problem.id}{gold}: {shown(case.text)} is {score.outcome}{said}{why}"


def _case_finding(
    record: Record, kind: Kind, asked: Sequence[Case], bad: Sequence[tuple[Case, Score]]
) -> Finding:
    severity = _severity(kind, len(asked), len(bad))
    verb = "refused" if kind.accept else "accepted"
    kinds = sorted({case.variant for case, _ in bad})
    how = "" if kinds == ["as rendered"] else f" ({', '.join(kinds[:4])})"
    what = "right answers" if kind.accept else "wrong completions"
    if kind.finding == "gold_refused" and len(bad) == len(asked):
        head = f"scores every right answer as wrong: 0 of {len(asked)} pass"
    else:
        head = f"{len(bad)} of {len(asked)} {what} {verb}{how}"
    examples = "; ".join(
        _example(record, *item) for item in bad[: 3 if kind.finding == "gold_refused" else 1]
    )
    cause, remedy = WORDS[kind.finding]
    worst: Severity = "fail" if severity == "fail" else "warn"
    return Finding(kind.finding, worst, f"{head}. {examples}", cause, remedy)


def _overall(record: Record) -> list[Finding]:
    """What holds for the reward as a whole: constant, blind, paid by length, golds it cannot
    use."""
    found: list[Finding] = []
    total = len(record.problems)
    if record.unusable:
        number, reason = record.unusable[0]
        share = len(record.unusable) / total
        found.append(
            finding(
                "unusable_gold",
                "fail" if share > 0.05 else "warn",
                f"{len(record.unusable)} of {total} problems, such as "
                f"{record.problems[number].id!r} "
                f"(gold {shown(record.problems[number].answer, 40)}): {reason}",
            )
        )
    rewards = [s.reward for c, s in record.seen if s.reward is not None]
    kinds = {c.probe for c, s in record.seen if s.reward is not None}
    if len(kinds) > 1 and max(rewards) - min(rewards) <= SAME:
        case, score = next((c, s) for c, s in record.seen if s.reward is not None)
        found.append(
            finding(
                "constant_reward",
                "fail",
                f"all {len(rewards)} completions, right and wrong, got reward {rewards[0]:g}. "
                f"{_example(record, case, score)}",
            )
        )
        return found
    length = _length_finding(record)
    found += length
    if not any(f.name == "length_reward" for f in length):
        found += _blind(record)
    low = [
        c
        for c, s in record.seen
        if c.probe == "gold" and s.outcome != "correct" and _passes(record, c, s)
    ]
    if low:
        reward = next(s.reward for c, s in record.seen if c is low[0])
        found.append(
            finding(
                "not_called_correct",
                "warn",
                f"{len(low)} right answers stand out with reward {reward:g}, not called correct",
            )
        )
    return found


def _blind(record: Record) -> list[Finding]:
    """Near misses are accepted as often as golds, hence the answer is not looked at."""
    gold = [_accepted(record, c, s) for c, s in record.seen if c.probe == "gold" and not s.fault]
    near = [(c, s) for c, s in record.seen if c.probe == "near_miss" and not s.fault]
    taken = [(c, s) for c, s in near if _accepted(record, c, s)]
    if len(near) < 4 or sum(gold) < 0.8 * len(gold) or len(taken) < 0.8 * len(near):
        return []
    head = (
        f"{len(taken)} of {len(near)} wrong answers accepted, {sum(gold)} of {len(gold)} right ones"
    )
    return [finding("blind_reward", "fail", f"{head}. {_example(record, *taken[0])}")]


def _length_finding(record: Record) -> list[Finding]:
    """Whether the reward moves with length, and whether right and wrong differ at all at one
    length."""
    moved, apart, example = 0, 0, ""
    everything = [s.reward for _, s in record.seen if s.reward is not None]
    little = max(SAME, 0.02 * _spread(everything)) if everything else SAME
    for number, texts, scores in record.lengths:
        rewards = [s.reward for s in scores if s.reward is not None]
        if len(rewards) < len(scores):
            continue
        wrong, right = rewards[0::2], rewards[1::2]
        # a step at the first sentence is a format that was broken, not a length
        moved += _spread(wrong[1:]) > little or _spread(right[1:]) > little
        gap = max(abs(a - b) for a, b in zip(wrong, right, strict=True))
        # a digit more in the wrong answer may move a reward that counts characters
        apart += gap > max(SAME, 0.05 * max(_spread(wrong), _spread(right)))
        paid = ", ".join(f"{r:g}" for r in wrong)
        size = f"{len(texts[0])} to {len(texts[-2])} characters"
        example = example or (
            f"{record.problems[number].id}: a wrong answer behind "
            f"{', '.join(map(str, LENGTHS))} sentences ({size}) gets {paid}"
        )
    if not moved:
        return []
    if apart == 0:
        head = "the reward follows the length of the completion and not its answer"
        return [finding("length_reward", "fail", f"{head}. {example}")]
    return [
        finding(
            "length_shapes_reward", "info", f"{moved} of {len(record.lengths)} problems. {example}"
        )
    ]


def _spread(values: Sequence[float]) -> float:
    return max(values) - min(values)


def _hidden(
    record: Record, overall: Sequence[Finding], bad: dict[str, list[tuple[Case, Score]]]
) -> set[str]:
    """Findings that follow from a larger one and would only repeat it."""
    names = {f.name for f in overall}
    cases = {kind.finding for kind in KINDS.values()}
    if names & {"constant_reward", "blind_reward", "length_reward"}:
        return cases - {"gold_refused"}
    unstable = sum(f.name == "non_deterministic" for f in record.faults)
    if unstable > 0.1 * max(1, record.asked.get("same_again", 0)):
        return cases
    mentioned = sum(c.probe == "gold_mentioned" for c, _ in record.seen)
    if mentioned and len(bad["gold_mentioned"]) > 0.5 * mentioned:
        return {
            "spray_accepted", "candidates_accepted", "last_answer_wins", "negation_accepted",
            "thinking_accepted",
        }  # fmt: skip
    return set()


def _contract_findings(record: Record) -> list[Finding]:
    found: list[Finding] = []
    if record.ran_code:
        codes = ", ".join(repr(code) for code in record.ran_code)
        found.append(
            finding(
                "runs_completion_as_code",
                "fail",
                f"a file was written by code in an answer: {codes}",
            )
        )
    by_name: dict[str, list[str]] = {}
    for fault in record.faults:
        by_name.setdefault(fault.name, []).append(fault.evidence)
    for name, evidence in by_name.items():
        times = f"{len(evidence)} times, " if len(evidence) > 1 else ""
        found.append(finding(name, SEVERITY.get(name, "fail"), f"{times}such as {evidence[0]}"))
    return found


def _contract_row(record: Record, probe: str, findings: Sequence[Finding]) -> ProbeRow:
    asks, names = CONTRACT[probe]
    hits = [f for f in findings if f.name in names]
    asked = record.asked.get(probe, len(record.seen) if probe == "spread" else 0)
    if not asked and not hits:
        return ProbeRow(probe, asks, "skip", 0, 0, "not asked")
    if not hits:
        return ProbeRow(probe, asks, "pass", asked, 0)
    worst = "fail" if any(f.severity == "fail" for f in hits) else "warn"
    status: Status = worst if any(f.severity != "info" for f in hits) else "pass"
    count = sum(f.name in names for f in record.faults) or len(hits)
    if probe == "usable":
        count = len(record.unusable)
    elif probe == "spread":
        count = asked
    return ProbeRow(probe, asks, status, max(asked, count), count, hits[0].evidence)
