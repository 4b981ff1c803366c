"""Call sequences of evaluators, with compat.pycocotools in place of pycocotools.

The sequences are those of pycocotools' demo, detectron2's COCOEvaluator and COCOeval_opt,
mmdetection's CocoMetric, torchvision's reference coco_eval, DETR's and RF-DETR's evaluators, and
SAHI's evaluation and error analysis. Each runs with both packages and must give the same numbers,
to the bit.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from unusual_coco import OURS, Unusual, loaded, reference, same, unusual

Caller = Callable[[Any, Unusual], Any]


def case(seed: int, kind: str) -> Unusual:
    """Make an odd set with boxes or masks as results, and no params."""
    other = {"bbox": "segmentation", "segm": "bbox"}[kind]
    for number in range(100 * seed, 100 * seed + 100):
        results = unusual(number)
        forms = {*results.results[0]} if results.results else set()
        if {"bbox", "segmentation"} <= forms and len(results.truths["annotations"]) > 5:
            rows = [{k: v for k, v in row.items() if k != other} for row in results.results]
            return results._replace(kind=kind, params={}, results=rows)
    raise AssertionError(seed)


def demo(lib: Any, inputs: Unusual) -> Any:
    """The demo of pycocotools' evaluation: the first images, the three steps."""
    truth, results = loaded(lib, inputs.truths, inputs.results)
    evaluation = lib.COCOeval(truth, results, inputs.kind)
    evaluation.params.imgIds = sorted(truth.getImgIds())[:100]
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    return evaluation.stats


def by_category(evaluation: Any, n: int) -> list[float]:
    """Return the AP of each category, over all sizes at the largest cap, from the array."""
    precisions = evaluation.eval["precision"]
    assert precisions.shape[2] == n
    out = []
    for k in range(n):
        of_category = precisions[:, :, k, 0, -1]
        of_category = of_category[of_category > -1]
        out.append(float(np.mean(of_category)) if of_category.size else -1.0)
    return out


def detectron2(lib: Any, inputs: Unusual, *, caps: list[int] | None = None) -> Any:
    """Evaluate results for some images, with AP by category; ``caps`` adds a summary."""
    truth, _ = loaded(lib, inputs.truths, [])
    rows = copy.deepcopy(inputs.results)
    if inputs.kind == "segm":
        for row in rows:
            row.pop("bbox", None)
    predictions = truth.loadRes(rows)
    evaluation = lib.COCOeval(truth, predictions, inputs.kind)
    evaluation.params.maxDets = caps or [1, 10, 100]
    evaluation.params.imgIds = sorted(truth.getImgIds())[:-1] or truth.getImgIds()
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    names = [row["name"] for row in truth.loadCats(truth.getCatIds())]
    return evaluation.stats, by_category(evaluation, len(names)), names


def detectron2_fast(lib: Any, inputs: Unusual) -> Any:
    """Match in a subclass, from the results of ``_prepare`` and ``computeIoU``."""

    class Fast(lib.COCOeval):  # type: ignore[misc, name-defined]
        def evaluate(self) -> None:
            params = self.params
            params.imgIds = list(np.unique(params.imgIds))
            params.catIds = list(np.unique(params.catIds))
            params.maxDets = sorted(params.maxDets)
            self._prepare()
            self.ious = {
                (i, k): self.computeIoU(i, k) for i in params.imgIds for k in params.catIds
            }
            self.told = [
                (
                    [(g["id"], g["area"], g["iscrowd"], g["ignore"]) for g in self._gts[i, k]],
                    [(d["id"], d["area"], d["score"]) for d in self._dts[i, k]],
                    np.asarray(self.ious[i, k]).tolist(),
                )
                for k in params.catIds
                for i in params.imgIds
            ]
            self._paramsEval = copy.deepcopy(self.params)

    truth, results = loaded(lib, inputs.truths, inputs.results)
    evaluation = Fast(truth, results, inputs.kind)
    evaluation.evaluate()
    return evaluation.told


def mmdetection(lib: Any, inputs: Unusual, *, proposals: bool = False) -> Any:
    """Use a subclass of COCO with other method names, caps without 100, AP by category and size."""

    class Wrapped(lib.COCO):  # type: ignore[misc, name-defined]
        def __init__(self, annotation_file: Any = None) -> None:
            super().__init__(annotation_file=annotation_file)
            self.img_ann_map, self.cat_img_map = self.imgToAnns, self.catToImgs

        def get_ann_ids(self, img_ids: Any, cat_ids: Any, area_rng: Any) -> Any:
            return self.getAnnIds(img_ids, cat_ids, area_rng, None)

    truth = Wrapped()
    truth.dataset = copy.deepcopy(inputs.truths)
    truth.createIndex()
    categories = truth.getCatIds(catNms=[row["name"] for row in inputs.truths["categories"]])
    ids = truth.get_ann_ids(truth.getImgIds()[:1], categories, [])
    predictions = truth.loadRes(copy.deepcopy(inputs.results))
    evaluation = lib.COCOeval(truth, predictions, inputs.kind)
    evaluation.params.catIds, evaluation.params.imgIds = categories, truth.getImgIds()
    evaluation.params.maxDets = [100, 300, 1000]
    evaluation.params.iouThrs = np.linspace(0.5, 0.95, 10)
    if proposals:
        evaluation.params.useCats = 0
        evaluation.params.maxDets = [1, 2, 5]
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    numbers = [] if proposals else by_category(evaluation, len(categories))
    return evaluation.stats, numbers, ids


def torchvision(lib: Any, inputs: Unusual, *, stepwise: bool = False) -> Any:
    """Evaluate batches of images one by one, as two processes would, then gather them.

    Args:
        lib: the names of pycocotools, or of compat.pycocotools.
        given: the evaluated set.
        stepwise: use a copy of ``evaluate`` that takes its steps separately, as DETR and its many
            descendants do.
    """
    truth, _ = loaded(lib, inputs.truths, [])
    truth = copy.deepcopy(truth)
    evaluation = lib.COCOeval(truth, iouType=inputs.kind)
    ids: list[Any] = []
    entries = []
    for image in truth.getImgIds():
        rows = [copy.deepcopy(row) for row in inputs.results if row["image_id"] == image]
        with contextlib.redirect_stdout(io.StringIO()):
            results = lib.COCO.loadRes(truth, rows) if rows else lib.COCO()
            evaluation.cocoDt, evaluation.params.imgIds = results, [image]
            if stepwise:
                result = steps(evaluation)
            else:
                evaluation.evaluate()
                result = evaluation.evalImgs
        n = len(evaluation.params.areaRng), len(evaluation.params.imgIds)
        entries.append(np.asarray(result, dtype=object).reshape(-1, *n))
        ids += evaluation.params.imgIds
    several, twice = [*ids, *ids[:1]], [*entries, entries[0]]  # a sampler may repeat images
    merged, first = np.unique(np.array(several), return_index=True)
    evaluation.evalImgs = list(np.concatenate(twice, 2)[..., first].flatten())
    evaluation.params.imgIds = list(merged)
    evaluation._paramsEval = copy.deepcopy(evaluation.params)
    evaluation.accumulate()
    evaluation.summarize()
    return evaluation.stats, evaluation.eval["precision"], evaluation.eval["scores"]


def steps(evaluation: Any) -> list[Any]:
    params = evaluation.params
    if params.useSegm is not None:
        params.iouType = "segm" if params.useSegm == 1 else "bbox"
    params.imgIds = list(np.unique(params.imgIds))
    if params.useCats:
        params.catIds = list(np.unique(params.catIds))
    params.maxDets = sorted(params.maxDets)
    evaluation.params = params
    evaluation._prepare()
    categories = params.catIds if params.useCats else [-1]
    evaluation.ious = {
        (i, k): evaluation.computeIoU(i, k) for i in params.imgIds for k in categories
    }
    result = [
        evaluation.evaluateImg(i, k, sizes, params.maxDets[-1])
        for k in categories
        for sizes in params.areaRng
        for i in params.imgIds
    ]
    evaluation._paramsEval = copy.deepcopy(evaluation.params)
    return result


def rf_detr(lib: Any, inputs: Unusual) -> Any:
    """Compute precision, recall and F1 over confidence thresholds from the entries' arrays."""
    truth, results = loaded(lib, inputs.truths, inputs.results)
    evaluation = lib.COCOeval(truth, results, inputs.kind)
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    params = evaluation.params
    half = int(np.argwhere(np.isclose(params.iouThrs, 0.5)).item())
    sizes = params.areaRng[params.areaRngLbl.index("all")]
    swept = []
    for category in params.catIds:
        entries = [
            e
            for e in evaluation.evalImgs
            if e is not None and e["category_id"] == category and e["aRng"] == sizes
        ]
        scores = np.concatenate([[], *(e["dtScores"] for e in entries)])
        matched = np.concatenate([[], *(e["dtMatches"][half] for e in entries)])
        aside = np.concatenate([[], *(e["dtIgnore"][half] for e in entries)]).astype(bool)
        there = sum(int((~np.asarray(e["gtIgnore"]).astype(bool)).sum()) for e in entries)
        for least in np.linspace(0, 1, 11):
            selected = (scores >= least) & ~aside
            swept.append(
                (int((matched[selected] != 0).sum()), int((matched[selected] == 0).sum()), there)
            )
    return evaluation.stats, swept


def sahi(lib: Any, inputs: Unusual) -> Any:
    """Use a single cap of 500, other areas, and SAHI's summary from files."""
    truth, results = loaded(lib, inputs.truths, inputs.results)
    evaluation = lib.COCOeval(truth, results, inputs.kind)
    evaluation.params.areaRng = [[0, 1e10], [0, 1024], [1024, 9216], [9216, 1e10]]
    evaluation.params.catIds = list(truth.cats.keys())
    evaluation.params.maxDets = [500]
    evaluation.params.iouThrs = np.linspace(0.5, 0.95, 10)
    evaluation.evaluate()
    evaluation.accumulate()
    numbers = []
    for name in evaluation.params.areaRngLbl:
        area = [i for i, label in enumerate(evaluation.params.areaRngLbl) if label == name]
        for key in ("precision", "recall"):
            of_area = evaluation.eval[key][..., area, [0]]
            of_area = of_area[of_area > -1]
            numbers.append(np.mean(of_area) if of_area.size else -1)
    evaluation.stats = np.append(numbers, 0)
    images = [truth.getImgIds(catIds=[k]) for k in truth.cats]
    return evaluation.stats, images


def error_analysis(lib: Any, inputs: Unusual) -> Any:
    """Change copied rows in place: other categories become crowds of the examined one."""
    truth, result = loaded(lib, inputs.truths, inputs.results)
    first = lib.COCOeval(copy.deepcopy(truth), copy.deepcopy(result), inputs.kind)
    first.params.iouThrs, first.params.maxDets = [0.75, 0.5, 0.1], [500]
    first.evaluate()
    first.accumulate()
    out = [first.eval["precision"]]
    counts = dict.fromkeys(first.params.areaRngLbl, 0)
    labels = dict(zip(map(str, first.params.areaRng), counts, strict=True))
    for entry in first.evalImgs:
        if entry:
            counts[labels[str(entry["aRng"])]] += int((np.asarray(entry["gtIgnore"]) == 0).sum())
    out.append(list(counts.values()))
    for category in truth.getCatIds():
        results = copy.deepcopy(result)
        selected = [row for row in results.dataset["annotations"] if row["category_id"] == category]
        results.dataset["annotations"] = selected
        results.createIndex()
        kin = truth.getCatIds(supNms=[truth.loadCats(category)[0]["supercategory"]])
        for others in (kin, truth.getCatIds()):
            changed = copy.deepcopy(truth)
            for i, row in enumerate(changed.dataset["annotations"]):
                if row["category_id"] in others and row["category_id"] != category:
                    more = {"ignore": 1, "iscrowd": 1, "category_id": category}
                    changed.dataset["annotations"][i].update(more)
            evaluation = lib.COCOeval(changed, copy.deepcopy(results), inputs.kind)
            evaluation.params.imgIds, evaluation.params.iouThrs = truth.getImgIds(), [0.1]
            evaluation.params.maxDets, evaluation.params.useCats = [500], 1
            evaluation.evaluate()
            evaluation.accumulate()
            out.append(evaluation.eval["precision"])
    return out


CALLERS: dict[str, Caller] = {
    "demo": demo,
    "detectron2": detectron2,
    "detectron2, own caps": partial(detectron2, caps=[10, 100, 1000]),
    "detectron2, COCOeval_opt": detectron2_fast,
    "mmdetection": mmdetection,
    "mmdetection, proposals": partial(mmdetection, proposals=True),
    "torchvision": torchvision,
    "DETR": partial(torchvision, stepwise=True),
    "RF-DETR": rf_detr,
    "SAHI": sahi,
    "error analysis": error_analysis,
}


@pytest.mark.parametrize("kind", ["bbox", "segm"])
@pytest.mark.parametrize("name", CALLERS)
def test_callers(name: str, kind: str) -> None:
    for seed in range(2):
        inputs = case(seed, kind)
        results = []
        for lib in (OURS, reference()):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                numbers = CALLERS[name](lib, inputs)
            lines = printed.getvalue().splitlines()
            results.append((numbers, [line for line in lines if line.startswith(" Average")]))
        same(*results, name)


def test_evaluating_two_files(tmp_path: Any) -> None:
    """The command line of most trainers: two files, twelve numbers."""
    inputs = case(3, "bbox")
    truths, results = tmp_path / "instances.json", tmp_path / "results.json"
    truths.write_text(json.dumps({**inputs.truths, "annotations": [
        {**row, "segmentation": []} for row in inputs.truths["annotations"]]}))  # fmt: skip
    results.write_text(json.dumps(inputs.results))
    stats = []
    for lib in (OURS, reference()):
        with contextlib.redirect_stdout(io.StringIO()):
            truth = lib.COCO(str(truths))
            evaluation = lib.COCOeval(truth, truth.loadRes(str(results)), "bbox")
            evaluation.params.imgIds = [int(i) for i in truth.getImgIds()]
            evaluation.evaluate()
            evaluation.accumulate()
            evaluation.summarize()
        stats.append(evaluation.stats)
    same(*stats)
