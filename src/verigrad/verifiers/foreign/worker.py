"""The worker process: loads one reward, then scores what it is handed, on its main thread.

The main thread matters: rewards that use signals for their time limits work there as in their own
trainer. A watchdog written in C ends the process when a call is late even if the interpreter lock
is held (a regular expression, a big power) and even if the caller is gone, so that nothing is ever
left running.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import sys
from multiprocessing.connection import Connection
from typing import Any

from verigrad.errors import UsageError
from verigrad.verifiers.base import explain
from verigrad.verifiers.foreign.calls import Caller
from verigrad.verifiers.foreign.prepare import prepare
from verigrad.verifiers.foreign.spec import ForeignOptions, Source
from verigrad.verifiers.foreign.wire import pack_verdict, unpack_completions, unpack_problem

GRACE_S = 1.0
"""The worker ends itself this much after the caller has given up on it."""


def main() -> None:
    """Serve until the caller closes the pipe."""
    pipe = Connection(int(sys.argv[1]))
    with contextlib.suppress(EOFError, BrokenPipeError):
        sys.path[:] = pipe.recv()
        source, options = pipe.recv()
        caller = _load(pipe, source, options)
        while caller is not None:
            _serve(pipe, caller)


def _load(pipe: Connection, source: Source, options: dict[str, Any]) -> Caller | None:
    checked = ForeignOptions(**options)
    _watch(checked.start_s)
    try:
        caller = prepare(source, checked)
    except UsageError as error:
        pipe.send(("refused", type(error).__name__, str(error)))
        return None
    except BaseException as error:  # a module that calls sys.exit at import must be reported, too
        pipe.send(
            ("refused", "RecipeError", f"verifier.name = {source.spec.text!r}: {explain(error)}")
        )
        return None
    _unwatch()
    pipe.send(("ready", caller.plan))
    return caller


def _serve(pipe: Connection, caller: Caller) -> None:
    problem, completions, singly, limit_s = pipe.recv()
    judged = caller.score(unpack_problem(problem), unpack_completions(completions), singly=singly)
    _watch(limit_s)
    for i, verdict in judged:
        _unwatch()
        pipe.send((i, pack_verdict(verdict)))
        _watch(limit_s)
    _unwatch()


def _watch(limit_s: float) -> None:
    faulthandler.dump_traceback_later(limit_s + GRACE_S, exit=True, file=_DEVNULL)


def _unwatch() -> None:
    faulthandler.cancel_dump_traceback_later()


_DEVNULL = open(os.devnull, "w")  # noqa: SIM115 - the watchdog needs it for as long as the process lives


if __name__ == "__main__":
    main()
