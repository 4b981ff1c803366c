"""Masks and polygons in the ``coco`` dialect are pycocotools to the bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from coco_masks import pixels_of, random_files
from oracles.coco_reference import coco_eval, same_as_coco
from refusals import noted, refused

import evalengine as ee
from evalengine.ingest.converting import convert_coco
from evalengine.ingest.sources import coco


def _written(folder: Path, seed: int, **more: Any) -> tuple[str, str]:
    """Write results and ground truths, and return their paths."""
    truths, results = random_files(seed, **more)
    paths = []
    for name, content in (("dt.json", results), ("gt.json", truths)):
        path = folder / name
        path.write_text(json.dumps(content))
        paths.append(str(path))
    return paths[0], paths[1]


def _coco(*tables: Any, **options: Any) -> Any:
    return ee.score(*tables, task="detection", dialect="coco", **options).to_coco()


@pytest.mark.parametrize("seed", range(6))
def test_random_files(tmp_path: Path, seed: int) -> None:
    """Polygons, both codes, crowds, empty masks, areas unlike the masks'; any number of threads."""
    predictions, truths = _written(tmp_path, seed)
    theirs = coco_eval(truths, predictions, "segm")
    assert (theirs.eval["precision"] > 0).any()
    for options in ({"iou_type": "segm"}, {"convert_to": "mask", "threads": 1}, {"threads": 3}):
        same_as_coco(_coco(predictions, truths, **options), theirs)


def test_specks_next_to_polygons(tmp_path: Path) -> None:
    """Rings of one and two points after another ring, as in annotated sets."""
    truths, results = random_files(5)
    listed = [one for one in truths["annotations"] if isinstance(one["segmentation"], list)]
    for one in listed:
        one["segmentation"] += [[5.0, 6.0], [7.5, 8.0, 20.0, 9.0]]
    paths = [tmp_path / "dt.json", tmp_path / "gt.json"]
    for path, content in zip(paths, (results, truths), strict=True):
        path.write_text(json.dumps(content))
    result = _coco(*map(str, paths), iou_type="segm")
    same_as_coco(result, coco_eval(str(paths[1]), str(paths[0]), "segm"))
    listed[0]["segmentation"] = [[5.0, 6.0, 20.0, 6.0]]  # pycocotools cannot make a mask of it
    paths[1].write_text(json.dumps(truths))
    with refused("ring_short", count=1):
        _coco(*map(str, paths), iou_type="segm")


@pytest.mark.parametrize("seed", [30, 31, 32, 33])
def test_boundaries(tmp_path: Path, seed: int) -> None:
    """The smaller of mask and boundary IoU; against crowds, which all sets have, that of masks."""
    predictions, truths = _written(tmp_path, seed)
    theirs = coco_eval(truths, predictions, "boundary")
    assert theirs.stats.tolist() != coco_eval(truths, predictions, "segm").stats.tolist()
    same_as_coco(_coco(predictions, truths, iou_type="boundary"), theirs)
    wide = _coco(predictions, truths, iou_type="boundary", boundary_ratio=0.2)
    assert wide["stats"] != theirs.stats.tolist()


def test_converted_to_parquet_they_score_the_same(tmp_path: Path) -> None:
    """``convert coco`` keeps segmentations and their numbers, and adds sizes to datums."""
    predictions, truths = _written(tmp_path, 20)
    out = tmp_path / "tables"
    convert_coco(truths, predictions, out=out)
    assert {"polygon", "mask"} <= {*pl.read_parquet_schema(out / "groundtruths.parquet")}
    card = _coco(
        out / "predictions.parquet", out / "groundtruths.parquet",
        datums=out / "datums.parquet", labels=out / "labels.parquet", iou_type="segm",
    )  # fmt: skip
    same_as_coco(card, coco_eval(truths, predictions, "segm"))


def test_conditions_and_several_files(tmp_path: Path) -> None:
    """Masks stay with their rows under a condition and over several files."""
    predictions, truths = _written(tmp_path, 23)
    rows = json.loads(Path(predictions).read_text())
    selected = [row for row in rows if row["score"] >= 0.5]
    names = []
    for name, some in (("kept", selected), ("part1", selected[: len(selected) // 2]),
                       ("part2", selected[len(selected) // 2 :])):  # fmt: skip
        names.append(str(tmp_path / f"{name}.json"))
        Path(names[-1]).write_text(json.dumps(some))
    theirs = coco_eval(truths, names[0], "segm")
    same_as_coco(_coco(predictions, truths, iou_type="segm", where="score >= 0.5"), theirs)
    same_as_coco(_coco(names[1:], truths, iou_type="segm"), theirs)


def test_masks_are_not_read_to_compare_boxes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If boxes are compared and all rows have one, no segmentation is decoded."""
    predictions, truths = _written(tmp_path, 24)
    boxed = {}
    for name, path in (("dt", predictions), ("gt", truths)):
        content = json.loads(Path(path).read_text())
        rows = content["annotations"] if name == "gt" else content
        for row in rows:
            row["bbox"] = [1.0, 2.0, float(row["category_id"]), 4.0]
        boxed[name] = str(tmp_path / f"{name}-boxed.json")
        Path(boxed[name]).write_text(json.dumps(content))

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("decoded")

    for decode in ("_polygons", "_masks"):
        monkeypatch.setattr(coco, decode, refuse)
    theirs = coco_eval(boxed["gt"], boxed["dt"])
    same_as_coco(_coco(boxed["dt"], boxed["gt"], iou_type="bbox"), theirs)
    plain = [{k: v for k, v in row.items() if k != "segmentation"}
             for row in json.loads(Path(boxed["dt"]).read_text())]  # fmt: skip
    Path(boxed["dt"]).write_text(json.dumps(plain))
    same_as_coco(_coco(boxed["dt"], boxed["gt"]), theirs)
    assert "'polygon'" in noted(ee.check(boxed["dt"], boxed["gt"]), "geometry").message


def test_sides_of_other_forms_are_the_same_masks(tmp_path: Path) -> None:
    """Rows of pixels and row-major runs instead of COCO's codes."""
    predictions, truths = _written(tmp_path, 21, images=5)
    theirs = coco_eval(truths, predictions, "segm")
    content = json.loads(Path(predictions).read_text())
    pixels = [pixels_of(row["segmentation"], row["segmentation"]["size"]) for row in content]
    plain = pl.DataFrame(
        {name: [row[name] for row in content] for name in ("image_id", "category_id", "score")}
    )
    same_as_coco(
        _coco(plain.with_columns(mask=pl.Series([p.tolist() for p in pixels])), truths), theirs
    )
    runs = []
    for p in pixels:
        flat = p.ravel()
        edges = np.flatnonzero(np.diff(flat)) + 1
        lengths = np.diff(np.r_[0, edges, flat.size]).tolist()
        runs.append({"size": [*p.shape], "runs": [0, *lengths] if flat[0] else lengths})
    same_as_coco(_coco(plain.with_columns(mask=pl.Series(runs)), truths), theirs)


def test_boxes_of_the_same_files(tmp_path: Path) -> None:
    """``iou_type="bbox"`` compares the boxes of masks if no row has an annotated box."""
    predictions, truths = _written(tmp_path, 22)
    inputs = json.loads(Path(truths).read_text())
    size = {image["id"]: (image["height"], image["width"]) for image in inputs["images"]}
    for row in inputs["annotations"]:
        pixels = pixels_of(row["segmentation"], size[row["image_id"]])
        y, x = np.nonzero(pixels)
        corner = (x.min(), y.min()) if x.size else (0, 0)
        far = (x.max() + 1, y.max() + 1) if x.size else (0, 0)
        row["bbox"] = [*map(float, corner), float(far[0] - corner[0]), float(far[1] - corner[1])]
    boxes = tmp_path / "gt-boxes.json"
    boxes.write_text(json.dumps(inputs))
    only_masks = {**inputs, "annotations": [dict(row) for row in inputs["annotations"]]}
    for row in only_masks["annotations"]:
        if isinstance(row["segmentation"], dict):
            del row["bbox"]  # polygons exceed the image, their pixels do not
    (tmp_path / "some.json").write_text(json.dumps(only_masks))
    theirs = coco_eval(str(boxes), predictions)
    same_as_coco(_coco(predictions, str(tmp_path / "some.json"), iou_type="bbox"), theirs)


def test_a_broken_code_names_file_and_row(tmp_path: Path) -> None:
    def annotation(i: int, counts: list[int]) -> dict[str, Any]:
        code = {"size": [2, 2], "counts": counts}
        return {"id": i, "image_id": 1, "category_id": 1, "iscrowd": 0, "segmentation": code}

    truths = {
        "images": [{"id": 1, "height": 2, "width": 2}],
        "categories": [{"id": 1, "name": "a"}],
        "annotations": [annotation(1, [0, 4]), annotation(2, [3])],
    }
    results = [{"image_id": 1, "category_id": 1, "score": 0.5, "bbox": [0, 0, 1, 1]}]
    results[0]["segmentation"] = {"size": [2, 2], "counts": [0, 4]}
    for name, content in (("the_truth.json", truths), ("dt.json", results)):
        (tmp_path / name).write_text(json.dumps(content))
    truth = str(tmp_path / "the_truth.json")
    for run in (
        lambda: ee.score(str(tmp_path / "dt.json"), truth, task="detection"),
        lambda: convert_coco(truth, out=tmp_path / "out"),
    ):
        with pytest.raises(ee.ReadError, match="1 row with") as error:  # as Polars raises it
            run()
        assert "the_truth.json: " in str(error.value)
        assert "row 1 (size 2 x 2, [3])" in str(error.value)
