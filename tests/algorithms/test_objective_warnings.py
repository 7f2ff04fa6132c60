"""Silent no-ops speak."""

from __future__ import annotations

import pytest

from verigrad.algorithms import presets

CASES = [
    ("dapo", {}, 1, "trust_region = 'clip' has no effect: with one update per rollout"),
    ("gspo", {}, 1, "ratio = 'sequence' has no effect"),
    ("gspo", {"clip_low": 0.2, "clip_high": 0.2}, 4, "these never clip"),
    ("dapo", {"clip_low": 3e-4, "clip_high": 4e-4}, 4, "sized for a sequence ratio"),
    ("cispo", {"clip_high": 0.2}, 4, "caps the importance weight at 1.2"),
    ("dapo", {"kl": "k1", "kl_coef": 0.01}, 4, "expected gradient of 0"),
    ("grpo", {}, 4, "forward KL"),
    ("dapo", {"kl": "k2"}, 4, "kl_coef is 0"),
    ("dapo", {"kl_coef": 0.1}, 4, "kl is none"),
    ("dapo", {"reference": "reset"}, 4, "there is no reference"),
    ("small", {"drift": "k2"}, 4, "drift_coef is 0"),
    ("cpgd", {}, 1, "has not left its start"),
    ("kl_cov", {"drift_coef": 0.0}, 4, "its penalty, is 0"),
    ("small", {"entropy": "bonus"}, 4, "entropy_coef is 0"),
    ("small", {"baseline": "none", "scale": "group_std"}, 4, "only rescales the rewards"),
    ("topr", {"wrong_reward": 0.0}, 4, "nothing pushes down"),
    ("pass_at_k", {"k": 1}, 4, "ordinary standardised advantage"),
    ("pass_at_k", {"scale": "group_std"}, 4, "makes its own advantage"),
    ("small", {"length_reward": "min_max"}, 4, "length_coef is 0"),
    ("dapo", {}, 4, "mask_truncated hides"),
    ("dapo", {"reduction": "sequence_sum"}, 4, "weighs a completion by its length"),
    ("grpo", {"pass_high": 0.5}, 4, "group_filter is none"),
    ("small", {"ratio": "product"}, 4, "product grows with length"),
    ("small", {"baseline": "none", "scale": "group_mean"}, 4, "divides the reward by itself"),
]


@pytest.mark.parametrize(("preset", "overrides", "updates", "message"), CASES)
def test_a_no_op_is_told(
    preset: str, overrides: dict[str, object], updates: int, message: str
) -> None:
    found = presets.warnings_for(presets.resolve(preset, overrides), updates_per_rollout=updates)
    matching = [w for w in found if message in w]
    assert len(matching) == 1
    assert matching[0].startswith("objective.")


@pytest.mark.parametrize(
    "preset",
    ["small", "dr_grpo", "gspo", "cispo", "sapo", "olmo_rl_zero", "scale_rl", "rloo", "kimi_k15",
     "luspo", "vespo", "dppo", "topr", "pass_at_k", "maxrl", "skywork_or1", "deepseek_v32"],
)  # fmt: skip
def test_published_off_policy_settings_are_quiet(preset: str) -> None:
    assert presets.warnings_for(presets.resolve(preset, {}), updates_per_rollout=4) == []


def test_a_ratio_to_the_sampler_is_no_no_op_on_policy() -> None:
    o = presets.resolve("prime_rl", {})
    assert presets.warnings_for(o, updates_per_rollout=1) == []
