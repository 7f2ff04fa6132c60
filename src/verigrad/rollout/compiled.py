"""Builds fused.cpp once per machine and source, and loads it; says why where it can't.

The result lies in the user's cache folder (``VERIGRAD_CACHE``, else ``XDG_CACHE_HOME``/verigrad,
else ~/.cache/verigrad) under a hash of source, flags, compiler and processor.
``VERIGRAD_KERNELS=0`` turns the compiled kernels off; everything then runs in torch.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

_FLAGS = ("-O3", "-march=native", "-std=c++17", "-fPIC", "-shared", "-fopenmp")
_SOURCES = ("fused.cpp", "fused.h")
_BUILD_S = 120


@dataclass(frozen=True, slots=True)
class Kernels:
    """The loaded library and whether its bf16 part was compiled in."""

    library: ctypes.CDLL
    bf16: bool


@functools.cache
def kernels() -> Kernels | str:
    """The compiled kernels, or one sentence why there are none. Builds at most once per process."""
    flags = _cpu_flags()
    if os.environ.get("VERIGRAD_KERNELS") == "0":
        return "VERIGRAD_KERNELS=0 turns the compiled kernels off"
    if "avx512f" not in flags or "avx512bw" not in flags:
        return "this processor has no AVX-512"
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        return "no C++ compiler was found (install g++, or set CXX)"
    built = _build(compiler, flags)
    if isinstance(built, str):
        return built
    try:
        library = ctypes.CDLL(str(built))
    except OSError as e:
        return f"the compiled kernels can't be loaded: {e}"
    return Kernels(library, bf16=bool(library.has_brain()))


def _build(compiler: str, flags: frozenset[str]) -> Path | str:
    here = Path(__file__).parent
    key = hashlib.sha256(
        b"\0".join(
            [
                *((here / name).read_bytes() for name in _SOURCES),
                " ".join((*_FLAGS, compiler, platform.machine(), *sorted(flags))).encode(),
            ]
        )
    ).hexdigest()[:20]
    try:
        folder = _cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / f"fused-{key}.so"
        if target.is_file():
            return target
        # Built under another name and renamed: two processes may build at the same time.
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            made = Path(scratch) / target.name
            done = subprocess.run(
                [compiler, *_FLAGS, "-o", str(made), str(here / "fused.cpp")],
                capture_output=True,
                text=True,
                timeout=_BUILD_S,
                check=False,
            )
            if done.returncode:
                last = done.stderr.strip().splitlines()[-1:] or ["no message"]
                return f"{compiler} could not compile the kernels: {last[0]}"
            made.replace(target)
    except (OSError, subprocess.TimeoutExpired) as e:
        return f"the kernels could not be built: {e}"
    return target


def _cache_folder() -> Path:
    chosen = os.environ.get("VERIGRAD_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "verigrad"


def _cpu_flags() -> frozenset[str]:
    """The processor's feature names; empty where the system does not tell."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return frozenset()
    found = next((line for line in lines if line.startswith("flags")), "")
    return frozenset(found.partition(":")[2].split())


def has_amx() -> bool:
    """Whether oneDNN can use AMX tiles for bf16, which no AVX-512 kernel can match."""
    return "amx_bf16" in _cpu_flags()
