from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from verigrad.rollout.precision import _verdict, measure_precision


def test_measures_in_little_time() -> None:
    config = SimpleNamespace(hidden_size=64, intermediate_size=128)
    began = time.perf_counter()
    precision, reason = measure_precision(config)
    assert time.perf_counter() - began < 5
    assert precision in ("fp32", "bf16")
    assert "decoding" in reason and "training" in reason


@pytest.mark.parametrize(
    ("fp32", "bf16", "wanted"),
    [
        ([2.0, 2.0], [1.0, 1.0], "bf16"),
        ([1.0, 1.0], [1.0, 1.0], "fp32"),
        ([1.0, 3.0], [2.0, 1.0], "bf16"),  # sqrt(0.5 * 3) = 1.22
        ([1.0, 2.0], [2.0, 1.0], "fp32"),  # sqrt(0.5 * 2) = 1.0
    ],
)
def test_bf16_must_be_worth_it(fp32: list[float], bf16: list[float], wanted: str) -> None:
    assert _verdict(fp32, bf16)[0] == wanted
    assert "2.0x" in _verdict([2.0, 1.0], [1.0, 1.0])[1]
