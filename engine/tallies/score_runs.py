"""Sorted scores of buckets, merged into one run in memory or on disk."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, Any

import msgspec
import numpy as np

from ..kernels.datums import PER_WORD, draw_weights
from ..kernels.labels import HIT, N_OUTCOMES, OTHER
from ..kernels.scores import points
from ..kernels.sums import ExactSums
from ..schemas.arrays import Array
from .datums import in_turn
from .ranked_points import Points
from .registry import stored_as
from .sorted_scores import Sorted, sort_segments
from .stored import Place, narrowest
from .units import Scored, Units

# Merging of sorted scores. A run on disk is a memory map of an unnamed file, freed when
# unreferenced.


def merge_score_runs(runs: Iterable[tuple[Sorted, bool]], segments: int, place: Place) -> Sorted:
    """Merge the runs of all parts; ties are in any order.

    Args:
        runs: runs of the parts over the same segments, each with a flag for ascending scores. If
            they do not fit in memory, each is dropped before the next is made.
        place: storage for long runs.

    Raises:
        OSError: the disk is full.
    """
    stored: list[Sorted] = []
    total = 0
    order: list[bool] = []
    for run, ascending in runs:
        total += run.score.size
        stored.append(run if total <= place.rows else _on_disk(run, place))
        order.append(ascending)
    start = np.sum([run.start for run in stored], axis=0, initial=0)
    start = np.zeros(segments + 1, np.int64) + start
    weighted = any(run.weight is not None for run in stored)
    keyed = any(run.key is not None for run in stored)
    n = int(start[-1])
    out = Sorted(
        start,
        room(n, place),
        room(n, place) if weighted else None,
        room(n, place).view(np.uint64) if keyed else None,
    )
    for first, last in _ranges(np.diff(start), place.rows):
        parts = [_segments_of(run, first, last, weighted=weighted) for run in stored]
        into = _segments_of(out, first, last, weighted=weighted)
        n_rows = into.score.size
        if last - first == 1:
            for part, run, ascending in zip(parts, stored, order, strict=True):
                if not ascending and n_rows > place.rows:  # to be cut by score
                    weight = None if run.weight is None else part.weight
                    sort_segments(msgspec.structs.replace(part, weight=weight), in_turn)
            _one_segment(parts, into, place.rows)
        else:
            _several_segments(parts, into)
    return out


def room(n: int, place: Place) -> Array:
    """Allocate float64 [n], on disk if large."""
    if n <= place.rows:
        return np.empty(n)
    with tempfile.TemporaryFile(dir=place.folder) as file:
        reserve(file, 8 * n)
        return np.asarray(np.memmap(file, np.float64, "r+", shape=n))


def reserve(file: IO[bytes], size: int) -> None:
    """Take the room that a file needs now: a disk that is full later would end the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
        return
    for begin in range(0, size, _ZEROS):
        file.write(bytes(min(_ZEROS, size - begin)))
    file.flush()


_ZEROS = 1 << 20


def _on_disk(run: Sorted, place: Place) -> Sorted:
    def moved(column: Array | None) -> Array | None:
        if column is None or not column.size:
            return column
        out = room(column.size, Place(place.folder, 0)).view(column.dtype)
        out[:] = column
        return out

    columns = {name: moved(getattr(run, name)) for name in ("score", "weight", "key")}
    return msgspec.structs.replace(run, **columns)


def _ranges(rows: Array, most: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of segments of at most ``most`` rows; a longer segment is separate."""
    ends = np.cumsum(rows)
    first = 0
    while first < rows.size:
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + most, "right")))
        yield first, last
        first = last


def _segments_of(run: Sorted, first: int, last: int, *, weighted: bool) -> Sorted:
    """Select segments of a run, adding unit weights if other runs have weights."""
    result = run.rows(int(run.start[first]), int(run.start[last]), run.start[first : last + 1])
    if weighted and run.weight is None:
        result = msgspec.structs.replace(result, weight=np.broadcast_to(1.0, result.score.size))
    return result


def _several_segments(parts: Sequence[Sorted], into: Sorted) -> None:
    """Bring segments together that are short."""
    at = into.start[:-1].copy()
    for part in parts:
        sizes = np.diff(part.start)
        into.put(np.repeat(at - part.start[:-1], sizes) + np.arange(part.score.size), part)
        at += sizes
    sort_segments(into, in_turn)


def _one_segment(parts: Sequence[Sorted], into: Sorted, most: int) -> None:
    """Merge one segment, in several steps if it is long."""
    n = into.score.size
    if n == 0:
        return
    step = -(-n // max(1, most // 2)) if n > most else 1
    quantiles = np.linspace(0.0, 1.0, step, endpoint=False)[1:]
    samples = [part.score[:: max(1, part.score.size // (8 * step))] for part in parts]
    cuts = np.unique(np.quantile(np.concatenate(samples), quantiles, method="lower"))
    bounds = [
        np.r_[0, np.searchsorted(part.score, cuts, "left"), part.score.size] for part in parts
    ]
    at = 0
    for i in range(cuts.size + 1):
        begin = at
        for part, bound in zip(parts, bounds, strict=True):
            first, last = int(bound[i]), int(bound[i + 1])
            into.put(slice(at, at + last - first), part.rows(first, last))
            at += last - first
        few = into.rows(begin, at)
        if at - begin < most or few.score.min() < few.score.max():  # a tie may be of any length
            sort_segments(few, in_turn)


def points_in_blocks(run: Sorted, rows: int) -> Iterator[Points]:
    """Yield the points of a run's curves in blocks, best scores first within a segment.

    Args:
        run: sorted scores by segment and outcome.
        rows: approximate rows per block; equal scores stay together.

    Yields:
        points of all segments; most segments are empty in a block.
    """
    hits, others = run.bounds(HIT), run.bounds(OTHER)
    sizes = hits[1] - hits[0] + others[1] - others[0]
    for first, last in _ranges(sizes, rows):
        if last - first == 1 and sizes[first] > rows:
            yield from _of_long(run, first, rows)
            continue
        some, begin = slice(first, last), run.start[first * N_OUTCOMES]
        rows_here = slice(int(begin), int(run.start[last * N_OUTCOMES]))
        bounds = [[side[some] - begin for side in pair] for pair in (hits, others)]
        weight = None if run.weight is None else run.weight[rows_here]
        block = points((*bounds[0],), (*bounds[1],), run.score[rows_here], weight)
        yield _among_all(sizes.size, first, *block)


def _of_long(run: Sorted, segment: int, rows: int) -> Iterator[Points]:
    """Points of one segment, from its best scores down."""
    (p_first, *_), (p_end, *_) = (bound[segment:] for bound in run.bounds(HIT))
    (n_first, *_), (n_end, *_) = (bound[segment:] for bound in run.bounds(OTHER))
    score, half = run.score, max(1, rows // 2)
    n = run.start.size // 3
    above = ExactSums(2)
    counted = [0, 0]
    while p_end > p_first or n_end > n_first:
        cut = max(
            score[max(first, end - half)]
            for first, end in ((p_first, p_end), (n_first, n_end))
            if first < end
        )
        p = p_first + int(np.searchsorted(score[p_first:p_end], cut, "left"))
        i = n_first + int(np.searchsorted(score[n_first:n_end], cut, "left"))
        here = slice(int(p), int(p_end)), slice(int(i), int(n_end))
        sizes = np.cumsum([0, *(one.stop - one.start for one in here)])[:, None]
        weight = run.weight
        start, threshold, tp, fp = points(
            (sizes[0], sizes[1]),
            (sizes[1], sizes[2]),
            np.concatenate([score[one] for one in here]),
            None if weight is None else np.concatenate([weight[one] for one in here]),
            above,
        )
        if run.weight is None:
            tp, fp = tp + counted[0], fp + counted[1]
            counted = [counted[0] + int(p_end - p), counted[1] + int(n_end - i)]
        yield _among_all(n, segment, start, threshold, tp, fp)
        p_end, n_end = p, i


def _among_all(n: int, first: int, start: Array, threshold: Array, tp: Array, fp: Array) -> Points:
    """Points of some consecutive segments as those of all."""
    every = np.zeros(n + 1, np.int64)
    every[first : first + start.size] = start
    every[first + start.size :] = start[-1]
    return Points(every, threshold, tp, fp)


class DrawnWeights(msgspec.Struct, frozen=True):
    """Weight of each score in a resample, computed on access.

    Attributes:
        run: scores with the keys of their datums, and perhaps weights.
        seed: seed of the resamples.
        draw: index of the resample.
    """

    run: Sorted
    seed: int
    draw: int

    def __getitem__(self, rows: Any) -> Array:
        assert self.run.key is not None
        first = self.draw - self.draw % PER_WORD
        weights = draw_weights(self.run.key[rows], self.seed, first, first + PER_WORD)
        times = weights[:, self.draw - first].astype(np.float64)
        return times if self.run.weight is None else times * self.run.weight[rows]


@stored_as("bucket.scores/1")
class ScoredRows(msgspec.Struct, frozen=True):
    """The rows of one part.

    Attributes:
        units: the datums and label keys of its rows.
        scored: its scored labels, or None without scores.
    """

    units: Units
    scored: Scored | None

    @classmethod
    def narrowed(cls, units: Units, scored: Scored | None) -> ScoredRows:
        """Return rows as they are on disk: in the narrowest dtypes that keep all values."""
        return cls(units, _cast(scored, narrowest, narrowest))

    @property
    def wide(self) -> Scored | None:
        """The scored labels in their usual dtypes."""
        return _cast(self.scored, lambda _: np.float64, lambda _: np.int32)


def _cast(
    scored: Scored | None, score: Callable[[Array], Any], label: Callable[[Array], Any]
) -> Scored | None:
    """Cast scores and label codes."""
    if scored is None:
        return None
    parts = tuple(part.astype(score(part), copy=False) for part in scored.parts)
    codes = scored.label
    codes = None if codes is None else codes.astype(label(codes), copy=False)
    return msgspec.structs.replace(scored, parts=parts, label=codes)
