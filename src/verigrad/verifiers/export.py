"""The way back: any verifier as a TRL reward function, or as a verl compute_score, with one call.

What BROKEN becomes there is stated, never a zero: TRL gets None (it leaves such a row out of the
sum), verl gets a VerifierError by default (it drops the row from the batch), or a number that the
caller chooses.
"""

# Rows and replies are other people's data: their types are checked at run time.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from verigrad.errors import UsageError, VerifierError
from verigrad.types import Completion, FinishReason, Message, Outcome, Problem, Verdict, Verifier

_GOLD_COLUMNS = ("answer", "solution", "ground_truth", "gold", "label", "target")
"""Columns that hold the gold answer, the first that is there."""


def as_trl_reward(
    verifier: Verifier, *, answer_column: str | None = None, name: str | None = None
) -> Callable[..., list[float | None]]:
    """Return ``f(prompts, completions, completion_ids=None, **columns) -> list[float | None]`` for
    TRL.

    Completions may be texts or message lists (the last assistant message is judged). BROKEN becomes
    None, which TRL leaves out. ``answer_column`` names the gold's column (by default answer,
    solution, ground_truth, ... in this order); all columns reach ``Problem.info``. Neighbouring
    rows of one problem are judged together. ``name`` is what TRL logs (``rewards/<name>/mean``).

    >>> from verigrad.verifiers import make_verifier
    >>> reward = as_trl_reward(make_verifier("number"))
    >>> texts = ["\\\\boxed{2}", "\\\\boxed{3}"]
    >>> reward(prompts=["1+1?"] * 2, completions=texts, answer=["2", "2"])
    [1.0, 0.0]
    """

    def reward(
        prompts: Sequence[Any],
        completions: Sequence[Any],
        completion_ids: Sequence[Sequence[int]] | None = None,
        **columns: Any,
    ) -> list[float | None]:
        n = len(completions)
        own = ("trainer_state", "log_extra", "log_metric", "environments")
        rows = {
            k: v
            for k, v in columns.items()
            if k not in own and isinstance(v, Sequence) and not isinstance(v, str) and len(v) == n
        }
        problems = [
            _problem(prompts[i], {k: v[i] for k, v in rows.items()}, answer_column, i)
            for i in range(n)
        ]
        ids = completion_ids or [None] * n
        said = [_completion(_text(c), t) for c, t in zip(completions, ids, strict=True)]
        return [verdict.reward for verdict in _judge_runs(verifier, problems, said)]

    reward.__name__ = reward.__qualname__ = name or verifier.name
    reward.__doc__ = f"verigrad's verifier {verifier.name}; None where the verdict is BROKEN."
    return reward


def as_verl_compute_score(
    verifier: Verifier, *, on_broken: Literal["raise"] | float = "raise"
) -> Callable[..., dict[str, float]]:
    """Return ``compute_score(data_source, solution_str, ground_truth, extra_info=None)`` for verl.

    It returns ``{"score": reward, "acc": 1.0 if correct, "unparsed": ..., "broken": ...}`` with the
    same keys for every row, as verl needs. ``extra_info`` reaches ``Problem.info`` (its
    ``question`` or ``prompt`` is the question). BROKEN raises VerifierError, upon which verl drops
    the row; a number instead becomes the score, with ``broken`` = 1.0 so that it can be counted.
    """
    if on_broken != "raise" and isinstance(on_broken, (str, bool)):
        raise UsageError(f"on_broken = {on_broken!r} is neither 'raise' nor a number.")

    def compute_score(
        data_source: str,
        solution_str: str,
        ground_truth: Any,
        extra_info: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> dict[str, float]:
        info = dict(extra_info or {})
        question = str(info.get("question", info.get("prompt", "")))
        answer = None if ground_truth is None else str(ground_truth)
        turns = (Message("user", question),)
        problem = Problem(str(info.get("index", "0")), turns, answer, str(data_source), info)
        verdict = verifier.verify(problem, [_completion(solution_str, None)])[0]
        score = verdict.reward
        if score is None:
            if on_broken == "raise":
                raise VerifierError(f"{verifier.name}: {verdict.reason}")
            score = float(on_broken)
        return {
            "score": score,
            "acc": float(verdict.outcome is Outcome.CORRECT),
            "unparsed": float(verdict.outcome is Outcome.UNPARSED),
            "broken": float(verdict.outcome is Outcome.BROKEN),
        }

    return compute_score


def _judge_runs(
    verifier: Verifier, problems: Sequence[Problem], completions: Sequence[Completion]
) -> list[Verdict]:
    """Judge neighbouring completions of equal problems in one call: a group costs one."""
    verdicts: list[Verdict] = []
    start = 0
    for end in range(1, len(problems) + 1):
        if end < len(problems) and _same(problems[end], problems[start]):
            continue
        verdicts += verifier.verify(problems[start], completions[start:end])
        start = end
    return verdicts


def _same(a: Problem, b: Problem) -> bool:
    try:
        return bool(a.messages == b.messages and a.answer == b.answer and a.info == b.info)
    except ValueError:  # columns that hold arrays have no single truth value: judge them one by one
        return False


def _problem(prompt: Any, row: dict[str, Any], answer_column: str | None, index: int) -> Problem:
    if answer_column is not None and answer_column not in row:
        has = ", ".join(sorted(row)) or "none"
        raise UsageError(
            f"answer_column = {answer_column!r} is not a column of the rows (columns: {has})."
        )
    found = answer_column or next((c for c in _GOLD_COLUMNS if row.get(c) is not None), None)
    gold = None if found is None else row[found]
    turns = (
        (Message("user", prompt),)
        if isinstance(prompt, str)
        else tuple(Message(str(t["role"]), _content(t)) for t in prompt)
    )
    answer = None if gold is None else str(gold)
    return Problem(str(row.get("id", index)), turns, answer, str(row.get("data_source", "")), row)


def _text(completion: Any) -> str:
    """The completion's text; of a message list, what the assistant said last."""
    if isinstance(completion, str):
        return completion
    said = [_content(turn) for turn in completion if turn.get("role") == "assistant"]
    return said[-1] if said else ""


def _content(turn: Mapping[str, Any]) -> str:
    """The text of a message; of one in blocks, its text blocks; of a tool call, nothing."""
    content: Any = turn.get("content")
    if isinstance(content, str) or content is None:
        return content or ""
    return "".join(str(block.get("text", "")) for block in content)


def _completion(text: str, token_ids: Sequence[int] | None) -> Completion:
    """Without token ids, one stand-in for every four characters (length rewards need the real
    ones)."""
    ids = tuple(range((len(text) + 3) // 4)) if token_ids is None else tuple(token_ids)
    return Completion(text, ids, (0.0,) * len(ids), FinishReason.STOP)
