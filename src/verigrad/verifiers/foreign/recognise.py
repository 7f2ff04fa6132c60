"""Recognise a reward by the names of its parameters, and plan the call: which parameter gets what.

The plan is a plain record: it crosses from the worker to the caller, is printed at start-up, and
says which columns a problem must bring.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from verigrad.errors import RecipeError
from verigrad.verifiers.foreign.spec import ForeignOptions, Framework, Spec

GOLD_NAMES = (
    "answer", "solution", "ground_truth", "gold", "gold_answer", "reference", "label", "target",
    "expected", "ref_answer", "correct_answer", "solutions", "answers", "labels", "targets",
    "golds", "truth",
)  # fmt: skip
"""Parameter names that get the gold answer where no column has that very name."""
TEXT_NAMES = (
    "completion", "response", "completions", "prediction", "pred", "output", "model_output", "text",
    "generation", "generated", "candidate", "llm_output", "model_answer", "hypothesis",
    "solution_str", "solution",
)  # fmt: skip
"""Parameter names of a plain function that get the completion's text; the first that is there."""
_QUESTION_NAMES = ("question", "prompt", "problem", "query")
_ROW_NAMES = ("info", "extra_info", "row", "metadata")
_V0_NAMES = {"parser", "state", "task"}
_TRL_OWN = (
    "prompts",
    "completions",
    "completion_ids",
    "trainer_state",
    "log_extra",
    "log_metric",
    "environments",
)
_VERL_OWN = ("data_source", "solution_str", "ground_truth", "extra_info")
_OPENRLHF_OWN = ("queries", "prompts", "labels")
_V0_OWN = ("completion", "answer", "prompt", "state", "info", "parser", "task", "completion_ids")
_READS_MESSAGES = re.compile(
    r"""\[\s*["'](?:content|role)["']\s*\]|\.get\(\s*["'](?:content|role)["']"""
)


@dataclass(frozen=True, slots=True)
class Plan:
    """How the reward is called.

    ``sources`` pairs each parameter with what it gets: ``text``, ``messages``, ``gold``,
    ``question``, ``row``, ``column:NAME`` or ``own`` (the framework's own). ``rest`` says that
    ``**kwargs`` takes every other column too. ``needed`` lists the parameters without a default.
    """

    framework: Framework
    name: str
    sources: tuple[tuple[str, str], ...] = ()
    needed: tuple[str, ...] = ()
    rest: bool = False
    completions: str = "text"
    why: str = ""
    is_async: bool = False

    def describe(self) -> str:
        """The resolved call, one line."""
        shown = [f"{p}={_SHOWN.get(s, s)}" for p, s in self.sources]
        shown += ["**every other column"] if self.rest else []
        kind = {"vf": "verifiers", "gym": "reasoning-gym"}.get(self.framework, self.framework)
        how = "async " if self.is_async else ""
        return f"{how}{self.name}({', '.join(shown)}) [{kind}: {self.why}]"


_SHOWN = {
    "own": "...",
    "text": "<text>",
    "messages": "<messages>",
    "gold": "<gold answer>",
    "row": "<row>",
    "question": "<question>",
}


def recognise(target: Any, spec: Spec, options: ForeignOptions) -> Plan:
    """Return the plan for calling ``target`` (a function, an instance, a rubric, a scorer).
    Raises RecipeError."""
    name = _name(target, spec)
    for framework, attributes in _OBJECTS:
        if any(hasattr(target, attribute) for attribute in attributes):
            return _plan_object(target, framework, name, attributes)
    if not callable(target):
        raise RecipeError(
            f"verifier.name = {spec.text!r}: {name} is a {type(target).__name__}, not a function, "
            f"a class, a rubric or a verifier."
        )
    parameters = _parameters(target, spec)
    framework, why = _framework(target, parameters, spec)
    if framework == "plain":
        return _plan_plain(name, parameters, spec, options, why, is_async=_is_async(target))
    own = {"trl": _TRL_OWN, "verl": _VERL_OWN, "openrlhf": _OPENRLHF_OWN, "vf": _V0_OWN}[framework]
    form, form_why = _completion_form(target, framework, options)
    sources: list[tuple[str, str]] = []
    needed: list[str] = []
    for p in _named(parameters):
        if p.name in options.arguments:
            continue
        if p.name in own:
            sources.append((p.name, form if p.name in ("completions", "completion") else "own"))
            continue
        source = _column(p.name, options)
        if source == "gold" and framework in ("verl",) and p.default is not p.empty:
            continue  # verl passes its four arguments and the fixed ones, never a column
        if (
            framework in ("verl", "openrlhf")
            and p.default is not p.empty
            and p.name not in options.columns
        ):
            continue
        sources.append((p.name, source))
        if p.default is p.empty:
            needed.append(p.name)
    return Plan(
        framework, name, tuple(sources), tuple(needed), _takes_rest(parameters), form,
        "; ".join(w for w in (why, form_why) if w), _is_async(target),
    )  # fmt: skip


_OBJECTS: tuple[tuple[Framework, tuple[str, ...]], ...] = (
    ("verigrad", ("check_gold",)),
    ("gym", ("score_answer",)),
    ("vf", ("score_trace", "rubric", "reward_funcs", "funcs", "get_reward_funcs")),
)
"""Objects known by an attribute: a verifier of ours, a reasoning-gym dataset, a v0 environment
or rubric."""


def is_factory(target: Any) -> bool:
    """True for a class, and for a function that takes nothing a completion could arrive in."""
    if inspect.isclass(target):
        return True
    if not inspect.isroutine(target) or any(
        hasattr(target, a) for _, names in _OBJECTS for a in names
    ):
        return False
    try:
        parameters = inspect.signature(target).parameters
    except (TypeError, ValueError):
        return False
    names = set(parameters)
    return not names & {*TEXT_NAMES, "queries", "trace"} and not _two_unknown(parameters)


def _two_unknown(parameters: Mapping[str, inspect.Parameter]) -> bool:
    """Two or more bare positional parameters: somebody's reward with names we do not know, not a
    factory."""
    bare = [
        p for p in parameters.values() if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD
    ]
    return len(bare) >= 2


def _plan_object(target: Any, framework: Framework, name: str, attributes: tuple[str, ...]) -> Plan:
    has = next(a for a in attributes if hasattr(target, a))
    sources = {
        "verigrad": (("problem", "own"), ("completions", "own")),
        "gym": (("answer", "text"), ("entry", "row")),
        "vf": (("completion", "messages"), ("answer", "gold"), ("info", "row")),
    }[framework]
    return Plan(framework, name, sources, why=f"it has {has!r}")


def _framework(
    target: Any, parameters: Mapping[str, inspect.Parameter], spec: Spec
) -> tuple[Framework, str]:
    if spec.framework is not None:
        return spec.framework, f"the spec says {spec.framework}:"
    names = set(parameters)
    if "prompt_ids" in names:
        return "plain", "it takes 'prompt_ids' and one completion"
    for parameter, framework in (
        ("completions", "trl"),
        ("solution_str", "verl"),
        ("queries", "openrlhf"),
    ):
        if parameter in names:
            return framework, f"it takes {parameter!r}"  # pyright: ignore[reportReturnType]
    if "trace" in names:
        return "vf", "it takes 'trace'"
    if "completion" in names and (found := sorted(names & _V0_NAMES)):
        return "vf", f"it takes 'completion' and {found[0]!r}"
    return "plain", "by its parameter names"


def _plan_plain(
    name: str,
    parameters: Mapping[str, inspect.Parameter],
    spec: Spec,
    options: ForeignOptions,
    why: str,
    *,
    is_async: bool,
) -> Plan:
    named = [p for p in _named(parameters) if p.name not in options.arguments]
    names = [p.name for p in named]
    text = next((n for n in TEXT_NAMES if n in names), None)
    if text is None:
        raise RecipeError(
            f"verifier.name = {spec.text!r}: {name}({', '.join(names)}) can't be recognised: no "
            f"parameter is called "
            f"{', '.join(TEXT_NAMES[:4])} or the like. Rename it, for example to f(completion, "
            f"answer)."
        )
    sources: list[tuple[str, str]] = []
    for p in named:
        if p.name == text:
            sources.append((p.name, "messages" if options.completions == "messages" else "text"))
        elif p.name in options.columns:
            sources.append((p.name, _column(p.name, options)))
        elif p.name in _QUESTION_NAMES:
            sources.append((p.name, "question"))
        elif p.name in _ROW_NAMES:
            sources.append((p.name, "row"))
        elif p.name in GOLD_NAMES or p.default is p.empty:
            sources.append((p.name, _column(p.name, options)))
        else:
            sources.append((p.name, f"column?:{p.name}"))
    needed = tuple(p.name for p in named if p.default is p.empty)
    return Plan(
        "plain", name, tuple(sources), needed, _takes_rest(parameters), "text", why, is_async
    )


def _column(name: str, options: ForeignOptions) -> str:
    if name in options.columns:
        return f"column:{options.columns[name]}"
    return "gold" if name in GOLD_NAMES else f"column:{name}"


def _completion_form(target: Any, framework: Framework, options: ForeignOptions) -> tuple[str, str]:
    """text or messages, and why. TRL hands messages to a function when the prompts are chats."""
    if framework == "vf":
        return ("text", "asked for") if options.completions == "text" else ("messages", "")
    if framework != "trl":
        return "text", ""
    if options.completions != "auto":
        return options.completions, f"completions as {options.completions}, asked for"
    function = target if inspect.isroutine(target) else type(target).__call__
    hint = str(inspect.signature(target).parameters.get("completions", ""))
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        return "messages", "completions as messages, its source can't be read"
    if _READS_MESSAGES.search(source) or "dict" in hint or "list[list" in hint.lower():
        return "messages", "completions as messages: its source reads them"
    return "text", "completions as text: its source reads no message"


def _parameters(target: Any, spec: Spec) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(target).parameters
    except (TypeError, ValueError) as error:
        raise RecipeError(
            f"verifier.name = {spec.text!r}: its parameters can't be read: {error}."
        ) from error


def _named(parameters: Mapping[str, inspect.Parameter]) -> list[inspect.Parameter]:
    return [p for p in parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def _takes_rest(parameters: Mapping[str, inspect.Parameter]) -> bool:
    return any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _is_async(target: Any) -> bool:
    call = target if inspect.isroutine(target) else type(target).__call__
    return inspect.iscoroutinefunction(call)


def _name(target: Any, spec: Spec) -> str:
    return spec.name or getattr(target, "__name__", "") or type(target).__name__
