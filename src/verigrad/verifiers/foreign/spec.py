"""Spec strings: which framework's reward, in which file or module, under which name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qsl

from pydantic import Field, ValidationError, field_validator

from verigrad.config import Section
from verigrad.errors import RecipeError, nearest

if TYPE_CHECKING:
    from verigrad.verifiers.foreign.verifier import ForeignVerifier

Framework = Literal["trl", "verl", "vf", "gym", "openrlhf", "plain", "verigrad"]
"""Whose calling convention: vf is the verifiers library, plain is f(completion, answer),
verigrad our own."""

_DEFAULT_NAME = {"verl": "compute_score", "openrlhf": "reward_func", "vf": "load_environment"}
_PREFIX = r"(?:(?P<framework>trl|verl|vf|openrlhf):)?"
_FILE = re.compile(_PREFIX + r"(?P<file>.+\.py)(?::(?P<name>[A-Za-z_][\w.]*))?")
_MODULE = re.compile(_PREFIX + r"(?P<module>[A-Za-z_][\w.-]*)(?::(?P<name>[A-Za-z_][\w.]*))?")
_GYM = re.compile(r"gym:(?P<task>\w+)(?:\?(?P<query>.*))?")


@dataclass(frozen=True, slots=True)
class Spec:
    """A parsed spec: ``where`` is a file (``is_file``), a module or a reasoning-gym task."""

    text: str
    framework: Framework | None
    where: str
    name: str = ""
    is_file: bool = False
    settings: tuple[tuple[str, str], ...] = ()


class ForeignOptions(Section):
    """Settings of any foreign reward."""

    deadline_s: float = Field(default=10.0, gt=0)
    """Seconds one completion may take (a call with a whole group gets the sum); later is BROKEN."""
    start_s: float = Field(default=180.0, gt=0)
    """Seconds that loading the function may take, imports included."""
    isolation: Literal["process", "thread"] = "process"
    """process: a worker that is killed and restarted when it hangs or dies; thread: this
    process, for debugging."""
    correct_at: float = 1.0
    """Reward from which the outcome counts as correct (the reward itself is kept as it is)."""
    completions: Literal["auto", "text", "messages"] = "auto"
    """What a completion is for the function: its text, or a list with one assistant message;
    auto reads its source."""
    columns: dict[str, str] = Field(default_factory=dict)
    """Parameter = column, where the function's names differ from the rows' (``{solution =
    "answer"}``)."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    """Fixed keyword arguments: of the function, or of the class or factory that makes it."""
    gold_format: str | None = None
    """How a right answer is written, with {answer}; by default the usual formats are tried in
    turn."""

    @field_validator("gold_format")
    @classmethod
    def _has_answer(cls, value: str | None) -> str | None:
        if value is not None and "{answer}" not in value:
            raise ValueError("must contain {answer}")
        return value


def is_foreign(text: str) -> bool:
    """True when the name has the form of a spec (a prefix, a .py file, or module:function)."""
    return (
        text.partition(":")[0] in ("trl", "verl", "vf", "gym", "openrlhf")
        or ".py" in text
        or ":" in text
    )


def parse_spec(text: str) -> Spec:
    """Return the parsed spec; a malformed one is a RecipeError that shows the forms."""
    if match := _GYM.fullmatch(text):
        settings = tuple(parse_qsl(match["query"] or "", keep_blank_values=True))
        return Spec(text, "gym", match["task"], settings=settings)
    for pattern, is_file in ((_FILE, True), (_MODULE, False)):
        if match := pattern.fullmatch(text):
            framework: Any = match["framework"]
            name = match["name"] or _DEFAULT_NAME.get(framework or "")
            if name:
                return Spec(text, framework, match["file" if is_file else "module"], name, is_file)
    raise RecipeError(
        f"verifier.name = {text!r} is not a spec. The forms are file.py:fn, pkg.mod:fn, "
        f"trl:pkg.mod:fn, "
        "verl:file.py:compute_score, vf:module, vf:file.py:fn, openrlhf:file.py:reward_func and "
        "gym:TASK?key=value."
    )


def make_foreign(text: str, options: Mapping[str, Any], *, base_dir: Path) -> ForeignVerifier:
    """Load the reward and return it as a verifier. Raises RecipeError when it can't be loaded or
    called."""
    from verigrad.verifiers.foreign.verifier import ForeignVerifier

    return ForeignVerifier(
        Source(parse_spec(text), str(base_dir.resolve())), read_options(text, options)
    )


def read_options(text: str, options: Mapping[str, Any]) -> ForeignOptions:
    """Return the checked options; unknown or bad ones are a RecipeError that names the key."""
    known = ForeignOptions.model_fields
    for key in options:
        if key not in known:
            raise RecipeError(
                f"verifier.options.{key} is not an option of {text!r}.{nearest(key, known)}"
            )
    try:
        return ForeignOptions(**options)
    except ValidationError as error:
        lines = [
            f"verifier.options.{'.'.join(map(str, e['loc']))} = {e.get('input')!r}: "
            f"{e['msg'].removeprefix('Value error, ')}"
            for e in error.errors()
        ]
        raise RecipeError("; ".join(lines)) from None


@dataclass(frozen=True, slots=True)
class Source:
    """Where the callable comes from: a spec (loadable in a worker), or an object of this
    process."""

    spec: Spec
    base_dir: str = "."
    target: Any = field(default=None, compare=False)
