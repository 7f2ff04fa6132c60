"""One update: the same gradient whatever the micro-batch, the padding or the order of groups."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from tiny_runs import recipe

from verigrad.algorithms import presets
from verigrad.config import TrainingSection
from verigrad.training.policy import make_policy
from verigrad.training.update import learning_rate, make_optimizer, update
from verigrad.types import Batch, Completion, FinishReason, Message, Problem, Prompt

TOLERANCE = 2e-6


def batch(order=(0, 1, 2, 3)) -> Batch:
    generator = torch.Generator().manual_seed(0)

    def ids(n: int) -> tuple[int, ...]:
        return tuple(torch.randint(7, 200, (n,), generator=generator).tolist())

    prompts, rows = [], {}
    for g in range(4):
        problem = Problem(str(g), (Message("user", "q"),), "1")
        prompts.append(Prompt(problem, "q", ids(3 + 2 * g)))
        rows[g] = [
            Completion("c", tokens, tuple([-5.0] * len(tokens)), FinishReason.STOP)
            for tokens in (ids(1 + (3 * g + i) % 7) for i in range(3))
        ]
    pairs = [(g, c) for g in order for c in rows[g]]
    values = {0: (1.0, -0.5, -0.5), 1: (0.0, 0.0, 0.0), 2: (0.3, 0.3, -0.6), 3: (1.0, 0.0, -1.0)}
    return Batch(
        prompts=tuple(prompts[g] for g, _ in pairs),
        completions=tuple(c for _, c in pairs),
        group_index=tuple(g for g, _ in pairs),
        rewards=tuple(a for g in order for a in values[g]),
        advantages=torch.tensor([a for g in order for a in values[g]]),
        num_groups=4, num_silent_groups=1, num_broken=0,
    )  # fmt: skip


def moved(tmp_path, some: Batch, preset: str = "small", **settings) -> dict[str, torch.Tensor]:
    objective = presets.resolve(preset, {})
    policy = make_policy(recipe(tmp_path), objective)
    chosen = TrainingSection(learning_rate=1e-3, **settings)
    # Plain SGD: Adam's first step is the sign of the gradient and would hide its size.
    optimizer = torch.optim.SGD(policy.trained(), lr=1.0)
    update(
        policy, optimizer, some, objective, settings=chosen, temperature=1.0, max_tokens=8, step=1
    )
    return {n: p.detach().clone() for n, p in policy.model.named_parameters()}


def close(a, b) -> None:
    for name in a:
        assert (a[name] - b[name]).abs().max() <= TOLERANCE, name


@pytest.mark.parametrize("preset", ["small", "dr_grpo", "gspo", "dapo", "cispo", "grpo", "opo"])
def test_the_gradient_does_not_depend_on_the_micro_batch(tmp_path, preset):
    close(
        moved(tmp_path, batch(), preset, micro_batch_tokens=1),
        moved(tmp_path, batch(), preset, micro_batch_tokens=10_000),
    )


@pytest.mark.parametrize("preset", ["small", "dr_grpo", "grpo"])
def test_the_gradient_does_not_depend_on_the_order_of_groups(tmp_path, preset):
    close(moved(tmp_path, batch(), preset), moved(tmp_path, batch((3, 1, 0, 2)), preset))


def test_silent_rows_count_in_the_reduction_and_never_reach_the_model(tmp_path, monkeypatch):
    import verigrad.training.update as module

    scored = []
    real = module.completion_logprobs

    def spy(model, prompts, completions, **more):
        scored.append(len(completions))
        return real(model, prompts, completions, **more)

    monkeypatch.setattr(module, "completion_logprobs", spy)
    moved(tmp_path, batch(), "small", micro_batch_tokens=10_000)
    # 12 rows, 3 of a silent group, 1 with advantage 0.
    assert sum(scored) == 8


def test_forced_tokens_are_not_trained_on(tmp_path):
    some = batch()
    forced = tuple(
        dataclasses.replace(c, forced=tuple(range(len(c.token_ids)))) for c in some.completions
    )
    start = make_policy(recipe(tmp_path), presets.resolve("small", {})).model.state_dict()
    after = moved(tmp_path, dataclasses.replace(some, completions=forced))
    for name, tensor in after.items():
        assert torch.equal(tensor, start[name]), name


def test_two_passes_move_further_than_one(tmp_path):
    once, twice = moved(tmp_path, batch()), moved(tmp_path, batch(), passes_per_rollout=2)
    assert any(not torch.equal(once[n], twice[n]) for n in once)


def test_learning_rate_warms_up_and_decays():
    linear = TrainingSection(steps=12, learning_rate=1.0, warmup_steps=2, schedule="linear")
    rates = [learning_rate(linear, step) for step in range(1, 13)]
    assert rates[:3] == pytest.approx([1 / 3, 2 / 3, 1.0])
    assert rates[3] == pytest.approx(0.9) and rates[-1] == pytest.approx(0.1)
    cosine = TrainingSection(steps=11, learning_rate=1.0, schedule="cosine")
    assert learning_rate(cosine, 1) == 1.0
    assert learning_rate(TrainingSection(learning_rate=2.0), 7) == 2.0


def test_vectors_do_not_decay(tmp_path):
    policy = make_policy(recipe(tmp_path), presets.resolve("small", {}))
    optimizer = make_optimizer(policy, TrainingSection(weight_decay=0.1))
    decays = {p.dim() >= 2: g["weight_decay"] for g in optimizer.param_groups for p in g["params"]}
    assert decays == {True: 0.1, False: 0.0}
