"""The child that makes the calls: late and dead ones are named, and nothing is left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from planted import Planted, sums

from verigrad.audit.calls import Call, Setting
from verigrad.audit.isolate import MAX_LATE, Caller


def caller_of(reward: Callable[[str, str], float], *, fork: bool = True) -> Caller:
    setting = Setting(Planted(reward, "planted"), tuple(sums(2)))
    return Caller(setting, deadline_s=0.5, start_s=0.5, fork=fork)


def verify(*texts: str) -> Call:
    return Call("verify", 0, texts)


@pytest.mark.parametrize("fork", [True, False])
def test_replies_come_in_order(fork: bool) -> None:
    with caller_of(lambda text, gold: float(text == gold), fork=fork) as caller:
        replies = caller.run([verify("214", "1"), verify("2"), Call("render_gold", 1)])
    assert [[s.reward for s in r.scores] for r in replies] == [[1.0, 0.0], [0.0], []]
    assert replies[2].text == "The answer is \\boxed{260}."


def test_a_late_call_is_ended_and_the_next_one_is_made() -> None:
    def slow(text: str, gold: str) -> float:
        if text == "slow":
            time.sleep(60)
        return 0.0

    with caller_of(slow) as caller:
        late, next_one = caller.run([verify("slow"), verify("fast")])
    assert (late.fault, late.evidence) == ("hangs", "no verdict within 0.5 s")
    assert next_one.fault == "" and len(next_one.scores) == 1


def test_calls_are_given_up_after_too_many_late_ones() -> None:
    def slow(text: str, gold: str) -> float:
        time.sleep(60)
        return 0.0

    with caller_of(slow) as caller:
        replies = caller.run([verify("a")] * (MAX_LATE + 2))
    assert [r.fault for r in replies] == ["hangs"] * MAX_LATE + ["not_run"] * 2


def test_a_dead_child_is_named_with_its_last_words() -> None:
    def dies(text: str, gold: str) -> float:
        os.write(2, b"no disk\n")
        os._exit(5)

    with caller_of(dies) as caller:
        (reply,) = caller.run([verify("a")])
    assert (reply.fault, reply.evidence) == (
        "crashes",
        "the process ended with exit status 5: no disk",
    )


def test_a_memory_bomb_raises_in_the_child() -> None:
    def bomb(text: str, gold: str) -> float:
        return float(len(bytearray(64 << 30)))

    with caller_of(bomb) as caller:
        (reply,) = caller.run([verify("a")])
    assert reply.fault == "raises" and reply.evidence.startswith("MemoryError")


def test_what_the_reward_starts_ends_with_it() -> None:
    def starts(text: str, gold: str) -> float:
        sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        return float(sleeper.pid)

    with caller_of(starts) as caller:
        (reply,) = caller.run([verify("a")])
    pid = int(reply.scores[0].reward or 0)
    for _ in range(100):
        if not _alive(pid):
            break
        time.sleep(0.02)
    assert not _alive(pid)


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            return f.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_parent_is_not_touched(capfd: pytest.CaptureFixture[str]) -> None:
    kept: list[str] = []

    def prints(text: str, gold: str) -> float:
        kept.append(text)
        print("loud", flush=True)
        return 0.0

    with caller_of(prints) as caller:
        caller.run([verify("a")])
    assert kept == []
    assert capfd.readouterr().out == ""
