"""Diagnosis names planted faults; ``benchmarks/planted_faults.py`` contains all of them."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from partitions.cases import in_buckets

import evalengine as ee
from evalengine.cli import cli

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
SOME = {
    ("detection", "one camera blurred"),
    ("detection", "scores of one label turned round"),
    ("detection", "faint: one truth in ten missing in one city"),
    ("classification", "one row in ten twice"),
    ("retrieval", "all scores turned round"),
    ("text", "one city's answers cut off"),
    ("segmentation", "two labels change places"),
}


@pytest.fixture
def planted(monkeypatch):
    monkeypatch.delitem(sys.modules, "planted_faults", raising=False)
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("planted_faults")


def test_planted_faults_are_named_first(planted, monkeypatch):
    assert len(planted.FAULTS) >= 40
    monkeypatch.setattr(
        planted, "FAULTS", [one for one in planted.FAULTS if (one[0], one[1]) in SOME]
    )
    places = {(task, name): at for task, name, at, _, _ in planted.measured()}
    assert places == dict.fromkeys(SOME, 1)


def test_tables_without_faults_have_no_findings(planted):
    """Tables without a fault name no label, no slice and no copies."""
    tables = planted.boxes(1000)
    findings = ee.diagnose(
        tables["predictions"], tables["ground_truths"], datums=tables["datums"]
    ).frame
    assert not findings["finding"].str.contains("^(label|datums with|[A-Z])").any()
    assert findings.schema == {
        "finding": pl.String, "share": pl.Float64, "n": pl.Int64, "more": pl.String
    }  # fmt: skip
    assert findings["share"].is_sorted(descending=True)


def test_without_a_pattern_single_datums_are_named():
    table = pl.DataFrame({"text": ["a b", "c d"], "reference": ["a b", "c e"]})
    findings = ee.diagnose(table).frame
    (only_finding,) = findings["finding"]
    assert re.findall(r"[\d.]+(?=[:,]|$)", only_finding) == ["1", "0.5", "0", "0.5"]
    assert findings["more"].unique().to_list() == ["errors"]
    numbers = pl.DataFrame({"prediction": [1.5, 2.0, 4.5], "target": [1.0, 2.0, 3.0]})
    assert ee.diagnose(numbers, task="regression").frame["share"].to_list() == [0.75, 0.25]


def test_command():
    tables = [f"examples/classification/{side}.parquet" for side in ("predictions", "groundtruths")]
    done = CliRunner().invoke(cli, ["diagnose", *tables, "--by", "source", "--top", "1"])
    assert done.exit_code == 0, done.output
    first = done.output.splitlines()[3]
    assert re.findall(r"'(\w+)'", first)[:2] == ["technical", "billing"]
    rows = CliRunner().invoke(cli, ["diagnose", *tables, "--format", "csv"])
    assert rows.output.startswith("finding,share,n,more")


def test_long_findings_are_wrapped():
    percent = pl.DataFrame({"actual": [0, 1] * 20, "score": np.linspace(5, 95, 40)})
    result = ee.diagnose(percent)
    table = repr(result).partition("note:")[0].splitlines()
    assert max(map(len, table)) < 140 < max(map(len, result.frame["finding"]))


def test_skipped_searches_are_noted():
    """Scores that are no probabilities judge no label; the other searches still run."""
    table = pl.DataFrame(
        {
            "datum_id": [1, 1, 2, 2, 3, 3], "label_value": ["a", "b"] * 3,
            "score": [9.0, 1.0, 8.0, 3.0, 1.0, 7.0],
        }
    )  # fmt: skip
    truth = pl.DataFrame({"datum_id": [1, 2, 3], "label_value": ["a", "b", "b"]})
    result = ee.diagnose(table, truth, datums=pl.DataFrame({"datum_id": [1, 2, 3]}))
    likely, slices = result.notes
    assert "likely wrong" in likely
    assert slices.startswith("slices were not")
    assert f"note: {slices}"[:20] in repr(result)


def test_bounded_and_saved_runs(planted, tmp_path, monkeypatch):
    """They report the same as a run in memory, then what was not stored."""
    tables = planted.renamed(planted.boxes(3, 60), "predictions", planted.SWAP)
    for side, table in tables.items():
        table.write_parquet(tmp_path / f"{side}.parquet")
    predictions, truths, images = (str(tmp_path / f"{side}.parquet") for side in tables)
    whole = ee.diagnose(predictions, truths, datums=images)
    card = ee.score(
        predictions, truths, datums=images, metrics=["mAP", "ConfusionMatrix", "LabelErrors"]
    )
    card.save(tmp_path / "run")
    in_buckets(monkeypatch)
    bounded = ee.diagnose(
        predictions, truths, datums=images, memory_limit="1GB", scratch=str(tmp_path / "s")
    )
    saved = ee.diagnose(tmp_path / "run", datums=images)
    assert bounded.frame.equals(whole.frame)
    assert bounded.notes == whole.notes
    assert {"'bus'", "'car'"} <= set(re.findall(r"'\w+'", whole.frame["finding"][0]))
    assert saved.frame["finding"][0] == whole.frame["finding"][0]
    notes = "; ".join(saved.notes)
    assert "metric Outcomes" in notes
    assert "keeps no tables" in notes


@pytest.fixture
def unseen(monkeypatch, planted):
    monkeypatch.delitem(sys.modules, "unseen_faults", raising=False)
    return importlib.import_module("unseen_faults")


@pytest.mark.parametrize(
    "name",
    [
        "one annotator draws a quarter too large",
        "scores halved in one city",
        "judgments of another collection in half",
    ],
)
def test_faults_of_all_datums_are_named(name, planted, unseen, monkeypatch):
    """Boxes that fit worse, scores on another scale, judgments of other documents."""
    one = next(fault for fault in unseen.UNSEEN if fault[1] == name)
    planted.FAULTS.clear()
    planted.plant(one[0], name, 505, *one[2:4], *one[4])
    ((_, _, at, message, _),) = planted.measured()
    assert at is not None, message
    assert at <= 2


@pytest.mark.parametrize(
    "rows",
    [
        {"label": list("abbcdefg"), "y_pred": list("aabcdefg")},
        {"target": [1.5, 1.5, *range(2, 8)], "p10": [0, 1, *range(2, 8)]},
    ],
)
def test_rows_that_differ_in_a_column_by_another_name_are_no_duplicates(rows):
    result = ee.diagnose(pl.DataFrame({"id": range(8), **rows}, strict=False))
    assert not any("duplicates" in one for one in result.frame["finding"])


def test_slices_stored_with_a_run_are_searched(planted, tmp_path):
    tables = planted.boxes(3, 60)
    sides = [tables["predictions"], tables["ground_truths"]]
    images = tables["datums"].select("datum_id", bad=pl.int_range(pl.len()) % 3 == 0)
    sides[0] = sides[0].join(images.filter(~pl.col("bad")), on="datum_id", how="semi")
    stored = ee.score(*sides, datums=images, by=["bad"])
    stored.save(tmp_path / "run")
    for run in (stored, tmp_path / "run"):
        assert ee.diagnose(run).frame["finding"].str.starts_with("datums with bad = true").any()
    notes = ee.diagnose(ee.score(*sides)).notes
    assert any(one.startswith("slices were not") for one in notes)


@pytest.mark.parametrize("digits", [3, 9])
def test_probabilities_that_are_equal_by_chance_are_no_duplicates(digits):
    """Rounded probabilities may repeat; copies of rows with all digits are duplicates."""
    rng = np.random.default_rng(0)
    p = rng.random(1_000)
    rows = pl.DataFrame({"y_true": (rng.random(1_000) < p).astype(int), "y_prob": p.round(digits)})
    copied = pl.concat([rows, rows.head(200)]).with_row_index("id")
    findings = ee.diagnose(copied).frame["finding"]
    assert any("duplicates" in one for one in findings) == (digits == 9)


def test_copies_of_rows_with_many_possible_values_are_found() -> None:
    rng = np.random.default_rng(1)
    prices = {name: rng.integers(0, 10_000, 300) / 100 for name in ("target", "prediction")}
    rows = pl.DataFrame(prices)
    copied = pl.concat([rows, rows.head(30)]).with_row_index("id")
    findings = ee.diagnose(copied).frame
    assert [n for text, n in findings.select("finding", "n").rows() if "duplicates" in text] == [30]


def test_named_metrics_of_labels_without_scores() -> None:
    """Without scores, label errors are skipped, whether metrics are named or not."""
    table = pl.DataFrame(
        {"actual": ["a", "b", "a", "c"] * 20, "predicted": ["a", "b", "b", "c"] * 20}
    )
    findings = ee.diagnose(table, metrics=["Accuracy"]).frame["finding"]
    usual = ee.diagnose(table).frame["finding"]
    assert set(findings) < set(usual)
    with pytest.raises(ee.InputError, match="'score'"):
        ee.diagnose(table, metrics=["LabelErrors"])
