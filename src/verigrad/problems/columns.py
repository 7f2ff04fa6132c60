"""Which column holds the question, which the gold answer; ambiguity is refused, never guessed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from verigrad.errors import ProblemError, nearest
from verigrad.problems.files import Row

PROMPT_NAMES = ("prompt", "question", "problem", "messages")
SECOND_PROMPT_NAMES = ("input", "query")
"""Looked at only where none of the first is there: ``input`` is often a mere part of a question."""
ANSWER_NAMES = (
    "answer",
    "ground_truth",
    "reward_model.ground_truth",
    "solution",
    "label",
    "target",
    "final_answer",
    "expected_answer",
)
BODY = "body"
NO_ANSWER = "none"
"""``problems.answer_column = "none"``: the verifier needs no gold answer."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The choice: ``prompt`` and ``body`` are joined where a body is set; ``answer`` may be None.

    ``reasons`` are the lines a person reads.
    """

    prompt: str
    answer: str | None
    body: str | None
    reasons: tuple[str, ...]


def choose_columns(
    rows: Sequence[Row],
    *,
    prompt_column: str | None,
    answer_column: str | None,
    where: str,
    optional: bool = False,
) -> Columns:
    """Return the columns of question and answer; ProblemError when one is missing or several fit.

    ``where`` names the source in messages. Names are matched without regard to case; a dotted name
    looks into a nested column. With ``optional`` a column that is set but not there is found by
    name: a held-out source may have other columns than the training source they are set for.
    """
    names = _names(rows)
    if optional:
        prompt_column = prompt_column if prompt_column in names else None
        answer_column = answer_column if answer_column in (*names, NO_ANSWER) else None
    prompt, body, why_prompt = _prompt(rows, names, prompt_column, where)
    answer, why_answer = _answer(rows, names, answer_column, where, taken=prompt)
    return Columns(prompt, answer, body, (why_prompt, why_answer))


def cell(columns: Mapping[str, Any], name: str) -> Any:
    """The value of a column, dotted for nested ones; None where there is none."""
    if name in columns:
        return columns[name]
    value: Any = columns
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return value


def _names(rows: Sequence[Row]) -> list[str]:
    """All column names in order of appearance, with nested ones dotted one level deep."""
    found: dict[str, None] = {}
    for row in rows:
        for name, value in row.columns.items():
            found.setdefault(name)
            if isinstance(value, Mapping):
                for inner in value:
                    found.setdefault(f"{name}.{inner}")
    return list(found)


def _among(names: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """Existing names that match wanted ones, in the order wanted."""
    return [name for want in wanted for name in names if name.casefold() == want]


def _prompt(
    rows: Sequence[Row], names: Sequence[str], given: str | None, where: str
) -> tuple[str, str | None, str]:
    if given is not None:
        return (
            _given(names, given, "problems.prompt_column", where),
            None,
            f"question: {given!r}, as set",
        )
    body = _among(names, (BODY,))
    question = _among(names, ("question",))
    if body and question:
        return question[0], body[0], f"question: {body[0]!r} followed by {question[0]!r}"
    found = _among(names, PROMPT_NAMES) or _among(names, SECOND_PROMPT_NAMES)
    if not found:
        raise _missing("question", "problems.prompt_column", PROMPT_NAMES, names, where)
    chosen, why = _only(rows, found, "question", "problems.prompt_column", where)
    return chosen, None, why


def _answer(
    rows: Sequence[Row], names: Sequence[str], given: str | None, where: str, *, taken: str
) -> tuple[str | None, str]:
    key = "problems.answer_column"
    if given == NO_ANSWER and NO_ANSWER not in names:
        return None, 'answer: none, as set (answer_column = "none")'
    if given is not None:
        return _given(names, given, key, where), f"answer: {given!r}, as set"
    found = [name for name in _among(names, ANSWER_NAMES) if name != taken]
    if not found:
        raise _missing("answer", key, ANSWER_NAMES, names, where)
    worked = [name for name in found if name.casefold() == "solution"]
    if worked and len(found) > 1:
        # MATH and its kin hold both: the short answer is gold, the solution shows the work.
        found = [name for name in found if name not in worked]
        chosen, why = _only(rows, found, "answer", key, where)
        return chosen, f"{why}; {worked[0]!r} is the worked solution"
    return _only(rows, found, "answer", key, where)


def _given(names: Sequence[str], given: str, key: str, where: str) -> str:
    if given not in names:
        raise ProblemError(f"{key} = {given!r}: {where} has no such column.{nearest(given, names)}")
    return given


def _only(
    rows: Sequence[Row], found: Sequence[str], what: str, key: str, where: str
) -> tuple[str, str]:
    """The one candidate; several are fine only where they say the same in every row."""
    first, *others = found
    if not others:
        return first, f"{what}: {first!r}, the only column with a name for it"
    if all(cell(r.columns, o) == cell(r.columns, first) for r in rows for o in others):
        return first, f"{what}: {first!r} (equal to {', '.join(map(repr, others))} in every row)"
    raise ProblemError(
        f"{where} has several columns that may be the {what}: {', '.join(map(repr, found))}. "
        f"Say which: {key} = {first!r}."
    )


def _missing(
    what: str, key: str, wanted: Sequence[str], names: Sequence[str], where: str
) -> ProblemError:
    more = ' (or "none" where the verifier needs no gold answer)' if what == "answer" else ""
    return ProblemError(
        f"{where} has no column for the {what} (looked for {', '.join(wanted)}). "
        f"Its columns are: {', '.join(names)}. Set {key}{more}."
    )
