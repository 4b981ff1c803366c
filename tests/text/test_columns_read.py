"""Columns that metrics read, the task inferred from them, and notes about the others."""

from __future__ import annotations

import polars as pl
import pytest
from refusals import refused
from text.scoring import values

import evalengine as ee
from evalengine.schemas.errors import InputError

CONTEXTS = [["The cat sat."], ["Cows eat grass."], []]
ALONE = pl.DataFrame({"text": ["The cat sat.", "Dogs bark.", ""], "contexts": CONTEXTS})
UNREAD = ["FleschReadingEase", "RougeFaithfulness"]


def test_metrics_of_only_the_text_need_no_references():
    card = ee.score(ALONE, metrics=UNREAD)
    assert values(card, "RougeFaithfulness") == [1.0, 0.0, None]
    assert card.per_datum.filter(metric="RougeFaithfulness")["status"].to_list() == [
        "scored",
        "scored",
        "no_context",
    ]
    with_references = ALONE.with_columns(reference=pl.Series([["The cat sat."], [], None]))
    assert values(ee.score(with_references, metrics=UNREAD), "FleschReadingEase") == values(
        card, "FleschReadingEase"
    )
    with_one_that_reads = ee.score(with_references, metrics=[*UNREAD, "WER"], nulls="skip")
    assert values(with_one_that_reads, "RougeFaithfulness") == [1.0, None, None]


@pytest.mark.parametrize("names", ["DeterministicFaithfulness", "flesch"])
def test_groups_and_aliases_need_no_references(names):
    assert "empty reference" not in str(ee.score(ALONE, metrics=names).notes)


def test_metrics_that_read_references_require_them():
    with pytest.raises(InputError, match="'reference' is missing"):
        ee.score(ALONE, metrics=["FleschReadingEase", "WER"], task="text")
    with pytest.raises(InputError, match="'reference' is missing"):
        ee.score(ALONE, task="text")


@pytest.mark.parametrize("written", ["text", "answer", "response", "model_output"])
@pytest.mark.parametrize("expected", ["ground_truth", "expected", "target", "gold"])
def test_references_under_a_name_of_labels(written, expected):
    table = pl.DataFrame({written: ["the cat"], expected: ["a cat"]})
    assert ee.score(table, metrics="WER").value("WER") == 0.5
    assert ee.score(table).task == "text"


def test_metrics_decide_between_tasks_that_the_columns_fit():
    table = pl.DataFrame({"prediction": ["a", "b"], "target": ["a", "c"]})
    assert ee.score(table).task == "classification"
    assert ee.score(table, metrics="Accuracy").task == "classification"
    assert ee.score(table, metrics=["WER", "ROUGE"]).task == "text"
    with refused("unknown_name", value="WER"):
        ee.score(table, metrics=["WER", "Accuracy"])


def test_null_texts_are_refused_with_a_remedy():
    table = pl.DataFrame({"text": ["a", None], "reference": ["a", "b"]})
    with refused("null_values", side="table", column="text", count=1, rows=[1]):
        ee.score(table)
    labels = pl.DataFrame({"actual": ["a", None], "predicted": ["a", "b"]})
    with pytest.raises(InputError) as error:
        ee.score(labels)
    assert "nulls=" not in str(error.value)
