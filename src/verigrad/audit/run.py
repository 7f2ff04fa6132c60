"""Audit a verifier, a recipe or a spec: is this reward honest?"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from verigrad.audit.calls import Call, Setting
from verigrad.audit.catalogue import CONTRACT
from verigrad.audit.formats import check_formats, refit_to_prefill
from verigrad.audit.inputs import changed_inputs
from verigrad.audit.isolate import Caller
from verigrad.audit.judge import finding, judge
from verigrad.audit.observe import observe
from verigrad.audit.report import AuditReport, Finding, ProbeRow, grade_of
from verigrad.audit.sample import sample_problems
from verigrad.config import Recipe
from verigrad.errors import UsageError
from verigrad.types import Problem, Verifier

SAMPLE = 64
"""Problems that are audited by default, drawn with the seed."""

Render = Callable[[Problem], str | None]


def audit_verifier(
    verifier: Verifier,
    problems: Sequence[Problem],
    *,
    render: Render | None = None,
    seed: int = 0,
    sample: int = SAMPLE,
    prompt_tail: str = "",
    deadline_s: float = 5.0,
    start_s: float = 60.0,
    budget_s: float = 60.0,
    isolate: bool = True,
) -> AuditReport:
    """Put right answers, near misses and known hacks to a verifier and report what it rewards.

    ``render`` states a problem's gold answer in the recipe's format (by default the verifier's own
    ``render_gold``). ``prompt_tail`` is the text the assistant turn starts with. Every call has
    ``deadline_s`` seconds (the first one ``start_s``, since it loads what is imported lazily) in a
    child process, or in a thread with ``isolate=False``; after ``budget_s`` no further problems are
    shown. The verdict is fail when the reward should not be trained on. Raises UsageError without
    problems.
    """
    if not problems:
        raise UsageError("an audit needs at least one problem, and got none.")
    started = time.monotonic()
    picked = _pick(problems, sample, seed)
    deadline_s, start_s = _limits(verifier, deadline_s, start_s)
    setting = Setting(verifier, picked, prompt_tail)
    with tempfile.TemporaryDirectory() as folder:
        options: dict[str, bool] = {} if isolate else {"fork": False}
        with Caller(setting, deadline_s=deadline_s, start_s=start_s, **options) as caller:
            record = observe(
                setting,
                caller,
                seed=seed,
                budget_s=budget_s,
                canary=str(Path(folder) / "canary"),
                render=render,
                refit=lambda text: refit_to_prefill(text, prompt_tail),
            )
    if not any(f.name == "mutates_inputs" for f in record.faults) and not any(
        f.name == "hangs" for f in record.faults
    ):
        for evidence in changed_inputs(setting, record.forms, limit_s=start_s + deadline_s):
            record.fault("mutates_inputs", evidence)
    rows, findings = judge(record)
    return _report(verifier.name, findings, rows, record.notes, len(picked), record.checks, started)


def audit_recipe(
    recipe: Recipe,
    *,
    seed: int | None = None,
    sample: int = SAMPLE,
    base_dir: str | Path | None = None,
) -> AuditReport:
    """Audit the verifier of a recipe on its own problems, in its own format and with its own
    prefill.

    Also asks whether the instruction, the system prompt and the worked examples show the format
    that the verifier reads. ``seed`` is the recipe's by default. Raises what loading the problems
    or the verifier raises (ProblemError, RecipeError, MissingExtraError).
    """
    from verigrad.problems import load_problems
    from verigrad.verifiers import make_verifier

    seed = recipe.training.seed if seed is None else seed
    section = recipe.verifier
    verifier = make_verifier(
        section.name, mode=section.mode, options=section.options, base_dir=base_dir
    )
    problems = load_problems(recipe.problems, seed=recipe.training.seed, heldout=0).train
    report = audit_verifier(
        verifier, problems, seed=seed, sample=sample, prompt_tail=recipe.problems.prefill
    )
    if any(f.name in ("hangs", "crashes") for f in report.findings):
        return report
    asked, wrong = check_formats(verifier, _pick(problems, 8, seed), recipe.problems)
    return _with_formats(report, asked, wrong)


def audit_spec(
    spec: str,
    *,
    problems: Sequence[Problem] | None = None,
    mode: Literal["strict", "lenient"] = "strict",
    options: Mapping[str, Any] | None = None,
    base_dir: str | Path | None = None,
    seed: int = 0,
) -> AuditReport:
    """Audit one verifier of ours or a spec such as ``file.py:fn``; by default on built-in maths
    problems.

    Raises RecipeError when the name or an option is wrong.
    """
    from verigrad.verifiers import make_verifier

    verifier = make_verifier(spec, mode=mode, options=options, base_dir=base_dir)
    if problems is not None:
        return audit_verifier(verifier, problems, seed=seed)
    report = audit_verifier(verifier, _fitting(verifier), seed=seed)
    note = "asked on the built-in maths problems; audit a recipe to ask on your own"
    return _replaced(report, report.findings, report.probes, (*report.notes, note))


def _fitting(verifier: Verifier) -> tuple[Problem, ...]:
    """The built-in problems whose gold this verifier reads; all where it reads hardly any."""
    everything = sample_problems()
    calls = [Call("check_gold", i) for i in range(len(everything))]
    deadline_s, start_s = _limits(verifier, 5.0, 60.0)
    with Caller(Setting(verifier, everything), deadline_s=deadline_s, start_s=start_s) as caller:
        replies = caller.run(calls)
    fit = tuple(p for p, r in zip(everything, replies, strict=True) if not r.fault and not r.text)
    return fit if len(fit) >= 8 else everything


def _pick(problems: Sequence[Problem], sample: int, seed: int) -> tuple[Problem, ...]:
    """A sample in the order of the problems, the same for the same seed."""
    if len(problems) <= sample:
        return tuple(problems)
    chosen = sorted(random.Random(seed).sample(range(len(problems)), sample))
    return tuple(problems[i] for i in chosen)


def _limits(verifier: Verifier, deadline_s: float, start_s: float) -> tuple[float, float]:
    """A reward that brings its own deadline (a spec in a worker) gets the time to keep it."""
    options = getattr(verifier, "options", None)
    own, start = getattr(options, "deadline_s", None), getattr(options, "start_s", None)
    if not isinstance(own, int | float) or not isinstance(start, int | float):
        return deadline_s, start_s
    return max(deadline_s, 6 * own), max(start_s, start + own)


def _report(
    name: str,
    findings: Sequence[Finding],
    rows: Sequence[ProbeRow],
    notes: Sequence[str],
    problems: int,
    checks: int,
    started: float,
) -> AuditReport:
    verdict, grade = grade_of(findings)
    seconds = time.monotonic() - started
    return AuditReport(
        name, verdict, grade, tuple(findings), tuple(rows), tuple(notes), problems, checks, seconds
    )


def _with_formats(report: AuditReport, asked: int, wrong: Sequence[str]) -> AuditReport:
    """The report with the answer to whether the prompt asks for the format that is rewarded."""
    if not asked:
        return report
    row = ProbeRow(
        "format",
        CONTRACT["format"][0],
        "fail" if wrong else "pass",
        asked,
        len(wrong),
        wrong[0] if wrong else "",
    )
    rows = [row if old.name == "format" else old for old in report.probes]
    added = [finding("format_mismatch", "fail", "; ".join(wrong))] if wrong else []
    return _replaced(report, [*added, *report.findings], rows, report.notes)


def _replaced(
    report: AuditReport, findings: Sequence[Finding], rows: Sequence[ProbeRow], notes: Sequence[str]
) -> AuditReport:
    verdict, grade = grade_of(findings)
    return AuditReport(
        report.verifier, verdict, grade, tuple(findings), tuple(rows), tuple(notes),
        report.problems, report.checks, report.seconds,
    )  # fmt: skip
