"""``verify`` and ``audit``: is the reward right, and may it be trained on?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from verigrad.commands.output import JsonFlag, print_json, say, stdout, stdout_kept_for_json
from verigrad.errors import RefusedError, UsageError

_SHOWN_ERRORS = 200

Mode = Annotated[
    str | None,
    typer.Option("--mode", help="strict or lenient; by default strict.", metavar="strict|lenient"),
]


def register(app: typer.Typer) -> None:
    """Add ``verify`` and ``audit``."""
    app.command(
        "verify",
        epilog="Example: [bold]verigrad verify cases.jsonl --verifier math --show-errors[/bold]\n\n"
        "A line of cases.jsonl: "
        '{"gold": "1/2", "completion": "so \\\\boxed{0.5}", "expected": true}',
    )(verify)
    app.command(
        "audit",
        epilog="Example: [bold]verigrad audit recipes/tiny.toml[/bold]\n\n"
        "One function: [bold]verigrad audit my_reward.py:score[/bold]",
    )(audit)


def verify(
    cases: Annotated[Path, typer.Argument(help="JSONL with gold, completion, expected per line.")],
    verifier: Annotated[
        str, typer.Option("--verifier", help="A verifier of ours, or a spec such as file.py:fn.")
    ] = "math",
    mode: Mode = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", help="A setting of the verifier, key=value; may be repeated."),
    ] = None,
    show_errors: Annotated[
        bool, typer.Option("--show-errors", help="List each case that was judged otherwise.")
    ] = False,
    min_accuracy: Annotated[
        float | None,
        typer.Option("--min-accuracy", min=0, max=1, help="Exit 3 when the accuracy is below."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Measure a verifier on labelled cases: accuracy, both error rates, time per check."""
    if not cases.is_file():
        raise UsageError(f"cases file {cases} does not exist.")
    settings, chosen = read_options(option or []), checked_mode(mode)
    from verigrad.verifiers import make_verifier
    from verigrad.verifiers.measure import measure_cases

    with stdout_kept_for_json(as_json):
        judge = make_verifier(verifier, mode=chosen, options=settings, base_dir=Path.cwd())
        report = measure_cases(cases, judge).to_json()
    if as_json:
        print_json(report)
    else:
        _print_measures(report, verifier)
    if show_errors:
        _print_errors(report)
    accuracy = report["accuracy"]
    if min_accuracy is not None and not (accuracy is not None and accuracy >= min_accuracy):
        raise RefusedError(
            f"accuracy {_share(accuracy)} of {verifier!r} on {cases} is below "
            f"--min-accuracy {min_accuracy}. "
            "See the cases with --show-errors."
        )


def audit(
    target: Annotated[
        str,
        typer.Argument(help="A recipe (.toml), a verifier of ours, or a spec such as file.py:fn."),
    ],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Overrides of the recipe: verifier.mode=lenient")
    ] = None,
    mode: Mode = None,
    as_json: JsonFlag = False,
) -> None:
    """Ask whether a reward is honest: golds pass, near misses and known hacks fail."""
    with stdout_kept_for_json(as_json):
        report = run_audit(target, overrides or [], mode)
    if as_json:
        print_json(report.to_json())
    else:
        print_audit(report)
    if report.verdict == "fail":
        names = ", ".join(f.name for f in report.findings if f.severity == "fail")
        raise RefusedError(f"audit of {target}: this reward should not be trained on ({names}).")


def run_audit(target: str, overrides: list[str], mode: str | None) -> Any:
    """Audit a recipe (a .toml or a shipped name) or a single verifier; return the AuditReport."""
    from verigrad.commands.recipes import shipped_recipes

    chosen = checked_mode(mode)
    if target.endswith(".toml") or target in shipped_recipes():
        from verigrad.commands.learn import load_recipe

        extra = [f"verifier.mode={chosen}"] if mode else []
        recipe = load_recipe(target, [*overrides, *extra])
        from verigrad.audit import audit_recipe

        return audit_recipe(recipe)
    if overrides:
        raise UsageError(f"overrides {overrides} need a recipe (.toml); {target!r} is a verifier.")
    from verigrad.audit import audit_spec

    return audit_spec(target, mode=chosen)


def print_audit(report: Any) -> None:
    """Print an AuditReport on stdout, coloured by status."""
    colours = {"fail": "red", "FAIL": "red", "warn": "yellow", "WARN": "yellow", "pass": "green"}
    console = stdout()
    for line in report.lines():
        word = line.strip().split(" ", 1)[0].rstrip(":")
        console.print(Text(line, style=colours.get(word, "")), soft_wrap=True)


def checked_mode(mode: str | None) -> Any:
    """Return strict or lenient. Raises UsageError for another word."""
    if mode not in (None, "strict", "lenient"):
        raise UsageError(f"--mode {mode!r} is not one of strict, lenient.")
    return mode or "strict"


def read_options(items: list[str]) -> dict[str, Any]:
    """Read key=value settings; a value is TOML, or bare text where TOML can't read it."""
    import tomllib

    out: dict[str, Any] = {}
    for item in items:
        key, eq, text = item.partition("=")
        if not eq or not key.strip():
            raise UsageError(f"--option {item!r} is not of the form key=value.")
        try:
            out[key.strip()] = tomllib.loads(f"v = {text.strip()}")["v"]
        except tomllib.TOMLDecodeError:
            out[key.strip()] = text.strip()
    return out


def _print_measures(report: dict[str, Any], verifier: str) -> None:
    table = Table(title=f"{verifier} on {report['n']} cases", title_justify="left", box=None)
    table.add_column("", style="dim")
    table.add_column("", justify="right")
    rows = (
        ("accuracy", _share(report["accuracy"])),
        ("false positives (wrong accepted)", _share(report["false_positive_rate"])),
        ("false negatives (right refused)", _share(report["false_negative_rate"])),
        ("unparsed", str(report["unparsed"])),
        ("broken", str(report["broken"])),
        ("microseconds per check", f"{report['micros_per_check']:.0f}"),
    )
    for row in rows:
        table.add_row(*row)
    stdout().print(table)
    categories = report.get("by_category") or {}
    if categories:
        stdout().print(_category_table(categories))


def _category_table(categories: dict[str, Any]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    columns = list(dict.fromkeys(k for row in categories.values() for k in row))
    table.add_column("category", header_style="bold")
    for column in columns:
        table.add_column(column.replace("_", " "), justify="right", header_style="bold")
    for name, row in categories.items():
        accuracy = row.get("accuracy")
        style = "" if accuracy is None or accuracy >= 1 else "yellow"
        table.add_row(escape(name), *(_cell(row.get(c)) for c in columns), style=style)
    return table


def _print_errors(report: dict[str, Any]) -> None:
    errors = report.get("errors") or []
    for error in errors[:_SHOWN_ERRORS]:
        parts = "  ".join(f"{k}={v!r}" for k, v in error.items() if v not in (None, ""))
        say(f"[red]✗[/red] {escape(parts)}")
    if len(errors) > _SHOWN_ERRORS:
        say(f"... and {len(errors) - _SHOWN_ERRORS} more; --json has all of them.")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return _share(value) if isinstance(value, float) else str(value)


def _share(value: float | None) -> str:
    return "n/a" if value is None else f"{100 * value:.2f}%"
