from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import contract
import pytest
import rollout_models as models
from server import Server, serve

from verigrad.errors import TrainingError, UsageError
from verigrad.rollout import http
from verigrad.rollout.http import HTTPEngine
from verigrad.rollout.native import NativeEngine
from verigrad.types import Engine, Sampling


@pytest.fixture
def server() -> Iterator[Server]:
    native = NativeEngine(models.build("llama"), models.tokenizer(), precision="fp32")
    with serve(Server(native)) as running:
        yield running


def _engine(server: Server, **changes: Any) -> HTTPEngine:
    settings = {"tokenizer": models.tokenizer(), "max_rows": 4, "timeout_s": 30.0} | changes
    return HTTPEngine(server.url, settings.pop("model", "tiny"), **settings)


def test_keeps_the_contract(server: Server) -> None:
    engine = _engine(server)
    assert isinstance(engine, Engine)
    contract.completions_are_whole(engine)
    contract.seeds_decide(engine)
    contract.company_does_not_matter(engine)
    contract.greedy_takes_the_likeliest(engine)
    contract.logprobs_are_the_models(engine, 1.0)
    contract.stop_strings_end_the_text(engine)
    contract.bad_requests_are_refused(engine)
    contract.logprobs_are_the_models(_engine(server, logprobs="processed"), 0.7)


def test_asks_with_its_own_words(server: Server) -> None:
    engine = _engine(server, api_key="key")
    engine.generate(models.prompts(["two"]), contract.NEUTRAL, group_size=2, seed=0)
    assert len({asked["seed"] for asked in server.asked}) == 2
    for asked in server.asked:
        assert asked["path"] == "/v1/completions"
        assert asked["auth"] == "Bearer key"
        assert asked["return_token_ids"] is True


def test_a_busy_server_is_asked_again(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(http.time, "sleep", waited.append)
    server.fail_first = 2
    groups = _engine(server).generate(
        models.prompts(["two"]), contract.NEUTRAL, group_size=1, seed=0
    )
    assert len(groups) == 1
    assert waited == [1, 2]


def test_failures_are_named(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http.time, "sleep", lambda _: None)
    ask: dict[str, Any] = {"group_size": 1, "seed": 0}
    prompts = models.prompts(["two"])
    with pytest.raises(TrainingError, match=r"404 .*no model other"):
        _engine(server, model="other").generate(prompts, contract.NEUTRAL, **ask)
    server.with_ids = False
    with pytest.raises(UsageError, match=r"returned no token ids.*return_token_ids"):
        _engine(server).generate(prompts, contract.NEUTRAL, **ask)
    gone = HTTPEngine("http://127.0.0.1:9/v1", "tiny", tokenizer=models.tokenizer())
    with pytest.raises(TrainingError, match="can't be reached"):
        gone.generate(prompts, contract.NEUTRAL, **ask)
    with pytest.raises(UsageError, match="base_url = 'localhost'"):
        HTTPEngine("localhost", "tiny", tokenizer=models.tokenizer())


def test_what_it_cannot_promise_is_refused(server: Server) -> None:
    prompts = models.prompts(["two"])
    refused = [
        ("raw", Sampling(max_new_tokens=4, temperature=0.7), "temperature = 0.7"),
        ("processed", Sampling(max_new_tokens=4, top_p=0.9), "top_p = 0.9"),
        ("raw", Sampling(max_new_tokens=4, thinking_budget=2), "thinking_budget = 2"),
    ]
    for mode, sampling, words in refused:
        with pytest.raises(UsageError, match=words):
            _engine(server, logprobs=mode).generate(prompts, sampling, group_size=1, seed=0)


def test_weights_go_through_publish(server: Server) -> None:
    weights = models.build("llama", seed=1).state_dict()
    with pytest.raises(UsageError, match="publish"):
        _engine(server).load(weights, version=1)
    engine = _engine(server, publish=lambda w, version: server.engine.load(w, version=version))
    engine.load(weights, version=3)
    group = engine.generate(models.prompts(["two"]), contract.NEUTRAL, group_size=1, seed=0)[0]
    assert (server.engine.version, group.completions[0].version) == (3, 3)
