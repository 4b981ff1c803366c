"""nuScenes' JSON of 3-D boxes as predictions and as ground truths."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import pytest
from refusals import noted, refused

import evalengine as ee

HOW: dict[str, Any] = {"dialect": "nuscenes", "iou_type": "distance"}


def box(x: float, yaw: float = 0.3, **more: Any) -> dict[str, Any]:
    return {
        "translation": [x, 2.0, 1.0], "size": [2.0, 4.5, 1.5], "velocity": [1.0, 0.0],
        "rotation": [math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2)], "detection_name": "car",
        "attribute_name": "vehicle.moving", **more,
    }  # fmt: skip


def written(path: Path, results: Any, **more: Any) -> str:
    text = json.dumps({"meta": {"use_lidar": True}, "results": results, **more})
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return str(path)


def sides(folder: Path, name: str = "found.json") -> tuple[str, str]:
    found = {"a": [box(0.5, 0.4, detection_score=0.9)], "b": []}
    truth = {
        "a": [box(0.0, ego_translation=[3.0, 4.0, 0.0], num_pts=7, detection_score=-1.0)],
        "b": [box(9.0, velocity=[math.nan, math.nan], ego_translation=[0, 60, 0], num_pts=7)],
    }
    return written(folder / name, found), written(folder / "truth.json", truth)


@pytest.mark.parametrize("name", ["found.json", "found.json.gz"])
def test_both_sides(name: str, tmp_path: Path) -> None:
    """No angle format is required; a box 60 m away does not count, but its sample does."""
    card = ee.score(*sides(tmp_path, name), **HOW)
    errors = {name: card.value(name, label_value="car") for name in ("ATE", "ASE", "AOE", "AVE")}
    assert errors == pytest.approx({"ATE": 0.5, "ASE": 0, "AOE": 0.1, "AVE": 0}, abs=1e-12)
    assert card.value("AP", label_value="car", iou_threshold=0.5) == 0  # 0.5 m is not within it
    assert card.value("AP", label_value="car", iou_threshold=1) == pytest.approx(1)
    assert card.run["datums"] == 2
    noted(card, "beyond_range", count=1)
    upright = ee.score(*sides(tmp_path, name), iou_type="3d", metrics=["Outcomes"])
    assert 0.6 < upright.outcomes["iou"][0] < 0.8


def test_broken_files(tmp_path: Path) -> None:
    predictions, truth = sides(tmp_path)
    lacking = {key: value for key, value in box(0.0).items() if key != "size"}
    file = written(tmp_path / "lacking.json", {"a": [lacking]})
    with refused("file_malformed", ee.ReadError):
        ee.score(file, truth, **HOW)
    text = Path(predictions).read_text()
    (tmp_path / "cut.json").write_text(text[:-10])
    with refused("file_truncated", ee.ReadError):
        ee.score(str(tmp_path / "cut.json"), truth, **HOW)


def test_words_and_unknown_numbers(tmp_path: Path) -> None:
    """NaN within a string is kept; a box at the position of the ego vehicle has distance 0."""
    truth = {
        'NaN-1 \\" NaN': [box(0.0, velocity=[math.nan] * 2, ego_translation=[0, 0, 0], num_pts=3)],
        "b": [box(9.0, ego_translation=[3, 4, 0], num_pts=-1)],
    }
    found = {sample: [box(0.0, detection_score=0.9)] for sample in truth}
    files = written(tmp_path / "found.json", found), written(tmp_path / "truth.json", truth)
    outcomes = ee.score(*files, metrics=["Outcomes"], **HOW).outcomes
    assert {*outcomes["datum_id"]} == {*truth}
