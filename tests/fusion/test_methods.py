"""Fused scores against plain Python, hand-computed answers and ranx."""

from __future__ import annotations

import itertools
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import fusion as oracle
from reference_data import known_answers

import evalengine as ee
from evalengine.fusion import METHODS, NORMALISATIONS

ONE = {"q1": {"a": 3.0, "b": 2.0, "c": 1.0}}
OTHER = {"q1": {"b": 10.0, "d": 6.0}}


def scores(frame: pl.DataFrame) -> dict[str, dict[str, float]]:
    out: dict[str, dict[str, float]] = {}
    for query, document, score, _ in frame.rows():
        out.setdefault(query, {})[document] = score
    return out


HAND: dict[str, tuple[dict[str, Any], dict[str, float]]] = {
    # ranks of ONE: a 1, b 2, c 3; of OTHER: b 1, d 2; four candidates
    "rrf": ({"k": 1}, {"a": 1 / 2, "b": 1 / 3 + 1 / 2, "c": 1 / 4, "d": 1 / 3}),
    "isr": ({}, {"a": 1.0, "b": 2 * (1 / 4 + 1), "c": 1 / 9, "d": 1 / 4}),
    "rbc": ({"persistence": 0.5}, {"a": 0.5, "b": 0.75, "c": 0.125, "d": 0.25}),
    "borda": ({}, {"a": 4 + 1.5, "b": 3 + 4, "c": 2 + 1.5, "d": 1 + 3}),
    "condorcet": ({}, {"b": 4.0, "d": 3.0, "a": 2.0, "c": 1.0}),
    "combsum": ({}, {"a": 3.0, "b": 12.0, "c": 1.0, "d": 6.0}),
    "combmnz": ({}, {"a": 3.0, "b": 24.0, "c": 1.0, "d": 6.0}),
    "combanz": ({}, {"a": 3.0, "b": 6.0, "c": 1.0, "d": 6.0}),
    "combmed": ({}, {"a": 3.0, "b": 6.0, "c": 1.0, "d": 6.0}),
    "combmax": ({}, {"a": 3.0, "b": 10.0, "c": 1.0, "d": 6.0}),
    "combmin": ({}, {"a": 3.0, "b": 2.0, "c": 1.0, "d": 6.0}),
    "gmnz": ({"gamma": 2}, {"a": 3.0, "b": 48.0, "c": 1.0, "d": 6.0}),
    "wsum": ({"weights": [2, 1]}, {"a": 6.0, "b": 14.0, "c": 2.0, "d": 6.0}),
    "mixed": ({"weights": [2, 1]}, {"a": 6.0, "b": 14 * 2**0.5, "c": 2.0, "d": 6.0}),
    "log_isr": ({}, {"a": 0.0, "b": 1.25 * 0.6931471805599453, "c": 0.0, "d": 0.0}),
}


@pytest.mark.parametrize("method", METHODS)
def test_hand_computed(method: str) -> None:
    options, expected = HAND[method]
    got = ee.fuse([ONE, OTHER], method=method, **options)
    assert scores(got)["q1"] == pytest.approx(expected, rel=1e-14)
    ordered = sorted(sorted(expected, reverse=True), key=lambda d: -expected[d])
    assert got["doc_id"].to_list() == ordered
    assert got["rank"].to_list() == [1, 2, 3, 4]


NORMAL: dict[str, dict[str, float]] = {
    "min-max": {"a": 1.0, "b": 0.5 + 1.0, "c": 0.0, "d": 0.0},
    "max": {"a": 1.0, "b": 2 / 3 + 1.0, "c": 1 / 3, "d": 0.6},
    "sum": {"a": 2 / 3, "b": 1 / 3 + 1.0, "c": 0.0, "d": 0.0},
    "zmuv": {"a": 1.5**0.5, "b": 0.0 + 1.0, "c": -(1.5**0.5), "d": -1.0},
    "rank": {"a": 1.0, "b": 2 / 3 + 1.0, "c": 1 / 3, "d": 0.5},
    "borda": {"a": 1.0 + 3 / 8, "b": 0.75 + 1.0, "c": 0.5 + 3 / 8, "d": 1 / 4 + 0.75},
}


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
def test_normalisations_by_hand(normalisation: str) -> None:
    got = ee.fuse([ONE, OTHER], method="combsum", normalisation=normalisation)
    assert scores(got)["q1"] == pytest.approx(NORMAL[normalisation], abs=1e-14)


def test_lists_of_equal_scores_are_defined() -> None:
    level = {"q1": {"a": 0.1, "b": 0.1, "c": 0.1}}
    expected = {"min-max": 1.0, "max": 1.0, "sum": 1 / 3, "zmuv": 0.0}
    for normalisation, value in expected.items():
        got = ee.fuse([level, level], method="combmax", normalisation=normalisation)
        assert got["score"].to_list() == [value] * 3
        assert got["doc_id"].to_list() == ["c", "b", "a"]


document = st.sampled_from([f"d{i}" for i in range(7)])
score = st.integers(1, 6).map(float)
run = st.dictionaries(
    st.sampled_from(["q1", "q10", "q2"]), st.dictionaries(document, score, min_size=1), min_size=1
)


@given(
    st.lists(run, min_size=2, max_size=4),
    st.sampled_from([name for name in METHODS if name != "condorcet"]),
    st.sampled_from([None, *NORMALISATIONS]),
    st.lists(st.integers(1, 5).map(lambda n: n / 4), min_size=4, max_size=4),
)
def test_against_plain_python(
    runs: list[oracle.Run], method: str, normalisation: str | None, weights: list[float]
) -> None:
    fusion = METHODS[method]
    normalisation = normalisation if fusion.scores else None
    weights = weights[: len(runs)] if fusion.weighted else [1.0] * len(runs)
    got = ee.fuse(
        runs,
        method=method,
        normalisation=normalisation,
        weights=weights if fusion.weighted else None,
        gamma=0.3,
    )
    expected = oracle.fuse_runs(runs, method, normalisation, weights)
    result = scores(got)
    assert list(result) == list(expected)
    for query, documents in expected.items():
        assert result[query] == pytest.approx(documents, rel=1e-12, abs=1e-12)
        assert list(result[query]) == oracle.ranking(result[query])
        assert got.filter(query_id=query)["rank"].to_list() == list(range(1, len(documents) + 1))


@given(st.lists(run, min_size=2, max_size=4))
def test_condorcet_puts_no_document_before_one_it_loses_to(runs: list[oracle.Run]) -> None:
    for query, documents in scores(ee.fuse(runs, method="condorcet")).items():
        lists = [one.get(query, {}) for one in runs]
        assert list(documents.values()) == list(range(len(documents), 0, -1))
        for one, following in itertools.pairwise(documents):
            assert not oracle.loses(lists, one, following)


@given(run, st.lists(st.randoms(use_true_random=False), min_size=2, max_size=2))
def test_the_order_of_rows_does_not_matter(one: oracle.Run, orders: list[Any]) -> None:
    rows = [(q, d, s) for q, documents in one.items() for d, s in documents.items()]
    frames = []
    for order in orders:
        order.shuffle(rows)
        frames.append(pl.DataFrame(rows, ["query_id", "doc_id", "score"], orient="row"))
    assert ee.fuse(frames).equals(ee.fuse([one, one]))


VECTORS = known_answers("retrieval", "ranx_significance_fusion.json")
OPTIONS: dict[str, dict[str, Any]] = {
    "wsum": {"weights": [0.5, 0.3, 0.2]},
    "mixed": {"weights": [0.5, 0.3, 0.2]},
    "gmnz": {"gamma": 0.3},
}


def of_ranx(key: str) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]]:
    """Return our scores and ranx's for the queries of the vectors."""
    method, normalisation = key.split("|")
    fusion = next(one for one in METHODS.values() if method in (one.name, *one.aliases))
    got = ee.fuse(
        [VECTORS["runs"][name] for name in "ABC"],
        method=method,
        normalisation=normalisation if fusion.scores and normalisation != "None" else None,
        **OPTIONS.get(method, {}),
    )
    expected = VECTORS["fuse"][key]
    return {query: scores(got)[query] for query in expected}, expected


def by_rank(key: str) -> bool:
    return any(
        not one.scores and key.split("|")[0] in (one.name, *one.aliases) for one in METHODS.values()
    )


def quirk(key: str) -> bool:
    """Identify methods in which ranx has other rules.

    ranx reads ranks from dicts that its Borda normalisation fills in arbitrary order. Its Condorcet
    gives every tied vote to the second document.
    """
    return (by_rank(key) and key.endswith("|borda")) or key.startswith("condorcet")


@pytest.mark.parametrize("key", [key for key in VECTORS["fuse"] if not quirk(key)])
def test_ranx_agrees(key: str) -> None:
    ours, theirs = of_ranx(key)
    assert ours.keys() == theirs.keys()
    for query, documents in theirs.items():
        assert ours[query] == pytest.approx(documents, abs=1e-9)


@pytest.mark.parametrize("key", [key for key in VECTORS["fuse"] if quirk(key)])
def test_ranx_differs_by_its_known_rules(key: str) -> None:
    ours, theirs = of_ranx(key)
    assert any(ours[query] != pytest.approx(theirs[query], abs=1e-9) for query in theirs)
    assert all(ours[query].keys() == theirs[query].keys() for query in theirs)
