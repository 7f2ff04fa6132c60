"""Call a verifier where it may hang, crash, leak or write without taking the audit with it.

Calls run in order inside a forked child (its main thread, so that rewards which use signals behave as in
a trainer). The parent waits for each reply up to the deadline, kills the child's whole process group when
it is late, names the call, and forks again for the rest. A thread alone could not do that: a regular
expression or a big integer power keeps the interpreter lock. Where ``fork`` does not exist, a daemon
thread is the fallback: late calls are named all the same, except those that keep the lock.
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
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from verigrad.audit.calls import Call, Reply, perform
from verigrad.types import Verifier

MEMORY_BYTES = 6 << 30
"""Address space a child may add to what it inherits; a memory bomb then raises instead of swapping."""
MAX_LOST = 3
"""Children lost (late or dead) before the rest of the calls is given up."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class _Lost:
    """Why no reply came for a call."""

    fault: str
    evidence: str


def run_calls(
    verifier: Verifier,
    calls: Sequence[Call],
    *,
    deadline_s: float,
    on_reply: Progress | None = None,
    fork: bool = hasattr(os, "fork"),
) -> list[Reply]:
    """Perform the calls in order and return one reply each; late or deadly calls reply with a fault.

    Every child starts from the parent's untouched verifier: a second ``run_calls`` is a fresh instance.
    After three lost children the remaining replies carry the fault ``not_run``.
    """
    replies: list[Reply] = []
    lost = 0
    start = _in_child if fork else _in_thread
    while len(replies) < len(calls):
        if lost >= MAX_LOST:
            replies.append(Reply(fault="not_run", evidence="given up after three lost calls"))
            continue
        loss = start(verifier, calls[len(replies) :], deadline_s, replies, len(calls), on_reply)
        if loss is not None:
            lost += 1
            replies.append(Reply(fault=loss.fault, evidence=loss.evidence))
    return replies


def _in_child(
    verifier: Verifier,
    calls: Sequence[Call],
    deadline_s: float,
    replies: list[Reply],
    total: int,
    on_reply: Progress | None,
) -> _Lost | None:
    read_fd, write_fd = os.pipe()
    with tempfile.TemporaryFile() as output, contextlib.ExitStack() as stack:
        stack.callback(os.close, read_fd)
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # fork beside threads: the child execs nothing
            pid = os.fork()
        if pid == 0:
            _child_main(verifier, calls, read_fd, write_fd, output.fileno())
        os.close(write_fd)
        try:
            return _listen(read_fd, pid, len(calls), deadline_s, replies, total, on_reply, output)
        finally:
            _end(pid)


def _listen(
    fd: int,
    pid: int,
    expected: int,
    deadline_s: float,
    replies: list[Reply],
    total: int,
    on_reply: Progress | None,
    output: tempfile._TemporaryFileWrapper[bytes],
) -> _Lost | None:
    """Collect replies until all came, one is late, or the child is gone."""
    buffer = b""
    for _ in range(expected):
        due = time.monotonic() + deadline_s
        while True:
            if len(buffer) >= 4:
                (size,) = struct.unpack("!I", buffer[:4])
                if len(buffer) >= 4 + size:
                    replies.append(pickle.loads(buffer[4 : 4 + size]))
                    buffer = buffer[4 + size :]
                    break
            wait = due - time.monotonic()
            if wait <= 0 or not select.select([fd], [], [], wait)[0]:
                return _Lost("hangs", f"no verdict within {deadline_s:g} s")
            chunk = os.read(fd, 1 << 16)
            if not chunk:
                return _Lost("crashes", _how_it_ended(pid, output))
            buffer += chunk
        if on_reply is not None:
            on_reply(len(replies), total)
    return None


def _how_it_ended(pid: int, output: tempfile._TemporaryFileWrapper[bytes]) -> str:
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    how = f"exit status {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
    output.seek(0)
    tail = output.read().decode("utf-8", "replace").strip().splitlines()
    return f"the process ended with {how}" + (f": {tail[-1]}" if tail else "")


def _end(pid: int) -> None:
    """Kill what is left of the child's process group and reap the child."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


def _child_main(
    verifier: Verifier, calls: Sequence[Call], read_fd: int, write_fd: int, output_fd: int
) -> None:
    """Serve the calls and leave without running the parent's exit handlers."""
    code = 70
    try:
        os.setsid()
        os.close(read_fd)
        os.dup2(output_fd, 1)
        os.dup2(output_fd, 2)
        _bound_memory()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        _reseed()
        for call in calls:
            data = pickle.dumps(perform(verifier, call))
            view = memoryview(struct.pack("!I", len(data)) + data)
            while view:
                view = view[os.write(write_fd, view) :]
        code = 0
    finally:
        os._exit(code)


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


def _in_thread(
    verifier: Verifier,
    calls: Sequence[Call],
    deadline_s: float,
    replies: list[Reply],
    total: int,
    on_reply: Progress | None,
) -> _Lost | None:
    inbox: queue.SimpleQueue[Reply] = queue.SimpleQueue()

    def serve() -> None:
        for call in calls:
            inbox.put(perform(verifier, call))

    threading.Thread(target=serve, daemon=True, name="verigrad-audit").start()
    for _ in calls:
        try:
            replies.append(inbox.get(timeout=deadline_s))
        except queue.Empty:
            return _Lost("hangs", f"no verdict within {deadline_s:g} s")
        if on_reply is not None:
            on_reply(len(replies), total)
    return None
