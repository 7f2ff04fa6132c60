"""The run directory: one writer, one reader. It is the only thing that leaves a run. Loads without
torch.

    runs/<name>/
      recipe.toml           the resolved recipe
      environment.json      versions, hashes, seed, machine
      status.json           {"state": "running|done|failed|interrupted", "step", "steps", "message"} (atomic)
      metrics.jsonl         one record per step (see METRICS) and per supervised step
      rollouts/step-N.jsonl every prompt, completion, verdict, reward, advantage, sampler
      log-probability evaluations/NAME.json one held-out evaluation (NAME: before, after-cold-start,
      step-N, after)
      findings.jsonl        tripwires and warnings: name severity evidence cause remedy step
      checkpoints/step-N/   Hugging Face format plus trainer state, written to a temporary name and renamed
      latest                name of the newest whole checkpoint (atomic)
      report.html           self-contained

Append-only; a torn last line (power loss) is repaired on resume. One process writes: a lock file
says which.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from verigrad.errors import RunDirectoryError
from verigrad.types import Group

METRICS: Mapping[str, str] = {
    "step": "1-based number of the rollout-and-update round",
    "phase": "rl or sft",
    "reward_mean": "mean reward of the judged completions",
    "reward_std": "standard deviation of those rewards",
    "correct_frac": "share of completions judged correct",
    "wrong_frac": "share judged wrong",
    "unparsed_frac": "share without an answer that could be found",
    "broken_frac": "share where the verifier or the gold failed (no reward)",
    "all_right_frac": "share of groups whose completions all earn the highest reward seen in training (1.0)",
    "all_wrong_frac": "share of groups whose completions all earn the lowest (0.0)",
    "silent_frac": "share of groups whose rewards are all equal: no gradient comes from them",
    "truncated_frac": "share of completions cut by the token limit",
    "unique_frac": "distinct completions over completions, mean over groups",
    "completion_tokens_mean": "mean completion length in tokens",
    "completion_tokens_p95": "95th percentile of it",
    "tokens_correct_mean": "mean length of correct completions",
    "tokens_wrong_mean": "mean length of the others",
    "entropy_mean": "mean entropy per trained token in nats",
    "sampler_gap_mean": "mean |log-probability of trainer minus that of sampler| per token, nats",
    "sampler_gap_max": "its largest value",
    "sampler_kl": "estimate (k3) of the divergence between sampler and trainer, nats per token",
    "ess_frac": "effective sample size of the trainer/sampler token weights over the number of tokens",
    "clip_low_frac": "share of tokens stopped by the lower clip",
    "clip_high_frac": "share of tokens stopped by the upper clip",
    "kl_mean": "mean estimated divergence from the reference policy, nats per token (only with a reference)",
    "grad_norm": "norm of the gradient before clipping",
    "update_norm": "norm of the change of the weights",
    "learning_rate": "step size used",
    "loss": "supervised loss, nats per token (phase sft only: in RL the surrogate's value says nothing)",
    "num_completions": "completions sampled",
    "num_trained": "completions that reached the update",
    "num_tokens": "completion tokens sampled",
    "num_groups": "groups sampled",
    "num_silent_groups": "groups left out since they carry no signal",
    "num_broken": "completions left out since their verdict is BROKEN",
    "generate_s": "seconds spent sampling",
    "verify_s": "seconds spent verifying after sampling ended",
    "update_s": "seconds spent in forward, backward and optimiser",
    "load_s": "seconds spent handing weights to the engine",
    "step_s": "seconds of the whole step",
    "tokens_per_s": "completion tokens over generate_s",
    "eta_s": "estimated seconds left",
    "version": "version of the weights after the step",
    "fingerprint": "hash of weights, data position and rollouts after the step",
}
"""Every metric and what it means. A name never changes meaning; a record may lack metrics that do
not apply."""

Listener = Callable[[str, Mapping[str, Any]], None]


def write_atomic(path: Path, text: str) -> None:
    """Write a whole file or nothing: temporary name, flush to disk, rename."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with open(temporary, "w", encoding="utf-8") as f:
        f.write(text)
        f.flush()
        os.fsync(f.fileno())
    os.replace(temporary, path)


def fsync_directory(path: Path) -> None:
    """Make a rename inside ``path`` survive power loss."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


class RunWriter:
    """The one writer of a run directory; every record also goes to the listeners (terminal view,
    sinks).

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
            _rewrite_until(path / name, step, keep_supervised=cold_started or step > 0)
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
        return path.read_text(encoding="utf-8") if path.exists() else ""

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
        return {f.stem: json.loads(f.read_text(encoding="utf-8")) for f in files}

    def rollout_steps(self) -> list[int]:
        """Steps whose rollouts were kept."""
        folder = self.path / "rollouts"
        files = folder.glob("step-*.jsonl") if folder.is_dir() else []
        return sorted(int(p.stem.removeprefix("step-")) for p in files)

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
        target = self.path / "checkpoints" / pointer.read_text(encoding="utf-8").strip()
        return target if target.is_dir() else None

    def _json(self, name: str) -> dict[str, Any] | None:
        path = self.path / name
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def read_jsonl(path: Path) -> Iterator[dict[str, Any]]:
    """The whole lines of a JSONL file; a torn last line is left out."""
    if not path.exists():
        return
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            if not line.endswith("\n"):
                return
            if line.strip():
                yield json.loads(line)


def _rewrite_until(path: Path, step: int, *, keep_supervised: bool) -> None:
    """Keep the whole records up to ``step`` and drop the rest, torn tail included.

    Supervised steps count from 1 of their own and lie before every RL step, so they all stay or
    all go.
    """
    if not path.exists():
        return
    kept: list[str] = []
    for raw in path.read_bytes().split(b"\n"):
        try:
            record = json.loads(raw)
        except (json.JSONDecodeError, UnicodeDecodeError):
            continue
        supervised = record.get("phase") == "sft"
        if keep_supervised if supervised else record.get("step", 0) <= step:
            kept.append(json.dumps(record, ensure_ascii=False))
    write_atomic(path, "".join(line + "\n" for line in kept))


def machine_record() -> dict[str, Any]:
    """Python, platform, cores and the versions of what we stand on, without importing any of it."""
    from importlib import metadata

    versions: dict[str, str] = {}
    for package in (
        "verigrad",
        "torch",
        "transformers",
        "tokenizers",
        "peft",
        "sympy",
        "math-verify",
    ):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "versions": versions,
        "started": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
