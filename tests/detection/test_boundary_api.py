"""Boundary AP of boundary-iou-api, to the bit; see the vectors' README for their origin.

During development, 1,945 such sets were compared in all of precision and recall.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference_data import known_answers

import evalengine as ee

CASES = known_answers("detection", "boundary_iou_api")["cases"]


def scored(case: dict[str, Any], folder: Path, **options: Any) -> dict[str, Any]:
    for side in ("gt", "dt"):
        (folder / f"{side}.json").write_text(json.dumps(case[side]))
    inputs = {"dialect": "boundary-iou-api", "iou_type": "boundary", **options}
    card = ee.score(folder / "dt.json", folder / "gt.json", **inputs)
    return card.to_coco()


@pytest.mark.parametrize("place", range(len(CASES)))
def test_to_the_bit(place: int, tmp_path: Path) -> None:
    case = CASES[place]
    ours = scored(case, tmp_path, boundary_ratio=case["ratio"])
    precision = np.ascontiguousarray(ours["precision"]).sum(1)
    np.testing.assert_array_equal(precision, np.array(case["precision"]))
    np.testing.assert_array_equal(ours["recall"], np.array(case["recall"]))


def square(side: int, at: int) -> dict[str, Any]:
    """Make uncompressed codes of a square with its corner at ``at`` of a 20-pixel diagonal."""
    pixels = np.zeros((20, 20), np.uint8)
    pixels[at : at + side, at : at + side] = 1
    flat = pixels.T.ravel()
    bounds = np.flatnonzero(np.diff(flat)) + 1
    counts = np.diff([0, *bounds, 400]).tolist()
    return {"size": [20, 20], "counts": [0, *counts] if flat[0] else counts}


def test_inside_of_a_crowd_the_boundary_does_not_count(tmp_path: Path) -> None:
    """The detection is inside the crowd, far from its edge, so it is ignored, not wrong."""
    truth = {"image_id": 1, "category_id": 1, "area": 400.0}
    case = {
        "gt": {
            "images": [{"id": 1, "height": 20, "width": 20}],
            "categories": [{"id": 1, "name": "a"}],
            "annotations": [
                {"id": 1, "iscrowd": 1, "segmentation": square(15, 0), **truth},
                {"id": 2, "iscrowd": 0, "segmentation": square(4, 16), **truth},
            ],
        },
        "dt": [
            {"image_id": 1, "category_id": 1, "score": 0.9, "segmentation": square(6, 4)},
            {"image_id": 1, "category_id": 1, "score": 0.8, "segmentation": square(4, 16)},
        ],
    }
    assert scored(case, tmp_path)["stats"][0] == pytest.approx(1)
    assert scored(case, tmp_path, dialect="coco")["stats"][0] == pytest.approx(1)
    case["gt"]["annotations"][0]["iscrowd"] = 0  # type: ignore[index]
    assert scored(case, tmp_path)["stats"][0] == pytest.approx(0.25, abs=0.01)


def test_ignore_is_respected_unlike_in_coco(tmp_path: Path) -> None:
    row = {"image_id": 1, "category_id": 1}
    case = {
        "gt": {
            "images": [{"id": 1, "height": 20, "width": 20}],
            "categories": [{"id": 1, "name": "a"}],
            "annotations": [
                {"id": i, "iscrowd": 0, "ignore": i - 1, "area": 16.0,
                 "segmentation": square(4, 8 * i), **row}
                for i in (1, 2)
            ],
        },
        "dt": [{**row, "score": 0.9, "segmentation": square(4, 8)}],
    }  # fmt: skip
    assert scored(case, tmp_path)["stats"][8] == 1
    assert scored(case, tmp_path, dialect="coco")["stats"][8] == 0.5


def test_other_iou_types_are_refused(tmp_path: Path) -> None:
    assert scored(CASES[0], tmp_path, iou_type=None)["stats"] == scored(CASES[0], tmp_path)["stats"]
    with pytest.raises(ee.OptionError, match="iou_type='boundary'"):
        scored(CASES[0], tmp_path, iou_type="bbox")
