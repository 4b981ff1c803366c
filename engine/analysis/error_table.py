"""Found errors: what ``find_errors`` returns."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ..schemas.wording import in_python


class FoundErrors:
    """What is wrong in a run, worst first.

    Attributes:
        datums: the worst datums, as :func:`evalengine.analysis.worst.worst` has them:
            ``datum_id, metric, value, why, parameters``.
        rows: what is wrong in them, row by row of the tables: the ``errors`` frame. None in tasks
            whose datums are judged as wholes.
        n: datums of the run.
        said: what the reader should know, options marked as in :mod:`..schemas.wording`.
    """

    def __init__(
        self, datums: pl.DataFrame, rows: pl.DataFrame | None, n: int, notes: Sequence[str] = ()
    ) -> None:
        self.datums = datums
        self.rows = rows
        self.n = n
        self.said = tuple(notes)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader should know, a sentence each."""
        return tuple(map(in_python, self.said))

    def __len__(self) -> int:
        return self.datums.height

    def __repr__(self) -> str:
        from ..report.found_errors import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from ..report.found_errors import as_html

        return as_html(self)
