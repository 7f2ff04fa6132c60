"""Tripwires looked at once, before the first step: recipe, model, tokenizer and prompts."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch import nn

from verigrad.problems.overlap import find_overlap
from verigrad.problems.render import apply_template, chat_turns, encode, has_template
from verigrad.rollout.endings import end_token_ids
from verigrad.training.session import Session
from verigrad.types import Message, Prompt

_SAID = "answer"


def sampling_filtered(run: Session) -> str | None:
    r = run.recipe.rollout
    wrong = [
        f"rollout.{name} = {value!r}"
        for name, value, neutral in (
            ("top_p", r.top_p, 1.0), ("top_k", r.top_k, 0), ("min_p", r.min_p, 0.0),
        ) if value != neutral
    ]  # fmt: skip
    return ", ".join(wrong) or None


def master_weights_rounded(run: Session) -> str | None:
    for name, p in run.policy.model.named_parameters():
        if p.requires_grad and p.dtype is not torch.float32:
            return f"{name} is trained in {p.dtype}"
    return None


def optimizer_misses_weights(run: Session) -> str | None:
    held = {id(p) for g in run.optimizer.param_groups for p in g["params"]}
    names = [
        n for n, p in run.policy.model.named_parameters() if p.requires_grad and id(p) not in held
    ]
    if not names:
        return None
    return f"{len(names)} trained parameters are not the optimiser's, for example {names[0]!r}"


def dropout_on(run: Session) -> str | None:
    """Dropout in the model itself; that of LoRA adapters is the recipe's own wish."""
    for name, module in run.policy.model.named_modules():
        if isinstance(module, nn.Dropout) and module.p > 0 and "lora_" not in name:
            return f"module {name!r} drops {module.p:g} of its inputs"
    config: Any = run.policy.model.config
    for key in ("attention_dropout", "attn_pdrop", "resid_pdrop", "embd_pdrop", "hidden_dropout"):
        value = getattr(config, key, 0.0) or 0.0
        if value > 0:
            return f"the model's configuration sets {key} = {value:g}"
    return None


def reference_is_policy(run: Session) -> str | None:
    reference = run.policy.reference
    if reference is None:
        return None
    mine = {p.data_ptr() for p in run.policy.model.parameters()}
    if any(p.data_ptr() in mine for p in reference.parameters()):
        return "the reference policy shares its memory with the policy, so it moves with it"
    return None


def reference_differs(run: Session) -> str | None:
    """Before anything was learned the reference is the policy, bit for bit."""
    reference = run.policy.reference
    if reference is None or run.state.version > 0:
        return None
    theirs = dict(reference.named_parameters())
    for name, p in run.policy.model.named_parameters():
        if name not in theirs or not torch.equal(p, theirs[name]):
            return f"{name} of the reference is not that of the model that is trained"
    return None


def embeddings_untied(run: Session) -> str | None:
    model: Any = run.policy.model
    head = model.get_output_embeddings()
    tied = getattr(model.config.get_text_config(), "tie_word_embeddings", False)
    if not tied or head is None or head.weight is model.get_input_embeddings().weight:
        return None
    return "the configuration ties input and output embeddings, and the model holds two tensors"


def pad_is_end(run: Session) -> str | None:
    tokenizer = run.policy.tokenizer
    if tokenizer.pad_token_id is None or tokenizer.pad_token_id != tokenizer.eos_token_id:
        return None
    return f"padding and end of sequence are both token {tokenizer.eos_token_id}"


def _finished(prompt: Prompt, run: Session) -> str | None:
    """The prompt's conversation with an assistant turn after it, through the template."""
    if not has_template(run.policy.tokenizer):
        return None
    section = run.recipe.problems
    turns = [
        *chat_turns(prompt.problem, section), Message("assistant", section.prefill + _SAID)
    ]  # fmt: skip
    return apply_template(turns, run.policy.tokenizer, where=prompt.problem.id, generation=False)


def end_of_turn_unknown(run: Session) -> str | None:
    """The token that the template writes after an answer is one that ends a completion."""
    text = _finished(run.prompts[0], run)
    if text is None or _SAID not in text:
        return None
    after = encode(text[text.rfind(_SAID) + len(_SAID) :], run.policy.tokenizer, special=False)
    ends = end_token_ids(run.policy.tokenizer, run.policy.model)
    if not after or any(i in ends for i in after):
        return None
    shown = run.policy.tokenizer.decode(list(after))
    return f"the chat template ends an answer with {shown!r}, and none of its tokens ends a sample"


def template_mismatch(run: Session) -> str | None:
    """What the model is trained behind is what the template writes before an answer."""
    prompt = run.prompts[0]
    text = _finished(prompt, run)
    whole = len(prompt.token_ids) < run.recipe.problems.max_prompt_tokens
    if text is None or not whole or text.startswith(prompt.text):
        return None
    at = next((i for i, (a, b) in enumerate(zip(prompt.text, text, strict=False)) if a != b), 0)
    return (
        f"prompt and finished conversation part at character {at}: the prompt goes on with "
        f"{prompt.text[at : at + 40]!r}, the conversation with {text[at : at + 40]!r}"
    )


def prompt_tokens_differ(run: Session) -> str | None:
    """A prompt's tokens are those of its text, under the tokenizer that is saved with the model."""
    prompt = run.prompts[0]
    if len(prompt.token_ids) >= run.recipe.problems.max_prompt_tokens:
        return None
    special = not has_template(run.policy.tokenizer)
    if encode(prompt.text, run.policy.tokenizer, special=special) == prompt.token_ids:
        return None
    return f"prompt of problem {prompt.problem.id!r}: its tokens are not those of its text"


def prompts_duplicated(run: Session) -> str | None:
    counts = Counter(p.token_ids for p in run.prompts)
    twice = sum(n - 1 for n in counts.values())
    if not twice:
        return None
    return f"{twice} of {len(run.prompts)} training prompts read the same as another one"


def prompt_empty(run: Session) -> str | None:
    empty = [p.problem.id for p in run.prompts if not p.problem.question.strip()]
    if not empty:
        return None
    return f"{len(empty)} problems have an empty question, for example {empty[0]!r}"


def heldout_in_training(run: Session) -> str | None:
    training = {p.token_ids for p in run.prompts}
    both = [p.problem.id for p in run.heldout if p.token_ids in training]
    if not both:
        return None
    return f"{len(both)} of {len(run.heldout)} held-out prompts are training prompts: {both[0]!r}"


def heldout_overlaps(run: Session) -> str | None:
    """Long runs of words on both sides; generated problems share their templates by design."""
    if run.recipe.problems.source.startswith(("words:", "sums:", "gym:")):
        return None
    lines = find_overlap([p.problem for p in run.prompts], [p.problem for p in run.heldout]).lines()
    return lines[0] if lines else None
