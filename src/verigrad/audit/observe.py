"""Put the cases to the reward and write down what came back; nothing is judged here.

The order of calls is that of their cost: a first look at one completion, the golds' renderings, one
group for each problem, then the probes of repetition, order, threads and memory on a few problems,
and last the texts that may hang or run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from verigrad.audit.calls import Call, Reply, Score, Setting
from verigrad.audit.cases import Case, Form, hard_cases, length_texts, make_cases, make_form
from verigrad.audit.isolate import Caller
from verigrad.audit.near import near_misses
from verigrad.audit.report import shown
from verigrad.types import Problem

FALLBACK = "The answer is \\boxed{{{answer}}}."
"""Rendering of a gold where the verifier names none."""
RANGE = 2.0
"""Largest size of a reward taken for scaled: a verdict with a bonus or a penalty of its size."""
FEW = 8
"""Problems of the probes that repeat calls."""
MEMORY_ROUNDS = 24
FIRST = 6
"""Problems whose groups are timed before it is decided how many fit into the budget."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A broken contract that was seen: the finding's name and one example."""

    name: str
    evidence: str


@dataclass(slots=True)
class Record:
    """Everything observed. Lists grow while the calls are made; counts are (asked, bad)."""

    problems: tuple[Problem, ...]
    unusable: list[tuple[int, str]] = field(default_factory=list)
    forms: list[Form] = field(default_factory=list)
    seen: list[tuple[Case, Score]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    lengths: list[tuple[int, list[str], tuple[Score, ...]]] = field(default_factory=list)
    asked: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    checks: int = 0
    ran_code: list[str] = field(default_factory=list)
    tops: dict[int, float] = field(default_factory=dict)

    def count(self, probe: str, n: int = 1) -> None:
        """Count ``n`` more questions of a contract probe."""
        self.asked[probe] = self.asked.get(probe, 0) + n

    def fault(self, name: str, evidence: str) -> None:
        """Note a broken contract."""
        self.faults.append(Fault(name, evidence))


def observe(
    setting: Setting,
    caller: Caller,
    *,
    seed: int,
    budget_s: float,
    canary: str,
    render: Callable[[Problem], str | None] | None,
    refit: Callable[[str], str],
) -> Record:
    """Make all calls and return the record. ``refit`` turns a rendering into one after the
    prefill."""
    record = Record(setting.problems)
    if not _first_look(record, caller):
        return record
    _render(record, caller, render, refit)
    cases = make_cases(setting.problems, record.forms, seed=seed, prompt_tail=setting.prompt_tail)
    _show_cases(record, caller, cases, budget_s)
    few = [f for f in record.forms if f.problem in {c.problem for c, _ in record.seen}][:FEW]
    _repeat(record, caller, few, cases)
    _lengths(record, caller, few)
    if few:
        _hard(record, caller, few[0], canary)
        _threads(record, caller, few, cases)
        _memory(record, caller, few[0])
    if caller.given_up:
        record.notes.append(
            "not everything was asked: calls kept being lost, so the rest was given up"
        )
    return record


def _first_look(record: Record, caller: Caller) -> bool:
    """Show one text for two problems; False where each of these calls is lost."""
    lost = 0
    few = min(2, len(record.problems))
    for number in range(few):
        texts = ("The answer is \\boxed{1}.",)
        (reply,) = caller.run([Call("verify", number, texts)])
        if reply.fault in ("hangs", "crashes") or any(s.fault == "hangs" for s in reply.scores):
            lost += 1
            record.count("time")
            note_faults(record, number, texts, reply)
    if lost == few:
        record.notes.append("nothing else was asked: the first calls never returned")
    return lost < few


def _render(
    record: Record,
    caller: Caller,
    render: Callable[[Problem], str | None] | None,
    refit: Callable[[str], str],
) -> None:
    for number, problem in enumerate(record.problems):
        (gold,) = caller.run([Call("check_gold", number)])
        record.count("usable")
        if gold.fault or gold.text is not None:
            record.unusable.append((number, gold.text or gold.evidence))
            if gold.fault:
                record.fault(gold.fault, f"check_gold of problem {problem.id!r}: {gold.evidence}")
            continue
        text = render(problem) if render is not None else None
        if text is None:
            (reply,) = caller.run([Call("render_gold", number)])
            if reply.fault:
                record.fault(
                    reply.fault, f"render_gold of problem {problem.id!r}: {reply.evidence}"
                )
            text = None if reply.text is None else refit(reply.text)
        if text is None and problem.answer:
            text = refit(make_fallback(problem.answer))
        if text is not None:
            record.forms.append(make_form(number, problem.answer, text))
    if not record.forms and len(record.unusable) < len(record.problems):
        record.forms = [Form(n, "", "", -1) for n in range(len(record.problems))]
        record.notes.append("the problems have no answers: only what needs none was asked")


def make_fallback(answer: str) -> str:
    """Return the answer in a box, as most maths prompts ask for it."""
    return FALLBACK.format(answer=answer.rpartition("####")[2].strip())


def _show_cases(record: Record, caller: Caller, cases: Sequence[Case], budget_s: float) -> None:
    """One group for each problem, as a trainer calls it, as many as fit into the budget."""
    started = time.monotonic()
    by_problem: dict[int, list[Case]] = {}
    for case in cases:
        by_problem.setdefault(case.problem, []).append(case)
    for i, (number, group) in enumerate(by_problem.items()):
        spent = time.monotonic() - started
        if i >= FIRST and spent / i * (i + 1) > budget_s:
            record.notes.append(
                f"{i} of {len(by_problem)} problems were shown: more would take longer than "
                f"{budget_s:g} s, at {spent / max(1, record.checks) * 1000:.0f} ms a completion"
            )
            return
        no_gold = not record.forms[0].text
        wanted = [c for c in group if not no_gold or c.probe == "empty"]
        noted = len(record.faults)
        reply = _ask(record, caller, number, tuple(c.text for c in wanted))
        scores = reply.scores
        if not scores:
            scores = _one_by_one(record, caller, number, wanted, reply)
            if len(record.faults) > noted + 1:
                del record.faults[noted]  # the text that does it says more than its group
        record.seen += list(zip(wanted, scores, strict=True))


def _one_by_one(
    record: Record, caller: Caller, number: int, cases: Sequence[Case], lost: Reply
) -> tuple[Score, ...]:
    """The group failed as a whole: ask for each text alone, to name the one that does it."""
    if lost.fault == "not_run" or len(cases) == 1:
        return tuple(Score("", None, lost.evidence, lost.fault) for _ in cases)
    scores: list[Score] = []
    for case in cases:
        reply = _ask(record, caller, number, (case.text,))
        fault = reply.fault if not reply.scores else ""
        scores.append(reply.scores[0] if reply.scores else Score("", None, reply.evidence, fault))
    return tuple(scores)


def _ask(record: Record, caller: Caller, number: int, texts: tuple[str, ...]) -> Reply:
    """Make one verify call, count it, and note its faults with the text they came with."""
    (reply,) = caller.run([Call("verify", number, texts)])
    if reply.fault == "not_run":
        return reply
    record.checks += len(texts)
    for probe in ("exceptions", "time", "numbers", "inputs"):
        record.count(probe, len(texts))
    note_faults(record, number, texts, reply)
    return reply


def note_faults(record: Record, number: int, texts: Sequence[str], reply: Reply) -> None:
    """Note the faults of a reply: of the call, and of each score."""
    problem = record.problems[number]
    if reply.fault == "mutates_inputs":
        record.fault("mutates_inputs", f"problem {problem.id!r}: {reply.evidence}")
    elif reply.fault and reply.fault != "not_run":
        what = shown(texts[0]) if len(texts) == 1 else f"a group of {len(texts)} completions"
        record.fault(reply.fault, f"problem {problem.id!r}, {what}: {reply.evidence}")
    for text, score in zip(texts, reply.scores, strict=False):
        if score.fault and score.fault != "not_run":
            record.fault(score.fault, f"problem {problem.id!r}, {shown(text)}: {score.reason}")
        if score.reward is not None and abs(score.reward) > RANGE:
            record.fault(
                "out_of_range", f"problem {problem.id!r}, {shown(text)}: reward {score.reward:g}"
            )


def _repeat(record: Record, caller: Caller, few: Sequence[Form], cases: Sequence[Case]) -> None:
    """The same group again, in reverse, and its texts alone: all must be scored the same."""
    before = {(c.problem, c.text): s for c, s in record.seen}
    for i, form in enumerate(few):
        mine = [c.text for c in cases if c.problem == form.problem]
        texts = tuple(t for t in dict.fromkeys(mine) if (form.problem, t) in before)
        again = _ask(record, caller, form.problem, texts)
        record.count("same_again", len(again.scores))
        changed = _differ(
            record, form, texts, again.scores, before, "non_deterministic", "asked again"
        )
        if changed:
            continue
        turned = texts[::-1]
        reply = _ask(record, caller, form.problem, turned)
        record.count("order", len(reply.scores))
        if _differ(
            record, form, turned, reply.scores, before, "depends_on_group", "in reverse order"
        ):
            continue
        for text in texts[:6] if i < 4 else ():
            reply = _ask(record, caller, form.problem, (text,))
            record.count("order", len(reply.scores))
            _differ(record, form, (text,), reply.scores, before, "depends_on_group", "alone")
    if few:
        (reply,) = caller.run([Call("verify", few[0].problem, ())])
        if reply.fault not in ("", "not_run", "mutates_inputs"):
            record.fault(reply.fault, f"an empty group: {reply.evidence}")


def _differ(
    record: Record,
    form: Form,
    texts: Sequence[str],
    scores: Sequence[Score],
    before: dict[tuple[int, str], Score],
    fault: str,
    how: str,
) -> bool:
    """Note each text whose score differs from the first one; return whether any does."""
    found = False
    for text, score in zip(texts, scores, strict=False):
        first = before[(form.problem, text)]
        if (
            first.fault
            or score.fault
            or (first.outcome, first.reward) == (score.outcome, score.reward)
        ):
            continue
        found = True
        record.fault(
            fault,
            f"problem {record.problems[form.problem].id!r}, {shown(text)}: "
            f"reward {first.reward:g}, then {score.reward:g} {how}",
        )
    return found


def _lengths(record: Record, caller: Caller, few: Sequence[Form]) -> None:
    import random

    for form in few[:4]:
        near = near_misses(form.answer, [f.answer for f in few], random.Random(0))
        if form.at < 0 or not near:
            continue
        texts = length_texts(form, form.put(near[0].answer))
        reply = _ask(record, caller, form.problem, tuple(texts))
        record.count("length", len(reply.scores))
        if len(reply.scores) == len(texts):
            record.lengths.append((form.problem, texts, reply.scores))


def _threads(record: Record, caller: Caller, few: Sequence[Form], cases: Sequence[Case]) -> None:
    before = {(c.problem, c.text): s for c, s in record.seen}
    unstable = any(f.name == "non_deterministic" for f in record.faults)
    for form in few[:4]:
        texts = tuple(t for p, t in before if p == form.problem)[:8]
        (reply,) = caller.run([Call("verify_in_thread", form.problem, texts)])
        if reply.fault == "not_run" or unstable:
            continue
        record.count("threads", len(texts))
        if reply.fault not in ("", "mutates_inputs"):
            record.fault("depends_on_thread", f"in a thread: {reply.evidence}")
            continue
        for text, score in zip(texts, reply.scores, strict=False):
            first = before[(form.problem, text)]
            if first.fault or (first.outcome, first.reward) == (score.outcome, score.reward):
                continue
            record.fault(
                "depends_on_thread",
                f"problem {record.problems[form.problem].id!r}, {shown(text)}: {first.outcome} on "
                f"the main thread, {score.outcome or score.fault} {score.reason} in another",
            )


def _memory(record: Record, caller: Caller, form: Form) -> None:
    from verigrad.audit.calls import MEMORY_TEXT

    (reply,) = caller.run([Call("memory", form.problem, (form.text,), rounds=MEMORY_ROUNDS)])
    if reply.fault:
        if reply.fault != "not_run":
            record.fault(reply.fault, f"completions of {MEMORY_TEXT} characters: {reply.evidence}")
        return
    record.count("memory", MEMORY_ROUNDS)
    shown_bytes = MEMORY_ROUNDS // 2 * MEMORY_TEXT
    if reply.grown > shown_bytes // 2:
        record.fault(
            "keeps_memory",
            f"{reply.grown / 1024:.0f} KiB more are held after {MEMORY_ROUNDS // 2} completions of "
            f"{MEMORY_TEXT / 1024:.0f} KiB",
        )


def _hard(record: Record, caller: Caller, form: Form, canary: str) -> None:
    for case in hard_cases(form, canary):
        reply = _ask(record, caller, form.problem, (case.text,))
        if reply.fault == "not_run":
            return
        if reply.scores:
            record.seen.append((case, reply.scores[0]))
        if os.path.exists(canary):
            record.ran_code.append(case.variant)
            os.unlink(canary)
