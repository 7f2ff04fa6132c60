"""Tiny random models, a tokenizer and prompts for the tests of this room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from verigrad.problems import tiny_tokenizer
from verigrad.types import Message, Problem, Prompt

COMMON = "one plus one is two and two plus two is four so "


def tokenizer() -> Any:
    return tiny_tokenizer()


def _shape(tokens: Any) -> dict[str, Any]:
    return {
        "vocab_size": len(tokens),
        "hidden_size": 96,
        "intermediate_size": 176,
        "num_hidden_layers": 3,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "max_position_embeddings": 256,
        "bos_token_id": tokens.bos_token_id,
        "eos_token_id": tokens.eos_token_id,
        "pad_token_id": tokens.pad_token_id,
    }


def build(kind: str, *, seed: int = 0, **changes: Any) -> nn.Module:
    """A random model of a family, with logits spread enough for tokens to differ."""
    import transformers as hf

    config_class, model_class = {
        "llama": (hf.LlamaConfig, hf.LlamaForCausalLM),
        "qwen2": (hf.Qwen2Config, hf.Qwen2ForCausalLM),
        "qwen3": (hf.Qwen3Config, hf.Qwen3ForCausalLM),
        "mistral": (hf.MistralConfig, hf.MistralForCausalLM),
        "gemma2": (hf.Gemma2Config, hf.Gemma2ForCausalLM),
        "gemma3": (hf.Gemma3TextConfig, hf.Gemma3ForCausalLM),
        "phi": (hf.PhiConfig, hf.PhiForCausalLM),
        "phi3": (hf.Phi3Config, hf.Phi3ForCausalLM),
        "gpt_neox": (hf.GPTNeoXConfig, hf.GPTNeoXForCausalLM),
    }[kind]
    shape = _shape(tokenizer()) | changes
    if kind in ("qwen3", "gemma2", "gemma3"):
        shape.setdefault("head_dim", 16)
    if kind == "gpt_neox":
        shape.pop("num_key_value_heads")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = model_class(config_class(**shape)).eval()
        with torch.no_grad():
            for name, weight in model.named_parameters():
                if weight.dim() > 1:
                    weight.mul_(4.0)
                elif "norm" not in name:
                    weight.normal_(std=0.1)
    return model


def prompts(texts: Sequence[str]) -> list[Prompt]:
    tokens = tokenizer()
    return [
        Prompt(
            Problem(f"p{i}", (Message("user", text),), None),
            text,
            tuple(tokens.encode(text, add_special_tokens=False)),
        )
        for i, text in enumerate(texts)
    ]


@torch.no_grad()
def plain_logprobs(model: nn.Module, prompt: Prompt, ids: Sequence[int], temperature: float) -> Any:
    """What a plain fp32 forward over prompt and completion says of each completion token."""
    whole = torch.tensor([[*prompt.token_ids, *ids]])
    logits = model(input_ids=whole).logits[0, len(prompt.token_ids) - 1 : -1].float()
    logprobs = torch.log_softmax(logits / (temperature or 1.0), dim=-1)
    return logprobs.gather(1, torch.tensor(list(ids))[:, None])[:, 0]


@torch.no_grad()
def plain_greedy(model: nn.Module, prompt: Prompt, count: int) -> list[int]:
    """The likeliest continuation, one plain forward per token, ended by the end token."""
    ids = list(prompt.token_ids)
    for _ in range(count):
        ids.append(int(model(input_ids=torch.tensor([ids])).logits[0, -1].argmax()))
        if ids[-1] == tokenizer().eos_token_id:
            break
    return ids[len(prompt.token_ids) :]
