"""Options and columns that are not read, which are noted or refused."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from refusals import refused

import evalengine as ee

RUN = pl.DataFrame({"query_id": ["a", "b"], "doc_id": ["x", "y"], "score": [2.0, 1.0]})
QRELS = pl.DataFrame({"query_id": ["a", "b"], "doc_id": ["x", "z"], "relevance": [2, 1]})
TEXTS = pl.DataFrame({"retrieved": [["one text", "two"]], "relevant": [["one text"]]})


def notes(*tables: Any, **options: Any) -> list[str]:
    every = ee.score(*tables, **options).notes
    assert ee.check(*tables, **options).notes == list(every)
    return [note for note in every if "not read" in note]


@pytest.mark.parametrize(
    ("option", "reader", "other", "shown"),
    [
        ({"relevance_levels": [1, 2]}, "MAP", "nDCG", "relevance_levels=[1.0, 2.0]"),
        ({"gains": "exponential"}, "nDCG", "MAP", "gains='exponential'"),
        ({"ideal": "retrieved"}, "G", "MAP", "ideal='retrieved'"),
        ({"discount": "log2(rank)"}, "nDCG", "G", "discount='log2(rank)'"),
        ({"persistence": 0.5}, "RBP", "MAP", "persistence=0.5"),
    ],
)
def test_an_option_of_other_metrics(option: Any, reader: str, other: str, shown: str) -> None:
    note = f"{shown} is not read by any of the metrics ({other})."
    assert notes(RUN, QRELS, metrics=[other], **option) == [note]
    assert notes(RUN, QRELS, metrics=[other, reader], **option) == []


def test_options_that_no_default_metric_reads() -> None:
    (note,) = notes(RUN, QRELS, persistence=0.5)
    assert "persistence=0.5" in note
    assert note.split("(")[1].startswith("nDCG, MAP, MRR, P, Recall")
    assert notes(RUN, QRELS, dialect="ir-measures") == []


def test_an_option_of_ids_is_not_read_for_texts() -> None:
    given = {"match": "exact_chunk", "ignore_identical_ids": True}
    (note,) = notes(TEXTS, **given)
    assert "ignore_identical_ids=True" in note
    assert notes(RUN, QRELS, ignore_identical_ids=True) == []


@pytest.mark.parametrize("side", [0, 1])
def test_weights_of_queries_are_not_read(side: int) -> None:
    tables = [RUN, QRELS]
    tables[side] = tables[side].with_columns(weight=pl.lit(2.0))
    (note,) = notes(*tables)
    assert "column 'weight'" in note
    (note,) = notes(TEXTS.with_columns(weight=pl.lit(2.0)), match="exact_chunk")
    assert "table: column 'weight'" in note


@pytest.mark.parametrize("match", ["rouge_chunk", "rouge_sentence", "fuzzy", "levenshtein"])
def test_a_threshold_of_1(match: str) -> None:
    asked: dict[str, Any] = {"match": match, "metrics": ["PrecisionRecallF1"]}
    with refused("option_value", option="match_threshold", value=1):
        ee.score(TEXTS, match_threshold=1, **asked)
    reached = ee.score(TEXTS, match_threshold=1, dialect="continuous-eval", **asked)
    assert reached.value("Recall") == 1.0


def test_a_metric_with_another_comparison() -> None:
    asked: dict[str, Any] = {"dialect": "ragas", "match": "levenshtein", "match_threshold": 1}
    card = ee.score(TEXTS, metrics=["NonLLMContextPrecision"], **asked)
    assert card.value("NonLLMContextPrecision") == pytest.approx(1.0)
    with pytest.raises(ee.OptionError, match="none is above 1"):
        ee.score(TEXTS, metrics=["NonLLMContextRecall"], **asked)


@pytest.mark.parametrize("name", ["query-id", "q_id", "topic_id", "topic"])
def test_names_of_the_column_of_queries(name: str) -> None:
    queries = pl.DataFrame({name: ["a", "b"], "kind": ["k", "l"]})
    card = ee.score(RUN, QRELS, metrics=["MAP"], datums=queries, by="kind")
    assert card.value("MAP", slice="kind", slice_value="k") == 1.0
