"""Maps of segments: ids from the colours of a file, whole numbers, or masks painted one by one."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np

from ...geometry.masks import boundary_depth
from ...ingest.label_map_sets import is_coloured
from ...kernels.segment_edges import colour_ids, segment_edges
from ...schemas.errors import InputError
from .histograms import narrowed
from .rasters import Map, MapRow, Window

Array = np.ndarray[Any, Any]

_COLOURS = (3, 4)
"""Bands of a file whose colours are ids; a fourth one is how opaque pixels are."""


class IdMap(Map):
    """A map of segment ids, 0 for none: R + 256 G + 65536 B of a picture, or its only band.

    Args:
        place: where it is.
        stack: closes it.

    Raises:
        InputError: a file that cannot be read, or whose pixels are not ids.
    """

    def _band(self) -> int:
        self.coloured = self.place.band is None and self.file.count in _COLOURS
        if not self.coloured:
            return super()._band()
        if self.file.dtypes[0] != "uint8":
            raise InputError(
                f"{self.place.named}: {self.place.path!r} has colours of {self.file.dtypes[0]}, and"
                " ids are R + 256 G + 65536 B of bytes. Write the file with 8 bits a colour."
            )
        return 1

    def read(self, window: Window) -> Array:
        """The ids of a window, integers [rows, columns].

        Raises:
            InputError: an id below 0, or a file that breaks off.
        """
        if self.file is not None and self.coloured:
            # All bands at once, and where all is wanted without a window: GDAL unpacks a PNG whole
            # in a quarter of the time it takes line by line.
            return colour_ids(self._read(self.file, None, None if window == self.whole else window))
        ids = super().read(window)
        if ids.dtype.kind == "i" and ids.size and ids.min() < 0:
            raise InputError(
                f"{self.place.named}: its map has the id {ids.min()}: ids are whole numbers from 1,"
                " and 0 where there is no segment.",
                code="too_low",
                value=int(ids.min()),
            )
        return ids


def map_of(place: MapRow, stack: ExitStack) -> Map:
    """A label map, whose pixels are packed colours where its coding is of colours."""
    return (IdMap if is_coloured(place.coding) else Map)(place, stack)


class EdgeMap(IdMap):
    """The same map, in which what is inside of segments and far from their edge is left out.

    It is read whole, since edges are not seen by windows.

    Args:
        place: where it is.
        stack: closes it.
        ratio: how far is far, as a share of the image's diagonal.
    """

    def __init__(self, place: MapRow, stack: ExitStack, ratio: float) -> None:
        super().__init__(place, stack)
        self._ratio = ratio
        self._edges: Array | None = None

    @property
    def by_blocks(self) -> bool:
        """No block can be seen without the others."""
        return False

    def read(self, window: Window) -> Array:
        """The ids of a window, :data:`.INSIDE` for pixels that are left out."""
        if self._edges is None:
            height, width = np.array(self.shape)
            depth = int(boundary_depth(height, width, self._ratio))
            ids = narrowed(super().read(self.whole)).astype(np.int32, copy=False)
            self._edges = segment_edges(ids, depth)
        return self._edges[window.top : window.bottom, window.left : window.right]


def edge_maps(ratio: float) -> partial[EdgeMap]:
    """What opens maps of edges, as :func:`.count_maps` takes it."""
    return partial(EdgeMap, ratio=ratio)
