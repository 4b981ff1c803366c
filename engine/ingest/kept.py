"""Which rows of its source a filtered table has, found out only once an error names one."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl


class Kept:
    """The rows that conditions left of a table, in order.

    Args:
        first: numbers of the rows, from 0, that the first condition left; called at most once, and
            only where a number is asked for. None where that condition is among the masks.
    """

    def __init__(self, first: Callable[[], pl.Series] | None = None) -> None:
        self._first = first
        self._masks: list[pl.Series] = []
        self._numbers: pl.Series | None = None

    def only(self, mask: pl.Series) -> None:
        """Of the rows left so far keep those where the Boolean ``mask`` is true."""
        self._masks.append(mask)
        self._numbers = None

    def number(self, row: int) -> int:
        """The number in the source, from 0, of a row of what is left."""
        if self._numbers is None:
            masks = iter(self._masks)
            numbers = next(masks).arg_true() if self._first is None else self._first()
            for mask in masks:
                numbers = numbers.filter(mask)
            self._numbers = numbers
        return int(self._numbers[row])
