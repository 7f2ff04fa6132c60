"""Structure of a completion: thinking, then an answer. Sees the prompt's tail, so a prefilled
<think> counts."""

from __future__ import annotations

import re
from typing import ClassVar, Literal

from verigrad.types import Completion, Problem, Verdict
from verigrad.verifiers.answers import boxes
from verigrad.verifiers.base import TextVerifier, graded

Style = Literal["think", "think_answer", "answer", "boxed"]

_TURN_MARKS = ("<|", "|>", "[/INST]", "</s>", "<start_of_turn>", "<end_of_turn>")
"""What chat templates put between turns: a <think> before one of them was said by somebody else."""
_TAGS = {
    "think": ("think",),
    "think_answer": ("think", "answer"),
    "answer": ("answer",),
    "boxed": (),
}


class FormatVerifier(TextVerifier):
    """The completion thinks inside <think> tags and answers after them (R1's format reward),
    each part once."""

    kind: ClassVar[str] = "format"

    style: Style = "think"
    """think: <think>...</think> then an answer; think_answer: the answer inside <answer> tags
    and nothing after; answer: <answer> tags only; boxed: exactly one box after any thinking."""
    credit: Literal["all", "steps"] = "all"
    """all: 1 or 0; steps: the share of the structure's requirements that hold (its outcome is
    still all or nothing)."""
    allow_empty_thinking: bool = False
    """Accept thinking that is empty; a template that prefills an empty one is always accepted."""

    def judge(self, problem: Problem, completion: Completion) -> Verdict:
        failed, total = self._failed(completion.text, prefilled_thinking(completion.prompt_tail))
        if self.credit == "steps":
            return graded(1 - len(failed) / total, correct=not failed, reason="; ".join(failed))
        return Verdict.correct() if not failed else Verdict.wrong("; ".join(failed))

    def render_gold(self, problem: Problem) -> str | None:
        answer = problem.answer or "42"
        body = {
            "think_answer": f"<answer>{answer}</answer>",
            "answer": f"<answer>{answer}</answer>",
        }
        end = body.get(self.style, f"The answer is \\boxed{{{answer}}}.")
        start = "<think>\nI work it out.\n</think>\n" if "think" in _TAGS[self.style] else ""
        return start + end

    def _failed(self, text: str, prefill: str) -> tuple[list[str], int]:
        """The requirements that do not hold, as sentences, and how many there are."""
        whole = prefill + text
        tags = _TAGS[self.style]
        failed: list[str] = []
        total = 0
        for tag in tags:
            total += 2
            opened, closed = whole.count(f"<{tag}>"), whole.count(f"</{tag}>")
            if opened != 1:
                failed.append(f"<{tag}> stands {opened} times, not once")
            if closed != 1:
                failed.append(f"</{tag}> stands {closed} times, not once")
        total += 2
        if failed:
            return [*failed, "no ordered thinking", "no answer in its place"], total
        if "think" in tags and (why := self._thinking_fault(whole, prefill)):
            failed.append(why)
        if why := self._answer_fault(whole.rpartition("</think>")[2]):
            failed.append(why)
        return failed, total

    def _thinking_fault(self, whole: str, prefill: str) -> str | None:
        match = re.match(r"\s*<think>(.*?)</think>", whole, re.DOTALL)
        if match is None:
            return "the completion does not start with thinking"
        if match[1].strip() or self.allow_empty_thinking or "</think>" in prefill:
            return None
        return "the thinking is empty"

    def _answer_fault(self, rest: str) -> str | None:
        """Why ``rest``, what follows the thinking, is no answer in this style."""
        if self.style == "boxed":
            count = len(boxes(rest))
            return (
                None
                if count == 1 and boxes(rest)[0].strip()
                else f"{count} boxes that hold an answer, not one"
            )
        if self.style in ("think_answer", "answer"):
            before = r"\s*" if self.style == "think_answer" else r".*"
            match = re.fullmatch(rf"{before}<answer>(.*)</answer>\s*", rest, re.DOTALL)
            if match is None:
                return "the <answer> is not the end of the completion"
            return None if match[1].strip() else "the <answer> is empty"
        return None if rest.strip() else "no answer follows the thinking"


def prefilled_thinking(prompt_tail: str) -> str:
    """Return the thinking that the prompt already began (``<think>`` and what follows it), or
    ``""``.

    ``prompt_tail`` is the end of the prompt. A <think> that a turn mark follows belongs to another
    turn.
    """
    start = prompt_tail.rfind("<think>")
    if start < 0:
        return ""
    tail = prompt_tail[start:]
    return "" if any(mark in tail for mark in _TURN_MARKS) else tail
