"""Charts of a run as data, rendered by ``svg`` and ``plots``.

The frame and curve of each chart are data, independent of tasks. Undefined values make gaps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from ..scorecard.lookup import KEYS, whole
from .chart_shapes import (
    ACTUAL,
    CALIBRATION,
    Axis,
    Bar,
    Bars,
    Chart,
    Drawn,
    Line,
    Matrix,
    Numbers,
    Want,
    at,
    binned,
    by_k,
    curve_chart,
    joined,
    more,
    more_metrics,
    nearest,
    of_key,
    of_label,
    thresholds,
)
from .summary import plain
from .tables import at_k, getting
from .verdicts import Titled, better, headline, of_pair, pairs, title_of

if TYPE_CHECKING:
    from ..scorecard.card import Scorecard
    from ..statistics.comparison import Comparison

# Charts of bars: values of labels and slices, distributions, confusion, differences of runs.

BARS = 30
CELLS = 20
_DISTRIBUTIONS = 4
_USUAL_K = 10
_UNMATCHED = "(no truth)", "(missed)"
_SAYS = {1: "better", -1: "worse", 0: "not significant"}


def labels(run: Numbers, base: Numbers | None, want: Want) -> list[Drawn]:
    """A metric's value of each label, the worst first."""
    rows = of_key(run.metrics, want).filter(
        pl.col("slice").is_null(), pl.col("label_value").is_not_null()
    )
    if want.label_value is not None:
        rows = of_label(rows, want.label_value)
    rows = _one_metric(rows, want)
    if not rows.height:
        return []
    named = [want.called(value) for value in rows["label_value"]]
    return _worst_first("labels", rows, named, base, want, "label")


def slices(run: Numbers, base: Numbers | None, want: Want) -> list[Drawn]:
    """A metric's value of each slice, the worst first, against the whole set's."""
    every = of_key(run.metrics, want).filter(pl.col("label_value").is_null())
    rows = _one_metric(every.filter(pl.col("slice").is_not_null()), want)
    if not rows.height:
        return []
    pairs = rows.select("slice", "slice_value").iter_rows()
    named = [plain(f"{name}={value}") for name, value in pairs]
    found = _same(every.filter(pl.col("slice").is_null()), rows.row(0, named=True), "slice")
    value = found["value"][0] if found.height else None
    reference = None if value is None else (value, "whole set")
    return _worst_first("slices", rows, named, base, want, "slice", reference)


def _one_metric(rows: pl.DataFrame, want: Want) -> pl.DataFrame:
    """Rows of the metric that was asked for, or the first that has a direction: one a place."""
    for metric in rows["metric"].unique(maintain_order=True):
        if metric == want.metric or (
            want.metric is None and want.directions.get(metric) in ("higher", "lower")
        ):
            rows = rows.filter(pl.col("metric") == metric)
            break
    else:
        return rows.clear()
    rows = nearest(rows, "iou_threshold", want.iou_threshold)
    rows = nearest(nearest(rows, "score_threshold", None), "k", None, _USUAL_K)
    rows = whole(rows, ("statistic", "average", "area", "max_detections", "parameters"))
    return rows.unique(["label_value", "slice", "slice_value"], keep="first", maintain_order=True)


def _same(rows: pl.DataFrame, row: dict[str, Any], *free: str) -> pl.DataFrame:
    """Return the rows of the same number as a row, ignoring the free columns."""
    fixed = [name for name in ("metric", *KEYS) if name not in _free(free) and name in rows.columns]
    return rows.filter(
        *(pl.col(name).eq_missing(pl.lit(row[name], rows.schema[name])) for name in fixed)
    )


def _free(names: Sequence[str]) -> set[str]:
    return {"slice", "slice_value"} if "slice" in names else {"label_value"}


def _worst_first(
    kind: str,
    rows: pl.DataFrame,
    named: list[str],
    base: Numbers | None,
    want: Want,
    word: str,
    reference: tuple[float, str] | None = None,
) -> list[Drawn]:
    """Bars of at most :data:`BARS` rows, undefined ones last."""
    first = rows.row(0, named=True)
    metric = first["metric"]
    before: dict[tuple[str, ...], float | None] = {}
    places = ("label_value", "slice", "slice_value")
    if base is not None:
        theirs = _same(of_key(base.metrics, want), first, word)
        for *place, value in theirs.select(*places, "value").iter_rows():
            before[tuple(map(str, place))] = value
    lower = want.directions.get(metric) == "lower"
    bars = [
        Bar(
            name,
            row["value"],
            row["lower"],
            row["upper"],
            row["support"],
            before.get(tuple(str(row[place]) for place in places)),
        )
        for name, row in zip(named, rows.iter_rows(named=True), strict=True)
    ]
    sign = -1 if lower else 1
    bars.sort(key=lambda b: (b.value is None, sign * (b.value or 0.0), -(b.support or 0)))
    left = len(bars) - BARS
    note = "lower is better" if lower else ""
    if left > 0:
        note = joined(note, f"the {BARS} worst of {len(bars):,} {word}s; all: {getting('metrics')}")
    called = " ".join(
        filter(None, (at_k(metric, first["k"]), first["statistic"], first["average"]))
    )
    shown = bars[:BARS]
    values = [
        value
        for bar in shown
        for value in (bar.value, bar.low, bar.high, bar.baseline, *(reference or ())[:1])
        if isinstance(value, float)
    ]
    if not values:
        return []
    axis = Axis(called, min(0.0, *values), _end(values))
    spots = [
        f"{name} {first[column]:g}"
        for column, name in (("iou_threshold", "IoU"), ("score_threshold", "score"))
        if first[column] is not None
    ]
    heading = want.titled(f"{called} by {word}", *spots)
    return [Bars(kind, heading, axis, shown, note, reference)]


def _end(values: Sequence[float]) -> float:
    """Return the end of an axis of values: 1, or beyond."""
    return max(1.0, *values) if max(values) > 0 else 0.0 if min(values) < 0 else 1.0


def costs(metric: str, run: Numbers, base: Numbers | None, want: Want) -> list[Drawn]:
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
    ends = [end for b in bars for end in (b.value, b.low, b.high, b.baseline) if end is not None]
    heading = want.titled("Cost of each kind of error", f"IoU {at(rows, 'iou_threshold')}")
    note = "FalsePos and FalseNeg summarise the others"
    return [
        Bars(
            "costs",
            heading,
            Axis("AP gained without it", min(0.0, *ends), max(ends) or 1.0),
            bars,
            note,
        )
    ]


def _costs(metric: str, run: Numbers, want: Want) -> pl.DataFrame:
    """Costs of the whole set, or of a label, at one IoU threshold."""
    rows = of_key(run.metrics, want).filter(pl.col("metric") == metric, pl.col("slice").is_null())
    if want.label_value is None:
        rows = rows.filter(pl.col("label_value").is_null())
    else:
        rows = of_label(rows, want.label_value)
    return nearest(rows, "iou_threshold", want.iou_threshold)


def distribution(run: Numbers, base: Numbers | None, want: Want) -> list[Drawn]:
    """Make histograms of values per datum, one per metric."""
    rows = run.frames.get("distribution")
    if rows is None:
        return []
    if want.metric is not None:
        rows = rows.filter(pl.col("metric") == want.metric)
    kinds = rows.select("metric", "statistic").unique(maintain_order=True)
    found: list[Drawn] = []
    for row in kinds.head(_DISTRIBUTIONS).iter_rows(named=True):
        bins = _bins(rows, row)
        k = bins["k"][0]
        theirs = None if base is None else base.frames.get("distribution")
        then = None if theirs is None else _bins(theirs, row, k)
        bars = [
            Bar(
                f"{low:g} to {high:g}",
                float(count),
                span=(low, high),
                support=count,
                baseline=_in_bin(then, low, high),
            )
            for low, high, count in bins.select("low", "high", "count").iter_rows()
        ]
        called = " ".join(filter(None, (at_k(row["metric"], k), row["statistic"])))
        tops = [max(bar.value or 0.0, bar.baseline or 0.0) for bar in bars]
        n = bins["count"].sum()
        note = more_metrics(kinds.height - _DISTRIBUTIONS)
        if then is not None and then.height and all(bar.baseline is None for bar in bars):
            note = joined("the baseline's values are in other bins, and not shown", note)
        across = Axis(f"{called} of a datum", bins["low"][0], bins["high"][-1])
        axis = Axis("datums", 0.0, max(1.0, *tops))
        heading = f"{called} of {n:,} datums"
        found.append(Bars("distribution", heading, axis, bars, note, across=across, counts=True))
    return found


def _bins(rows: pl.DataFrame, row: dict[str, Any], k: int | None = None) -> pl.DataFrame:
    rows = rows.filter(
        pl.col("metric") == row["metric"],
        pl.col("statistic").eq_missing(pl.lit(row["statistic"], pl.String)),
    )
    if k is not None:
        return rows.filter(pl.col("k") == k).sort("low")
    rows = whole(rows, ("k",)) if rows["k"].null_count() else nearest(rows, "k", None, _USUAL_K)
    return rows.sort("low")


def _in_bin(bins: pl.DataFrame | None, low: float, high: float) -> float | None:
    """The count of the same bin of another histogram."""
    if bins is None:
        return None
    same = bins.filter(pl.col("low") == low, pl.col("high") == high)
    return float(same["count"][0]) if same.height else None


def confusion(run: Numbers, base: Numbers | None, want: Want) -> list[Drawn]:
    """Counts by actual and predicted label; of many labels the most frequent confusions."""
    rows = _confused(run, want)
    if rows is None or not rows.height:
        return []
    spots = [
        f"{name} {value}"
        for column, name in (("iou_threshold", "IoU"), ("score_threshold", "score"))
        if (value := at(rows, column))
    ]
    values = pl.concat([rows["actual"], rows["predicted"]]).drop_nulls().unique()
    if values.len() > CELLS:
        return _confused_pairs(rows, base, want, spots)
    counts = {(a, p): n for a, p, n in rows.select("actual", "predicted", "count").iter_rows()}
    support: dict[Any, int] = {}
    for (a, _), n in counts.items():
        support[a] = support.get(a, 0) + n
    order = sorted(values, key=lambda value: (-support.get(value, 0), str(value)))
    actual = [*order, *([None] if any(a is None for a, _ in counts) else [])]
    predicted = [*order, *([None] if any(p is None for _, p in counts) else [])]
    theirs = None if base is None else _confused(base, want)
    then = {} if theirs is None else _by_pair(theirs)
    return [
        Matrix(
            "confusion",
            want.titled("Confusion", *spots),
            [_UNMATCHED[0] if a is None else want.called(a) for a in actual],
            [_UNMATCHED[1] if p is None else want.called(p) for p in predicted],
            [[counts.get((a, p), 0) for p in predicted] for a in actual],
            joined(
                "rows are actual labels, the most frequent first; columns predicted ones; the"
                " stronger a cell's colour, the larger its share of the row",
                "below a count, its change since the baseline" if then else "",
            ),
            [[then.get((str(a), str(p)), 0) for p in predicted] for a in actual] if then else None,
        )
    ]


def _by_pair(rows: pl.DataFrame) -> dict[tuple[str, str], int]:
    """Return counts by actual and predicted label as text: two runs may have labels of two
    dtypes.
    """
    pairs = rows.select("actual", "predicted", "count").iter_rows()
    return {(str(a), str(p)): n for a, p, n in pairs}


def _confused(run: Numbers, want: Want) -> pl.DataFrame | None:
    """Counts of the whole set at one pair of thresholds."""
    rows = run.frames.get("confusion")
    if rows is None:
        return None
    rows = of_key(rows, want).filter(pl.col("slice").is_null())
    rows = nearest(rows, "iou_threshold", want.iou_threshold)
    rows = nearest(rows, "score_threshold", None).filter(pl.col("count") > 0)
    if want.label_value is None:
        return rows
    one = pl.lit(str(want.label_value))
    return rows.filter(
        (pl.col("actual").cast(pl.String) == one) | (pl.col("predicted").cast(pl.String) == one)
    )


def _confused_pairs(
    rows: pl.DataFrame, base: Numbers | None, want: Want, spots: list[str]
) -> list[Drawn]:
    """Bars of the most frequent pairs of different labels."""
    off = rows.filter(pl.col("actual").ne_missing(pl.col("predicted")))
    if not off.height:
        return []
    theirs = None if base is None else _confused(base, want)
    then = {} if theirs is None else _by_pair(theirs)
    bars = [
        Bar(
            f"{_UNMATCHED[0] if a is None else want.called(a)} → "
            f"{_UNMATCHED[1] if p is None else want.called(p)}",
            float(n),
            baseline=float(then.get((str(a), str(p)), 0)) if theirs is not None else None,
        )
        for a, p, n in off.sort("count", descending=True, maintain_order=True)
        .head(CELLS)
        .select("actual", "predicted", "count")
        .iter_rows()
    ]
    top = max(max(bar.value or 0.0, bar.baseline or 0.0) for bar in bars)
    note = (
        f"the {len(bars)} most frequent of {off.height:,} pairs of actual → predicted label that"
        f" differ; all: {getting('confusion')}"
    )
    heading = want.titled("Most frequent confusions", *spots)
    return [Bars("confusion", heading, Axis("count", 0.0, top), bars, note, counts=True)]


def differences(comparison: Comparison, metric: str | None = None) -> list[Drawn]:
    """Make charts of differences with intervals, second run minus first, for each pair of runs.

    The aggregates come first, then slices and labels by evidence, of the first metric that has
    them. One axis has only numbers of the same magnitude as the first one.

    Args:
        metric: restricts the charts to this metric.
    """
    found: list[Drawn] = []
    for a, b in pairs(comparison):
        rows = of_pair(comparison, a, b)
        if metric is not None:
            rows = rows.filter(pl.col("metric") == metric)
        rows = rows.filter(pl.col("difference").is_not_null())
        heading = f"{plain(b)} less {plain(a)}"
        found += _forest(comparison, heading, headline(comparison, rows), b)
        labelled, sliced = pl.col("label_value").is_not_null(), pl.col("slice").is_not_null()
        for word, some in (
            ("slice", rows.filter(sliced, ~labelled)),
            ("label", rows.filter(labelled, ~sliced)),
        ):
            if some.height:
                some = _same(some, some.row(0, named=True), word)
                some = some.sort("p_adjusted", "p", nulls_last=True, maintain_order=True)
                lines = [(_place(row), row) for row in some.iter_rows(named=True)]
                called = f"{heading} by {word}, {title_of(lines[0][1])}"
                found += _forest(comparison, called, lines, b)
    return found


def _forest(comparison: Comparison, heading: str, lines: list[Titled], b: str) -> list[Drawn]:
    """Make forest plots: one difference per line, with its interval and verdict."""
    if not lines:
        return []
    small = [max(abs(row["a"]), abs(row["b"])) <= 1 for _, row in lines]
    alike = [line for line, one in zip(lines, small, strict=True) if one == small[0]]
    bars = [
        Bar(
            plain(name),
            row["difference"],
            row["lower"],
            row["upper"],
            row["support"],
            says=_SAYS[better(comparison, row)],
        )
        for name, row in alike[:BARS]
    ]
    ends = [v for bar in bars for v in (bar.value, bar.low, bar.high) if v is not None]
    reach = max(map(abs, ends)) or 1.0
    level = comparison.level
    left = more(len(lines) - len(bars), "difference")
    note = joined(
        f"right of 0 {plain(b)} has the larger number; better or worse if the p-value, adjusted"
        f" for all numbers, is at most {1 - level:.3g}",
        f"{left}: --frame differences" if left else "",
    )
    axis = Axis(f"difference, {100 * level:g} % interval", -reach, reach)
    zero = (0.0, "no difference")
    return [Bars("differences", heading, axis, bars, note, zero, dots=True)]


def _place(row: dict[str, Any]) -> str:
    """The slice or label that a difference is of."""
    if row["slice"] is not None:
        return f"{row['slice']}={row['slice_value']}"
    return str(row["label_value"])


__all__ = [
    "KINDS",
    "Axis",
    "Bar",
    "Bars",
    "Chart",
    "Drawn",
    "Kind",
    "Line",
    "Matrix",
    "Numbers",
    "Want",
    "charts",
    "differences",
    "drawn",
    "frames_of",
]

Maker = Callable[[Numbers, Numbers | None, Want], list[Drawn]]


class Kind(msgspec.Struct, frozen=True):
    """Kind of chart.

    Attributes:
        make: makes charts from a run, and a baseline; empty without data.
        otherwise: advice if no metric does.
    """

    make: Maker
    fills: tuple[str, ...] = ()
    otherwise: str = ""
    takes: tuple[str, ...] = ()


def _curve(kind: str) -> Maker:
    return lambda run, base, want: curve_chart(kind, run, base, want)


_COSTS = "TIDE"
_OF_LABEL = ("label_value", "iou_threshold")
KINDS: dict[str, Kind] = {
    "labels": Kind(
        labels,
        otherwise="score a metric that has values of labels",
        takes=("metric", "label_value", "iou_threshold"),
    ),
    "slices": Kind(slices, otherwise="score with by=", takes=("metric", "iou_threshold")),
    "precision_recall": Kind(
        _curve("precision_recall"),
        ("InterpolatedPrecisionRecallCurve", "ScorePrecisionRecallCurve", "PrecisionRecallCurve"),
        takes=_OF_LABEL,
    ),
    "roc": Kind(_curve("roc"), ("ROCCurve",), takes=("label_value",)),
    "calibration": Kind(partial(binned, CALIBRATION), ("Reliability",)),
    "actual": Kind(partial(binned, ACTUAL), ("ActualByPrediction",)),
    "thresholds": Kind(thresholds, ("PrecisionRecallCurve",), takes=_OF_LABEL),
    "ks": Kind(by_k, otherwise="score with several cut-offs, k=", takes=("metric",)),
    "distribution": Kind(
        distribution, otherwise="score a metric that has values of single datums", takes=("metric",)
    ),
    "confusion": Kind(confusion, ("ConfusionMatrix",), takes=_OF_LABEL),
    "costs": Kind(partial(costs, _COSTS), (_COSTS,), takes=_OF_LABEL),
}
"""Kinds of charts, in the order a page shows them."""


def charts(
    metrics: pl.DataFrame,
    frames: Mapping[str, pl.DataFrame],
    directions: Mapping[str, str],
    baseline: tuple[pl.DataFrame, Mapping[str, pl.DataFrame]] | None = None,
    names: Mapping[tuple[str | None, Any], str] | None = None,
) -> list[Drawn]:
    """Make all charts of a run, in the order of :data:`KINDS`, for each label key.

    Args:
        frames: page frames, if present: ``curves``, ``thresholds``, ``confusion``, ``reliability``,
            ``distribution``.
        directions: metric -> ``higher``, ``lower`` or ``neither``, whichever is better.
        baseline: metrics and page frames of the run to compare with.
        names: (label key, label value) -> name, if labels have names.
    """
    run = Numbers(metrics, frames)
    base = None if baseline is None else Numbers(*baseline)
    want = Want(directions, names or {})
    found = [one for kind in KINDS for one in drawn(kind, run, base, want)]
    return list({(one.kind, one.title): one for one in found}.values())


def drawn(kind: str, run: Numbers, base: Numbers | None, want: Want) -> list[Drawn]:
    """Make charts of a kind, for every label key unless one is chosen; empty without numbers.

    Raises:
        ResultError: no numbers at the chosen threshold.
    """
    keys = _label_keys(run)
    chosen = keys if want.label_key is None else [want.label_key]
    return [
        one
        for key in chosen
        for one in KINDS[kind].make(
            run, base, msgspec.structs.replace(want, label_key=key, keys=len(keys))
        )
    ]


def _label_keys(run: Numbers) -> list[str | None]:
    frames = (
        run.metrics,
        *(frame for frame in run.frames.values() if "label_key" in frame.columns),
    )
    keys = pl.concat([frame["label_key"].cast(pl.String) for frame in frames])
    found: list[str | None] = keys.unique(maintain_order=True).to_list()
    return found or [None]


_ASKED = {"curves": "curves", "confusion": "confusion"}
"""Frame of the report -> the run's frame of it, present if its metrics were requested."""


def frames_of(card: Scorecard) -> dict[str, pl.DataFrame]:
    """The frames that charts of a run are made of, as many as there are."""
    found = {name: card.page_frame(name) for name in card.paged}
    found |= {
        name: card.frame(frame)
        for name, frame in _ASKED.items()
        if found.get(name) is None and frame in card.frames and card.height(frame)
    }
    return {name: frame for name, frame in found.items() if frame is not None}


def names_of(card: Scorecard) -> dict[tuple[str | None, Any], str]:
    """(label key, label value) -> name, of labels that have names."""
    rows = card.labels.select("label_key", "label_value", "label_name").iter_rows()
    return {(key, value): name for key, value, name in rows if name is not None}
