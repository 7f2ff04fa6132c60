"""The table of instruction kinds: name to check. The first 25 are IFEval's (arXiv 2311.07911,
table 1)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from verigrad.errors import nearest
from verigrad.verifiers.instructions import layout, wording

Check = Callable[..., str | None]
"""Takes the text and the kind's settings; returns None when the instruction is followed, else
why not."""

IFEVAL: Mapping[str, Check] = {
    "keywords:existence": wording.keywords_exist,
    "keywords:frequency": wording.keyword_frequency,
    "keywords:forbidden_words": wording.forbidden_words,
    "keywords:letter_frequency": wording.letter_frequency,
    "language:response_language": wording.response_language,
    "length_constraints:number_sentences": layout.num_sentences,
    "length_constraints:number_paragraphs": layout.num_paragraphs,
    "length_constraints:number_words": layout.num_words,
    "length_constraints:nth_paragraph_first_word": layout.nth_paragraph_first_word,
    "detectable_content:number_placeholders": layout.placeholders,
    "detectable_content:postscript": layout.postscript,
    "detectable_format:number_bullet_lists": layout.bullet_list,
    "detectable_format:constrained_response": layout.constrained_response,
    "detectable_format:number_highlighted_sections": layout.highlights,
    "detectable_format:multiple_sections": layout.sections,
    "detectable_format:json_format": layout.json_format,
    "detectable_format:title": layout.title,
    "combination:two_responses": layout.two_responses,
    "combination:repeat_prompt": layout.repeat_prompt,
    "startend:end_checker": wording.ends_with,
    "startend:quotation": wording.quoted,
    "change_case:capital_word_frequency": wording.capital_words,
    "change_case:english_capital": wording.english_capital,
    "change_case:english_lowercase": wording.english_lowercase,
    "punctuation:no_comma": wording.no_comma,
}
MORE: Mapping[str, Check] = {
    "keywords:word_once": wording.word_once,
    "keywords:unique_words": wording.unique_words,
    "first_word:first_word_answer": wording.first_word,
    "last_word:last_word_answer": wording.last_word,
    "startend:start_checker": wording.starts_with,
    "length_constraints:number_characters": layout.num_characters,
    "length_constraints:number_lines": layout.num_lines,
    "detectable_format:number_numbered_lists": layout.numbered_list,
    "detectable_format:code_block": layout.code_block,
    "detectable_format:table": layout.table,
    "detectable_format:square_brackets": layout.square_brackets,
    "punctuation:no_exclamation": wording.no_exclamation,
    "punctuation:forbidden_characters": wording.forbidden_characters,
}
KINDS: Mapping[str, Check] = {**IFEVAL, **MORE}
"""Every kind a problem may ask for."""


def settings_of(kind: str) -> dict[str, inspect.Parameter]:
    """Return the settings a kind takes, by name."""
    parameters = inspect.signature(KINDS[kind]).parameters
    return {name: p for name, p in parameters.items() if p.kind is p.KEYWORD_ONLY}


def kind_fault(kind: Any, given: Mapping[str, Any]) -> str | None:
    """Return None when the kind exists and has the settings it needs, else what is wrong."""
    if kind not in KINDS:
        return f"unknown instruction {kind!r}.{nearest(str(kind), KINDS)}"
    known = settings_of(kind)
    for name in given:
        if name not in known:
            hint = nearest(name, known) if known else " It has none."
            return f"{kind} has no setting {name!r}.{hint}"
    missing = [n for n, p in known.items() if p.default is p.empty and n not in given]
    return f"{kind} needs the setting {missing[0]!r}" if missing else None
