"""reasoning-gym tasks: options reach the task, the entry stays whole, its scorer accepts gold."""

import reasoning_gym

from verigrad.config import ProblemsSection
from verigrad.problems import load_problems


def load(source, *, seed=0, count=0):
    return load_problems(ProblemsSection(source=source), seed=seed, heldout=count)


def test_options_reach_the_task():
    found = load("gym:chain_sum?size=40&min_terms=2&max_terms=2&min_digits=1&max_digits=1")
    for problem in found.train:
        assert problem.info["metadata"]["num_terms"] == 2
        assert problem.data_source == "chain_sum"


def test_the_scorer_of_the_task_accepts_the_gold_answer_of_every_entry():
    scorer = reasoning_gym.create_dataset("leg_counting", size=1, seed=0)
    for problem in load("gym:leg_counting?size=10").train:
        assert scorer.score_answer(problem.answer, dict(problem.info["entry"])) == 1.0


def test_flags_and_lists_are_read_as_the_task_declares_them():
    found = load("gym:chain_sum?size=5&allow_negation=true")
    assert len(found.train) == 5
    found = load("gym:basic_arithmetic?size=5&operators=%2B,-&allow_parentheses=false")
    assert not any(set(p.info["metadata"]["expression"]) & set("*/()") for p in found.train)


def test_heldout_entries_are_the_same_for_every_seed_and_never_trained_on():
    source = "gym:chain_sum?size=200&min_terms=2&max_terms=2&min_digits=1&max_digits=1"
    one, two = (load(source, seed=s, count=30) for s in (1, 2))
    assert one.heldout == two.heldout
    assert len(one.heldout) == 30
    assert one.train != two.train
    held = {p.question for p in one.heldout}
    assert not held & {p.question for p in (*one.train, *two.train)}
