"""Rewards of TRL, verl and verifiers, wrapped and called natively by their own code: same numbers.

Run in an environment that has trl 1.16, verl 0.9.1 (with ray), verifiers 0.4 and jsonschema beside
this package: ``pytest tests/peers``. The ordinary suite does not collect this folder.
"""

import asyncio
import math
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "verifiers"))
from judging import completion, problem

from verigrad.types import Outcome
from verigrad.verifiers import as_trl_reward, as_verl_compute_score, make_verifier, wrap_reward

FEW = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
GOLDS = st.sampled_from(["72", "-1/2", "\\frac{1}{2}", "1,234", "0.5", "x+1", "Paris", ""])
TEXTS = st.one_of(
    st.sampled_from(
        [
            "\\boxed{72}",
            "#### 72",
            "Answer: 72",
            "The answer is 72.",
            "\\boxed{\\frac{1}{2}}",
            "<think>a</think>\\boxed{72}",
            "<think>\na\n</think>\n42",
            "",
        ]
    ),
    GOLDS.map(lambda g: f"so \\boxed{{{g}}}"),
    st.text(max_size=40),
)


def same(wrapped, native):
    """Equal numbers; TRL's None is a BROKEN verdict without a reward."""
    assert len(wrapped) == len(native)
    for verdict, number in zip(wrapped, native, strict=True):
        if number is None:
            assert verdict.outcome is Outcome.BROKEN and "None" in verdict.reason
        else:
            assert verdict.reward == pytest.approx(float(number), abs=1e-12)


@pytest.fixture(scope="module")
def accuracy():
    verifier = make_verifier("trl:trl.rewards:accuracy_reward")
    yield verifier
    verifier.close()


@FEW
@given(st.lists(TEXTS, min_size=1, max_size=4), GOLDS)
def test_trl_accuracy_reward(accuracy, texts, gold):
    from trl.rewards import accuracy_reward

    chats = [[{"role": "assistant", "content": t}] for t in texts]
    native = accuracy_reward(completions=chats, solution=[gold] * len(texts))
    same(accuracy.verify(problem(gold), [completion(t) for t in texts]), native)


@FEW
@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_trl_think_format_reward(texts):
    from trl.rewards import think_format_reward

    native = think_format_reward([[{"role": "assistant", "content": t}] for t in texts])
    wrapped = wrap_reward(think_format_reward)
    same(wrapped.verify(problem(), [completion(t) for t in texts]), native)


@FEW
@given(st.lists(st.integers(0, 30), min_size=1, max_size=6))
def test_trl_soft_overlong_is_our_overlong(lengths):
    from trl.rewards import get_soft_overlong_punishment

    native = get_soft_overlong_punishment(20, 4)(completion_ids=[[0] * n for n in lengths])
    group = [completion("x", n) for n in lengths]
    ours = make_verifier("overlong", options={"max_tokens": 20, "cache_tokens": 4})
    same(ours.verify(problem(), group), native)


@FEW
@given(st.lists(st.lists(st.integers(0, 3), max_size=20), min_size=1, max_size=4))
def test_trl_repetition_penalty_is_our_repetition(rows):
    from trl.rewards import get_repetition_penalty_reward

    from verigrad.verifiers.length import repeated_share

    reward = get_repetition_penalty_reward(3, -1.0)
    native = reward(completions=[""] * len(rows), completion_ids=rows)
    assert [-repeated_share(row, 3) for row in rows] == pytest.approx(native)


@FEW
@given(st.lists(TEXTS, min_size=1, max_size=4), GOLDS)
def test_trl_takes_our_export_and_gets_our_numbers(texts, gold):
    import torch

    ours = make_verifier("number")
    reward = as_trl_reward(ours)
    prompts = [[{"role": "user", "content": "q?"}]] * len(texts)
    chats = [[{"role": "assistant", "content": t}] for t in texts]
    rewards = reward(
        prompts=prompts, completions=chats, completion_ids=None, answer=[gold] * len(texts)
    )
    as_trl_does = torch.tensor([math.nan if r is None else r for r in rewards])
    for verdict, number in zip(
        ours.verify(problem(gold), [completion(t) for t in texts]), as_trl_does, strict=True
    ):
        assert (verdict.reward is None) == bool(number.isnan())
        assert verdict.reward is None or verdict.reward == number.item()


@pytest.mark.parametrize("name", ["gsm8k", "math_reward", "math_dapo"])
@FEW
@given(text=TEXTS, gold=st.sampled_from(["72", "\\frac{1}{2}", "1,234"]))
def test_verl_graders(name, text, gold):
    import importlib

    native = importlib.import_module(f"verl.utils.reward_score.{name}").compute_score
    number = native(solution_str=text, ground_truth=gold)
    wrapped = wrap_reward(native).verify(problem(gold), [completion(text)])[0]
    expected = number["score"] if isinstance(number, dict) else number
    assert wrapped.reward == expected
    if isinstance(number, dict):
        assert (wrapped.outcome is Outcome.CORRECT) == bool(number["acc"])


@FEW
@given(text=TEXTS)
def test_verls_own_dispatch_by_data_source(text):
    from verl.utils.reward_score import default_compute_score

    wrapped = wrap_reward(default_compute_score)
    for source in ("openai/gsm8k", "lighteval/MATH", "math_dapo"):
        raw = default_compute_score(source, text, "72")
        row = problem("72")
        row = type(row)(row.id, row.messages, row.answer, source, row.info)
        expected = raw["score"] if isinstance(raw, dict) else raw
        assert wrapped.verify(row, [completion(text)])[0].reward == expected
    unknown = wrapped.verify(problem("72"), [completion(text)])[0]
    assert unknown.outcome is Outcome.BROKEN and "NotImplementedError" in unknown.reason


@FEW
@given(text=TEXTS, gold=st.sampled_from(["72", "1/2"]))
def test_our_export_as_verl_would_call_it(text, gold):
    ours = make_verifier("number")
    score = as_verl_compute_score(ours)(
        data_source="d", solution_str=text, ground_truth=gold, extra_info={"index": 0}
    )
    verdict = ours.verify(problem(gold), [completion(text)])[0]
    assert score["score"] == verdict.reward
    assert score["acc"] == float(verdict.outcome is Outcome.CORRECT)


@pytest.mark.parametrize("spec", ["vf:peers_v1_task.py", "vf:peers_v1_task.py:CountTask"])
def test_verifiers_second_api_scores_a_trace(spec):
    verifier = make_verifier(spec, base_dir=Path(__file__).parent)
    texts = ["42", "it is 42, I am sure", "41"]
    verdicts = verifier.verify(problem("42", level=10), [completion(t) for t in texts])
    assert [v.reward for v in verdicts] == [2.5, 2.0, 0.5]
    assert dict(verdicts[0].parts) == {"right": 1.0, "brief": 0.5}
    missing = verifier.verify(problem("42"), [completion("42")])[0]
    assert missing.outcome is Outcome.BROKEN and "level" in missing.reason
    verifier.close()


def test_an_async_trl_reward_gives_what_it_gives_alone():
    async def reward(completions, answer, **kwargs):
        await asyncio.sleep(0)
        return [float(a in c) for c, a in zip(completions, answer, strict=True)]

    native = asyncio.run(reward(["42", "x"], ["42", "42"]))
    same(wrap_reward(reward).verify(problem(), [completion("42"), completion("x")]), native)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(-9, 9) | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
        ),
    )
)
@settings(max_examples=200, deadline=None)
def test_our_schema_validator_agrees_with_jsonschema(value):
    import jsonschema

    from verigrad.verifiers.jsonvalid import first_fault

    schemas = [
        {"type": ["object", "integer"], "properties": {"a": {"minimum": 0}}, "required": ["a"]},
        {"items": {"type": ["number", "string"]}, "uniqueItems": True, "maxItems": 2},
        {"anyOf": [{"multipleOf": 2}, {"maxLength": 1}, {"contains": {"type": "null"}}]},
        {"not": {"enum": [0, "", None, [], False]}},
        {"additionalProperties": {"type": "integer"}, "propertyNames": {"enum": ["a", "b"]}},
        {"if": {"type": "object"}, "then": {"minProperties": 1}, "else": {"const": 1}},
    ]  # fmt: skip
    for schema in schemas:
        valid = jsonschema.Draft202012Validator(schema).is_valid(value)
        assert (first_fault(value, schema) is None) == valid, (schema, value)
