"""The one writer of a run directory."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from verigrad.errors import RunDirectoryError
from verigrad.runlog.files import append_line, rewrite_until, write_atomic
from verigrad.runlog.lock import RunLock
from verigrad.runlog.names import METRICS
from verigrad.types import Group

Listener = Callable[[str, Mapping[str, Any]], None]


class RunWriter:
    """The one writer of a run directory; every record also goes to the listeners (the
    terminal view, a tracker).

    A listener that raises is dropped with one warning on stderr: watching a run never stops it.
    """

    def __init__(
        self, path: str | Path, *, listeners: Sequence[Listener] = (), lock: RunLock | None = None
    ) -> None:
        self.path = Path(path)
        self._listeners = list(listeners)
        self._lock = lock

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
            held = RunLock(path)
            shutil.rmtree(path)
            held.release()
        try:
            for sub in ("rollouts", "evaluations", "checkpoints"):
                (path / sub).mkdir(parents=True, exist_ok=True)
            lock = RunLock(path)
            write_atomic(path / "status.json", json.dumps({"state": "running", "step": 0}))
        except OSError as e:
            raise RunDirectoryError(
                f"run directory {path} cannot be written: {e.strerror or e}. Choose another with "
                "--out."
            ) from None
        return cls(path, listeners=listeners, lock=lock)

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
        try:
            for sub in ("rollouts", "evaluations", "checkpoints"):
                (path / sub).mkdir(parents=True, exist_ok=True)
            lock = RunLock(path)
            _roll_back(path, step, cold_started=cold_started)
        except OSError as e:
            raise RunDirectoryError(
                f"run directory {path} cannot be written: {e.strerror or e}. Make it writable, "
                "free some space, or copy the run elsewhere."
            ) from None
        return cls(path, listeners=listeners, lock=lock)

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
        """Say where the run stands: running, done, failed or interrupted. All but the first end the
        writing, so the directory is free for another writer."""
        record = {
            "state": state,
            "step": step,
            "steps": steps,
            "message": message,
            "time": time.time(),
        }
        write_atomic(self.path / "status.json", json.dumps(record))
        self._tell("status", record)
        if state != "running":
            self.close()

    def close(self) -> None:
        """Free the directory for another writer."""
        if self._lock is not None:
            self._lock.release()

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
        append_line(self.path / "notes.log", f"{stamp} {text}")
        self._tell("note", {"text": text})

    def _append(self, name: str, record: Mapping[str, Any]) -> None:
        append_line(self.path / name, json.dumps(record, ensure_ascii=False, default=float))

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


def _roll_back(path: Path, step: int, *, cold_started: bool) -> None:
    """Take back what was written after ``step``, and what a killed writer left half done."""
    fresh = step == 0 and not cold_started
    for name in ("metrics.jsonl", "findings.jsonl"):
        rewrite_until(path / name, -1 if fresh else step, keep_supervised=not fresh)
    for folder in ("rollouts", "evaluations"):
        for file in (path / folder).glob("step-*.json*"):
            number = file.stem.removeprefix("step-")
            if not number.isdigit() or int(number) > step:
                file.unlink()
    for file in (path / "evaluations").glob("*.json"):
        try:
            json.loads(file.read_text(encoding="utf-8"))
        except ValueError:
            file.unlink()
    for folder in (path, path / "rollouts", path / "evaluations"):
        for file in folder.glob(".*.tmp"):
            file.unlink()
    (path / "evaluations" / "after.json").unlink(missing_ok=True)
