"""Comparison with pytrec_eval (trec_eval 9), for measures that trec_eval 10 did not change."""

from __future__ import annotations

import math
import random

import polars as pl
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st
from retrieval.listing import every_measure, lists_of, settings
from retrieval.test_trec_eval_files import GEOMETRIC, key_of

import evalengine as ee

CUTS = (1, 3, 5, 10)
AT = ",".join(map(str, CUTS))
MEASURES = {
    "map", "bpref", "recip_rank", "infAP", "Rprec", "Rprec_mult", "utility", "binG", "G", "ndcg",
    "ndcg_rel", "Rndcg", "set_P", "set_recall", "set_map", "set_F", "set_relative_P", "num_ret",
    "num_rel", "num_rel_ret", "num_nonrel_judged_ret",
    *(f"{name}.{AT}" for name in ("P", "recall", "ndcg_cut", "map_cut", "success", "relative_P")),
}  # fmt: skip
SCORED = MEASURES - {"Rprec_mult", "Rndcg"}  # Rprec_mult has several rows; Rndcg may be undefined
DOCUMENTS = [f"d{i}" for i in range(15)]
# Few distinct scores, exact in float32, so that ids decide ties
RUN = st.dictionaries(
    st.sampled_from(DOCUMENTS), st.integers(0, 9).map(float), min_size=1, max_size=15
)
QRELS = st.dictionaries(
    st.sampled_from(DOCUMENTS), st.sampled_from([0, 0, 1, 1, 2, 3]), min_size=1, max_size=15
)


def agree(run: dict, qrels: dict, level: int | None = None) -> None:
    peer = pytrec_eval.RelevanceEvaluator(qrels, MEASURES, relevance_level=level or 1)
    theirs = peer.evaluate(run)
    chosen = settings("trec_eval", k=CUTS, relevance_levels=level and (float(level),))
    values = every_measure(lists_of(run, qrels), chosen)
    by_level = None if level is None else f'"relevance_level": {float(level)}'
    compared = 0
    for i, query in enumerate(run):
        for name, value in theirs[query].items():
            if name in GEOMETRIC:
                continue
            metric, parameters, k = key_of(name)
            if by_level and (metric, parameters, k) not in values:
                start = "{" if parameters is None else f"{parameters[:-1]}, "
                parameters = f"{start}{by_level}}}"
            ours = values[metric, parameters, k][i]
            if math.isnan(value):  # Rndcg without a positive gain
                value = 0.0
            assert math.isclose(ours, value, rel_tol=1e-12, abs_tol=1e-12), (name, query)
            compared += 1
    assert compared >= 50 * len(run)


@limits(max_examples=30)
@given(st.lists(st.tuples(RUN, QRELS), min_size=1, max_size=3), st.sampled_from([None, 1, 2]))
def test_small_runs(queries: list, level: int | None) -> None:
    run = {f"q{i}": scores for i, (scores, _) in enumerate(queries)}
    qrels = {f"q{i}": judged for i, (_, judged) in enumerate(queries)}
    agree(run, qrels, level)


@pytest.mark.parametrize("length", [200, 3000])
def test_long_runs(length: int) -> None:
    """Sums over thousands of ranks have the same order of additions."""
    run = {"q": {f"d{i}": float((i * 7919) % 4001) for i in range(length)}}
    qrels = {"q": {f"d{i}": (i * 31) % 4 for i in range(0, 2 * length, 3)}}
    agree(run, qrels)


def shuffled(table: dict, value: str, dice: random.Random) -> pl.DataFrame:
    rows = [(query, doc, number) for query, docs in table.items() for doc, number in docs.items()]
    dice.shuffle(rows)
    return pl.DataFrame(rows, ["query_id", "doc_id", value], orient="row")


@limits(max_examples=12)
@given(st.lists(st.tuples(RUN, QRELS), min_size=1, max_size=3), st.randoms())
def test_shuffled_tables_scored(queries: list, dice: random.Random) -> None:
    """``score`` on shuffled tables gives the values of pytrec_eval."""
    run = {f"q{i}": scores for i, (scores, _) in enumerate(queries)}
    qrels = {f"q{i}": judged for i, (_, judged) in enumerate(queries)}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, SCORED).evaluate(run)
    tables = shuffled(run, "score", dice), shuffled(qrels, "relevance", dice)
    keys = {key_of(name) for row in theirs.values() for name in row if name not in GEOMETRIC}
    names = sorted(metric if k is None else f"{metric}@{k}" for metric, _, k in keys)
    card = ee.score(*tables, dialect="trec_eval", metrics=names)
    rows = card.per_datum.select("datum_id", "metric", "k", "value").rows()
    values = {(query, metric, k): value for query, metric, k, value in rows}
    compared = 0
    for query, row in theirs.items():
        for name, value in row.items():
            metric, _, k = key_of(name)
            ours = values[query, metric, k]
            assert math.isclose(ours, value, rel_tol=1e-12, abs_tol=1e-12), (name, query)
            compared += 1
    assert compared >= 20 * len(run)
