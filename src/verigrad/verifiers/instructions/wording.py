"""Instructions about words, letters, cases and punctuation."""

from __future__ import annotations

import re
from collections.abc import Sequence

from verigrad.errors import nearest
from verigrad.verifiers.instructions.counting import compare, words
from verigrad.verifiers.languages import SCRIPTS, detect


def keywords_exist(text: str, *, keywords: Sequence[str]) -> str | None:
    """Every keyword occurs, in any case."""
    missing = [k for k in keywords if k.casefold() not in text.casefold()]
    return f"{missing[0]!r} does not occur" if missing else None


def keyword_frequency(
    text: str, *, keyword: str, frequency: int, relation: str = "at least"
) -> str | None:
    """The keyword occurs so often, in any case."""
    count = len(re.findall(re.escape(keyword), text, re.IGNORECASE))
    return compare(count, frequency, relation, f"occurrences of {keyword!r}")


def forbidden_words(text: str, *, forbidden_words: Sequence[str]) -> str | None:
    """None of these occurs as a word of its own."""
    found = [
        w
        for w in forbidden_words
        if re.search(rf"(?<!\w){re.escape(w)}(?!\w)", text, re.IGNORECASE)
    ]
    return f"{found[0]!r} occurs" if found else None


def letter_frequency(
    text: str, *, letter: str, let_frequency: int, let_relation: str = "at least"
) -> str | None:
    """The letter occurs so often, in any case."""
    count = text.casefold().count(letter.casefold())
    return compare(count, let_frequency, let_relation, f"letters {letter!r}")


def word_once(text: str, *, keyword: str) -> str | None:
    """The word occurs exactly once, as a word of its own."""
    count = len(re.findall(rf"(?<!\w){re.escape(keyword)}(?!\w)", text, re.IGNORECASE))
    return compare(count, 1, "exactly", f"occurrences of {keyword!r}")


def unique_words(text: str) -> str | None:
    """No word occurs twice."""
    seen: set[str] = set()
    for word in words(text):
        if word.casefold() in seen:
            return f"{word!r} occurs twice"
        seen.add(word.casefold())
    return None if seen else "no words"


def response_language(text: str, *, language: str) -> str | None:
    """The text is in this language (ISO 639-1)."""
    if language not in SCRIPTS:
        raise ValueError(f"unknown language {language!r}.{nearest(language, SCRIPTS)}")
    found = detect(text)
    return None if found == language else f"the language is {found}, not {language}"


def capital_words(
    text: str, *, capital_frequency: int, capital_relation: str = "at least"
) -> str | None:
    """So many words are all capitals."""
    count = sum(word.isupper() for word in words(text))
    return compare(count, capital_frequency, capital_relation, "words in capitals")


def english_capital(text: str) -> str | None:
    """English, in capitals only."""
    if not text.isupper():
        return "not all in capitals"
    return response_language(text.lower(), language="en")


def english_lowercase(text: str) -> str | None:
    """English, without a capital."""
    return response_language(text, language="en") if text.islower() else "not all in lower case"


def no_comma(text: str) -> str | None:
    """No comma."""
    return "a comma occurs" if "," in text else None


def no_exclamation(text: str) -> str | None:
    """No exclamation mark."""
    return "an exclamation mark occurs" if "!" in text else None


def forbidden_characters(text: str, *, characters: str) -> str | None:
    """None of these characters occurs."""
    found = [c for c in characters if c in text]
    return f"{found[0]!r} occurs" if found else None


def starts_with(text: str, *, start_phrase: str) -> str | None:
    """The text begins with this phrase, in any case."""
    right = text.strip().casefold().startswith(start_phrase.strip().casefold())
    return None if right else f"does not start with {start_phrase!r}"


def ends_with(text: str, *, end_phrase: str) -> str | None:
    """The text ends with this phrase, in any case; a closing quotation mark may follow."""
    right = text.strip().strip('"').casefold().endswith(end_phrase.strip().casefold())
    return None if right else f"does not end with {end_phrase!r}"


def first_word(text: str, *, first_word: str) -> str | None:
    """The first word is this one."""
    found = words(text)[:1]
    right = bool(found) and found[0].casefold() == first_word.casefold()
    return None if right else f"the first word is {''.join(found)!r}"


def last_word(text: str, *, last_word: str) -> str | None:
    """The last word is this one."""
    found = words(text)[-1:]
    right = bool(found) and found[0].casefold() == last_word.casefold()
    return None if right else f"the last word is {''.join(found)!r}"


def quoted(text: str) -> str | None:
    """The whole text stands in double quotation marks."""
    text = text.strip()
    return None if len(text) > 1 and text[0] == text[-1] == '"' else "not in quotation marks"
