"""A synthesised run directory, written with RunWriter: what the board is developed and tested
against."""

from __future__ import annotations

import math
import random
from pathlib import Path

from verigrad.config import make_recipe, write_recipe
from verigrad.runlog import RunWriter, machine_record
from verigrad.types import Completion, FinishReason, Group, Message, Problem, Prompt, Verdict


def one_group(number: int, *, right: int, size: int = 4, seed: int = 0) -> Group:
    """A judged group: ``right`` of ``size`` completions correct, one of the others unparsed and
    cut."""
    rng = random.Random(seed * 1000 + number)
    a, b = rng.randint(10, 99), rng.randint(10, 99)
    problem = Problem(
        id=f"sum-{number}",
        messages=(Message("user", f"What is {a} + {b}? <b>&"),),
        answer=str(a + b),
    )
    text = f"<|im_start|>user\n{problem.question}<|im_end|>\n<|im_start|>assistant\n"
    completions, verdicts = [], []
    for i in range(size):
        if i < right:
            completions.append(_completion(f"{a} + {b} = {a + b}\n\\boxed{{{a + b}}}"))
            verdicts.append(Verdict.correct(extracted=str(a + b)))
        elif i == size - 1:
            completions.append(_completion("I think it is </script> rather", cut=True))
            verdicts.append(Verdict.unparsed("no \\boxed{} found"))
        else:
            completions.append(_completion(f"It is \\boxed{{{a + b + i}}}"))
            verdicts.append(Verdict.wrong("not equal", extracted=str(a + b + i)))
    return Group(Prompt(problem, text, (1, 2, 3)), tuple(completions), tuple(verdicts))


def _completion(text: str, *, cut: bool = False) -> Completion:
    ids = tuple(range(len(text) // 4 + 1))
    reason = FinishReason.LENGTH if cut else FinishReason.STOP
    return Completion(text, ids, (-0.5,) * len(ids), reason)


def step_record(step: int, *, reward: float, seed: int = 0) -> dict:
    """One step's metrics at a given mean reward."""
    rng = random.Random(seed * 7919 + step)
    right = max(0.0, reward**3 + rng.uniform(-0.03, 0.03))
    wrong = max(0.0, (1 - reward) ** 3 + rng.uniform(-0.03, 0.03))
    return {
        "step": step, "phase": "rl", "reward_mean": reward, "reward_std": 0.4,
        "correct_frac": reward,
        "wrong_frac": 0.9 * (1 - reward), "unparsed_frac": 0.1 * (1 - reward),
        "broken_frac": 0.0, "all_right_frac": right, "all_wrong_frac": wrong,
        "silent_frac": min(1.0, right + wrong), "truncated_frac": 0.3 * math.exp(-step / 20),
        "unique_frac": 0.8, "completion_tokens_mean": 60 - 0.2 * step + rng.uniform(-3, 3),
        "completion_tokens_p95": 100.0, "tokens_correct_mean": 50.0, "tokens_wrong_mean": 70.0,
        "entropy_mean": 0.9 * math.exp(-step / 80), "sampler_gap_mean": 2e-6 * (1 + rng.random()),
        "sampler_gap_max": 4e-5, "sampler_kl": 1e-9, "grad_norm": 0.5 + rng.random(),
        "update_norm": 0.01, "learning_rate": 1e-5, "num_completions": 64, "num_trained": 40,
        "num_tokens": 4000, "num_groups": 16, "num_silent_groups": 6, "num_broken": 0,
        "generate_s": 2.0 + rng.random(), "verify_s": 0.1, "update_s": 1.5 + rng.random() / 2,
        "load_s": 0.02, "step_s": 4.0, "tokens_per_s": 1400 + 100 * rng.random(),
        "eta_s": 4.0 * (60 - step), "version": step, "fingerprint": f"{seed}-{step:04x}",
    }  # fmt: skip


def evaluation(pass_at_1: float, *, step: int, n: int = 200, right: bool = False) -> dict:
    """A held-out evaluation in the shape training writes."""
    half = 1.96 * math.sqrt(max(pass_at_1 * (1 - pass_at_1), 0.01) / n)
    samples = [
        {
            "problem_id": f"held-{i}", "question": f"What is {i} + {i}?", "answer": str(2 * i),
            "completion": f"It is \\boxed{{{2 * i if right else 7}}} </script>",
            "outcome": "correct" if right else "wrong", "reward": float(right),
        }
        for i in range(6)
    ]  # fmt: skip
    return {
        "n": n, "pass_at_1": pass_at_1, "low": max(0.0, pass_at_1 - half),
        "high": min(1.0, pass_at_1 + half),
        "strict": pass_at_1, "lenient": min(1.0, pass_at_1 + 0.02),
        "truncated_frac": 0.1, "unparsed_frac": 0.05, "broken_frac": 0.0, "tokens_mean": 55.0,
        "pass_at_k": {"1": pass_at_1}, "samples": samples, "step": step, "seconds": 12.0 + step,
    }  # fmt: skip


def rewards_of(steps: int, seed: int) -> list[float]:
    """A noisy climb from about .2 to about .8."""
    rng = random.Random(seed)
    return [
        min(1.0, max(0.0, 0.2 + 0.6 / (1 + math.exp(5 - 10 * s / steps)) + rng.gauss(0, 0.05)))
        for s in range(1, steps + 1)
    ]  # fmt: skip


def make_run(
    path: Path, *, steps: int = 60, seed: int = 0, done: bool = True, cold_start: bool = False,
    overrides: tuple[str, ...] = (), listeners: tuple = (),
) -> Path:  # fmt: skip
    """Write a whole run of ``steps`` steps; the same arguments give the same run."""
    writer = RunWriter.create(path, listeners=listeners)
    data = {"model": {"path": "tiny"}, "problems": {"source": "sums:?digits=2"}}
    writer.recipe(write_recipe(make_recipe(data, [f"training.steps={steps}", *overrides])))
    writer.environment({**machine_record(), "seed": seed, "started": "2026-01-01T00:00:00Z"})
    writer.status("running", step=0, steps=steps)
    writer.evaluation("before", evaluation(0.15, step=0))
    if cold_start:
        for s in range(1, 9):
            writer.metrics(
                {"step": s, "phase": "sft", "loss": 2.0 / s, "learning_rate": 2e-5, "step_s": 1.0}
            )
        writer.evaluation("after-cold-start", evaluation(0.3, step=0))
    for step, reward in enumerate(rewards_of(steps, seed), start=1):
        groups = [one_group(g, right=(g + step) % 5, seed=step + 1000 * seed) for g in range(3)]
        writer.rollouts(step, groups, {0: 0.5, 1: -0.5})
        writer.show_group(step, groups[0])
        writer.metrics(step_record(step, reward=reward, seed=seed))
    writer.finding(
        "clip_without_effect", "warn", evidence="updates_per_rollout = 1: no ratio leaves 1.",
        cause="One update per rollout is on-policy.",
        remedy="Leave it, or set updates_per_rollout = 2.",
    )  # fmt: skip
    if done:
        writer.evaluation("after", evaluation(0.78, step=steps, right=True))
        writer.status("done", step=steps, steps=steps)
    return path
