"""Runs of texts: plans, and reports of checks."""

from __future__ import annotations

import polars as pl
from refusals import refused

import evalengine as ee


def test_plans_and_checks() -> None:
    table = pl.DataFrame(
        {"datum_id": range(3), "text": ["", "a b", "c"], "reference": [["a"], ["a b", "c"], ["d"]]}
    )
    plan = ee.explain(table, metrics=["ROUGE"], rouge_types=["rougeL"], use_stemmer=True)
    assert "ROUGE ascii, stemmed; BLEU" in plan
    assert "metrics   ROUGEL" in plan
    report = ee.check(table.rename({"text": "answer"}))
    assert report.recognised == {"table": {"answer": "text"}}
    assert any("1 empty prediction" in note for note in report.notes)
    twice = pl.concat([table.head(1), table.head(1)])
    with refused(
        "repeated_values",
        side="table",
        column="datum_id",
        count=2,
        rows=[0, 1],
        values=1,
        key=["datum_id"],
    ):
        ee.check(twice)
