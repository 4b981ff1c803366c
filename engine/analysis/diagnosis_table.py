"""Result class of ``diagnose``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from .found import Found

if TYPE_CHECKING:
    from ..report.found_rows import Layout


class Diagnosis(Found):
    """Likely causes of a run's errors, most likely first.

    Attributes:
        frame: ``finding`` (String, a sentence), ``share`` (Float64, approximate share of all errors
            that it explains), ``n`` (Int64, affected datums, rows or ground truths) and ``more``
            (String, the command that shows details).
        top: number of findings shown; None for all.
    """

    def __init__(
        self, frame: pl.DataFrame, said: Sequence[str] = (), top: int | None = None
    ) -> None:
        self.frame = frame
        self.said = tuple(said)
        self.top = top

    def __len__(self) -> int:
        return self.frame.height

    @property
    def shown(self) -> pl.DataFrame:
        """The first of them."""
        return self.frame if self.top is None else self.frame.head(self.top)

    def first(self, top: int) -> Diagnosis:
        """The same, of which so many are shown."""
        return Diagnosis(self.frame, self.said, top)

    def _layout(self) -> Layout:
        from ..report.found_diagnosis import LAYOUT

        return LAYOUT
