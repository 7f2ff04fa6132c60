from __future__ import annotations

from typing import Literal

import contract
import pytest
import rollout_models as models
import torch
from torch import nn

from verigrad.errors import UsageError
from verigrad.rollout.decoder import common_prefix
from verigrad.rollout.native import NativeEngine
from verigrad.rollout.schedule import compaction, prompt_keys
from verigrad.types import Engine, FinishReason, Sampling

FAMILIES = ("llama", "qwen2", "qwen3", "mistral", "gemma2", "gemma3", "phi", "phi3", "gpt_neox")


PATHS = {
    "general": {"fast": False},
    "packed": {"kernels": False},
    "fused": {},  # falls back to "packed" where no compiler exists
}


@pytest.fixture(params=list(PATHS))
def path(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def engine(path: str) -> NativeEngine:
    return _engine(models.build("llama"), path)


def _engine(
    model: nn.Module, path: str, *, max_rows: int = 5, precision: Literal["fp32", "bf16"] = "fp32"
) -> NativeEngine:
    return NativeEngine(
        model, models.tokenizer(), precision=precision, max_rows=max_rows, **PATHS[path]
    )


def test_keeps_the_contract(engine: NativeEngine) -> None:
    assert isinstance(engine, Engine)
    contract.completions_are_whole(engine)
    contract.seeds_decide(engine)
    contract.company_does_not_matter(engine)
    contract.greedy_takes_the_likeliest(engine)
    contract.stop_strings_end_the_text(engine)
    contract.bad_requests_are_refused(engine)


@pytest.mark.parametrize("temperature", [1.0, 0.6, 0.0])
def test_logprobs_equal_a_plain_forward(engine: NativeEngine, temperature: float) -> None:
    contract.logprobs_are_the_models(engine, temperature)


@pytest.mark.parametrize("kind", FAMILIES)
def test_families_match_a_plain_forward(kind: str, path: str) -> None:
    model = models.build(kind)
    engine = _engine(model, path)
    if kind not in ("llama", "qwen2", "qwen3", "mistral"):
        assert engine.path == "general"
    for group in engine.generate(
        models.prompts(contract.TEXTS), Sampling(max_new_tokens=8), group_size=3, seed=1
    ):
        for c in group.completions:
            wanted = models.plain_logprobs(model, group.prompt, c.token_ids, 1.0)
            assert list(c.sampler_logprobs) == pytest.approx(wanted.tolist(), abs=1e-4)


def test_a_sliding_window_is_kept_while_rows_come_and_go() -> None:
    model = models.build("mistral", sliding_window=20)
    engine = NativeEngine(model, models.tokenizer(), precision="fp32", max_rows=4)
    assert engine.path == "general"
    for group in engine.generate(
        models.prompts(contract.TEXTS), Sampling(max_new_tokens=8), group_size=3, seed=1
    ):
        for c in group.completions:
            wanted = models.plain_logprobs(model, group.prompt, c.token_ids, 1.0)
            assert list(c.sampler_logprobs) == pytest.approx(wanted.tolist(), abs=1e-4)


def test_the_number_of_rows_does_not_matter() -> None:
    asked = models.prompts(contract.TEXTS)
    sampling = Sampling(max_new_tokens=8, top_p=0.9, top_k=50)
    tokens = [
        [
            c.token_ids
            for g in _engine(models.build("llama"), path, max_rows=rows).generate(
                asked, sampling, group_size=3, seed=9
            )
            for c in g.completions
        ]
        for path in PATHS
        for rows in (1, 4, 64)
    ]
    assert all(t == tokens[0] for t in tokens)


def test_load_replaces_the_weights_and_the_version(engine: NativeEngine) -> None:
    other = models.build("llama", seed=1)
    engine.load(other.state_dict(), version=7)
    assert engine.version == 7
    group = engine.generate(
        models.prompts(contract.TEXTS), Sampling(max_new_tokens=6), group_size=2, seed=1
    )[1]
    for c in group.completions:
        assert c.version == 7
        wanted = models.plain_logprobs(other, group.prompt, c.token_ids, 1.0)
        assert list(c.sampler_logprobs) == pytest.approx(wanted.tolist(), abs=1e-4)


def test_load_refuses_weights_of_another_model(engine: NativeEngine) -> None:
    weights = dict(models.build("llama").state_dict())
    name = "model.layers.1.mlp.up_proj.weight"
    gone = weights.pop(name)
    with pytest.raises(UsageError, match=name):
        engine.load(weights, version=1)
    with pytest.raises(UsageError, match="has shape"):
        engine.load(weights | {name: gone[:-1]}, version=1)
    with pytest.raises(UsageError, match="unknown"):
        engine.load(weights | {name: gone, "model.lora": gone}, version=1)
    assert engine.version == 0


def test_training_the_model_does_not_move_the_engine(path: str) -> None:
    model = models.build("llama")
    mine = _engine(model, path)
    asked = models.prompts(contract.TEXTS[:1])
    before = mine.generate(asked, contract.NEUTRAL, group_size=2, seed=0)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(1.0)
    assert mine.generate(asked, contract.NEUTRAL, group_size=2, seed=0) == before


def test_a_thinking_budget_closes_what_the_prompt_opened(engine: NativeEngine) -> None:
    asked = models.prompts(["two plus two <think>", "two plus two <think> so </think>"])
    sampling = Sampling(max_new_tokens=20, thinking_budget=3)
    opened, closed = engine.generate(asked, sampling, group_size=4, seed=3)
    closing = models.tokenizer().encode("\n</think>\n\n", add_special_tokens=False)
    for c in opened.completions:
        if len(c.token_ids) < 3:
            assert c.finish_reason is FinishReason.STOP
            continue
        assert c.forced == tuple(range(3, 3 + len(closing)))
        assert [c.token_ids[i] for i in c.forced] == closing
        assert "</think>" in c.text
    assert any(c.forced for c in opened.completions)
    assert all(c.forced == () for c in closed.completions)


def test_bf16_stays_near_fp32(path: str) -> None:
    model = models.build("llama")
    coarse = _engine(model, path, precision="bf16")
    gaps = []
    for group in coarse.generate(
        models.prompts(contract.TEXTS), Sampling(max_new_tokens=8), group_size=4, seed=1
    ):
        for c in group.completions:
            wanted = models.plain_logprobs(model, group.prompt, c.token_ids, 1.0)
            gaps.append((torch.tensor(c.sampler_logprobs) - wanted).abs().mean())
    assert 0 < torch.stack(gaps).mean() < 0.2


def test_wrong_settings_are_named() -> None:
    model, tokens = models.build("llama"), models.tokenizer()
    with pytest.raises(UsageError, match="precision = 'fp8'"):
        NativeEngine(model, tokens, precision="fp8")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="max_rows = 0"):
        NativeEngine(model, tokens, precision="fp32", max_rows=0)


def test_common_prefix_leaves_each_prompt_a_token() -> None:
    assert common_prefix([(1, 2, 3), (1, 2, 4)], least=1) == (1, 2)
    assert common_prefix([(1, 2), (1, 2, 4)], least=1) == (1,)
    assert common_prefix([(1, 2, 3), (1, 2, 4)], least=3) == ()
    assert common_prefix([(1, 2, 3), (1, 2, 3)], least=1) == ()


def test_compaction_moves_the_last_rows_into_the_holes() -> None:
    assert compaction([True, True]) == [0, 1]
    assert compaction([False, True, True, False, True]) == [4, 1, 2]
    assert compaction([False, False]) == []


def test_keys_name_the_prompt_and_its_repeats() -> None:
    a, b = models.prompts(["one", "two"])
    keys = prompt_keys([a, b, a])
    assert len(set(keys)) == 3
    assert prompt_keys([b, a]) == [keys[1], keys[0]]
