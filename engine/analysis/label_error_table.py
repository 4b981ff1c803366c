"""Result class of ``find_label_errors``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl

from .found import Found

if TYPE_CHECKING:
    from ..report.found_rows import Layout


class FoundLabelErrors(Found):
    """Ground truths that are likely wrong, most suspicious first.

    Attributes:
        rows: the first ``top`` rows of the ``label_errors`` frame, in order.
        n: number of suspicious ground truths, shown or not.
        names: label value, as text -> name of the class, if it has another.
    """

    def __init__(
        self,
        rows: pl.DataFrame,
        n: int,
        notes: Sequence[str] = (),
        names: Mapping[str, str] | None = None,
    ) -> None:
        self.rows = rows
        self.n = n
        self.names = dict(names or {})
        self.said = tuple(notes)

    def __len__(self) -> int:
        return self.rows.height

    def _layout(self) -> Layout:
        from ..report.found_label_errors import LAYOUT

        return LAYOUT
