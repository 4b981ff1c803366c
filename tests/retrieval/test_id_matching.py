"""Ranked lists from tables of ids, compared with an implementation by dictionaries."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st
from refusals import refused
from retrieval.listing import Scores, lists_of, settings

import evalengine as ee
from evalengine.executors import Threads
from evalengine.kernels import retrieval
from evalengine.tasks.retrieval import ranked
from evalengine.tasks.retrieval.ranked import Lists, Side, judged_side, meet_ids

DOCUMENTS = [f"d{i}" for i in range(12)]
RUN = st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(0, 3).map(float), min_size=1)
QRELS = st.dictionaries(
    st.sampled_from([*DOCUMENTS, "absent"]), st.sampled_from([-1.0, 0.0, 1.0, 2.0]), min_size=1
)
QUERIES = st.lists(st.tuples(RUN, QRELS), min_size=1, max_size=5)


def sides(run: Scores, qrels: Scores, shuffle: np.random.Generator) -> tuple[Side, Side]:
    """Convert both sides to rows in random order."""
    made = []
    for name, table in (("predictions", run), ("ground truths", qrels)):
        rows = [(q, doc, v) for q, query in enumerate(table) for doc, v in table[query].items()]
        shuffle.shuffle(rows)  # type: ignore[arg-type]
        query = np.array([row[0] for row in rows], np.int32)
        doc = pl.Series([row[1] for row in rows], dtype=pl.String)
        made.append(Side(name, query, doc, np.array([row[2] for row in rows], float)))
    return made[0], made[1]


def same(ours: Lists, theirs: Lists) -> None:
    for name in ("retrieved", "start", "rank", "relevance", "gain", "gold_start", "gold"):
        assert getattr(ours, name).tolist() == getattr(theirs, name).tolist(), name
    # Judgments of equal relevance may be in any order.
    for q in range(len(ours)):
        at = slice(ours.gold_start[q], ours.gold_start[q + 1])
        pairs = [sorted(zip(x.gold[at], x.gold_rank[at], strict=True)) for x in (ours, theirs)]
        assert pairs[0] == pairs[1]


@limits(max_examples=30)
@given(queries=QUERIES, seed=st.integers(0, 9), ascending=st.booleans(), judged=st.booleans())
def test_lists_equal_those_of_dictionaries(
    queries: list, seed: int, ascending: bool, judged: bool
) -> None:
    run = {f"q{i}": scores for i, (scores, _) in enumerate(queries)}
    qrels = {f"q{i}": judgments for i, (_, judgments) in enumerate(queries)}
    ours, theirs = sides(run, qrels, np.random.default_rng(seed))
    names = pl.Series(list(run))
    matched = meet_ids(ours, theirs, names, Threads(1))
    if judged:
        matched = meet_ids(judged_side(matched), theirs, names, Threads(1))
    lists = ranked.lists_of(matched, settings(), ascending=ascending)
    same(lists, lists_of(run, qrels, ascending=ascending, judged_only=judged))


@limits(max_examples=25)
@given(queries=QUERIES, seed=st.integers(0, 9))
def test_ranks_of_ties(queries: list, seed: int) -> None:
    run = {f"q{i}": scores for i, (scores, _) in enumerate(queries)}
    qrels = {f"q{i}": judgments for i, (_, judgments) in enumerate(queries)}
    ours, theirs = sides(run, qrels, np.random.default_rng(seed))
    matched = meet_ids(ours, theirs, pl.Series(list(run)), Threads(1))
    lists = ranked.lists_of(matched, settings(ties="average"))
    expected = lists_of(run, qrels, averaged=True)
    assert lists.ties is not None
    assert expected.ties is not None

    def places(lists: Lists) -> list[list[tuple[Any, ...]]]:
        assert lists.ties is not None
        return [
            sorted(
                zip(
                    lists.ties.first[lists.start[q] : lists.start[q + 1]].tolist(),
                    lists.ties.size[lists.start[q] : lists.start[q + 1]].tolist(),
                    lists.relevance[lists.start[q] : lists.start[q + 1]].tolist(),
                    strict=True,
                )
            )
            for q in range(len(lists))
        ]

    assert places(lists) == places(expected)


def test_ties_in_the_order_of_rows() -> None:
    run = pl.DataFrame({"query_id": [1] * 3, "doc_id": ["c", "a", "b"], "score": [1.0] * 3})
    truth = pl.DataFrame({"query_id": [1], "doc_id": ["a"]})
    assert ee.score(run, truth, metrics="MRR", ties="input").value("MRR") == 1 / 2
    assert ee.score(run, truth, metrics="MRR").value("MRR") == 1 / 3
    numbered = [frame.with_columns(doc_id=pl.col("doc_id").replace_strict(
        {"a": 9, "b": 10, "c": 100}, return_dtype=pl.Int64)) for frame in (run, truth)]  # fmt: skip
    assert ee.score(*numbered, metrics="MRR").value("MRR") == 1 / 3  # sorted as numbers: 100, 10, 9


@pytest.mark.parametrize("colliding", ["judged", "retrieved"])
def test_hash_collisions_do_not_change_results(
    monkeypatch: pytest.MonkeyPatch, colliding: str
) -> None:
    rng = np.random.default_rng(3)
    run = {f"q{q}": {f"d{i}": float(rng.integers(50)) for i in range(40)} for q in range(4)}
    first = 0 if colliding == "judged" else 1000
    qrels = {f"q{q}": {f"d{i + first}": float(i % 3) for i in range(0, 40, 3)} for q in range(4)}
    ours, theirs = sides(run, qrels, rng)
    calls = []

    def weak(ids: pl.Series) -> Any:
        calls.append(len(ids))
        return ids.str.len_chars().cast(pl.UInt64).to_numpy() % 2

    monkeypatch.setattr(ranked, "_hashed", weak)
    matched = meet_ids(ours, theirs, pl.Series(list(run)), Threads(2))
    assert calls
    same(ranked.lists_of(matched, settings()), lists_of(run, qrels))


def test_a_repeated_document_is_refused() -> None:
    run = pl.DataFrame({"query_id": ["a", "a"], "doc_id": ["x", "x"], "score": [1.0, 2.0]})
    truth = pl.DataFrame({"query_id": ["a"], "doc_id": ["x"]})
    with refused("repeated_values", side="predictions", column="doc_id", count=1, rows=[0, 1]):
        ee.score(run, truth)
    with refused("repeated_values", side="ground truths", column="doc_id", count=1, rows=[0, 1]):
        ee.score(run.head(1), pl.concat([truth, truth]))


def test_many_documents_in_many_threads() -> None:
    rng = np.random.default_rng(0)
    rows = 60_000
    run = pl.DataFrame(
        {
            "query_id": rng.integers(0, 300, rows),
            "doc_id": [f"doc{i}" for i in rng.permutation(rows)],
            "score": rng.integers(0, 500, rows) / 7,
        }
    )
    truth = (
        run.sample(3000, seed=1)
        .select("query_id", "doc_id")
        .with_columns(relevance=pl.Series(rng.integers(0, 4, 3000)))
    )
    cards = [ee.score(run, truth, threads=n, metrics=["nDCG", "MAP", "MRR"]) for n in (1, 2)]
    assert cards[0].metrics.equals(cards[1].metrics)
    placed = (
        run.sort(["query_id", "score", "doc_id"], descending=[False, True, True])
        .with_columns(rank=pl.int_range(1, pl.len() + 1).over("query_id"))
        .join(truth.filter(pl.col("relevance") > 0), on=["query_id", "doc_id"], how="inner")
    )
    judged = truth["query_id"].unique()
    first = placed.group_by("query_id").agg((1 / pl.col("rank").min()).alias("rank"))
    expected = first["rank"].sum() / run["query_id"].unique().is_in(judged.implode()).sum()
    assert cards[0].value("MRR") == pytest.approx(expected, abs=1e-12)


def test_rows_are_grouped_by_query_in_their_order() -> None:
    query = np.array([2, 0, 2, 1], np.int32)
    start, grouped = retrieval.by_query(query, np.arange(4, dtype=np.uint64), np.arange(4.0) / 2, 3)
    assert start.tolist() == [0, 1, 2, 4]
    assert grouped[:, retrieval.ROW].tolist() == [1, 3, 0, 2]
    assert retrieval.scores_of(grouped).tolist() == [0.5, 1.5, 0.0, 1.0]


def test_a_document_with_key_0() -> None:
    """The integer 0 has key 0, which also represents an empty slot of hash tables."""
    truth = pl.DataFrame({"query_id": [1], "doc_id": [0]})
    run = pl.DataFrame({"query_id": [1] * 3, "doc_id": [7, 0, 5], "score": [3.0, 2.0, 1.0]})
    assert ee.score(run, truth, metrics="MRR").value("MRR") == 1 / 2
    with refused("repeated_values", side="predictions", column="doc_id", count=1, rows=[1, 3]):
        ee.score(pl.concat([run, run.slice(1, 1)]), truth)
