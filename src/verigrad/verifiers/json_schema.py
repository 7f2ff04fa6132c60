"""Structured output: the answer is JSON, fits a schema, and (if wanted) has the gold's values."""

# Rows and replies are other people's data: their types are checked at run time.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field, PrivateAttr, field_validator

from verigrad.types import Completion, Problem, Verdict
from verigrad.verifiers.answers import after_thinking
from verigrad.verifiers.base import TextVerifier, column, graded
from verigrad.verifiers.foreign.verifier import ForeignVerifier
from verigrad.verifiers.isolated import isolated
from verigrad.verifiers.jsonvalid import (
    SchemaError,
    check_schema,
    first_fault,
    has_patterns,
    read_json,
    same,
)

MAX_CHARACTERS = 200_000
"""Longest answer that is parsed."""
_FENCE = re.compile(r"```(?:json|JSON)?[ \t]*\n(.*?)\n[ \t]*```", re.DOTALL)


class JsonSchemaVerifier(TextVerifier):
    """The answer is one JSON value that fits a schema; with ``match`` its values are the gold's,
    too."""

    kind: ClassVar[str] = "json_schema"

    definition: dict[str, Any] | None = None
    """The schema (draft 2020-12), the same for all problems."""
    column: str = "schema"
    """Column with each problem's own schema (a table or JSON text), where ``definition`` is not
    given."""
    match: Literal["schema", "equal", "fields"] = "schema"
    """schema: valid is correct; equal: it must equal the gold JSON; fields: the share of the
    gold's top-level fields that are equal is the reward."""
    fenced: Literal["allowed", "required", "refused"] = "allowed"
    """Whether the JSON may, must or must not stand in a ``` block; otherwise it is all of the
    answer."""
    deadline_s: float = Field(default=5.0, gt=0)
    """Seconds one check may take, for a schema with patterns (those are matched in a worker)."""

    _worker: ForeignVerifier | None = PrivateAttr(default=None)

    @field_validator("definition")
    @classmethod
    def _usable(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        if value is not None:
            check_schema(value)
        return value

    def verify(self, problem: Problem, completions: Sequence[Completion]) -> list[Verdict]:
        """Return one verdict for each completion, in order."""
        schema = self._schema(problem)
        if not has_patterns(schema):
            return super().verify(problem, completions)
        if (fault := self.check_gold(problem)) is not None:
            return [Verdict.broken(fault) for _ in completions]
        if self._worker is None:
            arguments: dict[str, Any] = {"match": self.match, "fenced": self.fenced}
            if self.definition is not None:
                arguments["schema"] = self.definition
            self._worker = isolated(
                self.kind,
                "json_schema:judge_json",
                arguments=arguments,
                columns={"schema": self.column},
                deadline_s=self.deadline_s,
            )
        return self._worker.verify(problem, completions)

    def judge(self, problem: Problem, completion: Completion) -> Verdict:
        schema = self._schema(problem)
        return judge_json(
            completion.text, problem.answer, schema=schema, match=self.match, fenced=self.fenced
        )

    def check_gold(self, problem: Problem) -> str | None:
        schema = self._schema(problem)
        if schema is None:
            return f"no schema: neither the option definition nor a column {self.column!r}"
        try:
            check_schema(schema)
            if self.match != "schema":
                gold = read_json(problem.answer or "")
                if self.match == "fields" and not (isinstance(gold, dict) and gold):
                    return "match = 'fields' needs a gold that is a JSON object with fields"
                fault = first_fault(gold, schema)
                return None if fault is None else f"the gold does not fit the schema: {fault}"
        except SchemaError as error:
            return str(error)
        except ValueError as error:
            return f"the gold is not JSON: {error}"
        return None

    def render_gold(self, problem: Problem) -> str | None:
        if self.match == "schema" or problem.answer is None:
            return None
        return f"```json\n{problem.answer}\n```" if self.fenced == "required" else problem.answer

    def _schema(self, problem: Problem) -> Any:
        if self.definition is not None:
            return self.definition
        return _parsed(column(problem, self.column))


def judge_json(
    completion: str, answer: str | None = None, *, schema: Any, match: str, fenced: str
) -> Verdict:
    """Return the verdict on one completion; called in the worker where the schema has patterns."""
    text = _json_text(after_thinking(completion), fenced)
    if text is None:
        return Verdict.unparsed(f"no single JSON block (``` blocks are {fenced})")
    if len(text) > MAX_CHARACTERS:
        return Verdict.wrong(f"longer than {MAX_CHARACTERS} characters")
    try:
        value = read_json(text)
    except ValueError as error:
        return Verdict.unparsed(f"not JSON: {error}")
    if (fault := first_fault(value, _parsed(schema))) is not None:
        return Verdict.wrong(fault, text[:200])
    if match == "schema":
        return Verdict.correct(extracted=text[:200])
    gold = read_json(answer or "")
    if match == "equal":
        right = same(value, gold)
        return (
            Verdict.correct(extracted=text[:200]) if right else Verdict.wrong("differs", text[:200])
        )
    held: Mapping[str, Any] = value if isinstance(value, dict) else {}
    hits = {k: float(k in held and same(held[k], gold[k])) for k in gold}
    reward = sum(hits.values()) / len(hits)
    return graded(reward, correct=reward == 1, extracted=text[:200], parts=hits)


def _parsed(schema: Any) -> Any:
    """A schema may be a table or JSON text; text that is no JSON stays text, which no schema is."""
    if isinstance(schema, str):
        with contextlib.suppress(ValueError):
            return json.loads(schema)
    return schema


def _json_text(text: str, fenced: str) -> str | None:
    blocks = _FENCE.findall(text) if fenced != "refused" else []
    if len(blocks) == 1:
        return blocks[0]
    if blocks or fenced == "required":
        return None
    return text.strip() or None
