"""compat.pycocotools against pycocotools on odd sets, to the bit: arrays, entries and text."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import pickle
from typing import Any

import numpy as np
import pytest
import refusals
from coco_files import annotation, result, truths
from unusual_coco import OURS, Unusual, coco_mask, evaluated, loaded, reference, same, unusual

import evalengine as ee
from evalengine.compat.pycocotools import init_as_pycocotools


def agree(case: Unusual) -> None:
    theirs, text = evaluated(reference(), case)
    for look in (False, True):  # numbers of the matching, and from evalImgs
        mine, my_text = evaluated(OURS, case, look=look)
        assert my_text == text
        same(np.asarray(mine.stats), np.asarray(theirs.stats), "stats")
        for key in ("precision", "recall", "scores", "counts"):
            same(mine.eval[key], theirs.eval[key], key)
    same(mine.evalImgs, theirs.evalImgs, "evalImgs")
    assert list(mine.ious) == list(theirs.ious)
    for cell, results in theirs.ious.items():
        same(np.asarray(mine.ious[cell]), np.asarray(results), f"ious{cell}")


@pytest.mark.parametrize("seed", range(40))
def test_odd_sets(seed: int) -> None:
    agree(unusual(seed))


ONE = truths(annotation(), annotation(2, iscrowd=1))


@pytest.mark.parametrize(
    "case",
    [
        Unusual(truths(), [], "bbox", {}),
        Unusual(ONE, [], "bbox", {}),
        Unusual(truths(), [result()], "bbox", {}),
        Unusual(truths(categories=[]), [], "bbox", {}),
        Unusual(ONE, [result() for _ in range(4)], "bbox", {"maxDets": [1, 2, 3]}),
        Unusual(ONE, [result(bbox=[5, 5, -3, -4]), result(bbox=[5, 5, -3, 4])], "bbox", {}),
    ],
    ids=["nothing", "no results", "no truths", "no categories", "ties", "inverted"],
)
def test_edges(case: Unusual) -> None:
    agree(case)


def test_no_images() -> None:
    mine, _ = evaluated(OURS, Unusual(truths(images=[]), [], "bbox", {}))
    assert (mine.stats == -1).all()
    assert mine.evalImgs == []


def test_a_polygon_of_several_rings_and_a_short_one() -> None:
    """A second ring of two points encloses no area."""
    ring = [0.0, 0.0, 9.0, 0.0, 9.0, 9.0]
    truth = truths(annotation(segmentation=[ring, [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]]))
    code = coco_mask.encode(np.ones((480, 640), np.uint8, order="F"))
    agree(Unusual(truth, [result(segmentation=code)], "segm", {}))


def test_accumulating_parts_of_an_evaluation() -> None:
    """``accumulate`` accepts fewer ranges and other caps; values that were not evaluated are -1."""
    case = unusual(11)._replace(params={})
    params = {"maxDets": [10, 7, 100], "areaRng": [[0**2, 1e5**2], [0, 3]]}
    results = []
    for lib in (OURS, reference()):
        evaluation, _ = evaluated(lib, case)
        for name, value in params.items():
            setattr(evaluation.params, name, value)
        with contextlib.redirect_stdout(io.StringIO()):
            evaluation.accumulate()
        results.append(evaluation.eval["precision"])
    mine, theirs = results
    assert mine.shape == theirs.shape
    same(mine[..., :1, 0], theirs[..., :1, 0], "cap 10 of all sizes")
    same(
        mine[..., :1, 2], theirs[..., :1, 1], "cap 100, which pycocotools puts one place too early"
    )
    assert (mine[..., 1] == -1).all()
    assert (mine[..., 1, :] == -1).all()


def test_selected_categories_and_images() -> None:
    """pycocotools instead reads the first categories and images, regardless of the selection."""
    case = unusual(13)._replace(params={})
    whole, _ = evaluated(OURS, case)
    last = whole.params.catIds[-1:]
    for params in ({"catIds": last}, {"imgIds": whole.params.imgIds[1:]}):
        single, _ = evaluated(reference(), case._replace(params=params))
        mine, _ = evaluated(OURS, case)
        for name, value in params.items():
            setattr(mine.params, name, value)
        with contextlib.redirect_stdout(io.StringIO()):
            mine.accumulate()
        same(mine.eval["precision"], single.eval["precision"])


@pytest.mark.parametrize("look", [False, True])
def test_a_ground_truth_of_id_0_counts(look: bool) -> None:
    """pycocotools treats id 0 as no match, so a prediction that matches it is a false positive."""
    case = Unusual(truths(annotation(0)), [result(bbox=[0.1, 0.2, 3, 4.5])], "bbox", {})
    mine, _ = evaluated(OURS, case, look=look)
    theirs, _ = evaluated(reference(), case)
    renumbered, _ = evaluated(reference(), case._replace(truths=truths(annotation(1))))
    same(mine.stats, renumbered.stats)
    assert theirs.stats[0] == 0
    assert mine.stats[0] > 0.99


def test_results_on_a_custom_dataset() -> None:
    """Results need not come from loadRes; their ``area`` is used."""
    predictions = []
    for lib in (OURS, reference()):
        truth, _ = loaded(lib, ONE, [])
        results = lib.COCO()
        row = {**result(), "id": 5, "area": 5000.0, "iscrowd": 0}
        results.dataset = {
            "images": ONE["images"],
            "categories": ONE["categories"],
            "annotations": [row, {**row, "id": 6, "area": 1.0}],
        }
        with contextlib.redirect_stdout(io.StringIO()):
            results.createIndex()
            evaluation = lib.COCOeval(truth, results, "bbox")
            evaluation.evaluate()
            evaluation.accumulate()
        predictions.append(evaluation)
    same(predictions[0].evalImgs, predictions[1].evalImgs)
    same(predictions[0].eval["precision"], predictions[1].eval["precision"])


def test_rows_changed_after_they_were_indexed() -> None:
    """Categories, areas and flags are read during evaluation, as error analyses expect."""
    case = unusual(21)._replace(params={}, kind="bbox")
    result = []
    for lib in (OURS, reference()):
        truth, results = loaded(lib, case.truths, case.results)
        truth, results = copy.deepcopy(truth), copy.deepcopy(results)
        for row in truth.dataset["annotations"]:
            row["iscrowd"], row["category_id"] = 1, truth.getCatIds()[0]
        with contextlib.redirect_stdout(io.StringIO()):
            evaluation = lib.COCOeval(truth, results, "bbox")
            evaluation.evaluate()
        result.append(evaluation.evalImgs)
    same(*result)


def test_rows_of_one_id() -> None:
    """The last row counts for each of them, as in pycocotools, with a warning."""
    moved = annotation(bbox=[50, 50, 9, 9], category_id=3)
    case = Unusual(truths(annotation(), moved, annotation(2)), [result()], "bbox", {})
    theirs, _ = evaluated(reference(), case)
    with pytest.warns(UserWarning, match="1 of 3 have the id of another one"):
        mine, _ = evaluated(OURS, case)
    same(mine.evalImgs, theirs.evalImgs)


def test_evaluations_are_copied_and_pickled() -> None:
    mine, _ = evaluated(OURS, unusual(5))
    for other in (copy.deepcopy(mine), pickle.loads(pickle.dumps(mine))):
        same(other.evalImgs, mine.evalImgs)
        same(other.stats, mine.stats)


def test_the_dialect_gives_the_same() -> None:
    case = unusual(8)._replace(params={}, kind="bbox")
    mine, _ = evaluated(OURS, case)
    truth, results = loaded(OURS, case.truths, case.results)
    card = ee.score(results.dataset["annotations"], truth, dialect="coco", iou_type="bbox")
    same(np.array(card.to_coco()["stats"]), mine.stats)


def test_init_as_pycocotools() -> None:
    from pycocotools.coco import COCO as theirs

    with init_as_pycocotools():
        from pycocotools import mask
        from pycocotools.coco import COCO
        from pycocotools.cocoeval import COCOeval, Params

        assert (COCO, COCOeval, mask) == (OURS.COCO, OURS.COCOeval, OURS.mask)
        assert Params(iouType="bbox").maxDets == [1, 10, 100]
    from pycocotools.coco import COCO as again

    assert again is theirs
    undo = init_as_pycocotools()
    undo.close()
    from pycocotools.coco import COCO as once_more

    assert once_more is theirs


def refused(truth: Any, results: list[Any], kind: str = "bbox", **params: Any) -> refusals.Refusal:
    with pytest.raises((ee.InputError, ee.OptionError)) as error:
        evaluated(OURS, Unusual(truth, results, kind, params))
    return refusals.Refusal(error.value)


SQUARE = {"size": [480, 640], "counts": [0, 480 * 640]}


@pytest.mark.parametrize(
    ("case", "refusal"),
    [
        (
            (ONE, [result(), result(score=float("nan"))]),
            {
                "code": "wrong_rows",
                "field": "score",
                "side": "results",
                "count": 1,
                "of": 2,
                "rows": [1],
            },
        ),
        (
            (ONE, [result(bbox=[1, 2, 3])]),
            {
                "code": "wrong_rows",
                "field": "bbox",
                "side": "results",
                "count": 1,
                "of": 1,
                "rows": [0],
            },
        ),
        (
            (ONE, [result(bbox=[1, 2, 3, None])]),
            {
                "code": "wrong_rows",
                "field": "bbox",
                "side": "results",
                "count": 1,
                "of": 1,
                "rows": [0],
            },
        ),
        (
            (ONE, [{k: v for k, v in result().items() if k != "score"}]),
            {
                "code": "wrong_rows",
                "field": "score",
                "side": "results",
                "count": 1,
                "of": 1,
                "rows": [0],
            },
        ),
        (
            (truths({k: v for k, v in annotation().items() if k != "area"}), [result()]),
            {
                "code": "wrong_rows",
                "field": "area",
                "side": "ground truths",
                "count": 1,
                "of": 1,
                "rows": [0],
            },
        ),
        ((ONE, [result(3)]), {"code": "unknown_ids", "count": 1, "of": 1}),
        (
            (ONE, [3]),
            {
                "code": "wrong_rows",
                "field": None,
                "side": "results",
                "count": 1,
                "of": 1,
                "rows": [0],
            },
        ),
        (
            (
                truths(annotation(segmentation=SQUARE)),
                [result(segmentation={"size": [2, 2], "counts": "04"})],
                "segm",
            ),
            {
                "code": "wrong_rows",
                "field": None,
                "side": "results",
                "count": 1,
                "of": 1,
                "rows": [0],
            },
        ),
        (
            (truths(annotation(segmentation=[[1, 2, 3, 4]])), [result()], "segm"),
            {
                "code": "ring_short",
                "side": "ground truths",
                "column": "segmentation",
                "count": 1,
                "rows": [0],
            },
        ),
    ],
    ids=["nan", "three", "none", "score", "area", "image", "dicts", "sizes", "ring"],
)
def test_refused_rows(case: tuple[Any, ...], refusal: dict[str, Any]) -> None:
    if refusal["code"] == "unknown_ids":
        with refusals.refused("unknown_ids", AssertionError, count=1, of=1):
            loaded(OURS, *case)
        return
    assert refused(*case).has(**refusal)


@pytest.mark.parametrize(
    ("params", "refusal"),
    [
        ({"iouThrs": [0.0, 0.5]}, {"code": "option_value", "option": "iouThrs"}),
        ({"iouThrs": []}, {"code": "option_value", "option": "iouThrs"}),
        ({"maxDets": [0, 1, 2]}, {"code": "option_value", "option": "maxDets"}),
        ({"areaRng": [[5, 1]]}, {"code": "option_value", "option": "areaRng", "value": [5, 1]}),
    ],
)
def test_refused_params(params: dict[str, Any], refusal: dict[str, Any]) -> None:
    assert refused(ONE, [result()], **params).has(**refusal)


def test_refused_calls(tmp_path: Any) -> None:
    mine, _ = evaluated(OURS, unusual(3)._replace(params={}))
    mine.params.iouThrs = [0.123]
    with pytest.raises(ee.OptionError, match="were not evaluated"):
        mine.accumulate()
    with refusals.refused("not_evaluated", ee.OptionError, option="image", value=-5):
        mine.computeIoU(-5, mine.params.catIds[0])
    mine.evalImgs = mine.evalImgs[1:]
    mine.params.iouThrs = np.linspace(0.5, 0.95, 10)
    with pytest.raises(ee.InputError, match="evalImgs has"):
        mine.accumulate()
    fresh = OURS.COCOeval(mine.cocoGt, mine.cocoDt, "bbox")
    with pytest.raises(ee.ResultError, match=r"run accumulate\(\) first"):
        fresh.summarize()
    with pytest.raises(ee.ResultError, match=r"run evaluate\(\) first"):
        fresh.accumulate()
    with pytest.raises(ee.OptionError, match="iouType not supported"):
        OURS.COCOeval(mine.cocoGt, mine.cocoDt, "masks")
    path = tmp_path / "broken.json"
    path.write_text("[1, 2")
    with refusals.refused("file_unreadable", ee.InputError):
        OURS.COCO(path)
    path.write_text(json.dumps([result()]))
    with pytest.raises(ee.InputError, match="goes to loadRes"):
        OURS.COCO(path)
