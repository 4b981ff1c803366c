"""Rows of label maps and their files, joint histograms, and counts of pairs of indices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np
import polars as pl

from ..atomic import reads
from ..geometry.masks import boundary_depth
from ..geometry.rasters import (
    ANYWHERE,
    Grid,
    PackedMap,
    RasterFiles,
    damage,
    grid_of,
    opened,
    silenced,
)
from ..ingest.frames import Frames
from ..ingest.label_map_files import CODINGS, GREY, OWN_COLOURS, has_format, is_coloured
from ..ingest.problems import count_of
from ..ingest.shapes import FORMS
from ..kernels.label_maps import ByteCounter, colour_ids, count_wide, segment_edges
from ..schemas.arrays import Array
from ..schemas.contract import DEFAULT_LABEL_KEY
from ..schemas.errors import N_EXAMPLES, InputError, ReadError
from ..schemas.tuning import tuning
from ..schemas.wording import option
from .encoding import Workers

# Joint histograms of pairs of label maps with arbitrary integers.

NOTHING = np.iinfo(np.int32).min
"""Index for "no label": pixels of a datum that a side does not have."""
_INT32 = np.iinfo(np.int32)
_BYTE, _FAR = 255, 16


class Pairs(msgspec.Struct, frozen=True):
    """Number of pixels by pair of indices, per pair of maps.

    Attributes:
        place: int64 [n], index of the pair of maps.
        truth: int64 [n], index in the ground truth, or ``NOTHING``.
        predicted: int64 [n], index in the prediction, or ``NOTHING``.
        count: int64 [n], pixels.
    """

    place: Array
    truth: Array
    predicted: Array
    count: Array

    @staticmethod
    def joined(parts: Sequence[Pairs]) -> Pairs:
        """All of them in one."""
        none = np.empty(0, np.int64)
        return Pairs(
            *(
                np.concatenate([none, *(getattr(part, name) for part in parts)])
                for name in Pairs.__struct_fields__
            )
        )


class Counter:
    """Counts pairs of maps, or of parts of them; one for each thread."""

    def __init__(self) -> None:
        self._bytes: ByteCounter | None = None
        self._places: list[int] = []
        self._parts: list[Array] = []

    def add(self, place: int, truth: Array | None, predicted: Array | None) -> None:
        """Count a pair of maps; for a side that is None every pixel is ``NOTHING``.

        Args:
            place: index of the pair.
            truth: integers [h, w].
            predicted: integers [h, w], of the same shape.
        """
        sides = [narrowed(side) for side in (truth, predicted) if side is not None]
        first, second = sides if len(sides) == 2 else (sides[0], np.zeros_like(sides[0]))
        if truth is None:
            first, second = second, first
        if first.dtype == second.dtype == np.uint8:
            if self._bytes is None:
                self._bytes = ByteCounter()
            self._bytes.add(first, second)
            part = self._bytes.take()
        else:
            part = np.stack(count_wide(first, second))
        if truth is None:
            part[0] = NOTHING
        if predicted is None:
            part[1] = NOTHING
        self._places.append(place)
        self._parts.append(part)

    def collect(self) -> Pairs:
        """All that was counted."""
        many = [part.shape[1] for part in self._parts]
        place = np.repeat(np.array(self._places, np.int64), many)
        return Pairs(place, *np.concatenate([np.empty((3, 0), np.int64), *self._parts], axis=1))


def narrowed(side: Array) -> Array:
    """Return indices as bytes if they fit, else as int32.

    Raises:
        InputError: an index beyond int32.
    """
    if side.dtype == np.uint8:
        return side
    if side.dtype == np.bool_:
        return side.view(np.uint8)
    if (
        side[::_FAR, ::_FAR].max(initial=0) <= _BYTE
    ):  # ids of segments show at once that they are not
        small = side.astype(np.uint8)
        if bool((small == side).all()):
            return small
    if side.dtype.itemsize > 4 or side.dtype == np.uint32:
        low, high = int(side.min()), int(side.max())
        if low <= _INT32.min or high > _INT32.max:
            raise InputError(
                f"label indices from {low} to {high}: they must fit into signed 32-bit integers."
                " Give labels smaller indices.",
                code="too_high",
                low=low,
                high=high,
            )
    return side.astype(np.int32, copy=False)


# Label maps in files: opened in pairs, aligned to one grid, read by windows.

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
                f"{place.named}: band {self.band} of {place.path!r} has type {dtype}, but pixels"
                " are indices of labels. Write the file with an integer type.",
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
        bands = [i for i, kind in enumerate(kinds) if kind != rasterio.enums.ColorInterp.alpha]
        if len(bands) != 1:
            raise InputError(
                f"{self.place.named}: {self.place.path!r} has {count} bands"
                f" ({', '.join(kind.name for kind in kinds)}), but a label map has one. If it is"
                " no picture, name the band of the indices in a column raster_band.",
                code="band_unnamed",
                bands=count,
            )
        return bands[0] + 1

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
            pixels: Array = file.read(band, window=place)
        except rasterio.errors.RasterioError as error:
            raise InputError(
                f"{self.place.named}: {self.place.path!r} breaks off within rows {top} to {bottom}:"
                f" {error.__cause__ or error}. Write the file again.",
                code="raster_unreadable",
                file=self.place.path,
                rows=[self.place.row],
            ) from None
        return pixels


class Resampled(Map):
    """A predicted map resampled to the grid of a ground truth, nearest neighbour.

    Args:
        found: the predicted map.
        truth: defines the grid.
        stack: closes it.
    """

    def __init__(self, predicted: Map, truth: Map, stack: ExitStack) -> None:
        self.place, self.shape, self._side = predicted.place, truth.shape, predicted
        self.grid = truth.grid
        self.file = self._warped = None
        if not (predicted.grid.placed and truth.grid.placed):
            self._rows, self._columns = (
                ((np.arange(ours) + 0.5) * theirs / ours).astype(np.int64)
                for ours, theirs in zip(truth.shape, predicted.shape, strict=True)
            )
            return
        import rasterio
        from rasterio.vrt import WarpedVRT

        plane = rasterio.crs.CRS.from_epsg(3857)  # any, if neither side has one
        kinds = list(predicted.file.colorinterp)
        alpha = rasterio.enums.ColorInterp.alpha
        # The last band, added if necessary, is the mask of the predicted raster's extent.
        self._inside = kinds.index(alpha) + 1 if alpha in kinds else len(kinds) + 1
        try:
            self._warped = stack.enter_context(
                WarpedVRT(
                    predicted.file,
                    src_crs=predicted.file.crs or truth.file.crs or plane,
                    crs=truth.file.crs or predicted.file.crs or plane,
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
                f"{predicted.place.named}: {predicted.place.path!r} cannot be resampled: {error}.",
                code="raster_unreadable",
                file=predicted.place.path,
            ) from None
        self.band = predicted.band

    @property
    def block(self) -> tuple[int, int]:
        """Rows and columns that are decoded together."""
        return self._side.block

    @property
    def by_blocks(self) -> bool:
        """True if any block can be read without those before it."""
        return self._side.by_blocks

    def read(self, window: Window) -> Array:
        """Return the pixels of a window; ``NOTHING`` outside the predicted raster."""
        if self._warped is None:
            rows = self._rows[window.top : window.bottom]
            columns = self._columns[window.left : window.right]
            top, left = int(rows[0]), int(columns[0])
            read = self._side.read(Window(top, int(rows[-1]) + 1, left, int(columns[-1]) + 1))
            return read[(rows - top)[:, None], columns - left]
        pixels = self._read(self._warped, self.band, window)
        inside = self._read(self._warped, self._inside, window) != 0
        if inside.all():
            return pixels
        return np.where(inside, pixels.astype(np.int32), np.int32(NOTHING))


def aligned(truth: Map, predicted: Map, stack: ExitStack, *, resample: bool) -> Map:
    """Return the predicted map on the grid of the ground truth.

    Args:
        stack: closes maps opened here.
        resample: another grid may be resampled to the ground truth's.

    Raises:
        InputError: the grids differ, and resampling was not requested.
    """
    if not truth.grid.differs(predicted.grid):
        return predicted
    if not resample:
        raise InputError(
            f"{predicted.place.named}: its raster is {predicted.grid.describe()}, the ground"
            f" truth's {truth.grid.describe()}: their pixels do not line up."
            f"{' Are rows and columns exchanged?' if truth.shape == predicted.shape[::-1] else ''}"
            " Write both on one grid, or"
            f" {option('resample', True)} to take the nearest predicted pixel.",
            code="grids_differ",
            rows=[predicted.place.row],
        )
    return Resampled(predicted, truth, stack)


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


# The rows of one side, with datum, label key and pixel source of each.


class Side(msgspec.Struct):
    """One side, coded.

    Attributes:
        role: ``predictions`` or ``ground_truths``.
        frame: its rows, without the column of datum ids.
        datum: int32 [n], datum code of each row.
        key: name of each row's label key.
        ids: ids of the datum codes.
        folder: folder of the table's file, empty for none.
    """

    role: str
    frame: pl.DataFrame
    datum: Array
    key: pl.Series
    ids: pl.Series
    files: RasterFiles

    @property
    def layered(self) -> bool:
        """True if each row is one label instead of a map of all."""
        return "label_value" in self.frame.columns

    @property
    def called(self) -> str:
        """Its role in words."""
        return self.role.replace("_", " ")

    def row(self, row: int) -> str:
        """Return the name of a row for messages."""
        return f"{self.called}, {self.numbered(row)}"

    def numbered(self, row: int) -> str:
        """Return the name of a row for messages that already name the side."""
        return f"row {row} (datum_id={self.ids[int(self.datum[row])]!r})"

    def form(self) -> Array:
        """Return the column of ``FORMS`` from which each row's pixels are read, int8 [n]."""
        out = np.full(self.frame.height, -1, np.int8)
        for code, name in reversed(list(enumerate(FORMS))):
            if name in self.frame.columns:
                out[self.frame[name].is_not_null().to_numpy()] = code
        return out

    def column(self, name: str) -> list[Any]:
        """Return the values of a column, all None if it is missing."""
        if name not in self.frame.columns:
            return [None] * self.frame.height
        return self.frame[name].to_list()

    def places(self, rows: Array | None = None) -> list[MapRow | None]:
        """Return the source of each row's label map or raster; None for rows without one.

        Args:
            rows: int [m], restricts the rows.

        Raises:
            ReadError: missing files; the message names the first few with their rows.
        """
        if "raster" not in self.frame.columns:
            return [None] * self.frame.height
        values = self.frame["raster"]
        if rows is not None and values.dtype == pl.String:
            used = np.zeros(len(values), bool)
            used[rows] = True
            values = values.set(pl.Series(~used), None)
        bands = self.column("raster_band")
        if values.dtype == pl.String:
            paths, codings = self._paths(values), self.codings()
            return [
                None
                if path is None
                else MapRow(
                    i, self.row, path=path, band=None if band is None else int(band), coding=coding
                )
                for i, (path, band, coding) in enumerate(zip(paths, bands, codings, strict=True))
            ]
        return [
            None if one is None else MapRow(i, self.row, pixels=self._checked(i, one))
            for i, one in enumerate(_arrays(values))
        ]

    def codings(self) -> list[str]:
        """Return the coding of each row's file; empty for indices of labels.

        Raises:
            InputError: an unknown coding.
        """
        codings = [one or "" for one in self.column("raster_coding")]
        wrong = [i for i, one in enumerate(codings) if one and not has_format(one)]
        if wrong:
            raise InputError(
                f"column 'raster_coding': {count_of(len(wrong), 'row')} with an unknown coding,"
                f" first {self.row(wrong[0])}: {codings[wrong[0]]!r}. Known are"
                f" {', '.join((*CODINGS, OWN_COLOURS, GREY))}.",
                code="unknown_name",
                column="raster_coding",
                count=len(wrong),
                value=codings[wrong[0]],
            )
        return codings

    def _checked(self, row: int, pixels: Array | PackedMap) -> Array | PackedMap:
        if pixels.ndim != 2 or pixels.dtype.kind not in "iub" or not pixels.size:
            raise InputError(
                f"{self.row(row)}: 'raster' is an array of shape {pixels.shape} of"
                f" {pixels.dtype}; it must be rows of pixels, whole numbers in two dimensions.",
                code="wrong_shape",
                side=self.role,
                column="raster",
                rows=[row],
                shape=pixels.shape,
            )
        return pixels

    def _paths(self, values: pl.Series) -> list[str | None]:
        """Paths as they are found: in the current folder, else in the table's."""
        files: list[str | None] = []
        missing: list[int] = []
        for row, path in enumerate(values.to_list()):
            file = None if path is None else self.files.find(path)
            if path is not None and file is None:
                missing.append(row)
            files.append(file)
        reads({path for path in files if path is not None})
        refused = {
            row: why
            for row, path in enumerate(values.to_list())
            if path is not None and (why := self.files.refusal(path)) is not None
        }
        if refused:
            some = [*refused.items()][:N_EXAMPLES]
            first = "; ".join(f"{self.row(row)}: {values[row]!r} {why}" for row, why in some)
            n = count_of(len(refused), "path")
            raise InputError(
                f"column 'raster': {n} that may not be opened: {first}.",
                code="path_refused",
                column="raster",
                count=len(refused),
            )
        if missing:
            first = "; ".join(f"{self.row(row)}: {values[row]!r}" for row in missing[:N_EXAMPLES])
            tried = "looked for in the current folder"
            if self.files.folder:
                tried = f"neither in the current folder nor in {self.files.folder}"
            raise ReadError(
                f"column 'raster': {count_of(len(missing), 'file')} not there,"
                f" {tried}: {first}. Paths are taken from the current folder, then from the"
                " table's own; correct them, or remove these rows.",
                code="file_missing",
                side=self.role,
                column="raster",
                count=len(missing),
                rows=missing[:N_EXAMPLES],
            )
        return files


def _arrays(values: pl.Series) -> list[Array | PackedMap | None]:
    """Pixels of each row as arrays, without copying more than lists demand."""
    if values.dtype == pl.Object:
        as_given = (type(None), PackedMap)
        return [one if isinstance(one, as_given) else np.asarray(one) for one in values.to_list()]
    if isinstance(values.dtype, pl.Array) and not values.null_count():
        block: Array = values.to_numpy()
        return list(block)
    arrays: list[Array | PackedMap | None] = []
    for row in values:  # one list per row of pixels
        if row is None:
            arrays.append(None)
            continue
        lines = row if isinstance(row, pl.Series) else pl.Series(row)
        if isinstance(lines.dtype, pl.Array):
            arrays.append(lines.to_numpy())
            continue
        widths = lines.list.len().to_numpy()
        flat = lines.explode(empty_as_null=False, keep_nulls=False).to_numpy()
        width = int(widths[0]) if widths.size else 0
        if (widths != width).any():
            raise InputError(
                f"column 'raster': row {len(arrays)} has lines of {widths.min()} to"
                f" {widths.max()} pixels; all lines of a label map are of one length.",
                code="pixels_uneven",
                column="raster",
                rows=[len(arrays)],
            )
        arrays.append(flat.reshape(len(lines), width))
    return arrays


def side_of(frames: Frames, role: str, datum: Array, ids: pl.Series) -> Side:
    """Return one side of the frames with coded datum ids.

    Args:
        role: name of the side.
        datum: int32 [n], datum code of each row.
        ids: ids of the codes.
    """
    frame = frames.sides[role]
    default = pl.Series("label_key", [DEFAULT_LABEL_KEY], dtype=pl.String)
    key = (
        frame["label_key"]
        if "label_key" in frame.columns
        else default.new_from_index(0, frame.height)
    )
    return Side(role, frame, datum, key, ids, frames.folders.get(role, RasterFiles()))


# Maps of segments: ids from the colours of a file, whole numbers, or masks painted one by one.

_COLOURS = (3, 4)
"""Bands of a file whose colours are ids; a fourth one is how opaque pixels are."""


class IdMap(Map):
    """A map of segment ids, 0 for none: R + 256 G + 65536 B of an image, or its single band.

    Args:
        stack: closes it.

    Raises:
        InputError: a file that cannot be read, or whose pixels are not ids.
    """

    def _band(self) -> int:
        self.coloured = self.place.band is None and self.file.count in _COLOURS
        if not self.coloured:
            return super()._band()
        if self.file.dtypes[0] != "uint8":
            raise InputError(
                f"{self.place.named}: {self.place.path!r} has colours of {self.file.dtypes[0]}, and"
                " ids are R + 256 G + 65536 B of bytes. Write the file with 8 bits a colour."
            )
        return 1

    def read(self, window: Window) -> Array:
        """Return the ids of a window, integers [rows, columns].

        Raises:
            InputError: an id below 0, or a truncated file.
        """
        if self.file is not None and self.coloured:
            # Read all bands at once, and without a window if all is requested: GDAL then unpacks a
            # PNG
            # in a quarter of the time of line-by-line reading.
            return colour_ids(self._read(self.file, None, None if window == self.whole else window))
        ids = super().read(window)
        if ids.dtype.kind == "i" and ids.size and ids.min() < 0:
            raise InputError(
                f"{self.place.named}: its map has the id {ids.min()}: ids are whole numbers from"
                " 1, and 0 without a segment.",
                code="too_low",
                value=int(ids.min()),
            )
        return ids


def map_of(place: MapRow, stack: ExitStack) -> Map:
    """Open a label map; pixels are packed colours if its coding is of colours."""
    return (IdMap if is_coloured(place.coding) else Map)(place, stack)


class EdgeMap(IdMap):
    """A segment map without the interior of segments, far from their edges.

    It is read whole, since edges cannot be computed per window.

    Args:
        stack: closes it.
        ratio: width of edges, as a share of the image's diagonal.
    """

    def __init__(self, place: MapRow, stack: ExitStack, ratio: float) -> None:
        super().__init__(place, stack)
        self._ratio = ratio
        self._edges: Array | None = None

    @property
    def by_blocks(self) -> bool:
        """No block can be seen without the others."""
        return False

    def read(self, window: Window) -> Array:
        """Return the ids of a window, :data:`.INSIDE` for interior pixels."""
        if self._edges is None:
            height, width = np.array(self.shape)
            depth = int(boundary_depth(height, width, self._ratio))
            ids = narrowed(super().read(self.whole)).astype(np.int32, copy=False)
            self._edges = segment_edges(ids, depth)
        return self._edges[window.top : window.bottom, window.left : window.right]


# Pairs of label maps to counts of pairs of indices: in threads, large ones window by window.

Pair = tuple[MapRow | None, MapRow | None]
"""Label maps of the ground truth and of the prediction of one datum and key; one may be missing."""

Opens = Callable[[MapRow, ExitStack], Map]
"""Opens a label map, that something closes again."""


class RangeCounts(msgspec.Struct, frozen=True):
    """Counts of a range of pairs.

    Attributes:
        pairs: the counts.
        resampled: places of pairs whose predicted map was brought onto another grid.
        large: pairs and windows of those that are too large to be read at once.
        wrong: errors of pairs that cannot be counted.
    """

    pairs: Pairs
    resampled: tuple[int, ...]
    large: tuple[tuple[int, Window], ...]
    wrong: tuple[InputError, ...]


def count_maps(
    pairs: list[Pair], workers: Workers, *, resample: bool, opens: Opens = map_of
) -> tuple[Pairs, Array]:
    """Count the joint histograms of all pairs.

    Args:
        workers: runs ranges of pairs, and of windows of large ones, in parallel.
        resample: predicted maps may be resampled to another grid.
        opens: opens a map.

    Returns:
        the counts, and int64 [m], ascending, indices of pairs that were resampled.

    Raises:
        InputError: maps that cannot be read, or whose grids differ; the message names the first
            few.
    """
    files = any(side is not None and side.pixels is None for pair in pairs for side in pair)
    offsets = np.cumsum([0, *(_weight(pair) for pair in pairs)])

    def whole(first: int, last: int) -> RangeCounts:
        with in_thread() if files else nullcontext():
            return _count_range(pairs, first, last, resample, opens)

    with quiet() if files else nullcontext():
        parts = workers.over(offsets, whole)
        _refuse([error for part in parts for error in part.wrong])
        counted = [part.pairs for part in parts]
        large = [one for part in parts for one in part.large]
        if large:
            counted += _by_windows(pairs, large, workers, resample, opens)
    resampled = np.array([place for part in parts for place in part.resampled], np.int64)
    return Pairs.joined(counted), resampled


def _weight(pair: Pair) -> int:
    """Work of a pair; of files, that are not open yet, all alike."""
    sizes = [side.pixels.size for side in pair if side is not None and side.pixels is not None]
    return max([1, *sizes])


def _refuse(wrong: list[InputError]) -> None:
    if not wrong:
        return
    more = f"\n- and {len(wrong) - N_EXAMPLES:,} more." if len(wrong) > N_EXAMPLES else ""
    first = "\n".join(f"- {error.message}" for error in wrong[:N_EXAMPLES])
    raise InputError(
        f"{count_of(len(wrong), 'pair')} of label maps cannot be compared:\n{first}{more}",
        code=wrong[0].code,
        **{**wrong[0].facts, "count": len(wrong)},
    )


def opened_pair(
    pair: Pair, stack: ExitStack, *, resample: bool, opens: Opens = map_of
) -> tuple[Map | None, Map | None]:
    """Open both label maps, the predicted one on the grid of the other.

    Raises:
        InputError: a map cannot be read, or grids differ and may not be resampled.
    """
    truth, predicted = (None if side is None else opens(side, stack) for side in pair)
    if truth is not None and predicted is not None:
        predicted = aligned(truth, predicted, stack, resample=resample)
    return truth, predicted


def _count_range(
    pairs: list[Pair], first: int, last: int, resample: bool, opens: Opens
) -> RangeCounts:
    counter = Counter()
    resampled: list[int] = []
    large: list[tuple[int, Window]] = []
    wrong: list[InputError] = []
    for place in range(first, last):
        truth, predicted = pairs[place]
        if opens is map_of and truth is not None and predicted is not None:
            a, b = truth.pixels, predicted.pixels
            if (
                a is not None
                and b is not None
                and a.shape == b.shape
                and a.dtype == b.dtype == "u1"
            ):
                counter.add(place, np.asarray(a), np.asarray(b))
                continue
        with ExitStack() as stack:
            try:
                opened = opened_pair(pairs[place], stack, resample=resample, opens=opens)
                sides = [side for side in opened if side is not None]
                if isinstance(opened[1], Resampled):
                    resampled.append(place)
                windows = windows_of(sides)
                if len(windows) > 1 and all(side.by_blocks for side in sides):
                    large += [(place, window) for window in windows]
                    continue
                for window in windows:
                    _add(counter, place, opened, window)
            except InputError as error:
                wrong.append(error)
    return RangeCounts(counter.collect(), tuple(resampled), tuple(large), tuple(wrong))


def _add(
    counter: Counter, place: int, sides: tuple[Map | None, Map | None], window: Window
) -> None:
    pixels = [None if side is None else side.read(window) for side in sides]
    try:
        counter.add(place, *pixels)
    except InputError as error:
        named = " and ".join(side.place.named for side in sides if side is not None)
        raise InputError(f"{named}: {error.message}", code=error.code, **error.facts) from None


def _by_windows(
    pairs: list[Pair],
    large: list[tuple[int, Window]],
    workers: Workers,
    resample: bool,
    opens: Opens,
) -> list[Pairs]:
    """Counts of pairs that are read window by window, windows side by side."""

    def some(begin: int, end: int) -> Pairs:
        counter = Counter()
        with in_thread(), ExitStack() as stack:
            now = -1
            sides: tuple[Map | None, Map | None] = (None, None)
            for place, window in large[begin:end]:
                if place != now:
                    stack.close()
                    sides = opened_pair(pairs[place], stack, resample=resample, opens=opens)
                    now = place
                _add(counter, place, sides, window)
        return counter.collect()

    return workers.over(np.cumsum([0, *(window.size for _, window in large)]), some)
