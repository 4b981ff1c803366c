"""``mask``: run-length codes, as in pycocotools."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import polars as pl

from ...executors import Threads
from ...geometry.columns import Over, offsets_of
from ...geometry.masks import Masks, concat, from_pixels, read_masks, to_pixels, to_rle, union_by
from ...geometry.polygons import rasterise, read_polygons
from ...kernels.masks import subtract
from ...schemas.arrays import Array
from ...schemas.errors import InputError
from ...tasks.detection.geometry import in_order
from ...tasks.detection.layers import BoxLayer, MaskLayer, Shapes
from ...tasks.detection.matching import overlap

# Segmentations as pycocotools takes them, polygons and codes of either form, as masks.


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
    kinds = np.fromiter(map(_kind, regions), np.int8, len(regions))
    parts = []
    for kind in range(3):
        rows = np.flatnonzero(kinds == kind)
        if not rows.size:
            continue
        some = [regions[i] for i in rows.tolist()]
        if kind == _RINGS:
            import pyarrow as pa  # boxes do without

            rings = [*chain.from_iterable(some)]
            flat = np.fromiter(chain.from_iterable(rings), np.float64, sum(map(len, rings)))
            column: Any = pa.LargeListArray.from_arrays(offsets_of(_lengths(rings)), pa.array(flat))
            column = pa.LargeListArray.from_arrays(offsets_of(_lengths(some)), column)
            drawn = pl.Series("segmentation", pl.from_arrow(column))
            polygons = read_polygons(drawn, side=what, rows=rows)
            masks = rasterise(polygons, height[rows], width[rows], over)
        else:
            counts: list[Any] = [region["counts"] for region in some]
            dtype: Any = pl.List(pl.Int64)
            if kind == _CODES:
                counts = [
                    one.encode("ascii", "replace") if isinstance(one, str) else one
                    for one in counts
                ]
                dtype = pl.Binary
            sizes = [[*region["size"]] for region in some]
            size = pl.Series("size", sizes, dtype=pl.List(pl.Int64))
            coded = pl.DataFrame([size, pl.Series("counts", counts, dtype=dtype)])
            masks = read_masks(coded.to_struct("segmentation"), side=what, over=over, rows=rows)
        parts.append((rows, masks))
    return in_order(parts, concat) if parts else concat([])


_RINGS, _COUNTS, _CODES = range(3)
"""Kinds of regions: lists of rings, listed counts, counts as COCO's string."""


def _kind(region: Any) -> int:
    if isinstance(region, list):
        return _RINGS
    return _COUNTS if isinstance(region["counts"], list) else _CODES


def _lengths(lists: Sequence[Any]) -> Array:
    return np.fromiter(map(len, lists), np.int64, len(lists))


# ``mask``: run-length codes of masks, encoded, merged and compared as in pycocotools.
#
# A code is a dict of ``size``, [height, width], and ``counts``, COCO's string as bytes.

Code = dict[str, Any]


def encode(bimask: Array) -> Any:
    """Encode a mask [height, width], or masks [height, width, n] as a list of codes.

    Raises:
        InputError: another shape.
    """
    if bimask.ndim == 2:
        return _codes(from_pixels([bimask]))[0]
    if bimask.ndim != 3:
        raise InputError(
            f"a mask is [height, width], several are [height, width, n]; not {bimask.shape}.",
            code="wrong_shape",
            shape=bimask.shape,
        )
    return _codes(from_pixels([*np.moveaxis(bimask, 2, 0)]))


def decode(rleObjs: Any) -> Array:
    """Decode a code to uint8 [height, width], or a list of codes to [height, width, n].

    Raises:
        InputError: codes that cannot be parsed, or of different sizes.
    """
    masks = _runs_of(_listed(rleObjs))
    _refuse_sizes(masks)
    h, w = (int(masks.height[0]), int(masks.width[0])) if len(masks) else (0, 0)
    out = np.zeros((h, w, len(masks)), np.uint8, order="F")
    for i in range(len(masks)):
        out[:, :, i] = to_pixels(masks, i)
    return out if isinstance(rleObjs, list) else out[:, :, 0]


def area(rleObjs: Any) -> Any:
    """Pixels that are set, of a code uint32, of a list of codes uint32 [n]."""
    areas = _runs_of(_listed(rleObjs)).area.astype(np.uint32)
    return areas if isinstance(rleObjs, list) else areas[0]


def toBbox(rleObjs: Any) -> Array:
    """Return the bounding box x, y, width, height of a code, float64 [4], or of a list of codes [n,
    4].
    """
    boxes = _runs_of(_listed(rleObjs)).boxes.copy()
    boxes[:, 2:] -= boxes[:, :2]
    return boxes if isinstance(rleObjs, list) else boxes[0]


def merge(rleObjs: Sequence[Code], intersect: bool = False) -> Code:
    """Merge masks to one code: their union, or with ``intersect`` their intersection.

    Raises:
        InputError: masks of different sizes.
    """
    masks = _runs_of(list(rleObjs))
    _refuse_sizes(masks)
    if not len(masks):
        return {"size": [0, 0], "counts": b""}
    group = np.zeros(len(masks), np.int32)
    if not intersect:
        return _codes(union_by(masks, group, 1))[0]
    intersection = masks.slice(0, 1).runs
    for i in range(1, len(masks)):
        intersection = subtract(intersection, subtract(intersection, masks.slice(i, i + 1).runs))
    return _codes(Masks(*intersection, masks.height[:1], masks.width[:1]))[0]


def frPyObjects(pyobj: Any, h: int, w: int) -> Any:
    """Convert regions to codes: a list to a list, one dict to one code.

    Args:
        pyobj: a list of flat rings x, y, x, y, ... or of dicts of size and listed counts; boxes x,
            y, width, height, an array [n, 4]; or one dict.
        h: height of the image for rings and boxes.
        w: its width.

    Raises:
        InputError: any other input.
    """
    if isinstance(pyobj, dict):
        return frPyObjects([pyobj], h, w)[0]
    if isinstance(pyobj, np.ndarray):
        x, y, far, low = of_boxes(pyobj).boxes.T
        pyobj = np.stack([x, y, x, low, far, low, far, y], axis=1).tolist()
    if not isinstance(pyobj, list) or not all(isinstance(one, (list, dict)) for one in pyobj):
        raise InputError(
            "frPyObjects: a list of rings or codes or an array of boxes is needed.",
            code="wrong_shape",
        )
    regions = [one if isinstance(one, dict) else [one] for one in pyobj]
    height, width = (np.full(len(regions), size, np.int64) for size in (h, w))
    return _codes(masks_of(regions, height, width, "objects"))


def iou(dt: Any, gt: Any, pyiscrowd: Sequence[Any]) -> Any:
    """Compute the IoU of each pair of regions; against a crowd region, the covered share of the
    first.

    Args:
        dt: n boxes x, y, width, height, or n codes.
        gt: m of the same.
        pyiscrowd: m flags for crowd regions.

    Returns:
        float64 [n, m]; an empty list if one side is empty.

    Raises:
        InputError: masks of different sizes, or sides of different kinds.
    """
    if not len(dt) or not len(gt):
        return []
    crowd = np.asarray(pyiscrowd, np.int64).astype(np.bool_)
    if crowd.size != len(gt):
        raise InputError(
            f"iscrowd has {crowd.size:,} values, and there are {len(gt):,} of gt.",
            code="lengths_differ",
            option="iscrowd",
            count=crowd.size,
            of=len(gt),
        )
    coded = {isinstance(one, dict) for one in (*dt, *gt)}
    if len(coded) > 1:
        raise InputError("iou: one side has boxes, the other codes of masks.", code="forms_differ")
    if True in coded:
        masks = [_runs_of([*side]) for side in (dt, gt)]
        _refuse_sizes(concat(masks))
        ours, theirs = map(of_masks, masks)
    else:
        ours, theirs = map(of_boxes, (dt, gt))
    rows, others = (at.ravel() for at in np.indices((len(dt), len(gt))))
    ious = overlap((ours, theirs), rows, others, crowd[others], Threads(1))
    return ious.reshape(len(dt), len(gt))


def _listed(rleObjs: Any) -> list[Any]:
    return rleObjs if isinstance(rleObjs, list) else [rleObjs]


def _runs_of(codes: list[Any]) -> Masks:
    none = np.zeros(len(codes), np.int64)
    return masks_of(codes, none, none, "codes")


def _codes(masks: Masks) -> list[Code]:
    return [
        {"size": code["size"], "counts": code["counts"].encode("ascii")}
        for code in to_rle(masks).to_list()
    ]


def _refuse_sizes(masks: Masks) -> None:
    sizes = sorted({*zip(masks.height.tolist(), masks.width.tolist(), strict=True)})
    if len(sizes) > 1:
        raise InputError(
            f"masks of different size (height x width): {sizes[0]} and {sizes[1]}.",
            code="sizes_differ",
            sizes=sizes[:2],
        )
