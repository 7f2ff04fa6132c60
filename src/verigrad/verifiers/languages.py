"""Which language a text is in, from its script and its function words. No model, no dependency.

Scripts decide between most languages; where languages share one (Latin, Cyrillic, Arabic,
Devanagari, Han) letters that only one of them uses and the most frequent function words decide.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

_RANGES: tuple[tuple[int, int, str], ...] = (
    (0x0041, 0x024F, "latin"), (0x0370, 0x03FF, "greek"), (0x0400, 0x052F, "cyrillic"),
    (0x0530, 0x058F, "armenian"), (0x0590, 0x05FF, "hebrew"), (0x0600, 0x077F, "arabic"),
    (0x0900, 0x097F, "devanagari"), (0x0980, 0x09FF, "bengali"), (0x0A00, 0x0A7F, "gurmukhi"),
    (0x0A80, 0x0AFF, "gujarati"), (0x0B80, 0x0BFF, "tamil"), (0x0C00, 0x0C7F, "telugu"),
    (0x0C80, 0x0CFF, "kannada"), (0x0D00, 0x0D7F, "malayalam"), (0x0E00, 0x0E7F, "thai"),
    (0x10A0, 0x10FF, "georgian"), (0x1100, 0x11FF, "hangul"), (0x1E00, 0x1EFF, "latin"),
    (0x3040, 0x30FF, "kana"), (0x3400, 0x4DBF, "han"), (0x4E00, 0x9FFF, "han"),
    (0xAC00, 0xD7AF, "hangul"), (0xFB50, 0xFDFF, "arabic"), (0x20000, 0x3134F, "han"),
)  # fmt: skip

_LATIN = "en es fr de it pt nl pl vi sw fi sv da tr id ro cs hu"
SCRIPTS: dict[str, tuple[str, ...]] = {
    "zh": ("han",), "ja": ("kana", "han"), "ko": ("hangul",), "el": ("greek",),
    "he": ("hebrew",), "hy": ("armenian",), "ka": ("georgian",), "th": ("thai",),
    "bn": ("bengali",), "pa": ("gurmukhi",), "gu": ("gujarati",), "ta": ("tamil",),
    "te": ("telugu",), "kn": ("kannada",), "ml": ("malayalam",), "ru": ("cyrillic",),
    "uk": ("cyrillic",), "bg": ("cyrillic",), "ar": ("arabic",), "fa": ("arabic",),
    "ur": ("arabic",), "hi": ("devanagari",), "mr": ("devanagari",), "ne": ("devanagari",),
    **dict.fromkeys(_LATIN.split(), ("latin",)),
}  # fmt: skip
"""Language (ISO 639-1) to the scripts it is written in."""

_FUNCTION_WORDS: dict[str, str] = {
    "en": "the of and to in is that it for was with as be this "
    "are have from on not which by we you at or an so",
    "es": "el la de que y en los las un una por con para "
    "es se del lo como más pero su al está son no",
    "fr": "le la les de des et en un une est que pour dans ce "
    "qui sur pas par plus avec au sont nous il elle du",
    "de": "der die das und in den von zu mit sich des auf für ist "
    "im dem nicht ein eine als auch es wir sind wird",
    "it": "il di che e la un per in è non sono una della con "
    "del gli le lo da alla si più anche come nel i",
    "pt": "o de que e do da em um para com não uma os no "
    "se na por mais as dos como mas ao é são você",
    "nl": "de het een en van ik te dat die in is niet zijn "
    "op aan met voor er maar om hem wordt ook deze",
    "pl": "i w na z do się nie to jest że o jak za od po "
    "co ale dla są przez tym który tak oraz jego",
    "vi": "và của là có không cho một các được trong những "
    "với người này để đã khi từ như ra tôi bạn đó",
    "sw": "na ya wa kwa ni katika la za kuwa hii hiyo ambayo "
    "cha kama yake lakini hivyo watu pia ili si vya",
    "fi": "ja on ei se että hän oli mutta ovat kun niin "
    "myös joka tai mitä sen ole jos kuin tämä voi",
    "sv": "och i att det som en på är av för med till den "
    "har inte om ett han men var jag sig från vi så",
    "da": "og i at det er en til på som med for af ikke der "
    "den har jeg et han de men vi om var fra blev",
    "tr": "ve bir bu da de için ile çok ne o daha var gibi "
    "olarak ama olan en kadar mi değil sonra her ben",
    "id": "yang dan di itu dengan untuk tidak ini dari dalam "
    "akan pada juga saya ke karena adalah bisa ada",
    "ro": "și în de la a cu nu o pe să este care un din "
    "mai ce pentru sunt ca dar sau se am fi după",
    "cs": "a se v na je to že s z do o i ve pro za ale jako "
    "jsem by tak co jsou od nebo který být při",
    "hu": "a az és hogy nem is egy van ez ezt meg csak de "
    "már még mint volt vagy kell lehet ha azt el",
    "ru": "и в не на что я с он как это по но из у за от то так для же вы бы все мы она быть был",
    "uk": "і в не на що я з він як це та але із у за від то так для ж ви б все ми вона бути є до",
    "bg": "и в не на че се с той като това по но от за да са е са ще който със до си го тя",
    "ar": "في من على أن إلى هذا التي الذي هذه عن مع ما هو هي لا كان بين كل ذلك بعد أو قد كما",
    "fa": "در به از که این را با است برای آن یک خود تا کرد بر هم نیز شده می های ما باید اما او",
    "ur": "کے میں کی ہے اور سے کا کو اس کہ نے پر یہ ہیں ایک بھی تھا جو کیا نہیں وہ تو لیے ہو گیا",
    "hi": "के में की है और से का को इस कि ने पर यह हैं एक भी था जो किया नहीं वह तो लिए हो गया",
    "mr": "आणि आहे या च्या ते हे तर की व होते नाही एक केले मध्ये आहेत साठी त्या हा ही पण जे मी",
    "ne": "र छ को मा का को लागि यो पनि भएको गर्न छन् गरेको तर हो एक थियो हुन्छ भने गर्ने बाट ले त्यो",
}

_ONLY: dict[str, str] = {
    "uk": "іїєґ",
    "ru": "ыэё",
    "bg": "ъ",
    "ur": "ٹڈڑںےہ",
    "fa": "پچژگ",
    "vi": "ăđơưạảấầẩậắặẹẻẽếềểễệỉịọỏốồổỗộớờởợụủứừửữựỳỵỷỹ",
    "de": "ß",
    "es": "ñ¿¡",
    "pl": "łżźćńśęą",
    "cs": "řěů",
    "hu": "őű",
    "ro": "țșă",
    "tr": "ığş",
    "da": "æø",
    "pt": "ãõ",
    "mr": "ळ",
}
"""Letters that, among languages of one script, point to this one; they count as half a function
word."""

_WORD = re.compile(
    r"[^\W\d_](?:[^\W\d_]|[\u0300-\u036f\u0591-\u05c7\u0610-\u065f\u0900-\u0e7f'’\u200c\u200d])*"
)
_NOT_PROSE = re.compile(
    r"```.*?(?:```|\Z)|`[^`]*`|\$\$.*?\$\$|\$[^$\n]*\$|\\\[.*?\\\]|\\\(.*?\\\)"
    r"|\\[A-Za-z]+|https?://\S+|</?\w+>",
    re.DOTALL,
)


@cache
def script_of(character: str) -> str:
    """Return the script of a letter, ``""`` for other characters and scripts that are not known
    here."""
    code = ord(character)
    return next((name for low, high, name in _RANGES if low <= code <= high), "")


def prose(text: str) -> str:
    """Return the text without code, formulas, LaTeX commands, addresses and tags."""
    return _NOT_PROSE.sub(" ", text)


def words(text: str) -> list[tuple[str, str]]:
    """Return (word, script) pairs; single Latin or Greek letters (variables) are left out.

    Han and kana are written without spaces: each character is a word. Thai runs count for one word
    in every four letters.
    """
    found: list[tuple[str, str]] = []
    for match in _WORD.finditer(text):
        for piece, script in _runs(match.group()):
            if script in ("han", "kana"):
                found += [(c, script) for c in piece]
            elif script == "thai":
                found += [(piece, script)] * (-(-len(piece) // 4))
            elif len(piece) > 1 or script not in ("latin", "greek"):
                found.append((piece.lower(), script))
    return found


def _runs(word: str) -> list[tuple[str, str]]:
    """Cut a word where its script changes; marks without a script stay with what they follow."""
    if word.isascii():
        return [(word, "latin")]
    runs: list[tuple[str, str]] = []
    for c in word:
        script = script_of(c)
        if runs and script in ("", runs[-1][1]):
            runs[-1] = (runs[-1][0] + c, runs[-1][1])
        elif script:
            runs.append((c, script))
    return runs


def detect(text: str) -> str | None:
    """Return the language (ISO 639-1) that most of the text is in, None when it has no words we
    know."""
    found = words(prose(text))
    counts = Counter(script for _, script in found)
    if not counts:
        return None
    if counts["kana"] > 0 and counts["kana"] * 5 >= counts["han"]:
        counts["kana"] += counts.pop("han", 0)
    script = counts.most_common(1)[0][0]
    candidates = [code for code, scripts in SCRIPTS.items() if script == scripts[0]]
    if len(candidates) <= 1:
        return candidates[0] if candidates else None
    scores = _scores([w for w, s in found if s == script], candidates)
    best = max(candidates, key=lambda code: scores[code])
    if scores[best] == 0:
        return {"latin": "en", "cyrillic": "ru", "arabic": "ar", "devanagari": "hi"}[script]
    return best


def _scores(found: list[str], candidates: list[str]) -> dict[str, float]:
    """Points for each candidate: one for a function word of its, half of one for a letter of
    its."""
    by_word, by_letter = _points()
    scores = dict.fromkeys(candidates, 0.0)
    for word in found:
        for code in by_word.get(word, ()):
            if code in scores:
                scores[code] += 1
        for letter in "" if word.isascii() else word:
            for code in by_letter.get(letter, ()):
                if code in scores:
                    scores[code] += 0.5
    return scores


@cache
def _points() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Which languages have a function word, and which have a letter of their own."""
    by_word: dict[str, list[str]] = {}
    by_letter: dict[str, list[str]] = {}
    for code, common in _FUNCTION_WORDS.items():
        for word in dict.fromkeys(common.split()):
            by_word.setdefault(word, []).append(code)
    for code, letters in _ONLY.items():
        for letter in letters:
            by_letter.setdefault(letter, []).append(code)
    return by_word, by_letter


def share_of(text: str, language: str) -> tuple[float, int]:
    """Return the share of the text's words that are in the language, and how many words there are.

    A word counts when it is in the language's script and its sentence is not clearly in another
    language of that script (at least three function words, and twice as many as of this one).
    Without words: 1.0.
    """
    scripts = SCRIPTS[language]
    right = total = 0
    for sentence in re.split(r"(?<=[.!?。！？।])\s*|\n+", prose(text)):
        found = words(sentence)
        total += len(found)
        if not _in_sibling(found, language):
            right += sum(script in scripts for _, script in found)
    return (right / total if total else 1.0), total


def _in_sibling(found: list[tuple[str, str]], language: str) -> bool:
    scripts = SCRIPTS[language]
    if language == "zh":
        return any(script == "kana" for _, script in found)
    siblings = [code for code, its in SCRIPTS.items() if its[0] == scripts[0]]
    if len(siblings) < 2 or len(found) < 4:
        return False
    scores = _scores([w for w, script in found if script in scripts], siblings)
    other = max(score for code, score in scores.items() if code != language)
    return other >= 3 and other >= 2 * scores[language]
