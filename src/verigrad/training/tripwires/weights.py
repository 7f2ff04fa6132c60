"""Tripwires over the loss, its gradient, the optimiser and what it did to the weights."""

from __future__ import annotations

import math

import torch

from verigrad.algorithms.filters import trained_mask
from verigrad.algorithms.reduce import token_weights
from verigrad.rollout.endings import end_token_ids
from verigrad.training.policy import needs_reference
from verigrad.training.tripwires.look import Step
from verigrad.training.update import learning_rate, live_rows


def _expected_mask(s: Step) -> torch.Tensor:
    """(B, T) True on the tokens that should be trained, from the lengths that the engine reports.

    Built here anew, so that a fault in the trainer's own mask is seen.
    """
    completions = s.batch.completions
    width = max((len(c.token_ids) for c in completions), default=0)
    mask_BT = torch.zeros(len(completions), width, dtype=torch.bool)
    for b, c in enumerate(completions):
        for t in range(len(c.token_ids)):
            mask_BT[b, t] = t not in c.forced
    cut_B = torch.tensor([c.truncated for c in completions], dtype=torch.bool)
    return trained_mask(mask_BT, cut_B, s.run.objective)


def wrong_tokens_trained(s: Step) -> str | None:
    """The loss saw exactly the completion tokens: no prompt, no padding, and the end token too."""
    if not s.single_update or not len(s.batch) or "tokens" not in s.stats.sums:
        return None
    live_B = torch.tensor(live_rows(s.batch, s.run.objective))
    mask_BT = _expected_mask(s)[live_B]
    wanted, seen = int(mask_BT.sum()), round(s.stats.sums["tokens"])
    if wanted == seen:
        return None
    ends = end_token_ids(s.run.policy.tokenizer, s.run.policy.model)
    rows = [c for c, live in zip(s.batch.completions, live_B.tolist(), strict=True) if live]
    num_ends = sum(c.token_ids[-1] in ends for c in rows if c.token_ids)
    hint = ""
    if wanted - seen == num_ends:
        hint = ", as many as there are end tokens: the end of every answer is left out"
    elif seen > wanted:
        hint = ": tokens of the prompt or of the padding are in the loss"
    return (
        f"step {s.step}: the loss saw {seen} tokens, and the completions have {wanted} that are "
        f"trained{hint}"
    )


def _plain_pull(s: Step) -> bool:
    """True where the loss's pull on a row is known in closed form: -advantage times its weight."""
    o = s.run.objective
    near = not needs_reference(o) or (s.step == 1 and o.reference == "frozen")
    return (
        s.single_update and near and o.trust_region in ("clip", "score", "none")
        and o.ratio in ("token", "sequence", "sequence_token") and o.denominator == "old"
        and o.correction == "none" and o.negative_mask is None and o.drift == "none"
        and o.entropy == "none" and o.entropy_quantile == 1 and not o.positive_nll
        and s.batch.advantages.dim() == 1
    )  # fmt: skip


def gradient_misweighted(s: Step) -> str | None:
    """On-policy, d loss / d log-probability of row b sums to -A_b times the row's token weights.

    Whatever micro-batches the trainer cut: a loss normalised per micro-batch, a mask that moved, or
    an advantage of another row breaks this identity. Source: the policy gradient at ratio 1.
    """
    if not len(s.batch) or not _plain_pull(s) or not s.stats.pulls:
        return None
    index_B = torch.tensor(s.batch.group_index)
    weights_BT = token_weights(
        _expected_mask(s), index_B, s.run.objective,
        max_tokens=s.run.recipe.rollout.max_new_tokens,
    )  # fmt: skip
    wanted_B = (-s.batch.advantages.double() * weights_BT.double().sum(-1)).tolist()
    scale = max(map(abs, wanted_B))
    live = live_rows(s.batch, s.run.objective)
    for b, wanted in enumerate(wanted_B):
        seen = s.stats.pulls.get(b, 0.0)
        if live[b] and abs(seen - wanted) > 1e-3 * scale + 1e-12:
            return (
                f"step {s.step}: the loss pulls on row {b} with {seen:.6g}, and its advantage "
                f"times its weight is {wanted:.6g}"
            )
    return None


def ratio_not_one(s: Step) -> str | None:
    """The first update after sampling has the ratio 1 by definition."""
    tokens = s.stats.sums.get("tokens", 0.0)
    if not tokens or not s.single_update or s.run.objective.denominator != "old":
        return None
    ratio = s.stats.sums.get("ratio", tokens) / tokens
    if abs(ratio - 1) <= 1e-5:
        return None
    return f"step {s.step}: the mean ratio of the first update is {ratio:.6f} instead of 1"


def reference_not_start(s: Step) -> str | None:
    """Before the first update the policy is its reference, so their distance is 0."""
    if s.step != 1 or not s.single_update or "kl_mean" not in s.record:
        return None
    limit = 1e-3 if s.run.policy.precision == "bf16" else 1e-6
    if abs(s.record["kl_mean"]) <= limit:
        return None
    return (
        f"step 1: the distance to the reference policy is {s.record['kl_mean']:.4g} nats per "
        "token before any update, instead of 0"
    )


def reference_moved(s: Step) -> str | None:
    """A frozen reference keeps its weights (one sum of them is remembered)."""
    model = s.run.policy.reference
    if model is None or s.run.objective.reference != "frozen":
        return None
    total = math.fsum(float(p.detach().sum(dtype=torch.float64)) for p in model.parameters())
    before = s.run.memory.setdefault("reference_sum", total)
    if total == before:
        return None
    return f"step {s.step}: the sum of its weights went from {before!r} to {total!r}"


def gradient_zero(s: Step) -> str | None:
    """Advantages without a gradient. Where all that would pull was cut and the objective leaves cut
    completions out, ``mostly_truncated`` says it."""
    if not len(s.batch):
        return None
    pulls_B = (s.batch.advantages != 0).reshape(len(s.batch), -1).any(-1)
    if s.stats.grad_norm > 0 or not bool((_expected_mask(s).any(-1) & pulls_B).any()):
        return None
    return (
        f"step {s.step}: {int((s.batch.advantages != 0).sum())} completions have advantages other "
        "than 0, and the gradient is exactly 0"
    )


def _step_bound(s: Step) -> float:
    """The longest step AdamW can take: the learning rate per weight, times its worst bias factor,
    and the decay (Kingma and Ba 2014, section 2.1)."""
    training = s.run.recipe.training
    b1, b2 = training.betas
    worst = max(1.0, (1 - b1) / math.sqrt(1 - b2))
    parameters = s.run.policy.trained()
    size = math.sqrt(sum(p.numel() for p in parameters)) * worst
    if training.weight_decay:
        norms = [float(p.detach().norm()) for p in parameters]
        size += training.weight_decay * math.hypot(*norms)
    return learning_rate(training, s.step) * size * s.stats.num_optimizer_steps


def update_too_large(s: Step) -> str | None:
    bound = _step_bound(s)
    if s.stats.update_norm <= 1.05 * bound + 1e-9:
        return None
    return (
        f"step {s.step}: the weights moved by {s.stats.update_norm:.4g}, and AdamW at the "
        f"scheduled learning rate moves them by at most {bound:.4g}"
    )


def update_lost(s: Step) -> str | None:
    """A step far below the learning rate although there was a gradient: it rounded to nothing."""
    if not s.stats.num_optimizer_steps or s.stats.grad_norm <= 0:
        return None
    floor = 1e-4 * _step_bound(s)
    if s.stats.update_norm > floor:
        return None
    return (
        f"step {s.step}: the gradient norm is {s.stats.grad_norm:.4g} and the weights moved by "
        f"{s.stats.update_norm:.4g} (AdamW at this learning rate: up to {_step_bound(s):.4g})"
    )


def learning_rate_differs(s: Step) -> str | None:
    wanted = learning_rate(s.run.recipe.training, s.step)
    rates = {float(g["lr"]) for g in s.run.optimizer.param_groups}
    if not s.stats.num_optimizer_steps or rates == {wanted}:
        return None
    return f"step {s.step}: the optimiser used {sorted(rates)}, and the recipe says {wanted:g}"


def gradient_left_over(s: Step) -> str | None:
    """After the optimiser's step no gradient is left that the next one would add to."""
    for name, p in s.run.policy.model.named_parameters():
        if p.grad is not None and bool(p.grad.any()):
            return f"step {s.step}: after the update {name} still has a gradient"
    return None


def weights_not_finite(s: Step) -> str | None:
    for name, p in s.run.policy.model.named_parameters():
        if p.requires_grad and not math.isfinite(float(p.detach().sum())):
            return f"step {s.step}: {name} holds a value that is not finite"
    return None
