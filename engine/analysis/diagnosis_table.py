"""What is likely wrong in a run: what ``diagnose`` returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from .found import Found

if TYPE_CHECKING:
    from ..report.found_rows import Layout


class Diagnosis(Found):
    """What is most likely wrong, the likeliest first.

    Attributes:
        frame: ``finding`` (String, in words), ``share`` (Float64, of all that is wrong, about how
            much it explains), ``n`` (Int64, datums, rows or ground truths that it is about) and
            ``more`` (String, the command that tells more).
        top: how many are shown; None for all.
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
