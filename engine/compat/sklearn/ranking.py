"""Functions of scores, as in scikit-learn."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from ...api import score
from ...schemas.arrays import Array
from ...schemas.errors import InputError, OptionError, invalid
from ...scorecard.card import Scorecard
from ..arrays import alike, chosen, classify, column, numbers, undefined, weights
from .hard import accuracy_score, indicator, lists

# Functions of scores: areas, curves, losses of probabilities, top-k accuracy.

_SUMS_TO_ONE = "rows of y_score must add up to 1 over the classes, as probabilities do."


def _card(table: pl.DataFrame, metric: str, **options: Any) -> Scorecard:
    return classify(table, metric, dialect="sklearn", **options)


def _number(card: Scorecard, metric: str, message: str, **where: Any) -> float:
    """Return one number; NaN with a warning if undefined."""
    found = card.value(metric, **where)
    if found is None:
        undefined(message)
        return math.nan
    return float(found)


class _Truth:
    """The true labels of one call, and which there are."""

    def __init__(self, y_true: Any, n_scores: int) -> None:
        given = column("y_true", y_true)
        alike({"y_true": given.values})
        if len(given.values) != n_scores:
            raise InputError(f"inconsistent numbers of rows: {len(given.values)} and {n_scores}.")
        self.values, self.kind = given
        self.classes = self.values.unique().sort().to_list()

    def is_label(self, label: Any) -> pl.Series:
        """Return flags for the rows with a label."""
        if isinstance(label, str) != (self.values.dtype == pl.String):
            raise InputError(f"pos_label={label!r} is of another type than the labels.")
        return self.values == label

    def positive(self, pos_label: Any) -> pl.Series:
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
            asked = column("labels", labels).values
            classes = asked.unique().sort().to_list()
            if classes != asked.to_list():
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


def _binary_table(positive: pl.Series, scores: Array, sample_weight: Any) -> pl.DataFrame:
    of_row = weights(sample_weight, len(scores))
    return pl.DataFrame({"actual": positive.cast(pl.Int64), "score": scores, **of_row})


def _wide(
    truth: _Truth, scores: Array, classes: Sequence[Any], sample_weight: Any
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Build a table with one score column per label, and matching options; labels count from 0."""
    places = truth.values.replace_strict(classes, range(len(classes)), return_dtype=pl.Int64)
    columns = {f"score_{i}": scores[:, i] for i in range(len(classes))}
    table = pl.DataFrame({"actual": places, **columns, **weights(sample_weight, len(scores))})
    by_label = {i: f"score_{i}" for i in range(len(classes))}
    return table, {"score_columns": by_label}


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
        more = {"max_fpr": max_fpr} if partial else {}
        return _of_sets(several, scores, sample_weight, average, names, message, **more)
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
    table, options = _wide(truth, scores, classes, sample_weight)
    message = "y_true has only one class, so its area is undefined."
    if multi_class == "ovo":
        return _number(
            _card(table, "mROCAUCOneVsOne", **options), "mROCAUCOneVsOne", message, average=average
        )
    if average is None:
        return _of_labels(_card(table, "ROCAUC", **options), len(classes), message)
    card = _card(table, "mROCAUC", average=average, **options)
    return _number(card, "mROCAUC", message, average=average)


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
    places = [*range(truth.shape[1])]
    columns = {f"score_{i}": scores[:, i] for i in places}
    of_row = weights(sample_weight, len(truth))
    table = pl.DataFrame({"actual": lists(truth), **columns, **of_row})
    options = {"score_columns": {i: f"score_{i}" for i in places}, "labels": places, **more}
    if average is None:
        return _of_labels(_card(table, names[0], multilabel=True, **options), len(places), message)
    card = _card(table, names[1], multilabel=True, average=average, **options)
    return _number(card, names[1], message, average=average)


def _of_labels(card: Scorecard, n_labels: int, message: str) -> Array:
    """Return one number per label, [L]; NaN with a warning if one is undefined."""
    found = dict(card.metrics.select("label_value", "value").iter_rows())
    values = np.array([found.get(label) for label in range(n_labels)], np.float64)
    if np.isnan(values).any():
        undefined(message)
    return values


def _binary_area(truth: _Truth, scores: Array, sample_weight: Any, max_fpr: float | None) -> float:
    if scores.ndim != 1:
        raise InputError(f"y_score has the shape {scores.shape}, but y_true two labels: give one.")
    if max_fpr is not None and not 0 < max_fpr <= 1:
        raise invalid("max_fpr", max_fpr, "write a number above 0, up to 1.")
    table = _binary_table(truth.is_label(truth.classes[-1]), scores, sample_weight)
    message = "only one class is in y_true: the area is undefined."
    if len(truth.classes) == 1:
        undefined(message)
        return math.nan
    if max_fpr in (None, 1):
        return _number(_card(table, "ROCAUC"), "ROCAUC", message)
    return _number(_card(table, "PartialROCAUC", max_fpr=max_fpr), "PartialROCAUC", message)


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
        found = _of_sets(several, scores, sample_weight, average, ("AP", "mAP"), message)
        return found if average is None else np.nan_to_num(found).item()
    chosen("average", average, ("macro", "micro", "weighted", None))
    truth = _Truth(y_true, len(scores))
    if len(truth.classes) <= 2:
        if scores.ndim != 1:
            raise InputError(f"y_score has the shape {scores.shape}, but y_true two labels.")
        if len(truth.classes) == 2 and pos_label not in truth.classes:
            raise InputError(f"pos_label={pos_label!r} is not among the labels {truth.classes}.")
        positive = truth.positive(pos_label)
        card = _card(_binary_table(positive, scores, sample_weight), "AP")
        if not positive.any():
            undefined("no row has the positive label: average precision is 0.")
        return card.value("AP", label_value=1) or 0.0
    if pos_label != 1:
        raise OptionError("pos_label: with more than two labels each is positive in turn.")
    classes = truth.among(None, 1 if scores.ndim == 1 else scores.shape[1])
    table, options = _wide(truth, scores, classes, sample_weight)
    if average is None:
        return _of_labels(_card(table, "AP", **options), len(classes), "AP is undefined.")
    card = _card(table, "mAP", average=average, **options)
    return _number(card, "mAP", "average precision is undefined.", average=average)


def of_positive(
    metric: str,
    y_true: Any,
    scores: Array,
    pos_label: Any,
    sample_weight: Any = None,
    **options: Any,
) -> Scorecard:
    """Score one score per row, that of the positive label."""
    truth = _Truth(y_true, len(scores))
    table = _binary_table(truth.positive(pos_label), scores, sample_weight)
    return _card(table, metric, labels=[0, 1], **options)


def curve(
    y_true: Any, y_score: Any, pos_label: Any, sample_weight: Any, name: str, **options: Any
) -> pl.DataFrame:
    """Points of a curve, highest score first."""
    scores = numbers("y_score", y_score)
    frame = of_positive(name, y_true, scores, pos_label, sample_weight, **options).curves
    frame = frame.filter((pl.col("curve") == name) & (pl.col("label_value") == 1))
    return frame.with_columns(pl.col("score_threshold").fill_null(math.inf))


def roc_curve(
    y_true: Any,
    y_score: Any,
    *,
    pos_label: Any = None,
    sample_weight: Any = None,
    drop_intermediate: bool = True,
) -> tuple[Array, Array, Array]:
    """False and true positive rates and their thresholds, from the one above all scores."""
    given = (y_true, y_score, pos_label, sample_weight)
    frame = curve(*given, "ROCCurve", thin_curves=bool(drop_intermediate))
    for rate, side in (("fpr", "negative"), ("recall", "positive")):
        if frame[rate].null_count():
            undefined(f"no {side} rows in y_true: the {side} rate is undefined.")
    return _floats(frame, "fpr"), _floats(frame, "recall"), _floats(frame, "score_threshold")


def _floats(frame: pl.DataFrame, name: str) -> Array:
    return frame[name].fill_null(math.nan).to_numpy().copy()


def precision_recall_curve(
    y_true: Any,
    y_score: Any,
    *,
    pos_label: Any = None,
    sample_weight: Any = None,
    drop_intermediate: bool = False,
) -> tuple[Array, Array, Array]:
    """Precision and recall, [N + 1], and thresholds, [N], lowest first."""
    frame = curve(y_true, y_score, pos_label, sample_weight, "ScorePrecisionRecallCurve")
    frame = frame.select("precision", "recall", "score_threshold", "tp")
    frame = frame.filter(pl.col("score_threshold").is_finite())
    if drop_intermediate and frame.height > 2:  # points within a run of equal true positives
        tp = pl.col("tp")
        inner = ((tp == tp.shift(1)) & (tp == tp.shift(-1))).fill_null(False)
        frame = frame.filter(~inner)
    frame = frame.reverse()
    if frame["recall"].null_count():
        warnings.warn("no positive rows in y_true: recall is set to 1.", stacklevel=2)
    precision = frame["precision"].fill_null(0.0).to_numpy()
    recall = frame["recall"].fill_null(1.0).to_numpy()
    dtype = np.asarray(y_score).dtype
    at = _floats(frame, "score_threshold")
    at = at.astype(dtype) if dtype.kind in "fiu" else at
    return np.append(precision, 1.0), np.append(recall, 0.0), at


def det_curve(
    y_true: Any,
    y_score: Any,
    pos_label: Any = None,
    sample_weight: Any = None,
    drop_intermediate: bool = False,
) -> tuple[Array, Array, Array]:
    """False positive and false negative rates and their thresholds, lowest first."""
    if drop_intermediate:
        raise OptionError(
            "drop_intermediate=True is not supported for det_curve.",
            code="option_unfit",
            option="drop_intermediate",
        )
    frame = curve(y_true, y_score, pos_label, sample_weight, "DETCurve").reverse()
    if not frame.height or frame["recall"].null_count() or frame["fpr"].null_count():
        raise InputError("only one class is in y_true: the curve is undefined.")
    misses = (frame["fn"] / (frame["fn"] + frame["tp"])).to_numpy().copy()
    return _floats(frame, "fpr"), misses, _floats(frame, "score_threshold")


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


def _probability_card(
    metric: str, y_true: Any, scores: Array, labels: Any, sample_weight: Any
) -> Scorecard:
    """A score of two or more columns of probabilities, labels in order."""
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
        positive = truth.is_label(classes[1])
        return _card(_binary_table(positive, scores, sample_weight), metric, labels=[0, 1])
    table, options = _wide(truth, scores, classes, sample_weight)
    return _card(table, metric, labels=[*range(n_labels)], **options)


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
    card = _probability_card("LogLoss", y_true, scores, labels, sample_weight)
    found = _number(card, "LogLoss", "log loss is undefined.")
    return found if normalize else found * _total(sample_weight, len(scores))


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
        table = _binary_table(truth.positive(pos_label), scores, sample_weight)
        card = _card(table, "Brier", labels=[0, 1])
    else:
        card = _probability_card("Brier", y_true, scores, labels, sample_weight)
    found = _number(card, "Brier", "the Brier score is undefined.")
    halved = scores.ndim == 1 or scores.shape[1] < 3
    wanted = halved if scale_by_half == "auto" else bool(scale_by_half)
    return found * (0.5 if wanted and not halved else 2.0 if halved and not wanted else 1.0)


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
        right = truth.is_label(classes[1]).cast(pl.Int64)
        return accuracy_score(
            right, (scores > at).astype(np.int64), normalize=normalize, sample_weight=sample_weight
        )
    if scores.ndim == 1:
        scores = np.column_stack((-scores, scores))
    table, options = _wide(truth, scores, classes, sample_weight)
    card = _card(table, "TopKAccuracy", k=min(k, n_labels), **options)
    return _number(card, "TopKAccuracy", "top-k accuracy is undefined.") * total


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
    card = of_positive("Reliability", y_true, scores.astype(np.float64), pos_label, n_bins=n_bins)
    found = card.metrics.pivot("statistic", index="score_threshold", values="value")
    return found["accuracy"].to_numpy().copy(), found["confidence"].to_numpy().copy()


def confusion_matrix_at_thresholds(
    y_true: Any, y_score: Any, *, pos_label: Any = None, sample_weight: Any = None
) -> tuple[Array, Array, Array, Array, Array]:
    """Rows by truth and prediction at each threshold (tn, fp, fn, tp), and these, highest first."""
    frame = curve(y_true, y_score, pos_label, sample_weight, "ScorePrecisionRecallCurve")
    frame = frame.filter(pl.col("score_threshold").is_finite())
    counts = [frame[name].to_numpy().astype(np.float64) for name in ("tn", "fp", "fn", "tp")]
    at = frame["score_threshold"].to_numpy().astype(np.asarray(numbers("y_score", y_score)).dtype)
    return counts[0], counts[1], counts[2], counts[3], at


def ndcg_score(
    y_true: Any,
    y_score: Any,
    *,
    k: int | None = None,
    sample_weight: Any = None,
    ignore_ties: bool = False,
) -> float:
    """Mean over rows of nDCG of the columns' gains in ``y_true`` in the order of ``y_score``."""
    if sample_weight is not None:
        raise OptionError(
            "sample_weight: all rows count the same here; use None.",
            code="option_unfit",
            option="sample_weight",
        )
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
        metrics=["nDCG"],
        k=[k or gains.shape[1]],
        ties="input" if ignore_ties else "average",
        complete=True,
    )
    return float(card.value("nDCG", k=k or gains.shape[1]) or 0.0)
