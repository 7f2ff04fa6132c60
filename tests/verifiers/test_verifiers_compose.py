import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judging import completion, judge, outcome, problem

from verigrad.errors import UsageError, VerifierError
from verigrad.types import Outcome
from verigrad.verifiers import as_trl_reward, as_verl_compute_score, make_verifier, wrap_reward


def compose(op, *parts):
    return make_verifier("compose", options={"op": op, "parts": list(parts)})


def test_a_gate_pays_only_what_passes_it():
    v = compose("gate", {"name": "format"}, {"name": "number", "weight": 2})
    right = judge(v, "<think>a</think>\\boxed{42}")
    assert right.reward == 2.0 and dict(right.parts) == {"format": 1.0, "number": 1.0}
    unformatted = judge(v, "\\boxed{42}")
    assert unformatted.reward == 0.0 and unformatted.outcome is Outcome.WRONG
    assert "gate format" in unformatted.reason
    assert judge(v, "<think>a</think>\\boxed{41}").outcome is Outcome.WRONG


def test_a_sum_weighs_and_its_first_part_decides():
    overlong = {"name": "overlong", "max_tokens": 4, "cache_tokens": 2, "weight": 0.5}
    v = compose("sum", {"name": "number"}, overlong)
    verdict = v.verify(problem(), [completion("\\boxed{42}", 3)])[0]
    assert verdict.reward == 1.0 - 0.5 * 0.5 and verdict.outcome is Outcome.CORRECT
    w = compose("sum", overlong, {"name": "number", "decides": True, "label": "right"})
    verdict = w.verify(problem(), [completion("\\boxed{41}", 3)])[0]
    assert verdict.outcome is Outcome.WRONG and dict(verdict.parts) == {
        "overlong": -0.5,
        "right": 0.0,
    }
    assert judge(v, "\\boxed{1}", "no number").outcome is Outcome.BROKEN


def test_all_and_any_are_kleenes_logic():
    number, string = {"name": "number"}, {"name": "string"}
    assert outcome(compose("all", number, string), "\\boxed{42}") == "correct"
    assert outcome(compose("all", number, string), "\\boxed{42.0}") == "wrong"
    assert outcome(compose("any", string, number), "\\boxed{42.0}") == "correct"
    assert outcome(compose("any", number, string), "\\boxed{Paris}", "Paris") == "correct"
    assert outcome(compose("any", number, string), "\\boxed{Rome}", "Paris") == "broken"
    assert outcome(compose("any", string, number), "\\boxed{41}") == "wrong"
    assert compose("any", number, string).check_gold(problem("Paris")) is None
    assert "number" in (compose("all", number, string).check_gold(problem("Paris")) or "")


def test_a_later_part_is_asked_only_about_what_is_still_open():
    asked: list[str] = []

    def spy(completion, answer):
        asked.append(completion)
        return 1.0

    from verigrad.verifiers.compose import ComposeVerifier, WeightedPart

    gate = WeightedPart("format", make_verifier("format"))
    v = ComposeVerifier("gate", (gate, WeightedPart("spy", wrap_reward(spy))))
    good = "<think>a</think>b"
    verdicts = v.verify(problem(), [completion(t) for t in ("bad", good, "worse")])
    assert asked == [good] and [x.reward for x in verdicts] == [0.0, 1.0, 0.0]


def test_the_composition_renders_a_gold_that_it_accepts():
    v = compose("gate", {"name": "format", "style": "think_answer"}, {"name": "number"})
    text = v.render_gold(problem()) or ""
    assert outcome(v, text) == "correct" and "<answer>42</answer>" in text


def test_equal_labels_get_numbers():
    v = compose("sum", {"name": "number"}, {"name": "number", "weight": 0.5})
    assert dict(judge(v, "\\boxed{42}").parts) == {"number": 1.0, "number_2": 1.0}


def test_trl_export_reads_texts_and_messages_and_gives_none_for_broken():
    reward = as_trl_reward(make_verifier("number"))
    assert reward.__name__ == "number"
    chat = [
        [{"role": "assistant", "content": "\\boxed{2}"}],
        [{"role": "assistant", "content": None}],
    ]
    prompts = [[{"role": "user", "content": "1+1"}]] * 2
    assert reward(
        prompts=prompts, completions=chat, solution=["2", "2"], trainer_state=object()
    ) == [1.0, 0.0]
    texts = ["\\boxed{2}", "\\boxed{2}", "\\boxed{3}"]
    assert reward(prompts=["a", "a", "b"], completions=texts, answer=["2", "two", 3]) == [
        1.0,
        None,
        1.0,
    ]
    with pytest.raises(UsageError, match="answer_column = 'gold'"):
        as_trl_reward(make_verifier("number"), answer_column="gold")(
            prompts=["a"], completions=["x"]
        )


def test_trl_export_hands_over_the_real_token_ids():
    reward = as_trl_reward(make_verifier("overlong", options={"max_tokens": 4, "cache_tokens": 2}))
    assert reward(prompts=["a", "a"], completions=["x", "x"], completion_ids=[[1], [1, 2, 3]]) == [
        0.0,
        -0.5,
    ]


def test_verl_export_has_the_same_keys_always_and_never_scores_broken_by_itself():
    score = as_verl_compute_score(make_verifier("number"))
    assert score("d", "\\boxed{2}", "2", {"index": 1}) == {
        "score": 1.0,
        "acc": 1.0,
        "unparsed": 0.0,
        "broken": 0.0,
    }
    assert score(data_source="d", solution_str="?", ground_truth="2")["unparsed"] == 1.0
    with pytest.raises(VerifierError, match="not a number"):
        score("d", "\\boxed{2}", "two")
    counted = as_verl_compute_score(make_verifier("number"), on_broken=-1.0)("d", "x", "two")
    assert counted["score"] == -1.0 and counted["broken"] == 1.0 and counted["acc"] == 0.0
    with pytest.raises(UsageError):
        as_verl_compute_score(make_verifier("number"), on_broken="zero")


@settings(deadline=None)
@given(st.sampled_from(["\\boxed{42}", "\\boxed{41}", "x"]), st.sampled_from(["42", "41"]))
def test_an_export_brought_back_gives_the_same_numbers(text, gold):
    ours = make_verifier("number")
    native = judge(ours, text, gold).reward
    assert judge(wrap_reward(as_trl_reward(ours)), text, gold).reward == native
    assert judge(wrap_reward(as_verl_compute_score(ours)), text, gold).reward == native
