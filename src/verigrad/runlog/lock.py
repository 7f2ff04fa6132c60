"""One process writes a run directory; the operating system lets go of it when that process dies."""

from __future__ import annotations

import contextlib
import json
import os
import platform
from pathlib import Path
from typing import IO

from verigrad.errors import RunDirectoryError

LOCK = ".lock"


class RunLock:
    """An exclusive ``flock`` on ``<run>/.lock``, held until ``release`` or the end of the process.

    SIGKILL and power loss release it too, so no stale lock is ever to be removed by hand. Where the
    file system or the platform knows no such locks, nothing is locked.
    """

    def __init__(self, run: Path) -> None:
        """Take the lock. Raises RunDirectoryError where another writer holds it, naming it."""
        self._file: IO[str] | None = open(run / LOCK, "a+", encoding="utf-8")  # noqa: SIM115
        try:
            import fcntl

            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            self._file.seek(0)
            said = self._file.read()
            self.release()
            raise RunDirectoryError(
                f"run directory {run} is being written by another process{_whose(said)}. Wait for "
                "it or stop it; or choose another directory with --out."
            ) from None
        except (ImportError, OSError):
            return
        owner = {"pid": os.getpid(), "host": platform.node()}
        with contextlib.suppress(OSError):
            self._file.truncate(0)
            self._file.write(json.dumps(owner))
            self._file.flush()

    def release(self) -> None:
        """Let another process write; a second call does nothing."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None


def _whose(said: str) -> str:
    try:
        owner = json.loads(said)
        return f" (process {int(owner['pid'])} on {owner['host']})"
    except (ValueError, TypeError, KeyError):
        return ""
