"""Rows of problem files: JSON Lines, JSON (also gzipped), parquet; the splits of a folder."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verigrad.errors import MissingExtraError, ProblemError, nearest

SUFFIXES = (".jsonl", ".json", ".parquet", ".jsonl.gz", ".json.gz")
SPLITS = ("train", "training", "test", "validation", "valid", "dev", "val", "eval")
"""File names that mean a split of the folder they are in."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row and the place it stands at, for example ``train.jsonl:12``."""

    place: str
    columns: Mapping[str, Any]


def is_problem_file(path: Path) -> bool:
    return path.name.lower().endswith(SUFFIXES)


def read_file(path: Path) -> list[Row]:
    """Return the rows of one file; ProblemError with file and line, also for an empty one."""
    if not path.exists():
        raise ProblemError(
            f"problem file {path} does not exist. Paths are relative to the working directory; "
            "set problems.source to where it is."
        )
    if not is_problem_file(path):
        raise ProblemError(
            f"problem file {path} is of a kind that can't be read. Known: {', '.join(SUFFIXES)}."
        )
    if path.suffix.lower() == ".parquet":
        rows = list(_parquet(path))
    else:
        rows = list(_json_rows(path, _text(path)))
    if not rows:
        raise ProblemError(f"problem file {path} is empty: it holds no row.")
    return rows


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
        if path.suffix.lower() == ".gz":
            raw = gzip.decompress(raw)
    except (OSError, EOFError) as error:
        raise ProblemError(f"problem file {path} cannot be read: {error}.") from None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise ProblemError(
            f"{path}:{line} is not UTF-8 (byte {raw[error.start]:#04x}). Save the file as UTF-8."
        ) from None


def _json_rows(path: Path, text: str) -> Iterator[Row]:
    name = path.name.lower().removesuffix(".gz")
    if name.endswith(".json") and not _is_json_lines(text):
        yield from _json(path, text)
        return
    # JSON allows U+2028 inside strings, so only real line ends separate rows.
    for number, line in enumerate(re.split(r"\r?\n", text), start=1):
        if not line.strip():
            continue
        place = f"{path}:{number}"
        try:
            columns = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ProblemError(
                f"{place} is not valid JSON: {_json_fault(error)}. "
                "Each line of a .jsonl file is one JSON object."
            ) from None
        yield Row(place, _as_object(columns, place))


def _is_json_lines(text: str) -> bool:
    """True when the first line alone is an object and another one follows."""
    first, _, rest = text.lstrip().partition("\n")
    try:
        return isinstance(json.loads(first), dict) and bool(rest.strip())
    except (ValueError, RecursionError):
        return False


def _json_fault(error: Exception) -> str:
    """What is wrong and where; numbers too long and nesting too deep are no JSONDecodeError."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at column {error.colno}"
    return str(error) or type(error).__name__


def _json(path: Path, text: str) -> Iterator[Row]:
    if not text.strip():
        return
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 1
        raise ProblemError(f"{path}:{line} is not valid JSON: {_json_fault(error)}.") from None
    if isinstance(data, dict):
        lists = [k for k, v in data.items() if isinstance(v, list)]
        if len(lists) != 1:
            raise ProblemError(
                f"problem file {path} holds one object with {len(lists)} lists. It must be a list "
                "of objects, or an object with one list of them."
            )
        data = data[lists[0]]
    if not isinstance(data, list):
        raise ProblemError(
            f"problem file {path} holds a {type(data).__name__}, not a list of rows."
        )
    for number, columns in enumerate(data, start=1):
        place = f"{path}, row {number}"
        yield Row(place, _as_object(columns, place))


def _as_object(columns: Any, place: str) -> dict[str, Any]:
    if not isinstance(columns, dict):
        shown = json.dumps(columns, ensure_ascii=False)[:60]
        raise ProblemError(f"{place} is {shown}, not a JSON object with columns.")
    return columns


def _parquet(path: Path) -> Iterator[Row]:
    try:
        import pyarrow.parquet as parquet
        from pyarrow import ArrowException
    except ImportError:
        raise MissingExtraError("pyarrow", "data", f"reading {path}") from None
    try:
        records = parquet.read_table(path).to_pylist()
    except (ArrowException, OSError) as error:
        raise ProblemError(f"problem file {path} is not valid parquet: {error}.") from None
    for number, columns in enumerate(records, start=1):
        yield Row(f"{path}, row {number}", columns)


def folder_files(folder: Path, split: str, *, key: str) -> list[Path]:
    """Return the files of one split of a folder: ``test.jsonl``, ``data/test-00000-of-2.parquet``.

    A folder whose files are not named after splits is read whole. Raises ProblemError when it has
    splits but not this one, or no problem file at all.
    """
    files = sorted(p for p in (*folder.glob("*"), *folder.glob("data/*")) if is_problem_file(p))
    if not files:
        raise ProblemError(
            f"folder {folder} holds no problem file. verigrad reads {', '.join(SUFFIXES)}."
        )
    by_split: dict[str, list[Path]] = {}
    for path in files:
        by_split.setdefault(_split_of(path), []).append(path)
    if split in by_split:
        return by_split[split]
    known = sorted(name for name in by_split if name in SPLITS)
    if known:
        raise ProblemError(
            f"folder {folder} has no split {split!r}; it has: {', '.join(known)}. "
            f"Set {key} = {known[0]!r}.{nearest(split, known) if len(known) > 1 else ''}"
        )
    return files


def _split_of(path: Path) -> str:
    """``train-00000-of-00002.parquet`` and ``train.jsonl.gz`` are of the split ``train``."""
    return re.split(r"[.\-]", path.name, maxsplit=1)[0]
