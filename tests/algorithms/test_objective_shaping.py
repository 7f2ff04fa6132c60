"""Length, truncation and repetition terms."""

from __future__ import annotations

import math

import pytest
import torch

from verigrad.algorithms import presets
from verigrad.algorithms.shaping import (
    cosine_length,
    min_max_length,
    pass_rate_length,
    repetition,
    shaped_rewards,
)
from verigrad.errors import UsageError
from verigrad.objective import Objective

GROUP = torch.zeros(3).long()


def shaped(rewards: list[float], lengths: list[int], o: Objective, limit: int = 100) -> list[float]:
    r = torch.tensor(rewards)
    group = torch.zeros(len(rewards)).long()
    return shaped_rewards(r, group, o, lengths_B=torch.tensor(lengths), max_tokens=limit).tolist()


def test_a_plain_objective_changes_nothing() -> None:
    assert shaped([1.0, 0.0, 0.25], [10, 100, 1000], Objective()) == [1.0, 0.0, 0.25]


def test_dapo_scores_wrong_as_minus_one_and_adds_the_overlong_penalty() -> None:
    o = presets.resolve("dapo", {})
    # limit 100: the last 20 tokens are the cache
    got = shaped([1.0, 0.0, 1.0, 0.0, 1.0], [80, 80, 90, 95, 100], o)
    assert got == pytest.approx([1.0, -1.0, 0.5, -1.75, 0.0])


def test_min_max_in_the_reward() -> None:
    o = presets.resolve("kimi_k15", {"length_coef": 2.0})
    got = shaped([1.0, 0.0, 1.0, 0.0], [100, 200, 300, 400], o, limit=1000)
    assert got == pytest.approx([2.0, 0.0, 1 - 1 / 3, -1.0])


def test_min_max_of_equal_lengths_says_nothing() -> None:
    got = min_max_length(torch.tensor([True, False]), torch.zeros(2).long(), torch.tensor([7, 7]))
    assert got.tolist() == [0.0, 0.0]


def test_cosine_orders_lengths_by_correctness() -> None:
    right = cosine_length(torch.ones(3).bool(), torch.tensor([0, 50, 100]), max_tokens=100)
    wrong = cosine_length(torch.zeros(3).bool(), torch.tensor([0, 50, 100]), max_tokens=100)
    assert right.tolist() == pytest.approx([1.0, 0.75, 0.5])
    assert wrong.tolist() == pytest.approx([-1.0, -0.75, -0.5])
    quarter = cosine_length(torch.tensor([True]), torch.tensor([25]), max_tokens=100)
    assert quarter.item() == pytest.approx(0.5 + 0.25 * (1 + math.cos(math.pi / 4)))
    o = Objective(length_reward="cosine", length_coef=1.0)
    assert shaped([1.0, 0.0], [0, 100], o) == pytest.approx([1.0, -0.5])


def test_brevity_is_asked_for_where_it_is_easy() -> None:
    lengths = torch.tensor([50, 100, 50, 100])
    correct = torch.tensor([True, True, False, True])
    group = torch.tensor([0, 0, 1, 1])
    got = pass_rate_length(correct, group, lengths, max_tokens=100)
    assert got.tolist() == pytest.approx([-0.5, -1.0, -0.25, -0.5])


def test_repetition_share() -> None:
    rows = [[1, 2, 3, 1, 2, 3, 1, 2], [1, 2, 3, 4], [1, 1], []]
    # the first has 6 trigrams, 3 of them different
    assert repetition(rows, n=3).tolist() == pytest.approx([0.5, 0.0, 0.0, 0.0])
    o = Objective(repetition_penalty=2.0)
    got = shaped_rewards(
        torch.ones(2),
        torch.zeros(2).long(),
        o,
        lengths_B=torch.tensor([8, 4]),
        max_tokens=10,
        token_ids=rows[:2],
    )
    assert got.tolist() == pytest.approx([0.0, 1.0])


def test_repetition_without_tokens_is_an_error() -> None:
    with pytest.raises(UsageError, match="token_ids"):
        shaped([1.0], [3], Objective(repetition_penalty=1.0))
