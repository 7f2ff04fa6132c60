"""A short supervised start on worked solutions, where RL alone would see no signal."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import replace

import torch

from verigrad.errors import ProblemError
from verigrad.problems import render_solution, worked_solution
from verigrad.training.evaluate import mixed_frac
from verigrad.training.forward import completion_logprobs, plan_micro_batches
from verigrad.training.session import Session
from verigrad.training.update import make_optimizer
from verigrad.training.verify import verify

LOOK_PROMPTS = 24
LOOK_SEED = 7_777_777

Example = tuple[tuple[int, ...], tuple[int, ...]]


def cold_start(run: Session) -> bool:
    """Do the supervised start if the recipe and the base model's success rate ask for it; say so
    either way.

    Returns True where weights moved. Raises ProblemError where the problems come without worked
    solutions.
    """
    settings = run.recipe.cold_start
    if settings.when == "never":
        return False
    share = look(run)
    facts = (
        f"{share:.0%} of {LOOK_PROMPTS} groups have right and wrong answers (RL learns from those "
        "only)"
    )
    if settings.when == "needed" and share >= settings.min_mixed_frac:
        run.log.note(f"no cold start: {facts}; at least {settings.min_mixed_frac:.0%} is enough")
        return False
    examples = worked_examples(run, settings.examples)
    run.log.note(
        f"cold start: {facts}. Supervised learning on {len(examples)} worked solutions of training "
        f"problems, {settings.epochs} epoch(s), learning rate {settings.learning_rate:g}"
    )
    run.log.finding(
        "cold_start", "info", evidence=facts, step=0,
        cause="the base model's share of mixed groups is below cold_start.min_mixed_frac = "
            f"{settings.min_mixed_frac}"
        if settings.when == "needed" else "the recipe asks for it (cold_start.when = 'always')",
        remedy=f"none needed: {len(examples)} worked solutions were learned from before GRPO",
    )  # fmt: skip
    learn(run, examples)
    version = run.state.version + 1
    run.policy.refresh_reference()
    run.engine.load(run.policy.weights(), version=version)
    run.state = replace(run.state, version=version, cold_started=True)
    return True


def look(run: Session) -> float:
    """Share of mixed groups of the present weights on a few training prompts."""
    prompts = [p for i, p in enumerate(run.prompts) if i < LOOK_PROMPTS]
    groups = run.engine.generate(
        prompts, run.sampling, group_size=run.recipe.rollout.group_size, seed=LOOK_SEED
    )
    return mixed_frac([verify(g, run.verifier) for g in groups])


def worked_examples(run: Session, count: int) -> list[Example]:
    """(prompt ids, completion ids) of worked solutions, in an order fixed by the seed."""
    usable = [(p, s) for p in run.problems.train if (s := worked_solution(p)) is not None]
    if not usable:
        raise ProblemError(
            "cold_start needs worked solutions, and problems.source has none (no column "
            "'solution' or the like). Set cold_start.when = 'never', or give a source with "
            "solutions."
        )
    random.Random(f"cold start {run.recipe.training.seed}").shuffle(usable)
    examples: list[Example] = []
    for problem, solution in usable[:count]:
        prompt, completion = render_solution(
            problem, run.recipe.problems, run.policy.tokenizer, solution=solution
        )
        examples.append((prompt.token_ids, completion))
    return examples


def learn(run: Session, examples: Sequence[Example]) -> None:
    """Minimise the mean negative log-likelihood per completion token; one record per optimiser
    step."""
    settings, policy = run.recipe.cold_start, run.policy
    training = run.recipe.training.model_copy(update={"learning_rate": settings.learning_rate})
    optimizer = make_optimizer(policy, training)
    order = [
        i
        for epoch in range(settings.epochs)
        for i in random.Random(f"{training.seed} {epoch}").sample(
            range(len(examples)), len(examples)
        )
    ]
    batches = [
        order[i : i + settings.batch_size] for i in range(0, len(order), settings.batch_size)
    ]
    for number, rows in enumerate(batches, start=1):
        began = time.monotonic()
        loss, tokens = _step(run, optimizer, [examples[i] for i in rows])
        run.log.metrics({
            "step": number, "phase": "sft", "loss": loss, "num_tokens": tokens,
            "learning_rate": settings.learning_rate, "step_s": round(time.monotonic() - began, 3),
        })  # fmt: skip
        run.log.progress({"phase": "cold start", "done": number, "total": len(batches)})


def _step(
    run: Session, optimizer: torch.optim.Optimizer, examples: Sequence[Example]
) -> tuple[float, int]:
    policy = run.policy
    prompts, completions = [e[0] for e in examples], [e[1] for e in examples]
    tokens = sum(len(c) for c in completions)
    plan = plan_micro_batches(
        [len(p) for p in prompts], [len(c) for c in completions], list(range(len(examples))),
        max_tokens=run.recipe.training.micro_batch_tokens,
    )  # fmt: skip
    total = 0.0
    for micro in plan:
        scores = completion_logprobs(
            policy.model,
            [prompts[i] for i in micro],
            [completions[i] for i in micro],
            group_index=micro,
            precision=policy.precision,
        )
        loss = -scores.logprobs_BT.sum() / tokens
        loss.backward()
        total += float(loss.detach())
    torch.nn.utils.clip_grad_norm_(policy.trained(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return total, tokens
