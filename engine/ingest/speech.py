"""What a task calls its datums."""

from __future__ import annotations

from typing import NamedTuple


class Speech(NamedTuple):
    """What a task calls its datums.

    Attributes:
        column: the column of ids.
        one: word for one.
        many: word for several.
    """

    column: str = "datum_id"
    one: str = "datum"
    many: str = "datums"

    def named(self, column: str) -> str:
        """A column as the user knows it."""
        return self.column if column == "datum_id" else column


PLAIN = Speech()
