"""Token weights against a slow twin that averages as the papers' sentences say."""

from __future__ import annotations

import statistics

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from verigrad.algorithms.reduce import token_weights
from verigrad.objective import Objective

ALL = ["sequence_mean", "token_mean", "constant", "prompt_mean", "sequence_sum"]


def twin(losses: list[list[float]], groups: list[int], reduction: str, limit: int) -> float:
    rows = [(g, x) for g, x in zip(groups, losses, strict=True) if x]
    if reduction == "sequence_mean":
        return statistics.fmean(statistics.fmean(x) for _, x in rows)
    if reduction == "token_mean":
        return statistics.fmean(t for _, x in rows for t in x)
    if reduction == "constant":
        return statistics.fmean(sum(x) / limit for _, x in rows)
    if reduction == "sequence_sum":
        return statistics.fmean(sum(x) for _, x in rows)
    prompts = [[t for h, x in rows if h == g for t in x] for g in {g for g, _ in rows}]
    return statistics.fmean(statistics.fmean(p) for p in prompts)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    rows=st.lists(
        st.tuples(st.integers(0, 2), st.lists(st.floats(-3, 3), max_size=6)), min_size=1, max_size=9
    ).filter(lambda rows: any(x for _, x in rows)),
    reduction=st.sampled_from(ALL),
)
def test_equal_to_the_twin(rows: list[tuple[int, list[float]]], reduction: str) -> None:
    losses = [x for _, x in rows]
    table = torch.zeros(len(rows), 7, dtype=torch.float64)
    mask = torch.zeros(len(rows), 7, dtype=torch.bool)
    for i, x in enumerate(losses):
        table[i, : len(x)] = torch.tensor(x, dtype=torch.float64)
        mask[i, : len(x)] = True
    groups = [g for g, _ in rows]
    o = Objective(reduction=reduction)
    weights = token_weights(mask, torch.tensor(groups), o, max_tokens=11)
    got = float((table * weights).sum())
    assert got == pytest.approx(twin(losses, groups, reduction, 11), abs=1e-5)
    assert float(weights[~mask].abs().sum()) == 0


@pytest.mark.parametrize("reduction", ALL)
def test_a_masked_completion_is_as_if_never_sampled(reduction: str) -> None:
    mask = torch.arange(5) < torch.tensor([[3], [5], [2]])
    group = torch.tensor([0, 0, 1])
    o = Objective(reduction=reduction)
    hidden = mask.clone()
    hidden[1] = False
    with_hole = token_weights(hidden, group, o, max_tokens=8)
    without = token_weights(mask[[0, 2]], group[[0, 2]], o, max_tokens=8)
    assert torch.equal(with_hole[[0, 2]], without)


@pytest.mark.parametrize("reduction", ALL)
def test_an_empty_batch_has_no_weight_and_no_nan(reduction: str) -> None:
    weights = token_weights(
        torch.zeros(3, 4).bool(),
        torch.zeros(3).long(),
        Objective(reduction=reduction),
        max_tokens=4,
    )
    assert weights.tolist() == [[0.0] * 4] * 3


def test_constant_length_replaces_the_limit() -> None:
    mask = torch.ones(2, 3, dtype=torch.bool)
    o = Objective(reduction="constant", constant_length=100)
    assert token_weights(mask, torch.zeros(2).long(), o, max_tokens=8)[
        0, 0
    ].item() == pytest.approx(1 / 200)


def test_the_longest_completion_in_the_batch_does_not_set_the_constant() -> None:
    """Padding to another width must not change the divisor (it does in verl by default)."""
    o = Objective(reduction="constant")
    narrow = torch.ones(1, 3, dtype=torch.bool)
    wide = torch.arange(9)[None] < 3
    group = torch.zeros(1).long()
    a = token_weights(narrow, group, o, max_tokens=16)
    b = token_weights(wide, group, o, max_tokens=16)
    assert a[0, 0] == b[0, 0] == 1 / 16


def test_sequence_mean_pushes_a_short_right_answer_harder_and_token_mean_does_not() -> None:
    mask = torch.arange(10) < torch.tensor([[2], [10]])
    group = torch.zeros(2).long()
    by = {r: token_weights(mask, group, Objective(reduction=r), max_tokens=10) for r in ALL}
    assert by["sequence_mean"][0, 0] == 5 * by["sequence_mean"][1, 0]
    assert by["token_mean"][0, 0] == by["token_mean"][1, 0]
