"""A recipe is audited on its own problems, in its own format, behind its own prefill."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from verigrad.audit import AuditReport, audit_recipe
from verigrad.config import make_recipe
from verigrad.errors import RecipeError, UsageError


def audit(path: Path, problems: dict[str, Any], verifier: dict[str, Any]) -> AuditReport:
    rows = [
        {"question": f"What is {30 + i} + {7 * i}?", "answer": str(30 + 8 * i)} for i in range(30)
    ]
    file = path / "sums.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    recipe = make_recipe({"problems": {"source": str(file), **problems}, "verifier": verifier})
    return audit_recipe(recipe)


def test_a_recipe_whose_prompt_and_verifier_agree(tmp_path: Path) -> None:
    report = audit(
        tmp_path,
        {"answer_format": "{question}\nPut the answer in \\boxed{}."},
        {"name": "number"},
    )
    assert "format_mismatch" not in {f.name for f in report.findings}
    (row,) = [row for row in report.probes if row.name == "format"]
    assert (row.status, row.checked, row.failed) == ("pass", 1, 0)
    assert report.problems == 30


def test_a_prompt_that_asks_for_another_format_is_named(tmp_path: Path) -> None:
    report = audit(
        tmp_path,
        {"answer_format": "{question}\nEnd with #### and the number."},
        {"name": "number"},
    )
    (finding,) = [f for f in report.findings if f.name == "format_mismatch"]
    assert "problems.answer_format asks for ####, and 8 of 8 right answers" in finding.evidence
    assert "'#### " in finding.evidence
    assert report.verdict == "fail"


def test_a_system_prompt_and_a_worked_example_are_asked_too(tmp_path: Path) -> None:
    report = audit(
        tmp_path,
        {
            "system_prompt": "Answer inside <answer> tags.",
            "few_shot": [{"question": "What is 2 + 2?", "answer": "It is four, so 4"}],
        },
        {"name": "number", "options": {"place": "box"}},
    )
    (finding,) = [f for f in report.findings if f.name == "format_mismatch"]
    assert "problems.system_prompt asks for <answer>" in finding.evidence
    assert "1 of 1 worked examples, such as 'It is four, so 4'" in finding.evidence


def test_a_prefilled_think_tag_is_part_of_the_format(tmp_path: Path) -> None:
    report = audit(
        tmp_path,
        {"prefill": "<think>\n"},
        {
            "name": "compose",
            "options": {
                "op": "gate",
                "parts": [{"name": "format", "options": {"style": "think"}}, {"name": "number"}],
            },
        },
    )
    (row,) = [row for row in report.probes if row.name == "gold"]
    assert (row.checked, row.failed) == (30, 0)


def test_the_same_seed_draws_the_same_audit(tmp_path: Path) -> None:
    one, other = (audit(tmp_path, {}, {"name": "number"}).to_json() for _ in range(2))
    del one["seconds"], other["seconds"]
    assert one == other


def test_an_unknown_verifier_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="Did you mean 'number'"):
        audit(tmp_path, {}, {"name": "nunber"})


def test_no_problems_is_a_usage_error() -> None:
    from planted import Planted, honest

    from verigrad.audit import audit_verifier

    with pytest.raises(UsageError, match="at least one problem"):
        audit_verifier(Planted(honest), [])
