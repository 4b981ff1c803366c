"""Sources of each image's map: a file, an array, or masks painted into one."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ...geometry.masks import Masks, read_masks, to_pixels
from ...ingest.problems import count_of
from ...schemas.arrays import Array
from ...schemas.errors import InputError
from ..pixels.rasters import MapRow
from ..pixels.sides import Side
from ..workers import Workers

_SHOWN = 3


def map_places(
    side: Side, ids: Array, n_datums: int, workers: Workers
) -> tuple[list[MapRow | None], Array]:
    """Return the map of every datum, and the id of every row in it.

    Args:
        side: rows of segments.
        ids: int64 [n], id of each row, -1 for none.
        n_datums: number of datums.

    Returns:
        for each datum its map, None if the side does not have it; int64 [n], ids, with masks
        without
        one numbered in row order, from 1.

    Raises:
        InputError: an image with two maps, or with masks of two sizes.
        ReadError: missing files.
    """
    out: list[MapRow | None] = [None] * n_datums
    none = np.zeros(side.frame.height, bool)
    masked, mapped = (
        side.frame[name].is_not_null().to_numpy() if name in side.frame.columns else none
        for name in ("mask", "raster")
    )
    of_masks = np.zeros(n_datums, bool)
    of_masks[side.datum[masked]] = True
    painted = np.flatnonzero(of_masks[side.datum])
    if painted.size:
        ids = _paint(side, painted[masked[painted]], ids, out, workers)
    rows = np.flatnonzero(mapped & ~of_masks[side.datum])
    if rows.size:
        _refuse_two_maps(side, rows)
        codes, first = np.unique(side.datum[rows], return_index=True)
        places = side.places(rows[first])
        for code, row in zip(codes.tolist(), rows[first].tolist(), strict=True):
            out[code] = places[row]
    return out, ids


def _refuse_two_maps(side: Side, rows: Array) -> None:
    """Refuse an image whose rows name several maps."""
    names = [name for name in ("raster", "raster_band") if name in side.frame.columns]
    if side.frame["raster"].dtype != pl.String:  # pixels: that of the first row counts
        names = names[1:]
    if not names:
        return
    seen = side.frame[rows].select(names).with_columns(datum=side.datum[rows], row=rows)
    several = (
        seen.group_by("datum", maintain_order=True)
        .agg(pl.col("row").first(), pl.struct(names).n_unique().alias("n"))
        .filter(pl.col("n") > 1)
    )
    if several.height:
        raise InputError(
            f"{side.row(several['row'][0])}: {count_of(several.height, 'image')} whose rows name"
            " several maps. All segments of an image are in one: was an image predicted twice?",
            code="repeated_values",
            column="raster",
            count=several.height,
        )


def _paint(
    side: Side, rows: Array, ids: Array, out: list[MapRow | None], workers: Workers
) -> Array:
    """Places of images whose segments are masks, painted when they are looked at."""
    masks = read_masks(
        side.frame["mask"].gather(rows), side=side.role, over=workers.over, rows=rows
    )
    order = np.argsort(side.datum[rows], kind="stable")
    codes, first = np.unique(side.datum[rows][order], return_index=True)
    ids = ids.copy()
    for code, own in zip(codes.tolist(), np.split(order, first[1:]), strict=True):
        if (ids[rows[own]] < 0).all():
            ids[rows[own]] = np.arange(1, own.size + 1)
        size = np.unique(np.stack([masks.height[own], masks.width[own]]), axis=1)
        if size.shape[1] > 1:
            raise InputError(
                f"{side.row(int(rows[own[0]]))}: masks of one image are of several sizes (height x"
                f" width): {', '.join(f'{h} x {w}' for h, w in size.T[:_SHOWN])}. Write all at the"
                " size of the image.",
                code="sizes_differ",
                rows=[int(rows[own[0]])],
            )
        if (ids[rows[own]] < 0).any():
            raise InputError(
                f"{side.row(int(rows[own[0]]))}: some masks of the image have a segment_id and some"
                " have none. Give each one, or none.",
                code="null_values",
                column="segment_id",
            )
        pixels = _Painted(side, masks, own, rows, ids[rows[own]])
        out[code] = MapRow(int(rows[own[0]]), side.row, pixels)
    return ids


class _Painted:
    """The map of one image, painted from its masks on access.

    Args:
        side: for messages.
        masks: of all images.
        own: indices of the image's masks.
        rows: row of each mask in its table.
        ids: of the image's masks.
    """

    dtype = np.dtype(np.int64)

    def __init__(self, side: Side, masks: Masks, own: Array, rows: Array, ids: Array) -> None:
        self._side, self._masks, self._own, self._rows, self._ids = side, masks, own, rows, ids
        self.shape = int(masks.height[own[0]]), int(masks.width[own[0]])
        self.size = self.shape[0] * self.shape[1]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return the ids, int64 [height, width].

        Raises:
            InputError: masks that overlap.
        """
        here = np.zeros(self.shape, np.int64)
        for i, one in zip(self._own.tolist(), self._ids.tolist(), strict=True):
            pixels = to_pixels(self._masks, i) != 0
            taken = int((here[pixels] != 0).sum())
            if taken:
                raise InputError(
                    f"{self._side.row(int(self._rows[i]))}: its mask shares"
                    f" {count_of(taken, 'pixel')} with another one of the image. A pixel is of one"
                    " segment: take them off one of the two.",
                    code="segments_overlap",
                    count=taken,
                )
            here[pixels] = one
        return here
