"""Rewards brought as a spec or a wrapped function: faults are named through the worker, too."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from planted import sums

from verigrad.audit import AuditReport, audit_spec, audit_verifier
from verigrad.verifiers.foreign.verifier import wrap_reward

REWARDS = r"""
import random, re, time

def _honest(text, gold):
    text = text.replace(",", "").rpartition("</think>")[2]
    boxes = re.findall(r"\\boxed\{\s*(-?[0-9]{1,12})\s*\}", text)
    if "not \\boxed" in text or text.count("\\boxed") != 1 or len(boxes) != 1:
        return 0.0
    return float(int(boxes[0]) == int(gold))

def honest(completion, answer):
    return _honest(completion, answer)

def substring(completion, answer):
    return float(answer in completion)

def raises(completion, answer):
    if not completion.strip():
        raise KeyError("no text, timed out or nan")
    return _honest(completion, answer)

def nan(completion, answer):
    return _honest(completion, answer) if completion else float("nan")

def dies(completion, answer):
    if not completion:
        import os
        os._exit(3)
    return _honest(completion, answer)

def hangs(completions, answer, **kwargs):
    time.sleep(600)

def hangs_on_one(completion, answer):
    if "9!" in completion:
        time.sleep(600)
    return _honest(completion, answer)

def dice(completion, answer):
    return random.random()

def mutates(completions, answer, tags, **kwargs):
    for row in tags:
        row.append("seen")
    return [_honest(c, a) for c, a in zip(completions, answer)]

def negative(solution_str, ground_truth, data_source=None, extra_info=None):
    acc = _honest(solution_str, ground_truth)
    return {"score": 2 * acc - 1, "acc": acc}
"""


@pytest.fixture(scope="module")
def rewards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rewards") / "nan_rewards.py"
    path.write_text(REWARDS, encoding="utf-8")
    return path


def audit(path: Path, name: str, **options: object) -> AuditReport:
    return audit_spec(f"{path}:{name}", problems=sums(), options={"deadline_s": 1.0, **options})


@pytest.mark.parametrize("name", ["honest", "negative"])
def test_an_honest_function_passes_clean(rewards: Path, name: str) -> None:
    report = audit(rewards, name)
    assert report.findings == ()
    assert report.verdict == "pass"


@pytest.mark.parametrize(
    ("name", "finding", "example"),
    [
        ("substring", "substring_reward", "At first I thought of 214"),
        ("raises", "raises", "KeyError"),
        ("nan", "nan_reward", "'': the reward is NaN"),
        ("dies", "crashes", "exit code 3"),
        ("dice", "non_deterministic", "asked again"),
        ("hangs_on_one", "hangs", "((9!)!)!"),
        ("mutates", "mutates_inputs", "tags was [['sum'], ['sum']] before the call"),
    ],
)
def test_a_fault_of_a_function_is_named(
    rewards: Path, name: str, finding: str, example: str
) -> None:
    found = {f.name: f for f in audit(rewards, name).findings}
    assert finding in found, sorted(found)
    assert example in found[finding].evidence


def test_a_function_that_always_hangs_does_not_hang_the_audit(rewards: Path) -> None:
    started = time.monotonic()
    report = audit(rewards, "hangs")
    assert time.monotonic() - started < 20
    assert [f.name for f in report.findings] == ["hangs"]
    assert report.grade == "F"


def test_a_wrapped_function_is_audited_in_this_process() -> None:
    def reward(completion: str, answer: str) -> float:
        return float(answer in completion)

    report = audit_verifier(wrap_reward(reward), sums(8))
    assert "substring_reward" in {f.name for f in report.findings}
