"""The graders most used for training, audited: what each is known to get wrong is named.

Run in an environment that has trl 1.16, verl 0.9.1 and math-verify 0.9 beside this package:
``pytest tests/peers``. The ordinary suite does not collect this folder.
"""

from pathlib import Path

from verigrad.audit import AuditReport, audit_spec, sample_problems

SOME = sample_problems()[::3]
"""Fractions, radicals, decimals, tuples, a choice, a word and whole numbers."""

BARE = """
from math_verify import parse, verify

def reward(completion, answer):
    return float(verify(parse(f"${answer}$"), parse(completion)))
"""


def evidence(report: AuditReport) -> dict[str, str]:
    return {f.name: f.evidence for f in report.findings}


def test_verl_gsm8k_reads_plain_numbers_only_and_takes_one_of_two() -> None:
    report = audit_spec("verl:verl.utils.reward_score.gsm8k:compute_score", problems=SOME)
    found = evidence(report)
    assert "sample-0 (gold '\\\\frac{3}{4}')" in found["gold_refused"]
    assert "this or that" in found["candidates_accepted"]
    assert " or " in found["candidates_accepted"]
    assert "thinking_accepted" in found and "last_answer_wins" in found
    assert report.verdict == "fail"


def test_verl_math_dapo_compares_strings() -> None:
    report = audit_spec("verl:verl.utils.reward_score.math_dapo:compute_score", problems=SOME)
    found = evidence(report)
    assert "\\dfrac for \\frac" in found["brittle_latex"]
    assert "the box denied" in found["negation_accepted"]
    assert "gold_refused" not in found and "near_miss_accepted" not in found
    assert report.verdict == "warn"


def test_bare_math_verify_evaluates_what_it_is_handed(tmp_path: Path) -> None:
    file = tmp_path / "bare.py"
    file.write_text(BARE, encoding="utf-8")
    report = audit_spec(f"{file}:reward", problems=SOME)
    found = evidence(report)
    assert "What is $\\\\frac{1}{2} + \\\\frac{1}{4}$?" in found["echo_accepted"]
    assert "is correct, reward 1" in found["unevaluated_accepted"]
    assert "gold_refused" not in found
    assert report.verdict == "fail"


def test_trl_accuracy_reward_hangs_on_brackets_and_skips_plain_golds() -> None:
    report = audit_spec("trl:trl.rewards:accuracy_reward", problems=SOME)
    found = evidence(report)
    assert "deadline: no reward within" in found["hangs"]
    assert "((((" in found["hangs"]
    assert "returned None" in found["no_reward"]
    assert "sqrt" in found["gold_refused"]
    assert report.verdict == "fail"


def test_trl_think_format_reward_does_not_look_at_the_answer() -> None:
    report = audit_spec(
        "trl:trl.rewards:think_format_reward",
        problems=SOME,
        options={"gold_format": "<think>\nI work it out.\n</think>\n\\boxed{{answer}}"},
    )
    assert "wrong answers accepted" in evidence(report)["blind_reward"]
