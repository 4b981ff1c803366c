"""``MeanAveragePrecision`` of boxes and masks, by pycocotools' numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ...api import score
from ...geometry.mask_runs import from_pixels, to_rle
from ...schemas.arrays import Array
from ...schemas.errors import InputError, OptionError
from ..arrays import chosen
from .metric import Metric, array, result

_NAMES = ("map", "map_50", "map_75", "map_small", "map_medium", "map_large")
_SIZES = ("mar_small", "mar_medium", "mar_large")
_GEOMETRY = {"bbox": ("boxes", "bbox"), "segm": ("masks", "mask")}


class MeanAveragePrecision(Metric):
    """COCO's mean average precision and recall.

    Args:
        box_format: format of ``boxes``: xyxy, xywh or cxcywh.
        iou_type: bbox, segm, or both in a tuple; names then start with ``bbox_`` and ``segm_``.
        iou_thresholds: COCO's ten by default.
        rec_thresholds: only COCO's 101.
        max_detection_thresholds: three caps on detections per image; by default 1, 10 and 100.
        class_metrics: whether to compute ``map_per_class`` and ``mar_..._per_class``.
        extended_summary: not supported.
        average: macro, or micro: all labels are one.
        backend: accepted, but the engine always computes.

    Raises:
        OptionError: an unsupported argument.

    Example:
        >>> from evalengine.compat.torchmetrics import MeanAveragePrecision
        >>> metric = MeanAveragePrecision()
        >>> found = {"boxes": [[258.0, 41, 606, 285]], "scores": [0.536], "labels": [0]}
        >>> truth = {"boxes": [[214.0, 41, 562, 285]], "labels": [0]}
        >>> metric.update([found], [truth])
        >>> round(metric.compute()["map"], 4)
        0.6
    """

    def __init__(
        self,
        box_format: str = "xyxy",
        iou_type: str | Sequence[str] = "bbox",
        iou_thresholds: Sequence[float] | None = None,
        rec_thresholds: Sequence[float] | None = None,
        max_detection_thresholds: Sequence[int] | None = None,
        class_metrics: bool = False,
        extended_summary: bool = False,
        average: str = "macro",
        backend: str = "pycocotools",
        **kwargs: Any,
    ) -> None:
        chosen("box_format", box_format, ("xyxy", "xywh", "cxcywh"))
        chosen("average", average, ("macro", "micro"))
        chosen("backend", backend, ("pycocotools", "faster_coco_eval"))
        self.iou_type = (iou_type,) if isinstance(iou_type, str) else tuple(iou_type)
        for one in self.iou_type:
            chosen("iou_type", one, tuple(_GEOMETRY))
        if rec_thresholds is not None and not _is_coco_grid(rec_thresholds):
            raise OptionError("rec_thresholds: there are COCO's 101 from 0 to 1, and no others.")
        if extended_summary:
            raise OptionError(
                "extended_summary=True is not there; evalengine.score(..., dialect='coco')"
                ".to_coco() has precision, recall and scores."
            )
        caps = sorted(max_detection_thresholds or (1, 10, 100))
        if len(set(caps)) != 3:
            raise OptionError(f"max_detection_thresholds={caps}: write three different numbers.")
        self.box_format, self.average, self.class_metrics = box_format, average, class_metrics
        self.iou_thresholds = None if iou_thresholds is None else [*map(float, iou_thresholds)]
        self.max_detection_thresholds = [int(cap) for cap in caps]
        super().__init__(**kwargs)

    def update(
        self, preds: Sequence[Mapping[str, Any]], target: Sequence[Mapping[str, Any]]
    ) -> None:
        """Add images, one dict each.

        Args:
            preds: ``boxes`` [N, 4] and/or ``masks`` [N, H, W], ``labels`` [N] and ``scores`` [N].
            target: the same without scores; optionally ``iscrowd`` and ``area`` [N].

        Raises:
            InputError: lists of different lengths, a missing key, or different numbers of rows.
        """
        if isinstance(preds, Mapping) or isinstance(target, Mapping) or len(preds) != len(target):
            raise InputError("preds and target must be lists of dicts of the same length.")
        found = [self._image(f"preds[{i}]", one, i, "scores") for i, one in enumerate(preds)]
        truth = [self._image(f"target[{i}]", one, i) for i, one in enumerate(target)]
        if found:
            sides = {"preds": pl.concat(found), "target": pl.concat(truth)}
            self._kept.append(sides, datums=len(found))

    def _image(self, name: str, item: Mapping[str, Any], i: int, *more: str) -> pl.DataFrame:
        keys = [_GEOMETRY[one][0] for one in self.iou_type]
        lacking = [key for key in (*keys, "labels", *more) if key not in item]
        if lacking:
            raise InputError(f"{name} lacks {', '.join(lacking)}; it has {', '.join(item)}.")
        labels = array(f"{name}['labels']", item["labels"]).reshape(-1)
        n = len(labels)
        if labels.dtype.kind not in "iub" and n:
            raise InputError(f"{name}['labels']: integers are needed, not {labels.dtype}.")
        columns: dict[str, Any] = {
            "datum_id": np.full(n, i, np.int64),
            "label_value": labels.astype(np.int64),
        }
        area = np.zeros(n)
        if "boxes" in keys:
            boxes = array(f"{name}['boxes']", item["boxes"]).astype(np.float64)
            boxes = boxes.reshape(0, 4) if boxes.size == 0 else boxes
            if boxes.shape != (n, 4):
                raise InputError(f"{name}['boxes'] has the shape {boxes.shape}, not ({n}, 4).")
            columns["bbox"] = pl.Series(boxes, dtype=pl.Array(pl.Float64, 4))
            sides = boxes[:, 2:] - (boxes[:, :2] if self.box_format == "xyxy" else 0)
            area = sides[:, 0] * sides[:, 1]
        if "masks" in keys:
            masks = array(f"{name}['masks']", item["masks"])
            if len(masks) != n or (n and masks.ndim != 3):
                raise InputError(f"{name}['masks'] has the shape {masks.shape}, not ({n}, H, W).")
            columns["mask"] = to_rle(from_pixels([*masks.astype(bool)]))
            area = masks.reshape(n, -1).astype(bool).sum(axis=1) if n else area
        if "scores" in more:
            columns["score"] = _of_rows(name, item, "scores", n)
            return pl.DataFrame(columns)
        if "iscrowd" in item:
            columns["iscrowd"] = _of_rows(name, item, "iscrowd", n)
        else:
            columns["iscrowd"] = np.zeros(n)
        given = _of_rows(name, item, "area", n) if "area" in item else np.zeros(n)
        columns["area"] = np.where(given > 0, given, area).astype(np.float64)
        return pl.DataFrame(columns)

    def compute(self) -> dict[str, Any]:
        """Compute the numbers by torchmetrics' names; -1 without data."""
        numbers: dict[str, Any] = {}
        classes: list[int] = []
        if self._kept.datums:
            both = [self._table(side)["label_value"].unique() for side in ("preds", "target")]
            classes = pl.concat(both).unique().sort().to_list()
        for iou_type in self.iou_type:
            prefix = "" if len(self.iou_type) == 1 else f"{iou_type}_"
            for name, value in self._numbers(iou_type, classes).items():
                numbers[prefix + name] = result(value)
        numbers["classes"] = result(_squeezed(np.array(classes, np.int32)), "int32")
        return numbers

    def _numbers(self, iou_type: str, classes: list[int]) -> dict[str, Any]:
        caps = self.max_detection_thresholds
        names = (*_NAMES, *(f"mar_{cap}" for cap in caps), *_SIZES)
        last = f"mar_{caps[-1]}_per_class"
        if not classes:
            return {**dict.fromkeys(names, -1.0), "map_per_class": -1.0, last: -1.0}
        card = self._card(iou_type, caps, classes, self.average == "micro")
        found = dict(zip(names, card.to_coco()["stats"], strict=True))
        # pycocotools prints the mean of all sizes and thresholds at 100 detections, if it can
        usual = [cap for cap in caps if cap <= 100]
        if 100 in caps[:-1]:
            at_100 = self._card(iou_type, usual, classes, self.average == "micro")
            found["map"] = at_100.to_coco()["stats"][0]
        found["map_per_class"] = found[last] = -1.0
        if self.class_metrics:
            each = card if self.average == "macro" else self._card(iou_type, caps, classes, False)
            less = each if 100 not in caps[:-1] else self._card(iou_type, usual, classes, False)
            found["map_per_class"] = _by_class(less, "APAveragedOverIOUs", classes)
            found[last] = _by_class(each, "AR", classes, pl.col("max_detections") == caps[-1])
        return found

    def _card(self, iou_type: str, caps: Sequence[int], classes: list[int], one_label: bool) -> Any:
        column = _GEOMETRY[iou_type][1]
        others = [name for _, name in _GEOMETRY.values() if name != column]
        tables = [self._table(side).drop(others, strict=False) for side in ("preds", "target")]
        if one_label:
            tables = [table.with_columns(label_value=pl.lit(0, pl.Int64)) for table in tables]
        return score(
            *tables,
            task="detection",
            dialect="coco",
            datums=range(self._kept.datums),
            labels=[0] if one_label else classes,
            iou_type=iou_type,
            box_format=self.box_format if column == "bbox" else None,
            iou_thresholds=self.iou_thresholds,
            max_detections=caps,
        )


def _is_coco_grid(values: Sequence[float]) -> bool:
    return len(values) == 101 and bool(np.allclose(values, np.linspace(0, 1, 101), atol=1e-6))


def _of_rows(name: str, item: Mapping[str, Any], key: str, n: int) -> Array:
    found = array(f"{name}[{key!r}]", item[key]).reshape(-1)
    if len(found) != n:
        raise InputError(f"{name}: {n} labels, but {len(found)} of {key}.")
    return found.astype(np.float64)


def _by_class(card: Any, metric: str, classes: list[int], more: pl.Expr | None = None) -> Any:
    """Return a metric over all sizes per class, [K]; -1 if undefined."""
    chosen_rows = [(pl.col("metric") == metric) & (pl.col("area") == "all")]
    rows = card.metrics.filter(*chosen_rows, *([] if more is None else [more]))
    values = dict(rows.select("label_value", "value").iter_rows())
    found = [values.get(label) for label in classes]
    return _squeezed(np.array([-1.0 if one is None else one for one in found]))


def _squeezed(values: Array) -> Any:
    """One number by itself, as torchmetrics returns it."""
    return values[0].item() if values.shape == (1,) else values
