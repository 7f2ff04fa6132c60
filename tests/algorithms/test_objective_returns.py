"""Advantages per token and the critic, against sums written out."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from verigrad.algorithms import presets
from verigrad.algorithms.critic import correct_weights, explained_variance, value_loss
from verigrad.algorithms.kl import token_rewards
from verigrad.algorithms.losses import policy_loss
from verigrad.algorithms.returns import (
    gae,
    needs_token_advantages,
    reward_to_go,
    token_advantages,
    whiten,
)
from verigrad.errors import UsageError
from verigrad.objective import Objective


def double_sum(r: list[float], v: list[float], gamma: float, lam: float) -> list[float]:
    """A_t = sum_l (gamma lambda)^l (r_{t+l} + gamma V_{t+l+1} - V_{t+l}), as 1506.02438 writes
    it."""
    n = len(r)
    nxt = [*v[1:], 0.0]
    delta = [r[t] + gamma * nxt[t] - v[t] for t in range(n)]
    return [sum((gamma * lam) ** k * delta[t + k] for k in range(n - t)) for t in range(n)]


@pytest.mark.parametrize(("gamma", "lam"), [(1.0, 1.0), (0.9, 0.8), (1.0, 0.0), (0.5, 1.0)])
def test_gae_is_the_double_sum(gamma: float, lam: float) -> None:
    r, v = [0.1, -0.2, 0.0, 1.0], [0.5, 0.4, -0.3, 0.2]
    mask = torch.tensor([[True] * 4 + [False] * 2])
    got = gae(
        torch.tensor([[*r, 0.0, 0.0]]).double(),
        torch.tensor([[*v, 9.0, 9.0]]).double(),
        mask,
        gamma=gamma,
        lam_B=torch.tensor([lam]).double(),
    )
    assert got[0, :4].tolist() == pytest.approx(double_sum(r, v, gamma, lam), abs=1e-7)
    assert got[0, 4:].tolist() == [0.0, 0.0]


def test_forced_tokens_are_skipped() -> None:
    """A token that was inserted is not an action: the estimate is that of the sequence without
    it."""
    lam = torch.tensor([0.7]).double()
    r, v = torch.tensor([[0.1, 0.0, 1.0]]).double(), torch.tensor([[0.5, 0.3, 0.2]]).double()
    plain = gae(r, v, torch.ones(1, 3).bool(), gamma=0.9, lam_B=lam)
    wide_r = torch.tensor([[0.1, 0.0, 0.0, 1.0]]).double()
    wide_v = torch.tensor([[0.5, 7.0, 0.3, 0.2]]).double()
    mask = torch.tensor([[True, False, True, True]])
    got = gae(wide_r, wide_v, mask, gamma=0.9, lam_B=lam)
    assert got[0, [0, 2, 3]].tolist() == pytest.approx(plain[0].tolist())
    assert got[0, 1] == 0


def test_with_lambda_one_the_advantage_is_return_minus_value() -> None:
    o = presets.resolve("ppo", {})
    mask = torch.ones(1, 4, dtype=torch.bool)
    rewards = torch.tensor([[0.0, 0.0, 0.0, 1.0]])
    values = torch.tensor([[0.2, 0.4, 0.6, 0.8]])
    adv, targets = token_advantages(o, rewards_BT=rewards, mask_BT=mask, values_BT=values)
    assert adv[0].tolist() == pytest.approx([0.8, 0.6, 0.4, 0.2])
    assert targets[0].tolist() == pytest.approx([1.0] * 4)


def test_decoupled_lambdas() -> None:
    """The critic's targets are returns (lambda 1) whatever the policy's lambda is."""
    o = presets.resolve("vapo", {})
    mask = torch.ones(1, 40, dtype=torch.bool)
    rewards = torch.zeros(1, 40)
    rewards[0, -1] = 1.0
    values = torch.full((1, 40), 0.5)
    adv, targets = token_advantages(o, rewards_BT=rewards, mask_BT=mask, values_BT=values)
    assert targets.tolist()[0] == pytest.approx([1.0] * 40)
    # lambda = 1 - 1/(.05 * 40) = .5
    assert adv[0, -1].item() == pytest.approx(0.5) and adv[0, -2].item() == pytest.approx(0.25)


def test_length_adaptive_lambda_of_a_short_completion_is_not_negative() -> None:
    from verigrad.algorithms.returns import policy_lambda

    o = presets.resolve("vapo", {})
    assert policy_lambda(o, torch.ones(1, 5).bool()).item() == 0.0


def test_reward_to_go() -> None:
    r = torch.tensor([[1.0, 2.0, 4.0]]).double()
    got = reward_to_go(r, torch.ones(1, 3).bool(), gamma=0.5)
    assert got[0].tolist() == [3.0, 4.0, 4.0]


def test_reinforce_plus_plus_spreads_kl_over_tokens() -> None:
    o = presets.resolve("reinforce_plus_plus", {"scale": "none", "kl_coef": 1.0})
    mask = torch.tensor([[True, True, False]])
    old, ref = torch.tensor([[-1.0, -2.0, 0.0]]), torch.tensor([[-1.5, -1.0, 0.0]])
    rewards = token_rewards(
        torch.tensor([1.0]), o, old_logprobs_BT=old, ref_logprobs_BT=ref, completion_mask_BT=mask
    )
    adv, _ = token_advantages(o, rewards_BT=rewards, mask_BT=mask)
    # k1 is .5 then -1: rewards -.5 and 2
    assert adv[0].tolist() == pytest.approx([1.5, 2.0, 0.0])


def test_whitening_over_tokens() -> None:
    x = torch.tensor([[1.0, 2.0, 3.0], [9.0, 9.0, 9.0]]).double()
    mask = torch.tensor([[True, True, True], [False, False, False]])
    got = whiten(x, mask, Objective(std_eps=0.0))
    assert got[0].tolist() == pytest.approx([-1.0, 0.0, 1.0])
    assert got[1].tolist() == [0.0] * 3
    assert whiten(torch.full((1, 3), 0.7), torch.ones(1, 3).bool(), Objective()).abs().sum() == 0


def test_who_needs_advantages_per_token() -> None:
    needed = {n for n in presets.names() if needs_token_advantages(presets.resolve(n, {}))}
    assert needed == {"ppo", "vapo", "reinforce_plus_plus"}


def twin_value_loss(v: list[float], old: list[float], target: list[float], eps: float) -> float:
    total = 0.0
    for x, o, r in zip(v, old, target, strict=True):
        clipped = max(o - eps, min(o + eps, x))
        total += 0.5 * max((x - r) ** 2, (clipped - r) ** 2)
    return total / len(v)


def test_value_loss_equals_its_twin_and_is_additive() -> None:
    v, old, target = [0.9, -0.3, 0.1, 2.0], [0.1, 0.0, 0.0, 0.0], [1.0, 0.5, -1.0, 0.1]
    o = Objective(value_clip=0.2, value_coef=1.0)
    weights = torch.full((2, 2), 0.25)

    def part(rows: slice) -> Tensor:
        def shape(x: list[float]) -> Tensor:
            return torch.tensor(x).view(2, 2)[rows]

        return value_loss(
            o,
            values_BT=shape(v),
            old_values_BT=shape(old),
            targets_BT=shape(target),
            weights_BT=weights[rows],
        ).loss

    whole = part(slice(0, 2))
    assert whole.item() == pytest.approx(twin_value_loss(v, old, target, 0.2), abs=1e-6)
    assert (part(slice(0, 1)) + part(slice(1, 2))).item() == pytest.approx(whole.item())


def test_a_value_held_by_its_clip_gets_no_gradient() -> None:
    v = torch.tensor([[0.9, 0.15]], requires_grad=True)
    out = value_loss(
        Objective(value_clip=0.2, value_coef=1.0),
        values_BT=v,
        old_values_BT=torch.zeros(1, 2),
        targets_BT=torch.tensor([[1.0, 1.0]]),
        weights_BT=torch.ones(1, 2),
    )
    out.loss.backward()
    assert v.grad is not None
    assert v.grad[0, 0] == 0 and v.grad[0, 1] != 0 and out.stats["value_clip"] == 1


def test_explained_variance() -> None:
    target, mask = torch.tensor([[1.0, 2.0, 3.0]]), torch.ones(1, 3).bool()
    assert explained_variance(target, target, mask).item() == pytest.approx(1.0)
    assert explained_variance(torch.full((1, 3), 2.0), target, mask).item() == pytest.approx(0.0)


def test_likelihood_of_correct_completions() -> None:
    o = presets.resolve("vapo", {"positive_nll": 0.1})
    mask = torch.tensor([[True, True, False], [True, True, True]])
    weights = correct_weights(mask, torch.tensor([True, False]))
    assert weights.tolist() == [[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]
    logprobs = torch.tensor([[-1.0, -3.0, 0.0], [-1.0, -1.0, -1.0]])
    out = policy_loss(
        o,
        logprobs_BT=logprobs,
        old_logprobs_BT=logprobs,
        advantages_B=torch.zeros(2, 3),
        weights_BT=mask.float(),
        completion_mask_BT=mask,
        nll_weights_BT=weights,
    )
    assert out.loss.item() == pytest.approx(0.1 * 2.0)
    assert correct_weights(mask, torch.tensor([False, False])).sum() == 0


def test_a_critic_without_values_is_an_error() -> None:
    with pytest.raises(UsageError, match="values_BT"):
        token_advantages(
            presets.resolve("ppo", {}),
            rewards_BT=torch.zeros(1, 2),
            mask_BT=torch.ones(1, 2).bool(),
        )
