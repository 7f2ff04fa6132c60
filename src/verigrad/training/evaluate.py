"""Held-out evaluation: pass@1 with an interval, unbiased pass@k, strict and lenient, what was cut
or had no answer."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Sequence
from typing import Any

from verigrad.config import EvaluationSection, Recipe
from verigrad.errors import RecipeError
from verigrad.training.session import Session
from verigrad.training.verify import verify
from verigrad.types import Engine, Group, Outcome, Prompt, Sampling, Verifier

EVALUATION_SEED = 20_240_229
"""All evaluations sample with one seed, so that before and after differ by the weights alone."""
NUM_SAMPLES = 24


def evaluate(run: Session, name: str, *, step: int) -> dict[str, Any]:
    """Measure the present weights on the held-out prompts and write ``evaluations/<name>.json``."""
    run.log.note(f"evaluating on {len(run.heldout)} held-out problems ({name})")
    record = measure(
        run.engine, run.heldout, run.recipe, strict=run.strict, lenient=run.lenient,
        progress=run.log.progress,
    )  # fmt: skip
    record = {**record, "name": name, "step": step}
    run.log.evaluation(name, record)
    return record


def sampling_of(section: EvaluationSection, recipe: Recipe) -> Sampling:
    """How held-out problems are answered: greedy by default."""
    rollout = recipe.rollout
    return Sampling(
        max_new_tokens=section.max_new_tokens or rollout.max_new_tokens,
        temperature=section.temperature,
        top_p=section.top_p,
        stop=rollout.stop,
        thinking_budget=rollout.thinking_budget,
    )


def measure(
    engine: Engine,
    prompts: Sequence[Prompt],
    recipe: Recipe,
    *,
    strict: Verifier,
    lenient: Verifier,
    progress: Any,
) -> dict[str, Any]:
    """The evaluation record of an engine's present weights.

    ``pass_at_1`` is the mean share of right completions under the recipe's own mode, ``low`` and
    ``high`` its 95 % Wilson interval over problems; ``strict`` and ``lenient`` are the same share
    under each mode. Verdicts that are BROKEN leave the shares and are counted.
    """
    if not prompts:
        raise RecipeError("no held-out problems: set evaluation.problems to at least 1.")
    section, began, ended = recipe.evaluation, time.monotonic(), [0]

    def hear(_: Group) -> None:
        ended[0] += 1
        progress({"phase": "evaluate", "done": ended[0], "total": len(prompts)})

    groups = engine.generate(
        prompts,
        sampling_of(section, recipe),
        group_size=section.samples,
        seed=EVALUATION_SEED,
        on_group=hear,
    )
    modes = {
        "strict": [verify(g, strict) for g in groups],
        "lenient": [verify(g, lenient) for g in groups],
    }
    own = modes[recipe.verifier.mode]
    right = [(_right(g), len(_counted(g))) for g in own]
    right = [(c, n) for c, n in right if n]
    rate = statistics.fmean(c / n for c, n in right) if right else 0.0
    low, high = wilson(rate, len(right))
    pairs = [(c, v) for g in own for c, v in zip(g.completions, g.verdicts, strict=True)]
    return {
        "n": len(right),
        "pass_at_1": rate,
        "low": low,
        "high": high,
        **{mode: _mean_right(judged) for mode, judged in modes.items()},
        "truncated_frac": sum(c.truncated for c, _ in pairs) / len(pairs),
        "unparsed_frac": sum(v.outcome is Outcome.UNPARSED for _, v in pairs) / len(pairs),
        "broken_frac": sum(v.outcome is Outcome.BROKEN for _, v in pairs) / len(pairs),
        "tokens_mean": statistics.fmean(len(c.token_ids) for c, _ in pairs),
        "pass_at_k": {
            str(k): statistics.fmean(pass_at_k(n, c, k) for c, n in right if n >= k)
            for k in section.k if any(n >= k for _, n in right)
        },
        "samples": _samples(own),
        "seconds": round(time.monotonic() - began, 2),
    }  # fmt: skip


def pass_at_k(n: int, c: int, k: int) -> float:
    """Unbiased pass@k from ``n`` samples of which ``c`` are right: 1 - C(n-c, k) / C(n, k) (Chen et
    al. 2021).

    >>> pass_at_k(4, 1, 2)
    0.5
    """
    return 1.0 - math.comb(n - c, k) / math.comb(n, k)


def wilson(rate: float, n: int, z: float = 1.959964) -> tuple[float, float]:
    """95 % score interval of a share measured on ``n`` problems (Wilson 1927); (0, 1) for n = 0."""
    if n == 0:
        return 0.0, 1.0
    center = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    return max(0.0, center - half), min(1.0, center + half)


def _counted(group: Group) -> list[Outcome]:
    return [v.outcome for v in group.verdicts if v.outcome is not Outcome.BROKEN]


def _right(group: Group) -> int:
    return sum(o is Outcome.CORRECT for o in _counted(group))


def _mean_right(groups: Sequence[Group]) -> float:
    shares = [_right(g) / len(_counted(g)) for g in groups if _counted(g)]
    return statistics.fmean(shares) if shares else 0.0


def _samples(groups: Sequence[Group]) -> list[dict[str, Any]]:
    return [
        {
            "problem_id": g.prompt.problem.id,
            "question": g.prompt.problem.question,
            "answer": g.prompt.problem.answer,
            "completion": g.completions[0].text,
            "outcome": g.verdicts[0].outcome.value,
            "reward": g.verdicts[0].reward,
        }
        for g in groups[:NUM_SAMPLES]
    ]


def mixed_frac(groups: Sequence[Group]) -> float:
    """Share of groups with both right and wrong completions: those that GRPO can learn from."""
    return sum(0 < _right(g) < len(_counted(g)) for g in groups) / max(1, len(groups))
