"""Checkpoints: whole or not there. Written to a temporary name, flushed, hashed, renamed;
``latest`` moves last.

checkpoints/step-N/
  config.json model.safetensors tokenizer.json ...   Hugging Face format, loads anywhere
  trainer.safetensors                                optimiser moments (with LoRA, the adapters too)
  trainer.json                                       step, version, cursor, best score, fingerprint
  manifest.json                                      size and SHA-256 of every other file
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from verigrad.errors import CheckpointError
from verigrad.runlog import fsync_directory, write_atomic
from verigrad.training.policy import Policy

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class TrainerState:
    """What a run needs beside the weights to go on exactly where it stood."""

    step: int
    version: int
    windows: int
    """Windows of prompts_per_step problems drawn so far (more than steps where groups are
    resampled)."""
    best: float | None
    """Best held-out score so far, of evaluations during training."""
    fingerprint: str
    cold_started: bool = False
    best_step: int | None = None
    """The step that score belongs to."""


def save_checkpoint(
    run: Path, policy: Policy, optimizer: torch.optim.Optimizer, state: TrainerState
) -> Path:
    """Write ``checkpoints/step-N`` whole or not at all. Raises CheckpointError on a full or
    read-only disk."""
    final = run / "checkpoints" / f"step-{state.step}"
    temporary = run / "checkpoints" / f".step-{state.step}.tmp"
    _check_space(run, policy)
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        policy.save(temporary)
        save_file(_moments(policy, optimizer), str(temporary / "trainer.safetensors"))
        if policy.reference is not None:
            reference = {n: p.detach().cpu() for n, p in policy.reference.named_parameters()}
            save_file(reference, str(temporary / "reference.safetensors"))
        (temporary / "trainer.json").write_text(json.dumps(vars(state)), encoding="utf-8")
        _seal(temporary)
        shutil.rmtree(final, ignore_errors=True)
        os.replace(temporary, final)
        fsync_directory(final.parent)
        write_atomic(run / "latest", final.name)
    except OSError as e:
        shutil.rmtree(temporary, ignore_errors=True)
        raise CheckpointError(
            f"checkpoint {final} could not be written: {e.strerror or e}. Earlier checkpoints are "
            "untouched; free some space and continue with --resume."
        ) from e
    return final


def _check_space(run: Path, policy: Policy) -> None:
    need = 4 * sum(p.numel() for p in policy.model.parameters()) + 8 * sum(
        p.numel() for p in policy.trained()
    )
    free = shutil.disk_usage(run).free
    if free < need * 1.05:
        raise CheckpointError(
            f"a checkpoint needs about {need / 2**30:.2f} GiB and the disk of {run} has "
            f"{free / 2**30:.2f} GiB free. Free some space, or lower training.keep_last; then "
            "continue with --resume."
        )


def _moments(policy: Policy, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Optimiser state and trained parameters by parameter name, so that order can't mix them up."""
    names = {id(p): n for n, p in policy.model.named_parameters()}
    tensors: dict[str, Tensor] = {}
    for group in optimizer.param_groups:
        for p in group["params"]:
            for key, value in optimizer.state.get(p, {}).items():
                tensor = value if isinstance(value, Tensor) else torch.tensor(value)
                tensors[f"{key}/{names[id(p)]}"] = tensor.detach().cpu().contiguous()
    if policy.lora:
        for name, p in policy.model.named_parameters():
            if p.requires_grad:
                tensors[f"weight/{name}"] = p.detach().cpu().contiguous()
    return tensors or {"empty": torch.zeros(1)}


def _seal(folder: Path) -> None:
    """Flush every file to disk and write the manifest of their hashes."""
    entries: dict[str, Any] = {}
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            with open(file, "rb") as f:
                os.fsync(f.fileno())
            entries[str(file.relative_to(folder))] = {
                "bytes": file.stat().st_size,
                "sha256": _sha256(file),
            }
    write_atomic(folder / MANIFEST, json.dumps(entries, indent=1))
    fsync_directory(folder)


def _sha256(file: Path) -> str:
    with open(file, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def fault_of(folder: Path) -> str | None:
    """Return None for a whole checkpoint, else what is wrong with it."""
    manifest = folder / MANIFEST
    if not manifest.exists():
        return "it has no manifest.json (torn while it was written)"
    try:
        entries: Mapping[str, Any] = json.loads(manifest.read_text(encoding="utf-8"))
        items = [(name, int(e["bytes"]), str(e["sha256"])) for name, e in entries.items()]
    except (ValueError, KeyError, TypeError, AttributeError):
        return "its manifest.json cannot be read"
    if not any(name == "trainer.json" for name, _, _ in items):
        return "its manifest.json lists no trainer.json"
    for name, size, digest in items:
        file = folder / name
        if not file.is_file():
            return f"{name} is missing"
        if file.stat().st_size != size:
            return f"{name} has {file.stat().st_size} bytes instead of {size}"
        if _sha256(file) != digest:
            return f"{name} was altered (its SHA-256 differs)"
    return None


def find_checkpoint(run: Path) -> tuple[Path | None, list[str]]:
    """The newest whole checkpoint (None where none is), and one line for each torn one that was
    passed over."""
    lines: list[str] = []
    for folder in sorted((run / "checkpoints").glob("step-*"), key=_step_of, reverse=True):
        fault = fault_of(folder)
        if fault is None:
            return folder, lines
        lines.append(f"checkpoint {folder.name} is not used: {fault}")
    return None, lines


def _step_of(folder: Path) -> int:
    text = folder.name.removeprefix("step-")
    return int(text) if text.isdigit() else -1


def read_state(folder: Path) -> TrainerState:
    """The trainer state of a checkpoint. Raises CheckpointError where it can't be read."""
    try:
        return TrainerState(**json.loads((folder / "trainer.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as e:
        raise CheckpointError(f"checkpoint {folder}: trainer.json cannot be read: {e}.") from e


def restore(folder: Path, policy: Policy, optimizer: torch.optim.Optimizer) -> TrainerState:
    """Put weights and optimiser moments of a checkpoint back; every name and shape must fit."""
    state = read_state(folder)
    tensors = load_file(str(folder / "trainer.safetensors"))
    weights = load_weights(folder) if not policy.lora else {
        k.removeprefix("weight/"): v for k, v in tensors.items() if k.startswith("weight/")
    }  # fmt: skip
    names = {n: p for n, p in policy.model.named_parameters() if p.requires_grad}
    for name, p in names.items():
        if name not in weights or weights[name].shape != p.shape:
            raise CheckpointError(
                f"checkpoint {folder}: weight {name!r} is missing or has another shape; is it of "
                "another model?"
            )
    policy.load_trained(weights)
    if policy.reference is not None:
        _restore_reference(folder, policy.reference)
    by_name: dict[str, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        kind, _, name = key.partition("/")
        if kind != "weight" and name in names:
            by_name.setdefault(name, {})[kind] = value
    for name, moments in by_name.items():
        p = names[name]
        optimizer.state[p] = {
            k: (v.clone() if v.dim() == 0 else v.to(p.device).clone()) for k, v in moments.items()
        }
    return state


def _restore_reference(folder: Path, reference: torch.nn.Module) -> None:
    file = folder / "reference.safetensors"
    if not file.is_file():
        raise CheckpointError(
            f"checkpoint {folder} has no reference policy, and the objective needs the one it "
            "started with. Resume with objective.kl = 'none', or start again."
        )
    stored = load_file(str(file))
    with torch.no_grad():
        for name, p in reference.named_parameters():
            p.copy_(stored[name])


def load_weights(folder: Path) -> dict[str, Tensor]:
    """All weights of a Hugging Face folder, sharded or not."""
    tensors: dict[str, Tensor] = {}
    for file in sorted(folder.glob("model*.safetensors")):
        tensors.update(load_file(str(file)))
    return tensors


def prune(run: Path, *, keep_last: int, keep_best: str | None) -> None:
    """Delete all but the newest ``keep_last`` checkpoints and the one named ``keep_best``."""
    folders = sorted((run / "checkpoints").glob("step-*"), key=_step_of, reverse=True)
    for folder in folders[keep_last:]:
        if folder.name != keep_best:
            shutil.rmtree(folder, ignore_errors=True)
