"""``train`` and ``lab``: what is asked of the training room, what is refused before it, how a run
ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from make_run import make_run
from typer.testing import Result

from verigrad.config import read_recipe
from verigrad.errors import TrainingError

Cli = Callable[..., Result]


@dataclass
class Trainer:
    """Stands in for the training room: writes a run, then ends as told."""

    ends: BaseException | None = None
    calls: list[dict[str, Any]] = field(default_factory=list)

    def train(
        self, recipe: Any, *, run_dir: Path, resume: bool = False, force: bool = False,
        listeners: Any = (),
    ) -> None:  # fmt: skip
        self.calls.append({"recipe": recipe, "run_dir": run_dir, "resume": resume, "force": force})
        make_run(run_dir, steps=3, done=self.ends is None, listeners=tuple(listeners))
        print("a library speaks on stdout")
        if self.ends:
            raise self.ends


@dataclass
class Auditor:
    """Stands in for the audit room with a verdict of our choice."""

    verdict: str = "pass"

    def audit_recipe(self, recipe: Any) -> Any:
        finding = _Record(
            name="constant_reward", severity="fail", evidence="always [1]", cause="c", remedy="r"
        )
        return _Report(self.verdict, (finding,) if self.verdict == "fail" else ())


@dataclass(frozen=True)
class _Record:
    name: str
    severity: str
    evidence: str
    cause: str
    remedy: str


@dataclass(frozen=True)
class _Report:
    verdict: str
    findings: tuple[_Record, ...]
    verifier: str = "math"
    grade: str = "A"
    problems: int = 8
    checks: int = 100
    seconds: float = 0.5

    def to_json(self) -> dict[str, Any]:
        return {"verdict": self.verdict, "grade": self.grade, "findings": []}


@pytest.fixture
def trainer(stand_in: Callable[..., None]) -> Trainer:
    made = Trainer()
    stand_in("verigrad.training.run", train=made.train)
    stand_in("verigrad.audit", audit_recipe=Auditor().audit_recipe)
    return made


def test_train_passes_recipe_overrides_and_run_directory(cli: Cli, trainer: Trainer) -> None:
    result = cli("train", "tiny.toml", "training.steps=7", "--out", "there", "--quiet")
    assert result.exit_code == 0, result.output
    call = trainer.calls[0]
    assert call["recipe"].training.steps == 7
    assert (call["run_dir"], call["resume"], call["force"]) == (Path("there"), False, False)
    assert Path("there/report.html").exists()
    assert json.loads(Path("there/audit.json").read_text())["verdict"] == "pass"


def test_without_out_the_run_is_named_after_the_recipe(cli: Cli, trainer: Trainer) -> None:
    assert cli("train", "tiny.toml").exit_code == 0
    assert trainer.calls[0]["run_dir"] == Path("runs/tiny")
    cli("train", "tiny.toml", "logging.run=elsewhere")
    assert trainer.calls[1]["run_dir"] == Path("elsewhere")


def test_json_is_one_object_alone_on_stdout(cli: Cli, trainer: Trainer) -> None:
    result = cli("train", "tiny.toml", "--json")
    answer = json.loads(result.stdout)
    assert (answer["status"], answer["steps"]) == ("done", 3)
    assert answer["report"] == "runs/tiny/report.html"
    assert "a library speaks on stdout" in result.stderr
    assert "step 3/3" in result.stderr


def test_an_interruption_says_how_to_resume_and_leaves_a_report(cli: Cli, trainer: Trainer) -> None:
    trainer.ends = KeyboardInterrupt()
    result = cli("train", "tiny.toml", "--out", "there")
    assert result.exit_code == 130
    assert "verigrad train there --resume" in result.stderr
    assert Path("there/report.html").exists()


def test_a_failed_run_exits_1_with_its_message_and_leaves_a_report(
    cli: Cli, trainer: Trainer
) -> None:
    trainer.ends = TrainingError("12% of the verdicts are broken")
    result = cli("train", "tiny.toml", "--out", "there")
    assert result.exit_code == 1
    assert "12% of the verdicts are broken" in result.stderr
    assert "Traceback" not in result.output
    assert Path("there/report.html").exists()


def test_a_run_directory_is_resumed_by_its_own_recipe(cli: Cli, trainer: Trainer) -> None:
    cli("train", "tiny.toml", "--out", "there")
    trainer.ends = None
    trainer.train = lambda recipe, **kwargs: trainer.calls.append(kwargs)  # type: ignore[method-assign]
    result = cli("train", "there", "--force")
    assert result.exit_code == 2
    assert "Continue it with --resume" in result.stderr


def test_resume_reaches_the_trainer(cli: Cli, stand_in: Callable[..., None]) -> None:
    make_run(Path("there"), steps=3)
    seen: list[dict[str, Any]] = []
    stand_in("verigrad.training.run", train=lambda recipe, **kw: seen.append({"r": recipe, **kw}))
    stand_in("verigrad.audit", audit_recipe=Auditor().audit_recipe)
    assert cli("train", "there", "--resume", "-q").exit_code == 0
    assert (seen[0]["resume"], seen[0]["run_dir"]) == (True, Path("there"))
    assert seen[0]["r"].problems.source == "sums:?digits=2"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "nope.toml"], "nope.toml does not exist"),
        (["train", "tiny.toml", "trainin.steps=3"], "Did you mean 'training'?"),
        (["train", "tiny.toml", "training.steps"], "not of the form section.key=value"),
        (["train", "tiny.toml", "training.steps=0"], "training.steps = 0"),
        (["train", "tiny.toml", "rollout.group_size=1"], "rollout.group_size = 1"),
        (["train", "tiny.toml", "verifier.mode=strikt"], "Did you mean 'strict'?"),
        (["train", "tiny.toml", "--resume"], "nothing to resume"),
        (["train", "tiny.toml", "--resume", "--force"], "choose one"),
        (["train", "tiny.toml", "--out", "taken"], "taken exists already"),
        (["train", "empty"], "neither recipe nor run"),
    ],
)
def test_bad_usage_is_refused_before_anything_loads(
    cli: Cli, trainer: Trainer, words: list[str], message: str
) -> None:
    Path("taken").mkdir()
    Path("taken/file").write_text("x")
    Path("empty").mkdir()
    result = cli(*words)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.output
    assert trainer.calls == []


def test_a_reward_that_fails_its_audit_is_refused(
    cli: Cli, trainer: Trainer, stand_in: Callable[..., None]
) -> None:
    stand_in("verigrad.audit", audit_recipe=Auditor("fail").audit_recipe)
    result = cli("train", "tiny.toml")
    assert result.exit_code == 3
    assert "constant_reward: always [1]" in result.stderr
    assert trainer.calls == []


@pytest.mark.parametrize("word", ["warn", "off"])
def test_the_recipe_may_say_to_train_all_the_same(
    cli: Cli, trainer: Trainer, stand_in: Callable[..., None], word: str
) -> None:
    stand_in("verigrad.audit", audit_recipe=Auditor("fail").audit_recipe)
    assert cli("train", "tiny.toml", f"verifier.audit={word}").exit_code == 0
    assert len(trainer.calls) == 1


def test_lab_passes_its_options(cli: Cli, stand_in: Callable[..., None]) -> None:
    seen: list[Any] = []

    def lab(out: Path, **settings: Any) -> None:
        seen.append((out, settings))
        make_run(out, steps=2, listeners=tuple(settings["listeners"]))

    recipe = read_recipe("tiny.toml")
    stand_in("verigrad.training.lab", lab=lab, lab_recipe=lambda **changes: recipe)
    stand_in("verigrad.audit", audit_recipe=Auditor().audit_recipe)
    result = cli("lab", "--steps", "5", "--seed", "2", "--out", "there", "--json")
    assert result.exit_code == 0, result.output
    out, settings = seen[0]
    assert out == Path("there")
    assert (settings["seed"], settings["steps"], settings["model"]) == (2, 5, None)
    assert json.loads(result.stdout)["status"] == "done"
