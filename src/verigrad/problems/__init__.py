"""Problems: where they come from, how they are shown to the model, in which order they are drawn.

    problems = load_problems(recipe.problems, seed=0, heldout=200)
    prompts, counts = render_all(problems.train, recipe.problems, tokenizer)
    indices = draw(len(prompts), step=1, prompts_per_step=16, seed=0, shuffle=True)

Everything here loads without torch.
"""

from verigrad.problems.load import ProblemSet, fingerprint, load_problems
from verigrad.problems.order import draw
from verigrad.problems.overlap import Overlap, find_overlap
from verigrad.problems.render import render, render_all
from verigrad.problems.solution import render_solution, worked_solution
from verigrad.problems.tiny import tiny_tokenizer

__all__ = [
    "Overlap",
    "ProblemSet",
    "draw",
    "find_overlap",
    "fingerprint",
    "load_problems",
    "render",
    "render_all",
    "render_solution",
    "tiny_tokenizer",
    "worked_solution",
]
