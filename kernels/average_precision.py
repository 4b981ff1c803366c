"""Interpolated average precision and recall from ranked outcomes.

Precision is sampled at R recall levels as the largest precision at that recall or beyond. Only
true positives move the envelope, so a first walk keeps the rows that hit something and how many
plain misses came before each, and a second walk, from the worst of those rows up, carries the
envelope and fills each recall level when its true positive is reached: no curve is stored. Without
levels it adds up the envelope over all true positives instead: n times the area under it.
Source: pycocotools ``COCOeval.accumulate``; with the integer grid, Valor's 101-point rule (level
j of R - 1 is reached once (R - 1) * tp >= j * n); without levels, Pascal VOC's development kits
since 2010.

Rows of a segment that do not fit into memory come in parts, the best scores first. Counts of better
parts go into both walks of a part, and what the second walk holds goes on from the worst part up.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import frozen, inner, kernel

Array = np.ndarray[Any, Any]


class Carried(NamedTuple):
    """What the walks over one part of the rows take over from those over the others.

    Attributes:
        wrong: int64 [s, t * a], false positives of better parts, but for plain ones; a first walk
            adds its own.
        plain: int64 [s, a], those of better parts that meet nothing; likewise.
        right: int64 [s, t * a], true positives of better parts under the last cap; not written.
        envelope: float64 [s, t * a], the best precision of worse parts; the second walk raises it.
        level: int64 [s, t * a], the highest recall level that is still open.
        needed: int64 [s, t * a], true positives at which it is reached; -1 before the worst part.
    """

    wrong: Array
    plain: Array
    right: Array
    envelope: Array
    level: Array
    needed: Array

    def within(self, first: int, last: int) -> Carried:
        """That of some segments."""
        return Carried(*(array[first:last] for array in self))


def nothing_carried(n_segments: int, shape: tuple[int, int], n_levels: int) -> Carried:
    """Where all rows are one part.

    Args:
        n_segments: how many segments.
        shape: thresholds and area ranges.
        n_levels: recall levels.
    """
    variants = (n_segments, shape[0] * shape[1])
    return Carried(
        wrong=np.zeros(variants, np.int64),
        plain=np.zeros((n_segments, shape[1]), np.int64),
        right=np.zeros(variants, np.int64),
        envelope=np.zeros(variants),
        level=np.full(variants, n_levels - 1, np.int64),
        needed=np.full(variants, -1, np.int64),
    )


@inner
def _needed(level: int, positives: int, levels: Array, integer_grid: bool) -> int:
    """The fewest true positives of ``positives`` that reach a recall level; at least 1."""
    last = levels.size - 1
    if integer_grid:
        return max(1, -((-level * positives) // last))
    k = max(1, int(levels[level] * positives) - 1)
    while k / positives < levels[level]:
        k += 1
    return k


@kernel
def _sampled(
    start: Array,
    order: Array,
    hit: Array,
    ignored: Array,
    rank: Array,
    score: Array,
    weight: Array,
    n_thresholds: int,
    n_areas: int,
    positives: Array,
    caps: Array,
    levels: Array,
    integer_grid: bool,
    epsilon: float,
    false_positives: Array,
    plain_ones: Array,
    earlier: Array,
    envelopes: Array,
    open_levels: Array,
    needs: Array,
    tp: Array,
    kept: Array,
    before: Array,
    precision: Array,
    scores: Array,
    true_positives: Array,
) -> None:
    """Both walks over every segment; see :func:`sample_precision`."""
    n_variants = n_thresholds * n_areas
    one = np.uint64(1)
    every = ~np.uint64(0) >> np.uint64(64 - n_variants)
    of_area = ~np.uint64(0) >> np.uint64(64 - n_thresholds)
    lows = np.uint64(0)
    for a in range(n_areas):
        lows |= one << np.uint64(a * n_thresholds)
    n_caps = caps.size
    for s in range(start.size - 1):
        fp = false_positives[s]
        plain = plain_ones[s]
        n_kept = 0
        top = -1
        for i in range(start[s], start[s + 1]):
            r = order[i]
            w = weight[r]
            if w == 0:
                continue
            if top < 0:
                top = r
            missed = every & ~hit[r] & ~ignored[r]
            pattern = missed & lows
            # A prediction that meets nothing is missed at every threshold of an area range or
            # at none: one bit an area range says it all, and spread again gives ``missed`` back.
            if hit[r] == 0 and pattern * of_area == missed:
                for a in range(n_areas):
                    plain[a] += w & -np.int64(pattern & one)
                    pattern >>= np.uint64(n_thresholds)
                continue
            kept[n_kept] = r
            for a in range(n_areas):
                before[n_kept, a] = plain[a]
            n_kept += 1
            m = 0
            while rank[r] >= caps[m]:
                m += 1
            bits = hit[r]
            for v in range(n_variants):  # shifts by v, not step by step, so that it vectorises
                at = np.uint64(v)
                fp[v] += w & -np.int64((missed >> at) & one)
                true_positives[s, m, v] += w & -np.int64((bits >> at) & one)
        for m in range(1, n_caps):
            for v in range(n_variants):
                true_positives[s, m, v] += true_positives[s, m - 1, v]
        if precision.size == 0:
            continue
        envelope = envelopes[s]
        level = open_levels[s]
        needed = needs[s]
        for v in range(n_variants):
            tp[v] = 0
            if positives[s, v] > 0:
                tp[v] = earlier[s, v] + true_positives[s, n_caps - 1, v]
            if needed[v] < 0:
                needed[v] = tp[v] + 1
        for i in range(n_kept - 1, -1, -1):
            r = kept[i]
            w = weight[r]
            bits = hit[r]
            missed = every & ~hit[r] & ~ignored[r]
            for v in range(n_variants):
                if bits & one and positives[s, v] > 0:
                    wrong = fp[v] + before[i, v // n_thresholds]
                    # Levels are due once the true positives left no longer reach them; those
                    # that all of them do not reach stay at 0.
                    while level[v] >= 0 and tp[v] < needed[v]:
                        needed[v] = _needed(level[v], positives[s, v], levels, integer_grid)
                        if tp[v] < needed[v]:
                            level[v] -= 1
                    envelope[v] = max(envelope[v], tp[v] / (tp[v] + wrong + epsilon))
                    tp[v] -= w
                    if levels.size == 0:
                        precision[s, v, 0] += w * envelope[v]
                    while level[v] >= 0 and tp[v] < needed[v]:
                        precision[s, v, level[v]] = envelope[v]
                        if scores.size:
                            scores[s, v, level[v]] = score[r]
                        level[v] -= 1
                        if level[v] >= 0:
                            needed[v] = _needed(level[v], positives[s, v], levels, integer_grid)
                fp[v] -= w & -np.int64(missed & one)
                missed >>= one
                bits >>= one
        if scores.size and top >= 0 and levels[0] == 0.0:
            # recall 0 is reached before the first true positive: by the best score of all
            for v in range(n_variants):
                if positives[s, v] > 0:
                    scores[s, v, 0] = score[top]


def sample_precision(
    first: int,
    last: int,
    start: Array,
    order: Array,
    outcomes: tuple[Array, Array, Array, Array],
    weight: Array,
    shape: tuple[int, int],
    positives: Array,
    caps: Array,
    levels: Array,
    out: tuple[Array, Array, Array],
    *,
    integer_grid: bool,
    epsilon: float,
    carried: Carried | None = None,
) -> None:
    """Precision at every recall level, and true positives, per segment and variant.

    Args:
        first: first segment.
        last: one past the last segment.
        start: int64 [s + 1], segment offsets into ``order``; within a segment rows stand by
            descending score.
        order: int32 [n], rows of the outcomes by segment.
        outcomes: hit uint64 [n], ignored uint64 [n], rank int32 [n], score float64 [n].
        weight: int64 [n], how often each row counts; 0 leaves it out. Rows of rank >= the last
            cap must be left out.
        shape: (t, a), thresholds and area ranges; variant v = area * t + threshold is bit v.
        positives: int64 [s, t * a], (weighted) ground truths that are not ignored.
        caps: int64 [m], ascending caps on rank within (datum, label); precision is at the last.
        levels: float64 [r], ascending recall levels; [0] for the sum of the envelope over all true
            positives, which is written as that of one level.
        out: zeros, written for segments [first, last): precision float64 [s, t * a, r], 0 at
            levels never reached, or empty where it is not wanted; the score at which each level
            is reached, likewise; true positives int64 [s, m, t * a].
        integer_grid: reach level j at (r - 1) * tp >= j * n, instead of tp / n >= levels[j].
        epsilon: added to the denominator of precision.
        carried: what other parts of the rows hand over, and what is handed on; None where the rows
            are all there are. Of several parts ``out`` gets precision and scores of all where they
            come worst first, and the true positives of each alone.
    """
    n_variants = shape[0] * shape[1]
    start = start[first : last + 1]
    longest = int(np.diff(start).max(initial=0))
    hit, ignored, rank, score = outcomes
    if carried is None:
        carried = nothing_carried(last - first, shape, levels.size)
    else:
        carried = carried.within(first, last)
    _sampled(
        frozen(start, np.int64),
        frozen(order, np.int32),
        frozen(hit, np.uint64),
        frozen(ignored, np.uint64),
        frozen(rank, np.int32),
        frozen(score, np.float64),
        frozen(weight, np.int64),
        shape[0],
        shape[1],
        frozen(positives[first:last], np.int64),
        frozen(caps, np.int64),
        frozen(levels, np.float64),
        integer_grid,
        epsilon,
        *carried,
        np.zeros(n_variants, np.int64),
        np.empty(longest, np.int32),
        np.empty((longest, shape[1]), np.int64),
        *(array[first:last] for array in out),
    )
