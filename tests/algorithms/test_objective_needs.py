"""What an objective must be given: told before a run, not at its first step."""

from __future__ import annotations

from typing import get_args

import pytest
from objective_batches import batch_advantages, ragged

from verigrad.algorithms import presets
from verigrad.algorithms.filters import needs_selection
from verigrad.algorithms.losses import policy_loss
from verigrad.algorithms.needs import WHY, Need, needs
from verigrad.algorithms.reduce import token_weights
from verigrad.algorithms.returns import needs_token_advantages
from verigrad.errors import UsageError

EXPECTED = {
    "small": {"old_logprobs"},
    "grpo": {"old_logprobs", "reference_logprobs"},
    "rloo": {"reference_logprobs", "reward_kl"},
    "ppo": {"old_logprobs", "token_advantages", "critic"},
    "vapo": {"old_logprobs", "token_advantages", "critic", "correct_likelihood"},
    "reinforce_plus_plus": {"old_logprobs", "reference_logprobs", "token_advantages"},
    "remax": {"reference_logprobs", "reward_kl", "greedy_completion"},
    "gdpo": {"old_logprobs", "parts"},
    "scale_rl": {"old_logprobs", "problem_retirement"},
    "skywork_or1": {"old_logprobs", "entropy_gradient", "entropy_controller"},
    "top_entropy": {"old_logprobs", "entropy", "selection"},
    "prime_rl": {"sampler_logprobs", "old_logprobs"},
    "topr": {"sampler_logprobs"},
    "glm5": {"old_logprobs", "sampler_logprobs"},
    "kimi_k15": {"old_logprobs"},
    "sft": {"demonstrations"},
    "dpo": {"pairs", "reference_logprobs"},
}


@pytest.mark.parametrize("name", list(EXPECTED))
def test_needs(name: str) -> None:
    assert needs(presets.resolve(name, {})) == EXPECTED[name]


def test_every_need_has_a_reason() -> None:
    assert set(WHY) == set(get_args(Need))


@pytest.mark.parametrize("name", presets.names())
def test_needs_agree_with_the_functions_that_serve_them(name: str) -> None:
    o = presets.resolve(name, {})
    assert ("selection" in needs(o)) is needs_selection(o)
    assert ("token_advantages" in needs(o)) is needs_token_advantages(o)


ROLLOUT = [n for n in presets.names() if presets.get(n).objective.data == "rollouts"]


@pytest.mark.parametrize("name", ROLLOUT)
def test_the_loss_asks_for_what_needs_says_and_no_more(name: str) -> None:
    """Given exactly what is needed it computes; with a needed input missing it says which."""
    o, b = presets.resolve(name, {"entropy_coef": 0.01} if name == "skywork_or1" else {}), ragged(0)
    wanted = needs(o)
    offered = {
        "sampler_logprobs": ("sampler_logprobs_BT", b.sampler),
        "reference_logprobs": ("ref_logprobs_BT", b.ref),
        "entropy_gradient": ("entropy_BT", b.entropy),
    }
    inputs = {k: v for need, (k, v) in offered.items() if need in wanted}
    common = {
        "logprobs_BT": b.logprobs,
        "old_logprobs_BT": b.old,
        "advantages_B": batch_advantages(o, b),
        "weights_BT": token_weights(b.mask, b.group, o, max_tokens=12),
        "completion_mask_BT": b.mask,
    }
    assert policy_loss(o, **common, **inputs).loss.isfinite()
    for key in inputs:
        if key == "ref_logprobs_BT" and o.kl == "k1_in_reward":
            continue  # acts on the reward, before the loss
        fewer = {k: v for k, v in inputs.items() if k != key}
        with pytest.raises(UsageError, match="objective"):
            policy_loss(o, **common, **fewer)
