"""What an objective must be given, so that a trainer or a backend can refuse before a run starts.

Loads without torch.
"""

from __future__ import annotations

from typing import Literal

from verigrad.objective import Objective

Need = Literal[
    "reference_logprobs",
    "sampler_logprobs",
    "old_logprobs",
    "entropy",
    "entropy_gradient",
    "entropy_controller",
    "selection",
    "reward_kl",
    "token_advantages",
    "critic",
    "greedy_completion",
    "parts",
    "correct_likelihood",
    "problem_retirement",
    "demonstrations",
    "pairs",
]

WHY: dict[Need, str] = {
    "reference_logprobs": "kl reads a reference policy",
    "sampler_logprobs": "denominator or correction reads the sampler's log-probabilities",
    "old_logprobs": "the ratio divides by the policy at the update's start (itself, if on-policy)",
    "entropy": "entropy_quantile reads the entropy at each token",
    "entropy_gradient": "the entropy bonus is differentiated",
    "entropy_controller": "entropy = 'adaptive' moves its weight after each update (next_coef)",
    "selection": "tokens are chosen over the whole optimiser batch (filters.selection)",
    "reward_kl": "kl = 'k1_in_reward' lowers rewards before advantages (kl.penalized_rewards)",
    "token_advantages": "advantages differ within a completion (returns.token_advantages)",
    "critic": "baseline = 'critic' needs values and a value loss (critic.value_loss)",
    "greedy_completion": "baseline = 'greedy' needs the reward of one greedy completion per prompt",
    "parts": "parts = 'normalize_each' needs a verifier that returns part rewards",
    "correct_likelihood": "positive_nll weighs correct completions (critic.correct_weights)",
    "problem_retirement": "retire_pass_rate stops drawing solved problems (filters.retired)",
    "demonstrations": "data = 'demonstrations': nothing is sampled",
    "pairs": "data = 'pairs' or 'online_pairs': the loss compares two completions",
}
"""Why each is needed: the axis that asks for it and the function that serves it."""


def needs(objective: Objective) -> frozenset[Need]:
    """Everything this objective must be given beyond rewards, masks and present log-probabilities.

    A trainer that cannot supply one of them refuses: leaving it out would compute something else.
    """
    o = objective
    per_token = o.baseline == "critic" or (o.baseline == "batch_mean" and o.kl == "k1_in_reward")
    ratio = o.data == "rollouts" and o.trust_region != "score" and o.denominator == "old"
    asked: dict[Need, bool] = {
        "reference_logprobs": (o.kl != "none" and o.kl_coef > 0) or "pairs" in o.data,
        "sampler_logprobs": o.correction != "none" or o.denominator == "sampler",
        "old_logprobs": ratio or (o.drift != "none" and o.drift_coef > 0),
        "entropy": o.entropy_quantile < 1,
        "entropy_gradient": o.entropy != "none",
        "entropy_controller": o.entropy == "adaptive",
        "selection": o.entropy_quantile < 1 or o.trust_region in ("clip_cov", "kl_cov"),
        "reward_kl": o.kl == "k1_in_reward" and o.kl_coef > 0 and not per_token,
        "token_advantages": per_token,
        "critic": o.baseline == "critic",
        "greedy_completion": o.baseline == "greedy",
        "parts": o.parts == "normalize_each",
        "correct_likelihood": o.positive_nll > 0,
        "problem_retirement": o.retire_pass_rate is not None,
        "demonstrations": o.data == "demonstrations",
        "pairs": "pairs" in o.data,
    }
    return frozenset(need for need, wanted in asked.items() if wanted)
