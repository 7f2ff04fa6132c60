"""Reward functions in the signatures of other frameworks, loaded by path in the tests."""

import os
import re
import time


def plain(completion, answer):
    return float(answer in completion)


def with_names(response, ground_truth, question="", difficulty=1):
    return 1.0 if ground_truth in response and question == "q?" and difficulty == 3 else 0.0


def trl_text(completions, solution, **kwargs):
    return [1.0 if s in c else 0.0 for c, s in zip(completions, solution, strict=True)]


def trl_messages(prompts, completions, **kwargs):
    said = [c[0]["content"] for c in completions]
    assert prompts[0][0]["role"] == "user"
    return [1.0 if a in s else 0.0 for s, a in zip(said, kwargs["answer"], strict=True)]


async def trl_async(completions, level):
    return [float(v) / 2 for v in level]


def trl_none(completions, **kwargs):
    return [None if "skip" in c else 0.5 for c in completions]


def trl_ids(completion_ids, completions, trainer_state=None, log_metric=None, **kwargs):
    log_metric("mean", 1.0)
    return [float(len(ids)) for ids in completion_ids]


def trl_state(completions, trainer_state, **kwargs):
    return [float(trainer_state.global_step) for _ in completions]


def trl_short(completions, **kwargs):
    return [1.0]


def trl_raises(completions, **kwargs):
    if any("raise" in c for c in completions):
        raise KeyError("planted")
    return [1.0] * len(completions)


def trl_hangs(completions, **kwargs):
    if any("hang" in c for c in completions):
        time.sleep(60)
    return [1.0] * len(completions)


def trl_mutates(completions, answer):
    completions[0] = "changed"
    answer.clear()
    return [1.0] * len(completions)


def compute_score(data_source, solution_str, ground_truth, extra_info=None, bonus=0.0):
    if solution_str == "number":
        return 0.25
    right = ground_truth in solution_str
    extra = extra_info["level"] + bonus
    return {"score": 1.0 if right else -1.0, "acc": right, "pred": solution_str, "extra": extra}


def reward_func(queries, prompts, labels):
    assert queries[0].startswith(prompts[0])
    return {
        "rewards": [0.75 if labels[0] in queries[0] else 0.0],
        "scores": [1.0],
        "extra_logs": {},
    }


def misbehaves(completion, answer):
    if completion == "hang":
        time.sleep(60)
    if completion == "backtrack":
        re.match(r"(a+)+$", "a" * 60 + "b")
    if completion == "exit":
        os._exit(7)
    if completion == "raise":
        raise ZeroDivisionError("planted")
    values = {
        "nan": float("nan"),
        "inf": float("inf"),
        "text": "1.0",
        "none": None,
        "list": [1.0, 2.0],
    }
    print("noise on standard output")
    return values.get(completion, 1.0)


class Orm:
    """In the manner of ms-swift: a class whose instances are called with the completions."""

    def __init__(self, scale=1.0):
        self.scale = scale

    def __call__(self, completions, solution, **kwargs):
        return [self.scale * (s in c) for c, s in zip(completions, solution, strict=True)]


def make_reward(scale):
    def reward(completions, **kwargs):
        return [scale] * len(completions)

    return reward


class Rubric:
    """In the shape of the verifiers library's first API."""

    def __init__(self):
        self.funcs = [exact, brief]
        self.weights = [1.0, 0.25]
        self.parser = None


async def exact(completion, answer, state):
    return float(completion[0]["content"] == answer and state["answer"] == answer)


def brief(completion, info):
    return 1.0 if len(completion[0]["content"]) <= info["limit"] else 0.0


class Environment:
    def __init__(self):
        self.rubric = Rubric()


def load_environment(**kwargs):
    return Environment()


def v0_function(completion, answer, parser, state):
    return 0.5


class OwnVerifier:
    """Our own protocol, written by a user."""

    name = "own"

    def verify(self, problem, completions):
        from verigrad.types import Verdict

        return [Verdict.correct(extracted=c.text) for c in completions]

    def check_gold(self, problem):
        return None

    def render_gold(self, problem):
        return problem.answer


def nothing_known(a, b):
    return 1.0


NUMBER = 3
