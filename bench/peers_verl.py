"""Pairs with verl: its registered estimators, policy losses, aggregations and KL penalties."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from verl.trainer.config import AlgoConfig
from verl.trainer.ppo import core_algos
from verl.workers.config import FSDPActorConfig, FSDPOptimizerConfig, PolicyLossConfig

from peer_pairs import MAX_TOKENS, Compute, Pair, Ragged, our_loss
from verigrad.algorithms.advantages import advantages
from verigrad.algorithms.corrections import correction_weights
from verigrad.algorithms.critic import value_loss
from verigrad.algorithms.kl import k1, k2, k3
from verigrad.algorithms.reduce import token_weights
from verigrad.algorithms.returns import token_advantages
from verigrad.objective import Objective


def _token_rewards(b: Ragged, rewards: Tensor) -> Tensor:
    """The outcome at each completion's last token."""
    out = torch.zeros_like(b.old)
    out[torch.arange(len(rewards)), b.mask.sum(-1) - 1] = rewards
    return out


def verl_advantages(name: str, **inputs: Any) -> Compute:
    """verl's estimator: its (B, T) advantages."""
    config = AlgoConfig(**inputs.pop("config", {}))

    def compute(b: Ragged, logprobs: Tensor) -> Tensor:
        mask = b.mask.to(torch.float64)
        extra = {k: v(b) for k, v in inputs.items()}
        if name == "gdpo":
            return _verl_gdpo(b, mask)
        index = np.array([f"p{i}" for i in b.group.tolist()], dtype=object)
        fn = core_algos.get_adv_estimator_fn(name)
        extra = {"norm_adv_by_std_in_grpo": config.norm_adv_by_std_in_grpo, **extra}
        extra |= {"index": index, "config": config}
        if name in ("grpo_passk", "remax", "gae"):
            extra.pop("norm_adv_by_std_in_grpo")
        if name == "gae":
            del extra["index"], extra["config"]
        rewards = _token_rewards(b, b.rewards)
        return fn(token_level_rewards=rewards, response_mask=mask, **extra)[0] * mask

    return compute


def _verl_gdpo(b: Ragged, mask: Tensor) -> Tensor:
    """gdpo takes its parts from the batch dictionaries of verl's trainer."""
    prompts = torch.zeros(len(mask), 1)
    attention = torch.cat([torch.ones(len(mask), 1), mask], dim=1)
    return core_algos.compute_gdpo_outcome_advantage(
        token_level_rewards=_token_rewards(b, b.rewards),
        response_mask=mask,
        index=np.array([f"p{i}" for i in b.group.tolist()], dtype=object),
        config={"gdpo_reward_keys": ["first", "second"]},
        non_tensor_batch={"first": b.parts[:, 0].numpy(), "second": b.parts[:, 1].numpy()},
        batch={"prompts": prompts, "attention_mask": attention.long()},
    )[0]


def ours(**axes: Any) -> Compute:
    """Our advantages at every token; verl's epsilon is 1e-6."""
    o = Objective(**{"std_eps": 1e-6, **axes})

    def compute(b: Ragged, logprobs: Tensor) -> Tensor:
        adv = advantages(
            b.rewards,
            b.group,
            o,
            lengths_B=b.mask.sum(-1),
            parts_BN=b.parts,
            baseline_B=b.entropy[:, 0],
        )
        return adv[:, None].double() * b.mask

    return compute


def our_tokens(**axes: Any) -> Compute:
    """Our per-token advantages (returns-to-go, GAE)."""
    o = Objective(**{"std_eps": 0.0, **axes})

    def compute(b: Ragged, logprobs: Tensor) -> Tensor:
        return token_advantages(
            o, rewards_BT=_token_rewards(b, b.rewards), mask_BT=b.mask, values_BT=b.entropy
        )[0].double()

    return compute


def verl_loss(name: str, *, mode: str = "token-mean", **settings: Any) -> Compute:
    """verl's policy loss of this name, through its own actor config."""
    inner = {
        k: settings.pop(k) for k in list(settings) if k in PolicyLossConfig.__dataclass_fields__
    }

    def compute(b: Ragged, logprobs: Tensor) -> Tensor:
        config = FSDPActorConfig(
            strategy="fsdp",
            rollout_n=b.size,
            ppo_micro_batch_size_per_gpu=4,
            policy_loss=PolicyLossConfig(loss_mode=name, **inner),
            optim=FSDPOptimizerConfig(lr=1e-6),
            loss_agg_mode=mode,
            loss_scale_factor=MAX_TOKENS if mode.endswith("norm") else None,
            **{"clip_ratio_low": 0.2, "clip_ratio_high": 0.2, **settings},
        )
        if mode.endswith("norm"):
            config.global_batch_info["loss_scale_factor"] = MAX_TOKENS
        mask = b.mask.to(torch.float64)
        old = b.sampler if name == "bypass_mode" else b.old
        return core_algos.get_policy_loss_fn(name)(
            old_log_prob=old,
            log_prob=logprobs,
            advantages=b.advantages[:, None] * mask,
            response_mask=mask,
            loss_agg_mode=mode,
            config=config,
        )[0]

    return compute


def _clip(**axes: Any) -> Compute:
    return our_loss(Objective(**{"clip_high": 0.2, "dual_clip": None, **axes}))


def _estimators() -> list[Pair]:
    std = {"scale": "group_std"}
    rows = [
        ("grpo", ours(**std), verl_advantages("grpo"), ""),
        ("grpo_vectorized", ours(**std), verl_advantages("grpo_vectorized"), ""),
        (
            "grpo without std",
            ours(),
            verl_advantages("grpo", config={"norm_adv_by_std_in_grpo": False}),
            "",
        ),
        (
            "grpo_passk without std",
            ours(pass_at_k="best_minus_second"),
            verl_advantages("grpo_passk", config={"norm_adv_by_std_in_grpo": False}),
            "",
        ),
        ("rloo", ours(baseline="leave_one_out"), verl_advantages("rloo"), ""),
        ("rloo_vectorized", ours(baseline="leave_one_out"), verl_advantages("rloo_vectorized"), ""),
        ("opo", ours(baseline="length_weighted"), verl_advantages("opo"), ""),
        (
            "reinforce_plus_plus",
            our_tokens(baseline="batch_mean", scale="batch_std"),
            verl_advantages("reinforce_plus_plus"),
            "",
        ),
        (
            "reinforce_plus_plus_baseline, whitened over tokens",
            _whitened,
            verl_advantages("reinforce_plus_plus_baseline"),
            "",
        ),
        (
            "remax",
            ours(baseline="greedy"),
            verl_advantages("remax", reward_baselines=lambda b: b.entropy[:, 0]),
            "",
        ),
        (
            "gae",
            our_tokens(baseline="critic", scale="batch_std", gamma=0.99, lam=0.95),
            verl_advantages(
                "gae", values=lambda b: b.entropy, gamma=lambda b: 0.99, lam=lambda b: 0.95
            ),
            "",
        ),
        *_whitening_estimators(),
    ]
    return [Pair("verl", f"advantage {n}", a, t, kind="value", deviation=d) for n, a, t, d in rows]


def _whitening_estimators() -> list[tuple[str, Compute, Compute, str]]:
    """Where verl counts tokens and the paper counts completions."""
    return [
        (
            "reinforce_plus_plus_baseline",
            ours(scale="centered_batch_std"),
            verl_advantages("reinforce_plus_plus_baseline"),
            "verl whitens over tokens: it subtracts a token-weighted mean after centring, so a "
            "group of equal rewards gets a non-zero advantage. The paper counts completions; "
            "ours only divides.",
        ),
        (
            "gdpo, whitened over tokens",
            ours(parts="normalize_each", scale="batch_std", batch_unit="tokens", std_eps=1e-6),
            verl_advantages("gdpo"),
            "",
        ),
        (
            "gdpo",
            ours(parts="normalize_each", scale="batch_std"),
            verl_advantages("gdpo"),
            "verl whitens over tokens: long completions weigh more in the batch mean and "
            "deviation; the paper (and TRL) count a completion once.",
        ),
        (
            "gpg",
            ours(),
            verl_advantages("gpg"),
            "verl multiplies by (completions / non-zero rewards), GPG's alpha: a factor per batch.",
        ),
    ]


def _whitened(b: Ragged, logprobs: Tensor) -> Tensor:
    """verl's own reading of REINFORCE++-baseline, from our parts."""
    from verigrad.algorithms.returns import whiten

    centred = ours()(b, logprobs)
    return whiten(centred, b.mask, Objective(std_eps=0.0))


def _losses() -> list[Pair]:
    seq = {"reduction": "sequence_mean"}
    mean = "seq-mean-token-mean"
    score = {"trust_region": "score"}
    tv = {"clip_low": 0.05, "clip_high": 0.05, "dual_clip": 1.4}
    verl_tv = {"clip_ratio_low": 0.05, "clip_ratio_high": 0.05, "clip_ratio_c": 1.4}
    rows = [
        ("vanilla, dual clip 1.4", _clip(dual_clip=1.4), verl_loss("vanilla", clip_ratio_c=1.4)),
        (
            "vanilla, clip-higher",
            _clip(clip_high=0.28, dual_clip=3.0),
            verl_loss("vanilla", clip_ratio_high=0.28),
        ),
        (
            "gspo",
            _clip(ratio="sequence_token", clip_low=3e-4, clip_high=4e-4, **seq),
            verl_loss("gspo", mode=mean, clip_ratio_low=3e-4, clip_ratio_high=4e-4),
        ),
        (
            "sapo",
            _clip(trust_region="soft_gate", **seq),
            verl_loss("sapo", tau_pos=1.0, tau_neg=1.05),
        ),
        (
            "cispo",
            _clip(trust_region="clip_weight", clip_low=0.2, clip_high=0.2),
            verl_loss("cispo"),
        ),
        ("dppo_tv", _clip(trust_region="mask_tv", **tv), verl_loss("dppo_tv", **verl_tv)),
        ("dppo_kl", _clip(trust_region="mask_kl", **tv), verl_loss("dppo_kl", **verl_tv)),
        (
            "geo_mean (GMPO)",
            _clip(trust_region="geometric_clip", clip_low=0.4, clip_high=0.4, **seq),
            verl_loss("geo_mean", clip_ratio_low=0.4, clip_ratio_high=0.4),
        ),
        ("gpg", _clip(**score), verl_loss("gpg")),
        ("dro", _clip(drift="k2", drift_coef=0.1, **score), verl_loss("dro", dro_beta=0.1)),
        (
            "kl_cov",
            _clip(trust_region="kl_cov", cov_frac=0.1, drift_coef=1.0),
            verl_loss("kl_cov", kl_cov_ratio=0.1, ppo_kl_coef=1.0),
        ),
        (
            "clip_cov, all in the band",
            _clip(trust_region="clip_cov", cov_frac=1.0, cov_low=0.1, cov_high=9.0),
            verl_loss("clip_cov", clip_cov_ratio=1.0, clip_cov_lb=0.1, clip_cov_ub=9.0),
        ),
        ("bypass_mode, ppo_clip", _clip(denominator="sampler", dual_clip=3.0), _bypass()),
    ]
    out = [Pair("verl", f"loss {name}", a, t) for name, a, t in rows]
    return [*out, _random_clip_cov()]


def _random_clip_cov() -> Pair:
    return Pair(
        "verl",
        "loss clip_cov, random choice",
        _clip(trust_region="clip_cov", cov_frac=0.05, cov_low=0.1, cov_high=9.0),
        verl_loss("clip_cov", clip_cov_ratio=0.05, clip_cov_lb=0.1, clip_cov_ub=9.0),
        deviation="the paper draws the tokens at random, as verl does; ours takes those of "
        "highest covariance unless the caller passes its own random numbers.",
    )


def _bypass() -> Compute:
    from verl.trainer.config.algorithm import RolloutCorrectionConfig

    return verl_loss("bypass_mode", rollout_correction=RolloutCorrectionConfig.bypass_ppo_clip())


def _reductions() -> list[Pair]:
    rows = [
        ("token-mean", "token_mean"),
        ("seq-mean-token-mean", "sequence_mean"),
        ("seq-mean-token-sum", "sequence_sum"),
        ("seq-mean-token-sum-norm", "constant"),
    ]
    return [
        Pair(
            "verl",
            f"aggregation {theirs}",
            _clip(dual_clip=3.0, reduction=mine),
            verl_loss("vanilla", mode=theirs),
        )
        for theirs, mine in rows
    ]


def _penalties() -> list[Pair]:
    def theirs(kind: str) -> Compute:
        return lambda b, x: (core_algos.kl_penalty(x, b.ref, kind) * b.mask).sum()

    def mine(f: Any) -> Compute:
        return lambda b, x: (f(x - b.ref) * b.mask).sum()

    def value(b: Ragged, x: Tensor) -> Tensor:
        o = Objective(value_coef=1.0, value_clip=0.2)
        weights = token_weights(b.mask, b.group, o, max_tokens=MAX_TOKENS).double()
        return value_loss(
            o, values_BT=x, old_values_BT=b.old, targets_BT=b.ref, weights_BT=weights
        ).loss

    def verl_value(b: Ragged, x: Tensor) -> Tensor:
        return core_algos.compute_value_loss(
            vpreds=x,
            returns=b.ref,
            values=b.old,
            response_mask=b.mask.double(),
            cliprange_value=0.2,
        )[0]

    rows = [
        ("kl k1", mine(k1), theirs("k1")),
        ("kl k2", mine(k2), theirs("k2")),
        ("kl k3", mine(k3), theirs("k3")),
        ("clipped value loss", value, verl_value),
    ]
    return [Pair("verl", name, a, t) for name, a, t in rows]


def _corrections() -> list[Pair]:
    from verl.trainer.ppo.rollout_corr_helper import compute_rollout_correction_weights

    def theirs(level: str, threshold: str | float) -> Compute:
        def compute(b: Ragged, x: Tensor) -> Tensor:
            weights, _ = compute_rollout_correction_weights(
                b.old - b.sampler, b.mask, rollout_is=level, rollout_is_threshold=threshold
            )
            return weights * b.mask

        return compute

    def mine(correction: str) -> Compute:
        o = Objective(correction=correction, correction_low=0.7, correction_high=1.4)

        def compute(b: Ragged, x: Tensor) -> Tensor:
            weights = correction_weights(
                o, old_logprobs_BT=b.old, sampler_logprobs_BT=b.sampler, mask_BT=b.mask
            )
            assert weights is not None
            return weights * b.mask

        return compute

    rows = [
        ("token TIS", "truncate_token", "token", 1.4),
        ("sequence TIS", "truncate_sequence", "sequence", 1.4),
        ("token IcePop", "mask_token", "token", "0.7_1.4"),
    ]
    return [
        Pair("verl", f"rollout_is {name}", mine(ours), theirs(level, limit), kind="value")
        for name, ours, level, limit in rows
    ]


def pairs() -> list[Pair]:
    """Everything core_algos registers that has a published definition of its own."""
    return _estimators() + _losses() + _reductions() + _penalties() + _corrections()
