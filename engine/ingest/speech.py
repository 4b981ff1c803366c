"""Nouns for datums, per task."""

from __future__ import annotations

from typing import NamedTuple


class Speech(NamedTuple):
    """Nouns for the datums of a task."""

    column: str = "datum_id"
    one: str = "datum"
    many: str = "datums"

    def named(self, column: str) -> str:
        """A column as the user knows it."""
        return self.column if column == "datum_id" else column


PLAIN = Speech()
