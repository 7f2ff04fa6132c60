"""The sampler, the noise, the request check and the endings, against hand-made expectations."""

from __future__ import annotations

import math

import numpy as np
import pytest
import rollout_models as models
import torch

from verigrad.errors import UsageError
from verigrad.rollout.endings import TextReader, cut_at_stop, end_token_ids, stop_window
from verigrad.rollout.noise import uniforms
from verigrad.rollout.request import check_request
from verigrad.rollout.sample import sample_rows
from verigrad.types import Sampling

NONE = torch.tensor([-1])


def _kept(probabilities: list[float], sampling: Sampling) -> set[int]:
    """Slow twin: the tokens that the filters leave, from a full sort."""
    order = sorted(range(len(probabilities)), key=lambda i: -probabilities[i])
    if sampling.top_k:
        order = order[: sampling.top_k]
    total, mass, nucleus = sum(probabilities[i] for i in order), 0.0, []
    for i in order:
        if mass >= sampling.top_p * total:
            break
        nucleus.append(i)
        mass += probabilities[i]
    least = sampling.min_p * probabilities[order[0]]
    return {i for i in nucleus if probabilities[i] >= least}


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(1),
        Sampling(1, top_k=5),
        Sampling(1, top_p=0.7),
        Sampling(1, min_p=0.2),
        Sampling(1, temperature=0.5, top_k=30, top_p=0.8, min_p=0.05),
        Sampling(1, temperature=3.0, top_p=0.99),
    ],
)
def test_sampling_follows_the_filtered_distribution(sampling: Sampling) -> None:
    torch.manual_seed(0)
    logits = torch.randn(300) * 3
    p = torch.softmax(logits.double() / sampling.temperature, -1)
    kept = _kept(p.tolist(), sampling)
    wanted = torch.zeros(300, dtype=torch.float64)
    for i in kept:
        wanted[i] = p[i]
    wanted /= wanted.sum()
    n = 4000
    noise = (torch.arange(n, dtype=torch.float64) + 0.5) / n
    tokens, logprobs = sample_rows(
        logits.expand(n, -1), sampling, noise_B=noise, forced_B=NONE.expand(n)
    )
    assert set(tokens.tolist()) <= kept
    # Evenly spaced noise hits each token in proportion, to within two of the n points.
    share = torch.bincount(tokens, minlength=300) / n
    assert (share - wanted).abs().max() <= 2 / n
    torch.testing.assert_close(logprobs, p.log()[tokens].float(), rtol=1e-4, atol=1e-4)


def test_greedy_and_forced_tokens() -> None:
    logits = torch.tensor([[0.0, 2.0, 1.0], [3.0, 0.0, 0.0]])
    noise = torch.tensor([0.99, 0.99], dtype=torch.float64)
    tokens, logprobs = sample_rows(
        logits, Sampling(1, temperature=0.0), noise_B=noise, forced_B=torch.tensor([-1, 2])
    )
    assert tokens.tolist() == [1, 2]
    # log softmax by hand: 2 - ln(1 + e^2 + e) and 0 - ln(e^3 + 2).
    assert logprobs.tolist() == pytest.approx(
        [2 - math.log(1 + math.e**2 + math.e), -math.log(math.e**3 + 2)], abs=1e-6
    )


def test_noise_is_a_function_of_its_keys() -> None:
    n = 2000
    same = np.zeros(n, dtype=np.int64)
    along = np.arange(n, dtype=np.int64)
    for keys in ((along, same, same), (same, along, same), (same, same, along)):
        drawn = uniforms(3, keys[0], samples=keys[1], positions=keys[2])
        assert drawn.min() >= 0 and drawn.max() < 1
        assert len(set(drawn.tolist())) == n
        # Mean 1/2 and variance 1/12, four standard errors wide.
        assert abs(drawn.mean() - 0.5) < 4 / math.sqrt(12 * n)
        assert abs(drawn.var() - 1 / 12) < 0.01
        part = uniforms(3, keys[0][5:9], samples=keys[1][5:9], positions=keys[2][5:9])
        assert part.tolist() == drawn[5:9].tolist()
    assert uniforms(4, same, samples=same, positions=along).tolist() != drawn.tolist()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"max_new_tokens": 0}, "max_new_tokens = 0"),
        ({"temperature": -1.0}, "temperature = -1.0"),
        ({"temperature": float("nan")}, "temperature = nan"),
        ({"top_k": -2}, "top_k = -2"),
        ({"min_p": 1.0}, "min_p = 1.0"),
        ({"stop": ("",)}, "stop = "),
        ({"thinking_budget": -1}, "thinking_budget = -1"),
        ({"max_new_tokens": 99}, "at most 97"),
    ],
)
def test_requests_are_checked_whole(changes: dict[str, object], words: str) -> None:
    sampling = Sampling(**({"max_new_tokens": 5} | changes))  # type: ignore[arg-type]
    prompt = models.prompts(["one"])
    with pytest.raises(UsageError, match=words):
        check_request(prompt, sampling, group_size=1, context=100, vocab_size=263)


def test_end_tokens_are_all_that_are_declared_and_never_padding() -> None:
    tokens = models.tokenizer()
    model = models.build("llama")
    assert end_token_ids(tokens, model) == {tokens.eos_token_id}
    model.generation_config.eos_token_id = [tokens.eos_token_id, 50]
    assert end_token_ids(tokens, model) == {tokens.eos_token_id, 50}
    assert tokens.pad_token_id not in end_token_ids(tokens, model)


def test_text_has_no_special_tokens() -> None:
    tokens = models.tokenizer()
    reader = TextReader(tokens, end_token_ids(tokens, None))
    ids = tokens.encode("so <think> 7", add_special_tokens=False)
    assert reader.text([*ids, tokens.eos_token_id, tokens.pad_token_id]) == "so <think> 7"


def test_stop_strings_are_cut_at_the_earliest() -> None:
    assert cut_at_stop("one two three", ("three", "two")) == "one "
    assert cut_at_stop("one", ("two",)) is None
    assert stop_window(("ab", "é")) == 2 + 4
