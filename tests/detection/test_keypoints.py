"""Keypoints: OKS, the ten numbers and their arrays, equal to pycocotools' to the bit.

During development, 2,150 random files like these were compared. CrowdPose's numbers are those of
xtcocotools 1.14.3 (``keypoints_crowd`` without areas, images split by crowdIndex at 0.2 and 0.8).
They are in ``known_answers/detection/crowdpose.json``, for files made here from its seeds.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from detection.pose_files import File, Rows, pose_files, pycocotools_of
from refusals import noted, refused

import evalengine as ee
from evalengine.ingest.sources.coco import read_results
from evalengine.tasks.detection.settings import NAMED

NAMES = ["AP", "AP50", "AP75", "APmedium", "APlarge", "AR", "AR50", "AR75", "ARmedium", "ARlarge"]
POSE: dict[str, Any] = {"dialect": "coco", "iou_type": "keypoints"}


def same(card: ee.Scorecard, reference: Any) -> None:
    result = card.to_coco()
    assert result["names"] == NAMES
    np.testing.assert_array_equal(result["stats"], reference.stats)
    for name in ("precision", "recall", "scores"):
        np.testing.assert_array_equal(result[name], reference.eval[name])


@pytest.mark.parametrize("k", [17, 4, 7, 8, 16, 128, 129, 133])
def test_numbers_are_those_of_pycocotools(k: int, tmp_path: Path) -> None:
    for seed in range(3):
        rng = np.random.default_rng([seed, k])
        truths, predictions = pose_files(rng, k)
        sigmas = None if k == 17 else rng.uniform(0.02, 0.2, k).tolist()
        paths = [tmp_path / "found.json", tmp_path / "truths.json"]
        for path, rows in zip(paths, (predictions, truths), strict=True):
            path.write_text(json.dumps(rows))
        card = ee.score(*paths, **POSE, keypoint_sigmas=sigmas)
        same(card, pycocotools_of(truths, predictions, sigmas))


def tables(truths: File, predictions: Rows, columns: bool) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Convert the files to tables, with one list or with one column per number."""
    sides = []
    for rows in (predictions, truths["annotations"]):
        frame = pl.DataFrame(rows, infer_schema_length=None).rename({"image_id": "datum_id"})
        points = frame["keypoints"].cast(pl.List(pl.Float64))
        if columns:
            numbers = np.array(points.to_list())
            names = [f"{axis}_{i}" for i in range(1, 18) for axis in "xyv"]
            frame = frame.drop("keypoints").hstack(pl.DataFrame(numbers, schema=names))
        sides.append(frame.with_columns(points) if not columns else frame)
    return sides[0], sides[1]


@pytest.mark.parametrize("columns", [False, True])
def test_tables_give_the_same(columns: bool) -> None:
    truths, predictions = pose_files(np.random.default_rng(7))
    predictions = without_boxes(predictions)
    card = ee.score(*tables(truths, predictions, columns), **POSE, box_format="xywh")
    same(card, pycocotools_of(truths, predictions))


def person(**changes: Any) -> dict[str, Any]:
    points = [float(x) for i in range(17) for x in (i, 2 * i, 2)]
    return {"datum_id": 1, "label_value": "person", "keypoints": points, "area": 400.0} | changes


def frames(*truths: dict[str, Any], **predictions: Any) -> tuple[pl.DataFrame, pl.DataFrame]:
    guess = person(score=0.9, **predictions)
    del guess["area"]
    return pl.DataFrame([guess]), pl.DataFrame([*truths], infer_schema_length=None)


BOX = {"xmin": 0.0, "ymin": 0.0, "xmax": 20.0, "ymax": 40.0}


def test_oks_matches_its_definition() -> None:
    """One point is a pixel off, with sigmas of each kind; the mean is over labelled points."""
    points = person()["keypoints"]
    points = [*points[:3], points[3] + 3.0, *points[4:]]
    truth = person()
    truth["keypoints"][8] = 0.0  # not labelled
    for inputs, sigma in (
        (None, NAMED["coco"][1]), ("even", 1 / 17), (0.1, 0.1), ({"person": [0.2] * 17}, 0.2)
    ):  # fmt: skip
        card = ee.score(
            *frames(truth, keypoints=points), iou_type="keypoints", keypoint_sigmas=inputs,
            metrics=["Outcomes"], iou_thresholds=[0.1],
        )  # fmt: skip
        expected = (15 + np.exp(-9 / (2 * sigma) ** 2 / 400 / 2)) / 16
        assert card.outcomes["iou"][0] == pytest.approx(expected, abs=1e-12)


def test_people_without_areas_have_the_size_of_their_boxes() -> None:
    truth = person() | BOX
    del truth["area"]
    shown = {"metrics": ["mAP"], "iou_thresholds": [0.5], "iou_type": "keypoints"}
    ours, theirs = frames(truth, keypoints=[x + 4 for x in person()["keypoints"]])
    card = ee.score(ours, theirs, **shown)
    resized = ee.score(ours, theirs.with_columns(area=pl.lit(0.53 * 800)), **shown)
    assert card.metrics["value"].to_list() == resized.metrics["value"].to_list()
    assert "0.53" in noted(card, "areas_of_people").message
    with refused("area_missing", column="area", count=1):
        ee.score(ours, theirs.drop([*BOX]), iou_type="keypoints")


def test_people_with_only_a_box_are_ignored_with_their_predictions() -> None:
    bare = person(keypoints=None) | BOX
    card = ee.score(*frames(bare), **POSE)
    assert card.to_coco()["stats"] == [-1.0] * 10
    noted(card, "unlabelled_people", count=1)
    both = ee.score(*frames(bare, person(datum_id=2) | BOX), iou_type="keypoints")
    assert both.value("mAR") == 0.0  # the only prediction is no false positive
    assert both.metrics.filter(metric="AP")["support"].to_list() == [1, 1]


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({}, {"keypoint_sigmas": "crowdpose"}, "crowdpose's 14"),
        ({}, {"keypoint_sigmas": [0.1, 0.2]}, "are 2. Write 17"),
        ({}, {"keypoint_sigmas": "nothing.json"}, "no such file"),
        ({}, {"keypoint_sigmas": [0.1, 0.0]}, "numbers above 0"),
        ({"keypoints": [1.0, 2.0, 2.0]}, {}, "1 row with fewer"),
        ({"keypoints": [1.0] * 34}, {}, "pairs of x and y"),
        ({"keypoints": [1.0] * 50 + [float("nan")]}, {}, "NaN"),
        ({"keypoints": []}, {}, "without keypoints"),
        ({}, {"dialect": "lvis"}, "iou_type='keypoints'"),
        ({}, {"convert_to": "box"}, "different geometry"),
    ],
)
def test_incomparable_keypoints_are_reported(
    changes: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        ee.score(*frames(person(), **changes), **{"iou_type": "keypoints"} | options)


def test_sigmas_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "sigmas.json"
    path.write_text(json.dumps({"person": list(NAMED["coco"])}))
    sides = frames(person(), keypoints=[x + 1 for x in person()["keypoints"]])
    from_file, usual = (
        ee.score(*sides, **POSE, keypoint_sigmas=inputs).to_coco()["stats"]
        for inputs in (path, None)
    )
    assert from_file == usual


def test_keypoints_of_files_are_read_as_json_is(tmp_path: Path) -> None:
    """Numbers in every notation, spaces, empty lists, null and rows without keypoints."""
    rng = np.random.default_rng(2)
    numbers = (rng.normal(size=300) * 10.0 ** rng.integers(-30, 30, 300)).tolist()
    texts = [
        json.dumps(numbers[i : i + 3], separators=(sep, ":"))
        for i, sep in zip(range(0, 300, 3), [",", ", "] * 50, strict=True)
    ]
    inputs = [*texts, "[]", "null", "[ 1, -2E+3 ,\t4e-1 ]", "[7,8,9]"]
    box = '"image_id": 1, "category_id": 1, "score": 0.5, "bbox": [1, 2, 3, 4]'
    rows = [f'{{{box}, "keypoints": {text}}}' for text in inputs] + [f"{{{box}}}"]
    path = tmp_path / "found.json"
    path.write_text("[" + ",".join(rows) + "]")
    with path.open("rb") as file:
        read = read_results(file.read(), "found", extras=frozenset({"keypoints"})).frame.collect()
    assert read["keypoints"].to_list() == [*map(json.loads, inputs), None]
    for odd in ('[1, "2", 3]', "[[1, 2, 3]]", "[1, null, 2]", '"1"', "[1, true, 2]"):
        path.write_text(f'[{{{box}, "keypoints": {odd}}}]')
        with pytest.raises(ee.InputError, match=r"result 0 .* field 'keypoints'"):
            ee.score(path, path, iou_type="keypoints")


def without_boxes(predictions: Rows) -> Rows:
    return [{name: value for name, value in row.items() if name != "bbox"} for row in predictions]


def test_intervals_of_every_number() -> None:
    folder = Path(__file__).parents[2] / "examples" / "keypoints"
    card = ee.score(folder / "found.json", folder / "people.json", **POSE, intervals=95, draws=20)
    numbers = card.metrics.filter(pl.col("label_value").is_null(), area="all")
    assert set(numbers["metric"]) == {"mAPAveragedOverIOUs", "mAP", "mAR", "mARAtIOU"}
    assert (numbers["lower"] < numbers["upper"]).all()


def test_a_list_for_each_point_is_read() -> None:
    """As in YOLO files."""
    truths, predictions = pose_files(np.random.default_rng(8))
    sides = []
    for side in tables(truths, without_boxes(predictions), columns=False):
        points = np.array(side["keypoints"].to_list()).reshape(-1, 17, 3)
        sides.append(side.with_columns(pl.Series("keypoints", points)))
    card = ee.score(*sides, **POSE, box_format="xywh")
    same(card, pycocotools_of(truths, without_boxes(predictions)))


CROWDPOSE = json.loads(
    (Path(__file__).parents[1] / "known_answers/detection/crowdpose.json").read_text()
)


@pytest.mark.parametrize("expected", CROWDPOSE, ids=lambda expected: str(expected["seed"]))
def test_crowdpose(expected: dict[str, Any]) -> None:
    rng = np.random.default_rng([expected["seed"], 14])
    truths, predictions = pose_files(rng, 14)
    for image in truths["images"]:
        image["crowdIndex"] = float(rng.choice([0.0, 0.1, 0.2, 0.5, 0.8, 0.9, 1.0]))
    card = ee.score(predictions, truths, dialect="crowdpose", by="crowd_level")
    result = card.to_coco()
    assert result["names"] == ["AP", "AP50", "AP75", "AR", "AR50", "AR75"]
    assert result["stats"] == expected["stats"]
    rows = card.metrics.filter(metric="mAPAveragedOverIOUs", slice="crowd_level")
    levels = dict(rows.select("slice_value", pl.col("value").fill_null(-1.0)).iter_rows())
    assert {name: levels.get(name, -1.0) for name in expected["levels"]} == expected["levels"]
