"""Regressions found in a review."""

from __future__ import annotations

import polars as pl
import pytest
from refusals import noted, refused

import evalengine as ee

RUN = pl.DataFrame({"query_id": ["a"] * 2, "doc_id": ["x", "y"], "score": [2.0, 1.0]})
QRELS = pl.DataFrame({"query_id": ["a"], "doc_id": ["y"]})


def test_negative_ids_do_not_match_ids_beyond_signed_integers() -> None:
    run = RUN.with_columns(doc_id=pl.Series([-1, 5]))
    qrels = pl.DataFrame(
        {"query_id": ["a"] * 2, "doc_id": pl.Series([2**63 + 5, 5], dtype=pl.UInt64)}
    )
    with refused("ids_too_wide", lowest=-1):
        ee.score(run, qrels)
    table = pl.DataFrame({"retrieved": [[-1, 5]]}).with_columns(
        relevant=pl.Series([[2**63 + 5, 5]], dtype=pl.List(pl.UInt64))
    )
    with pytest.raises(ee.InputError, match="negative ids"):
        ee.score(table)


@pytest.mark.parametrize("match", [None, "exact_chunk"])
def test_queries_that_only_the_table_of_datums_has(match: str | None) -> None:
    table = pl.DataFrame(
        {"query_id": ["b", "a"], "retrieved": [["x", "y"], ["z"]], "relevant": [["y"], ["w"]]}
    )
    datums = pl.DataFrame({"query_id": ["a", "b", "c"], "kind": ["u", "v", "v"]})
    card = ee.score(table, datums=datums, by="kind", metrics="MRR", match=match)
    rows = card.metrics.select("slice_value", "value", "support").rows()
    assert rows == [(None, 0.25, 2), ("u", 0.0, 1), ("v", 0.5, 1)]
    single = card.per_datum.select("datum_id", "value", "status").rows()
    assert single == [("b", 0.5, "scored"), ("a", 0.0, "scored"), ("c", None, "not_judged")]


@pytest.mark.parametrize(
    ("metrics", "rows"),
    [
        (["nDCG@10", "MRR"], {("nDCG", 10), ("MRR", None)}),
        (["MRR@10"], {("MRR", 10)}),
        (["Recall@1", "PrecisionRecallF1"],
         {("Recall", 1), ("Precision", None), ("Recall", None), ("F1", None)}),
        (["GMAP"], {("MAP", None)}),
    ],
)  # fmt: skip
def test_per_query_rows_have_the_requested_cut_offs(metrics: list[str], rows: set) -> None:
    card = ee.score(RUN, QRELS, metrics=metrics)
    assert set(card.per_datum.select("metric", "k").rows()) == rows
    assert card.per_datum.height == len(rows)


@pytest.mark.parametrize("relevance", [[0.0, 2.0], [2.0, 0.0]])
def test_the_most_relevant_of_equal_texts_counts(relevance: list[float]) -> None:
    run = pl.DataFrame({"query_id": [1], "text": ["same words"], "rank": [1]})
    gold = pl.DataFrame({"query_id": [1, 1], "text": ["same words"] * 2, "relevance": relevance})
    assert ee.score(run, gold, metrics="MRR").value("MRR") == 1.0


def test_pooled_values_of_remem_round_as_python_does() -> None:
    table = pl.DataFrame(
        {"retrieved": [["x"]] + [["y"]] * 159, "relevant": [["x"]] * 160},
        schema={"retrieved": pl.List(pl.String), "relevant": pl.List(pl.String)},
    )
    card = ee.score(table, dialect="remem", metrics="RetrievalRecall@1")
    assert card.value("RetrievalRecall@1") == round(1 / 160, 4) == 0.0063


def test_exports_without_parameters_refuse_several_levels() -> None:
    card = ee.score(RUN, QRELS, metrics="MAP", relevance_levels=[0.5, 1])
    with pytest.raises(ee.ResultError, match="one relevance level"):
        card.to_continuous_eval()


def test_exports_skip_queries_that_do_not_count() -> None:
    qrels = pl.concat([QRELS, pl.DataFrame({"query_id": ["b"], "doc_id": ["y"]})])
    card = ee.score(RUN, qrels, metrics="MAP")
    assert card.to_continuous_eval() == [{"average_precision": 0.5}]


def test_texts_are_matched_if_a_rule_is_named() -> None:
    run = RUN.with_columns(text=pl.Series(["one", "two"]))
    qrels = QRELS.with_columns(doc_id=pl.lit("nowhere"), text=pl.lit("one"))
    assert ee.score(run, qrels, metrics="MRR").value("MRR") == 0.0
    assert ee.score(run, qrels, metrics="MRR", match="exact_chunk").value("MRR") == 1.0


def test_ragas_uses_references_as_a_set() -> None:
    table = pl.DataFrame({"retrieved": [[1, 2]], "relevant": [[2, 2, 3]]})
    (values,) = ee.score(table, dialect="ragas").to_ragas()
    assert values == {"id_based_context_precision": 0.5, "id_based_context_recall": 0.5}


def test_messages_about_slices_of_queries() -> None:
    run = pl.DataFrame({"query_id": [1, 1, 2], "doc_id": [1, 2, 1], "score": [2.0, 1.0, 3.0]})
    qrels = pl.DataFrame({"query_id": [1, 2], "doc_id": [1, 1], "kind": ["web", None]})
    card = ee.score(run, qrels, by="kind")
    assert "of 'kind'" in noted(card, "datums_without_slice", count=1).message
    varying = run.with_columns(kind=pl.Series(["a", "b", "c"]))
    with refused("varies_within_datum", column="kind", count=1, first=0):
        ee.score(varying, qrels.drop("kind"), by="kind")
