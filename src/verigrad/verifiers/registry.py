"""From the name in a recipe to a verifier: ours, a composition, or a reward function brought
from elsewhere."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, cast, get_args

from pydantic import BaseModel, ValidationError

from verigrad.errors import RecipeError, nearest
from verigrad.types import Verifier
from verigrad.verifiers.foreign.spec import is_foreign, make_foreign
from verigrad.verifiers.nested import (
    ComposeOptions,
    CosineOptions,
    make_compose,
    make_cosine,
    split_part,
)

Mode = Literal["strict", "lenient"]

_OURS: dict[str, str] = {
    "math": "verigrad.verifiers.math:MathVerifier",
    "number": "verigrad.verifiers.number:NumberVerifier",
    "string": "verigrad.verifiers.string:StringVerifier",
    "choice": "verigrad.verifiers.choice:ChoiceVerifier",
    "regex": "verigrad.verifiers.regex:RegexVerifier",
    "json_schema": "verigrad.verifiers.json_schema:JsonSchemaVerifier",
    "instructions": "verigrad.verifiers.instructions:InstructionsVerifier",
    "format": "verigrad.verifiers.format:FormatVerifier",
    "language": "verigrad.verifiers.language:LanguageVerifier",
    "length": "verigrad.verifiers.length:LengthVerifier",
    "overlong": "verigrad.verifiers.length:OverlongVerifier",
    "repetition": "verigrad.verifiers.length:RepetitionVerifier",
    "judge": "verigrad.verifiers.judge:JudgeVerifier",
    "tutorial_regex": "verigrad.verifiers.tutorial_regex:TutorialRegexVerifier",
    "compose": "verigrad.verifiers.nested:ComposeOptions",
    "cosine_length": "verigrad.verifiers.nested:CosineOptions",
}
"""Name to class, imported when it is asked for: the maths verifier brings sympy, slow to load."""


def make_verifier(
    name: str,
    *,
    mode: Mode = "strict",
    options: Mapping[str, Any] | None = None,
    base_dir: str | Path | None = None,
) -> Verifier:
    """Return the verifier that a recipe's [verifier] section names.

    ``name`` is one of ours (``list_verifiers``) or a foreign spec such as ``trl:pkg.mod:fn``,
    ``verl:file.py:compute_score``, ``vf:module``, ``gym:TASK``, ``openrlhf:file.py``,
    ``file.py:fn``. ``mode`` reaches the verifiers that know one. Files are looked up from
    ``base_dir`` (the working directory). Raises RecipeError for an unknown name, an unknown option
    or a bad value.
    """
    return _make(name, mode, dict(options or {}), Path(base_dir or "."), "verifier")


def list_verifiers() -> list[tuple[str, str, dict[str, str]]]:
    """Return (name, one sentence, {option: its sentence}) of every verifier of ours."""
    rows: list[tuple[str, str, dict[str, str]]] = []
    for name in _OURS:
        cls = _class(name)
        sentence = inspect.cleandoc(cls.__doc__ or "").partition("\n\n")[0].replace("\n", " ")
        rows.append((name, sentence, _options(cls)))
    return rows


def describe(verifier: Verifier) -> str:
    """Return the resolved call as one line, printed at start-up: the name and every setting."""
    own = getattr(verifier, "describe", None)
    if callable(own):
        return str(own())
    if isinstance(verifier, BaseModel):
        settings = ", ".join(f"{k}={v!r}" for k, v in verifier)
        return f"{verifier.name}({settings})"  # pyright: ignore[reportAttributeAccessIssue]
    return f"{verifier.name}: {verifier!r}"


def _make(name: str, mode: Mode, options: dict[str, Any], base_dir: Path, where: str) -> Verifier:
    if mode not in get_args(Mode):
        raise RecipeError(f"{where}.mode = {mode!r} is not one of strict, lenient.")
    if name not in _OURS:
        if is_foreign(name):
            return make_foreign(name, options, base_dir=base_dir)
        raise RecipeError(
            f"{where}.name = {name!r} is not a verifier of ours and not a spec such as file.py:fn, "
            f"trl:pkg.mod:fn or gym:TASK.{nearest(name, _OURS)}"
        )
    made = _build(name, mode, options, where)

    def make_part(table: Mapping[str, Any], place: str) -> Verifier:
        part, part_mode, part_options = split_part(table)
        return _make(part, cast(Mode, part_mode), part_options, base_dir, place)

    if isinstance(made, ComposeOptions):
        return make_compose(made, make_part)
    return make_cosine(made, make_part) if isinstance(made, CosineOptions) else made


def _class(name: str) -> type[Any]:
    module, _, attribute = _OURS[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def _build(name: str, mode: Mode, options: dict[str, Any], where: str) -> Any:
    """The object of the name's class: a verifier, or the checked options of one that contains
    others."""
    cls = _class(name)
    known = _options(cls)
    for key in options:
        if key not in known:
            hint = nearest(key, known) if known else " It has none."
            raise RecipeError(f"{where}.options.{key} is not an option of {name!r}.{hint}")
    if _takes_mode(cls):
        options = {**options, "mode": mode}
    try:
        return cls(**options)
    except ValidationError as error:
        lines = [_sentence(err, where) for err in error.errors()]
        raise RecipeError(f"verifier {name!r}: " + "; ".join(lines)) from None
    except (TypeError, ValueError) as error:
        raise RecipeError(f"verifier {name!r} with options {options!r}: {error}") from None


def _sentence(error: Any, where: str) -> str:
    key = ".".join([where, "options", *(str(part) for part in error["loc"])])
    message = error["msg"].removeprefix("Value error, ")
    value = "" if error["type"] == "missing" else f" = {error.get('input')!r}"
    return f"{key}{value}: {message[:1].lower() + message[1:]}"


def _takes_mode(cls: type[Any]) -> bool:
    if issubclass(cls, BaseModel):
        return "mode" in cls.model_fields
    return "mode" in inspect.signature(cls).parameters


def _options(cls: type[Any]) -> dict[str, str]:
    """Options of a class and their sentences; ``mode`` has a place of its own in the recipe."""
    if issubclass(cls, BaseModel):
        fields = cls.model_fields.items()
        found = {k: (f.description or "").replace("\n", " ") for k, f in fields}
    else:
        found = dict.fromkeys(inspect.signature(cls).parameters, "")
    found.pop("mode", None)
    return found
