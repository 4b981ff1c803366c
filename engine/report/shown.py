"""Tracking of the metrics rows that tables show; the rest is listed, with how to get it."""

from __future__ import annotations

import polars as pl

ROW = "row of the frame"
"""Column with the row index, used while sections are built."""
_APART = {
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
    """The rows with their places in a column."""
    return rows.with_row_index(ROW)


class Shown:
    """Collector of the rows that some table or line shows."""

    def __init__(self) -> None:
        self._places: list[pl.Series] = []

    def take(self, rows: pl.DataFrame) -> None:
        """Record rows as shown, or as included in a count of hidden rows."""
        self._places.append(rows[ROW])

    def unshown(self, rows: pl.DataFrame) -> str:
        """Describe the rows that are not shown; empty if there are none."""
        places = pl.concat(self._places) if self._places else pl.Series(dtype=pl.UInt32)
        known = rows[ROW].is_in(places.unique().implode())
        left, there = rows.filter(~known), rows.filter(known)
        if not left.height:
            return ""
        kinds: dict[str, list[str]] = {}
        for metric in left["metric"].unique(maintain_order=True):
            chosen = pl.col("metric") == metric
            what = _differing(left.filter(chosen), there.filter(chosen))
            kinds.setdefault(what, []).append(metric)
        said = [f"{', '.join(names)} ({what})" for what, names in kinds.items()]
        n = left.height
        count = f"{n:,} row{'s' if n > 1 else ''}"
        return f"not shown: {'; '.join(said)}: {count}; all: {getting('metrics')}"


def getting(frame: str) -> str:
    """Return the two ways to get all rows of a frame."""
    return f"card.{frame}, --frame {frame}"


def _differing(left: pl.DataFrame, there: pl.DataFrame) -> str:
    """Describe how the hidden rows of a metric differ from its shown rows."""
    sliced, labelled = pl.col("slice").is_not_null(), pl.col("label_value").is_not_null()
    said = []
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
        more = [more for column in _APART if (more := _more(some, like, column))]
        if like.height:
            word += f": {', '.join(more) or 'other combinations'}"
        said.append(word)
    return "; ".join(said)


def _more(left: pl.DataFrame, there: pl.DataFrame, column: str) -> str:
    """The values of a column that the rows which are shown do not have."""
    more = left[column].drop_nulls().unique(maintain_order=True)
    more = more.filter(~more.is_in(there[column].unique().implode()))
    if column in _BY_NAME and 0 < more.len() <= _NAMED:
        return f"{_APART[column]} {', '.join(more)}"
    n = more.len()
    return f"{n} more {_APART[column]}{'s' if n > 1 else ''}" if n else ""
