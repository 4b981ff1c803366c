"""Masks from raster files: PNG, TIFF, GeoTIFF and other plain formats that rasterio reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ..kernels.run_layout import Runs, joined, take_runs
from ..kernels.run_pixels import scan
from ..schemas.arrays import Array
from .convert import hulls, outlines
from .grids import Grid, distinct, grid_of, grids, opened, reading, size_of, strips
from .mask_runs import Masks, from_rows
from .places import Origin, Place
from .ranges import Over, in_ranges
from .value_runs import ValueRuns

__all__ = [
    "Grid",
    "grid_of",
    "grids",
    "hulls",
    "opened",
    "outlines",
    "read_raster_masks",
    "size_of",
    "strips",
]


def read_raster_masks(
    paths: pl.Series,
    band: Array | None = None,
    value: Array | None = None,
    *,
    side: str,
    over: Over | None = None,
    rows: Array | None = None,
    origin: Origin | None = None,
    remote: bool = False,
) -> Masks:
    """Read masks from raster files: the pixels with a value, or any except 0 and no-data.

    Every file is read once per requested band, in strips of whole rows, so it need not fit into
    memory. Masks are stored as runs.

    Args:
        band: number [n], from 1; NaN if not given, which requires a file of one band.
        value: float64 [n], NaN for any value except 0 (default).
        rows: int64 [n], row numbers in the table, for errors.

    Raises:
        InputError: a null, a missing file, one that cannot be read, has no such band or has 2^32
            pixels, or a colour picture without band and value, each with its row.
    """
    place = Place(side, paths.name, rows, origin)
    n = paths.len()
    first, code = distinct(paths, place, remote=remote)
    bands = np.full(n, np.nan) if band is None else np.asarray(band, np.float64)
    values = np.full(n, np.nan) if value is None else np.asarray(value, np.float64)
    names = paths.to_list()
    members = np.argsort(code, kind="stable")
    ends = np.searchsorted(code[members], np.arange(first.size + 1))

    def run(low: int, high: int) -> list[tuple[Array, Grid, Runs]]:
        found = []
        for file in range(low, high):
            own = members[ends[file] : ends[file + 1]]
            with reading(names[own[0]], place, int(own[0]), remote=remote) as dataset:
                grid = grid_of(dataset)
                _refuse_grid(grid, own, bands[own], names[own[0]], place)
                _refuse_colours(dataset, own, bands[own], values[own], place)
                read = np.where(np.isnan(bands[own]), 1, bands[own]).astype(np.int64)
                found.append((own, grid, _read_file(dataset, read, values[own])))
        return found

    parts = [one for part in in_ranges(over, ends, run) for one in part]
    order = np.concatenate([np.zeros(0, np.int64), *(own for own, _, _ in parts)])
    sizes = [(grid.height, grid.width) for own, grid, _ in parts for _ in own]
    height, width = np.array(sizes, np.int64).reshape(-1, 2).T.copy()
    runs = joined([found for _, _, found in parts])
    return from_rows(runs, height, width).take(np.argsort(order))


def _refuse_grid(grid: Grid, rows: Array, bands: Array, path: str, place: Place) -> None:
    there = place.take(rows)
    there.refuse(
        "band_missing",
        (bands < 1) | (bands > grid.bands),
        f"with a raster of {grid.bands} bands that lacks the one asked for",
        "Bands count from 1.",
        lambda i: f"band {bands[i]:g} of {path}",
        bands=grid.bands,
    )
    there.refuse(
        "too_many_pixels",
        np.full(rows.size, grid.height * grid.width >= 1 << 32),
        "with rasters of 2^32 pixels or more",
        "Cut them into tiles, each a datum of its own.",
        lambda i: f"{path}: {grid.height} x {grid.width}",
    )


def _refuse_colours(dataset: Any, rows: Array, bands: Array, values: Array, place: Place) -> None:
    """Refuse colour pictures whose rows define neither band nor value of the object."""
    there, unnamed = place.take(rows), np.isnan(bands)
    several = dataset.count > 1
    there.refuse(
        "band_unnamed",
        unnamed if several else np.zeros(rows.size, np.bool_),
        f"with a raster of {dataset.count} bands, and no band named",
        "Masks are images of one band; is it a picture? A column raster_band says which band"
        " holds the objects.",
        lambda i: dataset.name,
        bands=dataset.count,
    )
    palette = not several and dataset.colorinterp[0].name == "palette"
    there.refuse(
        "raster_value_unnamed",
        unnamed & np.isnan(values) if palette else np.zeros(rows.size, np.bool_),
        "with a raster of colours by a palette, and no value named",
        "A column raster_value says which number in the palette is the object; a column"
        " raster_band (1) says that all numbers but 0 are.",
        lambda i: dataset.name,
    )


def _read_file(dataset: Any, bands: Array, values: Array) -> Runs:
    """Read one mask per requested band and value of a file, as row-major runs.

    A band is read once; additional values cost only their runs.
    """
    parts: list[Runs] = []
    place = np.zeros(bands.size, np.int64)  # of each row among the masks of all parts
    masks = 0
    for band in np.unique(bands).tolist():
        nodata = dataset.nodatavals[band - 1]
        of_any = (bands == band) & np.isnan(values)
        of_one = (bands == band) & ~np.isnan(values)
        asked, code = np.unique(values[of_one], return_inverse=True)
        by_value = ValueRuns(asked)
        pieces: list[tuple[Array, Array]] = []
        for first, pixels in strips(dataset, band):
            if asked.size:
                by_value.add(first, pixels)
            if of_any.any():
                chosen = _chosen(pixels, nodata)
                whole = np.array([0, chosen.size])
                _, begin, end = scan(chosen.view(np.uint8).ravel(), whole)
                base = np.uint32(first * dataset.width)
                pieces.append((begin + base, end + base))
        parts += [by_value.taken()[1], _stitched(pieces)]
        place[of_one] = masks + code
        place[of_any] = masks + asked.size
        masks += asked.size + 1
    return take_runs(joined(parts), place)


def _chosen(pixels: Array, nodata: float | None) -> Array:
    """Return flags for pixels that are neither 0 nor the file's no-data, bool [rows, width]."""
    chosen = pixels != 0
    if nodata is not None:
        chosen &= ~np.isnan(pixels) if np.isnan(nodata) else pixels != nodata
    return np.asarray(chosen)


def _stitched(pieces: list[tuple[Array, Array]]) -> Runs:
    """Join the runs of one mask that continue from strip to strip."""
    none = np.empty(0, np.uint32)
    begin = np.concatenate([none, *(piece[0] for piece in pieces)])
    end = np.concatenate([none, *(piece[1] for piece in pieces)])
    goes_on = end[:-1] == begin[1:]
    if begin.size:
        begin, end = begin[np.r_[True, ~goes_on]], end[np.r_[~goes_on, True]]
    return np.array([0, begin.size]), begin, end
