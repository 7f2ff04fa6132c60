"""Maths graders side by side: same labelled cases, one run, one thread.

Usage: python bench/bench_verifiers.py CASES.jsonl. Writes bench_verifiers.json
beside itself. A grader that is not installed has a row that says so. Every grader is called case
by case in turn, so that all of them see the same load.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import platform
import re
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from verigrad.verifiers.math import judge
from verigrad.verifiers.measure import Case, read_cases

Grader = Callable[[str, str], bool]
Result = tuple[bool, float, str]
"""(accepted, seconds, "" or "raised" or "hung")"""
HANG_S = 12.0
OUT = Path(__file__).with_suffix(".json")


def ours() -> Grader:
    return lambda gold, text: judge(gold, text).outcome.value == "correct"


def math_verify() -> Grader:
    from math_verify import parse, verify

    return lambda gold, text: bool(verify(parse(f"${gold}$"), parse(text)))


def trl_accuracy() -> Grader:
    from trl.rewards import accuracy_reward

    def grade(gold: str, text: str) -> bool:
        message = [{"role": "assistant", "content": text}]
        (reward,) = accuracy_reward([message], [f"${gold}$"])
        return reward == 1.0

    return grade


def verl(module: str, function: str = "compute_score") -> Callable[[], Grader]:
    def load() -> Grader:
        import importlib

        score = getattr(importlib.import_module(f"verl.utils.reward_score.{module}"), function)

        def grade(gold: str, text: str) -> bool:
            found: Any = score(text, gold)
            if isinstance(found, dict):
                found = found.get("acc", found.get("score"))
            if isinstance(found, tuple | list):
                found = found[0]
            return float(found) > 0.5

        return grade

    return load


def exact_match() -> Grader:
    def grade(gold: str, text: str) -> bool:
        found = re.findall(r"\\boxed\{(.*)\}", text)
        return bool(found) and found[-1] == gold

    return grade


GRADERS: dict[str, Callable[[], Grader]] = {
    "verigrad math": ours,
    "math-verify parse + verify": math_verify,
    "TRL accuracy_reward": trl_accuracy,
    "verl gsm8k": verl("gsm8k"),
    "verl math_dapo": verl("math_dapo"),
    "verl math_reward": verl("math_reward"),
    "exact match of the box": exact_match,
}
"""verl's prime_math runs text from a completion as code, so it has no row here."""


def load_all() -> tuple[dict[str, Grader], list[str]]:
    loaded: dict[str, Grader] = {}
    missing: list[str] = []
    for name, make in GRADERS.items():
        try:
            loaded[name] = make()
        except ImportError:
            missing.append(name)
    return loaded, missing


class Worker:
    """One grader in a process of its own; a call that hangs ends the process, not the bench."""

    def __init__(self, grade: Grader) -> None:
        self.grade = grade
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("fork")
        self.wire, far = context.Pipe()
        self.process = context.Process(target=serve, args=(far, self.grade), daemon=True)
        self.process.start()
        self.ask("42", "\\boxed{41}")  # the first call loads tables

    def ask(self, gold: str, text: str) -> Result:
        self.wire.send((gold, text))
        if self.wire.poll(HANG_S):
            return self.wire.recv()
        self.stop()
        self.start()
        return False, HANG_S, "hung"

    def stop(self) -> None:
        self.process.kill()
        self.process.join()


def serve(wire: Any, grade: Grader) -> None:
    while True:
        gold, text = wire.recv()
        started = time.perf_counter()
        accepted, fault = False, ""
        try:
            accepted = grade(gold, text)
        except Exception:  # a crash earns no reward, and the row counts it
            fault = "raised"
        wire.send((accepted, time.perf_counter() - started, fault))


def run(cases: list[Case], graders: dict[str, Grader]) -> dict[str, list[Result]]:
    """Return each grader's results, case by case; graders take turns at every case."""
    found: dict[str, list[Result]] = {name: [] for name in graders}
    workers = {name: Worker(grade) for name, grade in graders.items()}
    for case in cases:
        for name, worker in workers.items():
            found[name].append(worker.ask(case.gold, case.completion))
    for worker in workers.values():
        worker.stop()
    return found


def row(cases: list[Case], results: list[Result]) -> dict[str, Any]:
    pairs = list(zip(cases, results, strict=True))
    right = [r[0] for c, r in pairs if c.expected]
    wrong = [r[0] for c, r in pairs if not c.expected]
    seconds = sorted(r[1] for r in results)
    return {
        "accuracy": sum(r[0] == c.expected for c, r in pairs) / len(pairs),
        "false_positive_rate": sum(wrong) / max(len(wrong), 1),
        "false_negative_rate": sum(not r for r in right) / max(len(right), 1),
        "raised": sum(r[2] == "raised" for r in results),
        "hung": sum(r[2] == "hung" for r in results),
        "micros_median": 1e6 * statistics.median(seconds),
        "micros_mean": 1e6 * statistics.fmean(seconds),
        "ms_p99": 1e3 * seconds[int(0.99 * (len(seconds) - 1))],
        "s_max": seconds[-1],
    }


def machine() -> dict[str, str]:
    cpu = platform.processor() or "unknown"
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = re.findall(r"model name\s*:\s*(.+)", info.read_text())
        cpu = names[0] if names else cpu
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=OUT.parent,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    return {"cpu": cpu, "python": platform.python_version(), "commit": commit or "unknown"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=Path)
    cases = read_cases(parser.parse_args().cases)
    graders, missing = load_all()
    results = run(cases, graders)
    rows: dict[str, Any] = {name: row(cases, found) for name, found in results.items()}
    rows |= dict.fromkeys(missing, "not installed")
    own, peer = rows["verigrad math"], rows.get("math-verify parse + verify")
    report = {"machine": machine(), "n": len(cases), "graders": rows}
    if isinstance(peer, dict):
        report["median_speedup_over_math_verify"] = peer["micros_median"] / own["micros_median"]
    OUT.write_text(json.dumps(report, indent=2) + "\n")
    print(
        f"{'grader':28} {'accuracy':>9} {'FP':>7} {'FN':>7} {'raised':>7} {'hung':>5} "
        f"{'median us':>10}"
    )
    for name, found in rows.items():
        if isinstance(found, str):
            print(f"{name:28} {found}")
            continue
        print(
            f"{name:28} {found['accuracy']:9.2%} {found['false_positive_rate']:7.2%} "
            f"{found['false_negative_rate']:7.2%} {found['raised']:7d} {found['hung']:5d} "
            f"{found['micros_median']:10.0f}"
        )


if __name__ == "__main__":
    main()
