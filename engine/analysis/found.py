"""What is found in a run: rows, notes, and how both are shown."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..schemas.wording import in_python

if TYPE_CHECKING:
    from ..report.found_rows import Layout


class Found:
    """Something that was found in a run.

    Attributes:
        said: what the reader should know, options marked as in :mod:`..schemas.wording`.
        inputs: files that it was found in, which are not written over.
    """

    said: tuple[str, ...]
    inputs: tuple[str | os.PathLike[str], ...] = ()

    def _layout(self) -> Layout:
        """How it is shown; imported where it is, since programs need none."""
        raise NotImplementedError

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader should know, a sentence each."""
        return tuple(map(in_python, self.said))

    def __repr__(self) -> str:
        return self._layout().text(self)

    def _repr_html_(self) -> str:
        return self._layout().html(self)
