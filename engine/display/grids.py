"""Tables by label, by slice and by bin, from the metrics frame, which every rendering shares."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from ..lookup import whole
from .layouts import EACH, PARTS, Entry, Spread, layout_of

if TYPE_CHECKING:
    from ..scorecard import Scorecard

Number = float | None
Support = int | str | None
"""How many rows a number rests on; ``5 of 60`` where not all of them could be scored."""

_SPOT = ("iou_threshold", "score_threshold")
_COLUMNS_PER_ENTRY = 3


class Grid(msgspec.Struct, frozen=True):
    """A table: names on the left, one number per column, how many rows each rests on.

    Attributes:
        title: what the rows are.
        names: headers of the name columns.
        columns: headers of the numbers.
        rows: (names, numbers, support) each, in the order they are shown.
        undefined: row names whose first number is undefined, by reason.
        note: what the columns were taken at, if it is not in their titles.
        hidden: how many columns more the metrics frame holds.
        counts: whether the numbers are counts.
    """

    title: str
    names: tuple[str, ...]
    columns: tuple[str, ...]
    rows: list[tuple[tuple[str, ...], tuple[Number, ...], Support]]
    undefined: dict[str, list[str]]
    note: str = ""
    hidden: int = 0
    counts: bool = False


def label_grid(card: Scorecard, rows: pl.DataFrame, key: str | None) -> Grid | None:
    entries = layout_of(card.task, card.dialect).label_columns
    grid = _grid(card, rows, entries, "label_value")
    if grid is None:
        return None
    columns, cells, note, hidden = grid
    known = card.labels.filter(pl.col("label_key").eq_missing(pl.lit(key, pl.String)))
    names = {
        value: name
        for value, name in known.select("label_value", "label_name").iter_rows()
        if name is not None and str(value) != name
    }
    lower = card.directions.get(columns[0][1]) == "lower"
    ranked = sorted(
        cells.items(),
        # Undefined first; then the best, so that the worst is the last line on the screen.
        key=lambda item: (
            item[1][0][0] is not None,
            0 if item[1][0][0] is None else item[1][0][0] * (1 if lower else -1),
        ),
    )
    return Grid(
        title="label",
        names=("label", "name") if names else ("label",),
        columns=tuple(title for title, _ in columns),
        rows=[
            ((str(value), names.get(value, "")) if names else (str(value),), numbers, support)
            for value, (numbers, support, _) in ranked
        ],
        undefined=_reasons(
            (names.get(value, str(value)), reason) for value, (_, _, reason) in ranked
        ),
        note=note,
        hidden=hidden,
    )


_BETWEEN = "\x1f"


def slice_grid(
    card: Scorecard, rows: pl.DataFrame, name: str, *, by_label: bool = False
) -> Grid | None:
    """A table of slices, the worst first.

    Args:
        card: of the run.
        rows: of one slice column.
        name: that column.
        by_label: whether each row is of a slice and a label, for metrics that have no aggregate.
    """
    entries = () if by_label else layout_of(card.task, card.dialect).slice_columns
    names = (name, "label") if by_label else (name,)
    if by_label:
        both = pl.concat_str(
            "slice_value", pl.col("label_value").cast(pl.String), separator=_BETWEEN
        )
        rows = rows.with_columns(slice_value=both)
    grid = _grid(card, rows, entries, "slice_value")
    if grid is None:
        return None
    columns, cells, note, hidden = grid
    sign = -1 if card.directions.get(columns[0][1]) == "lower" else 1
    ranked = sorted(
        cells.items(),  # the worst first; undefined ones behind
        key=lambda item: (item[1][0][0] is None, sign * (item[1][0][0] or 0.0)),
    )
    keys = [value.split(_BETWEEN) if names[1:] else [str(value)] for value, _ in ranked]
    return Grid(
        title=name,
        names=names,
        columns=tuple(title for title, _ in columns),
        rows=[
            (tuple(key), numbers, support)
            for key, (_, (numbers, support, _)) in zip(keys, ranked, strict=True)
        ],
        undefined=_reasons(
            (" ".join(key), reason) for key, (_, (_, _, reason)) in zip(keys, ranked, strict=True)
        ),
        note=note,
        hidden=hidden,
    )


Cells = dict[Any, tuple[tuple[Number, ...], Support, str | None]]


def _grid(
    card: Scorecard, rows: pl.DataFrame, entries: tuple[Entry, ...], by: str
) -> tuple[list[tuple[str, str]], Cells, str, int] | None:
    """Numbers by the values of a column: what the layout places, then all other metrics.

    Returns:
        (title, metric) of each column; value -> (numbers, support, reason); what the columns were
        taken at; how many columns are left out. None where there is nothing to show.
    """
    taken: list[tuple[str, str, pl.DataFrame]] = []
    hidden = 0
    for entry in entries:
        columns = _entry_columns(rows, entry, by)
        taken += columns[:_COLUMNS_PER_ENTRY]
        hidden += len(columns[_COLUMNS_PER_ENTRY:])
    spread = spread_metrics(card)
    placed = {entry.metric for entry in entries}
    spots: dict[str, list[str]] = {"": sorted(placed)} if taken else {}
    for metric in others(card, rows, placed):
        some = whole(rows.filter(pl.col("metric") == metric), (*_SETTLED, "average"))
        if metric in spread:
            hidden += some["statistic"].n_unique()
            continue
        every = at_spots(some)
        for spot, at in every:
            if len(every) == 1:
                spots.setdefault(at, []).append(metric)
            apart = told_apart(spot)
            for (statistic, k, told), part in spot.group_by(
                ["statistic", "k", "parameters"], maintain_order=True
            ):
                words = (at_k(metric, k), statistic, at.removeprefix("at ") if every[1:] else "")
                title = " ".join(str(word) for word in words if word)
                taken.append((with_more(title, apart[told]), metric, part))
    if not taken:
        return None
    found: list[dict[Any, tuple[Number, Support, str | None]]] = [
        {
            row[by]: (row["value"], coverage(row) or row["support"], row["reason"])
            for row in part.iter_rows(named=True)
        }
        for _, _, part in taken
    ]
    cells: Cells = {}
    for value in dict.fromkeys(value for column in found for value in column):
        first = next(column[value] for column in found if value in column)
        numbers = tuple(column.get(value, (None,))[0] for column in found)
        cells[value] = (numbers, first[1], first[2] if first[0] is None else None)
    return [(title, metric) for title, metric, _ in taken], cells, _told(spots), hidden


def confusion_grids(card: Scorecard, key: str | None) -> list[Grid]:
    """The confusion matrix of the whole set at one spot; of many labels its most frequent pairs."""
    if "confusion" not in card.frames:
        return []
    frame = card.confusion.filter(
        pl.col("slice").is_null() & pl.col("label_key").eq_missing(pl.lit(key, pl.String))
    )
    if not frame.height:
        return []
    rows, at = _at_one_spot(frame)
    note = f"confusion {at}".strip()
    labels = pl.concat([rows["actual"], rows["predicted"]]).unique().sort(nulls_last=True)
    counts = {(row["actual"], row["predicted"]): row["count"] for row in rows.iter_rows(named=True)}
    if len(labels) > _MATRIX:
        pairs = sorted(
            ((pair, n) for pair, n in counts.items() if pair[0] != pair[1]), key=lambda one: -one[1]
        )
        shown: list[tuple[tuple[str, ...], tuple[Number, ...], Support]] = [
            (
                (
                    _UNMATCHED[0] if actual is None else str(actual),
                    _UNMATCHED[1] if predicted is None else str(predicted),
                ),
                (float(n),),
                None,
            )
            for (actual, predicted), n in pairs[:_MATRIX]
        ]
        note += f"; the {len(shown)} most frequent of {len(pairs):,} pairs off the diagonal"
        names = ("actual", "predicted")
        return [Grid("confusion", names, ("count",), shown, {}, note, counts=True)]
    values = labels.to_list()
    actual = [value for value in values if any(pair[0] == value for pair in counts)]
    predicted = [value for value in values if any(pair[1] == value for pair in counts)]
    return [
        Grid(
            "confusion",
            ("actual \\ predicted",),
            tuple(_UNMATCHED[1] if p is None else str(p) for p in predicted),
            [
                (
                    (_UNMATCHED[0] if a is None else str(a),),
                    tuple(float(counts.get((a, p), 0)) for p in predicted),
                    None,
                )
                for a in actual
            ],
            {},
            note,
            counts=True,
        )
    ]


_MATRIX = 20
_UNMATCHED = "(no truth)", "(missed)"


def coverage(row: dict[str, Any]) -> str:
    """``5 of 60`` of a number whose rows could not all be scored; empty where they were."""
    scored, support = row["scored"], row["support"]
    return f"{scored} of {support}" if scored is not None and scored < (support or 0) else ""


def _told(spots: dict[str, list[str]]) -> str:
    """Where columns were taken, with the metrics' names where they were not taken alike."""
    if len(spots) == 1:
        return next(iter(spots))
    return "; ".join(f"{', '.join(names)} {at}" for at, names in spots.items() if at)


def spread_metrics(card: Scorecard) -> set[str]:
    """Metrics that have a table of their own."""
    return {spread.metric for spread in layout_of(card.task, card.dialect).tables}


def spread_grid(rows: pl.DataFrame, spread: Spread) -> Grid | None:
    """A metric's rows over one column, a column for each statistic; None without any."""
    some = rows.filter(pl.col("metric") == spread.metric)
    if not some.height:
        return None
    statistics = some["statistic"].unique(maintain_order=True).to_list()
    numbers: dict[float, dict[str | None, Number]] = {}
    support: dict[float, int] = {}
    for at, statistic, value, n in some.select(
        spread.by, "statistic", "value", "support"
    ).iter_rows():
        numbers.setdefault(at, {})[statistic] = value
        support[at] = n
    return Grid(
        title=spread.metric,
        names=(f"{spread.metric} {spread.title}",),
        columns=tuple(str(statistic or spread.metric) for statistic in statistics),
        rows=[
            ((f"{at:.4f}",), tuple(values.get(statistic) for statistic in statistics), support[at])
            for at, values in sorted(numbers.items())
        ],
        undefined={},
    )


_SETTLED = ("area", "max_detections", "parameters")


def _entry_columns(
    rows: pl.DataFrame, entry: Entry, by: str
) -> list[tuple[str, str, pl.DataFrame]]:
    """The columns that one entry makes, one per IoU threshold."""
    found = chosen(rows, entry)
    columns = []
    for iou in found["iou_threshold"].unique(maintain_order=True).to_list():
        part = found.filter(pl.col("iou_threshold").eq_missing(pl.lit(iou, pl.Float64)))
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
    """A title with what tells it from its like."""
    return f"{title} ({', '.join(more)})" if more else title


def told_apart(rows: pl.DataFrame) -> dict[str | None, list[str]]:
    """What tells variants of a metric apart: its ``parameters`` -> words for those that differ."""
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


def at_spots(rows: pl.DataFrame) -> list[tuple[pl.DataFrame, str]]:
    """Of a metric over thresholds: each of a few, the ones nearest 0.5 of many; where each is."""
    columns = [column for column in _SPOT if rows[column].null_count() < rows.height]
    found = rows.select(columns).unique(maintain_order=True).drop_nulls() if columns else None
    if found is None or not 1 < found.height <= _SPOTS:
        return [_at_one_spot(rows)]
    return [
        (rows.filter(*(pl.col(name) == value for name, value in row.items())), _where(row))
        for row in found.sort(columns).iter_rows(named=True)
    ]


_SPOTS = 6


def _where(row: dict[str, float]) -> str:
    said = [f"{_WORDS[name]} {value:g}" for name, value in row.items()]
    return "at " + ", ".join(said) if said else ""


_WORDS = {"iou_threshold": "IoU", "score_threshold": "score"}


def _at_one_spot(rows: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    """Of a metric over a grid of thresholds, those nearest 0.5; and words for where that is."""
    chosen: dict[str, float] = {}
    for column in _SPOT:
        values = rows[column].drop_nulls().unique().sort()
        if len(values):
            chosen[column] = min(values, key=lambda value: abs(value - 0.5))
            rows = rows.filter(pl.col(column) == chosen[column])
    return rows, _where(chosen)


def at_k(metric: str, k: int | None) -> str:
    """A metric with its cut-off, as people write it: nDCG@10."""
    return metric if k is None else f"{metric}@{k}"


def _reasons(pairs: Iterable[tuple[str, str | None]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, reason in pairs:
        if reason is not None:
            found.setdefault(reason, []).append(name)
    return found
