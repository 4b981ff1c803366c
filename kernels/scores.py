"""Areas and points of score curves: ROC, precision and recall, exact or per resample.

Arguments of these names are the same everywhere:

    positives, negatives: starts and stops of each segment's rows, int64 [s] each.
    score: float64 [n], ascending within each segment or range, without NaN.
    weight: float64 [n], finite, weight of each row; or None.
    begin, end: int64 [s], starts and ends of ranges of scores.
    thresholds: float64 [t], ascending.
    start: int64 [s + 1], CSR offsets of the points of each curve.
    tp, fp: float64 [m], true and false positives, ascending within a curve.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .datums import MOST, Stream, draw_rows, stream_of_draws
from .jit import F64, I32, I64, Array, frozen, inner, kernel
from .sums import ExactSums, add_bits, nearest

Bounds = tuple[I64, I64]
"""Starts and stops of the rows of each segment."""

Tables = tuple[I64, F64, I64, I64, I64, I32]
"""Result of :func:`place_table`."""

# Area under the ROC curve: the share of (positive, negative) pairs in which the positive scores
# higher, ties counting half (Mann and Whitney 1947; Hanley and McNeil 1982), by merging sorted
# scores. Counts are integers, so the area is exact.

_LONG = 512  # rows of both classes from which a segment is merged in two halves at once
_STEPS = 4096  # of both halves between looks at their ends


@inner
def _below(score: Array, first: int, last: int, value: float) -> int:
    """First place in an ascending range that is not below a value; its end if all are."""
    while first < last:
        middle = (first + last) >> 1
        if score[middle] < value:
            first = middle + 1
        else:
            last = middle
    return first


@inner
def _tied(
    score: Array, i: int, n_end: int, j: int, p_end: int, n_first: int
) -> tuple[int, int, int]:
    """Places after the ties of a negative and a positive, and twice the wins of the positives."""
    value = score[i]
    below = 2 * (i - n_first)
    tied, won = 0, 0
    while i < n_end and score[i] == value:
        i += 1
        tied += 1
    while j < p_end and score[j] == value:
        j += 1
        won += below + tied
    return i, j, won


@inner
def _merged(score: Array, i: int, n_end: int, j: int, p_end: int, n_first: int) -> int:
    """Twice the wins of the positives of a range over its negatives and earlier ones."""
    twice = 0
    while i < n_end and j < p_end:
        negative, positive = score[i], score[j]
        if negative == positive:
            i, j, won = _tied(score, i, n_end, j, p_end, n_first)
            twice += won
        else:
            # No branch on the outcome, which is a coin toss: the step is added instead.
            lower = int(negative < positive)
            i += lower
            j += 1 - lower
            twice += 2 * (1 - lower) * (i - n_first)
    return twice + 2 * (p_end - j) * (n_end - n_first)


@inner
def _middle(score: Array, p_first: int, p_end: int, n_first: int, n_end: int) -> tuple[int, int]:
    """Places of a positive and a negative below which about half of all rows are."""
    half = (p_end - p_first + n_end - n_first) >> 1
    low, high = p_first, p_end - 1
    while low < high:
        k = (low + high) >> 1
        if k - p_first + _below(score, n_first, n_end, score[k]) - n_first < half:
            low = k + 1
        else:
            high = k
    value = score[low]  # ties stay together
    return _below(score, p_first, p_end, value), _below(score, n_first, n_end, value)


@kernel
def _twice_wins(positives: Bounds, negatives: Bounds, score: F64, out: Array) -> None:
    """Twice the number of pairs won by the positive, ties counting one, per segment."""
    p_start, p_stop = positives
    n_start, n_stop = negatives
    for s in range(p_start.size):
        j, p_end = p_start[s], p_stop[s]
        i, n_end = n_start[s], n_stop[s]
        n_first = i
        if min(p_end - j, n_end - i) < _LONG:
            out[s] = _merged(score, i, n_end, j, p_end, n_first)
            continue
        # Every step waits for the one before; of two halves in turn none waits for the other.
        p_half, n_half = _middle(score, j, p_end, i, n_end)
        v, u = p_half, n_half
        twice = 0
        while True:
            # These steps reach no end, whatever the scores; ties are rare, and merged by name.
            steps = min(min(n_half - i, p_half - j), min(n_end - u, p_end - v), _STEPS)
            at, ties, won = (i, j, u, v), 0, 0
            for _ in range(steps):
                lower = int(score[i] < score[j])
                ties += int(score[i] == score[j])
                i += lower
                j += 1 - lower
                won += (i - n_first) & (lower - 1)  # all bits set if the positive was passed
                lower = int(score[u] < score[v])
                ties += int(score[u] == score[v])
                u += lower
                v += 1 - lower
                won += (u - n_first) & (lower - 1)
            if ties > 0:
                i, j, u, v = at
            if steps == 0 or ties > 0:
                break
            twice += 2 * won
        twice += _merged(score, i, n_half, j, p_half, n_first)
        out[s] = twice + _merged(score, u, n_end, v, p_end, n_first)


@kernel
def _wins_by_row(positive: F64, negative: F64, won: Array, lost: Array) -> None:
    """Merge ascending scores of both classes; see :func:`wins_by_row`."""
    i, j, n, m = 0, 0, negative.size, positive.size
    while i < n and j < m:
        a, b = negative[i], positive[j]
        if a == b:
            u, v = i, j
            while u < n and negative[u] == a:
                u += 1
            while v < m and positive[v] == a:
                v += 1
            won[j:v] = i + u
            lost[i:u] = 2 * m - j - v
            i, j = u, v
        else:  # both are written, and the lower one is final: no branch on the outcome
            won[j] = 2 * i
            lost[i] = 2 * (m - j)
            lower = int(a < b)
            i += lower
            j += 1 - lower
    won[j:] = 2 * n
    lost[i:] = 0


def wins_by_row(positive: Array, negative: Array) -> tuple[Array, Array]:
    """Return twice the pairs that each positive wins, and each negative loses, ties 1, float64.

    Args:
        positive: float64 [m], ascending.
        negative: float64 [n], ascending.
    """
    won, lost = np.empty(positive.size), np.empty(negative.size)
    _wins_by_row(positive, negative, won, lost)
    return won, lost


@inner
def _sum(weight: Array, bits: Array, begin: int, end: int, first: int, sums: Array) -> float:
    """Sum of a few weights, exact except for one rounding; ``sums[1]`` is used up."""
    if end - begin == 1:
        value: float = weight[begin]
        return value
    sums[1] = 0
    for i in range(begin, end):
        add_bits(sums, 1, first, bits[i])
    total: float = nearest(sums, 1, first)
    return total


Cells = tuple[int, Array]
"""First chunk and chunks of exact sums."""


@kernel
def _weighted_wins(
    positives: Bounds, negatives: Bounds, rows: tuple[F64, F64, I64], below_here: Cells, to: Cells
) -> None:
    """Twice the weight of pairs won by the positive, ties counting half, cell by segment.

    The product of two sums is rounded once per distinct score; everything else is exact.
    """
    p_start, p_stop = positives
    n_start, n_stop = negatives
    score, weight, bits = rows
    (first, sums), (first_won, won) = below_here, to
    product = np.empty(1)
    product_bits = product.view(np.int64)
    for s in range(p_start.size):
        j, p_end = p_start[s], p_stop[s]
        i, n_end = n_start[s], n_stop[s]
        sums[0] = 0
        below = 0.0
        while j < p_end:
            positive = score[j]
            k = i
            while i < n_end and score[i] < positive:
                add_bits(sums, 0, first, bits[i])
                i += 1
            if i > k:
                below = nearest(sums, 0, first)
            tied = 0.0
            k = i
            while k < n_end and score[k] == positive:
                k += 1
            if k > i:
                tied = _sum(weight, bits, i, k, first, sums)
            begin = j
            while j < p_end and score[j] == positive:
                j += 1
            here = _sum(weight, bits, begin, j, first, sums)
            product[0] = here * (2.0 * below + tied)
            add_bits(won, s, first_won, product_bits[0])


def wins(
    positives: tuple[Array, Array],
    negatives: tuple[Array, Array],
    score: Array,
    weight: Array | None = None,
) -> Array:
    """Count (positive, negative) pairs that the positive wins, ties counting half.

    Returns:
        **twice** the number of pairs won, int64 [s]; with weights the weight of the pairs won,
        float64 [s].
    """
    if weight is None:
        out = np.zeros(positives[0].size, np.int64)
        _twice_wins(positives, negatives, score, out)
        return out
    sums, won = ExactSums(2), ExactSums(positives[0].size)
    bits = sums.reserve(weight)
    won.reserve_products(sums)
    cells = (sums.first, sums.chunks), (won.first, won.chunks)
    _weighted_wins(positives, negatives, (score, weight, bits), *cells)
    won.carry()
    return won.rounded() / 2


@kernel
def pair_wins(positives: Bounds, negatives: Bounds, score: F64) -> Array:
    """Count **twice** the wins of unsorted scores, without weights, in quadratic time."""
    p_start, p_stop = positives
    n_start, n_stop = negatives
    out = np.zeros(p_start.size, np.int64)
    for s in range(p_start.size):
        below = score[n_start[s] : n_stop[s]]
        twice = 0
        for j in range(p_start[s], p_stop[s]):
            positive = score[j]
            won = 0
            for i in range(below.size):
                won += int(below[i] < positive) + int(below[i] <= positive)
            twice += won
        out[s] = twice
    return out


# Points of curves: true and false positives at or above every distinct score, in one pass over the
# sorted positives and negatives. ROC, precision-recall and DET curves, average precision and best
# thresholds use them.


@kernel
def _points(
    positives: Bounds,
    negatives: Bounds,
    rows: tuple[F64, F64, I64],
    cells: Cells,
    out: tuple[Array, Array, Array, Array],
    onward: bool,
) -> int:
    p_start, p_stop = positives
    n_start, n_stop = negatives
    (score, weight, bits), (first, sums) = rows, cells
    start, threshold, tp, fp = out
    at = 0
    for s in range(p_start.size):
        start[s] = at
        j, p_end = p_stop[s] - 1, p_start[s]
        i, n_end = n_stop[s] - 1, n_start[s]
        positive = 0.0
        negative = 0.0
        if onward:
            positive = nearest(sums, 0, first)
            negative = nearest(sums, 1, first)
        else:
            sums[:] = 0
        while True:
            while weight.size and j >= p_end and weight[j] == 0.0:
                j -= 1
            while weight.size and i >= n_end and weight[i] == 0.0:
                i -= 1
            if j < p_end and i < n_end:
                break
            from_positive = i < n_end or (j >= p_end and score[j] >= score[i])
            here = score[j if from_positive else i]
            above = i, j
            if weight.size:
                while j >= p_end and score[j] == here:
                    add_bits(sums, 0, first, bits[j])
                    j -= 1
                while i >= n_end and score[i] == here:
                    add_bits(sums, 1, first, bits[i])
                    i -= 1
                if j < above[1]:
                    positive = nearest(sums, 0, first)
                if i < above[0]:
                    negative = nearest(sums, 1, first)
            else:
                while j >= p_end and score[j] == here:
                    j -= 1
                while i >= n_end and score[i] == here:
                    i -= 1
                positive += above[1] - j
                negative += above[0] - i
            threshold[at] = here
            tp[at] = positive
            fp[at] = negative
            at += 1
    start[p_start.size] = at
    return at


def points(
    positives: tuple[Array, Array],
    negatives: tuple[Array, Array],
    score: Array,
    weight: Array | None = None,
    above: ExactSums | None = None,
) -> tuple[Array, Array, Array, Array]:
    """True and false positives at or above every distinct score.

    Args:
        weight: rows of weight 0 make no points.
        above: of one segment, weight of the positives and of the negatives above its rows, two
            cells, to which those of its rows are added; or None.

    Returns:
        ``start``, int64 [s + 1], CSR offsets of the points; thresholds, true positives and false
        positives, float64 [m] each, thresholds descending within a segment.
    """
    room = int(sum((stop - start).sum() for start, stop in (positives, negatives)))
    start = np.zeros(positives[0].size + 1, np.int64)
    threshold, tp, fp = (np.empty(room) for _ in range(3))
    sums = ExactSums(2) if above is None else above
    weight = np.zeros(0) if weight is None else weight
    rows = score, weight, sums.reserve(weight)
    cells, out = (sums.first, sums.chunks), (start, threshold, tp, fp)
    n_points = _points(positives, negatives, rows, cells, out, above is not None)
    sums.carry()
    return start, threshold[:n_points], tp[:n_points], fp[:n_points]


# Number or weight of sorted scores that reach each of a few thresholds: counts by bisection,
# weights by exact sums from the best score down.


@kernel
def first_reaching(begin: I64, end: I64, score: F64, thresholds: F64) -> Array:
    """Positions from which scores reach each threshold.

    Returns:
        int64 [s, t], places in ``score``; ``end - place`` scores reach the threshold.
    """
    out = np.empty((begin.size, thresholds.size), np.int64)
    for s in range(begin.size):
        low = begin[s]
        for t in range(thresholds.size):
            high = end[s]
            while low < high:
                middle = (low + high) // 2
                if score[middle] < thresholds[t]:
                    low = middle + 1
                else:
                    high = middle
            out[s, t] = low  # thresholds ascend, so the next search starts here
    return out


@kernel
def _weights_reaching(
    begin: I64, end: I64, score: F64, bits: I64, thresholds: F64, cells: Cells, out: Array
) -> None:
    """Weight at or above each threshold; the last column is the total."""
    first, total = cells
    n = thresholds.size
    for s in range(begin.size):
        i = end[s] - 1
        total[:] = 0
        for t in range(n - 1, -1, -1):
            while i >= begin[s] and score[i] >= thresholds[t]:
                add_bits(total, 0, first, bits[i])
                i -= 1
            out[s, t] = nearest(total, 0, first)
        while i >= begin[s]:
            add_bits(total, 0, first, bits[i])
            i -= 1
        out[s, n] = nearest(total, 0, first)


def weights_reaching(
    begin: Array, end: Array, score: Array, weight: Array, thresholds: Array
) -> tuple[Array, Array]:
    """Weight of the scores at or above each threshold, and of all scores.

    Returns:
        float64 [s, t] and float64 [s], the doubles nearest to the sums.
    """
    total = ExactSums(1)
    bits = total.reserve(weight)
    out = np.empty((begin.size, thresholds.size + 1))
    _weights_reaching(begin, end, score, bits, thresholds, (total.first, total.chunks), out)
    return out[:, :-1], out[:, -1]


# Area under the left part of ROC curves, from their points.


class AreaCarried(NamedTuple):
    """State after the points so far, by curve."""

    x: Array  # float64 [s], false-positive rate of the last of them
    y: Array  # float64 [s], its true-positive rate
    area: Array  # float64 [s], area so far; NaN if a class is missing
    ended: Array  # bool [s], whether the limit was reached


def no_area(positives: Array, negatives: Array) -> AreaCarried:
    """State before the first point of curves; numbers of each class, float64 [s]."""
    x, y, area = np.zeros((3, positives.size))
    missing = ~((positives > 0.0) & (negatives > 0.0))
    area[missing] = np.nan
    return AreaCarried(x, y, area, missing)


@kernel
def areas_onward(
    start: I64, tp: F64, fp: F64, positives: F64, negatives: F64, limit: float, carried: AreaCarried
) -> None:
    """Add the next points of every curve, trapezoid by trapezoid.

    The trapezoid at the limit is cut by linear interpolation (McClish 1989).

    Args:
        positives: float64 [s].
        negatives: float64 [s].
        limit: in (0, 1].
        carried: result of :func:`no_area`; written to.
    """
    from_x, from_y, out, ended = carried
    for s in range(positives.size):
        if ended[s]:
            continue
        x0, y0, area = from_x[s], from_y[s], out[s]
        for i in range(start[s], start[s + 1]):
            x, y = fp[i] / negatives[s], tp[i] / positives[s]
            if x > limit:
                y = y0 + (y - y0) * (limit - x0) / (x - x0)
                x = limit
            area += (x - x0) * (y + y0) / 2
            x0, y0 = x, y
            if x0 >= limit and limit < 1.0:
                # Points straight above the limit add no area.
                ended[s] = True
                break
        from_x[s], from_y[s], out[s] = x0, y0, area


def area_in_all(positives: Array, negatives: Array, limit: float, carried: AreaCarried) -> Array:
    """Area under each ROC curve up to a false-positive rate of ``limit``.

    Curves run from (0, 0) to (1, 1), also if their last point differs.

    Args:
        positives: float64 [s].
        negatives: float64 [s].
        limit: in (0, 1].
        carried: state after all points; used up here.

    Returns:
        float64 [s], in [0, limit]; NaN if a class is missing.
    """
    every = np.arange(positives.size + 1)
    areas_onward(every, positives, negatives, positives, negatives, limit, carried)
    return carried.area


# Average precision: precision times the gain in recall, by compensated summation (Neumaier 1974),
# so that points in several pieces give the same result.


class PrecisionCarried(NamedTuple):
    """State after the points so far, float64 [s] each."""

    tp: Array  # true positives at the last of them
    total: Array  # sum of gained true positives times precision
    lost: Array  # compensation of that sum


def no_precision(n: int) -> PrecisionCarried:
    """State before the first point of n curves."""
    return PrecisionCarried(*np.zeros((3, n)))


@kernel
def precision_onward(start: I64, tp: F64, fp: F64, carried: PrecisionCarried) -> None:
    """Add the next points of every curve to ``carried``."""
    before, totals, lost = carried
    for s in range(start.size - 1):
        reached, total, rest = before[s], totals[s], lost[s]
        for i in range(start[s], start[s + 1]):
            gained = tp[i] - reached
            if gained > 0.0:
                term = gained * (tp[i] / (tp[i] + fp[i]))
                larger = total + term
                if total >= term:
                    rest += (total - larger) + term
                else:
                    rest += (term - larger) + total
                total = larger
            reached = tp[i]
        before[s], totals[s], lost[s] = reached, total, rest


# Scores of every label on every datum, datum by datum: row r has label ``r % width`` and block ``r
# // width``, so no codes are read.
# Areas need only sorted positives, which are few per label. A table per label, indexed by the
# shifted distance of a score's bits from the lowest positive's, gives the number of positives
# below; floats are compared only within one entry.

_POSITIVE_BITS = np.int64(0x7FFFFFFFFFFFFFFF)
_BLOCKS = 4096  # rows of a label looked at together, as its table is then read once for many
_ROWS = 1 << 18  # rows of a grid looked at together at most
_PAD = 2  # NaN after each label's positives: they are below no score


@inner
def key_of(bits: Any) -> Any:
    """Integer that ascends with the float of these bits; both zeros have the same."""
    sign = bits >> 63
    return ((bits ^ (sign & _POSITIVE_BITS)) - sign) >> 1


@kernel
def _fill(
    start: I64, positive: F64, bits: I64, low: Array, shift: Array, first: Array, table: Array
) -> None:
    for s in range(start.size - 1):
        end = start[s + 1] - _PAD
        if end == start[s]:
            continue
        low[s] = key_of(bits[start[s]])
        span = key_of(bits[end - 1]) - low[s]
        room = first[s + 1] - first[s] - 3
        while (span >> shift[s]) >= room:
            shift[s] += 1
        for i in range(start[s], end):
            at = (key_of(bits[i]) - low[s]) >> shift[s]
            table[first[s] + at + 2] += 1
        for k in range(first[s] + 1, first[s + 1]):
            table[k] += table[k - 1]


@inner
def _more(ordered: Array, first: int, stop: int, value: float) -> int:
    """Count the values of a sorted range below a value, plus those at most equal to it."""
    low, high = first, stop
    while low < high:
        middle = (low + high) >> 1
        if ordered[middle] < value:
            low = middle + 1
        else:
            high = middle
    below = low
    high = stop
    while low < high:
        middle = (low + high) >> 1
        if ordered[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return below + low - 2 * first if first < stop else 0


@kernel
def best_of_blocks(score: F64, offset: int, width: int, place: Array, best: Array) -> None:
    """Highest score of every block of rows, and its place there, the first of equal ones.

    Args:
        score: float64 [m], rows from ``offset`` on; pieces come in order, from row 0 on.
        width: rows of a block, at least 1.
        place: int32 [blocks], changed: places from 0.
        best: float64 [blocks], changed.
    """
    block, column = offset // width, offset % width
    i = 0
    while i < score.size:
        stop = min(score.size, i + width - column)
        highest, at = score[i], column
        if column > 0 and not highest > best[block]:
            highest, at = best[block], int(place[block])
        for k in range(i + 1, stop):
            if score[k] > highest:
                highest, at = score[k], column + k - i
        best[block] = highest
        place[block] = at
        block, column, i = block + 1, 0, stop


@kernel
def count_reaching(score: F64, offset: int, width: int, thresholds: F64, count: Array) -> None:
    """Count rows of every label by the highest threshold that their scores reach.

    Args:
        score: float64 [m], rows from ``offset`` on.
        width: labels.
        thresholds: at least one.
        count: int64 [width, t], added to; rows that reach no threshold are not counted.
    """
    column = offset % width
    low = thresholds[0]
    for i in range(score.size):
        value = score[i]
        if value >= low:
            at = 0
            size = thresholds.size
            while size > 1:
                half = size >> 1
                at += half * int(value >= thresholds[at + half])
                size -= half
            count[column, at] += 1
        column += 1
        if column == width:
            column = 0


def place_table(start: Array, positive: Array) -> Tables:
    """Tables to look up the number of positives of a label below a score.

    Args:
        start: int64 [labels + 1], CSR offsets of each label's positives.
        positive: float64 [m], their scores, ascending within a label, without NaN.

    Returns:
        ``start`` and ``positive``; int64 [labels] twice, the lowest positive's bits as an integer
        and a shift; int64 [labels + 1], offsets of each label's table in the last array; int32,
        number of positives before each place. The first and the last place are those below and
        above all positives.
    """
    n = np.diff(start)
    to = np.arange(positive.size) + np.repeat(np.arange(n.size) * _PAD, n)
    padded = np.full(positive.size + n.size * _PAD, np.nan)
    padded[to] = positive
    start = start + np.arange(start.size) * _PAD
    first = np.zeros(start.size, np.int64)
    np.cumsum(3 + (1 << np.ceil(np.log2(np.maximum(n, 2))).astype(np.int64)), out=first[1:])
    low, shift = np.zeros(n.size, np.int64), np.zeros(n.size, np.int64)
    table = np.zeros(int(first[-1]), np.int32)
    _fill(start, padded, padded.view(np.int64), low, shift, first, table)
    return start, padded, low, shift, first, table


@kernel
def add_wins(score: F64, offset: int, tables: Tables, won: Array) -> None:
    """Add twice the number of positives above each row, ties counting one, to its label's sum.

    Args:
        score: float64 [m], rows from ``offset`` on, positives and negatives, without NaN.
        tables: result of :func:`place_table`.
        won: int64 [labels], added to. Over all rows of a label with n positives it includes n * n
            from pairs of positives.
    """
    start, positive, low, shift, first, table = tables
    bits = score.view(np.int64)
    width = start.size - 1
    rows = max(width, min(_ROWS, _BLOCKS * width))
    for begin in range(0, score.size, rows):
        end = min(score.size, begin + rows)
        for s in range(width):
            n = start[s + 1] - start[s] - _PAD
            if n == 0:
                continue
            own = positive[start[s] : start[s + 1]]
            places = table[first[s] : first[s + 1]]
            origin, by, last = low[s], shift[s], first[s + 1] - first[s] - 2
            passed = 0  # positives that are not above, and those that are below
            seen = 0
            for i in range(begin + (s - offset - begin) % width, end, width):
                value = score[i]
                at = min(max(((key_of(bits[i]) - origin) >> by) + 1, 0), last)
                below = int(places[at])
                one, two = own[below], own[below + 1]
                passed += 2 * below + int(one < value) + int(one <= value)
                passed += int(two < value) + int(two <= value)
                seen += 1
                if two <= value:  # rare: there may be more of them at this place
                    passed += _more(own, below + 2, int(places[at + 1]), value)
            won[s] += 2 * n * seen - passed


# Areas under curves in many resamples at once: one pass over the sorted positives and negatives
# adds up the weights of a block of resamples, stored side by side. Weights are made in the order of
# scores, a few rows at a time: to look them up by datum would miss the cache for every row.

_CHUNK = 64  # rows whose weights are made at a time


class Drawing(NamedTuple):
    """Weights of rows in a block of resamples."""

    seed: int  # of the resamples
    first: int  # the first resample
    last: int  # one past the last
    keys: Array | None  # uint64 [n], of every row
    given: tuple[Array, Array] | None = (
        None  # instead: weights uint8 [n_datums, b], datum int32 [n]
    )


class _Source(NamedTuple):
    """Scored rows and their weights in resamples."""

    score: Array  # float64 [n]
    own: Array  # float64 [n], weight of each row, or empty
    keys: Array  # uint64 [n], or empty
    weights: Array  # uint8 [n_datums, b], or [0, b] to make them from the keys
    datum: Array  # int32 [n], or empty
    stream: Stream


@inner
def _weigh(source: Any, first: int, last: int, out: Array) -> None:
    """Write the weights of rows [first, last) to ``out``."""
    weights, datum, own = source.weights, source.datum, source.own
    if weights.shape[0] == 0:
        draw_rows(source.keys, first, last, source.stream, out)
    else:
        for i in range(first, last):
            row, target = weights[datum[i]], out[i - first]
            for d in range(target.size):
                target[d] = row[d]
    if own.size:
        for i in range(last - first):
            for d in range(out.shape[1]):
                out[i, d] *= own[first + i]


@kernel
def _won(
    positives: Bounds,
    negatives: Bounds,
    source: Any,
    filled: Array,
    memory: Array,
    onto: tuple[Array, Array, Array],
) -> None:
    (p_start, p_stop), (n_start, n_stop) = positives, negatives
    won, hits, others = onto
    score, chunk, other_chunk = source.score, filled[0], filled[1]
    here, tied = memory[0], memory[1]
    for s in range(p_start.size):
        out, right, below = won[s], hits[s], others[s]
        i, j = p_start[s], n_start[s]
        i_begin, i_end, j_begin, j_end = i, i, j, j
        while i < p_stop[s] or j < n_stop[s]:
            at = score[i] if i < p_stop[s] else np.inf
            for d in range(here.size):
                here[d] = 0.0
            while i < p_stop[s] and score[i] == at:
                if i == i_end:
                    i_begin, i_end = i, min(i + chunk.shape[0], p_stop[s])
                    _weigh(source, i_begin, i_end, chunk)
                for d in range(here.size):
                    here[d] += chunk[i - i_begin, d]
                i += 1
            for d in range(tied.size):
                tied[d] = 0.0
            while j < n_stop[s] and score[j] <= at:
                if j == j_end:
                    j_begin, j_end = j, min(j + other_chunk.shape[0], n_stop[s])
                    _weigh(source, j_begin, j_end, other_chunk)
                if score[j] < at:
                    for d in range(below.size):
                        below[d] += other_chunk[j - j_begin, d]
                else:
                    for d in range(tied.size):
                        tied[d] += other_chunk[j - j_begin, d]
                j += 1
            for d in range(out.size):
                out[d] += float(here[d]) * (float(below[d]) + float(tied[d]) / 2)
            for d in range(out.size):
                right[d] += here[d]
                below[d] += tied[d]


@kernel
def _precise(
    positives: Bounds,
    negatives: Bounds,
    source: Any,
    filled: Array,
    memory: Array,
    onto: tuple[Array, Array, Array],
) -> None:
    (p_start, p_stop), (n_start, n_stop) = positives, negatives
    total, hits, others = onto
    score, chunk, other_chunk = source.score, filled[0], filled[1]
    here = memory[0]
    for s in range(p_start.size):
        out, right, wrong = total[s], hits[s], others[s]
        i, j = p_stop[s], n_stop[s]  # one past the next row
        i_begin, j_begin = i, j
        while i > p_start[s] or j > n_start[s]:
            at = score[i - 1] if i > p_start[s] else -np.inf
            while j > n_start[s] and score[j - 1] >= at:
                if j == j_begin:
                    j_begin = max(j - other_chunk.shape[0], n_start[s])
                    _weigh(source, j_begin, j, other_chunk)
                j -= 1
                for d in range(wrong.size):
                    wrong[d] += other_chunk[j - j_begin, d]
            for d in range(here.size):
                here[d] = 0.0
            while i > p_start[s] and score[i - 1] == at:
                if i == i_begin:
                    i_begin = max(i - chunk.shape[0], p_start[s])
                    _weigh(source, i_begin, i, chunk)
                i -= 1
                for d in range(here.size):
                    here[d] += chunk[i - i_begin, d]
            for d in range(out.size):
                right[d] += here[d]
                n = float(right[d])
                share = n / (n + float(wrong[d]))  # if it is 0 / 0, ``here`` is 0
                out[d] += float(here[d]) * share if here[d] > 0 else 0.0


def _drawn(
    pass_over: Any,
    positives: Bounds,
    negatives: Bounds,
    score: Array,
    own: Array | None,
    drawing: Drawing,
) -> Array:
    seed, first, last, keys, explicit = drawing
    n_draws = last - first
    weights, datum = (np.zeros((0, n_draws)), np.zeros(0)) if explicit is None else explicit
    source = _Source(
        frozen(score, np.float64),
        frozen(np.zeros(0) if own is None else own, np.float64),
        frozen(np.zeros(0) if keys is None else keys, np.uint64),
        frozen(weights, np.uint8),
        frozen(datum, np.int32),
        stream_of_draws(seed, first, last),
    )
    # More integers of 32 bits than doubles are added at once.
    few = own is None and score.size * MOST <= np.iinfo(np.int32).max
    kind, dtype = (np.uint8, np.int32) if few else (np.float64, np.float64)
    filled, memory = np.empty((2, _CHUNK, n_draws), kind), np.zeros((2, n_draws), dtype)
    hits, others = np.zeros((2, positives[0].size, n_draws), dtype)
    sums = np.zeros(hits.shape)
    pass_over(positives, negatives, source, filled, memory, (sums, hits, others))
    return np.stack([sums, hits, others])


def drawn_wins(
    positives: Bounds, negatives: Bounds, score: Array, own: Array | None, drawing: Drawing
) -> Array:
    """Weight of the pairs that positives win, ties counting half, per resample.

    Args:
        own: float64 [n], weight of each row, or None.

    Returns:
        float64 [3, s, b]: these, and the weights of positives and of negatives.
    """
    return _drawn(_won, positives, negatives, score, own, drawing)


def drawn_precisions(
    positives: Bounds, negatives: Bounds, score: Array, own: Array | None, drawing: Drawing
) -> Array:
    """Sums of weights of positives times the precision down to their score; as drawn_wins."""
    return _drawn(_precise, positives, negatives, score, own, drawing)
