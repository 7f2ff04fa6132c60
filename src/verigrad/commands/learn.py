"""``train`` and ``lab``: audit the reward, learn, show it live, write the report."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from verigrad.commands.output import (
    JsonFlag,
    plain,
    print_json,
    say,
    say_error,
    stderr,
    stdout,
    stdout_kept_for_json,
)
from verigrad.errors import RefusedError, RunDirectoryError, UsageError, VerigradError

INTERRUPTED = 130

Out = Annotated[Path | None, typer.Option("--out", help="Run directory; by default runs/NAME.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite an existing run directory.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue from the last checkpoint.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No live view; only the summary.")]


def register(app: typer.Typer) -> None:
    """Add ``lab`` and ``train``."""
    app.command(
        "lab", epilog="Example: [bold]verigrad lab --steps 60 --seed 1 --out runs/lab-1[/bold]"
    )(lab)
    app.command(
        "train",
        epilog="Example: [bold]verigrad train recipes/tiny.toml training.steps=60 "
        "--out runs/try[/bold]\n\n"
        "Continue it: [bold]verigrad train runs/try --resume[/bold]",
    )(train)


def train(
    recipe: Annotated[
        str, typer.Argument(help="A recipe (.toml), a shipped one by name, or a run to resume.")
    ],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Keys to change: objective.clip_high=0.28")
    ] = None,
    out: Out = None,
    resume: Resume = False,
    force: Force = False,
    quiet: Quiet = False,
    as_json: JsonFlag = False,
) -> None:
    """Train a recipe: audit its reward, measure, learn, measure again, write report.html."""
    settings, run_dir = plan_run(recipe, overrides or [], out, resume=resume, force=force)
    audit = audit_first(settings, as_json=as_json)
    again = f"verigrad train {run_dir} --resume"

    def work(listeners: Sequence[Any]) -> Any:
        from verigrad.training.run import train as run_training

        return run_training(
            settings, run_dir=run_dir, resume=resume, force=force, listeners=listeners
        )

    _run(work, run_dir, title=run_dir.name, again=again, quiet=quiet, as_json=as_json, audit=audit)


def lab(
    out: Annotated[Path, typer.Option("--out", help="Run directory.")] = Path("runs/lab"),
    seed: Annotated[int, typer.Option("--seed", help="Seed of everything random.")] = 0,
    steps: Annotated[int | None, typer.Option("--steps", min=1, help="Steps of GRPO.")] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="Another model: folder or hub id.")
    ] = None,
    problems: Annotated[
        str | None, typer.Option("--problems", help="Other problems, as in problems.source.")
    ] = None,
    resume: Resume = False,
    force: Force = False,
    quiet: Quiet = False,
    as_json: JsonFlag = False,
) -> None:
    """See a real language model learn from a verified reward: one command, no GPU, minutes."""
    if resume and force:
        raise UsageError("--resume continues a run and --force deletes it: choose one.")
    _refuse_existing(out, resume=resume, force=force)
    from verigrad.training.lab import lab as run_lab
    from verigrad.training.lab import lab_recipe

    changes: dict[str, Any] = {"seed": seed, "steps": steps, "model": model, "problems": problems}
    audit = audit_first(lab_recipe(**changes), as_json=as_json)

    def work(listeners: Sequence[Any]) -> Any:
        return run_lab(out, force=force, resume=resume, listeners=listeners, **changes)

    again = f"verigrad train {out} --resume"
    _run(work, out, title="lab", again=again, quiet=quiet, as_json=as_json, audit=audit)


def load_recipe(name: str, overrides: Sequence[str] = ()) -> Any:
    """Read a recipe file, or a shipped recipe by its name where no such file exists."""
    from verigrad.commands.recipes import shipped_recipes
    from verigrad.config import make_recipe, read_recipe

    shipped = shipped_recipes()
    if not Path(name).exists() and name in shipped:
        import tomllib

        return make_recipe(tomllib.loads(shipped[name]), overrides, where=f"shipped recipe {name}")
    return read_recipe(name, overrides)


def plan_run(
    recipe: str, overrides: Sequence[str], out: Path | None, *, resume: bool, force: bool
) -> tuple[Any, Path]:
    """Return the recipe and its run directory. A run directory given as recipe means its own
    recipe, resumed."""
    if resume and force:
        raise UsageError("--resume continues a run and --force deletes it: choose one.")
    path = Path(recipe)
    if path.is_dir():
        if not (path / "recipe.toml").exists():
            raise RunDirectoryError(
                f"{path} is a folder without recipe.toml: neither recipe nor run."
            )
        if not resume and out is None:
            raise RunDirectoryError(
                f"{path} is a run. Continue it with --resume, or repeat it "
                "elsewhere with --out DIR."
            )
        settings = load_recipe(str(path / "recipe.toml"), overrides)
        _refuse_existing(out or path, resume=resume, force=force)
        return settings, out or path
    settings = load_recipe(recipe, overrides)
    named = settings.logging.run
    run_dir = out or (Path(named) if named else Path("runs") / path.stem)
    _refuse_existing(run_dir, resume=resume, force=force)
    return settings, run_dir


def _refuse_existing(run_dir: Path, *, resume: bool, force: bool) -> None:
    """Refuse before the audit and the model are loaded what RunWriter would refuse after."""
    there = run_dir.is_dir() and any(run_dir.iterdir())
    if there and not (resume or force):
        raise RunDirectoryError(
            f"run directory {run_dir} exists already. Resume it with --resume, overwrite it with "
            "--force, or choose another with --out."
        )
    if resume and not there:
        raise RunDirectoryError(
            f"run directory {run_dir} does not exist, so there is nothing to resume. "
            "Leave out --resume to start it."
        )


def audit_first(recipe: Any, *, as_json: bool) -> Any:
    """Audit the recipe's reward before anything is trained, as verifier.audit says; return the
    report.

    None where the recipe turns it off. Raises RefusedError when it fails and the recipe says
    refuse.
    """
    if recipe.verifier.audit == "off":
        return None
    from verigrad.audit import audit_recipe

    say(f"auditing the reward ({escape(recipe.verifier.name)}) ...")
    with stdout_kept_for_json(as_json):
        report = audit_recipe(recipe)
    colour = {"pass": "green", "warn": "yellow", "fail": "red"}[report.verdict]
    say(
        f"audit of {escape(report.verifier)}: [{colour}]{report.verdict}[/{colour}], "
        f"grade {report.grade}"
        f" ({report.problems} problems, {report.checks} checks, {report.seconds:.1f} s)"
    )
    for finding in report.findings:
        if finding.severity != "info":
            say(
                f"  [{colour}]{finding.severity}[/{colour}] {finding.name}: "
                f"{escape(finding.evidence)}"
            )
    if report.verdict == "fail" and recipe.verifier.audit == "refuse":
        raise RefusedError(
            f"the reward {recipe.verifier.name!r} failed its audit, so nothing was trained. See "
            "`verigrad audit RECIPE` for the causes and remedies; verifier.audit=warn trains "
            "all the same."
        )
    return report


def _run(
    work: Callable[[Sequence[Any]], Any],
    run_dir: Path,
    *,
    title: str,
    again: str,
    quiet: bool,
    as_json: bool,
    audit: Any = None,
) -> None:
    """Run ``work`` under the live view; whatever way it ends, write the report of what there is."""
    from verigrad.board.terminal import watching

    interrupted = ""
    with stdout_kept_for_json(as_json):
        try:
            with watching(stderr(), title=title, quiet=quiet) as listener:
                work([listener])
        except KeyboardInterrupt as stop:
            interrupted = str(stop) or "interrupted."
        except VerigradError as error:
            if error.exit_code != INTERRUPTED:
                _report(run_dir, audit)
                raise
            interrupted = str(error)
        report = _report(run_dir, audit)
    if interrupted:
        say_error(f"{interrupted} Continue with: {again}")
        raise typer.Exit(INTERRUPTED)
    _finish(run_dir, report, as_json=as_json)


def _report(run_dir: Path, audit: Any) -> Path | None:
    """Write report.html (and the audit beside it) of a run that left something to show."""
    from verigrad.board.report import write_report
    from verigrad.runlog import write_atomic

    if not (run_dir / "recipe.toml").exists():
        return None
    try:
        if audit is not None:
            write_atomic(run_dir / "audit.json", json.dumps(plain(audit.to_json()), indent=2))
        return write_report(run_dir)
    except (OSError, ValueError) as e:
        # The run matters more than its picture: say it and keep the run's own outcome.
        say(f"[yellow]report not written:[/yellow] {escape(str(e))}")
        return None


def _finish(run_dir: Path, report: Path | None, *, as_json: bool) -> None:
    """Print what the run came to."""
    from verigrad.board.panels import summary_panel
    from verigrad.board.summary import summarize
    from verigrad.runlog import RunReader

    summary = summarize(RunReader(run_dir))
    if as_json:
        print_json({**summary, "report": str(report) if report else None})
        return
    stdout().print(summary_panel(summary))
    if report:
        say(f"report: [bold]{escape(str(report))}[/bold]")
    if summary["checkpoint"]:
        say(f"talk to it: [bold]verigrad chat {escape(str(run_dir))}[/bold]")
