"""Multiple choice: one asserted option, as its letter, its number or its text."""

# Rows and replies are other people's data: their types are checked at run time.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from verigrad.types import Completion, Problem, Verdict
from verigrad.verifiers.answers import Place, after_thinking, find_answer, plain_text
from verigrad.verifiers.base import TextVerifier, column
from verigrad.verifiers.string import render_answer

MAX_CHARACTERS = 2000
"""Longest text that is read as an option; the patterns below are quadratic in the worst case."""
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

_LABELLED = re.compile(r"[\[(*_]*\b([A-Z])\b[\])*_]*(?:[.:)]|\s*[-–]|\s*$)")
_ALONE = re.compile(r"[\[(*_\s]*(?:option|choice)?\s*[\[(*_]*([A-Za-z])[\])*_.:\s]*", re.IGNORECASE)
_SAID = re.compile(
    r"(?i:answer|option|choice)[*_]*\s*(?:is|:|=)?[*_]*\s*(?i:option|choice)?\s*[\[(*_$]*([A-Z])\b(?!['’])"
)


class ChoiceVerifier(TextVerifier):
    """The option that is asserted is the gold one; several different options assert nothing."""

    kind: ClassVar[str] = "choice"

    mode: Literal["strict", "lenient"] = "strict"
    """lenient: without a box or tag, the last "answer is (B)" or a last line that is one option
    counts."""
    place: Place = "auto"
    """Where the answer stands: auto (box, else tag), box, tag, line (the last one) or whole."""
    choices: str = "choices"
    """Column with the options' texts (a list, or letter = text); without it only letters are
    compared."""
    num_choices: int = 0
    """How many letters are options where there is no such column; 0 means A to J."""
    gold: str = "answer"
    """Column with the right option: its letter, its text, or its index from 0."""

    def judge(self, problem: Problem, completion: Completion) -> Verdict:
        labels, texts = self._options(problem)
        answer, why = find_answer(completion.text, place=self.place)
        if answer is None and self.mode == "lenient":
            answer, why = _said(completion.text)
        if answer is None:
            return Verdict.unparsed(why)
        label = read_choice(answer, labels, texts)
        if label is None:
            return Verdict.unparsed(
                f"{answer[:60]!r} is not one of the options {', '.join(labels)}"
            )
        gold = self._gold(problem)
        return (
            Verdict.correct(extracted=label)
            if label == gold
            else Verdict.wrong("another option", label)
        )

    def check_gold(self, problem: Problem) -> str | None:
        labels, _ = self._options(problem)
        if self._gold(problem) is None:
            value = column(problem, self.gold)
            return (
                f"column {self.gold!r} holds {value!r}, which is none of the options "
                f"{', '.join(labels)}"
            )
        return None

    def render_gold(self, problem: Problem) -> str | None:
        gold = self._gold(problem)
        return None if gold is None else render_answer(gold, self.place)

    def _options(self, problem: Problem) -> tuple[list[str], list[str]]:
        """Labels and texts of the options, in order; texts are empty where the row has none."""
        value: Any = column(problem, self.choices)
        if isinstance(value, Mapping) and isinstance(value.get("text"), Sequence):
            labels = [str(v) for v in value.get("label") or LETTERS[: len(value["text"])]]
            return labels, [str(v) for v in value["text"]]
        if isinstance(value, Mapping):
            return [str(k) for k in value], [str(v) for v in value.values()]
        if isinstance(value, Sequence) and not isinstance(value, str):
            return list(LETTERS[: len(value)]), [str(v) for v in value]
        return list(LETTERS[: self.num_choices or 10]), []

    def _gold(self, problem: Problem) -> str | None:
        value = column(problem, self.gold)
        labels, texts = self._options(problem)
        said = str(value).strip()
        if said.isdecimal() and said not in labels and said not in texts:
            return labels[int(said)] if int(said) < len(labels) else None
        return None if value is None else read_choice(str(value), labels, texts)


def read_choice(answer: str, labels: Sequence[str], texts: Sequence[str] = ()) -> str | None:
    """Return the label that the answer asserts ("B", "(b)", "B) Paris", "Paris"), or None."""
    said = plain_text(answer[:MAX_CHARACTERS])
    known = {label.casefold(): label for label in labels}
    folded = {
        " ".join(t.casefold().split()).rstrip("."): la for la, t in zip(labels, texts, strict=False)
    }
    as_text = folded.get(" ".join(said.casefold().split()).rstrip("."))
    if as_text is not None and list(folded.values()).count(as_text) == 1:
        return as_text
    if said.casefold() in known:
        return known[said.casefold()]
    if match := _ALONE.fullmatch(said):
        return known.get(match[1].casefold())
    found = {m[1] for m in _LABELLED.finditer(said)} & set(labels)
    starts = _LABELLED.match(said)
    if len(found) == 1 and starts:
        label = found.pop()
        rest = " ".join(said[starts.end() :].casefold().split()).strip(" .)*_")
        return label if not texts or not rest or folded.get(rest) in (None, label) else None
    return None


def _said(text: str) -> tuple[str | None, str]:
    """The option of the last "answer is (B)", or a last line that is nothing but an option."""
    rest = after_thinking(text)[-MAX_CHARACTERS:]
    if found := _SAID.findall(rest):
        return found[-1], ""
    lines = rest.strip().splitlines()
    if lines and (match := _ALONE.fullmatch(lines[-1])):
        return match[1].upper(), ""
    return None, "no option is asserted after the thinking"
