"""Numbers computed by hand in float64 from the papers' formulas; each is one assertion."""

from __future__ import annotations

import math

import pytest
import torch

from verigrad.algorithms import presets
from verigrad.algorithms.advantages import advantages
from verigrad.algorithms.corrections import correction_weights
from verigrad.algorithms.kl import k1, k2, k3
from verigrad.algorithms.losses import policy_loss
from verigrad.algorithms.offline import preference_loss
from verigrad.algorithms.ratios import LEVELS
from verigrad.algorithms.reduce import token_weights
from verigrad.algorithms.returns import policy_lambda
from verigrad.algorithms.shaping import min_max_length, soft_overlong
from verigrad.algorithms.trust import REGIONS, Terms
from verigrad.objective import Objective


def of(rewards: list[float], group: list[int] | None = None, **axes: object) -> list[float]:
    o = Objective(**{"std_eps": 0.0, **axes})
    index = torch.tensor(group or [0] * len(rewards))
    r = torch.tensor(rewards, dtype=torch.float64)
    return advantages(r, index, o, lengths_B=torch.ones(len(rewards))).tolist()


def near(values: list[float], expected: list[float], tol: float = 1e-4) -> None:
    assert values == pytest.approx(expected, abs=tol)


def test_one_right_of_four() -> None:
    r = [1.0, 0.0, 0.0, 0.0]
    near(of(r, scale="group_std", std="population"), [1.7321, -0.5774, -0.5774, -0.5774])
    near(of(r, scale="group_std", std="sample"), [1.5, -0.5, -0.5, -0.5])
    near(of(r, scale="none"), [0.75, -0.25, -0.25, -0.25])
    near(of(r, baseline="leave_one_out"), [1.0, -0.3333, -0.3333, -0.3333])
    near(of(r, scale="group_mean"), [3.0, -1.0, -1.0, -1.0])


def test_two_right_of_four() -> None:
    r = [1.0, 0.0, 0.0, 1.0]
    near(of(r, scale="group_std", std="population"), [1.0, -1.0, -1.0, 1.0])
    near(of(r, scale="group_std", std="sample"), [0.8660, -0.8660, -0.8660, 0.8660])


def test_four_right_of_eight_differ_by_the_root_of_seven_eighths() -> None:
    r = [1.0] * 4 + [0.0] * 4
    near(of(r, scale="group_std", std="population"), [1.0] * 4 + [-1.0] * 4)
    near(of(r, scale="group_std", std="sample"), [0.935] * 4 + [-0.935] * 4, tol=1e-3)


def weights(reduction: str, **axes: object) -> list[float]:
    mask = torch.arange(10) < torch.tensor([4, 2, 10, 4])[:, None]
    o = Objective(reduction=reduction, **axes)
    return token_weights(mask, torch.zeros(4, dtype=torch.long), o, max_tokens=16)[:, 0].tolist()


def test_token_weights_of_lengths_4_2_10_4() -> None:
    near(weights("sequence_mean"), [0.0625, 0.125, 0.025, 0.0625], tol=1e-8)
    near(weights("token_mean"), [0.05] * 4, tol=1e-8)
    near(weights("constant"), [0.015625] * 4, tol=1e-8)
    mass = [w * n for w, n in zip(weights("token_mean"), (4, 2, 10, 4), strict=True)]
    near(mass, [0.2, 0.1, 0.5, 0.2], tol=1e-7)


@pytest.mark.parametrize(
    ("ratio", "adv", "expected"),
    [(1.5, 1.0, 1.28), (0.5, 1.0, 0.5), (1.5, -1.0, -1.5), (0.5, -1.0, -0.8), (5.0, -1.0, -3.0)],
)
def test_clipped_term_with_dual_clip(ratio: float, adv: float, expected: float) -> None:
    o = Objective(clip_low=0.2, clip_high=0.28, dual_clip=3.0)
    log = torch.tensor([[math.log(ratio)]], dtype=torch.float64)
    one = torch.ones(1, 1, dtype=torch.bool)
    terms = Terms(log - 3, log, log, torch.full_like(log, adv), one)
    assert -REGIONS["clip"](terms, o).loss.item() == pytest.approx(expected, abs=1e-9)


def test_sequence_ratios_of_four_log_ratios() -> None:
    log = torch.tensor([[0.3, -0.1, 0.5, 0.0]], dtype=torch.float64)
    mask = torch.ones(1, 4, dtype=torch.bool)
    assert LEVELS["sequence"](log, mask).exp()[0, 0].item() == pytest.approx(1.19125, abs=1e-5)
    assert LEVELS["product"](log, mask).exp()[0, 0].item() == pytest.approx(2.01375, abs=1e-5)


@pytest.mark.parametrize(
    ("tau", "ratio", "gate", "slope"),
    [
        (1.0, 1.0, 2.0, 1.0),
        (1.0, 1.5, 2.48984, 0.94001),
        (1.0, 0.5, 1.51016, 0.94001),
        (1.05, 1.5, 2.39359, 0.93414),
    ],
)
def test_soft_gate(tau: float, ratio: float, gate: float, slope: float) -> None:
    o = Objective(gate_positive=tau)
    r = torch.tensor([[ratio]], dtype=torch.float64, requires_grad=True)
    one = torch.ones(1, 1, dtype=torch.bool)
    value = -REGIONS["soft_gate"](Terms(r.log(), r.log(), r.log(), torch.ones_like(r), one), o).loss
    (grad,) = torch.autograd.grad(value.sum(), r)
    assert value.item() == pytest.approx(gate, abs=1e-5)
    assert grad.item() == pytest.approx(slope, abs=1e-5)


def test_kl_values() -> None:
    log = torch.tensor(-1.0 - -1.5, dtype=torch.float64)
    near([k1(log).item(), k2(log).item(), k3(log).item()], [0.5, 0.125, 0.10653], tol=1e-5)


def test_soft_overlong_penalty() -> None:
    lengths = torch.tensor([16384, 17408, 18432, 20480, 30000])
    near(soft_overlong(lengths, max_tokens=20480, cache=4096).tolist(), [0, -0.25, -0.5, -1, -1])


def test_correction_weights() -> None:
    w = [0.3, 0.5, 1.0, 2.0, 5.0, 6.0]
    old = torch.tensor([w], dtype=torch.float64).log()
    # exp(log(0.5)) must not fall below its own bound.
    zero, mask = torch.zeros_like(old), torch.ones(1, 6, dtype=torch.bool)

    def weigh(**axes: object) -> list[float]:
        out = correction_weights(
            Objective(**axes), old_logprobs_BT=old, sampler_logprobs_BT=zero, mask_BT=mask
        )
        assert out is not None
        return out[0].tolist()

    near(weigh(correction="truncate_token", correction_high=2.0), [0.3, 0.5, 1, 2, 2, 2])
    near(
        weigh(correction="mask_token", correction_low=0.5, correction_high=5.0),
        [0, 0.5, 1, 2, 5, 0],
    )


def test_reinforce_plus_plus_baseline() -> None:
    r = [1.0, 0, 0, 1, 1, 1, 1, 0]
    got = of(r, [0] * 4 + [1] * 4, scale="centered_batch_std")
    near(got, [1, -1, -1, 1, 0.5, 0.5, 0.5, -1.5])


def test_two_rewards_added_or_normalised_each() -> None:
    near(of([0.0, 1.0, 1.0, 2.0], scale="group_std"), [-1.2247, 0, 0, 1.2247])
    o = Objective(parts="normalize_each", scale="none", std_eps=0.0)
    parts = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    got = advantages(
        parts.sum(1), torch.zeros(4, dtype=torch.long), o, lengths_B=torch.ones(4), parts_BN=parts
    )
    near(got.tolist(), [-1.7321, 0, 0, 1.7321])


def test_totals_0_1_and_0_2_collapse_to_the_same_advantage() -> None:
    near(of([0.0, 1.0], scale="group_std"), [-0.7071, 0.7071])
    near(of([0.0, 2.0], scale="group_std"), [-0.7071, 0.7071])


def test_preference_loss_of_log_ratios_04_and_minus_02() -> None:
    chosen, rejected = torch.tensor([[0.4]]), torch.tensor([[-0.2]])
    zero, mask = torch.zeros(1, 1), torch.ones(1, 1, dtype=torch.bool)
    out = preference_loss(
        Objective(preference_beta=0.1),
        chosen_logprobs_BT=chosen,
        rejected_logprobs_BT=rejected,
        ref_chosen_logprobs_BT=zero,
        ref_rejected_logprobs_BT=zero,
        chosen_mask_BT=mask,
        rejected_mask_BT=mask,
        num_pairs=1,
    )
    assert out.loss.item() == pytest.approx(0.663597, abs=1e-6)
    assert out.stats["accuracy"].item() == 1


def test_length_adaptive_lambda() -> None:
    o = presets.resolve("vapo", {})
    mask = torch.zeros(3, 10000, dtype=torch.bool)
    for row, length in enumerate((100, 1000, 10000)):
        mask[row, :length] = True
    near(policy_lambda(o, mask).tolist(), [0.80, 0.98, 0.998], tol=1e-9)


def test_share_of_groups_with_signal() -> None:
    table = {
        4: (0.039, 0.185, 0.344, 0.752, 0.875),
        8: (0.077, 0.337, 0.570, 0.942, 0.992),
        16: (0.149, 0.560, 0.815, 0.997, 1.000),
    }
    from verigrad.algorithms.passk import signal_frac

    for size, expected in table.items():
        got = [signal_frac(p, size) for p in (0.01, 0.05, 0.1, 0.3, 0.5)]
        near(got, list(expected), tol=6e-4)


def test_pass_at_k_estimator() -> None:
    from verigrad.algorithms.passk import pass_at_k_estimate

    got = [pass_at_k_estimate(16, 3, k) for k in (1, 2, 4, 8, 16)]
    near(got, [0.1875, 0.35, 0.6071, 0.9, 1.0], tol=6e-5)


def test_kimi_length_reward() -> None:
    correct = torch.tensor([True, False, True, False])
    got = min_max_length(
        correct, torch.zeros(4, dtype=torch.long), torch.tensor([100, 200, 300, 400])
    )
    near(got.tolist(), [0.5, 0, -0.1667, -0.5])


def bernoulli_weight(p: float, size: int, **axes: object) -> float:
    """E[sum_i A_i (x_i - p)] / (G p (1-p)): the factor on grad p that the estimator really
    applies."""
    total = 0.0
    for right in range(size + 1):
        r = [1.0] * right + [0.0] * (size - right)
        a = of(r, **axes)
        chance = math.comb(size, right) * p**right * (1 - p) ** (size - right)
        total += chance * sum(x * (y - p) for x, y in zip(a, r, strict=True))
    return total / (size * p * (1 - p))


@pytest.mark.parametrize(
    ("axes", "expected"),
    [
        ({"baseline": "leave_one_out"}, (1.0, 1.0, 1.0, 1.0)),
        ({}, (0.875, 0.875, 0.875, 0.875)),
        ({"scale": "group_std", "std": "population"}, (1.856, 2.107, 2.473, 2.609)),
        ({"scale": "group_mean"}, (1.984, 3.951, 6.033, 6.793)),
    ],
)
def test_what_scale_and_baseline_do_to_the_gradient(
    axes: dict[str, str], expected: tuple[float, ...]
) -> None:
    near([bernoulli_weight(p, 8, **axes) for p in (0.5, 0.2, 0.05, 0.01)], list(expected), tol=2e-3)


def test_maxrl_is_the_truncated_series() -> None:
    for p in (0.5, 0.2, 0.05):
        closed = (1 - (1 - p) ** 8) / p - (1 - p) ** 7
        assert bernoulli_weight(p, 8, scale="group_mean") == pytest.approx(closed, abs=1e-5)


def test_sequence_clip_in_unnormalised_ratio() -> None:
    assert math.exp(4e-4 * 1000) == pytest.approx(1.49, abs=5e-3)
    mask = torch.ones(1, 1000, dtype=torch.bool)
    # One nudge of 4e-4 per token reaches the clip exactly where the product is 1.49.
    log = torch.full((1, 1000), 4e-4, dtype=torch.float64)
    assert LEVELS["product"](log, mask).exp()[0, 0].item() == pytest.approx(1.4918, abs=1e-4)
    assert LEVELS["sequence"](log, mask).exp()[0, 0].item() == pytest.approx(1.0004, abs=1e-6)


def test_on_policy_loss_is_zero_and_its_gradient_is_not() -> None:
    o = presets.resolve("dr_grpo", {})
    logprobs = torch.full((4, 3), -1.0, requires_grad=True)
    mask = torch.ones(4, 3, dtype=torch.bool)
    index = torch.zeros(4, dtype=torch.long)
    adv = advantages(torch.tensor([1.0, 0, 0, 1]), index, o, lengths_B=mask.sum(-1))
    w = token_weights(mask, index, o, max_tokens=3)
    out = policy_loss(
        o,
        logprobs_BT=logprobs,
        old_logprobs_BT=logprobs.detach(),
        advantages_B=adv,
        weights_BT=w,
        completion_mask_BT=mask,
    )
    out.loss.backward()
    assert out.loss.item() == pytest.approx(0.0, abs=1e-7)
    assert logprobs.grad is not None and float(logprobs.grad.abs().min()) > 0.04
