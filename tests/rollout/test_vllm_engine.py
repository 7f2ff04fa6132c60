"""vLLM's own classes are stood in for by ones with their signatures, around the native engine."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

import contract
import pytest
import rollout_models as models

from verigrad.errors import MissingExtraError
from verigrad.rollout.native import NativeEngine
from verigrad.rollout.vllm import VLLMEngine
from verigrad.types import Engine, Message, Problem, Prompt, Sampling


@dataclass(frozen=True)
class SamplingParams:
    max_tokens: int
    temperature: float
    top_p: float
    top_k: int
    min_p: float
    stop: list[str]
    stop_token_ids: list[int]
    seed: int
    logprobs: int


class LLM:
    """The part of ``vllm.LLM`` that the engine uses."""

    def __init__(self, **settings: Any) -> None:
        self.settings = settings
        self.resets = 0
        self.native = NativeEngine(models.build("llama"), models.tokenizer(), precision="fp32")

    def generate(
        self, prompts: list[Any], params: list[SamplingParams], *, use_tqdm: bool
    ) -> list[Any]:
        assert use_tqdm is False
        return [self._one(p["prompt_token_ids"], s) for p, s in zip(prompts, params, strict=True)]

    def _one(self, ids: list[int], s: SamplingParams) -> Any:
        assert s.logprobs == 0
        prompt = Prompt(Problem("x", (Message("user", "x"),), None), "x", tuple(ids))
        sampling = Sampling(s.max_tokens, s.temperature, s.top_p, s.top_k, s.min_p, tuple(s.stop))
        done = self.native.generate([prompt], sampling, group_size=1, seed=s.seed)[0].completions[0]
        out = SimpleNamespace(
            token_ids=list(done.token_ids),
            logprobs=[
                {i: SimpleNamespace(logprob=p), -1: SimpleNamespace(logprob=9.0)}
                for i, p in zip(done.token_ids, done.sampler_logprobs, strict=True)
            ],
            finish_reason=done.finish_reason.value,
        )
        return SimpleNamespace(outputs=[out])

    def apply_model(self, change: Any) -> list[Any]:
        taker = SimpleNamespace(load_weights=lambda w: self.native.load(dict(w), version=0))
        return [change(taker)]

    def reset_prefix_cache(self) -> None:
        self.resets += 1


@pytest.fixture
def vllm(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType("vllm")
    module.__spec__ = ModuleSpec("vllm", None)
    module.LLM, module.SamplingParams = LLM, SamplingParams  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vllm", module)
    monkeypatch.setenv("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
    return module


def test_keeps_the_contract(vllm: ModuleType) -> None:
    engine = VLLMEngine("folder", models.tokenizer(), precision="fp32")
    assert isinstance(engine, Engine)
    contract.completions_are_whole(engine)
    contract.seeds_decide(engine)
    contract.company_does_not_matter(engine)
    contract.greedy_takes_the_likeliest(engine)
    contract.logprobs_are_the_models(engine, 0.7)
    contract.stop_strings_end_the_text(engine)
    contract.bad_requests_are_refused(engine)


def test_settings_and_weights_arrive(vllm: ModuleType) -> None:
    engine = VLLMEngine("folder", models.tokenizer(), precision="bf16", max_rows=9, context=200)
    llm = engine._llm
    assert llm.settings["model"] == "folder"
    assert llm.settings["dtype"] == "bfloat16"
    assert llm.settings["max_num_seqs"] == 9
    assert llm.settings["logprobs_mode"] == "processed_logprobs"
    assert llm.settings["generation_config"] == "vllm"
    other = models.build("llama", seed=1)
    engine.load(other.state_dict(), version=4)
    assert llm.resets == 1
    group = engine.generate(models.prompts(["two"]), contract.NEUTRAL, group_size=1, seed=0)[0]
    done = group.completions[0]
    wanted = models.plain_logprobs(other, group.prompt, done.token_ids, 1.0)
    assert done.version == 4
    assert list(done.sampler_logprobs) == pytest.approx(wanted.tolist(), abs=1e-4)


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("verigrad.rollout.vllm.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"verigrad\[vllm\]"):
        VLLMEngine("folder", models.tokenizer(), precision="bf16")
