"""Groups -> batch: who leaves, who counts, which advantage each gets."""

from __future__ import annotations

import pytest

from verigrad.algorithms import presets
from verigrad.training.evaluate import mixed_frac, pass_at_k, wilson
from verigrad.training.verify import Judge, verify
from verigrad.training.weigh import is_silent, useful_groups, weigh
from verigrad.types import Completion, FinishReason, Group, Message, Problem, Prompt, Verdict


def group(*rewards: float | None, name: str = "p") -> Group:
    prompt = Prompt(Problem(name, (Message("user", "q"),), "1"), "q", (1, 2))
    completions = tuple(
        Completion(f"c{i}", (5, 6 + i), (-1.0, -1.0), FinishReason.STOP)
        for i in range(len(rewards))
    )
    verdicts = tuple(
        Verdict.broken("x") if r is None else (Verdict.correct() if r == 1 else Verdict.wrong())
        for r in rewards
    )
    return Group(prompt, completions, verdicts)


def test_advantages_by_hand():
    batch = weigh([group(1, 0, 0, 1)], presets.resolve("dr_grpo", {}), max_tokens=8)
    assert batch.advantages.tolist() == [0.5, -0.5, -0.5, 0.5]


def test_broken_leaves_its_group_and_a_lone_rest_leaves_too():
    groups = [group(1, None, 0), group(None, None, 1), group(None, None, None)]
    batch = weigh(groups, presets.resolve("dr_grpo", {}), max_tokens=8)
    assert batch.rewards == (1.0, 0.0)
    assert batch.advantages.tolist() == [0.5, -0.5]
    assert (batch.num_groups, batch.num_silent_groups, batch.num_broken) == (3, 2, 6)


def test_silent_groups_stay_or_leave_as_the_objective_says():
    groups = [group(1, 1), group(1, 0), group(0, 0)]
    stay = weigh(groups, presets.resolve("dr_grpo", {"group_filter": "none"}), max_tokens=8)
    leave = weigh(groups, presets.resolve("small", {}), max_tokens=8)
    assert len(stay) == 6 and len(leave) == 2
    assert stay.advantages.tolist() == [0, 0, 0.5, -0.5, 0, 0]
    assert stay.num_silent_groups == leave.num_silent_groups == 2
    assert useful_groups(groups, presets.resolve("small", {})) == [False, True, False]


def test_no_group_at_all_gives_an_empty_batch():
    batch = weigh([group(None, None)], presets.resolve("small", {}), max_tokens=8)
    assert len(batch) == 0 and batch.advantages.shape == (0,)


def test_silence_is_exact():
    assert is_silent(group(1, 1, None)) and not is_silent(group(1, 0, None))


@pytest.mark.parametrize(
    ("n", "c", "k", "expected"),
    [(4, 1, 2, 0.5), (5, 0, 3, 0.0), (5, 5, 1, 1.0), (10, 3, 1, 0.3), (4, 3, 2, 1.0)],
)
def test_pass_at_k_by_hand(n, c, k, expected):
    assert pass_at_k(n, c, k) == pytest.approx(expected)


def test_wilson_interval():
    # Newcombe 1998, table I: 81 of 263 gives 0.2553 to 0.3662.
    low, high = wilson(81 / 263, 263)
    assert (round(low, 4), round(high, 4)) == (0.2553, 0.3662)
    assert wilson(0.0, 20)[0] == 0.0 and wilson(1.0, 20)[1] == 1.0
    assert wilson(0.0, 0) == (0.0, 1.0)


def test_mixed_share():
    assert mixed_frac([group(1, 0), group(0, 0), group(1, 1), group(None, 1)]) == 0.25


class Faulty:
    name = "faulty"

    def __init__(self, answer: object) -> None:
        self._answer = answer

    def verify(self, problem, completions):
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    def check_gold(self, problem):
        return None

    def render_gold(self, problem):
        return None


@pytest.mark.parametrize("answer", [ValueError("boom"), [], [Verdict.correct()] * 3])
def test_a_failing_verifier_is_broken_and_never_wrong(answer):
    judged = verify(group(0, 0), Faulty(answer))
    assert [v.reward for v in judged.verdicts] == [None, None]
    assert "faulty" in judged.verdicts[0].reason


def test_the_judge_returns_verdicts_in_the_order_of_the_groups():
    groups = [group(0, 0, name=str(i)) for i in range(8)]
    judge = Judge(Faulty([Verdict.correct(), Verdict.wrong()]))
    for g in reversed(groups[:5]):
        judge.hear(g)
    judged = judge.verdicts(groups)
    judge.close()
    assert [g.prompt.problem.id for g in judged] == [str(i) for i in range(8)]
    assert all(g.rewards == (1.0, 0.0) for g in judged)
