"""Where values stand in a user's table, for errors that name column, count and first rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from evalengine.schemas.errors import InputError

Array = np.ndarray[Any, Any]

_SHOWN = 3
_LONGEST = 80


class Place(msgspec.Struct, frozen=True, eq=False):
    """A column of a side.

    Attributes:
        side: the table, e.g. ``predictions``.
        column: its name there.
        rows: int64 [n], the row numbers of the values in the user's table, counted from 0; None
            where they are all of them, in order.
    """

    side: str
    column: str
    rows: Array | None = None

    def row(self, index: int) -> int:
        """The user's row number of a value."""
        return index if self.rows is None else int(self.rows[index])

    def refuse(
        self, wrong: Array, what: str, hint: str, told: Callable[[int], Any] | None = None
    ) -> None:
        """Raise if anything is wrong.

        Args:
            wrong: bool [n].
            what: what is wrong, after the number of rows: ``with ...``, ``without ...``.
            hint: the way out, a sentence.
            told: what to show of a row, by its index.

        Raises:
            InputError: naming the column, the count and the first rows.
        """
        found = np.flatnonzero(wrong)
        if not found.size:
            return
        shown = [self._shown(int(i), told) for i in found[:_SHOWN]]
        rows = "row" if found.size == 1 else "rows"
        raise InputError(
            f"{self.side.replace('_', ' ')}: column {self.column!r}: {found.size:,} {rows} {what},"
            f" first (rows count from 0): {'; '.join(shown)}. {hint}"
        )

    def _shown(self, index: int, told: Callable[[int], Any] | None) -> str:
        if told is None:
            return f"row {self.row(index)}"
        text = str(shown(told(index)))
        text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
        return f"row {self.row(index)} ({text})"


def shown(value: Any) -> Any:
    """A value of a column as its user wrote it: a list where Polars has a series."""
    return value.to_list() if hasattr(value, "to_list") else value
