"""Our own verifiers under our own audit: the maths verifier passes clean, and fast."""

from __future__ import annotations

import pytest

from verigrad.audit import audit_recipe, audit_spec
from verigrad.config import make_recipe


@pytest.mark.parametrize("mode", ["strict", "lenient"])
def test_the_maths_verifier_passes_clean(mode: str) -> None:
    report = audit_spec("math", mode=mode)  # type: ignore[arg-type]
    assert [(f.name, f.evidence) for f in report.findings] == []
    assert (report.verdict, report.grade) == ("pass", "A")
    assert report.checks > 2000
    assert report.seconds < 3.0


def test_a_recipe_of_sums_passes_clean() -> None:
    recipe = make_recipe(
        {
            "problems": {
                "source": "sums:?digits=2",
                "answer_format": "{question} Put the answer in \\boxed{}.",
            },
            "verifier": {"name": "math"},
        }
    )
    report = audit_recipe(recipe)
    assert [(f.name, f.evidence) for f in report.findings] == []
    assert report.verdict == "pass"


@pytest.mark.parametrize("name", ["format", "language"])
def test_a_shaping_reward_alone_is_blind(name: str) -> None:
    assert [f.name for f in audit_spec(name).findings] == ["blind_reward"]


def test_a_text_comparison_is_brittle_on_latex() -> None:
    found = {f.name: f.evidence for f in audit_spec("string").findings}
    assert "\\dfrac for \\frac" in found["brittle_latex"]
