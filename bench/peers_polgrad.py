"""Pairs with polgrad: each algorithm of its registry against our preset of the same paper."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polgrad
import torch
from torch import Tensor

from peer_pairs import MAX_TOKENS, Compute, Pair, Ragged, our_loss
from verigrad.algorithms import presets
from verigrad.algorithms.advantages import advantages
from verigrad.algorithms.returns import gae
from verigrad.objective import Objective


def theirs(name: str) -> Compute:
    """polgrad's loss for a registered algorithm, its KL and correction included."""
    config = polgrad.get_algorithm(name).loss
    if config.aggregation is polgrad.Aggregation.TOKEN_SUM_NORM:
        config = replace(config, norm_len=MAX_TOKENS)

    def compute(b: Ragged, logprobs: Tensor) -> Tensor:
        return polgrad.policy_loss(
            config,
            logprobs=logprobs,
            old_logprobs=b.old,
            advantages=b.advantages,
            response_mask=b.mask,
            ref_logprobs=b.ref if config.kl else None,
            rollout_logprobs=b.sampler if config.is_correction else None,
        ).loss

    return compute


def ours(preset: str, **axes: Any) -> Compute:
    """Our preset, with the numbers that polgrad chose where the paper states none."""
    return our_loss(presets.resolve(preset, axes))


def _advantages(o: Objective) -> Compute:
    def compute(b: Ragged, logprobs: Tensor) -> Tensor:
        return advantages(b.rewards, b.group, o, lengths_B=b.mask.sum(-1)).double()

    return compute


def _their_groups(scale: str) -> Compute:
    config = polgrad.GroupNormConfig(center=True, scale=scale, eps=1e-6)
    return lambda b, _: polgrad.grpo_advantages(b.rewards, b.group, config)


def _our_gae(b: Ragged, logprobs: Tensor) -> Tensor:
    lam = torch.full((len(b.rewards),), 0.95, dtype=torch.float64)
    return gae(b.ref * b.mask, b.entropy, b.mask, gamma=0.99, lam_B=lam)


def _their_gae(b: Ragged, logprobs: Tensor) -> Tensor:
    config = polgrad.GAEConfig(gamma=0.99, lam=0.95)
    return polgrad.gae(b.ref * b.mask, b.entropy, config=config, response_mask=b.mask)[0]


def pairs() -> list[Pair]:
    """Ten losses and four estimators."""
    losses = [
        ("ppo", ours("ppo")),
        ("grpo", ours("grpo")),
        ("dr_grpo", ours("dr_grpo")),
        ("dapo", ours("dapo")),
        ("gspo", ours("gspo")),
        ("gspo_token", ours("gspo_token")),
        ("cispo", ours("cispo", clip_high=0.2)),
        ("rloo", ours("rloo")),
        ("reinforce_pp", ours("reinforce_plus_plus", reduction="sequence_mean")),
        ("grpo_tis", ours("grpo", correction="truncate_token", correction_high=10.0)),
    ]
    out = [Pair("polgrad", f"loss {name}", mine, theirs(name)) for name, mine in losses]
    exact = {"std_eps": 1e-6}
    values = [
        (
            "advantages, std",
            _advantages(Objective(scale="group_std", **exact)),
            _their_groups("std"),
        ),
        ("advantages, none", _advantages(Objective(**exact)), _their_groups("none")),
        (
            "leave one out",
            _advantages(Objective(baseline="leave_one_out")),
            lambda b, _: polgrad.rloo_advantages(b.rewards, b.group),
        ),
        ("gae", _our_gae, _their_gae),
    ]
    return out + [Pair("polgrad", name, mine, its, kind="value") for name, mine, its in values]
