"""Pairs of label maps to counts of pairs of indices."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from functools import partial

import msgspec
import numpy as np

from ...geometry.masks import boundary_depth
from ...ingest.label_map_files import is_coloured
from ...ingest.problems import count_of
from ...kernels.label_maps import colour_ids, segment_edges
from ...schemas.arrays import Array
from ...schemas.errors import InputError
from ..encoding import Workers
from .rasters import (
    Counter,
    Map,
    MapRow,
    Pairs,
    Resampled,
    Window,
    aligned,
    in_thread,
    narrowed,
    quiet,
    windows_of,
)

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


def edge_maps(ratio: float) -> partial[EdgeMap]:
    """Return the function that opens maps of edges, for :func:`.count_maps`."""
    return partial(EdgeMap, ratio=ratio)


# Pairs of label maps to counts of pairs of indices: in threads, large ones window by window.

Pair = tuple[MapRow | None, MapRow | None]
"""Label maps of the ground truth and of the prediction of one datum and key; one may be missing."""

Opens = Callable[[MapRow, ExitStack], Map]
"""Opens a label map, that something closes again."""

_SHOWN = 3


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
    more = f"\n- and {len(wrong) - _SHOWN:,} more." if len(wrong) > _SHOWN else ""
    shown = "\n".join(f"- {error.said}" for error in wrong[:_SHOWN])
    raise InputError(
        f"{count_of(len(wrong), 'pair')} of label maps cannot be compared:\n{shown}{more}",
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
        raise InputError(f"{named}: {error.said}", code=error.code, **error.facts) from None


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
