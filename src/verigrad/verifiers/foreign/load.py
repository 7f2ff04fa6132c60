"""Load what a spec names; every failure is a RecipeError that says which file, module or name is
at fault."""

# Rows and replies are other people's data: their types are checked at run time.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

from verigrad.errors import MissingExtraError, RecipeError, nearest
from verigrad.verifiers.base import explain
from verigrad.verifiers.foreign.spec import Source, Spec
from verigrad.verifiers.foreign.vf1 import exported_taskset


def load_target(source: Source) -> Any:
    """Return the object that the spec names. Raises RecipeError."""
    if source.target is not None:
        return source.target
    spec = source.spec
    if spec.framework == "gym":
        return _load_gym(spec)
    module = _load_file(spec, Path(source.base_dir)) if spec.is_file else _load_module(spec)
    found: Any = module
    if spec.framework == "vf" and spec.name == "load_environment":
        taskset = exported_taskset(module)
        if taskset is not None:
            return taskset
    for part in spec.name.split("."):
        if not hasattr(found, part):
            public = [n for n, v in vars(found).items() if callable(v) and not n.startswith("_")]
            hint = nearest(part, public) if public else " It has no public function."
            raise RecipeError(f"verifier.name = {spec.text!r}: {spec.where} has no {part!r}.{hint}")
        found = getattr(found, part)
    return found


def _load_file(spec: Spec, base_dir: Path) -> Any:
    path = base_dir / spec.where
    if not path.is_file():
        raise RecipeError(
            f"verifier.name = {spec.text!r}: the file {path} does not exist. "
            "A relative path is taken from the working directory."
        )
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)  # as for a script: the reward may import its neighbours
    module_spec = importlib.util.spec_from_file_location(path.stem, path)
    assert module_spec is not None and module_spec.loader is not None, (
        "a .py file always has a loader"
    )
    module = importlib.util.module_from_spec(module_spec)
    sys.modules.setdefault(path.stem, module)  # dataclasses and pickle look their module up by name
    try:
        module_spec.loader.exec_module(module)
    except Exception as error:
        raise RecipeError(
            f"verifier.name = {spec.text!r}: loading {path} failed: {explain(error)}"
        ) from error
    return module


def _load_module(spec: Spec) -> Any:
    name = spec.where.replace("-", "_")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        who = "" if missing in (name, name.partition(".")[0]) else f" (imported by {name})"
        raise RecipeError(
            f"verifier.name = {spec.text!r}: the module {missing!r}{who} is not installed. "
            "Install it, put its folder on PYTHONPATH, or name a file: file.py:fn."
        ) from error
    except Exception as error:
        raise RecipeError(
            f"verifier.name = {spec.text!r}: importing {name} failed: {explain(error)}"
        ) from error


def _load_gym(spec: Spec) -> Any:
    """The task's dataset object; making it generates no problem."""
    try:
        datasets: Any = importlib.import_module("reasoning_gym.factory").DATASETS
    except ImportError:
        raise MissingExtraError("reasoning-gym", "gym", f"the scorer {spec.text}") from None
    if spec.where not in datasets:
        raise RecipeError(
            f"verifier.name = {spec.text!r}: no such task.{nearest(spec.where, datasets)}"
        )
    dataset, config = datasets[spec.where]
    try:
        return dataset(config=config(**{k: _literal(v) for k, v in spec.settings}))
    except Exception as error:
        raise RecipeError(f"verifier.name = {spec.text!r}: {explain(error)}") from error


def _literal(text: str) -> Any:
    """``3`` is a number, ``true`` a bool, all else stays text."""
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text.lower(), text)
