"""Keypoints are compared by default if one side has nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from refusals import refused

import evalengine as ee

FOLDER = Path(__file__).parents[2] / "examples" / "keypoints"
TRUTH = FOLDER / "people.json"
NOTE = "keypoints are compared, since one side has only keypoints (like iou_type='keypoints')."


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """Write results as pose models do, without boxes."""
    rows = json.loads((FOLDER / "found.json").read_text())
    stripped = [{name: row[name] for name in row if name not in ("bbox", "area")} for row in rows]
    path = tmp_path / "found.json"
    path.write_text(json.dumps(stripped))
    return path


@pytest.mark.parametrize("dialect", ["standard", "coco"])
def test_results_without_boxes(bare: Path, dialect: str) -> None:
    card = ee.score(bare, TRUTH, dialect=dialect)
    explicit = ee.score(bare, TRUTH, dialect=dialect, iou_type="keypoints")
    assert card.metrics.equals(explicit.metrics)
    assert card.options.iou_type == "keypoints"
    assert NOTE in card.notes
    assert NOTE not in explicit.notes


def test_every_function_compares_keypoints_by_default(bare: Path) -> None:
    assert NOTE in ee.check(bare, TRUTH).notes
    assert "keypoints" in ee.explain(bare, TRUTH)
    assert NOTE in ee.find_errors(bare, TRUTH).notes
    assert NOTE in ee.find_label_errors(bare, TRUTH).notes
    assert NOTE in ee.find_thresholds(bare, TRUTH, draws=20).notes
    explicit = ee.find_limits(bare, TRUTH, iou_type="keypoints").frame
    assert ee.find_limits(bare, TRUTH).frame.equals(explicit)
    result = ee.compare(bare, bare, ground_truths=TRUTH, names=["a", "b"], draws=20)
    assert result.options.iou_type in (None, "keypoints")
    assert {*result.differences["difference"].drop_nulls()} == {0.0}


def test_tables() -> None:
    points: dict[str, Any] = {
        "datum_id": [1, 1],
        "label_value": ["a", "a"],
        "keypoints": [[10.0, 10.0, 2.0, 30.0, 40.0, 2.0], [60.0, 60.0, 2.0, 90.0, 90.0, 2.0]],
        "area": [600.0, 900.0],
    }
    truth = pl.DataFrame(points)
    predictions = truth.drop("area").with_columns(score=pl.Series([0.9, 0.8]))
    card = ee.score(predictions, truth, keypoint_sigmas=[0.1, 0.1])
    assert (card.options.iou_type, card.value("mAP", iou_threshold=0.5)) == ("keypoints", 1.0)
    boxes = {name: [0.0, 9.0] for name in ("xmin", "ymin")}
    boxes |= {name: [9.0, 20.0] for name in ("xmax", "ymax")}
    both = [
        side.with_columns(**{n: pl.Series(v) for n, v in boxes.items()})
        for side in (predictions, truth)
    ]
    assert ee.score(*both).options.iou_type is None
    with refused("iou_type_missing", side="predictions", column="keypoints"):
        ee.score(predictions, both[1].drop("keypoints"))
