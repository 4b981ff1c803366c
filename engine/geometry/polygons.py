"""Polygons and quadrilaterals as flat rings, and conversion of masks to outlines."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, reduce
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ..kernels.masks import (
    Edges,
    Runs,
    edges,
    joined,
    polygon_areas,
    rasterise_rings,
    shared_polygon_areas,
    subtract,
    take_runs,
    unite,
)
from ..schemas.arrays import Array
from ..schemas.errors import InputError, unknown
from ..schemas.tuning import tuning
from ..schemas.wording import option
from .columns import (
    FORMS,
    Origin,
    Over,
    Place,
    Rings,
    concatenated,
    depth_of,
    flat,
    in_ranges,
    members,
    offsets_of,
)
from .masks import Masks, columns_of

# Columns of polygons, in each of the forms users have, as flat rings.

_WAY_OUT = f"Correct these rows, or write {option('invalid_polygons', 'repair')} to"


def read_rings(column: pl.Series, place: Place, *, repair: bool) -> Rings:
    """Parse rings of a column of polygons, with at least three points and finite coordinates.

    Args:
        repair: drop rings of fewer than three points, with the holes of a dropped exterior, instead
            of refusing them.

    Raises:
        InputError: as in :func:`evalengine.geometry.polygons.read_polygons`.
    """
    place.refuse(
        "null_values",
        column.is_null().to_numpy(),
        "without a polygon (null)",
        "Remove these rows, or give polygons.",
    )
    if column.dtype in (pl.String, pl.Binary):
        from .shapes import parsed  # Shapely, which lists of numbers do not need

        rings, as_coco = parsed(column, place), False
    else:
        rings, as_coco = _listed(column, place)
    finite = np.isfinite(rings.xy).all(axis=1)
    if not finite.all():
        of_point = np.repeat(rings.of_ring, np.diff(rings.ring_start))
        wrong = np.zeros(column.len(), np.bool_)
        wrong[of_point[~finite]] = True
        place.refuse(
            "not_finite",
            wrong,
            "with coordinates that are null, NaN or infinite",
            "Coordinates are numbers of pixels.",
            column.__getitem__,
        )
    if as_coco:
        rings = _without_specks(rings)
    return _of_three_points(rings, column, place, repair=repair)


def _listed(column: pl.Series, place: Place) -> tuple[Rings, bool]:
    """Rings of nested lists of numbers, and whether they are COCO's flat ones."""
    levels, inner = depth_of(column.dtype)
    if not 1 <= levels <= 4 or not (inner.is_numeric() or inner == pl.Null):
        raise place.error("wrong_dtype", f" has dtype {column.dtype}. {FORMS}")
    values, offsets = flat(column)
    numbers = values.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    lengths = np.diff(offsets[-1])
    pairs = levels > 2 or (levels == 2 and lengths.size > 0 and bool((lengths == 2).all()))
    n = column.len()

    value_of = column.__getitem__

    def rows_of(wrong: Array) -> Array:
        at = offsets[0]
        for offset in offsets[1:-1]:
            at = offset[at]
        total = offsets_of(wrong)[at] if levels > 1 else offsets_of(wrong)
        return np.asarray(np.diff(total) > 0)

    if pairs:
        place.refuse(
            "wrong_length",
            rows_of(lengths != 2),
            "with points that are not two numbers",
            "A point is [x, y]; heights above ground have no place in an image.",
            value_of,
        )
        xy, offsets = numbers.reshape(-1, 2), offsets[:-1]
    else:
        place.refuse(
            "wrong_length",
            rows_of(lengths % 2 != 0),
            "with flat rings of an odd count of numbers",
            "A flat ring is x, y, x, y, ...",
            value_of,
        )
        xy = numbers.reshape(-1, 2)
        offsets = [*offsets[:-1], offsets[-1] // 2]
    one_each = np.arange(n + 1)
    if len(offsets) == 1:
        return Rings(xy, offsets[0], one_each, one_each), False
    if not pairs:
        return Rings(xy, offsets[1], np.arange(offsets[1].size), offsets[0]), True
    if len(offsets) == 2:
        return Rings(xy, offsets[1], offsets[0], one_each), False
    return Rings(xy, offsets[2], offsets[1], offsets[0]), False


def _without_specks(rings: Rings) -> Rings:
    """Drop COCO's flat rings of fewer than three points, except first rings.

    They have no area, and pycocotools ignores them too; from a first ring that short it makes a
    box, and then fails (``frPyObjects``, release 2.0.11).
    """
    mask = np.diff(rings.ring_start) >= 3
    if mask.all():
        return rings
    mask[rings.start[:-1][np.diff(rings.start) > 0]] = True
    points, ring_start = members(rings.ring_start, np.flatnonzero(mask))
    start = offsets_of(mask)[rings.start]
    return Rings(rings.xy[points], ring_start, np.arange(ring_start.size), start)


def _of_three_points(rings: Rings, column: pl.Series, place: Place, *, repair: bool) -> Rings:
    """Return the rings of at least three points; others are refused or dropped."""
    n = np.diff(rings.ring_start)
    short = n < 3
    none = np.diff(rings.part_start[rings.start]) == 0
    if not short.any() and not none.any():
        return rings
    if not repair:
        wrong = np.zeros(none.size, np.bool_)
        wrong[rings.of_ring[short]] = True
        value_of = column.__getitem__
        place.refuse(
            "polygon_empty",
            none,
            "with an empty polygon",
            f"{_WAY_OUT} score them as shapes without area.",
            value_of,
        )
        place.refuse(
            "ring_short",
            wrong,
            "with rings of fewer than three points",
            f"{_WAY_OUT} remove such rings.",
            value_of,
        )
    outside = np.zeros(n.size, np.bool_)
    parts = np.diff(rings.part_start)
    outside[rings.part_start[:-1][parts > 0]] = True
    of_part = np.repeat(np.arange(parts.size), parts)
    lost = np.zeros(parts.size, np.bool_)
    lost[of_part[short & outside]] = True
    lost |= parts == 0
    remaining = ~short & ~lost[of_part]
    of_polygon = np.repeat(np.arange(none.size), np.diff(rings.start))
    points, ring_start = members(rings.ring_start, np.flatnonzero(remaining))
    return Rings(
        rings.xy[points],
        ring_start,
        offsets_of(np.bincount(of_part[remaining], minlength=parts.size)[~lost]),
        offsets_of(np.bincount(of_polygon[~lost], minlength=none.size)),
    )


REFUSE, REPAIR = "refuse", "repair"


class Polygons(msgspec.Struct, frozen=True, dict=True, eq=False):
    """n polygons of one or several parts with holes.

    Attributes:
        invalid: treatment of self-crossing polygons when areas or intersections are computed:
            ``refuse`` or ``repair``.
    """

    rings: Rings
    place: Place
    invalid: str = REFUSE

    def __len__(self) -> int:
        return int(self.rings.start.size) - 1

    @cached_property
    def _built(self) -> tuple[Array, bool]:
        from .shapes import built

        return built(self.rings, self.place, repair=self.invalid == REPAIR)

    @property
    def geometries(self) -> Array:
        """Shapely polygons or multipolygons, object [n]; the parts of one polygon are united.

        Raises:
            InputError: rings that cross themselves or each other, unless they are repaired.
        """
        return self._built[0]

    @cached_property
    def edges(self) -> Edges:
        """Edges of the geometries, for the intersection kernel.

        Raises:
            InputError: as in :attr:`geometries`.
        """
        parts = self._checked()
        if all(part is None for part in parts):
            return _edges_of(self.rings)
        cuts = [*range(0, len(self), tuning().polygons), len(self)]
        edge_lists = [
            _edges_of(part or self.rings.between(first, last))
            for part, (first, last) in zip(parts, pairwise(cuts), strict=True)
        ]
        counts = np.concatenate([np.diff(start) for start, _ in edge_lists])
        return offsets_of(counts), np.concatenate([edge for _, edge in edge_lists])

    def _checked(self) -> list[Rings | None]:
        """Return valid rings per range of polygons; None if the given ones are valid.

        Geometries take several times the memory of their points, so those of many polygons are
        freed after the check.

        Raises:
            InputError: as in :attr:`geometries`.
        """
        from .shapes import built, rings_of

        checked: list[Rings | None] = []
        some = tuning().polygons
        for first in range(0, len(self), some):
            if len(self) <= some or "_built" in self.__dict__:
                all_geometries, as_given = self._built
                geometries = all_geometries[first : first + some]
            else:
                last = min(first + some, len(self))
                place = self.place.take(np.arange(first, last))
                try:
                    geometries, as_given = built(
                        self.rings.between(first, last), place, repair=self.invalid == REPAIR
                    )
                except InputError:
                    geometries, as_given = self._built  # its error counts all rows
            checked.append(None if as_given else rings_of(geometries))
        return checked

    @cached_property
    def area(self) -> Array:
        """Areas without holes, float64 [n], squared pixels.

        Raises:
            InputError: as in :attr:`geometries`.
        """
        return polygon_areas(self.edges, self.boxes)

    @cached_property
    def boxes(self) -> Array:
        """xmin, ymin, xmax, ymax of the outside rings, float64 [n, 4]; zeros of an empty one."""
        boxes = np.zeros((len(self), 4), np.float64)
        rings, nonempty = self.rings, np.diff(self.rings.start) > 0
        if nonempty.any():
            outside = rings.part_start[:-1]
            parts = rings.start[:-1][nonempty]
            for at, extreme in ((0, np.minimum), (2, np.maximum)):
                of_ring = extreme.reduceat(rings.xy, rings.ring_start[:-1], axis=0)
                boxes[nonempty, at : at + 2] = extreme.reduceat(of_ring[outside], parts, axis=0)
        return boxes

    def take(self, rows: Array) -> Polygons:
        """The polygons at some rows (integer [k]), in their order."""
        polygons = Polygons(self.rings.take(rows), self.place.take(rows), self.invalid)
        cached = self.__dict__.get("_built")
        if cached is not None:
            polygons.__dict__["_built"] = cached[0][rows], cached[1]
        return polygons


def _edges_of(rings: Rings) -> Edges:
    return edges(rings.xy, rings.ring_start, rings.part_start, rings.start)


def read_polygons(
    column: pl.Series,
    *,
    side: str,
    invalid: str = REFUSE,
    rows: Array | None = None,
    origin: Origin | None = None,
) -> Polygons:
    """Parse a column of polygons in any of the accepted forms.

    Lists of rings of points, the first the exterior and the rest holes; one ring of points; lists
    of such polygons; flat rings of x, y, x, y, ..., each a separate part as in COCO (later rings of
    one or two points are ignored), or one flat ring; WKB as binary; WKT or GeoJSON as strings.
    Rings of lists need not repeat their first point. Crossing rings are detected only when
    geometries are built: :func:`rasterise` has a rule for them, as COCO does.

    Args:
        invalid: ``refuse`` polygons that are empty, have rings of fewer than three points or cross
            themselves, or ``repair`` them: short rings are dropped, and the polygonal part of
            shapely's ``make_valid`` replaces the others.
        rows: int64 [n], row numbers of the values in the table, for errors.

    Raises:
        InputError: a null, a coordinate that is null, NaN or infinite, a value that cannot be
            parsed or is not a polygon, and polygons refused by ``invalid``.
        OptionError: an unknown ``invalid``.
    """
    if invalid not in (REFUSE, REPAIR):
        raise unknown(
            "treatment of polygons",
            invalid,
            (REFUSE, REPAIR),
            before=f"{option('invalid_polygons', invalid)}: ",
        )
    place = Place(side, column.name, rows, origin)
    return Polygons(read_rings(column, place, repair=invalid == REPAIR), place, invalid)


def from_boxes(
    boxes: Array, place: Place | None = None, *, flat_ones_empty: bool = False
) -> Polygons:
    """Convert boxes to polygons of four corners, in pycocotools' order.

    Args:
        boxes: float64 [n, 4], xmin, ymin, xmax, ymax.
        flat_ones_empty: convert boxes of zero width or height to polygons without parts, as valid
            geometries require; rasterisation accepts them as rings.
    """
    boxes = np.asarray(boxes, np.float64)
    mask = np.ones(len(boxes), np.bool_)
    if flat_ones_empty:
        mask = (boxes[:, 0] < boxes[:, 2]) & (boxes[:, 1] < boxes[:, 3])
    corners = boxes[:, [0, 1, 0, 3, 2, 3, 2, 1]]
    return from_corners(corners, place or Place("boxes", "xmin"), mask)


def from_corners(corners: Array, place: Place, selected: Array) -> Polygons:
    """Convert quadrilaterals to polygons.

    Args:
        corners: float64 [n, 8], x and y of the corners in order.
        selected: bool [n]; the others become polygons without parts.
    """
    each = np.arange(int(selected.sum()) + 1)
    return Polygons(
        Rings(corners[selected].reshape(-1, 2), 4 * each, each, offsets_of(selected)), place
    )


def concat(parts: Sequence[Polygons]) -> Polygons:
    """The polygons of several parts, one after the other; place and rule are the first one's."""
    rings = [part.rings for part in parts]
    merged = Rings(
        np.concatenate([one.xy for one in rings]),
        offsets_of(np.concatenate([np.diff(one.ring_start) for one in rings])),
        offsets_of(np.concatenate([np.diff(one.part_start) for one in rings])),
        offsets_of(np.concatenate([np.diff(one.start) for one in rings])),
    )
    return Polygons(merged, parts[0].place, parts[0].invalid)


def rasterise(polygons: Polygons, height: Array, width: Array, over: Over | None = None) -> Masks:
    """Rasterise polygons to masks, bit-identical to pycocotools; see ``kernels.masks``.

    Rings are rasterised one by one: a part is its exterior without its holes, a polygon the union
    of its parts. Pixels that a self-crossing ring surrounds twice are outside.

    Args:
        height: int64 [n], of each image, pixels.
        width: int64 [n]; height * width is below 2^32.
        over: runs ranges in parallel.

    Raises:
        InputError: an image size that is not positive or has 2^32 pixels.
    """
    height, width = np.asarray(height, np.int64), np.asarray(width, np.int64)
    polygons.place.refuse(
        "image_size_missing",
        (height < 1) | (width < 1) | (height * width >= 1 << 32),
        "of images whose height or width is not positive, or of 2^32 pixels or more",
        "Masks need the size of each image: give height and width in datums.",
        lambda i: f"{height[i]} x {width[i]}",
    )
    rings = polygons.rings
    first_ring = rings.part_start[rings.start]

    def run(first: int, last: int) -> Runs:
        low, high = int(first_ring[first]), int(first_ring[last])
        in_polygon = np.diff(first_ring[first : last + 1])
        runs = rasterise_rings(
            rings.xy,
            rings.ring_start[low : high + 1],
            np.repeat(height[first:last], in_polygon),
            np.repeat(width[first:last], in_polygon),
        )
        parts = np.diff(rings.part_start[rings.start[first] : rings.start[last] + 1])
        if (parts != 1).any():
            hole = np.ones(int(parts.sum()), np.bool_)
            hole[offsets_of(parts)[:-1]] = False
            of_part = np.repeat(np.arange(parts.size), parts)
            outside = take_runs(runs, np.flatnonzero(~hole))
            holes = take_runs(runs, np.flatnonzero(hole))
            runs = subtract(outside, unite(holes, of_part[hole], parts.size))
        in_polygon = np.diff(rings.start[first : last + 1])
        if (in_polygon == 1).all():
            return runs
        return unite(runs, np.repeat(np.arange(last - first), in_polygon), last - first)

    return Masks(*joined(in_ranges(over, rings.ring_start[first_ring], run)), height, width)


def intersection_areas(
    a: Polygons, b: Polygons, ia: Array, ib: Array, over: Over | None = None
) -> Array:
    """Compute the intersection areas of pairs of polygons, float64 [k], squared pixels.

    Summed over pairs of edges (``kernels.masks``); equal to shapely's up to rounding.
    Areas within 1e-12 of 0, or of the whole smaller polygon, are rounded to that.

    Args:
        ia: int32 [k], the polygon of each pair in ``a``.
        ib: int32 [k], its partner in ``b``.
        over: runs ranges in parallel.

    Raises:
        InputError: as in :attr:`Polygons.geometries`.
    """
    ia, ib = np.asarray(ia, np.int32), np.asarray(ib, np.int32)
    one = a.edges, a.area, a.boxes
    two = b.edges, b.area, b.boxes
    work = offsets_of(np.diff(a.edges[0])[ia] * np.diff(b.edges[0])[ib] + 16)
    return concatenated(
        over,
        work,
        lambda first, last: shared_polygon_areas(one, two, ia[first:last], ib[first:last]),
    )


# Quadrilaterals: corners of oriented boxes, of upright ones, and of polygons that have four.

_SIDES = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])
_LEVEL = 1e-15  # cosine of a right angle, and sine of none, as far as doubles know pi


def corners_of(boxes: Array, radians: Array) -> Array:
    """Compute the corners of oriented boxes, float64 [n, 8]; exact for right angles.

    Args:
        boxes: float64 [n, 4], centre x and y, width, height.
        radians: float64 [n], angle of the width, clockwise in the image.
    """
    cos, sin = np.cos(radians), np.sin(radians)
    for part in (cos, sin):
        part[np.abs(part) < _LEVEL] = 0.0
    cos, sin = cos[:, None], sin[:, None]
    across, down = boxes[:, 2:3] * _SIDES[:, 0], boxes[:, 3:4] * _SIDES[:, 1]
    x = boxes[:, :1] + (across * cos - down * sin)
    y = boxes[:, 1:2] + (across * sin + down * cos)
    return np.stack([x, y], axis=2).reshape(-1, 8)


def corners_of_upright(boxes: Array) -> Array:
    """Corners of boxes (float64 [n, 4], xmin, ymin, xmax, ymax), float64 [n, 8]."""
    return boxes[:, [0, 1, 2, 1, 2, 3, 0, 3]]


def corners_of_polygons(polygons: Polygons) -> Array:
    """Return the corners of polygons with four corners, float64 [n, 8].

    Raises:
        InputError: polygons of several parts, with holes, or with another number of corners.
    """
    rings = polygons.rings
    one = (np.diff(rings.start) == 1) & (np.diff(rings.part_start[rings.start]) == 1)
    ring = rings.part_start[rings.start[:-1][one]]
    first, last = rings.ring_start[ring], rings.ring_start[ring + 1] - 1
    closed = (rings.xy[first] == rings.xy[last]).all(axis=1)
    n = last + 1 - first
    four = (n == 4) | ((n == 5) & closed)
    wrong = ~one
    wrong[np.flatnonzero(one)[~four]] = True
    polygons.place.refuse(
        "wrong_geometry",
        wrong,
        "with polygons that are not four corners, to be compared as oriented boxes",
        f"Give four corners, or write {option('iou_type', 'segm')} or"
        f" {option('convert_to', 'polygon')}.",
    )
    return rings.xy[first[:, None] + np.arange(4)].reshape(-1, 8)


def smallest_boxes(corners: Array) -> Array:
    """Compute centre, width, height and angle of the smallest rectangles around four corners [n,
    5].

    One side is on a side of the hull (Freeman and Shapira, 1975), so a rectangle is returned
    unchanged. Angles are radians, clockwise in the image.

    Args:
        corners: float64 [n, 8].
    """
    xy = corners.reshape(-1, 4, 2)
    start = xy[:, :1]
    best = np.full(len(xy), np.inf)
    smallest = np.zeros((len(xy), 5))
    for a, b in ((0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3)):
        along = xy[:, b] - xy[:, a]
        radians = np.arctan2(along[:, 1], along[:, 0])
        cos, sin = np.cos(radians), np.sin(radians)
        turn = np.stack([np.stack([cos, sin], axis=1), np.stack([-sin, cos], axis=1)], axis=1)
        turned = np.einsum("nij,nkj->nki", turn, xy - start)
        low, high = turned.min(axis=1), turned.max(axis=1)
        extent, middle = high - low, (high + low) / 2
        area = extent.prod(axis=1)
        better = area < best
        best[better] = area[better]
        centre = np.einsum("nji,nj->ni", turn, middle) + start[:, 0]
        boxes = np.concatenate([centre, extent, radians[:, None]], axis=1)
        smallest[better] = boxes[better]
    return smallest


def around(corners: Array) -> Array:
    """The corners of quadrilaterals in their order around the mean of them, float64 [n, 8]."""
    xy = corners.reshape(-1, 4, 2)
    away = xy - xy.mean(axis=1, keepdims=True)
    order = np.argsort(np.arctan2(away[..., 1], away[..., 0]), axis=1, kind="stable")
    return np.take_along_axis(xy, order[..., None], axis=1).reshape(-1, 8)


def hulls_of(corners: Array) -> Array:
    """Bounding boxes of quadrilaterals (float64 [n, 8]), float64 [n, 4]."""
    points = np.split(corners, 4, axis=1)  # many times faster than minima along a short axis
    return np.concatenate([reduce(np.minimum, points), reduce(np.maximum, points)], axis=1)


# Shapes of one kind from those of another: masks to outlines and hulls.


def outlines(masks: Masks, place: Place | None = None) -> Polygons:
    """Trace the outlines of the pixels of each mask, with holes: full extents, integer corners.

    Pixels that touch only at a corner are separate parts. An empty mask has no parts. Uses
    ``rasterio.features``.
    """
    of_mask: list[int] = []
    parts: list[list[Any]] = []
    boxes = masks.boxes.astype(np.int64)
    nonempty = np.flatnonzero(boxes[:, 2] > boxes[:, 0])
    size = boxes[nonempty, 2:] - boxes[nonempty, :2]
    first = 0
    while first < nonempty.size:
        # GDAL takes longer to start than to trace a mask: many are traced on one canvas, stacked
        # vertically with distinct values.
        few = size[first : first + tuning().canvas_masks]
        fits = np.maximum.accumulate(few[:, 0]) * np.cumsum(few[:, 1]) <= tuning().canvas_pixels
        last = first + max(int(np.argmin(np.r_[fits, False])), 1)
        owners, polygons = _traced(masks, nonempty[first:last], boxes)
        of_mask += owners
        parts += polygons
        first = last
    order = np.argsort(np.array(of_mask, np.int64), kind="stable").tolist()
    rings = [np.asarray(ring[:-1], np.float64) for i in order for ring in parts[i]]
    in_part = [len(parts[i]) for i in order]
    in_mask = np.bincount(np.array(of_mask, np.int64), minlength=len(masks))
    return _polygons(rings, in_part, in_mask, place or Place("masks", "mask"))


def _traced(masks: Masks, rows: Array, boxes: Array) -> tuple[list[int], list[list[Any]]]:
    """The mask of each part of some masks, and its rings of points, the last being the first."""
    from rasterio.features import shapes

    low, high = boxes[rows, :2], boxes[rows, 2:]
    top = offsets_of(high[:, 1] - low[:, 1])
    dtype = np.uint8 if rows.size < 256 else np.int32
    canvas = np.zeros((int(top[-1]), int((high - low)[:, 0].max())), dtype)
    for k, row in enumerate(rows.tolist()):
        (xmin, ymin), (xmax, ymax) = low[k].tolist(), high[k].tolist()
        pixels = columns_of(masks, row, xmin, xmax)[ymin:ymax]
        # canvas.dtype, for uint8 pixels times 256 do not fit
        np.multiply(pixels, dtype(k + 1), out=canvas[top[k] : top[k + 1], : xmax - xmin])
    owners: list[int] = []
    parts: list[list[Any]] = []
    for shape, value in shapes(canvas, mask=canvas > 0):
        k = int(value) - 1
        away = low[k] - [0, top[k]]
        owners.append(int(rows[k]))
        parts.append([np.asarray(ring) + away for ring in shape["coordinates"]])
    return owners, parts


def _polygons(rings: list[Array], in_part: list[int], in_mask: Array, place: Place) -> Polygons:
    return Polygons(
        Rings(
            np.concatenate([np.zeros((0, 2)), *rings]),
            offsets_of(np.array([len(ring) for ring in rings], np.int64)),
            offsets_of(np.array(in_part, np.int64)),
            offsets_of(in_mask),
        ),
        place,
    )


def hulls(masks: Masks, place: Place | None = None) -> Polygons:
    """Compute the convex hull of the upper-left corners of each mask's pixels, as Valor's service
    does.

    A block of w x h pixels becomes w - 1 wide and h - 1 high; holes and concavities vanish. A mask
    of one row, column or pixel has no area: a polygon without parts.
    """
    import shapely

    from .shapes import rings_of

    of_run = np.repeat(np.arange(len(masks)), np.diff(masks.start))
    height = masks.height[of_run]
    x, y = np.divmod(masks.begin.astype(np.int64), height)
    far_x, far_y = np.divmod(masks.end.astype(np.int64) - 1, height)
    wraps = np.flatnonzero(far_x > x)  # over the lower end of a column
    bottom, top = height[wraps] - 1, np.zeros(wraps.size, np.int64)
    xs = [x, far_x, x[wraps], x[wraps] + 1, far_x[wraps] - 1, far_x[wraps]]
    ys = [y, far_y, bottom, top, bottom, top]
    owner = np.concatenate([of_run, of_run, *[of_run[wraps]] * 4])
    order = np.argsort(owner, kind="stable")
    points = np.stack([np.concatenate(xs), np.concatenate(ys)], axis=1)[order].astype(np.float64)
    geometries = np.full(len(masks), shapely.Polygon(), object)
    owners, index = np.unique(owner[order], return_inverse=True)
    if owners.size:
        hull = shapely.convex_hull(shapely.multipoints(shapely.points(points), indices=index))
        solid = shapely.get_type_id(hull) == shapely.GeometryType.POLYGON
        geometries[owners[solid]] = hull[solid]
    return Polygons(rings_of(geometries), place or Place("masks", "mask"))
