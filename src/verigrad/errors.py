"""Everything verigrad raises on purpose.

    VerigradError
    ├── UsageError (also a ValueError)      exit 2   the command line or a recipe is wrong
    │   ├── RecipeError                     exit 2   unknown key, bad value, impossible combination
    │   ├── ProblemError                    exit 2   a problem file or row cannot be used
    │   ├── RunDirectoryError               exit 2   exists already, unwritable, not a run
    │   └── MissingExtraError               exit 2   an optional dependency is not installed
    ├── VerifierError                       exit 1   the verifier itself failed (a BROKEN verdict)
    ├── TrainingError                       exit 1   a run that cannot go on
    │   └── TripwireError                   exit 1   a known way of being silently wrong was seen
    ├── CheckpointError                     exit 1   torn, altered or missing checkpoint
    └── RefusedError                        exit 3   audit, preflight or a gate said no

A message names the value, the place and the remedy. ``exit_code`` is what the command line returns.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class VerigradError(Exception):
    """Base of every error verigrad raises on purpose."""

    exit_code = 1


class UsageError(VerigradError, ValueError):
    """The user can fix this by changing what was typed or written."""

    exit_code = 2


class RecipeError(UsageError):
    """A recipe has an unknown key, a bad value or an impossible combination."""


class ProblemError(UsageError):
    """A problem source, a row of it or one of its columns cannot be used."""


class RunDirectoryError(UsageError):
    """The run directory exists already, cannot be written, or is not a run."""


class MissingExtraError(UsageError):
    """An optional dependency is needed and not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed. "
            f"Install it with: pip install 'verigrad[{extra}]'"
        )


class VerifierError(VerigradError):
    """The verifier, not the completion, is at fault; the verdict is BROKEN, never wrong."""


class TrainingError(VerigradError):
    """The run cannot go on."""


class TripwireError(TrainingError):
    """A tripwire saw a known way of being silently wrong."""


class CheckpointError(VerigradError):
    """A checkpoint is torn, altered or missing."""


class RefusedError(VerigradError):
    """Audit, preflight or a gate refused to go on."""

    exit_code = 3


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ``" Did you mean 'x'?"`` for the closest known name, or all names when none is close.

    >>> nearest("clip_hihg", ["clip_high", "clip_low"])
    " Did you mean 'clip_high'?"
    """
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f" Did you mean {close[0]!r}?"
    return f" Known names: {', '.join(names)}."
