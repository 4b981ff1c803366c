"""Comparison of every measure with the slow reference, on small random lists."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st
from oracles.retrieval import every_value
from retrieval.listing import every_measure, lists_of, ranking, settings, without_options

from evalengine.tasks.retrieval.ranked import Lists

RELEVANCES = st.sampled_from([-2.0, -1.0, 0.0, 0.0, 1.0, 1.0, 2.0, 3.0, 0.5])
DOCUMENTS = [f"d{i}" for i in range(9)]
RUN = st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(0, 3).map(float), max_size=9)
QRELS = st.dictionaries(st.sampled_from(DOCUMENTS), RELEVANCES, max_size=9)
QUERIES = st.lists(st.tuples(RUN, QRELS), max_size=4)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "k": st.sets(st.integers(0, 12), min_size=1, max_size=3).map(lambda s: tuple(sorted(s))),
        "relevance_levels": st.sampled_from([(1.0,), (0.5, 2.0), (4.0,)]),
        "gains": st.sampled_from(["exponential", {1.0: 3.5, 0.0: 0.5, 2.0: -1.0}, {3.0: 0.0}]),
        "discount": st.sampled_from(["log2(rank)", "log2(rank+1)"]),
        "ideal": st.sampled_from(["judged", "retrieved"]),
        "persistence": st.sampled_from([0.5, 0.95]),
    },
)
DIALECTS = st.sampled_from(["standard", "trec_eval", "continuous-eval", "remem"])
# Metrics of continuous-eval over whole sets -> metrics with the same values
ALSO_SETS = {"Precision": "SetPrecision", "Recall": "SetRecall", "F1": "SetF"}


@limits(max_examples=30)
@given(queries=QUERIES, options=OPTIONS, dialect=DIALECTS, data=st.data())
def test_every_measure(queries: list, options: dict, dialect: str, data: st.DataObject) -> None:
    run = {f"q{i}": scores for i, (scores, _) in enumerate(queries)}
    qrels = {f"q{i}": judged for i, (_, judged) in enumerate(queries)}
    repeats = [data.draw(st.integers(0, 2)) for _ in queries]
    chosen = settings(dialect, **options)
    lists = lists_of(run, qrels, repeats=repeats)
    values = {without_options(k): v for k, v in every_measure(lists, chosen).items()}
    highest = max((rel for judged in qrels.values() for rel in judged.values()), default=0.0)
    for i, query in enumerate(run):
        docs = [qrels[query].get(doc) for doc in ranking(run[query])]
        golds = list(qrels[query].values())
        wanted = every_value(docs, golds, chosen, max(highest, 0.0), repeats[i])
        if None in chosen.relevance_levels:
            for name, like in ALSO_SETS.items():
                wanted.setdefault((name, None, None), wanted[like, None, None])
        for key in values:
            if key[0] in ALSO_SETS and key not in wanted:
                continue
            ours = values[key][i]
            same = math.isclose(ours, wanted[key], rel_tol=1e-9, abs_tol=1e-9)
            assert same or (math.isnan(ours) and math.isnan(wanted[key])), (key, query)
        assert set(wanted) <= set(values)


def test_the_number_of_threads_does_not_matter() -> None:
    run = {f"q{q}": {f"d{d}": float((d * 7 + q) % 11) for d in range(20)} for q in range(40)}
    qrels = {f"q{q}": {f"d{d}": float((d + q) % 4) for d in range(0, 20, 3)} for q in range(40)}
    chosen = settings(k=(1, 5))
    one = every_measure(lists_of(run, qrels), chosen, threads=1)
    many = every_measure(lists_of(run, qrels), chosen, threads=3)
    assert list(map(str, many.items())) == list(map(str, one.items()))  # NaN is not equal to NaN
    assert one["P", None, 5] != [0.0] * 40


def test_a_relevant_text_counts_once() -> None:
    """Two retrieved texts that match the same relevant one give at most 1."""
    lists = Lists(
        retrieved=np.array([3]), start=np.array([0, 2]), rank=np.array([1, 2], np.int32),
        relevance=np.array([1.0, 1.0]), gain=np.array([1.0, 0.0]), gold_start=np.array([0, 1]),
        gold=np.array([1.0]), gold_rank=np.array([1], np.int32), repeats=np.array([0]),
    )  # fmt: skip
    values = every_measure(lists, settings(k=(2,)))
    names = [("nDCG", None, 2), ("MAP", None, 2), ("P", None, 2), ("Recall", None, 2)]
    assert [values[key] for key in (*names, ("bpref", None, None))] == [[1.0]] * 5
