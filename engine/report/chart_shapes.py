"""Content of charts: plain data for ``svg`` and ``plots``. Undefined values are None."""

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
        kind: one of :data:`KINDS`, or ``differences``.
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
    return f"{more(n, 'metric')} not drawn" if n > 0 else ""


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
