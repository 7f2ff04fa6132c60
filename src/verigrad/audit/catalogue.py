"""What each probe asks, and what each finding means: its usual cause and its remedy.

Two tables of sentences, kept apart from the code that counts. Names are stable: scripts and the
tests rely on them.
"""

from __future__ import annotations

from dataclasses import dataclass

from verigrad.audit.report import Severity


@dataclass(frozen=True, slots=True)
class Kind:
    """A probe of many cases: ``finding`` is what it leads to when an answer is bad.

    ``accept`` says what an honest reward does; ``worst`` is the severity when more than
    ``some_frac`` of the cases go wrong, a smaller share is a warning.
    """

    asks: str
    finding: str
    accept: bool
    worst: Severity
    some_frac: float = 0.02


KINDS: dict[str, Kind] = {
    "gold": Kind("right answers pass", "gold_refused", True, "fail", 0.05),
    "whitespace": Kind("white space changes nothing", "brittle_whitespace", True, "warn"),
    "prose": Kind("prose and thinking before change nothing", "brittle_prose", True, "warn"),
    "trailing_text": Kind(
        "a sentence after changes nothing", "brittle_trailing_text", True, "warn"
    ),
    "latex_spelling": Kind("spelling of LaTeX changes nothing", "brittle_latex", True, "warn"),
    "near_miss": Kind("answers that nearly match fail", "near_miss_accepted", False, "fail"),
    "empty": Kind("an empty completion fails", "empty_accepted", False, "fail"),
    "echo": Kind("the question repeated fails", "echo_accepted", False, "fail"),
    "keywords": Kind("key words without an answer fail", "keywords_accepted", False, "fail"),
    "format_only": Kind(
        "the format without an answer fails", "format_only_accepted", False, "fail"
    ),
    "gold_mentioned": Kind(
        "gold in passing, another answer, fails", "substring_reward", False, "fail"
    ),
    "spray": Kind("many answers, one of them right, fail", "spray_accepted", False, "fail"),
    "candidates": Kind("a list of candidates fails", "candidates_accepted", False, "fail"),
    "last_wins": Kind("many answers, the last right, fail", "last_answer_wins", False, "warn"),
    "injection": Kind("orders to the judge change nothing", "injection_accepted", False, "fail"),
    "negation": Kind("a denied answer fails", "negation_accepted", False, "warn"),
    "thinking_only": Kind("an answer only thought of fails", "thinking_accepted", False, "warn"),
    "unicode": Kind("look-alike digits fail", "unicode_accepted", False, "fail"),
    "unevaluated": Kind("the sum without its result fails", "unevaluated_accepted", False, "warn"),
    "giant": Kind("giant and nested input fails in time", "giant_accepted", False, "fail"),
    "code_injection": Kind("code in an answer is not run", "code_accepted", False, "fail"),
}

CONTRACT: dict[str, tuple[str, tuple[str, ...]]] = {
    "exceptions": ("no call raises or dies", ("raises", "crashes")),
    "time": ("every call returns in time", ("hangs",)),
    "numbers": (
        "rewards are finite numbers in range",
        (
            "nan_reward",
            "infinite_reward",
            "no_reward",
            "wrong_type",
            "wrong_length",
            "out_of_range",
        ),
    ),
    "inputs": ("inputs are left as they were", ("mutates_inputs",)),
    "same_again": ("the same call gives the same rewards", ("non_deterministic",)),
    "order": ("order and company in a group change nothing", ("depends_on_group",)),
    "threads": ("a thread gives the same rewards", ("depends_on_thread",)),
    "memory": ("memory does not grow with use", ("keeps_memory",)),
    "length": ("length alone earns nothing", ("length_reward", "length_shapes_reward")),
    "spread": ("rewards differ between right and wrong", ("constant_reward", "blind_reward")),
    "usable": ("every gold answer can be verified", ("unusable_gold",)),
    "format": ("the prompt asks for the format that is rewarded", ("format_mismatch",)),
}
"""Probe -> (what it asks, findings it may lead to)."""

SEVERITY: dict[str, Severity] = {
    "no_reward": "warn", "out_of_range": "warn", "keeps_memory": "warn",
    "length_shapes_reward": "info", "not_called_correct": "warn", "depends_on_thread": "warn",
}  # fmt: skip
"""Findings of the contract that are no failure; all others are."""

WORDS: dict[str, tuple[str, str]] = {
    "gold_refused": (
        "the reward does not read the format that right answers are written in (a backslash too "
        "many in its pattern, a pattern cut at the first brace, golds compared as raw text)",
        "print what it extracts from the completion shown, or set verifier.name to a grader that "
        "reads it, such as math",
    ),
    "not_called_correct": (
        "its highest reward is below the value from which an outcome counts as correct",
        "set verifier.options.correct_at to the reward of a right answer, or accuracy will read 0",
    ),
    "brittle_whitespace": (
        "the whole completion is compared, white space included",
        "strip the completion, or read the answer from a marked place",
    ),
    "brittle_prose": (
        "the answer is looked for at a fixed place, such as the first line or characters",
        "read the answer from its mark (a box, a tag), wherever it stands after the thinking",
    ),
    "brittle_trailing_text": (
        "the pattern is anchored to the end of the completion",
        "let text follow the marked answer",
    ),
    "brittle_latex": (
        "answers are compared as strings",
        'compare values: verifier.name = "math"',
    ),
    "near_miss_accepted": (
        "the comparison is looser than equality (containment, rounding, a tolerance, lost signs)",
        "compare exact values; set a tolerance only where problems ask for one",
    ),
    "empty_accepted": ("no answer is taken for a right one", "score a completion without answer 0"),
    "echo_accepted": (
        "the gold or its words are looked for anywhere, and the question holds them",
        "read the answer from a marked place only",
    ),
    "keywords_accepted": (
        "words are counted in place of an answer being compared",
        "compare the answer with the gold; use words at most as a gate",
    ),
    "format_only_accepted": (
        "the format is rewarded by itself",
        "make the format a gate (compose with mode gate), never an addend that pays alone",
    ),
    "substring_reward": (
        "the gold is searched for as a substring of the completion",
        'extract the one asserted answer and compare it: verifier.name = "math"',
    ),
    "spray_accepted": (
        "any of several answers may match",
        "accept one asserted answer; several different ones assert nothing",
    ),
    "candidates_accepted": (
        "a list that contains the gold counts as the gold",
        "a list is right only when it is the set asked for",
    ),
    "last_answer_wins": (
        "the last of several different answers is taken",
        "refuse completions with several different marked answers, or watch the count of boxes",
    ),
    "injection_accepted": (
        "text of the completion reaches the judge as an instruction",
        "verify by rule where a gold exists; else quote the completion and ask for a fixed reply",
    ),
    "negation_accepted": (
        "words around the answer are ignored",
        "refuse an answer that is denied in its own sentence",
    ),
    "thinking_accepted": (
        "the thinking is searched for answers too",
        "read only what follows </think>",
    ),
    "unicode_accepted": (
        "digits are folded by looks (isdigit, NFKC) before they are read as numbers",
        "normalise only what keeps the value: an exponent is not a digit",
    ),
    "unevaluated_accepted": (
        "expressions are evaluated before they are compared",
        "refuse an expression that restates the question where the gold is a number",
    ),
    "giant_accepted": (
        "a failure on giant input is taken for a match",
        "bound sizes before anything is computed; what is beyond the bound is wrong",
    ),
    "code_accepted": ("code in the answer is taken for a match", "never evaluate a completion"),
    "runs_completion_as_code": (
        "the completion reaches eval, exec, parse_expr or a shell",
        "parse with a grammar; never evaluate text that a model wrote",
    ),
    "raises": (
        "the reward does not expect such a completion; a trainer scores it 0 or stops",
        "catch what it raises and decide: wrong for the completion's fault, broken for its own",
    ),
    "crashes": (
        "it ends the process (an exit call, native code, memory)",
        "run it in a worker: name it by a spec such as file.py:fn",
    ),
    "hangs": (
        "a computation or a pattern without bound, or a service that does not answer",
        "bound sizes first and add a deadline that works in threads (signals do not)",
    ),
    "nan_reward": (
        "a division by zero, or a mean of nothing; one NaN makes every weight NaN",
        "return a finite number for every completion",
    ),
    "infinite_reward": (
        "a logarithm or a ratio at zero",
        "return a finite number for every completion",
    ),
    "no_reward": (
        "the function returns None for a completion it does not judge; it leaves the group",
        "name a reward that judges every problem of the recipe",
    ),
    "wrong_type": (
        "it returns something else than a number",
        "return a float, or a list of floats",
    ),
    "wrong_length": (
        "it does not return one reward for each completion",
        "return one reward each, in order",
    ),
    "out_of_range": (
        "penalties or sums are not scaled",
        "keep rewards within [-1, 1], or they rule an objective that does not standardise them",
    ),
    "mutates_inputs": (
        "it writes into what it was handed; later rewards and the log see the altered data",
        "copy before changing",
    ),
    "non_deterministic": (
        "random numbers, time, or a sampled judge decide",
        "seed it, set the judge's temperature to 0, or remove the randomness",
    ),
    "depends_on_group": (
        "the reward of a completion depends on its neighbours (batch statistics, kept state)",
        "score each completion by itself; the objective compares within a group",
    ),
    "depends_on_thread": (
        "its deadline uses signals, which work in the main thread only",
        "name it by a spec (it then runs on the main thread of a worker), or use math",
    ),
    "keeps_memory": (
        "it keeps every completion it has seen (a cache without bound, a log in memory)",
        "bound the cache, or write the log to a file",
    ),
    "length_reward": (
        "it pays for length alone, right or wrong",
        "verify the answer; shape length only on top of a verified reward (cosine_length)",
    ),
    "length_shapes_reward": (
        "the reward of equal answers changes with length, which may be meant",
        "check that no length makes a wrong answer worth more than a right one",
    ),
    "constant_reward": (
        "every completion earns the same: all advantages are 0 and nothing is learned",
        "see the first example: what it extracts, what it compares",
    ),
    "blind_reward": (
        "it does not look at the answer",
        "add a verifier of the answer, and make this one a gate or a small part of it (compose)",
    ),
    "unusable_gold": (
        "the answer column is not what this verifier reads",
        "set problems.answer_column, or clean the rows named here",
    ),
    "format_mismatch": (
        "prompt and verifier disagree about where the answer stands",
        "ask for the verifier's format in problems.answer_format, or choose the verifier of yours",
    ),
}
"""Finding -> (cause, remedy)."""
