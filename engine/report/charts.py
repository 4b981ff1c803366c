"""Charts of a run as marks, drawn by ``svg`` and ``plots``.

The frame and curve of each chart are data, independent of tasks. Undefined values make gaps.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import polars as pl

from ..schemas.display import (
    CIRCLE,
    DASHED,
    DIAMOND,
    DOTTED,
    DOWN,
    END,
    PLAIN,
    SOLID,
    TRIANGLE,
    Area,
    Areas,
    Chart,
    Line,
    Mark,
    Points,
    Scale,
    Texts,
)
from ..schemas.errors import ResultError
from ..schemas.results import empty_frame
from ..scorecard.lookup import whole
from .summary import sections
from .svg import shortest
from .tables import (
    USUAL_K,
    at_k,
    confusion_grid,
    coverage,
    first_end,
    getting,
    pair_name,
    worst_first,
)
from .text import plain
from .verdicts import Titled, better, headline, of_pair, pairs, same_number, title_of

if TYPE_CHECKING:
    from ..scorecard.card import Scorecard
    from ..statistics.comparison import Comparison

POINTS = 200
"""Maximum number of points per line."""
LINES = 8
LINES_WITH_BASELINE = 4
"""Maximum number of labels in a chart that also has the baseline's lines."""
BARS = 30
_FEW = 25
"""Maximum number of points of a line for which each has a symbol."""
_DISTRIBUTIONS = 4
_DESCRIBED = 12


class Numbers(NamedTuple):
    """Data for charts of a run.

    Attributes:
        frames: page frames, if present: ``curves``, ``thresholds``, ``confusion``, ``reliability``,
            ``distribution``.
    """

    metrics: pl.DataFrame
    frames: Mapping[str, pl.DataFrame]


class Want(msgspec.Struct, frozen=True):
    """Selection for a chart.

    Attributes:
        directions: metric -> ``higher``, ``lower`` or ``neither``, whichever is better.
        names: (label key, label value) -> name, if labels have names.
        leads: table (``labels``, ``slices``) -> its first metric, the default.
        label_key, label_value, iou_threshold, metric: the user's choice, or None.
        links: (actual, predicted) -> address of an example, in names.
        best_first: see :class:`~evalengine.schemas.display.Layout`.
    """

    directions: Mapping[str, str]
    names: Mapping[tuple[str | None, Any], str] = {}
    leads: Mapping[str, str] = {}
    label_key: str | None = None
    label_value: Any = None
    iou_threshold: float | None = None
    metric: str | None = None
    keys: int = 1
    links: Mapping[tuple[str, str], str] = {}
    best_first: bool = False

    def called(self, value: Any) -> str:
        """Return the display name of a label."""
        return plain(self.names.get((self.label_key, value), str(value)))

    def titled(self, title: str, *more: str) -> str:
        """Return a title with thresholds, and the label key if there are several."""
        key = self.label_key if self.keys > 1 else None
        return ", ".join(filter(None, (title, *more, key and plain(key))))

    def of_key(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of the label key."""
        return rows.filter(pl.col("label_key").eq_missing(pl.lit(self.label_key, pl.String)))


def _of_label(rows: pl.DataFrame, value: Any) -> pl.DataFrame:
    """Return the rows of a label, by its value or the value's text."""
    return rows.filter(pl.col("label_value").cast(pl.String) == str(value))


def _nearest(
    rows: pl.DataFrame, column: str, requested: float | None, usual: float = 0.5
) -> pl.DataFrame:
    """Return rows at the requested threshold; by default at the one nearest to the usual.

    Raises:
        ResultError: no row is at the requested threshold.
    """
    values = rows[column].drop_nulls().unique().sort().to_list() if rows.height else []
    if not values:
        return rows
    best = min(values, key=lambda value: abs(value - (usual if requested is None else requested)))
    if requested is not None and abs(best - requested) > 1e-9:
        available = ", ".join(f"{value:g}" for value in values[:12])
        raise ResultError(f"no {column} is {requested:g}: this run has {available}.")
    return rows.filter(pl.col(column) == best)


def _shared_thresholds(rows: pl.DataFrame) -> list[str]:
    """Describe the thresholds that all rows share."""
    parts = []
    for column, name in (("iou_threshold", "IoU"), ("score_threshold", "score")):
        values: list[float] = rows[column].drop_nulls().head(1).to_list() if column in rows else []
        parts += [f"{name} {value:g}" for value in values]
    return parts


def _joined(*notes: str) -> str:
    return "; ".join(filter(None, notes))


def _words(*words: str | None) -> str:
    return " ".join(filter(None, words))


def _supported(name: str, support: float | None) -> str:
    return name if support is None else f"{name} (n {support:,})"


def _more(n: int, what: str) -> str:
    """Return ``1 more metric not shown``, ``2 more metrics not shown``; "" for 0."""
    return f"{n:,} more {what}{'s' if n > 1 else ''} not shown" if n > 0 else ""


def _described(sentences: list[str], n: int) -> str:
    """Join descriptions of the first of ``n`` items, and count the others."""
    left = n - _DESCRIBED
    return "; ".join([*sentences, *([f"and {left} more"] if left > 0 else [])]) + "."


def _defined(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


# Charts of lines: curves by label, by score threshold, by cut-off, and of calibration.


class Curve(NamedTuple):
    """Line of a chart before its look is chosen.

    Attributes:
        x, y: float, one per point; None in y is a gap.
        baseline: whether it is of the baseline, shown dashed.
        counts: rows behind each point, shown by its size.
        whole: whether it is of all labels.
    """

    name: str
    x: list[float]
    y: list[float | None]
    support: int | None = None
    baseline: bool = False
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()
    counts: list[int] | None = None
    whole: bool = False


def line_chart(
    kind: str,
    title: str,
    x: Scale,
    y: Scale,
    curves: list[Curve],
    note: str = "",
    *,
    diagonal: bool = False,
) -> Chart:
    """Make a chart of lines. The alternative text has the extremes of each line.

    Args:
        diagonal: whether to show x = y for comparison.
    """
    marks: list[Mark] = []
    if diagonal:
        limits = [max(x.low, y.low), min(x.high, y.high)]
        marks.append(Line(limits, [*limits], dash=DOTTED, opacity=0.5))
    names = list(dict.fromkeys(one.name for one in curves if not one.baseline and not one.whole))
    for one in reversed(curves):  # all labels together on top
        marks += _curve_marks(one, names.index(one.name) if one.name in names else PLAIN)
    sentences = [f"{y.title} by {x.title}"]
    for one in curves[:_DESCRIBED]:
        points = [(a, b) for a, b in zip(one.x, one.y, strict=True) if b is not None]
        low, high = min(points, key=lambda at: at[1]), max(points, key=lambda at: at[1])
        name = _supported(one.name, one.support) + (" of the baseline" if one.baseline else "")
        sentences.append(
            f"{name}: {len(points)} points, lowest {low[1]:.3g} at {low[0]:.3g},"
            f" highest {high[1]:.3g} at {high[0]:.3g}"
        )
    return Chart(kind, title, x, y, marks, _described(sentences, len(curves)), note)


def _curve_marks(one: Curve, i: int) -> list[Mark]:
    """Return the marks of a line: its segments, symbols and intervals."""
    colour = PLAIN if one.whole else i
    legend = "baseline" if one.baseline else _supported(one.name, one.support)
    faint = 0.75 if one.baseline else 1.0
    marks: list[Mark] = [
        Line(
            one.x,
            one.y,
            legend,
            colour,
            DASHED if one.baseline else SOLID,
            2.5 if one.whole else 1.6,
            faint,
        )
    ]
    indices = [n for n, y in enumerate(one.y) if y is not None]
    titled = len(indices) <= _FEW or one.counts is not None
    if len(indices) > _FEW:  # symbols of several lines are side by side
        indices = (
            [] if one.baseline or one.whole else indices[5 + 3 * i :: max(1, len(indices) // 4)]
        )
    titles = [f"{one.x[n]:.4g}: {one.y[n]:.4g}" for n in indices] if titled else []
    radius = [3.5]
    if one.counts is not None:
        top = max(one.counts) or 1
        radius = [2 + 5 * math.sqrt(one.counts[n] / top) for n in indices]
        titles = [f"{title}, n {one.counts[n]:,}" for title, n in zip(titles, indices, strict=True)]
    if indices:
        x, y = [one.x[n] for n in indices], _defined(one.y[n] for n in indices)
        point_legend = "" if one.baseline or one.whole else legend
        marks.append(Points(x, y, i % END, point_legend, colour, radius, titles))
    reach = [
        (x, low, high)
        for x, low, high in zip(one.x, one.low, one.high)  # noqa: B905 - empty without intervals
        if low is not None and high is not None
    ]
    if reach:
        x = [x for x, *_ in reach for _ in range(3)]
        bounds = [end for _, low, high in reach for end in (low, high, None)]
        marks.append(Line(x, bounds, colour=colour, width=1.0, opacity=0.5))
    return marks


class _Source(NamedTuple):
    """Page frame and curve that a chart's points come from."""

    frame: str
    curve: str


class _Kind(NamedTuple):
    """Chart with one line per label.

    Attributes:
        x, y: columns of the curves frame, which name the measures of the axes.
        diagonal: whether to show the chance diagonal.
    """

    title: str
    x: str
    y: str
    sources: tuple[_Source, ...]
    diagonal: bool = False


_COUNTED = _Source("thresholds", "PrecisionRecallCurve")
_CURVES = {
    "precision_recall": _Kind(
        "Precision and recall",
        "recall",
        "precision",
        (
            _Source("curves", "InterpolatedPrecisionRecallCurve"),
            _Source("curves", "ScorePrecisionRecallCurve"),
            _COUNTED,
        ),
    ),
    "roc": _Kind("ROC curve", "fpr", "recall", (_Source("curves", "ROCCurve"), _COUNTED), True),
}
_TITLES = {"precision": "precision", "recall": "recall", "f1": "F1", "fpr": "false positive rate"}
_AXES = {**_TITLES, "roc": "true positive rate (recall)"}
_TP, _FP, _FN, _TN = (pl.col(name).cast(pl.Float64) for name in ("tp", "fp", "fn", "tn"))
_MEASURES = {
    "precision": _TP / (_TP + _FP),
    "recall": _TP / (_TP + _FN),
    "f1": 2 * _TP / (2 * _TP + _FP + _FN),
    "fpr": _FP / (_FP + _TN),
}
_NO_BASELINE = "the baseline has no such curve"


def curve_chart(kind: str, run: Numbers, base: Numbers | None, want: Want) -> list[Chart]:
    """Make a chart with one line per label, all labels together first."""
    curve = _CURVES[kind]
    for source in curve.sources:
        rows = _rows(run, source, want)
        ranked = _ranked(rows, curve, run, want)
        if ranked.height:
            break
    else:
        return []
    n, most, note = ranked.height, LINES if base is None else LINES_WITH_BASELINE, ""
    if want.label_value is None and n > most:
        worst = max(1, most // 4)
        rest = ranked[most - worst :].sort("area", maintain_order=True)[:worst]
        ranked = pl.concat([ranked[: most - worst], rest])
        note = (
            f"{most} of {n:,} labels: the {most - worst} with the most support and, of the others,"
            f" the {worst} with the least area"
        )
    curves = [*_overall(run, rows, curve, want), *_of_labels(rows, ranked, curve, want)]
    missing = ""
    if base is not None:
        before = _baseline_rows(base, source, want, rows)
        labelled = _ranked(before, curve, base, want)
        baseline_curves = []
        if labelled.schema["label_value"] == ranked.schema["label_value"] and labelled.height:
            both = ranked.select("label_value").join(labelled, "label_value", maintain_order="left")
            baseline_curves = _of_labels(before, both, curve, want)
        baseline_curves = [
            *(_overall(base, before, curve, want) if n > 1 else []),
            *baseline_curves,
        ]
        curves += [one._replace(baseline=True) for one in baseline_curves]
        missing = "" if baseline_curves else _NO_BASELINE
    shared = _shared_thresholds(rows.select("iou_threshold"))
    others = ""
    if want.iou_threshold is None and shared:
        every = run.frames[source.frame].filter(pl.col("curve") == source.curve)
        others = _more(every["iou_threshold"].n_unique() - 1, "IoU threshold")
    return [
        line_chart(
            kind,
            want.titled(curve.title, *shared),
            Scale(_TITLES[curve.x]),
            Scale(_AXES.get(kind, _TITLES[curve.y])),
            curves,
            _joined(note, missing, others),
            diagonal=curve.diagonal,
        )
    ]


def _rows(run: Numbers, source: _Source, want: Want, usual: float = 0.5) -> pl.DataFrame:
    """Return the rows of a curve of the whole set at one IoU threshold."""
    rows = run.frames.get(source.frame)
    if rows is None:
        return empty_frame("curves")
    rows = want.of_key(rows.filter(pl.col("curve") == source.curve))
    rows = rows.filter(pl.col("slice").is_null(), pl.col("label_value").is_not_null())
    rows = whole(
        _nearest(rows, "iou_threshold", want.iou_threshold, usual), ("area", "max_detections")
    )
    return rows if want.label_value is None else _of_label(rows, want.label_value)


def _ranked(rows: pl.DataFrame, curve: _Kind, run: Numbers, want: Want) -> pl.DataFrame:
    """Return value, support and area of labels with a defined point, the most support first."""
    if not rows.height:
        return rows.select("label_value")
    x, y = pl.col(curve.x), pl.col(curve.y)
    by_label = (
        rows.filter(x.is_not_null())
        .group_by("label_value", maintain_order=True)
        .agg(
            (pl.col("tp") + pl.col("fn")).first().alias("counted"),
            (x.diff().abs() * (y + y.shift()) / 2).sum().alias("area"),
            y.count().alias("points"),
        )
        .filter(pl.col("points") > 0)
    )
    supports = (
        want.of_key(run.metrics)
        .filter(pl.col("label_value", "support").is_not_null(), pl.col("slice").is_null())
        .select("label_value", "support")
        .unique("label_value", keep="first")
    )
    return (
        by_label.join(supports, on="label_value", how="left", maintain_order="left")
        .with_columns(pl.coalesce("counted", "support").alias("support"))
        .sort("support", descending=True, nulls_last=True, maintain_order=True)
    )


def _of_labels(rows: pl.DataFrame, ranked: pl.DataFrame, curve: _Kind, want: Want) -> list[Curve]:
    """Return the lines of labels, in the order of the ranking."""
    lines = []
    rows = rows.filter(pl.col(curve.x).is_not_null())
    for value, support in ranked.select("label_value", "support").iter_rows():
        points = rows.filter(pl.col("label_value") == value)
        line = _thinned(points[curve.x].to_list(), points[curve.y].to_list())
        if line is not None:
            lines.append(Curve(want.called(value), *line, support=support))
    return lines


def _thinned(
    x: list[float], y: list[float | None]
) -> tuple[list[float], list[float | None]] | None:
    """Thin points to at most :data:`POINTS`, evenly along the curve; None if none is defined.

    Every gap between two points is kept.
    """
    defined = [i for i, value in enumerate(y) if value is not None]
    if not defined:
        return None
    x, y = x[defined[0] : defined[-1] + 1], y[defined[0] : defined[-1] + 1]
    if len(x) <= POINTS:
        return x, y
    indices = [i for i, value in enumerate(y) if value is not None]
    spread = [max(v) - min(v) or 1.0 for v in (x, [y[i] or 0.0 for i in indices])]
    path_lengths = [0.0]
    for a, b in pairwise(indices):
        rise = abs((y[b] or 0.0) - (y[a] or 0.0))
        path_lengths.append(path_lengths[-1] + abs(x[b] - x[a]) / spread[0] + rise / spread[1])
    n = POINTS if len(indices) == len(y) else POINTS // 2
    chosen = [
        indices[bisect_left(path_lengths, path_lengths[-1] * step / (n - 1))]
        for step in range(n - 1)
    ]
    chosen = list(dict.fromkeys([*chosen, indices[-1]]))
    xs: list[float] = []
    ys: list[float | None] = []
    for before, i in zip([chosen[0], *chosen], chosen, strict=False):
        gap = next((j for j in range(before, i) if y[j] is None), None)
        if gap is not None:
            xs.append(x[gap])
            ys.append(None)
        xs.append(x[i])
        ys.append(y[i])
    return xs, ys


def _overall(run: Numbers, rows: pl.DataFrame, curve: _Kind, want: Want) -> list[Curve]:
    """Return the line of all labels together.

    Counts are summed at common score thresholds. A curve without counts over a common grid is the
    mean of the labels.
    """
    n = rows["label_value"].n_unique()
    if want.label_value is not None or n < 2:  # the line of a single label is enough
        return []
    name, support = f"mean of {n:,} labels", None
    if rows["tp"].null_count() == rows.height:
        points = rows.group_by(curve.x, maintain_order=True).agg(pl.col(curve.y).mean(), pl.len())
        if points["len"].n_unique() > 1:
            return []
    else:
        points, name = _summed(_rows(run, _COUNTED, want)), f"all {n:,} labels together"
        support = int(points["support"][0]) if points.height else None
    if not points.height or points[curve.x].null_count() == points.height:
        return []
    points = points.filter(pl.col(curve.x).is_not_null())
    line = _thinned(points[curve.x].to_list(), points[curve.y].to_list())
    return [] if line is None else [Curve(name, *line, support=support, whole=True)]


def _summed(rows: pl.DataFrame) -> pl.DataFrame:
    """Compute measures of all labels together from counts summed by score threshold."""
    if not rows.height:
        return rows
    counts = [
        pl.when(pl.col(name).null_count() == 0).then(pl.col(name).sum()).alias(name)
        for name in ("tp", "fp", "fn", "tn")
    ]
    sums = rows.group_by("score_threshold").agg(counts).sort("score_threshold")
    return sums.with_columns(
        (pl.col("tp") + pl.col("fn")).alias("support"),
        *(value.fill_nan(None).alias(name) for name, value in _MEASURES.items()),
    )


def _baseline_rows(base: Numbers, source: _Source, want: Want, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the baseline's rows of a curve, at the run's IoU threshold, possibly empty."""
    iou = rows["iou_threshold"][0]
    want = msgspec.structs.replace(want, iou_threshold=None)
    baseline = _rows(base, source, want, 0.5 if iou is None else iou)
    return baseline.filter(pl.col("iou_threshold").eq_missing(pl.lit(iou, pl.Float64)))


def thresholds(run: Numbers, base: Numbers | None, want: Want) -> list[Chart]:
    """Make a chart of precision, recall and F1 by score threshold, of one label or of all."""
    rows = _rows(run, _COUNTED, want)
    if not rows.height:
        return []
    n = rows["label_value"].n_unique()
    one = rows["label_value"][0] if n == 1 else None
    curves: list[Curve] = []
    before = None if base is None else _baseline_rows(base, _COUNTED, want, rows)
    if before is not None and before.height and one is not None:
        before = _of_label(before, one)
    for some in (rows, before):
        if some is None or not some.height:
            continue
        points = _summed(some) if n > 1 else some.sort("score_threshold")
        support = int(points["tp"][0] + points["fn"][0])
        for column in ("precision", "recall", "f1"):
            line = _thinned(points["score_threshold"].to_list(), points[column].to_list())
            if line is not None:
                curves.append(Curve(_TITLES[column], *line, support, baseline=some is before))
    if not curves:
        return []
    of = f"all {n:,} labels together" if n > 1 else "" if one is None else want.called(one)
    shared = _shared_thresholds(rows.select("iou_threshold"))
    title = want.titled("Precision, recall and F1 by score threshold", of, *shared)
    note = "counts of all labels summed" if n > 1 else ""
    note = _joined(note, _NO_BASELINE if before is not None and not before.height else "")
    x, y = Scale("score threshold"), Scale("value")
    return [line_chart("thresholds", title, x, y, curves, note)]


def by_k(run: Numbers, base: Numbers | None, want: Want) -> list[Chart]:
    """Make a chart of aggregates of the whole set by cut-off, one line per metric."""
    curves: list[Curve] = []
    chosen = want.metric is not None
    for numbers in (run, base):
        if numbers is None:
            continue
        rows = want.of_key(numbers.metrics).filter(
            pl.col("k").is_not_null(), pl.col("label_value").is_null(), pl.col("slice").is_null()
        )
        for (metric, statistic), every in rows.group_by("metric", "statistic", maintain_order=True):
            fits = metric == want.metric if chosen else want.directions.get(metric) != "neither"
            some = whole(every, ("average", "area", "max_detections", "parameters"))
            some = some.unique("k", keep="first", maintain_order=True).sort("k")
            if not fits or (some.height < 2 and not chosen) or not some["value"].count():
                continue
            curves.append(
                Curve(
                    _words(metric, statistic),
                    [float(k) for k in some["k"]],
                    some["value"].to_list(),
                    max(some["support"].drop_nulls(), default=None),
                    numbers is base,
                    *_interval(some),
                )
            )
    names = list(dict.fromkeys(one.name for one in curves if not one.baseline))
    if not names:
        return []
    titles = names[: LINES if base is None else LINES_WITH_BASELINE]
    curves = [one for one in curves if one.name in titles]
    ks = sorted({k for one in curves for k in one.x})
    reach = _defined(value for one in curves for value in (*one.y, *one.low, *one.high))
    y = Scale("value", min(0.0, *reach), max(1.0, *reach))
    note = _more(len(names) - len(titles), "metric")
    title = want.titled("Values by cut-off")
    return [line_chart("ks", title, Scale("cut-off k", ks[0], ks[-1], ks), y, curves, note)]


def _interval(rows: pl.DataFrame) -> tuple[list[float | None], list[float | None]]:
    if not rows["lower"].count():
        return [], []
    return rows["lower"].to_list(), rows["upper"].to_list()


class Binned(NamedTuple):
    """Chart of the means of two numbers in bins, one point per bin.

    Attributes:
        unit: whether both axes always span 0 to 1.
    """

    kind: str
    frame: str
    x: str
    y: str
    bins: str
    line: str
    title: str
    axes: tuple[str, str]
    note: str
    unit: bool = False


CALIBRATION = Binned(
    "calibration",
    "reliability",
    "confidence",
    "accuracy",
    "score_threshold",
    "share right",
    "Confidence and how often it is right",
    ("mean confidence of the bin", "share of right predictions"),
    "One point per confidence bin; its size is the number of rows. Below the diagonal the model is"
    " overconfident.",
    unit=True,
)
ACTUAL = Binned(
    "actual",
    "actual_by_prediction",
    "predicted",
    "actual",
    "parameters",
    "mean target",
    "Truth by prediction",
    ("mean prediction of the bin", "mean target of the bin"),
    "One point per bin of predictions; its size is the number of rows. Below the diagonal the"
    " predictions are too high.",
)


def binned(chart: Binned, run: Numbers, base: Numbers | None, want: Want) -> list[Chart]:
    """Make charts of means in bins, one point per bin, with the baseline."""
    curves: list[Curve] = []
    for numbers in (run, base):
        rows = None if numbers is None else numbers.frames.get(chart.frame)
        if rows is None:
            continue
        rows = want.of_key(rows).filter(
            pl.col("slice").is_null(), pl.col("label_value").is_null(), pl.col("average").is_null()
        )
        across, up = (rows.filter(pl.col("statistic") == name) for name in (chart.x, chart.y))
        points = up.join(across.select(chart.bins, across="value"), chart.bins)
        points = points.drop_nulls(["value", "across"]).sort("across", maintain_order=True)
        if not points.height:
            continue
        counts = points["support"].fill_null(0).to_list()
        both = points["across"].to_list(), points["value"].to_list()
        interval = _interval(points)
        curves.append(Curve(chart.line, *both, sum(counts), numbers is base, *interval, counts))
    if not curves or curves[0].baseline:
        return []
    missing = "the baseline has no bins" if base is not None and len(curves) < 2 else ""
    low, high = 0.0, 1.0
    if not chart.unit:
        values = _defined(value for one in curves for value in (*one.x, *one.y))
        low, high = min(values), max(values)
        low, high = (low, high) if low < high else (low - 1, high + 1)
    x, y = (Scale(title, low, high) for title in chart.axes)
    title, note = want.titled(chart.title), _joined(chart.note, missing)
    return [line_chart(chart.kind, title, x, y, curves, note, diagonal=True)]


# Charts of bars and cells: values of labels and slices, distributions, confusion, differences.


class Bar(NamedTuple):
    """Row of a chart of bars: value (None if undefined), interval, support, the baseline's value.

    ``word`` is the word for a difference.
    """

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    support: float | None = None
    baseline: float | None = None
    word: str = ""


_INTERVAL = "interval"
"""Legend of whiskers."""
_VERDICTS = {"better": (TRIANGLE, 2), "worse": (DOWN, 1)}


def bar_chart(
    kind: str,
    title: str,
    axis: Scale,
    bars: list[Bar],
    note: str = "",
    reference: tuple[float, str] | None = None,
    *,
    signed: bool = False,
    counts: bool = False,
) -> Chart:
    """Make a chart with one row per bar. Values with intervals are points with whiskers.

    Args:
        reference: a value to show as a line, and its name.
        signed: values are differences, shown as points.
        counts: values are counts.
    """
    marks: list[Mark] = []
    zero = min(max(0.0, axis.low), axis.high)
    places = [(n, bar, bar.value) for n, bar in enumerate(bars) if bar.value is not None]
    if signed or _has_intervals(bars):
        for n, bar, value in places:
            symbol, colour = _VERDICTS.get(bar.word, (CIRCLE, 7 if signed else 0))
            marks.append(Points([value], [n], symbol, colour=colour, radius=[4.5]))
    else:
        marks.append(Areas([Area(zero, value, n - 0.3, n + 0.3) for n, _, value in places]))
    reach = [
        (n, bar.low, bar.high)
        for n, bar in enumerate(bars)
        if bar.low is not None and bar.high is not None
    ]
    if reach:
        x = [end for _, low, high in reach for end in (low, high, high)]
        y = [end for n, *_ in reach for end in (float(n), float(n), None)]
        coordinates = [end for _, *both in reach for end in both]
        marks.append(Line(x, y, _INTERVAL, width=1.3))
        marks.append(
            Points(coordinates, [n for n, *_ in reach for _ in range(2)], END, radius=[3.0])
        )
    before = [(bar.baseline, n) for n, bar in enumerate(bars) if bar.baseline is not None]
    if before:
        at, rows = [value for value, _ in before], [float(n) for _, n in before]
        titles = [f"baseline {value:.4g}" for value in at]
        marks.append(
            Points(at, rows, DIAMOND, "baseline", radius=[4.5], titles=titles, hollow=True)
        )
    if reference is not None:
        value, name = reference
        coordinates = [-0.5, len(bars) - 0.5]
        marks.append(
            Line([value] * 2, [*coordinates], f"{name} {value:.4g}", dash=DOTTED, width=1.0)
        )
    after = [_after(bar, signed=signed, counts=counts) for bar in bars]
    sentences = [f"{axis.title} of {len(bars)}"]
    sentences += [
        f"{bar.name}: {text}"
        + (f", baseline {bar.baseline:.4g}" if bar.baseline is not None else "")
        for bar, text in zip(bars[:_DESCRIBED], after, strict=False)
    ]
    names = Scale("", names=[bar.name for bar in bars], after=after)
    return Chart(kind, title, axis, names, marks, _described(sentences, len(bars)), note)


def _has_intervals(bars: Iterable[Bar]) -> bool:
    return any(bar.low is not None and bar.high is not None for bar in bars)


def _after(bar: Bar, *, signed: bool, counts: bool) -> str:
    """Format the numbers of a bar."""
    if bar.value is None:
        return "undefined"
    if counts:
        return f"{bar.value:,.0f}"
    sign = "+" if signed else ""

    def number(value: float) -> str:
        if abs(value) >= 10 or (value.is_integer() and abs(value) >= 2):
            return f"{value:{sign},.4g}" if abs(value) < 1e4 else shortest(value)
        form = ".3f" if abs(value) >= 0.001 or not value else ".4f" if abs(value) > 5e-5 else ".0e"
        return f"{value:{sign}{form}}"

    text = number(bar.value)
    if bar.low is not None and bar.high is not None:
        text += f" [{number(bar.low)}, {number(bar.high)}]"
    if bar.word:
        return f"{text} {bar.word}"
    return text if bar.support is None else f"{text} n {shortest(bar.support)}"


def labels(run: Numbers, base: Numbers | None, want: Want) -> list[Chart]:
    """Make a chart of a metric by label, the worst first."""
    rows = want.of_key(run.metrics).filter(
        pl.col("slice").is_null(), pl.col("label_value").is_not_null()
    )
    if want.label_value is not None:
        rows = _of_label(rows, want.label_value)
    rows = _one_metric(rows, want, "labels")
    named = [want.called(value) for value in rows["label_value"]]
    return _worst_first("labels", rows, named, base, want)


def slices(run: Numbers, base: Numbers | None, want: Want) -> list[Chart]:
    """Make a chart of a metric by slice, the worst first, with the whole set for reference."""
    every = want.of_key(run.metrics).filter(pl.col("label_value").is_null())
    rows = _one_metric(every.filter(pl.col("slice").is_not_null()), want, "slices")
    if not rows.height:
        return []
    named = [
        plain(f"{name}={value}") for name, value in rows.select("slice", "slice_value").iter_rows()
    ]
    overall = same_number(
        every.filter(pl.col("slice").is_null()), rows.row(0, named=True), _FREE["slices"]
    )
    value = overall["value"][0] if overall.height else None
    reference = None if value is None else (value, "whole set")
    return _worst_first("slices", rows, named, base, want, reference)


def _one_metric(rows: pl.DataFrame, want: Want, table: str) -> pl.DataFrame:
    """Return the rows of one metric, one per place.

    It is the chosen metric, otherwise the table's first, otherwise the first with a direction.
    """
    metrics = rows["metric"].unique(maintain_order=True).to_list()
    if want.metric is None:
        metrics = [name for name in metrics if want.directions.get(name) in ("higher", "lower")]
    requested = want.metric or want.leads.get(table)
    if requested not in metrics:
        if want.metric is not None or not metrics:
            return rows.clear()
        requested = metrics[0]
    rows = rows.filter(pl.col("metric") == requested)
    rows = _nearest(rows, "iou_threshold", want.iou_threshold)
    rows = _nearest(_nearest(rows, "score_threshold", None), "k", None, USUAL_K)
    rows = whole(rows, ("statistic", "average", "area", "max_detections", "parameters"))
    return rows.unique(["label_value", "slice", "slice_value"], keep="first", maintain_order=True)


_FREE = {"slices": ("slice", "slice_value"), "labels": ("label_value",)}
"""Kind of chart -> columns that its rows differ in."""


def _worst_first(
    kind: str,
    rows: pl.DataFrame,
    named: list[str],
    base: Numbers | None,
    want: Want,
    reference: tuple[float, str] | None = None,
) -> list[Chart]:
    """Make a chart of at most :data:`BARS` rows, undefined ones last."""
    if not rows.height:
        return []
    first = rows.row(0, named=True)
    metric, word = first["metric"], kind.removesuffix("s")
    before: dict[tuple[str, ...], float | None] = {}
    places = ("label_value", "slice", "slice_value")
    if base is not None:
        baseline_rows = same_number(want.of_key(base.metrics), first, _FREE[kind])
        for *place, value in baseline_rows.select(*places, "value").iter_rows():
            before[tuple(map(str, place))] = value
    lower = want.directions.get(metric) == "lower"
    keyed_bars = []
    for name, row in zip(named, rows.iter_rows(named=True), strict=True):
        key = tuple(str(row[column]) for column in places)
        bar = Bar(name, row["value"], row["lower"], row["upper"], row["support"], before.get(key))
        support = coverage(row) or row["support"]
        keyed_bars.append(
            (worst_first(row["value"], support, key, lower=lower ^ want.best_first), bar)
        )
    bars = [bar for _, bar in sorted(keyed_bars, key=itemgetter(0))]
    note = "lower is better" if lower else ""
    if len(bars) > BARS:
        extreme = first_end(want.directions.get(metric), best_first=want.best_first)
        every = f"the {BARS} {extreme} of {len(bars):,} {word}s; all: {getting('metrics')}"
        note = _joined(note, every)
    worst = bars[:BARS]
    values = _defined(end for bar in worst for end in (bar.value, bar.low, bar.high, bar.baseline))
    if not values:
        return []
    values += [] if reference is None else [reference[0]]
    called = _words(at_k(metric, first["k"]), first["statistic"], first["average"])
    heading = want.titled(f"{called} by {word}", *_shared_thresholds(rows))
    if _has_intervals(worst):
        axis = _around(called, values)
    else:
        end = max(1.0, *values) if max(values) > 0 else 0.0 if min(values) < 0 else 1.0
        axis = Scale(called, min(0.0, *values), end)
    return [bar_chart(kind, heading, axis, worst, note, reference)]


def _around(title: str, values: list[float]) -> Scale:
    """Return a scale around values, with a margin of a tenth of their range; 0 may be outside."""
    low, high = min(values), max(values)
    room = (high - low) / 10 or abs(low) / 10 or 0.1
    inside = low >= 0 and high <= 1
    return Scale(
        title,
        max(low - room, 0.0) if low >= 0 else low - room,
        min(high + room, 1.0) if inside else high + room,
    )


def intervals(run: Numbers, base: Numbers | None, want: Want) -> list[Chart]:
    """Make charts of numbers with intervals: of the whole set, by label, by slice."""
    rows = want.of_key(run.metrics).filter(
        pl.col("slice").is_null(), pl.col("label_value").is_null(), pl.col("lower").is_not_null()
    )
    if want.metric is not None:
        rows = rows.filter(pl.col("metric") == want.metric)
    if want.iou_threshold is not None and rows["iou_threshold"].count():
        rows = _nearest(rows, "iou_threshold", want.iou_threshold)
    every = rows.rows(named=True)
    # One axis has only numbers of the same magnitude as the first one.
    small = [max(map(abs, _defined((row["lower"], row["upper"])))) <= 1 for row in every]
    displayed = [row for row, one in zip(every, small, strict=True) if one == small[0]][:BARS]
    result = []
    if displayed:
        baseline_rows = [
            None if base is None else same_number(want.of_key(base.metrics), row)
            for row in displayed
        ]
        before = [
            row["value"][0] if row is not None and row.height else None for row in baseline_rows
        ]
        bars = [
            Bar(title_of(row), row["value"], row["lower"], row["upper"], row["support"], earlier)
            for row, earlier in zip(displayed, before, strict=True)
        ]
        values = _defined(
            end for bar in bars for end in (bar.value, bar.low, bar.high, bar.baseline)
        )
        left = len(every) - len(displayed)
        note = f"{left:,} more with intervals: {getting('metrics')}" if left else ""
        axis = _around("value", values)
        result = [bar_chart("intervals", want.titled("Numbers with intervals"), axis, bars, note)]
    metrics = run.metrics.filter(pl.col("lower").is_not_null())["metric"]
    for make in (labels, slices):
        more_charts = make(run, base, want) if len(metrics) else []
        result += [
            msgspec.structs.replace(one, kind="intervals")
            for one in more_charts
            if any(mark.legend == _INTERVAL for mark in one.marks)
        ]
    return result


def costs(metric: str, run: Numbers, base: Numbers | None, want: Want) -> list[Chart]:
    """Make charts of the AP gain if one kind of error were removed, by kind, at one IoU."""
    rows = _costs(metric, run, want)
    if not rows["value"].count():
        return []
    before = (
        {} if base is None else dict(_costs(metric, base, want).select("statistic", "value").rows())
    )
    bars = [
        Bar(kind, value, low, high, baseline=before.get(kind))
        for kind, value, low, high in rows.select("statistic", "value", "lower", "upper").rows()
    ]
    values = _defined(end for b in bars for end in (b.value, b.low, b.high, b.baseline))
    heading = want.titled("Cost of each kind of error", *_shared_thresholds(rows))
    axis = Scale("AP gained without it", min(0.0, *values), max(values) or 1.0)
    note = "FalsePos and FalseNeg summarise the others"
    return [bar_chart("costs", heading, axis, bars, note)]


def _costs(metric: str, run: Numbers, want: Want) -> pl.DataFrame:
    """Return the costs of the whole set, or of a label, at one IoU threshold."""
    rows = want.of_key(run.metrics).filter(pl.col("metric") == metric, pl.col("slice").is_null())
    if want.label_value is None:
        rows = rows.filter(pl.col("label_value").is_null())
    else:
        rows = _of_label(rows, want.label_value)
    return _nearest(rows, "iou_threshold", want.iou_threshold)


def distribution(run: Numbers, base: Numbers | None, want: Want) -> list[Chart]:
    """Make histograms of values per datum, one per metric; the baseline's as an outline."""
    rows = run.frames.get("distribution")
    if rows is None:
        return []
    if want.metric is not None:
        rows = rows.filter(pl.col("metric") == want.metric)
    kinds = rows.select("metric", "statistic").unique(maintain_order=True)
    result: list[Chart] = []
    for metric, statistic in kinds.head(_DISTRIBUTIONS).iter_rows():
        bins = _bins(rows, metric, statistic)
        k = bins["k"][0]
        baseline_rows = None if base is None else base.frames.get("distribution")
        baseline_bins = (
            None if baseline_rows is None else _bins(baseline_rows, metric, statistic, k)
        )
        low, high, count = (bins[name].to_list() for name in ("low", "high", "count"))
        bars = [
            Area(a, b, 0.0, float(n), f"{a:g} to {b:g}: {n:,}")
            for a, b, n in zip(low, high, count, strict=True)
        ]
        marks: list[Mark] = [Areas(bars)]
        note, top = _more(kinds.height - _DISTRIBUTIONS, "metric"), max(1, *count)
        if baseline_bins is not None and baseline_bins.height:
            same = bins.select("low", "high").join(
                baseline_bins, ["low", "high"], maintain_order="left"
            )
            if same.height:
                heights = same["count"].to_list()
                edges = [edge for row in same.select("low", "high").iter_rows() for edge in row]
                steps: list[float | None] = [n for n in heights for _ in range(2)]
                marks.append(Line(edges, steps, "baseline", dash=DASHED))
                top = max(top, *heights)
            else:
                note = _joined("the baseline's values are in other bins, and not shown", note)
        called = _words(at_k(metric, k), statistic)
        x, y = Scale(f"{called} of a datum", low[0], high[-1]), Scale("datums", 0.0, float(top))
        most = max(range(len(count)), key=lambda n: count[n])
        message = (
            f"{y.title} by {x.title}: {sum(count):,} in {len(count)} bins,"
            f" most, {count[most]:,}, at {low[most]:g} to {high[most]:g}."
        )
        title = f"{called} of {sum(count):,} datums"
        result.append(Chart("distribution", title, x, y, marks, message, note))
    return result


def _bins(
    rows: pl.DataFrame, metric: str, statistic: str | None, k: int | None = None
) -> pl.DataFrame:
    rows = rows.filter(
        pl.col("metric") == metric, pl.col("statistic").eq_missing(pl.lit(statistic, pl.String))
    )
    if k is not None:
        rows = rows.filter(pl.col("k") == k)
    elif rows["k"].null_count():
        rows = whole(rows, ("k",))
    else:
        rows = _nearest(rows, "k", None, USUAL_K)
    return rows.sort("low")


def confusion(run: Numbers, base: Numbers | None, want: Want) -> list[Chart]:
    """Make a chart of counts by actual and predicted label, or of the most frequent confusions."""
    rows = _confused(run, want)
    if rows is None or not rows.height:
        return []
    grid = confusion_grid(rows, want.called)
    baseline_rows = None if base is None else _confused(base, want)
    then: dict[tuple[str, ...], int] | None = None
    if baseline_rows is not None:
        named = partial(pair_name, want.called)
        before = baseline_rows.select("actual", "predicted", "count").iter_rows()
        then = {(named(a, 0), named(p, 1)): n for a, p, n in before}
    if len(grid.names) > 1:
        bars = [
            Bar(
                " → ".join(row.names),
                row.numbers[0],
                baseline=None if then is None else float(then.get(row.names, 0)),
            )
            for row in grid.rows
        ]
        if not bars:
            return []
        axis = Scale(
            "count", 0.0, max(_defined(n for bar in bars for n in (bar.value, bar.baseline)))
        )
        heading = want.titled("Most frequent confusions", *_shared_thresholds(rows))
        note = f"{grid.note}, actual → predicted; all: {getting('confusion')}"
        return [bar_chart("confusion", heading, axis, bars, note, counts=True)]
    baseline_grid = then and [
        [then.get((row.names[0], column), 0) for column in grid.columns] for row in grid.rows
    ]
    note = (
        "rows are actual labels, the most frequent first; columns predicted ones; below a count its"
        " share of the row, which the colour shows too"
    )
    if (false := pair_name(want.called, None, 0)) in {row.names[0] for row in grid.rows}:
        note += f"; in the row {false} it is a share of these predictions, not a rate of errors"
    changed = "next to a count its change since the baseline, in counts" if baseline_grid else ""
    return [
        matrix_chart(
            want.titled("Confusion", *_shared_thresholds(rows)),
            [row.names[0] for row in grid.rows],
            [*grid.columns],
            [[int(n or 0) for n in row.numbers] for row in grid.rows],
            _joined(note, changed),
            baseline_grid or None,
            want.links,
        )
    ]


def matrix_chart(
    title: str,
    rows: list[str],
    columns: list[str],
    counts: list[list[int]],
    note: str = "",
    before: list[list[int]] | None = None,
    links: Mapping[tuple[str, str], str] | None = None,
) -> Chart:
    """Make a grid of counts and shares of the row, a cell as dark as its share.

    Args:
        before: counts of the baseline.
        links: (actual, predicted) -> address of an example.
    """
    areas: list[Area] = []
    texts: list[tuple[float, float, str]] = []
    links = links or {}
    wrong, total, right = [], 0, 0
    for m, (actual, line) in enumerate(zip(rows, counts, strict=True)):
        every = sum(line) or 1
        for n, (predicted, count) in enumerate(zip(columns, line, strict=True)):
            same = m == n and actual == predicted
            cell_title = f"{count:,} of {every:,} {actual} predicted as {predicted}"
            total, right = total + count, right + count * same
            wrong += [(-count, cell_title)] if count and actual != predicted else []
            change = 0 if before is None else count - before[m][n]
            cell_title += "" if before is None else f", {before[m][n]:,} in the baseline"
            dark = max(0.04, 0.5 * count / every)
            areas.append(
                Area(
                    n - 0.47,
                    n + 0.47,
                    m - 0.47,
                    m + 0.47,
                    cell_title,
                    int(not same),
                    dark,
                    same,
                    links.get((actual, predicted), "") if count else "",
                )
            )
            if count or change:
                counted = shortest(count)
                if change:
                    counted += f" {'+' if change > 0 else '−'}{shortest(abs(change))}"
                texts += [(n, m - 0.2, counted), (n, m + 0.2, f"{100 * count / every:.0f}%")]
    described = [f"{total:,} counted, {right:,} on the diagonal"]
    described += [cell_title for _, cell_title in sorted(wrong)[:3]]
    x, y = Scale("", names=columns), Scale("actual \\ predicted", names=rows)
    marks: list[Mark] = [Areas(areas), Texts(texts)]
    return Chart("confusion", title, x, y, marks, _described(described, 0), note)


def _confused(run: Numbers, want: Want) -> pl.DataFrame | None:
    """Return the counts of the whole set at one pair of thresholds."""
    rows = run.frames.get("confusion")
    if rows is None:
        return None
    rows = want.of_key(rows).filter(pl.col("slice").is_null())
    rows = _nearest(rows, "iou_threshold", want.iou_threshold)
    rows = _nearest(rows, "score_threshold", None).filter(pl.col("count") > 0)
    if want.label_value is None:
        return rows
    one = pl.lit(str(want.label_value))
    return rows.filter(pl.any_horizontal(pl.col("actual", "predicted").cast(pl.String) == one))


_WORDS = {1: "better", -1: "worse", 0: "not significant"}


def differences(comparison: Comparison, metric: str | None = None) -> list[Chart]:
    """Make charts of differences with intervals, second run minus first, for each pair of runs.

    The aggregates come first, then slices and labels by evidence, of the first metric that has
    them. One axis has only numbers of the same magnitude as the first one.

    Args:
        metric: restricts the charts to this metric.
    """
    result: list[Chart] = []
    for a, b in pairs(comparison):
        rows = of_pair(comparison, a, b)
        if metric is not None:
            rows = rows.filter(pl.col("metric") == metric)
        rows = rows.filter(pl.col("difference").is_not_null())
        heading = f"{plain(b)} less {plain(a)}"
        result += _forest(comparison, heading, headline(comparison, rows), b)
        labelled, sliced = pl.col("label_value").is_not_null(), pl.col("slice").is_not_null()
        for kind, some in (
            ("slices", rows.filter(sliced, ~labelled)),
            ("labels", rows.filter(labelled, ~sliced)),
        ):
            if some.height:
                some = same_number(some, some.row(0, named=True), _FREE[kind])
                some = some.sort("p_adjusted", "p", nulls_last=True, maintain_order=True)
                lines = [
                    (f"{row['slice']}={row['slice_value']}", row)
                    if kind == "slices"
                    else (str(row["label_value"]), row)
                    for row in some.iter_rows(named=True)
                ]
                word = kind.removesuffix("s")
                called = f"{heading} by {word}, {title_of(lines[0][1])}"
                result += _forest(comparison, called, lines, b)
    return result


def _forest(comparison: Comparison, heading: str, lines: list[Titled], b: str) -> list[Chart]:
    """Make forest plots: one difference per line, with its interval and verdict."""
    if not lines:
        return []
    small = [max(abs(row["a"]), abs(row["b"])) <= 1 for _, row in lines]
    same_scale = [line for line, one in zip(lines, small, strict=True) if one == small[0]]
    bars = [
        Bar(
            plain(name),
            row["difference"],
            row["lower"],
            row["upper"],
            word=_WORDS[better(comparison, row)],
        )
        for name, row in same_scale[:BARS]
    ]
    reach = (
        max(map(abs, _defined(v for bar in bars for v in (bar.value, bar.low, bar.high)))) or 1.0
    )
    level = comparison.level
    left = len(lines) - len(bars)
    note = _joined(
        f"right of 0 {plain(b)} has the larger number; better or worse if the p-value, adjusted"
        f" for all numbers, is at most {1 - level:.3g}",
        f"{left:,} more difference{'s' if left > 1 else ''}: --frame differences" if left else "",
    )
    axis = Scale(f"difference, {100 * level:g} % interval", -reach, reach)
    zero = (0.0, "no difference")
    return [bar_chart("differences", heading, axis, bars, note, zero, signed=True)]


# Kinds of charts.

Maker = Callable[[Numbers, Numbers | None, Want], list[Chart]]
_OF_LABEL = ("label_value", "iou_threshold")


class Kind(NamedTuple):
    """Kind of chart.

    Attributes:
        make: makes charts from a run, and a baseline; empty without data.
        fills: metrics that fill the frames.
        otherwise: advice if no metric does.
        takes: selections that apply.
    """

    make: Maker
    fills: tuple[str, ...] = ()
    otherwise: str = ""
    takes: tuple[str, ...] = ()


KINDS: dict[str, Kind] = {
    "intervals": Kind(
        intervals, otherwise="score with intervals=0.95", takes=("metric", *_OF_LABEL)
    ),
    "labels": Kind(
        labels, otherwise="score a metric that has values of labels", takes=("metric", *_OF_LABEL)
    ),
    "slices": Kind(slices, otherwise="score with by=", takes=("metric", "iou_threshold")),
    "precision_recall": Kind(
        partial(curve_chart, "precision_recall"),
        ("InterpolatedPrecisionRecallCurve", "ScorePrecisionRecallCurve", "PrecisionRecallCurve"),
        takes=_OF_LABEL,
    ),
    "roc": Kind(partial(curve_chart, "roc"), ("ROCCurve",), takes=("label_value",)),
    "calibration": Kind(partial(binned, CALIBRATION), ("Reliability",)),
    "actual": Kind(partial(binned, ACTUAL), ("ActualByPrediction",)),
    "thresholds": Kind(thresholds, ("PrecisionRecallCurve",), takes=_OF_LABEL),
    "ks": Kind(by_k, otherwise="score with several cut-offs, k=", takes=("metric",)),
    "distribution": Kind(
        distribution, otherwise="score a metric that has values of single datums", takes=("metric",)
    ),
    "confusion": Kind(confusion, ("ConfusionMatrix",), takes=_OF_LABEL),
    "costs": Kind(partial(costs, "TIDE"), ("TIDE",), takes=_OF_LABEL),
}
"""Kinds of charts, in the order a page shows them."""


def charts(
    metrics: pl.DataFrame,
    frames: Mapping[str, pl.DataFrame],
    directions: Mapping[str, str],
    baseline: tuple[pl.DataFrame, Mapping[str, pl.DataFrame]] | None = None,
    names: Mapping[tuple[str | None, Any], str] | None = None,
    without: Collection[str] = (),
    leads: Mapping[str, str] | None = None,
    links: Mapping[tuple[str, str], str] | None = None,
) -> list[Chart]:
    """Make all charts of a run, in the order of :data:`KINDS`, for each label key.

    Args:
        frames: page frames, if present: ``curves``, ``thresholds``, ``confusion``, ``reliability``,
            ``distribution``.
        directions: metric -> ``higher``, ``lower`` or ``neither``, whichever is better.
        baseline: metrics and page frames of the run to compare with.
        names: (label key, label value) -> name, if labels have names.
        without: kinds to omit.
        leads: see :class:`Want`.
        links: see :class:`Want`.
    """
    run = Numbers(metrics, frames)
    base = None if baseline is None else Numbers(*baseline)
    want = Want(directions, names or {}, leads or {}, links=links or {})
    kinds = [kind for kind in KINDS if kind not in without]
    result = [one for kind in kinds for one in drawn(kind, run, base, want)]
    return list({(one.kind, one.title): one for one in result}.values())


def drawn(kind: str, run: Numbers, base: Numbers | None, want: Want) -> list[Chart]:
    """Make charts of a kind, for every label key unless one is chosen; empty without numbers.

    Raises:
        ResultError: no numbers at the chosen threshold.
    """
    frames = (run.metrics, *(f for f in run.frames.values() if "label_key" in f.columns))
    every = pl.concat([frame["label_key"].cast(pl.String) for frame in frames])
    keys = every.unique(maintain_order=True).to_list() or [None]
    chosen = keys if want.label_key is None else [want.label_key]
    return [
        one
        for key in chosen
        for one in KINDS[kind].make(
            run, base, msgspec.structs.replace(want, label_key=key, keys=len(keys))
        )
    ]


_ON_REQUEST = ("curves", "confusion")
"""Frames of the report that a run also has if their metrics were requested."""


def frames_of(card: Scorecard) -> dict[str, pl.DataFrame]:
    """Return the existing frames that charts of a run use."""
    frames = {name: card.page_frame(name) for name in card.paged}
    frames |= {
        name: card.frame(name)
        for name in _ON_REQUEST
        if frames.get(name) is None and name in card.frames and card.height(name)
    }
    return {name: frame for name, frame in frames.items() if frame is not None}


def names_of(card: Scorecard) -> dict[tuple[str | None, Any], str]:
    """Return names by (label key, label value), of labels that have names."""
    rows = card.labels.select("label_key", "label_value", "label_name").iter_rows()
    return {(key, value): name for key, value, name in rows if name is not None}


def leads_of(card: Scorecard) -> dict[str, str]:
    """Return the first metrics of the tables of labels and slices."""
    leads: dict[str, str] = {}
    for section in sections(card):
        if section.labels is not None:
            leads.setdefault("labels", section.labels.first)
        for table in section.slices[:1]:
            leads.setdefault("slices", table.first)
    return leads
