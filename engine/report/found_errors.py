"""Display of ``find_errors``: text, Markdown, HTML, or rows for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import polars as pl

from ..ingest.boxes import CORNER_NAMES
from ..ingest.problems import count_of
from .found_rows import Layout, of_frame
from .summary import number

if TYPE_CHECKING:
    from ..analysis.error_table import FoundErrors


def heading(found: FoundErrors) -> str:
    if not len(found):
        return f"nothing is wrong in {count_of(found.n, 'datum')}"
    first = found.datums.row(0, named=True)
    made_with = msgspec.json.decode(first["parameters"]) if first["parameters"] else {}
    at = ", ".join(
        f"{name.replace('_', ' ')} {number(value) if isinstance(value, float) else value}"
        for name, value in made_with.items()
    )
    by = first["metric"] + (f" ({at})" if at else "")
    few = f"{len(found):,} " if len(found) > 1 else ""
    return f"the {few}worst of {count_of(found.n, 'datum')}, by {by}"


def listed(found: FoundErrors, *, rows: bool) -> pl.DataFrame:
    """Return the display frame: rows with their boxes in one column, or datums with their
    number.
    """
    if rows and found.rows is not None:
        boxed = found.rows.with_columns(box_column("")).drop(CORNER_NAMES)
        theirs = [_THEIRS + name for name in CORNER_NAMES]
        boxed = boxed.with_columns(box_column(_THEIRS)).drop(theirs)
        same = [name for name in ("label_key", "iou_threshold") if boxed[name].n_unique() <= 1]
        return named(boxed.drop(same), _LABELS, found.names)
    if not len(found):
        return found.datums.select("datum_id", "value", "why")
    name = found.datums["metric"][0]
    return found.datums.select("datum_id", pl.col("value").alias(name), "why")


_THEIRS = "annotation_"
_LABELS = ("label_value", f"{_THEIRS}label")


def named(frame: pl.DataFrame, columns: Sequence[str], names: Mapping[str, str]) -> pl.DataFrame:
    """Append class names to labels, if they have others."""
    shown = {value: f"{value} {name}" for value, name in names.items()}
    return frame.with_columns(
        pl.col(name).cast(pl.String).replace(shown)
        for name in columns
        if names and name in frame.columns
    )


def box_column(before: str) -> pl.Expr:
    """Return the corners of a box as one string; null if there is none."""
    corners = [pl.col(before + name).round(1) for name in CORNER_NAMES]
    return pl.format("{} {} {} {}", *corners).alias(f"{before}box")


def _frame(found: FoundErrors, *, rows: bool) -> pl.DataFrame:
    return found.rows if rows and found.rows is not None else found.datums


def _layout(*, rows: bool) -> Layout:
    body = of_frame(partial(listed, rows=rows))
    return Layout("errors" if rows else "datums", heading, body, partial(_frame, rows=rows))


LAYOUT = _layout(rows=False)
LAYOUT_OF_ROWS = _layout(rows=True)
