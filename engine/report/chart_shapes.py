"""Data of charts."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
import polars as pl

from ..schemas.errors import ResultError
from ..schemas.results import empty_frame
from ..scorecard.lookup import whole
from .summary import plain

# Content of charts: plain data for ``svg`` and ``plots``. Undefined values are None.

POINTS = 200
"""A line has at most so many points."""


class Axis(msgspec.Struct, frozen=True):
    """Axis: its title with the unit, range, and ticks."""

    title: str
    low: float = 0.0
    high: float = 1.0
    marked: list[float] | None = None


class Line(msgspec.Struct, frozen=True):
    """Line of at most :data:`POINTS` points.

    Attributes:
        x, y: float, one per point; None in y is a gap.
        support: of the line; None if unknown.
        baseline: whether it is of the baseline, shown dashed.
        whole: whether it is of all labels.
    """

    name: str
    x: list[float]
    y: list[float | None]
    support: int | None = None
    baseline: bool = False
    low: list[float | None] | None = None
    high: list[float | None] | None = None
    counts: list[int] | None = None
    whole: bool = False


class Chart(msgspec.Struct, frozen=True):
    """Lines over two axes.

    Attributes:
        note: omitted content, and how to get it.
        diagonal: whether to show x = y for comparison.
    """

    kind: str
    title: str
    x: Axis
    y: Axis
    lines: list[Line]
    note: str = ""
    diagonal: bool = False


class Bar(msgspec.Struct, frozen=True):
    """Bar: its value (None if undefined), interval, support, the baseline's value.

    ``says`` is the word for a difference; ``span`` the edges of a histogram's bin.
    """

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    support: int | None = None
    baseline: float | None = None
    says: str = ""
    span: tuple[float, float] | None = None


class Bars(msgspec.Struct, frozen=True):
    """Bars, one below the other; vertical over ``across`` in a histogram.

    Attributes:
        kind: one of :data:`.charts.KINDS`, or ``differences``.
        bars: in order.
        note: omitted content, and how to get it.
    """

    kind: str
    title: str
    axis: Axis
    bars: list[Bar]
    note: str = ""
    reference: tuple[float, str] | None = None
    across: Axis | None = None
    dots: bool = False
    counts: bool = False


class Matrix(msgspec.Struct, frozen=True):
    """Counts by actual (rows) and predicted label (columns)."""

    kind: str
    title: str
    rows: list[str]
    columns: list[str]
    counts: list[list[int]]
    note: str = ""
    before: list[list[int]] | None = None


Drawn = Chart | Bars | Matrix


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
        label_key, label_value, iou_threshold, metric: the user's choice, or None.
    """

    directions: Mapping[str, str]
    names: Mapping[tuple[str | None, Any], str] = {}
    label_key: str | None = None
    label_value: Any = None
    iou_threshold: float | None = None
    metric: str | None = None
    keys: int = 1

    def called(self, value: Any) -> str:
        """Return the display name of a label."""
        return plain(self.names.get((self.label_key, value), str(value)))

    def titled(self, title: str, *more: str) -> str:
        """Return a title with thresholds, and the label key if there are several."""
        key = self.label_key if self.keys > 1 else None
        return ", ".join(filter(None, (title, *more, key and plain(key))))


def of_key(rows: pl.DataFrame, want: Want) -> pl.DataFrame:
    return rows.filter(pl.col("label_key").eq_missing(pl.lit(want.label_key, pl.String)))


def of_label(rows: pl.DataFrame, value: Any) -> pl.DataFrame:
    """Rows of a label, by its value or the value's text."""
    return rows.filter(pl.col("label_value").cast(pl.String) == str(value))


def nearest(
    rows: pl.DataFrame, column: str, wanted: float | None, usual: float = 0.5
) -> pl.DataFrame:
    """Return rows at the requested threshold; by default at the one nearest to the usual.

    Raises:
        ResultError: no row is at the requested threshold.
    """
    values = rows[column].drop_nulls().unique().sort().to_list() if rows.height else []
    if not values:
        return rows
    best = min(values, key=lambda value: abs(value - (usual if wanted is None else wanted)))
    if wanted is not None and abs(best - wanted) > 1e-9:
        there = ", ".join(f"{value:g}" for value in values[:12])
        raise ResultError(f"no {column} is {wanted:g}: this run has {there}.")
    return rows.filter(pl.col(column) == best)


def at(rows: pl.DataFrame, column: str) -> str:
    """Return the only value of a column, as text; "" without values."""
    value = rows[column].drop_nulls().head(1).to_list() if column in rows.columns else []
    return f"{value[0]:g}" if value else ""


def joined(*notes: str) -> str:
    return "; ".join(filter(None, notes))


def supported(name: str, support: int | None) -> str:
    """Append the support to a name."""
    return name if support is None else f"{name} (n {support:,})"


def more(n: int, what: str) -> str:
    """Return ``1 more metric``, ``2 more metrics``; "" for 0."""
    return f"{n:,} more {what}{'s' if n > 1 else ''}" if n > 0 else ""


def more_metrics(n: int) -> str:
    """Return the note on metrics that are not shown."""
    return f"{more(n, 'metric')} not shown" if n > 0 else ""


def described(chart: Drawn) -> str:
    """Describe a chart in numbers, as alternative text."""
    if isinstance(chart, Matrix):
        return _of_matrix(chart)
    if isinstance(chart, Bars):
        return _of_bars(chart)
    said = [f"{chart.y.title} by {chart.x.title}"]
    for line in chart.lines[:_DESCRIBED]:
        known = [(x, y) for x, y in zip(line.x, line.y, strict=True) if y is not None]
        low, high = min(known, key=lambda at: at[1]), max(known, key=lambda at: at[1])
        name = supported(line.name, line.support) + (" of the baseline" if line.baseline else "")
        said.append(
            f"{name}: {len(known)} points, lowest {low[1]:.3g} at {low[0]:.3g},"
            f" highest {high[1]:.3g} at {high[0]:.3g}"
        )
    return _ended(said, len(chart.lines))


_DESCRIBED = 12


def _ended(said: list[str], n: int) -> str:
    left = n - _DESCRIBED
    return "; ".join([*said, *([f"and {left} more"] if left > 0 else [])]) + "."


def _of_bars(chart: Bars) -> str:
    if chart.across is not None:
        top = max(chart.bars, key=lambda bar: bar.value or 0.0)
        total = sum(bar.value or 0.0 for bar in chart.bars)
        return (
            f"{chart.axis.title} by {chart.across.title}: {total:,.0f} in {len(chart.bars)} bins,"
            f" most, {top.value or 0.0:,.0f}, at {top.name}."
        )
    said = []
    for bar in chart.bars[:_DESCRIBED]:
        value = "undefined" if bar.value is None else f"{bar.value:.4g}"
        reach = f" [{bar.low:.4g}, {bar.high:.4g}]" if bar.low is not None else ""
        before = f", baseline {bar.baseline:.4g}" if bar.baseline is not None else ""
        says = f", {bar.says}" if bar.says else ""
        said.append(f"{supported(bar.name, bar.support)}: {value}{reach}{before}{says}")
    return _ended([f"{chart.axis.title} of {len(chart.bars)}", *said], len(chart.bars))


def _of_matrix(chart: Matrix) -> str:
    cells = [
        (n, row, column)
        for row, counts in zip(chart.rows, chart.counts, strict=True)
        for column, n in zip(chart.columns, counts, strict=True)
    ]
    total, right = sum(n for n, *_ in cells), sum(n for n, a, p in cells if a == p)
    wrong = sorted((cell for cell in cells if cell[0] and cell[1] != cell[2]), reverse=True)
    said = [f"{total:,} counted, {right:,} on the diagonal"]
    said += [f"{n:,} of {a} predicted as {p}" for n, a, p in wrong[:3]]
    return "; ".join(said) + "."


# Charts of lines: curves by label, by score threshold, by cut-off, and of calibration.

LINES = 8
LINES_BESIDE = 4
"""Labels of a chart with a baseline, of which each has a line as well."""


class Source(msgspec.Struct, frozen=True):
    """Source of a line chart's points: page frame, curve, columns."""

    frame: str
    curve: str


class Curve(msgspec.Struct, frozen=True):
    """Chart with one line per label.

    Attributes:
        x, y: columns of the curves frame, which name the measures of the axes.
        diagonal: whether to show the chance diagonal.
    """

    title: str
    x: str
    y: str
    sources: tuple[Source, ...]
    diagonal: bool = False


_COUNTED = Source("thresholds", "PrecisionRecallCurve")
_CURVES = {
    "precision_recall": Curve(
        "Precision and recall",
        "recall",
        "precision",
        (
            Source("curves", "InterpolatedPrecisionRecallCurve"),
            Source("curves", "ScorePrecisionRecallCurve"),
            _COUNTED,
        ),
    ),
    "roc": Curve("ROC curve", "fpr", "recall", (Source("curves", "ROCCurve"), _COUNTED), True),
}
_AXES = {
    "recall": Axis("recall"),
    "precision": Axis("precision"),
    "fpr": Axis("false positive rate"),
}
_TP, _FP, _FN, _TN = (pl.col(name).cast(pl.Float64) for name in ("tp", "fp", "fn", "tn"))
_MEASURES = {
    "precision": _TP / (_TP + _FP),
    "recall": _TP / (_TP + _FN),
    "f1": 2 * _TP / (2 * _TP + _FP + _FN),
    "fpr": _FP / (_FP + _TN),
}
_NO_BASELINE = "the baseline has no such curve"
_CALLED = {"precision": "precision", "recall": "recall", "f1": "F1"}


def curve_chart(kind: str, run: Numbers, base: Numbers | None, want: Want) -> list[Drawn]:
    """A line a label, the whole first."""
    curve = _CURVES[kind]
    for source in curve.sources:
        rows = _curve(run, source, want)
        ranked = _ranked(rows, curve, run, want)
        if ranked.height:
            break
    else:
        return []
    n, most, note = ranked.height, LINES if base is None else LINES_BESIDE, ""
    if want.label_value is None and n > most:
        worst = max(1, most // 4)
        rest = ranked[most - worst :].sort("area", maintain_order=True)[:worst]
        ranked = pl.concat([ranked[: most - worst], rest])
        note = (
            f"{most} of {n:,} labels: the {most - worst} with the most support and, of the others,"
            f" the {worst} with the least area"
        )
    lines = [*_overall(run, rows, curve, want), *_label_lines(rows, ranked, curve, want)]
    missing = ""
    if base is not None:
        before = _beside(base, source, want, rows)
        theirs = _ranked(before, curve, base, want)
        beside = []
        if theirs.schema["label_value"] == ranked.schema["label_value"] and theirs.height:
            both = ranked.select("label_value").join(theirs, "label_value", maintain_order="left")
            beside = _label_lines(before, both, curve, want)
        beside = [*(_overall(base, before, curve, want) if n > 1 else []), *beside]
        lines += [msgspec.structs.replace(line, baseline=True) for line in beside]
        missing = "" if beside else _NO_BASELINE
    return [
        Chart(
            kind,
            want.titled(curve.title, _iou(rows)),
            _AXES[curve.x],
            _AXES[curve.y],
            lines,
            joined(note, missing, _other_ious(run, source, want, rows)),
            curve.diagonal,
        )
    ]


def _curve(run: Numbers, source: Source, want: Want, usual: float = 0.5) -> pl.DataFrame:
    """Rows of a curve of the whole set at one IoU threshold, of one label or of all."""
    rows = run.frames.get(source.frame)
    if rows is None:
        return empty_frame("curves")
    rows = of_key(rows.filter(pl.col("curve") == source.curve), want)
    rows = rows.filter(pl.col("slice").is_null(), pl.col("label_value").is_not_null())
    rows = whole(
        nearest(rows, "iou_threshold", want.iou_threshold, usual), ("area", "max_detections")
    )
    return rows if want.label_value is None else of_label(rows, want.label_value)


def _ranked(rows: pl.DataFrame, curve: Curve, run: Numbers, want: Want) -> pl.DataFrame:
    """Labels with a defined point, the most support first: label_value, support, area."""
    if not rows.height:
        return rows.select("label_value")
    x, y = pl.col(curve.x), pl.col(curve.y)
    found = (
        rows.filter(x.is_not_null())
        .group_by("label_value", maintain_order=True)
        .agg(
            (pl.col("tp") + pl.col("fn")).first().alias("counted"),
            (x.diff().abs() * (y + y.shift()) / 2).sum().alias("area"),
            y.count().alias("points"),
        )
        .filter(pl.col("points") > 0)
    )
    supports = _supports(run, want)
    return (
        found.join(supports, on="label_value", how="left", maintain_order="left")
        .with_columns(pl.coalesce("counted", "support").alias("support"))
        .sort("support", descending=True, nulls_last=True, maintain_order=True)
    )


def _label_lines(rows: pl.DataFrame, ranked: pl.DataFrame, curve: Curve, want: Want) -> list[Line]:
    """The lines of labels, in their order."""
    lines = []
    rows = rows.filter(pl.col(curve.x).is_not_null())
    for value, support in ranked.select("label_value", "support").iter_rows():
        points = rows.filter(pl.col("label_value") == value)
        line = _thinned(points[curve.x].to_list(), points[curve.y].to_list())
        if line is not None:
            lines.append(Line(want.called(value), *line, support=support))
    return lines


def _supports(run: Numbers, want: Want) -> pl.DataFrame:
    """Return the support of each label's first metric: label_value, support."""
    rows = of_key(run.metrics, want).filter(
        pl.col("label_value").is_not_null(),
        pl.col("slice").is_null(),
        pl.col("support").is_not_null(),
    )
    return rows.select("label_value", "support").unique("label_value", keep="first")


def _thinned(
    x: list[float], y: list[float | None]
) -> tuple[list[float], list[float | None]] | None:
    """Thin points to at most :data:`POINTS`, evenly along the curve; None if none is defined.

    Every gap between two points is kept.
    """
    there = [i for i, value in enumerate(y) if value is not None]
    if not there:
        return None
    x, y = x[there[0] : there[-1] + 1], y[there[0] : there[-1] + 1]
    if len(x) <= POINTS:
        return x, y
    known = [i for i, value in enumerate(y) if value is not None]
    spread = [max(v) - min(v) or 1.0 for v in (x, [y[i] or 0.0 for i in known])]
    way = [0.0]
    for a, b in pairwise(known):
        up = abs((y[b] or 0.0) - (y[a] or 0.0))
        way.append(way[-1] + abs(x[b] - x[a]) / spread[0] + up / spread[1])
    n = POINTS if len(known) == len(y) else POINTS // 2
    chosen = [known[bisect_left(way, way[-1] * step / (n - 1))] for step in range(n - 1)]
    chosen = list(dict.fromkeys([*chosen, known[-1]]))
    xs: list[float] = []
    ys: list[float | None] = []
    for before, i in zip([chosen[0], *chosen], chosen, strict=False):
        hole = next((j for j in range(before, i) if y[j] is None), None)
        if hole is not None:
            xs.append(x[hole])
            ys.append(None)
        xs.append(x[i])
        ys.append(y[i])
    return xs, ys


def _overall(run: Numbers, rows: pl.DataFrame, curve: Curve, want: Want) -> list[Line]:
    """The line of all labels: of summed counts at common score thresholds, or, of a curve without
    counts over a common grid, the mean of the labels."""
    n = rows["label_value"].n_unique()
    if want.label_value is not None or n < 2:  # of one label its own line is all
        return []
    if rows["tp"].null_count() == rows.height:
        points = rows.group_by(curve.x, maintain_order=True).agg(pl.col(curve.y).mean(), pl.len())
        if points["len"].n_unique() > 1:
            return []
        name, support = f"mean of {n:,} labels", None
    else:
        points = _summed(_curve(run, _COUNTED, want))
        name, support = (
            f"all {n:,} labels together",
            int(points["support"][0]) if points.height else None,
        )
    if not points.height or points[curve.x].null_count() == points.height:
        return []
    points = points.filter(pl.col(curve.x).is_not_null())
    line = _thinned(points[curve.x].to_list(), points[curve.y].to_list())
    return [] if line is None else [Line(name, *line, support=support, whole=True)]


def _summed(rows: pl.DataFrame) -> pl.DataFrame:
    """Measures of all labels together, of counts summed by score threshold."""
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


def _beside(base: Numbers, source: Source, want: Want, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the baseline's rows of a curve, at the run's IoU threshold, possibly empty."""
    iou = rows["iou_threshold"][0]
    want = msgspec.structs.replace(want, iou_threshold=None)
    theirs = _curve(base, source, want, 0.5 if iou is None else iou)
    return theirs.filter(pl.col("iou_threshold").eq_missing(pl.lit(iou, pl.Float64)))


def _iou(rows: pl.DataFrame) -> str:
    said = at(rows, "iou_threshold")
    return f"IoU {said}" if said else ""


def _other_ious(run: Numbers, source: Source, want: Want, rows: pl.DataFrame) -> str:
    if want.iou_threshold is not None or not _iou(rows):
        return ""
    every = run.frames[source.frame].filter(pl.col("curve") == source.curve)
    said = more(every["iou_threshold"].n_unique() - 1, "IoU threshold")
    return f"{said} not shown" if said else ""


def thresholds(run: Numbers, base: Numbers | None, want: Want) -> list[Drawn]:
    """Precision, recall and F1 by score threshold: of a label, or of all together."""
    rows = _curve(run, _COUNTED, want)
    if not rows.height:
        return []
    n = rows["label_value"].n_unique()
    one = rows["label_value"][0] if n == 1 else None
    lines: list[Line] = []
    before = None if base is None else _beside(base, _COUNTED, want, rows)
    if before is not None and before.height and one is not None:
        before = of_label(before, one)
    for some in (rows, before):
        if some is None or not some.height:
            continue
        points = _summed(some) if n > 1 else some.sort("score_threshold")
        for column, name in _CALLED.items():
            line = _thinned(points["score_threshold"].to_list(), points[column].to_list())
            support = int(points["tp"][0] + points["fn"][0])
            if line is not None:
                lines.append(Line(name, *line, support=support, baseline=some is before))
    of = f"all {n:,} labels together" if one is None else want.called(one)
    title = want.titled("Precision, recall and F1 by score threshold", of, _iou(rows))
    note = "counts of all labels summed" if n > 1 else ""
    note = joined(note, _NO_BASELINE if before is not None and not before.height else "")
    x = Axis("score threshold")
    return [Chart("thresholds", title, x, Axis("value"), lines, note)] if lines else []


def by_k(run: Numbers, base: Numbers | None, want: Want) -> list[Drawn]:
    """Aggregates of the whole set by cut-off, a line a metric."""
    lines: list[Line] = []
    asked = want.metric is not None
    for numbers in (run, base):
        if numbers is None:
            continue
        rows = of_key(numbers.metrics, want).filter(
            pl.col("k").is_not_null(), pl.col("label_value").is_null(), pl.col("slice").is_null()
        )
        kinds = rows.group_by("metric", "statistic", maintain_order=True)
        for (metric, statistic), every in kinds:
            fits = metric == want.metric if asked else want.directions.get(metric) != "neither"
            some = whole(every, ("average", "area", "max_detections", "parameters"))
            some = some.unique("k", keep="first", maintain_order=True).sort("k")
            if not fits or (some.height < 2 and not asked) or not some["value"].count():
                continue
            supports = some["support"].drop_nulls().to_list()
            lines.append(
                Line(
                    " ".join(filter(None, (metric, statistic))),
                    [float(k) for k in some["k"]],
                    some["value"].to_list(),
                    support=max(supports, default=None),
                    baseline=numbers is base,
                    **_interval(some),
                )
            )
    names = list(dict.fromkeys(line.name for line in lines if not line.baseline))
    if not names:
        return []
    shown = names[: LINES if base is None else LINES_BESIDE]
    lines = [line for line in lines if line.name in shown]
    note = more_metrics(len(names) - len(shown))
    ks = sorted({k for line in lines for k in line.x})
    x = Axis("cut-off k", ks[0], ks[-1], ks)
    return [Chart("ks", want.titled("Values by cut-off"), x, _values(lines), lines, note)]


def _interval(rows: pl.DataFrame) -> dict[str, Any]:
    if not rows["lower"].count():
        return {}
    return {"low": rows["lower"].to_list(), "high": rows["upper"].to_list()}


def _values(lines: list[Line]) -> Axis:
    """An axis of values: from 0 to 1, or as far as they reach."""
    values = [
        value
        for line in lines
        for value in (*line.y, *(line.low or ()), *(line.high or ()))
        if value is not None
    ]
    return Axis("value", min(0.0, *values), max(1.0, *values))


class Binned(msgspec.Struct, frozen=True):
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


def binned(shows: Binned, run: Numbers, base: Numbers | None, want: Want) -> list[Drawn]:
    """Make charts of means in bins, one point per bin, with the baseline."""
    lines = []
    for numbers in (run, base):
        rows = None if numbers is None else numbers.frames.get(shows.frame)
        if rows is None:
            continue
        rows = of_key(rows, want).filter(pl.col("slice").is_null(), pl.col("label_value").is_null())
        across, up = (
            rows.filter(pl.col("statistic") == name, pl.col("average").is_null())
            for name in (shows.x, shows.y)
        )
        points = up.join(across.select(shows.bins, across="value"), shows.bins)
        points = points.drop_nulls(["value", "across"]).sort("across", maintain_order=True)
        if not points.height:
            continue
        counts = points["support"].fill_null(0).to_list()
        lines.append(
            Line(
                shows.line,
                points["across"].to_list(),
                points["value"].to_list(),
                support=sum(counts),
                baseline=numbers is base,
                counts=counts,
                **_interval(points),
            )
        )
    if not lines or lines[0].baseline:
        return []
    lacking = "the baseline has no bins" if base is not None and len(lines) < 2 else ""
    low, high = (0.0, 1.0) if shows.unit else _reach(lines)
    x, y = (Axis(title, low, high) for title in shows.axes)
    note = joined(shows.note, lacking)
    return [Chart(shows.kind, want.titled(shows.title), x, y, lines, note, diagonal=True)]


def _reach(lines: list[Line]) -> tuple[float, float]:
    """Return the common range of both coordinates, never empty."""
    values = [value for line in lines for value in (*line.x, *line.y) if value is not None]
    low, high = min(values), max(values)
    return (low, high) if low < high else (low - 1, high + 1)
