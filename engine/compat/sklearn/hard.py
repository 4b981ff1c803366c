"""Functions of hard predictions, as in scikit-learn, computed from arrays without a table."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Collection, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import polars as pl

from ...evaluation.planner import Plan, make_plan
from ...evaluation.summary import label_axes, rows_of
from ...executors import Threads
from ...ingest.ids import encode
from ...kernels.sums import ExactSums
from ...schemas.arrays import Array
from ...schemas.contract import DEFAULT_LABEL_KEY
from ...schemas.errors import InputError, OptionError, invalid
from ...schemas.option_values import in_name, make_options
from ...schemas.results import FRAMES
from ...tallies.datums import Datums, Labels
from ...tallies.units import Grid
from ...tasks.classification.encode import Batch, Rows
from ...tasks.classification.tallies import Tallies, matched
from ..arrays import check_same_kind, chosen, column, undefined, weights

# Metrics computed from arrays without a table.


class Answers:
    """Metrics of classification under scikit-learn's rules, computed from arrays.

    Args:
        metrics: names of metrics.
        values: the labels, ascending.
        truth: int32 codes of true labels: [n], or of several labels per row with offsets ``start``.
        start: int64 [n + 1], offsets of each row's true labels, if it may have several.
        hard: int32 [n], predicted labels.
        rows: scored or several predicted labels.
        declared: int32, codes of the labels that the user named, in their order.
        **options: of the metrics, hashable.
    """

    def __init__(
        self,
        metrics: Sequence[str],
        values: pl.Series,
        truth: Array,
        *,
        start: Array | None = None,
        hard: Array | None = None,
        rows: Rows | None = None,
        weight: Array | None = None,
        declared: Array | None = None,
        **options: Any,
    ) -> None:
        n = truth.size if start is None else start.size - 1
        plan = plan_of("classification", tuple(metrics), multilabel=start is not None, **options)
        places = None
        if declared is not None:
            places = np.full(len(values), -1, np.int32)
            places[declared] = np.arange(declared.size)
        keys = _KEY.new_from_index(0, len(values))
        labels = Labels(
            pl.DataFrame([keys, values.alias("label_value")]),
            np.zeros(len(values), np.int32),
            (DEFAULT_LABEL_KEY,),
        )
        datums = Datums(ids=None, slices=_NO_SLICES, rows=n)
        batch = Batch(
            datums, labels, places, None, None, truth, start, hard, rows, weight, by_row=True
        )
        units, scored = matched(batch, plan.settings, plan.needs)
        tallies = Tallies(datums, labels, places, units, scored, {})
        threads = Threads(1) if n < _FEW_ROWS else Threads()
        view = plan.does.view(tallies, plan.settings, threads=threads)
        axes, shared = label_axes(labels), dict[Any, Any]()
        self.parts = []
        for metric in plan.metrics:
            assert metric.compute is not None
            schema = FRAMES[metric.frame]
            for cells in metric.compute(view, plan.settings_of(metric)):
                self.parts.append(rows_of(metric, cells, axes, schema, None, shared))

    def column(self, name: str) -> list[Any]:
        """Values of a column in all rows, None if undefined."""
        values: list[Any] = []
        for height, columns in self.parts:
            value = columns.get(name)
            if isinstance(value, tuple):
                distinct = value[0].to_list() if isinstance(value[0], pl.Series) else value[0]
                values += [distinct[place] for place in value[1].tolist()]
            elif isinstance(value, np.ndarray):
                values += value.tolist()
            else:
                values += [value] * height
        return [None if value != value else value for value in values]

    def of_label(self, label: Any, *names: str) -> list[Array]:
        """Columns of the rows of one label, float64; NaN if undefined."""
        results: list[list[Array]] = [[] for _ in names]
        for _, columns in self.parts:
            values, codes = columns["label_value"]
            here = np.asarray(values)[codes] == label
            for name, some in zip(names, results, strict=True):
                value = columns[name]
                if isinstance(value, tuple):
                    value = np.asarray(value[0], np.float64)[value[1]]
                some.append(value[here].astype(np.float64))
        return [np.concatenate(some) if some else np.zeros(0) for some in results]

    def value(self, **where: Any) -> float:
        """The number in the one row whose columns have these values; NaN if undefined."""
        (result,) = [
            value
            for value, *others in zip(self.column("value"), *map(self.column, where), strict=True)
            if others == [*where.values()]
        ]
        return math.nan if result is None else float(result)


_KEY = pl.Series("label_key", [DEFAULT_LABEL_KEY])
_NO_SLICES = pl.DataFrame()
_FEW_ROWS = 10_000  # rows up to which a single thread computes


@lru_cache
def plan_of(task: str, metrics: tuple[str, ...], **options: Any) -> Plan:
    """Return the plan of metrics under scikit-learn's rules, made once per set of options."""
    return make_plan(make_options(dialect="sklearn", metrics=metrics, **options), task)


def score_rows(scores: Array) -> Rows:
    """Scores of the second of two labels, [n], or of every label, [n, l]."""
    n, single = len(scores), scores.dtype == np.float32
    flat = np.ascontiguousarray(scores, np.float64).ravel()
    if scores.ndim == 1:
        return Rows((flat,), None, None, 1, single)
    codes = np.arange(scores.shape[1], dtype=np.int32)
    return Rows((flat,), None, None, -1, single, grid=Grid(codes, np.arange(n, dtype=np.int32)))


def set_rows(matrix: Array) -> tuple[Array, Array, Array]:
    """Rows, columns and offsets of the rows of what is true in a matrix [n, l]."""
    row, column = np.nonzero(matrix)
    start = np.searchsorted(row, np.arange(len(matrix) + 1))
    return row.astype(np.int32), column.astype(np.int32), start


# Both sides of a call: a label a row, or an indicator matrix of several.


class Sides:
    """Both sides of a call.

    Attributes:
        values: labels of either side, ascending.
        truth: int32 [n], codes of true labels.
        predicted: int32 [n], codes of predicted labels.
        weight: float64 [n], or None.
        kind: type of the labels in a report: bool, float, int or str.
        whole: True if counts are integers: no weights, or only integer weights.
        several: whether a row may have several labels.
    """

    several = False

    def __init__(
        self, y_true: Any, y_pred: Any, sample_weight: Any = None, names: str = "y_true y_pred"
    ) -> None:
        first, second = names.split()
        truth, predicted = column(first, y_true), column(second, y_pred)
        check_same_kind({first: truth.values, second: predicted.values})
        self.values, (self.truth, self.predicted) = encode([truth.values, predicted.values])
        self.kind, kinds = truth.kind, {truth.kind, predicted.kind}
        if len(kinds) > 1 and not np.isin(self.predicted, self.truth).all():
            self.kind = float if float in kinds else int
        self.weight = weights(sample_weight, self.truth.size).get("weight")
        self.whole = sample_weight is None or np.asarray(sample_weight).dtype.kind in "iub"

    @cached_property
    def present(self) -> list[Any]:
        """Labels of either side, in their order."""
        return self.values.to_list()

    def subset(self, labels: Any) -> list[Any]:
        """Return the requested labels, which may repeat, or all, in the table's type.

        Raises:
            InputError: none, or another type.
        """
        if labels is None:
            return self.present
        requested = column("labels", labels).values
        check_same_kind({"labels": requested})
        if requested.dtype != self.values.dtype:
            raise InputError(f"labels are {requested.dtype}, y_true {self.values.dtype}.")
        return requested.to_list()

    def columns_of(self, labels: Sequence[Any]) -> Sets:
        """Return both sides as indicator matrices with a column per label, which may repeat."""
        code = {label: i for i, label in enumerate(self.present)}
        codes = np.array([code.get(label, -1) for label in labels])
        return Sets(self.truth[:, None] == codes, self.predicted[:, None] == codes, self.weight)

    def places(self, requested: Sequence[Any]) -> tuple[Array, Array]:
        """Place of every true and predicted label among labels, int64 [n]; -1 for others."""
        place = {label: i for i, label in enumerate(requested)}
        of_code = np.array([place.get(label, -1) for label in self.present], np.int64)
        return of_code[self.truth], of_code[self.predicted]

    @cached_property
    def dtype(self) -> type:
        """Dtype of counts: int64 without weights if any prediction is right, as in scikit-learn."""
        hit = (self.truth == self.predicted).any()
        return np.int64 if hit and self.weight is None else np.float64

    @cached_property
    def total(self) -> float:
        """Rows, or their weight."""
        return float(len(self.truth)) if self.weight is None else math.fsum(self.weight)

    def answers(
        self, metrics: Sequence[str], labels: Sequence[Any] | None = None, **options: Any
    ) -> Answers:
        """Compute metrics.

        Args:
            labels: those that the user named.
        """
        values, sides, declared = self.values, [self.truth, self.predicted], None
        if labels is not None:
            named = pl.Series(labels, dtype=values.dtype)
            values, (code, declared) = encode([values, named])
            sides = [code[side] for side in sides]
        truth, hard = sides
        fields: dict[str, Any] = {"hard": hard, "weight": self.weight, "declared": declared}
        return Answers(metrics, values, truth, **fields, **options)

    def value(self, metric: str) -> float:
        """Return one number of the whole table; NaN if undefined."""
        return self.answers([metric]).value(metric=metric)


class Sets(Sides):
    """Both sides of one call as matrices; labels are columns, from 0.

    Attributes:
        truth: bool [n, l].
        predicted: bool [n, l].
    """

    several = True

    def __init__(self, truth: Array, predicted: Array, sample_weight: Any = None) -> None:
        if truth.shape != predicted.shape:
            raise InputError(
                f"y_true has the shape {truth.shape}, y_pred {predicted.shape}.",
                code="shapes_differ",
                shapes=[truth.shape, predicted.shape],
            )
        self.kind = int
        self.truth, self.predicted = truth, predicted
        self.values = pl.Series(np.arange(truth.shape[1]))
        self.weight = weights(sample_weight, len(truth)).get("weight")
        self.whole = sample_weight is None or np.asarray(sample_weight).dtype.kind in "iub"

    @cached_property
    def dtype(self) -> type:
        """Dtype of counts: int64 without weights."""
        return np.int64 if self.weight is None else np.float64

    def subset(self, labels: Any) -> list[Any]:
        if labels is None:
            return self.present
        requested = column("labels", labels).values.to_list()
        strange = [one for one in requested if one not in self.present]
        if strange:
            raise InputError(
                f"labels {strange[:5]}: y_true has the columns 0 to {len(self.present) - 1}.",
                code="unknown_label",
                option="labels",
                value=strange,
            )
        return requested

    def columns_of(self, labels: Sequence[Any]) -> Sets:
        return Sets(self.truth[:, labels], self.predicted[:, labels], self.weight)

    def answers(
        self, metrics: Sequence[str], labels: Sequence[Any] | None = None, **options: Any
    ) -> Answers:
        requested = np.array(self.present if labels is None else labels)
        sorted_labels = np.sort(requested)
        _, truth, start = set_rows(self.truth[:, sorted_labels])
        row, predicted, _ = set_rows(self.predicted[:, sorted_labels])
        rows = Rows((np.full(row.size, np.inf),), predicted, row, -1, False, ranked=False)
        declared = np.searchsorted(sorted_labels, requested)
        fields: dict[str, Any] = {
            "start": start,
            "rows": rows,
            "weight": self.weight,
            "declared": declared,
        }
        return Answers(metrics, pl.Series(sorted_labels), truth, **fields, **options)


def sides(y_true: Any, y_pred: Any, sample_weight: Any = None) -> Sides:
    """Build the table of two label columns, or of two indicator matrices.

    Raises:
        InputError: only one of the two is a matrix.
    """
    truth, predicted = indicator("y_true", y_true), indicator("y_pred", y_pred)
    if truth is None and predicted is None:
        return Sides(y_true, y_pred, sample_weight)
    if truth is None or predicted is None:
        raise InputError(
            "one of y_true and y_pred has a column for each label, and the other one label a row.",
            code="forms_differ",
        )
    return Sets(truth, predicted, sample_weight)


def indicator(name: str, values: Any) -> Array | None:
    """Convert a dense or sparse indicator matrix to bool [N, L]; None for other input.

    Raises:
        InputError: a matrix with values other than 0 and 1, or without rows.
    """
    if hasattr(values, "toarray"):
        values = values.toarray()
    elif isinstance(values, (pl.Series, str, bytes, dict)):
        return None
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths, which `column` reports
        return None
    if array.ndim != 2 or array.shape[1] < 2:
        return None
    if array.dtype.kind == "O":
        array = np.array(array.tolist())
    if array.dtype.kind not in "biuf" or not ((array == 0) | (array == 1)).all():
        raise InputError(
            f"{name} has the shape {array.shape}: several labels per row are columns of 0 and 1,"
            " one per label.",
            code="wrong_shape",
            option=name,
            shape=array.shape,
        )
    if not len(array):
        raise InputError(f"{name} is empty: at least one row is needed.")
    return array.astype(bool)


# Functions of hard predictions: ``y_true`` and ``y_pred`` are labels.

_AVERAGES = ("binary", "micro", "macro", "weighted", "samples", None)


def accuracy_score(
    y_true: Any, y_pred: Any, *, normalize: bool = True, sample_weight: Any = None
) -> float:
    """Share, or weight without ``normalize``, of rows whose prediction, all labels, is right."""
    both = sides(y_true, y_pred, sample_weight)
    return both.value("Accuracy") if normalize else _weight_of(both, "tp")


def _weight_of(both: Sides, statistic: str) -> float:
    """Weight of rows that are right (tp) or wrong (fn)."""
    if not both.several:
        counts = both.answers(["Counts"])
        every = zip(counts.column("statistic"), counts.column("value"), strict=True)
        return math.fsum(value for name, value in every if name == statistic)
    share = both.value("Accuracy")
    weight = (share if statistic == "tp" else 1 - share) * both.total
    return float(round(weight)) if both.weight is None else weight


def zero_one_loss(
    y_true: Any, y_pred: Any, *, normalize: bool = True, sample_weight: Any = None
) -> float:
    """Share, or weight without ``normalize``, of rows whose prediction is wrong."""
    both = sides(y_true, y_pred, sample_weight)
    if normalize:
        return 1 - both.value("Accuracy") if both.several else both.value("HammingLoss")
    weight = _weight_of(both, "fn")
    return int(weight) if both.whole and not both.several else weight


def hamming_loss(y_true: Any, y_pred: Any, *, sample_weight: Any = None) -> float:
    """Share of labels that are wrong."""
    return sides(y_true, y_pred, sample_weight).value("HammingLoss")


def balanced_accuracy_score(
    y_true: Any, y_pred: Any, *, sample_weight: Any = None, adjusted: bool = False
) -> float:
    """Mean recall of the labels of ``y_true``; with ``adjusted`` chance is 0."""
    metric = "BalancedAccuracyAdjusted" if adjusted else "BalancedAccuracy"
    return Sides(y_true, y_pred, sample_weight).value(metric)


def matthews_corrcoef(y_true: Any, y_pred: Any, *, sample_weight: Any = None) -> float:
    """Compute the multiclass Matthews correlation; 0 if a side has only one label."""
    return Sides(y_true, y_pred, sample_weight).value("MCC")


_KAPPAS = {None: "CohenKappa", "linear": "CohenKappaLinear", "quadratic": "CohenKappaQuadratic"}


def cohen_kappa_score(
    y1: Any,
    y2: Any,
    *,
    labels: Any = None,
    weights: str | None = None,
    sample_weight: Any = None,
    replace_undefined_by: float = math.nan,
) -> float:
    """Agreement of two raters beyond chance, over the rows whose labels are both in ``labels``."""
    chosen("weights", weights, tuple(_KAPPAS))
    both = Sides(y1, y2, sample_weight, "y1 y2")
    requested = None
    if labels is not None:
        requested = both.subset(labels)
        truth, predicted = both.places(requested)
        if (truth < 0).all():
            raise InputError("labels: at least one must be in y1.")
        inside = (truth >= 0) & (predicted >= 0)
        both.values = pl.Series(np.arange(len(requested)))
        both.truth, both.predicted = (side[inside].astype(np.int32) for side in (truth, predicted))
        both.weight = None if both.weight is None else both.weight[inside]
    ranks = None if requested is None else [*range(len(requested))]
    metric = _KAPPAS[weights]
    result = both.answers([metric], ranks).value(metric=metric) if both.truth.size else math.nan
    if math.isnan(result):
        undefined("cohen_kappa_score is undefined: the two have one label in common, or none.")
        return replace_undefined_by
    return result


def confusion_matrix(
    y_true: Any,
    y_pred: Any,
    *,
    labels: Any = None,
    sample_weight: Any = None,
    normalize: str | None = None,
) -> Array:
    """Rows by true and predicted label, [L, L]; of weights, or shares with ``normalize``."""
    chosen("normalize", normalize, ("true", "pred", "all", None))
    both = Sides(y_true, y_pred, sample_weight)
    requested = both.subset(labels)
    truth, predicted = both.places(requested)
    if labels is not None and (truth < 0).all():
        raise InputError("labels: at least one must be in y_true.")
    inside = (truth >= 0) & (predicted >= 0)
    cell = truth[inside] * len(requested) + predicted[inside]
    matrix: Array
    if both.weight is None:
        matrix = np.bincount(cell, minlength=len(requested) ** 2)
    else:
        distinct, at = np.unique(cell, return_inverse=True)
        matrix = np.zeros(len(requested) ** 2)
        matrix[distinct] = ExactSums(distinct.size).add(both.weight[inside], at).rounded()
    matrix = matrix.reshape(-1, len(requested)).astype(np.int64 if both.whole else np.float64)
    if len(requested) == 1:
        warnings.warn("there is a single label; name all of them in labels=.", stacklevel=2)
    if normalize is None:
        return matrix
    totals = matrix.sum(axis={"true": 1, "pred": 0, "all": None}[normalize], keepdims=True)
    return np.divide(matrix, totals, out=np.zeros(matrix.shape), where=totals != 0)


def multilabel_confusion_matrix(
    y_true: Any,
    y_pred: Any,
    *,
    sample_weight: Any = None,
    labels: Any = None,
    samplewise: bool = False,
) -> Array:
    """``[[tn, fp], [fn, tp]]`` of each label against the rest, [L, 2, 2]; or of each row."""
    both = sides(y_true, y_pred, sample_weight)
    requested = both.subset(labels)
    if samplewise:
        if not both.several:
            raise OptionError("samplewise=True needs several labels a row.")
        both = both.columns_of(requested)
        both = Sets(both.truth.T, both.predicted.T)
        requested = both.present
    answers = both.answers(["Counts"], list(dict.fromkeys(requested)))
    names, of, values = map(answers.column, ("statistic", "label_value", "value"))
    counts = {(name, label): n for name, label, n in zip(names, of, values, strict=True)}
    cells = [[counts[name, label] for name in ("tn", "fp", "fn", "tp")] for label in requested]
    matrix: Array = np.array(cells, np.float64).reshape(-1, 2, 2).astype(both.dtype)
    if samplewise and sample_weight is not None:
        matrix = matrix * np.asarray(sample_weight).reshape(-1, 1, 1)
    return matrix


class _Ratios:
    """Precision, recall, F or Jaccard of one call, of every label and averaged."""

    def __init__(
        self,
        both: Sides,
        metrics: Sequence[str],
        labels: list[Any],
        zero_division: Any,
        *,
        samples: bool,
    ) -> None:
        if isinstance(zero_division, str):
            chosen("zero_division", zero_division, ("warn",))
        elif not (zero_division in (0, 1) or np.isnan(zero_division)):
            raise invalid("zero_division", zero_division, "write 0, 1, NaN or 'warn'.")
        self.dtype = both.dtype
        if len(set(labels)) < len(labels):
            both, labels = both.columns_of(labels), [*range(len(labels))]
        warn = zero_division == "warn"
        fill = math.nan if warn else float(zero_division)
        self._read(both.answers(metrics, labels, zero_division=fill))
        self.undefined = set[str]()
        # Means over rows skip undefined values without a warning.
        if warn and (samples or None in self.values.values()):
            left = self.values
            self._read(both.answers(metrics, labels, zero_division=0.0))
            self.undefined = {
                metric
                for (metric, average, label), value in left.items()
                if (average is not None or label in set(labels))
                and value != self.values[metric, average, label]
            }
        self.requested = labels

    def _read(self, answers: Answers) -> None:
        columns = ("metric", "average", "label_value", "value", "support")
        rows = [*zip(*map(answers.column, columns), strict=True)]
        self.values = {row[:3]: row[3] for row in rows}
        self.supports = {row[2]: row[4] for row in rows}

    def of(self, metric: str, average: str | None) -> Any:
        """A number, or of no average an array [L]."""
        if average is not None:
            return _float(self.values[metric, average, None])
        return np.array([_float(self.values[metric, None, one]) for one in self.requested])

    def support(self) -> Array:
        """Rows or weights of each label, [L]."""
        return np.array([self.supports[label] for label in self.requested], self.dtype)


def _float(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _ratios(
    y_true: Any,
    y_pred: Any,
    metrics: Sequence[str],
    labels: Any,
    pos_label: Any,
    average: str | None,
    sample_weight: Any,
    zero_division: Any,
    warn_for: Collection[str] | None = None,
) -> tuple[list[Any], _Ratios]:
    """Return each metric of the selected labels, and the underlying ratios."""
    chosen("average", average, _AVERAGES)
    both = sides(y_true, y_pred, sample_weight)
    if both.several and average == "binary":
        raise OptionError(
            "average='binary' is of one label a row; write 'micro', 'macro', 'weighted', 'samples'"
            " or None.",
            code="option_unfit",
            option="average",
            value="binary",
        )
    if not both.several and average == "samples":
        raise OptionError(
            "average='samples' is of several labels a row, a column of 0 and 1 for each.",
            code="option_unfit",
            option="average",
            value="samples",
        )
    if average == "binary":
        requested = [_positive(both, pos_label)]
    else:
        requested = both.subset(labels)
        if pos_label not in (None, 1):
            warnings.warn(
                f"pos_label={pos_label!r} is ignored if average is not 'binary'; write"
                " labels=[...] for a single label.",
                stacklevel=3,
            )
    ratios = _Ratios(both, metrics, requested, zero_division, samples=average == "samples")
    average_name = None if average == "binary" else average
    for metric in sorted(
        ratios.undefined if warn_for is None else ratios.undefined & set(warn_for)
    ):
        undefined(
            f"{metric} is undefined (0 / 0) for a label, and set to 0; zero_division= sets the"
            " value."
        )
    values = [ratios.of(metric, average_name) for metric in metrics]
    return [float(one[0]) for one in values] if average == "binary" else values, ratios


def _positive(both: Sides, pos_label: Any) -> Any:
    """The positive label as the table has it."""
    if len(both.present) > 2:
        raise InputError(
            f"average='binary' needs two labels, there are {len(both.present)}; write"
            " average='macro', 'micro', 'weighted' or None.",
            code="option_unfit",
            option="average",
            value="binary",
            count=len(both.present),
        )
    label = column("pos_label", [pos_label]).values[0]
    if label not in both.present and len(both.present) == 2:
        raise InputError(
            f"pos_label={pos_label!r} is not among the labels {both.present}.",
            code="unknown_label",
            option="pos_label",
            value=pos_label,
        )
    if type(label) is not type(both.present[0]):
        raise InputError(f"pos_label={pos_label!r} is of another type than the labels.")
    return label


def precision_recall_fscore_support(
    y_true: Any,
    y_pred: Any,
    *,
    beta: float = 1.0,
    labels: Any = None,
    pos_label: Any = 1,
    average: str | None = None,
    warn_for: Collection[str] = ("precision", "recall", "f-score"),
    sample_weight: Any = None,
    zero_division: Any = "warn",
) -> tuple[Any, Any, Any, Any]:
    """Compute precision, recall, F-beta and support: arrays [L], or numbers and None for an
    average.
    """
    names = {"precision": "Precision", "recall": "Recall", "f-score": _f_name(beta)}
    loud = {names[one] for one in warn_for if one in names}
    arguments = (labels, pos_label, average, sample_weight, zero_division)
    values, ratios = _ratios(y_true, y_pred, list(names.values()), *arguments, loud)
    support = ratios.support() if average is None else None
    return values[0], values[1], values[2], support


def _f_name(beta: float) -> str:
    """F-beta as the engine calls it; at its ends it is precision and recall."""
    if isinstance(beta, bool) or not beta >= 0:
        raise invalid("beta", beta, "write a number from 0 up.")
    return {0: "Precision", math.inf: "Recall"}.get(beta, f"F{in_name(beta)}")


def fbeta_score(
    y_true: Any,
    y_pred: Any,
    *,
    beta: float,
    labels: Any = None,
    pos_label: Any = 1,
    average: str | None = "binary",
    sample_weight: Any = None,
    zero_division: Any = "warn",
) -> Any:
    """F with recall worth ``beta`` times precision."""
    arguments = (labels, pos_label, average, sample_weight, zero_division)
    return _ratios(y_true, y_pred, [_f_name(beta)], *arguments)[0][0]


def _ratio(name: str, metric: str, description: str) -> Callable[..., Any]:
    """Return the function of one ratio; all have the same arguments."""

    def ratio(
        y_true: Any,
        y_pred: Any,
        *,
        labels: Any = None,
        pos_label: Any = 1,
        average: str | None = "binary",
        sample_weight: Any = None,
        zero_division: Any = "warn",
    ) -> Any:
        arguments = (labels, pos_label, average, sample_weight, zero_division)
        return _ratios(y_true, y_pred, [metric], *arguments)[0][0]

    ratio.__name__ = ratio.__qualname__ = name
    ratio.__doc__ = description
    return ratio


precision_score = _ratio("precision_score", "Precision", "tp / (tp + fp).")
recall_score = _ratio("recall_score", "Recall", "tp / (tp + fn).")
f1_score = _ratio("f1_score", "F1", "2 tp / (2 tp + fp + fn).")
jaccard_score = _ratio("jaccard_score", "Jaccard", "tp / (tp + fp + fn).")


# ``classification_report``, as text to the letter and as a dict.

_HEADERS = ("precision", "recall", "f1-score", "support")
_METRICS = ("Precision", "Recall", "F1")


def classification_report(
    y_true: Any,
    y_pred: Any,
    *,
    labels: Any = None,
    target_names: Any = None,
    sample_weight: Any = None,
    digits: int = 2,
    output_dict: bool = False,
    zero_division: Any = "warn",
) -> Any:
    """Precision, recall, F1 and support of each label and averaged, as text or as a dict."""
    both = sides(y_true, y_pred, sample_weight)
    requested = both.subset(labels)
    shown = [*map(both.kind, requested)] if labels is None else np.asarray(labels).tolist()
    names = [*map(str, shown)] if target_names is None else [*target_names]
    if len(names) != len(requested):
        message = f"target_names has {len(names)} names for {len(requested)} labels."
        if labels is None:
            raise InputError(f"{message} Name the labels in labels=.")
        warnings.warn(message, stacklevel=2)
    ratios = _Ratios(both, _METRICS, requested, zero_division, samples=both.several)
    if ratios.undefined:
        undefined(f"{', '.join(sorted(ratios.undefined))}: undefined (0 / 0), and set to 0.")
    support = ratios.support()
    columns = (*(ratios.of(metric, None) for metric in _METRICS), support)
    rows = [(name, *row) for name, *row in zip(names, *columns, strict=False)]
    every = not both.several and (labels is None or set(requested) >= set(both.present))
    averages = ("micro", "macro", "weighted", *(("samples",) if both.several else ()))
    for average in averages:
        heading = "accuracy" if average == "micro" and every else f"{average} avg"
        averaged = (ratios.of(metric, average) for metric in _METRICS)
        rows.append((heading, *averaged, np.sum(support)))
    if output_dict:
        report: dict[str, Any] = {
            name: dict(zip(_HEADERS, map(float, row), strict=True)) for name, *row in rows
        }
        if "accuracy" in report:
            report["accuracy"] = report["accuracy"]["precision"]
        return report
    return _text(rows, names, digits, len(averages))


def _text(rows: list[tuple[Any, ...]], names: list[str], digits: int, n_averages: int) -> str:
    width = max(*map(len, names), len("weighted avg"), digits)
    lines = [f"{'':>{width}s} " + "".join(f" {header:>9}" for header in _HEADERS), ""]
    for i, (name, *row) in enumerate(rows):
        if i == len(rows) - n_averages:
            lines.append("")
        ratios = [f"{value:>9.{digits}f}" for value in row[:3]]
        if i == len(rows) - n_averages and name == "accuracy":
            ratios[:2] = [f"{'':>9}"] * 2
        lines.append(f"{name:>{width}s} " + "".join(f" {one}" for one in (*ratios, f"{row[3]:>9}")))
    return "\n".join(lines) + "\n"
