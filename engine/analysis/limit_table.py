"""Result class of ``find_limits``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ..ingest.problems import count_of, listing
from .found import Found

if TYPE_CHECKING:
    from ..report.found_rows import Layout

_SAME = 1e-12
"""Ends closer than this are one number."""
_MOVES = pl.col("value").is_not_null() & (
    (pl.col("highest") - pl.col("lowest") > _SAME).fill_null(value=True)
)


class FoundLimits(Found):
    """Bounds of numbers under choices that the protocol does not fix.

    Attributes:
        frame: one row per number and kind of choice: the key columns of the frame ``metrics``,
            ``value``, ``limit`` (String), ``lowest`` and ``highest`` (Float64), and ``bound``
            (String), see :func:`evalengine.find_limits`.
        every: whether all rows are shown; otherwise only numbers over all labels and datums that
            some choice moves, widest first.
    """

    def __init__(self, frame: pl.DataFrame, *, every: bool = False) -> None:
        self.frame = frame
        self.every = every
        self.shown, self.said = (frame, ()) if every else _shown(self.moving)

    def __len__(self) -> int:
        return self.shown.height

    @property
    def moving(self) -> pl.DataFrame:
        """Rows of numbers that some choice moves, or of which no ends are known."""
        return self.frame.filter(_MOVES)

    @property
    def moved(self) -> int:
        """Count the numbers that some choice moves."""
        return self._numbers(self.moving).height

    @property
    def unmoved(self) -> int:
        """Count the numbers that no tried choice moved; untried ones might."""
        tried = self.frame.filter(bound="at least").drop_nulls("value")
        others = self._numbers(tried).join(
            self._numbers(self.moving), on=self._names, how="anti", nulls_equal=True
        )
        return others.height

    def _numbers(self, rows: pl.DataFrame) -> pl.DataFrame:
        return rows.select(self._names).unique()

    @property
    def _names(self) -> list[str]:
        return self.frame.columns[: self.frame.columns.index("value")]

    @property
    def whole(self) -> FoundLimits:
        """The same, showing every row."""
        return FoundLimits(self.frame, every=True)

    def _layout(self) -> Layout:
        from ..report.found_limits import LAYOUT

        return LAYOUT


def _shown(rows: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Return the numbers over all labels and datums, widest first, and notes about the others."""
    said = []
    single = pl.col("label_value").is_not_null() | pl.col("slice").is_not_null()
    if rows.filter(~single).height and (left := rows.filter(single).height):
        rows = rows.filter(~single)
        said.append(f"{count_of(left, 'number')} of single labels and slices left out.")
    blind = pl.col("bound").is_in(["range", "unknown"])
    for (limit,), group in rows.filter(blind).group_by("limit", maintain_order=True):
        names = list(dict.fromkeys(group["metric"]))
        said.append(f"{limit}: no bounds are known of {listing(names)}, but their range.")
    rows = rows.filter(~blind)
    if said:
        said.append("all rows are in frame, and shown by --all.")
    width = pl.col("highest") - pl.col("lowest")
    return rows.sort(width, descending=True, maintain_order=True), tuple(said)
