"""Call a verifier where it may hang, crash, leak or write without taking the audit with it.

Calls run in order inside a forked child (its main thread, so that rewards which use signals behave
as in a trainer). The parent waits for each reply up to the deadline, kills the child's whole
process group when it is late, names the call, and forks again for the rest. A thread alone could
not do that: a regular expression or a big integer power keeps the interpreter lock. Where ``fork``
does not exist, a daemon thread is the fallback: late calls are named all the same, except those
that keep the lock.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import random
import select
import signal
import struct
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from verigrad.audit.calls import Call, Reply, Setting, perform

MEMORY_BYTES = 6 << 30
"""Address space a child may add to what it inherits; a memory bomb then raises instead of
swapping."""
MAX_LATE = 4
"""Late calls before the rest of the calls is given up; each has cost a whole deadline."""
MAX_CRASHED = 40
"""Calls that ended the process before the rest is given up."""


class Caller:
    """Owns the child that makes the calls. Use as a context manager; nothing of it survives the
    block.

    ``deadline_s`` bounds every call; the first call of the first child may take ``start_s``, since
    it loads what the verifier imports lazily. ``fork=False`` runs the calls in a daemon thread
    instead.
    """

    def __init__(
        self,
        setting: Setting,
        *,
        deadline_s: float,
        start_s: float,
        fork: bool = hasattr(os, "fork"),
    ) -> None:
        self._setting = setting
        self._deadline_s = deadline_s
        self._start_s = max(start_s, deadline_s)
        self._fork = fork
        self._worker: _Child | _Thread | None = None
        self._late = 0
        self._crashed = 0
        self.num_calls = 0

    def __enter__(self) -> Caller:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    @property
    def given_up(self) -> bool:
        """True when so many calls were lost that no more are made."""
        return self._late >= MAX_LATE or self._crashed >= MAX_CRASHED

    def run(self, calls: Sequence[Call]) -> list[Reply]:
        """Perform the calls in order; late or deadly ones reply with the fault ``hangs`` or
        ``crashes``."""
        return [self._one(call) for call in calls]

    def _one(self, call: Call) -> Reply:
        if self.given_up:
            return Reply(fault="not_run", evidence="given up after too many lost calls")
        if self._worker is None:
            self._worker = (_Child if self._fork else _Thread)(self._setting)
        limit = self._start_s if self.num_calls == 0 else self._deadline_s
        self.num_calls += 1
        reply = self._worker.ask(call, limit)
        # a reward in a worker of its own answers with broken verdicts instead of being lost
        lost_inside = any(s.fault in ("hangs", "crashes") for s in reply.scores)
        self._late += reply.fault == "hangs" or lost_inside
        self._crashed += reply.fault == "crashes"
        if reply.fault in ("hangs", "crashes"):
            self._stop()
        return reply

    def _stop(self) -> None:
        if self._worker is not None:
            self._worker.stop()
            self._worker = None


class _Child:
    """A forked process that performs calls one by one; requests and replies are length-prefixed
    pickles."""

    def __init__(self, setting: Setting) -> None:
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 (closed by stop, which outlives this block)
        ask_read, self._ask = os.pipe()
        self._hear, reply_write = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            # Forking beside threads: the child only calls the verifier and ends with _exit.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._pid = os.fork()
        if self._pid == 0:
            os.close(self._ask)
            os.close(self._hear)
            _serve(setting, ask_read, reply_write, self._output.fileno())
        os.close(ask_read)
        os.close(reply_write)

    def ask(self, call: Call, limit_s: float) -> Reply:
        """Return the child's reply, or one with the fault ``hangs`` or ``crashes``."""
        due = time.monotonic() + limit_s
        try:
            _send(self._ask, call)
        except BrokenPipeError:
            return Reply(fault="crashes", evidence=self._how_it_ended())
        buffer = b""
        while len(buffer) < 4 or len(buffer) < 4 + struct.unpack("!I", buffer[:4])[0]:
            wait = due - time.monotonic()
            if wait <= 0 or not select.select([self._hear], [], [], wait)[0]:
                return Reply(fault="hangs", evidence=f"no verdict within {limit_s:g} s")
            chunk = os.read(self._hear, 1 << 16)
            if not chunk:
                return Reply(fault="crashes", evidence=self._how_it_ended())
            buffer += chunk
        return pickle.loads(buffer[4:])

    def stop(self) -> None:
        """Kill what is left of the child's process group and reap the child."""
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                kill(self._pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)
        os.close(self._ask)
        os.close(self._hear)
        self._output.close()

    def _how_it_ended(self) -> str:
        _, status = os.waitpid(self._pid, 0)
        code = os.waitstatus_to_exitcode(status)
        how = f"exit status {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
        self._output.seek(0)
        tail = self._output.read().decode("utf-8", "replace").strip().splitlines()
        return f"the process ended with {how}" + (f": {tail[-1][:200]}" if tail else "")


class _Thread:
    """The fallback without fork: a daemon thread, left behind when it is late."""

    def __init__(self, setting: Setting) -> None:
        self._calls: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
        self._replies: queue.SimpleQueue[Reply] = queue.SimpleQueue()
        threading.Thread(
            target=self._work, args=(setting,), daemon=True, name="verigrad-audit"
        ).start()

    def _work(self, setting: Setting) -> None:
        while (call := self._calls.get()) is not None:
            self._replies.put(perform(setting, call))

    def ask(self, call: Call, limit_s: float) -> Reply:
        """Return the thread's reply, or one with the fault ``hangs``."""
        self._calls.put(call)
        try:
            return self._replies.get(timeout=limit_s)
        except queue.Empty:
            return Reply(fault="hangs", evidence=f"no verdict within {limit_s:g} s")

    def stop(self) -> None:
        """Let the thread end after its current call."""
        self._calls.put(None)


def _serve(setting: Setting, ask: int, reply: int, output: int) -> None:
    """The child: serve calls until the parent is gone, and leave without the parent's exit
    handlers."""
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        # a notebook or a test may have put another stream in the place of descriptor 1
        sys.stdout = sys.stderr = open(output, "w", buffering=1, closefd=False)  # noqa: SIM115
        _bound_memory()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        _reseed()
        while (call := _receive(ask)) is not None:
            _send(reply, perform(setting, call))
        os._exit(0)
    finally:
        os._exit(70)  # reached only by an exception no handler took, such as SystemExit


def _send(fd: int, value: object) -> None:
    data = pickle.dumps(value)
    view = memoryview(struct.pack("!I", len(data)) + data)
    while view:
        view = view[os.write(fd, view) :]


def _receive(fd: int) -> Any:
    """The next message of a pipe, None at its end."""
    head = _read(fd, 4)
    return None if head is None else pickle.loads(_read(fd, struct.unpack("!I", head)[0]) or b"")


def _read(fd: int, size: int) -> bytes | None:
    data = b""
    while len(data) < size:
        chunk = os.read(fd, min(size - len(data), 1 << 16))
        if not chunk:
            return None
        data += chunk
    return data


def _reseed() -> None:
    """Give the child its own random state: a reward that draws numbers must not look repeatable."""
    random.seed()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()


def _bound_memory() -> None:
    import resource

    try:
        with open("/proc/self/statm", encoding="ascii") as f:
            now = int(f.read().split()[0]) * resource.getpagesize()
    except (OSError, ValueError):
        return  # not Linux: the address space in use is unknown, so no bound can be set
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    bound = now + MEMORY_BYTES
    resource.setrlimit(
        resource.RLIMIT_AS, (bound if hard == resource.RLIM_INFINITY else min(bound, hard), hard)
    )
