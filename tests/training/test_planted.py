"""Planted bugs: each is put into the real code of a real run, and the named tripwire sees it within
two steps. The same run without it raises none of them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from tiny_runs import run

import verigrad.rollout.native as native
import verigrad.rollout.schedule as schedule
import verigrad.training.grpo as grpo
import verigrad.training.load as load
import verigrad.training.policy as policy_module
import verigrad.training.run as run_module
import verigrad.training.update as update
import verigrad.training.verify as verify_module
import verigrad.training.weigh as weigh_module
from verigrad.errors import VerigradError
from verigrad.runlog import RunReader
from verigrad.training.tripwires import ENGINE, LOAD, START, STEP

Patch = Callable[..., None]
SMALL = (
    "training.steps=2", "rollout.max_new_tokens=24", "evaluation.problems=1",
    "rollout.prompts_per_step=4", "rollout.group_size=6",
)  # fmt: skip


def findings(tmp_path, talker, *overrides: str, **options: Any) -> dict[str, dict[str, Any]]:
    """Findings of two steps on the talking model, by name."""
    try:
        run(tmp_path, "run", f"model.path='{talker}'", *SMALL, *overrides, **options)
    except VerigradError as error:
        # A tripwire may stop the run; what it saw is a finding all the same.
        print(error)
    return {f["name"]: f for f in RunReader(tmp_path / "run").findings()}


@dataclass(frozen=True)
class Plant:
    """One bug: how it is put in, what must be seen, and the recipe it needs."""

    bug: str
    seen: str
    put: Patch
    overrides: tuple[str, ...] = ()
    body: str | None = None


def wrapped(patch: Patch, owner: Any, name: str, change: Callable[..., Any]) -> None:
    """Replace ``owner.name`` by ``change(original, *arguments)``."""
    original = getattr(owner, name)

    def faulty(*arguments: Any, **settings: Any) -> Any:
        return change(original, *arguments, **settings)

    patch(owner, name, faulty)


# The engine.


def stale_weights(patch: Patch) -> None:
    def only_the_version(original, self, weights, *, version):
        if version == 0:
            return original(self, weights, version=version)
        self.version = version

    wrapped(patch, native.NativeEngine, "load", only_the_version)


def lost_load(patch: Patch) -> None:
    wrapped(
        patch, native.NativeEngine, "load",
        lambda original, self, weights, *, version: version or original(self, weights, version=0),
    )  # fmt: skip


def adapters_stay_home(patch: Patch) -> None:
    def base_only(original, model):
        with torch.no_grad():
            kept = {n: p.clone() for n, p in model.named_parameters() if "lora_B" in n}
            for n, p in model.named_parameters():
                if n in kept:
                    p.zero_()
            merged = {k: v.clone() for k, v in original(model).items()}
            for n, p in model.named_parameters():
                if n in kept:
                    p.copy_(kept[n])
        return merged

    wrapped(patch, policy_module, "merged_weights", base_only)


def generation_config(**settings: Any) -> Callable[[Patch], None]:
    """An engine that lets a model's generation config overrule the recipe."""

    def put(patch: Patch) -> None:
        def overruled(original, self, prompts, sampling, **rest):
            return original(self, prompts, replace(sampling, **settings), **rest)

        wrapped(patch, native.NativeEngine, "generate", overruled)

    return put


def repetition_penalty(patch: Patch) -> None:
    def penalized(original, self, rows, logits_BV):
        logits_BV = logits_BV.clone()
        for b, row in enumerate(rows):
            said = sorted({*self._prompts[row.group].token_ids, *row.tokens})
            values = logits_BV[b, said]
            logits_BV[b, said] = torch.where(values > 0, values / 1.5, values * 1.5)
        return original(self, rows, logits_BV)

    wrapped(patch, schedule.Schedule, "_sample", penalized)


def penalty_on_the_quiet(patch: Patch) -> None:
    """A sampler that reports log-probabilities from before its own penalty."""

    def penalized(original, self, rows, logits_BV):
        bent_BV = logits_BV.clone()
        for b, row in enumerate(rows):
            bent_BV[b, sorted({*self._prompts[row.group].token_ids, *row.tokens})] -= 3.0
        before = [len(row.logprobs) for row in rows]
        original(self, rows, bent_BV)
        plain_BV = torch.log_softmax(logits_BV, -1)
        for b, (row, n) in enumerate(zip(rows, before, strict=True)):
            row.logprobs[n] = float(plain_BV[b, row.tokens[n]])

    wrapped(patch, schedule.Schedule, "_sample", penalized)


def dropout_in_rollouts(patch: Patch) -> None:
    def training_mode(original, model, tokenizer, **settings):
        model = copy.deepcopy(model)
        model.config.attention_dropout = 0.3
        for layer in model.model.layers:
            layer.self_attn.attention_dropout = 0.3
        engine = original(model, tokenizer, **{**settings, "fast": False})
        engine._decoder._model.train()
        return engine

    wrapped(patch, run_module, "NativeEngine", training_mode)


def other_end_token(patch: Patch) -> None:
    patch(native, "end_token_ids", lambda tokenizer, model: frozenset({5}))


def text_loses_a_character(patch: Patch) -> None:
    wrapped(patch, native.TextReader, "text", lambda original, self, ids: original(self, ids)[1:])


def rollouts_of_last_step(patch: Patch) -> None:
    kept: list[Any] = []

    def first_again(original, *arguments, **settings):
        kept.append(kept[0] if kept else original(*arguments, **settings))
        return kept[-1]

    wrapped(patch, grpo, "gather", first_again)


# The update.


def scores(change: Callable[..., Any]) -> Callable[[Patch], None]:
    """Change the scores that the trainer computes."""

    def put(patch: Patch) -> None:
        def faulty(original, *arguments, **settings):
            return change(original, *arguments, **settings)

        wrapped(patch, update, "completion_logprobs", faulty)

    return put


def off_by_one(original, *arguments, **settings):
    out = original(*arguments, **settings)
    return replace(out, logprobs_BT=out.logprobs_BT.roll(1, dims=1))


def no_temperature(original, *arguments, **settings):
    return original(*arguments, **{**settings, "temperature": 1.0})


def cut_off(original, *arguments, **settings):
    out = original(*arguments, **settings)
    return replace(out, logprobs_BT=out.logprobs_BT.detach().requires_grad_())


def mask_by_id(patch: Patch) -> None:
    """Padding is the end token, and the mask is made by comparing ids with it."""

    def masked(original, batch, rows):
        mask_BT = original(batch, rows)
        for i, b in enumerate(rows):
            ids = batch.completions[b].token_ids
            mask_BT[i, : len(ids)] &= torch.tensor([t != 2 for t in ids])
        return mask_BT

    wrapped(patch, update, "completion_mask", masked)


def normalised_per_micro_batch(patch: Patch) -> None:
    def again(original, objective, *, weights_BT, **settings):
        return original(objective, weights_BT=weights_BT / weights_BT.sum(), **settings)

    wrapped(patch, update, "policy_loss", again)


def advantage_of_the_next_row(patch: Patch) -> None:
    def shifted(original, objective, *, advantages_B, **settings):
        return original(objective, advantages_B=advantages_B.roll(1), **settings)

    wrapped(patch, update, "policy_loss", shifted)


def old_scores_drift(patch: Patch) -> None:
    def drifted(original, objective, *, old_logprobs_BT, **settings):
        return original(objective, old_logprobs_BT=old_logprobs_BT - 0.05, **settings)

    wrapped(patch, update, "policy_loss", drifted)


def loss_is_not_a_number(patch: Patch) -> None:
    def broken(original, *arguments, **settings):
        out = original(*arguments, **settings)
        return replace(out, loss=out.loss * float("nan"))

    wrapped(patch, update, "policy_loss", broken)


def weighed(change: Callable[..., Any]) -> Callable[[Patch], None]:
    """Change the batch between weighing and update."""

    def put(patch: Patch) -> None:
        def faulty(original, *arguments, **settings):
            return change(original(*arguments, **settings))

        wrapped(patch, grpo, "weigh", faulty)

    return put


def prompt_tokens_in_it(batch):
    completions = tuple(
        replace(
            c,
            token_ids=(*p.token_ids[-2:], *c.token_ids),
            sampler_logprobs=(0.0, 0.0, *c.sampler_logprobs),
        )
        for p, c in zip(batch.prompts, batch.completions, strict=True)
    )
    prompts = tuple(replace(p, token_ids=p.token_ids[:-2]) for p in batch.prompts)
    return replace(batch, prompts=prompts, completions=completions)


def last_token_cut(batch):
    return replace(
        batch,
        completions=tuple(
            replace(c, token_ids=c.token_ids[:-1], sampler_logprobs=c.sampler_logprobs[:-1])
            for c in batch.completions
        ),
    )


def shifted_groups(batch):
    return replace(batch, group_index=(*batch.group_index[1:], batch.group_index[0]))


def shifted_advantages(batch):
    return replace(batch, advantages=batch.advantages.roll(1))


def shifted_rewards(batch):
    return replace(batch, rewards=(*batch.rewards[1:], batch.rewards[0]))


def baseline_of_another_group(patch: Patch) -> None:
    def shifted(original, rewards_B, index_B, *arguments, **settings):
        return original(rewards_B, index_B.roll(2), *arguments, **settings)

    wrapped(patch, weigh_module, "advantages", shifted)


def reward_list_shifted(patch: Patch) -> None:
    def shifted(original, group, verifier):
        judged = original(group, verifier)
        return replace(judged, verdicts=(*judged.verdicts[1:], *judged.verdicts[:1]))

    wrapped(patch, verify_module, "verify", shifted)


def schedule_never_arrives(patch: Patch) -> None:
    wrapped(patch, update, "learning_rate", lambda original, s, step: 0.5 * original(s, step))


def written_behind_the_back(patch: Patch) -> None:
    def noisy(original, policy, *arguments):
        before = [p.detach().clone() for p in policy.trained()]
        original(policy, *arguments)
        stats = arguments[2]
        with torch.no_grad():
            for p in policy.trained():
                p.add_(0.1 * torch.ones_like(p))
            moved = zip(policy.trained(), before, strict=True)
            stats.update_norm = sum(float((p - b).pow(2).sum()) for p, b in moved) ** 0.5

    wrapped(patch, update, "_step", noisy)


def gradients_pile_up(patch: Patch) -> None:
    patch(torch.optim.AdamW, "zero_grad", lambda self, set_to_none=True: None)


# What a run is made of.


def policies(change: Callable[[Any], Any]) -> Callable[[Patch], None]:
    """Change the policy as it is made."""

    def put(patch: Patch) -> None:
        def faulty(original, *arguments):
            return change(original(*arguments))

        wrapped(patch, run_module, "make_policy", faulty)

    return put


def rounded_masters(policy):
    policy.model.bfloat16()
    return policy


def reference_of_another_path(policy):
    with torch.no_grad():
        for p in policy.reference.parameters():
            p.mul_(1.05)
    return policy


def shared_reference(policy):
    return replace(policy, reference=policy.model)


def untied(policy):
    head = policy.model.lm_head
    head.weight = torch.nn.Parameter(head.weight.detach().clone())
    return policy


def moving_reference(patch: Patch) -> None:
    def follow(original, policy, objective, step):
        with torch.no_grad():
            for r, p in zip(policy.reference.parameters(), policy.model.parameters(), strict=True):
                r.lerp_(p, 0.5)

    wrapped(patch, update, "_move_reference", follow)


def half_an_optimizer(patch: Patch) -> None:
    def half(original, policy, settings):
        optimizer = original(policy, settings)
        optimizer.param_groups[0]["params"] = optimizer.param_groups[0]["params"][::2]
        return optimizer

    wrapped(patch, run_module, "make_optimizer", half)


def another_template(patch: Patch) -> None:
    def rendered(original, problems, section, tokenizer):
        other = copy.deepcopy(tokenizer)
        other.chat_template = "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}"
        return original(problems, section, other)

    wrapped(patch, run_module, "render_all", rendered)


def template_without_an_end(policy):
    policy.tokenizer.chat_template = policy.tokenizer.chat_template.replace("<|end|>", "\\n")
    return policy


def padding_is_the_end(patch: Patch) -> None:
    def same(original, tokenizer, model):
        original(tokenizer, model)
        tokenizer.pad_token = tokenizer.eos_token

    wrapped(patch, load, "_separate_padding", same)


def leaked_problems(patch: Patch) -> None:
    def leaked(original, recipe):
        made = original(recipe)
        problems = replace(made.problems, heldout=made.problems.train[:1])
        return replace(made, problems=problems)

    wrapped(patch, run_module, "plan", leaked)


def problems_twice(patch: Patch) -> None:
    def doubled(original, recipe):
        made = original(recipe)
        return replace(made, problems=replace(made.problems, train=made.problems.train * 2))

    wrapped(patch, run_module, "plan", doubled)


def nothing(patch: Patch) -> None:
    """No bug in the code: the recipe or the reward has it."""


BROKEN_ALLOWED = ("verifier.max_broken_frac=1",)
KL = ("objective.kl=k3", "objective.kl_coef=0.1")
PLANTS = (
    Plant("the engine keeps its first weights", "sampler_weights_differ", stale_weights),
    Plant("a load is lost, version and all", "stale_version", lost_load),
    Plant(
        "LoRA never delivered", "weights_not_delivered", adapters_stay_home,
        ("model.lora.rank=4", "training.learning_rate=1e-2"),
    ),
    Plant("repetition penalty", "sampler_differs_at_start", repetition_penalty),
    Plant("a penalty it doesn't admit", "sampling_not_neutral", penalty_on_the_quiet),
    Plant("top-p 0.8", "sampling_not_neutral", generation_config(top_p=0.8)),
    Plant("top-k 20", "sampling_not_neutral", generation_config(top_k=20)),
    Plant("temperature 0.6", "sampler_differs_at_start", generation_config(temperature=0.6)),
    Plant("greedy rollouts", "samples_alike", generation_config(temperature=0.0)),
    Plant("dropout in rollouts", "sampler_not_repeatable", dropout_in_rollouts),
    Plant("sampling goes on after the end", "end_misreported", other_end_token),
    Plant("text is not the tokens", "text_differs_from_tokens", text_loses_a_character),
    Plant("rollouts of the last step", "stale_version", rollouts_of_last_step),
    Plant("off by one in the trainer", "sampler_mismatch", scores(off_by_one)),
    Plant(
        "temperature on one side", "sampler_mismatch", scores(no_temperature),
        ("rollout.temperature=0.7",),
    ),
    Plant("scores without a gradient", "gradient_zero", scores(cut_off)),
    Plant("end token masked by id", "wrong_tokens_trained", mask_by_id),
    Plant(
        "normalised per micro-batch", "gradient_misweighted", normalised_per_micro_batch,
        ("training.micro_batch_tokens=120",),
    ),
    Plant("the next row's advantage", "gradient_misweighted", advantage_of_the_next_row),
    Plant("old scores drift", "ratio_not_one", old_scores_drift),
    Plant("the loss is NaN", "gradient_not_finite", loss_is_not_a_number),
    Plant("prompt tokens in the loss", "rows_not_sampled", weighed(prompt_tokens_in_it)),
    Plant("last token cut", "rows_not_sampled", weighed(last_token_cut)),
    Plant("group ids shifted", "groups_mixed", weighed(shifted_groups)),
    Plant("advantages shifted", "advantages_unordered", weighed(shifted_advantages)),
    Plant("rewards shifted in the batch", "rewards_misaligned", weighed(shifted_rewards)),
    Plant("another group's baseline", "advantages_off_center", baseline_of_another_group),
    Plant("reward list misaligned by one", "verdicts_unstable", reward_list_shifted),
    Plant("schedule never arrives", "learning_rate_differs", schedule_never_arrives),
    Plant("weights written from outside", "update_too_large", written_behind_the_back),
    Plant("gradients pile up", "gradient_left_over", gradients_pile_up),
    Plant("bf16 master weights", "master_weights_rounded", policies(rounded_masters)),
    Plant(
        "bf16 steps round to nothing", "update_lost", policies(rounded_masters),
        ("training.learning_rate=1e-9",),
    ),
    Plant(
        "reference of another path", "reference_differs", policies(reference_of_another_path), KL
    ),
    Plant(
        "reference scored elsewhere", "reference_not_start", policies(reference_of_another_path),
        KL,
    ),
    Plant("reference is the policy", "reference_is_policy", policies(shared_reference), KL),
    Plant("reference moves", "reference_moved", moving_reference, KL),
    Plant("embeddings lost their tie", "embeddings_untied", policies(untied)),
    Plant("half the weights", "optimizer_misses_weights", half_an_optimizer),
    Plant("another template", "template_mismatch", another_template),
    Plant("padding is the end", "pad_is_end", padding_is_the_end),
    Plant("tested on training problems", "heldout_in_training", leaked_problems),
    Plant("problems twice", "prompts_duplicated", problems_twice),
    Plant("constant reward", "reward_constant", nothing, (), "return 0.25"),
    Plant("reward out of range", "reward_out_of_range", nothing, (), "return len(completion)"),
    Plant(
        "a reward that raises", "verdicts_broken", nothing, BROKEN_ALLOWED,
        "return 1 / (len(completion) % 2)",
    ),
    Plant(
        "a reward that is not a number", "verdicts_broken", nothing, BROKEN_ALLOWED,
        "return float('nan') if len(completion) % 2 else 1.0",
    ),
    Plant("top-p in the recipe", "sampling_filtered", nothing, ("rollout.top_p=0.9",)),
)  # fmt: skip


@pytest.mark.parametrize("plant", PLANTS, ids=lambda p: p.bug.replace(" ", "-"))
def test_a_planted_bug_is_seen_within_two_steps(tmp_path, talker, monkeypatch, plant):
    plant.put(monkeypatch.setattr)
    options = {} if plant.body is None else {"body": plant.body}
    seen = findings(tmp_path, talker, *plant.overrides, **options)
    assert plant.seen in seen, sorted(seen)
    found = seen[plant.seen]
    assert found["step"] <= 2 and found["evidence"] and found["cause"] and found["remedy"]


@pytest.mark.parametrize(
    "overrides",
    [
        (), KL, ("model.lora.rank=4",), ("rollout.temperature=0.7",),
        ("training.micro_batch_tokens=120",), ("model.precision=bf16",),
        ("training.updates_per_rollout=2",), ("objective.preset=grpo",),
        ("objective.preset=dapo",), ("objective.preset=gspo",), ("objective.preset=dr_grpo",),
    ],
    ids=lambda o: "-".join(o) or "plain",
)  # fmt: skip
def test_the_same_run_without_a_bug_raises_none(tmp_path, talker, overrides):
    assert findings(tmp_path, talker, *overrides) == {}


def test_every_tripwire_has_a_planted_bug_or_is_argued_here():
    """The rest: dropout_on and prompt_empty read one field each, heldout_overlaps is
    ``find_overlap``, and three look at states that a run of two steps can't reach."""
    argued = {
        "dropout_on", "prompt_empty", "heldout_overlaps", "prompt_tokens_differ",
        "end_of_turn_unknown", "mostly_truncated", "all_groups_silent", "weights_not_finite",
        "sampler_weights_uneven",
    }  # fmt: skip
    names = [w.name for w in (*START, *ENGINE, *LOAD, *STEP)]
    assert len(names) == len(set(names))
    assert set(names) - {p.seen for p in PLANTS} <= argued
