"""Hugging Face datasets: a hub id, or a folder written by ``save_to_disk``. Extra: ``data``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from verigrad.errors import MissingExtraError, ProblemError, nearest
from verigrad.problems.files import Row
from verigrad.problems.source import Source, check_options

OPTIONS = ("name", "revision")


def hub_label(source: Source) -> str:
    return source.where


def is_saved_dataset(folder: Path) -> bool:
    """True for what ``Dataset.save_to_disk`` or ``DatasetDict.save_to_disk`` wrote."""
    return (folder / "dataset_dict.json").exists() or (folder / "state.json").exists()


def _datasets(purpose: str) -> Any:
    try:
        import datasets
    except ImportError:
        raise MissingExtraError("datasets", "data", purpose) from None
    return datasets


def hub_rows(source: Source, split: str) -> list[Row]:
    """Return the rows of one split of a hub dataset. Options: ``name`` (config), ``revision``."""
    check_options(source, OPTIONS)
    datasets = _datasets(f"{source.key} = {source.text!r}")
    try:
        data = datasets.load_dataset(
            source.where,
            source.options.get("name"),
            split=split,
            revision=source.options.get("revision"),
        )
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise ProblemError(
            f"{source.key} = {source.text!r} (split {split!r}) can't be loaded: "
            f"{_first_line(error)} No file or folder has that name either; a hub "
            "dataset needs its right name, split and configuration, as in 'openai/gsm8k?name=main'."
        ) from None
    return [Row(f"{source.where}[{split}] row {i}", row) for i, row in enumerate(data, start=1)]


def saved_rows(folder: Path, split: str, *, split_key: str) -> list[Row]:
    """Return the rows of a dataset saved to disk; a dictionary of splits is asked for ``split``."""
    datasets = _datasets(f"reading the saved dataset {folder}")
    try:
        data = datasets.load_from_disk(str(folder))
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise ProblemError(f"saved dataset {folder} is damaged: {_first_line(error)}") from None
    if isinstance(data, dict):
        if split not in data:
            raise ProblemError(
                f"saved dataset {folder} has no split {split!r}. Set {split_key}."
                f"{nearest(split, data)}"
            )
        data = data[split]
    rows = [Row(f"{folder}[{split}] row {i}", row) for i, row in enumerate(data, start=1)]
    if not rows:
        raise ProblemError(f"saved dataset {folder}, split {split!r}, is empty.")
    return rows


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".") + "."
