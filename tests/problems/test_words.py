"""Generated problems: exact answers, worked solutions, no problem on both sides, one seed."""

import itertools
import re
from collections import Counter

import pytest

from verigrad.errors import RecipeError
from verigrad.problems.source import parse_source
from verigrad.problems.sums import read_sum_settings, sum_problems
from verigrad.problems.word_templates import TEMPLATES
from verigrad.problems.words import evaluate, read_word_settings, word_problems


def words(query, *, count=500, seed=0, heldout=False):
    settings = read_word_settings(parse_source(f"words:?{query}"))
    return list(itertools.islice(word_problems(settings, seed=seed, heldout=heldout), count))


def sums(query, *, count=10**6, seed=0, heldout=False):
    settings = read_sum_settings(parse_source(f"sums:?{query}"))
    return list(itertools.islice(sum_problems(settings, seed=seed, heldout=heldout), count))


def check_lines(solution):
    """Every ``3 + 4 = 7`` in a solution, worked out by Python itself; returns the last result."""
    lines = re.findall(r"(\d+(?: [-+*/] \d+)+) = (\d+)", solution)
    for left, right in lines:
        assert eval(left) == int(right), left
    return lines


@pytest.mark.parametrize("style", ["plain", "sentences"])
def test_every_solution_is_arithmetic_that_holds_and_ends_in_the_boxed_answer(style):
    for p in words(f"steps=1..3&style={style}", count=2000):
        lines = check_lines(p.info["solution"])
        assert len(lines) == p.info["steps"]
        assert lines[-1][1] == p.answer
        assert p.info["solution"].endswith(f"The answer is \\boxed{{{p.answer}}}.")
        assert "{" not in p.question
        assert p.question.endswith("?")


def test_the_plain_style_is_the_calculations_alone():
    shown = {p.info["solution"] for p in words("steps=1&ops=add&max_number=5", count=300)}
    assert "2 + 3 = 5. The answer is \\boxed{5}." in shown


def test_every_number_of_the_question_is_used_or_is_a_result():
    # A question must not be about numbers other than those of its solution.
    for p in words("steps=1..2", count=1000):
        in_question = {int(n) for n in re.findall(r"\d+", p.question)}
        in_solution = {int(n) for n in re.findall(r"\d+", p.info["solution"])}
        assert in_question <= in_solution


def test_every_template_is_reached_with_default_numbers():
    seen = {p.info["template"] for p in words("steps=1..3&max_number=30", count=6000)}
    assert seen == {t.name for t in TEMPLATES}


def test_thousands_of_easy_problems_are_distinct():
    questions = [p.question for p in words("steps=1&max_number=10&max_result=20", count=5000)]
    assert len(set(questions)) == 5000


def test_training_and_heldout_share_no_question_even_with_other_names():
    train, held = (words("steps=1&max_number=8", count=4000, heldout=h) for h in (False, True))

    def skeleton(p):
        return p.info["template"], tuple(re.findall(r"\d+", p.question))

    assert not {p.question for p in train} & {p.question for p in held}
    assert not {skeleton(p) for p in train} & {skeleton(p) for p in held}
    assert len({p.id for p in train + held}) == len(train) + len(held)


def test_the_same_seed_gives_the_same_problems_and_another_seed_others():
    assert words("steps=1") == words("steps=1")
    one, two = ({p.question for p in words("", seed=s)} for s in (1, 2))
    assert len(one & two) < 50


def test_difficulty_options_hold():
    for p in words("steps=1&max_number=6&max_result=12&ops=add,subtract&kinds=collecting,ages"):
        assert p.info["kind"] in ("collecting", "ages")
        assert p.info["steps"] == 1
        assert not set(p.info["solution"].split()) & {"*", "/"}
        assert max(int(n) for n in re.findall(r"\d+", p.info["solution"])) <= 12
        assert max(int(n) for n in re.findall(r"\d+", p.question)) <= 12


@pytest.mark.parametrize(
    ("expression", "value"), [("a+b", 9), ("a-b", 3), ("a*b/2", 9), ("a/b", 2), ("a/4", None)]
)
def test_evaluate_works_from_left_to_right_in_whole_numbers(expression, value):
    assert evaluate(expression, {"a": 6, "b": 3}) == value


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("stepps=2", "Did you mean 'steps'"),
        ("steps=0", "within 1..3"),
        ("steps=2..1", "within 1..3"),
        ("steps=many", "not a number or a range"),
        ("max_number=3", "4 to 100000"),
        ("max_number=ten", "not a whole number"),
        ("kinds=shoping", "Did you mean 'shopping'"),
        ("ops=plus", "Known names: add, divide, multiply, subtract"),
        ("style=long", "plain, sentences"),
        ("steps=1&steps=2", "twice"),
        ("steps", "name=value"),
        ("kinds=ages&ops=divide", "Allow more steps, kinds or ops"),
    ],
)
def test_bad_options_are_refused_and_name_the_remedy(query, message):
    with pytest.raises(RecipeError, match=re.escape(message)) as caught:
        words(query)
    assert "problems.source" in str(caught.value)
    assert caught.value.exit_code == 2


def test_one_digit_sums_are_all_81_split_in_two_sides():
    train, held = sums("digits=1"), sums("digits=1", heldout=True)
    pairs = {tuple(map(int, re.findall(r"\d+", p.question))) for p in train + held}
    assert pairs == {(a, b) for a in range(1, 10) for b in range(1, 10)}
    assert len(train) + len(held) == 81
    assert 10 <= len(held) <= 30


def test_swapped_sums_stand_on_the_same_side():
    train, held = (
        {p.question for p in sums("digits=1..2&ops=add,multiply", heldout=h)} for h in (0, 1)
    )
    for side, other in ((train, held), (held, train)):
        for question in side:
            a, op, b = re.fullmatch(r"What is (\d+) (.) (\d+)\?", question).groups()
            assert f"What is {b} {op} {a}?" not in other


@pytest.mark.parametrize("query", ["digits=1..2&terms=2..3&ops=add,subtract,multiply", "digits=6"])
def test_sums_are_right_and_in_range(query):
    for p in sums(query, count=2000):
        expression = p.question.removeprefix("What is ").removesuffix("?")
        assert int(p.answer) == eval(expression) >= 0
        assert p.info["solution"] == f"{expression} = \\boxed{{{p.answer}}}"


def test_sums_depend_on_the_seed_only_in_their_order():
    one, two = sums("digits=1", seed=1), sums("digits=1", seed=2)
    assert [p.id for p in one] != [p.id for p in two]
    assert {p.id for p in one} == {p.id for p in two}
    assert sums("digits=1", seed=1) == one


@pytest.mark.parametrize("query", ["digits=0", "terms=1", "ops=div", "count=0", "digit=1"])
def test_bad_sum_options_are_refused(query):
    with pytest.raises(RecipeError):
        sums(query)


@pytest.mark.parametrize(
    "query", ["steps=1..2&max_number=10&max_result=20", "steps=1&max_number=20"]
)
def test_no_single_answer_earns_much(query):
    problems = words(query, count=2000)
    common = max(Counter(p.answer for p in problems).values())
    assert common / len(problems) < 0.12
