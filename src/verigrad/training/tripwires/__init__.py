"""Tripwires: every known way to be silently wrong has a name, a cause and a remedy.

They are always on. ``watch_start`` looks once, before the first step: recipe, model, tokenizer,
prompts, and the engine that really runs. ``watch_step`` looks at what one step left behind. What
they see becomes a finding of the run, the first time it is seen. They read and never write: a run
with tripwires is bit for bit the run without.
"""

from verigrad.training.tripwires.watch import (
    ENGINE,
    LOAD,
    START,
    STEP,
    note_error,
    watch_start,
    watch_step,
)

__all__ = ["ENGINE", "LOAD", "START", "STEP", "note_error", "watch_start", "watch_step"]
