"""Extreme relevance and cut-offs, which are computed or refused."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import refused

import evalengine as ee

RUN = {"a": {"x": 2.0, "y": 1.0}, "b": {"x": 1.0}}


def qrels(highest: float) -> pl.DataFrame:
    rows = [("a", "x", highest - 1), ("a", "y", highest), ("b", "x", 1.0)]
    return pl.DataFrame(rows, ["query_id", "doc_id", "relevance"], orient="row")


@pytest.mark.parametrize("highest", [2.0, 1023.0, 1024.0, 5000.0])
def test_err_of_any_relevance(highest: float) -> None:
    card = ee.score(RUN, qrels(highest), metrics=["ERR"])
    none = 2.0**-highest if highest < 1000 else 0.0
    first, second = 0.5 - none, 1.0 - none
    row = card.per_datum.filter((pl.col("datum_id") == "a") & pl.col("k").is_null())
    assert row["value"].item() == pytest.approx(first + (1 - first) * second / 2, rel=1e-12)


@pytest.mark.parametrize("call", [ee.score, ee.check])
@pytest.mark.parametrize("metric", ["nDCG", "G", "RnDCG"])
def test_exponential_gains_beyond_floats_are_refused(call: Any, metric: str) -> None:
    options = {"metrics": [metric], "gains": "exponential"}
    call(RUN, qrels(1000.0), **options)
    with refused("too_high", column="relevance", count=1, highest=1024.0):
        call(RUN, qrels(1024.0), **options)
    with refused("too_high", column="relevance", count=1, highest=2000.0):
        call(RUN, qrels(2000.0), **options)


def test_sums_beyond_floats_are_refused() -> None:
    with refused("too_high", column="relevance", count=1, highest=1.7e308):
        ee.score(RUN, qrels(1.7e308), metrics=["nDCG"])
    assert ee.score(RUN, qrels(1.7e308), metrics=["MAP"]).value("MAP") == 1.0


@pytest.mark.parametrize(
    ("metric", "deepest"), [("BPM", 999_999_999), ("NERR8", 999_999_999), ("SDCG", 3_000_000)]
)
def test_cut_offs_far_beyond_the_list(metric: str, deepest: int) -> None:
    """Memory does not grow with the cut-off; weights of three million ranks would be 24 MB.

    Time does not grow either if the probability of continuing is constant after the list, so
    these metrics are tested with a billion ranks.
    """
    run, ks = {"a": {"x": 2.0, "z": 1.0}}, [1, 2, 3, 10, deepest]
    names = [f"{metric}@{k}" for k in ks]
    ee.score(run, qrels(4.0), metrics=names[:-1])  # imports and loads kernels
    tracemalloc.start()
    card = ee.score(run, qrels(4.0), metrics=names)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 8 << 20
    gain = 0.75  # of the first document; the second has gain 0
    for k in ks:
        weights = {
            "BPM": lambda k: float(k),
            "NERR8": lambda k: 1 + (k - 1) * (1 - gain),
            "SDCG": lambda k: (1 / np.log2(np.arange(2, k + 2))).sum(),
        }[metric](k)
        assert card.value(metric, k=k) == pytest.approx(gain / weights, rel=1e-9)


def test_ndcg_at_relevant_documents_is_not_negative() -> None:
    """A negative gain before the relevant document outweighs its gain."""
    rows = [("a", "x", 1), ("a", "y", 2), ("b", "x", 2)]
    judged = pl.DataFrame(rows, ["query_id", "doc_id", "relevance"], orient="row")
    card = ee.score(RUN, judged, metrics=["nDCGRel"], gains={1: -3.0, 2: 1.0})
    assert card.per_datum.sort("datum_id")["value"].to_list() == [0.0, 1.0]
