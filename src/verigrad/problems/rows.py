r"""Row -> Problem: the question as chat turns, the gold answer as text, the worked solution.

Everything but the question stays in ``info`` untouched. GSM8K's ``work <<1+1=2>> #### 2`` becomes
the answer ``2`` and ``info["solution"]`` without the annotations, ending in ``\boxed{2}``.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from verigrad.errors import ProblemError
from verigrad.problems.columns import Columns, cell
from verigrad.problems.files import Row
from verigrad.types import Message, Problem

_ID_NAMES = ("id", "unique_id", "task_id", "problem_id", "question_id", "uid", "uuid")
_SOURCE_NAMES = ("data_source", "dataset")
_ROLES = ("system", "user", "assistant", "tool")
_GSM8K = re.compile(r"(?P<work>.*?)\s*####\s*(?P<answer>[^\n]+?)\s*", re.DOTALL)
_ANNOTATION = re.compile(r"<<[^<>]*>>")
_QUESTION_WORDS = ("how", "what", "which", "who", "when", "where", "find", "calculate")


def make_problems(
    rows: Sequence[Row], columns: Columns, *, label: str
) -> tuple[list[Problem], Counter[str]]:
    """Return the problems of the rows and how many rows were dropped, by reason.

    A row with an empty question or answer is dropped and counted; one whose question is no text is
    a ProblemError with its place. ``label`` is the data source of rows that do not name their own.
    """
    dropped: Counter[str] = Counter()
    problems: list[Problem] = []
    ids = _ids(rows, label)
    for id_, row in zip(ids, rows, strict=True):
        messages, solution = _messages(row, columns)
        for message in messages:
            _check_unicode(message.content, row, columns.prompt)
        if not any(m.role == "user" and m.content.strip() for m in messages):
            dropped["empty question"] += 1
            continue
        answer = None
        info = {k: v for k, v in row.columns.items() if k != columns.prompt}
        if columns.answer is not None:
            answer, worked = _answer(cell(row.columns, columns.answer), row.place, columns.answer)
            if answer is None:
                dropped["no answer"] += 1
                continue
            solution = worked or solution
        if solution is not None and (columns.answer == "solution" or "solution" not in info):
            info["solution"] = solution
        problems.append(Problem(id_, messages, answer, _data_source(row, label), info))
    return problems, dropped


def _ids(rows: Sequence[Row], label: str) -> list[str]:
    """The row's own ids where every row has a different one, else ``label:number``.

    A whole number counts the rows of one file, so it gets the label in front: ids of two files
    must not meet by accident.
    """
    first = {name.casefold(): name for name in rows[0].columns}
    for name in _ID_NAMES:
        if name not in first:
            continue
        values = [row.columns.get(first[name]) for row in rows]
        if all(isinstance(v, str) and v for v in values) and len(set(values)) == len(values):
            return [str(v) for v in values]
        if all(type(v) is int for v in values) and len(set(values)) == len(values):
            return [f"{label}:{v}" for v in values]
    return [f"{label}:{number}" for number in range(1, len(rows) + 1)]


def _data_source(row: Row, label: str) -> str:
    for name in _SOURCE_NAMES:
        value = row.columns.get(name)
        if isinstance(value, str) and value:
            return value
    return label


def _messages(row: Row, columns: Columns) -> tuple[tuple[Message, ...], str | None]:
    """The question as turns, and the assistant's closing turn where the row has one."""
    value = cell(row.columns, columns.prompt)
    if columns.body is not None:
        body = cell(row.columns, columns.body)
        if not isinstance(body, str) or not isinstance(value, str):
            bad = columns.prompt if isinstance(body, str) else columns.body
            raise _not_text(row, bad, cell(row.columns, bad))
        value = _join(body, value)
    if isinstance(value, str):
        return (Message("user", value.strip()),), None
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]
    if not isinstance(value, list) or not value:
        raise _not_text(row, columns.prompt, value)
    turns = [_turn(turn, row, columns.prompt) for turn in value]
    solution = turns.pop().content if turns[-1].role == "assistant" else None
    if not any(turn.role == "user" for turn in turns):
        raise ProblemError(f"{row.place}: the turns in {columns.prompt!r} have none of the user.")
    return tuple(turns), solution


def _check_unicode(text: str, row: Row, name: str) -> None:
    """JSON can write half a character, which no tokenizer takes."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ProblemError(
            f"{row.place}: column {name!r} has a lone surrogate {text[error.start]!a} at character "
            f"{error.start}, which is not a character. Mend or remove the row."
        ) from None


def _turn(turn: Any, row: Row, name: str) -> Message:
    if not isinstance(turn, Mapping):
        raise _not_text(row, name, turn)
    role, content = turn.get("role"), turn.get("content")
    if isinstance(content, list) and all(
        isinstance(p, Mapping) and p.get("type") == "text" and isinstance(p.get("text"), str)
        for p in content
    ):
        content = "".join(part["text"] for part in content)
    if role not in _ROLES or not isinstance(content, str):
        raise ProblemError(
            f"{row.place}: a turn in {name!r} is {_short(turn)}. A turn is an object with role "
            f"({', '.join(_ROLES)}) and content (a text)."
        )
    return Message(role, content)


def _not_text(row: Row, name: str, value: Any) -> ProblemError:
    what = "missing" if name.split(".")[0] not in row.columns else _short(value)
    return ProblemError(
        f"{row.place}: column {name!r} is {what}; a question is a text or a list of chat turns. "
        "Mend the row, or set problems.prompt_column to another column."
    )


def _short(value: Any) -> str:
    shown = repr(value)
    return f"{shown if len(shown) <= 80 else shown[:77] + '...'} ({type(value).__name__})"


def _join(body: str, question: str) -> str:
    """SVAMP's two halves as one text; a body that stops in mid-sentence goes on with a comma."""
    body, question = body.strip(), question.strip()
    if not body or not question or body[-1] in ".?!:,;":
        return f"{body} {question}".strip()
    if question.split()[0].casefold() in _QUESTION_WORDS:
        question = question[0].lower() + question[1:]
    return f"{body}, {question}"


def _answer(value: Any, place: str, name: str) -> tuple[str | None, str | None]:
    """The gold answer as text (None where empty), and the worked solution if the value has one."""
    if isinstance(value, (list, tuple)) and len(value) == 1:
        value = value[0]
    if value is None or (isinstance(value, str) and not value.strip()) or value in ([], {}):
        return None, None
    if isinstance(value, bool):
        return str(value), None
    if isinstance(value, (int, float)):
        return number_text(value, place, name), None
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False, default=str), None
    text = value.strip()
    if match := _GSM8K.fullmatch(text):
        answer = match["answer"].replace(",", "").lstrip("$")
        work = _ANNOTATION.sub("", match["work"]).strip()
        closing = f"The answer is \\boxed{{{answer}}}."
        return answer, f"{work}\n{closing}" if work else closing
    if name.casefold() == "solution" and (boxed := last_box(text)) is not None and boxed != text:
        return boxed, text
    return text, None


def number_text(value: int | float, place: str, name: str) -> str:
    """``43.0`` is the answer ``43``; a number that is none (nan) is a ProblemError."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ProblemError(f"{place}: column {name!r} is {value}, which is no answer.")
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def last_box(text: str) -> str | None:
    r"""Return what the last balanced ``\boxed{...}`` holds, None where there is none."""
    start = text.rfind("\\boxed{")
    if start < 0:
        return None
    depth, begin = 0, start + len("\\boxed{")
    for i in range(begin - 1, len(text)):
        if text[i] in "{}" and text[i - 1] != "\\":
            depth += 1 if text[i] == "{" else -1
            if depth == 0:
                return text[begin:i]
    return None
