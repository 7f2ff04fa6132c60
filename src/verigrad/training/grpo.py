"""The loop: draw, generate, verify, weigh, update, load, record. Start reading here.

for step in range(recipe.training.steps):
    prompts = draw(prompts_per_step)
    groups  = generate(prompts, group_size)        # the engine; verification overlaps with it
    judged  = verify(groups)                       # correct, wrong, unparsed or broken
    batch   = weigh(judged, objective)             # advantages; silent groups are counted
    stats   = update(policy, batch, objective)     # the weights move
    load(policy.weights, version)                  # ... and return to the engine
    record(step)
"""

from __future__ import annotations

import time
from dataclasses import replace

from verigrad.algorithms.filters import more_groups
from verigrad.training.evaluate import evaluate
from verigrad.training.keep import note_score, save
from verigrad.training.record import Clock, begin_step, record_step
from verigrad.training.session import Session
from verigrad.training.update import update
from verigrad.training.verify import Judge, check_broken
from verigrad.training.weigh import useful_groups, weigh
from verigrad.types import Group


def grpo(run: Session) -> None:
    """Run the loop to the recipe's last step; on an interrupt save and raise KeyboardInterrupt."""
    training, rollout = run.recipe.training, run.recipe.rollout
    began, first = time.monotonic(), run.state.step
    for step in range(first + 1, training.steps + 1):
        clock = begin_step(run, step)
        judged, drawn = gather(run, step, clock)
        batch = weigh(kept(run, judged), run.objective, max_tokens=rollout.max_new_tokens)
        with clock.phase("update_s"):
            stats = update(
                run.policy, run.optimizer, batch, run.objective, settings=training,
                temperature=rollout.temperature, max_tokens=rollout.max_new_tokens, step=step,
            )  # fmt: skip
        version = run.state.version + (stats.num_optimizer_steps > 0)
        with clock.phase("load_s"):
            if version != run.state.version:
                run.engine.load(run.policy.weights(), version=version)
        left = (time.monotonic() - began) / (step - first) * (training.steps - step)
        windows = run.state.windows + drawn
        print_ = record_step(
            run, step, judged, batch, stats, clock, version=version, windows=windows, eta_s=left
        )
        run.state = replace(
            run.state, step=step, version=version, windows=windows, fingerprint=print_
        )
        every, better = run.recipe.evaluation.every, False
        if every and step % every == 0 and step < training.steps:
            better = note_score(run, evaluate(run, f"step-{step}", step=step))
        due = step % training.save_every == 0 or step == training.steps
        if better or due or run.interrupt.asked:
            save(run)
        if run.interrupt.asked and step < training.steps:
            raise KeyboardInterrupt(f"interrupted after step {step}, which is saved.")


def gather(run: Session, step: int, clock: Clock) -> tuple[list[Group], int]:
    """Draw, generate and verify one step's groups; again while the objective asks for more.

    Returns all judged groups and how many prompts were drawn. Every round has its own seed, so a
    resumed run samples the same completions.
    """
    rollout = run.recipe.rollout
    judged: list[Group] = []
    drawn = rounds = 0
    wanted = rollout.prompts_per_step
    while wanted:
        prompts = run.draw(run.state.windows + drawn, wanted)
        judge, ended = Judge(run.verifier), [0, wanted]

        def hear(group: Group, judge: Judge = judge, ended: list[int] = ended) -> None:
            judge.hear(group)
            ended[0] += 1
            run.log.progress({"phase": "generate", "done": ended[0], "total": ended[1]})

        try:
            with clock.phase("generate_s"):
                groups = run.engine.generate(
                    prompts, run.sampling, group_size=rollout.group_size,
                    seed=round_seed(run.recipe.training.seed, step, rounds), on_group=hear,
                )  # fmt: skip
            with clock.phase("verify_s"):
                judged += judge.verdicts(groups)
        finally:
            judge.close()
        drawn, rounds = drawn + wanted, rounds + 1
        enough = sum(useful_groups(judged, run.objective))
        wanted = more_groups(
            run.objective, wanted=rollout.prompts_per_step, kept=enough, rounds=rounds
        )
    check_broken(judged, limit=run.recipe.verifier.max_broken_frac, step=step)
    return judged, drawn


def kept(run: Session, judged: list[Group]) -> list[Group]:
    """All groups of one round, or the first that carry signal where rounds were drawn again."""
    wanted = run.recipe.rollout.prompts_per_step
    if len(judged) <= wanted:
        return judged
    useful = useful_groups(judged, run.objective)
    carrying = [group for group, good in zip(judged, useful, strict=True) if good]
    return (carrying or judged)[:wanted]


def round_seed(seed: int, step: int, rounds: int) -> int:
    """The engine's seed for one round of one step: its own, and the same after a resume."""
    return (seed * 1_000_003 + step) * 1_009 + rounds
