"""Result class of ``find_errors``."""

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
    """Errors of a run, worst first.

    Attributes:
        datums: the worst datums, see :func:`evalengine.analysis.worst.worst`: ``datum_id, metric,
            value, why, parameters``.
        rows: wrong rows of these datums: the rows of the ``errors`` frame that the metric of
            ``datums`` counts, at its IoU and score threshold. None in tasks that judge whole
            datums, and for a scored run that has no such frame.
        rowless: reason why ``rows`` is None; otherwise None.
        n: number of datums of the run.
        said_of_rows: notes on rows that are not included, options marked as in ``said``.
        names: label value, as text -> name of the class, if it has another.
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
        """Notes for the reader, one sentence each."""
        return tuple(map(in_python, (*self.said, *self.said_of_rows)))

    def write(self, form: str, path: str | Path) -> int:
        """Write ``rows`` as tasks for an image annotation tool.

        Args:
            form: ``label-studio``, ``cvat`` (for images 1.1), or ``coco``, which FiftyOne reads,
                with the properties of each error as attributes.
            path: the file, written atomically.

        Returns:
            number of images.

        Raises:
            ResultError: there are no rows; the message gives the reason.
            InputError: image sizes that the format needs are unknown.
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
