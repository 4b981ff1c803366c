"""Columns of polygons, in each of the forms users have, as flat rings."""

from __future__ import annotations

import numpy as np
import polars as pl

from evalengine.schemas.errors import InputError
from evalengine.schemas.wording import option

from .columns import depth_of, flat
from .places import Place
from .ranges import Array, offsets_of
from .ring_arrays import FORMS, Rings, members

_WAY_OUT = f"Correct these rows, or write {option('invalid_polygons', 'repair')} to"


def read_rings(column: pl.Series, place: Place, *, repair: bool) -> Rings:
    """Rings of a column of polygons, once each has three points and finite coordinates.

    Args:
        column: n values.
        place: where they stand.
        repair: leave rings of fewer than three points out, with the holes of such an outside,
            instead of refusing them.

    Raises:
        InputError: as :func:`evalengine.geometry.polygons.read_polygons` says.
    """
    place.refuse(
        column.is_null().to_numpy(),
        "without a polygon (null)",
        "Remove these rows, or give polygons.",
    )
    if column.dtype in (pl.String, pl.Binary):
        from .well_known import parsed  # Shapely, which lists of numbers do not need

        rings, as_coco = parsed(column, place), False
    else:
        rings, as_coco = _listed(column, place)
    finite = np.isfinite(rings.xy).all(axis=1)
    if not finite.all():
        of_point = np.repeat(rings.of_ring, np.diff(rings.ring_start))
        wrong = np.zeros(column.len(), np.bool_)
        wrong[of_point[~finite]] = True
        place.refuse(
            wrong, "with coordinates that are null, NaN or infinite",
            "Coordinates are numbers of pixels.", column.__getitem__,
        )  # fmt: skip
    if as_coco:
        rings = _without_specks(rings)
    return _of_three_points(rings, column, place, repair=repair)


def _listed(column: pl.Series, place: Place) -> tuple[Rings, bool]:
    """Rings of nested lists of numbers, and whether they are COCO's flat ones."""
    levels, inner = depth_of(column.dtype)
    if not 1 <= levels <= 4 or not (inner.is_numeric() or inner == pl.Null):
        raise InputError(
            f"{place.side.replace('_', ' ')}: column {place.column!r} has dtype {column.dtype}."
            f" {FORMS}"
        )
    values, offsets = flat(column)
    numbers = values.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    lengths = np.diff(offsets[-1])
    pairs = levels > 2 or (levels == 2 and lengths.size > 0 and bool((lengths == 2).all()))
    n = column.len()

    told = column.__getitem__

    def rows_of(wrong: Array) -> Array:
        """Which rows have a wrong member at the innermost level."""
        at = offsets[0]
        for offset in offsets[1:-1]:
            at = offset[at]
        total = offsets_of(wrong)[at] if levels > 1 else offsets_of(wrong)
        return np.asarray(np.diff(total) > 0)

    if pairs:
        place.refuse(
            rows_of(lengths != 2), "with points that are not two numbers",
            "A point is [x, y]; heights above ground have no place in an image.", told,
        )  # fmt: skip
        xy, offsets = numbers.reshape(-1, 2), offsets[:-1]
    else:
        place.refuse(
            rows_of(lengths % 2 != 0), "with flat rings of an odd count of numbers",
            "A flat ring is x, y, x, y, ...", told,
        )  # fmt: skip
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
    """COCO's flat rings without those of fewer than three points that follow another one.

    They surround nothing, and pycocotools takes them so; of a first ring that is so short it makes
    a box, and then fails (``frPyObjects``, release 2.0.11).
    """
    kept = np.diff(rings.ring_start) >= 3
    if kept.all():
        return rings
    kept[rings.start[:-1][np.diff(rings.start) > 0]] = True
    points, ring_start = members(rings.ring_start, np.flatnonzero(kept))
    start = offsets_of(kept)[rings.start]
    return Rings(rings.xy[points], ring_start, np.arange(ring_start.size), start)


def _of_three_points(rings: Rings, column: pl.Series, place: Place, *, repair: bool) -> Rings:
    """The rings of at least three points; the others are refused or left out."""
    n = np.diff(rings.ring_start)
    short = n < 3
    none = np.diff(rings.part_start[rings.start]) == 0
    if not short.any() and not none.any():
        return rings
    if not repair:
        wrong = np.zeros(none.size, np.bool_)
        wrong[rings.of_ring[short]] = True
        told = column.__getitem__
        place.refuse(
            none, "with an empty polygon", f"{_WAY_OUT} score them as shapes without area.", told
        )
        place.refuse(
            wrong, "with rings of fewer than three points",
            f"{_WAY_OUT} leave such rings out.", told,
        )  # fmt: skip
    outside = np.zeros(n.size, np.bool_)
    parts = np.diff(rings.part_start)
    outside[rings.part_start[:-1][parts > 0]] = True
    of_part = np.repeat(np.arange(parts.size), parts)
    lost = np.zeros(parts.size, np.bool_)
    lost[of_part[short & outside]] = True
    lost |= parts == 0
    kept_ring = ~short & ~lost[of_part]
    of_polygon = np.repeat(np.arange(none.size), np.diff(rings.start))
    points, ring_start = members(rings.ring_start, np.flatnonzero(kept_ring))
    return Rings(
        rings.xy[points],
        ring_start,
        offsets_of(np.bincount(of_part[kept_ring], minlength=parts.size)[~lost]),
        offsets_of(np.bincount(of_polygon[~lost], minlength=none.size)),
    )
