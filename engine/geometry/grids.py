"""Georeferencing of raster files, and reading them by strips of whole rows."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import IO, Any

import msgspec
import numpy as np
import polars as pl

from evalengine.schemas.tuning import tuning

from ..schemas.arrays import Array
from .places import Origin, Place
from .raster_files import FORMATS, is_remote
from .silence import silenced

ANYWHERE = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)
"""Transform of an image without a place on Earth."""
_OFF = 1e-3  # of a pixel: how far two grids may lie apart and be one


class Grid(msgspec.Struct, frozen=True):
    """Size and georeference of a raster.

    Attributes:
        height: rows of pixels.
        width: pixels per row.
        transform: (a, b, c, d, e, f), x = a * column + b * row + c and y = d * column + e * row +
            f; (1, 0, 0, 0, 1, 0) without a georeference.
        crs: coordinate reference system as WKT, empty if there is none.
    """

    height: int
    width: int
    transform: tuple[float, float, float, float, float, float]
    crs: str
    bands: int

    @property
    def placed(self) -> bool:
        """Return whether the raster is georeferenced; a plain picture is not."""
        return bool(self.crs) or self.transform != ANYWHERE

    def differs(self, other: Grid) -> str:
        """Return why pixels of two rasters do not coincide; empty if they do.

        Transforms are compared to a thousandth of a pixel at three corners, along rows and columns;
        those of plain pictures are not.
        """
        if (self.height, self.width) != (other.height, other.width):
            return (
                f"{self.height} x {self.width} pixels against {other.height} x {other.width}"
                " (height x width)"
            )
        if not (self.placed and other.placed):
            return ""
        if self.crs and other.crs and not _same_crs(self.crs, other.crs):
            return "coordinate reference systems differ"
        corners = np.array([[0, self.width, 0], [0, 0, self.height], [1, 1, 1]], np.float64)
        here, there = (
            np.array([*np.reshape(one.transform, (2, 3)), (0.0, 0.0, 1.0)]) for one in (self, other)
        )
        apart = (there - here) @ corners
        if np.linalg.det(here):
            apart = np.linalg.solve(here, apart)  # in pixels
        if np.abs(apart).max() > _OFF:
            return f"transforms {self.transform} against {other.transform}"
        return ""

    def told(self) -> str:
        """Describe the size and, if georeferenced, projection, resolution and origin."""
        if not self.placed:
            return f"{self.height} x {self.width}"
        from rasterio.crs import CRS

        crs = CRS.from_wkt(self.crs).to_string() if self.crs else "no projection"
        a, _, c, _, e, f = self.transform
        return (
            f"{self.height} x {self.width}, {crs}, pixels of {a:.12g} x {e:.12g} from"
            f" ({c:.12g}, {f:.12g})"
        )


def _same_crs(one: str, two: str) -> bool:
    from rasterio.crs import CRS

    return one == two or bool(CRS.from_wkt(one) == CRS.from_wkt(two))


@contextmanager
def opened(path: str, *, remote: bool = False) -> Iterator[Any]:
    """Open a rasterio dataset, without its warning about missing georeferences.

    Args:
        path: a plain file of one of the formats in ``FORMATS``.

    Raises:
        OSError: no such file, or not a raster; with rasterio's message.
    """
    import rasterio

    local = os.path.isfile(path)
    if not local and not remote:
        raise OSError(f"{path!r} is not a file of this machine.")
    # An absolute path cannot be mistaken for a GDAL prefix. Sidecar files (overviews, masks) are
    # not fetched, and are probed one by one: listing a folder of 1,000 images for each of them
    # would take longer than opening it.
    name, more = (
        os.path.abspath(path),
        {
            "CPL_VSIL_CURL_ALLOWED_EXTENSIONS": "{none}",
            "GDAL_DISABLE_READDIR_ON_OPEN": "TRUE",
        },
    )
    if not local:
        name, more = path, {}
    with silenced(), rasterio.Env(**more):
        try:
            dataset = rasterio.DatasetReader(name, driver=list(_formats()))
        except rasterio.errors.RasterioIOError as error:
            if "not recognized as being in a supported file format" not in str(error):
                raise
            known = ", ".join(_formats())
            raise OSError(
                f"{path!r} is not a raster of a format that is read here: {known}."
            ) from None
    with dataset:
        yield dataset


@cache
def _formats() -> tuple[str, ...]:
    """Return the allowed formats that this build of GDAL supports."""
    import rasterio

    with rasterio.Env() as env:
        return tuple(name for name in FORMATS if name in env.drivers())


_PNG = b"\x89PNG\r\n\x1a\n"
_BLOCK = 1 << 20


def damage(dataset: Any, path: str) -> str:
    """Return a description of damage to a PNG; empty if it is intact.

    GDAL checks neither lengths nor CRCs of chunks, and decodes as much as it can. It does check the
    zlib stream, and the other formats as far as possible.
    """
    if dataset.driver != "PNG" or not os.path.isfile(path):
        return ""
    with open(path, "rb") as file:
        return png_damage(file)


def png_damage(file: IO[bytes]) -> str:
    """Reason why a PNG is not as it was written; empty if it is."""
    size = file.seek(0, os.SEEK_END)
    at = file.seek(len(_PNG))
    while len(head := file.read(8)) == 8:
        length, kind = int.from_bytes(head[:4], "big"), head[4:]
        if not (kind.isascii() and kind.isalpha()):
            return f"is damaged: no chunk of PNG begins at byte {at:,}"
        if at + length + 12 > size:
            break
        found = zlib.crc32(kind)
        for left in range(length, 0, -_BLOCK):
            found = zlib.crc32(file.read(min(left, _BLOCK)), found)
        # Only chunks with a capital first letter matter to pixels.
        if found != int.from_bytes(file.read(4), "big") and kind[:1].isupper():
            return f"is damaged: the CRC of its chunk {kind.decode()} at byte {at:,} is wrong"
        if kind == b"IEND":
            return ""
        at += length + 12
    return "breaks off before the end of its image"


def grid_of(dataset: Any) -> Grid:
    """Return the grid of an open dataset."""
    with silenced():
        transform = tuple(dataset.transform)[:6]
        crs = dataset.crs.to_wkt() if dataset.crs else ""
    return Grid(dataset.height, dataset.width, transform, crs, dataset.count)


def strips(dataset: Any, band: int, most: int | None = None) -> Iterator[tuple[int, Array]]:
    """Yield whole rows of one band, strip by strip from the top.

    Args:
        band: from 1.
        most: maximum number of pixels per strip, unless one row of the file's blocks has more; None
            for the default of :class:`~evalengine.schemas.tuning.Tuning`.

    Yields:
        first row; pixels [rows, width] in the file's dtype.
    """
    from rasterio.windows import Window

    block = int(dataset.block_shapes[band - 1][0])
    most = tuning().strip_pixels if most is None else most
    rows = max(most // max(dataset.width, 1) // block, 1) * block
    for first in range(0, dataset.height, rows):
        n = min(rows, dataset.height - first)
        yield first, dataset.read(band, window=Window(0, first, dataset.width, n))


def grids(
    paths: pl.Series,
    *,
    side: str,
    rows: Array | None = None,
    origin: Origin | None = None,
    remote: bool = False,
) -> list[Grid]:
    """Return the grid of each file; every file is opened once, pixels are not read.

    Args:
        rows: int64 [n], row numbers in the table, for errors.

    Raises:
        InputError: a null, a missing file, or one that cannot be read, each with its row.
    """
    place = Place(side, paths.name, rows, origin)
    first, code = distinct(paths, place, remote=remote)
    names = paths.to_list()
    found: list[Grid] = []
    for row in first.tolist():
        with reading(names[row], place, row, remote=remote) as dataset:
            found.append(grid_of(dataset))
    return [found[i] for i in code.tolist()]


def size_of(paths: pl.Series, *, side: str, rows: Array | None = None) -> tuple[Array, Array]:
    """Heights and widths of raster files, int64 [n] each; see :func:`grids`."""
    found = grids(paths, side=side, rows=rows)
    height = np.array([grid.height for grid in found], np.int64)
    width = np.array([grid.width for grid in found], np.int64)
    return height, width


def distinct(paths: pl.Series, place: Place, *, remote: bool) -> tuple[Array, Array]:
    """The first row of each path, and the number of each row's path among those."""
    place.refuse(
        "null_values",
        paths.is_null().to_numpy(),
        "without a path (null)",
        "Remove these rows, or give files.",
    )
    code = paths.cast(pl.String).rank("dense").cast(pl.Int64).to_numpy() - 1
    _, first, number = np.unique(code, return_index=True, return_inverse=True)
    missing = np.array(
        [
            not os.path.isfile(path) and not (remote and is_remote(path))
            for path in paths.gather(first).to_list()
        ],
        np.bool_,
    )
    place.refuse(
        "file_missing",
        missing[number] if missing.size else np.zeros(0, np.bool_),
        "with files that do not exist",
        f"Paths are relative to the working folder, {os.getcwd()!r}.",
        paths.__getitem__,
    )
    return first, number


@contextmanager
def reading(path: str, place: Place, row: int, *, remote: bool = False) -> Iterator[Any]:
    """Open a dataset; errors name the row."""
    try:
        with opened(path, remote=remote) as dataset:
            if why := damage(dataset, path):
                raise OSError(f"{path!r} {why}. Write the file again.")
            yield dataset
    except OSError as error:  # rasterio's are
        raise place.error(
            "raster_unreadable",
            f": the raster of {place.named(row)} cannot be read: {error}",
            rows=[place.row(row)],
        ) from error
