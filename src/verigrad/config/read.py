"""TOML and overrides in, a checked recipe out; every fault names key, value and remedy."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast, get_args

import tomli_w
from pydantic import BaseModel, ValidationError

from verigrad.config.sections import ObjectiveSection, Recipe
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
    return tomli_w.dumps(_drop_none(recipe.model_dump(mode="json")))


def recipe_schema() -> dict[str, Any]:
    """JSON Schema of a recipe, every field with its sentence."""
    schema = Recipe.model_json_schema()
    objective = ObjectiveSection.model_json_schema()
    objective.pop("$defs", None)
    schema["$defs"]["ObjectiveSection"] = objective
    schema["properties"]["objective"] = {"$ref": "#/$defs/ObjectiveSection"}
    return schema


def _drop_none(value: Any) -> Any:
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    if isinstance(value, dict):
        table = cast(dict[str, Any], value)
        return {k: _drop_none(v) for k, v in table.items() if v is not None}
    if isinstance(value, list):
        return [_drop_none(v) for v in cast(list[Any], value)]
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
        known = _fields_at(model, loc[:-1])
        return f"unknown key {key!r}.{nearest(loc[-1], known)}"
    value = err.get("input")
    shown = "" if isinstance(value, (dict, BaseModel)) else f" = {value!r}"
    if err["type"] == "literal_error":
        allowed = _literals(err["ctx"]["expected"])
        hint = (
            nearest(str(value), allowed)
            if isinstance(value, str)
            else (f" Allowed: {', '.join(allowed)}.")
        )
        return f"{key}{shown} is not one of {', '.join(allowed)}.{hint}"
    message = err["msg"].removeprefix("Value error, ")
    return f"{key}{shown}: {message[0].lower() + message[1:]}."


def _literals(expected: str) -> list[str]:
    return [w.strip(" '") for w in expected.replace(" or ", ", ").split(",") if w.strip(" '")]


def _fields_at(model: type[BaseModel], path: Sequence[str]) -> list[str]:
    """Known keys of the (possibly nested) section at ``path``."""
    for part in path:
        if part.isdigit() or part not in model.model_fields:
            continue
        annotation = model.model_fields[part].annotation
        options = [annotation, *get_args(annotation)]
        for option in options:
            if isinstance(option, type) and issubclass(option, BaseModel):
                model = option
                break
    return list(model.model_fields)
