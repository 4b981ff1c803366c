"""Pairs of label maps to counts of pairs of indices: in threads, large ones window by window."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, nullcontext

import msgspec
import numpy as np

from ...ingest.problems import count_of
from ...schemas.arrays import Array
from ...schemas.errors import InputError
from ..workers import Workers
from .histograms import Counter, Pairs
from .id_maps import map_of
from .rasters import Map, MapRow, Resampled, Window, aligned, in_thread, quiet, windows_of

Pair = tuple[MapRow | None, MapRow | None]
"""Label maps of the ground truth and of the prediction of one datum and key; one may be missing."""

Opens = Callable[[MapRow, ExitStack], Map]
"""Opens a label map, that something closes again."""

_SHOWN = 3


class Found(msgspec.Struct, frozen=True):
    """What came of a range of pairs.

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

    def whole(first: int, last: int) -> Found:
        with in_thread() if files else nullcontext():
            return _count_range(pairs, first, last, resample, opens)

    with quiet() if files else nullcontext():
        made = workers.over(offsets, whole)
        _refuse([error for part in made for error in part.wrong])
        counted = [part.pairs for part in made]
        large = [one for part in made for one in part.large]
        if large:
            counted += _by_windows(pairs, large, workers, resample, opens)
    resampled = np.array([place for part in made for place in part.resampled], np.int64)
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
    truth, found = (None if side is None else opens(side, stack) for side in pair)
    if truth is not None and found is not None:
        found = aligned(truth, found, stack, resample=resample)
    return truth, found


def _count_range(pairs: list[Pair], first: int, last: int, resample: bool, opens: Opens) -> Found:
    counter = Counter()
    resampled: list[int] = []
    large: list[tuple[int, Window]] = []
    wrong: list[InputError] = []
    for place in range(first, last):
        truth, found = pairs[place]
        if opens is map_of and truth is not None and found is not None:
            a, b = truth.pixels, found.pixels
            if (
                a is not None
                and b is not None
                and a.shape == b.shape
                and a.dtype == b.dtype == "u1"
            ):
                counter.add(
                    place, np.asarray(a), np.asarray(b)
                )  # nothing to open, to bring onto a grid or to refuse
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
    return Found(counter.taken(), tuple(resampled), tuple(large), tuple(wrong))


def _add(
    counter: Counter, place: int, sides: tuple[Map | None, Map | None], window: Window
) -> None:
    """Count a window of a pair."""
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
        return counter.taken()

    return workers.over(np.cumsum([0, *(window.size for _, window in large)]), some)
