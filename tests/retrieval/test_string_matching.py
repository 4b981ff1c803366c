"""Matching by equality, partial ratio and Levenshtein distance, and estimated token counts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz import fuzz
from retrieval.matching import flattened, match, one, tables

from evalengine.tasks.retrieval.texts import token_counts

TEXTS = st.text(alphabet="ab é.", max_size=8)
QUERIES = st.lists(st.tuples(st.lists(TEXTS, max_size=4), st.lists(TEXTS, max_size=4)), max_size=4)


def levenshtein(a: str, b: str) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        above, row = row, [i]
        for j, y in enumerate(b, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (x != y)))
    return row[-1]


def similarity(a: str, b: str) -> float:
    return 1 - levenshtein(a, b) / max(len(a), len(b), 1)


def expected(queries, rule):
    return [
        [[rule(text, gold) for gold in dict.fromkeys(golds)] for text in texts]
        for texts, golds in queries
    ]


def run(queries, rule, *options, **more):
    return tables(match([q[0] for q in queries], [q[1] for q in queries], rule, *options, **more))


@given(QUERIES, st.sampled_from([1, 3]))
def test_exact(queries, workers):
    assert run(queries, "exact_chunk", workers=workers) == expected(queries, str.__eq__)


@given(QUERIES, st.sampled_from([0.0, 0.25, 0.5, 0.6, 0.75, 1.0]))
def test_levenshtein(queries, threshold):
    for dialect, rule in (
        ("standard", lambda a, b: similarity(a, b) > threshold),
        ("continuous-eval", lambda a, b: similarity(a, b) >= threshold),
    ):
        assert run(queries, "levenshtein", dialect, threshold) == expected(queries, rule)


@given(QUERIES, st.sampled_from([0.0, 0.5, 0.55, 0.7, 0.9, 1.0]))
def test_fuzzy(queries, threshold):
    def ratio(a: str, b: str) -> float:
        return fuzz.partial_ratio(a, b) / 100

    for dialect, rule in (
        ("standard", lambda a, b: a != "" != b and ratio(a, b) > threshold),
        ("continuous-eval", lambda a, b: a != "" != b and ratio(a, b) >= threshold),
    ):
        assert run(queries, "fuzzy", dialect, threshold) == expected(queries, rule)


def test_known_similarities():
    assert one("abcd", "abzz", "levenshtein", "continuous-eval")
    assert not one("abcd", "abzz", "levenshtein")
    assert one("", "", "levenshtein")
    assert one("the cat sat", "yesterday the cat sat on the mat", "fuzzy")
    assert one("yesterday the cat sat on the mat", "the cat sat", "fuzzy")
    assert not one("", "the cat sat", "fuzzy")
    assert not one("The cat", "the cat", "exact_chunk")


@pytest.mark.parametrize("size", [7, 99, 3000])
def test_a_levenshtein_similarity_at_the_threshold(size):
    for changed in {1, size // 3, size // 2}:
        sides = "a" * size, "b" * changed + "a" * (size - changed)
        threshold = 1 - changed / size
        assert one(*sides, "levenshtein", "continuous-eval", threshold=threshold)
        assert not one(*sides, "levenshtein", threshold=threshold)


def test_more_pairs_than_a_batch():
    texts = [f"{i:03d}" for i in range(300)]
    table = np.array(tables(match([texts], [texts], "levenshtein", threshold=0.99))[0])
    assert (table == np.eye(300, dtype=bool)).all()


@given(st.lists(st.lists(st.text(max_size=9), max_size=4), max_size=5))
def test_tokens_are_a_quarter_of_the_characters(lists):
    counts = token_counts(*flattened(lists))
    assert counts.tolist() == [int(len("\n".join(texts)) / 4.0) for texts in lists]
