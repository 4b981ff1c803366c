"""Found label errors: what ``find_label_errors`` returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from ..schemas.wording import in_python


class FoundLabelErrors:
    """Ground truths that are likely wrong, the most suspicious first.

    Attributes:
        rows: the ``label_errors`` frame, in order, those beyond ``top`` left out.
        n: how many there are in all.
        said: what the reader should know, options marked as in :mod:`..schemas.wording`.
        names: label value, as text -> name of the class, where it has another.
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

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader should know, a sentence each."""
        return tuple(map(in_python, self.said))

    def __len__(self) -> int:
        return self.rows.height

    def __repr__(self) -> str:
        from ..report.found_label_errors import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from ..report.found_label_errors import as_html

        return as_html(self)
