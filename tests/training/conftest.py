"""A tiny model that answers, made once: it ends its turns and is right now and then."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_runs import run


@pytest.fixture(scope="session")
def talker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Model folder of a tiny model after a short supervised start on one-digit sums."""
    folder = tmp_path_factory.mktemp("talker")
    run(
        folder, "start", "training.steps=1", "cold_start.when='always'", "cold_start.epochs=25",
        "cold_start.examples=54", "cold_start.learning_rate=5e-3", "verifier.name=math",
        "rollout.max_new_tokens=24", "evaluation.problems=1",
    )  # fmt: skip
    return folder / "start" / "checkpoints" / "step-1"
