"""KL estimators on a categorical, where expectation and gradient can be summed exactly."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from verigrad.algorithms.advantages import advantages
from verigrad.algorithms.kl import (
    drift_term,
    loss_term,
    moved_reference,
    penalized_rewards,
    reference_due,
    token_rewards,
)
from verigrad.errors import UsageError
from verigrad.objective import Objective

LOGITS = torch.tensor([0.3, -0.7, 1.1, 0.0], dtype=torch.float64)
REF = torch.tensor([0.9, 0.2, -0.4, 0.1], dtype=torch.float64).log_softmax(-1)


def of(kl: str) -> Objective:
    return Objective(kl=kl, kl_coef=1.0)


def gradient(objective: Objective) -> Tensor:
    """Expected gradient of the loss term over y ~ pi (held fixed): sum_y pi(y) d term(y)."""
    logits = LOGITS.clone().requires_grad_()
    logprobs = logits.log_softmax(-1)[:, None]
    term = loss_term(
        objective,
        logprobs_BT=logprobs,
        ref_logprobs_BT=REF[:, None],
        log_ratio_BT=logprobs - logprobs.detach(),
        mask_BT=torch.ones(4, 1, dtype=torch.bool),
    )
    assert term is not None
    (logprobs.detach().exp() * term).sum().backward()
    assert logits.grad is not None
    return logits.grad


def exact(*, reverse: bool) -> Tensor:
    logits = LOGITS.clone().requires_grad_()
    log_pi = logits.log_softmax(-1)
    if reverse:
        (log_pi.exp() * (log_pi - REF)).sum().backward()
    else:
        (REF.exp() * (REF - log_pi)).sum().backward()
    assert logits.grad is not None
    return logits.grad


def test_gradients_in_the_loss() -> None:
    close = {"atol": 1e-12}
    assert torch.allclose(gradient(of("k1")), torch.zeros(4).double(), **close)
    reverse, forward = exact(reverse=True), exact(reverse=False)
    assert torch.allclose(gradient(of("k2")), reverse, **close)
    assert torch.allclose(gradient(of("k3")), forward, **close)
    assert torch.allclose(gradient(of("unbiased_k3")), reverse, **close)
    assert not torch.allclose(reverse, forward, atol=1e-2)


def test_gradient_of_k1_in_the_reward_is_reverse() -> None:
    o = Objective(kl="k1_in_reward", kl_coef=1.0)
    log_pi = LOGITS.log_softmax(-1)
    penalty = penalized_rewards(
        torch.zeros(4, dtype=torch.float64),
        o,
        old_logprobs_BT=log_pi[:, None],
        ref_logprobs_BT=REF[:, None],
        completion_mask_BT=torch.ones(4, 1, dtype=torch.bool),
    )
    logits = LOGITS.clone().requires_grad_()
    live = logits.log_softmax(-1)
    # REINFORCE: minimise -E[R log pi]
    (-(live.detach().exp() * penalty * live)).sum().backward()
    assert logits.grad is not None
    assert torch.allclose(logits.grad, exact(reverse=True), atol=1e-12)


def test_values_are_unbiased_but_for_k2() -> None:
    log_pi = LOGITS.log_softmax(-1)
    kl = float((log_pi.exp() * (log_pi - REF)).sum())
    for name, unbiased in (("k1", True), ("k2", False), ("k3", True), ("unbiased_k3", True)):
        term = loss_term(
            of(name),
            logprobs_BT=log_pi[:, None],
            ref_logprobs_BT=REF[:, None],
            log_ratio_BT=torch.zeros(4, 1, dtype=torch.float64),
            mask_BT=torch.ones(4, 1).bool(),
        )
        assert term is not None
        mean = float((log_pi.exp() * term[:, 0]).sum())
        assert (abs(mean - kl) < 1e-12) is unbiased, name
        assert name == "k1" or bool((term >= 0).all())


def test_off_policy_unbiased_k3_still_estimates_the_present_kl() -> None:
    """Samples come from old: the ratio makes E_old[rho k3] the KL of the present policy."""
    old = torch.tensor([0.1, 0.5, -0.2, 0.4], dtype=torch.float64).log_softmax(-1)
    log_pi = LOGITS.log_softmax(-1)
    term = loss_term(
        Objective(kl="unbiased_k3", kl_coef=1.0),
        logprobs_BT=log_pi[:, None],
        ref_logprobs_BT=REF[:, None],
        log_ratio_BT=(log_pi - old)[:, None],
        mask_BT=torch.ones(4, 1).bool(),
    )
    assert term is not None
    kl = float((log_pi.exp() * (log_pi - REF)).sum())
    assert float((old.exp() * term[:, 0]).sum()) == pytest.approx(kl, abs=1e-12)


def test_penalised_rewards_sum_k1_over_the_completion() -> None:
    o = Objective(kl="k1_in_reward", kl_coef=0.5)
    old = torch.tensor([[-1.0, -2.0, 9.0], [-1.0, -1.0, -1.0]])
    ref = torch.tensor([[-1.5, -1.0, 7.0], [-1.0, -3.0, -1.0]])
    mask = torch.tensor([[True, True, False], [True, True, True]])
    got = penalized_rewards(
        torch.tensor([1.0, 0.0]),
        o,
        old_logprobs_BT=old,
        ref_logprobs_BT=ref,
        completion_mask_BT=mask,
    )
    assert got.tolist() == pytest.approx([1 - 0.5 * (0.5 - 1.0), 0 - 0.5 * 2.0])
    tokens = token_rewards(
        torch.tensor([1.0, 0.0]),
        o,
        old_logprobs_BT=old,
        ref_logprobs_BT=ref,
        completion_mask_BT=mask,
    )
    assert tokens.sum(-1).tolist() == pytest.approx(got.tolist())
    assert tokens[0].tolist() == pytest.approx([-0.25, 1.5, 0.0])


def test_rewards_without_k1_in_reward_are_untouched() -> None:
    r, z = torch.tensor([1.0, 0.0]), torch.zeros(2, 3)
    mask = torch.ones(2, 3, dtype=torch.bool)
    got = penalized_rewards(
        r, Objective(), old_logprobs_BT=z, ref_logprobs_BT=z - 1, completion_mask_BT=mask
    )
    assert got.tolist() == [1.0, 0.0]
    tokens = token_rewards(
        r, Objective(), old_logprobs_BT=z, ref_logprobs_BT=None, completion_mask_BT=mask
    )
    assert tokens.tolist() == [[0, 0, 1], [0, 0, 0]]


def test_drift_terms() -> None:
    x = torch.tensor([[0.2, -0.4, 5.0]], dtype=torch.float64)
    mask = torch.tensor([[True, True, False]])

    def term(kind: str) -> list[float]:
        out = drift_term(Objective(drift=kind, drift_coef=1.0), x, mask)
        assert out is not None
        return out[0, :2].tolist()

    assert term("k2") == pytest.approx([0.02, 0.08])
    assert term("k3") == pytest.approx([math.exp(0.2) - 1.2, math.exp(-0.4) - 0.6])
    assert sum(term("sequence_k2")) == pytest.approx(0.5 * (0.2 - 0.4) ** 2)
    assert drift_term(Objective(), x, mask) is None


def test_reference_schedule() -> None:
    o = Objective(reference="reset", reference_every=400)
    assert [u for u in range(0, 1300) if reference_due(o, u)] == [400, 800, 1200]
    assert not any(reference_due(Objective(), u) for u in range(1000))
    ref, policy = torch.tensor([1.0]), torch.tensor([3.0])
    assert moved_reference(ref, policy, o).item() == 3.0
    ema = Objective(reference="ema", reference_mix=0.6)
    assert moved_reference(ref, policy, ema).item() == pytest.approx(1 + 0.6 * 2)
    assert ref.item() == 1.0


def test_a_missing_reference_is_an_error_that_names_the_axis() -> None:
    with pytest.raises(UsageError, match="kl = 'k3'"):
        loss_term(
            Objective(kl="k3", kl_coef=0.1),
            logprobs_BT=torch.zeros(1, 1),
            ref_logprobs_BT=None,
            log_ratio_BT=torch.zeros(1, 1),
            mask_BT=torch.ones(1, 1).bool(),
        )


def test_grpo_with_k3_pulls_forward_and_v32_reverse_in_the_whole_loss() -> None:
    """Through advantages of zero: only the KL term moves the policy."""
    from verigrad.algorithms.losses import policy_loss

    for name, reverse in (("k3", False), ("unbiased_k3", True), ("k2", True)):
        o = Objective(kl=name, kl_coef=1.0, reduction="token_mean")
        logits = LOGITS.clone().requires_grad_()
        live = logits.log_softmax(-1)[:, None]
        adv = advantages(torch.ones(4), torch.zeros(4).long(), o, lengths_B=torch.ones(4))
        out = policy_loss(
            o,
            logprobs_BT=live,
            old_logprobs_BT=live.detach(),
            advantages_B=adv,
            weights_BT=live.detach().exp(),
            completion_mask_BT=torch.ones(4, 1).bool(),
            ref_logprobs_BT=REF[:, None],
        )
        out.loss.backward()
        assert logits.grad is not None
        assert torch.allclose(logits.grad, exact(reverse=reverse), atol=1e-9)
