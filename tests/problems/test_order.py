"""The order of problems: a permutation an epoch, exact at every step, without a cursor."""

import pytest

from verigrad.errors import UsageError
from verigrad.problems import draw


def walk(steps, n=7, per_step=3, seed=0, shuffle=True):
    return [
        i
        for step in range(1, steps + 1)
        for i in draw(n, step=step, prompts_per_step=per_step, seed=seed, shuffle=shuffle)
    ]


def test_every_epoch_is_a_new_permutation_and_steps_may_span_epochs():
    order = walk(7)  # 21 draws: three epochs of 7
    epochs = [order[0:7], order[7:14], order[14:21]]
    assert [sorted(e) for e in epochs] == [list(range(7))] * 3
    assert epochs[0] != epochs[1] != epochs[2]


def test_any_step_is_the_same_whether_or_not_others_were_drawn_before():
    straight = walk(100)
    assert draw(7, step=61, prompts_per_step=3, seed=0, shuffle=True) == straight[180:183]


def test_without_shuffle_the_order_of_the_source_repeats():
    assert walk(3, n=4, shuffle=False) == [0, 1, 2, 3, 0, 1, 2, 3, 0]


def test_a_step_larger_than_the_set_walks_round_it():
    assert sorted(draw(2, step=1, prompts_per_step=6, seed=3, shuffle=True)) == [0, 0, 0, 1, 1, 1]


def test_seeds_give_different_orders():
    assert walk(1, n=50, per_step=50, seed=1) != walk(1, n=50, per_step=50, seed=2)


def test_the_permutation_never_changes_between_versions():
    # Written down once from Random.random(), the stream Python promises to keep.
    first = draw(6, step=1, prompts_per_step=6, seed=0, shuffle=True)
    assert first == [3, 1, 5, 0, 4, 2]


@pytest.mark.parametrize("bad", [{"num_problems": 0}, {"step": 0}, {"prompts_per_step": 0}])
def test_counts_below_one_are_refused(bad):
    values = {"num_problems": 4, "step": 1, "prompts_per_step": 2, **bad}
    with pytest.raises(UsageError, match=next(iter(bad))):
        draw(values.pop("num_problems"), **values, seed=0, shuffle=True)
