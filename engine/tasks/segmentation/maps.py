"""Pairs of label maps to counts of pairs of indices: whole maps in threads, large ones by strip."""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from ...schemas.errors import InputError
from ..workers import Workers
from .histograms import Counter, Pairs
from .rasters import STRIP, Map, MapRow, aligned, in_thread, quiet

Array = np.ndarray[Any, Any]
Pair = tuple[MapRow | None, MapRow | None]
"""Label maps of the ground truth and of the prediction of one datum and key; one may be missing."""

_SHOWN = 3


class _Large(msgspec.Struct, frozen=True):
    """A pair that is too large to be read at once.

    Attributes:
        place: which pair.
        cuts: int64 [s + 1], rows at which strips begin and end.
        width: of a row.
    """

    place: int
    cuts: Array
    width: int


class Found(msgspec.Struct, frozen=True):
    """What came of a range of pairs.

    Attributes:
        pairs: the counts.
        large: pairs that are to be read by strips.
        wrong: messages about pairs that cannot be counted.
    """

    pairs: Pairs
    large: tuple[_Large, ...]
    wrong: tuple[str, ...]


def count_maps(pairs: list[Pair], workers: Workers, *, resample: bool) -> Pairs:
    """Joint histograms of all pairs.

    Args:
        pairs: the maps.
        workers: runs ranges of pairs, and of strips of large ones, side by side.
        resample: whether predicted maps may be brought onto another grid.

    Raises:
        InputError: maps that cannot be read, or whose pixels do not meet, the first few named.
    """
    files = any(side is not None and side.pixels is None for pair in pairs for side in pair)
    offsets = np.cumsum([0, *(_weight(pair) for pair in pairs)])

    def whole(first: int, last: int) -> Found:
        with in_thread() if files else nullcontext():
            return _count_range(pairs, first, last, resample=resample)

    with quiet() if files else nullcontext():
        made = workers.over(offsets, whole)
        _refuse([message for part in made for message in part.wrong])
        counted = [part.pairs for part in made]
        large = [one for part in made for one in part.large]
        if large:
            counted += _by_strips(pairs, large, workers, resample=resample)
    return Pairs.joined(counted)


def _weight(pair: Pair) -> int:
    """Work of a pair; of files, that are not open yet, all alike."""
    sizes = [side.pixels.size for side in pair if side is not None and side.pixels is not None]
    return max([1, *sizes])


def _refuse(wrong: list[str]) -> None:
    if not wrong:
        return
    more = f"\n- and {len(wrong) - _SHOWN:,} more." if len(wrong) > _SHOWN else ""
    shown = "\n".join(f"- {message}" for message in wrong[:_SHOWN])
    raise InputError(f"{len(wrong):,} pairs of label maps cannot be compared:\n{shown}{more}")


def _opened(pair: Pair, stack: ExitStack, *, resample: bool) -> tuple[Map | None, Map | None]:
    truth, found = (None if side is None else Map(side, stack) for side in pair)
    if truth is not None and found is not None:
        found = aligned(truth, found, stack, resample=resample)
    return truth, found


def _count_range(pairs: list[Pair], first: int, last: int, *, resample: bool) -> Found:
    counter = Counter()
    large: list[_Large] = []
    wrong: list[str] = []
    for place in range(first, last):
        with ExitStack() as stack:
            try:
                truth, found = _opened(pairs[place], stack, resample=resample)
                sides = [side for side in (truth, found) if side is not None]
                height, width = sides[0].shape
                cuts = np.array([0, height])
                if height * width > STRIP and any(side.place.pixels is None for side in sides):
                    cuts = _cuts(sides)
                    if all(side.by_blocks for side in sides):
                        large.append(_Large(place, cuts, width))
                        continue
                _add(counter, place, (truth, found), cuts)
            except InputError as error:
                wrong.append(error.said)
    return Found(counter.taken(), tuple(large), tuple(wrong))


def _add(counter: Counter, place: int, sides: tuple[Map | None, Map | None], cuts: Array) -> None:
    """Count a pair, or a part of it, strip by strip."""
    for first, last in pairwise(cuts.tolist()):
        counter.add(place, *(None if side is None else side.read(first, last) for side in sides))


def _cuts(sides: list[Map]) -> Array:
    """Rows at which strips of whole blocks begin, and the last one's end."""
    height, width = sides[0].shape
    block = max(side.block for side in sides)
    rows = max(1, STRIP // max(1, width) // block) * block
    return np.unique(np.r_[np.arange(0, height, rows), height])


def _by_strips(
    pairs: list[Pair], large: list[_Large], workers: Workers, *, resample: bool
) -> list[Pairs]:
    """Counts of pairs that are read strip by strip, strips side by side."""
    strips = [
        (one.place, int(first), int(last), one.width)
        for one in large
        for first, last in pairwise(one.cuts)
    ]
    offsets = np.cumsum([0, *((last - first) * width for _, first, last, width in strips)])

    def some(begin: int, end: int) -> Pairs:
        counter = Counter()
        with in_thread(), ExitStack() as stack:
            open_place = -1
            sides: tuple[Map | None, Map | None] = (None, None)
            for place, first, last, _ in strips[begin:end]:
                if place != open_place:
                    stack.close()
                    sides = _opened(pairs[place], stack, resample=resample)
                    open_place = place
                _add(counter, place, sides, np.array([first, last]))
        return counter.taken()

    return workers.over(offsets, some)
