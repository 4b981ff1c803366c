"""Average precision and counts by threshold over ranked rows, also per resample.

Arguments of these names are the same everywhere:

    first, last: range [first, last) of segments, of which outputs are written.
    start: int64 [s + 1], segment offsets into ``order``; rows of a segment have descending scores.
    order: int32 [n], rows of the outcomes by segment.
    weight: int64 [n], how often each row counts.
    shape: (t, a), thresholds and area ranges; variant v = area * t + threshold is bit v.
    levels: float64 [r], ascending recall levels; [0] for the sum of the envelope over all true
    positives, which is written as one level.
    integer_grid: reach level j at (r - 1) * tp >= j * n, instead of tp / n >= levels[j].
    epsilon: added to the denominator of precision.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import F64, I32, I64, U8, U64, Array, Bools, inner, kernel

# Interpolated average precision and recall: the largest precision at each recall level or beyond.
# Only true positives move the envelope, so the first pass keeps these and the number of false
# positives before each; the second pass goes up from the worst row.
# Source: pycocotools ``COCOeval.accumulate``; with the integer grid Valor's 101-point rule; without
# levels Pascal VOC's development kits since 2010.


class Carried(NamedTuple):
    """State of the passes, passed from part to part if the rows of a segment come in several parts.

    Parts come best scores first. In the second pass they come worst scores first.
    """

    wrong: Array  # int64 [s, t * a], other false positives of better parts; the first pass adds
    plain: Array  # int64 [s, a], false positives without a match; the first pass adds
    right: Array  # int64 [s, t * a], true positives of better parts under the last cap; read only
    envelope: Array  # float64 [s, t * a], best precision of worse parts; the second pass raises it
    level: Array  # int64 [s, t * a], highest recall level that is still open
    needed: Array  # int64 [s, t * a], true positives that reach it; -1 before the worst part


def nothing_carried(n_segments: int, shape: tuple[int, int], n_levels: int) -> Carried:
    """State before the first part."""
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
    """Fewest true positives of ``positives`` that reach a recall level; at least 1."""
    last = levels.size - 1
    if integer_grid:
        return max(1, -((-level * positives) // last))
    k = max(1, int(levels[level] * positives) - 1)
    while k / positives < levels[level]:
        k += 1
    return k


@inner
def _masks(n_thresholds: int, n_areas: int) -> tuple[Any, Any, Any]:
    """Bits of all variants, of the first area range, and the first of every area range."""
    every = ~np.uint64(0) >> np.uint64(64 - n_thresholds * n_areas)
    lows = np.uint64(0)
    for a in range(n_areas):
        lows |= np.uint64(1) << np.uint64(a * n_thresholds)
    return every, ~np.uint64(0) >> np.uint64(64 - n_thresholds), lows


@kernel
def sample_precision(
    first: int,
    last: int,
    begin: I64,
    end: I64,
    order: I32,
    outcomes: tuple[U64, U64, I32, F64],
    weight: I64,
    shape: tuple[int, int],
    positives: I64,
    caps: I64,
    levels: F64,
    out: tuple[Array, Array, Array],
    integer_grid: bool,
    epsilon: float,
    carried: Carried,
    room: tuple[Array, Array],
) -> None:
    """Precision at every recall level, and true positives, per segment and variant.

    Args:
        begin: int64 [s], place in ``order`` at which each segment begins.
        end: int64 [s], one past its last.
        outcomes: hit uint64 [n], ignored uint64 [n], rank int32 [n], score float64 [n].
        weight: 0 skips a row. Rows of rank >= the last cap must have 0.
        positives: int64 [s, t * a], (weighted) ground truths that are not ignored.
        caps: int64 [m], ascending caps on rank within (datum, label); precision is at the last.
        out: zeros: precision float64 [s, t * a, r], 0 at levels never reached, or empty to skip it;
            the score at which each level is reached, or empty; true positives int64 [s, m, t * a].
        carried: state from other parts of the rows. Over several parts, worst scores first, ``out``
            gets precision and scores of all parts, but true positives of each part separately.
        room: scratch memory: int64 [t * a]; int64 [rows of the longest segment, 1 + a], a row and
            the false positives before it.
    """
    hit, ignored, rank, score = outcomes
    precision, scores, true_positives = out
    false_positives, plain_ones, earlier, envelopes, open_levels, needs = carried
    n_thresholds, n_areas = shape
    n_variants, n_caps = n_thresholds * n_areas, caps.size
    one = np.uint64(1)
    every, of_area, lows = _masks(n_thresholds, n_areas)
    tp, rows = room
    for s in range(first, last):
        fp = false_positives[s]
        plain = plain_ones[s]
        n_rows = 0
        top = -1
        for i in range(begin[s], end[s]):
            r = order[i]
            w = weight[r]
            if w == 0:
                continue
            if top < 0:
                top = r
            missed = every & ~hit[r] & ~ignored[r]
            pattern = missed & lows
            # A prediction without a match is a miss at all thresholds of an area range or at none:
            # one bit per area range stores it, and spreading the bits restores ``missed``.
            if hit[r] == 0 and pattern * of_area == missed:
                for a in range(n_areas):
                    plain[a] += w & -np.int64(pattern & one)
                    pattern >>= np.uint64(n_thresholds)
                continue
            rows[n_rows, 0] = r
            for a in range(n_areas):
                rows[n_rows, 1 + a] = plain[a]
            n_rows += 1
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
        for i in range(n_rows - 1, -1, -1):
            r = rows[i, 0]
            w = weight[r]
            bits = hit[r]
            missed = every & ~hit[r] & ~ignored[r]
            for v in range(n_variants):
                if bits & one and positives[s, v] > 0:
                    wrong = fp[v] + rows[i, 1 + v // n_thresholds]
                    # A level is written once the remaining true positives no longer reach it;
                    # levels that
                    # all of them do not reach stay 0.
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


# Interpolated average precision and true positives under the weights of many resamples, stored side
# by side: the same two passes, with each row visited once for a block of resamples.
# The second pass subtracts the additions of the first, from the worst row up, so rows in several
# files need only be read in order and then in the opposite order. Counts are integers of 32 bits,
# of which twice as many are added at once as of doubles, and additions of precision follow the
# order of the rows, so blocks do not change results.


class Rows(NamedTuple):
    """Rows by segment, best scores first."""

    begin: I64  # int64 [s], place in ``order`` at which each segment begins
    end: I64  # int64 [s], one past its last
    order: I32  # int32 [n], rows of the arrays below
    hit: U64  # uint64 [n], variants at which a row is a true positive
    ignored: U64  # uint64 [n], variants at which it is neither a true nor a false positive
    rank: I32  # int32 [n], within (datum, label)
    datum: I32  # int32 [n]
    left_out: Bools  # bool [n] or [0], rows that do not count


class Counted(NamedTuple):
    """Counts of the first pass, which the second subtracts again, of b resamples."""

    plain: Array  # int32 [s, a, b], false positives of rows without a match, by area range
    wrong: Array  # int32 [s, t * a, b], other false positives
    right: Array  # int32 [s, m, t * a, b], true positives of rank below a cap, not the previous


def nothing_counted(n_segments: int, shape: tuple[int, int], n_caps: int, n_draws: int) -> Counted:
    """Counts before the first pass."""
    size = shape[0] * shape[1]
    return Counted(
        np.zeros((n_segments, shape[1], n_draws), np.int32),
        np.zeros((n_segments, size, n_draws), np.int32),
        np.zeros((n_segments, n_caps, size, n_draws), np.int32),
    )


@kernel
def walk_down(
    first: int,
    last: int,
    rows: Rows,
    weights: U8,
    shape: tuple[int, int],
    caps: I64,
    counted: Counted,
) -> None:
    """Count true and false positives of every resample.

    Args:
        weights: uint8 [n_datums, b].
        caps: int64 [m], ascending caps on rank; rows beyond the last do not count.
        counted: added to.
    """
    begin, end, order, hit, ignored, rank, datum, left_out = rows
    plain, wrong, right = counted
    n_thresholds, n_areas = shape
    one = np.uint64(1)
    n_variants = n_thresholds * n_areas
    every, of_area, lows = _masks(n_thresholds, n_areas)
    last_cap = caps[caps.size - 1]
    n_draws = weights.shape[1]
    for s in range(first, last):
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


class Grid(NamedTuple):
    """Recall levels of resamples: from 0 to 1 in even steps, of any rounding."""

    last: float  # number of steps
    middle: float  # levels above are computed from 1 downwards, as MATLAB does
    top: float  # highest level; infinite for the area, whose levels are the true positives
    first: float  # number of levels that the first true positive reaches
    factor: float  # of the recall; above 1 to reach levels that rounding would miss


def grid_of(levels: Array, *, integer_grid: bool) -> Grid | None:
    """The grid of recall levels, see :func:`sample_precision`; None if there is none."""
    last = levels.size - 1
    if last < 0:
        return Grid(1.0, np.inf, np.inf, 0.0, 1.0)
    if integer_grid:
        return Grid(last, np.inf, last, 1.0, 1.0 + 2.0**-50)
    up = np.arange(levels.size) * (1.0 / last)
    for middle in (np.inf, last / 2):
        down = np.arange(levels.size) > middle
        if (levels == np.where(down, 1.0 - up[::-1], up)).all():
            return Grid(last, middle, last, 1.0, 1.0)
    return None


@kernel
def walk_up(
    first: int,
    last: int,
    rows: Rows,
    weights: U8,
    shape: tuple[int, int],
    cap: int,
    positives: F64,
    grid: Grid,
    held: tuple[Array, Array, Array, Array, Array],
    epsilon: float,
) -> None:
    """Add up interpolated precision over recall levels, or all true positives.

    Args:
        rows: rows of :func:`walk_down`; of several parts the one with the worst scores first.
        weights: weights of :func:`walk_down`.
        cap: the last of its caps.
        positives: float64 [s, a, b], ground truths that are not ignored; 1 if there are none, and
            for the area.
        held: written: plain and wrong as the first pass counted them, and right int32 [s, t * a,
            b], its true positives under all caps, all of which are subtracted again; envelope
            float64 [s, t * a, b], zeros; sums of precision, zeros.
    """
    begin, end, order, hit, ignored, rank, datum, left_out = rows
    plain, wrong, right, envelope, total = held
    n_thresholds, n_areas = shape
    one = np.uint64(1)
    n_variants = n_thresholds * n_areas
    every, of_area, lows = _masks(n_thresholds, n_areas)
    n_draws = weights.shape[1]
    reached, higher = np.empty(n_draws), np.empty(n_draws)
    steps, middle, top, at_first, factor = grid
    step = 1.0 / steps
    for s in range(first, last):
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
                    # Loops with one result each: the compiler vectorises resamples only in these.
                    # A rise of the envelope counts for all levels reached up to here. In a resample
                    # without the row's datum it rises less than at the previous true positive,
                    # which reaches the same levels and has fewer false ones before it.
                    for d in range(n_draws):
                        p = float(tp[d]) / (float(np.int32(tp[d] + bad[d] + far[d])) + epsilon)
                        higher[d] = p if p > best[d] else best[d]
                    rises = 0
                    for d in range(n_draws):
                        rises += higher[d] > best[d]
                    if rises == 0:  # in no resample of the block: levels need not be counted
                        for d in range(n_draws):
                            tp[d] -= w[d]
                        continue
                    n = positives[s, a]
                    for d in range(n_draws):
                        recall = float(tp[d]) / n[d] * factor
                        level = np.floor(recall * steps)  # rounding may have made it the next one
                        higher_one, same = (level + 1.0) * step, level * step
                        if level + 1.0 > middle:
                            higher_one = 1.0 - (steps - level - 1.0) * step
                        if level > middle:
                            same = 1.0 - (steps - level) * step
                        level += 1.0 if higher_one <= recall else 0.0
                        level -= 1.0 if same > recall else 0.0
                        reached[d] = (level if level < top else top) + at_first
                    out = total[s, v]
                    for d in range(n_draws):
                        out[d] += reached[d] * (higher[d] - best[d])
                    for d in range(n_draws):
                        best[d] = higher[d]
                    for d in range(n_draws):
                        tp[d] -= w[d]
                elif (missed >> np.uint64(v)) & one:
                    bad = wrong[s, v]
                    for d in range(n_draws):
                        bad[d] -= w[d]


# True and false positives by score threshold, for every IoU threshold and area range: one pass
# fills a histogram by the number of thresholds reached, and cumulating it from the top gives the
# counts.


@kernel
def count_by_threshold(
    first: int,
    last: int,
    start: I64,
    order: I32,
    outcomes: tuple[U64, U64, F64],
    weight: I64,
    shape: tuple[int, int],
    score_thresholds: F64,
    out: tuple[Array, Array],
) -> None:
    """True and false positives with score >= each threshold.

    Args:
        outcomes: hit uint64 [n], ignored uint64 [n], score float64 [n].
        score_thresholds: float64 [k], ascending.
        out: zeros: true and false positives, int64 [s, k + 1, t * a] each; entry c + 1 is for
            threshold c, entry 0 for no threshold.
    """
    hit, ignored, score = outcomes
    true_positives, false_positives = out
    n_thresholds, n_areas = shape
    one = np.uint64(1)
    n_variants = n_thresholds * n_areas
    every, of_area, lows = _masks(n_thresholds, n_areas)
    n_scores = score_thresholds.size
    plain = np.empty((n_areas, n_scores + 1), np.int64)
    for s in range(first, last):
        reached = n_scores
        for a in range(n_areas):
            for c in range(n_scores + 1):
                plain[a, c] = 0
        for i in range(start[s], start[s + 1]):
            r = order[i]
            while reached > 0 and score[r] < score_thresholds[reached - 1]:
                reached -= 1
            if reached == 0:
                break
            w = weight[r]
            missed = every & ~hit[r] & ~ignored[r]
            pattern = missed & lows
            # Missed alike at every threshold of an area range: see average_precision.
            if hit[r] == 0 and pattern * of_area == missed:
                for a in range(n_areas):
                    plain[a, reached] += w & -np.int64(pattern & one)
                    pattern >>= np.uint64(n_thresholds)
                continue
            bits = hit[r]
            for v in range(n_variants):
                true_positives[s, reached, v] += w & -np.int64(bits & one)
                false_positives[s, reached, v] += w & -np.int64(missed & one)
                bits >>= one
                missed >>= one
        for c in range(n_scores - 1, -1, -1):
            for a in range(n_areas):
                plain[a, c] += plain[a, c + 1]
            for v in range(n_variants):
                true_positives[s, c, v] += true_positives[s, c + 1, v]
                false_positives[s, c, v] += false_positives[s, c + 1, v]
        for c in range(n_scores + 1):
            for v in range(n_variants):
                false_positives[s, c, v] += plain[v // n_thresholds, c]
