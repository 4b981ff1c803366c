"""Views of scored labels whose buckets are stored in files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import IO, Any

import msgspec
import numpy as np

from ..kernels.datums import PER_WORD, draw_weights
from ..kernels.labels import HIT, N_OUTCOMES, OTHER
from ..kernels.scores import Drawing, points
from ..kernels.sums import ExactSums
from ..schemas.arrays import Array
from .datums import Labels, in_turn, keys_as_labels
from .draws import Draws, OneByOne
from .ranked_points import Points
from .registry import stored_as
from .scored_view import ScoredDraws, ScoredView, grid_of
from .sorted_scores import OrderedRows, Sorted, sort_segments
from .stored import PartGroups, Parts, Place
from .units import Scored, Units

# Merging of sorted scores. A run on disk is a memory map of an unnamed file, freed when
# unreferenced.


def merge_runs(runs: Iterable[tuple[Sorted, bool]], segments: int, place: Place) -> Sorted:
    """Merge the runs of all parts; ties are in any order.

    Args:
        runs: runs of the parts over the same segments, each with a flag for ascending scores. If
            they
            do not fit in memory, each is dropped before the next is made.
        place: storage for long runs.

    Raises:
        OSError: the disk is full.
    """
    kept: list[Sorted] = []
    held = 0
    order: list[bool] = []
    for run, ascending in runs:
        held += run.score.size
        kept.append(run if held <= place.rows else _on_disk(run, place))
        order.append(ascending)
    start = np.sum([run.start for run in kept], axis=0, initial=0)
    start = np.zeros(segments + 1, np.int64) + start
    weighted = any(run.weight is not None for run in kept)
    n = int(start[-1])
    score = _room(n, place)
    out = Sorted(start, score, _room(n, place) if weighted else None)
    for first, last in _ranges(np.diff(start), place.rows):
        parts = [_rows_of(run, first, last, weighted=weighted) for run in kept]
        begin, end = int(start[first]), int(start[last])
        into = Sorted(
            start[first : last + 1] - begin,
            score[begin:end],
            None if out.weight is None else out.weight[begin:end],
        )
        if last - first == 1:
            for part, run, ascending in zip(parts, kept, order, strict=True):
                if not ascending and end - begin > place.rows:  # to be cut by score
                    own = None if run.weight is None else part.weight
                    sort_segments(Sorted(part.start, part.score, own), in_turn)
            _one_segment(parts, into, place.rows)
        else:
            _several_segments(parts, into)
    return out


def _room(n: int, place: Place) -> Array:
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
    columns = []
    for column in (run.score, run.weight):
        if column is not None and column.size:
            out = _room(column.size, Place(place.folder, 0))
            out[:] = column
            column = out
        columns.append(column)
    score, weight = columns
    assert score is not None
    return Sorted(run.start, score, weight)


def _ranges(rows: Array, most: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of segments of at most ``most`` rows; a longer segment is separate."""
    ends = np.cumsum(rows)
    first = 0
    while first < rows.size:
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + most, "right")))
        yield first, last
        first = last


def _rows_of(run: Sorted, first: int, last: int, *, weighted: bool) -> Sorted:
    """Select segments of a run, adding unit weights if other runs have weights."""
    begin, end = int(run.start[first]), int(run.start[last])
    weight = None if run.weight is None else run.weight[begin:end]
    if weighted and weight is None:
        weight = np.broadcast_to(1.0, end - begin)
    return Sorted(run.start[first : last + 1] - begin, run.score[begin:end], weight)


def _several_segments(parts: Sequence[Sorted], into: Sorted) -> None:
    """Bring segments together that are short."""
    at = into.start[:-1].copy()
    for part in parts:
        sizes = np.diff(part.start)
        row = np.repeat(at - part.start[:-1], sizes) + np.arange(part.score.size)
        into.score[row] = part.score
        if into.weight is not None:
            into.weight[row] = part.weight
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
            rows = slice(int(bound[i]), int(bound[i + 1]))
            end = at + rows.stop - rows.start
            into.score[at:end] = part.score[rows]
            if into.weight is not None:
                into.weight[at:end] = part.weight[rows]  # type: ignore[index]
            at = end
        few = into.score[begin:at]
        if at - begin < most or few.min() < few.max():  # a tie may be of any length
            weight = None if into.weight is None else into.weight[begin:at]
            sort_segments(Sorted(np.array([0, at - begin]), into.score[begin:at], weight), in_turn)


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
        bounds = [[side[some] - begin for side in both] for both in (hits, others)]
        weight = None if run.weight is None else run.weight[rows_here]
        found = points((*bounds[0],), (*bounds[1],), run.score[rows_here], weight)
        yield _among_all(sizes.size, first, *found)


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


# View of units and scored labels in parts on disk: counts add up exactly, sorted scores are merged.


@stored_as("bucket.scores/1")
class ScoredRows(msgspec.Struct, frozen=True):
    """The rows of one part.

    Attributes:
        scored: its scored labels, or None without scores.
    """

    units: Units
    scored: Scored | None


class PartsView(ScoredView):
    """View of a tally in parts.

    Args:
        parts: the files.
        units: units without rows.
        scored: scored labels without rows; None without scores.
        group: group of every datum; None for a single group.
        weighted: use the units' weights, if any.
        **more: see :class:`ScoredView`.
    """

    def __init__(
        self,
        parts: Parts,
        units: Units,
        scored: Scored | None,
        labels: Labels,
        *,
        group: PartGroups | None = None,
        weighted: bool = True,
        **more: Any,
    ) -> None:
        self._weighs = weighted and units.weight is not None
        if not self._weighs:
            units = msgspec.structs.replace(units, weight=None)
        super().__init__(units, scored, labels, **more)
        self.refuse_draws()
        self._parts = parts
        self._groups = group
        self._more = {k: v for k, v in more.items() if k != "weights"}

    def blocks(self) -> Iterator[ScoredView]:
        """Views of the parts."""
        for view, _ in self.keyed_blocks():
            yield view

    def keyed_blocks(self) -> Iterator[tuple[ScoredView, Array | None]]:
        """Views of the parts, and the keys of their datums."""
        for part in self._parts:
            rows: ScoredRows = part.rows
            units = rows.units
            if not self._weighs:
                units = msgspec.structs.replace(units, weight=None)
            group = None if self._groups is None else self._groups.of(part)
            view = ScoredView(units, rows.scored, self.labels, group=group, **self._more)
            view.whole_rows = self._parts.scores
            yield view, part.keys

    def whole_datums(self) -> Iterator[tuple[Any, ScoredView]]:
        """The tally of each part, with its datums, and its view."""
        yield from zip(self._parts.shown(), self.blocks(), strict=True)

    @cached_property
    def plain(self) -> ScoredView:
        if not self._weighs or all(np.all(few.units.weight) for few in self.blocks()):
            return self
        return PartsView(
            self._parts,
            self.units,
            self.scored,
            self.labels,
            group=self._groups,
            weighted=False,
            **self._more,
        )

    # -- units ---------------------------------------------------------------------------------

    @cached_property
    def _known_and_judged(self) -> tuple[int, int]:
        known, judged = zip((0, 0), *(few._known_and_judged for few in self.blocks()), strict=True)
        return sum(known), sum(judged)

    @cached_property
    def _all_true(self) -> bool:
        found = [few._all_true for few in self.blocks() if len(few.units)]
        return bool(found) and all(found)

    @cached_property
    def _one_unit_each(self) -> bool:
        return all(few.units.datum is None for few in self.blocks())

    # -- scored labels -------------------------------------------------------------------------

    def _merged(self, run: Callable[[ScoredView], tuple[Sorted, bool]], segments: int) -> Sorted:
        """The run of all parts; one that has no scored row has none."""
        filled = (few for few in self.blocks() if few.scored is not None and len(few.scored))
        return merge_runs((run(few) for few in filled), segments, self._parts.place)

    @cached_property
    def sorted(self) -> Sorted:
        segments = self.n_groups * self.slots.size * N_OUTCOMES
        return self._merged(lambda few: few.run(), segments)

    @cached_property
    def keyed_run(self) -> Sorted:
        """Merged run of all parts, with the key of the datum in place of the weight."""
        made = []
        for few, keys in self.keyed_blocks():
            if few.scored is not None and len(few.scored):
                assert keys is not None
                rows = few.ordered_rows
                beside = keys[rows.datum].view(np.float64)  # which is moved about, never read
                made.append((Sorted(rows.sorted.start, rows.sorted.score, beside), True))
        segments = self.n_groups * self.slots.size * N_OUTCOMES
        return merge_runs(made, segments, self._parts.place)

    def drawn_points(self, draws: Draws, d: int) -> Iterator[Points]:
        """Yield the points of one resample of a block, as :meth:`point_blocks`."""
        run = self.keyed_run
        keys = np.zeros(0, np.uint64) if run.weight is None else run.weight.view(np.uint64)
        weight: Any = _DrawnWeights(keys, draws.seed, draws.first + d)
        drawn = Sorted(run.start, run.score, weight)
        for found in points_in_blocks(drawn, self._parts.place.rows):
            yield self._of_labels(found)

    @cached_property
    def between(self) -> Sorted:
        return self._merged(lambda few: (few.between, True), self.n_groups * len(self.labels) ** 2)

    def point_blocks(self) -> Iterator[Points]:
        for found in points_in_blocks(self.sorted, self._parts.place.rows):
            yield self._of_labels(found)

    @cached_property
    def pooled(self) -> ScoredView:
        return _PooledParts(self)


class _DrawnWeights(msgspec.Struct, frozen=True):
    """Multiplicity of each score's datum in a resample, computed on access.

    Attributes:
        keys: uint64 [n], of the datums.
        seed: seed of the resamples.
        draw: index of the resample.
    """

    keys: Array
    seed: int
    draw: int

    def __getitem__(self, rows: Any) -> Array:
        first = self.draw - self.draw % PER_WORD
        weights = draw_weights(self.keys[rows], self.seed, first, first + PER_WORD)
        return weights[:, self.draw - first].astype(np.float64)


class _PooledParts(PartsView):
    """The labels of each key as one label, as :class:`~.scored_view.Pooled` has them, in parts."""

    def __init__(self, view: PartsView) -> None:
        assert view.scored is not None
        scored = msgspec.structs.replace(
            view.scored,
            only=int(view.labels.key[view.scored.only]) if not view.scored.several else -1,
            labels=np.ones(len(view.labels.key_names), bool),
        )
        super().__init__(
            view._parts,
            view.units,
            scored,
            keys_as_labels(view.labels),
            group=view._groups,
            weighted=view._weighs,
            n_groups=view.n_groups,
            decision=view.decision,
            over=view.over,
        )
        self._of = view

    def keyed_blocks(self) -> Iterator[tuple[ScoredView, Array | None]]:
        for few, keys in self._of.keyed_blocks():
            if few.scored is not None:
                yield few.pooled, keys

    @cached_property
    def positives(self) -> Array:
        return self._of.classes_of_keys[0]

    @cached_property
    def negatives(self) -> Array:
        return self._of.classes_of_keys[1]


# Scored labels in parts under the weights of many resamples: only additive numbers.


class PartsDraws(ScoredDraws):
    """A view of scored labels in parts whose groups are resamples.

    Counts and sums are accumulated over parts. Numbers that need all scores sorted are refused.
    """

    _of: PartsView

    def __init__(self, view: PartsView, draws: Draws) -> None:
        super().__init__(view, draws)

    def blocks(self) -> Iterator[ScoredDraws]:
        """Yield the resampled view of each part."""
        for few, keys in self._of.keyed_blocks():
            yield ScoredDraws(few, msgspec.structs.replace(self._draws, keys=keys))

    @cached_property
    def _plain(self) -> ScoredView:
        plain = self._of.plain
        assert isinstance(plain, PartsView)
        return PartsDraws(plain, self._draws)

    def _areas(self, of: Any) -> Array:
        if self._of.units.weight is not None or self._draws.leaving_out is not None:
            raise OneByOne  # scores have either weights or keys
        found, draws = self._of.keyed_run, self._draws
        keys = np.zeros(0, np.uint64) if found.weight is None else found.weight.view(np.uint64)
        drawing = Drawing(draws.seed, draws.first, draws.last, None, keys)
        sides = found.bounds(HIT), found.bounds(OTHER)
        return self._of_slots(of(*sides, (found.score, np.zeros(0, np.int32), None), drawing))

    @property
    def _rows(self) -> OrderedRows:
        raise OneByOne

    @cached_property
    def _known_and_judged(self) -> tuple[int, int]:
        return self._of._known_and_judged

    @cached_property
    def _all_true(self) -> bool:
        return self._of._all_true

    @cached_property
    def _one_unit_each(self) -> bool:
        return self._of._one_unit_each

    def sums_of(self, pick: Callable[[Any], Any]) -> Any:
        picked = (few.weighed(*_unit_and_value(pick(few))) for few in self.blocks())
        values = [one for one in picked if one is not None]
        step = grid_of(values) if values else None
        del values
        out: Any = None
        for few in self.blocks():
            found = few.drawn(pick(few), step).ravel()
            out = found if out is None else out + found
        return out

    def summed_by_bin(self, pick: Callable[[Any], Any], n_bins: int) -> list[Array]:
        n = len(pick(self._of)[2])
        return [
            self.added(partial(_one_by_bin, pick, i, n_bins), self._width(n_bins)).reshape(
                self.n_groups, -1, n_bins
            )
            for i in range(n)
        ]

    def _width(self, n_bins: int) -> int:
        return len(self.labels.key_names) * n_bins

    @cached_property
    def _unit_step(self) -> float | None:
        """Step of the grid of units' own weights; None without any."""
        if self._of.units.weight is None:
            return None
        return grid_of(few.units.weight for few in self._of.blocks())  # type: ignore[misc]

    @cached_property
    def _row_step(self) -> float | None:
        """Step of the grid of the weights of scored rows; None without any."""
        if self._of.units.weight is None:
            return None
        return grid_of(
            few.ordered_rows.own  # type: ignore[misc]
            for few in self._of.blocks()
            if few.scored is not None and len(few.scored)
        )

    @cached_property
    def _hard(self) -> tuple[Array, Array, Array, Array]:
        found = [few.hard_counts(self._unit_step) for few in self.blocks()]
        right, judged, stray, actual = (sum(each) for each in zip(*found, strict=True))
        return right, judged, stray, actual

    def _scored_blocks(self) -> Iterator[ScoredDraws]:
        return (few for few in self.blocks() if few.scored is not None and len(few.scored))

    @cached_property
    def listed(self) -> tuple[Array, Array, Array]:
        found = [few.listed_rows(self._row_step) for few in self._scored_blocks()]
        return self._together(found, ())

    def reached(self, thresholds: tuple[float, ...]) -> tuple[Array, Array, Array]:
        found = [few.rows_reaching(thresholds, self._row_step) for few in self._scored_blocks()]
        return self._together(found, (len(thresholds),))

    def _together(
        self, found: list[tuple[Array, Array, Array]], more: tuple[int, ...]
    ) -> tuple[Array, Array, Array]:
        none = np.zeros((*self.shape, *more))
        columns = zip(*found, strict=True) if found else [(), (), ()]
        hits, others, strays = (sum(each, start=none) for each in columns)
        return hits, others, strays

    @cached_property
    def pooled(self) -> ScoredView:
        raise OneByOne


def _one_by_bin(pick: Callable[[Any], Any], i: int, n_bins: int, few: Any) -> Any:
    """One of the values that are summed by bin, as :meth:`.UnitView.by_group` takes it."""
    unit, at, values = pick(few)
    return few.keyed(unit, values[i], at, n_bins)


def _unit_and_value(summands: Any) -> tuple[Array, Array | None]:
    unit, _, _, value = summands
    return unit, value
