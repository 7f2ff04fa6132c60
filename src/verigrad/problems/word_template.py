"""How a generated word problem is written down: one record a template, read by ``words.py``.

A template has variables, a question and a worked solution. Variables are ``letter:kind`` with these
kinds

    n   a quantity, 2 .. max_number            k   a small factor, 2 .. min(9, max_number)
    p   a percentage (10 20 25 50 75)          =   derived, as in ``t=k*m``

and a solution line states one calculation in brackets: ``[a+b=r]`` is worked out, shown as
``3 + 4 = 7`` and binds ``r`` for the lines after it. The last bound name is the answer, so
question, solution and answer cannot disagree. A bracket is applied from left to right.

Slots: ``{X} {Y} {Z}`` three different names, ``{he} {He} {his}`` the pronouns of X, ``{i} {j}`` two
different things in the plural (``{i1} {j1}`` singular).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Template:
    """One way to phrase a problem; ``steps`` counts solution lines, each one calculation."""

    name: str
    kind: str
    variables: str
    question: str
    solution: tuple[str, ...]

    @property
    def steps(self) -> int:
        return len(self.solution)


def template(name: str, variables: str, question: str, *solution: str) -> Template:
    """A template whose kind is the first part of its name."""
    return Template(name, name.partition(".")[0], variables, question, solution)
