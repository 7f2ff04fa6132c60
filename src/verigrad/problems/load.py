"""A recipe's problem section -> training and held-out problems that never overlap."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from verigrad.config import ProblemsSection
from verigrad.errors import ProblemError, RecipeError
from verigrad.problems.columns import choose_columns
from verigrad.problems.gym import gym_problems
from verigrad.problems.hub import hub_label, hub_rows
from verigrad.problems.overlap import find_overlap
from verigrad.problems.paths import path_rows
from verigrad.problems.rows import make_problems
from verigrad.problems.source import Source, parse_source
from verigrad.problems.sums import read_sum_settings, sum_problems
from verigrad.problems.text import normalise, problem_key, stable_hash
from verigrad.problems.words import read_word_settings, word_problems
from verigrad.types import Problem

GENERATED = ("words", "sums")
_DEFAULT_COUNT = 2000


@dataclass(frozen=True, slots=True)
class ProblemSet:
    """Problems to train on and problems never trained on; no id and no question is in both.

    ``report`` are lines a person reads: source, columns and why, counts, drops by reason.
    ``fingerprint`` is a hash of ids, turns, answers, data sources and worked solutions.
    """

    train: tuple[Problem, ...]
    heldout: tuple[Problem, ...]
    report: tuple[str, ...]
    fingerprint: str


def load_problems(section: ProblemsSection, *, seed: int, heldout: int) -> ProblemSet:
    """Return the problems of a recipe: all for training, and ``heldout`` that are never trained on.

    Without ``heldout`` or ``heldout_split`` in the recipe they are cut from the same source. This
    cut depends on the questions alone, not on ``seed`` or the order of rows: runs with other seeds
    are measured on the same problems, and no checkpoint is tested on what another trained on.
    ``seed`` chooses generated problems. Questions of worked examples leave both sides.
    Raises ProblemError, RecipeError or MissingExtraError (exit code 2) for what cannot be used.
    """
    if heldout < 0:
        raise ProblemError(f"heldout = {heldout}; it is a count of problems, 0 or more.")
    source = parse_source(section.source)
    other = _heldout_source(section, source)
    report: list[str] = []
    examples = frozenset(normalise(turn.question) for turn in section.few_shot)
    ask = _Ask(section, seed, heldout, examples)
    train = _load(source, ask, "train", report)
    if heldout == 0:
        held = []
    elif other is not None:
        held = _first_by_hash(_load(other, ask, "heldout", report), heldout, other)
    elif source.scheme in (*GENERATED, "gym"):
        held = _load(source, ask, "heldout", report)
    else:
        held = _cut(train, heldout, source)
    train = _without(train, held, report)
    if source.scheme in ("path", "hf") or other is not None:
        report.extend(find_overlap(train, held).lines())
    if section.limit is not None:
        train = train[: section.limit]
    if not train:
        raise source.fault("no problem is left to train on. " + " ".join(report))
    report.extend(_system_turns(section, [*train, *held]))
    report.append(f"{len(train)} training problems, {len(held)} held out")
    return ProblemSet(tuple(train), tuple(held), tuple(report), fingerprint(train, held))


@dataclass(frozen=True, slots=True)
class _Ask:
    """What both sides need to know: recipe, seed, size of the held-out side, worked examples."""

    section: ProblemsSection
    seed: int
    heldout: int
    examples: frozenset[str]


def _heldout_source(section: ProblemsSection, source: Source) -> Source | None:
    """The source of held-out problems, None where they are cut from the training source."""
    if section.heldout is not None:
        return parse_source(section.heldout, key="problems.heldout")
    if section.heldout_split is None:
        return None
    if source.scheme in (*GENERATED, "gym"):
        raise RecipeError(
            f"problems.heldout_split = {section.heldout_split!r}: {source.text!r} has no splits; "
            "its held-out problems are generated. Remove problems.heldout_split."
        )
    if section.heldout_split == section.split:
        return None
    return parse_source(section.source)


def _system_turns(section: ProblemsSection, problems: Iterable[Problem]) -> tuple[str, ...]:
    if section.system_prompt is None:
        return ()
    count = sum(1 for p in problems if p.messages[0].role == "system")
    if not count:
        return ()
    return (f"  problems.system_prompt replaces the system turn of {count} problems",)


def fingerprint(train: Iterable[Problem], heldout: Iterable[Problem]) -> str:
    """Hash of everything a problem shows to model, verifier and cold start, in order."""
    digest = hashlib.sha256()
    for name, problems in (("train", train), ("heldout", heldout)):
        digest.update(f"{name}\n".encode())
        for p in problems:
            turns = [[m.role, m.content] for m in p.messages]
            row = [p.id, turns, p.answer, p.data_source, str(p.info.get("solution"))]
            digest.update(json.dumps(row).encode() + b"\n")
    return digest.hexdigest()[:16]


def _load(source: Source, ask: _Ask, side: str, report: list[str]) -> list[Problem]:
    """All problems of one side of one source, without duplicates and worked examples."""
    section = ask.section
    if source.scheme in GENERATED:
        return _generated(source, ask, side, report)
    if source.scheme == "gym":
        problems = gym_problems(
            source, seed=ask.seed, side=side, heldout=ask.heldout, report=report
        )
        return _distinct(problems, Counter(), source, ask, report)
    split, split_key = section.split, "problems.split"
    if side == "heldout":
        split, split_key = section.heldout_split or "test", "problems.heldout_split"
    if source.scheme == "hf":
        rows, label = hub_rows(source, split), hub_label(source)
    else:
        rows, label = path_rows(source, split, split_key=split_key)
    other = side == "heldout" and section.heldout is not None
    columns = choose_columns(
        rows,
        prompt_column=section.prompt_column,
        answer_column=section.answer_column,
        where=source.where,
        optional=other,
    )
    report.append(f"{source.key} = {source.text!r}: {len(rows)} rows of {label}")
    report.extend(f"  {reason}" for reason in columns.reasons)
    problems, dropped = make_problems(rows, columns, label=label)
    return _distinct(problems, dropped, source, ask, report)


def _generated(source: Source, ask: _Ask, side: str, report: list[str]) -> list[Problem]:
    is_heldout = side == "heldout"
    stream, count, own_seed = _stream(source, ask.seed, is_heldout)
    wanted = ask.heldout if is_heldout else count or _DEFAULT_COUNT
    fresh = (p for p in stream if problem_key(p) not in ask.examples)
    problems = list(itertools.islice(fresh, wanted))
    if len(problems) < wanted and is_heldout:
        raise source.fault(
            f"has only {len(problems)} held-out problems, and {wanted} are wanted. "
            f"Set evaluation.problems to at most {len(problems)}, or let the source make more "
            "(more steps, kinds, ops, digits or larger numbers)."
        )
    if count is not None and len(problems) < wanted:
        raise source.fault(
            f"has only {len(problems)} different training problems, and option count = {count}. "
            f"Set count to at most {len(problems)}, or leave it out to take all there are."
        )
    if not is_heldout:
        report.append(f"{source.key} = {source.text!r}: {len(problems)} generated, seed {own_seed}")
    return problems


def _stream(
    source: Source, seed: int, is_heldout: bool
) -> tuple[Iterator[Problem], int | None, int]:
    """The generator, the count asked for, the seed; held-out problems are those of seed 0."""
    if source.scheme == "words":
        words = read_word_settings(source)
        own = words.seed if words.seed is not None else 0 if is_heldout else seed
        return word_problems(words, seed=own, heldout=is_heldout), words.count, own
    sums = read_sum_settings(source)
    own = sums.seed if sums.seed is not None else 0 if is_heldout else seed
    return sum_problems(sums, seed=own, heldout=is_heldout), sums.count, own


def _distinct(
    problems: Sequence[Problem],
    dropped: Counter[str],
    source: Source,
    ask: _Ask,
    report: list[str],
) -> list[Problem]:
    """The first of every question; what was dropped goes into the report, by reason."""
    answers: dict[str, str | None] = {}
    kept: list[Problem] = []
    for problem in problems:
        key = problem_key(problem)
        if key in ask.examples:
            dropped["question of a worked example"] += 1
        elif key not in answers:
            answers[key] = problem.answer
            kept.append(problem)
        elif answers[key] == problem.answer:
            dropped["duplicate question"] += 1
        else:
            dropped["duplicate question with another answer"] += 1
    report.extend(f"  dropped {n}: {reason}" for reason, n in sorted(dropped.items()))
    if not kept:
        reasons = ", ".join(f"{n} {reason}" for reason, n in sorted(dropped.items()))
        raise source.fault(f"none of its rows can be used ({reasons}).")
    return kept


def _rank(problem: Problem) -> str:
    return stable_hash(problem_key(problem))


def _first_by_hash(problems: list[Problem], count: int, source: Source) -> list[Problem]:
    if count > len(problems):
        raise source.fault(
            f"has {len(problems)} problems, and {count} held-out ones are wanted. "
            f"Set evaluation.problems to at most {len(problems)}."
        )
    return sorted(problems, key=_rank)[:count]


def _cut(problems: list[Problem], count: int, source: Source) -> list[Problem]:
    """The held-out share of one source: the questions with the smallest hashes."""
    if count >= len(problems):
        raise source.fault(
            f"has {len(problems)} problems; holding out {count} leaves none to train on. "
            "Set evaluation.problems lower, or give problems.heldout a source of its own."
        )
    return sorted(problems, key=_rank)[:count]


def _without(train: list[Problem], heldout: list[Problem], report: list[str]) -> list[Problem]:
    """Training problems that are not held out; those of another source than the cut are counted."""
    ids = {p.id for p in heldout}
    questions = {problem_key(p) for p in heldout}
    objects = {id(p) for p in heldout}
    kept = [p for p in train if p.id not in ids and problem_key(p) not in questions]
    shared = sum(1 for p in train if id(p) not in objects) - len(kept)
    if shared:
        report.append(f"  dropped {shared}: training problems that are held out")
    return kept
