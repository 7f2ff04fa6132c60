"""Which models the packed path knows, what shape they have, and where their weights are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

FAMILIES = ("llama", "qwen2", "qwen3", "mistral")
ROPE_TYPES = ("default", "linear", "llama3", "yarn")


@dataclass(frozen=True, slots=True)
class Shape:
    """The numbers of a Llama-like decoder."""

    layers: int
    hidden: int
    inner: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    eps: float
    tied: bool
    context: int | None


def shape_of(model: nn.Module) -> Shape:
    """Read the shape from a model for which ``unsupported`` returned None."""
    config: Any = model.config
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return Shape(
        layers=config.num_hidden_layers,
        hidden=config.hidden_size,
        inner=config.intermediate_size,
        heads=config.num_attention_heads,
        kv_heads=config.num_key_value_heads,
        head_dim=head_dim,
        vocab=config.vocab_size,
        eps=config.rms_norm_eps,
        tied=bool(config.tie_word_embeddings),
        context=getattr(config, "max_position_embeddings", None),
    )


def unsupported(model: nn.Module) -> str | None:
    """Why the packed path can't run this model, None when it can."""
    config: Any = getattr(model, "config", None)
    kind = getattr(config, "model_type", type(model).__name__)
    if kind not in FAMILIES:
        return f"the packed path knows {', '.join(FAMILIES)}, not {kind!r}"
    if config.hidden_act != "silu":
        return f"the packed path knows the activation silu, not {config.hidden_act!r}"
    if _slides(config):
        return f"layers look back {config.sliding_window} tokens only (sliding window)"
    rope = _rope_type(config)
    if rope not in ROPE_TYPES:
        return f"rotary embeddings of type {rope!r} depend on the length of the sequence"
    unknown = set(model.state_dict()) - _names(shape_of(model).layers)
    if unknown:
        return f"the model has weights of its own, such as {min(unknown)!r}"
    return None


def _slides(config: Any) -> bool:
    kinds = getattr(config, "layer_types", None)
    if kinds is not None:
        return any(kind != "full_attention" for kind in kinds)
    return getattr(config, "sliding_window", None) is not None


def _rope_type(config: Any) -> str:
    rope = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    return str(rope.get("rope_type", rope.get("type", "default")))


_PER_LAYER = (
    "input_layernorm.weight",
    "post_attention_layernorm.weight",
    "self_attn.q_norm.weight",
    "self_attn.k_norm.weight",
    *(f"self_attn.{p}_proj.{kind}" for p in "qkvo" for kind in ("weight", "bias")),
    *(f"mlp.{p}_proj.{kind}" for p in ("gate", "up", "down") for kind in ("weight", "bias")),
)


def _names(layers: int) -> set[str]:
    names = {"model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"}
    return names | {f"model.layers.{i}.{name}" for i in range(layers) for name in _PER_LAYER}


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """The tensors of one layer, query/key/value and gate/up stacked; None where it has none."""

    norm_in: Tensor
    qkv: Tensor
    qkv_bias: Tensor | None
    q_norm: Tensor | None
    k_norm: Tensor | None
    out: Tensor
    out_bias: Tensor | None
    norm_mid: Tensor
    gate_up: Tensor
    gate_up_bias: Tensor | None
    down: Tensor
    down_bias: Tensor | None


def layer_weights(weights: Mapping[str, Tensor], index: int) -> LayerWeights:
    """Gather and stack the tensors of layer ``index``."""
    import torch

    start = f"model.layers.{index}."

    def stacked(names: tuple[str, ...], kind: str) -> Tensor | None:
        found = [weights.get(f"{start}{name}.{kind}") for name in names]
        return None if found[0] is None else torch.cat([f for f in found if f is not None])

    def needed(names: tuple[str, ...]) -> Tensor:
        return torch.cat([weights[f"{start}{name}.weight"] for name in names])

    attention = tuple(f"self_attn.{p}_proj" for p in "qkv")
    gates = ("mlp.gate_proj", "mlp.up_proj")
    return LayerWeights(
        norm_in=weights[f"{start}input_layernorm.weight"],
        qkv=needed(attention),
        qkv_bias=stacked(attention, "bias"),
        q_norm=weights.get(f"{start}self_attn.q_norm.weight"),
        k_norm=weights.get(f"{start}self_attn.k_norm.weight"),
        out=weights[f"{start}self_attn.o_proj.weight"],
        out_bias=weights.get(f"{start}self_attn.o_proj.bias"),
        norm_mid=weights[f"{start}post_attention_layernorm.weight"],
        gate_up=needed(gates),
        gate_up_bias=stacked(gates, "bias"),
        down=weights[f"{start}mlp.down_proj.weight"],
        down_bias=weights.get(f"{start}mlp.down_proj.bias"),
    )
