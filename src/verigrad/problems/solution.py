r"""Worked solutions: what a supervised cold start learns from, as prompt and completion tokens.

``worked_solution`` finds the text, ``render_solution`` turns it into exactly the tokens that the
chat template would write, so that the supervised start and the rollouts read the same prompts.
"""

from __future__ import annotations

from typing import Any

from verigrad.config import ProblemsSection
from verigrad.errors import ProblemError
from verigrad.problems.render import (
    apply_template,
    chat_turns,
    encode,
    has_template,
    plain_text,
    render_whole,
)
from verigrad.types import Message, Problem, Prompt


def worked_solution(problem: Problem) -> str | None:
    r"""Return ``info["solution"]`` where it is a text that ends in ``\boxed{...}``, else None.

    Generated problems, GSM8K's worked answers and MATH's solutions have one.
    """
    text = problem.info.get("solution")
    return text if isinstance(text, str) and "\\boxed{" in text else None


def render_solution(
    problem: Problem, section: ProblemsSection, tokenizer: Any, *, solution: str
) -> tuple[Prompt, tuple[int, ...]]:
    """Return the prompt of ``render`` and the tokens of the solution, which end in the EOS token.

    Prompt and completion ids one after the other are exactly what the template gives for the whole
    conversation, up to and including the end of the assistant's turn; this is checked, and a
    template or tokenizer for which it is not so is a ProblemError that says where they part.
    The prompt must not exceed ``max_prompt_tokens``.
    """
    if not solution.strip():
        raise ProblemError(f"the solution of problem {problem.id!r} is empty.")
    if tokenizer.eos_token_id is None:
        raise ProblemError("the tokenizer has no EOS token, so a solution could not end.")
    prompt = render_whole(problem, section, tokenizer)
    if len(prompt.token_ids) > section.max_prompt_tokens:
        raise ProblemError(
            f"the prompt of problem {problem.id!r} has {len(prompt.token_ids)} tokens; "
            f"problems.max_prompt_tokens = {section.max_prompt_tokens}. Raise it, or leave this "
            "problem out of the supervised start."
        )
    turns = chat_turns(problem, section)
    if has_template(tokenizer):
        reply = Message("assistant", section.prefill + solution)
        whole = apply_template((*turns, reply), tokenizer, where=problem.id, generation=False)
        ids = encode(whole, tokenizer, special=False)
    else:
        whole = plain_text(turns) + section.prefill + solution + tokenizer.eos_token
        ids = encode(whole, tokenizer, special=True)
    _check_text(problem, prompt, whole, solution)
    return prompt, _completion(problem, prompt, ids, tokenizer)


def _check_text(problem: Problem, prompt: Prompt, whole: str, solution: str) -> None:
    """The conversation must begin with the prompt and still hold the whole solution after it."""
    if not whole.startswith(prompt.text):
        at = next(
            (i for i, (a, b) in enumerate(zip(prompt.text, whole, strict=False)) if a != b),
            min(len(prompt.text), len(whole)),
        )
        raise ProblemError(
            f"problem {problem.id!r}: with the solution the chat template writes "
            f"{whole[at : at + 40]!r} where the prompt has {prompt.text[at : at + 40]!r}, so the "
            "supervised start would read other prompts than the rollouts. Change "
            "problems.prefill or model.chat_template."
        )
    if solution.strip() not in whole[len(prompt.text) :]:
        raise ProblemError(
            f"problem {problem.id!r}: the chat template alters the solution (it leaves out or "
            "rewrites a part, often the thinking). Set model.chat_template to one that keeps it."
        )


def _completion(
    problem: Problem, prompt: Prompt, ids: tuple[int, ...], tokenizer: Any
) -> tuple[int, ...]:
    start = len(prompt.token_ids)
    if ids[:start] != prompt.token_ids:
        at = next(i for i, (a, b) in enumerate(zip(prompt.token_ids, ids, strict=False)) if a != b)
        raise ProblemError(
            f"problem {problem.id!r}: the tokenizer joins the end of the prompt "
            f"{prompt.text[-20:]!r} with the beginning of the solution (token {at} differs), so "
            "their tokens cannot be told apart. Begin the solution with another character or end "
            "problems.prefill at a token of its own."
        )
    rest = ids[start:]
    if tokenizer.eos_token_id not in rest:
        raise ProblemError(
            f"problem {problem.id!r}: the chat template does not end the assistant's turn with the "
            f"EOS token {tokenizer.eos_token!r}, so a model trained on it would never stop. "
            "Set the tokenizer's EOS to the template's end of turn."
        )
    return rest[: rest.index(tokenizer.eos_token_id) + 1]
