"""Polygons as shapely geometries, from WKB, WKT and GeoJSON."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import shapely

from ..schemas.arrays import Array
from ..schemas.errors import InputError
from ..schemas.wording import option
from .columns import FORMS, Place, Rings, offsets_of

# Shapely geometries of rings, built in bulk; crossing rings are repaired or refused.

_POLYGON = 3  # shapely's type number


@np.errstate(all="ignore")  # shapely warns if squared coordinates overflow
def built(rings: Rings, place: Place, *, repair: bool) -> tuple[Array, bool]:
    """Build polygons and multipolygons, object [n]; also return whether their rings are unchanged.

    Overlapping parts of one polygon are united.

    Args:
        rings: of at least three points each.
        repair: replace invalid parts by the polygonal part of ``make_valid``, instead of refusing
            them.

    Raises:
        InputError: invalid parts, with shapely's reason.
    """
    n_parts = rings.part_start.size - 1
    of_ring = np.repeat(np.arange(n_parts), np.diff(rings.part_start))
    in_polygon = np.diff(rings.start)
    of_part = np.repeat(np.arange(in_polygon.size), in_polygon)
    if not n_parts:
        return np.full(in_polygon.size, shapely.Polygon(), object), True
    xy, of_point = _closable(rings)
    parts = shapely.polygons(shapely.linearrings(xy, indices=of_point), indices=of_ring)
    valid = shapely.is_valid(parts)
    if not valid.all():
        wrong = np.flatnonzero(~valid)
        if not repair:
            _refuse(parts[wrong], of_part[wrong], in_polygon.size, place)
        parts[wrong] = _polygonal(shapely.make_valid(parts[wrong]))
    geometries = np.full(in_polygon.size, shapely.Polygon(), object)
    single = in_polygon == 1
    geometries[single] = parts[rings.start[:-1][single]]
    several = np.flatnonzero(in_polygon > 1)
    as_given = bool(valid.all())
    if several.size:
        geometries[several], disjoint = _united(parts, rings.start, several)
        as_given = as_given and disjoint
    return geometries, as_given


def _closable(rings: Rings) -> tuple[Array, Array]:
    """Return the points and the ring of each; closed rings of three points get a fourth.

    GEOS raises for a ring of three points whose last is the first; with four it reports it as
    invalid.
    """
    first, last = rings.ring_start[:-1], rings.ring_start[1:]
    closed = (rings.xy[first] == rings.xy[last - 1]).all(axis=1)
    short = np.flatnonzero(closed & (last - first == 3))
    counts = last - first
    counts[short] += 1
    xy = np.insert(rings.xy, last[short], rings.xy[first[short]], axis=0)
    return xy, np.repeat(np.arange(counts.size), counts)


def _refuse(parts: Array, of_part: Array, n: int, place: Place) -> None:
    wrong = np.zeros(n, np.bool_)
    wrong[of_part] = True
    reason = dict(
        zip(of_part.tolist()[::-1], shapely.is_valid_reason(parts).tolist()[::-1], strict=True)
    )
    place.refuse(
        "polygon_invalid",
        wrong,
        "with polygons that are not valid",
        f"Correct these rows, write {option('invalid_polygons', 'repair')} to repair them with"
        f" shapely, or {option('iou_type', 'segm')} to compare masks, as COCO does, which works"
        " with any ring.",
        lambda i: reason[i],
        reason=reason[of_part[0]],
    )


def _united(parts: Array, start: Array, several: Array) -> tuple[Array, bool]:
    """Combine parts to multipolygons if disjoint, otherwise to their union; also return whether all
    are disjoint.
    """
    all_disjoint = True
    counts = np.diff(start)[several]
    result = np.empty(several.size, object)
    for size in np.unique(counts):  # as many rows of parts as polygons have that many
        same = np.flatnonzero(counts == size)
        table = parts[start[several[same]][:, None] + np.arange(size)]
        owner = np.repeat(np.arange(table.shape[0]), table.shape[1])
        members, at = shapely.get_parts(table.ravel(), return_index=True)
        combined = shapely.multipolygons(members, indices=owner[at])
        valid = shapely.is_valid(combined)
        if not valid.all():
            all_disjoint = False
            combined[~valid] = _polygonal(shapely.union_all(table[~valid], axis=1))
        result[same] = combined
    return result, all_disjoint


def _polygonal(geometries: Array) -> Array:
    """Return the polygonal part of each geometry: a polygon, several, or an empty polygon."""
    result = np.full(len(geometries), shapely.Polygon(), object)
    members, owner = shapely.get_parts(geometries, return_index=True)
    # a collection may contain multipolygons
    parts, inner = shapely.get_parts(members, return_index=True)
    owner = owner[inner]
    polygonal = (shapely.get_type_id(parts) == _POLYGON) & ~shapely.is_empty(parts)
    parts, owner = parts[polygonal], owner[polygonal]
    count = np.bincount(owner, minlength=len(geometries))
    one = count[owner] == 1
    result[owner[one]] = parts[one]
    if not one.all():
        rows, at = np.unique(owner[~one], return_inverse=True)
        result[rows] = shapely.multipolygons(parts[~one], indices=at)
    return result


# Polygons in well-known binary, well-known text and GeoJSON, read in bulk by shapely.

_HEX = "^0[01][0-9A-Fa-f]{8,}$"  # byte order, kind of geometry, coordinates
_WELL_KNOWN_POLYGON, _MULTIPOLYGON = 3, 6  # shapely's type numbers


@np.errstate(all="ignore")  # NaN and infinity are refused by row
def parsed(column: pl.Series, place: Place) -> Rings:
    """Parse rings of a column of WKB (binary or hexadecimal string), WKT or GeoJSON (strings).

    Raises:
        InputError: values that cannot be parsed, with GEOS's reason, or that are not polygons.
    """
    values = column.to_numpy()
    if column.dtype == pl.Binary:
        geometries = _read(shapely.from_wkb, values, "WKB", place)
    else:
        text = column.str.strip_chars()
        values = text.to_numpy()
        json = text.str.starts_with("{").to_numpy()
        digits = text.str.contains(_HEX).to_numpy()
        geometries = np.empty(len(values), object)
        for chosen, reader, name in (
            (json, shapely.from_geojson, "GeoJSON"),
            (digits, shapely.from_wkb, "WKB in hexadecimal digits"),
            (~json & ~digits, shapely.from_wkt, "WKT"),
        ):
            at = np.flatnonzero(chosen)
            if at.size:
                geometries[at] = _read(reader, values[at], name, place.take(at))
    kind = shapely.get_type_id(geometries)
    place.refuse(
        "wrong_geometry",
        (kind != _WELL_KNOWN_POLYGON) & (kind != _MULTIPOLYGON),
        "with geometries that are not polygons",
        FORMS,
        lambda i: geometries[i].geom_type,
    )
    return rings_of(geometries)


def rings_of(geometries: Array) -> Rings:
    """Rings of shapely polygons and multipolygons, object [n]; an empty one has no part."""
    parts, of_polygon = shapely.get_parts(geometries, return_index=True)
    nonempty = ~shapely.is_empty(parts)
    parts, of_polygon = parts[nonempty], of_polygon[nonempty]
    rings, of_part = shapely.get_rings(parts, return_index=True)
    xy, of_ring = shapely.get_coordinates(rings, return_index=True)
    return Rings(
        xy,
        offsets_of(np.bincount(of_ring, minlength=len(rings))),
        offsets_of(np.bincount(of_part, minlength=len(parts))),
        offsets_of(np.bincount(of_polygon, minlength=len(geometries))),
    )


def _read(reader: Any, values: Array, name: str, place: Place) -> Array:
    """Geometries, object [n], once all values can be read."""
    try:
        geometries: Array = np.asarray(reader(values, on_invalid="ignore"), object)
    except NotImplementedError:  # of curves, for which GEOS ends the whole column
        geometries = np.array([_single_geometry(reader, value) for value in values], object)
    wrong = np.array([one is None for one in geometries], np.bool_)
    place.refuse(
        "polygon_unreadable",
        wrong,
        f"that cannot be read as {name}",
        f"Rings must be closed in it. {FORMS}",
        lambda i: f"{_reason(reader, values[i])}: {values[i]!r}",
        format=name,
    )
    return geometries


def _single_geometry(reader: Any, value: Any) -> Any:
    try:
        return reader(value, on_invalid="ignore")
    except NotImplementedError:
        return None


def _reason(reader: Any, value: Any) -> str:
    try:
        reader(value)
    except (shapely.errors.ShapelyError, NotImplementedError, TypeError, ValueError) as error:
        return str(error).splitlines()[0]
    raise InputError(f"{value!r} is not a geometry")  # null in GeoJSON and the like
