"""The source string of a recipe: scheme, what it names, options. Nothing is opened here.

words:?steps=1..2&max_number=20      scheme "words", options {"steps": "1..2", ...}
gym:chain_sum?min_terms=2            scheme "gym", where "chain_sum"
hf:openai/gsm8k?name=main            scheme "hf", where "openai/gsm8k"
data/train.jsonl                     scheme "path", where "data/train.jsonl"
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from verigrad.errors import RecipeError, nearest

SCHEMES: Mapping[str, str] = {
    "words": "words:?steps=1..2&max_number=20&count=2000",
    "sums": "sums:?digits=1&count=60",
    "gym": "gym:chain_sum?size=500",
    "hf": "hf:openai/gsm8k?name=main",
}
"""Every scheme with one example. Anything without a scheme is a path or a hub id."""

_SCHEME = re.compile(r"(?P<scheme>[A-Za-z_][\w+-]+):(?P<rest>.*)", re.DOTALL)
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


@dataclass(frozen=True, slots=True)
class Source:
    """A parsed source: ``key`` is the recipe key it came from, ``text`` what stands there."""

    text: str
    key: str
    scheme: str
    where: str
    options: Mapping[str, str]

    def fault(self, reason: str) -> RecipeError:
        """An error that names the recipe key and its value."""
        return RecipeError(f"{self.key} = {self.text!r}: {reason}")


def parse_source(text: str, *, key: str = "problems.source") -> Source:
    """Return the parsed source. Raises RecipeError for an unknown scheme or a malformed option."""
    if match := _SCHEME.fullmatch(text):
        scheme, rest = match["scheme"], match["rest"]
        if scheme not in SCHEMES:
            raise RecipeError(
                f"{key} = {text!r} has the unknown scheme {scheme!r}.{nearest(scheme, SCHEMES)} "
                f"A source is a file, a folder, a hub id, or one of: {', '.join(SCHEMES.values())}."
            )
        where, _, query = rest.partition("?")
        return Source(text, key, scheme, where, _options(text, key, query))
    if text in SCHEMES:
        raise RecipeError(f"{key} = {text!r} lacks a colon. Did you mean {SCHEMES[text]!r}?")
    where, _, query = text.partition("?")
    return Source(text, key, "path", where, _options(text, key, query))


def looks_like_hub_id(where: str) -> bool:
    """True for ``owner/name`` without a file suffix that verigrad reads."""
    suffixes = (".jsonl", ".json", ".parquet", ".gz", ".csv", ".txt", ".toml")
    return bool(_HUB_ID.fullmatch(where)) and not where.lower().endswith(suffixes)


def _options(text: str, key: str, query: str) -> dict[str, str]:
    if not query:
        return {}
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True)
    except ValueError:
        raise RecipeError(
            f"{key} = {text!r}: what follows '?' is not of the form name=value&name=value."
        ) from None
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise RecipeError(f"{key} = {text!r} sets the option {name!r} twice. Keep one.")
    return dict(pairs)


def check_options(source: Source, known: Iterable[str]) -> None:
    """Refuse an option the source does not have, naming the nearest one."""
    known = list(known)
    for name in source.options:
        if name not in known:
            raise source.fault(f"unknown option {name!r}.{nearest(name, known)}")


def integer_option(
    source: Source, name: str, default: int | None, *, low: int, high: int | None = None
) -> int | None:
    """Return an integer option, or ``default`` when not set; out of range is a RecipeError."""
    text = source.options.get(name)
    if text is None:
        return default
    low_high = f"{low} or more" if high is None else f"{low} to {high}"
    try:
        value = int(text)
    except ValueError:
        raise source.fault(
            f"option {name} = {text!r} is not a whole number ({low_high})."
        ) from None
    if value < low or (high is not None and value > high):
        raise source.fault(f"option {name} = {value} is out of range ({low_high}).")
    return value


def span_option(
    source: Source, name: str, default: tuple[int, int], *, low: int, high: int
) -> tuple[int, int]:
    """Return an inclusive range, written ``2`` or ``1..2``."""
    text = source.options.get(name)
    if text is None:
        return default
    first, dots, last = text.partition("..")
    try:
        start = int(first)
        end = int(last) if dots else start
    except ValueError:
        raise source.fault(
            f"option {name} = {text!r} is not a number or a range such as {low}..{high}."
        ) from None
    if not low <= start <= end <= high:
        raise source.fault(f"option {name} = {text!r} must lie within {low}..{high}.")
    return start, end


def names_option(source: Source, name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return a comma-separated choice of ``known`` (all of them when not set), in their order."""
    known = tuple(known)
    text = source.options.get(name)
    if text is None:
        return known
    chosen = [part.strip() for part in text.split(",")]
    for part in chosen:
        if part not in known:
            raise source.fault(f"option {name}: {part!r} is not one.{nearest(part, known)}")
    return tuple(k for k in known if k in chosen)
