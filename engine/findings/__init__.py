"""Findings: analyses of a run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..schemas.wording import in_python

if TYPE_CHECKING:
    from ..report.findings import Layout

# Base class of the results of findings.


class Found:
    """Base class of the results of analyses.

    Attributes:
        said: notes for the reader, options marked as in :mod:`..schemas.wording`.
        inputs: source files, protected against overwriting.
    """

    said: tuple[str, ...]
    inputs: tuple[str | os.PathLike[str], ...] = ()

    def _layout(self) -> Layout:
        """Return the display layout. Imported on call: programs do not need it."""
        raise NotImplementedError

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the reader, one sentence each."""
        return tuple(map(in_python, self.said))

    def __repr__(self) -> str:
        return self._layout().text(self)

    def _repr_html_(self) -> str:
        return self._layout().html(self)
