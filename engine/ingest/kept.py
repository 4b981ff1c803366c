"""Lazy mapping of filtered row numbers to source rows, for error messages."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl


class Kept:
    """Rows of a table that remain after filters, in order.

    Args:
        first: returns the numbers, from 0, of the rows that the first condition kept; called at
            most once, on demand. None if that condition is among the masks.
    """

    def __init__(self, first: Callable[[], pl.Series] | None = None) -> None:
        self._first = first
        self._masks: list[pl.Series] = []
        self._numbers: pl.Series | None = None

    def only(self, mask: pl.Series) -> None:
        """Filter the remaining rows by a Boolean ``mask``."""
        self._masks.append(mask)
        self._numbers = None

    def number(self, row: int) -> int:
        """Return the row number in the source, from 0, of a remaining row."""
        if self._numbers is None:
            masks = iter(self._masks)
            numbers = next(masks).arg_true() if self._first is None else self._first()
            for mask in masks:
                numbers = numbers.filter(mask)
            self._numbers = numbers
        return int(self._numbers[row])
