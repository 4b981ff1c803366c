"""Sorted scores per label, merged into one run, and areas under curves computed from them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any

import msgspec
import numpy as np

from ..kernels.datums import PER_WORD, draw_weights
from ..kernels.labels import HIT, N_OUTCOMES, OTHER, STRAY
from ..kernels.order import (
    MOST,
    append_segments,
    count_few,
    count_in_ranges,
    cuts_of,
    partition,
    places_in_ranges,
    sort_ranges,
    sort_short,
    sort_with,
)
from ..kernels.scores import (
    area_in_all,
    areas_onward,
    no_area,
    no_precision,
    pair_wins,
    points,
    precision_onward,
    weights_reaching,
    wins,
    wins_by_row,
)
from ..kernels.sums import ExactSums
from ..schemas.arrays import Array
from ..schemas.errors import OptionError
from ..schemas.tuning import tuning
from .datums import Labels, Lazy, Over, View, in_turn
from .draws import effective_number
from .ranked_points import Points as Points
from .registry import stored_as
from .stored import Place, narrowest
from .units import Scored, Units

if TYPE_CHECKING:
    from .scored_view import ScoredView

# Units seen by groups of datums: their groups, their weights, and sums over them.

Sums = Array | ExactSums
"""Numbers of units, int64 [group * width], or exact sums in as many cells."""

Summands = tuple[Array, Array, int, Array | None]
"""Arguments of :meth:`UnitView.by_group`."""


class UnitView(View):
    """Units by groups of datums; arrays have leading axes [group, key].

    Args:
        units: every unit.
        labels: meaning of label codes.
        **grouping: see :class:`View`.
    """

    def __init__(self, units: Units, labels: Labels, **grouping: Any) -> None:
        super().__init__(labels, **grouping)
        self.units = units

    @Lazy
    def unit_weight(self) -> Array | None:
        """Weight of every unit times its datum's multiplicity, float64 [u]; None for 1 each."""
        weight = self.units.weight
        if self.weights is None:
            return weight
        drawn = self.weights[self.units.datum_of()].astype(np.float64)
        return drawn if weight is None else weight * drawn

    @Lazy
    def unit_group(self) -> Array | None:
        """Group of every unit, int32 [u], -1 for none; None for one group of all."""
        group: Array | None = self.group
        return group if group is None or self.units.datum is None else group[self.units.datum]

    def by_group(self, unit: Array, column: Array, width: int, value: Array | None = None) -> Array:
        """Return (weighted) counts or sums of units by group and code, float64 [group, width].

        Sums are exact, and rounded once.

        Args:
            unit: int64 [m], units.
            column: int [m], code of each below ``width``.
            value: float64 [m], summands, or None for 1 each.
        """
        return _rounded(self._added((unit, column, width, value), None), self.n_groups, width)

    def _added(self, summands: Summands, onto: Sums | None) -> Sums:
        """Add counts or sums of units to existing sums."""
        unit, column, width, value = summands
        code = column.astype(np.int64)
        weight = value
        if self.unit_weight is not None:
            unit_weights = self.unit_weight[unit]
            weight = unit_weights if value is None else value * unit_weights
        if self.unit_group is not None:
            group = self.unit_group[unit]
            code = code + group.astype(np.int64) * width
            if (group < 0).any():
                inside = group >= 0
                code = code[inside]
                weight = None if weight is None else weight[inside]
        cells = self.n_groups * width
        if weight is None:
            counts = np.bincount(code, minlength=cells)
            return counts if not isinstance(onto, np.ndarray) else onto + counts
        sums = onto if isinstance(onto, ExactSums) else ExactSums(cells)
        return sums.add(weight, code)

    def keyed(
        self, unit: Array, value: Array | None, at: Array | None = None, n_bins: int = 1
    ) -> Summands:
        """Return the arguments of :meth:`by_group` for units by label key and bin.

        Args:
            unit: int64 [m], ascending.
            value: float64 [m], or None for 1 each.
            at: int64 [m], bin of each; None for one bin.
            n_bins: number of bins.
        """
        key = self.units.key
        code = np.zeros(unit.size, np.int64) if key is None else key[unit].astype(np.int64)
        if at is not None:
            code = code * n_bins + at
        return unit, code, len(self.labels.key_names) * n_bins, value

    def blocks(self) -> Iterator[Any]:
        """Views of all units, in parts that follow one another in their order: of this one, one."""
        yield self

    def summed(self, pick: Callable[[Any], tuple[Array, Array | None]]) -> Array:
        """Return (weighted) sums of a value over units, float64 [group, key].

        Args:
            pick: maps each view of :meth:`blocks` to units, int64 [m], ascending, and their values,
                float64 [m], or None for 1 each.
        """
        n_keys = len(self.labels.key_names)
        if not n_keys:  # no datum has a label
            return np.zeros((self.n_groups, 0))
        return self.added(lambda few: few.keyed(*pick(few)), n_keys)

    def added(self, pick: Callable[[Any], Summands], width: int) -> Array:
        """Return :meth:`by_group` over all blocks, float64 [group, width].

        Args:
            pick: maps each view of :meth:`blocks` to its summands.
            width: number of codes.
        """
        return _rounded(self.sums_of(pick), self.n_groups, width)

    def sums_of(self, pick: Callable[[Any], Summands]) -> Sums | None:
        """The same before it is rounded; None without a block."""
        out: Sums | None = None
        for few in self.blocks():
            out = few._added(pick(few), out)
        return out

    def summed_by_bin(
        self, pick: Callable[[Any], tuple[Array, Array, Sequence[Array | None]]], n_bins: int
    ) -> list[Array]:
        """Return (weighted) sums over units by key and bin, float64 [group, key, bin] each.

        Args:
            pick: maps each view of :meth:`blocks` to units, int64 [m], ascending, the bin of each,
                int64 [m], and several values of each, as in :meth:`summed`.
            n_bins: number of bins.
        """
        n_keys = len(self.labels.key_names)
        sums: list[Sums | None] = []
        for few in self.blocks():
            unit, at, values = pick(few)
            sums = sums or [None] * len(values)
            sums = [
                few._added(few.keyed(unit, value, at, n_bins), before)
                for value, before in zip(values, sums, strict=True)
            ]
        shape = self.n_groups, n_keys, n_bins
        return [_rounded(total, self.n_groups, n_keys * n_bins).reshape(shape) for total in sums]


def _rounded(sums: Sums | None, n_groups: int, width: int) -> Array:
    """Sums as floats, [group, width]."""
    if sums is None:
        return np.zeros((n_groups, width))
    values = sums.rounded() if isinstance(sums, ExactSums) else sums.astype(np.float64)
    return values.reshape(n_groups, width)


# Cached results of a view of scored labels: hard counts, sorted scores, curve points.

_PAIRS = 64  # pairs per score up to which a comparison of all of them beats a sort
_EXACT = 1 << 26  # rows below which pairs of them are counted exactly in halves in a float64
_SHORT = 48  # scores up to which a range is sorted by our own kernel


class HardCounts(msgspec.Struct, frozen=True):
    """Counts of hard predictions, float64 [group, label] each; integers without weights.

    Attributes:
        right: truth and prediction agree.
        wrong: predicted, and not the truth.
        predicted: predicted, on units with or without a truth.
        judged: predicted on units that have a truth.
        actual: truths.
        missed: truths that are not predicted: exactly ``actual`` minus ``right``, rounded once.
        mistaken: exactly ``judged`` minus ``right``, rounded once.
    """

    right: Array
    wrong: Array
    predicted: Array
    judged: Array
    actual: Array
    missed: Array
    mistaken: Array


class Sorted(msgspec.Struct, frozen=True):
    """Scores by (group, scored label, outcome), ascending within each.

    Attributes:
        start: int64 [groups * slots * 3 + 1], CSR offsets.
        score: float64 [m].
        weight: float64 [m], or None for 1 each: sample weights, or number of rows with the score.
        key: uint64 [m], resample key of each row's datum, or None.
    """

    start: Array
    score: Array
    weight: Array | None
    key: Array | None = None

    def rows(self, first: int, last: int, start: Array | None = None) -> Sorted:
        """Select consecutive rows; ``start`` has offsets of their segments, by default of one."""
        some = slice(first, last)
        return Sorted(
            np.array([0, last - first]) if start is None else start - first,
            self.score[some],
            None if self.weight is None else self.weight[some],
            None if self.key is None else self.key[some],
        )

    def columns_with(self, target: Sorted) -> Iterator[tuple[Array, Array]]:
        """Yield the columns of the target and the same ones of these rows, all as float64."""
        for column, of_target in zip(
            (self.score, self.weight, self.key),
            (target.score, target.weight, target.key),
            strict=True,
        ):
            if of_target is not None:
                assert column is not None
                yield column.view(np.float64), of_target.view(np.float64)

    def bounds(self, outcome: int) -> tuple[Array, Array]:
        """Starts and stops of one outcome's segments, int64 [groups * slots] each."""
        return self.start[outcome:-1:N_OUTCOMES], self.start[outcome + 1 :: N_OUTCOMES]

    def sums(self, outcome: int) -> Array:
        """(Weighted) rows of one outcome, float64 [groups * slots]."""
        first, last = self.bounds(outcome)
        if self.weight is None:
            return (last - first).astype(np.float64)
        return weights_reaching(first, last, self.score, self.weight, np.zeros(0))[1]


def sort_segments(sorted_rows: Sorted, over: Over) -> None:
    """Sort the scores of every segment in ascending order, in place.

    Args:
        sorted_rows: scores, unsorted within each segment, with their weights and keys.
        over: calls a function on ranges of segments, possibly in parallel.
    """
    start, score, weight, key = (
        sorted_rows.start,
        sorted_rows.score,
        sorted_rows.weight,
        sorted_rows.key,
    )
    companion = key.view(np.float64) if weight is None and key is not None else weight

    def sort(first: int, last: int) -> None:
        bounds = start[first : last + 1]
        if weight is not None and key is not None:
            rows = slice(int(bounds[0]), int(bounds[-1]))
            order = np.arange(rows.stop - rows.start, dtype=np.float64)
            sort_with(bounds - rows.start, 0, last - first, score[rows], order)
            at = order.astype(np.int64)
            weight[rows], key[rows] = weight[rows][at], key[rows][at]
        elif companion is not None:
            sort_with(start, first, last, score, companion)
        else:
            sort_short(start, first, last, _SHORT, score)
            long = np.flatnonzero(np.diff(bounds) > _SHORT)
            sort_ranges(score, bounds[long], bounds[long + 1])

    over(start, sort)


def wins_of_groups(sorted_rows: Sorted, over: Over) -> Array:
    """Return twice the pairs that positives win, int64 [groups * slots]; see ``wins``.

    Pairs of small groups are compared directly, which is cheaper than sorting.

    Args:
        sorted_rows: scores without weights by (group, scored label, outcome), unsorted within
            each; ranges of large groups are sorted.
        over: calls a function on ranges of segments, possibly in parallel.
    """
    bounds = [*sorted_rows.bounds(HIT), *sorted_rows.bounds(OTHER)]
    out = np.zeros(bounds[0].size, np.int64)

    def some(first: int, last: int) -> None:
        p, p_stop, n, n_stop = (bound[first:last] for bound in bounds)
        positives, negatives = p_stop - p, n_stop - n
        few = positives * negatives <= _PAIRS * (positives + negatives)
        at = np.flatnonzero(few)
        out[first + at] = pair_wins((p[at], p_stop[at]), (n[at], n_stop[at]), sorted_rows.score)
        at = np.flatnonzero(~few)
        for begin, end in ((p[at], p_stop[at]), (n[at], n_stop[at])):
            sort_ranges(sorted_rows.score, begin, end)
        out[first + at] = wins((p[at], p_stop[at]), (n[at], n_stop[at]), sorted_rows.score)

    over(sorted_rows.start[::N_OUTCOMES], some)
    return out


def sorted_by_counts(scored: Scored, total: int | None = None) -> Sorted | None:
    """Return the distinct scores of one label in one group by outcome, weighted by their counts.

    Sums of such weights are exact, so that results equal those of the rows.

    Args:
        scored: scored labels, all of one label.
        total: rows of the run that contains them; None if these are all.

    Returns:
        None if there are many distinct scores, or few rows.
    """
    counted = _counted(scored, len(scored) if total is None else total)
    if counted is None:
        return None
    score, count = counted
    filled = count > 0
    start = np.zeros(N_OUTCOMES + 1, np.int64)
    np.cumsum(filled.sum(axis=1), out=start[1:])
    return Sorted(start, np.broadcast_to(score, filled.shape)[filled], count[filled].astype(float))


def _counted(scored: Scored, total: int) -> tuple[Array, Array] | None:
    """The distinct scores ascending, and rows of each outcome at each."""
    n = len(scored)
    if n < tuning().counted_rows or total >= _EXACT:
        return None
    step = max(1, n // tuning().sample_rows)
    some = np.concatenate([part[::step] for part in scored.parts])
    if np.unique(some).size > min(MOST, some.size // 2):
        return None
    return count_few(scored.parts, scored.outcome, N_OUTCOMES)


# Scored labels in the order of their scores, with the datum of each.


class OrderedRows:
    """Rows of a view sorted by score, computed once for all resamples."""

    def __init__(self, view: ScoredView) -> None:
        scored = view.scored
        assert scored is not None
        start, score, _ = partition(scored.parts, *view.segments)
        row = partition([np.arange(len(scored), dtype=np.float64)], *view.segments)[1]
        view.over(start, lambda first, last: sort_with(start, first, last, score, row))
        place = row.astype(np.int64)
        unit = place if scored.unit_codes is None else scored.unit_codes[place]
        weight = view.units.weight
        self.sorted = Sorted(start, score, None)
        self.datum = view.units.datum_of(unit)
        self.own = None if weight is None else weight[unit]
        self._keys: Array | None = None

    def keys_of(self, keys: Array) -> Array:
        """Resample key of every row, uint64, from those of datums, which are always the same."""
        if self._keys is None:
            self._keys = keys[self.datum]
        return self._keys

    @property
    def segment(self) -> Array:
        """Segment of every row, int64."""
        return np.repeat(np.arange(self.sorted.start.size - 1), np.diff(self.sorted.start))


# Areas between labels: the scores of one, truths of it against truths of another.

_MOST = 46_340  # labels whose pairs still have an int32 code


def areas_between(view: ScoredView) -> Array:
    """Return areas by scores of a, truths of a against those of b, float64 [group, a, b].

    NaN if either label has no truth, or no label is scored.
    """
    scored = view.scored
    n = len(view.labels)
    out = np.full((view.n_groups, n, n), np.nan)
    if scored is None or not scored.several:
        return out
    if n > _MOST:
        raise OptionError(
            f"areas between labels: {n:,} labels make {n * n:,} pairs a group; at most"
            f" {_MOST:,} labels can be compared with one another."
        )
    won, listed = (part.ravel() for part in _won_between(view))
    own, other = _sides(view.n_groups, n)
    truths = np.repeat(view.positives, n, axis=1).ravel()
    others = np.tile(view.positives, (1, n)).ravel()
    missing, absent = truths - listed[own], others - listed[other]
    won = won + (listed[own] * absent + missing * absent / 2)
    np.divide(won, truths * others, out=out.ravel(), where=(truths * others) > 0)
    return out


def _sides(n_groups: int, n: int) -> tuple[Array, Array]:
    """Return, for every (group, a, b), the flat index of (group, a, a) and of itself."""
    segment = np.arange(n_groups * n * n).reshape(n_groups, n, n)
    own = np.broadcast_to(segment[:, np.arange(n), np.arange(n)][:, :, None], segment.shape).ravel()
    return own, segment.ravel()


def _won_between(view: ScoredView) -> tuple[Array, Array]:
    """Return pairs in which truths of a score higher than truths of b, by the scores of a.

    Ties count half. Also returns how many truths of b list a; (weighted) pairs and units, float64
    [group, a, b] both.
    """
    run, n = view.between, len(view.labels)
    start, score, weight = run.start, run.score, run.weight
    own, other = _sides(view.n_groups, n)
    won = wins(
        (start[own], start[own + 1]), (start[other], start[other + 1]), score, weight
    ).astype(np.float64)
    if weight is None:
        won /= 2
        listed = np.diff(start).astype(np.float64)
    else:
        listed = weights_reaching(start[:-1], start[1:], score, weight, np.zeros(0))[1]
    shape = (view.n_groups, n, n)
    return won.reshape(shape), listed.reshape(shape)


def sorted_by_truth(view: ScoredView) -> Sorted:
    """Sort scores by (group, label a, label b): scores for a of units with truth b, ascending.

    Args:
        view: view of several scored labels.
    """
    scored, units, n = view.scored, view.units, len(view.labels)
    assert scored is not None
    assert scored.label_codes is not None
    rows = np.flatnonzero(scored.outcome != STRAY)
    unit = rows if scored.unit_codes is None else scored.unit_codes[rows]
    pair = scored.label_codes[rows].astype(np.int64) * n + units.truth[unit]
    segments: Any = (
        np.zeros(rows.size, np.uint8),
        pair.astype(np.int32),
        None if view.group is None else units.datum_of(unit),
        view.group,
        (view.n_groups, n * n, 1),
    )
    start, score, _ = partition([scored.score[rows]], *segments)
    weight = view.unit_weight
    if weight is not None:
        weight = partition([weight[unit]], *segments)[1]
    result = Sorted(start, score, weight)
    sort_segments(result, view.over)
    return result


# Areas under the curves of a view: average precision, partial ROC areas, areas datum by datum.


def _over(top: Array, bottom: Array, fill: float) -> Array:
    out = np.full(np.shape(bottom), fill)
    np.divide(top, bottom, out=out, where=bottom > 0)
    return out


def average_precision(view: ScoredView) -> Array:
    """Return the sum over distinct scores of precision times the gain in recall, [group, label].

    Datums that do not list the label come last, all at once, as in the ROC curve.
    """
    hits, positives, negatives = (
        column.ravel() for column in (view.listed[0], view.positives, view.negatives)
    )
    carried = no_precision(hits.size)
    for block in view.point_blocks():
        precision_onward(block.start, block.tp, block.fp, carried)
    return with_unlisted(carried.total + carried.lost, hits, positives, negatives).reshape(
        view.shape
    )


def with_unlisted(total: Array, hits: Array, positives: Array, negatives: Array) -> Array:
    """Return the average precision of curves, float64 [s]; NaN without positives.

    Args:
        total: float64 [s], precision summed over the listed positives.
        hits: float64 [s], positives that are listed.
        positives: float64 [s].
        negatives: float64 [s].
    """
    total = total + (positives - hits) * _over(positives, positives + negatives, 0.0)
    return _over(total, positives, np.nan)


_PLACED = 1 << 22  # rows of a label beyond which resamples are exact enough


class Placements(msgspec.Struct, frozen=True):
    """Count the scores of the other class that each score of a label beats.

    Attributes:
        unit: datum codes of positives, and of negatives; for rows in files, or if keys were given,
            keys of their clusters.
        wins: float64 [positives] and [negatives], twice the number of negatives below each
            positive, and of positives above each negative; ties count 1.
    """

    unit: tuple[Array, Array]
    wins: tuple[Array, Array]

    def minus(self, other: Placements, keys: Array | None) -> Placements | None:
        """Differences of the wins of two runs; None if their classes differ in units.

        Args:
            keys: uint64, cluster of each unit; None without.
        """
        sides = []
        for mine, theirs, won, lost in zip(
            self.unit, other.unit, self.wins, other.wins, strict=True
        ):
            order, at = np.argsort(mine, kind="stable"), np.argsort(theirs, kind="stable")
            if not np.array_equal(mine[order], theirs[at]):
                return None
            unit = mine[order]
            sides.append((unit if keys is None else keys[unit], won[order] - lost[at]))
        (a, won_a), (b, won_b) = sides
        return Placements((a, b), (won_a, won_b))

    def variance(self, *, clustered: bool = False) -> float:
        """Variance of the area, the mean share of wins; NaN if a class has only one unit.

        Sources: E. R. DeLong et al. (1988); with clusters N. Obuchowski, "Nonparametric analysis
        of clustered ROC curve data" (1997).
        """
        pairs = 2.0 * self.wins[0].size * self.wins[1].size
        if not clustered:
            sizes = [one.size for one in self.wins]
            if min(sizes) < 2:
                return np.nan
            each = zip(self.wins, sizes, strict=True)
            return sum(float(one.var(ddof=1)) * n / pairs**2 for one, n in each)
        every, code = np.unique(np.concatenate(self.unit), return_inverse=True)
        total, sums = 0.0, []
        for at, won in zip(np.split(code, [self.unit[0].size]), self.wins, strict=True):
            count = np.bincount(at, minlength=every.size)
            n = np.count_nonzero(count)
            if n < 2:
                return np.nan
            sums.append(np.bincount(at, won, every.size) - count * (won.sum() / won.size))
            total += n / (n - 1) * float((sums[-1] ** 2).sum())
        total += 2 * every.size / (every.size - 1) * float((sums[0] * sums[1]).sum())
        return max(0.0, total) / pairs**2


def placements(view: ScoredView, keys: Array | None = None) -> dict[tuple[int, int], Placements]:
    """Placements of every group and label with both classes.

    Missing: labels that some datums do not list, or with very many rows; all with weights.
    By mid-ranks: X. Sun, W. Xu, "Fast implementation of DeLong's algorithm" (2014).

    Args:
        keys: uint64 [n_datums], key of each datum's cluster.
    """
    out: dict[tuple[int, int], Placements] = {}
    if view.unit_weight is not None or not view.has_scores:
        return out
    if view.parts is not None:
        scores = view.keyed_run
        unit = scores.key
        if unit is None:  # no row has a score
            return out
    else:
        scores, datum = view.ordered_rows.sorted, view.ordered_rows.datum
        unit = datum if keys is None else keys[datum]
    hits, others, _ = view.listed
    complete = (hits == view.positives) & (others == view.negatives)
    sides = zip(*scores.bounds(HIT), *scores.bounds(OTHER), strict=True)
    for s, (a, b, c, d) in enumerate(sides):
        group, slot = divmod(s, view.slots.size)
        label = int(view.slots[slot])
        if complete[group, label] and a < b and c < d and b - a + d - c <= _PLACED:
            wins = wins_by_row(scores.score[a:b], scores.score[c:d])
            out[group, label] = Placements((unit[a:b], unit[c:d]), wins)
    return out


def area_variances(view: ScoredView, keys: Array | None, *, clustered: bool) -> Array:
    """Return variances of areas under ROC curves, and the numbers in each class.

    Args:
        keys: uint64 [n_datums], key of each datum's cluster; None if they are in files.
        clustered: several datums may have one key.

    Returns:
        float64 [3, group, label]: variance, effective numbers of positives and of negatives; NaN
        if unknown.
    """
    cache: dict[bool, Array] = view.__dict__.setdefault("area_variances", {})
    if clustered in cache:
        return cache[clustered]
    out = cache[clustered] = np.full((3, *view.shape), np.nan)
    for place, one in placements(view, keys).items():
        sizes = [
            effective_number(np.unique(unit, return_counts=True)[1]) if clustered else unit.size
            for unit in one.unit
        ]
        out[:, *place] = one.variance(clustered=clustered), *sizes
    return out


def partial_area(view: ScoredView, limit: float) -> Array:
    """Return the area under each ROC curve up to a false-positive rate, [group, label].

    NaN if a class is missing or the label is not scored.

    Args:
        limit: the false-positive rate, in (0, 1].
    """
    assert view.scored is not None
    positives, negatives = view.positives.ravel(), view.negatives.ravel()
    carried = no_area(positives, negatives)
    for block in view.point_blocks():
        areas_onward(block.start, block.tp, block.fp, positives, negatives, limit, carried)
    area = area_in_all(positives, negatives, limit, carried).reshape(view.shape)
    return np.where(view.scored.labels, area, np.nan)


def sample_areas(view: ScoredView) -> tuple[Array, Array]:
    """Return ROC area and average precision per unit over labels of its key, float64 [u].

    True labels are the positives, all others of the key the negatives, unlisted ones last.
    NaN if a unit has no member of either class; average precision only needs a true label.
    """
    assert view.scored is not None
    return view.scored.shared("sample_areas", lambda: _by_unit(view))


def _by_unit(view: ScoredView) -> tuple[Array, Array]:
    units, scored = view.units, view.scored
    assert scored is not None
    n = len(units)
    every = np.arange(n, dtype=np.int32)
    start, score, _ = partition(
        scored.parts, scored.outcome, None, scored.unit_codes, every, (n, 1, N_OUTCOMES)
    )
    view.over(start, lambda first, last: sort_short(start, first, last, score.size, score))
    rows = Sorted(start, score, None)
    width = np.bincount(view.labels.key, minlength=len(view.labels.key_names))
    of_key = width[np.zeros(n, np.int64) if units.key is None else units.key]
    positives = units.n_truths.astype(np.float64)
    negatives = of_key - positives
    hits, others = rows.sums(HIT), rows.sums(OTHER)
    missing, absent = positives - hits, negatives - others
    bounds = rows.bounds(HIT), rows.bounds(OTHER)
    won = wins(*bounds, score) / 2 + hits * absent + missing * absent / 2
    roc = _over(won, positives * negatives, np.nan)
    carried = no_precision(n)
    positions, _, tp, fp = points(*bounds, score)
    precision_onward(positions, tp, fp, carried)
    return roc, with_unlisted(carried.total + carried.lost, hits, positives, negatives)


# Merging of sorted scores. A run on disk is a memory map of an unnamed file, freed when
# unreferenced.


def merge_score_runs(runs: Iterable[Sorted], segments: int, place: Place) -> Sorted:
    """Merge the runs of all parts; ties are in any order.

    Args:
        runs: runs of the parts over the same segments, in any order within each. If they do not fit
            in memory, each is dropped before the next is made.
        place: storage for long runs.

    Raises:
        OSError: the disk is full.
    """
    stored: list[Sorted] = []
    total = 0
    for run in runs:
        total += run.score.size
        stored.append(run if total <= place.rows else _on_disk(run, place))
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
        if into.score.size > place.rows:
            _long_segment(parts, into, place.rows)
            continue
        free = into.start[:-1].copy()
        for part in parts:
            for column, target in part.columns_with(into):
                append_segments(part.start, column, free, target)
            free += np.diff(part.start)
        sort_segments(into, in_turn)
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
    stops = np.cumsum(rows)
    first = 0
    while first < rows.size:
        before = int(stops[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(stops, before + most, "right")))
        yield first, last
        first = last


def _segments_of(run: Sorted, first: int, last: int, *, weighted: bool) -> Sorted:
    """Select segments of a run, adding unit weights if other runs have weights."""
    result = run.rows(int(run.start[first]), int(run.start[last]), run.start[first : last + 1])
    if weighted and run.weight is None:
        result = msgspec.structs.replace(result, weight=np.broadcast_to(1.0, result.score.size))
    return result


def _long_segment(parts: Sequence[Sorted], into: Sorted, most: int) -> None:
    """Merge one segment, a range of scores at a time."""
    n_ranges = -(-into.score.size // max(1, most // 2))
    cuts = cuts_of(_sample(parts, _SAMPLED * n_ranges), n_ranges)
    count = np.zeros(cuts.ranges, np.int64)
    for part in parts:
        count_in_ranges(part.score, cuts, count)
    stops = np.cumsum(count)
    free = stops - count
    for part in parts:
        for first in range(0, part.score.size, _PIECE):
            few = part.rows(first, min(first + _PIECE, part.score.size))
            at = np.empty(few.score.size, np.int64)
            places_in_ranges(few.score, cuts, free, at)
            for column, target in few.columns_with(into):
                target[at] = column
    for first, last in zip((stops - count).tolist(), stops.tolist(), strict=True):
        few = into.rows(first, last)
        if last - first < most or few.score.min() < few.score.max():  # a tie may be of any length
            sort_segments(few, in_turn)


def _sample(parts: Sequence[Sorted], n: int) -> Array:
    """Return scores of about n random rows."""
    rng = np.random.default_rng(0)
    scores = [part.score for part in parts if part.score.size]
    total = sum(score.size for score in scores)
    return np.concatenate(
        [s[np.sort(rng.integers(0, s.size, -(-n * s.size // total)))] for s in scores]
    )


_SAMPLED = 256  # rows for each range of scores, so that its size is right to about 6 %
_PIECE = 1 << 20  # rows at a time


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
