"""Trust regions against slow twins: one token at a time, in plain floats, from the paper's
sentence.

A twin returns the push on a token's log-probability (minus the loss's derivative) and the loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from objective_batches import MAX_TOKENS, batch_advantages, loss_of, ragged, whole

from verigrad.algorithms import presets
from verigrad.algorithms.losses import policy_loss
from verigrad.algorithms.reduce import token_weights
from verigrad.algorithms.trust import REGIONS, Terms
from verigrad.errors import UsageError
from verigrad.objective import Objective

Twin = Callable[[float, float, float, Objective], tuple[float, float]]


def clip(r: float, a: float, logp: float, o: Objective) -> tuple[float, float]:
    low, high = 1 - o.clip_low, 1 + o.clip_high
    inside = max(low, min(high, r))
    value, push = (r * a, r * a) if r * a <= inside * a else (inside * a, 0.0)
    if o.dual_clip is not None and a < 0 and value < o.dual_clip * a:
        value, push = o.dual_clip * a, 0.0
    return push, -value


def clip_weight(r: float, a: float, logp: float, o: Objective) -> tuple[float, float]:
    weight = max(1 - o.clip_low, min(1 + o.clip_high, r))
    return weight * a, -weight * a * logp


def clip_log(r: float, a: float, logp: float, o: Objective) -> tuple[float, float]:
    inside = max(math.log(1 - o.clip_low), min(math.log(1 + o.clip_high), math.log(r)))
    if math.log(r) * a <= inside * a:
        return a, -math.log(r) * a
    return 0.0, -inside * a


def soft_gate(r: float, a: float, logp: float, o: Objective) -> tuple[float, float]:
    tau = o.gate_positive if a > 0 else o.gate_negative
    s = 1 / (1 + math.exp(-tau * (r - 1)))
    return a * 4 * s * (1 - s) * r, -a * 4 / tau * s


def mask_tv(r: float, a: float, logp: float, o: Objective) -> tuple[float, float]:
    now, old = math.exp(logp), math.exp(logp) / r
    held = (now - old > o.clip_high) if a > 0 else (old - now > o.clip_low)
    weight = 0.0 if held else min(r, o.dual_clip or math.inf)
    return weight * a, -weight * a * logp


def mask_kl(r: float, a: float, logp: float, o: Objective) -> tuple[float, float]:
    now, old = math.exp(logp), math.exp(logp) / r
    kl = old * math.log(old / now) + (1 - old) * math.log((1 - old) / (1 - now))
    held = (now > old and kl > o.clip_high) if a > 0 else (now < old and kl > o.clip_low)
    weight = 0.0 if held else min(r, o.dual_clip or math.inf)
    return weight * a, -weight * a * logp


def taper_negative(r: float, a: float, logp: float, o: Objective) -> tuple[float, float]:
    weight = 1.0 if a >= 0 else max(0.0, min(1.0, r))
    return weight * a, -weight * a * logp


def score(r: float, a: float, logp: float, o: Objective) -> tuple[float, float]:
    return a, -a * logp


def unbounded(r: float, a: float, logp: float, o: Objective) -> tuple[float, float]:
    return r * a, -r * a


TOKEN_TWINS: dict[str, Twin] = {
    "clip": clip,
    "clip_weight": clip_weight,
    "clip_log": clip_log,
    "soft_gate": soft_gate,
    "mask_tv": mask_tv,
    "mask_kl": mask_kl,
    "taper_negative": taper_negative,
    "score": score,
    "none": unbounded,
}


@pytest.mark.parametrize("region", list(TOKEN_TWINS))
@pytest.mark.parametrize("seed", range(4))
def test_region_equals_its_twin(region: str, seed: int) -> None:
    o = Objective(trust_region=region, clip_low=0.15, clip_high=0.25, dual_clip=1.5)
    if region.startswith("mask"):
        o = Objective(trust_region=region, clip_low=0.05, clip_high=0.04, dual_clip=1.5)
    b = ragged(seed, move=0.6)
    adv = batch_advantages(o, b)
    weights = token_weights(b.mask, b.group, o, max_tokens=MAX_TOKENS)
    out, grad = loss_of(o, b, adv, weights, None)
    total = 0.0
    for i, t in b.mask.nonzero().tolist():
        lp = float(b.logprobs[i, t])
        ratio = math.exp(lp - float(b.old[i, t]))
        push, loss = TOKEN_TWINS[region](ratio, float(adv[i]), lp, o)
        total += loss * float(weights[i, t])
        assert float(grad[i, t]) == pytest.approx(-push * float(weights[i, t]), abs=1e-9)
    assert out.loss.item() == pytest.approx(total, abs=1e-9)
    assert float(grad[~b.mask].abs().sum()) == 0


def test_geometric_clip_equals_its_twin() -> None:
    o = presets.resolve("gmpo", {})
    b = ragged(5, move=0.6)
    adv = batch_advantages(o, b)
    _, grad = whole(o, b)
    out, _ = whole(o, b)
    total, held = 0.0, 0
    for i in range(len(adv)):
        a, n = float(adv[i]), int(b.mask[i].sum())
        logs = [float(b.logprobs[i, t] - b.old[i, t]) for t in range(n)]
        bounded = [min(x, 0.4) if a > 0 else max(x, -0.4) for x in logs]
        mean = math.exp(sum(bounded) / n)
        total += -a * mean / len(adv)
        for t in range(n):
            free = bounded[t] == logs[t]
            held += not free and a != 0
            expected = -a * mean / n / len(adv) if free else 0.0
            assert float(grad[i, t]) == pytest.approx(expected, abs=1e-8)
    assert held > 0 and out.loss.item() == pytest.approx(total, abs=1e-7)
    assert int(out.stats["clip_low"] + out.stats["clip_high"]) == held


def test_gamma_weight_equals_its_twin() -> None:
    o = presets.resolve("vespo", {})
    b = ragged(6, move=0.2)
    adv = batch_advantages(o, b)
    _, grad = whole(o, b)
    tokens = int(b.mask.sum())
    for i in range(len(adv)):
        a, n = float(adv[i]), int(b.mask[i].sum())
        w = math.exp(sum(float(b.logprobs[i, t] - b.old[i, t]) for t in range(n)))
        k, lam = (2.0, 3.0) if a >= 0 else (3.0, 2.0)
        phi = w**k * math.exp(lam * (1 - w))
        for t in range(n):
            assert float(grad[i, t]) == pytest.approx(-phi * a / tokens, abs=1e-8)


@pytest.mark.parametrize("name", ["gspo", "gspo_token", "luspo"])
def test_sequence_ratio_gives_every_token_of_a_completion_the_same_push(name: str) -> None:
    o = presets.resolve(name, {"clip_low": 0.05, "clip_high": 0.06})
    b = ragged(7, move=0.3)
    adv = batch_advantages(o, b)
    _, grad = whole(o, b)
    rows, held = len(adv), 0
    for i in range(rows):
        a, n = float(adv[i]), int(b.mask[i].sum())
        s = math.exp(sum(float(b.logprobs[i, t] - b.old[i, t]) for t in range(n)) / n)
        clipped = (a > 0 and s > 1.06) or (a < 0 and s < 0.95)
        held += clipped
        scale = 1.0 if name == "luspo" else 1 / n
        expected = 0.0 if clipped else -s * a * scale / rows
        for t in range(n):
            assert float(grad[i, t]) == pytest.approx(expected, abs=1e-8)
    assert held > 0


def test_gspo_token_equals_gspo_for_uniform_advantages() -> None:
    b = ragged(8)
    one, grad_one = whole(presets.resolve("gspo", {}), b)
    two, grad_two = whole(presets.resolve("gspo_token", {}), b)
    assert one.loss.item() == pytest.approx(two.loss.item(), abs=1e-9)
    assert torch.allclose(grad_one, grad_two, atol=1e-9)


@pytest.mark.parametrize(
    ("adv", "ratio", "push"),
    [(1.0, 1.5, False), (1.0, 0.5, True), (-1.0, 1.5, True), (-1.0, 0.5, False)],
)
def test_four_quadrants_of_the_clip(adv: float, ratio: float, push: bool) -> None:
    o = Objective(clip_low=0.2, clip_high=0.2, dual_clip=None)
    r = torch.tensor([[ratio]], dtype=torch.float64, requires_grad=True)
    one = torch.ones(1, 1, dtype=torch.bool)
    held = REGIONS["clip"](Terms(r.log(), r.log(), r.log(), torch.full_like(r, adv), one), o)
    (grad,) = torch.autograd.grad(held.loss.sum(), r)
    assert (grad.item() != 0) is push
    assert grad.item() == (-adv if push else 0.0)
    assert bool(held.high) is (adv > 0 and ratio > 1.2)
    assert bool(held.low) is (adv < 0 and ratio < 0.8)


@pytest.mark.parametrize("ratio", [5.0, 50.0, 1e6])
def test_dual_clip_bounds_what_the_clip_leaves_unbounded(ratio: float) -> None:
    r = torch.tensor([[ratio]], dtype=torch.float64, requires_grad=True)
    one = torch.ones(1, 1, dtype=torch.bool)
    terms = Terms(r.log(), r.log(), r.log(), torch.full_like(r, -1.0), one)
    free = REGIONS["clip"](terms, Objective(dual_clip=None))
    assert torch.autograd.grad(free.loss.sum(), r, retain_graph=True)[0].item() == pytest.approx(
        1.0
    )
    held = REGIONS["clip"](terms, Objective(dual_clip=3.0))
    assert torch.autograd.grad(held.loss.sum(), r)[0].item() == 0.0
    assert held.loss.item() == pytest.approx(3.0) and bool(held.dual)


def test_a_rare_token_is_silenced_by_the_clip_and_kept_by_the_weight() -> None:
    b = ragged(9, move=1.0)
    adv = batch_advantages(presets.resolve("cispo", {}), b)
    pushed = (adv != 0)[:, None] & b.mask
    for name, all_pushed in (("dapo", False), ("cispo", True)):
        o = presets.resolve(name, {"clip_low": 0.2} if name == "dapo" else {})
        _, grad = whole(o, b)
        assert bool((grad[pushed] != 0).all()) is all_pushed


def test_every_region_is_first_order_equal_on_policy() -> None:
    """At ratio 1 all regions push a token by A: they differ only once the policy has moved."""
    b = ragged(10, move=0.0)
    for region in REGIONS:
        if region == "geometric_clip":  # averages over the completion by definition
            continue
        o = Objective(trust_region=region, ratio="token", scale="none", dual_clip=None)
        _, grad = whole(o, b)
        adv = batch_advantages(o, b)
        weights = token_weights(b.mask, b.group, o, max_tokens=MAX_TOKENS)
        if region in ("clip_cov", "kl_cov"):
            continue
        assert torch.allclose(grad, -adv[:, None].double() * weights, atol=1e-8), region


def test_half_precision_inputs_are_computed_in_float32() -> None:
    b = ragged(12)
    o = presets.resolve("dapo", {})
    adv = batch_advantages(o, b)
    weights = token_weights(b.mask, b.group, o, max_tokens=MAX_TOKENS)
    now = b.logprobs.bfloat16().requires_grad_()
    out = policy_loss(
        o,
        logprobs_BT=now,
        old_logprobs_BT=b.old.bfloat16(),
        advantages_B=adv,
        weights_BT=weights,
        completion_mask_BT=b.mask,
    )
    wide = policy_loss(
        o,
        logprobs_BT=now.detach().float(),
        old_logprobs_BT=b.old.bfloat16().float(),
        advantages_B=adv,
        weights_BT=weights,
        completion_mask_BT=b.mask,
    )
    assert out.loss.dtype is torch.float32
    assert out.loss.item() == wide.loss.item()


def test_missing_sampler_logprobs_are_asked_for_by_axis() -> None:
    b = ragged(0)
    common = {
        "logprobs_BT": b.logprobs,
        "old_logprobs_BT": b.old,
        "advantages_B": b.rewards,
        "weights_BT": b.mask.float(),
        "completion_mask_BT": b.mask,
    }
    with pytest.raises(UsageError, match="denominator = 'sampler'"):
        policy_loss(presets.resolve("prime_rl", {}), **common)
    with pytest.raises(UsageError, match="correction = 'truncate_token'"):
        policy_loss(presets.resolve("tis", {}), **common)
    with pytest.raises(UsageError, match="entropy = 'bonus'"):
        policy_loss(presets.resolve("small", {"entropy": "bonus", "entropy_coef": 0.1}), **common)


def test_the_entropy_bonus_raises_entropy() -> None:
    o = presets.resolve("small", {"entropy": "bonus", "entropy_coef": 0.5})
    logits = torch.tensor([[2.0, 0.0, 0.0]], requires_grad=True)
    log_p = logits.log_softmax(-1)
    entropy = -(log_p.exp() * log_p).sum(-1, keepdim=True)
    one = torch.ones(1, 1)
    out = policy_loss(
        o,
        logprobs_BT=log_p[:, :1],
        old_logprobs_BT=log_p[:, :1].detach(),
        advantages_B=torch.zeros(1),
        weights_BT=one,
        completion_mask_BT=one.bool(),
        entropy_BT=entropy,
    )
    out.loss.backward()
    assert out.loss.item() == pytest.approx(-0.5 * entropy.item())
    assert logits.grad is not None
    after = (logits - 0.1 * logits.grad).detach().log_softmax(-1)
    assert -(after.exp() * after).sum() > entropy.item()
    # A controller's weight replaces the objective's.
    moved = policy_loss(
        o,
        logprobs_BT=log_p[:, :1],
        old_logprobs_BT=log_p[:, :1].detach(),
        advantages_B=torch.zeros(1),
        weights_BT=one,
        completion_mask_BT=one.bool(),
        entropy_BT=entropy,
        entropy_coef=0.25,
    )
    assert moved.loss.item() == pytest.approx(-0.25 * entropy.item())
