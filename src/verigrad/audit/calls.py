"""One call to a verifier, made as a trainer would make it, and everything observed while it ran.

Nothing here judges: a reply holds plain values (it crosses a pipe), and names what broke the
contract of ``types.Verifier`` by the name of the finding it leads to.
"""

from __future__ import annotations

import math
import numbers
import pickle
import re
import threading
import time
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from verigrad.types import Completion, FinishReason, Outcome, Problem, Verdict, Verifier

Kind = Literal["check_gold", "render_gold", "verify", "verify_in_thread", "memory"]

_BROKEN_WORDS: tuple[tuple[str, str], ...] = (
    ("nan_reward", r"\bnan\b|not a number\b(?!.*\btype)"),
    ("infinite_reward", r"\binf(inite|inity)?\b"),
    ("hangs", r"deadline|timed? ?out|time limit|too long to"),
    ("wrong_length", r"\b(one|\d+) (rewards?|scores?|verdicts?)\b.*\bfor\b|wrong length"),
    ("no_reward", r"\bNone\b|no reward|abstain"),
    ("wrong_type", r"\btype\b(?!Error)|neither a number|not a (float|reward)"),
)
"""How the reason of a BROKEN verdict is read; what none of these matches is an exception."""

_BROKEN_STARTS = {
    "raises": "raised ",
    "crashes": "the worker process died",
    "not_run": "not called",
    "hangs": "deadline",
}
"""Finding -> how the reason of a foreign reward's BROKEN verdict begins, whatever follows."""

MEMORY_TEXT = 20_000
"""Characters of each completion of the memory probe."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request: the number of a problem, and (for verify) the texts of one group.

    ``answer`` replaces the problem's gold answer (``""`` leaves it); ``rounds`` is the length of
    the memory probe; ``tag`` says to the asker what the call was for.
    """

    kind: Kind
    problem: int
    texts: tuple[str, ...] = ()
    answer: str = ""
    rounds: int = 0
    tag: str = ""


@dataclass(frozen=True, slots=True)
class Score:
    """A verdict as plain values; ``fault`` names a broken contract, ``""`` where there is none."""

    outcome: str
    reward: float | None
    reason: str = ""
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back: ``text`` of check_gold or render_gold, ``scores`` of verify, ``grown`` bytes.

    ``fault`` concerns the whole call (raised, wrong length, changed its inputs, late); ``cpu_s`` is
    processor time, which a busy machine does not stretch.
    """

    text: str | None = None
    scores: tuple[Score, ...] = ()
    fault: str = ""
    evidence: str = ""
    grown: int = 0
    cpu_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Setting:
    """What all calls share: the verifier, the problems, and the end of the prompt before a
    completion."""

    verifier: Verifier
    problems: tuple[Problem, ...]
    prompt_tail: str = ""


def make_completion(text: str, prompt_tail: str = "") -> Completion:
    """Return a completion of the text with stand-in token ids, one for four characters."""
    count = (len(text) + 3) // 4
    return Completion(
        text=text,
        token_ids=tuple(range(count)),
        sampler_logprobs=(0.0,) * count,
        finish_reason=FinishReason.STOP,
        prompt_tail=prompt_tail,
    )


def perform(setting: Setting, call: Call) -> Reply:
    """Make the call and return what was observed. Catches what the verifier raises: that is the
    finding."""
    started = time.process_time()
    problem = setting.problems[call.problem]
    if call.answer:
        problem = replace(problem, answer=call.answer)
    completions = [make_completion(text, setting.prompt_tail) for text in call.texts]
    try:
        reply = _KINDS[call.kind](setting.verifier, problem, completions, call)
    except Exception as error:
        reply = Reply(fault="raises", evidence=describe(error))
    except SystemExit as error:  # it would end the trainer too
        reply = Reply(fault="crashes", evidence=f"it ends the process: {describe(error)}")
    return replace(reply, cpu_s=time.process_time() - started)


def describe(error: BaseException) -> str:
    """Return the exception as one line: its type, its message, the line that raised it."""
    where = ""
    step = error.__traceback__
    while step is not None:
        where = f" (line {step.tb_lineno} of {step.tb_frame.f_code.co_name})"
        step = step.tb_next
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}{where}"


def _check_gold(verifier: Verifier, problem: Problem, _: list[Completion], __: Call) -> Reply:
    return _text(verifier.check_gold(problem), "check_gold")


def _render_gold(verifier: Verifier, problem: Problem, _: list[Completion], __: Call) -> Reply:
    return _text(verifier.render_gold(problem), "render_gold")


def _text(value: object, method: str) -> Reply:
    if value is None or isinstance(value, str):
        return Reply(text=value)
    return Reply(
        fault="wrong_type",
        evidence=f"{method} returned a {type(value).__name__}, not a text or None",
    )


def _verify(verifier: Verifier, problem: Problem, handed: list[Completion], _: Call) -> Reply:
    kept = tuple(handed)
    before = _snapshot(problem, kept)
    verdicts: Any = verifier.verify(problem, handed)
    changed = _what_changed(before, _snapshot(problem, kept), handed, kept)
    if not isinstance(verdicts, (list, tuple)):
        return Reply(
            fault="wrong_type", evidence=f"verify returned a {type(verdicts).__name__}, not a list"
        )
    if len(verdicts) != len(kept):
        return Reply(
            fault="wrong_length", evidence=f"{len(verdicts)} verdicts for {len(kept)} completions"
        )
    scores = tuple(_score(v, verifier.name) for v in verdicts)
    return Reply(scores=scores, fault="mutates_inputs" if changed else "", evidence=changed)


def _verify_in_thread(
    verifier: Verifier, problem: Problem, handed: list[Completion], call: Call
) -> Reply:
    """Verify off the main thread, where rewards that rely on signals stop working."""
    box: list[Reply] = []

    def work() -> None:
        try:
            box.append(_verify(verifier, problem, handed, call))
        except Exception as error:
            box.append(Reply(fault="raises", evidence=describe(error)))

    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    return box[0]


def _memory(verifier: Verifier, problem: Problem, handed: list[Completion], call: Call) -> Reply:
    """Verify ``rounds`` long texts, each seen once; report bytes still held after the second
    half."""
    tracemalloc.start()
    try:
        held = 0
        for i in range(call.rounds):
            if i == call.rounds // 2:
                held = tracemalloc.get_traced_memory()[0]
            filler = f"round {i} says so; " * (MEMORY_TEXT // 18)
            verifier.verify(problem, [replace(handed[0], text=f"{filler}\n{handed[0].text}")])
        return Reply(grown=tracemalloc.get_traced_memory()[0] - held)
    finally:
        tracemalloc.stop()


_KINDS = {
    "check_gold": _check_gold,
    "render_gold": _render_gold,
    "verify": _verify,
    "verify_in_thread": _verify_in_thread,
    "memory": _memory,
}


def _score(verdict: object, name: str) -> Score:
    if not isinstance(verdict, Verdict):
        return Score("", None, f"a {type(verdict).__name__} instead of a Verdict", "wrong_type")
    outcome, reward, reason = str(verdict.outcome), verdict.reward, str(verdict.reason)[:300]
    if verdict.outcome is Outcome.BROKEN:
        return Score(outcome, None, reason, _broken_fault(reason.removeprefix(f"{name}: ")))
    if reward is None:
        return Score(outcome, None, f"outcome {outcome} with reward None", "no_reward")
    if not isinstance(reward, numbers.Real):
        return Score(outcome, None, f"reward is a {type(reward).__name__}", "wrong_type")
    number = float(reward)
    if math.isnan(number):
        return Score(outcome, None, "reward is NaN", "nan_reward")
    if math.isinf(number):
        return Score(outcome, None, f"reward is {number}", "infinite_reward")
    return Score(outcome, number, reason)


def _broken_fault(reason: str) -> str:
    for name, start in _BROKEN_STARTS.items():
        if reason.startswith(start):
            return name
    for name, pattern in _BROKEN_WORDS:
        if re.search(pattern, reason, re.IGNORECASE if name != "no_reward" else 0):
            return name
    return "raises"


def _snapshot(problem: Problem, completions: Sequence[Completion]) -> tuple[Any, ...]:
    info = dict(problem.info)
    try:
        frozen: Any = pickle.dumps(info)
    except Exception:  # a column that cannot be pickled is compared by what it prints
        frozen = repr(info)
    texts = tuple((c.text, c.token_ids, c.prompt_tail) for c in completions)
    return problem.id, problem.messages, problem.answer, frozen, texts


def _what_changed(
    before: tuple[Any, ...],
    after: tuple[Any, ...],
    handed: list[Completion],
    kept: Sequence[Completion],
) -> str:
    if len(handed) != len(kept):
        return (
            f"the list of completions had {len(kept)} items before the call and {len(handed)} after"
        )
    if any(a is not b for a, b in zip(handed, kept, strict=True)):
        return "the list of completions was reordered or its items replaced"
    names = ("problem.id", "problem.messages", "problem.answer", "problem.info", "completions")
    changed = [n for n, a, b in zip(names, before, after, strict=True) if a != b]
    return f"{', '.join(changed)} differ after the call" if changed else ""
