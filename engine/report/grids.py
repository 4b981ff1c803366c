"""Tables by label, by slice and by bin, from the metrics frame, which every rendering shares."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import polars as pl

from ..metrics import all_metrics
from ..schemas.layouts import EACH, PARTS, Entry, Spread
from ..scorecard.lookup import whole
from .layouts import USUAL_K, layout_of
from .shown import Shown
from .spots import at_spots
from .spots import spots as spots_shown

if TYPE_CHECKING:
    from ..scorecard.card import Scorecard

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

    def noted(self, note: str) -> Grid:
        """The same table with another note."""
        return msgspec.structs.replace(self, note=note)


def label_grid(
    card: Scorecard, rows: pl.DataFrame, key: str | None, shown: Shown, *, wide: bool = False
) -> Grid | None:
    """Return the table of labels, the worst last.

    Args:
        wide: whether to show every column and threshold.
    """
    entries = layout_of(card.task, card.dialect).label_columns
    grid = _grid(card, rows, entries, "label_value", shown, wide=wide)
    if grid is None:
        return None
    columns, cells, note, hidden = grid
    names = names_of(card.labels, key)
    lower = card.directions.get(columns[0][1]) == "lower"
    ranked = sorted(
        cells.items(),
        # Undefined first; then the best, so that the worst is the last line on the screen.
        key=lambda item: (
            item[1][0].numbers[0] is not None,
            (item[1][0].numbers[0] or 0.0) * (1 if lower else -1),
        ),
    )
    return Grid(
        title="label",
        names=("label", "name") if names else ("label",),
        columns=tuple(title for title, _ in columns),
        rows=[
            line._replace(names=(str(value), names.get(value, "")) if names else (str(value),))
            for value, (line, _) in ranked
        ],
        undefined=_reasons((names.get(value, str(value)), reason) for value, (_, reason) in ranked),
        note=note,
        hidden=hidden,
        counts=tuple(metric in counting(card) for _, metric in columns),
        first=columns[0][1],
    )


def names_of(labels: pl.DataFrame, key: str | None) -> dict[Any, str]:
    """Return the names of labels of one key, by value, if different from their values.

    Args:
        key: of the labels; None for those without one.
    """
    known = labels.filter(pl.col("label_key").eq_missing(pl.lit(key, pl.String)))
    return {
        value: name
        for value, name in known.select("label_value", "label_name").iter_rows()
        if name is not None and str(value) != name
    }


_BETWEEN = "\x1f"
_BOTH = "slice and label"


def slice_grid(
    card: Scorecard,
    rows: pl.DataFrame,
    name: str,
    shown: Shown,
    *,
    by_label: bool = False,
    wide: bool = False,
) -> Grid | None:
    """Return a table of slices, the worst first.

    Args:
        by_label: whether each row is of a slice and a label, for metrics that have no aggregate.
        wide: whether to show every column and threshold.
    """
    entries = () if by_label else layout_of(card.task, card.dialect).slice_columns
    names = (name, "label") if by_label else (name,)
    if by_label:
        both = pl.concat_str(
            "slice_value", pl.col("label_value").cast(pl.String), separator=_BETWEEN
        )
        rows = rows.with_columns(both.alias(_BOTH))
    by = _BOTH if by_label else "slice_value"
    grid = _grid(card, rows, entries, by, shown, wide=wide)
    if grid is None:
        return None
    columns, cells, note, hidden = grid
    sign = -1 if card.directions.get(columns[0][1]) == "lower" else 1
    ranked = sorted(
        cells.items(),  # the worst first; undefined ones behind
        key=lambda item: (
            item[1][0].numbers[0] is None,
            sign * (item[1][0].numbers[0] or 0.0),
        ),
    )
    keys = [value.split(_BETWEEN) if names[1:] else [str(value)] for value, _ in ranked]
    return Grid(
        title=name,
        names=names,
        columns=tuple(title for title, _ in columns),
        rows=[
            line._replace(names=tuple(key))
            for key, (_, (line, _)) in zip(keys, ranked, strict=True)
        ],
        undefined=_reasons(
            (" ".join(key), reason) for key, (_, (_, reason)) in zip(keys, ranked, strict=True)
        ),
        note=note,
        hidden=hidden,
        counts=tuple(metric in counting(card) for _, metric in columns),
        first=columns[0][1],
    )


def counting(card: Scorecard) -> set[str]:
    """Metrics whose values are whole numbers."""
    return {metric.name for metric in all_metrics(card.task).values() if metric.counts}


Cells = dict[Any, tuple[Row, str | None]]
"""Value of a column -> its numbers without names, and why the first is undefined."""


def _grid(
    card: Scorecard,
    rows: pl.DataFrame,
    entries: tuple[Entry, ...],
    by: str,
    shown: Shown,
    *,
    wide: bool,
) -> tuple[list[tuple[str, str]], Cells, str, int] | None:
    """Arrange numbers by the values of a column: those of the layout, then all other metrics.

    Returns:
        (title, metric) of each column; the cells; thresholds of the columns; number of omitted
        columns. None if there are no numbers.
    """
    taken: list[tuple[str, str, pl.DataFrame]] = []
    hidden = 0
    for entry in entries:
        columns = _entry_columns(rows, entry, by)
        most = len(columns) if wide else _COLUMNS_PER_ENTRY
        taken += columns[:most]
        hidden += len(columns[most:])
        for _, _, part in columns[most:]:
            shown.take(part)
    spread = spread_metrics(card)
    placed = {entry.metric for entry in entries}
    spots: dict[str, list[str]] = {"": sorted(placed)} if taken else {}
    for metric in others(card, rows, placed):
        some = whole(rows.filter(pl.col("metric") == metric), (*_SETTLED, "average"))
        if metric in spread:
            hidden += some["statistic"].n_unique()
            shown.take(some)
            continue
        every = at_spots(some, spots_shown(card, wide=wide))
        for spot, at in every:
            if len(every) == 1:
                spots.setdefault(at, []).append(metric)
            apart = told_apart(spot)
            groups = spot.group_by(["statistic", "k", "parameters"], maintain_order=True)
            # The usual cut-off leads, as it does in headlines and verdicts.
            for (statistic, k, told), part in sorted(groups, key=lambda one: one[0][1] != USUAL_K):
                words = (at_k(metric, k), statistic, at.removeprefix("at ") if every[1:] else "")
                title = " ".join(str(word) for word in words if word)
                part = part.unique(by, keep="first", maintain_order=True)
                taken.append((with_more(title, apart[told]), metric, part))
    if not taken:
        return None
    found: list[dict[Any, dict[str, Any]]] = []
    for _, _, part in taken:
        shown.take(part)
        found.append({row[by]: row for row in part.iter_rows(named=True)})
    cells: Cells = {}
    for value in dict.fromkeys(value for column in found for value in column):
        line = [column.get(value) for column in found]
        reason = line[0]["reason"] if line[0] is not None and line[0]["value"] is None else None
        cells[value] = (_row(line), reason)
    return [(title, metric) for title, metric, _ in taken], cells, _told(spots), hidden


def _row(line: list[dict[str, Any] | None]) -> Row:
    """Convert the rows of one line to numbers, common support, and differing supports."""
    rests = [None if one is None else (coverage(one) or one["support"]) for one in line]
    first = next(rest for rest, one in zip(rests, line, strict=True) if one is not None)
    parts = tuple("" if rest in (None, first) else _rest(rest) for rest in rests)
    numbers = tuple(None if one is None else one["value"] for one in line)
    reaches = tuple("" if one is None else reach(one) for one in line)
    parts, reaches = parts if any(parts) else (), reaches if any(reaches) else ()
    return Row((), numbers, first, parts, reaches, tuple(line))


def reach(row: dict[str, Any]) -> str:
    """Format the interval of a number: ``± 0.0120``, or both bounds if it is asymmetric."""
    value, lower, upper = row["value"], row["lower"], row["upper"]
    if lower is None or upper is None:
        return ""
    digits = 0 if value.is_integer() and abs(value) >= 2 else 4
    half = (upper - lower) / 2
    if abs((lower + upper) / 2 - value) <= _MIDDLE * half:
        return f"± {fixed(half, digits)}"
    return f"[{fixed(lower, digits)}, {fixed(upper, digits)}]"


def fixed(value: float, digits: int, sign: str = "") -> str:
    """Format with fixed decimals, or with an exponent for more than 15 integer digits."""
    return f"{value:{sign}.{digits}f}" if abs(value) < _LONG else f"{value:{sign}.6g}"


_LONG = 1e15
_MIDDLE = 0.1  # of half its length, how far the number may be off an interval's middle


def amount(rows: float) -> str:
    """Format a number of rows, or their total weight."""
    return fixed(rows, 0 if float(rows).is_integer() else 2)


def _rest(rest: Support) -> str:
    if rest is None or isinstance(rest, str):
        return rest or ""
    return f"of {amount(rest)}"


def coverage(row: dict[str, Any]) -> str:
    """Return ``5 of 60`` for a number whose rows could not all be scored; otherwise ""."""
    scored, support = row["scored"], row["support"]
    if scored is None or scored >= (support or 0):
        return ""
    return f"{amount(scored)} of {amount(support)}"


def _told(spots: dict[str, list[str]]) -> str:
    """Return the thresholds of columns, with the metrics' names if they differ."""
    if len(spots) == 1:
        return next(iter(spots))
    return "; ".join(f"{', '.join(names)} {at}" for at, names in spots.items() if at)


def spread_metrics(card: Scorecard) -> set[str]:
    """Return the metrics that have a separate table."""
    return {spread.metric for spread in layout_of(card.task, card.dialect).tables}


def spread_grid(rows: pl.DataFrame, spread: Spread, shown: Shown) -> Grid | None:
    """A metric's rows over one column, a column for each statistic; None without any."""
    some = rows.filter(pl.col("metric") == spread.metric)
    if not some.height:
        return None
    shown.take(some)
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
    rows: pl.DataFrame, entry: Entry, by: str
) -> list[tuple[str, str, pl.DataFrame]]:
    """Return the columns of one entry, one per part and IoU threshold.

    If each row has a different threshold, all are in one column.
    """
    found = chosen(rows, entry)
    split = ["area"] if entry.area == PARTS else []
    if found.select(by, *split).is_duplicated().any():
        split.append("iou_threshold")
    columns = []
    for part in found.partition_by(split, maintain_order=True) if split else [found]:
        if part.height:
            part = part.unique(by, keep="first", maintain_order=True)
            columns.append((titled(entry, part.row(0, named=True)), entry.metric, part))
    return columns


def chosen(rows: pl.DataFrame, entry: Entry) -> pl.DataFrame:
    """The rows an entry is about, in the frame's order."""
    found = rows.filter(pl.col("metric") == entry.metric)
    if entry.area == PARTS:
        found = found.filter(pl.col("area").is_not_null() & (pl.col("area") != "all"))
    else:
        found = whole(found, ("area",))
    return found if entry.cap == EACH else whole(found, ("max_detections",))


def titled(entry: Entry, row: dict[str, Any]) -> str:
    iou = row["iou_threshold"]
    # A range or cap that the title has no place for is added, so that no two lines look alike.
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


def told_apart(rows: pl.DataFrame) -> dict[str | None, list[str]]:
    """Return distinguishing words for variants of a metric, by their ``parameters``."""
    every = rows["parameters"].unique(maintain_order=True).to_list()
    told = {text: json.loads(text) if text else {} for text in every}
    names = dict.fromkeys(name for values in told.values() for name in values)
    differ = [
        name for name in names if len({repr(values.get(name)) for values in told.values()}) > 1
    ]
    return {
        text: [
            f"{name.replace('_', ' ')} {_short(values[name])}" for name in differ if name in values
        ]
        for text, values in told.items()
    }


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def others(card: Scorecard, rows: pl.DataFrame, shown: set[str]) -> list[str]:
    """Metrics that the layout does not place, the scorecard's primary ones first."""
    there = rows["metric"].unique(maintain_order=True).to_list()
    ordered = [name for name in card.primary if name in there]
    ordered += [name for name in there if name not in ordered]
    return [name for name in ordered if name not in shown]


def at_k(metric: str, k: int | None) -> str:
    """A metric with its cut-off, as people write it: nDCG@10."""
    return metric if k is None else f"{metric}@{k}"


def _reasons(pairs: Iterable[tuple[str, str | None]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, reason in pairs:
        if reason is not None:
            found.setdefault(reason, []).append(name)
    return found
