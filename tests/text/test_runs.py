"""Runs of texts: threads, stored runs, plans, and the reports that checks give."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import evalengine as ee

EVERY = ["ROUGE", "BLEU", "CorpusBLEU", "chrF++", "TER", "WER", "CER", "TokenF1", "ExactMatch"]


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    words = ["a", "b", "c", "d", "e", "f", "g", "the", "cat", "sat", "on", "mats"]
    return pl.DataFrame(
        {
            "datum_id": range(300),
            "text": [" ".join(words[(i * k) % 12] for k in range(i % 17)) for i in range(300)],
            "reference": [
                [" ".join(words[(i + k) % 12] for k in range(j + i % 13)) for j in range(1 + i % 3)]
                for i in range(300)
            ],
        }
    )


def test_threads_change_nothing(table: pl.DataFrame) -> None:
    one, several = (ee.score(table, metrics=EVERY, threads=n) for n in (1, 3))
    assert one.metrics.equals(several.metrics)
    assert one.per_datum.equals(several.per_datum)
    assert 0 < (one.value("ROUGE1") or 0) < 1


def test_kept_and_read_back(table: pl.DataFrame, tmp_path: Path) -> None:
    card = ee.score(table, dialect="valor")
    card.save(tmp_path / "run")
    again = ee.load(tmp_path / "run")
    assert again.metrics.equals(card.metrics)
    assert again.to_valor() == card.to_valor()
    assert len(again.to_valor()) == 600  # ROUGE and BLEU of each text


def test_plans_and_checks_say_what_happens(table: pl.DataFrame) -> None:
    said = ee.explain(table, metrics=["ROUGE"], rouge_types=["rougeL"], use_stemmer=True)
    assert "tokens    ROUGE ascii, stemmed; BLEU words" in said
    assert "metrics   ROUGEL" in said
    report = ee.check(table.rename({"text": "answer"}))
    assert report.recognised == {"table": {"answer": "text"}}
    assert any("empty predictions" in note for note in report.notes)
    twice = pl.concat([table.head(1), table.head(1)])
    with pytest.raises(ee.InputError, match="standing in more than one row"):
        ee.check(twice)
