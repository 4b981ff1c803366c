"""Functions of scores, as in scikit-learn."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from ...api import score
from ...ingest.ids import encode
from ...ingest.problems import count_of
from ...schemas.arrays import Array
from ...schemas.errors import InputError, OptionError, invalid
from ..arrays import check_same_kind, chosen, column, numbers, undefined, weights
from .hard import Answers, accuracy_score, indicator, score_rows, set_rows

# Functions of scores: areas, curves, losses of probabilities, top-k accuracy.

_SUMS_TO_ONE = "rows of y_score must add up to 1 over the classes, as probabilities do."


def _number(answers: Answers, metric: str, message: str, **where: Any) -> float:
    """Return one number; NaN with a warning if undefined."""
    value = answers.value(metric=metric, **where)
    if math.isnan(value):
        undefined(message)
    return value


class _Truth:
    """The true labels of one call, and which there are."""

    def __init__(self, y_true: Any, n_scores: int) -> None:
        labels = column("y_true", y_true)
        check_same_kind({"y_true": labels.values})
        if len(labels.values) != n_scores:
            raise InputError(f"inconsistent numbers of rows: {len(labels.values)} and {n_scores}.")
        self.kind = labels.kind
        self.values, (self.codes,) = encode([labels.values])
        self.classes = self.values.to_list()

    def is_label(self, label: Any) -> Array:
        """Return flags for the rows with a label."""
        if isinstance(label, str) != (self.values.dtype == pl.String):
            raise InputError(f"pos_label={label!r} is of another type than the labels.")
        code = self.classes.index(label) if label in self.classes else -1
        return self.codes == code

    def positive(self, pos_label: Any) -> Array:
        """Return flags for the rows of the positive label, by default 1 if labels are 0 and 1 or -1
        and 1.

        Raises:
            InputError: no positive label for other labels; or more than two labels.
        """
        if pos_label is None:
            if not any(set(self.classes) <= {other, 1} for other in (0, -1)):
                raise InputError(
                    f"y_true takes the values {self.classes[:10]}: which is the positive one?"
                    " Write pos_label=.",
                    code="option_missing",
                    option="pos_label",
                )
            pos_label = 1
        elif len(self.classes) > 2:
            raise InputError(f"y_true has {len(self.classes)} labels; curves are of two.")
        return self.is_label(column("pos_label", [pos_label]).values[0])

    def among(self, labels: Any, n_columns: int) -> list[Any]:
        """Return the labels of the score columns: declared ones, or all.

        Raises:
            InputError: the number does not match, they are unsorted, or some are missing.
        """
        classes = self.classes
        if labels is not None:
            requested = column("labels", labels).values
            classes = requested.unique().sort().to_list()
            if classes != requested.to_list():
                raise InputError(f"labels must be unique and in order: {classes}.")
            strange = sorted(set(self.classes) - set(classes))
            if strange:
                raise InputError(f"y_true has labels that are not in labels=: {strange[:10]}.")
        if len(classes) != n_columns:
            raise InputError(
                f"{len(classes)} labels{'' if labels is None else ' in labels='}, but {n_columns}"
                " columns of scores; name all labels in labels=."
            )
        return classes


def _binary(
    metric: str,
    positive: Array,
    scores: Array,
    sample_weight: Any,
    *,
    named: bool = False,
    **options: Any,
) -> Answers:
    """Compute a metric of one score per row, that of label 1 of the labels 0 and 1.

    Args:
        named: whether both labels count as named by the user.
    """
    fields: dict[str, Any] = {
        "rows": score_rows(scores),
        "weight": weights(sample_weight, len(scores)).get("weight"),
        "declared": np.arange(2) if named else None,
    }
    return Answers([metric], pl.Series([0, 1]), positive.astype(np.int32), **fields, **options)


def _several(
    metric: str,
    truth: _Truth,
    scores: Array,
    classes: Sequence[Any],
    sample_weight: Any,
    *,
    named: bool = False,
    **options: Any,
) -> Answers:
    """Compute a metric of a score per row and label; labels count from 0."""
    place = {label: i for i, label in enumerate(classes)}
    places = np.array([place[label] for label in truth.classes], np.int32)
    fields: dict[str, Any] = {
        "rows": score_rows(scores),
        "weight": weights(sample_weight, len(scores)).get("weight"),
        "declared": np.arange(len(classes)) if named else None,
    }
    values = pl.Series(np.arange(len(classes)))
    return Answers([metric], values, places[truth.codes], **fields, **options)


def roc_auc_score(
    y_true: Any,
    y_score: Any,
    *,
    average: str | None = "macro",
    sample_weight: Any = None,
    max_fpr: float | None = None,
    multi_class: str = "raise",
    labels: Any = None,
) -> Any:
    """Area under the ROC curve, of two labels or of several (``multi_class`` ovr or ovo)."""
    chosen("multi_class", multi_class, ("raise", "ovr", "ovo"))
    scores = numbers("y_score", y_score, dims=(1, 2))
    several = indicator("y_true", y_true)
    if several is not None:
        if max_fpr not in (None, 1) and average is not None:
            raise OptionError("max_fpr: with several labels per row, only with average=None.")
        partial = max_fpr not in (None, 1)
        names = ("PartialROCAUC" if partial else "ROCAUC", "mROCAUC")
        message = "a label that no row has, or every row, has no area."
        fields = {"max_fpr": max_fpr} if partial else {}
        return _of_sets(several, scores, sample_weight, average, names, message, **fields)
    truth = _Truth(y_true, len(scores))
    if len(truth.classes) <= 2 and (scores.ndim == 1 or scores.shape[1] < 3):
        return _binary_area(truth, scores, sample_weight, max_fpr)
    if max_fpr not in (None, 1):
        raise OptionError("max_fpr: areas up to a rate need exactly two labels.")
    if multi_class == "raise":
        raise OptionError(
            "multi_class: write 'ovr' or 'ovo'.", code="option_missing", option="multi_class"
        )
    micro = ("micro", None) if multi_class == "ovr" else ()
    chosen("average", average, ("macro", "weighted", *micro))
    if scores.ndim != 2:
        raise InputError("y_score needs one column a label, since y_true has more than two.")
    if not np.allclose(1, scores.sum(axis=1)):
        raise InputError(_SUMS_TO_ONE)
    classes = truth.among(labels, scores.shape[1])
    if multi_class == "ovo" and sample_weight is not None:
        raise OptionError("sample_weight: areas of pairs of labels (ovo) take none.")
    inputs = (truth, scores, classes, sample_weight)
    message = "y_true has only one class, so its area is undefined."
    if average is None:
        return _of_labels(_several("ROCAUC", *inputs), len(classes), message)
    if multi_class == "ovo":
        pairs = _several("mROCAUCOneVsOne", *inputs)
        return _number(pairs, "mROCAUCOneVsOne", message, average=average)
    answers = _several("mROCAUC", *inputs, average=average)
    return _number(answers, "mROCAUC", message, average=average)


def _of_sets(
    truth: Array,
    scores: Array,
    sample_weight: Any,
    average: str | None,
    names: tuple[str, str],
    message: str,
    **more: Any,
) -> Any:
    """A number of each column of an indicator matrix, or their average."""
    chosen("average", average, ("macro", "micro", "weighted", "samples", None))
    if scores.shape != truth.shape:
        raise InputError(
            f"y_true has the shape {truth.shape}, y_score {scores.shape}.",
            code="shapes_differ",
            shapes=[truth.shape, scores.shape],
        )
    _, codes, start = set_rows(truth)
    n_labels = truth.shape[1]
    fields: dict[str, Any] = {
        "start": start,
        "rows": score_rows(scores),
        "weight": weights(sample_weight, len(truth)).get("weight"),
        "declared": np.arange(n_labels),
        **more,
    }
    values = pl.Series(np.arange(n_labels))
    if average is None:
        return _of_labels(Answers(names[:1], values, codes, **fields), n_labels, message)
    answers = Answers(names[1:], values, codes, average=average, **fields)
    return _number(answers, names[1], message, average=average)


def _of_labels(answers: Answers, n_labels: int, message: str) -> Array:
    """Return one number per label, [L]; NaN with a warning if one is undefined."""
    of_label = dict(zip(answers.column("label_value"), answers.column("value"), strict=True))
    values = np.array([of_label.get(label) for label in range(n_labels)], np.float64)
    if np.isnan(values).any():
        undefined(message)
    return values


def _binary_area(truth: _Truth, scores: Array, sample_weight: Any, max_fpr: float | None) -> float:
    if scores.ndim != 1 and len(truth.classes) == 2:
        raise InputError(f"y_score has the shape {scores.shape}, but y_true two labels: give one.")
    if max_fpr is not None and not 0 < max_fpr <= 1:
        raise invalid("max_fpr", max_fpr, "write a number above 0, up to 1.")
    inputs = truth.is_label(truth.classes[-1]), scores, sample_weight
    message = "only one class is in y_true: the area is undefined."
    if len(truth.classes) == 1:
        weights(sample_weight, len(scores))  # checks them
        undefined(message)
        return math.nan
    if max_fpr in (None, 1):
        return _number(_binary("ROCAUC", *inputs), "ROCAUC", message)
    return _number(_binary("PartialROCAUC", *inputs, max_fpr=max_fpr), "PartialROCAUC", message)


def average_precision_score(
    y_true: Any,
    y_score: Any,
    *,
    average: str | None = "macro",
    pos_label: Any = 1,
    sample_weight: Any = None,
) -> Any:
    """Sum of precision times gain in recall, of two labels or of several against the rest."""
    scores = numbers("y_score", y_score, dims=(1, 2))
    several = indicator("y_true", y_true)
    if several is not None:
        if pos_label != 1:
            raise OptionError("pos_label: of several labels a row it is 1.")
        message = "no row has any label: average precision is 0."
        result = _of_sets(several, scores, sample_weight, average, ("AP", "mAP"), message)
        return result if average is None else np.nan_to_num(result).item()
    chosen("average", average, ("macro", "micro", "weighted", "samples", None))
    truth = _Truth(y_true, len(scores))
    if len(truth.classes) <= 2:
        if scores.ndim != 1:
            raise InputError(f"y_score has the shape {scores.shape}, but y_true two labels.")
        if len(truth.classes) == 2 and pos_label not in truth.classes:
            raise InputError(f"pos_label={pos_label!r} is not among the labels {truth.classes}.")
        positive = truth.positive(pos_label)
        result = _binary("AP", positive, scores, sample_weight)
        if not positive.any():
            undefined("no row has the positive label: average precision is 0.")
        return np.nan_to_num(result.value(metric="AP", label_value=1)).item()
    if pos_label != 1:
        raise OptionError("pos_label: with more than two labels each is positive in turn.")
    classes = truth.among(None, 1 if scores.ndim == 1 else scores.shape[1])
    sides = (truth, scores, classes, sample_weight)
    if average == "samples":
        one_hot = np.eye(len(classes), dtype=bool)[truth.codes]
        message = "average precision is undefined."
        return _of_sets(one_hot, scores, sample_weight, average, ("AP", "mAP"), message)
    if average is None:
        return _of_labels(_several("AP", *sides), len(classes), "AP is undefined.")
    result = _several("mAP", *sides, average=average)
    return _number(result, "mAP", "average precision is undefined.", average=average)


def of_positive(
    metric: str,
    y_true: Any,
    scores: Array,
    pos_label: Any,
    sample_weight: Any = None,
    **options: Any,
) -> Answers:
    """Compute a metric of one score per row, that of the positive label."""
    truth = _Truth(y_true, len(scores))
    positive = truth.positive(pos_label)
    return _binary(metric, positive, scores, sample_weight, named=True, **options)


def curve(
    y_true: Any, y_score: Any, pos_label: Any, sample_weight: Any, name: str, **options: Any
) -> dict[str, Array]:
    """Columns of the points of a curve, highest score first."""
    scores = numbers("y_score", y_score)
    answers = of_positive(name, y_true, scores, pos_label, sample_weight, **options)
    names = ("tp", "fp", "fn", "tn", "precision", "recall", "fpr", "score_threshold")
    columns = dict(zip(names, answers.of_label(1, *names), strict=True))
    at = columns["score_threshold"]
    at[np.isnan(at)] = math.inf
    return columns


def roc_curve(
    y_true: Any,
    y_score: Any,
    *,
    pos_label: Any = None,
    sample_weight: Any = None,
    drop_intermediate: bool = True,
) -> tuple[Array, Array, Array]:
    """False and true positive rates and their thresholds, from the one above all scores."""
    arguments = (y_true, y_score, pos_label, sample_weight)
    points = curve(*arguments, "ROCCurve", thin_curves=bool(drop_intermediate))
    for rate, side in (("fpr", "negative"), ("recall", "positive")):
        if np.isnan(points[rate]).any():
            undefined(f"no {side} rows in y_true: the {side} rate is undefined.")
    return points["fpr"], points["recall"], points["score_threshold"]


def precision_recall_curve(
    y_true: Any,
    y_score: Any,
    *,
    pos_label: Any = None,
    sample_weight: Any = None,
    drop_intermediate: bool = False,
) -> tuple[Array, Array, Array]:
    """Precision and recall, [N + 1], and thresholds, [N], lowest first."""
    points = curve(y_true, y_score, pos_label, sample_weight, "ScorePrecisionRecallCurve")
    mask = np.isfinite(points["score_threshold"])
    if drop_intermediate and mask.sum() > 2:  # points within a run of equal true positives
        at = np.flatnonzero(mask)
        tp = points["tp"][at]
        mask[at[1:-1][(tp[1:-1] == tp[:-2]) & (tp[1:-1] == tp[2:])]] = False
    precision, recall, at = (
        points[name][mask][::-1] for name in ("precision", "recall", "score_threshold")
    )
    if np.isnan(recall).any():
        warnings.warn("no positive rows in y_true: recall is set to 1.", stacklevel=2)
    precision = np.where(np.isnan(precision), 0.0, precision)
    recall = np.where(np.isnan(recall), 1.0, recall)
    dtype = np.asarray(y_score).dtype
    at = at.astype(dtype) if dtype.kind in "fiu" else at.copy()
    return np.append(precision, 1.0), np.append(recall, 0.0), at


def det_curve(
    y_true: Any,
    y_score: Any,
    pos_label: Any = None,
    sample_weight: Any = None,
    drop_intermediate: bool = False,
) -> tuple[Array, Array, Array]:
    """False positive and false negative rates and their thresholds, lowest first."""
    points = curve(y_true, y_score, pos_label, sample_weight, "ROCCurve", thin_curves=False)
    fp, tp = points["fp"], points["tp"]
    indices = np.arange(fp.size)
    if drop_intermediate and fp.size > 2:  # points within a run of equal true positives
        indices = indices[
            np.pad((np.diff(tp[:-1]) != 0) | (np.diff(tp[1:]) != 0), 1, constant_values=True)
        ]
    first = np.searchsorted(fp[indices], 0, side="right") - 1
    last = np.searchsorted(tp[indices], tp[-1]) + 1
    fpr, recall, fn, at = (
        points[name][indices][first:last][::-1].copy()
        for name in ("fpr", "recall", "fn", "score_threshold")
    )
    if np.isnan(recall).any() or np.isnan(fpr).any():
        raise InputError("only one class is in y_true: the curve is undefined.")
    return fpr, fn / tp[-1], at


def _probabilities(name: str, values: Any) -> Array:
    scores = numbers(name, values, dims=(1, 2))
    wrong = int(np.count_nonzero((scores < 0) | (scores > 1)))
    if wrong:
        raise InputError(
            f"{name}: {wrong} of {scores.size} numbers are outside 0 to 1.",
            code="not_probabilities",
            option=name,
            count=wrong,
        )
    return scores


def _of_probabilities(
    metric: str, y_true: Any, scores: Array, labels: Any, sample_weight: Any
) -> Answers:
    """A score of two or more columns of probabilities, labels in order."""
    one_hot = indicator("y_true", y_true)
    if one_hot is not None:
        others = int(np.count_nonzero(one_hot.sum(axis=1) != 1))
        if others:
            raise InputError(
                f"y_true: in {count_of(others, 'row')} of the matrix other than one column is 1."
                " Probabilities of labels that exclude each other need one true label per row.",
                code="wrong_shape",
                option="y_true",
                count=others,
            )
        if labels is not None:
            raise OptionError("labels: those of a matrix are its columns; omit labels=.")
        y_true, labels = one_hot.argmax(axis=1), range(one_hot.shape[1])
    truth = _Truth(y_true, len(scores))
    if scores.ndim == 2:
        sums = scores.sum(axis=1)
        if not np.allclose(sums, 1, rtol=math.sqrt(np.finfo(scores.dtype).eps), atol=0):
            warnings.warn("rows of y_proba do not add up to 1.", stacklevel=3)
    n_labels = 2 if scores.ndim == 1 else scores.shape[1]
    if labels is None and len(truth.classes) == 1:
        raise InputError(f"y_true has one label, {truth.classes[0]!r}; name all in labels=.")
    ordered = None if labels is None else column("labels", labels).values.unique().sort()
    classes = truth.among(ordered, n_labels)
    if scores.ndim == 1:
        return _binary(metric, truth.is_label(classes[1]), scores, sample_weight, named=True)
    return _several(metric, truth, scores, classes, sample_weight, named=True)


def log_loss(
    y_true: Any,
    y_proba: Any = None,
    *,
    normalize: bool = True,
    sample_weight: Any = None,
    labels: Any = None,
    y_pred: Any = "deprecated",
) -> float:
    """Mean (without ``normalize`` the sum) of -ln p of the true labels."""
    if not isinstance(y_pred, str):
        if y_proba is not None:
            raise OptionError("y_pred is the former name of y_proba: give one of them.")
        y_proba = y_pred
    scores = _probabilities("y_proba", y_proba)
    answers = _of_probabilities("LogLoss", y_true, scores, labels, sample_weight)
    loss = _number(answers, "LogLoss", "log loss is undefined.")
    return loss if normalize else loss * _total(sample_weight, len(scores))


def _total(sample_weight: Any, rows: int) -> float:
    return math.fsum(weights(sample_weight, rows).get("weight", np.ones(rows)))


def brier_score_loss(
    y_true: Any,
    y_proba: Any,
    *,
    sample_weight: Any = None,
    pos_label: Any = None,
    labels: Any = None,
    scale_by_half: bool | str = "auto",
) -> float:
    """Compute the mean squared difference of probabilities and truth, halved for two labels."""
    chosen("scale_by_half", scale_by_half, ("auto", True, False))
    scores = _probabilities("y_proba", y_proba)
    if scores.ndim == 1:
        truth = _Truth(y_true, len(scores))
        if len(truth.classes) > 2:
            raise InputError(f"y_true has {len(truth.classes)} labels: give a column for each.")
        if pos_label is None and truth.kind is not str and not set(truth.classes) <= {-1, 0, 1}:
            pos_label = truth.classes[-1]
        answers = _binary("Brier", truth.positive(pos_label), scores, sample_weight, named=True)
    else:
        answers = _of_probabilities("Brier", y_true, scores, labels, sample_weight)
    mean = _number(answers, "Brier", "the Brier score is undefined.")
    halved = scores.ndim == 1 or scores.shape[1] < 3
    halve = halved if scale_by_half == "auto" else bool(scale_by_half)
    return mean * (0.5 if halve and not halved else 2.0 if halved and not halve else 1.0)


def top_k_accuracy_score(
    y_true: Any,
    y_score: Any,
    *,
    k: int = 2,
    normalize: bool = True,
    sample_weight: Any = None,
    labels: Any = None,
) -> float:
    """Share (without ``normalize`` the weight) of rows whose label is among the k best scores."""
    if isinstance(k, bool) or k < 1:
        raise invalid("k", k, "write a whole number from 1 up.")
    scores = numbers("y_score", y_score, dims=(1, 2))
    truth = _Truth(y_true, len(scores))
    n_labels = 2 if scores.ndim == 1 else scores.shape[1]
    if scores.ndim == 1 and len(truth.classes) > 2:
        raise InputError("y_score needs one column a label, since y_true has more than two.")
    if scores.ndim == 2 and len(truth.classes) <= 2 and (labels is None or len(labels) <= 2):
        raise InputError(
            "y_true has two labels: give one column of scores, or name all in labels=."
        )
    classes = truth.among(labels, n_labels)
    if k >= n_labels:
        undefined(f"k={k} of {n_labels} labels: every row counts as right.")
    total = 1.0 if normalize else _total(sample_weight, len(scores))
    if scores.ndim == 1 and k == 1:
        at = 0.5 if scores.min() >= 0 and scores.max() <= 1 else 0.0
        right = truth.is_label(classes[1]).astype(np.int64)
        return accuracy_score(
            right, (scores > at).astype(np.int64), normalize=normalize, sample_weight=sample_weight
        )
    if scores.ndim == 1:
        scores = np.column_stack((-scores, scores))
    answers = _several("TopKAccuracy", truth, scores, classes, sample_weight, k=min(k, n_labels))
    return _number(answers, "TopKAccuracy", "top-k accuracy is undefined.") * total


# Functions over bins or thresholds: calibration curve, counts, ranked gains.


def calibration_curve(
    y_true: Any, y_prob: Any, *, pos_label: Any = None, n_bins: int = 5, strategy: str = "uniform"
) -> tuple[Array, Array]:
    """Compute the share of positives and the mean probability of every non-empty bin.

    Same as ``sklearn.calibration.calibration_curve``, but only with bins of equal width.
    """
    chosen("strategy", strategy, ("uniform",))
    scores = numbers("y_prob", y_prob)
    if ((scores < 0) | (scores > 1)).any():
        raise InputError(
            "y_prob: probabilities are between 0 and 1.", code="not_probabilities", option="y_prob"
        )
    bins = of_positive("Reliability", y_true, scores.astype(np.float64), pos_label, n_bins=n_bins)
    of_bins = [*zip(bins.column("statistic"), bins.column("value"), strict=True)]
    accuracy, confidence = (
        np.array([value for statistic, value in of_bins if statistic == name], np.float64)
        for name in ("accuracy", "confidence")
    )
    return accuracy, confidence


def confusion_matrix_at_thresholds(
    y_true: Any, y_score: Any, *, pos_label: Any = None, sample_weight: Any = None
) -> tuple[Array, Array, Array, Array, Array]:
    """Rows by truth and prediction at each threshold (tn, fp, fn, tp), and these, highest first."""
    points = curve(y_true, y_score, pos_label, sample_weight, "ScorePrecisionRecallCurve")
    finite = np.isfinite(points["score_threshold"])
    tn, fp, fn, tp = (points[name][finite] for name in ("tn", "fp", "fn", "tp"))
    at = points["score_threshold"][finite].astype(numbers("y_score", y_score).dtype)
    return tn, fp, fn, tp, at


def _gains(
    metric: str, y_true: Any, y_score: Any, k: int | None, sample_weight: Any, *, ignore_ties: bool
) -> float:
    """Compute the weighted mean over rows of a metric of gains in the order of scores."""
    gains = numbers("y_true", y_true, dims=(2,))
    scores = numbers("y_score", y_score, rows=len(gains), dims=(2,))
    if gains.shape != scores.shape:
        raise InputError(f"y_true has the shape {gains.shape}, y_score {scores.shape}.")
    if (gains < 0).any():
        raise InputError("y_true: a gain is 0 or more.", code="too_low", option="y_true")
    row, column = np.indices(gains.shape).reshape(2, -1)
    # Break ties by descending column, as a reversed sort does.
    ids = {"query_id": row, "doc_id": column}
    run = pl.DataFrame(ids | {"score": scores.ravel().astype(np.float64)}).reverse()
    judged = pl.DataFrame(ids | {"relevance": gains.ravel().astype(np.float64)})
    card = score(
        run,
        judged,
        task="retrieval",
        metrics=[metric],
        k=[k or gains.shape[1]],
        ties="input" if ignore_ties else "average",
        complete=True,
    )
    row_weights = weights(sample_weight, len(gains)).get("weight")
    if row_weights is None:
        return float(card.value(metric, k=k or gains.shape[1]) or 0.0)
    each = (
        card.per_datum.filter(k=k or gains.shape[1])
        .sort("datum_id")["value"]
        .fill_null(0.0)
        .to_numpy()
    )
    return float(np.average(each, weights=row_weights))


def ndcg_score(
    y_true: Any,
    y_score: Any,
    *,
    k: int | None = None,
    sample_weight: Any = None,
    ignore_ties: bool = False,
) -> float:
    """Mean over rows of nDCG of the columns' gains in ``y_true`` in the order of ``y_score``."""
    return _gains("nDCG", y_true, y_score, k, sample_weight, ignore_ties=ignore_ties)


def dcg_score(
    y_true: Any,
    y_score: Any,
    *,
    k: int | None = None,
    log_base: float = 2,
    sample_weight: Any = None,
    ignore_ties: bool = False,
) -> float:
    """Mean over rows of DCG of the columns' gains in ``y_true`` in the order of ``y_score``."""
    if not log_base > 0 or log_base == 1:
        raise invalid("log_base", log_base, "write a base above 0 other than 1.")
    gains = numbers("y_true", y_true, dims=(2,))
    arguments = y_score, k, sample_weight
    mean = _gains("DCG", np.maximum(gains, 0), *arguments, ignore_ties=ignore_ties)
    if (gains < 0).any():  # DCG is linear in gains
        mean -= _gains("DCG", np.maximum(-gains, 0), *arguments, ignore_ties=ignore_ties)
    return mean * math.log(log_base) / math.log(2)
