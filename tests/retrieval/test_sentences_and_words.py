"""Splitting of texts into sentences and words."""

from __future__ import annotations

import unicodedata

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalengine.geometry.columns import text_bytes
from evalengine.kernels.words import words_of_sentences
from evalengine.tasks.encoding import sentences_of


def split(text: str) -> list[str]:
    return sentences_of(pl.Series([text]))[0].to_list()


@pytest.mark.parametrize(
    "sentences",
    [
        ["One.", "Two!", "Three?", "Four"],
        ["Mr. Smith went to Washington.", "He arrived at 5 p.m. in the U.S. capital.", "OK?"],
        ["She works for Acme Inc. in Boston.", "Dr. J. R. Brown, e.g., does not."],
        ["It opened in the U.S.", "The second one did not."],
        ["Pi is 3.14159.", "Visit example.org or v2.0.1 today."],
        ['He said "stop."', "Then he left.", "(It was late.)", "So what?"],
        ["Wait ... what happened?!", "Nothing."],
        ["Well...", "That was it."],
        ["It was 1999. (then) nothing.", "It was 1999.", "Next."],
        ["no capital needed.", "here either."],
        ["今日は晴れ。", "明日は雨？", "はい"],
        ["“Yes.”", "She nodded."],
        ["A line\nbreak is a space.", "Next."],
    ],
)
def test_sentences(sentences):
    assert split(" ".join(sentences)) == sentences
    assert split("  " + "\n\n".join(sentences) + "\t") == sentences


@pytest.mark.parametrize("text", ["", " ", "\n\u3000"])
def test_a_blank_text_has_no_sentence(text):
    assert split(text) == []


@settings(max_examples=100)
@given(st.lists(st.text(alphabet="abA1 .!?\"'()\n\u00a0é。”", max_size=30), max_size=4))
def test_sentences_lose_only_whitespace(texts):
    sentences, start = sentences_of(pl.Series(texts, dtype=pl.String))
    assert start.size == len(texts) + 1
    for i, text in enumerate(texts):
        part = sentences[int(start[i]) : int(start[i + 1])].to_list()
        assert "".join("".join(part).split()) == "".join(text.split())
        assert all(sentence == sentence.strip() and sentence for sentence in part)
        at = 0
        for sentence in part:  # in order and unchanged
            at = text.index(sentence, at) + len(sentence)


def same_words(a: str, b: str) -> bool:
    first, second, start = words_of_sentences(*text_bytes(pl.Series([a, b])))
    cut = int(start[1])
    return all(np.array_equal(codes[:cut], codes[cut:]) for codes in (first, second))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b;c - d (e) [f]/g", "a b c d e f g"),
        ("“a” ‘b’ c… d—e", "a b c d e"),
        ("a\u00a0b\u3000c\u200bd", "a b c d"),
        ("snake_case x1", "snake_case x1"),
        ("'a' b'", "a b"),
        ("3. 1,", "3 1"),
        ("a.b 1.b a.1", "a b 1 b a 1"),
        ("中文a字", "中 文 a 字"),
        ("naïve café, Ελλάδα!", "naïve café Ελλάδα"),
        ("a → b × c ÷ d © 🙂 e", "a b c d e"),
    ],
)
def test_words(text, words):
    assert same_words(text, words)


@pytest.mark.parametrize(
    ("one", "two"),
    [("don't", "don t"), ("3.14", "3 14"), ("1,000", "1 000"), ("a", "A"), ("a b", "ab")],
)
def test_different_words(one, two):
    assert not same_words(one, two)


def test_few_and_many_texts_have_the_same_bytes() -> None:
    texts = ["", "İzmir", "a b", "日本", "\n"]
    few, start = text_bytes(pl.Series(texts))
    many, starts = text_bytes(pl.Series(texts * 9))
    assert few.tobytes() * 9 == many.tobytes()
    assert (few.dtype, start.dtype) == (many.dtype, starts.dtype)
    assert start.tolist() == starts[: start.size].tolist()
    assert text_bytes(pl.Series([""]))[0].size == 0


def test_full_width_letters_and_digits_are_parts_of_words():
    for character in map(chr, range(0xFF00, 0xFF66)):
        whole = unicodedata.category(character)[0] in "LN"
        assert same_words(f"a{character}b", "a b") != whole, character
