"""Tripwires over the engine that really runs: the distribution it samples from, the weights it
holds.

A probe is one short prompt and one token: the trainer works out the whole distribution of that
token, the engine samples it. Shape legend: V vocabulary, N samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from verigrad.training.session import Session
from verigrad.training.tripwires.look import Step
from verigrad.types import Completion, Prompt, Sampling

NUM_SAMPLES = 2048
PROBE_TOKENS = 48
PROBE_SEED = 31_415_926
FALSE_ALARM = 1e-9
"""Chance that a healthy engine trips one test."""


@torch.no_grad()
def probe_prompt(run: Session) -> Prompt:
    """The beginning of the first training prompt after which the policy is least sure of the next
    token: there, what a sampler cuts off or pushes away shows most. Chosen once per run."""
    if "probe" not in run.memory:
        first = run.prompts[0]
        logprobs_TV = _logprobs(run, first.token_ids[:PROBE_TOKENS])
        entropy_T = -(logprobs_TV.exp() * logprobs_TV.clamp(min=-700)).sum(-1)
        length = int(entropy_T.argmax()) + 1
        run.memory["probe"] = Prompt(first.problem, first.text, first.token_ids[:length])
    return run.memory["probe"]


def ask(run: Session, count: int, *, seed: int = PROBE_SEED) -> list[Completion]:
    """Sample one token ``count`` times with neutral sampling at the recipe's temperature."""
    neutral = Sampling(max_new_tokens=1, temperature=run.recipe.rollout.temperature)
    groups = run.engine.generate([probe_prompt(run)], neutral, group_size=count, seed=seed)
    return list(groups[0].completions)


def next_logprobs(run: Session) -> Tensor:
    """The trainer's log-probabilities of the probe's token: (V,) float64."""
    return _logprobs(run, probe_prompt(run).token_ids)[-1]


@torch.no_grad()
def _logprobs(run: Session, token_ids: tuple[int, ...]) -> Tensor:
    """Log-probabilities of the token after each of these: (T, V) float64, at the recipe's
    temperature."""
    model: Any = run.policy.model
    ids = torch.tensor([token_ids], device=run.policy.device)
    bf16 = run.policy.precision == "bf16"
    with torch.autocast(run.policy.device.type, dtype=torch.bfloat16, enabled=bf16):
        logits_TV = model(input_ids=ids).logits[0]
    return torch.log_softmax(logits_TV.double().cpu() / run.recipe.rollout.temperature, -1)


def limit_of(run: Session) -> float:
    """How far two exact computations of one log-probability may lie apart, nats."""
    return 0.5 if run.policy.precision == "bf16" else 1e-3


def sampler_not_repeatable(run: Session) -> str | None:
    one, two = ask(run, 8), ask(run, 8)
    if [(c.token_ids, c.sampler_logprobs) for c in one] == [
        (c.token_ids, c.sampler_logprobs) for c in two
    ]:
        return None
    return "the engine was asked twice with one seed and answered differently"


def sampler_differs_at_start(run: Session) -> str | None:
    logprobs_V = next_logprobs(run)
    gaps = [abs(float(logprobs_V[c.token_ids[0]]) - c.sampler_logprobs[0]) for c in ask(run, 8)]
    if max(gaps) <= limit_of(run):
        return None
    return (
        f"before the first step, trainer and sampler differ by up to {max(gaps):.4f} nats on one "
        f"token (limit {limit_of(run):g})"
    )


def sampling_not_neutral(run: Session) -> str | None:
    """Compare ``NUM_SAMPLES`` sampled tokens with the distribution that the trainer scores.

    Each test has a false alarm rate of about ``FALSE_ALARM``: tokens of the unlikely tail never
    come (top-p, top-k, min-p); surprise is not the entropy (temperature); tokens of the prompt
    come too rarely (repetition and presence penalties).
    """
    logprobs_V = next_logprobs(run)
    p_V = logprobs_V.exp()
    tokens_N = torch.tensor([c.token_ids[0] for c in ask(run, NUM_SAMPLES)])
    order = p_V.argsort(descending=True)
    above_V = torch.empty_like(p_V)
    above_V[order] = p_V[order].cumsum(0) - p_V[order]
    return (
        _tail_test(above_V, p_V, tokens_N)
        or _surprise_test(logprobs_V, p_V, tokens_N)
        or _prompt_test(p_V, tokens_N, probe_prompt(run).token_ids)
    )


def _tail_test(above_V: Tensor, p_V: Tensor, tokens_N: Tensor) -> str | None:
    """No token was sampled beyond the mass ``reached``: by chance that happens at reached^N."""
    reached = float((above_V + p_V)[tokens_N].max())
    chance = min(1.0, reached) ** len(tokens_N)
    if chance >= FALSE_ALARM:
        return None
    return (
        f"{len(tokens_N)} sampled tokens all lie among the likeliest {reached:.1%} of the mass "
        f"(by chance: {chance:.1g}): the tail is cut off"
    )


def _surprise_test(logprobs_V: Tensor, p_V: Tensor, tokens_N: Tensor) -> str | None:
    entropy = float(-(p_V * logprobs_V.clamp(min=-700)).sum())
    spread = float((p_V * (logprobs_V.clamp(min=-700) + entropy) ** 2).sum())
    n = len(tokens_N)
    if spread < 1e-12:
        return None
    mean = float(-logprobs_V[tokens_N].mean())
    z = (mean - entropy) / math.sqrt(spread / n)
    if abs(z) <= 6.5:
        return None
    return (
        f"{n} sampled tokens have a mean surprise of {mean:.3f} nats, and the distribution has an "
        f"entropy of {entropy:.3f} ({z:+.1f} standard errors)"
    )


def _prompt_test(p_V: Tensor, tokens_N: Tensor, prompt: tuple[int, ...]) -> str | None:
    inside = torch.tensor(sorted(set(prompt)))
    mass = min(1.0, float(p_V[inside].sum()))
    n = len(tokens_N)
    seen = int(torch.isin(tokens_N, inside).sum())
    if n * mass * (1 - mass) < 9:
        return None
    z = (seen - n * mass) / math.sqrt(n * mass * (1 - mass))
    if abs(z) <= 6.5:
        return None
    return (
        f"{seen} of {n} sampled tokens occur in the prompt, and {n * mass:.0f} are expected "
        f"({z:+.1f} standard errors): a penalty acts on what was said before"
    )


def sampler_mismatch(s: Step) -> str | None:
    gap = s.record.get("sampler_gap_mean", 0.0)
    limit = 0.1 if s.run.policy.precision == "bf16" else 1e-3
    if not s.single_update or gap <= limit:
        return None
    return (
        f"step {s.step}: trainer and sampler differ by {gap:.4f} nats per token on average, "
        f"{s.record['sampler_gap_max']:.4f} at most (limit of the mean: {limit:g})"
    )


def sampler_weights_uneven(s: Step) -> str | None:
    """The effective sample size says what a mean can hide: few tokens that are far off."""
    ess = s.record.get("ess_frac", 1.0)
    limit = 0.9 if s.run.policy.precision == "bf16" else 0.999
    if not s.single_update or ess >= limit:
        return None
    return (
        f"step {s.step}: correcting sampler to trainer would leave {ess:.2%} of the tokens as "
        f"effective samples (limit {limit:.1%})"
    )


def sampler_weights_differ(s: Step) -> str | None:
    """What the engine shows of its weights is, bit for bit, what the trainer handed over.

    Adapters never touch those weights; ``weights_not_delivered`` looks at what they do touch.
    """
    if s.run.policy.lora:
        return None
    held: Callable[[], Mapping[str, Tensor]] | None = getattr(s.run.engine, "held", None)
    if held is None:
        return None
    weights = s.run.policy.weights()
    for name, tensor in held().items():
        if name in weights and not torch.equal(tensor, weights[name].to(tensor.dtype)):
            return f"step {s.step}: after the load the engine's {name} is not the trainer's"
    return None


def weights_not_delivered(s: Step) -> str | None:
    """After each load the engine gives a probe token the probability that the trainer gives it."""
    completion = ask(s.run, 1)[0]
    if completion.version != s.version:
        return (
            f"step {s.step}: the engine says that it holds version {completion.version}, and the "
            f"trainer handed over version {s.version}"
        )
    gap = abs(float(next_logprobs(s.run)[completion.token_ids[0]]) - completion.sampler_logprobs[0])
    if gap <= limit_of(s.run):
        return None
    return (
        f"step {s.step}: after the load, trainer and sampler differ by {gap:.4f} nats on the probe "
        f"token (limit {limit_of(s.run):g})"
    )
