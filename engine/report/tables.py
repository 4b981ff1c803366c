"""Tables by label, slice and bin."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import polars as pl

from ..metrics import all_metrics
from ..schemas.contract import DEFAULT_LABEL_KEY, NAMES
from ..schemas.display import EACH, PARTS, Entry, Layout, Spread
from ..schemas.errors import OptionError, did_you_mean, invalid
from ..schemas.wording import option
from ..scorecard.lookup import KEYS, whole
from .text import amount, fixed

if TYPE_CHECKING:
    from ..scorecard.card import Scorecard

# Thresholds of a table: all if they are few, otherwise the ones nearest 0.5.

MAX_THRESHOLDS = 6
"""Maximum number of pairs of thresholds for which all are shown."""
EVERY = 1 << 30
_COLUMNS = ("iou_threshold", "score_threshold")
_WORDS = {"iou_threshold": "IoU", "score_threshold": "score"}


def by_threshold(rows: pl.DataFrame, most: int = MAX_THRESHOLDS) -> list[tuple[pl.DataFrame, str]]:
    """Split a metric's rows by threshold, or keep only the one nearest 0.5 if there are many.

    Args:
        rows: frame with the columns ``iou_threshold`` and ``score_threshold``.
        most: maximum number of threshold combinations to keep.

    Returns:
        (rows, description of the thresholds) pairs.
    """
    combinations = every_spot(rows)
    if not 1 < combinations.height <= most:
        return [_at_one_spot(rows)]
    return [
        (rows.filter(*(pl.col(name) == value for name, value in row.items())), _where(row))
        for row in combinations.iter_rows(named=True)
    ]


def most_thresholds(card: Scorecard, most: int = MAX_THRESHOLDS, *, wide: bool) -> int:
    """Return the maximum number of pairs of thresholds for which all are shown."""
    return EVERY if wide and card.options.score_thresholds is not None else most


def every_spot(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the distinct threshold combinations, sorted; empty if rows have no thresholds."""
    columns = [column for column in _COLUMNS if rows[column].null_count() < rows.height]
    if not columns:
        return rows.select(columns)
    return rows.select(columns).unique().drop_nulls().sort(columns)


def _where(row: dict[str, float]) -> str:
    parts = [f"{_WORDS[name]} {value:g}" for name, value in row.items()]
    return "at " + ", ".join(parts) if parts else ""


def _at_one_spot(rows: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    """Return the rows at the thresholds nearest 0.5, and a description of those thresholds."""
    chosen: dict[str, float] = {}
    for column in _COLUMNS:
        values = rows[column].drop_nulls().unique().sort()
        if len(values):
            chosen[column] = min(values, key=lambda value: abs(value - 0.5))
            rows = rows.filter(pl.col(column) == chosen[column])
    return rows, _where(chosen)


# Tracking of the metrics rows that tables show; the rest is listed, with how to get it.

ROW = "row of the frame"
"""Column with the row index, used while sections are built."""
_NOUNS = {
    "score_threshold": "score threshold",
    "iou_threshold": "IoU threshold",
    "area": "area",
    "max_detections": "detection cap",
    "k": "cut-off",
    "average": "average",
    "statistic": "statistic",
    "parameters": "variant",
}
"""Columns that distinguish the rows of one metric, other than label and slice columns."""
_BY_NAME = ("area", "average", "statistic")
_NAMED = 3


def numbered(rows: pl.DataFrame) -> pl.DataFrame:
    """Add the row index as a column."""
    return rows.with_row_index(ROW)


class Listed:
    """Collector of the rows that tables and lines show."""

    def __init__(self) -> None:
        self._places: list[pl.Series] = []

    def take(self, rows: pl.DataFrame) -> None:
        """Record rows as shown, or as included in a count of hidden rows."""
        self._places.append(rows[ROW])

    def unshown(self, rows: pl.DataFrame) -> str:
        """Describe the rows that are not shown; empty if there are none."""
        places = pl.concat(self._places) if self._places else pl.Series(dtype=pl.UInt32)
        displayed = rows[ROW].is_in(places.unique().implode())
        n = int((~displayed).sum())
        if not n:
            return ""
        kinds: dict[str, list[str]] = {}
        for metric in rows["metric"].filter(~displayed).unique(maintain_order=True):
            chosen = rows["metric"] == metric
            what = _differing(rows.filter(chosen & ~displayed), rows.filter(chosen & displayed))
            kinds.setdefault(what, []).append(metric)
        parts = [f"{', '.join(names)} ({what})" for what, names in kinds.items()]
        count = f"{n:,} row{'s' if n > 1 else ''}"
        return f"not shown: {'; '.join(parts)}: {count}; all: {getting('metrics')}"


def getting(frame: str) -> str:
    """Return the two ways to get all rows of a frame."""
    return f"card.{frame}, --frame {frame}"


def _differing(left: pl.DataFrame, there: pl.DataFrame) -> str:
    """Describe how the hidden rows of a metric differ from its shown rows."""
    sliced, labelled = pl.col("slice").is_not_null(), pl.col("label_value").is_not_null()
    parts = []
    for kind, word in (
        (~sliced & ~labelled, "whole set"),
        (~sliced & labelled, "labels"),
        (sliced & ~labelled, "slices"),
        (sliced & labelled, ""),
    ):
        some, like = left.filter(kind), there.filter(kind)
        if not some.height:
            continue
        slices = some["slice"].unique(maintain_order=True).drop_nulls()
        word = word or ", ".join(f"{name} x label" for name in slices)
        more = [more for column in _NOUNS if (more := _more(some, like, column))]
        if like.height:
            word += f": {', '.join(more) or 'other combinations'}"
        parts.append(word)
    return "; ".join(parts)


def _more(left: pl.DataFrame, there: pl.DataFrame, column: str) -> str:
    """Describe the values of a column that occur only in hidden rows."""
    more = left[column].drop_nulls().unique(maintain_order=True)
    more = more.filter(~more.is_in(there[column].unique().implode()))
    if column in _BY_NAME and 0 < more.len() <= _NAMED:
        return f"{_NOUNS[column]} {', '.join(more)}"
    n = more.len()
    return f"{n} more {_NOUNS[column]}{'s' if n > 1 else ''}" if n else ""


# Display settings of tables: order, number of rows, number of columns.

ALL = "all"
VALUE, LABEL, SUPPORT = "value", "label", "support"


class Look(msgspec.Struct, frozen=True):
    """Display settings for tables of labels and slices.

    Attributes:
        sort: ``value`` (by the first number, worst first), ``label`` (by label or slice name),
            ``support`` (largest first), or a column title (worst first). None is ``value``, and
            shows both ends of a long table of labels.
        top: maximum number of rows per table; 0 for all; None for the default.
        wide: show all columns and thresholds, whatever the terminal's width.
    """

    sort: str | None = None
    top: int | None = None
    wide: bool = False


USUAL = Look()


def look(sort: str | None = None, top: int | str | None = None, *, wide: bool = False) -> Look:
    """Validate display settings.

    Raises:
        OptionError: ``top`` is neither an integer >= 0 nor ``all``.
    """
    if isinstance(top, str):
        if top.lower() != ALL and not top.isdigit():
            raise invalid("top", top, f"write a number of rows, or {ALL}.")
        top = 0 if top.lower() == ALL else int(top)
    if top is not None and top < 0:
        raise invalid("top", top, "write 0 or more; 0 is for every row.")
    return Look(sort, top, wide)


def arranged(card: Scorecard, grids: list[Grid], sort: str | None) -> list[Grid]:
    """Sort tables of labels or slices.

    Raises:
        OptionError: no table has such a column; the message lists the columns.
    """
    if sort is None:
        return grids
    column_names = {title.lower() for grid in grids for title in grid.columns}
    column = sort.lower()
    if grids and column not in (VALUE, LABEL, SUPPORT) and column not in column_names:
        titles = list(dict.fromkeys(title for grid in grids for title in grid.columns))
        every = [VALUE, LABEL, SUPPORT, *titles]
        raise OptionError(
            f"{option('sort', sort)}: no table has such a column.{did_you_mean(sort, every)} There"
            f" are {', '.join(every)}.",
            code="unknown_name",
            value=sort,
        )
    return [ordered(card, grid, column) for grid in grids]


def ordered(card: Scorecard, grid: Grid, column: str) -> Grid:
    """Order a table: by a column with the worst first, by name, or by support."""
    titles = [title.lower() for title in grid.columns]
    at = titles.index(column) if column in titles else 0
    lower = card.directions.get(grid.metric(at)) == "lower"
    lower ^= layout_of(card.task, card.dialect).best_first
    sort_keys: dict[str, Callable[[Row], Any]] = {
        VALUE: lambda row: worst_first(row.numbers[at], row.support, row.names, lower=lower),
        LABEL: lambda row: by_name(row.names),
        SUPPORT: lambda row: largest_first(row.support, row.names),
    }
    if column not in (*sort_keys, *titles):
        return grid
    return msgspec.structs.replace(
        grid, rows=sorted(grid.rows, key=sort_keys.get(column, sort_keys[VALUE]))
    )


def first_end(direction: str | None, *, best_first: bool) -> str:
    """Return ``worst``, ``best`` or ``lowest``: the rows that tables and charts have first.

    Args:
        direction: the better direction of the metric.
        best_first: the layout has the best rows first, as leaderboards do.
    """
    if direction not in ("higher", "lower"):
        return "lowest"
    return "best" if best_first else "worst"


def worst_first(value: Number, support: Support, names: Iterable[str], *, lower: bool) -> Any:
    """Return the sort key of labels and slices in every table, chart and page.

    The worst value is first, undefined ones are last. Equal ones have the largest support first.

    Args:
        lower: the worst value is the largest one; or the best one, which leaderboards have first.
    """
    sign = -1.0 if lower else 1.0
    return value is None, sign * (value or 0.0), largest_first(support, names)


def largest_first(support: Support, names: Iterable[str]) -> Any:
    """Return the sort key for the largest support first, then by name; ``5 of 60`` counts as 60."""
    return -float(str(support or 0).split()[-1].replace(",", "")), by_name(names)


_NUMERIC = re.compile(r"[+-]?\d+(\.\d*)?(e[+-]?\d+)?", re.IGNORECASE)


def by_name(names: Iterable[str]) -> Any:
    """Return the sort key for names, with numbers by value: ``part 9``, then ``part 10``."""

    def key(name: str) -> Any:
        if _NUMERIC.fullmatch(name):
            return 0, float(name), ()
        parts = re.split(r"(\d+)", name)
        return 1, 0.0, [_digits(part) if i % 2 else part for i, part in enumerate(parts)]

    return [key(name) for name in names]


def _digits(text: str) -> tuple[int, str]:
    """Return the sort key for a whole number of any length."""
    digits = text.lstrip("0")
    return len(digits), digits


# Display layouts by task and dialect. Tasks without a layout use the scorecard's ``primary``
# metrics.

USUAL_K = 10
"""Preferred cut-off if there are several."""

_NONE = Layout((), (), ())


def layout_of(task: str, dialect: str) -> Layout:
    """Return the layout of a task in a dialect; an empty one if there is none."""
    layouts = _of(task)
    return layouts.get(dialect) or layouts.get(None) or _NONE


def exact_layout(task: str, dialect: str) -> Layout:
    """Return the layout of a dialect if it shows every digit; otherwise the first that does."""
    layout = layout_of(task, dialect)
    return next((one for one in (layout, *_of(task).values()) if one.exact), layout)


def _of(task: str) -> dict[str | None, Layout]:
    """Return the layouts of a task by dialect; None is the key of the default layout."""
    return getattr(import_module(f"..tasks.{task}.dialects", __package__), "LAYOUTS", {})


_PLACES = {
    "{iou:g}": r"(?P<iou_threshold>\d*\.?\d+)",
    "{percent:g}": r"(?P<percent>\d+)",
    "{area}": r"(?P<area>small|medium|large|easy|moderate|hard)",
    "{cap}": r"(?P<max_detections>\d+)",
}


def by_title(
    task: str, dialect: str, title: str, settled: Collection[str], there: Collection[str]
) -> tuple[str, dict[str, Any]] | None:
    """Return the rows for a title of the tables, so that gates and look-ups have the same meaning.

    COCO's ``AP`` is the mean over thresholds and labels; for one label the mean over thresholds,
    and at a threshold the metric of that name.

    Args:
        there: metrics of the run; columns of other metrics are in no table.

    Returns:
        metric and values of further columns; None if no table has such a title.
    """
    if "iou_threshold" in settled:
        return None
    layout = layout_of(task, dialect)
    labelled = "label_value" in settled or "label_name" in settled
    entries = layout.label_columns if labelled else (*layout.headline, *layout.slice_columns)
    for entry in entries:
        columns = _matching(entry, title) if entry.metric in there else None
        if columns is not None:
            return entry.metric, columns
    return None


def any_title(title: str) -> bool:
    """Return True if the tables of any task and dialect have a title."""
    return any(
        _matching(entry, title) is not None
        for task in NAMES
        for layout in _of(task).values()
        for entry in (*layout.headline, *layout.label_columns, *layout.slice_columns)
    )


def _matching(entry: Entry, title: str) -> dict[str, Any] | None:
    pattern = re.escape(entry.title)
    for place, group in _PLACES.items():
        pattern = pattern.replace(re.escape(place), group)
    match = re.fullmatch(pattern, title, re.IGNORECASE)
    if match is None:
        return None
    values: dict[str, Any] = {}
    for name, text in match.groupdict().items():
        if name == "percent":
            values["iou_threshold"] = int(text) / 100
        elif name == "area":
            values[name] = text.lower()
        else:
            values[name] = float(text) if name == "iou_threshold" else int(text)
    return values


# Tables by label, by slice and by bin, from the metrics frame, which every rendering shares.

Number = float | None
Support = float | str | None
"""Number of rows behind a number; ``5 of 60`` if not all of them could be scored."""

_COLUMNS_PER_ENTRY = 3


class Row(NamedTuple):
    """Line of a table.

    Attributes:
        numbers: one per column; None if undefined.
        parts: one per column if the supports differ: ``5 of 60`` for a number with another support,
            otherwise empty.
        reaches: one per column if intervals were requested: the interval.
        rows: one per column: its row of the metrics frame, or None.
    """

    names: tuple[str, ...]
    numbers: tuple[Number, ...]
    support: Support
    parts: tuple[str, ...] = ()
    reaches: tuple[str, ...] = ()
    rows: tuple[dict[str, Any] | None, ...] = ()


class Grid(msgspec.Struct, frozen=True):
    """Table: row names, one number per column, support.

    Attributes:
        rows: in display order.
        note: thresholds of the columns, if not in their titles.
        counts: one per column, whether its numbers are counts; empty if no column's are.
    """

    title: str
    names: tuple[str, ...]
    columns: tuple[str, ...]
    rows: list[Row]
    undefined: dict[str, list[str]]
    note: str = ""
    hidden: int = 0
    counts: tuple[bool, ...] = ()
    first: str = ""
    frame: str = "metrics"

    def metric(self, at: int) -> str:
        """The metric of a column."""
        return next((one["metric"] for row in self.rows if (one := row.rows[at])), self.first)

    def noted(self, note: str) -> Grid:
        """Return the table with another note."""
        return msgspec.structs.replace(self, note=note)


def label_grid(
    card: Scorecard, rows: pl.DataFrame, key: str | None, listed: Listed, *, wide: bool = False
) -> Grid | None:
    """Return the table of labels, the worst first.

    Args:
        wide: whether to show every column and threshold.
    """
    names = names_of(card.labels, key)

    def named(value: Any) -> tuple[str, ...]:
        return (str(value), names.get(value, "")) if names else (str(value),)

    entries = layout_of(card.task, card.dialect).label_columns
    titles = ("label", "name") if names else ("label",)
    grid = _grid(card, rows, entries, {"label_value": named}, titles, listed, wide=wide)
    return None if grid is None else ordered(card, grid, VALUE)


def names_of(labels: pl.DataFrame, key: str | None) -> dict[Any, str]:
    """Return the names of labels of one key, by value, if different from their values.

    Args:
        key: of the labels; None for those without one.
    """
    selected = labels.filter(pl.col("label_key").eq_missing(pl.lit(key, pl.String)))
    return {
        value: name
        for value, name in selected.select("label_value", "label_name").iter_rows()
        if name is not None and str(value) != name
    }


def slice_grid(
    card: Scorecard,
    rows: pl.DataFrame,
    name: str,
    listed: Listed,
    *,
    by_label: bool = False,
    wide: bool = False,
) -> Grid | None:
    """Return a table of slices, the worst first.

    Args:
        by_label: whether each row is of a slice and a label, for metrics that have no aggregate.
        wide: whether to show every column and threshold.
    """

    def named(value: Any) -> tuple[str, ...]:
        return (str(value),)

    if by_label:
        by = {"slice_value": named, "label_value": named}
        grid = _grid(card, rows, (), by, (name, "label"), listed, wide=wide)
    else:
        entries = layout_of(card.task, card.dialect).slice_columns
        grid = _grid(card, rows, entries, {"slice_value": named}, (name,), listed, wide=wide)
    return None if grid is None else ordered(card, grid, VALUE)


CELLS = 20
"""Maximum number of labels in a matrix, and of pairs of labels if there are more labels."""
_UNMATCHED = "(no truth)", "(missed)"


def pair_name(called: Callable[[Any], str], value: Any, side: int) -> str:
    """Return the name of the actual (side 0) or predicted (side 1) label of a confusion."""
    return _UNMATCHED[side] if value is None else called(value)


def confusion_grid(rows: pl.DataFrame, called: Callable[[Any], str]) -> Grid:
    """Return counts by actual and predicted label, the most frequent label first.

    Of many labels it has the most frequent pairs of different ones, with both as names.

    Args:
        rows: rows of the frame ``confusion`` at one pair of thresholds.
        called: display name of a label.
    """

    named = partial(pair_name, called)
    pairs = rows.select("actual", "predicted", "count")
    values = pl.concat([rows["actual"], rows["predicted"]]).drop_nulls().unique()
    if values.len() > CELLS:
        differ = pl.col("actual").ne_missing(pl.col("predicted"))
        off = pairs.filter(differ, pl.col("count") > 0)
        most = off.sort("count", descending=True, maintain_order=True).head(CELLS)
        lines = [Row((named(a, 0), named(p, 1)), (float(n),), None) for a, p, n in most.iter_rows()]
        note = f"the {len(lines)} most frequent of {off.height:,} pairs off the diagonal"
        names, columns = ("actual", "predicted"), ("count",)
        return Grid("confusion", names, columns, lines, {}, note, 0, (True,), "", "confusion")
    counts = {(a, p): n for a, p, n in pairs.iter_rows()}
    support: dict[Any, int] = {}
    for (a, _), n in counts.items():
        support[a] = support.get(a, 0) + n
    order = sorted(values, key=lambda value: largest_first(support.get(value), (str(value),)))
    actual = [*order, *([None] if any(a is None for a, _ in counts) else [])]
    predicted = [*order, *([None] if any(p is None for _, p in counts) else [])]
    return Grid(
        title="confusion",
        names=("actual \\ predicted",),
        columns=tuple(named(p, 1) for p in predicted),
        rows=[
            Row((named(a, 0),), tuple(float(counts.get((a, p), 0)) for p in predicted), None)
            for a in actual
        ],
        undefined={},
        counts=(True,) * len(predicted),
        frame="confusion",
    )


def counting(card: Scorecard) -> set[str]:
    """Return the metrics whose values are counts."""
    return {metric.name for metric in all_metrics(card.task).values() if metric.counts}


def _grid(
    card: Scorecard,
    rows: pl.DataFrame,
    entries: tuple[Entry, ...],
    keys: Mapping[str, Callable[[Any], tuple[str, ...]]],
    names: tuple[str, ...],
    listed: Listed,
    *,
    wide: bool,
) -> Grid | None:
    """Arrange numbers by the values of columns: those of the layout, then all others.

    Args:
        keys: column -> names of a row by its value.
        names: titles of the names.

    Returns:
        the table; None if there are no numbers.
    """
    by = [*keys]
    grid_columns: list[tuple[str, str, pl.DataFrame]] = []
    hidden = 0
    for entry in entries:
        columns = _entry_columns(rows, entry, by)
        most = len(columns) if wide else _COLUMNS_PER_ENTRY
        grid_columns += columns[:most]
        hidden += len(columns[most:])
        for _, _, part in columns[most:]:
            listed.take(part)
    spread = spread_metrics(card)
    placed = {entry.metric for entry in entries}
    metrics_at: dict[str, list[str]] = {"": sorted(placed)} if grid_columns else {}
    for metric in others(card, rows, placed):
        some = whole(rows.filter(pl.col("metric") == metric), (*_SETTLED, "average"))
        if metric in spread:
            hidden += some["statistic"].n_unique()
            listed.take(some)
            continue
        every = by_threshold(some, most_thresholds(card, wide=wide))
        for spot, at in every:
            if len(every) == 1:
                metrics_at.setdefault(at, []).append(metric)
            variant_words = distinguishing_words(spot)
            groups = spot.group_by(["statistic", "k", "parameters"], maintain_order=True)
            # The usual cut-off is first, as in headlines and verdicts.
            for (statistic, k, parameters), part in sorted(
                groups, key=lambda one: one[0][1] != USUAL_K
            ):
                words = (at_k(metric, k), statistic, at.removeprefix("at ") if every[1:] else "")
                title = " ".join(str(word) for word in words if word)
                part = part.unique(by, keep="first", maintain_order=True)
                grid_columns.append((with_more(title, variant_words[parameters]), metric, part))
    if not grid_columns:
        return None
    column_rows: list[dict[tuple[Any, ...], dict[str, Any]]] = []
    for _, _, part in grid_columns:
        listed.take(part)
        every_row = part.iter_rows(named=True)
        column_rows.append({tuple(row[name] for name in by): row for row in every_row})
    lines = []
    for values in dict.fromkeys(key for column in column_rows for key in column):
        of = [name for key, value in zip(by, values, strict=True) for name in keys[key](value)]
        lines.append(_row(tuple(of), [column.get(values) for column in column_rows]))
    counts = counting(card)
    note = next(iter(metrics_at), "")  # thresholds of the columns, with metrics if they differ
    if len(metrics_at) > 1:
        note = "; ".join(f"{', '.join(some)} {at}" for at, some in metrics_at.items() if at)
    grid = Grid(
        title=names[0],
        names=names,
        columns=tuple(title for title, *_ in grid_columns),
        rows=_with_reaches(lines),
        undefined={},
        note=note,
        hidden=hidden,
        counts=tuple(metric in counts for _, metric, _ in grid_columns),
        first=grid_columns[0][1],
    )
    for line in ordered(card, grid, VALUE).rows:
        row = line.rows[0]
        if row is not None and row["value"] is None and row["reason"] is not None:
            called = (
                line.names[-1] or line.names[0] if names[0] == "label" else " ".join(line.names)
            )
            grid.undefined.setdefault(row["reason"], []).append(called)
    return grid


def _row(names: tuple[str, ...], line: list[dict[str, Any] | None]) -> Row:
    """Make a row of numbers, their common support, and differing supports."""
    supports = [None if one is None else (coverage(one) or one["support"]) for one in line]
    first = next(support for support, one in zip(supports, line, strict=True) if one is not None)
    parts = tuple(
        ""
        if support in (None, first)
        else support
        if isinstance(support, str)
        else f"of {amount(support)}"
        for support in supports
    )
    numbers = tuple(None if one is None else one["value"] for one in line)
    return Row(names, numbers, first, parts if any(parts) else (), (), tuple(line))


def _with_reaches(rows: list[Row]) -> list[Row]:
    """Add the intervals of all numbers, in one form per column."""
    columns = [reaches(column) for column in zip(*(row.rows for row in rows), strict=True)]
    every = zip(*columns, strict=True)
    return [
        row._replace(reaches=intervals if any(intervals) else ())
        for row, intervals in zip(rows, every, strict=True)
    ]


def reaches(rows: Sequence[dict[str, Any] | None], *, bounds: bool = False) -> list[str]:
    """Format the intervals of a column: ``± 0.0120``, or both bounds of all if any is asymmetric.

    Args:
        bounds: always both bounds.
    """
    defined = [one for one in rows if one is not None and None not in (one["lower"], one["upper"])]
    even = not bounds and all(
        abs((one["lower"] + one["upper"]) / 2 - one["value"])
        <= _MIDDLE * (one["upper"] - one["lower"]) / 2
        for one in defined
    )

    def format_interval(row: dict[str, Any] | None) -> str:
        if row is None or None in (row["lower"], row["upper"]):
            return ""
        value, lower, upper = row["value"], row["lower"], row["upper"]
        digits = 0 if value.is_integer() and abs(value) >= 2 else 4
        if even:
            return f"± {fixed((upper - lower) / 2, digits)}"
        return f"[{fixed(lower, digits, ',')}, {fixed(upper, digits, ',')}]"

    return [format_interval(row) for row in rows]


_MIDDLE = 0.1  # maximum offset from an interval's middle, relative to half its length


def coverage(row: dict[str, Any]) -> str:
    """Return ``5 of 60`` for a number whose rows could not all be scored; otherwise ""."""
    scored, support = row["scored"], row["support"]
    if scored is None or scored >= (support or 0):
        return ""
    return f"{amount(scored)} of {amount(support)}"


def spread_metrics(card: Scorecard) -> set[str]:
    """Return the metrics that have a separate table."""
    return {spread.metric for spread in layout_of(card.task, card.dialect).tables}


def spread_grid(rows: pl.DataFrame, spread: Spread, listed: Listed) -> Grid | None:
    """Make a table of a metric by one column, with one column per statistic; None without rows."""
    some = rows.filter(pl.col("metric") == spread.metric)
    if not some.height:
        return None
    listed.take(some)
    statistics = some["statistic"].unique(maintain_order=True).to_list()
    numbers: dict[float, dict[str | None, Number]] = {}
    support: dict[float, int] = {}
    by, form = pl.col(spread.by), ".4f"
    if spread.by not in some.columns:
        form, by = "g", pl.col("parameters").str.json_path_match(f"$.{spread.by}").cast(pl.Float64)
    for at, statistic, value, n in some.select(
        by.alias("by"), "statistic", "value", "support"
    ).iter_rows():
        numbers.setdefault(at, {})[statistic] = value
        support[at] = n
    return Grid(
        title=spread.metric,
        names=(f"{spread.metric} {spread.title}",),
        columns=tuple(str(statistic or spread.metric) for statistic in statistics),
        rows=[
            Row((f"{at:{form}}",), tuple(values.get(one) for one in statistics), support[at])
            for at, values in sorted(numbers.items())
        ],
        undefined={},
    )


_SETTLED = ("area", "max_detections", "parameters")


def _entry_columns(
    rows: pl.DataFrame, entry: Entry, by: list[str]
) -> list[tuple[str, str, pl.DataFrame]]:
    """Return the columns of one entry, one per part and IoU threshold.

    If each row has a different threshold, all are in one column.
    """
    selected = chosen(rows, entry)
    split = ["area"] if entry.area == PARTS else []
    if selected.select(*by, *split).is_duplicated().any():
        split.append("iou_threshold")
    columns = []
    for part in selected.partition_by(split, maintain_order=True) if split else [selected]:
        if part.height:
            part = part.unique(by, keep="first", maintain_order=True)
            columns.append((titled(entry, part.row(0, named=True)), entry.metric, part))
    return columns


def chosen(rows: pl.DataFrame, entry: Entry) -> pl.DataFrame:
    """Return the rows of an entry, in the frame's order."""
    selected = rows.filter(pl.col("metric") == entry.metric)
    if entry.area == PARTS:
        selected = selected.filter(pl.col("area").is_not_null() & (pl.col("area") != "all"))
    else:
        selected = whole(selected, ("area",))
    return selected if entry.cap == EACH else whole(selected, ("max_detections",))


def alias_of(entry: Entry, row: dict[str, Any]) -> str:
    """Return the name of a number in other tools; empty without one."""
    if not entry.alias:
        return ""
    iou_thresholds = json.loads(row["parameters"] or "{}").get("iou_thresholds") or [0.0]
    percents = {"low": 100 * iou_thresholds[0], "high": 100 * iou_thresholds[-1], "percent": 0.0}
    if row["iou_threshold"] is not None:
        percents["percent"] = 100 * row["iou_threshold"]
    return entry.alias.format(**{name: round(value, 4) for name, value in percents.items()})


def titled(entry: Entry, row: dict[str, Any]) -> str:
    iou = row["iou_threshold"]
    # Add a range or cap that the title does not contain, so that all titles differ.
    more = [
        str(row[column])
        for column, place in (("area", "{area}"), ("max_detections", "{cap}"))
        if place not in entry.title and row[column] not in (None, "all")
    ]
    return with_more(
        entry.title.format(
            iou=0.0 if iou is None else round(iou, 6),
            percent=0.0 if iou is None else round(100 * iou, 4),
            area=row["area"] or "all",
            cap="" if row["max_detections"] is None else row["max_detections"],
            k=row["k"],
        ).strip(),
        more if entry.area != PARTS and row["area"] not in (None, "all") else [],
    )


def with_more(title: str, more: list[str]) -> str:
    """Append distinguishing words to a title."""
    return f"{title} ({', '.join(more)})" if more else title


def distinguishing_words(rows: pl.DataFrame) -> dict[str | None, list[str]]:
    """Return distinguishing words for variants of a metric, by their ``parameters``."""
    every = rows["parameters"].unique(maintain_order=True).to_list()
    parameters = {text: json.loads(text) if text else {} for text in every}
    names = dict.fromkeys(
        name for values in parameters.values() for name in values if name != "better"
    )
    differ = [
        name
        for name in names
        if len({repr(values.get(name)) for values in parameters.values()}) > 1
    ]
    return {
        text: [
            f"{name.replace('_', ' ')} "
            + (f"{values[name]:g}" if isinstance(values[name], float) else str(values[name]))
            for name in differ
            if name in values
        ]
        for text, values in parameters.items()
    }


def others(card: Scorecard, rows: pl.DataFrame, names: set[str]) -> list[str]:
    """Return the metrics that the layout does not contain, the primary ones first."""
    present = rows["metric"].unique(maintain_order=True).to_list()
    ordered = [name for name in card.primary if name in present]
    ordered += [name for name in present if name not in ordered]
    return [name for name in ordered if name not in names]


def at_k(metric: str, k: int | None) -> str:
    """Return a metric with its cut-off, such as nDCG@10."""
    return metric if k is None else f"{metric}@{k}"


# A scorecard as a flat dict of plain numbers, for experiment loggers.

_REFUSED = re.compile(r"[^\w.-]+")
"""Characters that MLflow and TensorBoard do not accept in a name, except for the slash."""
_PARTS = (
    ("statistic", "{}"),
    ("average", "{}"),
    ("k", "{}"),
    ("iou_threshold", "iou_{:g}"),
    ("score_threshold", "score_{:g}"),
    ("area", "{}"),
    ("max_detections", "max_{}"),
)
"""Components of a name after the metric, in this order, if the row has them."""
_USUAL = {"area": "all"}
_DIGITS = 6  # of a digest

Spot = tuple[Any, ...]
"""Values of the columns that identify a number."""


def as_dict(
    card: Scorecard,
    prefix: str = "",
    step: int | float | None = None,
    *,
    labels: bool = False,
    slices: bool = False,
    intervals: bool = True,
    undefined: float | None = None,
) -> dict[str, float]:
    """See :meth:`evalengine.Scorecard.to_dict`."""
    rows = card.metrics
    spelt = set(rows["metric"]) if labels else set[str]()
    named = _named(rows, card)
    if not slices:
        rows = rows.filter(pl.col("slice").is_null())
    if not labels:
        # A metric of a single label, such as the positive class, has only this number.
        label = pl.col("label_value")
        none = label.is_null().any().not_()
        single = (none & (label.n_unique() == 1)).over("metric", "slice", "slice_value")
        # Requested metrics with numbers per label only would be missing. AP is not missing if
        # mAP is present.
        means = [name[1:] for name in rows["metric"].unique() if name.startswith("m")]
        only_named = none.over("metric") & ~single & ~pl.col("metric").is_in(means)
        only_named &= pl.lit(card.options.metrics is not None)
        rows = rows.filter(label.is_null() | single | only_named)
        spelt = set(rows.filter(only_named)["metric"])
    result: dict[str, float] = {} if step is None else {f"{prefix}step": step}
    every = [*rows.iter_rows(named=True)]
    for row, name in zip(every, _names(every, named, spelt), strict=True):
        bounds = {"_lower": row["lower"], "_upper": row["upper"]} if intervals else {}
        value = undefined if row["value"] is None else row["value"]
        for end, number in {"": value, **bounds}.items():
            if number is not None:
                result[f"{prefix}{name}{end}"] = float(number)
    return result


def _spot(row: Mapping[str, Any]) -> Spot:
    return (row["metric"], *(row[column] for column in KEYS))


def _named(rows: pl.DataFrame, card: Scorecard) -> dict[Spot, str]:
    """Return titles of numbers that the dialect names differently, such as AP50."""
    layout = _of(card.task).get(card.dialect)
    if layout is None:
        return {}
    label, part = pl.col("label_value"), pl.col("slice")
    result = {}
    for entries, some in (
        (layout.label_columns, rows.filter(label.is_not_null())),
        (layout.slice_columns, rows.filter(label.is_null(), part.is_not_null())),
        (layout.headline, rows.filter(label.is_null(), part.is_null())),
    ):
        for entry in entries:
            for row in chosen(some, entry).iter_rows(named=True):
                result[_spot(row)] = titled(entry, row)
    return result


def _names(
    rows: list[dict[str, Any]], named: Mapping[Spot, str], spelt: Collection[str]
) -> list[str]:
    """Return a unique name per row; ambiguous ones include more of their thresholds."""
    components = [
        _flat_name(row, named.get(_spot(row)), labels=row["metric"] in spelt) for row in rows
    ]
    frequencies = Counter(map(_joined, components))
    for one, row in zip(components, rows, strict=True):
        if frequencies[_joined(one)] > 1 and row["parameters"]:
            parameters = json.loads(row["parameters"])
            one[0] = "_".join([one[0], *(f"{name}_{value}" for name, value in parameters.items())])
    frequencies = Counter(map(_joined, components))
    return [
        _joined(one)
        if frequencies[_joined(one)] == 1
        else f"{_joined(one)}.{hashlib.sha256(repr(_spot(row)).encode()).hexdigest()[:_DIGITS]}"
        for one, row in zip(components, rows, strict=True)
    ]


def _joined(parts: list[str]) -> str:
    return "/".join(_REFUSED.sub("_", part).strip("_") or "_" for part in parts)


def _flat_name(row: Mapping[str, Any], title: str | None, *, labels: bool) -> list[str]:
    """Return the components of a name: the metric and its thresholds, the slice, the label."""
    if title is None:
        parts = [
            form.format(row[column])
            for column, form in _PARTS
            if row[column] is not None and row[column] != _USUAL.get(column)
        ]
        title = "_".join([row["metric"], *parts])
    result = [title]
    if row["slice"] is not None:
        result.append(f"{row['slice']}_{row['slice_value']}")
    if row["label_key"] not in (None, DEFAULT_LABEL_KEY):
        result.append(row["label_key"])
    if labels and row["label_value"] is not None:
        result.append(str(row["label_value"]))
    return result
