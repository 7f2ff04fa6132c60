"""A transformers causal model taken apart: backbone, projection, and whether it can be packed.

The generic packed path runs the model's own modules over one packed sequence: tokens keep their
positions, and the attention function that transformers dispatches to is replaced, for the length
of the call, by tree attention.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from verigrad.training.attention import Scoring, tree_attention
from verigrad.training.head import HeadShape
from verigrad.training.llama import is_llama_like, llama_hidden
from verigrad.training.packing import Layout

ATTENTION = "verigrad_tree"
KNOWN_LAYERS = {"full_attention", "sliding_attention"}
IGNORED = {"dropout", "scaling", "sliding_window", "softcap", "is_causal", "position_ids"}

_layout: ContextVar[Layout | None] = ContextVar("verigrad_layout", default=None)
_faults: WeakKeyDictionary[nn.Module, str | None] = WeakKeyDictionary()


@dataclass(frozen=True)
class Parts:
    """The pieces of a causal model that scoring needs."""

    causal: Any
    backbone: Any
    projection: nn.Linear
    layers: nn.ModuleList | None

    def head_shape(self, temperature: float) -> HeadShape:
        """How this model turns the projection's output into logits."""
        config = self.causal.config.get_text_config()
        scale = float(getattr(config, "logit_scale", None) or 1.0)
        scale /= float(getattr(config, "logits_scaling", None) or 1.0)
        softcap = getattr(config, "final_logit_softcapping", None)
        return HeadShape(scale, None if softcap is None else float(softcap), temperature)


def causal_of(model: nn.Module) -> Any:
    """The causal model itself: under peft the base model, which holds the adapters."""
    wrapped: Any = model
    return wrapped.get_base_model() if hasattr(model, "peft_config") else model


def take_apart(model: nn.Module) -> Parts | str:
    """The model's parts, or one sentence why it can't be packed."""
    for config in getattr(model, "peft_config", {}).values():
        if getattr(config, "is_prompt_learning", False):
            return f"peft's {config.peft_type} puts learned tokens before each row"
    causal = causal_of(model)
    name = type(causal).__name__
    backbone = getattr(causal, getattr(causal, "base_model_prefix", ""), None)
    if not isinstance(backbone, nn.Module):
        return f"{name} has no backbone under its base_model_prefix"
    projection = causal.get_output_embeddings()
    if type(projection) is not nn.Linear:
        kind = type(projection).__name__
        return f"the output projection of {name} is a {kind}, no plain linear layer"
    if "position_ids" not in inspect.signature(backbone.forward).parameters:
        return f"{type(backbone).__name__} takes no position_ids"
    if not getattr(causal, "_supports_attention_backend", False):
        return f"{name} doesn't let its attention function be replaced"
    config = causal.config.get_text_config()
    odd = set(getattr(config, "layer_types", None) or ()) - KNOWN_LAYERS
    if odd:
        return f"{name} has layers of the kind {sorted(odd)[0]!r}"
    layers = getattr(backbone, "layers", None)
    return Parts(
        causal, backbone, projection, layers if isinstance(layers, nn.ModuleList) else None
    )


def dropout_fault(model: nn.Module) -> str | None:
    """Why dropout rules packing out just now; None where it doesn't."""
    causal = causal_of(model)
    rate = getattr(causal.config.get_text_config(), "attention_dropout", 0.0)
    if causal.training and rate:
        return f"attention_dropout = {rate} is on while the model is in training mode"
    return None


def packing_fault(model: nn.Module) -> str | None:
    """Return None where packing gives this model's own log-probabilities, else why not.

    Its structure is read at each call; once a model, a few tokens are scored both ways in float32.
    """
    parts = take_apart(model)
    if isinstance(parts, str):
        return parts
    if parts.causal not in _faults:
        _faults[parts.causal] = _try_both(model, parts)
    return _faults[parts.causal] or dropout_fault(model)


def _try_both(model: nn.Module, parts: Parts) -> str | None:
    from verigrad.training.forward import packed_scores, plain_scores

    vocabulary = parts.projection.weight.shape[0]
    ids = [(37 * i + 11) % vocabulary for i in range(24)]
    prompts = [ids[:9] + ids[9:11], ids[:9] + ids[9:11], ids[:9] + ids[12:13]]
    completions = [ids[13:17], ids[17:19], ids[19:24]]
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            rows = (prompts, completions, [0, 0, 1])
            want = plain_scores(model, *rows, temperature=1.0, precision="fp32").logprobs_BT
            got = packed_scores(model, parts, *rows, temperature=1.0, precision="fp32").logprobs_BT
    except (RuntimeError, TypeError, ValueError, KeyError, AttributeError, IndexError) as e:
        return f"{type(parts.causal).__name__} fails on a packed sequence: {type(e).__name__}: {e}"
    finally:
        model.train(training)
    gap = float((want - got).abs().max())
    if not gap <= 2e-3:
        name = type(parts.causal).__name__
        return f"packed and plain log-probabilities of {name} differ by {gap:.2g}"
    return None


def _tree_attention_interface(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Any,
    *, scaling: float | None = None, sliding_window: int | None = None,
    softcap: float | None = None, **rest: Any,
) -> tuple[Tensor, None]:  # fmt: skip
    """Attention as transformers calls it: 1 x H x N x D in, 1 x N x H x D out."""
    layout = _layout.get()
    if layout is None:
        raise RuntimeError("tree attention was called outside a packed forward pass")
    if rest.get("s_aux") is not None:
        raise ValueError("attention sinks (s_aux) can't be packed")
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    out = tree_attention(
        query[0].transpose(0, 1), key[0].transpose(0, 1), value[0].transpose(0, 1),
        families=layout.families, positions_N=layout.positions_N,
        scoring=Scoring(scale, softcap, _window(sliding_window, layout)),
    )  # fmt: skip
    return out[None], None


def _window(window: int | None, layout: Layout) -> int | None:
    """The sliding window, or None where no token is far enough back to leave it."""
    return window if window is not None and window < layout.longest else None


@contextlib.contextmanager
def _tree(parts: Parts, layout: Layout) -> Iterator[None]:
    """While inside, the model's attention is tree attention over this layout."""
    from transformers import AttentionInterface

    AttentionInterface.register(ATTENTION, _tree_attention_interface)
    config = parts.backbone.config
    before = config._attn_implementation
    token = _layout.set(layout)
    config._attn_implementation_internal = ATTENTION
    try:
        yield
    finally:
        config._attn_implementation_internal = before
        _layout.reset(token)


@contextlib.contextmanager
def _recomputed(parts: Parts, layout: Layout) -> Iterator[None]:
    """While inside, decoder layers keep only their input and run again in the backward pass."""
    from torch.utils.checkpoint import checkpoint

    def contexts() -> tuple[Any, Any]:
        return contextlib.nullcontext(), _tree(parts, layout)

    layers = list(parts.layers or ())
    for layer in layers:
        own = layer.forward

        def again(*args: Any, _own: Any = own, **kwargs: Any) -> Any:
            return checkpoint(_own, *args, use_reentrant=False, context_fn=contexts, **kwargs)

        layer.forward = again  # type: ignore[method-assign]
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward


def hidden_states(parts: Parts, layout: Layout, *, dtype: torch.dtype, recompute: bool) -> Tensor:
    """Hidden states that predict the scored tokens, M x E."""
    if is_llama_like(parts.backbone):
        return llama_hidden(
            parts.backbone, layout, dtype=dtype, recompute=recompute, last_N=layout.predict_M
        )
    keep = _recomputed(parts, layout) if recompute else contextlib.nullcontext()
    mixed = torch.autocast(layout.ids_N.device.type, dtype=dtype, enabled=dtype != torch.float32)
    with _tree(parts, layout), keep, mixed:
        out = parts.backbone(
            input_ids=layout.ids_N[None], position_ids=layout.positions_N[None], use_cache=False
        )
    return out.last_hidden_state[0].index_select(0, layout.predict_M)
