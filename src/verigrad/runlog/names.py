"""Every metric of a step record and what it means."""

from __future__ import annotations

from collections.abc import Mapping

METRICS: Mapping[str, str] = {
    "step": "1-based number of the rollout-and-update round",
    "phase": "rl or sft",
    "reward_mean": "mean reward of the judged completions",
    "reward_std": "standard deviation of those rewards",
    "correct_frac": "share of completions judged correct",
    "wrong_frac": "share judged wrong",
    "unparsed_frac": "share without an answer that could be found",
    "broken_frac": "share where the verifier or the gold failed (no reward)",
    "all_right_frac": "share of groups whose completions all earn the highest reward (1.0)",
    "all_wrong_frac": "share of groups whose completions all earn the lowest (0.0)",
    "silent_frac": "share of groups whose rewards are all equal: no gradient comes from them",
    "truncated_frac": "share of completions cut by the token limit",
    "unique_frac": "distinct completions over completions, mean over groups",
    "completion_tokens_mean": "mean completion length in tokens",
    "completion_tokens_p95": "95th percentile of it",
    "tokens_correct_mean": "mean length of correct completions",
    "tokens_wrong_mean": "mean length of the others",
    "entropy_mean": "mean entropy per trained token in nats",
    "sampler_gap_mean": "mean |log-probability of trainer minus that of sampler| per token, nats",
    "sampler_gap_max": "its largest value",
    "sampler_kl": "estimate (k3) of the divergence between sampler and trainer, nats per token",
    "ess_frac": "effective sample size of the trainer/sampler token weights, over all tokens",
    "clip_low_frac": "share of tokens stopped by the lower clip",
    "clip_high_frac": "share of tokens stopped by the upper clip",
    "kl_mean": "mean estimated divergence from the reference policy (if any), nats per token",
    "grad_norm": "norm of the gradient before clipping",
    "update_norm": "norm of the change of the weights",
    "learning_rate": "step size used",
    "loss": "supervised loss, nats per token (phase sft only: the surrogate of RL says nothing)",
    "num_completions": "completions sampled",
    "num_trained": "completions that reached the update",
    "num_tokens": "completion tokens sampled",
    "num_groups": "groups sampled",
    "num_silent_groups": "groups left out since they carry no signal",
    "num_broken": "completions left out since their verdict is BROKEN",
    "generate_s": "seconds spent sampling",
    "verify_s": "seconds spent verifying after sampling ended",
    "update_s": "seconds spent in forward, backward and optimiser",
    "load_s": "seconds spent handing weights to the engine",
    "step_s": "seconds of the whole step",
    "tokens_per_s": "completion tokens over generate_s",
    "eta_s": "estimated seconds left",
    "version": "version of the weights after the step",
    "fingerprint": "hash of weights, data position and rollouts after the step",
}
"""Every metric and what it means. A name never changes meaning; a record may lack metrics that do
not apply."""
