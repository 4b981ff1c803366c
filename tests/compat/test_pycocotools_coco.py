"""COCO and mask of compat.pycocotools against pycocotools, on odd sets and masks."""

from __future__ import annotations

import contextlib
import copy
import io
import json
from itertools import product
from typing import Any

import numpy as np
import pytest
from coco_files import annotation, result, truths
from refusals import refused
from sizes import tune
from unusual_coco import OURS, coco_mask, counts_of, loaded, reference, same, unusual

import evalengine as ee

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation")  # pycocotools' decode


def quietly(call: Any, *arguments: Any, **named: Any) -> tuple[Any, str]:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        return call(*arguments, **named), printed.getvalue()


@pytest.mark.parametrize("seed", range(8))
def test_look_ups(seed: int) -> None:
    case = unusual(seed)
    sets = [loaded(lib, case.truths, case.results) for lib in (OURS, reference())]
    for mine, theirs in zip(*sets, strict=True):
        if not theirs.dataset:
            continue
        same(mine.dataset, theirs.dataset)
        for name in ("anns", "imgs", "cats", "imgToAnns", "catToImgs"):
            same(getattr(mine, name), getattr(theirs, name), name)
        images, categories = theirs.getImgIds(), theirs.getCatIds()
        for of_images, of_categories, more in product(
            ([], images[:1], images, images[0]),
            ([], categories[:1], categories[0]),
            ({}, {"iscrowd": False}, {"iscrowd": True}, {"areaRng": [5, 1024]}),
        ):
            wanted = {"imgIds": of_images, "catIds": of_categories, **more}
            ids = theirs.getAnnIds(**wanted)
            assert mine.getAnnIds(**wanted) == ids, wanted
            same(mine.loadAnns(ids), theirs.loadAnns(ids))
        for wanted in (
            {},
            {"catIds": categories[:1]},
            {"catIds": categories},
            {"imgIds": images[:1]},
        ):
            assert mine.getImgIds(**wanted) == theirs.getImgIds(**wanted)
        for wanted in ({"catNms": ["c0", "c7"]}, {"supNms": "s1"}, {"catIds": categories[0]}):
            assert mine.getCatIds(**wanted) == theirs.getCatIds(**wanted)
        same(mine.loadImgs(images[0]), theirs.loadImgs(images[0]))
        same(mine.loadCats(categories), theirs.loadCats(categories))
        for row in theirs.anns.values():
            same(mine.annToRLE(row), theirs.annToRLE(row))
            same(mine.annToMask(row), theirs.annToMask(row))


def test_files_lists_and_arrays_of_results(tmp_path: Any) -> None:
    """Every form of results gives the same rows and prints the same text, except for seconds."""
    path, results = tmp_path / "truths.json", tmp_path / "results.json"
    path.write_text(json.dumps(truths(annotation())))
    rows = [result(score=0.25), result(2, score=1.0)]
    results.write_text(json.dumps(rows))
    array = np.array([[1, 1, 2.5, 3, 4, 0.25, 7], [2, 1, 2.5, 3, 4, 1.0, 7]])
    entries = []
    for lib in (OURS, reference()):
        truth, printed = quietly(lib.COCO, str(path))
        assert printed.splitlines()[0] == "loading annotations into memory..."
        assert printed.splitlines()[-2:] == ["creating index...", "index created!"]
        _, info = quietly(truth.info)
        sets = [
            quietly(truth.loadRes, form)[0] for form in (str(results), copy.deepcopy(rows), array)
        ]
        entries.append([info, truth.dataset, *(one.dataset for one in sets)])
    same(entries[0][:-1], entries[1][:-1])
    assert entries[0][-1] == entries[1][-1]  # NumPy's floats in pycocotools


def _stats(truth: Any, results: Any) -> list[float]:
    run = OURS.COCOeval(truth, results, "bbox")
    for step in (run.evaluate, run.accumulate, run.summarize):
        quietly(step)
    return run.stats.tolist()


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"score": 1},
        {"bbox": [1, 2, 3, 4]},
        {"image_id": 1.0},
        {"area": 7, "id": 3},
        {"caption": "a"},
        {"segmentation": [[0.5, 0, 9, 0, 9, 9]]},
    ],
)
def test_files_of_boxes_become_dicts_on_demand(change: dict[str, Any], tmp_path: Any) -> None:
    tune(json_bytes=1)
    rng = np.random.default_rng(4)
    images = [{"id": i, "width": 99, "height": 99} for i in range(1, 6)]
    boxes = [(rng.random(4) * 50 + 1).tolist() for _ in range(40)]
    rows = [
        {"image_id": 1 + i % 5, "category_id": 1 + i % 2, "bbox": box, "score": i / 64}
        for i, box in enumerate(boxes)
    ]
    rows[20] |= change
    marked = [
        {**row, "id": i, "area": 400.5, "iscrowd": 0} for i, row in enumerate(rows[::2], start=1)
    ]
    truth = OURS.COCO()
    truth.dataset = {
        "images": images,
        "annotations": marked,
        "categories": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}],
    }
    quietly(truth.createIndex)
    file = tmp_path / "rows.json"
    file.write_text(json.dumps(rows))
    of_file, of_list = (quietly(truth.loadRes, one)[0] for one in (str(file), rows))
    file.unlink()  # everything was read
    assert _stats(truth, of_file) == _stats(truth, of_list)
    for name in ("catToImgs", "anns", "imgToAnns", "dataset"):
        same(getattr(of_file, name), getattr(of_list, name), name)
    for one in (of_file, of_list):
        for row in one.anns.values():
            row["score"] = -row["score"]
    assert _stats(truth, of_file) == _stats(truth, of_list)


_CAPTIONED = (
    '[{"image_id": 1, "category_id": 1, "score": 1, "bbox": [1, 2, 3, 4], "caption": null}]'
)


@pytest.mark.parametrize(
    "text", ["[]", "[1]", '[{"image_id": 1}]', "{}", "[", '[{"image_id": 1', _CAPTIONED]
)
def test_short_damaged_and_captioned_files_of_results(text: str, tmp_path: Any) -> None:
    truth = OURS.COCO()
    truth.dataset = {"images": [{"id": 1}], "annotations": [], "categories": []}
    quietly(truth.createIndex)
    file = tmp_path / "rows.json"
    file.write_text(text)

    def outcome() -> Any:
        try:
            return quietly(truth.loadRes, str(file))[0].anns
        except ee.InputError as error:
            return error.code
        except (TypeError, KeyError) as error:
            return type(error)

    usual = outcome()
    tune(json_bytes=1)
    assert outcome() == usual


def test_a_file_with_numbers_that_are_no_json(tmp_path: Any) -> None:
    path = tmp_path / "truths.json"
    path.write_text(json.dumps(truths(annotation(area=float("nan")))))
    mine, _ = quietly(OURS.COCO, path)
    assert np.isnan(mine.anns[1]["area"])


def test_results_are_copied_on_demand() -> None:
    rows = [result()]
    truth, _ = loaded(OURS, truths(annotation()), [])
    results, _ = quietly(truth.loadRes, rows)
    evaluation = OURS.COCOeval(truth, results, "bbox")
    quietly(evaluation.evaluate)
    assert rows == [result()]
    assert results.anns[1] is rows[0]
    assert rows[0]["area"] == 12


def test_empty_results() -> None:
    """pycocotools fails for an empty list."""
    truth, _ = loaded(OURS, truths(annotation()), [])
    results, _ = quietly(truth.loadRes, [])
    assert results.getAnnIds() == []
    assert results.getCatIds() == truth.getCatIds()


def test_missing_names() -> None:
    truth, _ = loaded(OURS, truths(annotation()), [])
    with pytest.raises(NotImplementedError, match="annToMask returns the pixels"):
        truth.showAnns([])
    with pytest.raises(NotImplementedError, match="fetches images"):
        truth.download()
    with refused("wrong_shape", ee.InputError):
        quietly(truth.loadRes, {})
    with refused("wrong_shape", ee.InputError, shape=(3, 6)):
        quietly(truth.loadRes, np.zeros((3, 6)))


@pytest.mark.parametrize("seed", range(12))
def test_masks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    h, w, n = rng.integers(1, 30, 3)
    pixels = np.asfortranarray(rng.random((h, w, n)) < rng.choice([0, 0.1, 0.5, 1])).astype(
        np.uint8
    )
    mine, theirs = OURS.mask, coco_mask
    codes = theirs.encode(pixels)
    same(mine.encode(pixels), codes)
    same(mine.encode(pixels[:, :, 0]), codes[0])
    for name, inputs in product(("decode", "area", "toBbox"), (codes, codes[:1], codes[0])):
        same(getattr(mine, name)(inputs), getattr(theirs, name)(inputs), name)
    for intersect in (False, True):
        same(mine.merge(codes, intersect), theirs.merge(codes, intersect))
    crowd = rng.integers(0, 2, n).tolist()
    same(mine.iou(codes, codes, crowd), theirs.iou(codes, codes, crowd))
    boxes = (rng.random((n, 4)) * 30).round(int(rng.integers(3)))
    for form in (boxes, boxes.tolist()):
        same(mine.iou(form, form[::-1], crowd), theirs.iou(boxes, boxes[::-1].copy(), crowd))
    same(mine.frPyObjects(boxes, 40, 40), theirs.frPyObjects(boxes, 40, 40))
    rings = [(rng.random(2 * rng.integers(3, 8)) * 40).tolist() for _ in range(3)]
    same(mine.frPyObjects(rings, 40, 40), theirs.frPyObjects(rings, 40, 40))
    counts = {"size": [int(h), int(w)], "counts": counts_of(pixels[:, :, 0])}
    for inputs in (counts, [counts, counts]):
        same(mine.frPyObjects(inputs, h, w), theirs.frPyObjects(inputs, h, w))


def test_no_masks() -> None:
    for name, inputs in (("area", []), ("toBbox", []), ("merge", []), ("iou", ([], [], []))):
        results = [getattr(m, name)(*(inputs or ([],))) for m in (OURS.mask, coco_mask)]
        same(*results, name)


def test_refused_masks() -> None:
    mask = OURS.mask
    one, other = (mask.encode(np.ones(shape, np.uint8)) for shape in ((2, 3), (3, 2)))
    with pytest.raises(ee.InputError, match="different size"):
        mask.merge([one, other])
    with pytest.raises(ee.InputError, match="different size"):
        mask.decode([one, other])
    with pytest.raises(ee.InputError, match="of different size"):
        mask.iou([one], [other], [0])
    with refused("forms_differ", ee.InputError):
        mask.iou([one], [[1, 2, 3, 4]], [0])
    with pytest.raises(ee.InputError, match="iscrowd has 2 values"):
        mask.iou([one], [one], [0, 1])
    with refused("wrong_shape", ee.InputError):
        mask.frPyObjects("ring", 2, 2)
    with pytest.raises(ee.InputError, match="a mask is"):
        mask.encode(np.ones(3, np.uint8))
