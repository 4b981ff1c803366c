"""Classes of torchmetrics that the engine computes: change the import, keep the calls.

Batches are kept as columns, and torch is not imported. Results are floats and arrays, or tensors if
torch is already imported.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import polars as pl

from ..api import score
from ..collector import Batches
from ..geometry.masks import from_pixels, to_rle
from ..ingest.sources.objects import as_array
from ..schemas.arrays import Array
from ..schemas.errors import InputError, OptionError, invalid
from ..schemas.option_values import in_name
from ..scorecard.card import Scorecard
from .arrays import chosen, classify

__all__ = [
    "AUROC",
    "Accuracy",
    "AveragePrecision",
    "CalibrationError",
    "CohenKappa",
    "ConfusionMatrix",
    "F1Score",
    "FBetaScore",
    "MatthewsCorrCoef",
    "MeanAveragePrecision",
    "Precision",
    "Recall",
]

# Base class of all metrics: update, compute, reset, call, merge, pickle.

_WITHOUT_EFFECT: dict[str, tuple[bool | None, ...]] = {
    "compute_on_cpu": (True, False),
    "compute_with_cache": (True, False),
    "dist_sync_on_step": (False,),
    "sync_on_compute": (False,),
    "process_group": (None,),
    "dist_sync_fn": (None,),
}
"""Arguments of torchmetrics' base class -> values that change nothing in one process."""


class Metric(ABC):
    """A metric whose batches are kept as tables, one a side and update."""

    def __init__(self, **unknown: Any) -> None:
        odd = [
            f"{name}={value!r}"
            for name, value in unknown.items()
            if not any(value is one for one in _WITHOUT_EFFECT.get(name, ()))
        ]
        if odd:
            raise OptionError(
                f"{type(self).__name__}: {', '.join(odd)} is not supported. Merge the states"
                " of several processes with metric.merge_state(other)."
            )
        self.reset()

    def reset(self) -> None:
        """Forget all batches."""
        self._batches = Batches()

    @abstractmethod
    def update(self, preds: Any, target: Any) -> None:
        """Keep a batch."""

    @abstractmethod
    def compute(self) -> Any:
        """The value of all batches since the last reset."""

    def __call__(self, preds: Any, target: Any) -> Any:
        """Keep a batch and return its own value."""
        batch = object.__new__(type(self))
        batch.__dict__.update(self.__dict__)
        batch.reset()
        batch.update(preds, target)
        self.merge_state(batch)
        return batch.compute()

    forward = __call__

    def merge_state(self, incoming: Metric) -> None:
        """Add the batches of another metric with the same arguments.

        Raises:
            InputError: another class or other arguments.
        """
        mine, theirs = (
            {name: value for name, value in one.__dict__.items() if name != "_batches"}
            for one in (self, incoming)
        )
        if type(incoming) is not type(self) or mine != theirs:
            raise InputError("merge_state: the other metric has another class or other arguments.")
        self._batches.extend(incoming._batches)

    def _table(self, side: str) -> pl.DataFrame:
        """Return all batches of a side.

        Raises:
            InputError: there was no batch.
        """
        if side not in self._batches:
            raise InputError(f"{type(self).__name__}.compute: update was not called yet.")
        return self._batches.table(side)


def array(name: str, values: Any) -> np.ndarray[Any, Any]:
    """Copy a tensor, on any device, or array-like to an array.

    Raises:
        InputError: not numeric.
    """
    numeric = as_array(values).copy()
    if numeric.dtype.kind not in "fiub":
        raise InputError(f"{name}: a tensor of numbers is needed, not {numeric.dtype}.")
    return numeric


def result(value: Any, dtype: str = "float32") -> Any:
    """Return the value, as a tensor of that dtype if torch is imported."""
    torch = sys.modules.get("torch")
    if torch is not None:
        return torch.as_tensor(np.asarray(value), dtype=getattr(torch, dtype))
    return value


# Classes of classification, binary and multiclass, by the engine's dialect ``torchmetrics``.


class _Classification(Metric):
    """Base class of classification metrics.

    Args:
        task: binary or multiclass.
        threshold: score above which a binary prediction is positive.
        num_classes: number of classes, for multiclass.
        ignore_index: a target whose rows are ignored.
        validate_args: ignored: batches are always checked.

    Raises:
        OptionError: an unsupported argument.
    """

    hard: ClassVar[bool] = True
    """True if predictions are labels, False if scores."""
    all_decide: ClassVar[bool] = False
    """Whether ignored rows also decide if a batch has logits, as in torchmetrics."""

    def __init__(
        self,
        task: str,
        threshold: float = 0.5,
        num_classes: int | None = None,
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        if task == "multilabel":
            raise OptionError(
                "task='multilabel': evalengine.score(..., multilabel=True) has it.",
                code="option_unfit",
                option="task",
                value=task,
            )
        chosen("task", task, ("binary", "multiclass"))
        if (task == "multiclass") != isinstance(num_classes, int):
            raise OptionError(
                f"num_classes={num_classes!r} does not fit task={task!r}.",
                code="option_unfit",
                option="num_classes",
                value=num_classes,
            )
        self.task, self.threshold = task, threshold
        self.n_labels, self.ignore_index = num_classes or 2, ignore_index
        super().__init__(**kwargs)

    def update(self, preds: Any, target: Any) -> None:
        """Add a batch.

        Args:
            preds: classes [N, ...], or scores: [N, ...] of the positive class, or [N, C, ...];
                logits are converted to probabilities.
            target: classes, [N, ...].

        Raises:
            InputError: shapes that do not match, or unknown classes.
        """
        truth, predicted = array("target", target), array("preds", preds)
        if truth.dtype.kind == "f":
            raise InputError("target: classes are integers.")
        scores = predicted.dtype.kind == "f"
        wide = scores and self.task == "multiclass"
        shape = (*truth.shape[:1], self.n_labels, *truth.shape[1:]) if wide else truth.shape
        if predicted.shape != shape:
            raise InputError(
                f"preds has the shape {predicted.shape}; {shape} fits target.",
                code="shapes_differ",
                shapes=[predicted.shape, shape],
            )
        predicted = (
            np.moveaxis(predicted, 1, -1).reshape(-1, self.n_labels)
            if wide
            else predicted.reshape(-1)
        )
        truth, batch = truth.reshape(-1), predicted
        if self.ignore_index is not None:
            included = truth != self.ignore_index
            truth, predicted = truth[included], predicted[included]
        self._within("target", truth)
        if scores:
            broken = int(np.count_nonzero(~np.isfinite(predicted)))
            if broken:
                raise InputError(
                    f"preds: {broken} of {predicted.size} scores are NaN or infinite.",
                    code="not_finite",
                    option="preds",
                    count=broken,
                )
            deciding = batch if self.all_decide else predicted
            raw, predicted = predicted, _probabilities(predicted, deciding)
        else:
            self._within("preds", predicted)
        if not scores and not self.hard:
            raise InputError(
                f"{type(self).__name__} needs scores, and preds are integers.",
                code="scores_missing",
            )
        if not self.hard:
            columns = self._score_columns(predicted)
        elif wide:
            columns = {"predicted": raw.argmax(axis=1)}  # small logits tie once they are shares
        else:
            columns = {"predicted": predicted > self.threshold if scores else predicted}
            columns = {"predicted": columns["predicted"].astype(np.int64)}
        rows = pl.DataFrame({"actual": truth.astype(np.int64), **columns})
        self._batches.append({"rows": rows}, datums=len(truth))

    def _score_columns(self, scores: Array) -> dict[str, Array]:
        """Return the columns to store of probabilities, [N] of the positive class or [N, C]."""
        names = [f"score_{i}" for i in range(self.n_labels)] if scores.ndim > 1 else ["score"]
        return dict(zip(names, np.atleast_2d(scores.T), strict=True))

    def _within(self, name: str, labels: Array) -> None:
        strange = labels[(labels < 0) | (labels >= self.n_labels)]
        if len(strange):
            raise InputError(
                f"{name}: {len(strange)} of {len(labels)} classes are not from 0 to"
                f" {self.n_labels - 1}, first {strange[:3].tolist()}.",
                code="unknown_label",
                option=name,
                count=len(strange),
            )

    def _empty(self) -> bool:
        """Whether all rows were ignored."""
        return not self._table("rows").height

    def _card(self, *metrics: str, **options: Any) -> Scorecard:
        table = self._table("rows")
        if not table.height:
            raise InputError(f"{type(self).__name__}.compute: all rows were ignored.")
        if "score_0" in table.columns:
            options["score_columns"] = {i: f"score_{i}" for i in range(self.n_labels)}
        labels = None if "score" in table.columns else range(self.n_labels)
        return classify(table, *metrics, dialect="torchmetrics", labels=labels, **options)

    def _per_label(self, metric: str, card: Scorecard, absent: float) -> Array:
        rows = card.metrics.filter(metric=metric).filter(pl.col("label_value").is_not_null())
        values = dict(rows.select("label_value", "value").iter_rows())
        label_values = [values.get(label, absent) for label in range(self.n_labels)]
        return np.array([math.nan if one is None else one for one in label_values])

    def _chosen(
        self, metric: str, mean: str, average: str | None, absent: float, **more: Any
    ) -> Any:
        """A number of the positive class, of an average, or an array [C]."""
        card = self._card(metric, *({mean} - {metric}), **more)
        if self.task == "binary":
            return result(_float(card.value(metric, label_value=1)))
        if average in (None, "none"):
            return result(self._per_label(metric, card, absent))
        return result(_float(card.value(mean, average=average)))


def _float(value: float | None) -> float:
    return math.nan if value is None else value


def _probabilities(scores: Array, deciding: Array) -> Array:
    """Convert logits to probabilities, unless the deciding scores are all within 0 to 1."""
    if not scores.size or (deciding.min() >= 0 and deciding.max() <= 1):
        return scores
    if scores.ndim == 1:
        return 1 / (1 + np.exp(-scores))
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


class _Ratio(_Classification):
    """A ratio of counts, of the positive class or of an average of classes."""

    all_decide = True
    metric: ClassVar[str]
    micro: ClassVar[str | None] = None

    def __init__(
        self,
        task: str,
        threshold: float = 0.5,
        num_classes: int | None = None,
        num_labels: int | None = None,
        average: str | None = "micro",
        multidim_average: str = "global",
        top_k: int = 1,
        ignore_index: int | None = None,
        validate_args: bool = True,
        zero_division: float = 0.0,
        **kwargs: Any,
    ) -> None:
        chosen("average", average, ("micro", "macro", "weighted", "none", None))
        chosen("multidim_average", multidim_average, ("global",))
        if top_k != 1:
            raise OptionError(
                "top_k: labels are the best score's; TopKAccuracy of score has more.",
                code="option_unfit",
                option="top_k",
            )
        self.average, self.zero_division = average, float(zero_division)
        super().__init__(task, threshold, num_classes, ignore_index, validate_args, **kwargs)

    def compute(self) -> Any:
        """The value of all batches since the last reset."""
        if self._empty():
            if self.task == "binary" or self.average == "micro":
                return result(self.zero_division)
            each = np.full(self.n_labels, self.zero_division)
            return result(each if self.average in (None, "none") else 0.0)
        if self.micro is not None and (self.task == "binary" or self.average == "micro"):
            return result(_float(self._card(self.micro).value(self.micro)))
        name, fill = self.metric, self.zero_division
        return self._chosen(name, name, self.average, fill, zero_division=fill)


class Accuracy(_Ratio):
    """Share of correct predictions; per class and in class means, of each class's targets.

    Example:
        >>> from evalengine.compat.torchmetrics import Accuracy
        >>> metric = Accuracy(task="multiclass", num_classes=3)
        >>> metric.update([0, 2, 1], [0, 1, 1])
        >>> round(metric.compute(), 4)
        0.6667
    """

    metric = "Recall"
    micro = "Accuracy"


class Precision(_Ratio):
    """tp / (tp + fp)."""

    metric = "Precision"


class Recall(_Ratio):
    """tp / (tp + fn)."""

    metric = "Recall"


class F1Score(_Ratio):
    """2 tp / (2 tp + fp + fn)."""

    metric = "F1"


class FBetaScore(_Ratio):
    """F with recall worth ``beta`` times precision."""

    def __init__(self, task: str, beta: float = 1.0, *args: Any, **kwargs: Any) -> None:
        if isinstance(beta, bool) or not beta > 0 or math.isinf(beta):
            raise invalid("beta", beta, "write a finite number above 0.")
        self.metric = f"F{in_name(beta)}"  # type: ignore[misc]
        super().__init__(task, *args, **kwargs)


class _Area(_Classification):
    """An area of each class against the rest."""

    hard = False
    metric: ClassVar[tuple[str, str]]

    def __init__(
        self,
        task: str,
        thresholds: int | Sequence[float] | None = None,
        num_classes: int | None = None,
        num_labels: int | None = None,
        average: str | None = "macro",
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        if thresholds is not None:
            raise OptionError(
                "thresholds: areas are exact here; use None.",
                code="option_unfit",
                option="thresholds",
            )
        chosen("average", average, ("macro", "weighted", "none", None))
        self.average = average
        super().__init__(task, 0.5, num_classes, ignore_index, validate_args, **kwargs)

    def compute(self) -> Any:
        """The value of all batches since the last reset."""
        return self._chosen(*self.metric, self.average, math.nan)


class AUROC(_Area):
    """Area under the ROC curve; with ``max_fpr`` (binary) up to that rate, standardised."""

    metric = ("ROCAUC", "mROCAUC")

    def __init__(self, task: str, *args: Any, max_fpr: float | None = None, **kwargs: Any) -> None:
        if max_fpr is not None and (task != "binary" or not 0 < max_fpr <= 1):
            raise invalid("max_fpr", max_fpr, "of task='binary', above 0 and up to 1.")
        self.max_fpr = None if max_fpr == 1 else max_fpr
        super().__init__(task, *args, **kwargs)

    def update(self, preds: Any, target: Any) -> None:
        """Add a batch of scores; integers of one positive class are scores."""
        scores = array("preds", preds)
        whole = self.task == "binary" and scores.dtype.kind != "f"
        super().update(scores.astype(np.float32) if whole else scores, target)

    def compute(self) -> Any:
        """The value of all batches since the last reset."""
        if self.max_fpr is None:
            return super().compute()
        return self._chosen("PartialROCAUC", "PartialROCAUC", None, math.nan, max_fpr=self.max_fpr)


class AveragePrecision(_Area):
    """Sum of precision times gain in recall."""

    metric = ("AP", "mAP")


class ConfusionMatrix(_Classification):
    """Rows by target and prediction, [C, C]; shares with ``normalize``."""

    def __init__(
        self,
        task: str,
        threshold: float = 0.5,
        num_classes: int | None = None,
        num_labels: int | None = None,
        normalize: str | None = None,
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        chosen("normalize", normalize, ("true", "pred", "all", "none", None))
        self.normalize = None if normalize == "none" else normalize
        super().__init__(task, threshold, num_classes, ignore_index, validate_args, **kwargs)

    def compute(self) -> Any:
        """The value of all batches since the last reset."""
        from .sklearn import confusion_matrix

        table, labels = self._table("rows"), list(range(self.n_labels))
        rows = table["actual"], table["predicted"]
        matrix = np.zeros((self.n_labels, self.n_labels), np.int64)
        if not self._empty():
            matrix = confusion_matrix(*rows, labels=labels, normalize=self.normalize)
        return result(matrix, "int64" if self.normalize is None else "float32")


class CohenKappa(_Classification):
    """Agreement beyond chance; ``weights`` linear or quadratic."""

    def __init__(
        self,
        task: str,
        threshold: float = 0.5,
        num_classes: int | None = None,
        weights: str | None = None,
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        chosen("weights", weights, ("linear", "quadratic", "none", None))
        self.weights = "" if weights in (None, "none") else str(weights).title()
        super().__init__(task, threshold, num_classes, ignore_index, validate_args, **kwargs)

    def compute(self) -> Any:
        """Compute the value over all batches since the last reset; NaN if undefined."""
        name = f"CohenKappa{self.weights}"
        if self._empty():
            return result(math.nan)
        return result(_float(self._card(name).value(name)))


class MatthewsCorrCoef(_Classification):
    """Matthews correlation; 0 if a side has only one class, and of two classes near 0, or 1 or -1.

    Of two classes, one of which is missing on a side, the value is that of torchmetrics 1.9: 1 if
    all are right, -1 if all are wrong, otherwise a small number of either sign.
    """

    def __init__(
        self,
        task: str,
        threshold: float = 0.5,
        num_classes: int | None = None,
        num_labels: int | None = None,
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(task, threshold, num_classes, ignore_index, validate_args, **kwargs)

    def compute(self) -> Any:
        """The value of all batches since the last reset."""
        if self._empty():
            return result(0.0)
        correlation = _float(self._card("MCC").value("MCC"))
        if self.n_labels == 2:
            rows = self._table("rows")
            code = 2 * rows["actual"].to_numpy() + rows["predicted"].to_numpy()
            tn, fp, fn, tp = map(int, np.bincount(code, minlength=4))
            correlation = _of_one_class(tn, fp, fn, tp, correlation)
        return result(correlation)


def _of_one_class(tn: int, fp: int, fn: int, tp: int, otherwise: float) -> float:
    """Return Matthews correlation of two classes as torchmetrics 1.9 has it without a class.

    Its case analysis replaces a denominator of 0 by one with the smallest step of single precision.
    """
    if not fp + fn:
        return 1.0
    if not tp + tn:
        return -1.0
    sides = tp + fp, tp + fn, tn + fp, tn + fn
    if all(sides):
        return otherwise
    eps = float(np.finfo(np.float32).eps)
    ways = {
        (fn == 0 and tn == 0): tp - fp,
        (fp == 0 and tn == 0): tp - fn,
        (tp == 0 and fn == 0): tn - fp,
        (tp == 0 and fp == 0): tn - fn,
    }
    return math.sqrt(eps) * ways[True] / math.sqrt(math.prod(side + eps for side in sides))


class CalibrationError(_Classification):
    """Mean (``norm`` l1) or largest (max) gap between confidence and accuracy in equal bins.

    Bins have the precision of the scores, single for multiclass, and exactly 1 is a separate bin,
    as in torchmetrics 1.9. The last bit of torch's edges depends on the processor; here they are
    NumPy's.
    """

    hard = False

    def __init__(
        self,
        task: str,
        n_bins: int = 15,
        norm: str = "l1",
        num_classes: int | None = None,
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        chosen("norm", norm, ("l1", "max"))
        self.n_bins, self.norm = n_bins, norm
        super().__init__(task, 0.5, num_classes, ignore_index, validate_args, **kwargs)

    def _score_columns(self, scores: Array) -> dict[str, Array]:
        if scores.ndim == 1:
            return {"score": scores}
        predicted = scores.argmax(axis=1)
        best = scores[np.arange(len(scores)), predicted].astype(np.float32)
        return {"score": best, "predicted": predicted}

    def compute(self) -> Any:
        """The value of all batches since the last reset."""
        if self._empty():
            return result(math.nan if self.norm == "l1" else 0.0)
        rows = self._table("rows")
        right = rows["actual"].to_numpy()
        if "predicted" in rows.columns:
            right = right == rows["predicted"].to_numpy()
        sure = rows["score"].to_numpy()
        edges = np.linspace(0, 1, self.n_bins + 1, dtype=sure.dtype)
        at = np.searchsorted(edges, sure, side="right") - 1
        many = np.bincount(at)
        gaps = np.abs(np.bincount(at, right) - np.bincount(at, sure))
        if self.norm == "l1":
            return result(float(gaps.sum() / many.sum()))
        return result(float((gaps[many > 0] / many[many > 0]).max()))


# ``MeanAveragePrecision`` of boxes and masks, by pycocotools' numbers.

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
        grid = np.linspace(0, 1, 101)
        thresholds = grid if rec_thresholds is None else np.asarray(rec_thresholds)
        if thresholds.shape != grid.shape or not np.allclose(thresholds, grid, atol=1e-6):
            raise OptionError("rec_thresholds: there are COCO's 101 from 0 to 1, and no others.")
        if extended_summary:
            raise OptionError(
                "extended_summary=True is not supported; evalengine.score(..., dialect='coco')"
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
        predicted = [self._image(f"preds[{i}]", one, i, "scores") for i, one in enumerate(preds)]
        truth = [self._image(f"target[{i}]", one, i) for i, one in enumerate(target)]
        if predicted:
            sides = {"preds": pl.concat(predicted), "target": pl.concat(truth)}
            self._batches.append(sides, datums=len(predicted))

    def _image(self, name: str, item: Mapping[str, Any], i: int, *more: str) -> pl.DataFrame:
        keys = [_GEOMETRY[one][0] for one in self.iou_type]
        missing = [key for key in (*keys, "labels", *more) if key not in item]
        if missing:
            raise InputError(f"{name} has no {', '.join(missing)}; it has {', '.join(item)}.")
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
            pixels = masks.astype(bool)
            inside = masks[pixels] if masks.dtype.kind not in "biu" else np.ones(0)
            if ((inside != inside[:1]) | (inside < 1)).any():  # 0 and 255 are fine
                raise InputError(
                    f"{name}['masks'] has values of logits or probabilities: compare them with your"
                    " threshold, and give the result."
                )
            columns["mask"] = to_rle(from_pixels([*pixels]))
            area = pixels.reshape(n, -1).sum(axis=1) if n else area
        if "scores" in more:
            columns["score"] = _of_rows(name, item, "scores", n)
            return pl.DataFrame(columns)
        if "iscrowd" in item:
            columns["iscrowd"] = _of_rows(name, item, "iscrowd", n)
        else:
            columns["iscrowd"] = np.zeros(n)
        areas = _of_rows(name, item, "area", n) if "area" in item else np.zeros(n)
        columns["area"] = np.where(areas > 0, areas, area).astype(np.float64)
        return pl.DataFrame(columns)

    def compute(self) -> dict[str, Any]:
        """Compute the numbers by torchmetrics' names; -1 without data."""
        numbers: dict[str, Any] = {}
        classes: list[int] = []
        if self._batches.datums:
            label_values = [
                self._table(side)["label_value"].unique() for side in ("preds", "target")
            ]
            classes = pl.concat(label_values).unique().sort().to_list()
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
            per_class = np.zeros(0) if self.class_metrics else -1.0
            return {**dict.fromkeys(names, -1.0), "map_per_class": per_class, last: per_class}
        card = self._card(iou_type, caps, classes, self.average == "micro")
        numbers = dict(zip(names, card.to_coco()["stats"], strict=True))
        # pycocotools prints the mean of all sizes and thresholds at 100 detections, if it can
        usual = [cap for cap in caps if cap <= 100]
        if 100 in caps[:-1]:
            at_100 = self._card(iou_type, usual, classes, self.average == "micro")
            numbers["map"] = at_100.to_coco()["stats"][0]
        numbers["map_per_class"] = numbers[last] = -1.0
        if self.class_metrics:
            each = card if self.average == "macro" else self._card(iou_type, caps, classes, False)
            less = each if 100 not in caps[:-1] else self._card(iou_type, usual, classes, False)
            numbers["map_per_class"] = _by_class(less, "APAveragedOverIOUs", classes)
            numbers[last] = _by_class(each, "AR", classes, pl.col("max_detections") == caps[-1])
        return numbers

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
            datums=range(self._batches.datums),
            labels=[0] if one_label else classes,
            iou_type=iou_type,
            box_format=self.box_format if column == "bbox" else None,
            iou_thresholds=self.iou_thresholds,
            max_detections=caps,
        )


def _of_rows(name: str, item: Mapping[str, Any], key: str, n: int) -> Array:
    values = array(f"{name}[{key!r}]", item[key]).reshape(-1)
    if len(values) != n:
        raise InputError(f"{name}: {n} labels, but {len(values)} of {key}.")
    return values.astype(np.float64)


def _by_class(card: Any, metric: str, classes: list[int], more: pl.Expr | None = None) -> Any:
    """Return a metric over all sizes per class, [K]; -1 if undefined."""
    chosen_rows = [(pl.col("metric") == metric) & (pl.col("area") == "all")]
    rows = card.metrics.filter(*chosen_rows, *([] if more is None else [more]))
    values = dict(rows.select("label_value", "value").iter_rows())
    class_values = [values.get(label) for label in classes]
    return _squeezed(np.array([-1.0 if one is None else one for one in class_values]))


def _squeezed(values: Array) -> Any:
    """One number by itself, as torchmetrics returns it."""
    return values[0].item() if values.shape == (1,) else values
