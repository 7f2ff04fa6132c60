"""Measure a verifier on labelled cases: accuracy, both error rates, time per check."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from verigrad.errors import ProblemError
from verigrad.types import Completion, FinishReason, Message, Outcome, Problem, Verdict, Verifier


@dataclass(frozen=True, slots=True)
class Case:
    """One labelled case: ``expected`` says whether the completion is right for the gold."""

    id: str
    gold: str
    completion: str
    expected: bool
    category: str = ""
    question: str = ""
    info: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class CaseReport:
    """What a verifier did on labelled cases. Rates are shares in [0, 1], None without such cases.

    BROKEN counts as an error of its own kind: it is neither a false positive nor a right refusal.
    """

    n: int
    accuracy: float | None
    false_positive_rate: float | None
    false_negative_rate: float | None
    unparsed: int
    broken: int
    micros_per_check: float
    by_category: dict[str, dict[str, Any]]
    errors: list[dict[str, Any]]

    def to_json(self) -> dict[str, Any]:
        """Return the report under its stable names, ready for ``json.dumps``."""
        return {name: getattr(self, name) for name in self.__slots__}


def read_cases(path: str | Path) -> list[Case]:
    """Read labelled JSONL; ProblemError names the file and the line of anything malformed."""
    path = Path(path)
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ProblemError(f"cases file {path} cannot be read: {error}.") from None
    cases = [_case(line, f"{path}:{k}", k) for k, line in enumerate(lines, 1) if line.strip()]
    if not cases:
        raise ProblemError(f"cases file {path} holds no case; write one JSON object per line.")
    return cases


def _case(line: str, place: str, number: int) -> Case:
    try:
        row = json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ProblemError(f"{place}: not JSON ({error}); write one object per line.") from None
    if not isinstance(row, dict):
        raise ProblemError(f"{place}: a {type(row).__name__}, not an object; write {{...}}.")
    row = cast(dict[str, Any], row)
    for key, kind in (("gold", (str, int, float)), ("completion", str), ("expected", bool)):
        if key not in row:
            raise ProblemError(f"{place}: the key {key!r} is missing; it has {sorted(row)}.")
        if not isinstance(row[key], kind) or (key == "gold" and isinstance(row[key], bool)):
            raise ProblemError(
                f"{place}: {key} = {row[key]!r} has the wrong type; gold and completion are text, "
                "expected is true or false."
            )
    rest = {k: v for k, v in row.items() if k not in ("gold", "completion", "expected")}
    return Case(
        id=str(row.get("id", f"line {number}")),
        gold=str(row["gold"]),
        completion=row["completion"],
        expected=row["expected"],
        category=str(row.get("category", "")),
        question=str(row.get("question", "")),
        info=rest,
    )


def measure_cases(path: str | Path, verifier: Verifier) -> CaseReport:
    """Run a verifier over labelled cases and return its report; works for any Verifier.

    Raises ProblemError for a malformed file. An exception of the verifier counts as BROKEN.
    """
    return measure(read_cases(path), verifier)


def measure(cases: Iterable[Case], verifier: Verifier) -> CaseReport:
    """Run a verifier over cases, one at a time on this thread, and return its report."""
    judged: list[tuple[Case, Verdict]] = []
    spent = 0.0
    for case in cases:
        problem, completion = _as_problem(case), _as_completion(case.completion)
        started = time.perf_counter()
        try:
            (verdict,) = verifier.verify(problem, [completion])
        except Exception as error:  # a verifier that raises is broken, and the count must show it
            verdict = Verdict.broken(f"{type(error).__name__}: {str(error)[:200]}")
        spent += time.perf_counter() - started
        judged.append((case, verdict))
    categories: dict[str, list[tuple[Case, Verdict]]] = {}
    for case, verdict in judged:
        categories.setdefault(case.category or "all", []).append((case, verdict))
    accuracy, positive, negative = _rates(judged)
    return CaseReport(
        n=len(judged),
        accuracy=accuracy,
        false_positive_rate=positive,
        false_negative_rate=negative,
        unparsed=sum(v.outcome is Outcome.UNPARSED for _, v in judged),
        broken=sum(v.outcome is Outcome.BROKEN for _, v in judged),
        micros_per_check=1e6 * spent / max(len(judged), 1),
        by_category={name: _row(rows) for name, rows in categories.items()},
        errors=[_error(c, v) for c, v in judged if not _agrees(c, v)],
    )


def _agrees(case: Case, verdict: Verdict) -> bool:
    if verdict.outcome is Outcome.BROKEN:
        return False
    return (verdict.outcome is Outcome.CORRECT) == case.expected


def _rates(
    judged: list[tuple[Case, Verdict]],
) -> tuple[float | None, float | None, float | None]:
    right = [v for c, v in judged if c.expected]
    wrong = [v for c, v in judged if not c.expected]
    agreed = sum(_agrees(c, v) for c, v in judged)
    accepted = sum(v.outcome is Outcome.CORRECT for v in wrong)
    refused = sum(v.outcome is not Outcome.CORRECT for v in right)
    return (
        agreed / len(judged) if judged else None,
        accepted / len(wrong) if wrong else None,
        refused / len(right) if right else None,
    )


def _row(judged: list[tuple[Case, Verdict]]) -> dict[str, Any]:
    accuracy, positive, negative = _rates(judged)
    return {
        "n": len(judged),
        "accuracy": accuracy,
        "false_positive_rate": positive,
        "false_negative_rate": negative,
        "broken": sum(v.outcome is Outcome.BROKEN for _, v in judged),
    }


def _error(case: Case, verdict: Verdict) -> dict[str, Any]:
    return {
        "id": case.id,
        "category": case.category,
        "gold": case.gold[:500],
        "completion": case.completion[-500:],
        "expected": case.expected,
        "outcome": verdict.outcome.value,
        "extracted": verdict.extracted,
        "reason": verdict.reason,
    }


def _as_problem(case: Case) -> Problem:
    messages = (Message("user", case.question),) if case.question else ()
    return Problem(id=case.id, messages=messages, answer=case.gold, info=case.info)


def _as_completion(text: str) -> Completion:
    return Completion(text, (), (), FinishReason.STOP)
