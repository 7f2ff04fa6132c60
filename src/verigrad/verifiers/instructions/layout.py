"""Instructions about length, paragraphs, lists, sections and other forms."""

from __future__ import annotations

import re

from verigrad.verifiers.instructions.counting import compare, sentences, words
from verigrad.verifiers.jsonvalid import read_json

_ROW = r"[ \t]*\|.*\|[ \t]*"
_TABLE = re.compile(rf"(?m)^{_ROW}\n[ \t]*\|[ :|-]*-[ :|-]*\|[ \t]*\n((?:{_ROW}(?:\n|\Z))*)")
_CONSTRAINED = ("My answer is yes.", "My answer is no.", "My answer is maybe.")


def num_sentences(text: str, *, num_sentences: int, relation: str = "at least") -> str | None:
    """So many sentences."""
    return compare(len(sentences(text)), num_sentences, relation, "sentences")


def num_words(text: str, *, num_words: int, relation: str = "at least") -> str | None:
    """So many words."""
    return compare(len(words(text)), num_words, relation, "words")


def num_characters(text: str, *, num_characters: int, relation: str = "at most") -> str | None:
    """So many characters, blanks at the ends not counted."""
    return compare(len(text.strip()), num_characters, relation, "characters")


def num_lines(text: str, *, num_lines: int, relation: str = "exactly") -> str | None:
    """So many lines that are not blank."""
    count = sum(bool(line.strip()) for line in text.splitlines())
    return compare(count, num_lines, relation, "lines")


def num_paragraphs(text: str, *, num_paragraphs: int) -> str | None:
    """Exactly so many paragraphs, divided by ``***``; none between two dividers may be empty."""
    pieces = [p.strip() for p in re.split(r"\s?\*\*\*\s?", text)]
    while pieces and not pieces[0]:
        pieces.pop(0)
    while pieces and not pieces[-1]:
        pieces.pop()
    if not all(pieces):
        return "an empty paragraph"
    return compare(len(pieces), num_paragraphs, "exactly", "paragraphs")


def nth_paragraph_first_word(
    text: str, *, num_paragraphs: int, nth_paragraph: int, first_word: str
) -> str | None:
    """Exactly so many paragraphs, divided by blank lines, and the n-th begins with this word."""
    pieces = [p.strip() for p in re.split(r"\n\s*\n", text) if p.strip()]
    if fault := compare(len(pieces), num_paragraphs, "exactly", "paragraphs"):
        return fault
    if not 1 <= nth_paragraph <= len(pieces):
        return f"there is no paragraph {nth_paragraph}"
    found = words(pieces[nth_paragraph - 1])[:1]
    right = bool(found) and found[0].casefold() == first_word.strip(" .,!?\"'").casefold()
    return None if right else f"paragraph {nth_paragraph} starts with {''.join(found)!r}"


def placeholders(text: str, *, num_placeholders: int) -> str | None:
    """At least so many placeholders in square brackets."""
    return compare(
        len(re.findall(r"\[[^\[\]]+\]", text)), num_placeholders, "at least", "placeholders"
    )


def postscript(text: str, *, postscript_marker: str = "P.S.") -> str | None:
    """A postscript: a line that begins with the marker (its dots and blanks may vary) and says
    something."""
    letters = [re.escape(c) for c in postscript_marker if c.isalnum()]
    pattern = r"(?im)^[ \t*_]*" + r"\.?[ ]?".join(letters) + r"\.?[:*_ \t]*\S"
    return None if re.search(pattern, text) else f"no postscript {postscript_marker!r}"


def bullet_list(text: str, *, num_bullets: int) -> str | None:
    """Exactly so many bullet points (lines that begin with ``*``, ``-`` or ``•``)."""
    count = len(re.findall(r"(?m)^[ \t]*(?:[*-](?![*-])|•)[ \t]*\S", text))
    return compare(count, num_bullets, "exactly", "bullet points")


def numbered_list(text: str, *, num_items: int) -> str | None:
    """Exactly so many numbered items, counted up from 1."""
    numbers = [int(n) for n in re.findall(r"(?m)^[ \t]*(\d{1,4})[.)][ \t]+\S", text)]
    if numbers != list(range(1, len(numbers) + 1)):
        return f"the items are numbered {numbers}"
    return compare(len(numbers), num_items, "exactly", "numbered items")


def constrained_response(text: str) -> str | None:
    """One of the three answers that were offered: My answer is yes. / no. / maybe."""
    found = [option for option in _CONSTRAINED if option in text]
    return None if len(found) == 1 else f"{len(found)} of the offered answers"


def highlights(text: str, *, num_highlights: int) -> str | None:
    """At least so many parts highlighted with ``*one*`` or ``**two**`` asterisks."""
    bold = re.findall(r"\*\*([^\n*]*\S[^\n*]*)\*\*", text)
    rest = re.sub(r"\*\*[^\n*]*\*\*", " ", text)
    italic = re.findall(r"\*([^\n*]*[^\s*][^\n*]*)\*", rest)
    return compare(len(bold) + len(italic), num_highlights, "at least", "highlighted parts")


def sections(text: str, *, section_spliter: str = "Section", num_sections: int = 1) -> str | None:
    """At least so many sections, each headed by the word and its number (``Section 1``)."""
    found = re.findall(rf"(?m)^[ \t#*]*{re.escape(section_spliter.strip())}[ \t]+\d+", text)
    return compare(len(found), num_sections, "at least", "sections")


def json_format(text: str) -> str | None:
    """The whole text is JSON; a ``` block around it is allowed."""
    body = re.sub(r"^\s*```(?:json)?\s*\n?|\n?\s*```\s*$", "", text, flags=re.IGNORECASE)
    try:
        read_json(body.strip())
    except ValueError as error:
        return f"not JSON: {error}"
    return None


def title(text: str) -> str | None:
    """A title in double angular brackets: <<title>>."""
    return None if re.search(r"<<[^\n<>]*\S[^\n<>]*>>", text) else "no <<title>>"


def two_responses(text: str) -> str | None:
    """Two different responses, divided by six asterisks."""
    pieces = [p.strip() for p in text.split("******")]
    filled = [p for p in pieces if p]
    if len(filled) != 2 or not all(pieces[1:-1]):
        return f"{len(filled)} responses"
    return None if filled[0] != filled[1] else "both responses are the same"


def repeat_prompt(text: str, *, prompt_to_repeat: str) -> str | None:
    """The text first repeats the request, word for word, then answers it."""
    wanted = " ".join(prompt_to_repeat.casefold().split())
    said = " ".join(text.casefold().split())
    if not said.startswith(wanted):
        return "does not start with the request"
    return None if said != wanted else "nothing follows the request"


def code_block(text: str, *, language: str = "") -> str | None:
    """A ``` block, of this language where one is named."""
    found = re.findall(r"```([\w+-]*)[ \t]*\n.*?\S.*?\n[ \t]*```", text, re.DOTALL)
    if language:
        found = [f for f in found if f.casefold() == language.casefold()]
    return None if found else "no code block"


def table(text: str, *, num_rows: int = 1) -> str | None:
    """A Markdown table with at least so many rows below its head."""
    rows = [len(body.strip().splitlines()) for body in _TABLE.findall(text)]
    return compare(max(rows, default=0), num_rows, "at least", "table rows")


def square_brackets(text: str) -> str | None:
    """The whole text stands in square brackets."""
    text = text.strip()
    return None if text.startswith("[") and text.endswith("]") else "not in square brackets"
