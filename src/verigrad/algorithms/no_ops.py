"""Axes that do nothing here, or something other than their name suggests: one sentence each."""

from __future__ import annotations

from verigrad.objective import Objective

Found = tuple[bool, str]
"""Whether it applies, and what to say."""


def warnings_for(objective: Objective, *, updates_per_rollout: int) -> list[str]:
    """One sentence for each axis that does nothing here or something other than its name
    suggests."""
    found = _silent_no_ops(objective, on_policy=updates_per_rollout == 1)
    return [message for wrong, message in found if wrong]


def _silent_no_ops(o: Objective, *, on_policy: bool) -> list[Found]:
    bounded = o.trust_region not in ("score", "none")
    same = on_policy and o.denominator == "old"
    sequence = o.ratio in ("sequence", "sequence_token")
    weight = o.trust_region == "clip_weight"
    return [
        (
            same and bounded and o.trust_region != "kl_cov",
            f"objective.trust_region = {o.trust_region!r} has no effect: with one update per "
            "rollout the ratio is 1 (clip_low, clip_high and dual_clip are inert, and a loss "
            "near 0 is normal).",
        ),
        (
            same and o.ratio != "token" and o.trust_region != "geometric_clip",
            f"objective.ratio = {o.ratio!r} has no effect on the ratio's value: with one update "
            "per rollout every ratio is 1.",
        ),
        (
            same and o.drift != "none" and o.drift_coef > 0,
            "objective.drift has no effect: with one update per rollout the policy has not left "
            "its start.",
        ),
        (
            sequence and o.trust_region == "clip" and max(o.clip_low, o.clip_high) > 0.02,
            f"objective.ratio = {o.ratio!r} with clip_low = {o.clip_low}, clip_high = "
            f"{o.clip_high}: a mean over a completion moves about 100 times less than a token, so "
            "these never clip. GSPO uses 3e-4 and 4e-4.",
        ),
        (
            o.ratio == "product" and o.trust_region == "clip",
            "objective.ratio = 'product' with trust_region = 'clip': the product grows with "
            "length, so a long completion is clipped after one off-policy update whatever it "
            "says.",
        ),
        (
            o.ratio == "token" and o.trust_region == "clip" and 0 < o.clip_high < 0.01,
            f"objective.clip_high = {o.clip_high} is sized for a sequence ratio; with ratio = "
            "'token' it holds back nearly every token.",
        ),
        (
            weight and o.clip_high < 1,
            f"objective.clip_high = {o.clip_high} with trust_region = 'clip_weight' caps the "
            f"importance weight at {1 + o.clip_high:g}; the method needs a cap of about 5 "
            "(clip_high = 4). In TRL the cap is absolute, so its 0.2 scales the whole gradient "
            "by 0.2.",
        ),
        *_pulls(o),
        *_signals(o),
    ]


def _pulls(o: Objective) -> list[Found]:
    """KL, drift and entropy that do not pull, or not where their name says."""
    return [
        (
            o.kl == "k1" and o.kl_coef > 0,
            "objective.kl = 'k1' in the loss has an expected gradient of 0: it adds noise and no "
            "pull. Use k1_in_reward, k2 or unbiased_k3.",
        ),
        (
            o.kl == "k3" and o.kl_coef > 0,
            "objective.kl = 'k3' pulls with the gradient of the forward KL(ref || policy), "
            "unbounded where the policy avoids a token. unbiased_k3 or k2 give the reverse KL.",
        ),
        (
            o.kl != "none" and o.kl_coef == 0,
            f"objective.kl = {o.kl!r} has no effect: kl_coef is 0.",
        ),
        (
            o.kl == "none" and o.kl_coef > 0,
            f"objective.kl_coef = {o.kl_coef} has no effect: kl is none.",
        ),
        (
            o.kl == "none" and o.reference != "frozen",
            f"objective.reference = {o.reference!r} has no effect: kl is none, there is no "
            "reference.",
        ),
        (
            o.drift != "none" and o.drift_coef == 0,
            f"objective.drift = {o.drift!r} has no effect: drift_coef is 0.",
        ),
        (
            o.trust_region == "kl_cov" and o.drift_coef == 0,
            "objective.trust_region = 'kl_cov' has no effect: drift_coef, its penalty, is 0.",
        ),
        (
            o.entropy == "bonus" and o.entropy_coef == 0,
            "objective.entropy = 'bonus' has no effect: entropy_coef is 0.",
        ),
    ]


def _signals(o: Objective) -> list[Found]:
    """Baselines, scales, shaping and filters that cancel each other."""
    relative = o.baseline not in ("none", "critic")
    return [
        (
            o.scale in ("group_std", "batch_std", "centered_batch_std") and o.baseline == "none",
            f"objective.scale = {o.scale!r} without a baseline only rescales the rewards.",
        ),
        (
            o.trust_region == "taper_negative" and o.baseline == "none" and o.wrong_reward >= 0,
            "objective.trust_region = 'taper_negative' without a baseline needs wrong_reward "
            f"below 0 (it is {o.wrong_reward:g}): nothing pushes down.",
        ),
        (
            o.scale == "group_mean" and not relative,
            "objective.scale = 'group_mean' without a group baseline divides the reward by itself.",
        ),
        (
            o.pass_at_k == "analytic" and o.k == 1,
            "objective.pass_at_k = 'analytic' with k = 1 is the ordinary standardised advantage.",
        ),
        (
            o.pass_at_k != "none" and (o.scale != "none" or o.baseline != "group_mean"),
            "objective.baseline and scale have no effect: pass_at_k makes its own advantage.",
        ),
        (
            o.length_reward != "none" and o.length_coef == 0,
            f"objective.length_reward = {o.length_reward!r} has no effect: length_coef is 0.",
        ),
        (
            o.mask_truncated and o.overlong_cache_frac > 0,
            "objective.mask_truncated hides the completions that overlong_cache_frac penalises "
            "most; they still move their group's baseline.",
        ),
        (
            o.reduction == "sequence_sum" and o.ratio == "token" and o.trust_region == "clip",
            "objective.reduction = 'sequence_sum' with a token ratio weighs a completion by its "
            "length; it is meant for ratio = 'sequence'.",
        ),
        (
            o.group_filter == "none" and o.pass_high < 1,
            "objective.pass_high has no effect: group_filter is none.",
        ),
    ]
