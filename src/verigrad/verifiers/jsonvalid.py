"""JSON Schema (draft 2020-12) without a dependency: the same verdict on every machine, no network,
no surprise.

Every assertion and applicator of the core vocabularies is here except dynamic references and the
two ``unevaluated`` keywords. What is not here is refused when the schema is read, never ignored.
"""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

MAX_DEPTH = 64
"""Deepest nesting of schema applications; a reference that loops ends here."""

_NOTES = frozenset(
    (
        "$schema", "$id", "$comment", "$defs", "definitions", "title", "description", "default",
        "examples", "deprecated", "readOnly", "writeOnly", "format", "contentMediaType",
        "contentEncoding", "contentSchema", "$anchor", "$vocabulary",
    )
)  # fmt: skip
"""Keywords that assert nothing (``format`` is an annotation in draft 2020-12)."""

_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
    "number": lambda v: _is_number(v),
    "integer": lambda v: _is_number(v) and math.isfinite(v) and v == int(v),
}


class SchemaError(ValueError):
    """The schema itself can't be used."""


def check_schema(schema: Any, where: str = "schema") -> None:
    """Raise SchemaError for an unknown keyword, an unknown type, a bad pattern or a foreign
    reference."""
    if isinstance(schema, bool):
        return
    if not isinstance(schema, Mapping):
        raise SchemaError(f"{where} is {schema!r}, neither an object nor a boolean")
    for key, value in schema.items():
        place = f"{where}.{key}"
        if (
            key not in _NOTES
            and key not in _CHECKS
            and key not in ("then", "else", "minContains", "maxContains")
        ):
            raise SchemaError(f"{place}: the keyword {key!r} is not supported")
        _check_value(key, value, place)


def _check_value(key: str, value: Any, place: str) -> None:
    if key == "type":
        for name in value if isinstance(value, list) else [value]:
            if name not in _TYPES:
                raise SchemaError(f"{place} = {name!r} is not one of {', '.join(_TYPES)}")
    elif key == "pattern":
        _compile(value, place)
    elif key == "$ref" and not str(value).startswith("#"):
        raise SchemaError(
            f"{place} = {value!r}: only references inside the schema (#/...) are followed"
        )
    elif key in ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions"):
        for name, sub in value.items():
            if key == "patternProperties":
                _compile(name, place)
            check_schema(sub, f"{place}.{name}")
    elif key in ("allOf", "anyOf", "oneOf", "prefixItems"):
        for i, sub in enumerate(value):
            check_schema(sub, f"{place}[{i}]")
    elif key in _SINGLE:
        check_schema(value, place)


_SINGLE = (
    "additionalProperties",
    "propertyNames",
    "items",
    "contains",
    "not",
    "if",
    "then",
    "else",
)


def _compile(pattern: str, place: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise SchemaError(f"{place} = {pattern!r} is not a pattern: {error}") from None


def has_patterns(schema: Any) -> bool:
    """True when a pattern stands anywhere in the schema: matching one may take for ever."""
    if isinstance(schema, Mapping):
        return any(
            k in ("pattern", "patternProperties") or has_patterns(v) for k, v in schema.items()
        )
    return (
        isinstance(schema, Sequence)
        and not isinstance(schema, str)
        and any(map(has_patterns, schema))
    )


def first_fault(value: Any, schema: Any) -> str | None:
    """Return None when the value is valid, else where and why it is not. Raises SchemaError."""
    return _Validation(schema).fault(value, schema, "$", 0)


class _Validation:
    """One validation: the root schema that references resolve against."""

    def __init__(self, root: Any) -> None:
        self.root = root

    def fault(self, value: Any, schema: Any, path: str, depth: int) -> str | None:
        if isinstance(schema, bool):
            return None if schema else f"{path}: nothing is allowed here"
        if depth > MAX_DEPTH:
            raise SchemaError(f"{path}: more than {MAX_DEPTH} nested schemas; a $ref may loop")
        for key, wanted in schema.items():
            check = _CHECKS.get(key)
            found = check(self, value, wanted, schema, path, depth + 1) if check else None
            if found is not None:
                return found
        return None

    def valid(self, value: Any, schema: Any, path: str, depth: int) -> bool:
        return self.fault(value, schema, path, depth) is None

    def resolve(self, reference: str) -> Any:
        target = self.root
        for part in reference.removeprefix("#").split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            try:
                target = target[int(key)] if isinstance(target, list) else target[key]
            except (KeyError, IndexError, ValueError, TypeError):
                raise SchemaError(f"$ref {reference!r} points to nothing") from None
        return target


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def same(a: Any, b: Any) -> bool:
    """JSON equality: 1 equals 1.0, true does not equal 1, objects have no order."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b if not (_is_number(a) and _is_number(b)) else a == b


Check = Callable[[_Validation, Any, Any, Mapping[str, Any], str, int], str | None]


def _when(is_kind: Callable[[Any], bool], bad: Callable[[Any, Any], bool], words: str) -> Check:
    """An assertion about one kind of value; ``words`` may show the limit."""

    def check(
        _: _Validation, value: Any, wanted: Any, __: Mapping[str, Any], path: str, ___: int
    ) -> str | None:
        if is_kind(value) and bad(value, wanted):
            return f"{path}: {words.format(wanted)}"
        return None

    return check


def _type(
    _: _Validation, value: Any, wanted: Any, __: Mapping[str, Any], path: str, ___: int
) -> str | None:
    names = wanted if isinstance(wanted, list) else [wanted]
    return (
        None
        if any(_TYPES[n](value) for n in names)
        else f"{path}: not of type {' or '.join(names)}"
    )


def _properties(
    v: _Validation, value: Any, wanted: Any, _: Mapping[str, Any], path: str, depth: int
) -> str | None:
    if not isinstance(value, dict):
        return None
    found = (
        v.fault(value[k], sub, f"{path}.{k}", depth) for k, sub in wanted.items() if k in value
    )
    return next((f for f in found if f), None)


def _pattern_properties(
    v: _Validation, value: Any, wanted: Any, _: Mapping[str, Any], path: str, depth: int
) -> str | None:
    if not isinstance(value, dict):
        return None
    pairs = ((k, sub) for k in value for pattern, sub in wanted.items() if re.search(pattern, k))
    return next(
        (f for k, sub in pairs if (f := v.fault(value[k], sub, f"{path}.{k}", depth))), None
    )


def _additional(
    v: _Validation, value: Any, wanted: Any, schema: Mapping[str, Any], path: str, depth: int
) -> str | None:
    if not isinstance(value, dict):
        return None
    patterns = schema.get("patternProperties", {})
    for key in value:
        if key in schema.get("properties", {}) or any(re.search(p, key) for p in patterns):
            continue
        if wanted is False:
            return f"{path}: the property {key!r} is not allowed"
        if found := v.fault(value[key], wanted, f"{path}.{key}", depth):
            return found
    return None


def _property_names(
    v: _Validation, value: Any, wanted: Any, _: Mapping[str, Any], path: str, depth: int
) -> str | None:
    names = value if isinstance(value, dict) else ()
    return next(
        (f for k in names if (f := v.fault(k, wanted, f"{path} (name {k!r})", depth))), None
    )


def _required(
    _: _Validation, value: Any, wanted: Any, __: Mapping[str, Any], path: str, ___: int
) -> str | None:
    missing = [k for k in wanted if k not in value] if isinstance(value, dict) else []
    return f"{path}: {missing[0]!r} is missing" if missing else None


def _dependent(
    v: _Validation, value: Any, wanted: Any, _: Mapping[str, Any], path: str, depth: int
) -> str | None:
    for key, need in wanted.items() if isinstance(value, dict) else ():
        if key not in value:
            continue
        if isinstance(need, list):
            missing = [k for k in need if k not in value]
            if missing:
                return f"{path}: {missing[0]!r} is missing, which {key!r} asks for"
        elif found := v.fault(value, need, path, depth):
            return found
    return None


def _items(
    v: _Validation, value: Any, wanted: Any, schema: Mapping[str, Any], path: str, depth: int
) -> str | None:
    start = len(schema.get("prefixItems", ()))
    rest = value[start:] if isinstance(value, list) else ()
    found = (v.fault(x, wanted, f"{path}[{i}]", depth) for i, x in enumerate(rest, start))
    return next((f for f in found if f), None)


def _prefix(
    v: _Validation, value: Any, wanted: Any, _: Mapping[str, Any], path: str, depth: int
) -> str | None:
    pairs = zip(value, wanted, strict=False) if isinstance(value, list) else ()
    found = (v.fault(x, sub, f"{path}[{i}]", depth) for i, (x, sub) in enumerate(pairs))
    return next((f for f in found if f), None)


def _contains(
    v: _Validation, value: Any, wanted: Any, schema: Mapping[str, Any], path: str, depth: int
) -> str | None:
    if not isinstance(value, list):
        return None
    count = sum(v.valid(x, wanted, path, depth) for x in value)
    low, high = schema.get("minContains", 1), schema.get("maxContains")
    if count < low or (high is not None and count > high):
        return f"{path}: {count} items match 'contains'"
    return None


def _all_of(
    v: _Validation, value: Any, wanted: Any, _: Mapping[str, Any], path: str, depth: int
) -> str | None:
    return next((f for sub in wanted if (f := v.fault(value, sub, path, depth))), None)


def _any_of(
    v: _Validation, value: Any, wanted: Any, _: Mapping[str, Any], path: str, depth: int
) -> str | None:
    faults = [v.fault(value, sub, path, depth) for sub in wanted]
    return None if None in faults else f"{path}: fits none of anyOf"


def _one_of(
    v: _Validation, value: Any, wanted: Any, _: Mapping[str, Any], path: str, depth: int
) -> str | None:
    count = sum(v.valid(value, sub, path, depth) for sub in wanted)
    return None if count == 1 else f"{path}: fits {count} of oneOf, not exactly one"


def _not(
    v: _Validation, value: Any, wanted: Any, _: Mapping[str, Any], path: str, depth: int
) -> str | None:
    return f"{path}: fits what 'not' excludes" if v.valid(value, wanted, path, depth) else None


def _if(
    v: _Validation, value: Any, wanted: Any, schema: Mapping[str, Any], path: str, depth: int
) -> str | None:
    branch = "then" if v.valid(value, wanted, path, depth) else "else"
    return v.fault(value, schema.get(branch, True), path, depth)


def _ref(
    v: _Validation, value: Any, wanted: Any, _: Mapping[str, Any], path: str, depth: int
) -> str | None:
    return v.fault(value, v.resolve(wanted), path, depth)


def _repeats(items: list[Any], _: Any) -> bool:
    return any(same(a, b) for i, a in enumerate(items) for b in items[:i])


def _not_multiple(value: Any, wanted: Any) -> bool:
    return Fraction(str(value)) % Fraction(str(wanted)) != 0


def _any(_: Any) -> bool:
    return True


_CHECKS: dict[str, Check] = {
    "type": _type,
    "enum": _when(_any, lambda v, w: not any(same(v, x) for x in w), "not one of {}"),
    "const": _when(_any, lambda v, w: not same(v, w), "not {!r}"),
    "properties": _properties,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional,
    "propertyNames": _property_names,
    "required": _required,
    "dependentRequired": _dependent,
    "dependentSchemas": _dependent,
    "minProperties": _when(_TYPES["object"], lambda v, w: len(v) < w, "fewer than {} properties"),
    "maxProperties": _when(_TYPES["object"], lambda v, w: len(v) > w, "more than {} properties"),
    "items": _items,
    "prefixItems": _prefix,
    "contains": _contains,
    "minItems": _when(_TYPES["array"], lambda v, w: len(v) < w, "fewer than {} items"),
    "maxItems": _when(_TYPES["array"], lambda v, w: len(v) > w, "more than {} items"),
    "uniqueItems": _when(_TYPES["array"], lambda v, w: w and _repeats(v, w), "items repeat"),
    "minLength": _when(_TYPES["string"], lambda v, w: len(v) < w, "shorter than {} characters"),
    "maxLength": _when(_TYPES["string"], lambda v, w: len(v) > w, "longer than {} characters"),
    "pattern": _when(_TYPES["string"], lambda v, w: re.search(w, v) is None, "does not match {!r}"),
    "minimum": _when(_is_number, lambda v, w: v < w, "less than {}"),
    "maximum": _when(_is_number, lambda v, w: v > w, "more than {}"),
    "exclusiveMinimum": _when(_is_number, lambda v, w: v <= w, "not above {}"),
    "exclusiveMaximum": _when(_is_number, lambda v, w: v >= w, "not below {}"),
    "multipleOf": _when(_is_number, _not_multiple, "not a multiple of {}"),
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
    "if": _if,
    "$ref": _ref,
}


def read_json(text: str) -> Any:
    """Parse strict JSON: no NaN, no infinity, no key twice. Raises ValueError with the reason."""
    try:
        return json.loads(text, parse_constant=_refuse, object_pairs_hook=_distinct)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return found
