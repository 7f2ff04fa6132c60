"""The loop on the tiny model: what moves the weights, what doesn't, and what is written down."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tiny_runs import Heard, recipe, run

from verigrad.algorithms import presets
from verigrad.errors import VerifierError
from verigrad.runlog import METRICS, RunReader
from verigrad.training.policy import make_policy
from verigrad.types import Completion, FinishReason


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(str(folder / "model.safetensors"))


@pytest.mark.parametrize("value", ["0.0", "1.0", "0.3"])
@pytest.mark.parametrize("preset", ["small", "dr_grpo", "opo"])
def test_a_constant_reward_leaves_every_weight_bit_unchanged(tmp_path, value, preset):
    summary = run(tmp_path, "run", f"objective.preset={preset}", body=f"return {value}")
    start = make_policy(recipe(tmp_path), presets.resolve("small", {})).model.state_dict()
    after = weights(tmp_path / "run" / "checkpoints" / "step-4")
    assert summary.state == "done"
    for name, tensor in after.items():
        assert torch.equal(tensor, start[name]), name
    records = RunReader(tmp_path / "run").metrics()
    assert [r["silent_frac"] for r in records] == [1.0] * 4
    assert [r["num_trained"] for r in records] == [0] * 4


def test_a_reward_that_differs_moves_weights_and_everything_is_written(tmp_path):
    heard = Heard()
    run(tmp_path, "run", listeners=[heard])
    reader = RunReader(tmp_path / "run")
    records = reader.metrics()
    assert [r["step"] for r in records] == [1, 2, 3, 4]
    assert all(r["update_norm"] > 0 and r["grad_norm"] > 0 for r in records)
    assert set(records[0]) <= set(METRICS)
    assert reader.rollout_steps() == [1, 2, 3, 4]
    rows = reader.rollouts(1)
    assert len(rows) == 16
    assert all(len(r["token_ids"]) == len(r["sampler_logprobs"]) == r["num_tokens"] for r in rows)
    assert any(r["advantage"] for r in rows)
    assert set(reader.evaluations()) == {"before", "after"}
    assert reader.status()["state"] == "done"
    assert heard.records["group"] and heard.records["progress"]


def test_sampler_and_trainer_agree_on_policy(tmp_path):
    run(tmp_path, "run")
    for record in RunReader(tmp_path / "run").metrics():
        assert record["sampler_gap_max"] <= 1e-4
        assert record["ess_frac"] == pytest.approx(1.0, abs=1e-4)


def test_the_same_recipe_twice_is_bit_identical(tmp_path):
    one, two = run(tmp_path, "one"), run(tmp_path, "two")
    assert one.fingerprint == two.fingerprint
    first, second = (RunReader(tmp_path / n) for n in ("one", "two"))
    assert [r["fingerprint"] for r in first.metrics()] == [
        r["fingerprint"] for r in second.metrics()
    ]


def test_another_seed_is_another_run(tmp_path):
    assert run(tmp_path, "a").fingerprint != run(tmp_path, "b", "training.seed=1").fingerprint


@pytest.mark.parametrize("preset", ["small", "grpo", "dapo"])
def test_resume_ends_where_the_straight_run_ends(tmp_path, preset):
    straight = run(tmp_path, "straight", f"objective.preset={preset}", "training.steps=5")
    run(tmp_path, "cut", f"objective.preset={preset}", "training.steps=3")
    resumed = run(tmp_path, "cut", f"objective.preset={preset}", "training.steps=5", resume=True)
    assert resumed.fingerprint == straight.fingerprint
    assert [r["step"] for r in RunReader(tmp_path / "cut").metrics()] == [1, 2, 3, 4, 5]


def test_a_torn_checkpoint_is_passed_over_and_named(tmp_path):
    straight = run(tmp_path, "run")
    torn = tmp_path / "run" / "checkpoints" / "step-4" / "model.safetensors"
    torn.write_bytes(torn.read_bytes()[:-100])
    heard = Heard()
    again = run(tmp_path, "run", resume=True, listeners=[heard])
    assert again.fingerprint == straight.fingerprint
    notes = " ".join(r["text"] for r in heard.records["note"])
    assert "step-4 is not used: model.safetensors has" in notes
    assert "resumed after step 2 from step-2" in notes


def test_resume_with_nothing_saved_starts_over_and_says_so(tmp_path):
    straight = run(tmp_path, "run")
    for folder in (tmp_path / "run" / "checkpoints").glob("step-*"):
        (folder / "manifest.json").unlink()
    heard = Heard()
    again = run(tmp_path, "run", resume=True, listeners=[heard])
    assert again.fingerprint == straight.fingerprint
    assert any("starting from the beginning" in r["text"] for r in heard.records["note"])


def test_ctrl_c_ends_the_step_saves_and_resumes_exactly(tmp_path):
    import os
    import signal

    straight = run(tmp_path, "straight", "training.save_every=100")

    def stop(kind, record):
        if kind == "metrics" and record["step"] == 2:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt, match="after step 2"):
        run(tmp_path, "cut", "training.save_every=100", listeners=[stop])
    status = RunReader(tmp_path / "cut").status()
    assert (status["state"], status["step"]) == ("interrupted", 2)
    resumed = run(tmp_path, "cut", "training.save_every=100", resume=True)
    assert resumed.fingerprint == straight.fingerprint


def test_a_broken_verdict_leaves_and_is_counted(tmp_path):
    body = "return None if len(completion) % 4 == 0 else (len(completion) % 3) / 2"
    run(tmp_path, "run", "verifier.max_broken_frac=1", "training.steps=2", body=body)
    records = RunReader(tmp_path / "run").metrics()
    rows = RunReader(tmp_path / "run").rollouts(1)
    broken = [r for r in rows if r["outcome"] == "broken"]
    assert records[0]["num_broken"] == len(broken) > 0
    assert all(r["reward"] is None and r["advantage"] is None for r in broken)


def test_too_many_broken_verdicts_stop_the_run(tmp_path):
    with pytest.raises(VerifierError, match="BROKEN, more than"):
        run(tmp_path, "run", body="raise ValueError('boom')")
    assert RunReader(tmp_path / "run").status()["state"] == "failed"


def test_dynamic_sampling_draws_again_within_its_budget(tmp_path):
    run(
        tmp_path, "run", "objective.preset=dapo", "objective.filter_rounds=3",
        "training.steps=2", body="return 1.0",
    )  # fmt: skip
    records = RunReader(tmp_path / "run").metrics()
    assert [r["num_groups"] for r in records] == [12, 12]
    state = json.loads((tmp_path / "run" / "checkpoints" / "step-2" / "trainer.json").read_text())
    assert state["windows"] == 24


def test_lora_moves_only_adapters_and_reaches_the_engine(tmp_path):
    run(tmp_path, "run", "model.lora.rank=4", "training.learning_rate=1e-2")
    records = RunReader(tmp_path / "run").metrics()
    assert all(r["update_norm"] > 0 for r in records)
    # If adapters never reached the engine, trainer and sampler would differ from the second step.
    assert max(r["sampler_gap_max"] for r in records) <= 1e-4
    assert records[-1]["reward_mean"] >= 0


def test_lenient_is_what_trains_where_the_recipe_says_lenient(tmp_path):
    """An answer in words earns nothing under strict and everything under lenient."""
    from verigrad.training.run import plan

    chosen = recipe(tmp_path, "verifier.name=math", "verifier.mode=lenient")
    made = plan(chosen)
    problem = made.problems.train[0]
    said = Completion(f"So it is {problem.answer}", (1,), (0.0,), FinishReason.STOP)
    assert made.verifier.verify(problem, [said])[0].reward == 1.0
    assert made.lenient.verify(problem, [said])[0].reward == 1.0
    assert made.strict.verify(problem, [said])[0].reward == 0.0


def test_the_best_checkpoint_outlives_newer_ones(tmp_path, monkeypatch):
    scores = {"step-1": 0.2, "step-2": 0.9, "step-3": 0.4, "step-4": 0.5}

    def scored(run, name, *, step):
        return {"pass_at_1": scores.get(name, 0.0)}

    monkeypatch.setattr("verigrad.training.grpo.evaluate", scored)
    run(
        tmp_path, "run", "training.steps=5", "training.save_every=1", "training.keep_last=1",
        "evaluation.every=1",
    )  # fmt: skip
    kept = sorted(p.name for p in (tmp_path / "run" / "checkpoints").iterdir())
    assert kept == ["step-2", "step-5"]
    state = json.loads((tmp_path / "run" / "checkpoints" / "step-5" / "trainer.json").read_text())
    assert (state["best"], state["best_step"]) == (0.9, 2)


@pytest.mark.parametrize("name", presets.names())
def test_a_preset_is_refused_exactly_where_something_it_needs_is_missing(tmp_path, name):
    from verigrad.algorithms.needs import needs
    from verigrad.errors import RecipeError
    from verigrad.training.run import check_trainable

    missing = {
        "critic", "greedy_completion", "entropy_gradient", "entropy_controller", "reward_kl",
        "token_advantages", "correct_likelihood", "problem_retirement", "demonstrations", "pairs",
    }  # fmt: skip
    objective = presets.resolve(name, {})
    if needs(objective) & missing:
        with pytest.raises(RecipeError, match=r"objective\.\w+ = .* is not computed"):
            check_trainable(objective, recipe(tmp_path))
    else:
        check_trainable(objective, recipe(tmp_path))
