"""What a chart holds: plain data that ``svg`` and ``plots`` draw. Undefined values are None."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
import polars as pl

from ..schemas.errors import ResultError
from .summary import plain

POINTS = 200
"""A line has at most so many points."""


class Axis(msgspec.Struct, frozen=True):
    """An axis: its title with the unit, the ends of what it shows, and values that are marked."""

    title: str
    low: float = 0.0
    high: float = 1.0
    marked: list[float] | None = None


class Line(msgspec.Struct, frozen=True):
    """A line of at most :data:`POINTS` points.

    Attributes:
        name: of the label or metric.
        x, y: float, one of a point; None in y is a gap.
        support: what the line rests on; None where that cannot be told.
        baseline: whether it is of the baseline, and drawn dashed.
        low, high: ends of each point's interval.
        counts: what each point rests on; points are then drawn as large.
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
        kind: one of :data:`KINDS`.
        title: what it shows, and at which thresholds.
        x, y: the axes.
        lines: the whole first, the baseline's after the run's own.
        note: what is left out, and how to get it.
        diagonal: whether x = y is drawn for comparison.
    """

    kind: str
    title: str
    x: Axis
    y: Axis
    lines: list[Line]
    note: str = ""
    diagonal: bool = False


class Bar(msgspec.Struct, frozen=True):
    """A bar: its value (None where undefined), interval, support, the baseline's value.

    ``says`` is the word for a difference; ``span`` the ends of a histogram's bin.
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
    """Bars, one below the other; upright over ``across`` in a histogram.

    Attributes:
        kind: one of :data:`KINDS`, or ``differences``.
        title: what it shows.
        axis: of the values.
        bars: in order.
        note: what is left out, and how to get it.
        reference: a value to hold them against, and its name.
        across: the axis of a histogram's bins.
        dots: values are points that may lie on either side of the reference.
        counts: values are counts.
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
    """What charts of a run are made of.

    Attributes:
        metrics: the metrics frame.
        frames: page frames: ``curves``, ``thresholds``, ``confusion``, ``reliability``,
            ``distribution``, as many as there are.
    """

    metrics: pl.DataFrame
    frames: Mapping[str, pl.DataFrame]


class Want(msgspec.Struct, frozen=True):
    """What of a run a chart is to show.

    Attributes:
        directions: metric -> ``higher``, ``lower`` or ``neither``, whichever is better.
        names: (label key, label value) -> name, where labels have names.
        label_key, label_value, iou_threshold, metric: what the user chose; None leaves it open.
        keys: how many label keys the run has.
    """

    directions: Mapping[str, str]
    names: Mapping[tuple[str | None, Any], str] = {}
    label_key: str | None = None
    label_value: Any = None
    iou_threshold: float | None = None
    metric: str | None = None
    keys: int = 1

    def called(self, value: Any) -> str:
        """What a label is called."""
        return plain(self.names.get((self.label_key, value), str(value)))

    def titled(self, title: str, *more: str) -> str:
        """A title with what it is taken at, and the label key where there are several."""
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
    """Rows at the threshold that was asked for; at the nearest to the usual one if none was.

    Raises:
        ResultError: no row is at the threshold that was asked for.
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
    """The one value of a column, as text; nothing where there is none."""
    value = rows[column].drop_nulls().head(1).to_list() if column in rows.columns else []
    return f"{value[0]:g}" if value else ""


def joined(*notes: str) -> str:
    return "; ".join(filter(None, notes))


def supported(name: str, support: int | None) -> str:
    """A name with what it rests on."""
    return name if support is None else f"{name} (n {support:,})"


def more(n: int, what: str) -> str:
    """How many more there are: ``1 more metric``, ``2 more metrics``; nothing for none."""
    return f"{n:,} more {what}{'s' if n > 1 else ''}" if n > 0 else ""


def more_metrics(n: int) -> str:
    """What is said of metrics that are not drawn."""
    return f"{more(n, 'metric')} not drawn" if n > 0 else ""


def described(chart: Drawn) -> str:
    """What a chart shows in numbers, for those who do not see it."""
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
