"""One step -> one record of the run log, its rollouts, one group to look at, and what is wrong with
it."""

from __future__ import annotations

import hashlib
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from verigrad.training.session import Session
from verigrad.training.update import UpdateStats, learning_rate
from verigrad.training.weigh import is_silent
from verigrad.types import Batch, Group, Outcome


class Clock:
    """Seconds per phase of one step; phases entered twice add up."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        start = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - start

    def total(self) -> float:
        return time.monotonic() - self._began


def record_step(
    run: Session,
    step: int,
    groups: Sequence[Group],
    batch: Batch,
    stats: UpdateStats,
    clock: Clock,
    *,
    version: int,
    eta_s: float,
) -> str:
    """Write everything a step leaves behind; returns the fingerprint of the state after it."""
    record: dict[str, Any] = {
        "step": step,
        "phase": "rl",
        **group_metrics(groups),
        **stats.metrics(),
    }
    print_ = fingerprint(run, groups)
    record |= {
        "learning_rate": learning_rate(run.recipe.training, step),
        "version": version,
        "fingerprint": print_,
        **{k: round(v, 4) for k, v in clock.seconds.items()},
        "step_s": round(clock.total(), 4),
        "eta_s": round(eta_s, 1),
    }
    if record.get("generate_s"):
        record["tokens_per_s"] = record["num_tokens"] / record["generate_s"]
    run.log.metrics(record)
    if run.recipe.logging.rollouts:
        run.log.rollouts(step, groups, _advantages(groups, batch))
    run.log.show_group(step, _telling(groups))
    run.log.status("running", step=step, steps=run.recipe.training.steps)
    watch(run, step, record, groups)
    return print_


def group_metrics(groups: Sequence[Group]) -> dict[str, Any]:
    """What the completions and verdicts of a step say, under the names of ``runlog.METRICS``."""
    pairs = [(c, v) for g in groups for c, v in zip(g.completions, g.verdicts, strict=True)]
    rewards = [v.reward for _, v in pairs if v.reward is not None]
    lengths = [len(c.token_ids) for c, _ in pairs]
    n = len(pairs)
    outcomes = {o: sum(v.outcome is o for _, v in pairs) for o in Outcome}
    right = [len(c.token_ids) for c, v in pairs if v.outcome is Outcome.CORRECT]
    others = [len(c.token_ids) for c, v in pairs if v.outcome is not Outcome.CORRECT]
    silent = [g for g in groups if is_silent(g)]
    record: dict[str, Any] = {
        "reward_mean": statistics.fmean(rewards) if rewards else 0.0,
        "reward_std": statistics.pstdev(rewards) if rewards else 0.0,
        **{f"{o.value}_frac": outcomes[o] / n for o in Outcome},
        "all_right_frac": sum(_all(g, 1.0) for g in groups) / len(groups),
        "all_wrong_frac": sum(_all(g, 0.0) for g in groups) / len(groups),
        "silent_frac": len(silent) / len(groups),
        "truncated_frac": sum(c.truncated for c, _ in pairs) / n,
        "unique_frac": statistics.fmean(
            len({c.token_ids for c in g.completions}) / len(g.completions) for g in groups
        ),
        "completion_tokens_mean": statistics.fmean(lengths),
        "completion_tokens_p95": float(sorted(lengths)[min(n - 1, int(0.95 * n))]),
        "num_completions": n,
        "num_tokens": sum(lengths),
        "num_groups": len(groups),
        "num_silent_groups": len(silent),
        "num_broken": outcomes[Outcome.BROKEN],
    }
    if right:
        record["tokens_correct_mean"] = statistics.fmean(right)
    if others:
        record["tokens_wrong_mean"] = statistics.fmean(others)
    names = {k for _, v in pairs for k in v.parts}
    for name in sorted(names):
        record[f"parts/{name}"] = statistics.fmean(
            v.parts[name] for _, v in pairs if name in v.parts
        )
    return record


def _all(group: Group, reward: float) -> bool:
    rewards = [r for r in group.rewards if r is not None]
    return bool(rewards) and all(r == reward for r in rewards)


def _advantages(groups: Sequence[Group], batch: Batch) -> dict[int, float]:
    """Running number of a completion among all groups -> the advantage it got (absent: it left
    before)."""
    given = {
        (id(p), c): a
        for p, c, a in zip(batch.prompts, batch.completions, batch.advantages.tolist(), strict=True)
    }
    numbered: dict[int, float] = {}
    number = 0
    for group in groups:
        for completion in group.completions:
            advantage = given.get((id(group.prompt), completion))
            if advantage is not None:
                numbered[number] = advantage
            number += 1
    return numbered


def _telling(groups: Sequence[Group]) -> Group:
    """The group to show: one with right and wrong completions where there is one."""
    return next((g for g in groups if not is_silent(g)), groups[0])


def fingerprint(run: Session, groups: Sequence[Group]) -> str:
    """SHA-256 over the weights after the step and the tokens and rewards of its rollouts."""
    digest = hashlib.sha256(run.policy.fingerprint().encode())
    for group in groups:
        for completion, verdict in zip(group.completions, group.verdicts, strict=True):
            digest.update(repr((completion.token_ids, verdict.reward)).encode())
    return digest.hexdigest()[:16]


def watch(run: Session, step: int, record: dict[str, Any], groups: Sequence[Group]) -> None:
    """Tripwires that only look at the step's own numbers."""
    gap, limit = (
        record.get("sampler_gap_mean", 0.0),
        0.1 if run.policy.precision == "bf16" else 1e-3,
    )
    if (
        gap > limit
        and run.recipe.training.updates_per_rollout * run.recipe.training.passes_per_rollout == 1
    ):
        run.find(
            "sampler_mismatch", "fail", step=step,
            evidence=f"step {step}: trainer and sampler differ by {gap:.4f} nats per token on "
                f"average (limit {limit:g})",
            cause="the engine samples from other weights, another temperature or another "
                "precision than the trainer scores",
            remedy="set model.precision = 'fp32' to see whether it is rounding; else report it "
                "with this run directory",
        )  # fmt: skip
    if record["truncated_frac"] > 0.5:
        run.find(
            "mostly_truncated", "warn", step=step,
            evidence=f"step {step}: {record['truncated_frac']:.0%} of the completions were cut by "
                f"rollout.max_new_tokens = {run.recipe.rollout.max_new_tokens}",
            cause="the answer does not fit, or the model does not end its turn",
            remedy="raise rollout.max_new_tokens, or start from a model that ends its answers "
                "(cold_start.when = 'needed')",
        )  # fmt: skip
    if step >= 5 and record["silent_frac"] == 1.0:
        run.find(
            "all_groups_silent", "warn", step=step,
            evidence=f"step {step}: all {record['num_groups']} groups have equal rewards, so "
                "nothing was learned from them",
            cause="the problems are too hard or too easy for this model, or the reward is constant",
            remedy="run `verigrad audit` on the reward; take problems of another difficulty; "
                "cold_start.when = 'needed'",
        )  # fmt: skip
    if record["unique_frac"] < 0.2 and record["completion_tokens_mean"] > 4:
        run.find(
            "samples_alike", "warn", step=step,
            evidence=f"step {step}: only {record['unique_frac']:.0%} of the completions of a group "
                "differ",
            cause="entropy has collapsed, or sampling is not random",
            remedy="lower training.learning_rate, raise objective.clip_high, or check "
                "rollout.temperature",
        )  # fmt: skip
