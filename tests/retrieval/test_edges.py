"""Edge cases of ranked lists, with values calculated by hand."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import polars as pl
import pytest
from retrieval.listing import OF_CONTEXTS, every_measure, lists_of, settings

import evalengine as ee
from evalengine import OptionError
from evalengine.executors import Threads
from evalengine.metrics import all_metrics, get, measures
from evalengine.tallies.datums import Labels
from evalengine.tallies.stats import Stats, StatsView

COUNTS = ("NumRetrieved", "NumRelevant", "NumRelevantRetrieved", "Utility")


def test_no_queries() -> None:
    results = every_measure(lists_of({}, {}), settings())
    assert len(results) > 100
    assert all(values == [] for values in results.values())


def test_empty_lists() -> None:
    results = every_measure(lists_of({"q": {}}, {"q": {"a": 1.0, "b": 0.0}}), settings(k=(0, 5)))
    some = {key: values for key, values in results.items() if values != [0.0]}
    assert some.pop(("NumRelevant", None, None)) == [1.0]
    assert some.pop(("RBPResidual", None, None)) == [1.0]
    assert {key[0] for key in some} == {"Accuracy"}  # undefined without a relevant document
    assert all(math.isnan(value) for values in some.values() for value in values)


@pytest.mark.parametrize("judged", [{}, {"z": 0.0}, {"a": 0.0}, {"a": -1.0}])
def test_queries_without_relevant_documents(judged: dict) -> None:
    results = every_measure(lists_of({"q": {"a": 2.0, "b": 1.0}}, {"q": judged}), settings())
    other = {"Judged", "Unjudged", "RBPResidual", "NumNonrelevantJudgedRetrieved", "Accuracy"}
    for (metric, _, _), values in results.items():
        if metric not in (*other, *COUNTS):
            assert values == [0.0], metric
    assert results["Utility", None, None] == [-2.0]


def test_one_row() -> None:
    results = every_measure(lists_of({"q": {"a": 7.0}}, {"q": {"a": 1.0}}), settings(k=(1, 2)))
    for metric in ("nDCG", "MAP", "MRR", "Recall", "Success", "RelativePrecision"):
        assert results[metric, None, 1] == results[metric, None, 2] == [1.0], metric
    assert results["P", None, 1] == [1.0]
    assert results["P", None, 2] == [0.5]
    assert results["F1", None, 2] == [pytest.approx(2 / 3)]
    assert results["RBP", None, None] == [pytest.approx(0.1)]
    assert results["RBPResidual", None, None] == [pytest.approx(0.9)]
    assert results["ERR", '{"max_relevance": 1.0}', None] == [0.5]


def test_cut_off_0_gives_0() -> None:
    results = every_measure(lists_of({"q": {"a": 7.0}}, {"q": {"a": 1.0}}), settings(k=(0,)))
    at_0 = {key[0]: values for key, values in results.items() if key[2] == 0}
    assert math.isnan(at_0.pop("Accuracy")[0])
    assert all(values == [0.0] for values in at_0.values())
    assert {"P", "nDCG", "RetrievalRecall", "RetrievalNDCGAny"} <= set(at_0)


def test_ties_are_ordered_by_descending_id_or_averaged() -> None:
    run, qrels = {"q": dict.fromkeys("abcd", 1.0)}, {"q": {"a": 1.0, "d": 1.0}}
    plain = every_measure(lists_of(run, qrels), settings(k=(1,)))
    assert plain["P", None, 1] == [1.0]
    assert plain["MAP", None, None] == [0.75]
    averaged = every_measure(lists_of(run, qrels, averaged=True), settings(k=(1,)))
    assert averaged["P", None, 1] == [0.5]
    # the first relevant rank is 1, 2 or 3 with probability 1/2, 1/3, 1/6
    assert averaged["MRR", None, None] == [pytest.approx(1 / 2 + 1 / 6 + 1 / 18)]


def test_float_relevance_and_levels() -> None:
    run = {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}
    qrels = {"q": {"a": 0.25, "b": 1.5, "c": 2.0}}
    results = every_measure(lists_of(run, qrels), settings(k=(2,), relevance_levels=(0.5, 2.0)))
    assert results["P", '{"relevance_level": 0.5}', 2] == [0.5]
    assert results["P", '{"relevance_level": 2.0}', 2] == [0.0]
    dcg = 0.25 + 1.5 / math.log2(3) + 1.0
    ideal = 2.0 + 1.5 / math.log2(3) + 0.125
    assert results["nDCG", None, None] == [pytest.approx(dcg / ideal)]


def test_every_metric_reads_a_measure() -> None:
    needed = {need for metric in all_metrics("retrieval").values() for need in metric.needs}
    assert needed == set(measures("retrieval"))
    assert get("retrieval", "map").name == "MAP"
    assert get("retrieval", "recip_rank").name == "MRR"
    with pytest.raises(OptionError, match="nDCG"):
        get("retrieval", "nDCC")


def test_means_over_queries_at_each_metrics_own_cut_offs() -> None:
    run = {q: {"a": 3.0, "b": 2.0} for q in ("q1", "q2", "q3")}
    qrels = {"q1": {"a": 1.0}, "q2": {"b": 1.0}, "q3": {"z": 1.0}}
    chosen = settings(k=(1, 5))
    lists = lists_of(run, qrels)
    columns = {
        need: make(lists, chosen, Threads(1))
        for need, make in measures("retrieval").items()
        if need not in OF_CONTEXTS
    }
    stats = Stats(np.ones(3, bool), columns, (("scored",), np.zeros(3, np.int8)))
    view = StatsView(stats, Labels(pl.DataFrame(), np.empty(0, np.int32), ()))

    def rows(name: str, *cuts: int | None) -> dict[int | None, float]:
        own = msgspec.structs.replace(chosen, k=cuts)
        return {
            k: value
            for cells in get("retrieval", name).compute(view, own)
            for k, value in zip(cells.values["k"], cells.columns["value"][0, 0], strict=True)
        }

    assert rows("MRR", None) == {None: 0.5}
    assert rows("MRR", 1) == {1: pytest.approx(1 / 3)}
    assert rows("MRR", 1, 5, None) == {1: pytest.approx(1 / 3), 5: 0.5, None: 0.5}
    assert rows("GMAP", None) == {None: pytest.approx((1.0 * 0.5 * 1e-5) ** (1 / 3))}
    assert rows("NumRetrieved", 1, 5) == {None: 6.0}
    assert rows("P", 5) == {5: pytest.approx(2 / 15)}
    assert rows("BPM", 1) == {1: pytest.approx(1 / 3)}
    for name, metric in all_metrics("retrieval").items():
        if set(metric.needs) & OF_CONTEXTS:
            continue
        cut = () if "k" not in metric.params else (5,) if metric.bare == "cut" else (5, None)
        results = rows(name, *cut)
        assert tuple(results) == (cut or (None,)), name
        low, high = metric.range
        assert all(low - 1e-12 <= value <= high + 1e-12 for value in results.values()), name


@pytest.mark.parametrize("limit", [None, "500MB"])
def test_missing_queries_count_as_0_in_ir_measures(limit: str | None) -> None:
    """ir-measures uses ``Measure.DEFAULT``, also for counts of judgments."""
    run = pl.DataFrame({"query_id": ["a"], "doc_id": ["x"], "score": [1.0]})
    qrels = pl.DataFrame(
        {"query_id": ["a", "b", "b"], "doc_id": ["x", "x", "y"], "relevance": [1, 1, 2]}
    )
    results = {}
    for dialect in ("standard", "ir-measures"):
        card = ee.score(
            run, qrels, dialect=dialect, metrics=["NumRelevant", "RBPResidual", "MRR"],
            complete=True, memory_limit=limit,
        )  # fmt: skip
        missing = card.per_datum.filter(datum_id="b").select("metric", "value")
        results[dialect] = dict(missing.iter_rows())
        assert card.value("NumRelevant") == (3 if dialect == "standard" else 1)
    assert results == {
        "standard": {"NumRelevant": 2.0, "RBPResidual": 1.0, "MRR": 0.0},
        "ir-measures": {"NumRelevant": 0.0, "RBPResidual": 0.0, "MRR": 0.0},
    }
