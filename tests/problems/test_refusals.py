"""Bad input: every fault names the value, the place and the remedy, and has exit code 2."""

import builtins
import json
import re

import pytest

from verigrad.config import ProblemsSection
from verigrad.errors import MissingExtraError, ProblemError, RecipeError, UsageError
from verigrad.problems import load_problems


def refuse(source, *, count=0, kind=UsageError, **section):
    """Load and return the message of the refusal."""
    with pytest.raises(kind) as caught:
        load_problems(ProblemsSection(source=str(source), **section), seed=0, heldout=count)
    assert caught.value.exit_code == 2
    return str(caught.value)


def write(path, *rows):
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    return path


GOOD = {"question": "q?", "answer": "1"}


def test_a_missing_file_says_where_it_was_looked_for(tmp_path):
    assert "none.jsonl does not exist" in refuse(tmp_path / "none.jsonl", kind=ProblemError)
    assert "does not exist" in refuse("data/none.jsonl", kind=ProblemError)


def test_an_empty_file_is_refused(tmp_path):
    for name in ("a.jsonl", "b.json"):
        (tmp_path / name).write_text("\n  \n")
        assert "is empty" in refuse(tmp_path / name, kind=ProblemError)
    (tmp_path / "c.json").write_text("[]")
    assert "is empty" in refuse(tmp_path / "c.json", kind=ProblemError)


def test_a_malformed_line_names_file_and_line(tmp_path):
    path = write(tmp_path / "a.jsonl", GOOD, GOOD)
    path.write_text(path.read_text() + '\n{"question": "x", }\n')
    message = refuse(path, kind=ProblemError)
    assert f"{path}:4 is not valid JSON" in message


@pytest.mark.parametrize("line", ["[1]", '"text"', "3", "null"])
def test_a_line_that_is_no_object_names_file_and_line(tmp_path, line):
    path = tmp_path / "a.jsonl"
    path.write_text(f"{json.dumps(GOOD)}\n{line}\n")
    assert f"{path}:2 is {line}, not a JSON object" in refuse(path, kind=ProblemError)


def test_absurd_json_is_refused_and_not_a_crash(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"question": "q", "answer": ' + "9" * 5000 + "}\n")
    assert f"{path}:1 is not valid JSON" in refuse(path, kind=ProblemError)
    path.write_text('{"question": "q", "answer": ' + "[" * 200_000 + "\n")
    assert f"{path}:1 is not valid JSON" in refuse(path, kind=ProblemError)


def test_a_file_that_is_not_utf8_names_the_line(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"question": "q", "answer": 1}\n{"question": "caf\xe9"}\n')
    assert f"{path}:2 is not UTF-8 (byte 0xe9)" in refuse(path, kind=ProblemError)


def test_damaged_archives_and_parquet_are_refused(tmp_path):
    (tmp_path / "a.jsonl.gz").write_bytes(b"not gzip")
    assert "cannot be read" in refuse(tmp_path / "a.jsonl.gz", kind=ProblemError)
    (tmp_path / "b.parquet").write_bytes(b"not parquet")
    assert "is not valid parquet" in refuse(tmp_path / "b.parquet", kind=ProblemError)


def test_json_without_one_list_of_rows_is_refused(tmp_path):
    path = tmp_path / "a.json"
    for text, part in (
        ('{"a": [], "b": []}', "2 lists"),
        ("3", "a int"),
        ('[{"question": "q"}, 4]', "row 2 is 4"),
        ('[{"question": "q",]', ":1 is not valid JSON"),
    ):
        path.write_text(text)
        assert part in refuse(path, kind=ProblemError)


def test_another_kind_of_file_names_the_known_ones(tmp_path):
    (tmp_path / "a.csv").write_text("x")
    assert ".jsonl, .json, .parquet" in refuse(tmp_path / "a.csv", kind=ProblemError)


def test_a_missing_column_lists_what_is_there_and_the_key(tmp_path):
    path = write(tmp_path / "a.jsonl", {"text": "q?", "answer": "1"})
    message = refuse(path, kind=ProblemError)
    assert "no column for the question" in message
    assert "text, answer" in message
    assert "problems.prompt_column" in message
    path = write(tmp_path / "a.jsonl", {"question": "q?", "gold": "1"})
    message = refuse(path, kind=ProblemError)
    assert "no column for the answer" in message
    assert 'problems.answer_column (or "none"' in message


def test_a_column_that_is_named_and_missing_gets_the_nearest(tmp_path):
    path = write(tmp_path / "a.jsonl", GOOD)
    message = refuse(path, prompt_column="questoin", kind=ProblemError)
    assert "problems.prompt_column = 'questoin'" in message
    assert "Did you mean 'question'?" in message
    assert "Did you mean 'answer'?" in refuse(path, answer_column="answr", kind=ProblemError)


def test_ambiguous_columns_are_named_with_the_key_to_set(tmp_path):
    row = {**GOOD, "prompt": "another?", "label": "2"}
    path = write(tmp_path / "a.jsonl", row)
    message = refuse(path, kind=ProblemError)
    assert "'prompt', 'question'" in message
    assert "problems.prompt_column = 'prompt'" in message
    message = refuse(path, prompt_column="prompt", kind=ProblemError)
    assert "'answer', 'label'" in message
    assert "problems.answer_column = 'answer'" in message


@pytest.mark.parametrize("value", [None, 3, 2.5, True, {"a": 1}, [], [3], "missing"])
def test_a_question_that_is_no_text_names_its_row(tmp_path, value):
    bad = {"answer": "1"} if value == "missing" else {"question": value, "answer": "1"}
    path = write(tmp_path / "a.jsonl", GOOD, bad)
    message = refuse(path, kind=ProblemError)
    assert f"{path}:2: column 'question' is" in message
    if value is not None and value != "missing" and value != [3]:
        assert f"{value!r} ({type(value).__name__})" in message


@pytest.mark.parametrize(
    "turns",
    [
        [{"role": "user"}],
        [{"role": "human", "content": "x"}],
        [{"role": "user", "content": 3}],
        [{"role": "user", "content": [{"type": "image"}]}],
        [{"role": "system", "content": "x"}],
        [{"role": "assistant", "content": "x"}],
    ],
)
def test_malformed_turns_name_their_row(tmp_path, turns):
    path = write(tmp_path / "a.jsonl", {"messages": turns, "answer": "1"})
    assert f"{path}:1: " in refuse(path, kind=ProblemError)


def test_an_answer_that_is_no_number_is_refused(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"question": "q", "answer": NaN}\n')
    assert f"{path}:1: column 'answer' is nan" in refuse(path, kind=ProblemError)


def test_half_a_character_is_refused(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"question": "a\\ud800b", "answer": 1}\n')
    message = refuse(path, kind=ProblemError)
    assert f"{path}:1: column 'question' has a lone surrogate '\\ud800' at character 1" in message


def test_a_file_of_unusable_rows_says_why_each_was_dropped(tmp_path):
    path = write(
        tmp_path / "a.jsonl", {"question": " ", "answer": 1}, {"question": "q", "answer": ""}
    )
    assert "1 empty question, 1 no answer" in refuse(path)


def test_holding_out_more_than_there_is_names_the_key(tmp_path):
    rows = [{"question": f"q{i}", "answer": 1} for i in range(5)]
    path = write(tmp_path / "a.jsonl", *rows)
    assert "evaluation.problems" in refuse(path, count=5)
    other = write(tmp_path / "b.jsonl", {"question": "x", "answer": 1})
    message = refuse(path, count=2, heldout=str(other))
    assert "problems.heldout" in message
    assert "at most 1" in message
    assert "evaluation.problems to at most 27" in refuse("sums:?digits=1", count=28)


def test_generated_sources_that_run_dry_say_how_many_there_are():
    message = refuse("sums:?digits=1&count=55")
    assert "only 54 different training problems" in message


def test_training_problems_that_are_all_held_out_are_refused(tmp_path):
    path = write(tmp_path / "a.jsonl", GOOD)
    assert "no problem is left" in refuse(path, heldout=str(path), count=1)


def test_an_unknown_split_of_a_folder_names_those_there_are(tmp_path):
    write(tmp_path / "test.jsonl", GOOD)
    message = refuse(tmp_path, kind=ProblemError)
    assert "no split 'train'; it has: test" in message
    assert "problems.split = 'test'" in message
    message = refuse(tmp_path, split="test", heldout=str(tmp_path), heldout_split="dev", count=1)
    assert "problems.heldout_split" in message


def test_a_folder_or_pattern_without_problems_is_refused(tmp_path):
    assert "holds no problem file" in refuse(tmp_path, kind=ProblemError)
    assert "matches no file" in refuse(tmp_path / "*.jsonl", kind=ProblemError)


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ("word:?steps=1", "Did you mean 'words'?"),
        ("ftp://x/y.jsonl", "unknown scheme 'ftp'"),
        ("words", "Did you mean 'words:?"),
        ("words:steps=1", "must follow a '?'"),
        ("sums:digits=1", "must follow a '?'"),
        ("words:?heldout_split", "name=value"),
    ],
)
def test_an_unknown_source_names_the_nearest(source, part):
    assert part in refuse(source, kind=RecipeError)


def test_options_of_a_file_are_refused(tmp_path):
    path = write(tmp_path / "a.jsonl", GOOD)
    assert "unknown option 'split'" in refuse(f"{path}?split=train", kind=RecipeError)


def test_a_held_out_split_of_a_generated_source_is_refused():
    assert "has no splits" in refuse("words:", heldout_split="test", kind=RecipeError)


def test_a_negative_count_is_refused():
    assert "heldout = -1" in refuse("words:", count=-1, kind=ProblemError)


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ("gym:chain_sums", "Did you mean 'chain_sum'?"),
        ("gym:chain_sum?min_term=2", "Did you mean 'min_terms'?"),
        ("gym:chain_sum?min_terms=two", "not of the type int"),
        ("gym:chain_sum?min_terms=9&max_terms=2", "reasoning-gym refuses it"),
        ("gym:chain_sum?size=0", "1 or more"),
    ],
)
def test_an_unknown_task_or_option_names_the_nearest(source, part):
    assert part in refuse(source, kind=RecipeError)


def test_a_hub_dataset_that_cannot_be_reached_names_the_split(monkeypatch):
    import datasets

    def fail(*_, **__):
        raise ConnectionError("Couldn't reach the hub")

    monkeypatch.setattr(datasets, "load_dataset", fail)
    message = refuse("owner/name?name=main", split="dev", kind=ProblemError)
    assert "(split 'dev') can't be loaded: Couldn't reach the hub" in message
    assert "unknown option 'config'" in refuse("hf:owner/name?config=main", kind=RecipeError)


@pytest.mark.parametrize(
    ("package", "source", "extra"),
    [
        ("datasets", "hf:owner/name", "verigrad[data]"),
        ("pyarrow.parquet", "{tmp}/a.parquet", "verigrad[data]"),
        ("reasoning_gym.factory", "gym:chain_sum", "verigrad[gym]"),
    ],
)
def test_a_missing_extra_is_named(monkeypatch, tmp_path, package, source, extra):
    (tmp_path / "a.parquet").write_bytes(b"")
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == package:
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    message = refuse(source.format(tmp=tmp_path), kind=MissingExtraError)
    assert extra in message


def test_every_message_ends_as_a_sentence(tmp_path):
    path = write(tmp_path / "a.jsonl", {"text": 1})
    for source in (path, "words:?x=1", tmp_path / "no.jsonl", "gym:none", "words:?steps=9"):
        assert re.search(r"[.?)]$", refuse(source))
