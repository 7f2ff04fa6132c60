"""Recipes and runs on the tiny model, for the tests of the loop."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from verigrad.config import Recipe, make_recipe
from verigrad.training.run import RunSummary, train

BASE: dict[str, Any] = {
    "model": {
        "path": "tiny",
        "precision": "fp32",
        "tiny": {"hidden_size": 32, "num_heads": 2, "num_kv_heads": 1, "intermediate_size": 64},
    },
    "problems": {"source": "sums:?digits=1"},
    "verifier": {"name": "file", "audit": "off"},
    "objective": {"preset": "small"},
    "rollout": {"prompts_per_step": 4, "group_size": 4, "max_new_tokens": 8},
    "training": {"steps": 4, "learning_rate": 1e-3, "save_every": 2, "keep_last": 9},
    "evaluation": {"problems": 4},
}


def reward_file(folder: Path, body: str = "return (len(completion) % 3) / 2") -> str:
    """A plain reward function on disk; by default its value differs between completions."""
    file = folder / "reward.py"
    file.write_text(f"def reward(completion, answer):\n    {body}\n", encoding="utf-8")
    return f"{file}:reward"


def recipe(folder: Path, *overrides: str, body: str | None = None) -> Recipe:
    """The base recipe with a reward from ``folder``."""
    spec = reward_file(folder, body) if body is not None else reward_file(folder)
    data: dict[str, Any] = {**BASE, "verifier": {"name": spec, "audit": "off"}}
    return make_recipe(data, overrides)


def run(folder: Path, name: str, *overrides: str, **options: Any) -> RunSummary:
    """Train the base recipe in ``folder/name``."""
    body = options.pop("body", None)
    return train(recipe(folder, *overrides, body=body), run_dir=folder / name, **options)


class Heard:
    """A listener that keeps what it hears, by kind."""

    def __init__(self) -> None:
        self.records: dict[str, list[Mapping[str, Any]]] = {}

    def __call__(self, kind: str, record: Mapping[str, Any]) -> None:
        self.records.setdefault(kind, []).append(dict(record))

    def steps(self) -> list[Mapping[str, Any]]:
        return [r for r in self.records.get("metrics", []) if r["phase"] == "rl"]
