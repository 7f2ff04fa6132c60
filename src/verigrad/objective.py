"""An objective is data: one value on each named axis, with its numbers. Loads without torch.

``algorithms/`` computes it, ``algorithms/presets.py`` names the published combinations,
``backends/`` translates it. The trainer takes an :class:`Objective` and never reads its name.

The axes, in the order a step meets them: shaping and group filter (which rewards), baseline and
scale (advantages), ratio and trust region (how far a token may move), correction (sampler and
trainer disagree), reduction (one number), KL, drift and entropy (what is added to it).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal


def axis(default: Any, doc: str) -> Any:
    """A dataclass field whose sentence travels with it (schema, ``objective show``, docs)."""
    return field(default=default, metadata={"doc": doc})


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """One value on each axis of the GRPO family. Defaults are the defensible small-project
    choice."""

    name: str = axis("custom", "Name shown in headers and logs; nothing reads it.")

    # What is learned from.
    data: Literal["rollouts", "demonstrations", "pairs", "online_pairs"] = axis(
        "rollouts",
        "What the loss sees: judged rollouts, demonstrations, or (online) preference pairs.",
    )

    # Advantage: which number multiplies a completion.
    baseline: Literal[
        "group_mean", "leave_one_out", "batch_mean", "length_weighted", "greedy", "critic", "none"
    ] = axis("group_mean", "What is subtracted from a reward before it becomes an advantage.")
    scale: Literal["group_std", "batch_std", "centered_batch_std", "group_mean", "none"] = axis(
        "none",
        "What an advantage is divided by; batch_std is of the rewards, centered_batch_std of the "
        "advantages.",
    )
    std: Literal["sample", "population"] = axis(
        "sample", "Standard deviation over G - 1 (as TRL and verl compute it) or over G."
    )
    std_eps: float = axis(1e-6, "Added to the standard deviation before dividing.")
    batch_unit: Literal["completions", "tokens"] = axis(
        "completions", "What batch mean and batch std count: a completion once, or once per token."
    )
    parts: Literal["sum", "normalize_each"] = axis(
        "sum",
        "Several rewards: add them and normalise, or normalise each in its group and add.",
    )
    part_weights: tuple[float, ...] = axis((), "Weight of each part reward; empty weighs all 1.")
    pass_at_k: Literal["none", "best_minus_second", "analytic"] = axis(
        "none", "Reward a group for its best of k instead of its mean."
    )
    k: int = axis(1, "The k of pass_at_k.")

    # Ratio and trust region: how far a token may move.
    ratio: Literal["token", "sequence", "sequence_token", "product"] = axis(
        "token",
        "Importance ratio per token, its geometric mean over the completion, that mean with the "
        "token's own gradient, or the product over the completion.",
    )
    denominator: Literal["old", "sampler"] = axis(
        "old",
        "The policy a ratio divides by: the trainer's at the update's start, or the sampler's.",
    )
    trust_region: Literal[
        "clip",
        "clip_weight",
        "clip_log",
        "soft_gate",
        "gamma_weight",
        "geometric_clip",
        "mask_tv",
        "mask_kl",
        "taper_negative",
        "clip_cov",
        "kl_cov",
        "score",
        "none",
    ] = axis(
        "clip",
        "How far a ratio may move the policy; score ignores the ratio, none leaves it unbounded.",
    )
    clip_low: float = axis(0.2, "Lower clip: ratios below 1 - clip_low stop pushing down.")
    clip_high: float = axis(0.28, "Upper clip: ratios above 1 + clip_high stop pushing up.")
    dual_clip: float | None = axis(
        3.0, "Cap on the ratio where the advantage is negative; None is no cap."
    )
    gate_positive: float = axis(1.0, "Temperature of soft_gate where the advantage is positive.")
    gate_negative: float = axis(1.05, "Temperature of soft_gate where it is negative.")
    gamma_positive: tuple[float, float] = axis(
        (2.0, 3.0), "k and lambda of gamma_weight W^k exp(lambda (1 - W)), advantage positive."
    )
    gamma_negative: tuple[float, float] = axis(
        (3.0, 2.0), "k and lambda of gamma_weight, advantage negative."
    )
    cov_frac: float = axis(2e-4, "Share of tokens that clip_cov or kl_cov selects.")
    cov_low: float = axis(1.0, "clip_cov picks among covariances above this.")
    cov_high: float = axis(5.0, "clip_cov picks among covariances below this.")

    # Sampler and trainer disagree.
    correction: Literal[
        "none",
        "truncate_token",
        "mask_token",
        "truncate_sequence",
        "mask_sequence",
        "mask_geometric",
    ] = axis(
        "none",
        "Weight old/sampler: truncated above or masked outside its bounds, per token, per "
        "completion, or by geometric mean.",
    )
    correction_low: float = axis(0.0, "Lower bound of the correction weight (masks only).")
    correction_high: float = axis(2.0, "Upper bound of the correction weight.")
    negative_mask: float | None = axis(
        None,
        "Drop a completion with negative advantage whose mean log(sampler/policy) exceeds this.",
    )

    # From tokens to one number, over the whole optimiser batch.
    reduction: Literal["sequence_mean", "token_mean", "constant", "prompt_mean", "sequence_sum"] = (
        axis("token_mean", "How token losses become one number, over the whole optimiser batch.")
    )
    constant_length: int | None = axis(
        None, "Divisor of the constant reduction; None takes the longest completion allowed."
    )

    # Pull to other policies.
    kl: Literal["none", "k1", "k1_in_reward", "k2", "k3", "unbiased_k3"] = axis(
        "none", "Estimator of the distance to the reference policy, and where it acts."
    )
    kl_coef: float = axis(0.0, "Weight of that distance.")
    reference: Literal["frozen", "reset", "ema"] = axis(
        "frozen", "What the reference does: stay, become the policy, or follow it slowly."
    )
    reference_every: int = axis(400, "Updates between resets or moving-average steps.")
    reference_mix: float = axis(0.6, "Share of the policy in one moving-average step.")
    drift: Literal["none", "k2", "k3", "sequence_k2"] = axis(
        "none", "Penalty for leaving the policy that an update started from."
    )
    drift_coef: float = axis(0.0, "Weight of that penalty; also of kl_cov's on its tokens.")

    # Entropy.
    entropy: Literal["none", "bonus", "adaptive"] = axis(
        "none", "Add entropy to the objective: never, with a fixed or with a controlled weight."
    )
    entropy_coef: float = axis(0.0, "Weight of the entropy bonus (where it starts, if adaptive).")
    entropy_target: float = axis(0.2, "Nats per token below which the adaptive weight grows.")
    entropy_step: float = axis(0.005, "By how much the adaptive weight moves per update.")
    entropy_coef_max: float = axis(1.0, "Largest adaptive weight.")
    entropy_quantile: float = axis(
        1.0, "Train only on this share of tokens, those of highest entropy; 1 trains on all."
    )

    # Shaping: what a reward also says.
    wrong_reward: float = axis(
        0.0, "What a reward of 0 becomes; 1 stays 1 (DAPO and TOPR score wrong as -1)."
    )
    mask_truncated: bool = axis(False, "Leave completions cut by the token limit out of the loss.")
    overlong_cache_frac: float = axis(
        0.0,
        "Soft overlong penalty over this last share of the token limit (0.2 = 4096 of 20480); "
        "0 is off.",
    )
    overlong_penalty: float = axis(1.0, "Penalty at the token limit.")
    length_reward: Literal["none", "min_max", "cosine", "pass_rate"] = axis(
        "none", "Reward for brevity: within the group, along a cosine, or scaled by pass rate."
    )
    length_coef: float = axis(0.0, "Weight of the length reward.")
    repetition_penalty: float = axis(0.0, "Penalty of a completion made of repeated n-grams only.")
    repetition_ngram: int = axis(3, "The n of those n-grams.")

    # Which groups are trained on.
    group_filter: Literal["none", "drop_silent", "resample", "refill"] = axis(
        "drop_silent",
        "Groups whose rewards are all equal: kept, dropped, or replaced by drawing again (whole "
        "rounds, or group by group).",
    )
    filter_rounds: int = axis(10, "Most rounds of drawing again; then the step runs with fewer.")
    pass_low: float = axis(0.0, "Keep groups whose mean reward is at least this ...")
    pass_high: float = axis(1.0, "... and at most this (difficulty band).")
    retire_pass_rate: float | None = axis(
        None, "Do not draw a problem again once its pass rate reached this."
    )

    # Critic (baseline = critic).
    gamma: float = axis(1.0, "Discount per token.")
    lam: float = axis(1.0, "GAE lambda of the policy.")
    lam_critic: float = axis(1.0, "GAE lambda of the critic's targets.")
    lam_alpha: float | None = axis(
        None, "Length-adaptive policy lambda 1 - 1/(lam_alpha * length); None keeps lam."
    )
    value_clip: float = axis(0.2, "How far a value may move from the old one before it is clipped.")
    value_coef: float = axis(0.5, "Weight of the value loss.")
    positive_nll: float = axis(0.0, "Weight of the likelihood of correct completions.")

    # Pairs (data = pairs or online_pairs).
    preference_beta: float = axis(0.1, "Inverse temperature of the preference loss.")
    preference_length_normalized: bool = axis(False, "Divide each side's log-ratio by its length.")
    preference_nll: float = axis(0.0, "Weight of the chosen side's likelihood.")
