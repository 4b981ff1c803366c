"""COCO JSON of videos, images and lists gives the same numbers as tables of the same rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from refusals import refused

import evalengine as ee

METRICS = ["HOTA", "MOTA", "IDF1", "TP", "FP", "FN", "FPPerFrame"]
BOXES = {1: [0, 0, 10, 10], 2: [50, 5, 10, 20]}
Rows = list[dict[str, Any]]


def image(video: int, frame: int) -> int:
    """Ids of images, in no relation to their order."""
    return 900 - 10 * video - frame


def truth() -> dict[str, Any]:
    """Two videos of three frames, two objects in each; a crowd region in the first frame."""
    rows = [
        {"id": 100 * video + 10 * frame + own, "video_id": video, "image_id": image(video, frame),
         "category_id": own, "instance_id": own, "bbox": [box[0] + frame, *box[1:]],
         "iscrowd": 0}
        for video in (1, 2) for frame in range(3) for own, box in BOXES.items()
    ]  # fmt: skip
    crowd = {"id": 1, "image_id": image(1, 0), "category_id": 1, "instance_id": 9,
             "bbox": [200, 0, 50, 50], "iscrowd": 1}  # fmt: skip
    return {
        "videos": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}],
        "images": [
            {"id": image(video, frame), "video_id": video, "frame_id": frame}
            for video in (1, 2) for frame in range(4)
        ],
        "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
        "annotations": [*rows, crowd],
    }  # fmt: skip


def results() -> Rows:
    """All boxes except one, one misplaced box, one inside the region."""
    away = ("id", "iscrowd", "instance_id")
    rows = [
        {name: value for name, value in row.items() if name not in away}
        | {"track_id": row["instance_id"], "score": 0.5}
        for row in truth()["annotations"][1:-1]
    ]
    rows[3]["bbox"] = [500, 0, 9, 9]
    rows.append({**rows[0], "image_id": image(1, 0), "video_id": 1, "category_id": 1,
                 "track_id": 77, "bbox": [210, 5, 9, 9]})  # fmt: skip
    return rows


def written(path: Path, content: Any) -> str:
    path.write_text(json.dumps(content))
    return str(path)


def table(rows: Rows, name: str) -> pl.DataFrame:
    """The same rows as a table."""
    places = {image(video, frame): (video, frame) for video in (1, 2) for frame in range(4)}
    files = []
    for row in rows:
        x, y, w, h = row["bbox"]
        sequence, frame = places[row["image_id"]]
        own = row.get("instance_id", row.get("track_id"))
        files.append(
            {"sequence": sequence, "frame": frame, name: own, "label_value": row["category_id"],
             "xmin": float(x), "ymin": float(y), "xmax": float(x + w), "ymax": float(y + h),
             "region": row.get("iscrowd", 0)}
        )  # fmt: skip
    return pl.DataFrame(files)


def values(card: ee.Scorecard) -> list[Any]:
    return [card.value(name) for name in METRICS]


def test_images(tmp_path: Path) -> None:
    card = ee.score(
        written(tmp_path / "found.json", results()),
        written(tmp_path / "truth.json", truth()),
        metrics=METRICS,
    )
    plain = ee.score(
        table(results(), "track_id").drop("region"),
        table(truth()["annotations"], "object_id"),
        datums=pl.DataFrame({"sequence": [1, 2], "frames": [4, 4]}),
        metrics=METRICS,
    )
    assert values(card) == values(plain)
    assert card.value("FP") == 1
    assert card.value("FPPerFrame", label_value=1) == 1 / 8


def test_results_with_frame_ids(tmp_path: Path) -> None:
    """Results with ``frame_id`` need no image id."""
    places = {image(video, frame): frame for video in (1, 2) for frame in range(4)}
    whole = results()
    own = [{k: v for k, v in row.items() if k != "image_id"}
           | {"frame_id": places[row["image_id"]]} for row in whole]  # fmt: skip
    sides = [written(tmp_path / "truth.json", truth())]
    cards = [
        ee.score(written(tmp_path / f"{i}.json", rows), *sides, metrics=METRICS)
        for i, rows in enumerate((whole, own))
    ]
    assert values(cards[0]) == values(cards[1])


def test_lists(tmp_path: Path) -> None:
    """YouTube-VIS has one row per object, with null in frames without it."""
    rows = truth()["annotations"][:-1]
    objects: dict[tuple[int, int], list[Any]] = {}
    for row in rows:
        listed = objects.setdefault((row["video_id"], row["category_id"]), [None] * 4)
        listed[900 - 10 * row["video_id"] - row["image_id"]] = row["bbox"]
    listed = [
        {"id": i, "video_id": video, "category_id": label, "iscrowd": 0, "bboxes": boxes}
        for i, ((video, label), boxes) in enumerate(objects.items())
    ]
    videos = [{"id": video, "length": 4} for video in (1, 2)]
    sides = (
        written(tmp_path / "found.json", [{**row, "score": 1.0, "id": None} for row in listed]),
        written(
            tmp_path / "truth.json",
            {"videos": videos, "categories": truth()["categories"], "annotations": listed},
        ),
    )
    card = ee.score(*sides, metrics=METRICS)
    assert values(card) == [1, 1, 1, 12, 0, 0, 0]


def test_lists_of_masks(tmp_path: Path) -> None:
    """YouTube-VIS masks: one per frame, null where the object is not visible."""

    def mask(x: int) -> dict[str, Any]:
        return {"size": [10, 30], "counts": [10 * x, 40, 260 - 10 * x]}

    shapes = {1: [mask(0), None, mask(4)], 2: [None, mask(8), mask(12)]}
    listed: Rows = [
        {"id": own, "video_id": 1, "category_id": 1, "iscrowd": 0, "segmentations": own_shapes}
        for own, own_shapes in shapes.items()
    ]
    predictions: Rows = [
        {"video_id": 1, "category_id": 1, "score": 0.9, "segmentations": [mask(2), None, mask(4)]},
        {"video_id": 1, "category_id": 1, "score": 0.8, "segmentations": [None, mask(8), None]},
    ]
    file = {"videos": [{"id": 1, "length": 3, "height": 10, "width": 30}],
            "categories": [{"id": 1, "name": "cat"}], "annotations": listed}  # fmt: skip
    card = ee.score(
        written(tmp_path / "found.json", predictions),
        written(tmp_path / "truth.json", file),
        metrics=["TP", "FP", "FN", "FPPerFrame", "HOTATP"],
        match_threshold=1 / 3,
    )
    assert [card.value(name) for name in ("TP", "FP", "FN")] == [3, 0, 1]
    # 2 pairs at all 19 thresholds, one at those up to 2 columns of 6
    assert card.value("HOTATP") == pytest.approx((2 * 19 + 6) / 19)


def test_polygons_and_masks(tmp_path: Path) -> None:
    """Polygons are rasterised at the size of their image; masks contain their size."""
    file = truth()
    for one in file["images"]:
        one |= {"width": 90, "height": 40}
    for row in file["annotations"]:
        x, y, w, h = row.pop("bbox")
        row["segmentation"] = [[x, y, x + w, y, x + w, y + h, x, y + h]]
    file["annotations"].pop()
    predictions = []
    for row in file["annotations"]:
        ((x, y, _, _, far, low, *_),) = row["segmentation"]
        runs = [x * 40 + y, *[low - y, 40 - low + y] * (far - x)]
        counts = [*runs[:-1], 40 * 90 - sum(runs[:-1])]
        own = {"image_id": row["image_id"], "category_id": row["category_id"], "score": 1.0}
        shape = {"size": [40, 90], "counts": counts}
        predictions.append(own | {"track_id": row["instance_id"], "segmentation": shape})
    card = ee.score(
        written(tmp_path / "found.json", predictions),
        written(tmp_path / "truth.json", file),
        metrics=["HOTA", "LocA"],
    )
    assert (card.task, card.value("HOTA"), card.value("LocA")) == ("tracking", 1, 1)


def test_files_without_tracks_are_detection(tmp_path: Path) -> None:
    """A file of videos without track ids is read as COCO detection."""
    file = truth()
    for row in file["annotations"]:
        del row["instance_id"]
    predictions = results()
    for row in predictions:
        del row["track_id"]
    sides = written(tmp_path / "found.json", predictions), written(tmp_path / "truth.json", file)
    assert ee.score(*sides, metrics=["AP"]).task == "detection"


@pytest.mark.parametrize(
    ("change", "code", "facts"),
    [
        ({"track_id": None}, "file_malformed", {"row": 0, "field": "track_id"}),
        ({"image_id": None}, "file_malformed", {"row": 0, "field": "frame_id"}),
        ({"bbox": None}, "file_malformed", {"row": 0, "field": "bbox"}),
        ({"bbox": [1, 2, 3]}, "wrong_length", {"field": "bbox"}),
        ({"image_id": 7}, "ids_unmatched", {"count": 1}),
        ({"video_id": "x"}, "types_mixed", {"field": "video_id"}),
    ],
)
def test_refused(tmp_path: Path, change: dict[str, Any], code: str, facts: dict[str, Any]) -> None:
    rows = results()
    rows[0] |= change
    with refused(code, ee.ReadError, **facts):
        ee.score(written(tmp_path / "found.json", rows), written(tmp_path / "truth.json", truth()))
