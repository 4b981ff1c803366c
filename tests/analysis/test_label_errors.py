"""Label errors: classification against answers of cleanlab, detection with planted errors."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from merging.parts import Case
from partitions.cases import in_buckets, same_as_in_memory
from reference_data import known_answers
from refusals import refused

import evalengine as ee
from evalengine.cli import cli

CORNERS = ("xmin", "ymin", "xmax", "ymax")
BOXES = ("examples/detection/predictions.parquet", "examples/detection/groundtruths.parquet")
TEXTS = "examples/text/answers.parquet"


def long_tables(case):
    chances = np.array(case["chances"])
    n, k = chances.shape
    predictions = pl.DataFrame(
        {
            "datum_id": np.repeat(np.arange(n), k),
            "label_value": np.tile(np.arange(k), n),
            "score": chances.ravel(),
        }
    )
    return predictions, pl.DataFrame({"datum_id": np.arange(n), "label_value": case["labels"]})


def test_as_cleanlab():
    """Match cleanlab 2.9: the same datums by every method, the same qualities to the bit.

    cleanlab rounds the confident joint to integers with an unstable sort. Tables in which
    remainders
    tie are not among the vectors, because they depend on the version of NumPy.
    """
    for case in known_answers("analysis", "cleanlab"):
        rows = ee.score(*long_tables(case), metrics=["LabelErrors"]).label_errors
        datum = rows["datum_id"].to_numpy()
        ways = [set(one.split()) for one in rows["found_by"]]
        for way, picked in case["picked"].items():
            assert sorted(d for d, by in zip(datum, ways, strict=True) if way in by) == picked, way
        for name, column in (
            ("self_confidence", "given_score"),
            ("normalized_margin", "normalized_margin"),
            ("confidence_weighted_entropy", "confidence_weighted_entropy"),
        ):
            expected = np.array(case["qualities"][name])[datum]
            assert np.abs(rows[column].to_numpy() - expected).max(initial=0) <= 1e-12, name


def test_the_score_of_the_ranking_is_an_option():
    tables = long_tables(known_answers("analysis", "cleanlab")[3])
    every = ee.find_label_errors(*tables, filter_by="argmax")
    assert every.rows["suspicion"].is_sorted(descending=True)
    by_own = ee.find_label_errors(*tables, filter_by="argmax", rank_by="self_confidence")
    assert by_own.rows["given_score"].is_sorted()
    assert set(by_own.rows["datum_id"]) == set(every.rows["datum_id"])
    assert ee.find_label_errors(*tables, filter_by="argmax", top=1).n == len(every) > 1
    with refused("unknown_name", value="argmin"):
        ee.find_label_errors(*tables, filter_by="argmin")


def test_as_in_buckets(tmp_path, monkeypatch):
    in_buckets(monkeypatch)
    tables = [pl.read_parquet(path).drop("annotation_id", strict=False) for path in BOXES]
    for sides, task in (
        (tables, "detection"),
        (long_tables(known_answers("analysis", "cleanlab")[5]), "classification"),
    ):
        case = Case(tuple(sides), {"metrics": ["LabelErrors"]})
        (folder := tmp_path / task).mkdir()
        assert same_as_in_memory(case, task, folder).label_errors.height


def test_one_score_per_datum():
    """The other label of a binary table has 1 minus the score."""
    table = pl.DataFrame({"actual": [1] * 6 + [0] * 6, "score": [0.9] * 5 + [0.05] + [0.1] * 6})
    rows = ee.find_label_errors(table).rows
    assert rows.select("datum_id", "label_value", "suggested").rows() == [(5, 1, 0)]
    assert rows["score"][0] == pytest.approx(0.95)


@pytest.mark.parametrize(
    "table",
    [
        pl.DataFrame({"actual": ["a", "b", "a"], "predicted": ["a", "a", "a"]}),
        pl.DataFrame({"datum_id": [1, 1], "label_value": ["a", "b"], "score": [0.9, 0.8]}),
    ],
)
def test_without_probabilities_of_all_labels(table):
    if "actual" in table.columns:
        with refused("not_kept", ee.ResultError):
            ee.find_label_errors(table)
    else:
        truth = table.drop("score")
        result = ee.find_label_errors(table, truth, multilabel=True)
        assert not len(result)
        assert "several labels" in repr(result)


def boxes(rows):
    return pl.DataFrame(
        rows, schema=["datum_id", "label_value", *CORNERS, "score"], orient="row",
        schema_overrides=dict.fromkeys((*CORNERS, "score"), pl.Float64),
    )  # fmt: skip


PLAIN = [(d, "a", 10.0, 10.0, 50.0, 50.0, 0.8) for d in range(4)]
"""One object per datum, with a prediction that matches it."""


@pytest.mark.parametrize(
    ("truth", "predictions", "reason", "suspicion"),
    [
        ([(9, "a", 0, 0, 40, 40)], [(9, "b", 0, 0, 40, 40, 0.9)], "other label", 0.9),
        (
            [(9, "a", 0, 0, 40, 40)],
            [(9, "b", 0, 0, 40, 40, 0.9), (9, "a", 0, 0, 40, 39, 0.5)],
            "other label",
            0.45,
        ),
        ([(9, "a", 0, 0, 40, 40)], [(9, "a", 0, 0, 40, 10, 0.8)], "location", 0.6),
        ([], [(9, "b", 0, 0, 40, 40, 0.7)], "missing", 0.7),
        (  # next to an object that another prediction matches: an IoU of 1 / 4
            [(9, "a", 0, 0, 40, 40)],
            [(9, "a", 0, 0, 40, 40, 0.9), (9, "b", 24, 0, 64, 40, 0.8)],
            "missing",
            0.6,
        ),
        ([(9, "a", 0, 0, 40, 40)], [], "unfound", 0.3),
        (
            [(9, "a", 0, 0, 40, 40), (9, "a", 0, 0, 40, 38)],
            [(9, "a", 0, 0, 40, 40, 0.9)],
            "duplicate",
            0.95,
        ),
        (
            [(9, "a", 0, 0, 400, 400), (9, "a", 50, 50, 50, 90)],
            [(9, "a", 0, 0, 400, 400, 0.9)],
            "tiny",
            1.0,
        ),
    ],
)
def test_reasons(truth, predictions, reason, suspicion):
    predicted = boxes(PLAIN + predictions)
    truths = boxes([*PLAIN, *((*row, 1.0) for row in truth)]).drop("score")
    rows = ee.find_label_errors(predicted, truths).rows
    assert rows.filter(datum_id=9)["reason"][0] == reason
    assert rows.filter(pl.col("datum_id") != 9).is_empty()
    assert rows.filter(reason=reason)["suspicion"].to_list() == pytest.approx([suspicion])
    text = rows.filter(reason=reason).row(0, named=True)
    if reason == "missing":
        assert (text["label_value"], text["suggested"], text["annotation_id"]) == (None, "b", None)
        assert text["prediction_row"] == len(predicted) - 1
        assert text["iou"] == (pytest.approx(0.25) if truth else None)
    else:
        assert text["annotation_id"] == len(truths) - 1
        assert text["annotation_ymax"] == truth[-1][5]
    if reason == "duplicate":
        assert text["ymax"] == 40.0  # that of the object it repeats


def test_an_unmatched_neighbour_is_one_location_error():
    """If the neighbour has no match either, its box is wrong: one error, not two."""
    truths = boxes([*PLAIN, (9, "a", 0, 0, 40, 40, 1.0)]).drop("score")
    rows = ee.find_label_errors(boxes([*PLAIN, (9, "a", 24, 0, 64, 40, 0.8)]), truths).rows
    assert rows["reason"].to_list() == ["location"]


def test_scores_that_are_no_probabilities():
    percent = pl.read_parquet(BOXES[0]).with_columns(pl.col("score") * 100)
    truths = pl.read_parquet(BOXES[1])
    with refused(
        "not_probabilities", columns=["score"], rows=[0, 1, 2], count=437, first=(0, 0, 81.6)
    ):
        ee.find_label_errors(percent, truths)
    findings = ee.diagnose(percent, truths).frame["finding"].to_list()
    assert findings
    assert not any("may be wrong" in one for one in findings)


def test_names_of_classes():
    predicted = boxes([*PLAIN, (9, "b", 0, 0, 40, 40, 0.7)])
    truths = boxes(PLAIN).drop("score")
    codes = {"label_value": pl.Series(["a", "b"]), "label_name": pl.Series(["car", "bus"])}
    result = ee.find_label_errors(predicted, truths, labels=pl.DataFrame(codes))
    assert "b bus" in repr(result)
    assert result.rows["suggested"].to_list() == ["b"]


def test_options_of_no_use():
    tables = BOXES
    with refused("unknown_name", value="mising"):
        ee.find_label_errors(*tables, reasons=["mising"])
    assert set(ee.find_label_errors(*tables, reasons="missing").rows["reason"]) == {"missing"}
    with refused("option_unread", option="filter_by", value="both"):
        ee.find_label_errors(*tables, filter_by="both")
    with pytest.raises(ee.OptionError, match="rank_by"):
        ee.find_label_errors(*tables, rank_by="self_confidence")


def test_right_labels_are_no_errors():
    """Two overlapping objects that are both matched are no duplicates; neither are crowds."""
    pair = [(9, "a", 0, 0, 40, 40, 0.8), (9, "b", 0, 0, 40, 36, 0.9)]
    truths = boxes([*PLAIN, *pair]).drop("score")
    assert not len(ee.find_label_errors(boxes(PLAIN + pair), truths))
    crowd = truths.with_columns(iscrowd=(pl.col("datum_id") == 9).cast(pl.Int8))
    assert not len(ee.find_label_errors(boxes(PLAIN), crowd))


@pytest.mark.parametrize("crowd", [[], [9], [10], [9, 10]])
def test_a_crowd_region_over_an_object_is_no_duplicate(crowd):
    """The crowd may come before or after the object; two overlapping objects are a duplicate."""
    rows = [(9, "a", 0, 0, 40, 40, 1.0), (9, "a", 0, 0, 40, 38, 1.0)]
    truths = boxes([*PLAIN, *rows]).drop("score").with_row_index("n")
    place = pl.col("n").cast(pl.Int64) - len(PLAIN) + 9
    truths = truths.with_columns(iscrowd=place.is_in(crowd).cast(pl.Int8)).drop("n")
    result = ee.find_label_errors(boxes([*PLAIN, (9, "a", 0, 0, 40, 40, 0.9)]), truths).rows
    assert result.filter(reason="duplicate").height == (not crowd)


def test_masks_and_parts(tmp_path, monkeypatch):
    """Overlaps are those of the shapes; buckets give the same errors as a run in memory."""
    in_buckets(monkeypatch)
    square = lambda x: [[[x, 0.0, x + 9.0, 0.0, x + 9.0, 9.0, x, 9.0]]]  # noqa: E731
    half = [[[0.0, 0.0, 9.0, 0.0, 0.0, 9.0]]]
    truth = pl.DataFrame(
        {
            "datum_id": [1, 1, 1, 2],
            "label_value": ["a"] * 4,
            "polygon": [*square(0.0), *square(0.0), *half, *square(0.0)],
        }
    )
    predictions = pl.DataFrame(
        {"datum_id": [1, 2], "label_value": ["a", "b"], "score": [0.9, 0.8],
         "polygon": [*square(0.0), *square(0.0)]}
    )  # fmt: skip
    rows = ee.find_label_errors(predictions, truth).rows
    assert rows.filter(reason="duplicate")["annotation_id"].to_list() == [1]
    assert rows.filter(reason="other label")["suggested"].to_list() == ["b"]
    options = {"metrics": ["LabelErrors"], "convert_to": "polygon"}
    case = Case((predictions.reverse(), truth.reverse()), options)
    assert same_as_in_memory(case, "detection", tmp_path).label_errors.height == rows.height


def test_saved_runs(tmp_path):
    ee.score(*BOXES, metrics=["mAP", "LabelErrors"]).save(tmp_path / "run")
    assert ee.find_label_errors(tmp_path / "run").rows.equals(ee.find_label_errors(*BOXES).rows)
    ee.score(*BOXES, metrics=["mAP"]).save(tmp_path / "bare")
    with pytest.raises(ee.ResultError, match=r"metrics=\['LabelErrors'\]"):
        ee.find_label_errors(tmp_path / "bare")
    with refused("task_unfit", ee.ResultError, task="text"):
        ee.find_label_errors(TEXTS, metrics=["ROUGE1"])


def test_command():
    done = CliRunner().invoke(cli, ["label-errors", *BOXES, "--reason", "missing", "--top", "2"])
    assert done.exit_code == 0
    assert "17 labels" in done.output
    assert "the 2 most" in done.output
    rows = CliRunner().invoke(cli, ["label-errors", *BOXES, "--format", "json"])
    assert '"reason":"other label"' in rows.output.replace(": ", ":")
    text = repr(ee.find_label_errors(*BOXES, reasons=["tiny"]))
    assert text.startswith("no label")
    assert re.findall("location|missing|other label|tiny|unfound|duplicate", text)[-4:] == [
        "location", "missing", "other label", "unfound",
    ]  # fmt: skip
    assert "<table>" in ee.find_label_errors(*BOXES)._repr_html_()


@pytest.mark.parametrize(
    "tables", [BOXES, tuple(path.replace("detection", "classification") for path in BOXES)]
)
def test_diagnose_counts_the_same_label_errors(tables):
    rows = ee.find_label_errors(*tables).rows
    of_ways = not rows["found_by"].null_count()
    findings = ee.diagnose(*tables).frame.filter(pl.col("more") == "label-errors")
    sure = rows if of_ways else rows.filter(pl.col("suspicion") >= 0.5)
    assert findings["n"].sum() == sure.height > 0
    assert findings["finding"].str.contains("suspicion 0.5 or more").all() is not of_ways
