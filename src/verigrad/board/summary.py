"""What a run came to, in the few numbers that scripts and people ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from verigrad.runlog import RunReader

ENDS = 10
"""Steps averaged at each end of the reward curve: single steps are noise."""

EVALUATION_TITLES = {
    "before": "before training",
    "after-cold-start": "after the cold start",
    "after": "after GRPO",
}


def summarize(run: RunReader) -> dict[str, Any]:
    """Return the summary of a run: ``status steps reward_first reward_last heldout fingerprint
    findings checkpoint``.

    ``reward_first`` and ``reward_last`` are the mean training reward of the first and last ten
    steps.
    ``heldout.before`` is the last evaluation before reinforcement learning began (after a cold
    start where
    there was one, so that RL is not credited with it); ``heldout.base`` is the untouched model;
    ``heldout.after`` the last one of the run. Each holds pass_at_1 with its 95% interval low, high,
    and n.
    """
    status = run.status()
    rows = run.metrics()
    rewards = [float(r["reward_mean"]) for r in rows if r.get("reward_mean") is not None]
    checkpoint = run.checkpoint()
    return {
        "run": str(run.path),
        "status": status.get("state", "unknown"),
        "message": status.get("message", ""),
        "steps": len(rows),
        "steps_planned": status.get("steps"),
        "cold_start_steps": len(run.metrics(phase="sft")),
        "seconds": sum(float(r.get("step_s") or 0.0) for r in run.metrics(phase=None)),
        "reward_first": mean(rewards[:ENDS]),
        "reward_last": mean(rewards[-ENDS:]),
        "heldout": heldout(run.evaluations()),
        "fingerprint": next(
            (r["fingerprint"] for r in reversed(rows) if r.get("fingerprint")), None
        ),
        "findings": run.findings(),
        "checkpoint": str(checkpoint) if checkpoint else None,
    }


def heldout(evaluations: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return base, before and after of RL as ``{pass_at_1 low high n}``; None where it was not
    measured."""
    base = evaluations.get("before")
    before = evaluations.get("after-cold-start") or base
    during = [e for _, e in ordered(evaluations) if e.get("name", "").startswith("step-")]
    after = evaluations.get("after") or (during[-1] if during else None)
    return {"base": _numbers(base), "before": _numbers(before), "after": _numbers(after)}


def ordered(
    evaluations: Mapping[str, Mapping[str, Any]],
) -> list[tuple[str, dict[str, Any]]]:
    """Return (name, record) in the order of the run: before, after-cold-start, step-N by N,
    after."""

    def place(name: str) -> tuple[int, int]:
        if name.startswith("step-") and name.removeprefix("step-").isdigit():
            return (2, int(name.removeprefix("step-")))
        return ({"before": 0, "after-cold-start": 1, "after": 3}.get(name, 4), 0)

    names = sorted(evaluations, key=lambda n: (*place(n), n))
    return [(n, {"name": n, **evaluations[n]}) for n in names]


def title_of(name: str) -> str:
    """Return the evaluation's name as a person reads it."""
    if name.startswith("step-"):
        return f"at step {name.removeprefix('step-')}"
    return EVALUATION_TITLES.get(name, name)


def find_run(path: str | Path | None) -> Path:
    """Return the run directory meant: the path itself, ``runs/<path>``, or (None) the newest under
    ``runs/``."""
    root = Path("runs")
    if path is None:
        runs = [p for p in root.glob("*") if (p / "status.json").exists()] if root.is_dir() else []
        return max(runs, key=lambda p: (p / "status.json").stat().st_mtime, default=root / "?")
    path = Path(path)
    if not path.exists() and (root / path).is_dir():
        return root / path
    return path


def mean(values: Sequence[float]) -> float | None:
    """Return the mean, None of nothing."""
    return sum(values) / len(values) if values else None


def _numbers(record: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if record is None:
        return None
    return {k: record.get(k) for k in ("pass_at_1", "low", "high", "n")}
