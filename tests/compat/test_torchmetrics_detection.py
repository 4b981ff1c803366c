"""compat.torchmetrics.MeanAveragePrecision against pycocotools."""

from __future__ import annotations

import contextlib
import io
import pickle
from typing import Any

import numpy as np
import pytest
from lazy_imports import LazyModule

from evalengine.compat.torchmetrics import MeanAveragePrecision

cocotools = LazyModule("pycocotools.coco")
cocoeval = LazyModule("pycocotools.cocoeval")
coco_mask = LazyModule("pycocotools.mask")

Items = list[dict[str, Any]]
FORMATS = {
    "xywh": lambda box: box,
    "xyxy": lambda box: np.c_[box[:, :2], box[:, :2] + box[:, 2:]],
    "cxcywh": lambda box: np.c_[box[:, :2] + box[:, 2:] / 2, box[:, 2:]],
}


def images(seed: int, masks: bool = False, labels: int = 3) -> tuple[Items, Items]:
    """Make both sides with boxes as xywh; some images have none on one side."""
    rng = np.random.default_rng(seed)
    preds, target = [], []
    for i in range(8):
        n, m = rng.integers(0, 6, 2)
        boxes = np.c_[rng.integers(0, 30, (n, 2)), rng.integers(2, 120, (n, 2))].astype(float)
        took = rng.integers(0, n, m) if n else np.zeros(0, int)
        moved = boxes[took] + rng.integers(-1, 2, (len(took), 4))
        truth = {"boxes": boxes, "labels": rng.integers(0, labels, n)}
        if i % 2:
            truth["iscrowd"] = (rng.random(n) < 0.2).astype(int)
            truth["area"] = rng.choice([0, 500, 2000, 20000], n)
        predictions = {
            "boxes": moved,
            "scores": rng.integers(1, 9, len(took)) / 10,
            "labels": np.where(rng.random(len(took)) < 0.8, truth["labels"][took], 0),
        }
        if masks:
            for side in (truth, predictions):
                pixels = np.zeros((len(side["boxes"]), 160, 160), bool)
                for mask, (x, y, w, h) in zip(pixels, side["boxes"].astype(int), strict=True):
                    mask[max(y, 0) : y + h, max(x, 0) : x + w : 2] = True
                side["masks"] = pixels
        preds.append(predictions)
        target.append(truth)
    return preds, target


def coco(
    preds: Items, target: Items, kind: str, caps: list[int], one_label: bool = False,
    ious: list[float] | None = None, label: int | None = None,
) -> Any:  # fmt: skip
    """Compute pycocotools' twelve numbers of the same images, called as torchmetrics does."""
    labels = sorted(
        {int(one) for side in (preds, target) for item in side for one in item["labels"]}
    )
    sides = []
    for side in (target, preds):
        rows = []
        for i, item in enumerate(side):
            inputs = item.get("area", np.zeros(len(item["labels"])))
            crowd = item.get("iscrowd", np.zeros(len(item["labels"]), int))
            for k, box in enumerate(item["boxes"]):
                row = {"id": len(rows) + 1, "image_id": i, "bbox": box.tolist(),
                       "category_id": 0 if one_label else int(item["labels"][k]),
                       "iscrowd": int(crowd[k]), "area": box[2] * box[3]}  # fmt: skip
                if kind == "segm":
                    code = coco_mask.encode(np.asfortranarray(item["masks"][k].astype(np.uint8)))
                    row |= {"segmentation": code, "area": float(coco_mask.area(code))}
                if inputs[k] > 0:
                    row["area"] = float(inputs[k])
                if "scores" in item:
                    row["score"] = float(item["scores"][k])
                rows.append(row)
        result = cocotools.COCO()
        categories = [{"id": one} for one in ([0] if one_label else labels)]
        result.dataset = {
            "images": [{"id": i, "height": 160, "width": 160} for i in range(len(side))],
            "annotations": rows,
            "categories": categories,
            "info": {},
        }
        with contextlib.redirect_stdout(io.StringIO()):
            result.createIndex()
        sides.append(result)
    evaluation = cocoeval.COCOeval(*sides, iouType=kind)
    evaluation.params.maxDets = caps
    if ious is not None:
        evaluation.params.iouThrs = np.array(ious)
    if label is not None:
        evaluation.params.catIds = [label]
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return evaluation.stats


def named(caps: list[int]) -> list[str]:
    return ["map", "map_50", "map_75", "map_small", "map_medium", "map_large",
            *(f"mar_{cap}" for cap in caps), "mar_small", "mar_medium", "mar_large"]  # fmt: skip


@pytest.mark.parametrize("box_format", FORMATS)
@pytest.mark.parametrize("average", ["macro", "micro"])
@pytest.mark.parametrize("caps", [[1, 10, 100], [1, 2, 100], [2, 100, 300]])
def test_boxes(box_format: str, average: str, caps: list[int]) -> None:
    preds, target = images(len(box_format) + caps[1])
    metric = MeanAveragePrecision(
        box_format=box_format, average=average, class_metrics=True, max_detection_thresholds=caps
    )
    turned = [[item | {"boxes": FORMATS[box_format](item["boxes"])} for item in side]
              for side in (preds, target)]  # fmt: skip
    metric.update(turned[0][:3], turned[1][:3])
    copied = pickle.loads(pickle.dumps(metric))
    copied.update(turned[0][3:], turned[1][3:])
    result = copied.compute()
    theirs = coco(preds, target, "bbox", caps, average == "micro")
    assert [result[name] for name in named(caps)] == pytest.approx(theirs, abs=1e-12)
    for i, label in enumerate(result["classes"]):
        stats = coco(preds, target, "bbox", caps, label=int(label))
        assert result["map_per_class"][i] == pytest.approx(stats[0], abs=1e-12)
        assert result[f"mar_{caps[-1]}_per_class"][i] == pytest.approx(stats[8], abs=1e-12)


def test_the_mean_without_a_cap_of_100_is_at_the_last() -> None:
    """torchmetrics has -1, which its users report as a fault."""
    preds, target = images(4)
    metric = MeanAveragePrecision(box_format="xywh", max_detection_thresholds=[1, 2, 50])
    metric.update(preds, target)
    usual = coco(preds, target, "bbox", [1, 2, 100])[0]  # no image has 50 detections
    assert metric.compute()["map"] == pytest.approx(usual, abs=1e-12)


def test_masks_and_both() -> None:
    preds, target = images(5, masks=True)
    caps = [1, 10, 100]
    single = MeanAveragePrecision(iou_type="segm")
    single.update(preds, target)
    theirs = coco(preds, target, "segm", caps)
    assert [single.compute()[name] for name in named(caps)] == pytest.approx(theirs, abs=1e-12)
    both = MeanAveragePrecision(box_format="xywh", iou_type=("bbox", "segm"))
    both.update(preds, target)
    result = both.compute()
    assert [result[f"segm_{name}"] for name in named(caps)] == pytest.approx(theirs, abs=1e-12)
    boxes = coco(preds, target, "bbox", caps)
    assert [result["bbox_map"], result["bbox_mar_10"]] == pytest.approx([boxes[0], boxes[7]])


def test_thresholds() -> None:
    preds, target = images(3)
    metric = MeanAveragePrecision(box_format="xywh", iou_thresholds=[0.5, 0.6])
    metric.update(preds, target)
    theirs = coco(preds, target, "bbox", [1, 10, 100], ious=[0.5, 0.6])
    result = metric.compute()
    assert [result[name] for name in named([1, 10, 100])] == pytest.approx(theirs, abs=1e-12)
    assert result["map_75"] == -1


def test_keys_calls_merging_and_reset() -> None:
    preds, target = images(7)
    metric = MeanAveragePrecision(box_format="xywh")
    assert metric.compute()["map"] == -1
    first = metric(preds[:4], target[:4])
    single = MeanAveragePrecision(box_format="xywh")
    single.update(preds[:4], target[:4])
    assert [*first] == [*named([1, 10, 100]), "map_per_class", "mar_100_per_class", "classes"]
    assert first["map"] == single.compute()["map"]
    rest = MeanAveragePrecision(box_format="xywh")
    rest.update(preds[4:], target[4:])
    metric.merge_state(rest)
    assert metric.compute()["map"] == pytest.approx(coco(preds, target, "bbox", [1, 10, 100])[0])
    metric.reset()
    assert metric.compute()["map"] == -1
    with pytest.raises(ValueError, match="other arguments"):
        metric.merge_state(MeanAveragePrecision())


@pytest.mark.parametrize("class_metrics", [False, True])
def test_images_without_boxes(class_metrics: bool) -> None:
    """torchmetrics has no number per class, or -1 if none are requested."""
    nothing: dict[str, Any] = {"boxes": [], "labels": []}
    metric = MeanAveragePrecision(class_metrics=class_metrics)
    metric.update([{**nothing, "scores": []}], [nothing])
    result = metric.compute()
    shape = (0,) if class_metrics else ()
    assert {np.shape(result[name]) for name in ("map_per_class", "mar_100_per_class")} == {shape}
    assert result["map"] == -1


def test_lists_and_one_class() -> None:
    """The example in torchmetrics' documentation."""
    metric = MeanAveragePrecision(iou_type="bbox", class_metrics=True)
    metric.update(
        [{"boxes": [[258.0, 41.0, 606.0, 285.0]], "scores": [0.536], "labels": [0]}],
        [{"boxes": [[214.0, 41.0, 562.0, 285.0]], "labels": [0]}],
    )
    result = metric.compute()
    assert result["map"] == pytest.approx(0.6)
    assert [result["map_50"], result["map_75"], result["map_small"]] == pytest.approx([1, 1, -1])
    assert (result["map_per_class"], result["classes"]) == (pytest.approx(0.6), 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rec_thresholds": [0.0, 0.5]}, "101"),
        ({"extended_summary": True}, "to_coco"),
        ({"box_format": "yxyx"}, "cxcywh"),
        ({"iou_type": "keypoints"}, "segm"),
        ({"max_detection_thresholds": [1, 10]}, "three"),
        ({"dist_sync_on_step": True}, "merge_state"),
        ({"sync_on_compute": None}, "merge_state"),
    ],
)
def test_refused_arguments(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MeanAveragePrecision(**options)


def test_arguments_without_effect_in_one_process() -> None:
    options: dict[str, Any] = {
        "sync_on_compute": False,
        "compute_on_cpu": True,
        "dist_sync_fn": None,
    }
    metric = MeanAveragePrecision(dist_sync_on_step=False, **options)
    assert metric.compute()["map"] == -1


@pytest.mark.parametrize(
    ("preds", "target", "message"),
    [
        ([], [{}], "same length"),
        ([{"boxes": [[0, 0, 1, 1]], "labels": [1]}], [{}], r"preds\[0\] has no scores"),
        ([{"boxes": [[0, 0, 1]], "scores": [0.1], "labels": [1]}], [{}], r"not \(1, 4\)"),
        ([{"boxes": [[0, 0, 1, 1]], "scores": [0.1, 0.2], "labels": [1]}], [{}], "1 labels, but 2"),
        ([{"boxes": [[0, 0, 1, 1]], "scores": [0.1], "labels": [0.5]}], [{}], "integers"),
    ],
)
def test_refused_batches(preds: Any, target: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MeanAveragePrecision().update(preds, target)


def test_masks_with_intermediate_values_are_refused() -> None:
    boxes = np.array([[2.0, 2, 38, 38]])
    mask = np.zeros((1, 40, 40), bool)
    mask[0, 2:38, 2:38] = True
    target = [{"boxes": boxes, "masks": mask, "labels": [1]}]
    undecided_ones = (
        np.where(mask, 0.4, -3.0),
        np.where(mask, 0.9, 0.1),
        mask * 0.4,
        mask * -3.0,
        np.where(mask, 255.0, 3.0),
        np.where(mask, 1, np.nan),
    )
    for undecided in undecided_ones:
        preds = [{"boxes": boxes, "masks": undecided, "labels": [1], "scores": [0.9]}]
        with pytest.raises(ValueError, match="threshold"):
            MeanAveragePrecision(iou_type="segm").update(preds, target)
    for decided in (mask * 1.0, mask * 255.0, mask * np.float16(255)):
        metric = MeanAveragePrecision(iou_type="segm")
        metric.update([{"masks": decided, "labels": [1], "scores": [0.9]}], target)
        assert metric.compute()["map"] == pytest.approx(1.0)
