"""The one writer of a run directory."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from verigrad.errors import RunDirectoryError
from verigrad.runlog.files import rewrite_until, write_atomic
from verigrad.runlog.names import METRICS
from verigrad.types import Group

Listener = Callable[[str, Mapping[str, Any]], None]


class RunWriter:
    """The one writer of a run directory; every record also goes to the listeners (the
    terminal view, a tracker).

    A listener that raises is dropped with one warning on stderr: watching a run never stops it.
    """

    def __init__(self, path: str | Path, *, listeners: Sequence[Listener] = ()) -> None:
        self.path = Path(path)
        self._listeners = list(listeners)

    @classmethod
    def create(
        cls, path: str | Path, *, force: bool = False, listeners: Sequence[Listener] = ()
    ) -> RunWriter:
        """Start a new run directory. An existing one is refused unless ``force`` (which deletes
        it)."""
        path = Path(path)
        if path.exists() and not path.is_dir():
            raise RunDirectoryError(f"run directory {path} is a file. Choose another with --out.")
        if path.is_dir() and any(path.iterdir()):
            if not force:
                raise RunDirectoryError(
                    f"run directory {path} exists already. Resume it with --resume, overwrite it "
                    "with --force, or choose another with --out."
                )
            if not (path / "recipe.toml").exists() and not (path / "status.json").exists():
                raise RunDirectoryError(
                    f"{path} is not empty and is not a run: --force will not delete it. Choose "
                    "another with --out."
                )
            shutil.rmtree(path)
        try:
            for sub in ("rollouts", "evaluations", "checkpoints"):
                (path / sub).mkdir(parents=True, exist_ok=True)
            write_atomic(path / "status.json", json.dumps({"state": "running", "step": 0}))
        except OSError as e:
            raise RunDirectoryError(
                f"run directory {path} cannot be written: {e.strerror or e}. Choose another with "
                "--out."
            ) from None
        return cls(path, listeners=listeners)

    @classmethod
    def reopen(
        cls,
        path: str | Path,
        *,
        step: int,
        cold_started: bool = False,
        listeners: Sequence[Listener] = (),
    ) -> RunWriter:
        """Continue a run after ``step``: torn tails are repaired, records of later steps removed.

        Records of a supervised start stay where it is behind the run (``cold_started``).
        """
        path = Path(path)
        if not (path / "recipe.toml").exists():
            raise RunDirectoryError(f"{path} is not a run: it has no recipe.toml.")
        for sub in ("rollouts", "evaluations", "checkpoints"):
            (path / sub).mkdir(parents=True, exist_ok=True)
        for name in ("metrics.jsonl", "findings.jsonl"):
            rewrite_until(path / name, step, keep_supervised=cold_started or step > 0)
        for file in (path / "rollouts").glob("step-*.jsonl"):
            if int(file.stem.removeprefix("step-")) > step:
                file.unlink()
        for file in (path / "evaluations").glob("step-*.json"):
            if int(file.stem.removeprefix("step-")) > step:
                file.unlink()
        (path / "evaluations" / "after.json").unlink(missing_ok=True)
        return cls(path, listeners=listeners)

    def listen(self, listener: Listener) -> None:
        """Send all further records to ``listener(kind, record)`` too."""
        self._listeners.append(listener)

    def recipe(self, text: str) -> None:
        """Write the resolved recipe."""
        write_atomic(self.path / "recipe.toml", text)

    def environment(self, record: Mapping[str, Any]) -> None:
        """Write versions, hashes, seed and machine."""
        write_atomic(self.path / "environment.json", json.dumps(record, indent=2, default=str))
        self._tell("environment", record)

    def status(self, state: str, *, step: int, steps: int, message: str = "") -> None:
        """Say where the run stands: running, done, failed or interrupted."""
        record = {
            "state": state,
            "step": step,
            "steps": steps,
            "message": message,
            "time": time.time(),
        }
        write_atomic(self.path / "status.json", json.dumps(record))
        self._tell("status", record)

    def metrics(self, record: Mapping[str, Any]) -> None:
        """Append one step's metrics; unknown names are refused, so that a name never changes
        meaning."""
        unknown = [k for k in record if k not in METRICS and not k.startswith("parts/")]
        assert not unknown, f"metrics not in runlog.METRICS: {unknown}"
        self._append("metrics.jsonl", record)
        self._tell("metrics", record)

    def rollouts(self, step: int, groups: Sequence[Group], advantages: Mapping[int, float]) -> None:
        """Write every completion of a step; ``advantages`` maps its running number to the advantage
        it got."""
        lines: list[str] = []
        number = 0
        for g, group in enumerate(groups):
            for i, (completion, verdict) in enumerate(
                zip(group.completions, group.verdicts, strict=True)
            ):
                row = {
                    "step": step,
                    "group": g,
                    "sample": i,
                    "problem_id": group.prompt.problem.id,
                    "answer": group.prompt.problem.answer,
                    "prompt": group.prompt.text,
                    "completion": completion.text,
                    "outcome": verdict.outcome.value,
                    "reward": verdict.reward,
                    "parts": dict(verdict.parts),
                    "reason": verdict.reason,
                    "extracted": verdict.extracted,
                    "advantage": advantages.get(number),
                    "finish_reason": completion.finish_reason.value,
                    "num_tokens": len(completion.token_ids),
                    "token_ids": list(completion.token_ids),
                    "sampler_logprobs": [round(x, 6) for x in completion.sampler_logprobs],
                    "version": completion.version,
                }
                lines.append(json.dumps(row, ensure_ascii=False))
                number += 1
        (self.path / "rollouts").mkdir(exist_ok=True)
        write_atomic(self.path / "rollouts" / f"step-{step}.jsonl", "\n".join(lines) + "\n")

    def show_group(self, step: int, group: Group) -> None:
        """Hand one group of real completions to the listeners (nothing is written)."""
        self._tell("group", {"step": step, "group": group})

    def progress(self, record: Mapping[str, Any]) -> None:
        """Hand a within-step progress record {"phase", "done", "total"} to the listeners (nothing
        is written)."""
        self._tell("progress", record)

    def evaluation(self, name: str, record: Mapping[str, Any]) -> None:
        """Write one held-out evaluation under its name."""
        write_atomic(
            self.path / "evaluations" / f"{name}.json", json.dumps(record, ensure_ascii=False)
        )
        self._tell("evaluation", {"name": name, **record})

    def finding(
        self, name: str, severity: str, *, evidence: str, cause: str, remedy: str, step: int = 0
    ) -> None:
        """Append a finding (severity: info, warn or fail)."""
        record = {
            "name": name,
            "severity": severity,
            "evidence": evidence,
            "cause": cause,
            "remedy": remedy,
            "step": step,
        }
        self._append("findings.jsonl", record)
        self._tell("finding", record)

    def note(self, text: str) -> None:
        """Hand a line of text to the listeners and keep it in notes.log."""
        stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        with open(self.path / "notes.log", "a", encoding="utf-8") as f:
            f.write(f"{stamp} {text}\n")
        self._tell("note", {"text": text})

    def _append(self, name: str, record: Mapping[str, Any]) -> None:
        with open(self.path / name, "a", encoding="utf-8") as f:
            f.write(json.dumps(record, ensure_ascii=False, default=float) + "\n")
            f.flush()
            os.fsync(f.fileno())

    def _tell(self, kind: str, record: Mapping[str, Any]) -> None:
        for listener in list(self._listeners):
            try:
                listener(kind, record)
            except Exception as e:
                # A broken view or tracker must not end hours of training; it is named once and
                # dropped.
                self._listeners.remove(listener)
                print(
                    f"verigrad: {listener!r} failed on {kind!r} and is dropped: {e!r}",
                    file=sys.stderr,
                )
