"""What must not matter does not matter, for every preset."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from objective_batches import (
    MAX_TOKENS,
    batch_advantages,
    batch_selection,
    loss_of,
    ragged,
    whole,
)

from verigrad.algorithms import presets
from verigrad.algorithms.advantages import advantages
from verigrad.algorithms.losses import policy_loss
from verigrad.algorithms.reduce import token_weights
from verigrad.objective import Objective

ROLLOUT = [n for n in presets.names() if presets.resolve(n, {}).data == "rollouts"]
GROUPED = ("group_mean", "leave_one_out", "length_weighted")
RELATIVE = [n for n in ROLLOUT if presets.resolve(n, {}).baseline in GROUPED]
few = settings(max_examples=8, deadline=None, derandomize=True)


def resolved(name: str) -> Objective:
    """The preset with entropy and covariance axes large enough to act on a small batch."""
    o = presets.resolve(name, {})
    changes = {"cov_frac": 0.1, "cov_low": 0.05} if "cov" in o.trust_region else {}
    return presets.resolve(name, changes)


@pytest.mark.parametrize("name", ROLLOUT)
@few
@given(seed=st.integers(0, 10_000), cuts=st.lists(st.integers(1, 11), max_size=4))
def test_micro_batches_are_exact_slices(name: str, seed: int, cuts: list[int]) -> None:
    o, b = resolved(name), ragged(seed)
    adv = batch_advantages(o, b)
    weights = token_weights(b.mask, b.group, o, max_tokens=MAX_TOKENS)
    selected = batch_selection(o, b, adv)
    out, grad = loss_of(o, b, adv, weights, selected)
    total, stats, pieces = 0.0, dict.fromkeys(out.stats, 0.0), []
    for rows in torch.tensor_split(torch.arange(len(b.rewards)), sorted(set(cuts))):
        part = None if selected is None else selected.rows(rows)
        piece, piece_grad = loss_of(o, b.rows(rows), adv[rows], weights[rows], part)
        total += piece.loss.item()
        pieces.append(piece_grad)
        for key, value in piece.stats.items():
            stats[key] += float(value)
    assert total == pytest.approx(out.loss.item(), abs=1e-10)
    assert torch.allclose(torch.cat(pieces), grad, atol=1e-12)
    assert stats == pytest.approx({k: float(v) for k, v in out.stats.items()}, abs=1e-8)


@pytest.mark.parametrize("name", ROLLOUT)
@few
@given(seed=st.integers(0, 10_000), permutation_seed=st.integers(0, 100))
def test_row_and_group_order_do_not_matter(name: str, seed: int, permutation_seed: int) -> None:
    o, b = resolved(name), ragged(seed)
    dice = torch.Generator().manual_seed(permutation_seed)
    order = torch.randperm(len(b.rewards), generator=dice)
    out, grad = whole(o, b)
    again, shuffled = whole(o, b.rows(order))
    assert again.loss.item() == pytest.approx(out.loss.item(), abs=1e-7)
    assert torch.allclose(shuffled, grad[order], atol=1e-7)


@pytest.mark.parametrize("name", ROLLOUT)
@few
@given(seed=st.integers(0, 10_000), extra=st.integers(1, 9), fill=st.sampled_from([0.0, 7.0, -1e9]))
def test_padding_does_not_matter(name: str, seed: int, extra: int, fill: float) -> None:
    o, b = resolved(name), ragged(seed)
    out, grad = whole(o, b)
    wide, wide_grad = whole(o, b.padded(extra, fill))
    assert wide.loss.item() == pytest.approx(out.loss.item(), abs=1e-9)
    assert torch.allclose(wide_grad[:, :MAX_TOKENS], grad, atol=1e-10)
    assert float(wide_grad[:, MAX_TOKENS:].abs().sum()) == 0.0


@pytest.mark.parametrize("name", ROLLOUT)
def test_infinite_and_nan_padding_does_not_matter(name: str) -> None:
    o, b = resolved(name), ragged(3)
    out, _ = whole(o, b)
    for fill in (float("-inf"), float("nan")):
        wide, grad = whole(o, b.padded(2, fill))
        assert wide.loss.item() == pytest.approx(out.loss.item(), abs=1e-9)
        assert bool(torch.isfinite(grad).all())


CONSTANTS = [round(0.01 * i, 2) for i in range(1, 201)]


@pytest.mark.parametrize("name", RELATIVE)
def test_constant_rewards_of_any_value_give_exactly_zero(name: str) -> None:
    o = presets.resolve(name, {})
    for size in (2, 3, 4, 8, 16, 64):
        # All 200 constants in one batch, one group each.
        for dtype in (torch.float32, torch.float64):
            r = torch.tensor(CONSTANTS, dtype=dtype).repeat_interleave(size)
            group = torch.arange(len(CONSTANTS)).repeat_interleave(size)
            lengths = torch.arange(len(r)) % 7 + 1
            parts = torch.stack([r, r * 3], dim=1)
            adv = advantages(r, group, o, lengths_B=lengths, parts_BN=parts)
            assert bool((adv == 0).all()), (size, dtype)


@pytest.mark.parametrize("value", [0.0, 0.1, 0.7, -3.3, 1e-9, 12345.678])
@pytest.mark.parametrize("baseline", ["batch_mean"])
def test_a_constant_batch_gives_exactly_zero(baseline: str, value: float) -> None:
    o = Objective(baseline=baseline, scale="batch_std")
    r = torch.full((12,), value)
    adv = advantages(r, torch.arange(12) // 4, o, lengths_B=torch.arange(12) + 1)
    assert bool((adv == 0).all())


def test_sums_of_parts_that_differ_by_float_noise_are_constant() -> None:
    r = torch.tensor([0.1 + 0.2, 0.3, 0.3, 0.6 - 0.3], dtype=torch.float64)
    assert len(set(r.tolist())) > 1
    adv = advantages(r, torch.zeros(4).long(), presets.resolve("grpo", {}), lengths_B=torch.ones(4))
    assert adv.tolist() == [0, 0, 0, 0]


SHIFTABLE = [
    n
    for n in RELATIVE
    if presets.resolve(n, {}).scale != "group_mean"
    and presets.resolve(n, {}).pass_at_k != "analytic"
]


@pytest.mark.parametrize("name", [*SHIFTABLE, "reinforce_plus_plus"])
@few
@given(seed=st.integers(0, 10_000), shift=st.floats(-100, 100))
def test_adding_a_constant_to_rewards_changes_nothing(name: str, seed: int, shift: float) -> None:
    o, b = presets.resolve(name, {}), ragged(seed)
    lengths = b.mask.sum(-1)
    before = advantages(b.rewards, b.group, o, lengths_B=lengths, parts_BN=b.parts)
    after = advantages(b.rewards + shift, b.group, o, lengths_B=lengths, parts_BN=b.parts + shift)
    assert torch.allclose(before, after, atol=1e-5)


@pytest.mark.parametrize("name", ROLLOUT)
@pytest.mark.parametrize("move", [50.0, 1000.0])
def test_extreme_log_ratios_stay_finite(name: str, move: float) -> None:
    o, b = resolved(name), ragged(11)
    sign = torch.where(torch.arange(MAX_TOKENS) % 2 == 0, 1.0, -1.0)
    adv = batch_advantages(o, b)
    weights = token_weights(b.mask, b.group, o, max_tokens=MAX_TOKENS).float()
    now = (b.old - 0.5 + move * sign).float().requires_grad_()
    out = policy_loss(
        o,
        logprobs_BT=now,
        old_logprobs_BT=b.old.float(),
        advantages_B=adv,
        weights_BT=weights,
        completion_mask_BT=b.mask,
        sampler_logprobs_BT=(b.old - move * sign).float(),
        ref_logprobs_BT=(b.ref + move).float(),
        entropy_BT=b.entropy.float(),
        selection=batch_selection(o, b, adv),
    )
    out.loss.backward()
    assert now.grad is not None
    assert bool(torch.isfinite(out.loss)) and bool(torch.isfinite(now.grad).all())
    assert all(bool(torch.isfinite(torch.as_tensor(v))) for v in out.stats.values())


@pytest.mark.parametrize("name", ["dr_grpo", "grpo", "dapo", "lite_ppo"])
def test_equal_lengths_make_the_reductions_coincide(name: str) -> None:
    mask = torch.ones(8, 5, dtype=torch.bool)
    group = torch.arange(8) // 4
    o = presets.resolve(name, {})
    w = {
        r: token_weights(mask, group, presets.resolve(name, {"reduction": r}), max_tokens=5)
        for r in ("sequence_mean", "token_mean", "constant", "prompt_mean")
    }
    for other in w.values():
        assert torch.allclose(w["sequence_mean"], other)
    summed = token_weights(
        mask, group, presets.resolve(name, {"reduction": "sequence_sum"}), max_tokens=5
    )
    assert torch.allclose(summed, 5 * w["sequence_mean"])
    assert o.name == name


def test_grpo_without_std_is_rloo_but_for_one_factor() -> None:
    """The identity G/(G-1), and the two real differences: std and 1/|y|."""
    for size in (2, 4, 8, 64):
        r = (torch.rand(size, generator=torch.Generator().manual_seed(size)) > 0.5).double()
        r[0], r[1] = 1.0, 0.0
        one, group = torch.ones(size), torch.zeros(size).long()
        plain = advantages(r, group, Objective(baseline="group_mean"), lengths_B=one)
        loo = advantages(r, group, Objective(baseline="leave_one_out"), lengths_B=one)
        assert torch.allclose(loo, plain * size / (size - 1), atol=1e-6)
        std = advantages(r, group, Objective(scale="group_std"), lengths_B=one)
        assert torch.allclose(std / plain, (std / plain)[0].expand(size), atol=1e-5)
    mask = torch.arange(4) < torch.tensor([[1], [4]])
    group = torch.zeros(2).long()
    seq = token_weights(mask, group, Objective(reduction="sequence_mean"), max_tokens=4)
    const = token_weights(mask, group, Objective(reduction="sequence_sum"), max_tokens=4)
    assert (seq / const)[0, 0] == 1.0 and (seq / const)[1, 0] == 0.25
