"""Classes of classification, binary and multiclass, by the engine's dialect ``torchmetrics``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import polars as pl

from ...schemas.arrays import Array
from ...schemas.asked import in_name
from ...schemas.errors import InputError, OptionError
from ...scorecard.card import Scorecard
from ..arrays import chosen, classify
from .metric import Metric, array, result


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
            raise OptionError("task='multilabel': evalengine.score(..., multilabel=True) has it.")
        chosen("task", task, ("binary", "multiclass"))
        if (task == "multiclass") != isinstance(num_classes, int):
            raise OptionError(f"num_classes={num_classes!r} does not fit task={task!r}.")
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
        truth, found = array("target", target), array("preds", preds)
        if truth.dtype.kind == "f":
            raise InputError("target: classes are integers.")
        scores = found.dtype.kind == "f"
        wide = scores and self.task == "multiclass"
        shape = (*truth.shape[:1], self.n_labels, *truth.shape[1:]) if wide else truth.shape
        if found.shape != shape:
            raise InputError(f"preds has the shape {found.shape}; {shape} fits target.")
        found = np.moveaxis(found, 1, -1).reshape(-1, self.n_labels) if wide else found.reshape(-1)
        truth = truth.reshape(-1)
        if self.ignore_index is not None:
            kept = truth != self.ignore_index
            truth, found = truth[kept], found[kept]
        self._within("target", truth)
        if scores:
            broken = int(np.count_nonzero(~np.isfinite(found)))
            if broken:
                raise InputError(f"preds: {broken} of {found.size} scores are NaN or infinite.")
            given, found = found, _probabilities(found)
        else:
            self._within("preds", found)
        if not scores and not self.hard:
            raise InputError(f"{type(self).__name__} needs scores, and preds are integers.")
        if not self.hard:
            names = [f"score_{i}" for i in range(self.n_labels)] if wide else ["score"]
            columns = dict(zip(names, np.atleast_2d(found.T), strict=True))
        elif wide:
            columns = {"predicted": given.argmax(axis=1)}  # small logits tie once they are shares
        else:
            columns = {"predicted": found > self.threshold if scores else found}
            columns = {"predicted": columns["predicted"].astype(np.int64)}
        rows = pl.DataFrame({"actual": truth.astype(np.int64), **columns})
        self._kept.append({"rows": rows}, datums=len(truth))

    def _within(self, name: str, labels: Array) -> None:
        strange = labels[(labels < 0) | (labels >= self.n_labels)]
        if len(strange):
            raise InputError(
                f"{name}: {len(strange)} of {len(labels)} classes are not from 0 to"
                f" {self.n_labels - 1}, first {strange[:3].tolist()}."
            )

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
        found = [values.get(label, absent) for label in range(self.n_labels)]
        return np.array([math.nan if one is None else one for one in found])

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


def _probabilities(scores: Array) -> Array:
    """Scores as they are within 0 to 1, logits turned otherwise, as torchmetrics does by batch."""
    if not scores.size or (scores.min() >= 0 and scores.max() <= 1):
        return scores
    if scores.ndim == 1:
        return 1 / (1 + np.exp(-scores))
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    found: Array = powers / powers.sum(axis=1, keepdims=True)
    return found


class _Ratio(_Classification):
    """A ratio of counts, of the positive class or of an average of classes."""

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
            raise OptionError("top_k: labels are the best score's; TopKAccuracy of score has more.")
        self.average, self.zero_division = average, float(zero_division)
        super().__init__(task, threshold, num_classes, ignore_index, validate_args, **kwargs)

    def compute(self) -> Any:
        """The value of all batches since the last reset."""
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
            raise OptionError(f"beta={beta!r}: write a finite number above 0.")
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
            raise OptionError("thresholds: areas are exact here; leave it None.")
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
            raise OptionError(f"max_fpr={max_fpr}: of task='binary', above 0 and up to 1.")
        self.max_fpr = None if max_fpr == 1 else max_fpr
        super().__init__(task, *args, **kwargs)

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
        from ..sklearn import confusion_matrix

        table, labels = self._table("rows"), list(range(self.n_labels))
        rows = table["actual"], table["predicted"]
        found = confusion_matrix(*rows, labels=labels, normalize=self.normalize)
        return result(found, "int64" if self.normalize is None else "float32")


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
        return result(_float(self._card(name).value(name)))


class MatthewsCorrCoef(_Classification):
    """Matthews correlation; 0 if a side has only one class."""

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
        return result(_float(self._card("MCC").value("MCC")))


class CalibrationError(_Classification):
    """Mean (``norm`` l1) or largest (max) gap between confidence and accuracy in equal bins."""

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
        self.n_bins, self.name = n_bins, {"l1": "ECE", "max": "MCE"}[norm]
        super().__init__(task, 0.5, num_classes, ignore_index, validate_args, **kwargs)

    def compute(self) -> Any:
        """The value of all batches since the last reset."""
        return result(_float(self._card(self.name, n_bins=self.n_bins).value(self.name)))
