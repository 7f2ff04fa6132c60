"""One batch -> new weights. Shape legend: B completions, T completion tokens.

The token weights of the reduction are worked out once over the whole optimiser batch, so that
micro-batches are exact slices of one sum. Rows that nothing pulls on (advantage 0, no KL, no
entropy term) count in the reduction and never reach the model.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from verigrad.algorithms.filters import Selection, needs_selection, selection, trained_mask
from verigrad.algorithms.losses import policy_loss
from verigrad.algorithms.reduce import token_weights
from verigrad.config import TrainingSection
from verigrad.errors import TripwireError
from verigrad.objective import Objective
from verigrad.training.forward import completion_logprobs, plan_micro_batches
from verigrad.training.policy import Policy, needs_reference, parameter_groups
from verigrad.types import Batch


@dataclass
class UpdateStats:
    """Sums over trained tokens, and what the optimiser did. ``metrics`` turns them into the run
    log's names."""

    sums: dict[str, float] = field(default_factory=dict)
    num_trained: int = 0
    num_optimizer_steps: int = 0
    grad_norm: float = 0.0
    update_norm: float = 0.0
    gap_max: float = 0.0
    pulls: dict[int, float] = field(default_factory=dict)
    """Row of the batch -> d loss / d (sum of its log-probabilities), for the tripwires."""

    def add(self, name: str, value: float) -> None:
        self.sums[name] = self.sums.get(name, 0.0) + value

    def pull(self, rows: Sequence[int], grad_RT: Tensor | None) -> None:
        """Add what the loss pulls on each row."""
        if grad_RT is not None:
            for b, value in zip(rows, grad_RT.double().sum(-1).tolist(), strict=True):
                self.pulls[b] = self.pulls.get(b, 0.0) + value

    def metrics(self) -> dict[str, float]:
        """The update's metrics under their names in ``runlog.METRICS``; without a trained token
        only the counts."""
        out: dict[str, float] = {
            "num_trained": self.num_trained,
            "grad_norm": self.grad_norm,
            "update_norm": self.update_norm,
        }
        tokens = self.sums.get("tokens", 0.0)
        if not tokens:
            return out
        names = {
            "entropy": "entropy_mean",
            "clip_low": "clip_low_frac",
            "clip_high": "clip_high_frac",
            "gap": "sampler_gap_mean",
            "sampler_kl": "sampler_kl",
            "kl": "kl_mean",
        }
        for source, name in names.items():
            if source in self.sums:
                out[name] = self.sums[source] / tokens
        out["sampler_gap_max"] = self.gap_max
        if self.sums.get("w2"):
            out["ess_frac"] = self.sums["w"] ** 2 / (self.sums["w2"] * tokens)
        return out


def make_optimizer(policy: Policy, settings: TrainingSection) -> torch.optim.AdamW:
    """AdamW over the trained parameters (fused: one pass over memory)."""
    return torch.optim.AdamW(
        list(parameter_groups(policy.model, settings.weight_decay)),
        lr=settings.learning_rate,
        betas=settings.betas,
        fused=True,
    )


def learning_rate(settings: TrainingSection, step: int) -> float:
    """Step size of 1-based ``step``: a warm-up from 0, then constant, linear or cosine to 0 at the
    end."""
    warm = settings.warmup_steps
    if step <= warm:
        return settings.learning_rate * step / (warm + 1)
    if settings.schedule == "constant":
        return settings.learning_rate
    done = (step - warm - 1) / max(1, settings.steps - warm)
    factor = 1 - done if settings.schedule == "linear" else 0.5 * (1 + math.cos(math.pi * done))
    return settings.learning_rate * factor


def update(
    policy: Policy, optimizer: torch.optim.Optimizer, batch: Batch, objective: Objective,
    *, settings: TrainingSection, temperature: float, max_tokens: int, step: int,
) -> UpdateStats:  # fmt: skip
    """Move the weights by one rollout: ``passes_per_rollout`` passes of ``updates_per_rollout``
    optimiser steps.

    ``temperature`` is the sampling temperature, ``max_tokens`` the longest possible completion (the
    constant of ``constant_mean``). Without a row that carries signal the weights, and the
    optimiser, stay as they are, bit for bit. Raises TripwireError for a gradient that is not
    finite.
    """
    stats = UpdateStats()
    for group in optimizer.param_groups:
        group["lr"] = learning_rate(settings, step)
    pieces = _optimizer_batches(batch, settings.updates_per_rollout)
    once = len(pieces) * settings.passes_per_rollout == 1
    live = live_rows(batch, objective)
    old, ref = _frozen_scores(policy, batch, objective, settings, temperature, live, once=once)
    for _ in range(settings.passes_per_rollout):
        for rows in pieces:
            weights_BT = _weights(batch, rows, objective, max_tokens)
            reached = [i for i, b in enumerate(rows) if live[b]]
            if not reached:
                continue
            work = _Work([rows[i] for i in reached], weights_BT[reached], old, ref)
            _accumulate(policy, batch, objective, work, settings, temperature, stats)
            _step(policy, optimizer, settings, stats, step)
            _move_reference(policy, objective, step)
    stats.num_trained = sum(live)
    return stats


def _optimizer_batches(batch: Batch, count: int) -> list[list[int]]:
    """Split a rollout into ``count`` optimiser batches of whole groups."""
    groups: dict[int, list[int]] = {}
    for b, g in enumerate(batch.group_index):
        groups.setdefault(g, []).append(b)
    members = list(groups.values())
    count = max(1, min(count, len(members)))
    bounds = [round(i * len(members) / count) for i in range(count + 1)]
    return [[b for group in members[lo:hi] for b in group] for lo, hi in pairwise(bounds)]


@dataclass(frozen=True)
class _Work:
    """One optimiser batch: its rows that reach the model, their token weights (R, T), frozen scores
    by row."""

    rows: list[int]
    weights_RT: Tensor
    old: dict[int, Tensor]
    ref: dict[int, Tensor]


def live_rows(batch: Batch, objective: Objective) -> list[bool]:
    """Which rows reach the model: an advantage other than 0, or a term that acts on every row (KL,
    entropy)."""
    everywhere = needs_reference(objective) or objective.entropy != "none"
    return [everywhere or a != 0.0 for a in batch.advantages.tolist()]


def _frozen_scores(
    policy: Policy, batch: Batch, objective: Objective, settings: TrainingSection,
    temperature: float, live: Sequence[bool], *, once: bool,
) -> tuple[dict[int, Tensor], dict[int, Tensor]]:  # fmt: skip
    """Log-probabilities at the update's start (only where weights move more than once) and of the
    reference."""
    rows = [b for b in range(len(batch)) if live[b]]
    old: dict[int, Tensor] = {}
    ref: dict[int, Tensor] = {}
    if not once:
        old, _ = _score(policy, policy.model, batch, rows, settings, temperature)
    if needs_reference(objective):
        with _reference(policy) as model:
            ref, _ = _score(policy, model, batch, rows, settings, temperature)
    return old, ref


def _move_reference(policy: Policy, objective: Objective, step: int) -> None:
    """Reset the reference to the policy, or let it follow, every ``reference_every`` steps."""
    if (
        policy.reference is None
        or objective.reference == "frozen"
        or step % objective.reference_every
    ):
        return
    mix = 1.0 if objective.reference == "reset" else objective.reference_mix
    with torch.no_grad():
        for r, p in zip(policy.reference.parameters(), policy.model.parameters(), strict=True):
            r.lerp_(p, mix)


@contextlib.contextmanager
def _reference(policy: Policy) -> Iterator[Any]:
    if policy.reference is not None:
        yield policy.reference
    else:
        adapted: Any = policy.model
        with adapted.disable_adapter():
            yield adapted


def _ids(batch: Batch, rows: Sequence[int]) -> tuple[list[Any], list[Any], list[int]]:
    return (
        [batch.prompts[b].token_ids for b in rows],
        [batch.completions[b].token_ids for b in rows],
        [batch.group_index[b] for b in rows],
    )


def _plan(batch: Batch, rows: Sequence[int], settings: TrainingSection) -> list[list[int]]:
    prompts, completions, index = _ids(batch, rows)
    plan = plan_micro_batches(
        [len(p) for p in prompts], [len(c) for c in completions], index,
        max_tokens=settings.micro_batch_tokens,
    )  # fmt: skip
    return [[rows[i] for i in micro] for micro in plan]


@torch.no_grad()
def _score(
    policy: Policy, model: Any, batch: Batch, rows: Sequence[int], settings: TrainingSection,
    temperature: float,
) -> tuple[dict[int, Tensor], dict[int, Tensor]]:  # fmt: skip
    """Log-probabilities and entropies of rows under ``model``, without gradients: row number ->
    (T,)."""
    logprobs: dict[int, Tensor] = {}
    entropy: dict[int, Tensor] = {}
    for micro in _plan(batch, rows, settings):
        prompts, completions, index = _ids(batch, micro)
        scores = completion_logprobs(
            model, prompts, completions, group_index=index, temperature=temperature,
            precision=policy.precision,
        )  # fmt: skip
        for i, b in enumerate(micro):
            logprobs[b], entropy[b] = scores.logprobs_BT[i], scores.entropy_BT[i]
    return logprobs, entropy


def _selection(
    policy: Policy, batch: Batch, objective: Objective, work: _Work, settings: TrainingSection,
    temperature: float,
) -> Selection | None:  # fmt: skip
    """Tokens that the objective chooses over the whole optimiser batch, None where it chooses
    none."""
    if not needs_selection(objective):
        return None
    logprobs, entropy = _score(policy, policy.model, batch, work.rows, settings, temperature)
    mask_RT = completion_mask(batch, work.rows)
    like, T = work.weights_RT, mask_RT.shape[1]
    old_RT = _padded([work.old[b] for b in work.rows], T, like) if work.old else None
    return selection(
        objective, completion_mask_BT=mask_RT, advantages_B=batch.advantages[work.rows],
        logprobs_BT=_padded([logprobs[b] for b in work.rows], T, like), old_logprobs_BT=old_RT,
        entropy_BT=_padded([entropy[b] for b in work.rows], T, like),
    )  # fmt: skip


def completion_mask(batch: Batch, rows: Sequence[int]) -> Tensor:
    """(B, T) True where we train: a completion's tokens, without those that were forced on it."""
    width = max((len(batch.completions[b].token_ids) for b in rows), default=0)
    mask_BT = torch.zeros(len(rows), width, dtype=torch.bool)
    for i, b in enumerate(rows):
        completion = batch.completions[b]
        mask_BT[i, : len(completion.token_ids)] = True
        mask_BT[i, list(completion.forced)] = False
    return mask_BT


def _weights(batch: Batch, rows: Sequence[int], objective: Objective, max_tokens: int) -> Tensor:
    cut_B = torch.tensor([batch.completions[b].truncated for b in rows])
    mask_BT = trained_mask(completion_mask(batch, rows), cut_B, objective)
    index_B = torch.tensor([batch.group_index[b] for b in rows])
    return token_weights(mask_BT, index_B, objective, max_tokens=max_tokens)


def _padded(rows: Sequence[Tensor], width: int, like: Tensor) -> Tensor:
    out = torch.zeros(len(rows), width, dtype=torch.float32, device=like.device)
    for i, row in enumerate(rows):
        n = min(width, row.shape[0])
        out[i, :n] = row[:n]
    return out


def _accumulate(
    policy: Policy, batch: Batch, objective: Objective, work: _Work, settings: TrainingSection,
    temperature: float, stats: UpdateStats,
) -> None:  # fmt: skip
    """Forward and backward of one optimiser batch, micro-batch by micro-batch."""
    place = {b: i for i, b in enumerate(work.rows)}
    chosen = _selection(policy, batch, objective, work, settings, temperature)
    policy.model.train(policy.lora)
    for micro in _plan(batch, work.rows, settings):
        prompts, completions, index = _ids(batch, micro)
        scores = completion_logprobs(
            policy.model, prompts, completions, group_index=index, temperature=temperature,
            precision=policy.precision,
        )  # fmt: skip
        now_BT = scores.logprobs_BT
        T, at = now_BT.shape[1], torch.tensor([place[b] for b in micro])
        cut_B = torch.tensor([batch.completions[b].truncated for b in micro])
        mask_BT = trained_mask(completion_mask(batch, micro), cut_B, objective).to(now_BT.device)
        sampled = [torch.tensor(batch.completions[b].sampler_logprobs) for b in micro]
        sampler_BT = _padded(sampled, T, now_BT)
        out = policy_loss(
            objective,
            logprobs_BT=now_BT,
            old_logprobs_BT=_padded([work.old[b] for b in micro], T, now_BT)
            if work.old
            else now_BT.detach(),
            advantages_B=batch.advantages[micro].to(now_BT.device),
            weights_BT=work.weights_RT[at, :T].to(now_BT.device),
            completion_mask_BT=mask_BT,
            sampler_logprobs_BT=sampler_BT,
            ref_logprobs_BT=_padded([work.ref[b] for b in micro], T, now_BT) if work.ref else None,
            entropy_BT=scores.entropy_BT,
            selection=_part(chosen, at, T),
        )
        now_BT.retain_grad()
        out.loss.backward()
        stats.pull(micro, now_BT.grad)
        for name, value in out.stats.items():
            stats.add(name, float(value))
        _measure_gap(now_BT.detach(), sampler_BT, mask_BT, stats)
    policy.model.eval()


def _part(chosen: Selection | None, at: Tensor, T: int) -> Selection | None:
    if chosen is None:
        return None
    rows = chosen.rows(at)
    return Selection(rows.train_BT[:, :T], rows.penalize_BT[:, :T])


def _measure_gap(now_BT: Tensor, sampler_BT: Tensor, mask_BT: Tensor, stats: UpdateStats) -> None:
    """How far trainer and sampler disagree on the tokens that were sampled, and the weights that
    would correct it."""
    gap = (now_BT - sampler_BT)[mask_BT].double()
    if not gap.numel():
        return
    ratio = gap.clamp(-20, 20).exp()
    stats.add("gap", float(gap.abs().sum()))
    stats.add("sampler_kl", float((ratio - 1 - gap).sum()))
    stats.add("w", float(ratio.sum()))
    stats.add("w2", float((ratio * ratio).sum()))
    stats.gap_max = max(stats.gap_max, float(gap.abs().max()))


def _step(
    policy: Policy,
    optimizer: torch.optim.Optimizer,
    settings: TrainingSection,
    stats: UpdateStats,
    step: int,
) -> None:
    parameters = policy.trained()
    limit = settings.max_grad_norm if settings.max_grad_norm is not None else math.inf
    norm = float(torch.nn.utils.clip_grad_norm_(parameters, limit))
    if not math.isfinite(norm):
        raise TripwireError(
            f"gradient_not_finite: the gradient norm is {norm} at step {step}. The weights were "
            "not touched. Lower training.learning_rate, or use model.precision = 'fp32'."
        )
    before = [p.detach().clone() for p in parameters]
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    moved = sum(
        float((p.detach() - b).pow(2).sum()) for p, b in zip(parameters, before, strict=True)
    )
    stats.update_norm += math.sqrt(moved)
    stats.grad_norm = max(stats.grad_norm, norm)
    stats.num_optimizer_steps += 1
