"""Maps of segments: ids from the colours of a file, whole numbers, or masks painted one by one."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial

import numpy as np

from ...geometry.masks import boundary_depth
from ...ingest.label_map_sets import is_coloured
from ...kernels.segment_edges import colour_ids, segment_edges
from ...schemas.arrays import Array
from ...schemas.errors import InputError
from .histograms import narrowed
from .rasters import Map, MapRow, Window

_COLOURS = (3, 4)
"""Bands of a file whose colours are ids; a fourth one is how opaque pixels are."""


class IdMap(Map):
    """A map of segment ids, 0 for none: R + 256 G + 65536 B of an image, or its single band.

    Args:
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
        """Return the ids of a window, integers [rows, columns].

        Raises:
            InputError: an id below 0, or a truncated file.
        """
        if self.file is not None and self.coloured:
            # Read all bands at once, and without a window if all is requested: GDAL then unpacks a
            # PNG
            # in a quarter of the time of line-by-line reading.
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
    """Open a label map; pixels are packed colours if its coding is of colours."""
    return (IdMap if is_coloured(place.coding) else Map)(place, stack)


class EdgeMap(IdMap):
    """A segment map without the interior of segments, far from their edges.

    It is read whole, since edges cannot be computed per window.

    Args:
        stack: closes it.
        ratio: width of edges, as a share of the image's diagonal.
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
        """Return the ids of a window, :data:`.INSIDE` for interior pixels."""
        if self._edges is None:
            height, width = np.array(self.shape)
            depth = int(boundary_depth(height, width, self._ratio))
            ids = narrowed(super().read(self.whole)).astype(np.int32, copy=False)
            self._edges = segment_edges(ids, depth)
        return self._edges[window.top : window.bottom, window.left : window.right]


def edge_maps(ratio: float) -> partial[EdgeMap]:
    """Return the function that opens maps of edges, for :func:`.count_maps`."""
    return partial(EdgeMap, ratio=ratio)
