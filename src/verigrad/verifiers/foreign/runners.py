"""Where a reward runs: in a worker process that can be killed, or in a thread of this process."""

from __future__ import annotations

import contextlib
import copy
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, Pipe
from typing import Any

from verigrad.errors import MissingExtraError, RecipeError, UsageError
from verigrad.types import Completion, Problem, Verdict
from verigrad.verifiers.foreign.calls import Caller
from verigrad.verifiers.foreign.prepare import prepare
from verigrad.verifiers.foreign.recognise import Plan
from verigrad.verifiers.foreign.spec import ForeignOptions, Source
from verigrad.verifiers.foreign.wire import (
    pack_completions,
    pack_problem,
    unpack_problem,
    unpack_verdict,
)

Judged = Iterator[tuple[int, Verdict]]


class LostError(Exception):
    """The call did not come back: it was late, or its process died."""


class ProcessRunner:
    """Owns one worker process; starts it when needed, kills it when it is late, one call at a time.

    Safe across threads (calls queue up), across fork (the child starts a worker of its own) and
    across pickling (the copy starts its own).
    """

    def __init__(self, source: Source, options: ForeignOptions) -> None:
        self.source = source
        self.options = options
        self._lock = threading.Lock()
        self._worker: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None
        self._pid = -1

    def start(self) -> Plan:
        """Start the worker and return its plan. Raises RecipeError when the reward can't be
        loaded."""
        with self._lock:
            return self._start()

    def judge(
        self, problem: Problem, completions: Sequence[Completion], *, singly: bool, limit_s: float
    ) -> Judged:
        """Yield (index, verdict) in order. Raises LostError when one is late or the worker dies."""
        if self._pid not in (-1, os.getpid()):
            self._lock = (
                threading.Lock()
            )  # forked: the lock may have been held by a thread left behind
        with self._lock:
            if self._worker is None or self._pid != os.getpid() or self._worker.poll() is not None:
                self._start()
            pipe = self._pipe
            assert pipe is not None, "a started worker has a pipe"
            try:
                pipe.send((pack_problem(problem), pack_completions(completions), singly, limit_s))
                for _ in completions:
                    if not pipe.poll(limit_s):
                        raise LostError(f"deadline: no reward within {limit_s:g} s")
                    i, packed = pipe.recv()
                    yield i, unpack_verdict(packed)
            except (EOFError, OSError):
                raise LostError(self._obituary()) from None
            except (
                BaseException
            ):  # late, or given up by the caller in mid-stream: the pipe is out of step
                self._kill()
                raise

    def close(self) -> None:
        """End the worker."""
        if self._pid == os.getpid():
            self._kill()

    def _start(self) -> Plan:
        self._kill()
        ours, theirs = Pipe(duplex=True)
        command = [
            sys.executable,
            "-m",
            __name__.replace("runners", "worker"),
            str(theirs.fileno()),
        ]
        self._worker = subprocess.Popen(
            command,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=_stderr(),
            env=_environment(),
        )
        self._pid = os.getpid()
        theirs.close()
        self._pipe = ours
        try:
            ours.send(list(sys.path))
            ours.send((self.source, self.options.model_dump()))
            if not ours.poll(self.options.start_s):
                raise RecipeError(
                    f"verifier.name = {self.source.spec.text!r}: loading it took longer than "
                    f"verifier.options.start_s = {self.options.start_s:g} s."
                )
            reply = ours.recv()
        except (EOFError, OSError):
            raise RecipeError(
                f"verifier.name = {self.source.spec.text!r}: {self._obituary()} while loading it."
            ) from None
        except RecipeError:
            self._kill()
            raise
        if reply[0] == "refused":
            self._kill()
            raise _error(reply[1], reply[2])
        return reply[1]

    def _obituary(self) -> str:
        assert self._worker is not None, "only a started worker can die"
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._worker.wait(1.0)
        code = self._worker.poll()
        self._kill()
        return f"the worker process died (exit code {code})"

    def _kill(self) -> None:
        worker, pipe, mine = self._worker, self._pipe, self._pid == os.getpid()
        self._worker = self._pipe = None
        if pipe is not None:
            pipe.close()
        if worker is not None and mine:
            worker.kill()
            worker.wait()

    def __getstate__(self) -> dict[str, Any]:
        return {"source": self.source, "options": self.options}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["source"], state["options"])

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # the interpreter may be half gone
            self.close()


def _stderr() -> int:
    """Where the worker's prints go: our standard error, since standard output may be one JSON
    object."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return sys.stderr.fileno()
    return subprocess.DEVNULL


def _environment() -> dict[str, str]:
    """Ours, and the path to this package, which a test or a notebook may have put on sys.path
    only."""
    path = os.pathsep.join(p for p in sys.path if p)
    return {**os.environ, "PYTHONPATH": path}


def _error(kind: str, message: str) -> UsageError:
    error = (
        RecipeError(message)
        if kind != "MissingExtraError"
        else MissingExtraError.__new__(MissingExtraError)
    )
    error.args = (message,)
    return error


class ThreadRunner:
    """Runs the reward in a daemon thread of this process. A call that hangs can't be ended: it is
    left behind.

    After three of those nothing is called any more. Made for functions of this process and for
    debugging.
    """

    MAX_LEFT_BEHIND = 3

    def __init__(self, source: Source, options: ForeignOptions) -> None:
        self.source = source
        self.options = options
        self._lock = threading.Lock()
        self._caller: Caller | None = None
        self._left_behind = 0

    def start(self) -> Plan:
        """Load the reward and return its plan. Raises RecipeError."""
        self._caller = prepare(self.source, self.options)
        return self._caller.plan

    def judge(
        self, problem: Problem, completions: Sequence[Completion], *, singly: bool, limit_s: float
    ) -> Judged:
        """Yield (index, verdict) in order. Raises LostError when one is late."""
        with self._lock:
            if self._caller is None:
                self.start()
            if self._left_behind >= self.MAX_LEFT_BEHIND:
                raise LostError(
                    f"deadline: not called, {self._left_behind} earlier calls still hang in their "
                    f"threads"
                )
            caller = self._caller
            assert caller is not None, "start has loaded it"
            replies: queue.SimpleQueue[Any] = queue.SimpleQueue()
            mine = unpack_problem(copy.deepcopy(pack_problem(problem)))

            def run() -> None:
                try:
                    for item in caller.score(mine, list(completions), singly=singly):
                        replies.put(item)
                except BaseException as error:
                    replies.put(error)

            threading.Thread(
                target=run, daemon=True, name=f"reward {self.source.spec.text}"
            ).start()
            for _ in completions:
                try:
                    reply = replies.get(timeout=limit_s)
                except queue.Empty:
                    self._left_behind += 1
                    self._caller = None
                    raise LostError(f"deadline: no reward within {limit_s:g} s") from None
                if isinstance(reply, BaseException):
                    raise LostError(f"ended with {type(reply).__name__}: {reply}")
                yield reply

    def close(self) -> None:
        """Nothing to end: threads are daemons."""

    def __getstate__(self) -> dict[str, Any]:
        return {"source": self.source, "options": self.options}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["source"], state["options"])


Runner = ProcessRunner | ThreadRunner


def make_runner(source: Source, options: ForeignOptions) -> Runner:
    """A worker process for what a spec can load again, a thread for an object of this process
    (and without fork)."""
    in_process = source.target is not None or options.isolation == "thread" or os.name == "nt"
    return ThreadRunner(source, options) if in_process else ProcessRunner(source, options)
