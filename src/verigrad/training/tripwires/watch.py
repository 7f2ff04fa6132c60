"""All tripwires, each with its cause and its remedy, and the two moments they are looked at."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from verigrad.errors import TripwireError, VerifierError
from verigrad.runlog import RunReader, RunWriter
from verigrad.training.session import Session
from verigrad.training.tripwires import engine, rollouts, start, weights
from verigrad.training.tripwires.look import Step, Tripwire, report
from verigrad.training.update import UpdateStats
from verigrad.types import Batch, Group

_OURS = "a fault of verigrad or of what was patched into it"
_REPORT = "stop the run; report it with this run directory"

START: tuple[Tripwire[Session], ...] = (
    Tripwire(
        "sampling_filtered", "warn", start.sampling_filtered,
        "the recipe cuts the distribution; the trainer scores the whole one, so ratios are biased",
        "set rollout.top_p = 1, top_k = 0 and min_p = 0 for training",
    ),
    Tripwire(
        "master_weights_rounded", "fail", start.master_weights_rounded,
        "half-precision master weights: steps of a small learning rate round to nothing",
        "keep master weights in float32; model.precision only chooses what is computed in",
    ),
    Tripwire(
        "optimizer_misses_weights", "fail", start.optimizer_misses_weights,
        "the optimiser was made for other parameters than those that get gradients", _REPORT,
    ),
    Tripwire(
        "dropout_on", "warn", start.dropout_on,
        "dropout makes the trainer score another model than the one that sampled",
        "set the dropout rates in the model's config.json to 0",
    ),
    Tripwire(
        "reference_is_policy", "fail", start.reference_is_policy,
        "the reference was not copied: the distance to it is always 0", _REPORT,
    ),
    Tripwire(
        "reference_differs", "fail", start.reference_differs,
        "the reference was loaded from another checkpoint",
        "start the reference from model.path, or set objective.kl = 'none'",
    ),
    Tripwire(
        "embeddings_untied", "fail", start.embeddings_untied,
        "a load that broke the tie: one of them would be trained and the other saved",
        "load the model with a version of transformers that ties them",
    ),
    Tripwire(
        "pad_is_end", "warn", start.pad_is_end,
        "software that masks padding by id also masks the end of every answer; verigrad masks by "
        "length, others that read this checkpoint may not",
        "give the tokenizer a padding token of its own",
    ),
    Tripwire(
        "end_of_turn_unknown", "fail", start.end_of_turn_unknown,
        "the model ends its turn with a token at which sampling goes on",
        "set eos_token of the tokenizer, or eos_token_id of generation_config.json, to that token",
    ),
    Tripwire(
        "template_mismatch", "warn", start.template_mismatch,
        "training prompts and finished conversations come from different templates",
        "use the model's own chat template for both (model.chat_template)",
    ),
    Tripwire(
        "prompt_tokens_differ", "fail", start.prompt_tokens_differ,
        "prompts were made with another tokenizer than the model's",
        "set model.tokenizer to the tokenizer of this model",
    ),
    Tripwire(
        "prompts_duplicated", "warn", start.prompts_duplicated,
        "repeated rows, or prompts that became equal when they were cut",
        "remove repeated rows; raise problems.max_prompt_tokens",
    ),
    Tripwire(
        "prompt_empty", "warn", start.prompt_empty, "rows without a question",
        "remove them, or name the right problems.prompt_column",
    ),
    Tripwire(
        "heldout_in_training", "fail", start.heldout_in_training,
        "held-out prompts read the same as training prompts: the score measures memory",
        "give problems.heldout a source of its own",
    ),
    Tripwire(
        "heldout_overlaps", "warn", start.heldout_overlaps,
        "held-out questions share long runs of words with training questions",
        "remove those rows from the training source",
    ),
)  # fmt: skip

ENGINE: tuple[Tripwire[Session], ...] = (
    Tripwire(
        "sampler_not_repeatable", "fail", engine.sampler_not_repeatable,
        "dropout is on while sampling, or the engine draws from a generator of its own",
        "put the engine's model into evaluation mode; give the engine the seed of each call",
    ),
    Tripwire(
        "sampler_differs_at_start", "fail", engine.sampler_differs_at_start,
        "the engine holds other weights, or changes logits by a temperature or penalty",
        "load the engine from the policy; take sampling settings from the recipe only",
    ),
    Tripwire(
        "sampling_not_neutral", "fail", engine.sampling_not_neutral,
        "the engine applies top-p, top-k, a penalty or a temperature that the recipe didn't ask "
        "for, as from a model's generation config",
        "clear the engine's generation config; set sampling in [rollout] only",
    ),
)  # fmt: skip
"""Looked at once, on the engine that really runs."""

LOAD: tuple[Tripwire[Step], ...] = (
    Tripwire(
        "sampler_weights_differ", "fail", engine.sampler_weights_differ,
        "the load didn't reach the engine, or reached it late", _REPORT,
    ),
    Tripwire(
        "weights_not_delivered", "fail", engine.weights_not_delivered,
        "stale weights, or adapters that were never merged for the engine", _REPORT,
    ),
)  # fmt: skip
"""Looked at after each step that handed weights to the engine."""

STEP: tuple[Tripwire[Step], ...] = (
    Tripwire(
        "stale_version", "fail", rollouts.stale_version,
        "rollouts of an earlier load were mixed in, or the load was lost", _REPORT,
    ),
    Tripwire(
        "sampler_mismatch", "fail", engine.sampler_mismatch,
        "the engine samples from other weights, another temperature or another precision than the "
        "trainer scores, or the two are misaligned by a token",
        "set model.precision = 'fp32' to see whether it is rounding; else report it with this run "
        "directory",
    ),
    Tripwire(
        "sampler_weights_uneven", "warn", engine.sampler_weights_uneven,
        "a few tokens have very different probabilities on the two sides",
        "set model.precision = 'fp32', or objective.correction = 'truncate_token'",
    ),
    Tripwire(
        "end_misreported", "fail", rollouts.end_misreported,
        "the engine stops at other tokens than the model's end tokens",
        "set eos_token_id of tokenizer and generation_config.json to the token that ends a turn",
    ),
    Tripwire(
        "text_differs_from_tokens", "fail", rollouts.text_differs_from_tokens,
        "the verifier judges another text than the tokens that are trained", _REPORT,
    ),
    Tripwire(
        "mostly_truncated", "warn", rollouts.mostly_truncated,
        "the answer does not fit, or the model does not end its turn",
        "raise rollout.max_new_tokens, or start from a model that ends its answers "
        "(cold_start.when = 'needed')",
    ),
    Tripwire(
        "samples_alike", "warn", rollouts.samples_alike,
        "entropy has collapsed, or sampling is not random",
        "lower training.learning_rate, raise objective.clip_high, or check rollout.temperature",
    ),
    Tripwire(
        "all_groups_silent", "warn", rollouts.all_groups_silent,
        "the problems are too hard or too easy for this model, or the reward is constant",
        "run `verigrad audit` on the reward; take problems of another difficulty; "
        "cold_start.when = 'needed'",
    ),
    Tripwire(
        "reward_constant", "warn", rollouts.reward_constant,
        "the reward doesn't read the completion, or no completion can earn it",
        "run `verigrad audit` on the reward; look at the completions with `verigrad groups`",
    ),
    Tripwire(
        "verdicts_broken", "warn", rollouts.verdicts_broken,
        "the verifier failed, ran out of time, or the gold answer can't be used",
        "read the reason; run `verigrad audit`; verifier.max_broken_frac says when it is fatal",
    ),
    Tripwire(
        "reward_out_of_range", "warn", rollouts.reward_out_of_range,
        "the reward has a scale of its own; pass rates and correct_frac count 1 as right",
        "scale the reward to [0, 1]",
    ),
    Tripwire(
        "verdicts_unstable", "fail", rollouts.verdicts_unstable,
        "rewards come back in another order than the completions, or the reward is random or "
        "looks at other completions",
        "return one reward per completion, in order, from that completion alone",
    ),
    Tripwire("groups_mixed", "fail", rollouts.groups_mixed, _OURS, _REPORT),
    Tripwire(
        "rows_not_sampled", "fail", rollouts.rows_not_sampled,
        "prompt tokens in the completion, a row that was cut or edited, or a mixed-up prompt",
        _REPORT,
    ),
    Tripwire("rewards_misaligned", "fail", rollouts.rewards_misaligned, _OURS, _REPORT),
    Tripwire("advantages_unordered", "fail", rollouts.advantages_unordered, _OURS, _REPORT),
    Tripwire("advantages_off_center", "fail", rollouts.advantages_off_center, _OURS, _REPORT),
    Tripwire(
        "wrong_tokens_trained", "fail", weights.wrong_tokens_trained,
        "the loss mask is not the completion: prompt, padding or a missing end token", _REPORT,
    ),
    Tripwire(
        "gradient_misweighted", "fail", weights.gradient_misweighted,
        "normalised per micro-batch, masked wrongly, or with another row's advantage", _REPORT,
    ),
    Tripwire(
        "ratio_not_one", "fail", weights.ratio_not_one,
        "the old log-probabilities are not the policy's at the update's start", _REPORT,
    ),
    Tripwire(
        "reference_not_start", "fail", weights.reference_not_start,
        "the reference policy was loaded from another checkpoint, or scored under another "
        "temperature",
        "start the reference from model.path, or set objective.kl = 'none'",
    ),
    Tripwire(
        "reference_moved", "fail", weights.reference_moved,
        "something wrote into the frozen reference", _REPORT,
    ),
    Tripwire(
        "gradient_zero", "fail", weights.gradient_zero,
        "the loss is cut off from the weights: detached scores, or everything masked", _REPORT,
    ),
    Tripwire(
        "update_too_large", "fail", weights.update_too_large,
        "the optimiser runs at another learning rate than the recipe's, or another program wrote "
        "into the weights", _REPORT,
    ),
    Tripwire(
        "update_lost", "fail", weights.update_lost,
        "the step rounds to nothing in the precision of the weights",
        "keep master weights in float32, or raise training.learning_rate",
    ),
    Tripwire(
        "learning_rate_differs", "fail", weights.learning_rate_differs,
        "the schedule doesn't reach the optimiser", _REPORT,
    ),
    Tripwire(
        "gradient_left_over", "fail", weights.gradient_left_over,
        "gradients of several steps add up", _REPORT,
    ),
    Tripwire(
        "weights_not_finite", "fail", weights.weights_not_finite,
        "an update overflowed",
        "lower training.learning_rate; go on from the last checkpoint",
    ),
)  # fmt: skip


def watch_start(run: Session) -> None:
    """Look at everything that can be seen before the first step; a resumed run repeats no
    finding."""
    run.seen_findings |= {str(f.get("name")) for f in RunReader(run.log.path).findings()}
    for wire in (*START, *ENGINE):
        report(run, wire, wire.look(run), step=run.state.step)


def watch_step(
    run: Session, step: int, record: Mapping[str, Any], groups: Sequence[Group],
    *, batch: Batch, stats: UpdateStats, version: int,
) -> None:  # fmt: skip
    """Look at what one step left behind, after its record was written."""
    seen = Step(run, step, record, groups, batch, stats, version)
    loaded = version != run.state.version
    for wire in (*STEP, *(LOAD if loaded else ())):
        if wire.name not in run.seen_findings or wire.look is rollouts.reward_constant:
            report(run, wire, wire.look(seen), step=step)


def note_error(log: RunWriter, error: BaseException, *, step: int) -> None:
    """Make a finding of what stopped the run: a tripwire (its message begins with its name), or too
    many BROKEN verdicts."""
    named = re.match(r"([a-z_]+): ", str(error)) if isinstance(error, TripwireError) else None
    if isinstance(error, VerifierError):
        name = "verdicts_broken"
    elif isinstance(error, TripwireError):
        name = named[1] if named else "tripwire"
    else:
        return
    log.finding(
        name, "fail", step=step, evidence=str(error).removeprefix(named[0] if named else ""),
        cause="going on would be silently wrong, so the run stopped",
        remedy="the evidence says what to change; then continue with --resume",
    )  # fmt: skip
