"""Dialect nuscenes: 20 random sets as the functions of nuscenes-devkit 1.2.0 score them.

``tests/known_answers/detection/README.md`` describes their origin.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from loading import load_frames
from merging.oriented_parts import centres
from partitions.cases import in_buckets, same_as_in_memory
from reference_data import known_answers
from refusals import noted, refused

import evalengine as ee
from evalengine.evaluation import planner
from evalengine.executors.pools import Threads
from evalengine.jobs.sources import Part, score_parts
from evalengine.schemas.option_values import make_options
from evalengine.tasks.detection.layers import metres, similarity

CASES = known_answers("detection", "nuscenes")["cases"]
NAMES = ("car", "truck", "bus", "trailer", "construction_vehicle", "pedestrian", "motorcycle",
         "bicycle", "traffic_cone", "barrier")  # fmt: skip
ERRORS = ("ATE", "ASE", "AOE", "AVE", "AAE")
FIELDS = {"datum_id": pl.String, "label_value": pl.String, "box3d": pl.List(pl.Float64),
          "vx": pl.Float64, "vy": pl.Float64, "attribute": pl.String, "ego_distance": pl.Float64,
          "num_points": pl.Float64, "score": pl.Float64}  # fmt: skip
BASE: dict[str, Any] = {"dialect": "nuscenes", "iou_type": "distance", "task": "detection",
                       "angle_format": "radians-z-up"}  # fmt: skip


def sides(case: Any) -> tuple[pl.DataFrame, pl.DataFrame]:
    ours, theirs = (
        pl.DataFrame(case[name], schema=FIELDS, orient="row")
        for name in ("predictions", "ground_truths")
    )
    return ours.drop("num_points"), theirs.drop("score")


def close(predictions: float | None, expected: float | None) -> bool:
    if predictions is None or expected is None:
        return predictions is expected
    return abs(predictions - expected) < 1e-12


def test_analyses_use_metres() -> None:
    options = {**BASE, "pr_curve_iou_threshold": 4, "draws": 20}
    for find in (ee.find_calibration, ee.find_thresholds):
        result = find(*sides(CASES[0]), **options)
        assert (result.iou_threshold, result.by_distance) == (4, True)
        assert "at 4 metres" in str(result)


def test_the_devkit() -> None:
    """AP of each label and distance, errors, their means, and the detection score."""
    labels = pl.DataFrame({"label_value": NAMES})
    compared = numbers = 0  # there is no number if all rows are out of range
    for case in CASES:
        card = ee.score(*sides(case), labels=labels, **BASE)
        for name, values in case["ap"].items():
            for iou, value in zip((0.5, 1, 2, 4), values, strict=True):
                result = card.metrics.filter(metric="AP", label_value=name, iou_threshold=iou)
                assert [close(one, value) for one in result["value"]] in ([True], [])
                numbers += result.height
        for at, error in enumerate(ERRORS):
            for name, value in case["tp"].items():
                result = card.metrics.filter(metric=error, label_value=name)
                assert [close(one, value[at]) for one in result["value"]] in ([True], [])
                numbers += result.height
        means = card.metrics.filter(pl.col("label_value").is_null())
        for name, value in zip(
            ("mAPAveragedOverIOUs", "NDS", *ERRORS),
            (case["mAP"], case["nds"], *case["errors"]),
            strict=True,
        ):
            result = means.filter(metric=name)
            assert [close(one, value) for one in result["value"]] in ([True], [])
            compared += result.height
    assert (numbers, compared) == (333, 133)


def test_similarities_are_exact_in_distances() -> None:
    away = np.sort(np.random.default_rng(0).uniform(0, 5, 1000))
    away[:2] = [0.0, 2.0**-19]
    similarities = similarity(away)
    assert (np.diff(similarities) < 0).all()
    assert (metres(similarities) == away).all()
    assert similarities.max() == 1
    assert similarity(5000.0) == 0


def test_nearest_of_equals_and_thresholds() -> None:
    """The first of two ground truths at one distance matches; 2 m is not within 2 m."""
    box = {"datum_id": ["s"] * 2, "label_value": ["car"] * 2}
    truth = pl.DataFrame({**box, "box3d": [[x, 0.0, 0, 4, 2, 1, 0] for x in (-1.0, 1.0)]})
    predictions = pl.DataFrame(
        {"datum_id": ["s"], "label_value": ["car"], "box3d": [[0.0, 0.0, 0, 4, 2, 1, 0]],
         "score": [0.5]}
    )  # fmt: skip
    card = ee.score(predictions, truth, metrics=["Outcomes"], iou_thresholds=[1, 1.5], **BASE)
    rows = card.outcomes.filter(score=0.5)
    assert rows["iou_threshold"].to_list() == [1.0, 1.5]
    assert rows["outcome"].to_list() == ["fp_hallucination", "tp"]
    assert rows["matched_annotation_id"].to_list() == [None, 0]
    assert rows["iou"].to_list() == [None, 1.0]
    assert any("ego_distance" in note for note in card.notes)


def test_single_datums_and_reports_are_in_metres(tmp_path: Path) -> None:
    """A box at 1 m is right at 2 m, the threshold of its datum; headings are in metres."""
    box = {"datum_id": ["s"], "label_value": ["car"]}
    truth = pl.DataFrame({**box, "box3d": [[0.0, 0.0, 0, 4, 2, 1, 0]]})
    predictions = pl.DataFrame({**box, "box3d": [[1.0, 0.0, 0, 4, 2, 1, 0]], "score": [0.5]})
    card = ee.score(predictions, truth, metrics=["PerDatum", "mAP", "AP"], **BASE)
    assert card.per_datum["value"].to_list() == [1.0]
    card.to_html(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "mAP @ 4 m" in page
    assert "@ IoU" not in page


def test_equal_scores_are_ranked_by_descending_row() -> None:
    """The row order decides, not the datum: the hit is in the last row."""
    box = [0.0, 0.0, 0, 4, 2, 1, 0]
    predictions = pl.DataFrame(
        {"datum_id": ["b", "a"], "label_value": ["car"] * 2, "score": [0.5] * 2,
         "box3d": [[9.0, *box[1:]], box]}
    )  # fmt: skip
    truth = pl.DataFrame({"datum_id": ["a", "b"], "label_value": ["car"] * 2, "box3d": [box] * 2})
    curve = {"metrics": ["InterpolatedPrecisionRecallCurve"], "iou_thresholds": [1]}
    first = ee.score(predictions, truth, **curve, **BASE).curves["precision"][:51].to_list()
    assert first == [*[1.0] * 50, 0.5]
    turned = (
        ee.score(predictions.reverse(), truth, **curve, **BASE).curves["precision"][:51].to_list()
    )
    assert turned == pytest.approx([level / 100 for level in range(51)])


def test_missing_options_are_refused(tmp_path: Path) -> None:
    ours, theirs = sides(CASES[0])
    card = ee.score(ours.drop("vx"), theirs, **BASE)
    assert noted(card, "without_columns").message.startswith("AVE, NDS ")
    assert "NDS" not in card.metrics["metric"]
    with refused("metric_unfit", metrics=["AVE"], match="column vx"):
        ee.score(ours.drop("vx"), theirs, metrics=["AVE"], **BASE)
    single = ee.score(ours, theirs, dialect="nuscenes", angle_format="radians-z-up")
    assert single.value("NDS") == ee.score(ours, theirs, **BASE).value("NDS")
    files = [tmp_path / "found.parquet", tmp_path / "truth.parquet"]
    for side, file in zip((ours, theirs), files, strict=True):
        side.write_parquet(file)
    options = make_options(dialect="nuscenes", angle_format="radians-z-up")
    night = Part("night", str(files[0]), str(files[1]), None, "key", tmp_path / "tally")
    assert score_parts([night], options).value("NDS") == single.value("NDS")
    with pytest.raises(ee.OptionError, match="iou_type='3d'"):
        ee.score(ours, theirs, **{**BASE, "iou_type": "3d"})
    with pytest.raises(ee.OptionError, match="iou_thresholds"):
        ee.score(ours, theirs, iou_thresholds=[0], **BASE)
    with refused("metric_unfit", metrics=["NDS"], match="dialect nuscenes"):
        ee.score(ours, theirs, **{**BASE, "dialect": "standard", "iou_type": "3d"}, metrics=["NDS"])


@pytest.mark.slow  # the default run merges buckets of such tables: tests/merging
def test_through_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_buckets(monkeypatch)
    same_as_in_memory(centres(4), "detection", tmp_path)


def test_weights_equal_copies() -> None:
    """A sample with weight 2 counts as two such samples."""
    case = max(CASES, key=lambda case: float(case["nds"]))
    ours, theirs = sides(case)
    plan = planner.make_plan(make_options(**{**BASE, "task": None}), "detection")
    ids = sorted({*ours["datum_id"], *theirs["datum_id"]})
    weights = np.arange(len(ids))[::-1] % 3
    copies = []
    for side in (ours, theirs):
        many = side["datum_id"].replace_strict(ids, weights, return_dtype=pl.Int64)
        again = side.with_columns(copy=pl.int_ranges(0, many)).explode("copy").drop_nulls("copy")
        copies.append(again.with_columns(pl.concat_str("datum_id", "copy")).drop("copy"))
    tables = pl.DataFrame({"label_value": NAMES})
    expected = ee.score(copies[0], copies[1], labels=tables, **BASE).value("NDS")
    frames = load_frames(ours, theirs, options=plan.options, task="detection", labels=tables)
    tallies = planner.run(plan, frames, Threads(1))
    view = plan.does.one_draw(plan.does.view(tallies, plan.settings), weights)
    score = next(one for one in plan.metrics if one.name == "NDS")
    (cells,) = score.compute(view, plan.settings)
    assert cells.columns["value"].item() == pytest.approx(expected, abs=1e-12)
    card = ee.score(ours, theirs, **BASE, metrics=["NDS"], intervals=0.9, draws=20, seed=1)
    row = card.metrics.row(0, named=True)
    assert row["lower"] <= row["upper"]
