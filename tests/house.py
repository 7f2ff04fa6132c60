"""What the house is built of: the import table, the sizes, and the checks that read source text.

Each check takes text and returns one line per fault, so that a test can plant one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

CORE = frozenset({"types", "errors", "config", "objective"})

MAY_IMPORT: Mapping[str, frozenset[str]] = {
    "types": frozenset(),
    "errors": frozenset(),
    "objective": frozenset(),
    "config": frozenset({"types", "errors", "objective"}),
    "runlog": frozenset({"types", "errors"}),
    "problems": CORE,
    "verifiers": CORE,
    "audit": CORE | {"verifiers", "problems", "runlog"},
    "algorithms": frozenset({"types", "errors", "objective"}),
    "rollout": CORE,
    "training": CORE | {"runlog", "problems", "verifiers", "rollout", "algorithms"},
    "preflight": CORE | {"runlog", "problems", "verifiers", "rollout", "algorithms", "audit"},
    "pipelines": CORE | {"runlog", "algorithms", "training", "preflight"},
    "backends": CORE | {"problems", "verifiers", "algorithms"},
    "doctor": CORE | {"runlog"},
    "board": CORE | {"runlog", "doctor"},
}
"""Room -> the rooms it may import. ``cli`` and ``commands`` (its verbs) may import any."""

ANY_ROOM = frozenset({"cli", "commands"})

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
MAX_LINES: Mapping[str, int] = {"training/grpo.py": 120}
"""The front door is held to less than the rest."""


def room_of(path: str) -> str:
    """The room of a file, from its path below ``src/verigrad``."""
    return path.partition("/")[0].removesuffix(".py")


def imported_rooms(path: str, text: str) -> Iterator[tuple[int, str]]:
    """(line, room) of every import of ours: at the top, inside a function, under TYPE_CHECKING."""
    package = ["verigrad", *path.split("/")[:-1]]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            names = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "verigrad" and len(parts) > 1:
                yield node.lineno, parts[1]


def import_faults(path: str, text: str) -> list[str]:
    """Imports that the table doesn't allow. A file outside the table's rooms is a fault too."""
    room = room_of(path)
    if room in ANY_ROOM or path == "__init__.py":
        return []
    if room not in MAY_IMPORT:
        return [f"{path}: room {room!r} is not in the import table"]
    allowed = MAY_IMPORT[room] | {room}
    return [
        f"{path}:{line}: {room} may not import {other}"
        for line, other in imported_rooms(path, text)
        if other not in allowed and other != "__version__"
    ]


def size_faults(path: str, text: str) -> list[str]:
    """Files and functions that are longer than they may be."""
    faults: list[str] = []
    lines, most = len(text.splitlines()), MAX_LINES.get(path, MAX_FILE_LINES)
    if lines > most:
        faults.append(f"{path}: {lines} lines, more than {most}")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > MAX_FUNCTION_LINES:
                faults.append(
                    f"{path}:{node.lineno}: {node.name} has {length} lines, more than "
                    f"{MAX_FUNCTION_LINES}"
                )
    return faults


SHARED_WORDS: Mapping[str, str] = {
    "sft": "the phase of a supervised step in the run log",
    "pass_at_k": "a measure in the evaluation record",
}
"""Presets that share their name with something the trainer writes: allowed, but not in a
comparison."""


def name_faults(path: str, text: str, names: frozenset[str]) -> list[str]:
    """String literals that are the name of a preset, and reads of an objective's name."""
    faults: list[str] = []
    tree = ast.parse(text)
    compared = {
        id(leaf)
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare | ast.match_case)
        for leaf in ast.walk(node.pattern if isinstance(node, ast.match_case) else node)
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and node.value in names
            and (node.value not in SHARED_WORDS or id(node) in compared)
        ):
            faults.append(f"{path}:{node.lineno}: names the preset {node.value!r}")
        if (
            isinstance(node, ast.Attribute)
            and node.attr == "name"
            and isinstance(node.value, ast.Name | ast.Attribute)
            and (node.value.id if isinstance(node.value, ast.Name) else node.value.attr)
            == "objective"
        ):
            faults.append(f"{path}:{node.lineno}: reads an objective's name")
    return faults
