import pickle
import threading
import time
from pathlib import Path

import foreign_rewards as rewards
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judging import completion, judge, outcome, problem

from verigrad.errors import RecipeError
from verigrad.types import Outcome
from verigrad.verifiers import describe, make_verifier, wrap_reward
from verigrad.verifiers.foreign.spec import parse_spec

HERE = Path(__file__).parent
FILE = "foreign_rewards.py"


def load(name, **options):
    return make_verifier(name, options=options, base_dir=HERE)


@pytest.mark.parametrize(
    ("spec", "framework", "text", "reward"),
    [
        (f"{FILE}:plain", "plain", "it is 42", 1.0),
        (f"{FILE}:plain", "plain", "it is 43", 0.0),
        (f"{FILE}:with_names", "plain", "42", 1.0),
        (f"{FILE}:trl_text", "trl", "42", 1.0),
        (f"trl:{FILE}:trl_text", "trl", "41", 0.0),
        (f"{FILE}:trl_messages", "trl", "42", 1.0),
        (f"{FILE}:trl_async", "trl", "x", 1.5),
        (f"{FILE}:trl_ids", "trl", "x", 3.0),
        (f"verl:{FILE}", "verl", "42", 1.0),
        (f"verl:{FILE}:compute_score", "verl", "41", -1.0),
        (f"{FILE}:compute_score", "verl", "number", 0.25),
        (f"openrlhf:{FILE}", "openrlhf", "42", 0.75),
        (f"{FILE}:Orm", "trl", "42", 1.0),
        (f"vf:{FILE}", "vf", "42", 1.25),
        (f"vf:{FILE}:Rubric", "vf", "41", 0.25),
        (f"{FILE}:v0_function", "vf", "x", 0.5),
        (f"{FILE}:OwnVerifier", "verigrad", "x", 1.0),
    ],
)
def test_each_signature_is_recognised_and_gives_its_own_number(spec, framework, text, reward):
    verifier = load(spec)
    assert verifier.plan.framework == framework
    assert judge(verifier, text, difficulty=3, level=3, limit=2).reward == reward
    assert "worker process" in describe(verifier)
    verifier.close()


def test_the_resolved_call_names_what_every_parameter_gets():
    told = describe(load(f"{FILE}:trl_messages"))
    assert "prompts=..., completions=<messages>, **every other column" in told
    assert "its source reads them" in told
    told = describe(wrap_reward(rewards.with_names))
    assert "response=<text>, ground_truth=<gold answer>, question=<question>" in told


def test_verl_dicts_keep_their_accuracy_and_numbers():
    verdict = judge(load(f"verl:{FILE}", arguments={"bonus": 0.5}), "42", level=1)
    assert verdict.outcome is Outcome.CORRECT
    assert verdict.parts == {"acc": 1.0, "extra": 1.5}
    assert verdict.extracted == "42"


def test_a_rubric_keeps_its_functions_as_parts():
    assert judge(load(f"vf:{FILE}"), "42", limit=1).parts == {"exact": 1.0, "brief": 0.0}


def test_a_class_or_factory_is_made_with_the_recipes_arguments():
    assert judge(load(f"{FILE}:Orm", arguments={"scale": 3.0}), "42").reward == 3.0
    assert judge(load(f"trl:{FILE}:make_reward", arguments={"scale": 0.5}), "x").reward == 0.5
    with pytest.raises(RecipeError, match="missing 1 required positional argument: 'scale'"):
        load(f"trl:{FILE}:make_reward")


def test_only_the_culprit_is_broken_and_the_reason_says_why():
    verifier = load(f"{FILE}:misbehaves", deadline_s=1.0)
    texts = ["fine", "raise", "nan", "inf", "text", "none", "list", "exit", "fine"]
    verdicts = verifier.verify(problem(), [completion(t) for t in texts])
    assert [v.reward for v in verdicts] == [1.0, *[None] * 7, 1.0]
    reasons = [v.reason for v in verdicts]
    for i, words in enumerate(
        ["", "ZeroDivisionError: planted", "NaN", "infinite", "a str, neither a number", "None",
         "a list, neither a number", "died (exit code 7)", ""]
    ):  # fmt: skip
        assert words in reasons[i]
    assert verifier.num_lost == 1


@pytest.mark.parametrize("how", ["hang", "backtrack"])
def test_a_hang_ends_at_the_deadline_even_when_it_holds_the_interpreter(how):
    verifier = load(f"{FILE}:misbehaves", deadline_s=0.5)
    started = time.monotonic()
    verdicts = verifier.verify(problem(), [completion(t) for t in ("fine", how, "fine")])
    assert time.monotonic() - started < 10
    assert [v.reward for v in verdicts] == [1.0, None, 1.0]
    assert "deadline" in verdicts[1].reason
    verifier.close()


def test_a_group_of_hangs_is_given_up_after_three():
    verifier = load(f"{FILE}:misbehaves", deadline_s=0.2)
    verdicts = verifier.verify(problem(), [completion("hang")] * 6)
    assert all(v.outcome is Outcome.BROKEN for v in verdicts)
    assert verifier.num_lost == 3 and "not called" in verdicts[-1].reason


@pytest.mark.parametrize("name", ["trl_raises", "trl_hangs"])
def test_in_a_batch_function_one_bad_completion_does_not_hurt_the_others(name):
    verifier = load(f"{FILE}:{name}", deadline_s=0.3)
    bad = name.removeprefix("trl_").rstrip("s")
    verdicts = verifier.verify(problem(), [completion(t) for t in ("a", bad, "b")])
    assert [v.reward for v in verdicts] == [1.0, None, 1.0]


def test_a_wrong_length_is_broken():
    verdicts = wrap_reward(rewards.trl_short).verify(problem(), [completion("a"), completion("b")])
    assert [v.reward for v in verdicts] == [1.0, 1.0], "called singly, one reward for one is right"
    pair = wrap_reward(lambda completions: [1.0] * (len(completions) + 1))
    assert "2 rewards for 1 completions: wrong length" in judge(pair, "a").reason


def test_none_is_no_reward_and_a_sum_leaves_it_out():
    assert outcome(load(f"{FILE}:trl_none"), "skip") == "broken"
    parts = [{"name": f"{FILE}:trl_none", "label": "n"}, {"name": "number"}]
    both = make_verifier("compose", options={"parts": parts}, base_dir=HERE)
    assert judge(both, "skip \\boxed{42}").reward == 1.0
    assert judge(both, "\\boxed{42}").parts == {"n": 0.5, "number": 1.0}


def test_a_trainers_state_is_refused_not_invented():
    verdict = judge(wrap_reward(rewards.trl_state), "x")
    assert verdict.outcome is Outcome.BROKEN and "trainer_state.global_step" in verdict.reason


@pytest.mark.parametrize(
    "wrap", [lambda: load(f"{FILE}:trl_mutates"), lambda: wrap_reward(rewards.trl_mutates)]
)
def test_what_it_mutates_is_a_copy(wrap):
    row = problem(tags=["kept"])
    group = [completion("a"), completion("b")]
    verifier = wrap()
    assert [v.reward for v in verifier.verify(row, group)] == [1.0, 1.0]
    assert row.info == {"tags": ["kept"]} and [c.text for c in group] == ["a", "b"]


def test_a_missing_column_is_the_problems_fault_and_is_named():
    verifier = load(f"{FILE}:trl_async")
    assert "no column 'level'" in (verifier.check_gold(problem()) or "")
    assert outcome(verifier, "x") == "broken"
    mapped = load(f"{FILE}:trl_async", columns={"level": "grade"})
    assert judge(mapped, "x", grade=4).reward == 2.0
    assert "no answer" in (load(f"{FILE}:plain").check_gold(problem(None)) or "")


def test_correct_at_moves_the_outcome_and_not_the_reward():
    verdict = judge(load(f"{FILE}:v0_function", correct_at=0.5), "x")
    assert verdict.reward == 0.5 and verdict.outcome is Outcome.CORRECT


def test_the_gold_is_rendered_in_a_format_that_the_reward_accepts():
    assert load(f"{FILE}:plain").render_gold(problem()) == "The answer is \\boxed{42}."
    hashes = wrap_reward(lambda completion, answer: float(completion == f"#### {answer}"))
    assert hashes.render_gold(problem("9*2 = 18\n#### 18")) == "The answer is \\boxed{18}."
    assert hashes.render_gold(problem("18")) == "#### 18"
    fixed = wrap_reward(rewards.plain, options={"gold_format": "A: {answer}"})
    assert fixed.render_gold(problem()) == "A: 42"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("absent.py:fn", "absent.py does not exist"),
        (f"{FILE}:plian", "has no 'plian'. Did you mean 'plain'?"),
        (f"{FILE}:NUMBER", "is a int, not a function"),
        (f"{FILE}:nothing_known", "no parameter is called completion"),
        (FILE, "is not a spec"),
        ("trl:", "is not a spec"),
        ("no_such_module_x.y:fn", "the module 'no_such_module_x' is not installed"),
        ("json:dumpz", "json has no 'dumpz'"),
        ("gym:leg_countin", "Did you mean 'leg_counting'?"),
    ],
)
def test_what_can_not_be_loaded_is_named(spec, words):
    with pytest.raises(RecipeError) as error:
        load(spec)
    assert words in str(error.value)


def test_a_file_that_fails_to_load_says_so(tmp_path):
    (tmp_path / "bad.py").write_text("import sys\nsys.exit(3)\n")
    with pytest.raises(RecipeError, match="bad"):
        make_verifier("bad.py:fn", base_dir=tmp_path)
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(60)\n")
    with pytest.raises(RecipeError, match="start_s"):
        make_verifier("slow.py:fn", options={"start_s": 0.5}, base_dir=tmp_path)
    with pytest.raises(RecipeError, match="Did you mean 'deadline_s'"):
        make_verifier("slow.py:fn", options={"deadline": 1}, base_dir=tmp_path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("trl:pkg.mod:fn", ("trl", "pkg.mod", "fn", False)),
        ("verl:a/b.py:compute_score", ("verl", "a/b.py", "compute_score", True)),
        ("vf:my-env", ("vf", "my-env", "load_environment", False)),
        ("pkg.mod:fn", (None, "pkg.mod", "fn", False)),
        ("gym:chain_sum?min_terms=2", ("gym", "chain_sum", "", False)),
    ],
)
def test_parse_spec(text, expected):
    spec = parse_spec(text)
    assert (spec.framework, spec.where, spec.name, spec.is_file) == expected


def test_gym_scores_by_entry_or_by_metadata():
    import reasoning_gym

    data = reasoning_gym.create_dataset("leg_counting", size=3, seed=1)
    verifier = make_verifier("gym:leg_counting")
    for entry in data:
        by_entry = problem(entry["answer"], entry["question"], entry=entry)
        by_parts = problem(entry["answer"], entry["question"], metadata=entry["metadata"])
        for text in (f"\\boxed{{{entry['answer']}}}", "<answer>3</answer>", "I do not know"):
            said = {"<answer>3</answer>": "3", "I do not know": text}.get(text, entry["answer"])
            native = data.score_answer(said, entry)
            for row in (by_entry, by_parts):
                assert verifier.verify(row, [completion(text)])[0].reward == native
    assert "neither 'entry' nor 'metadata'" in judge(verifier, "\\boxed{3}").reason
    verifier.close()


def test_threads_share_one_worker_without_mixing_answers():
    verifier = load(f"{FILE}:plain")
    wrong: list[str] = []

    def ask(i: int) -> None:
        for k in range(20):
            row = problem(f"<{i}.{k}>")
            verdicts = verifier.verify(row, [completion(f"<{i}.{k}>"), completion("no")])
            if [v.reward for v in verdicts] != [1.0, 0.0]:
                wrong.append(f"{i}.{k}")

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_a_pickled_copy_starts_its_own_worker():
    verifier = load(f"{FILE}:plain")
    copy = pickle.loads(pickle.dumps(verifier))
    verifier.close()
    assert judge(copy, "42").reward == 1.0
    copy.close()


def test_a_row_that_can_not_be_sent_is_broken():
    verdict = judge(load(f"{FILE}:plain"), "42", lock=threading.Lock())
    assert verdict.outcome is Outcome.BROKEN and "pickle" in verdict.reason


NUMBERS = st.one_of(st.floats(-5, 5), st.integers(-3, 3), st.booleans())


@settings(max_examples=60, deadline=None)
@given(st.lists(NUMBERS, min_size=1, max_size=6))
def test_wrapped_and_native_give_the_same_numbers(values):
    """Each signature, wrapped and called natively, on rewards that hypothesis makes up."""
    texts = [str(i) for i in range(len(values))]
    group = [completion(t) for t in texts]

    def trl(prompts, completions, answer, **kwargs):
        return [values[int(c)] for c in completions]

    def verl(data_source, solution_str, ground_truth, extra_info=None):
        return {"score": values[int(solution_str)]}

    def openrlhf(queries, prompts, labels):
        return {
            "rewards": [
                values[int(q.removeprefix(p))] for q, p in zip(queries, prompts, strict=True)
            ]
        }

    def plain(completion, answer):
        return values[int(completion)]

    native = [float(v) for v in trl(["q?"] * len(texts), texts, ["42"] * len(texts))]
    for function in (trl, verl, openrlhf, plain):
        wrapped = [v.reward for v in wrap_reward(function).verify(problem(), group)]
        assert wrapped == native


def test_a_thread_that_hangs_is_left_behind_at_most_three_times():
    release = threading.Event()

    def reward(completion, answer):
        release.wait(20)
        return 1.0

    verifier = wrap_reward(reward, options={"deadline_s": 0.05})
    reasons = [judge(verifier, "x").reason for _ in range(4)]
    release.set()
    assert all("deadline" in r for r in reasons) and "not called" in reasons[3]


def test_a_fork_of_the_caller_starts_its_own_worker():
    import os

    verifier = load(f"{FILE}:plain")
    child = os.fork()
    if child == 0:
        right = judge(verifier, "42").reward == 1.0
        verifier.close()
        os._exit(0 if right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert judge(verifier, "42").reward == 1.0, "the parent's worker is untouched"
    verifier.close()
