"""Labelled cases in, rates out; expected rates are counted by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from verigrad.errors import ProblemError
from verigrad.types import Completion, Problem, Verdict
from verigrad.verifiers.math import MathVerifier
from verigrad.verifiers.measure import measure_cases


class Saying:
    """Says what the completion's text names."""

    name = "saying"

    def verify(self, problem: Problem, completions: Sequence[Completion]) -> list[Verdict]:
        text = completions[0].text
        if text == "raise":
            raise RuntimeError("no")
        made = {
            "yes": Verdict.correct(),
            "no": Verdict.wrong(),
            "none": Verdict.unparsed(),
            "broken": Verdict.broken("x"),
        }
        return [made[text]]

    def check_gold(self, problem: Problem) -> str | None:
        return None

    def render_gold(self, problem: Problem) -> str | None:
        return None


def write(path: Path, rows: Sequence[object]) -> Path:
    path.write_text("\n".join(json.dumps(r) for r in rows) + "\n", encoding="utf-8")
    return path


def case(text: str, expected: bool, category: str = "a") -> dict[str, object]:
    return {"gold": "1", "completion": text, "expected": expected, "category": category}


def test_rates_are_counted_as_they_are_named(tmp_path: Path) -> None:
    rows = [case("yes", True), case("no", True), case("yes", False), case("no", False, "b")]
    rows += [case("none", False, "b"), case("broken", False, "b"), case("raise", True, "b")]
    report = measure_cases(write(tmp_path / "c.jsonl", rows), Saying()).to_json()
    assert report["n"] == 7
    assert report["accuracy"] == pytest.approx(3 / 7)
    assert report["false_positive_rate"] == pytest.approx(1 / 4)
    assert report["false_negative_rate"] == pytest.approx(2 / 3)
    assert (report["unparsed"], report["broken"]) == (1, 2)
    assert report["by_category"]["a"]["accuracy"] == pytest.approx(1 / 3)
    assert report["by_category"]["b"]["n"] == 4
    assert [e["outcome"] for e in report["errors"]] == ["wrong", "correct", "broken", "broken"]
    assert report["micros_per_check"] > 0
    json.dumps(report)


def test_a_rate_without_cases_is_none(tmp_path: Path) -> None:
    report = measure_cases(write(tmp_path / "c.jsonl", [case("yes", True)]), Saying())
    assert report.false_positive_rate is None
    assert report.false_negative_rate == 0.0


def test_the_maths_verifier_is_measured(tmp_path: Path) -> None:
    rows = [
        {"gold": 4, "completion": "\\boxed{2^2}", "expected": True},
        {"gold": "4", "completion": "\\boxed{5}", "expected": False},
    ]
    report = measure_cases(write(tmp_path / "c.jsonl", rows), MathVerifier())
    assert report.accuracy == 1.0


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("{", "not JSON"),
        ("[1]", "list"),
        ('{"gold": "1", "completion": "x"}', "'expected'"),
        ('{"gold": "1", "completion": 5, "expected": true}', "completion = 5"),
        ('{"gold": "1", "completion": "x", "expected": 1}', "expected = 1"),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, line: str, word: str) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text(json.dumps(case("yes", True)) + "\n" + line + "\n", encoding="utf-8")
    with pytest.raises(ProblemError, match=r"c\.jsonl:2") as caught:
        measure_cases(path, Saying())
    assert word in str(caught.value)


def test_an_empty_or_missing_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text("\n")
    with pytest.raises(ProblemError, match="no case"):
        measure_cases(tmp_path / "c.jsonl", Saying())
    with pytest.raises(ProblemError, match="cannot be read"):
        measure_cases(tmp_path / "absent.jsonl", Saying())
