"""From the name in a recipe to a verifier: ours, a composition, or a reward function brought from elsewhere."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from verigrad.errors import RecipeError, nearest
from verigrad.types import Verifier
from verigrad.verifiers.foreign.spec import is_foreign, make_foreign

Mode = Literal["strict", "lenient"]

_OURS: dict[str, str] = {
    "math": "verigrad.verifiers.math:MathVerifier",
    "number": "verigrad.verifiers.number:NumberVerifier",
    "string": "verigrad.verifiers.string:StringVerifier",
    "format": "verigrad.verifiers.format:FormatVerifier",
    "tutorial_regex": "verigrad.verifiers.tutorial_regex:TutorialRegexVerifier",
}
"""Name to class, imported when it is asked for: the maths verifier brings sympy, which is slow to load."""


def make_verifier(
    name: str,
    *,
    mode: Mode = "strict",
    options: Mapping[str, Any] | None = None,
    base_dir: str | Path | None = None,
) -> Verifier:
    """Return the verifier that a recipe's [verifier] section names. Raises RecipeError for a bad name or option.

    ``name`` is one of ours (``list_verifiers``), "compose", or a foreign spec such as ``trl:pkg.mod:fn``,
    ``verl:file.py:compute_score``, ``vf:module``, ``gym:TASK``, ``openrlhf:file.py``, ``file.py:fn``.
    ``mode`` reaches the verifiers that know one. Files are looked up from ``base_dir`` (the working directory).
    """
    options = dict(options or {})
    if name in _OURS:
        return _build(name, mode, options)
    if is_foreign(name):
        return make_foreign(name, options, base_dir=Path(base_dir or "."))
    raise RecipeError(
        f"verifier.name = {name!r} is not a verifier of ours and not a spec such as file.py:fn, "
        f"trl:pkg.mod:fn or gym:TASK.{nearest(name, _OURS)}"
    )


def list_verifiers() -> list[tuple[str, str, dict[str, str]]]:
    """Return (name, one sentence, {option: its sentence}) of every verifier of ours."""
    rows: list[tuple[str, str, dict[str, str]]] = []
    for name in _OURS:
        cls = _class(name)
        sentence = inspect.cleandoc(cls.__doc__ or "").partition("\n\n")[0].replace("\n", " ")
        rows.append((name, sentence, _options(cls)))
    return rows


def describe(verifier: Verifier) -> str:
    """Return the resolved call as one line, to be printed at start-up: the name and every setting."""
    own = getattr(verifier, "describe", None)
    if callable(own):
        return str(own())
    if isinstance(verifier, BaseModel):
        settings = ", ".join(f"{k}={v!r}" for k, v in verifier)
        return f"{verifier.name}({settings})"  # pyright: ignore[reportAttributeAccessIssue]
    return f"{verifier.name}: {verifier!r}"


def _class(name: str) -> type[Any]:
    module, _, attribute = _OURS[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def _build(name: str, mode: Mode, options: dict[str, Any]) -> Verifier:
    cls = _class(name)
    known = _options(cls)
    for key in options:
        if key not in known:
            raise RecipeError(
                f"verifier.options.{key} is not an option of {name!r}.{nearest(key, known) if known else ' It has none.'}"
            )
    if _takes_mode(cls):
        options["mode"] = mode
    try:
        return cls(**options)
    except ValidationError as error:
        lines = [_sentence(err) for err in error.errors()]
        raise RecipeError(f"verifier {name!r}: " + "; ".join(lines)) from None
    except (TypeError, ValueError) as error:
        raise RecipeError(f"verifier {name!r} with options {options!r}: {error}") from None


def _sentence(error: Any) -> str:
    key = ".".join(["verifier", "options", *(str(part) for part in error["loc"])])
    message = error["msg"].removeprefix("Value error, ")
    return f"{key} = {error.get('input')!r}: {message[:1].lower() + message[1:]}"


def _takes_mode(cls: type[Any]) -> bool:
    if issubclass(cls, BaseModel):
        return "mode" in cls.model_fields
    return "mode" in inspect.signature(cls).parameters


def _options(cls: type[Any]) -> dict[str, str]:
    """Options of a class and their sentences, without ``mode``, which has a place of its own in the recipe."""
    if issubclass(cls, BaseModel):
        found = {k: (f.description or "").replace("\n", " ") for k, f in cls.model_fields.items()}
    else:
        found = {k: "" for k in inspect.signature(cls).parameters}
    found.pop("mode", None)
    return found
