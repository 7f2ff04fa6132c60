"""What the model reads, token by token, and the completions a supervised start learns."""

import copy

import pytest

from verigrad.config import ProblemsSection, Turn
from verigrad.errors import ProblemError
from verigrad.problems import render, render_all, render_solution, tiny_tokenizer, worked_solution
from verigrad.types import Message, Problem


@pytest.fixture(scope="module")
def tokenizer():
    return tiny_tokenizer()


@pytest.fixture
def plain(tokenizer):
    """A base model's tokenizer: no chat template."""
    twin = copy.deepcopy(tokenizer)
    twin.chat_template = None
    return twin


def with_template(tokenizer, template):
    twin = copy.deepcopy(tokenizer)
    twin.chat_template = template
    return twin


def problem(question="What is 3 + 4?", *, id_="p1", solution=None, before=()):
    info = {} if solution is None else {"solution": solution}
    return Problem(id_, (*before, Message("user", question)), "7", "test", info)


def test_tiny_tokenizer_round_trips_any_text_byte_by_byte(tokenizer):
    text = "  What is 3 + 4?\n\n\\boxed{7} – é 数 🙂 <|user|x \t"
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert len(ids) == len(text.encode())
    assert tokenizer.decode(ids, clean_up_tokenization_spaces=False) == text
    assert len(tokenizer) == 263


def test_tiny_tokenizer_has_three_different_special_tokens(tokenizer):
    assert (tokenizer.pad_token_id, tokenizer.bos_token_id, tokenizer.eos_token_id) == (0, 1, 2)
    assert tokenizer.decode([1, 65, 2, 0], skip_special_tokens=True) == tokenizer.decode([65])


def test_tiny_tokenizer_survives_saving(tokenizer, tmp_path):
    from transformers import AutoTokenizer

    tokenizer.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    turns = [{"role": "user", "content": "What is 3 + 4? é"}]
    for tok in (tokenizer, loaded):
        assert tok.apply_chat_template(turns, tokenize=False, add_generation_prompt=True) == (
            "<|begin|><|user|>What is 3 + 4? é<|end|><|assistant|>"
        )
    text = "a b\n\\boxed{1}"
    assert loaded(text)["input_ids"] == tokenizer(text)["input_ids"]
    assert (loaded.pad_token_id, loaded.bos_token_id, loaded.eos_token_id) == (0, 1, 2)


def test_a_prompt_holds_system_examples_question_and_prefill_in_this_order(tokenizer):
    section = ProblemsSection(
        system_prompt="Be brief.",
        few_shot=(Turn(question="1 + 1?", answer="\\boxed{2}"),),
        answer_format="Q: {question} Box it.",
        prefill="<think>\n",
    )
    prompt = render(problem(), section, tokenizer)
    assert prompt.text == (
        "<|begin|><|system|>Be brief.<|end|><|user|>Q: 1 + 1? Box it.<|end|>"
        "<|assistant|>\\boxed{2}<|end|><|user|>Q: What is 3 + 4? Box it.<|end|>"
        "<|assistant|><think>\n"
    )
    ids = tokenizer.apply_chat_template(
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Q: 1 + 1? Box it."},
            {"role": "assistant", "content": "\\boxed{2}"},
            {"role": "user", "content": "Q: What is 3 + 4? Box it."},
        ],
        add_generation_prompt=True,
        return_dict=False,
    )
    think = tokenizer("<think>\n", add_special_tokens=False)["input_ids"]
    assert list(prompt.token_ids) == ids + think


def test_braces_of_a_question_are_left_alone(tokenizer):
    section = ProblemsSection(answer_format="{question} Answer in \\boxed{}.")
    prompt = render(problem("Let f{0} = {question}"), section, tokenizer)
    assert "Let f{0} = {question} Answer in \\boxed{}." in prompt.text


def test_the_recipe_replaces_a_row_s_own_system_turn_and_keeps_it_otherwise(tokenizer):
    row = problem("Hi?", before=(Message("system", "Old."),))
    assert "<|system|>Old.<|end|>" in render(row, ProblemsSection(), tokenizer).text
    text = render(row, ProblemsSection(system_prompt="New."), tokenizer).text
    assert "<|system|>New.<|end|>" in text
    assert "Old." not in text


def test_a_conversation_keeps_its_turns_and_formats_the_last_question(tokenizer):
    turns = (Message("user", "1 + 1?"), Message("assistant", "2"), Message("user", "And 3 more?"))
    row = Problem("c", turns, "5")
    text = render(row, ProblemsSection(answer_format="{question} Go."), tokenizer).text
    assert text == (
        "<|begin|><|user|>1 + 1?<|end|><|assistant|>2<|end|>"
        "<|user|>And 3 more? Go.<|end|><|assistant|>"
    )


def test_a_template_that_opens_the_thinking_is_not_given_a_second_one(tokenizer):
    opened = with_template(
        tokenizer,
        "{% for m in messages %}{{ m['content'] }}|{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|><think>\n{% endif %}",
    )
    for prefill in ("", "<think>\n"):
        text = render(problem("Q"), ProblemsSection(prefill=prefill), opened).text
        assert text == "Q|<|assistant|><think>\n"


def test_without_a_template_the_prompt_is_the_question_and_a_line_end(plain):
    assert render(problem("Why?"), ProblemsSection(), plain).text == "Why?\n"
    section = ProblemsSection(
        system_prompt="Sums.", few_shot=(Turn(question="1+1", answer="2"),), prefill="A:"
    )
    assert render(problem("2+2"), section, plain).text == "Sums.\n\n1+1\n2\n\n2+2\nA:"


def test_a_tokenizer_that_closes_every_text_leaves_the_prompt_open(plain):
    from tokenizers.processors import TemplateProcessing

    closing = copy.deepcopy(plain)
    closing.backend_tokenizer.post_processor = TemplateProcessing(
        single="<|begin|> $A <|end|>", special_tokens=[("<|begin|>", 1), ("<|end|>", 2)]
    )
    ids = render(problem("ab"), ProblemsSection(), closing).token_ids
    assert ids[0] == 1
    assert 2 not in ids
    assert closing.decode(ids, skip_special_tokens=True) == "ab\n"
    prompt, completion = render_solution(
        problem("ab"), ProblemsSection(), closing, solution="c \\boxed{1}"
    )
    assert prompt.token_ids == ids
    assert completion.count(2) == 1
    assert completion[-1] == 2


def test_a_template_that_refuses_a_role_says_what_to_do(tokenizer):
    strict = with_template(
        tokenizer,
        "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}x",
    )
    with pytest.raises(ProblemError, match=r"'p1': no system.*answer_format"):
        render(problem(), ProblemsSection(system_prompt="s"), strict)


def test_over_length_stops_drops_or_cuts_and_counts(tokenizer):
    rows = [problem("short", id_="a"), problem("x" * 50, id_="b")]
    limit = {"max_prompt_tokens": 20}
    with pytest.raises(ProblemError, match=r"'b' has 54 tokens.*max_prompt_tokens = 20"):
        render_all(rows, ProblemsSection(**limit), tokenizer)
    prompts, counts = render_all(rows, ProblemsSection(**limit, over_length="drop"), tokenizer)
    assert [p.problem.id for p in prompts] == ["a"]
    assert counts == {"num_prompts": 1, "num_dropped": 1, "num_truncated": 0, "max_tokens": 9}
    section = ProblemsSection(**limit, over_length="truncate_left")
    prompts, counts = render_all(rows, section, tokenizer)
    assert prompts[1].text == "x" * 18 + "<|end|><|assistant|>"
    assert len(prompts[1].token_ids) == 20
    assert counts["num_truncated"] == 1
    assert counts["num_dropped"] == 0


def test_dropping_every_prompt_is_an_error(tokenizer):
    section = ProblemsSection(max_prompt_tokens=3, over_length="drop")
    with pytest.raises(ProblemError, match="all 2 prompts are too long"):
        render_all([problem(), problem(id_="q")], section, tokenizer)


@pytest.mark.parametrize("prefill", ["", "<think>\n"])
@pytest.mark.parametrize("chat", [True, False])
def test_prompt_and_solution_are_what_the_template_gives(tokenizer, plain, chat, prefill):
    tok = tokenizer if chat else plain
    section = ProblemsSection(
        system_prompt="Sum.", few_shot=(Turn(question="1", answer="2"),), prefill=prefill
    )
    prompt, completion = render_solution(problem(), section, tok, solution="3 + 4 = \\boxed{7}")
    assert prompt == render(problem(), section, tok)
    assert tok.decode(completion) == "3 + 4 = \\boxed{7}<|end|>"
    assert completion[-1] == tok.eos_token_id
    if chat:
        turns = [
            {"role": "system", "content": "Sum."},
            {"role": "user", "content": "1"},
            {"role": "assistant", "content": "2"},
            {"role": "user", "content": "What is 3 + 4?"},
            {"role": "assistant", "content": prefill + "3 + 4 = \\boxed{7}"},
        ]
        whole = tok.apply_chat_template(turns, return_dict=False)
        assert [*prompt.token_ids, *completion] == whole


def test_what_a_template_writes_after_the_end_of_turn_is_not_learned(tokenizer):
    # ChatML writes a line end after the end token; the model stops before it.
    chatml = with_template(
        tokenizer,
        "{% for m in messages %}{{ '<|' + m['role'] + '|>' + m['content'] + eos_token + '\n' }}"
        "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}",
    )
    _, completion = render_solution(problem(), ProblemsSection(), chatml, solution="\\boxed{7}")
    assert chatml.decode(completion) == "\\boxed{7}<|end|>"


def test_a_template_that_cuts_the_thinking_is_refused(tokenizer):
    cutting = with_template(
        tokenizer,
        "{% for m in messages %}{{ m['content'].split('</think>')[-1] + eos_token }}{% endfor %}"
        "{% if add_generation_prompt %}{% endif %}",
    )
    with pytest.raises(ProblemError, match="alters the solution"):
        render_solution(
            problem(), ProblemsSection(), cutting, solution="<think>hm</think>\\boxed{7}"
        )


def test_a_template_with_another_beginning_for_the_reply_is_refused(tokenizer):
    other = with_template(
        tokenizer,
        "{% for m in messages %}{{ '<|' + m['role'] + '|>' + m['content'] + eos_token }}"
        "{% endfor %}{% if add_generation_prompt %}<|assistant|><think>{% endif %}",
    )
    with pytest.raises(ProblemError, match=r"'3 \+ 4.*where the prompt has '<think>'"):
        render_solution(problem(), ProblemsSection(), other, solution="3 + 4 = 7")


def test_a_template_without_an_end_token_is_refused(tokenizer):
    endless = with_template(
        tokenizer, "{% for m in messages %}{{ m['role'] + m['content'] }}{% endfor %}"
        "{% if add_generation_prompt %}assistant{% endif %}",
    )  # fmt: skip
    with pytest.raises(ProblemError, match="would never stop"):
        render_solution(problem(), ProblemsSection(), endless, solution="\\boxed{7}")


def test_a_tokenizer_that_joins_prompt_and_solution_is_refused():
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    vocabulary = {"a": 0, "b": 1, "ab": 2, "<e>": 3}
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=[("a", "b")]))
    joining = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<e>")
    joining.chat_template = (
        "{% for m in messages %}{% if m['role'] == 'assistant' %}{{ 'a' + m['content'] + '<e>' }}"
        "{% endif %}{% endfor %}{% if add_generation_prompt %}a{% endif %}"
    )
    with pytest.raises(ProblemError, match="joins the end of the prompt 'a'"):
        render_solution(problem(), ProblemsSection(), joining, solution="b")


def test_an_empty_solution_and_a_prompt_too_long_are_refused(tokenizer):
    with pytest.raises(ProblemError, match="solution of problem 'p1' is empty"):
        render_solution(problem(), ProblemsSection(), tokenizer, solution="  ")
    with pytest.raises(ProblemError, match="has 18 tokens"):
        render_solution(
            problem(), ProblemsSection(max_prompt_tokens=5), tokenizer, solution="\\boxed{7}"
        )


def test_worked_solution_is_one_with_a_box():
    assert worked_solution(problem(solution="3 + 4 = \\boxed{7}")) == "3 + 4 = \\boxed{7}"
    assert worked_solution(problem(solution="7")) is None
    assert worked_solution(problem()) is None


def test_a_problem_that_ends_with_the_assistant_has_no_question(tokenizer):
    row = Problem("bad", (Message("user", "q"), Message("assistant", "a")), "1")
    with pytest.raises(ProblemError, match="'bad' has no question at its end"):
        render(row, ProblemsSection(), tokenizer)
