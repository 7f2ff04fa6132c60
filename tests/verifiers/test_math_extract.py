"""Which answer a completion asserts: one, outside the thinking, not negated, not one of many."""

from __future__ import annotations

import pytest

from verigrad.types import Completion, FinishReason, Outcome, Problem
from verigrad.verifiers.math import MathVerifier, judge

RIGHT = [
    ("42", "So 6*7=42.\n\nThe answer is 42."),
    ("42", "Final Answer: The final answer is $42$. I hope it is correct."),
    ("42", "**Final Answer:** 42"),
    ("42", "**Final Answer**\n\n42"),
    ("18", "She sells 9 eggs.\n#### 18"),
    ("5", "<think>hmm, \\boxed{4}</think>\n<answer>5</answer>"),
    ("10", "The answer is 10 because 5+5=10."),
    ("42", "It is not 41; the answer is $\\boxed{42}$."),
    ("7", "$\\boxed{5}$ is wrong. The correct answer is $\\boxed{7}$."),
    ("1,-2", "$x=\\boxed{1}$ and $x=\\boxed{-2}$"),
    ("24", "The value is $\\boxed{24}$. This is correct, not a guess."),
    ("B", "The correct answer is B) 15 meters"),
    ("\\frac{3}{4}", "$\\boxed{\\frac{3}{4} = 0.75}$"),
    ("540", "So she pays $540 in total.\nAnswer: $540"),
    ("70", "\\boxed{$70}"),
    ("6", "\\boxed{6} and again \\boxed{6.0}"),
    ("17", "\\fbox{17}"),
    ("9", "\\boxed{\\text{The answer is } 9}"),
]
WRONG = [
    ("42", "The answer is not 42."),
    ("42", "It isn't $\\boxed{42}$."),
    ("42", "$\\boxed{42}$ is definitely not the answer."),
    ("5", "$\\boxed{5}$ is incorrect."),
    ("12", "$\\boxed{12}$. Hmm wait, the answer should be 13."),
    ("1", "$x=\\boxed{1}$ and $x=\\boxed{-2}$"),
    ("3", "It is either \\boxed{3} or \\boxed{5}."),
    ("10", "\\boxed{8}\\boxed{9}\\boxed{10}"),
    ("5", "<answer>5</answer> or <answer>6</answer>"),
    ("17", "The answer is 17 or 18."),
    ("17", "The answer is between 16 and 18."),
    ("42", "<think>\\boxed{42}</think> The answer is $\\boxed{43}$."),
]
NOTHING = [
    "",
    "  \n",
    "\\boxed{}",
    "\\boxed",
    "I cannot help with that.",
    "<think>\\boxed{42}",
    "<think>it is \\boxed{42}</think>\nDone.",
    "Put your final answer within \\boxed{}.",
]


@pytest.mark.parametrize(("gold", "text"), RIGHT)
def test_the_asserted_answer_counts(gold: str, text: str) -> None:
    verdict = judge(gold, text)
    assert verdict.outcome is Outcome.CORRECT, verdict.reason


@pytest.mark.parametrize(("gold", "text"), WRONG)
def test_hedged_negated_or_retracted_answers_earn_nothing(gold: str, text: str) -> None:
    verdict = judge(gold, text)
    assert verdict.outcome is Outcome.WRONG, verdict.reason


@pytest.mark.parametrize("text", NOTHING)
def test_no_answer_is_unparsed(text: str) -> None:
    verdict = judge("42", text)
    assert verdict.outcome is Outcome.UNPARSED
    assert verdict.reward == 0.0


def test_only_lenient_mode_takes_the_last_number() -> None:
    text = "We add them and get 42 apples"
    assert judge("42", text).outcome is Outcome.UNPARSED
    assert judge("42", text, mode="lenient").outcome is Outcome.CORRECT
    assert judge("42", "It is certainly not 42", mode="lenient").outcome is Outcome.WRONG


def test_the_verifier_renders_and_accepts_its_own_gold() -> None:
    problem = Problem("p", (), "\\frac{1}{2}")
    verifier = MathVerifier()
    text = verifier.render_gold(problem)
    assert text is not None
    completion = Completion(text, (), (), FinishReason.STOP)
    assert [v.outcome for v in verifier.verify(problem, [completion] * 2)] == [Outcome.CORRECT] * 2
    assert verifier.name == "math"
    assert verifier.check_gold(problem) is None


def test_the_verifier_names_a_missing_gold() -> None:
    problem = Problem("p", (), None)
    verifier = MathVerifier()
    assert verifier.check_gold(problem) == "the gold answer is empty"
    assert verifier.render_gold(problem) is None
    (verdict,) = verifier.verify(problem, [Completion("\\boxed{1}", (), (), FinishReason.STOP)])
    assert verdict.outcome is Outcome.BROKEN
