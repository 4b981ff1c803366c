"""Polygons in well-known binary, well-known text and GeoJSON, read in bulk by shapely."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import shapely

from evalengine.schemas.errors import InputError

from ..schemas.arrays import Array
from .places import Place
from .ranges import offsets_of
from .ring_arrays import FORMS, Rings

_HEX = "^0[01][0-9A-Fa-f]{8,}$"  # byte order, kind of geometry, and what follows
_POLYGON, _MULTIPOLYGON = 3, 6  # shapely's type numbers


@np.errstate(all="ignore")  # what is NaN or infinite is refused by row
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
        "polygon_misfit",
        (kind != _POLYGON) & (kind != _MULTIPOLYGON),
        "with geometries that are not polygons",
        FORMS,
        lambda i: geometries[i].geom_type,
    )
    return rings_of(geometries)


def rings_of(geometries: Array) -> Rings:
    """Rings of shapely polygons and multipolygons, object [n]; an empty one has no part."""
    parts, of_polygon = shapely.get_parts(geometries, return_index=True)
    there = ~shapely.is_empty(parts)
    parts, of_polygon = parts[there], of_polygon[there]
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
        geometries = np.array([_alone(reader, value) for value in values], object)
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


def _alone(reader: Any, value: Any) -> Any:
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
