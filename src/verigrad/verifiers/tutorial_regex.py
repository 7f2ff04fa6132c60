r"""The well-known broken reward of many tutorials, kept as a named case that an audit must
expose."""

from __future__ import annotations

import re
from typing import ClassVar

from verigrad.types import Completion, Problem, Verdict
from verigrad.verifiers.base import TextVerifier

_PATTERN = re.compile(r"\\\\boxed\{([^}]*)\}")
"""Two faults: it asks for two backslashes, and it stops at the first closing brace."""


class TutorialRegexVerifier(TextVerifier):
    r"""A broken reward on purpose: its regex asks for ``\\boxed`` and cuts ``\frac{1}{2}``.
    Never train on it."""

    kind: ClassVar[str] = "tutorial_regex"

    def judge(self, problem: Problem, completion: Completion) -> Verdict:
        found: list[str] = _PATTERN.findall(completion.text)
        if not found:
            return Verdict.wrong("the pattern matches nothing")
        hit = found[-1] == problem.answer
        return (
            Verdict.correct(extracted=found[-1])
            if hit
            else Verdict.wrong("another string", found[-1])
        )

    def check_gold(self, problem: Problem) -> str | None:
        return None if problem.answer else "the answer is empty"

    def render_gold(self, problem: Problem) -> str | None:
        return None if problem.answer is None else f"The answer is \\boxed{{{problem.answer}}}."
