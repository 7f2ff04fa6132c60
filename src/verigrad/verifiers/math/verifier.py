"""The maths verifier: extract one answer, read it, compare it with the gold, say why."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any, ClassVar, Literal

from verigrad.types import Completion, Problem, Verdict
from verigrad.verifiers.base import TextVerifier
from verigrad.verifiers.math.answers import Node, choice_letter, plain, read, simple
from verigrad.verifiers.math.compare import judge_trees, plain_words
from verigrad.verifiers.math.extract import Mode, find
from verigrad.verifiers.math.limits import TooLarge, Unreadable
from verigrad.verifiers.math.values import open_budget

Unevaluated = Literal["refuse", "accept"]
_SHOWN = 80
_LEAD = re.compile(
    r"^(?:\\text\{)?\s*(?:the\s+)?(?:final\s+)?answer\s*(?:is|:)\s*\}?\s*:?(?=[^\s}])",
    re.IGNORECASE,
)
_DOLLARS = re.compile(r"^\$+([^$]*)\$+$", re.DOTALL)


def _quote(text: str) -> str:
    flat = " ".join(text.split())
    return repr(flat if len(flat) <= _SHOWN else flat[: _SHOWN - 1] + "…")


def gold_fault(gold: str | None) -> str | None:
    """Return why a gold answer cannot be used, None when it can."""
    if gold is None or not gold.strip():
        return "the gold answer is empty"
    if simple(gold.strip()) is not None:
        return None
    found = read(clean(gold))
    if found.node is not None:
        return None
    if not re.search(r"\w", gold):
        return f"the gold answer {_quote(gold)} holds no letter and no digit"
    depth = 0
    for mark in re.findall(r"\\.|[{}]", gold, re.DOTALL):
        depth += (mark == "{") - (mark == "}")
        if depth < 0:
            break
    if depth != 0:
        return f"the gold answer {_quote(gold)} has braces that do not match"
    return None if found.words or len(gold) < 2_000 else f"the gold answer: {found.fault}"


def clean(text: str) -> str:
    """Return the answer without a box or dollars around it."""
    text = text.strip()
    boxed = re.fullmatch(r"\\(?:boxed|fbox)\s*\{(.*)\}", text, re.DOTALL)
    if boxed:
        text = boxed[1].strip()
    text = _LEAD.sub("", text)
    dollars = _DOLLARS.match(text)
    return dollars[1].strip() if dollars else text


_NOT = re.compile(
    r"(?:\\(?:text|mbox|mathrm)\s*\{)?\s*(?:not|never|isn't|neither)\b", re.IGNORECASE
)


def judge(
    gold: str,
    completion: str,
    *,
    question: str = "",
    mode: Mode = "strict",
    unevaluated: Unevaluated = "refuse",
) -> Verdict:
    """Return the verdict on one completion text for one gold answer; never raises for either.

    BROKEN when the gold is empty or cannot be read, UNPARSED when the completion asserts nothing,
    else CORRECT or WRONG. ``question`` lets an echo of it be recognised.
    """
    fault = gold_fault(gold)
    if fault is not None:
        return Verdict.broken(fault + ".")
    gold = clean(gold)
    found = find(completion, mode=mode, same=_same_text)
    if not found.answers:
        if found.asserted:
            return Verdict.unparsed(f"No answer was found: {found.reason}.")
        return Verdict.wrong(f"No single answer is asserted: {found.reason}.")
    if len(found.answers) != 1:
        joint = ", ".join(found.answers)
        if equal(gold, joint)[0] and _is_plural(gold):
            return Verdict.correct(f"The boxes together state {_quote(gold)}.", joint)
        return Verdict.wrong(f"No single answer is asserted: {found.reason}.")
    (answer,) = found.answers
    if _NOT.match(answer) and not _NOT.match(gold):
        return Verdict.wrong(f"{_quote(answer)} says what the answer is not.", answer)
    right, why = equal(gold, answer)
    if not right:
        return Verdict.wrong(why, answer)
    if unevaluated == "refuse" and (refusal := restates(gold, answer, question)):
        return Verdict.wrong(refusal, answer)
    return Verdict.correct(f"{_quote(answer)} equals {_quote(gold)}.", answer)


def _is_plural(gold: str) -> bool:
    node = read(gold).node
    return node is not None and node[0] in ("list", "set")


def _same_text(a: str, b: str) -> bool:
    return a == b or equal(a, b)[0]


def equal(gold: str, answer: str) -> tuple[bool, str]:
    """Return whether an answer's text equals a gold's, and a sentence that says why not."""
    answer = clean(answer)
    differ = f"{_quote(answer)} does not equal {_quote(gold)}."
    a, b = simple(gold), simple(answer)
    if a is not None and b is not None:
        return a == b, differ
    if gold == answer and len(answer) <= 20_000:
        return True, ""
    open_budget()
    try:
        return _equal_trees(gold, answer), differ
    except (TooLarge, Unreadable, ZeroDivisionError) as fault:
        return False, f"{_quote(answer)} was not worked out: {fault}."
    except (RecursionError, OverflowError, MemoryError):
        return False, f"{_quote(answer)} was not worked out: it is past the bounds."


def _equal_trees(gold: str, answer: str) -> bool:
    letter = choice_letter(gold)
    if letter is not None:
        other = choice_letter(answer)
        if other is not None or read(answer).node is None:
            return letter == other
    left, right = read(gold), read(answer)
    if left.node is not None and right.node is not None:
        return judge_trees(left.node, right.node)
    if left.node is not None and left.node[0] not in ("text", "sym"):
        return False
    if left.words and right.words and not re.search(r"[\\\d=<>]", left.words + right.words):
        return plain_words(left.words) == plain_words(right.words) != ""
    return plain(gold) == plain(answer)


def restates(gold: str, answer: str, question: str) -> str:
    """Return a sentence when the answer is arithmetic left undone although the gold is a number.

    Sums, differences and products of plain literals are undone; fractions, powers, roots,
    factorials, mixed numbers and scientific notation are ways to write a value.
    """
    if simple(clean(gold).replace(",", "")) is None or simple(answer) is not None:
        return ""
    node = read(clean(answer)).node
    while node is not None and node[0] in ("unit", "rel"):
        node = node[1] if node[0] == "unit" else node[1][-1]
    if node is None or not _undone(node):
        return ""
    return f"{_quote(answer)} leaves undone the arithmetic that the problem asks for."


def _undone(node: Node) -> bool:
    if node[0] == "neg":
        return _undone(node[1])
    if node[0] == "add":
        return all(_literal(item) for item in node[1])
    if node[0] == "mul":
        power = node[1][1]
        scientific = power[0] == "pow" and power[1] == ("num", Fraction(10))
        return not scientific and all(_literal(item) for item in node[1])
    if node[0] == "div" and node[3:] != ("frac",):
        return any(part[0] in ("add", "mul") and _undone(part) for part in node[1:3])
    return False


def _literal(node: Any) -> bool:
    """Whether a tree is made of numbers and the four operations only."""
    if node[0] == "num":
        return True
    if node[0] in ("add", "mul"):
        return all(_literal(item) for item in node[1])
    if node[0] in ("neg", "div", "mixed", "pow"):
        return all(_literal(item) for item in node[1:3] if isinstance(item, tuple))
    return False


class MathVerifier(TextVerifier):
    """The answer equals the gold as mathematics: exact values, sets, intervals, expressions."""

    kind: ClassVar[str] = "math"

    mode: Mode = "strict"
    """lenient: without a box, tag, #### or answer phrase, the last number counts."""
    unevaluated: Unevaluated = "refuse"
    """What 48+24 is worth when the gold is 72: refuse (the default) or accept."""

    def judge(self, problem: Problem, completion: Completion) -> Verdict:
        return judge(
            problem.answer or "",
            completion.text,
            question=problem.question,
            mode=self.mode,
            unevaluated=self.unevaluated,
        )

    def check_gold(self, problem: Problem) -> str | None:
        """Return None when the gold can be read, else a sentence that says why not."""
        return gold_fault(problem.answer)

    def render_gold(self, problem: Problem) -> str | None:
        r"""Return the gold in ``\boxed{}``, None without a usable gold."""
        if problem.answer is None or gold_fault(problem.answer) is not None:
            return None
        return f"The final answer is $\\boxed{{{clean(problem.answer)}}}$."
