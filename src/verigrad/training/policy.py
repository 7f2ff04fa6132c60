"""The policy: a model with its tokenizer, its precision and (with LoRA) its adapters."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import util
from pathlib import Path
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from verigrad.config import ModelSection, Recipe
from verigrad.errors import MissingExtraError, RecipeError
from verigrad.objective import Objective
from verigrad.training.forward import round_masters_once
from verigrad.training.load import load_model, quiet

Precision = Literal["fp32", "bf16"]


@dataclass(frozen=True)
class Policy:
    """The model that is trained. Master weights are float32; ``precision`` is what forward and
    backward compute in."""

    model: nn.Module
    tokenizer: Any
    precision: Precision
    device: torch.device
    reference: nn.Module | None
    """Frozen copy for the KL axis, None where the objective needs none (with LoRA: the model
    without adapters)."""
    lora: bool
    notes: tuple[str, ...]
    """What was chosen, and why: lines printed at start-up."""

    def trained(self) -> list[nn.Parameter]:
        """The parameters the optimiser moves."""
        return [p for p in self.model.parameters() if p.requires_grad]

    def weights(self) -> Mapping[str, Tensor]:
        """All weights under their Hugging Face names, adapters merged: what an engine takes."""
        if not self.lora:
            return {k: v.detach() for k, v in self.model.state_dict().items()}
        return merged_weights(self.model)

    def fingerprint(self) -> str:
        """SHA-256 over the trained parameters, in order of their names."""
        digest = hashlib.sha256()
        for name, p in sorted(self.model.named_parameters()):
            if p.requires_grad:
                digest.update(name.encode())
                digest.update(p.detach().cpu().contiguous().view(torch.uint8).numpy().data)
        return digest.hexdigest()

    def save(self, folder: Path) -> None:
        """Write weights and tokenizer in Hugging Face format; with LoRA the merged model, adapters
        beside it."""
        model: Any = self.model
        if self.lora:
            model.save_pretrained(str(folder / "adapter"))
            base = copy.deepcopy(model)
            model = base.merge_and_unload()
        with quiet():
            model.save_pretrained(str(folder))
            self.tokenizer.save_pretrained(str(folder))

    def refresh_reference(self) -> None:
        """Make the reference the present policy: RL stays near where it started, not the model
        before its supervised start."""
        if self.reference is not None:
            self.reference.load_state_dict(self.model.state_dict())

    def load_trained(self, state: Mapping[str, Tensor]) -> None:
        """Copy trained parameters back in (resume); every name must be there with its shape."""
        with torch.no_grad():
            for name, p in self.model.named_parameters():
                if p.requires_grad:
                    p.copy_(state[name])


def make_policy(recipe: Recipe, objective: Objective) -> Policy:
    """Load the model of a recipe, choose device and precision, add adapters and a reference where
    asked for."""
    section, seed = recipe.model, recipe.training.seed
    notes: list[str] = []
    device, why = choose_device(section)
    notes.append(f"device {device.type}: {why}")
    model, tokenizer = load_model(section, seed=seed)
    model.requires_grad_(True)
    if section.lora is not None:
        model = _add_lora(model, section, seed)
    model = model.to(device)
    precision, why = choose_precision(section, model, device)
    notes.append(f"precision {precision}: {why}")
    if precision == "bf16" and section.lora is None:
        share = round_masters_once(model)
        notes.append(
            f"master weights rounded once to bf16 values ({share:.1%} changed): a first small step "
            "then moves the bf16 policy by no more than the fp32 one"
        )
    reference = None
    if needs_reference(objective) and section.lora is None:
        reference = copy.deepcopy(model).requires_grad_(False)
        notes.append(f"reference policy kept in memory: objective.kl = {objective.kl!r}")
    return Policy(
        model=model, tokenizer=tokenizer, precision=precision, device=device, reference=reference,
        lora=section.lora is not None, notes=tuple(notes),
    )  # fmt: skip


def needs_reference(objective: Objective) -> bool:
    """True where the objective measures a distance to a frozen policy."""
    return objective.kl != "none" and objective.kl_coef > 0


def choose_device(section: ModelSection) -> tuple[torch.device, str]:
    """The device and one sentence why. Raises RecipeError for a GPU that isn't there."""
    available = torch.cuda.is_available()
    if section.device == "cuda" and not available:
        raise RecipeError(
            "model.device = 'cuda', but torch sees no GPU. Set model.device = 'auto', or install "
            "a CUDA build."
        )
    if section.device == "cpu":
        return torch.device("cpu"), "the recipe says so"
    if available:
        return torch.device("cuda"), f"torch sees {torch.cuda.get_device_name(0)}"
    return torch.device("cpu"), f"torch sees no GPU; {torch.get_num_threads()} threads"


def choose_precision(
    section: ModelSection, model: nn.Module, device: torch.device
) -> tuple[Precision, str]:
    """fp32 or bf16, and one sentence why; "auto" measures on a CPU."""
    if section.precision != "auto":
        return section.precision, "the recipe says so"
    if device.type == "cuda":
        if torch.cuda.is_bf16_supported():
            return "bf16", "this GPU computes bf16 natively; master weights stay fp32"
        return "fp32", "this GPU has no native bf16"
    if sum(p.numel() for p in model.parameters()) < 5_000_000:
        return "fp32", "a model this small gains nothing from bf16"
    from verigrad.rollout.precision import measure_precision

    return measure_precision(model.config)


def _add_lora(model: nn.Module, section: ModelSection, seed: int) -> nn.Module:
    if util.find_spec("peft") is None:
        raise MissingExtraError("peft", "peft", "model.lora")
    from peft import LoraConfig, get_peft_model

    lora = section.lora
    assert lora is not None
    linear = {n.rpartition(".")[2] for n, m in model.named_modules() if isinstance(m, nn.Linear)}
    missing = [n for n in lora.target_modules if n not in linear]
    if missing:
        raise RecipeError(
            f"model.lora.target_modules: {missing[0]!r} is no linear layer of this model. "
            f"It has: {', '.join(sorted(linear))}."
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        # peft types alpha as an int and divides by the rank whatever it is.
        return get_peft_model(
            model,
            LoraConfig(
                r=lora.rank, lora_alpha=cast(int, lora.alpha), lora_dropout=lora.dropout,
                target_modules=list(lora.target_modules), task_type="CAUSAL_LM",
            ),
        )  # fmt: skip


def merged_weights(model: Any) -> dict[str, Tensor]:
    """Weights of a peft model as the base model names them, ``W + scale * B A`` where an adapter
    sits."""
    from peft.tuners.lora import LoraLayer

    merged: dict[str, Tensor] = {}
    base = model.get_base_model()
    adapters: dict[str, Any] = {n: m for n, m in base.named_modules() if isinstance(m, LoraLayer)}
    for name, value in base.state_dict().items():
        if ".lora_" in name:
            continue
        plain = name.replace(".base_layer.", ".")
        owner = name.partition(".base_layer.")[0]
        if owner in adapters and name.endswith("base_layer.weight"):
            layer = adapters[owner]
            merged[plain] = value.detach() + layer.get_delta_weight("default").detach()
        else:
            merged[plain] = value.detach()
    return merged


def parameter_groups(model: nn.Module, weight_decay: float) -> Iterator[dict[str, Any]]:
    """AdamW groups: matrices decay, vectors (norms, biases) don't."""
    trained = [p for p in model.parameters() if p.requires_grad]
    yield {"params": [p for p in trained if p.dim() >= 2], "weight_decay": weight_decay}
    vectors = [p for p in trained if p.dim() < 2]
    if vectors:
        yield {"params": vectors, "weight_decay": 0.0}
