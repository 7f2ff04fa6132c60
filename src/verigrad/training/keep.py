"""Which states of a run are kept: the newest, and the best on held-out problems."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from verigrad.training.checkpoint import prune, save_checkpoint
from verigrad.training.session import Session


def save(run: Session) -> None:
    """Write a checkpoint of the present state and drop the ones that are no longer kept."""
    training = run.recipe.training
    save_checkpoint(run.log.path, run.policy, run.optimizer, run.state)
    best = run.state.best_step
    prune(
        run.log.path,
        keep_last=training.keep_last,
        keep_best=f"step-{best}" if training.keep_best and best is not None else None,
    )


def note_score(run: Session, record: dict[str, Any]) -> bool:
    """Remember a held-out score; True where it is the best so far and the recipe keeps the best."""
    score = float(record["pass_at_1"])
    if run.state.best is not None and score <= run.state.best:
        return False
    run.state = replace(run.state, best=score, best_step=run.state.step)
    return run.recipe.training.keep_best
