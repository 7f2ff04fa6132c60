"""Files that are whole or not there, and lines that may be torn."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from verigrad.errors import RunDirectoryError


def write_atomic(path: Path, text: str) -> None:
    """Write a whole file or nothing: temporary name, flush to disk, rename."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "w", encoding="utf-8") as f:
            f.write(text)
            f.flush()
            os.fsync(f.fileno())
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def append_line(path: Path, line: str) -> None:
    """Append one line and flush it to disk. A line that doesn't fit on a full disk leaves nothing:
    the next one must not continue it."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        before = os.fstat(fd).st_size
        rest = line.encode("utf-8") + b"\n"
        try:
            while rest:
                rest = rest[os.write(fd, rest) :]
            os.fsync(fd)
        except OSError:
            os.ftruncate(fd, before)
            raise
    finally:
        os.close(fd)


def fsync_directory(path: Path) -> None:
    """Make a rename inside ``path`` survive power loss."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def read_jsonl(path: Path) -> Iterator[dict[str, Any]]:
    """The whole lines of a JSONL file; a torn last line is left out. Raises RunDirectoryError for
    any other line that can't be read, naming it."""
    if not path.exists():
        return
    with open(path, encoding="utf-8", errors="replace") as f:
        for number, line in enumerate(f, start=1):
            if not line.endswith("\n"):
                return
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except ValueError:
                record = None
            if not isinstance(record, dict):
                raise RunDirectoryError(
                    f"{path}:{number} is no JSON record: the file was altered or the disk failed. "
                    "Remove that line; `--resume` does so too and goes on from the last checkpoint."
                )
            yield cast(dict[str, Any], record)


def rewrite_until(path: Path, step: int, *, keep_supervised: bool) -> None:
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
        if not isinstance(record, dict):
            continue
        record = cast(dict[str, Any], record)
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
