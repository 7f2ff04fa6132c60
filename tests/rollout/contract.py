"""What every engine must keep, ours or foreign: one function per promise, applied to each engine.

``make`` functions of the test files hand over an engine on the random Llama of ``models.py``.
"""

from __future__ import annotations

import pytest
import rollout_models as models

from verigrad.errors import UsageError
from verigrad.types import Engine, FinishReason, Group, Sampling

TEXTS = [models.COMMON + end for end in ("three and", "five", "six minus two times", "9")]
NEUTRAL = Sampling(max_new_tokens=10)


def completions_are_whole(engine: Engine) -> None:
    """Lengths agree, reasons are right, groups come back in order, every group is heard once."""
    heard: list[Group] = []
    asked = models.prompts(TEXTS)
    groups = engine.generate(asked, NEUTRAL, group_size=3, seed=5, on_group=heard.append)
    ends = {models.tokenizer().eos_token_id}
    assert [g.prompt for g in groups] == asked
    assert sorted(g.prompt.problem.id for g in heard) == ["p0", "p1", "p2", "p3"]
    for group in groups:
        assert len(group.completions) == 3
        assert group.verdicts == ()
        for c in group.completions:
            assert 1 <= len(c.token_ids) <= 10
            assert len(c.sampler_logprobs) == len(c.token_ids)
            assert all(x <= 0 for x in c.sampler_logprobs)
            assert not ends & set(c.token_ids[:-1])
            stopped = c.token_ids[-1] in ends
            assert c.finish_reason is (FinishReason.STOP if stopped else FinishReason.LENGTH)
            assert c.prompt_tail == group.prompt.text[-64:]
            assert c.forced == ()


def seeds_decide(engine: Engine) -> None:
    """The same seed gives the same tokens, another seed others, samples of a group differ."""
    asked = models.prompts(TEXTS)
    one = _tokens(engine.generate(asked, NEUTRAL, group_size=3, seed=5))
    assert _tokens(engine.generate(asked, NEUTRAL, group_size=3, seed=5)) == one
    assert _tokens(engine.generate(asked, NEUTRAL, group_size=3, seed=6)) != one
    assert all(len(set(group)) > 1 for group in one)


def company_does_not_matter(engine: Engine) -> None:
    """A prompt alone gets the completions that it gets among others."""
    asked = models.prompts(TEXTS)
    together = _tokens(engine.generate(asked, NEUTRAL, group_size=3, seed=5))
    alone = _tokens(engine.generate(asked[2:3], NEUTRAL, group_size=3, seed=5))
    assert alone[0] == together[2]


def greedy_takes_the_likeliest(engine: Engine) -> None:
    """Temperature 0 equals an argmax over a plain forward, in every sample."""
    model = models.build("llama")
    asked = models.prompts(TEXTS[:2])
    greedy = Sampling(max_new_tokens=6, temperature=0.0)
    for group in engine.generate(asked, greedy, group_size=2, seed=0):
        wanted = models.plain_greedy(model, group.prompt, 6)
        assert [list(c.token_ids) for c in group.completions] == [wanted, wanted]


def logprobs_are_the_models(engine: Engine, temperature: float) -> None:
    """Recorded log-probabilities equal a plain fp32 forward within 1e-4."""
    model = models.build("llama")
    asked = models.prompts(TEXTS)
    sampling = Sampling(max_new_tokens=10, temperature=temperature)
    for group in engine.generate(asked, sampling, group_size=3, seed=2):
        for c in group.completions:
            wanted = models.plain_logprobs(model, group.prompt, c.token_ids, temperature)
            assert list(c.sampler_logprobs) == pytest.approx(wanted.tolist(), abs=1e-4)


def stop_strings_end_the_text(engine: Engine) -> None:
    """A stop string ends the completion; it is not in the text, its tokens are in the ids."""
    asked = models.prompts(TEXTS[:1])
    free = engine.generate(asked, NEUTRAL, group_size=8, seed=5)[0].completions
    mark = next(
        c.text[i : i + 2]
        for c in free
        for i in range(1, len(c.text) - 1)
        if c.text[i : i + 2].isascii()
    )
    stopping = Sampling(max_new_tokens=10, stop=(mark,))
    again = engine.generate(asked, stopping, group_size=8, seed=5)[0].completions
    for before, after in zip(free, again, strict=True):
        assert mark not in after.text
        assert after.token_ids == before.token_ids[: len(after.token_ids)]
        if mark in before.text:
            assert after.text == before.text[: before.text.index(mark)]
            assert after.finish_reason is FinishReason.STOP


def bad_requests_are_refused(engine: Engine) -> None:
    """What cannot be sampled is named, with a remedy."""
    asked = models.prompts(TEXTS[:1])
    with pytest.raises(UsageError, match=r"sampling.top_p = 0.0"):
        engine.generate(asked, Sampling(max_new_tokens=4, top_p=0.0), group_size=1, seed=0)
    with pytest.raises(UsageError, match="group_size = 0"):
        engine.generate(asked, NEUTRAL, group_size=0, seed=0)
    assert engine.generate([], NEUTRAL, group_size=2, seed=0) == []


def _tokens(groups: list[Group]) -> list[tuple[tuple[int, ...], ...]]:
    return [tuple(c.token_ids for c in g.completions) for g in groups]
