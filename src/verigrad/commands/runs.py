"""Verbs that read a run: ``show groups diff watch``, and ``eval``, which measures it again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from verigrad.commands.output import (
    JsonFlag,
    print_json,
    say,
    stderr,
    stdout,
    stdout_kept_for_json,
)
from verigrad.errors import UsageError

Run = Annotated[
    Path | None,
    typer.Argument(help="Run directory (or its name under runs/); by default the newest."),
]
ONLY = ("right", "wrong", "mixed", "silent", "broken", "truncated")


def register(app: typer.Typer) -> None:
    """Add ``eval``, ``show``, ``groups``, ``diff`` and ``watch``."""
    app.command("eval", epilog="Example: [bold]verigrad eval runs/lab --problems 200[/bold]")(
        evaluate
    )
    app.command("show", epilog="Example: [bold]verigrad show runs/lab --svg curve.svg[/bold]")(show)
    app.command(
        "groups", epilog="Example: [bold]verigrad groups runs/lab --step 40 --only mixed[/bold]"
    )(groups)
    app.command("diff", epilog="Example: [bold]verigrad diff runs/a runs/b[/bold]")(diff)
    app.command(
        "watch",
        epilog="Example: [bold]verigrad watch runs/lab[/bold]\n\n"
        "In a browser: [bold]verigrad watch runs/lab --web[/bold]",
    )(watch)


def show(
    run: Run = None,
    svg: Annotated[
        Path | None, typer.Option("--svg", help="Write the reward curve as a picture.")
    ] = None,
    report: Annotated[bool, typer.Option("--report", help="Write report.html again.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Show what a run came to: rewards at both ends, held-out accuracy, findings, checkpoint."""
    from verigrad.board.panels import summary_panel
    from verigrad.board.picture import reward_picture
    from verigrad.board.report import write_report
    from verigrad.board.summary import summarize

    reader = open_run(run)
    summary = summarize(reader)
    if svg is not None:
        try:
            svg.write_text(reward_picture(reader), encoding="utf-8")
        except OSError as e:
            raise UsageError(f"--svg {svg} cannot be written: {e.strerror or e}.") from None
        say(f"wrote {escape(str(svg))}")
    if report:
        say(f"wrote {escape(str(write_report(reader.path)))}")
    if as_json:
        print_json(summary)
    else:
        stdout().print(summary_panel(summary))


def groups(
    run: Run = None,
    step: Annotated[
        int | None, typer.Option("--step", help="By default the last one kept.")
    ] = None,
    group: Annotated[int | None, typer.Option("--group", help="One group by its number.")] = None,
    only: Annotated[
        str | None, typer.Option("--only", help="Groups that are " + ", ".join(ONLY) + ".")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Most groups shown.")] = 3,
    as_json: JsonFlag = False,
) -> None:
    """Read real completions of a step, with their verdicts, rewards and advantages."""
    from verigrad.board.groups import read_groups
    from verigrad.board.panels import group_panel

    if only is not None and only not in ONLY:
        raise UsageError(f"--only {only!r} is not one of {', '.join(ONLY)}.")
    found = read_groups(open_run(run), step=step, group=group)
    chosen = [g for g in found if only is None or g.is_kind(only)]
    if as_json:
        print_json(
            {
                "step": found[0].step,
                "groups_in_step": len(found),
                "groups": [g.to_json() for g in chosen],
            }
        )
        return
    for one in chosen[:limit]:
        stdout().print(group_panel(one, rows=None, text_limit=None))
    if not chosen:
        say(f"no group of step {found[0].step} is {only} ({len(found)} groups).")
    elif len(chosen) > limit:
        say(
            f"{len(chosen) - limit} more of step {found[0].step}: --limit {len(chosen)}, or --json."
        )


def diff(
    run_a: Annotated[Path, typer.Argument(help="A run directory.")],
    run_b: Annotated[Path, typer.Argument(help="Another.")],
    as_json: JsonFlag = False,
) -> None:
    """Find where two runs part: recipe keys, then the first step and quantity that differ."""
    from verigrad.board.compare import compare_runs
    from verigrad.board.panels import difference_lines

    difference = compare_runs(open_run(run_a), open_run(run_b))
    if as_json:
        print_json(difference)
        return
    for line in difference_lines(difference):
        stdout().print(line, soft_wrap=True)


def evaluate(
    path: Annotated[Path, typer.Argument(help="A run directory or a checkpoint.")],
    problems: Annotated[
        int | None, typer.Option("--problems", min=1, help="How many held-out problems.")
    ] = None,
    recipe: Annotated[
        str | None, typer.Option("--recipe", help="Measure under another recipe's problems.")
    ] = None,
    override: Annotated[
        list[str] | None, typer.Argument(help="Overrides of --recipe: evaluation.samples=8")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No live view.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Measure a model on held-out problems: pass@1 with its 95% interval, pass@k."""
    from verigrad.board.panels import evaluation_table
    from verigrad.board.summary import find_run
    from verigrad.board.terminal import watching
    from verigrad.commands.learn import load_recipe

    if override and not recipe:
        raise UsageError(f"overrides {override} need --recipe.")
    settings = load_recipe(recipe, override or []) if recipe else None
    from verigrad.training.run import evaluate_checkpoint

    with (
        stdout_kept_for_json(as_json),
        watching(stderr(), title=f"eval {path.name}", quiet=quiet, training=False) as listener,
    ):
        record = evaluate_checkpoint(
            find_run(path), problems=problems, recipe=settings, listeners=[listener]
        )
    if as_json:
        print_json(record)
        return
    name = str(record.get("name", "eval"))
    console = stdout()
    console.print(evaluation_table([(name, dict(record))], narrow=console.width < 90))


def watch(
    run: Run = None,
    once: Annotated[bool, typer.Option("--once", help="Print the view once and leave.")] = False,
    web: Annotated[bool, typer.Option("--web", help="Serve the live report to a browser.")] = False,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port of --web.")] = 8777,
) -> None:
    """Watch a run directory live, ours or another process's; leave with Ctrl-C."""
    reader = open_run(run)
    if web:
        from verigrad.board.server import serve

        say(
            f"serving {escape(str(reader.path))} at "
            f"[bold]http://127.0.0.1:{port}[/bold] (Ctrl-C ends)"
        )
        serve(reader.path, port=port)
        return
    from verigrad.board.terminal import follow

    follow(reader.path, stdout(), once=once)


def open_run(run: Path | None) -> Any:
    """Return a reader of the run meant. Raises RunDirectoryError when there is none."""
    from verigrad.board.summary import find_run
    from verigrad.errors import RunDirectoryError
    from verigrad.runlog import RunReader

    path = find_run(run)
    if run is None and not path.is_dir():
        raise RunDirectoryError("there is no run under runs/. Name a run directory, or start one.")
    return RunReader(path)
