"""One step -> one record of the run log, its rollouts, one group to look at, and what is wrong with
it."""

from __future__ import annotations

import hashlib
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy
import torch

from verigrad.training.session import Session
from verigrad.training.tripwires import watch_step
from verigrad.training.update import UpdateStats, learning_rate
from verigrad.training.weigh import is_silent
from verigrad.types import Batch, Group, Outcome

_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


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


def begin_step(run: Session, step: int) -> Clock:
    """Start a step's clock, and the global generators anew, keyed by the step: whatever draws from
    them (adapter dropout, a user's code) draws the same after a resume."""
    seed = run.recipe.training.seed * 1_000_003 + step
    random.seed(seed)
    numpy.random.seed(seed % 2**32)
    torch.manual_seed(seed % 2**63)
    return Clock()


def record_step(
    run: Session,
    step: int,
    groups: Sequence[Group],
    batch: Batch,
    stats: UpdateStats,
    clock: Clock,
    *,
    version: int,
    windows: int,
    eta_s: float,
) -> str:
    """Write everything a step leaves behind; returns the fingerprint of the state after it."""
    record: dict[str, Any] = {
        "step": step,
        "phase": "rl",
        **group_metrics(groups),
        **stats.metrics(),
    }
    print_ = fingerprint(run, groups, windows=windows, version=version)
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
    watch_step(run, step, record, groups, batch=batch, stats=stats, version=version)
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


def fingerprint(
    run: Session, groups: Sequence[Group], *, windows: int = 0, version: int = 0
) -> str:
    """SHA-256 over the weights after the step, the optimiser's moments (their exact sums), the
    random number generator, the data cursor, and the tokens and rewards of the step's rollouts."""
    digest = hashlib.sha256(run.policy.fingerprint().encode())
    digest.update(repr((windows, version)).encode())
    digest.update(torch.get_rng_state().numpy().tobytes())
    for group in run.optimizer.param_groups:
        for p in group["params"]:
            for key, value in sorted(run.optimizer.state.get(p, {}).items()):
                # A sum of the bit patterns: every bit counts, at a tenth of a hash's time.
                value = torch.as_tensor(value).detach().reshape(-1)
                bits = value.view(_BITS[value.element_size()])
                digest.update(f"{key}{int(bits.sum(dtype=torch.int64))}".encode())
    for group in groups:
        for completion, verdict in zip(group.completions, group.verdicts, strict=True):
            digest.update(repr((completion.token_ids, verdict.reward)).encode())
    return digest.hexdigest()[:16]
