"""Rows into one packed tree, and rows into micro-batches: worked by hand."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from verigrad.errors import UsageError
from verigrad.training.packing import Family, pack, plan_micro_batches


def test_two_groups_without_a_common_beginning() -> None:
    layout = pack([[1, 2], [1, 2], [3]], [[7, 8, 9], [5], [6, 4]], group_index=[0, 0, 1])
    # prompts side by side, then the completions of each without their last token
    assert layout.ids_N.tolist() == [1, 2, 3, 7, 8, 6]
    assert layout.positions_N.tolist() == [0, 1, 0, 2, 3, 1]
    assert layout.families == (
        Family(0, (2, 1), ()),
        Family(3, (2,), ((0, 2),)),
        Family(5, (1,), ((2, 3),)),
    )
    assert layout.predict_M.tolist() == [1, 3, 4, 1, 2, 5]
    assert layout.targets_M.tolist() == [7, 8, 9, 5, 6, 4]
    assert layout.row_M.tolist() == [0, 0, 0, 1, 2, 2]
    assert layout.column_M.tolist() == [0, 1, 2, 0, 0, 1]
    assert (layout.num_rows, layout.width, layout.longest) == (3, 3, 4)


def test_a_common_beginning_is_there_once() -> None:
    head = [10, 11, 12, 13, 14, 15, 16, 17]
    layout = pack([[*head, 1], [*head, 2]], [[5, 6], [7]], group_index=[0, 1])
    assert layout.ids_N.tolist() == [*head, 1, 2, 5]
    assert layout.positions_N.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 9]
    assert layout.families == (
        Family(0, (8,), ()),
        Family(8, (1, 1), ((0, 8),)),
        Family(10, (1,), ((0, 8), (8, 9))),
    )
    assert layout.predict_M.tolist() == [8, 10, 9]


def test_longer_completions_come_first_and_scores_find_their_rows() -> None:
    layout = pack([[1]] * 3, [[4], [5, 6, 7], [8, 9]], group_index=[0, 0, 0])
    assert layout.ids_N.tolist() == [1, 5, 6, 8]
    values = torch.arange(1.0, 7.0)
    assert layout.targets_M.tolist() == [5, 6, 7, 8, 9, 4]
    assert layout.scatter(values).tolist() == [[6, 0, 0], [1, 2, 3], [4, 5, 0]]


def test_micro_batches_pay_for_a_prompt_once_a_group() -> None:
    # groups of 10 + 3 * 5 = 25 tokens: two fit in 50, three don't
    plan = plan_micro_batches([10] * 9, [5] * 9, [0, 0, 0, 1, 1, 1, 2, 2, 2], max_tokens=50)
    assert plan == [[0, 1, 2, 3, 4, 5], [6, 7, 8]]


def test_a_group_that_is_too_big_is_split() -> None:
    plan = plan_micro_batches([10] * 4, [20] * 4, [0] * 4, max_tokens=50)
    assert plan == [[0, 1], [2, 3]]


def test_rows_of_a_group_come_together_whatever_their_order() -> None:
    plan = plan_micro_batches([4] * 4, [4] * 4, [0, 1, 0, 1], max_tokens=100)
    assert plan == [[0, 2, 1, 3]]


def test_a_row_above_the_budget_goes_alone() -> None:
    assert plan_micro_batches([90, 5, 5], [30, 5, 5], [0, 1, 1], max_tokens=64) == [[0], [1, 2]]


@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(0, 30), st.integers(0, 4)), min_size=1),
    st.integers(1, 90),
)
def test_every_row_once_and_no_budget_broken(rows: list[tuple[int, int, int]], budget: int) -> None:
    prompt = [7 * g % 29 + 1 for _, _, g in rows]
    completion = [c for _, c, _ in rows]
    index = [g for _, _, g in rows]
    plan = plan_micro_batches(prompt, completion, index, max_tokens=budget)
    assert sorted(i for part in plan for i in part) == list(range(len(rows)))
    for part in plan:
        groups = {index[i]: prompt[i] for i in part}
        cost = sum(groups.values()) + sum(completion[i] for i in part)
        assert cost <= budget or len(part) == 1


def test_bad_budgets_and_lists_are_named() -> None:
    with pytest.raises(UsageError, match="max_tokens = 0"):
        plan_micro_batches([1], [1], [0], max_tokens=0)
    with pytest.raises(UsageError, match="2 prompt lengths, 1 completion lengths"):
        plan_micro_batches([1, 2], [1], [0], max_tokens=9)
    with pytest.raises(UsageError, match="no rows"):
        pack([], [], group_index=[])
