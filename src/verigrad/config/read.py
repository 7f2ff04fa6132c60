"""TOML and overrides in, a checked recipe out; every fault names key, value and remedy."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast, get_args

import tomli_w
from pydantic import BaseModel, ValidationError

from verigrad.config.sections import NONE, ObjectiveSection, Recipe, Section, may_be_none
from verigrad.errors import RecipeError, nearest


def read_recipe(path: str | Path, overrides: Sequence[str] = ()) -> Recipe:
    """Read a TOML recipe, apply ``a.b=value`` overrides, check it whole. Raises RecipeError with
    exit code 2."""
    path = Path(path)
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise RecipeError(
            f"recipe {path} does not exist. `verigrad recipes` lists the shipped ones."
        ) from None
    except OSError as e:
        raise RecipeError(f"recipe {path} cannot be read: {e.strerror or e}.") from None
    try:
        data = tomllib.loads(raw.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        raise RecipeError(f"recipe {path} is not valid TOML: {e}.") from None
    return make_recipe(data, overrides, where=str(path))


def make_recipe(
    data: Mapping[str, Any], overrides: Iterable[str] = (), *, where: str = "recipe"
) -> Recipe:
    """Build a Recipe from a mapping plus overrides; every fault is a RecipeError that names key,
    value and remedy."""
    merged = json.loads(json.dumps(dict(data), default=str))
    for item in overrides:
        _apply_override(merged, item)
    if "objective" in merged:
        section = _validate(ObjectiveSection, merged["objective"], ("objective",), where)
        merged = {**merged, "objective": section}
    return _validate(Recipe, merged, (), where)


def write_recipe(recipe: Recipe) -> str:
    """The resolved recipe as TOML; reading it back gives an equal recipe."""
    return tomli_w.dumps(_table(recipe))


def recipe_schema() -> dict[str, Any]:
    """JSON Schema of a recipe, every field with its sentence."""
    schema = Recipe.model_json_schema()
    objective = ObjectiveSection.model_json_schema()
    objective.pop("$defs", None)
    schema["$defs"]["ObjectiveSection"] = objective
    schema["properties"]["objective"] = {"$ref": "#/$defs/ObjectiveSection"}
    return _one_line(schema)


def _one_line(value: Any) -> Any:
    """The schema with each sentence on one line, wherever its source breaks it."""
    if isinstance(value, list):
        return [_one_line(v) for v in cast(list[Any], value)]
    if not isinstance(value, dict):
        return value
    table = cast(dict[str, Any], value)
    return {
        key: " ".join(inner.split())
        if key == "description" and isinstance(inner, str)
        else _one_line(inner)
        for key, inner in table.items()
    }


def _table(section: Section) -> dict[str, Any]:
    """A section as TOML can hold it: None is "none" where it was chosen, and left out elsewhere."""
    table: dict[str, Any] = {}
    for key, field in type(section).model_fields.items():
        value: Any = getattr(section, key)
        if value is None:
            chosen = field.default is not None or key in section.model_fields_set
            if chosen and may_be_none(type(section), key):
                table[key] = NONE
        else:
            table[key] = _plain(value)
    return table


def _plain(value: Any) -> Any:
    if isinstance(value, Section):
        return _table(value)
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in cast(dict[str, Any], value).items() if v is not None}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in cast(Sequence[Any], value)]
    return value


def _apply_override(data: dict[str, Any], item: str) -> None:
    """Apply one ``section.key=value``; the value is TOML, or a bare string where TOML can't read
    it."""
    key, eq, text = item.partition("=")
    parts = key.strip().split(".")
    if not eq or len(parts) < 2 or not all(parts):
        raise RecipeError(
            f"override {item!r} is not of the form section.key=value, for example "
            "training.steps=200."
        )
    try:
        value = tomllib.loads(f"v = {text.strip()}")["v"]
    except tomllib.TOMLDecodeError:
        value = text.strip()
    table = data
    for part in parts[:-1]:
        inner = table.setdefault(part, {})
        if not isinstance(inner, dict):
            raise RecipeError(f"override {item!r}: {part!r} is a value, not a section.")
        table = cast(dict[str, Any], inner)
    table[parts[-1]] = value


def _validate(model: type[Any], data: Any, prefix: tuple[str, ...], where: str) -> Any:
    try:
        return model.model_validate(data)
    except ValidationError as e:
        lines = [_explain(model, err, prefix) for err in e.errors()]
        raise RecipeError(f"{where}: " + "\n  ".join(lines)) from None


def _explain(model: type[BaseModel], err: Any, prefix: tuple[str, ...]) -> str:
    """One pydantic error as a sentence: which key, which value, what to do."""
    loc = [str(p) for p in err["loc"]]
    key = ".".join([*prefix, *loc]) or "recipe"
    if err["type"] == "extra_forbidden":
        known = list(_section_at(model, loc[:-1])[0].model_fields)
        return f"unknown key {key!r}.{nearest(loc[-1], known)}"
    value = err.get("input")
    hidden = isinstance(value, dict | BaseModel) or err["type"] == "missing"
    shown = "" if hidden else f" = {value!r}"
    if err["type"] == "literal_error":
        allowed = _literals(err["ctx"]["expected"])
        hint = (
            nearest(str(value), allowed)
            if isinstance(value, str)
            else (f" Allowed: {', '.join(allowed)}.")
        )
        return f"{key}{shown} is not one of {', '.join(allowed)}.{hint}"
    message = err["msg"].removeprefix("Value error, ")
    hint = _sentence_at(model, loc)
    if isinstance(value, str) and err["type"] in _QUOTED and _QUOTED[err["type"]](value):
        hint = f" Write it without quotes.{hint}"
    return f"{key}{shown}: {message[0].lower() + message[1:]}.{hint}"


_QUOTED: dict[str, Callable[[str], object]] = {
    "int_type": re.compile(r"-?\d+").fullmatch,
    "float_type": re.compile(r"-?\d+(\.\d*)?(e-?\d+)?").fullmatch,
    "bool_type": re.compile("true|false").fullmatch,
}
"""What a string looks like where a number or truth value was put in quotes."""


def _sentence_at(model: type[BaseModel], loc: Sequence[str]) -> str:
    """What the field at ``loc`` is for; empty for a whole section."""
    section, names = _section_at(model, loc)
    if not names or names[0] not in section.model_fields:
        return ""
    return f" ({' '.join((section.model_fields[names[0]].description or '').split())})"


def _literals(expected: str) -> list[str]:
    return [w.strip(" '") for w in expected.replace(" or ", ", ").split(",") if w.strip(" '")]


def _section_at(model: type[BaseModel], path: Sequence[str]) -> tuple[type[BaseModel], list[str]]:
    """The innermost section along ``path``, and the rest of the path."""
    rest = list(path)
    while rest:
        name = rest[0]
        if not name.isdigit():
            inner = _inner_section(model, name)
            if inner is None:
                break
            model = inner
        rest.pop(0)
    return model, rest


def _inner_section(model: type[BaseModel], name: str) -> type[BaseModel] | None:
    if name not in model.model_fields:
        return None
    annotation = model.model_fields[name].annotation
    for option in (annotation, *get_args(annotation)):
        if isinstance(option, type) and issubclass(option, BaseModel):
            return option
    return None
