"""A path as a source: a file, a pattern, a folder of splits, or a dataset saved to disk."""

from __future__ import annotations

import glob
from pathlib import Path

from verigrad.errors import ProblemError
from verigrad.problems.files import Row, folder_files, read_file
from verigrad.problems.hub import hub_rows, is_saved_dataset, saved_rows
from verigrad.problems.source import Source, check_options, looks_like_hub_id


def path_rows(source: Source, split: str, *, split_key: str) -> tuple[list[Row], str]:
    """Return all rows and their label (``gsm8k/train`` for ``.../gsm8k/train.jsonl``).

    What is no path and looks like ``owner/name`` is fetched from the Hugging Face hub.
    """
    path = Path(source.where).expanduser()
    if not path.exists() and looks_like_hub_id(source.where):
        return hub_rows(source, split), source.where
    check_options(source, ())
    if path.is_dir():
        if is_saved_dataset(path):
            return saved_rows(path, split, split_key=split_key), f"{path.name}/{split}"
        files = folder_files(path, split, key=split_key)
        label = path.resolve().name
        rows = [row for file in files for row in read_file(file)]
        return rows, f"{label}/{split}" if len(files) == 1 else label
    if "*" in source.where:
        files = [Path(name) for name in sorted(glob.glob(str(path)))]
        if not files:
            raise ProblemError(f"{source.key} = {source.text!r} matches no file.")
        return [row for file in files for row in read_file(file)], path.parent.name or "files"
    stem = path.name.split(".")[0]
    folder = path.resolve().parent.name
    return read_file(path), f"{folder}/{stem}" if len(path.parts) > 1 else stem
