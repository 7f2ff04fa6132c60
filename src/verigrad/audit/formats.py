r"""Does the prompt ask for what the verifier reads? Instructions, worked examples and the prefill.

A prompt that says ``\boxed{}`` beside a verifier that reads ``####`` trains the model towards
silence: nothing crashes, every reward is 0.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from verigrad.audit.calls import Call, Setting
from verigrad.audit.isolate import Caller
from verigrad.audit.near import core
from verigrad.audit.report import shown
from verigrad.config import ProblemsSection
from verigrad.types import Problem, Verifier

_ASKED: tuple[tuple[str, str, str], ...] = (
    (r"\\boxed", "\\boxed{}", "The answer is \\boxed{{{answer}}}."),
    (r"<answer>", "<answer>", "<answer>{answer}</answer>"),
    (r"####", "####", "#### {answer}"),
)
"""Pattern in the instruction, how it is called, and a right answer in that format."""


def refit_to_prefill(text: str, prompt_tail: str) -> str:
    """Return a rendering as the completion of a prompt that already ends in ``prompt_tail``.

    Behind a prefilled ``<think>`` the completion starts inside the thinking, and must close it.
    """
    if not prompt_tail.rstrip().endswith("<think>"):
        return text
    if re.match(r"\s*<think>", text):
        return re.sub(r"^\s*<think>\s*", "", text)
    return text if "</think>" in text else f"I work it out.\n</think>\n\n{text}"


def check_formats(
    verifier: Verifier,
    problems: Sequence[Problem],
    section: ProblemsSection,
    *,
    deadline_s: float = 30.0,
) -> tuple[int, list[str]]:
    """Return how many places of the prompt name a format, and what is wrong with them.

    A place is the instruction, the system prompt, or the worked examples.
    """
    wanted = _wanted(section)
    setting = Setting(verifier, tuple(problems), section.prefill)
    found: list[str] = []
    with Caller(setting, deadline_s=deadline_s, start_s=2 * deadline_s) as caller:
        for where, called, form in wanted:
            refused = _refused(caller, problems, form, section.prefill)
            if refused:
                found.append(
                    f"{where} asks for {called}, and {len(refused)} of {len(problems)} right "
                    f"answers in that format fail, such as {refused[0]}"
                )
        if section.few_shot:
            found += _examples(caller, section)
    return len(wanted) + bool(section.few_shot), found


def _wanted(section: ProblemsSection) -> list[tuple[str, str, str]]:
    texts = (
        ("problems.answer_format", section.answer_format),
        ("problems.system_prompt", section.system_prompt or ""),
    )
    return [
        (where, called, form)
        for where, text in texts
        for pattern, called, form in _ASKED
        if re.search(pattern, text)
    ]


def _refused(caller: Caller, problems: Sequence[Problem], form: str, prefill: str) -> list[str]:
    """Examples of right answers in the form that are refused, when all of them are.

    A format may be one half of what is asked (think tags around a box), so right answers are also
    tried behind a closed thinking part.
    """
    refused: list[str] = []
    for number, problem in enumerate(problems):
        if not problem.answer:
            continue
        said = refit_to_prefill(form.format(answer=core(problem.answer)), prefill)
        texts = (said, f"<think>\nI work it out.\n</think>\n\n{said}")
        (reply,) = caller.run([Call("verify", number, texts)])
        if reply.fault or any(s.outcome == "correct" or s.fault for s in reply.scores):
            return []
        refused.append(f"{problem.id}: {shown(said)} ({reply.scores[0].reason[:80]})")
    return refused


def _examples(caller: Caller, section: ProblemsSection) -> list[str]:
    """A worked example in which the verifier finds no answer teaches the wrong format."""
    texts = tuple(turn.answer for turn in section.few_shot)
    (reply,) = caller.run([Call("verify", 0, texts)])
    blank = [t for t, s in zip(texts, reply.scores, strict=False) if s.outcome == "unparsed"]
    if not blank:
        return []
    head = f"problems.few_shot: no answer is found in {len(blank)} of {len(texts)} worked examples"
    return [f"{head}, such as {shown(blank[0])}"]
