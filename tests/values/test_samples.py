"""Sample files of lm-eval 0.4.13 and inspect-ai 0.3.285, and variations of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from refusals import noted, refused

import evalengine as ee

FOLDER = Path(__file__).parent / "samples"
TINY, CHOICE = sorted(FOLDER.glob("samples_*.jsonl"), key=lambda one: "tinymc" in one.name)
LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}


def means(card: ee.Scorecard) -> dict[str, float]:
    rows = card.metrics.filter(pl.col("slice").is_null())
    return dict(rows.select("metric", "value").iter_rows())


def test_several_filters_are_several_metrics() -> None:
    rows = [json.loads(line) for line in TINY.read_text().splitlines()]
    card = ee.score(TINY)
    want: dict[str, list[float]] = {}
    for row in rows:
        want.setdefault(f"exact_match,{row['filter']}", []).append(row["exact_match"])
    assert means(card) == {name: sum(own) / len(own) for name, own in want.items()}
    assert card.metrics["support"].to_list() == [6, 6]
    noted(card, "samples_read", harness="lm-eval", datum="doc_id")


def test_one_filter_keeps_the_name_and_fields_of_documents_are_slices() -> None:
    card = ee.score(CHOICE, by="subject", intervals=95)
    assert set(means(card)) == {"acc", "acc_norm"}
    assert means(card)["acc_norm"] == pytest.approx(1 / 6)  # as lm-eval reports
    assert set(card.metrics["slice_value"].drop_nulls()) == {"law", "maths"}


def test_files_of_several_tasks_number_documents_per_task() -> None:
    card = ee.score(str(FOLDER / "samples_*.jsonl"), by="task")
    assert card.read["datums"] == 12
    assert set(card.per_datum["datum_id"]) >= {"tiny/0", "tinymc/5"}
    assert set(means(card)) == {*means(ee.score(TINY)), "acc", "acc_norm"}


def test_fields_of_documents_do_not_decide_the_task() -> None:
    """Documents of GSM8K and others have the fields of texts or of classes."""
    doc = [
        {"question": "1 + 1?", "answer": "2", "label": 1},
        {"question": "?", "answer": "3", "label": 0},
    ]
    rows = pl.DataFrame(
        {
            "doc_id": [0, 1],
            "doc": doc,
            "target": ["2", "3"],
            "metrics": [["acc"]] * 2,
            "acc": [1.0, 0.0],
        }
    )
    assert means(ee.score(rows)) == {"acc": 0.5}


def test_metrics_that_are_not_numeric_are_named() -> None:
    rows = pl.DataFrame(
        {
            "doc_id": [0, 1],
            "metrics": [["acc", "ppl"]] * 2,
            "acc": [True, False],
            "ppl": [[1.0]] * 2,
        }
    )
    card = ee.score(rows)
    assert means(card) == {"acc": 0.5}
    noted(card, "samples_not_read", count=1)
    only = ee.score(rows, value_columns=["acc"])
    assert means(only) == {"acc": 0.5}


def test_scores_of_0_and_1_are_proportions() -> None:
    card = ee.score(CHOICE, intervals=95)
    assert card.metrics["trials"].to_list() == card.metrics["support"].to_list()
    table = pl.DataFrame(
        {
            "sample_id": ["a", "b", "c"],
            "epoch": [1, 1, 1],
            "score_x": ["C", "I", "C"],
            "score_y": [0.5, 0.0, 1.0],
        }
    )
    for name, trials in (("score_x", 3), ("score_y", None)):
        (row,) = ee.score(table, value_columns=[name], intervals=95).metrics.iter_rows(named=True)
        assert row["trials"] == trials
    assert ee.score(table.drop("score_y"), intervals=95).metrics["trials"].item() == 3
    both = ee.score(table, intervals=95)
    assert dict(both.metrics.select("metric", "trials").rows()) == {"score_x": 3, "score_y": None}
    noted(both, "values_of_0_and_1", metrics=["score_x"])


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_inspects_samples(ending: str) -> None:
    card = ee.score(FOLDER / f"inspect.{ending}")
    rows = pl.read_parquet(FOLDER / "inspect.parquet")
    score = rows.with_columns(
        pl.col("score_letters", "score_match").replace_strict(LETTERS, return_dtype=pl.Float64)
    )
    want = score.group_by("id").agg(pl.col("score_letters", "score_match", "score_length").mean())
    found = means(card)
    for name in ("score_letters", "score_match", "score_length"):
        assert found[name] == pytest.approx(want[name].mean())
    assert (found["score_multi.a"], found["score_multi.b"]) == (1.0, 0.5)
    assert card.read["datums"] == 6
    noted(card, "values_averaged", count=12)
    noted(card, "samples_read", harness="inspect", datum="id")


def test_the_sample_id_counts_without_an_id_and_words_are_numbers() -> None:
    table: dict[str, Any] = {
        "sample_id": ["a", "a", "b", "b"],
        "epoch": [1, 2, 1, 2],
        "score_x": ["C", "I", "yes", "odd"],
        "score_y": ["0.25", "0.75", "N", "P"],
    }
    card = ee.score(pl.DataFrame(table))
    assert means(card) == {"score_x": 0.75, "score_y": 0.375}
    assert means(ee.score(pl.DataFrame(table), value_columns=["score_y"])) == {"score_y": 0.375}


def test_samples_of_two_evaluations_are_refused() -> None:
    rows = pl.read_parquet(FOLDER / "inspect.parquet")
    both = pl.concat([rows, rows.with_columns(eval_id=pl.lit("other"))])
    with refused("repeated_values"):
        ee.score(both)
    assert ee.score(both, where="eval_id = 'other'").read["datums"] == 6


def test_other_tables_with_such_ids_are_not_changed() -> None:
    run = pl.DataFrame({"query_id": [1, 1], "doc_id": ["x", "y"], "score": [0.5, 0.25]})
    qrels = pl.DataFrame({"query_id": [1], "doc_id": ["x"], "relevance": [1]})
    assert ee.score(run, qrels).task == "retrieval"
    labels = pl.DataFrame({"sample_id": [1, 2], "actual": ["a", "b"], "predicted": ["a", "a"]})
    assert ee.score(labels).task == "classification"


def of_inspect(scores: list[str], epochs: int = 1) -> pl.DataFrame:
    n = len(scores)
    return pl.DataFrame(
        {
            "id": [str(i // epochs) for i in range(n)],
            "epoch": [i % epochs for i in range(n)],
            "sample_id": [str(i) for i in range(n)],
            "score_match": scores,
        }
    )


@pytest.mark.parametrize("other", ["error: timeout", "C", '{"a": 1', "[1]"])
@pytest.mark.parametrize("at", [0, 2])
def test_other_texts_among_json_scores_are_missing(other: str, at: int) -> None:
    scores = ['{"a": 1}', '{"a": 0.5}']
    card = ee.score(of_inspect([*scores[:at], other, *scores[at:]]))
    assert means(card) == {"score_match.a": 0.75}
    noted(card, "values_missing", metrics={"score_match.a": 1})


def test_a_brace_among_letters_is_missing() -> None:
    card = ee.score(of_inspect(["{x", "C", "I"]))
    assert means(card) == {"score_match": 0.5}


def test_repetitions_without_a_value_are_counted() -> None:
    card = ee.score(of_inspect(["C", "X", "maybe", "I"], epochs=2))
    assert means(card) == {"score_match": 0.5}
    noted(card, "values_averaged", metrics=["score_match"], missing={"score_match": 2})


@pytest.mark.parametrize("metrics", [["acc"], ["acc", "exact_match"]])
def test_a_metric_without_a_column_is_named(metrics: list[str]) -> None:
    table = {"doc_id": [1], "doc": [{"a": 1}], "metrics": [metrics], "exact_match": [1.0]}
    if len(metrics) == 1:
        refused(lambda: ee.score(table), "column_missing", columns=["acc"])
    else:
        card = ee.score(table)
        assert means(card) == {"exact_match": 1.0}
        assert "samples_not_read" in [one.code for one in card.findings]
