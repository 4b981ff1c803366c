"""Found errors: what ``find_errors`` returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from ..overwriting import refuse
from ..schemas.errors import ResultError
from ..schemas.wording import in_python
from .found import Found

if TYPE_CHECKING:
    from ..report.found_rows import Layout


class FoundErrors(Found):
    """What is wrong in a run, worst first.

    Attributes:
        datums: the worst datums, as :func:`evalengine.analysis.worst.worst` has them:
            ``datum_id, metric, value, why, parameters``.
        rows: what is wrong in them, row by row of the tables: of the ``errors`` frame what the
            number of ``datums`` counts, at its IoU and score threshold. None in tasks whose
            datums are judged as wholes, and of a scored run that keeps none.
        rowless: why there are no rows; None where there are.
        n: datums of the run.
        said_of_rows: which rows are not among them, options marked likewise.
        names: label value, as text -> name of the class, where it has another.
    """

    def __init__(
        self,
        datums: pl.DataFrame,
        rows: pl.DataFrame | None,
        n: int,
        *,
        rowless: str | None = None,
        images: Callable[[], pl.DataFrame | None] | None = None,
        notes: Sequence[str] = (),
        of_rows: Sequence[str] = (),
        names: Mapping[str, str] | None = None,
    ) -> None:
        self.datums = datums
        self.rows = rows
        self.n = n
        self.rowless = rowless
        self._images = images
        self.said = tuple(notes)
        self.said_of_rows = tuple(of_rows)
        self.names = dict(names or {})

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader should know, a sentence each."""
        return tuple(map(in_python, (*self.said, *self.said_of_rows)))

    def write(self, form: str, path: str | Path) -> int:
        """Write ``rows`` as tasks for a tool in which people look at images.

        Args:
            form: ``label-studio``, ``cvat`` (for images 1.1), or ``coco``, which FiftyOne reads,
                with what is told of each error as attributes.
            path: the file; it stands whole or not at all.

        Returns:
            how many images it has.

        Raises:
            ResultError: there are no rows; says why.
            InputError: sizes of images that the form asks for are unknown.
        """
        from ..exports.review import write

        refuse(path, self.inputs)
        if self.rows is None:
            raise ResultError(f"there is nothing to draw: {self.rowless}.", code="not_kept")
        images = None if self._images is None else self._images()
        return write(self.rows, images, form, path)

    def __len__(self) -> int:
        return self.datums.height

    def _layout(self) -> Layout:
        from ..report.found_errors import LAYOUT

        return LAYOUT
