"""Label maps in files: opened in pairs, aligned to one grid, read by windows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np

from ...geometry.grids import ANYWHERE, Grid, damage, grid_of, opened
from ...geometry.silence import silenced
from ...schemas.arrays import Array
from ...schemas.errors import InputError
from ...schemas.tuning import tuning
from ...schemas.wording import option
from .histograms import NOTHING

_CACHE = 1 << 26  # bytes of blocks that GDAL keeps


class Later(Protocol):
    """Pixels that are made when an array is asked for."""

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width."""
        ...

    @property
    def size(self) -> int:
        """Pixels."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the pixels."""
        ...

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array: ...


class MapRow(msgspec.Struct, frozen=True):
    """One row's label map.

    Attributes:
        row: row of its table.
        teller: names a row in messages: the side, the row, the datum.
        pixels: integers [h, w] in memory, or an object that converts to them on access.
        path: the file, if there is one.
        band: band of the file, from 1; None for its only one.
        coding: meaning of its values, one of ``ingest.label_map_sets``; empty for indices.
    """

    row: int
    teller: Callable[[int], str]
    pixels: Array | Later | None = None
    path: str = ""
    band: int | None = None
    coding: str = ""

    @property
    def named(self) -> str:
        """Return its name for messages."""
        return self.teller(self.row)


@contextmanager
def quiet() -> Iterator[None]:
    """GDAL with a small cache, and no warning that pictures have no place on earth."""
    import rasterio

    with silenced(), rasterio.Env(GDAL_CACHEMAX=_CACHE):
        yield


@contextmanager
def in_thread() -> Iterator[None]:
    """The same settings in another thread; warnings are silenced for all of them at once."""
    import rasterio

    with rasterio.Env(GDAL_CACHEMAX=_CACHE):
        yield


class Window(NamedTuple):
    """Rows and columns that are read together: [top, bottom) by [left, right)."""

    top: int
    bottom: int
    left: int
    right: int

    @property
    def size(self) -> int:
        """Pixels."""
        return (self.bottom - self.top) * (self.right - self.left)


class Map:
    """An open label map: its shape, and its pixels by windows.

    Args:
        stack: closes it.

    Raises:
        InputError: a file that cannot be read, has several bands or does not contain integers.
    """

    def __init__(self, place: MapRow, stack: ExitStack) -> None:
        self.place = place
        self.file: Any = None
        self._stack = stack
        if place.pixels is not None:
            self.pixels = np.asarray(place.pixels)
            height, width = place.pixels.shape
            self.shape: tuple[int, int] = (height, width)
            self.grid = Grid(height, width, ANYWHERE, "", 1)
            return
        assert place.path is not None
        try:  # its side has refused paths that may not be opened
            self.file = stack.enter_context(opened(place.path, remote=True))
        except OSError as error:  # rasterio's are
            why = str(error).rstrip(".")
            raise InputError(
                f"{place.named}: {place.path!r} cannot be read: {why}.",
                code="raster_unreadable",
                file=place.path,
                rows=[place.row],
            ) from None
        if why := damage(self.file, place.path):
            raise InputError(
                f"{place.named}: {place.path!r} {why}. Write the file again.",
                code="raster_unreadable",
                file=place.path,
                rows=[place.row],
            )
        self.grid = grid_of(self.file)
        self.shape = (self.grid.height, self.grid.width)
        self.band = self._band()
        dtype = self.file.dtypes[self.band - 1]
        if np.dtype(dtype).kind not in "iub":
            raise InputError(
                f"{place.named}: band {self.band} of {place.path!r} holds {dtype}, and pixels are"
                " indices of labels. Write the file with an integer type.",
                code="wrong_dtype",
                dtype=dtype,
                file=place.path,
            )

    def _band(self) -> int:
        import rasterio

        count, band = self.file.count, self.place.band
        if band is not None:
            if band > count:
                raise InputError(
                    f"{self.place.named}: {self.place.path!r} has {count} bands, and raster_band is"
                    f" {band}.",
                    code="band_missing",
                    bands=count,
                    band=band,
                )
            return band
        kinds = self.file.colorinterp
        shown = [i for i, kind in enumerate(kinds) if kind != rasterio.enums.ColorInterp.alpha]
        if len(shown) != 1:
            raise InputError(
                f"{self.place.named}: {self.place.path!r} has {count} bands"
                f" ({', '.join(kind.name for kind in kinds)}), and a label map one. Is it a"
                " picture? A column raster_band says which band holds the indices.",
                code="band_unnamed",
                bands=count,
            )
        return shown[0] + 1

    @property
    def block(self) -> tuple[int, int]:
        """Rows and columns that are decoded together."""
        if self.file is None:
            return 1, 1
        height, width = self.file.block_shapes[self.band - 1]
        return int(height), int(width)

    @property
    def by_blocks(self) -> bool:
        """True if any block can be read without those before it."""
        return self.file is None or self.file.driver == "GTiff"

    @property
    def whole(self) -> Window:
        """All of it."""
        return Window(0, self.shape[0], 0, self.shape[1])

    def strips(self, most: int) -> Iterator[Window]:
        """Windows of whole rows and blocks, of at most so many pixels unless one row has more."""
        height, width = self.shape
        block = self.block[0]
        rows = max(1, most // width // block) * block
        if height * width <= most:
            rows = height
        for top in range(0, height, rows):
            yield Window(top, min(top + rows, height), 0, width)

    def read(self, window: Window) -> Array:
        """The pixels of a window, integers [rows, columns]."""
        if self.place.pixels is not None:
            return self.pixels[window.top : window.bottom, window.left : window.right]
        return self._read(self.file, self.band, window)

    def _read(self, file: Any, band: int | None, window: Window | None) -> Array:
        """Pixels of a band, or of all, within a window, or all of them."""
        import rasterio

        top, bottom, left, right = window or self.whole
        place = None if window is None else ((top, bottom), (left, right))
        try:
            found: Array = file.read(band, window=place)
        except rasterio.errors.RasterioError as error:
            raise InputError(
                f"{self.place.named}: {self.place.path!r} breaks off within rows {top} to {bottom}:"
                f" {error.__cause__ or error}. Write the file again.",
                code="raster_unreadable",
                file=self.place.path,
                rows=[self.place.row],
            ) from None
        return found


class Resampled(Map):
    """A predicted map resampled to the grid of a ground truth, nearest neighbour.

    Args:
        found: the predicted map.
        truth: defines the grid.
        stack: closes it.
    """

    def __init__(self, found: Map, truth: Map, stack: ExitStack) -> None:
        self.place, self.shape, self._found = found.place, truth.shape, found
        self.grid = truth.grid
        self.file = self._warped = None
        if not (found.grid.placed and truth.grid.placed):
            self._rows, self._columns = (
                ((np.arange(ours) + 0.5) * theirs / ours).astype(np.int64)
                for ours, theirs in zip(truth.shape, found.shape, strict=True)
            )
            return
        import rasterio
        from rasterio.vrt import WarpedVRT

        plane = rasterio.crs.CRS.from_epsg(3857)  # any will do where neither side has one
        kinds = list(found.file.colorinterp)
        alpha = rasterio.enums.ColorInterp.alpha
        # The last band, added if necessary, is the mask of the predicted raster's extent.
        self._inside = kinds.index(alpha) + 1 if alpha in kinds else len(kinds) + 1
        try:
            self._warped = stack.enter_context(
                WarpedVRT(
                    found.file,
                    src_crs=found.file.crs or truth.file.crs or plane,
                    crs=truth.file.crs or found.file.crs or plane,
                    transform=truth.file.transform,
                    height=truth.shape[0],
                    width=truth.shape[1],
                    src_nodata=None,  # an index like any other
                    add_alpha=alpha not in kinds,
                    resampling=rasterio.enums.Resampling.nearest,
                )
            )
        except (rasterio.errors.RasterioError, ValueError) as error:
            raise InputError(
                f"{found.place.named}: {found.place.path!r} cannot be resampled: {error}.",
                code="raster_unreadable",
                file=found.place.path,
            ) from None
        self.band = found.band

    @property
    def block(self) -> tuple[int, int]:
        """Rows and columns that are decoded together."""
        return self._found.block

    @property
    def by_blocks(self) -> bool:
        """True if any block can be read without those before it."""
        return self._found.by_blocks

    def read(self, window: Window) -> Array:
        """Return the pixels of a window; ``NOTHING`` outside the predicted raster."""
        if self._warped is None:
            rows = self._rows[window.top : window.bottom]
            columns = self._columns[window.left : window.right]
            top, left = int(rows[0]), int(columns[0])
            read = self._found.read(Window(top, int(rows[-1]) + 1, left, int(columns[-1]) + 1))
            return read[(rows - top)[:, None], columns - left]
        found = self._read(self._warped, self.band, window)
        inside = self._read(self._warped, self._inside, window) != 0
        if inside.all():
            return found
        return np.where(inside, found.astype(np.int32), np.int32(NOTHING))


def aligned(truth: Map, found: Map, stack: ExitStack, *, resample: bool) -> Map:
    """Return the predicted map on the grid of the ground truth.

    Args:
        stack: closes maps opened here.
        resample: another grid may be resampled to the ground truth's.

    Raises:
        InputError: the grids differ, and resampling was not requested.
    """
    if not truth.grid.differs(found.grid):
        return found
    if not resample:
        raise InputError(
            f"{found.place.named}: its raster is {found.grid.told()}, the ground truth's"
            f" {truth.grid.told()}: their pixels do not line up."
            f"{' Are rows and columns exchanged?' if truth.shape == found.shape[::-1] else ''}"
            " Write both on one grid, or"
            f" {option('resample', True)} to take the nearest predicted pixel.",
            code="grids_differ",
            rows=[found.place.row],
        )
    return Resampled(found, truth, stack)


def windows_of(sides: list[Map]) -> list[Window]:
    """Split a map along whole blocks into windows small enough to read at once.

    Args:
        sides: maps of one shape; windows have all columns of a file whose blocks are lines.
    """
    height, width = sides[0].shape
    files = [side for side in sides if side.file is not None]
    if not files or height * width <= tuning().window_pixels:
        return [sides[0].whole]
    down, across = (max(side.block[axis] for side in files) for axis in (0, 1))
    rows = max(1, tuning().window_pixels // width // down) * down
    columns = width
    if rows * width > tuning().window_pixels:
        columns = min(width, max(1, tuning().window_pixels // rows // across) * across)
    return [
        Window(top, min(top + rows, height), left, min(left + columns, width))
        for top in range(0, height, rows)
        for left in range(0, width, columns)
    ]
