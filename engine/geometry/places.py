"""Location of values in a user's table, for errors that name column, count and first rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from evalengine.schemas.errors import InputError

from ..schemas.arrays import Array

_SHOWN = 3
_LONGEST = 80


class Origin(msgspec.Struct, frozen=True, eq=False):
    """Names, for errors, of the rows of a table that was filtered and encoded before geometry is
    parsed.

    Attributes:
        number: maps a row to its number in the user's table, from 0; called only for errors.
        datum: maps a row to its datum id.
    """

    number: Callable[[int], int]
    datum: Callable[[int], Any]

    def told(self, row: int) -> str:
        """``row 17 (datum_id='a')``."""
        return f"row {self.number(row)} (datum_id={self.datum(row)!r})"


class Place(msgspec.Struct, frozen=True, eq=False):
    """Column of a side.

    Attributes:
        side: the table, e.g. ``predictions``.
        rows: int64 [n], row numbers of the values in the table, from 0; None for all, in order.
        origin: the user's names of those rows; None if the numbers are the user's.
    """

    side: str
    column: str
    rows: Array | None = None
    origin: Origin | None = None

    def _at(self, index: int) -> int:
        return index if self.rows is None else int(self.rows[index])

    def row(self, index: int) -> int:
        """The user's row number of a value."""
        at = self._at(index)
        return at if self.origin is None else self.origin.number(at)

    def named(self, index: int) -> str:
        """Return ``row 17``, with the datum's id if known."""
        at = self._at(index)
        return f"row {at}" if self.origin is None else self.origin.told(at)

    def take(self, rows: Array) -> Place:
        """The place of some of the values (integer [k])."""
        numbers = np.asarray(rows) if self.rows is None else self.rows[rows]
        return msgspec.structs.replace(self, rows=numbers)

    def refuse(
        self,
        code: str,
        wrong: Array,
        what: str,
        hint: str,
        told: Callable[[int], Any] | None = None,
        **facts: Any,
    ) -> None:
        """Raise if anything is wrong.

        Args:
            code: that of the error.
            wrong: bool [n].
            what: what is wrong, after the number of rows: ``with ...``, ``without ...``.
            hint: the way out, a sentence.
            told: what to show of a row, by its index.
            **facts: of the error, beside side, column, count and the first rows.

        Raises:
            InputError: naming the column, the count and the first rows.
        """
        found = np.flatnonzero(wrong)
        if not found.size:
            return
        shown = [self._shown(int(i), told) for i in found[:_SHOWN]]
        rows = "row" if found.size == 1 else "rows"
        numbers = [self.row(int(i)) for i in found[:_SHOWN]]
        first = f"first (rows count from 0): {'; '.join(shown)}. {hint}"
        said = f": {found.size:,} {rows} {what}, {first}"
        raise self.error(code, said, count=found.size, rows=numbers, **facts)

    def error(self, code: str, said: str, **facts: Any) -> InputError:
        """Return an error about the column; ``said`` follows its name."""
        start = f"{self.side.replace('_', ' ')}: column {self.column!r}"
        return InputError(f"{start}{said}", code=code, side=self.side, column=self.column, **facts)

    def _shown(self, index: int, told: Callable[[int], Any] | None) -> str:
        name = self.named(index)
        if told is None:
            return name
        text = str(shown(told(index)))
        text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
        return f"{name[:-1]}, {text})" if name.endswith(")") else f"{name} ({text})"


def shown(value: Any) -> Any:
    """Return a value as its user wrote it: a list instead of a Polars series."""
    return value.to_list() if hasattr(value, "to_list") else value
