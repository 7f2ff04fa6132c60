"""Small random models of several families, and random ragged batches, for the update path."""

from __future__ import annotations

import random

import torch
from torch import nn
from transformers import (
    Gemma2Config,
    Gemma2ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

V = 97
SIZES = {
    "vocab_size": V,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
FAMILIES = ["llama", "tied", "biased", "qwen2", "qwen3", "mistral_window", "gemma2"]


def make(family: str, *, seed: int = 0) -> nn.Module:
    """A model of this family; weights are large, so that attention and logits are far from flat."""
    torch.manual_seed(seed)
    match family:
        case "llama":
            model = LlamaForCausalLM(LlamaConfig(**SIZES))
        case "tied":
            model = LlamaForCausalLM(LlamaConfig(**SIZES, tie_word_embeddings=True))
        case "biased":
            model = LlamaForCausalLM(LlamaConfig(**SIZES, attention_bias=True, mlp_bias=True))
        case "qwen2":
            model = Qwen2ForCausalLM(Qwen2Config(**SIZES))
        case "qwen3":
            model = Qwen3ForCausalLM(Qwen3Config(**SIZES, head_dim=16))
        case "mistral_window":
            model = MistralForCausalLM(MistralConfig(**SIZES, sliding_window=5))
        case "gemma2":
            config = Gemma2Config(**SIZES, head_dim=16, sliding_window=6)
            config._attn_implementation = "eager"
            model = Gemma2ForCausalLM(config)
        case "gpt2":
            config = GPT2Config(
                vocab_size=V, n_positions=256, n_embd=48, n_layer=2, n_head=4,
                bos_token_id=1, eos_token_id=2, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
            )  # fmt: skip
            model = GPT2LMHeadModel(config)
        case _:
            raise AssertionError(family)
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() == 1:
                p.add_(torch.randn_like(p) * 0.1)
            else:
                p.mul_(4)
    return model.eval()


def with_lora(model: nn.Module, *, dropout: float = 0.0) -> nn.Module:
    """The model with LoRA adapters that already do something."""
    from peft import LoraConfig, get_peft_model

    targets = ["q_proj", "v_proj", "o_proj", "gate_proj", "down_proj"]
    settings = LoraConfig(
        r=4, lora_alpha=8, lora_dropout=dropout, target_modules=targets, task_type="CAUSAL_LM"
    )
    adapted = get_peft_model(model, settings)
    with torch.no_grad():
        for name, p in adapted.named_parameters():
            if "lora_B" in name:
                p.normal_(std=0.2)
    return adapted.eval()


def rows(
    seed: int, *, groups: int = 4, common: int = 0, longest: int = 12, prompt: int = 14
) -> tuple[list[list[int]], list[list[int]], list[int]]:
    """Prompts, completions and group indices: ragged, several groups, some completions empty."""
    draw = random.Random(seed)
    head = [draw.randrange(V) for _ in range(common)]
    prompts: list[list[int]] = []
    completions: list[list[int]] = []
    index: list[int] = []
    for g in range(groups):
        text = head + [draw.randrange(V) for _ in range(draw.randint(1, prompt))]
        for _ in range(draw.randint(1, 5)):
            prompts.append(list(text))
            completions.append([draw.randrange(V) for _ in range(draw.randint(0, longest))])
            index.append(g)
    completions[0] = [draw.randrange(V) for _ in range(longest)]
    return prompts, completions, index


def scores_and_gradients(model: nn.Module, batch, weights=None, **how):
    """Scores of a batch and every trained parameter's gradient of their weighted sum."""
    from verigrad.training.forward import completion_logprobs

    prompts, completions, index = batch
    model.zero_grad(set_to_none=True)
    scores = completion_logprobs(model, prompts, completions, group_index=index, **how)
    if weights is None:
        torch.manual_seed(5)
        weights = torch.randn(len(prompts), 64)
    (scores.logprobs_BT * weights[:, : scores.logprobs_BT.shape[1]]).sum().backward()
    grads = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
    return scores, grads


def worst_gap(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> float:
    """Largest relative distance of two sets of gradients, over parameters."""
    assert a.keys() == b.keys() and a
    # Some gradients are 0 by symmetry (a key bias shifts all scores alike); there the scale of
    # the largest gradient decides what counts as noise.
    floor = 1e-3 * max(float(x.norm()) for x in a.values())
    return max(float((a[n] - b[n]).norm() / max(floor, float(a[n].norm()))) for n in a)
