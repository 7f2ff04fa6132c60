"""Instructions that a program can check, in the manner of IFEval (arXiv 2311.07911): 38 kinds."""

# Rows and replies are other people's data: their types are checked at run time.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field

from verigrad.types import Completion, Problem, Verdict
from verigrad.verifiers.answers import after_thinking
from verigrad.verifiers.base import TextVerifier, column, graded
from verigrad.verifiers.instructions.kinds import IFEVAL, KINDS, kind_fault, settings_of

__all__ = ["IFEVAL", "KINDS", "InstructionsVerifier", "read_constraints", "settings_of"]

Constraint = tuple[str, dict[str, Any]]


class InstructionsVerifier(TextVerifier):
    """The answer follows every instruction of the problem's list (IFEval's 25 kinds and 13
    more)."""

    kind: ClassVar[str] = "instructions"

    mode: Literal["strict", "lenient"] = "strict"
    """lenient: an instruction is also followed when it is without the first or last line, or
    asterisks (IFEval's loose accuracy)."""
    constraints: list[dict[str, Any]] | None = None
    """Instructions of every problem: tables with kind and its settings; without it the row's
    columns count (instruction_id_list + kwargs, constraints, or the answer as JSON)."""
    credit: Literal["all", "share"] = "all"
    """all: 1 when every instruction is followed, else 0; share: the share that is followed."""
    extra_settings: Literal["refuse", "ignore"] = Field(default="refuse")
    """What to do with a setting that a kind does not have; some data sets carry spare ones."""

    def judge(self, problem: Problem, completion: Completion) -> Verdict:
        text = after_thinking(completion.text)
        if not text.strip():
            return Verdict.unparsed("no answer follows the thinking")
        parts: dict[str, float] = {}
        reasons: list[str] = []
        seen: Counter[str] = Counter()
        for kind, settings in self._constraints(problem):
            seen[kind] += 1
            label = kind if seen[kind] == 1 else f"{kind}#{seen[kind]}"
            fault = self._fault(text, kind, settings)
            parts[label] = float(fault is None)
            if fault is not None:
                reasons.append(f"{label}: {fault}")
        right = not reasons
        reward = sum(parts.values()) / len(parts) if self.credit == "share" else float(right)
        return graded(reward, correct=right, reason="; ".join(reasons), parts=parts)

    def check_gold(self, problem: Problem) -> str | None:
        try:
            constraints = self._constraints(problem)
        except (ValueError, TypeError) as error:
            return f"the instructions can't be read: {error}"
        if not constraints:
            return "the problem has no instructions"
        faults = (kind_fault(kind, settings) for kind, settings in constraints)
        return next((fault for fault in faults if fault), None)

    def _constraints(self, problem: Problem) -> list[Constraint]:
        found = read_constraints(problem) if self.constraints is None else _tables(self.constraints)
        if self.extra_settings == "refuse":
            return found
        return [
            (k, {n: v for n, v in s.items() if n in settings_of(k)}) if k in KINDS else (k, s)
            for k, s in found
        ]

    def _fault(self, text: str, kind: str, settings: Mapping[str, Any]) -> str | None:
        check = KINDS[kind]
        fault = check(text, **settings)
        if fault is None or self.mode == "strict":
            return fault
        followed = any(check(t, **settings) is None for t in _looser(text) if t.strip())
        return None if followed else fault


def _looser(text: str) -> list[str]:
    """The text without its first line, last line, both, each with and without asterisks."""
    lines = text.split("\n")
    cuts = [text, *("\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1]))]
    return [*cuts, *(cut.replace("*", "") for cut in cuts)]


def read_constraints(problem: Problem) -> list[Constraint]:
    """Return (kind, settings) of a row: IFEval's two columns, ``constraints``, or the answer as
    JSON."""
    ids = column(problem, "instruction_id_list")
    if ids is not None:
        return _paired(_json(ids), _json(column(problem, "kwargs")))
    tables = _json(column(problem, "constraints"))
    if tables is None and problem.answer:
        tables = _json(problem.answer)
    if tables is None:
        return []
    return _tables([tables] if isinstance(tables, Mapping) else tables)


def _tables(tables: Sequence[Any]) -> list[Constraint]:
    found: list[Constraint] = []
    for table in tables:
        if not isinstance(table, Mapping):
            raise ValueError(f"{table!r} is not a table with kind and its settings")
        if "instruction_id" in table:
            ids = table["instruction_id"]
            kwargs = table.get("kwargs")
            single = isinstance(ids, str)
            found += _paired([ids] if single else ids, [kwargs] if single else kwargs)
        elif "kind" in table:
            found.append((table["kind"], {k: v for k, v in table.items() if k != "kind"}))
        else:
            raise ValueError(f"{dict(table)!r} names no kind")
    return found


def _paired(ids: Sequence[str], kwargs: Any) -> list[Constraint]:
    settings: Sequence[Any] = [None] * len(ids) if kwargs is None else kwargs
    if isinstance(settings, Mapping) or len(settings) != len(ids):
        raise ValueError(f"{len(ids)} instructions and {len(settings)} tables of settings")
    return [
        (kind, {k: v for k, v in dict(s or {}).items() if v is not None})
        for kind, s in zip(ids, settings, strict=True)
    ]


def _json(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value
