"""In which order problems are drawn: a function of the step, so a resumed run needs no cursor."""

from __future__ import annotations

import random
from functools import lru_cache

from verigrad.errors import UsageError


def draw(
    num_problems: int, *, step: int, prompts_per_step: int, seed: int, shuffle: bool
) -> list[int]:
    """Return the indices of the problems of one step (counted from 1).

    All steps together walk through epoch after epoch: every epoch is one permutation of all
    problems (their order in the source without ``shuffle``), and a step may begin in one epoch
    and end in the next. Nothing is remembered between calls. Raises UsageError for counts below 1.
    """
    for name, value in (
        ("num_problems", num_problems),
        ("step", step),
        ("prompts_per_step", prompts_per_step),
    ):
        if value < 1:
            raise UsageError(f"{name} = {value}; drawing problems needs at least 1.")
    first = (step - 1) * prompts_per_step
    indices: list[int] = []
    for position in range(first, first + prompts_per_step):
        epoch, place = divmod(position, num_problems)
        indices.append(_permutation(num_problems, seed, epoch)[place] if shuffle else place)
    return indices


@lru_cache(maxsize=4)
def _permutation(num_problems: int, seed: int, epoch: int) -> tuple[int, ...]:
    """Sort by random keys: ``Random.random`` is the one stream that Python never changes."""
    rng = random.Random(f"order {seed} {epoch}")
    keys = [rng.random() for _ in range(num_problems)]
    return tuple(sorted(range(num_problems), key=keys.__getitem__))
