"""Counts of pixels whose parts are in files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from .parts import GroupsByCode, Parts
from .pixels import Pixels

Array = np.ndarray[Any, Any]


class PixelParts(msgspec.Struct, frozen=True):
    """All counts of a segmentation run, in files of tallies with pixels, labels under its codes.

    Attributes:
        parts: the files.
        declared: bool [n_labels], labels that were declared; None where no label was.
        ignored: bool [n_labels], labels that the ignored index names, which only predictions have.
    """

    parts: Parts
    declared: Array | None
    ignored: Array

    def blocks(
        self, group: GroupsByCode | None
    ) -> Iterator[tuple[Pixels, Array | None, Array | None]]:
        """The counts of each part, the group of each of its datums, and its key."""
        for part in self.parts:
            yield part.rows.pixels, None if group is None else group.of(part.codes), part.keys
