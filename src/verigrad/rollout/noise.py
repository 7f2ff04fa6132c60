"""Counter-based random numbers: a uniform is a pure function of (seed, prompt, sample, position).

No generator is advanced, so a completion never depends on the order in which rows were scheduled,
on how many rows ran side by side, or on what was sampled before.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def uniforms(
    seed: int,
    prompts: NDArray[np.int64],
    *,
    samples: NDArray[np.int64],
    positions: NDArray[np.int64],
) -> NDArray[np.float64]:
    """One float64 in [0, 1) per row, a pure function of its four keys.

    The three arrays have shape (B,). Each key passes through the SplitMix64 finaliser (Steele, Lea
    and Flood 2014, "Fast splittable pseudorandom number generators") before the next is added;
    the top 53 bits of the last state are the number.
    """
    state = np.full(len(prompts), seed % 2**64, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for keys in (prompts, samples, positions):
            state = _mix(state + _GOLDEN) + keys.astype(np.uint64)
        state = _mix(state + _GOLDEN)
    return (state >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mix(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    state = (state ^ (state >> np.uint64(30))) * _MIX_1
    state = (state ^ (state >> np.uint64(27))) * _MIX_2
    return state ^ (state >> np.uint64(31))
