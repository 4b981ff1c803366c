"""One side as masks of one label each: RLE, polygons and rasters of a label, or a map's indices."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, nullcontext

import msgspec
import numpy as np
import polars as pl

from ...geometry.masks import Masks, concat, from_rows, read_masks
from ...geometry.polygons import REFUSE, rasterise, read_polygons
from ...geometry.rasters import read_raster_masks
from ...geometry.value_runs import ValueRuns
from ...ingest.frames import Frames
from ...ingest.label_maps import FORMS
from ...ingest.problems import count_of
from ...kernels.run_layout import Runs, joined
from ...kernels.run_pixels import scan
from ...schemas.arrays import Array
from ...schemas.errors import InputError
from ...schemas.tuning import tuning
from ...tally.datums import Datums
from ..image_sizes import declared_sizes, sizes_in
from ..pixels.id_maps import map_of
from ..pixels.rasters import MapRow, in_thread, quiet
from ..pixels.sides import Side
from ..workers import Workers
from .settings import Settings

_RASTER, _MASK, _POLYGON = range(len(FORMS))


class Layers(msgspec.Struct, frozen=True):
    """Masks of a side.

    Attributes:
        masks: n masks.
        row: int64 [n], row of the side for each mask.
        index: int64 [n], index of each in its label map; None if rows have labels.
    """

    masks: Masks
    row: Array
    index: Array | None


class Sizes:
    """Known image height and width of every datum, with their source.

    Args:
        frames: for heights and widths in the table of datums.

    Raises:
        InputError: a height or width in that table that is not an integer >= 1.
    """

    def __init__(self, datums: Datums, frames: Frames) -> None:
        self._ids = datums.id
        self.size = np.zeros((len(datums), 2), np.int64)
        self._who: list[Callable[[int], str]] = []
        self._teller = np.full(len(datums), -1, np.int64)  # which of them told a datum's size,
        self._row = np.zeros(len(datums), np.int64)  # and at which of its rows
        declared = declared_sizes(frames, datums)
        self.hold(np.arange(len(datums)), declared, lambda _: "the table of datums")

    def told_by(self, side: Side) -> None:
        """Add the sizes in the side's columns ``height`` and ``width``."""
        if {"height", "width"} <= set(side.frame.columns):
            size = sizes_in(side.frame, side.called, side.numbered)
            self.hold(side.datum, size, side.row)

    def hold(self, datum: Array, size: Array, who: Callable[[int], str]) -> None:
        """Compare sizes with the known ones, and add new ones; the first source counts.

        Args:
            datum: int [n], datum codes.
            size: int64 [n, 2], height and width, 0 for unknown.
            who: name of the source of a size, for messages.

        Raises:
            InputError: sizes differ from known ones; with the count, the first named.
        """
        here = np.flatnonzero((size > 0).all(axis=1))
        fresh = here[self._teller[datum[here]] < 0]
        code, first = np.unique(datum[fresh], return_index=True)
        self.size[code] = size[fresh[first]]
        self._teller[code], self._row[code] = len(self._who), fresh[first]
        self._who.append(who)
        wrong = here[(self.size[datum[here]] != size[here]).any(axis=1)]
        if wrong.size:
            at = int(wrong[0])
            one = int(datum[at])
            (h, w), (height, width) = size[at], self.size[one]
            before = self._who[int(self._teller[one])](int(self._row[one]))
            more = f" So are {wrong.size - 1:,} more." if wrong.size > 1 else ""
            raise InputError(
                f"{who(at)}: its pixels are {h} x {w} (height x width), and those of {before}"
                f" {height} x {width}: masks of one datum ({self._ids[one]!r}) must be of one"
                f" size.{more} Write both at the size of the image.",
                code="sizes_differ",
                count=wrong.size,
            )


def layers_of(side: Side, sizes: Sizes, settings: Settings, workers: Workers) -> Layers:
    """Return the masks of a side; polygons are added by :func:`with_polygons`.

    Args:
        side: its rows.
        sizes: of the datums; sizes of masks are added.

    Raises:
        InputError: a mask that is malformed, or masks of different size on one datum.
    """
    form = side.form()
    parts: list[Masks] = []
    rows: list[Array] = []
    indices: list[Array] = []
    raster = np.flatnonzero(form == _RASTER)
    if raster.size:
        made = _rasters(side, raster, workers)
        parts.append(made.masks)
        rows.append(made.row)
        indices.append(made.index if made.index is not None else np.zeros(made.row.size, np.int64))
    mask = np.flatnonzero(form == _MASK)
    if mask.size:
        column = side.frame["mask"].gather(mask)
        parts.append(read_masks(column, side=side.role, over=workers.over, rows=mask))
        rows.append(mask)
        indices.append(np.zeros(mask.size, np.int64))
    row = np.concatenate([np.empty(0, np.int64), *rows])
    masks = concat(parts)
    size = np.stack([masks.height, masks.width], axis=1)
    sizes.hold(side.datum[row], size, lambda i: side.row(int(row[i])))
    index = None if side.layered else np.concatenate([np.empty(0, np.int64), *indices])
    return Layers(masks, row, index)


def with_polygons(
    layers: Layers, side: Side, sizes: Sizes, settings: Settings, workers: Workers
) -> Layers:
    """Add the masks of a side's polygons.

    Raises:
        InputError: a polygon that is malformed, or in an image of unknown size.
    """
    polygon = np.flatnonzero(side.form() == _POLYGON)
    if not polygon.size:
        return layers
    size = sizes.size[side.datum[polygon]]
    unknown = np.flatnonzero((size == 0).any(axis=1))
    if unknown.size:
        raise InputError(
            f"{side.row(int(polygon[unknown[0]]))}: {count_of(unknown.size, 'polygon')} of images"
            " whose height and width nothing says. Give a table of datums with columns height and"
            " width, or the columns themselves.",
            code="image_size_missing",
            side=side.role,
            count=unknown.size,
        )
    read = read_polygons(
        side.frame["polygon"].gather(polygon),
        side=side.role,
        invalid=settings.invalid_polygons,
        rows=polygon,
    )
    if settings.invalid_polygons == REFUSE:
        read.geometries  # noqa: B018  # built for their checks: rings that cross are refused
    masks = rasterise(read, size[:, 0], size[:, 1], workers.over)
    return Layers(
        concat([layers.masks, masks]), np.concatenate([layers.row, polygon]), layers.index
    )


def _rasters(side: Side, rows: Array, workers: Workers) -> Layers:
    """Masks of rasters: pixels of a value, or of any but 0; of label maps one for each index."""
    placed = side.places()
    places = [place for row in rows.tolist() if (place := placed[row]) is not None]
    if not side.layered:
        return _indices(places, rows, workers)
    values = np.array([side.column("raster_value")[row] for row in rows], np.float64)
    if all(place.pixels is None for place in places):
        masks = read_raster_masks(
            pl.Series("raster", [place.path for place in places], dtype=pl.String),
            np.array([place.band or 1 for place in places], np.int64),
            values,
            side=side.role,
            over=workers.over,
            rows=rows,
            remote=True,  # its side has refused those that may not be opened
        )
        return Layers(masks, rows, None)
    runs: list[Runs] = []
    shapes: list[tuple[int, ...]] = []
    for place, value in zip(places, values, strict=True):
        pixels = np.asarray(place.pixels)  # there: rows of files were read above
        _refuse_size(place.named, pixels.shape)
        chosen = pixels != 0 if np.isnan(value) else pixels == value
        runs.append(scan(chosen.view(np.uint8).ravel(), np.array([0, chosen.size])))
        shapes.append(chosen.shape)
    return Layers(_masks(runs, shapes), rows, None)


def _masks(runs: list[Runs], shapes: list[tuple[int, ...]]) -> Masks:
    """Masks of runs along the rows; each part of ``runs`` is of images of one shape."""
    each = [start.size - 1 for start, _, _ in runs]
    height, width = np.array(shapes, np.int64).reshape(-1, 2).repeat(each, axis=0).T.copy()
    return from_rows(joined(runs), height, width)


def _indices(places: list[MapRow], rows: Array, workers: Workers) -> Layers:
    """Split label maps into one mask per index.

    A map is read once, by strips, so that one in a file need not fit into memory.
    """
    files = any(place.pixels is None for place in places)

    def some(first: int, last: int) -> list[tuple[Masks, Array]]:
        found = []
        with in_thread() if files else nullcontext():
            for place in places[first:last]:
                by_value = ValueRuns()
                with ExitStack() as stack:
                    opened = map_of(place, stack)
                    _refuse_size(place.named, opened.shape)
                    for window in opened.strips(tuning().strip_pixels):
                        by_value.add(window.top, opened.read(window))
                index, runs = by_value.taken()
                found.append((_masks([runs], [opened.shape]), index))
        return found

    with quiet() if files else nullcontext():
        made = [one for part in workers.over(np.arange(rows.size + 1), some) for one in part]
    index = [one.astype(np.int64) for _, one in made]
    return Layers(
        concat([masks for masks, _ in made]),
        np.repeat(rows, [one.size for one in index]),
        np.concatenate([np.empty(0, np.int64), *index]),
    )


def _refuse_size(named: str, shape: tuple[int, ...]) -> None:
    height, width = shape
    if height * width >= 1 << 32:
        raise InputError(
            f"{named}: a raster of {height} x {width} pixels is compared with masks, which are"
            f" of fewer than"
            " 2^32. Cut both into tiles, each a datum of its own, or write both as label maps.",
            code="too_many_pixels",
            height=height,
            width=width,
        )
