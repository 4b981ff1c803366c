"""Interpolated average precision and true positives under the weights of many draws.

The same two walks as :mod:`.average_precision` makes, for a block of draws whose weights lie side
by side: every row is visited once for all of them. No row is kept between the walks: the second
takes back what the first has added, from the worst row up, so that rows in several files need but
be given in order, and then in the opposite order.

Precision is not sampled but added up: each row that hits something raises the envelope of each draw
and counts it once for every recall level that only the true positives down to this row reach, or
where there are no levels, as often as the row counts. All
counts are whole numbers in doubles, and a draw's additions are made in the order of the rows,
whatever block it is in.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import frozen, inner, kernel

Array = np.ndarray[Any, Any]


class Rows(NamedTuple):
    """Rows by segment, best scores first.

    Attributes:
        begin: int64 [s], place in ``order`` at which each segment begins.
        end: int64 [s], one past its last.
        order: int32 [n], rows of the arrays below.
        hit: uint64 [n], variants at which a row is a true positive.
        ignored: uint64 [n], at which it is neither that nor a false positive.
        rank: int32 [n], within (datum, label).
        datum: int32 [n].
        left_out: bool [n] or [0], rows that do not count.
    """

    begin: Array
    end: Array
    order: Array
    hit: Array
    ignored: Array
    rank: Array
    datum: Array
    left_out: Array

    def within(self, first: int, last: int) -> tuple[Array, ...]:
        """Those of some segments, as kernels take them."""
        dtypes: Any = (*[np.int64] * 2, np.int32, *[np.uint64] * 2, *[np.int32] * 2, np.bool_)
        some = (self.begin[first:last], self.end[first:last], *self[2:])
        return tuple(map(frozen, some, dtypes))


class Counted(NamedTuple):
    """What the first walk counts and the second takes back, of b draws; variant v is bit v.

    Attributes:
        plain: float64 [s, a, b], false positives of rows that meet nothing, by area range.
        wrong: float64 [s, t * a, b], the other false positives.
        right: float64 [s, m, t * a, b], true positives whose rank is below a cap and not below the
            one before.
    """

    plain: Array
    wrong: Array
    right: Array

    def within(self, first: int, last: int) -> tuple[Array, ...]:
        """That of some segments."""
        return tuple(array[first:last] for array in self)


def nothing_counted(n_segments: int, shape: tuple[int, int], n_caps: int, n_draws: int) -> Counted:
    """Before the first walk.

    Args:
        n_segments: how many segments.
        shape: thresholds and area ranges.
        n_caps: caps on rank.
        n_draws: how many draws.
    """
    size = shape[0] * shape[1]
    return Counted(
        np.zeros((n_segments, shape[1], n_draws)),
        np.zeros((n_segments, size, n_draws)),
        np.zeros((n_segments, n_caps, size, n_draws)),
    )


@inner
def _lows(n_thresholds: int, n_areas: int) -> Any:
    """The first bit of every area range."""
    lows = np.uint64(0)
    for a in range(n_areas):
        lows |= np.uint64(1) << np.uint64(a * n_thresholds)
    return lows


@kernel
def _down(
    begin: Array,
    end: Array,
    order: Array,
    hit: Array,
    ignored: Array,
    rank: Array,
    datum: Array,
    left_out: Array,
    weights: Array,
    n_thresholds: int,
    n_areas: int,
    caps: Array,
    plain: Array,
    wrong: Array,
    right: Array,
) -> None:
    """The first walk; see :func:`walk_down`."""
    one = np.uint64(1)
    n_variants = n_thresholds * n_areas
    every = ~np.uint64(0) >> np.uint64(64 - n_variants)
    of_area = ~np.uint64(0) >> np.uint64(64 - n_thresholds)
    lows = _lows(n_thresholds, n_areas)
    last_cap = caps[caps.size - 1]
    n_draws = weights.shape[1]
    for s in range(begin.size):
        for i in range(begin[s], end[s]):
            r = order[i]
            if rank[r] >= last_cap or (left_out.size > 0 and left_out[r]):
                continue
            w = weights[datum[r]]
            missed = every & ~hit[r] & ~ignored[r]
            pattern = missed & lows
            if hit[r] == 0 and pattern * of_area == missed:  # see average_precision
                for a in range(n_areas):
                    if pattern & one:
                        out = plain[s, a]
                        for d in range(n_draws):
                            out[d] += w[d]
                    pattern >>= np.uint64(n_thresholds)
                continue
            m = 0
            while rank[r] >= caps[m]:
                m += 1
            bits = hit[r]
            for v in range(n_variants):
                if (bits >> np.uint64(v)) & one:
                    out = right[s, m, v]
                    for d in range(n_draws):
                        out[d] += w[d]
                elif (missed >> np.uint64(v)) & one:
                    out = wrong[s, v]
                    for d in range(n_draws):
                        out[d] += w[d]


@inner
def _reach(
    right: Array, positives: Array, levels: Array, even: bool, integer_grid: bool, out: Array
) -> None:
    """How many recall levels the true positives of each draw reach; themselves without levels."""
    last = levels.size - 1
    if last < 0:
        for d in range(out.size):
            out[d] = right[d]
        return
    if integer_grid:
        for d in range(out.size):
            level = np.floor(right[d] * last / positives[d])
            level = level if level < last else float(last)
            out[d] = level + 1.0 if right[d] > 0.0 else 0.0
        return
    if not even:  # looked up, which takes half as long again
        for d in range(out.size):
            recall = right[d] / positives[d]
            at = min(int(recall * last), last)
            at += 1 if at < last and levels[at + 1] <= recall else 0
            at -= 1 if levels[at] > recall else 0
            out[d] = at + 1.0 if right[d] > 0.0 else 0.0
        return
    step = 1.0 / last
    for d in range(out.size):
        recall = right[d] / positives[d]
        level = np.floor(recall * last)  # of which rounding may have made the next one
        level += 1.0 if (level + 1.0) * step <= recall else 0.0
        level -= 1.0 if level * step > recall else 0.0
        level = level if level < last else float(last)
        out[d] = level + 1.0 if right[d] > 0.0 else 0.0


@kernel
def _up(
    begin: Array,
    end: Array,
    order: Array,
    hit: Array,
    ignored: Array,
    rank: Array,
    datum: Array,
    left_out: Array,
    weights: Array,
    n_thresholds: int,
    n_areas: int,
    cap: int,
    positives: Array,
    levels: Array,
    even: bool,
    integer_grid: bool,
    epsilon: float,
    reached: Array,
    fresh: Array,
    plain: Array,
    wrong: Array,
    right: Array,
    envelope: Array,
    total: Array,
) -> None:
    """The second walk; see :func:`walk_up`."""
    one = np.uint64(1)
    n_variants = n_thresholds * n_areas
    every = ~np.uint64(0) >> np.uint64(64 - n_variants)
    of_area = ~np.uint64(0) >> np.uint64(64 - n_thresholds)
    lows = _lows(n_thresholds, n_areas)
    n_draws = weights.shape[1]
    for s in range(begin.size):
        for v in range(n_variants):
            n = positives[s, v // n_thresholds]
            _reach(right[s, v], n, levels, even, integer_grid, reached[v])
        for i in range(end[s] - 1, begin[s] - 1, -1):
            r = order[i]
            if rank[r] >= cap or (left_out.size > 0 and left_out[r]):
                continue
            w = weights[datum[r]]
            missed = every & ~hit[r] & ~ignored[r]
            pattern = missed & lows
            if hit[r] == 0 and pattern * of_area == missed:
                for a in range(n_areas):
                    if pattern & one:
                        few = plain[s, a]
                        for d in range(n_draws):
                            few[d] -= w[d]
                    pattern >>= np.uint64(n_thresholds)
                continue
            bits = hit[r]
            for v in range(n_variants):
                if (bits >> np.uint64(v)) & one:
                    a = v // n_thresholds
                    tp, bad, far, best = right[s, v], wrong[s, v], plain[s, a], envelope[s, v]
                    # Loops of one result each: the compiler lays draws side by side only there.
                    # A draw without the row's datum changes nothing: with as many true positives
                    # the last row that was one had fewer false ones before it.
                    for d in range(n_draws):
                        p = tp[d] / (tp[d] + (bad[d] + far[d]) + epsilon)
                        best[d] = p if p > best[d] else best[d]
                    for d in range(n_draws):
                        tp[d] -= w[d]
                    _reach(tp, positives[s, a], levels, even, integer_grid, fresh)
                    out, before = total[s, v], reached[v]
                    for d in range(n_draws):
                        out[d] += best[d] * (before[d] - fresh[d])
                    for d in range(n_draws):
                        before[d] = fresh[d]
                elif (missed >> np.uint64(v)) & one:
                    bad = wrong[s, v]
                    for d in range(n_draws):
                        bad[d] -= w[d]


def walk_down(
    first: int,
    last: int,
    rows: Rows,
    weights: Array,
    shape: tuple[int, int],
    caps: Array,
    counted: Counted,
) -> None:
    """Count true and false positives of every draw.

    Args:
        first: first segment.
        last: one past the last segment.
        rows: of all segments.
        weights: uint8 [n_datums, b].
        shape: (t, a), thresholds and area ranges; variant v = area * t + threshold is bit v.
        caps: int64 [m], ascending caps on rank; rows beyond the last count nowhere.
        counted: added to, for segments [first, last).
    """
    _down(
        *rows.within(first, last),
        frozen(weights, np.uint8),
        *shape,
        frozen(caps, np.int64),
        *counted.within(first, last),
    )


def walk_up(
    first: int,
    last: int,
    rows: Rows,
    weights: Array,
    shape: tuple[int, int],
    cap: int,
    positives: Array,
    levels: Array,
    held: tuple[Array, Array, Array, Array, Array],
    *,
    integer_grid: bool,
    epsilon: float,
) -> None:
    """Add up interpolated precision over recall levels, or all true positives.

    Args:
        first: first segment.
        last: one past the last segment.
        rows: those that were walked down; of several parts the one with the worst scores first.
        weights: as :func:`walk_down` had them.
        shape: likewise.
        cap: the last of its caps.
        positives: float64 [s, a, b], ground truths that are not ignored; 1 where there are none.
        levels: float64 [r], recall levels that lie next to 0, 1 / (r - 1), ..., 1 each; [0] for the
            sum over true positives.
        held: written for segments [first, last), float64 each: plain and wrong as the first walk
            counted them, and right [s, t * a, b], its true positives under all caps, all of which
            are taken back; envelope [s, t * a, b], zeros; the sums of precision, likewise.
        integer_grid: reach level j at (r - 1) * tp >= j * n, instead of tp / n >= levels[j].
        epsilon: added to the denominator of precision.
    """
    even = bool((levels == np.arange(levels.size) * (1 / max(1, levels.size - 1))).all())
    shape_of_draws = shape[0] * shape[1], weights.shape[1]
    _up(
        *rows.within(first, last),
        frozen(weights, np.uint8),
        *shape,
        cap,
        frozen(positives[first:last], np.float64),
        frozen(levels, np.float64),
        even,
        integer_grid,
        epsilon,
        np.empty(shape_of_draws),
        np.empty(shape_of_draws[1]),
        *(array[first:last] for array in held),
    )
