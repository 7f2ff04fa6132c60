"""Short ways to make problems and completions."""

from typing import Any

from verigrad.types import Completion, FinishReason, Message, Problem, Verdict, Verifier


def problem(answer: str | None = "42", question: str = "q?", **info: Any) -> Problem:
    return Problem("p1", (Message("user", question),), answer, "tests", info)


def completion(text: str, num_tokens: int = 3, prompt_tail: str = "") -> Completion:
    ids = tuple(range(num_tokens))
    return Completion(text, ids, (0.0,) * num_tokens, FinishReason.STOP, prompt_tail=prompt_tail)


def judge(verifier: Verifier, text: str, answer: str | None = "42", **info: Any) -> Verdict:
    return verifier.verify(problem(answer, **info), [completion(text)])[0]


def outcome(verifier: Verifier, text: str, answer: str | None = "42", **info: Any) -> str:
    return str(judge(verifier, text, answer, **info).outcome)
