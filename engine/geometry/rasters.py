"""Raster files."""

from __future__ import annotations

import os
import re
import warnings
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from threading import Lock
from typing import IO, Any

import msgspec
import numpy as np
import polars as pl

from ..kernels.masks import Runs, joined, scan, take_runs
from ..schemas.arrays import Array
from ..schemas.tuning import tuning
from ..schemas.wording import option
from .columns import Origin, Over, Place, in_ranges, offsets_of
from .masks import Masks, from_rows

# Thread-safe suppression of rasterio's warnings about missing georeferences.

_LOCK = Lock()
_open = 0  # how many are within
_filters = ExitStack()


@contextmanager
def silenced() -> Iterator[None]:
    """Ignore rasterio's warnings about pictures without coordinates.

    Warning filters are per process: concurrent save and restore would remove them from other
    threads. So the first thread that enters sets them, and the last that exits restores the old
    ones.
    """
    global _open
    import rasterio

    with _LOCK:
        if not _open:
            _filters.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
            # rasterio multiplies transforms in a way that newer affine is about to drop.
            warnings.filterwarnings("ignore", category=PendingDeprecationWarning, module="rasterio")
        _open += 1
    try:
        yield
    finally:
        with _LOCK:
            _open -= 1
            if not _open:
                _filters.close()


# Access control for raster paths in untrusted tables: only plain files of plain formats, by
# default.

FORMATS = ("GTiff", "PNG", "JPEG", "JPEGXL", "WEBP", "JP2OpenJPEG", "BMP", "GIF", "PNM")
"""Allowed GDAL drivers; they do not follow references to other files."""


class RasterFiles(msgspec.Struct, frozen=True):
    """Allowed locations for the rasters of one table.

    Attributes:
        folder: folder of the table's file, searched after the current folder; empty for none.
        root: folder that must contain the files; None for any.
    """

    folder: str = ""
    root: str | None = None
    remote: bool = False

    def find(self, path: str) -> str | None:
        """Find a file relative to the current folder, or to that of the table.

        Args:
            path: as in the table; ``~`` is the user's folder.

        Returns:
            the path of a file; an unchanged address, if allowed; otherwise None.
        """
        for candidate in (os.path.expanduser(path), os.path.join(self.folder, path)):
            if os.path.isfile(candidate):
                return candidate
        return path if self.remote and is_remote(path) else None

    def refusal(self, path: str) -> str | None:
        """Return why a path is refused, with the remedy; None if it is allowed."""
        file = self.find(path)
        if file is None:
            if not is_remote(path):
                return None
            return (
                "is not a file of this machine, and a table's paths open only local files. Copy the"
                f" rasters here, or write {option('remote_rasters', True)} if you trust the table"
            )
        if self.root is None:
            return None
        if is_remote(file) and not os.path.isfile(file):
            return f"is not a file in {option('raster_root', self.root)}"
        root, real_path = (os.path.realpath(path) for path in (os.path.expanduser(self.root), file))
        if os.path.commonpath([root, real_path]) == root:
            return None
        return f"leads out of {option('raster_root', self.root)}, to {real_path}"


def is_remote(path: str) -> bool:
    return "://" in path or path.startswith("/vsi")


# Georeferencing of raster files, and reading them by strips of whole rows.

ANYWHERE = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)
"""Transform of an image without a place on Earth."""
_OFF = 1e-3  # tolerance between two grids, in pixels


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
        if self.crs and other.crs and self.crs != other.crs:
            from rasterio.crs import CRS

            if CRS.from_wkt(self.crs) != CRS.from_wkt(other.crs):
                return "coordinate reference systems differ"
        corners = np.array([[0, self.width, 0], [0, 0, self.height], [1, 1, 1]], np.float64)
        matrix, other_matrix = (
            np.array([*np.reshape(one.transform, (2, 3)), (0.0, 0.0, 1.0)]) for one in (self, other)
        )
        offset = (other_matrix - matrix) @ corners
        if np.linalg.det(matrix):
            offset = np.linalg.solve(matrix, offset)  # in pixels
        if np.abs(offset).max() > _OFF:
            return f"transforms {self.transform} against {other.transform}"
        return ""

    def describe(self) -> str:
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
    name, config = (
        os.path.abspath(path),
        {"CPL_VSIL_CURL_ALLOWED_EXTENSIONS": "{none}", "GDAL_DISABLE_READDIR_ON_OPEN": "TRUE"},
    )
    if not local:
        name, config = path, {}
    with silenced(), rasterio.Env(**config):
        try:
            dataset = rasterio.DatasetReader(name, driver=list(_formats()))
        except rasterio.errors.RasterioIOError as error:
            if "not recognized as being in a supported file format" not in str(error):
                raise
            formats = ", ".join(_formats())
            raise OSError(
                f"{path!r} is not a raster of a format that is read here: {formats}."
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
    """Return a description of damage to a PNG, BMP or PGM; empty if it is intact.

    GDAL checks neither lengths nor CRCs of chunks, and decodes as much as it can. It does check the
    zlib stream, and the other formats as far as possible. Files without checksums may be too long.
    """
    check = {"PNG": png_damage, "BMP": _bmp_damage, "PNM": _pgm_damage}.get(dataset.driver)
    if check is None or not os.path.isfile(path):
        return ""
    with open(path, "rb") as file:
        return check(file)


def _bmp_damage(file: IO[bytes]) -> str:
    """Reason why an uncompressed BMP is longer than its header states, in both ways it can."""
    head = file.read(54)
    size = file.seek(0, os.SEEK_END)
    whole, first, width, height = (
        int.from_bytes(head[at : at + 4], "little", signed=True) for at in (2, 10, 18, 22)
    )
    bits, compression = (int.from_bytes(head[at : at + 2], "little") for at in (28, 30))
    pixels = first + (width * bits + 31) // 32 * 4 * abs(height)
    if len(head) < 54 or compression or size <= pixels or size == whole:
        return ""
    return f"has {size:,} bytes, and {pixels:,} by its header: bytes were added"


_PGM = re.compile(rb"P5\s(?:\s|#[^\n]*\n)*(\d+)\s+(?:#[^\n]*\n)*(\d+)\s+(?:#[^\n]*\n)*(\d+)\s")


def _pgm_damage(file: IO[bytes]) -> str:
    """Reason why a PGM goes on behind its only image."""
    head = _PGM.match(file.read(1 << 10))
    if head is None:
        return ""
    width, height, most = map(int, head.groups())
    end = head.end() + width * height * (2 if most > 255 else 1)
    file.seek(end)
    rest = file.read(1 << 10).strip()
    if not rest or rest[:1] == b"P":  # another image
        return ""
    return f"has bytes behind its {width} x {height} pixels: bytes were added"


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
        checksum = zlib.crc32(kind)
        for left in range(length, 0, -_BLOCK):
            checksum = zlib.crc32(file.read(min(left, _BLOCK)), checksum)
        # Only chunks with a capital first letter matter to pixels.
        if checksum != int.from_bytes(file.read(4), "big") and kind[:1].isupper():
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
    result: list[Grid] = []
    for row in first.tolist():
        with reading(names[row], place, row, remote=remote) as dataset:
            result.append(grid_of(dataset))
    return [result[i] for i in code.tolist()]


def size_of(paths: pl.Series, *, side: str, rows: Array | None = None) -> tuple[Array, Array]:
    """Heights and widths of raster files, int64 [n] each; see :func:`grids`."""
    sizes = grids(paths, side=side, rows=rows)
    height = np.array([grid.height for grid in sizes], np.int64)
    width = np.array([grid.width for grid in sizes], np.int64)
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


# Runs of every value of an image, from one pass over its strips.


class ValueRuns:
    """Runs of each value of an image along its rows, built strip by strip.

    Compares neighbouring pixels instead of pixels with values: the cost is one pass over the pixels
    plus the runs, for any number of values.

    Args:
        values: float64 [n], requested values, ascending, distinct, not NaN; pixels are compared as
            float64. None for all that occur, which must be integers.
    """

    def __init__(self, values: Array | None = None) -> None:
        self._values = values
        self._parts: list[tuple[Array, Array, Array]] = []

    def add(self, first: int, pixels: Array) -> None:
        """Add the next strip from the top, without gaps.

        Args:
            pixels: numbers [rows, width]; fewer than 2^32 in all strips.
        """
        flat = pixels.reshape(-1)
        if not flat.size:
            return
        changes = np.flatnonzero(flat[1:] != flat[:-1]) + 1
        begin = np.concatenate([[0], changes]).astype(np.uint32)
        end = np.concatenate([changes, [flat.size]]).astype(np.uint32)
        value = flat[begin]
        if self._values is not None:
            number = value.astype(np.float64)
            code = np.searchsorted(self._values, number)
            code[code == self._values.size] = 0
            matches = (
                np.flatnonzero(self._values[code] == number) if self._values.size else code[:0]
            )
            value, begin, end = code[matches], begin[matches], end[matches]
        base = np.uint32(first * pixels.shape[1])
        self._parts.append((value, begin + base, end + base))

    def collect(self) -> tuple[Array, Runs]:
        """Return the runs of all strips.

        Returns:
            values, ascending: the requested ones, or all that occur in the dtype of the pixels; one
                row-major mask per value, possibly empty.
        """
        none = np.empty(0, np.int64), np.empty(0, np.uint32), np.empty(0, np.uint32)
        value, begin, end = (
            np.concatenate(column) for column in zip(*(self._parts or [none]), strict=True)
        )
        self._parts = []
        # Within a strip runs that touch are of different values: others go on from the last one.
        new = np.ones(value.size, np.bool_)
        new[1:] = (value[1:] != value[:-1]) | (begin[1:] != end[:-1])
        value, begin, end = value[new], begin[new], end[np.append(new[1:], True)[: new.size]]
        values, code = (self._values, value) if self._values is not None else _coded(value)
        if values.size <= 1 << 16:  # so narrow integers are sorted by counting
            code = code.astype(np.uint8 if values.size <= 1 << 8 else np.uint16, copy=False)
        order = np.argsort(code, kind="stable")
        counts = np.zeros(values.size, np.int64)
        np.add.at(counts, code, 1)
        return values, (offsets_of(counts), begin[order], end[order])


def _coded(value: Array) -> tuple[Array, Array]:
    """Distinct values, ascending, and the number of each run's value among them."""
    if value.dtype not in (np.uint8, np.bool_):
        values, code = np.unique(value, return_inverse=True)
        return values, code
    here = np.zeros(256, np.bool_)
    here[value.view(np.uint8)] = True
    number: Any = np.cumsum(here) - 1
    return np.flatnonzero(here).astype(value.dtype), number.astype(np.uint8)[value.view(np.uint8)]


# Masks from raster files: PNG, TIFF, GeoTIFF and other plain formats that rasterio reads.


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
    starts = np.searchsorted(code[members], np.arange(first.size + 1))

    def run(low: int, high: int) -> list[tuple[Array, Grid, Runs]]:
        masks = []
        for file in range(low, high):
            file_rows = members[starts[file] : starts[file + 1]]
            with reading(names[file_rows[0]], place, int(file_rows[0]), remote=remote) as dataset:
                grid = grid_of(dataset)
                _refuse_grid(grid, file_rows, bands[file_rows], names[file_rows[0]], place)
                _refuse_colours(dataset, file_rows, bands[file_rows], values[file_rows], place)
                read = np.where(np.isnan(bands[file_rows]), 1, bands[file_rows]).astype(np.int64)
                masks.append((file_rows, grid, _read_file(dataset, read, values[file_rows])))
        return masks

    parts = [one for part in in_ranges(over, starts, run) for one in part]
    order = np.concatenate([np.zeros(0, np.int64), *(file_rows for file_rows, _, _ in parts)])
    sizes = [(grid.height, grid.width) for file_rows, grid, _ in parts for _ in file_rows]
    height, width = np.array(sizes, np.int64).reshape(-1, 2).T.copy()
    runs = joined([masks for _, _, masks in parts])
    return from_rows(runs, height, width).take(np.argsort(order))


def _refuse_grid(grid: Grid, rows: Array, bands: Array, path: str, place: Place) -> None:
    row_place = place.take(rows)
    row_place.refuse(
        "band_missing",
        (bands < 1) | (bands > grid.bands),
        f"with a raster of {grid.bands} bands, without the requested one",
        "Bands count from 1.",
        lambda i: f"band {bands[i]:g} of {path}",
        bands=grid.bands,
    )
    row_place.refuse(
        "too_many_pixels",
        np.full(rows.size, grid.height * grid.width >= 1 << 32),
        "with rasters of 2^32 pixels or more",
        "Cut them into tiles, one datum each.",
        lambda i: f"{path}: {grid.height} x {grid.width}",
    )


def _refuse_colours(dataset: Any, rows: Array, bands: Array, values: Array, place: Place) -> None:
    """Refuse colour pictures whose rows define neither band nor value of the object."""
    row_place, unnamed = place.take(rows), np.isnan(bands)
    several = dataset.count > 1
    row_place.refuse(
        "band_unnamed",
        unnamed if several else np.zeros(rows.size, np.bool_),
        f"with a raster of {dataset.count} bands, and no band named",
        "Masks are images of one band. If it is no picture, name the band of the objects in a"
        " column raster_band.",
        lambda i: dataset.name,
        bands=dataset.count,
    )
    palette = not several and dataset.colorinterp[0].name == "palette"
    row_place.refuse(
        "raster_value_unnamed",
        unnamed & np.isnan(values) if palette else np.zeros(rows.size, np.bool_),
        "with a raster of colours by a palette, and no value named",
        "Give the object's number in the palette in a column raster_value, or raster_band 1 if all"
        " numbers but 0 are objects.",
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
        distinct, code = np.unique(values[of_one], return_inverse=True)
        by_value = ValueRuns(distinct)
        pieces: list[tuple[Array, Array]] = []
        for first, pixels in strips(dataset, band):
            if distinct.size:
                by_value.add(first, pixels)
            if of_any.any():
                chosen = np.asarray(pixels != 0)
                if nodata is not None:
                    chosen &= ~np.isnan(pixels) if np.isnan(nodata) else pixels != nodata
                bounds = np.array([0, chosen.size])
                _, begin, end = scan(chosen.view(np.uint8).ravel(), bounds)
                base = np.uint32(first * dataset.width)
                pieces.append((begin + base, end + base))
        parts += [by_value.collect()[1], _stitched(pieces)]
        place[of_one] = masks + code
        place[of_any] = masks + distinct.size
        masks += distinct.size + 1
    return take_runs(joined(parts), place)


def _stitched(pieces: list[tuple[Array, Array]]) -> Runs:
    """Join the runs of one mask that continue from strip to strip."""
    none = np.empty(0, np.uint32)
    begin = np.concatenate([none, *(piece[0] for piece in pieces)])
    end = np.concatenate([none, *(piece[1] for piece in pieces)])
    goes_on = end[:-1] == begin[1:]
    if begin.size:
        begin, end = begin[np.r_[True, ~goes_on]], end[np.r_[~goes_on, True]]
    return np.array([0, begin.size]), begin, end


# Compressed label maps, for collecting many batches in memory.

_LEVEL = 1  # of zlib: neighbouring pixels are alike, and more effort saves little


class PackedMap(msgspec.Struct, frozen=True):
    """Compressed label map of whole numbers [h, w].

    Attributes:
        packed: pixels, row-major, zlib-compressed.
    """

    packed: bytes
    shape: tuple[int, int]
    code: str

    ndim = 2

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the pixels."""
        return np.dtype(self.code)

    @property
    def size(self) -> int:
        """Pixels."""
        return self.shape[0] * self.shape[1]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """The pixels, read-only unless they are copied."""
        pixels = np.frombuffer(zlib.decompress(self.packed), self.dtype).reshape(self.shape)
        return pixels if dtype is None else pixels.astype(dtype)


_COLUMNS = {"packed": pl.Binary, "height": pl.Int64, "width": pl.Int64, "code": pl.String}


def packed(maps: Iterable[Any]) -> pl.Series:
    """Arrays [h, w] of whole numbers as a column of structs, compressed."""
    arrays = [np.asarray(one) for one in maps]
    rows = [(zlib.compress(one.tobytes(), _LEVEL), *one.shape, one.dtype.str) for one in arrays]
    frame = pl.DataFrame(rows, schema=_COLUMNS, orient="row")
    return frame.to_struct("raster")


def unpacked(column: pl.Series) -> pl.Series:
    """Convert the result of :func:`packed` to a column of :class:`PackedMap`."""
    rows = column.struct.unnest().iter_rows()
    maps = [PackedMap(pixels, (height, width), code) for pixels, height, width, code in rows]
    return pl.Series(column.name, maps, dtype=pl.Object)
