import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judging import completion, judge, outcome, problem

from verigrad.verifiers import make_verifier
from verigrad.verifiers.languages import SCRIPTS, detect, share_of
from verigrad.verifiers.length import overlong_penalty, repeated_share

GOOD = "<think>\nlong work\n</think>\nThe answer is \\boxed{42}."


@pytest.mark.parametrize(
    ("text", "tail", "expected"),
    [
        (GOOD, "", "correct"),
        ("\n" + GOOD, "", "correct"),
        (GOOD.removeprefix("<think>\n"), "<|assistant|>\n<think>\n", "correct"),
        (GOOD.removeprefix("<think>\n"), "", "wrong"),
        ("The answer.", "<|assistant|>\n<think>\n\n</think>\n\n", "correct"),
        ("so it is</think>42", "<|assistant|><think>\nLet me see:", "correct"),
        (GOOD.removeprefix("<think>\n"), "Use <think>.<|end|><|assistant|>", "wrong"),
        ("<think></think>42", "", "wrong"),
        ("<think>a</think>", "", "wrong"),
        ("<think>a<think>b</think>c", "", "wrong"),
        ("<think>a</think>b</think>c", "", "wrong"),
        ("text <think>a</think>b", "", "wrong"),
        ("</think>a<think>b", "", "wrong"),
        ("", "", "wrong"),
    ],
)
def test_format_think_sees_the_prompts_tail(text, tail, expected):
    v = make_verifier("format")
    verdict = v.verify(problem(), [completion(text, prompt_tail=tail)])[0]
    assert str(verdict.outcome) == expected
    assert verdict.reward == float(expected == "correct")


@pytest.mark.parametrize(
    ("style", "text", "expected"),
    [
        ("think_answer", "<think>a</think>\n<answer>42</answer>", "correct"),
        ("think_answer", "<think>a</think>\n<answer>42</answer> bye", "wrong"),
        ("think_answer", "<think>a</think> so <answer>42</answer>", "wrong"),
        ("think_answer", "<think>a</think><answer> </answer>", "wrong"),
        ("answer", "so <answer>42</answer>", "correct"),
        ("answer", "<answer>42</answer><answer>43</answer>", "wrong"),
        ("boxed", "<think>\\boxed{1}</think>\\boxed{42}", "correct"),
        ("boxed", "\\boxed{1}\\boxed{42}", "wrong"),
        ("boxed", "\\boxed{}", "wrong"),
    ],
)
def test_format_styles(style, text, expected):
    assert outcome(make_verifier("format", options={"style": style}), text) == expected


def test_format_steps_give_partial_credit_and_keep_the_outcome():
    v = make_verifier("format", options={"credit": "steps"})
    verdict = judge(v, "<think>a</think>")
    assert str(verdict.outcome) == "wrong"
    assert verdict.reward == pytest.approx(3 / 4), (
        "both tags and the thinking hold, the answer does not"
    )


def test_overlong_is_dapos_equation_13():
    def slow(n: int) -> float:
        if n <= 20 - 4:
            return 0.0
        if n <= 20:
            return ((20 - 4) - n) / 4
        return -1.0

    for n in range(30):
        assert overlong_penalty(n, max_tokens=20, cache_tokens=4) == slow(n)
    v = make_verifier("overlong", options={"max_tokens": 20, "cache_tokens": 4})
    verdicts = v.verify(problem(), [completion("x", n) for n in (16, 18, 25)])
    assert [x.reward for x in verdicts] == [0.0, -0.5, -1.0]
    assert [str(x.outcome) for x in verdicts] == ["correct", "wrong", "wrong"]


def test_cosine_ends_where_the_paper_says():
    options = {"part": {"name": "number"}, "max_tokens": 100, "exceeded": -2.0}
    v = make_verifier("cosine_length", options=options)
    lengths = (0, 50, 99, 100)
    right = v.verify(problem(), [completion("\\boxed{42}", n) for n in lengths])
    wrong = v.verify(problem(), [completion("\\boxed{4}", n) for n in lengths])
    near_end = 0.5 + 0.25 * (1 + math.cos(math.pi * 0.99))
    assert [r.reward for r in right] == pytest.approx([1.0, 0.75, near_end, -2.0])
    assert [r.reward for r in wrong][:2] == pytest.approx([-1.0, -0.75])
    assert {str(r.outcome) for r in right} == {"correct"}
    assert right[0].parts == {"number": 1.0}


def test_cosine_leaves_broken_alone():
    v = make_verifier("cosine_length", options={"part": {"name": "number"}, "max_tokens": 9})
    assert judge(v, "\\boxed{1}", "no number").reward is None


def test_repetition_share_by_hand():
    # a b a b a b: bigrams ab ba ab ba ab, two distinct of five.
    assert repeated_share(["a", "b", "a", "b", "a", "b"], 2) == pytest.approx(3 / 5)
    assert repeated_share(["a", "b"], 3) == 0.0
    v = make_verifier("repetition", options={"n": 2, "penalty": 0.5})
    assert judge(v, "A b, a b a b").reward == pytest.approx(-0.3)


@settings(deadline=None)
@given(st.lists(st.integers(0, 3), max_size=40), st.integers(1, 5))
def test_repetition_share_is_a_share(items, n):
    share = repeated_share(items, n)
    assert 0 <= share < 1
    assert (share == 0) == (
        len({tuple(items[i : i + n]) for i in range(len(items) - n + 1)})
        >= max(0, len(items) - n + 1)
    )


def test_length_counts_what_it_says():
    words = make_verifier("length", options={"unit": "words", "max": 2, "part": "answer"})
    assert outcome(words, "<think>a b c d</think>one two") == "correct"
    assert outcome(words, "<think>a</think>one two three") == "wrong"
    tokens = make_verifier("length", options={"min": 2})
    verdicts = tokens.verify(problem(), [completion("x", 1), completion("x", 2)])
    assert [str(v.outcome) for v in verdicts] == ["wrong", "correct"]


SENTENCES = {
    "en": "We need to find the number of apples that are left in the basket.",
    "es": "El número de manzanas que quedan en la cesta es igual a cinco.",
    "fr": "Le nombre de pommes qui restent dans le panier est de cinq.",
    "de": "Die Anzahl der Äpfel, die im Korb übrig sind, ist fünf.",
    "it": "Il numero di mele che sono rimaste nel cesto è cinque.",
    "pt": "O número de maçãs que ficaram na cesta é cinco, mas não sei.",
    "pl": "Liczba jabłek, które zostały w koszyku, jest równa pięć i nie więcej.",
    "vi": "Số táo còn lại trong giỏ là năm và tôi không biết.",
    "fi": "Korissa on viisi omenaa, ja se on oikea vastaus.",
    "sw": "Idadi ya matunda katika kikapu ni tano na hiyo ni sawa.",
    "ru": "Количество яблок в корзине равно пяти, и это правильный ответ.",
    "uk": "Кількість яблук у кошику дорівнює п'яти, і це правильна відповідь.",
    "bg": "Броят на ябълките в кошницата е пет и това е верният отговор.",
    "zh": "篮子里还剩下五个苹果。",
    "ja": "かごの中にはりんごが五つ残っています。",
    "ko": "바구니에 사과가 다섯 개 남아 있습니다.",
    "ar": "عدد التفاحات في السلة هو خمسة وهذا هو الجواب",
    "fa": "تعداد سیب‌ها در سبد پنج است و این پاسخ را باید گفت",
    "ur": "ٹوکری میں پانچ سیب ہیں اور یہ درست جواب ہے",
    "hi": "टोकरी में पाँच सेब हैं और यह सही उत्तर है",
    "mr": "टोपलीत पाच सफरचंद आहेत आणि हे बरोबर उत्तर आहे",
    "ne": "टोकरीमा पाँच स्याउ छन् र यो सही उत्तर हो",
    "th": "มีแอปเปิ้ลห้าลูกในตะกร้า",
    "bn": "ঝুড়িতে পাঁচটি আপেল আছে",
    "ta": "கூடையில் ஐந்து ஆப்பிள்கள் உள்ளன",
    "el": "Υπάρχουν πέντε μήλα στο καλάθι",
    "he": "יש חמישה תפוחים בסל",
}


@pytest.mark.parametrize("code", SENTENCES)
def test_language_of_a_sentence(code):
    assert detect(SENTENCES[code]) == code
    assert share_of(SENTENCES[code], code)[0] == 1.0


def test_language_share_by_hand():
    # Let be is five apples: 5 words; two Han characters: 2 of 7 are not English. x is a variable.
    assert share_of("Let x be 3. 所以 x is five apples.", "en") == (pytest.approx(5 / 7), 7)
    assert share_of("$\\frac{1}{2}$ `code here` \\alpha", "en") == (1.0, 0)
    mixed = "So we are done with the task. Wir haben die Äpfel und das ist der Korb."
    assert share_of(mixed, "en") == (pytest.approx(7 / 16), 16)


def test_language_verifier_rewards_the_share_of_the_thinking():
    v = make_verifier("language", options={"target": "en"})
    verdict = judge(v, "<think>this is all English 好</think>答案是四十二")
    assert verdict.reward == pytest.approx(4 / 5) and str(verdict.outcome) == "wrong"
    assert outcome(v, "<think>this is all English</think>答案") == "correct"
    assert outcome(v, "<think>12 + 3</think>15") == "unparsed"
    by_row = make_verifier("language", options={"target": "column:lang", "part": "all"})
    assert outcome(by_row, "答案是四十二", lang="zh") == "correct"
    assert outcome(by_row, "答案是四十二", lang="xx") == "broken"
    assert len(SCRIPTS) >= 40
