"""Baselines and scales against slow twins, one group at a time, in plain floats."""

from __future__ import annotations

import itertools
import math
import statistics
from math import comb

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from verigrad.algorithms.advantages import advantages
from verigrad.algorithms.groups import number_groups, silent_rows
from verigrad.errors import UsageError
from verigrad.objective import Objective

Rows = list[tuple[int, float, int]]
"""(group, reward, length) of each completion."""


def twin_centered(rows: Rows, baseline: str) -> list[float]:
    out = []
    for i, (g, r, _) in enumerate(rows):
        group = [(x, n) for j, (h, x, n) in enumerate(rows) if h == g]
        others = [x for j, (h, x, _) in enumerate(rows) if h == g and j != i]
        if baseline == "group_mean":
            out.append(r - statistics.fmean(x for x, _ in group))
        elif baseline == "leave_one_out":
            out.append(r - statistics.fmean(others) if others else 0.0)
        elif baseline == "length_weighted":
            out.append(r - sum(x * n for x, n in group) / sum(n for _, n in group))
        elif baseline == "batch_mean":
            out.append(r - statistics.fmean(x for _, x, _ in rows))
        else:
            out.append(r)
    return out


def twin(rows: Rows, baseline: str, scale: str, std: str) -> list[float]:
    centered = twin_centered(rows, baseline)
    deviation = statistics.stdev if std == "sample" else statistics.pstdev
    out = []
    for (g, _, _), a in zip(rows, centered, strict=True):
        group = [x for h, x, _ in rows if h == g]
        if scale == "group_std":
            s = deviation(group) if len(group) > 1 else 0.0
        elif scale == "batch_std":
            s = deviation([x for _, x, _ in rows])
        elif scale == "centered_batch_std":
            s = deviation(centered)
        elif scale == "group_mean":
            s = statistics.fmean(group)
        else:
            s = 1.0
        out.append(a / s if s > 1e-9 else 0.0)
    return out


def compute(rows: Rows, **axes: object) -> list[float]:
    group, reward, length = (torch.tensor(x) for x in zip(*rows, strict=True))
    o = Objective(**{"std_eps": 0.0, **axes})
    return advantages(reward.double(), group, o, lengths_B=length).tolist()


row_lists = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.integers(1, 30)),
    min_size=2,
    max_size=14,
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    rows=row_lists,
    baseline=st.sampled_from(["group_mean", "leave_one_out", "length_weighted", "batch_mean"]),
    scale=st.sampled_from(["group_std", "batch_std", "centered_batch_std", "none"]),
    std=st.sampled_from(["sample", "population"]),
)
def test_equal_to_the_twin(rows: Rows, baseline: str, scale: str, std: str) -> None:
    got = compute(rows, baseline=baseline, scale=scale, std=std)
    expected = twin(rows, baseline, scale, std)
    if baseline == "batch_mean" and scale == "group_std":
        # A group of equal rewards has no deviation: nothing to divide by, so no signal.
        assert [g for g, e in zip(got, expected, strict=True) if e == 0] == [
            e for e in expected if e == 0
        ]
    assert got == pytest.approx(expected, abs=1e-5)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(rows=row_lists)
def test_group_mean_scale_equals_the_twin(rows: Rows) -> None:
    got = compute(rows, scale="group_mean")
    assert got == pytest.approx(twin(rows, "group_mean", "group_mean", "sample"), abs=1e-5)


def test_no_baseline_is_the_reward_itself() -> None:
    assert compute([(0, 1.0, 3), (0, 0.0, 5)], baseline="none") == [1.0, 0.0]


def test_greedy_baseline() -> None:
    o = Objective(baseline="greedy")
    got = advantages(
        torch.tensor([1.0, 0.0, 1.0]),
        torch.tensor([0, 0, 1]),
        o,
        lengths_B=torch.ones(3),
        baseline_B=torch.tensor([1.0, 1.0, 0.0]),
    )
    assert got.tolist() == [0.0, -1.0, 1.0]


def test_batch_statistics_may_count_tokens() -> None:
    rows: Rows = [(0, 1.0, 3), (1, 0.0, 1)]
    # mean 3/4; deviations .25 (x3) and -.75: sample variance (3 * .0625 + .5625) / 3 = .25
    got = compute(rows, baseline="batch_mean", scale="batch_std", batch_unit="tokens")
    assert got == pytest.approx([0.5, -1.5])


def test_labels_need_not_be_adjacent_or_dense() -> None:
    a = compute([(7, 1.0, 1), (-2, 0.0, 1), (7, 0.0, 1), (-2, 1.0, 1), (-2, 1.0, 1)])
    assert a == pytest.approx([0.5, -2 / 3, -0.5, 1 / 3, 1 / 3])
    groups = number_groups(torch.tensor([7, -2, 7, -2, -2]))
    assert groups.row_B.tolist() == [1, 0, 1, 0, 0] and groups.size_K.tolist() == [3, 2]


def test_a_group_of_one_has_no_advantage() -> None:
    for baseline in ("group_mean", "leave_one_out", "length_weighted"):
        assert compute([(0, 1.0, 4), (1, 0.0, 2), (1, 1.0, 2)], baseline=baseline)[0] == 0.0


def test_silent_rows() -> None:
    r = torch.tensor([0.7, 0.7, 0.7, 0.0, 1.0, 0.1 + 0.2, 0.3], dtype=torch.float64)
    got = silent_rows(r, torch.tensor([0, 0, 0, 1, 1, 2, 2]))
    assert got.tolist() == [True, True, True, False, False, True, True]
    tiny = torch.tensor([1e-9, 2e-9], dtype=torch.float64)
    assert not silent_rows(tiny, torch.zeros(2).long()).any()


def brute_pass_at_k(rewards: list[int], k: int) -> list[float]:
    """Mean over all k-subsets: the estimator's definition, standardised as in 2508.10751."""
    n = len(rewards)
    subsets = list(itertools.combinations(range(n), k))
    value = {s: float(any(rewards[i] for i in s)) for s in subsets}
    mean = statistics.fmean(value.values())
    deviation = math.sqrt(mean * (1 - mean))
    out = []
    for i in range(n):
        mine = [v for s, v in value.items() if i in s]
        out.append((statistics.fmean(mine) - mean) / deviation)
    return out


@pytest.mark.parametrize("rewards", [[1, 0, 0, 0], [1, 1, 0, 0, 0, 0], [0, 0, 1, 0, 1, 0, 0, 0]])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_analytic_pass_at_k_equals_the_mean_over_all_subsets(rewards: list[int], k: int) -> None:
    rows: Rows = [(0, float(r), 1) for r in rewards]
    got = compute(rows, pass_at_k="analytic", k=k)
    assert got == pytest.approx(brute_pass_at_k(rewards, k), abs=1e-6)
    assert comb(len(rewards), k) > 1


def test_pass_at_k_best_minus_second() -> None:
    got = compute([(0, r, 1) for r in (0.25, 1.0, 0.5, 0.0)], pass_at_k="best_minus_second")
    assert got == [0.0, 0.5, 0.0, 0.0]
    assert compute([(0, r, 1) for r in (1.0, 1.0, 0.0)], pass_at_k="best_minus_second") == [0] * 3


def test_part_weights() -> None:
    o = Objective(parts="normalize_each", part_weights=(2.0, 0.0), scale="none", std_eps=0.0)
    parts = torch.tensor([[0.0, 5.0], [1.0, -3.0]])
    group = torch.zeros(2).long()
    got = advantages(parts.sum(1), group, o, lengths_B=torch.ones(2), parts_BN=parts)
    assert got.tolist() == pytest.approx([-(2**0.5), 2**0.5])


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_a_reward_that_is_no_number_is_an_error(bad: float) -> None:
    with pytest.raises(UsageError, match="row 1"):
        compute([(0, 1.0, 1), (0, bad, 1)])


def test_errors_name_what_is_missing() -> None:
    one = {"lengths_B": torch.ones(2)}
    r, g = torch.tensor([0.0, 1.0]), torch.zeros(2).long()
    with pytest.raises(UsageError, match="greedy"):
        advantages(r, g, Objective(baseline="greedy"), **one)
    with pytest.raises(UsageError, match="critic"):
        advantages(r, g, Objective(baseline="critic"), **one)
    with pytest.raises(UsageError, match="parts_BN"):
        advantages(r, g, Objective(parts="normalize_each"), **one)
    weights = Objective(parts="normalize_each", part_weights=(1.0,))
    with pytest.raises(UsageError, match="1 weights for 2"):
        advantages(r, g, weights, parts_BN=torch.zeros(2, 2), **one)
    with pytest.raises(UsageError, match="at least 0"):
        advantages(-r, g, Objective(scale="group_mean"), **one)
    with pytest.raises(UsageError, match="group size 2"):
        advantages(r, g, Objective(pass_at_k="analytic", k=3), **one)


def test_inputs_are_not_written_into() -> None:
    r, g = torch.tensor([0.0, 1.0, 1.0]), torch.zeros(3).long()
    before = r.clone()
    for axes in ({"scale": "group_std"}, {"baseline": "none"}, {"baseline": "leave_one_out"}):
        advantages(r, g, Objective(**axes), lengths_B=torch.ones(3)).mul_(7)
    assert torch.equal(r, before)
