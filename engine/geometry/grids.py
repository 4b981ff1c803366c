"""Where the pixels of raster files lie, and reading them by strips of whole rows."""

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

from .places import Origin, Place
from .ranges import Array
from .raster_files import FORMATS, is_remote
from .silence import silenced

ANYWHERE = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)
"""Transform of an image without a place on Earth."""
_OFF = 1e-3  # of a pixel: how far two grids may lie apart and be one


class Grid(msgspec.Struct, frozen=True):
    """Where the pixels of a raster lie.

    Attributes:
        height: rows of pixels.
        width: pixels of a row.
        transform: the six numbers (a, b, c, d, e, f) that bring column and row to coordinates,
            x = a * column + b * row + c and y = d * column + e * row + f; those of an image
            without a place on Earth are (1, 0, 0, 0, 1, 0).
        crs: coordinate reference system as WKT, empty if there is none.
        bands: how many there are.
    """

    height: int
    width: int
    transform: tuple[float, float, float, float, float, float]
    crs: str
    bands: int

    @property
    def placed(self) -> bool:
        """Whether it has a place on Earth; a picture has none, and lies anywhere."""
        return bool(self.crs) or self.transform != ANYWHERE

    def differs(self, other: Grid) -> str:
        """Why pixel (row, column) of two rasters is not the same place; empty if it is.

        Transforms are held to a thousandth of a pixel at three corners, along rows and columns;
        those of pictures that lie anywhere are not.
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
        """Size, and of what has a place projection, resolution and place, in words."""
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
    """A rasterio dataset, without its warning that an image has no place on Earth.

    Args:
        path: a plain file of one of the formats in ``FORMATS``.
        remote: whether it may be an address or in one of GDAL's virtual file systems.

    Raises:
        OSError: there is no such file, or it is not a raster; rasterio's message.
    """
    import rasterio

    local = os.path.isfile(path)
    if not local and not remote:
        raise OSError(f"{path!r} is not a file of this machine.")
    # An absolute path has no prefix that GDAL could take for one of its own; what a file may name
    # beside itself (overviews, masks) is not fetched; and such files are looked for one by one, as
    # listing a folder of 1,000 images for each of them takes longer than all else of opening it.
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
    """Those of the formats that this build of GDAL has."""
    import rasterio

    with rasterio.Env() as env:
        return tuple(name for name in FORMATS if name in env.drivers())


_PNG = b"\x89PNG\r\n\x1a\n"
_BLOCK = 1 << 20


def damage(dataset: Any, path: str) -> str:
    """Reason why the pixels of a PNG are not those that were written; empty if they are.

    GDAL checks neither the lengths nor the CRCs of chunks, and decodes what it can. It checks the
    zlib stream itself, and the other formats as far as they can be checked.

    Args:
        dataset: the open dataset.
        path: of its file; one that is not on this machine is not checked.
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
    """Where the pixels of an open dataset lie."""
    with silenced():
        transform = tuple(dataset.transform)[:6]
        crs = dataset.crs.to_wkt() if dataset.crs else ""
    return Grid(dataset.height, dataset.width, transform, crs, dataset.count)


def strips(dataset: Any, band: int, most: int | None = None) -> Iterator[tuple[int, Array]]:
    """Whole rows of one band, strip by strip from the top.

    Args:
        dataset: an open dataset.
        band: from 1.
        most: pixels of a strip at most, unless one row of the file's blocks has more; None for
            :class:`~evalengine.schemas.tuning.Tuning`'s.

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
    """Where the pixels of each file lie; every file is opened once, its pixels are not read.

    Args:
        paths: n paths.
        side: the table they are of, for errors.
        rows: int64 [n], their row numbers in the table, for errors.
        origin: what the user calls those rows.
        remote: whether addresses may be opened.

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
    """An open dataset; what goes wrong with it names the row."""
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
