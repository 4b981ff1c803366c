"""Summary of a scorecard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from ..ingest.problems import count_of
from ..schemas.contract import DEFAULT_LABEL_KEY
from ..schemas.display import NAME, NOTE, Column, Entry, Table, texts
from ..schemas.errors import ResultError
from ..scorecard.lookup import whole
from . import text
from .tables import (
    USUAL,
    Grid,
    Listed,
    Look,
    Number,
    Row,
    alias_of,
    arranged,
    at_k,
    by_threshold,
    chosen,
    confusion_grid,
    counting,
    coverage,
    distinguishing_words,
    every_spot,
    exact_layout,
    first_end,
    getting,
    label_grid,
    layout_of,
    most_thresholds,
    names_of,
    numbered,
    ordered,
    others,
    reaches,
    slice_grid,
    spread_grid,
    spread_metrics,
    titled,
    with_more,
)
from .text import UNDEFINED, amount, escaped, number, plain, shorten_distinctly
from .verdicts import title_of

if TYPE_CHECKING:
    from ..scorecard.card import Scorecard

# The confusion matrix as a grid to look at.

_MAX_THRESHOLDS = 3


def confusion_grids(card: Scorecard, key: str | None, *, wide: bool = False) -> list[Grid]:
    """Return the confusion matrix of the whole set; for many labels its most frequent pairs.

    One grid per threshold if they are few, otherwise those nearest 0.5; the last one states the
    omissions.
    """
    if "confusion" not in card.frames:
        return []
    frame = card.frame("confusion").filter(pl.col("label_key").eq_missing(pl.lit(key, pl.String)))
    overall = frame.filter(pl.col("slice").is_null())
    if not overall.height:
        return []
    by_thresholds = by_threshold(overall, most_thresholds(card, _MAX_THRESHOLDS, wide=wide))
    named = _named(names_of(card.labels, key))
    grids = []
    for rows, at in by_thresholds:
        grid = confusion_grid(rows, named)
        grids.append(grid.noted("; ".join(filter(None, (f"confusion {at}".strip(), grid.note)))))
    left = max(1, every_spot(overall).height) - len(by_thresholds)
    n = frame.select("slice", "slice_value").drop_nulls().n_unique()
    rest = [f"{left} more pairs of thresholds" if left > 1 else "1 more pair"] if left else []
    rest += [f"{n} slice{'s' if n > 1 else ''}"] if n else []
    if rest or len(grids[-1].names) > 1:
        message = f"; not shown: {', '.join(rest)}" if rest else ""
        grids[-1] = grids[-1].noted(f"{grids[-1].note}{message}; all: {getting('confusion')}")
    return grids


def _named(names: Mapping[Any, str]) -> Callable[[Any], str]:
    """Return a function for display names of labels, with the value if two have the same name."""
    repeated = {name for name, n in Counter(names.values()).items() if n > 1}

    def called(value: Any) -> str:
        name = names.get(value)
        if name is None:
            return str(value)
        return f"{value} {name}" if name in repeated else name

    return called


# Rows to show, selected from the metrics frame and shared by all renderings.
#
# No metric is hard-coded: the layout lists those that come first; others follow general rules
# (the threshold nearest 0.5, the macro average first).


class Line(msgspec.Struct, frozen=True):
    """One headline number."""

    title: str
    value: Number
    note: str = ""
    reach: str = ""
    row: dict[str, Any] = {}
    counted: bool = False
    alias: str = ""

    @property
    def called(self) -> str:
        """Return the name in other tools with that of this one, for readers of pages."""
        return f"{self.alias} ({self.title})" if self.alias else self.title


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
    result = [
        _section(
            card,  # rows of a single key are not copied: there may be a million
            metrics.filter(of.eq_missing(pl.lit(key, pl.String))) if keys[1:] else metrics,
            key,
            wide=look.wide,
        )
        for key in keys
    ]
    tables = [grid for one in result for grid in (one.labels, *one.slices) if grid is not None]
    order = iter(arranged(card, tables, look.sort))
    return [
        msgspec.structs.replace(
            one,
            labels=None if one.labels is None else next(order),
            slices=[next(order) for _ in one.slices],
        )
        for one in result
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
    lines, _ = _headline(card, rows, entries, Listed(), rest=False)
    return [(line.title, line.value) for line in lines]


def exact_headline(card: Scorecard) -> bool:
    """Return True if the headline shows every digit."""
    return layout_of(card.task, card.dialect).exact


def _section(card: Scorecard, rows: pl.DataFrame, key: str | None, *, wide: bool) -> Section:
    layout = layout_of(card.task, card.dialect)
    overall = rows.filter(pl.col("slice").is_null())
    aggregates = overall.filter(pl.col("label_value").is_null())
    listed = Listed()
    headline, undefined = _headline(card, aggregates, layout.headline, listed, wide=wide)
    tables = [grid for spread in layout.tables if (grid := spread_grid(aggregates, spread, listed))]
    tables += confusion_grids(card, key, wide=wide)
    per_label = overall.filter(pl.col("label_value").is_not_null())
    if card.options.metrics is not None:
        headline += _of_one_label(card, per_label, aggregates)
    every = reaches([line.row for line in headline])
    headline = [
        msgspec.structs.replace(line, reach=reach)
        for line, reach in zip(headline, every, strict=True)
    ]
    labels = label_grid(card, per_label, key, listed, wide=wide)
    sliced = pl.col("slice").is_not_null()
    of_all = rows.filter(sliced, pl.col("label_value").is_null())
    # Tables of slices by label have only metrics without an aggregate, by name or by layout.
    aggregated = set(of_all["metric"].unique())
    if aggregated.intersection(entry.metric for entry in layout.slice_columns):
        aggregated.update(entry.metric for entry in layout.label_columns)
    by_label_rows = rows.filter(
        sliced, pl.col("label_value").is_not_null(), ~pl.col("metric").is_in(list(aggregated))
    )
    slices = [
        grid
        for name in rows["slice"].drop_nulls().unique(maintain_order=True).to_list()
        for some, by_label in ((of_all, False), (by_label_rows, True))
        if (
            grid := slice_grid(
                card, some.filter(slice=name), name, listed, by_label=by_label, wide=wide
            )
        )
    ]
    unshown = listed.unshown(rows)
    return Section(key, headline, tables, labels, slices, undefined, unshown)


def _of_one_label(card: Scorecard, per_label: pl.DataFrame, aggregates: pl.DataFrame) -> list[Line]:
    """Return the numbers of metrics with a single row, of one label, such as binary ROCAUC."""
    of = pl.col("metric")
    single = per_label.filter(
        pl.len().over("metric") == 1, ~of.is_in(aggregates["metric"].unique().implode())
    )
    counts = counting(card)
    return [
        Line(
            f"{row['metric']} of {row['label_value']}",
            row["value"],
            row=row,
            counted=row["metric"] in counts,
        )
        for row in single.iter_rows(named=True)
    ]


def lead(card: Scorecard) -> Line | None:
    """Return the first number of the whole set that the tables show; None without any."""
    rows = numbered(card.metrics.filter(pl.col("slice").is_null()))
    if not rows.height:
        return None
    key = rows["label_key"][0]
    rows = rows.filter(pl.col("label_key").eq_missing(pl.lit(key, pl.String)))
    aggregates = rows.filter(pl.col("label_value").is_null())
    layout = layout_of(card.task, card.dialect)
    lines, _ = _headline(card, aggregates, layout.headline, Listed())
    if not lines:
        row = rows.row(0, named=True)
        title = f"{title_of(row)} of {row['label_value']}"
        counted = row["metric"] in counting(card)
        lines = [Line(title, row["value"], row=row, counted=counted)]
    first = lines[0]
    if key in (None, DEFAULT_LABEL_KEY):
        return first
    return msgspec.structs.replace(first, title=f"{key} {first.title}")


def _headline(
    card: Scorecard,
    rows: pl.DataFrame,
    entries: tuple[Entry, ...],
    listed: Listed,
    *,
    rest: bool = True,
    wide: bool = False,
) -> tuple[list[Line], dict[str, list[str]]]:
    lines: list[Line] = []
    undefined: dict[str, list[str]] = {}
    counts = counting(card)

    def add(row: dict[str, Any], title: str, note: str = "", alias: str = "") -> None:
        part = coverage(row)
        message = ", ".join(filter(None, (note, part and f"{part} scored")))
        whole_number = row["metric"] in counts
        lines.append(Line(title, row["value"], message, "", row, whole_number, alias))
        if row["value"] is None:
            undefined.setdefault(row["reason"] or "undefined", []).append(title)

    for entry in entries:
        selected = chosen(rows, entry)
        listed.take(selected)
        for row in selected.iter_rows(named=True):
            add(row, titled(entry, row), alias=alias_of(entry, row))
    placed = {entry.metric for entry in entries} | spread_metrics(card)
    for metric in others(card, rows, placed) if rest else ():
        some = rows.filter(pl.col("metric") == metric)
        rows_of = whole(some, ("area", "max_detections", "parameters"))
        for spot, note in by_threshold(rows_of, most_thresholds(card, wide=wide)):
            listed.take(spot)
            words = distinguishing_words(spot)
            for row in spot.iter_rows(named=True):
                parts = (at_k(row["metric"], row["k"]), row["statistic"], row["average"])
                title = " ".join(part for part in parts if part)
                add(row, with_more(title, words[row["parameters"]]), note)
    return lines, undefined


# Short forms of a scorecard: prompt text and Markdown, built from sections without rich.

BEST = 5
WORST = 10
SLICES = 30
BINS = 30
_NAMED = 3
_NAME_WIDTH = 26


def cells(grid: Grid, row: Row) -> list[str]:
    """Return the numbers of a row, with their support if it differs from the row's support."""
    values = [
        number(value, counted=counted)
        for value, counted in zip(
            row.numbers, grid.counts or (False,) * len(row.numbers), strict=True
        )
    ]
    parts = row.parts or ("",) * len(values)
    reaches = row.reaches or ("",) * len(values)
    return [
        " ".join(filter(None, (one, reach, part and f"({part})")))
        for one, reach, part in zip(values, reaches, parts, strict=True)
    ]


def figure(line: Line) -> str:
    """Format a headline number, with its interval if there is one."""
    return f"{number(line.value, counted=line.counted)} {line.reach}".rstrip()


def supported(row: Row) -> str:
    """Format the support of a row."""
    if row.support is None or isinstance(row.support, str):
        return row.support or ""
    return amount(row.support)


def limited(grid: Grid, first: int, last: int, look: Look = USUAL) -> tuple[list[Row], int, int]:
    """Return the first and last rows of a long table; undefined rows are dropped first.

    Args:
        first: rows kept at the top.
        last: rows kept at the end.
        look: may override both.

    Returns:
        rows; index of the gap; number of omitted rows.
    """
    if look.top is not None:
        first, last = look.top or len(grid.rows), 0
    elif look.sort is not None:
        first, last = first + last, 0
    if len(grid.rows) <= first + last:
        return grid.rows, 0, 0
    rows = [row for row in grid.rows if row.numbers[0] is not None] or grid.rows
    if len(rows) < first + last:  # all defined rows; a gap marks the others
        return rows, len(rows), len(grid.rows) - len(rows)
    tail = rows[len(rows) - last :] if last else []
    return [*rows[:first], *tail], first, len(grid.rows) - first - last


def reasons(undefined: dict[str, list[str]], kind: str = "") -> list[str]:
    """Return one line per reason for undefined numbers."""
    lines = []
    for reason, names in undefined.items():
        message = ", ".join(plain(name) for name in names[:_NAMED])
        rest = len(names) - _NAMED
        if rest > 0:
            message += f" and {rest} more"
        lines.append(f"{UNDEFINED} {reason}: {kind}{message}")
    return lines


def heading(card: Scorecard) -> str:
    """Return a line with task, dialect and the tables that were read."""
    message = f"{card.task}, dialect {card.dialect}"
    read = [
        f"{n:,} {name.replace('_', ' ').removesuffix('s' * (n == 1))}"
        + (f" in {count_of(card.files[name], 'file')}" if name in card.files else "")
        for name, n in card.read.items()
    ]
    return f"{message}: {', '.join(read)}" if read else message


def made(card: Scorecard) -> list[tuple[str, int]]:
    """Return the requested frames other than metrics, with their heights.

    Curves are included only if a metric that fills them was requested by name.
    """
    names = [name for name in card.frames if name not in ("metrics", "curves")]
    if card.options.metrics is not None and "curves" in card.frames and card.height("curves"):
        names.insert(0, "curves")
    return [(name, card.height(name)) for name in names]


def also_made(card: Scorecard, *, written: bool = False) -> str:
    """Return a line that names the frames other than metrics and how to get them; may be empty.

    Args:
        written: all of them are already saved in a folder.
    """
    rows = dict(made(card))
    frames = ", ".join(f"{name}{row_counts(rows, name)}" for name in rows)
    rest = "" if written else ", write all with --out"
    return f"also made: {frames}; print one with --frame{rest}" if frames else ""


def unnumbered(card: Scorecard, has_numbers: bool) -> str:
    """Return the text shown if there are no numbers; otherwise empty.

    Args:
        has_numbers: there are numbers or tables.
    """
    if has_numbers:
        return ""
    return "numbers are in the frames below" if made(card) else "no numbers"


def ordered_notes(card: Scorecard) -> list[tuple[str, str]]:
    """Return (kind, note) pairs, warnings first."""
    rest = [note for note in card.notes if note not in card.warnings]
    return [*(("warning", one) for one in card.warnings), *(("note", one) for one in rest)]


def tables_of(section: Section) -> list[Grid]:
    return [grid for grid in (*section.tables, section.labels, *section.slices) if grid is not None]


def footnotes(section: Section) -> list[str]:
    """Return the reasons for undefined numbers of a section, each label once."""
    lines = reasons(section.undefined)
    if section.labels is not None:
        lines += reasons(section.labels.undefined, "label ")
    for grid in section.slices:
        lines += reasons(grid.undefined, f"{grid.title} ")
    return [*lines, section.unshown] if section.unshown else lines


def as_text(card: Scorecard) -> str:
    """Return the text for the prompt: the headline, the worst labels, other frames."""
    lines = [f"Scorecard: {heading(card)}"]
    all_sections = sections(card)
    for section in all_sections:
        if headed(section, all_sections):
            lines.append(f"{plain(section.label_key or '')}:")
        width = max((len(line.title) for line in section.headline), default=0)
        lines += [
            f"  {line.title:<{width}}  {figure(line)}" + (f"  {line.note}" if line.note else "")
            for line in section.headline
        ]
        lines += [
            f"  {grid.title}: {count_of(len(grid.rows), 'row')}"
            + (f", {grid.note}" if grid.note else "")
            for grid in section.tables
        ]
        if section.labels is not None:
            labels = section.labels
            headed_by = {line.row.get("metric") for line in section.headline}
            description = _first_rows(card, labels)
            if card.options.metrics is not None:  # also those that were asked for by name
                places = range(1, len(labels.columns))
                description += "".join(
                    _first_rows(card, labels, at)
                    for at in places
                    if labels.metric(at) not in headed_by
                )
            lines.append(f"  {count_of(len(labels.rows), 'label')}{description}")
        lines += [
            f"  {len(grid.rows)} of {' x '.join(grid.names)}{_first_rows(card, grid)}"
            for grid in section.slices
        ]
        lines += [f"  {line}" for line in footnotes(section)]
    if empty := unnumbered(card, len(lines) > 1):
        lines.append(f"  {empty}")
    lines += [f"  {kind}: {plain(note)}" for kind, note in ordered_notes(card)]
    rows = dict(made(card))
    frames = [f"{name}{row_counts(rows, name)}" for name in card.frames]
    lines.append(f"  frames: {', '.join(frames) or 'none'}")
    return "\n".join(lines)


def row_counts(rows: dict[str, int], name: str) -> str:
    return f" ({rows[name]} row{'s' if rows[name] != 1 else ''})" if name in rows else ""


def headed(section: Section, sections: Sequence[Section]) -> bool:
    """Return True if a section needs its label key as title: one of several, or not the default."""
    keys = sum(one.label_key is not None for one in sections)  # custom metrics have none
    return section.label_key is not None and (keys > 1 or section.label_key != DEFAULT_LABEL_KEY)


def _first_rows(card: Scorecard, grid: Grid, at: int = 0) -> str:
    """Describe the first rows of a table by a column; empty if it has no direction."""
    best_first = layout_of(card.task, card.dialect).best_first
    end = first_end(card.directions.get(grid.metric(at)), best_first=best_first)
    if end == "lowest":
        return ""
    rows = ordered(card, grid, grid.columns[at].lower()).rows[:_NAMED]
    rows = [row for row in rows if row.numbers[at] is not None]
    names = shorten_distinctly((plain(" ".join(row.names)) for row in rows), _NAME_WIDTH)
    first_rows = [
        f"{name} {cells(grid, row)[at]}"
        + (f" ({row.support})" if at == 0 and isinstance(row.support, str) else "")
        for name, row in zip(names, rows, strict=True)
    ]
    return f"; {end} {grid.columns[at]}: {', '.join(first_rows)}" if first_rows else ""


def markdown(
    card: Scorecard, *, frames: bool = True, written: bool = False, look: Look = USUAL
) -> str:
    """Return headline, per-label table and slices as Markdown.

    Args:
        frames: name the frames other than metrics.
        written: all frames are already saved in a folder.
        look: order and number of rows; all rows unless it sets a number.
    """
    parts = [f"**{escaped(heading(card))}**"]
    exact = exact_headline(card)
    all_sections = sections(card, look)
    for section in all_sections:
        if headed(section, all_sections):
            parts.append(f"### label key {escaped(section.label_key or '')}")
        if section.headline:
            parts.append(text.markdown(headline_table(section, exact=exact)))
        for grid in tables_of(section):
            rows, _, left_out = limited(grid, len(grid.rows), 0, look)
            parts.append(text.markdown(grid_table(grid, rows)))
            notes = [*remarks(grid), *([f"and {left_out:,} more rows"] if left_out else [])]
            parts += [escaped("; ".join(notes))] if notes else []
        parts += [f"- {escaped(line)}" for line in footnotes(section)]
    if empty := unnumbered(card, bool(all_sections)):
        parts.append(empty)
    parts += [f"- {kind}: {escaped(note)}" for kind, note in ordered_notes(card)]
    if frames and (line := also_made(card, written=written)):
        parts.append(f"- {escaped(line)}")
    parts.append(f"- cite: {text.code(card.cite)}")
    return "\n\n".join(parts).replace("\n\n- ", "\n- ") + "\n"


def headline_table(section: Section, *, exact: bool = False) -> Table:
    """Return the headline as a table, without empty columns.

    Args:
        exact: add every digit.
    """
    columns = [Column("metric", NAME), Column("value"), Column("exact"), Column("at", NOTE)]
    rows = [
        texts(
            line.title,
            figure(line),
            "" if not exact else UNDEFINED if line.value is None else repr(line.value),
            line.note,
        )
        for line in section.headline
    ]
    return Table(columns, rows).filled()


def grid_table(grid: Grid, rows: Sequence[Row]) -> Table:
    """Return rows of a grid as a table, without empty columns."""
    titles = [*grid.columns, "support"]
    columns = [*(Column(name, NAME) for name in grid.names), *map(Column, titles)]
    lines = [texts(*row.names, *cells(grid, row), supported(row)) for row in rows]
    return Table(columns, lines).filled()


def remarks(grid: Grid) -> list[str]:
    """Return remarks on a table: thresholds of its columns, and hidden columns."""
    result = [grid.note] if grid.note else []
    if grid.hidden:
        result.append(
            f"{grid.hidden} more column{'s' * (grid.hidden > 1)} in the metrics frame:"
            f" {getting('metrics')}"
        )
    return result
