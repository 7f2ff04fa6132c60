"""Sources that load: the two sides never meet, drops are counted, columns are explained."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from verigrad.config import ProblemsSection, Turn
from verigrad.problems import find_overlap, load_problems
from verigrad.problems.text import normalise, problem_key
from verigrad.types import Message, Problem


def write(path, rows):
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    return str(path)


def numbered(n, **more):
    return [{"question": f"What is {i} + 1?", "answer": i + 1, **more} for i in range(n)]


def load(source, *, count=0, seed=0, **section):
    """``count`` problems held out; other keywords are the recipe's."""
    return load_problems(ProblemsSection(source=source, **section), seed=seed, heldout=count)


def only(source, **section):
    (problem,) = load(source, **section).train
    return problem


def test_gsm8k_rows_give_answer_and_worked_solution(tmp_path):
    raw = "He sold 48/2 = <<48/2=24>>24 clips.\nIn all 48+24 = $<<48+24=1072>>1072.\n#### 1,072"
    problem = only(write(tmp_path / "train.jsonl", [{"question": "How many?", "answer": raw}]))
    assert problem.answer == "1072"
    assert problem.info["solution"] == (
        "He sold 48/2 = 24 clips.\nIn all 48+24 = $1072.\nThe answer is \\boxed{1072}."
    )
    assert problem.info["answer"] == raw


def test_svamp_rows_join_body_and_question(tmp_path):
    rows = [
        {"Body": "Ann has 3 pens.", "Question": "How many pens?", "Answer": 3.0, "ID": "chal-1"},
        {"Body": "If Ann has 2 pens", "Question": "How many are left?", "Answer": 2.5, "ID": "c2"},
    ]
    one, two = load(write(tmp_path / "test.jsonl", rows)).train
    assert (one.id, one.question, one.answer) == ("chal-1", "Ann has 3 pens. How many pens?", "3")
    assert (two.question, two.answer) == ("If Ann has 2 pens, how many are left?", "2.5")


def test_mawps_rows_load_and_whole_floats_become_whole_numbers(tmp_path):
    problem = only(write(tmp_path / "addsub.jsonl", [{"input": "How many?", "target": 43.0}]))
    assert (problem.question, problem.answer) == ("How many?", "43")
    assert problem.id.endswith("/addsub:1")


def test_math_rows_take_the_answer_as_gold_and_the_solution_as_work(tmp_path):
    rows = [
        {"problem": "x?", "solution": "So \\boxed{p - q}.", "answer": "p - q", "unique_id": "t/1"}
    ]
    path = tmp_path / "test.json"
    path.write_text(json.dumps(rows))
    found = load(str(path))
    assert found.train[0].answer == "p - q"
    assert found.train[0].info["solution"] == "So \\boxed{p - q}."
    assert any("'solution' is the worked solution" in line for line in found.report)


def test_a_solution_column_alone_gives_the_last_box_as_gold(tmp_path):
    text = "First \\boxed{0}. Then \\boxed{\\frac{1}{2}}."
    problem = only(write(tmp_path / "a.jsonl", [{"problem": "x?", "solution": text}]))
    assert problem.answer == "\\frac{1}{2}"
    assert problem.info["solution"] == text


def test_verl_rows_load_chat_turns_nested_gold_and_data_source(tmp_path):
    row = {
        "data_source": "openai/gsm8k",
        "prompt": [{"role": "system", "content": "s"}, {"role": "user", "content": "q?"}],
        "reward_model": {"style": "rule", "ground_truth": "72"},
        "extra_info": {"index": 0},
    }
    problem = only(write(tmp_path / "a.jsonl", [row]))
    assert problem.messages == (Message("system", "s"), Message("user", "q?"))
    assert (problem.answer, problem.data_source) == ("72", "openai/gsm8k")
    assert problem.info["extra_info"] == {"index": 0}


def test_message_rows_give_the_closing_assistant_turn_as_solution(tmp_path):
    row = {
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "1 + 1?"}]},
            {"role": "assistant", "content": "\\boxed{2}"},
        ],
        "ground_truth": ["2"],
    }
    problem = only(write(tmp_path / "a.jsonl", [row]))
    assert problem.messages == (Message("user", "1 + 1?"),)
    assert (problem.answer, problem.info["solution"]) == ("2", "\\boxed{2}")


def test_columns_can_be_named_and_every_other_one_stays_in_info(tmp_path):
    row = {"prompt": "no", "task": {"text": "yes?"}, "gold": "1", "level": 3}
    path = write(tmp_path / "a.jsonl", [row])
    problem = only(path, prompt_column="task.text", answer_column="gold")
    assert (problem.question, problem.answer) == ("yes?", "1")
    assert problem.info["level"] == 3


def test_problems_without_gold_load_when_asked_for(tmp_path):
    path = write(tmp_path / "a.jsonl", [{"prompt": "Write a poem.", "limit": 5}])
    problem = only(path, answer_column="none")
    assert problem.answer is None
    assert problem.info == {"limit": 5}


def test_equal_candidate_columns_are_no_ambiguity(tmp_path):
    row = {"prompt": "q?", "question": "q?", "answer": "1", "label": "1"}
    report = load(write(tmp_path / "a.jsonl", [row])).report
    assert any("'prompt' (equal to 'question' in every row)" in line for line in report)


def test_structured_gold_becomes_json(tmp_path):
    gold = [{"f": {"x": 1}}, {"g": {}}]
    problem = only(write(tmp_path / "a.jsonl", [{"question": "q", "ground_truth": gold}]))
    assert json.loads(problem.answer) == gold


def test_rows_of_all_containers_are_the_same(tmp_path):
    import pyarrow
    from pyarrow import parquet

    rows = [{"question": f"q{i}?\u2028", "answer": str(i)} for i in range(5)]
    text = "\ufeff" + "\r\n\r\n".join(json.dumps(r, ensure_ascii=False) for r in rows)
    (tmp_path / "a.jsonl").write_bytes(text.encode())
    (tmp_path / "b.json").write_text(json.dumps({"version": 1, "data": rows}))
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "e.json").write_bytes(text.encode())
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "d.parquet")
    for name in ("a.jsonl", "b.json", "c.jsonl.gz", "d.parquet", "e.json"):
        found = load(str(tmp_path / name)).train
        assert [(p.question, p.answer) for p in found] == [(f"q{i}?", str(i)) for i in range(5)]


def test_a_folder_gives_the_split_that_is_asked_for(tmp_path):
    write(tmp_path / "train.jsonl", numbered(6))
    write(tmp_path / "test.jsonl", [{"question": f"Test {i}?", "answer": i} for i in range(4)])
    (tmp_path / "LICENSE").write_text("MIT")
    folder = str(tmp_path)
    assert len(load(folder).train) == 6
    assert len(load(folder, split="test").train) == 4
    for section in ({"heldout": folder}, {"heldout_split": "test"}):
        found = load(folder, count=4, **section)
        assert (len(found.train), len(found.heldout)) == (6, 4)
        assert all(p.question.startswith("Test") for p in found.heldout)


def test_a_folder_without_splits_and_a_pattern_are_read_whole(tmp_path):
    write(tmp_path / "one.jsonl", numbered(3))
    write(tmp_path / "two.jsonl", [{"question": "Else?", "answer": 1}])
    assert len(load(str(tmp_path)).train) == 4
    assert len(load(str(tmp_path / "t*.jsonl")).train) == 1


def test_a_dataset_saved_to_disk_loads(tmp_path):
    import datasets

    train = datasets.Dataset.from_list(numbered(5))
    test = datasets.Dataset.from_list([{"question": "T?", "answer": 1}])
    datasets.DatasetDict({"train": train, "test": test}).save_to_disk(tmp_path / "d")
    train.save_to_disk(tmp_path / "one")
    found = load(str(tmp_path / "d"), heldout_split="test", count=1)
    assert (len(found.train), found.heldout[0].question) == (5, "T?")
    assert len(load(str(tmp_path / "one")).train) == 5


def test_the_cut_depends_on_the_questions_alone(tmp_path):
    rows = numbered(40)
    forward = load(write(tmp_path / "a.jsonl", rows), count=10, seed=0)
    backward = load(write(tmp_path / "b.jsonl", rows[::-1]), count=10, seed=5)
    questions = [p.question for p in forward.heldout]
    assert questions == [p.question for p in backward.heldout]
    assert len(forward.train) == 30
    assert not set(questions) & {p.question for p in forward.train}
    fewer = load(str(tmp_path / "a.jsonl"), count=5)
    assert [p.question for p in fewer.heldout] == questions[:5]


def test_training_problems_that_are_held_out_elsewhere_are_dropped_and_counted(tmp_path):
    train = write(tmp_path / "train.jsonl", numbered(5))
    test = write(tmp_path / "test.jsonl", [{"question": "what is 2 + 1 ?", "answer": 3}])
    found = load(train, heldout=test, count=1)
    assert "What is 2 + 1?" not in {p.question for p in found.train}
    assert "  dropped 1: training problems that are held out" in found.report


def test_training_problems_with_a_held_out_id_are_dropped(tmp_path):
    train = write(
        tmp_path / "a.jsonl",
        [{"id": "x1", "question": "A?", "answer": 1}, {"id": "x2", "question": "B?", "answer": 1}],
    )
    test = write(tmp_path / "b.jsonl", [{"id": "x2", "question": "B, reworded?", "answer": 1}])
    found = load(train, heldout=test, count=1)
    assert [p.id for p in found.train] == ["x1"]


def test_a_held_out_source_may_have_other_columns_than_those_that_are_named(tmp_path):
    train = write(tmp_path / "a.jsonl", [{"task": "A?", "gold": 1}])
    test = write(tmp_path / "b.jsonl", [{"question": "B?", "answer": 2}])
    found = load(train, heldout=test, count=1, prompt_column="task", answer_column="gold")
    assert (found.train[0].question, found.heldout[0].question) == ("A?", "B?")
    assert found.heldout[0].answer == "2"


def test_row_counters_of_two_files_do_not_meet(tmp_path):
    train = write(tmp_path / "a.jsonl", [{"id": 0, "question": "A?", "answer": 1}])
    test = write(tmp_path / "b.jsonl", [{"id": 0, "question": "B?", "answer": 1}])
    found = load(train, heldout=test, count=1)
    assert (len(found.train), len(found.heldout)) == (1, 1)


def test_duplicates_and_empty_rows_are_dropped_with_their_reason(tmp_path):
    rows = [
        {"question": "A?", "answer": 1},
        {"question": " a  ? ", "answer": 1},
        {"question": "A?", "answer": 2},
        {"question": "  ", "answer": 1},
        {"question": "B?", "answer": None},
        {"question": "C?", "answer": ""},
    ]
    found = load(write(tmp_path / "a.jsonl", rows))
    assert [p.question for p in found.train] == ["A?"]
    assert found.train[0].answer == "1"
    assert [line.strip() for line in found.report if "dropped" in line] == [
        "dropped 1: duplicate question",
        "dropped 1: duplicate question with another answer",
        "dropped 1: empty question",
        "dropped 2: no answer",
    ]


def test_questions_of_worked_examples_are_on_neither_side(tmp_path):
    example = Turn(question="What is 2 + 1?", answer="3")
    path = write(tmp_path / "a.jsonl", numbered(5))
    found = load(path, few_shot=(example,))
    assert len(found.train) == 4
    assert "  dropped 1: question of a worked example" in found.report
    example = Turn(question="What is 3 + 4?", answer="7")
    found = load("sums:?digits=1", few_shot=(example,), count=10)
    assert "What is 3 + 4?" not in {p.question for p in (*found.train, *found.heldout)}


def test_limit_takes_the_first_training_problems(tmp_path):
    found = load(write(tmp_path / "a.jsonl", numbered(30)), limit=4, count=10)
    whole = load(str(tmp_path / "a.jsonl"), count=10)
    assert found.train == whole.train[:4]
    assert found.heldout == whole.heldout


def test_generated_heldout_is_the_same_for_every_seed_and_never_trained_on():
    one, two = (load("words:?steps=1&count=800", count=100, seed=s) for s in (1, 2))
    assert one.heldout == two.heldout
    assert one.train != two.train
    keys = {problem_key(p) for p in one.heldout}
    assert not keys & {problem_key(p) for p in (*one.train, *two.train)}
    assert (len(one.train), len(one.heldout)) == (800, 100)


def test_another_generated_source_can_be_held_out():
    found = load("words:?steps=1&count=50", heldout="words:?steps=2", count=30)
    assert {p.info["steps"] for p in found.train} == {1}
    assert {p.info["steps"] for p in found.heldout} == {2}


def test_a_file_of_its_own_can_be_held_out_from_generated_training(tmp_path):
    path = write(tmp_path / "a.jsonl", numbered(9))
    found = load("sums:?digits=1", heldout=path, count=9)
    assert len(found.heldout) == 9
    held = {p.question for p in found.heldout}
    assert "What is 1 + 1?" in held
    assert not held & {p.question for p in found.train}


def test_the_fingerprint_moves_with_everything_that_is_shown(tmp_path):
    def mark(rows):
        return load(write(tmp_path / "a.jsonl", rows)).fingerprint

    first = mark(numbered(3))
    assert first == mark(numbered(3))
    changed = [
        numbered(4),
        [{**r, "answer": 0} for r in numbered(3)],
        [{**r, "solution": "\\boxed{1}"} for r in numbered(3)],
        numbered(3)[::-1],
    ]
    assert len({first, *map(mark, changed)}) == 5


def test_overlap_finds_shared_runs_of_words_and_whole_short_questions():
    def make(id_, text):
        return Problem(id_, (Message("user", text),), "1")

    long = " ".join(f"w{i}" for i in range(20))
    train = [make("t1", f"before {long} after"), make("t2", "Other, words here!"), make("t3", "no")]
    held = [make("h1", f"start {long.upper()}?"), make("h2", "words here"), make("h3", "fresh one")]
    found = find_overlap(train, held, ngram=13)
    assert found.train_ids == ("t1", "t2")
    assert found.heldout_ids == ("h1", "h2")
    assert "2 of 3 held-out questions share 13 words" in found.lines()[0]
    assert find_overlap(train, held, ngram=21).heldout_ids == ("h2",)
    assert find_overlap(train, [], ngram=3).lines() == ()


@pytest.mark.parametrize(
    ("one", "other"), [("A  b\n", "a B"), ("in the barn . Tim", "in the barn. Tim"), ("½", "1⁄2")]
)
def test_questions_that_differ_in_form_only_are_the_same(one, other):
    assert normalise(one) == normalise(other)


def test_questions_that_differ_in_a_sign_are_not_the_same():
    assert normalise("What is 3 - 4?") != normalise("What is 3 + 4?")
    assert normalise("What is 3 .5?") != normalise("What is 3.5?")


def test_the_room_loads_and_works_without_torch():
    code = (
        "import sys\n"
        "from verigrad.config import ProblemsSection\n"
        "from verigrad.problems import load_problems\n"
        "load_problems(ProblemsSection(), seed=0, heldout=5)\n"
        "assert 'torch' not in sys.modules and 'transformers' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


SHARED = Path(os.environ.get("VERIGRAD_SHARED", "../shared")) / "data"

if SHARED.is_dir():

    @pytest.mark.parametrize(
        ("name", "split", "rows"),
        [
            ("gsm8k", "train", 7473),
            ("gsm8k", "test", 1319),
            ("svamp", "test", 1000),
            ("mawps", "train", 1890),
            ("math500", "test", 500),
        ],
    )
    def test_the_public_data_loads_where_it_lies(name, split, rows):
        found = load(str(SHARED / name), split=split)
        assert len(found.train) == rows
        assert all(p.answer and p.question for p in found.train)
