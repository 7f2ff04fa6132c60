"""The fast packed path for Llama-like models (Llama, SmolLM, Mistral, Qwen2, Qwen3).

Shape legend: N packed tokens, E hidden size, H query heads, K key heads, D head size.

Same parameters and same mathematics as the model's own modules, with operators that keep less and
touch memory less often, and with bf16 copies of weights that live until the optimiser writes.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from verigrad.training.attention import Scoring
from verigrad.training.packing import Layout
from verigrad.training.small import gate, linear, rms_norm, rotary_tree_attention

MODELS = {"LlamaModel", "MistralModel", "Qwen2Model", "Qwen3Model"}


def is_llama_like(backbone: Any) -> bool:
    """True where ``llama_hidden`` computes what the backbone would."""
    if type(backbone).__name__ not in MODELS:
        return False
    config = backbone.config
    parts = ("embed_tokens", "layers", "norm", "rotary_emb")
    return config.hidden_act == "silu" and all(hasattr(backbone, name) for name in parts)


def llama_hidden(
    backbone: Any, layout: Layout, *, dtype: torch.dtype, recompute: bool, last_N: Tensor
) -> Tensor:
    """Last hidden states, float32, of the packed places ``last_N``.

    ``recompute`` keeps each layer's input only and runs the layer again in the backward pass.
    """
    x_NE = backbone.embed_tokens(layout.ids_N).float()
    cos, sin = backbone.rotary_emb(x_NE[None], position_ids=layout.positions_N[None])
    for layer in backbone.layers:
        inputs = (layer, x_NE, cos[0].float(), sin[0].float(), layout, dtype)
        run = partial(checkpoint, _layer, use_reentrant=False) if recompute else _layer
        x_NE = run(*inputs)
    norm = backbone.norm
    return rms_norm(x_NE.index_select(0, last_N), norm.weight, norm.variance_epsilon, torch.float32)


def _layer(
    layer: Any, x_NE: Tensor, cos_ND: Tensor, sin_ND: Tensor, layout: Layout, dtype: torch.dtype
) -> Tensor:
    first, second = layer.input_layernorm, layer.post_attention_layernorm
    h_NE = rms_norm(x_NE, first.weight, first.variance_epsilon, dtype)
    x_NE = x_NE + _attention(layer.self_attn, h_NE, cos_ND, sin_ND, layout, dtype)
    h_NE = rms_norm(x_NE, second.weight, second.variance_epsilon, dtype)
    mlp = layer.mlp
    inner = gate(project(mlp.gate_proj, h_NE, dtype), project(mlp.up_proj, h_NE, dtype))
    return x_NE + project(mlp.down_proj, inner, dtype)


def _attention(
    attn: Any, h_NE: Tensor, cos_ND: Tensor, sin_ND: Tensor, layout: Layout, dtype: torch.dtype
) -> Tensor:
    N, D = h_NE.shape[0], attn.head_dim
    q_NHD = project(attn.q_proj, h_NE, dtype).view(N, -1, D)
    k_NKD = project(attn.k_proj, h_NE, dtype).view(N, -1, D)
    v_NKD = project(attn.v_proj, h_NE, dtype).view(N, -1, D)
    if hasattr(attn, "q_norm"):
        q_NHD = rms_norm(q_NHD, attn.q_norm.weight, attn.q_norm.variance_epsilon, dtype)
        k_NKD = rms_norm(k_NKD, attn.k_norm.weight, attn.k_norm.variance_epsilon, dtype)
    out_NHD = rotary_tree_attention(
        q_NHD, k_NKD, v_NKD, cos_ND, sin_ND, families=layout.families,
        positions_N=layout.positions_N, scoring=Scoring(attn.scaling, window=_window(attn, layout)),
    )  # fmt: skip
    return project(attn.o_proj, out_NHD.reshape(N, -1), dtype)


def _window(attn: Any, layout: Layout) -> int | None:
    """The layer's sliding window, or None where no token is far enough back to leave it."""
    window = getattr(attn, "sliding_window", None)
    if type(attn).__name__ == "MistralAttention":
        window = getattr(attn.config, "sliding_window", None)
    return window if window is not None and window < layout.longest else None


def project(module: Any, x: Tensor, dtype: torch.dtype) -> Tensor:
    """A linear layer, with or without a LoRA adapter, in ``dtype``.

    Any other module that took a linear layer's place is called as it is, under autocast.
    """
    if type(module) is nn.Linear:
        return linear(x, module.weight, module.bias, dtype)
    adapter = _plain_adapter(module)
    if adapter is not None:
        base = module.get_base_layer()
        y = linear(x, base.weight, base.bias, dtype)
        down = linear(module.lora_dropout[adapter](x), module.lora_A[adapter].weight, None, dtype)
        up = linear(down, module.lora_B[adapter].weight, None, dtype)
        return torch.add(y, up, alpha=float(module.scaling[adapter]))
    with torch.autocast(x.device.type, dtype=dtype, enabled=dtype is not torch.float32):
        return module(x)


def _plain_adapter(module: Any) -> str | None:
    """The one active, unmerged LoRA adapter of the ordinary kind; None for anything else."""
    if not hasattr(module, "lora_A") or type(module.get_base_layer()) is not nn.Linear:
        return None
    active = list(module.active_adapters)
    if len(active) != 1 or module.disable_adapters or module.merged:
        return None
    name = active[0]
    if name not in module.lora_A or getattr(module, "lora_variant", {}).get(name) is not None:
        return None
    lora = (module.lora_A[name], module.lora_B[name])
    if any(type(m) is not nn.Linear or m.bias is not None for m in lora):
        return None
    return name
