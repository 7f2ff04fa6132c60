"""Judge in a killable worker what may not end: patterns, which backtrack without bound on some
texts.

The interpreter can't interrupt a regular expression, and no limit on sizes makes every pattern
fast; so those verifiers that run a recipe's own patterns judge in the same worker that foreign
rewards use.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from verigrad.verifiers.foreign.spec import ForeignOptions, Source, Spec
from verigrad.verifiers.foreign.verifier import ForeignVerifier


def isolated(
    kind: str,
    function: str,
    *,
    arguments: Mapping[str, Any],
    deadline_s: float,
    columns: Mapping[str, str] | None = None,
) -> ForeignVerifier:
    """Return a verifier that calls ``verigrad.verifiers.<function>`` in a worker with these
    arguments."""
    module, _, name = function.rpartition(":")
    spec = Spec(kind, "plain", f"verigrad.verifiers.{module}", name)
    options = ForeignOptions(
        deadline_s=deadline_s, arguments=dict(arguments), columns=dict(columns or {})
    )
    return ForeignVerifier(Source(spec), options)
