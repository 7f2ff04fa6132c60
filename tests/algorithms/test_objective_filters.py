"""Which groups, completions and tokens are trained on."""

from __future__ import annotations

import pytest
import torch
from objective_batches import batch_advantages, ragged, whole

from verigrad.algorithms import presets
from verigrad.algorithms.corrections import effective_sample_frac, negative_mask
from verigrad.algorithms.entropy import active_coef, next_coef, top_entropy
from verigrad.algorithms.filters import (
    keep_rows,
    more_groups,
    needs_selection,
    retired,
    selection,
    trained_mask,
)
from verigrad.errors import UsageError
from verigrad.objective import Objective


def keep(rewards: list[float], group: list[int], **axes: object) -> list[bool]:
    return keep_rows(torch.tensor(rewards), torch.tensor(group), Objective(**axes)).tolist()


def test_groups_of_equal_rewards_leave_unless_kept() -> None:
    rewards, group = [1.0, 1, 0, 1, 0, 0], [0, 0, 1, 1, 2, 2]
    for name in ("drop_silent", "resample", "refill"):
        assert keep(rewards, group, group_filter=name) == [False, False, True, True, False, False]
    assert keep(rewards, group, group_filter="none") == [True] * 6


def test_difficulty_band() -> None:
    rewards = [1.0, 1, 1, 0, 1, 0, 0, 0]
    group = [0] * 4 + [1] * 4
    assert keep(rewards, group, pass_low=0.3, pass_high=0.8) == [True] * 4 + [False] * 4
    assert keep(rewards, group, pass_low=0.1, pass_high=0.5) == [False] * 4 + [True] * 4
    assert keep([-1.0, 1.0, -1, -1], [0, 0, 1, 1]) == [True, True, False, False]


def test_drawing_again_is_bounded() -> None:
    resample = Objective(group_filter="resample", filter_rounds=3)
    refill = Objective(group_filter="refill", filter_rounds=3)
    assert more_groups(resample, wanted=16, kept=10, rounds=1) == 16
    assert more_groups(refill, wanted=16, kept=10, rounds=1) == 6
    for o in (resample, refill):
        assert more_groups(o, wanted=16, kept=16, rounds=1) == 0
        assert more_groups(o, wanted=16, kept=0, rounds=3) == 0
    assert more_groups(Objective(), wanted=16, kept=0, rounds=0) == 0
    rounds = 0
    while more_groups(resample, wanted=4, kept=0, rounds=rounds):
        rounds += 1
    assert rounds == 3


def test_retiring_problems() -> None:
    o = presets.resolve("scale_rl", {})
    assert retired(o, 0.9) and retired(o, 1.0) and not retired(o, 0.89)
    assert not retired(Objective(), 1.0)


def test_truncated_completions_leave_the_mask_only_where_asked() -> None:
    mask = torch.ones(2, 3, dtype=torch.bool)
    cut = torch.tensor([True, False])
    assert trained_mask(mask, cut, Objective()).all()
    masked = trained_mask(mask, cut, Objective(mask_truncated=True))
    assert masked.tolist() == [[False] * 3, [True] * 3]
    assert mask.all()


def test_top_entropy_keeps_the_quantile() -> None:
    entropy = torch.tensor([[0.1, 0.9, 0.5, 9.0], [0.3, 0.7, 0.2, 9.0]])
    mask = torch.tensor([[True, True, True, False]] * 2)
    # numpy's linear quantile at .5 of [.1, .2, .3, .5, .7, .9] is .4
    half = top_entropy(entropy, mask, 0.5)
    assert half.tolist() == [[False, True, True, False], [False, True, False, False]]
    assert top_entropy(entropy, mask, 1.0).equal(mask)
    assert int(top_entropy(entropy, mask, 0.01).sum()) == 1


def test_only_selected_tokens_get_a_gradient() -> None:
    o = presets.resolve("top_entropy", {})
    b = ragged(2)
    _, grad = whole(o, b)
    chosen = top_entropy(b.entropy, b.mask, 0.2)
    assert 0.15 < chosen.sum() / b.mask.sum() < 0.3
    assert float(grad[~chosen].abs().sum()) == 0 and float(grad[chosen].abs().sum()) > 0


def test_kl_cov_selects_the_highest_covariance() -> None:
    o = presets.resolve("kl_cov", {"cov_frac": 0.1})
    b = ragged(4)
    adv = batch_advantages(o, b)
    got = selection(
        o, completion_mask_BT=b.mask, advantages_B=adv, logprobs_BT=b.logprobs
    ).penalize_BT.bool()
    tokens = [(i, t) for i, t in b.mask.nonzero().tolist()]
    mean_a = sum(float(adv[i]) for i, _ in tokens) / len(tokens)
    mean_l = sum(float(b.logprobs[i, t]) for i, t in tokens) / len(tokens)
    cov = {(i, t): (float(adv[i]) - mean_a) * (float(b.logprobs[i, t]) - mean_l) for i, t in tokens}
    wanted = sorted(cov.values(), reverse=True)[: int(0.1 * len(tokens))]
    chosen = sorted((cov[i, t] for i, t in got.nonzero().tolist()), reverse=True)
    assert chosen == pytest.approx(wanted)


def test_clip_cov_can_draw_at_random_within_its_band() -> None:
    o = presets.resolve("clip_cov", {"cov_frac": 0.05, "cov_low": 0.1, "cov_high": 0.9})
    b = ragged(4)
    adv = batch_advantages(o, b)
    common = {"completion_mask_BT": b.mask, "advantages_B": adv, "logprobs_BT": b.logprobs}
    seen = set()
    for seed in range(6):
        noise = torch.rand(b.mask.shape, generator=torch.Generator().manual_seed(seed))
        out = selection(o, **common, old_logprobs_BT=b.old, noise_BT=noise)
        dropped = b.mask & (out.train_BT == 0)
        assert int(dropped.sum()) == max(int(0.05 * int(b.mask.sum())), 1)
        seen.add(tuple(map(tuple, dropped.nonzero().tolist())))
    assert len(seen) > 1
    sure = selection(o, **common, old_logprobs_BT=b.old)
    assert sure.train_BT.equal(selection(o, **common, old_logprobs_BT=b.old).train_BT)


def test_entropy_is_asked_for_by_name() -> None:
    o = Objective(entropy_quantile=0.2)
    assert needs_selection(o) and not needs_selection(Objective())
    b = ragged(0)
    with pytest.raises(UsageError, match="entropy_quantile"):
        selection(o, completion_mask_BT=b.mask, advantages_B=b.rewards, logprobs_BT=b.logprobs)


def test_stale_negatives_are_dropped_and_positives_kept() -> None:
    o = presets.resolve("deepseek_v32", {"negative_mask": 0.5})
    gap = torch.tensor([[-0.6, -0.8], [-0.6, -0.8], [-0.1, -0.2], [0.9, 0.9]])
    adv = torch.tensor([[-1.0], [1.0], [-1.0], [-1.0]]).expand(4, 2)
    mask = torch.ones(4, 2, dtype=torch.bool)
    out = negative_mask(o, behaviour_log_ratio_BT=gap, advantages_BT=adv, mask_BT=mask)
    assert out is not None
    assert out[:, 0].tolist() == [0.0, 1.0, 1.0, 1.0]
    off = negative_mask(Objective(), behaviour_log_ratio_BT=gap, advantages_BT=adv, mask_BT=mask)
    assert off is None


def test_effective_sample_frac() -> None:
    mask = torch.ones(1, 4, dtype=torch.bool)
    assert effective_sample_frac(torch.ones(1, 4), mask).item() == 1.0
    one = torch.tensor([[1.0, 0, 0, 0]])
    assert effective_sample_frac(one, mask).item() == pytest.approx(0.25)


def test_adaptive_entropy_controller() -> None:
    o = presets.resolve("skywork_or1", {})
    coef = 0.0
    for _ in range(3):
        coef = next_coef(o, coef, measured=0.1)
    assert coef == pytest.approx(0.015)
    assert next_coef(o, coef, measured=0.5) == pytest.approx(0.010)
    assert next_coef(o, 0.0, measured=0.5) == 0.0
    assert next_coef(o, 1.0, measured=0.0) == o.entropy_coef_max
    assert active_coef(o, coef, measured=0.5) == 0.0 and active_coef(o, coef, measured=0.1) == coef
    bonus = Objective(entropy="bonus", entropy_coef=0.01)
    assert next_coef(bonus, 0.01, measured=9.0) == active_coef(bonus, 0.01, measured=9.0) == 0.01
    assert active_coef(Objective(), 0.5, measured=0.0) == 0.0
