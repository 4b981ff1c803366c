"""Segmentations as pycocotools takes them, polygons and codes of either form, as masks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from ...geometry.masks import Masks, concat, read_masks
from ...geometry.polygons import rasterise, read_polygons
from ...geometry.ranges import Over, offsets_of
from ...schemas.arrays import Array
from ...tasks.detection.layers import BoxLayer, MaskLayer, Shapes
from ...tasks.detection.shapes import in_order


def of_boxes(boxes: Any) -> Shapes:
    """Convert boxes to shapes, with the corners that ``kernels.boxes`` computes.

    Args:
        boxes: float64 [n, 4], x, y, width and height.
    """
    boxes = np.asarray(boxes, np.float64).reshape(-1, 4)
    corners = np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], axis=1)
    return Shapes((BoxLayer(boxes[:, 2] * boxes[:, 3], corners),), corners)


def of_masks(masks: Masks) -> Shapes:
    """Convert masks to shapes."""
    return Shapes((MaskLayer(masks.area.astype(np.float64), masks),), masks.boxes)


def masks_of(
    regions: Sequence[Any], height: Array, width: Array, what: str, over: Over | None = None
) -> Masks:
    """Convert polygons, run-length codes and counts to masks.

    Args:
        regions: n lists of flat rings, or dicts of ``size`` and ``counts``, a string or a list.
        height: int64 [n], image heights, for polygons.
        width: int64 [n].
        what: name of the rows, for errors.
        over: runs ranges in parallel.

    Raises:
        InputError: any other region, or one that cannot be parsed.
    """
    listed = np.fromiter(map(_is_list, regions), np.bool_, len(regions))
    counted = np.fromiter(map(_is_counted, regions), np.bool_, len(regions))
    parts = []
    for kind, read in (
        (listed, _drawn),
        (counted, _counted),
        (~listed & ~counted, _coded),
    ):
        rows = np.flatnonzero(kind)
        if rows.size:
            some = [regions[i] for i in rows.tolist()]
            parts.append((rows, read(some, rows, height[rows], width[rows], what, over)))
    return in_order(parts, concat) if parts else concat([])


def _is_list(region: Any) -> bool:
    return isinstance(region, list)


def _is_counted(region: Any) -> bool:
    return not isinstance(region, list) and isinstance(region["counts"], list)


def _drawn(
    regions: list[Any], rows: Array, height: Array, width: Array, what: str, over: Over | None
) -> Masks:
    rings = [*chain.from_iterable(regions)]
    flat = np.fromiter(chain.from_iterable(rings), np.float64, sum(map(len, rings)))
    column: Any = pa.LargeListArray.from_arrays(offsets_of(_lengths(rings)), pa.array(flat))
    column = pa.LargeListArray.from_arrays(offsets_of(_lengths(regions)), column)
    polygons = read_polygons(pl.Series("segmentation", pl.from_arrow(column)), side=what, rows=rows)
    return rasterise(polygons, height, width, over)


def _coded(
    regions: list[Any], rows: Array, height: Array, width: Array, what: str, over: Over | None
) -> Masks:
    codes = [
        code.encode("ascii", "replace") if isinstance(code, str) else code
        for code in (region["counts"] for region in regions)
    ]
    return _read(regions, pl.Series("counts", codes, dtype=pl.Binary), rows, what, over)


def _counted(
    regions: list[Any], rows: Array, height: Array, width: Array, what: str, over: Over | None
) -> Masks:
    counts = [region["counts"] for region in regions]
    return _read(regions, pl.Series("counts", counts, dtype=pl.List(pl.Int64)), rows, what, over)


def _read(
    regions: list[Any], counts: pl.Series, rows: Array, what: str, over: Over | None
) -> Masks:
    sizes = [[*region["size"]] for region in regions]
    size = pl.Series("size", sizes, dtype=pl.List(pl.Int64))
    column = pl.DataFrame([size, counts]).to_struct("segmentation")
    return read_masks(column, side=what, over=over, rows=rows)


def _lengths(lists: Sequence[Any]) -> Array:
    return np.fromiter(map(len, lists), np.int64, len(lists))
