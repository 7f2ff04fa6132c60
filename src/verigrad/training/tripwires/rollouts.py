"""Tripwires over completions, verdicts and advantages of one step."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from verigrad.rollout.endings import end_token_ids
from verigrad.training.tripwires.look import Step
from verigrad.training.verify import verify
from verigrad.training.weigh import is_silent
from verigrad.types import Completion, FinishReason, Group, Outcome, Verdict

ALIKE_FRAC = 0.2
ALIKE_GROUPS_FRAC = 0.25
RECHECK_EVERY = 20


def pairs(groups: Sequence[Group]) -> list[tuple[Completion, Verdict]]:
    """All completions of a step with their verdicts."""
    return [p for g in groups for p in zip(g.completions, g.verdicts, strict=True)]


def mostly_truncated(s: Step) -> str | None:
    share = s.record["truncated_frac"]
    if share <= 0.5:
        return None
    return (
        f"step {s.step}: {share:.0%} of the completions were cut by rollout.max_new_tokens = "
        f"{s.run.recipe.rollout.max_new_tokens}"
    )


def all_groups_silent(s: Step) -> str | None:
    """Silence with every answer right is success, which is no alarm."""
    if s.step < 5 or s.record["silent_frac"] < 1.0 or s.record["all_right_frac"] == 1.0:
        return None
    return (
        f"step {s.step}: all {s.record['num_groups']} groups have equal rewards, so nothing was "
        "learned from them"
    )


def reward_constant(s: Step) -> str | None:
    """One value for every completion of two steps in a row, and not because all are right."""
    rewards = {v.reward for _, v in pairs(s.groups)} - {None}
    only = rewards.pop() if len(rewards) == 1 else None
    before = s.run.memory.get("only_reward")
    s.run.memory["only_reward"] = only
    if only is None or only != before or s.record["all_right_frac"] == 1.0:
        return None
    return f"steps {s.step - 1} and {s.step}: every completion got the reward {only:g}"


def samples_alike(s: Step) -> str | None:
    """Groups that are all right may agree: an easy problem has one short answer. Groups that are
    not, and still say one thing only, have nothing to learn from."""
    unsolved = [
        g
        for g in s.groups
        if any(v.outcome is not Outcome.CORRECT for v in g.verdicts)
        and sum(len(c.token_ids) for c in g.completions) > 4 * len(g.completions)
    ]
    alike = [
        g
        for g in unsolved
        if len({c.token_ids for c in g.completions}) <= max(1, ALIKE_FRAC * len(g.completions))
    ]
    if len(alike) < max(1, ALIKE_GROUPS_FRAC * len(s.groups)) or 2 * len(alike) < len(unsolved):
        return None
    return (
        f"step {s.step}: in {len(alike)} of {len(s.groups)} groups the completions are the same "
        "although the problem is not solved"
    )


def verdicts_broken(s: Step) -> str | None:
    broken = [v for _, v in pairs(s.groups) if v.outcome is Outcome.BROKEN]
    if not broken:
        return None
    return (
        f"step {s.step}: {len(broken)} of {s.record['num_completions']} verdicts are BROKEN; the "
        f"first: {broken[0].reason[:200]}"
    )


def reward_out_of_range(s: Step) -> str | None:
    rewards = [v.reward for _, v in pairs(s.groups) if v.reward is not None]
    wrong = [r for r in rewards if not 0 <= r <= 1]
    if not wrong:
        return None
    return (
        f"step {s.step}: {len(wrong)} of {len(rewards)} rewards lie outside [0, 1], as {wrong[0]:g}"
    )


def verdicts_unstable(s: Step) -> str | None:
    """Verify one telling group again, completion by completion: a verdict depends on nothing else.

    Steps 1 and 2 and every twentieth.
    """
    if s.step > 2 and s.step % RECHECK_EVERY:
        return None
    group = next((g for g in s.groups if not is_silent(g)), None)
    if group is None:
        return None
    for i, (completion, verdict) in enumerate(zip(group.completions, group.verdicts, strict=True)):
        alone = Group(group.prompt, (completion,))
        again = verify(alone, s.run.verifier).verdicts[0]
        if None not in (again.reward, verdict.reward) and again.reward != verdict.reward:
            return (
                f"step {s.step}: completion {i} of problem {group.prompt.problem.id!r} got the "
                f"reward {verdict.reward} in its group and {again.reward} alone"
            )
    return None


def end_misreported(s: Step) -> str | None:
    """A completion that stopped ends with an end token or a stop string; one that was cut doesn't
    and has the full length."""
    rollout = s.run.recipe.rollout
    if rollout.stop or rollout.thinking_budget is not None:
        return None
    ends = end_token_ids(s.run.policy.tokenizer, s.run.policy.model)
    for completion, _ in pairs(s.groups):
        ended = bool(completion.token_ids) and completion.token_ids[-1] in ends
        stopped = completion.finish_reason is FinishReason.STOP
        full = len(completion.token_ids) >= rollout.max_new_tokens
        if any(t in ends for t in completion.token_ids[:-1]):
            return f"step {s.step}: a completion goes on after an end token"
        if stopped != ended or not (stopped or full):
            return (
                f"step {s.step}: a completion of {len(completion.token_ids)} tokens is said to end "
                f"by {completion.finish_reason.value!r}, and its last token is "
                f"{'an' if ended else 'no'} end token"
            )
    return None


def text_differs_from_tokens(s: Step) -> str | None:
    """The verifier reads text, the trainer tokens: the one must be the other. One group a step."""
    if s.run.recipe.rollout.stop:
        return None
    group = s.groups[(s.step - 1) % len(s.groups)]
    tokenizer = s.run.policy.tokenizer
    for completion in group.completions:
        plain = tokenizer.decode(
            list(completion.token_ids),
            skip_special_tokens=True,
            clean_up_tokenization_spaces=False,
        )
        # Tags that a tokenizer lists as special stay in the text, so only plain text is compared.
        if "<" not in completion.text and plain != completion.text:
            return (
                f"step {s.step}: tokens that read {plain[:60]!r} came with the text "
                f"{completion.text[:60]!r}"
            )
    return None


def stale_version(s: Step) -> str | None:
    wanted = s.run.state.version
    versions = {c.version for c, _ in pairs(s.groups)} - {wanted}
    if not versions:
        return None
    return (
        f"step {s.step}: completions were sampled with weights of version {min(versions)}, and "
        f"the trainer holds version {wanted}"
    )


def groups_mixed(s: Step) -> str | None:
    """Rows of one group share one prompt, and one drawn prompt is one group."""
    owner: dict[int, int] = {}
    group_of: dict[int, int] = {}
    for prompt, g in zip(s.batch.prompts, s.batch.group_index, strict=True):
        if owner.setdefault(g, id(prompt)) != id(prompt):
            return f"step {s.step}: group {g} holds completions of different prompts"
        group_of.setdefault(id(prompt), g)
    sampled = {id(c): id(g.prompt) for g in s.groups for c in g.completions}
    for b, (prompt, completion) in enumerate(
        zip(s.batch.prompts, s.batch.completions, strict=True)
    ):
        if sampled.get(id(completion), id(prompt)) != id(prompt):
            return f"step {s.step}: row {b} pairs a prompt with another prompt's completion"
    counts = [s.batch.group_index.count(g) for g in owner]
    if counts and max(counts) > s.run.recipe.rollout.group_size:
        return (
            f"step {s.step}: a group has {max(counts)} rows, and rollout.group_size = "
            f"{s.run.recipe.rollout.group_size}"
        )
    if len(owner) > len(group_of) and len({id(g.prompt) for g in s.groups}) == len(s.groups):
        return f"step {s.step}: completions of one prompt are in several groups"
    return None


def rows_not_sampled(s: Step) -> str | None:
    """Every row of the batch is a completion that the engine sampled behind that prompt, whole."""
    sampled = {
        (g.prompt.token_ids, c.token_ids, c.sampler_logprobs)
        for g in s.groups for c in g.completions
    }  # fmt: skip
    for b, (prompt, c) in enumerate(zip(s.batch.prompts, s.batch.completions, strict=True)):
        if (prompt.token_ids, c.token_ids, c.sampler_logprobs) not in sampled:
            return f"step {s.step}: row {b} of the batch is no completion that was sampled"
    return None


def rewards_misaligned(s: Step) -> str | None:
    """Each row of the batch carries the reward of its own completion."""
    said = {id(c): v.reward for c, v in pairs(s.groups)}
    for b, completion in enumerate(s.batch.completions):
        reward = said.get(id(completion))
        if reward is not None and reward != s.batch.rewards[b]:
            return (
                f"step {s.step}: row {b} was trained with the reward {s.batch.rewards[b]:g}, and "
                f"its completion earned {reward:g}"
            )
    return None


def _advantages_by_group(s: Step) -> dict[int, list[tuple[float, float]]]:
    """Group number -> (reward, advantage) of its rows; empty where shaping comes between them."""
    o = s.run.objective
    shaped = (
        o.pass_at_k != "none" or o.parts != "sum" or o.wrong_reward >= 1
        or o.overlong_cache_frac > 0 or o.length_reward != "none" or o.repetition_penalty > 0
    )  # fmt: skip
    rows: dict[int, list[tuple[float, float]]] = {}
    if shaped or s.batch.advantages.dim() != 1:
        return rows
    said = {id(c): v.reward for c, v in pairs(s.groups)}
    values = s.batch.advantages.tolist()
    for c, g, advantage in zip(s.batch.completions, s.batch.group_index, values, strict=True):
        reward = said.get(id(c))
        if reward is not None:
            rows.setdefault(g, []).append((reward, advantage))
    return rows


def advantages_unordered(s: Step) -> str | None:
    """Within a group a higher reward never has the lower advantage (where nothing shapes it)."""
    for g, members in _advantages_by_group(s).items():
        for (low, less), (high, more) in pairwise(sorted(members)):
            if high > low and more <= less:
                return (
                    f"step {s.step}, group {g}: the reward {high:g} has the advantage {more:.4g}, "
                    f"and the lower reward {low:g} has {less:.4g}"
                )
    return None


def advantages_off_center(s: Step) -> str | None:
    """A group's advantages sum to 0 where its own mean is the baseline."""
    o = s.run.objective
    if o.baseline not in ("group_mean", "leave_one_out") or o.scale == "centered_batch_std":
        return None
    for g, members in _advantages_by_group(s).items():
        total = sum(a for _, a in members)
        if abs(total) > 1e-3 * (1e-3 + sum(abs(a) for _, a in members)):
            return f"step {s.step}, group {g}: its advantages sum to {total:.4g} instead of 0"
    return None
