"""``verify``, ``audit``, ``objective``, ``recipes``, ``schema``, ``chat``: each with good and bad
input."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from verigrad.commands.check import read_options
from verigrad.commands.output import plain
from verigrad.commands.recipes import sentence_of, shipped_recipes
from verigrad.config import read_recipe
from verigrad.errors import UsageError
from verigrad.types import Message

Cli = Callable[..., Result]

CASES = [
    {"gold": "4", "completion": "\\boxed{4}", "expected": True},
    {"gold": "4", "completion": "\\boxed{5}", "expected": False},
    {"gold": "4", "completion": "\\boxed{4}", "expected": False},
    {"gold": "4", "completion": "four", "expected": True},
]
REWARD = "def score(completion, answer):\n    return float('boxed{' + answer + '}' in completion)\n"


@pytest.fixture
def cases(cli: Cli) -> Path:
    path = Path("cases.jsonl")
    path.write_text("".join(json.dumps(c) + "\n" for c in CASES), encoding="utf-8")
    Path("reward.py").write_text(REWARD, encoding="utf-8")
    return path


def test_verify_prints_measures_and_each_error(cli: Cli, cases: Path) -> None:
    result = cli("verify", str(cases), "--verifier", "reward.py:score", "--show-errors")
    assert result.exit_code == 0, result.output
    assert "50.00%" in result.stdout
    assert result.stderr.count("✗") == 2


def test_verify_json_has_the_stable_names(cli: Cli, cases: Path) -> None:
    result = cli("verify", str(cases), "--verifier", "reward.py:score", "--json")
    answer = json.loads(result.stdout)
    names = {"n", "accuracy", "false_positive_rate", "false_negative_rate", "unparsed", "broken",
             "micros_per_check", "by_category", "errors"}  # fmt: skip
    assert names <= answer.keys()
    assert (answer["n"], answer["accuracy"]) == (4, 0.5)


def test_an_accuracy_below_the_floor_exits_3_after_the_table(cli: Cli, cases: Path) -> None:
    words = ("verify", str(cases), "--verifier", "reward.py:score", "--min-accuracy")
    result = cli(*words, "0.9", "--json")
    assert result.exit_code == 3
    assert json.loads(result.stdout)["n"] == 4
    assert "below --min-accuracy 0.9" in result.stderr
    assert cli(*words, "0.5").exit_code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["verify", "nope.jsonl"], "nope.jsonl does not exist"),
        (["verify", "cases.jsonl", "--verifier", "maht"], "Did you mean 'math'?"),
        (["verify", "cases.jsonl", "--mode", "loose"], "not one of strict, lenient"),
        (["verify", "cases.jsonl", "--option", "x"], "not of the form key=value"),
        (["audit", "reward.py:score", "verifier.mode=strict"], "need a recipe"),
        (["audit", "nope.toml"], "nope.toml does not exist"),
        (["recipes", "show", "nope"], "no shipped recipe is called 'nope'"),
        (["objective", "show", "tiny.toml", "objective.bseline=none"], "Did you mean 'baseline'?"),
    ],
)
def test_bad_usage_exits_2_with_one_message(
    cli: Cli, cases: Path, words: list[str], message: str
) -> None:
    result = cli(*words)
    assert result.exit_code == 2, result.output
    assert message in " ".join(result.stderr.split())


@dataclass(frozen=True)
class _Finding:
    name: str
    severity: str


@dataclass(frozen=True)
class _Report:
    verdict: str
    findings: tuple[_Finding, ...] = ()

    def lines(self) -> list[str]:
        return [f"audit: {self.verdict.upper()}", "fail: [red]constant_reward"]

    def to_json(self) -> dict[str, Any]:
        return {"verdict": self.verdict, "findings": []}


def test_audit_exits_3_on_fail_and_prints_the_report(cli: Cli, stand_in: Any) -> None:
    seen: list[Any] = []
    failing = _Report("fail", (_Finding("constant_reward", "fail"),))

    def audit_spec(spec: str, *, mode: str) -> _Report:
        seen.append((spec, mode))
        return failing

    stand_in("verigrad.audit", audit_recipe=lambda recipe: _Report("warn"), audit_spec=audit_spec)
    result = cli("audit", "file.py:fn", "--mode", "lenient")
    assert result.exit_code == 3
    assert seen == [("file.py:fn", "lenient")]
    assert "[red]constant_reward" in result.stdout
    answer = cli("audit", "tiny.toml", "verifier.mode=lenient", "--json")
    assert answer.exit_code == 0
    assert json.loads(answer.stdout)["verdict"] == "warn"


def test_every_shipped_recipe_is_listed_reads_and_can_be_copied(cli: Cli) -> None:
    listed = json.loads(cli("recipes", "list", "--json").stdout)["recipes"]
    assert [r["name"] for r in listed] == list(shipped_recipes())
    for row in listed:
        result = cli("recipes", "copy", row["name"], "mine")
        assert result.exit_code == 0
        read_recipe("mine")
        assert cli("recipes", "copy", row["name"], "mine").exit_code == 2
        Path("mine").unlink()


def test_a_copied_recipe_lands_in_a_folder_under_its_name(cli: Cli) -> None:
    name = next(iter(shipped_recipes()))
    Path("folder").mkdir()
    cli("recipes", "copy", name, "folder")
    assert Path(f"folder/{name}.toml").read_text() == shipped_recipes()[name]


def test_the_sentence_of_a_recipe_is_its_first() -> None:
    assert sentence_of("# Sums. More.\n[model]\n") == "Sums."
    assert sentence_of("[model]\n# not this\n") == ""


def test_the_schema_names_every_section(cli: Cli) -> None:
    schema = json.loads(cli("schema").stdout)
    assert {"model", "problems", "objective", "training"} <= schema["properties"].keys()


def test_chat_sends_the_whole_conversation(cli: Cli, stand_in: Any) -> None:
    asked: list[list[Message]] = []

    class Engine:
        def reply(self, messages: list[Message], *, max_new_tokens: int, temperature: float) -> Any:
            asked.append(list(messages))
            yield from ("It is ", str(len(messages)))

    stand_in("verigrad.training.chat", chat_engine=lambda path: Engine())
    result = cli("chat", "somewhere", "--system", "Be brief.", stdin="one\n\ntwo\n")
    assert result.stdout == "It is 2\nIt is 4\n"
    assert [m.role for m in asked[1]] == ["system", "user", "assistant", "user"]
    assert asked[1][2].content == "It is 2"
    assert cli("chat", "somewhere", "--once", "hi").stdout == "It is 1\n"


def test_options_are_read_as_toml_or_text() -> None:
    assert read_options(["a=1", "b=[1, 2]", "c=some text", "d=true"]) == {
        "a": 1, "b": [1, 2], "c": "some text", "d": True,
    }  # fmt: skip
    with pytest.raises(UsageError):
        read_options(["=1"])


def test_json_has_no_nan() -> None:
    assert plain({"a": float("nan"), "b": (1, Path("x")), 3: {2.5}}) == {
        "a": None, "b": [1, "x"], "3": [2.5],
    }  # fmt: skip


def test_objective_show_resolves_a_recipe_and_warns_of_silent_no_ops(cli: Cli) -> None:
    result = cli("objective", "show", "tiny.toml", "objective.clip_high=0.5", "--json")
    answer = json.loads(result.stdout)
    assert (answer["name"], answer["clip_high"]) == ("grpo", 0.5)
    assert "warn" in result.stderr
    assert "clip" in result.stderr


def test_objective_list_and_diff_agree_on_names(cli: Cli) -> None:
    names = [p["name"] for p in json.loads(cli("objective", "list", "--json").stdout)["presets"]]
    assert {"grpo", "dapo", "dr_grpo", "gspo", "rloo"} <= set(names)
    listed = cli("objective", "list").stdout
    assert all(name in listed for name in names)
    axes = json.loads(cli("objective", "diff", "grpo", "dapo", "--json").stdout)["axes"]
    assert axes["clip_high"] == {"a": 0.2, "b": 0.28}
    assert "name" not in axes
    assert "clip_high 0.2 -> 0.28" in cli("objective", "diff", "grpo", "dapo").stdout
