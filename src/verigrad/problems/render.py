"""Problem -> Prompt: system turn, worked examples, question, chat template, prefill.

What the model reads is ``Prompt.text``; ``Prompt.token_ids`` are its tokens and are what is fed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from verigrad.config import ProblemsSection
from verigrad.errors import ProblemError
from verigrad.types import Message, Problem, Prompt


def chat_turns(problem: Problem, section: ProblemsSection) -> tuple[Message, ...]:
    """Return the turns that the template is given: system, worked examples, then the problem's own.

    ``answer_format`` wraps the last user turn and the question of every worked example. A system
    turn of the problem itself gives way to ``system_prompt`` where the recipe sets one.
    """
    own = list(problem.messages)
    if not own or own[-1].role == "assistant":
        raise ProblemError(
            f"problem {problem.id!r} has no question at its end; its last turn must be the user's."
        )
    system: list[Message] = []
    if own[0].role == "system":
        system = [own.pop(0)]
    if section.system_prompt is not None:
        system = [Message("system", section.system_prompt)]
    examples: list[Message] = []
    for turn in section.few_shot:
        examples.append(Message("user", _formatted(turn.question, section)))
        examples.append(Message("assistant", turn.answer))
    last = max((i for i, m in enumerate(own) if m.role == "user"), default=None)
    if last is None:
        raise ProblemError(f"problem {problem.id!r} has no user turn, so there is no question.")
    own[last] = replace(own[last], content=_formatted(own[last].content, section))
    return (*system, *examples, *own)


def _formatted(question: str, section: ProblemsSection) -> str:
    """Plain replacement: a question may hold braces of its own."""
    return section.answer_format.replace("{question}", question)


def render(problem: Problem, section: ProblemsSection, tokenizer: Any) -> Prompt:
    """Return the prompt that the model reads, up to where the model goes on: the prefill.

    Without a chat template it is plain text: system prompt, worked examples and question, each on
    its own line. A prompt of more than ``max_prompt_tokens`` tokens loses its beginning under
    ``over_length = "truncate_left"`` and is a ProblemError otherwise (``render_all`` drops).
    """
    prompt = render_whole(problem, section, tokenizer)
    too_long = len(prompt.token_ids) - section.max_prompt_tokens
    if too_long <= 0:
        return prompt
    if section.over_length != "truncate_left":
        raise ProblemError(_too_long(prompt, section))
    token_ids = prompt.token_ids[too_long:]
    text = tokenizer.decode(
        list(token_ids), skip_special_tokens=False, clean_up_tokenization_spaces=False
    )
    return Prompt(problem, text, token_ids)


def render_all(
    problems: Sequence[Problem], section: ProblemsSection, tokenizer: Any
) -> tuple[list[Prompt], Mapping[str, int]]:
    """Return the prompts in order, and ``num_prompts num_dropped num_truncated max_tokens``.

    ``num_dropped`` counts prompts that ``over_length = "drop"`` left out. Raises ProblemError when
    a prompt is too long under ``"error"``, or when none is left.
    """
    prompts: list[Prompt] = []
    dropped = truncated = 0
    shortest: Prompt | None = None
    for problem in problems:
        prompt = render_whole(problem, section, tokenizer)
        if len(prompt.token_ids) > section.max_prompt_tokens:
            if section.over_length == "drop":
                dropped += 1
                if shortest is None or len(prompt.token_ids) < len(shortest.token_ids):
                    shortest = prompt
                continue
            prompt = render(problem, section, tokenizer)
            truncated += 1
        prompts.append(prompt)
    if shortest is not None and not prompts:
        raise ProblemError(f"all {dropped} prompts are too long. {_too_long(shortest, section)}")
    counts = {
        "num_prompts": len(prompts),
        "num_dropped": dropped,
        "num_truncated": truncated,
        "max_tokens": max((len(p.token_ids) for p in prompts), default=0),
    }
    return prompts, counts


def _too_long(prompt: Prompt, section: ProblemsSection) -> str:
    return (
        f"The prompt of problem {prompt.problem.id!r} has {len(prompt.token_ids)} tokens; "
        f"problems.max_prompt_tokens = {section.max_prompt_tokens}. Raise it, give fewer worked "
        'examples, or set problems.over_length to "drop" or "truncate_left".'
    )


def render_whole(problem: Problem, section: ProblemsSection, tokenizer: Any) -> Prompt:
    """Return the prompt whatever its length."""
    turns = chat_turns(problem, section)
    if has_template(tokenizer):
        text = apply_template(turns, tokenizer, where=problem.id, generation=True)
        if not text.endswith(section.prefill):
            # A template that opens <think> itself must not be given a second one.
            text += section.prefill
        return Prompt(problem, text, encode(text, tokenizer, special=False))
    text = plain_text(turns) + section.prefill
    return Prompt(problem, text, encode(text, tokenizer, special=True))


def has_template(tokenizer: Any) -> bool:
    return getattr(tokenizer, "chat_template", None) is not None


def plain_text(turns: Sequence[Message]) -> str:
    """Return ``question\\n`` for a base model; turns before it end with a blank line."""
    *before, last = turns
    shown: list[str] = []
    for turn in before:
        shown.append(turn.content + ("\n" if turn.role == "user" else "\n\n"))
    return "".join(shown) + last.content + "\n"


def apply_template(
    turns: Sequence[Message], tokenizer: Any, *, where: str, generation: bool
) -> str:
    """Return the text that the tokenizer's chat template makes of the turns."""
    from jinja2 import TemplateError

    messages = [{"role": m.role, "content": m.content} for m in turns]
    try:
        return tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=generation
        )
    except (TemplateError, TypeError, KeyError) as error:
        roles = ", ".join(m.role for m in turns)
        raise ProblemError(
            f"the chat template refused the turns ({roles}) of problem {where!r}: {error}. "
            "Where it knows no system turn, put the instruction into problems.answer_format."
        ) from None


def encode(text: str, tokenizer: Any, *, special: bool) -> tuple[int, ...]:
    """Token ids of a text; plain text gets the tokenizer's special tokens."""
    ids = tuple(tokenizer(text, add_special_tokens=special)["input_ids"])
    end = tokenizer.eos_token_id
    if special and ids and ids[-1] == end and not text.endswith(tokenizer.eos_token):
        # Some tokenizers close every text; a prompt that is to be continued must stay open.
        ids = ids[:-1]
    return ids
