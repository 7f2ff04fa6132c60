"""Reads a run directory, live or a year later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from verigrad.errors import RunDirectoryError
from verigrad.runlog.files import read_jsonl


class RunReader:
    """Reads a run directory, live or a year later."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.is_dir():
            raise RunDirectoryError(f"run directory {self.path} does not exist.")
        if not (self.path / "recipe.toml").exists() and not (self.path / "metrics.jsonl").exists():
            raise RunDirectoryError(
                f"{self.path} is not a run: it has no recipe.toml and no metrics.jsonl."
            )

    def status(self) -> dict[str, Any]:
        """The last status written, or {"state": "unknown"}."""
        return self._json("status.json") or {"state": "unknown", "step": 0}

    def environment(self) -> dict[str, Any]:
        return self._json("environment.json") or {}

    def recipe_text(self) -> str:
        path = self.path / "recipe.toml"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def metrics(self, *, phase: str | None = "rl") -> list[dict[str, Any]]:
        """All step records in order, of one phase or (None) of all."""
        rows = list(read_jsonl(self.path / "metrics.jsonl"))
        return rows if phase is None else [r for r in rows if r.get("phase", "rl") == phase]

    def findings(self) -> list[dict[str, Any]]:
        return list(read_jsonl(self.path / "findings.jsonl"))

    def evaluations(self) -> dict[str, dict[str, Any]]:
        """All held-out evaluations by name, oldest first."""
        folder = self.path / "evaluations"
        files = (
            sorted(folder.glob("*.json"), key=lambda p: p.stat().st_mtime)
            if folder.is_dir()
            else []
        )
        return {f.stem: _read_json(f) for f in files}

    def rollout_steps(self) -> list[int]:
        """Steps whose rollouts were kept."""
        folder = self.path / "rollouts"
        files = folder.glob("step-*.jsonl") if folder.is_dir() else []
        numbers = (p.stem.removeprefix("step-") for p in files)
        return sorted(int(n) for n in numbers if n.isdigit())

    def rollouts(self, step: int) -> list[dict[str, Any]]:
        """Every completion of a step."""
        path = self.path / "rollouts" / f"step-{step}.jsonl"
        if not path.exists():
            raise RunDirectoryError(
                f"{self.path} kept no rollouts of step {step}. Kept: {self.rollout_steps()[:20]}."
            )
        return list(read_jsonl(path))

    def checkpoint(self) -> Path | None:
        """The newest whole checkpoint, or None."""
        pointer = self.path / "latest"
        if not pointer.exists():
            return None
        target = (
            self.path
            / "checkpoints"
            / pointer.read_text(encoding="utf-8", errors="replace").strip()
        )
        # A pointer that was altered may name anything; only a checkpoint's name is followed.
        named = target.parent.name == "checkpoints" and target.name.startswith("step-")
        return target if named and "\0" not in target.name and target.is_dir() else None

    def _json(self, name: str) -> dict[str, Any] | None:
        path = self.path / name
        return _read_json(path) if path.exists() else None


def _read_json(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        record = None
    if not isinstance(record, dict):
        raise RunDirectoryError(
            f"{path} is no JSON object: the file was altered or the disk failed. Remove it; "
            "`--resume` writes it anew where it can."
        )
    return cast(dict[str, Any], record)
