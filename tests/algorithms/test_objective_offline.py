"""SFT, RAFT and DPO: what they share with the policy gradient, and what they do not."""

from __future__ import annotations

import math

import pytest
import torch
from objective_batches import MAX_TOKENS, ragged, whole
from torch import Tensor

from verigrad.algorithms import presets
from verigrad.algorithms.offline import likelihood_loss, pair_up, preference_loss
from verigrad.algorithms.reduce import token_weights
from verigrad.objective import Objective


def test_raft_is_the_likelihood_of_correct_completions() -> None:
    """Up to one factor: RAFT's denominator counts the correct tokens, the policy loss all of
    them."""
    b = ragged(1)
    _, grad = whole(presets.resolve("raft", {}), b)
    keep = b.rewards > 0.5
    weights = token_weights(b.mask & keep[:, None], b.group, Objective(), max_tokens=MAX_TOKENS)
    logprobs = b.logprobs.clone().requires_grad_()
    out = likelihood_loss(logprobs_BT=logprobs, weights_BT=weights, keep_B=keep)
    (other,) = torch.autograd.grad(out.loss, logprobs)
    share = float((b.mask & keep[:, None]).sum() / b.mask.sum())
    assert torch.allclose(grad, other * share, atol=1e-7)


def test_sft_is_the_mean_negative_log_likelihood() -> None:
    logprobs = torch.tensor([[-1.0, -2.0, 9.0], [-4.0, 9.0, 9.0]])
    mask = torch.tensor([[True, True, False], [True, False, False]])
    o = presets.resolve("sft", {})
    weights = token_weights(mask, torch.arange(2), o, max_tokens=3)
    out = likelihood_loss(logprobs_BT=logprobs, weights_BT=weights)
    assert out.loss.item() == pytest.approx(7 / 3)
    assert out.stats["tokens"] == 3 and out.stats["nll"].item() == pytest.approx(7.0)


def pairs(seed: int) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(seed)

    def logs() -> Tensor:
        return -3 * torch.rand(4, 6, generator=g, dtype=torch.float64)

    lengths = torch.randint(1, 7, (2, 4, 1), generator=g)
    return {
        "chosen_logprobs_BT": logs(),
        "rejected_logprobs_BT": logs(),
        "ref_chosen_logprobs_BT": logs(),
        "ref_rejected_logprobs_BT": logs(),
        "chosen_mask_BT": torch.arange(6) < lengths[0],
        "rejected_mask_BT": torch.arange(6) < lengths[1],
    }


def twin(p: dict[str, Tensor], beta: float, *, normalized: bool) -> float:
    total = 0.0
    for i in range(4):
        side = []
        for name in ("chosen", "rejected"):
            n = int(p[f"{name}_mask_BT"][i].sum())
            lp, ref = p[f"{name}_logprobs_BT"][i, :n], p[f"ref_{name}_logprobs_BT"][i, :n]
            ratio = sum(float(x) - float(y) for x, y in zip(lp, ref, strict=True))
            side.append(ratio / n if normalized else ratio)
        total += math.log(1 + math.exp(-beta * (side[0] - side[1])))
    return total / 4


@pytest.mark.parametrize("name", ["dpo", "dpo_length_normalized", "dpo_online"])
def test_preference_loss_equals_its_twin(name: str) -> None:
    o, p = presets.resolve(name, {}), pairs(3)
    out = preference_loss(o, **p, num_pairs=4)
    expected = twin(p, o.preference_beta, normalized=o.preference_length_normalized)
    assert out.loss.item() == pytest.approx(expected, abs=1e-9)


def test_preference_micro_batches_add_up() -> None:
    o, p = presets.resolve("dpo", {"preference_nll": 0.2}), pairs(4)
    whole_loss = preference_loss(o, **p, num_pairs=4)
    parts = [
        preference_loss(o, **{k: v[rows] for k, v in p.items()}, num_pairs=4)
        for rows in (slice(0, 1), slice(1, 4))
    ]
    assert sum(x.loss.item() for x in parts) == pytest.approx(whole_loss.loss.item())
    assert sum(int(x.stats["pairs"]) for x in parts) == 4
    assert whole_loss.stats["loss_nll"].item() > 0


def test_gradient_coefficient_is_beta_sigma() -> None:
    """DeepSeekMath's unified view: +-beta sigma(-margin) on the two sides."""
    o, p = presets.resolve("dpo", {}), pairs(5)
    chosen = p["chosen_logprobs_BT"].clone().requires_grad_()
    rejected = p["rejected_logprobs_BT"].clone().requires_grad_()
    p = {**p, "chosen_logprobs_BT": chosen, "rejected_logprobs_BT": rejected}
    out = preference_loss(o, **p, num_pairs=1)
    up, down = torch.autograd.grad(out.loss, [chosen, rejected])
    for i in range(4):
        row = {k: v[i : i + 1].detach() for k, v in p.items()}
        margin = preference_loss(o, **row, num_pairs=1).stats["margin"].item()
        gc = o.preference_beta / (1 + math.exp(margin))
        assert up[i, 0].item() == pytest.approx(-gc, abs=1e-9)
        assert down[i, 0].item() == pytest.approx(gc, abs=1e-9)


def test_length_normalisation_removes_the_length() -> None:
    """The same log-ratio per token, on a chosen side twice as long: no preference remains."""
    o = presets.resolve("dpo_length_normalized", {})
    zero = torch.zeros(1, 4)
    out = preference_loss(
        o,
        chosen_logprobs_BT=zero + 0.3,
        rejected_logprobs_BT=zero + 0.3,
        ref_chosen_logprobs_BT=zero,
        ref_rejected_logprobs_BT=zero,
        chosen_mask_BT=torch.ones(1, 4).bool(),
        rejected_mask_BT=torch.tensor([[True, True, False, False]]),
        num_pairs=1,
    )
    assert out.loss.item() == pytest.approx(math.log(2), abs=1e-6)


def test_online_pairs_stay_within_groups_and_skip_silent_ones() -> None:
    rewards = torch.tensor([0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0])
    group = torch.tensor([0, 0, 0, 1, 1, 1, 2, 2])
    chosen, rejected = pair_up(rewards, group)
    assert chosen.tolist() == [1, 3] and rejected.tolist() == [2, 5]
    empty, none = pair_up(torch.ones(4), torch.zeros(4).long())
    assert empty.numel() == none.numel() == 0


def test_pairs_take_the_best_with_the_worst() -> None:
    rewards = torch.tensor([0.1, 0.9, 0.5, 0.4])
    chosen, rejected = pair_up(rewards, torch.zeros(4).long())
    assert list(zip(chosen.tolist(), rejected.tolist(), strict=True)) == [(1, 0), (2, 3)]
