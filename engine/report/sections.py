"""Rows to show, selected from the metrics frame and shared by all renderings.

No metric is hard-coded: the layout lists those that come first; others follow general rules (the
threshold nearest 0.5, the macro average first).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from ..schemas.errors import ResultError
from ..schemas.layouts import Entry
from ..scorecard.lookup import whole
from .confusion import confusion_grids
from .grids import (
    Grid,
    Number,
    Row,
    at_k,
    chosen,
    counting,
    coverage,
    label_grid,
    others,
    reach,
    slice_grid,
    spread_grid,
    spread_metrics,
    titled,
    told_apart,
    with_more,
)
from .layouts import exact_layout, layout_of
from .look import USUAL, Look, arranged
from .shown import Shown, numbered
from .spots import at_spots, spots

if TYPE_CHECKING:
    from ..scorecard.card import Scorecard

__all__ = ["Grid", "Line", "Number", "Row", "Section", "coco_numbers", "exact_headline", "sections"]


class Line(msgspec.Struct, frozen=True):
    """One headline number."""

    title: str
    value: Number
    note: str = ""
    reach: str = ""
    row: dict[str, Any] = {}
    counted: bool = False


class Section(msgspec.Struct, frozen=True):
    """Report content for one label key.

    Attributes:
        headline: aggregates of the whole set.
        tables: metrics that have a separate table, and confusion matrices.
        slices: tables of slices, and of slices by label for metrics without an aggregate.
        undefined: reason -> titles of undefined headline numbers.
        unshown: the remaining rows of the metrics frame, and how to get them.
    """

    label_key: str | None
    headline: list[Line]
    tables: list[Grid]
    labels: Grid | None
    slices: list[Grid]
    undefined: dict[str, list[str]]
    unshown: str = ""


def sections(card: Scorecard, look: Look = USUAL) -> list[Section]:
    """Return the sections of a scorecard, one per label key.

    Raises:
        OptionError: no table has the column to sort by.
    """
    metrics = numbered(card.metrics)
    keys = metrics["label_key"].unique(maintain_order=True).to_list()
    if not keys and "confusion" in card.frames:
        keys = card.frame("confusion")["label_key"].unique(maintain_order=True).to_list()
    of = pl.col("label_key")
    found = [
        _section(card, metrics.filter(of.eq_missing(pl.lit(key, pl.String))), key, wide=look.wide)
        for key in keys
    ]
    tables = [grid for one in found for grid in (one.labels, *one.slices) if grid is not None]
    order = iter(arranged(card, tables, look.sort))
    return [
        msgspec.structs.replace(
            one,
            labels=None if one.labels is None else next(order),
            slices=[next(order) for _ in one.slices],
        )
        for one in found
    ]


def coco_numbers(card: Scorecard) -> list[tuple[str, Number]]:
    """Return COCO's numbers under COCO's names.

    Raises:
        ResultError: there are several label keys, which COCO does not support.
    """
    whole_set = pl.col("slice").is_null() & pl.col("label_value").is_null()
    rows = numbered(card.metrics.filter(whole_set))
    keys = rows["label_key"].unique(maintain_order=True).to_list()
    if len(keys) > 1:
        raise ResultError(
            f"COCO's numbers are of one label key, and this result has {len(keys)}:"
            f" {', '.join(map(repr, keys))}."
        )
    entries = exact_layout(card.task, card.dialect).headline
    lines, _ = _headline(card, rows, entries, Shown(), rest=False)
    return [(line.title, line.value) for line in lines]


def exact_headline(card: Scorecard) -> bool:
    """Return True if the headline shows every digit."""
    return layout_of(card.task, card.dialect).exact


def _section(card: Scorecard, rows: pl.DataFrame, key: str | None, *, wide: bool) -> Section:
    layout = layout_of(card.task, card.dialect)
    overall = rows.filter(pl.col("slice").is_null())
    aggregates = overall.filter(pl.col("label_value").is_null())
    shown = Shown()
    headline, undefined = _headline(card, aggregates, layout.headline, shown, wide=wide)
    tables = [grid for spread in layout.tables if (grid := spread_grid(aggregates, spread, shown))]
    tables += confusion_grids(card, key, wide=wide)
    per_label = overall.filter(pl.col("label_value").is_not_null())
    if card.options.metrics is not None:
        headline += _of_one_label(card, per_label, aggregates)
    labels = label_grid(card, per_label, key, shown, wide=wide)
    sliced = rows.filter(pl.col("slice").is_not_null())
    of_all = sliced.filter(pl.col("label_value").is_null())
    # The label table has the metrics without an aggregate of this name or by another's layout.
    aggregated = set(of_all["metric"].unique())
    if aggregated.intersection(entry.metric for entry in layout.slice_columns):
        aggregated.update(entry.metric for entry in layout.label_columns)
    alone = sliced.filter(
        pl.col("label_value").is_not_null(), ~pl.col("metric").is_in(list(aggregated))
    )
    slices = [
        grid
        for name in sliced["slice"].unique(maintain_order=True).to_list()
        for some, by_label in ((of_all, False), (alone, True))
        if (
            grid := slice_grid(
                card, some.filter(slice=name), name, shown, by_label=by_label, wide=wide
            )
        )
    ]
    unshown = shown.unshown(rows)
    return Section(key, headline, tables, labels, slices, undefined, unshown)


def _of_one_label(card: Scorecard, per_label: pl.DataFrame, aggregates: pl.DataFrame) -> list[Line]:
    """Numbers of metrics that have one row, of one label, such as ROCAUC of two classes."""
    of = pl.col("metric")
    alone = per_label.filter(
        pl.len().over("metric") == 1, ~of.is_in(aggregates["metric"].unique().implode())
    )
    counts = counting(card)
    return [
        Line(
            f"{row['metric']} of {row['label_value']}",
            row["value"],
            row=row,
            reach=reach(row),
            counted=row["metric"] in counts,
        )
        for row in alone.iter_rows(named=True)
    ]


def _headline(
    card: Scorecard,
    rows: pl.DataFrame,
    entries: tuple[Entry, ...],
    shown: Shown,
    *,
    rest: bool = True,
    wide: bool = False,
) -> tuple[list[Line], dict[str, list[str]]]:
    lines: list[Line] = []
    undefined: dict[str, list[str]] = {}
    counts = counting(card)

    def add(row: dict[str, Any], title: str, note: str = "") -> None:
        part = coverage(row)
        said = ", ".join(filter(None, (note, part and f"{part} scored")))
        whole_number = row["metric"] in counts
        lines.append(Line(title, row["value"], said, reach(row), row, whole_number))
        if row["value"] is None:
            undefined.setdefault(row["reason"] or "undefined", []).append(title)

    for entry in entries:
        found = chosen(rows, entry)
        shown.take(found)
        for row in found.iter_rows(named=True):
            add(row, titled(entry, row))
    placed = {entry.metric for entry in entries} | spread_metrics(card)
    for metric in others(card, rows, placed) if rest else ():
        some = rows.filter(pl.col("metric") == metric)
        rows_of = whole(some, ("area", "max_detections", "parameters"))
        for spot, note in at_spots(rows_of, spots(card, wide=wide)):
            shown.take(spot)
            apart = told_apart(spot)
            for row in spot.iter_rows(named=True):
                parts = (at_k(row["metric"], row["k"]), row["statistic"], row["average"])
                title = " ".join(part for part in parts if part)
                add(row, with_more(title, apart[row["parameters"]]), note)
    return lines, undefined
