"""Flesch's scores: continuous-eval's answers, NLTK's syllables, texts without words."""

from __future__ import annotations

import math
import string

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lazy_imports import LazyModule
from reference_data import known_answers
from text.scoring import score, values

from evalengine.kernels.language import words_and_syllables
from evalengine.tasks.text.pairs import codes_needed, regex_kinds

nltk_tokenize = LazyModule("nltk.tokenize")

NAMES = {
    "flesch_reading_ease": "FleschReadingEase",
    "flesch_kincaid_grade_level": "FleschKincaidGrade",
}


def counts(text: str) -> tuple[int, int]:
    data = np.frombuffer(text.encode(), np.uint8)
    words, syllables = words_and_syllables(
        data, np.array([0, data.size]), regex_kinds(codes_needed(data))
    )
    return int(words[0]), int(syllables[0])


def test_continuous_eval() -> None:
    cases = known_answers("retrieval", "continuous_eval_other.json")["text"]
    answers = [case["answer"] for case in cases]
    card = score(
        answers, [["x"]] * len(answers), dialect="continuous-eval", metrics=[*NAMES.values()]
    )
    for key, name in NAMES.items():
        result = values(card, name)
        for case, value in zip(cases, result, strict=True):
            if "i.e." in case["answer"]:  # there split after i.e. into three sentences
                continue
            assert value == pytest.approx(case["flesch"][key], rel=1e-12), case["answer"]
    assert len(answers) == 7


@given(st.text(string.ascii_letters + string.digits + "_", min_size=1, max_size=14))
@example("William")
@example("Shakespeare")
@example("a1e")
@example("ae_")
@example("_a_e")
@example("aa11")
def test_syllables_of_nltk(word: str) -> None:
    assert counts(word) == (1, len(nltk_tokenize.SyllableTokenizer().tokenize(word)))


@pytest.mark.parametrize(
    ("text", "words", "syllables"),
    [("", 0, 0), ("...", 0, 0), ("naïve café", 2, 4), ("don't", 2, 2), ("中文 text", 2, 2)],
)
def test_words_and_syllables(text: str, words: int, syllables: int) -> None:
    assert counts(text) == (words, syllables)


def test_texts_without_words() -> None:
    card = score(["...", "The cat sat."], [["x"], ["x"]], metrics=[*NAMES.values()])
    assert values(card, "FleschKincaidGrade")[0] is None
    assert math.isclose(values(card, "FleschReadingEase")[1] or 0, 206.835 - 3.045 - 84.6)
    row = card.metrics.row(0, named=True)
    assert (row["support"], row["scored"]) == (2, 1)
    empty = score([""], [["x"]], metrics=[*NAMES.values()])
    assert empty.metrics["reason"].str.contains("no word").all()
