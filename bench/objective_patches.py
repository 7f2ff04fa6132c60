"""Claim: five patches do what their paper says to their failure, on a task small enough to repeat.

Run: python bench/objective_patches.py (half a minute). The policy is a table of logits: per
prompt, a first token (the answer) and, given it, tokens until an end token or the limit. Only the
objective differs between the two arms of an experiment; every arm is run with the same five seeds.
Writes objective_patches.json beside this file, with the curves. A patch that does not do what its
paper says is recorded as negative.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "src"))

import torch  # noqa: E402
from torch import Tensor  # noqa: E402

from verigrad.algorithms.advantages import advantages  # noqa: E402
from verigrad.algorithms.filters import keep_rows, more_groups  # noqa: E402
from verigrad.algorithms.losses import policy_loss  # noqa: E402
from verigrad.algorithms.reduce import token_weights  # noqa: E402
from verigrad.algorithms.shaping import shaped_rewards  # noqa: E402
from verigrad.objective import Objective  # noqa: E402

SEEDS = range(5)
END = 0


@dataclass
class Table:
    """first[prompt, token] and rest[prompt, first token, position, token]; token 0 ends a
    completion."""

    prompts: int
    vocabulary: int
    limit: int
    seed: int
    start: Tensor | None = None
    end_logit: float = 0.0
    dice: torch.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.dice = torch.Generator().manual_seed(self.seed)
        v = self.vocabulary
        first = torch.zeros(self.prompts, v) if self.start is None else self.start.clone()
        rest = torch.zeros(self.prompts, v, self.limit, v)
        rest[..., END] = self.end_logit
        self.first, self.rest = first.requires_grad_(), rest.requires_grad_()

    def sample(self, prompt: Tensor) -> tuple[Tensor, Tensor]:
        """Tokens (B, T) and their mask for these prompts."""
        with torch.no_grad():
            answer = torch.multinomial(self.first.softmax(-1)[prompt], 1, generator=self.dice)
            probs = self.rest.softmax(-1)[prompt, answer[:, 0]].reshape(-1, self.vocabulary)
            rest = torch.multinomial(probs, 1, generator=self.dice).view(len(prompt), -1)
        ended = (rest == END).long().cumsum(-1)
        mask = torch.cat([torch.ones_like(answer).bool(), ended - (rest == END).long() == 0], 1)
        return torch.cat([answer, rest], 1), mask

    def logprobs(self, prompt: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probability (B, T) of the tokens, and the entropy of the answer (B,)."""
        first = self.first.log_softmax(-1)[prompt]
        rest = self.rest.log_softmax(-1)[prompt, tokens[:, 0]]
        head = first.gather(1, tokens[:, :1])
        tail = rest.gather(-1, tokens[:, 1:, None])[..., 0]
        return torch.cat([head, tail], 1), -(first.exp() * first).sum(-1)


@dataclass(frozen=True)
class Rollout:
    """One step's completions, rewards and lengths."""

    prompt: Tensor
    tokens: Tensor
    mask: Tensor
    reward: Tensor
    drawn_groups: int


Reward = Callable[[Tensor, Tensor], Tensor]


def draw(o: Objective, table: Table, size: int, wanted: int, reward: Reward) -> Rollout:
    """Sample groups until the objective has what it wants."""
    kept: list[Rollout] = []
    drawn = rounds = good = 0
    ask = wanted
    while ask:
        ids = torch.randint(0, table.prompts, (ask,), generator=table.dice)
        prompt = ids.repeat_interleave(size)
        tokens, mask = table.sample(prompt)
        r = reward(prompt, tokens)
        group = torch.arange(ask).repeat_interleave(size)
        keep = keep_rows(r, group, o)
        good += int(keep.sum()) // size
        kept.append(Rollout(prompt[keep], tokens[keep], mask[keep], r[keep], ask))
        drawn, rounds = drawn + ask, rounds + 1
        ask = more_groups(o, wanted=wanted, kept=good, rounds=rounds)
    rows = wanted * size
    fields = {
        k: torch.cat([getattr(x, k) for x in kept])[:rows]
        for k in ("prompt", "tokens", "mask", "reward")
    }
    return Rollout(**fields, drawn_groups=drawn)


def train(
    o: Objective,
    table: Table,
    reward: Reward,
    *,
    steps: int,
    size: int = 8,
    wanted: int = 8,
    updates: int = 1,
    lr: float = 0.1,
    learn_answer: bool = True,
    measure: Callable[[Table, Rollout], float],
) -> list[float]:
    """The curve of ``measure`` over plain gradient steps (no optimiser state hides a scale)."""
    learned = [table.first, table.rest] if learn_answer else [table.rest]
    optimizer = torch.optim.SGD(learned, lr=lr)
    curve: list[float] = []
    for _ in range(steps):
        x = draw(o, table, size, wanted, reward)
        curve.append(measure(table, x))
        if not len(x.reward):
            continue
        group = torch.arange(len(x.reward)) // size
        lengths = x.mask.sum(-1)
        limit = x.mask.shape[1]
        shaped = shaped_rewards(x.reward, group, o, lengths_B=lengths, max_tokens=limit)
        adv = advantages(shaped, group, o, lengths_B=lengths)
        weights = token_weights(x.mask, group, o, max_tokens=limit)
        with torch.no_grad():
            old = table.logprobs(x.prompt, x.tokens)[0]
        for _ in range(updates):
            out = policy_loss(
                o,
                logprobs_BT=table.logprobs(x.prompt, x.tokens)[0],
                old_logprobs_BT=old,
                advantages_B=adv,
                weights_BT=weights,
                completion_mask_BT=x.mask,
            )
            optimizer.zero_grad()
            out.loss.backward()
            optimizer.step()
    return curve


def first_token_is(*answers: int) -> Reward:
    """1 where the answer is one of these."""
    return lambda prompt, tokens: torch.isin(tokens[:, 0], torch.tensor(answers)).float()


RARE = torch.tensor([[0.0, 3.0, 0.0, 0.0, 0.0]]).repeat(4, 1)
"""The right answer, token 2, starts at 0.04 beside a wrong one, token 1, at 0.83."""


def _clip_arm(high: float, measure: Callable[[Table, Rollout], float]) -> list[list[float]]:
    """Twelve rollouts of 16 updates each."""
    o = Objective(clip_low=0.2, clip_high=high, dual_clip=None, scale="group_std")
    common = {"steps": 12, "size": 32, "updates": 16, "lr": 3.0}
    return [
        train(o, Table(4, 5, 2, s, RARE), first_token_is(2), measure=measure, **common)
        for s in SEEDS
    ]


def clip_higher() -> dict[str, Any]:
    """How likely does a rare right answer become?"""

    def chance(table: Table, _: Rollout) -> float:
        return float(table.first.detach().softmax(-1)[:, 2].mean())

    title = "clip_high 0.28 against 0.2: probability of a right answer that starts rare"
    return result(title, _clip_arm(0.2, chance), _clip_arm(0.28, chance), "higher")


def clip_higher_entropy() -> dict[str, Any]:
    """And is the answer's entropy higher at the end?"""

    def entropy(table: Table, _: Rollout) -> float:
        log_p = table.first.detach().log_softmax(-1)
        return float(-(log_p.exp() * log_p).sum(-1).mean())

    title = "clip_high 0.28 against 0.2: entropy of the answer after the same run, nats"
    return result(title, _clip_arm(0.2, entropy), _clip_arm(0.28, entropy), "higher")


def token_mean() -> dict[str, Any]:
    """Answers that cannot be learned: what happens to the length of the wrong ones?"""

    def wrong_length(table: Table, x: Rollout) -> float:
        stays = 1 - table.rest.detach().softmax(-1)[:, 2:, :, END]
        return float((1 + stays.cumprod(-1).sum(-1)).mean())

    def arm(reduction: str, lr: float) -> list[list[float]]:
        o = Objective(reduction=reduction, trust_region="score")
        return [
            train(
                o,
                Table(4, 4, 12, s),
                first_token_is(1),
                steps=80,
                size=16,
                lr=lr,
                learn_answer=False,
                measure=wrong_length,
            )
            for s in SEEDS
        ]

    return result(
        "token_mean against sequence_mean: expected tokens of a wrong completion",
        arm("sequence_mean", 2.0),
        arm("token_mean", 2.0),
        "lower",
    )


def dynamic_sampling() -> dict[str, Any]:
    """Prompts of very different difficulty: how much of a batch carries signal?"""
    spread = torch.linspace(-6, 6, 24)
    start = torch.zeros(24, 3)
    start[:, 1] = spread

    def useful(table: Table, x: Rollout) -> float:
        return len(x.reward) / 8 / 8

    def arm(name: str) -> list[list[float]]:
        o = Objective(group_filter=name, trust_region="score")
        return [
            train(o, Table(24, 3, 2, s, start), first_token_is(1), steps=60, lr=1.0, measure=useful)
            for s in SEEDS
        ]

    return result(
        "resample against drop_silent: share of the batch with signal",
        arm("drop_silent"),
        arm("resample"),
        "higher",
    )


def overlong() -> dict[str, Any]:
    """Completions that rarely end: how many are still cut after training?"""

    def cut(table: Table, x: Rollout) -> float:
        tokens, mask = x.tokens, x.mask
        return float((mask.all(-1) & (tokens[:, -1] != END)).float().mean()) if len(tokens) else 0.0

    def arm(frac: float) -> list[list[float]]:
        o = Objective(overlong_cache_frac=frac, group_filter="none", trust_region="score")
        return [
            train(
                o,
                Table(4, 4, 12, s, end_logit=-1.5),
                first_token_is(1),
                steps=120,
                size=16,
                lr=4.0,
                measure=cut,
            )
            for s in SEEDS
        ]

    return result(
        "overlong_cache_frac 0.5 against 0: share of completions cut", arm(0.0), arm(0.5), "lower"
    )


def sequence_ratio() -> dict[str, Any]:
    """Noise on the old log-probabilities (kernels, experts): how far does it turn the gradient?"""

    def arm(ratio: str, low: float, high: float) -> list[list[float]]:
        o = Objective(
            ratio=ratio, clip_low=low, clip_high=high, dual_clip=None, reduction="sequence_mean"
        )
        return [[noise_error(o, s, length) for length in (8, 32, 128, 512)] for s in SEEDS]

    return result(
        "sequence ratio against token ratio: relative gradient error under 0.3 nats of "
        "noise, at 8, 32, 128, 512 tokens",
        arm("token", 1.0, 1e9),
        arm("sequence", 1.0, 1e9),
        "lower",
    )


def noise_error(o: Objective, seed: int, length: int) -> float:
    """|gradient with noise - without| / |without|, for unclipped ratios."""
    dice = torch.Generator().manual_seed(seed)
    logprobs = (-2 * torch.rand(16, length, generator=dice)).requires_grad_()
    adv = torch.randn(16, generator=dice)
    mask = torch.ones(16, length, dtype=torch.bool)
    group = torch.zeros(16, dtype=torch.long)
    weights = token_weights(mask, group, o, max_tokens=length)
    noise = 0.3 * torch.randn(16, length, generator=dice)
    grads = []
    for old in (logprobs.detach(), logprobs.detach() + noise):
        out = policy_loss(
            o,
            logprobs_BT=logprobs,
            old_logprobs_BT=old,
            advantages_B=adv,
            weights_BT=weights,
            completion_mask_BT=mask,
        )
        grads.append(torch.autograd.grad(out.loss, logprobs)[0])
    return float((grads[1] - grads[0]).norm() / grads[0].norm())


def result(
    title: str, without: list[list[float]], patched: list[list[float]], wanted: str
) -> dict[str, Any]:
    """Means over seeds; the verdict compares the last tenth of every seed's curve."""

    def end(curve: list[float]) -> float:
        return statistics.fmean(curve[-max(1, len(curve) // 10) :])

    gaps = [end(p) - end(w) for p, w in zip(patched, without, strict=True)]
    right = [g > 0 if wanted == "higher" else g < 0 for g in gaps]
    return {
        "title": title,
        "wanted": wanted,
        "without": round(statistics.fmean(end(c) for c in without), 4),
        "patched": round(statistics.fmean(end(c) for c in patched), 4),
        "seeds_as_the_paper_says": f"{sum(right)} of {len(right)}",
        "verdict": "as the paper says" if all(right) else "(negative)",
        "curve_without": [round(statistics.fmean(x), 4) for x in zip(*without, strict=True)],
        "curve_patched": [round(statistics.fmean(x), 4) for x in zip(*patched, strict=True)],
    }


EXPERIMENTS = (
    clip_higher,
    clip_higher_entropy,
    token_mean,
    dynamic_sampling,
    overlong,
    sequence_ratio,
)


def main() -> int:
    """Run the experiments, print a line each, write the JSON."""
    torch.set_num_threads(1)
    out = [f() for f in EXPERIMENTS]
    for r in out:
        print(
            f"{r['title']}\n  without {r['without']}  patched {r['patched']}  "
            f"{r['seeds_as_the_paper_says']} seeds  {r['verdict']}"
        )
    (HERE / "objective_patches.json").write_text(json.dumps(out, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
