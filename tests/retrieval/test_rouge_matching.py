"""ROUGE-L matching, compared with rouge 1.0.1 and the slow reference."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.union_lcs import recall
from retrieval.matching import match, one, tables
from rouge import Rouge

REFERENCE = "continuous-eval"
THRESHOLDS = st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 0.6, 2 / 3, 0.7, 0.8, 1.0])
PIECES = st.sampled_from([*"abcdBé.,", ". ", " ", "  ", "\t", "\n", "\x1c", "\u00a0", "\u2003"])
TEXTS = st.lists(PIECES, max_size=24).map("".join)
QUERIES = st.lists(
    st.tuples(st.lists(TEXTS, max_size=4), st.lists(TEXTS, max_size=3)), min_size=1, max_size=4
)


def rouge_recall(retrieved: str, gold: str) -> float | None:
    """Compute recall with the package; None if it raises, which counts as no match."""
    try:
        return Rouge(metrics=["rouge-l"]).get_scores(retrieved, gold, ignore_empty=True)[0][
            "rouge-l"
        ]["r"]
    except ValueError:
        return None


def between_stops(text: str) -> list[list[str]]:
    return [" ".join(part.split()).split(" ") for part in text.split(".") if part]


@settings(max_examples=30)
@given(QUERIES, THRESHOLDS, st.sampled_from([1, 3]))
def test_the_dialect_equals_the_package(queries, threshold, workers):
    retrieved, gold = [q[0] for q in queries], [q[1] for q in queries]
    matched = tables(match(retrieved, gold, "rouge_chunk", REFERENCE, threshold, workers))
    for texts, golds, table in zip(retrieved, gold, matched, strict=True):
        distinct = list(dict.fromkeys(golds))
        recalls = [[rouge_recall(text, other) for other in distinct] for text in texts]
        assert table == [[r is not None and r >= threshold for r in row] for row in recalls]


WORDS = st.lists(st.sampled_from("abcde"), min_size=1, max_size=90)


@settings(max_examples=30)
@given(st.lists(WORDS, min_size=1, max_size=3), st.lists(WORDS, min_size=1, max_size=3), THRESHOLDS)
def test_rows_of_more_than_64_columns(retrieved, gold, threshold):
    texts = [" . ".join(map(" ".join, sentences)) for sentences in (retrieved, gold)]
    expected = recall(*map(between_stops, texts))
    assert expected == rouge_recall(*texts)
    for dialect, passes in ((REFERENCE, expected >= threshold), ("standard", expected > threshold)):
        assert one(*texts, "rouge_chunk", dialect, threshold=threshold) == passes


@pytest.mark.parametrize("size", [64, 65, 130, 700])
def test_many_words_in_one_sentence(size):
    """Thresholds just above and below the recall detect errors of backtracking."""
    rng = random.Random(size)
    words = [f"w{i}" for i in range(size // 3)]
    for _ in range(6):
        x, y = (rng.choices(words, k=size) for _ in range(2))
        texts = " ".join(y), " ".join(x)
        expected = recall([y], [x])
        m = len(set(x))
        assert not one(*texts, "rouge_chunk", threshold=expected)
        assert one(*texts, "rouge_chunk", threshold=expected - 0.5 / m)
        if size < 490:  # within the reference's recursion limit
            assert one(*texts, "rouge_chunk", REFERENCE, threshold=expected)
            assert not one(*texts, "rouge_chunk", REFERENCE, threshold=expected + 0.5 / m)


def test_thousands_of_words_in_one_sentence():
    """rouge 1.0.1 exceeds its recursion limit, which the reference counts as no match."""
    words = [f"w{i}" for i in range(5000)]
    whole, shifted = " ".join(words), " ".join(words[2500:] + words[:2500])
    thinned = " ".join([*words[::2], "other"])
    assert one(whole, whole, "rouge_chunk", threshold=0.99)
    for text in (shifted, thinned):
        assert one(text, whole, "rouge_chunk", threshold=0.4999)
        assert not one(text, whole, "rouge_chunk", threshold=0.5)
        assert not one(text, whole, "rouge_chunk", REFERENCE, threshold=0.4999)


def test_a_recall_at_the_threshold_matches_only_in_the_reference():
    gold, retrieved = "a b c d e f g h i j", "a b c d e f g"
    assert one(retrieved, gold, "rouge_chunk", REFERENCE)
    assert not one(retrieved, gold, "rouge_chunk")
    assert one("a b c d e f g h", gold, "rouge_chunk")


def test_the_default_ignores_case_and_punctuation():
    gold = "The Tower, built in 1889, is 330.5 m high."
    retrieved = "(the tower - built in 1889 - is 330.5 m high!)"
    assert one(retrieved, gold, "rouge_chunk")
    assert not one(retrieved, gold, "rouge_chunk", REFERENCE)
    assert not one("330 5 330", "330.5", "rouge_chunk", threshold=0.0)
    assert one("330 5", "330.5", "rouge_chunk", REFERENCE)


@pytest.mark.parametrize("blank", ["", ".", "...", "?!", " ", "\n", "—", "🙂 🙂"])
def test_texts_without_words_do_not_match(blank):
    for other in (blank, "a"):
        for pair in ((blank, other), (other, blank)):
            assert not one(*pair, "rouge_chunk", threshold=0.0)


def test_repeated_relevant_texts_count_once_and_empty_lists_remain():
    matched = match(
        [[], ["a b", "c"], ["a"], []], [["x"], ["c", "a b", "c"], [], []], "rouge_chunk"
    )
    assert tables(matched) == [[], [[False, True], [True, False]], [[]], []]
    assert matched.gold_repeats.tolist() == [0, 1, 0, 0]
    assert matched.gold_row.tolist() == [0, 1, 2]
    assert match([], [], "rouge_chunk").match.size == 0


def test_sentence_rules_match_sentences():
    matched = match(
        [["One two three. Four five six. Seven eight.", "Nine ten. One two three."]],
        [["One two three. Seven eight.", "Seven eight. Eleven twelve."]],
        "rouge_sentence",
    )
    assert tables(matched) == [
        [[True, False, False], [False] * 3, [False, True, False], [False] * 3, [True, False, False]]
    ]
    assert matched.gold_repeats.tolist() == [1]
    assert matched.gold_row is None
