"""Sorting, ranking, partitioning and merging of rows.

Arguments of these names are the same everywhere:

    datum, label: int32 [n], dense codes of each row.
    score: float64 [n], without NaN.
    start: int64, CSR offsets of labels or ranges.
    first, last: range [first, last) of labels or ranges.
    group: int32 [n_datums], group of each datum, -1 for none.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from .jit import F64, I32, I64, U8, Array, MaybeI32, frozen, inner, kernel

# Rows by label, then descending score, without a global sort: counting sorts by datum and label,
# then a stable radix sort by score within each label. The order is pycocotools': label, descending
# score, datum, row. Source: pycocotools ``COCOeval.accumulate``.

_INSERTION = 48  # below this many rows an insertion sort beats histograms


@kernel
def _positions(
    datum: I32, label: I32, start: Array, free: Array, by_datum: Array, row: Array, out: Array
) -> None:
    n = datum.size
    in_order = True
    for i in range(1, n):
        if datum[i] < datum[i - 1]:
            in_order = False
            break
    for i in range(n):
        start[label[i] + 1] += 1
    for k in range(free.size):
        start[k + 1] += start[k]
        free[k] = start[k]
    if not in_order:
        for i in range(n):
            by_datum[datum[i] + 1] += 1
        for k in range(by_datum.size - 1):
            by_datum[k + 1] += by_datum[k]
        for i in range(n):
            row[by_datum[datum[i]]] = i
            by_datum[datum[i]] += 1
    for j in range(n):
        i = j if in_order else row[j]
        out[i] = free[label[i]]
        free[label[i]] += 1


def group_by_label(datum: Array, label: Array, n_datums: int, n_labels: int) -> tuple[Array, Array]:
    """Lay rows out by label, then datum, then row.

    Returns:
        ``start``, int64 [n_labels + 1]; ``position``, int32 [n], the place of each row in the new
        layout.
    """
    start = np.zeros(n_labels + 1, np.int64)
    position = np.empty(datum.size, np.int32)
    _positions(
        datum,
        label,
        start,
        np.empty(n_labels, np.int64),
        np.zeros(n_datums + 1, np.int64),
        np.empty(datum.size, np.int32),
        position,
    )
    return start, position


@kernel
def _rank(
    score: F64, start: I64, first: int, last: int, order: Array, keys: Array, places: Array
) -> None:
    """Sort the places of every label of [first, last) into ``order``."""
    bits, counts = score.view(np.uint64), np.empty(256, np.int64)
    top = np.uint64(1) << np.uint64(63)
    none = np.uint64(0)
    low = np.uint64(255)
    for k in range(first, last):
        lo, hi = start[k], start[k + 1]
        n = hi - lo
        if n < _INSERTION:
            for i in range(lo, hi):
                s = score[i]
                j = i
                while j > lo and score[order[j - 1]] < s:
                    order[j] = order[j - 1]
                    j -= 1
                order[j] = i
            continue
        # Floats as unsigned integers whose ascending order is the floats' descending order.
        differing = none
        for i in range(n):
            b = bits[lo + i]
            if b == top:  # -0.0 ties with 0.0
                b = none
            key = b if b & top else ~(b | top)
            keys[0, i] = key
            places[0, i] = lo + i
            differing |= key ^ keys[0, 0]
        source = 0
        for byte in range(8):
            shift = np.uint64(8 * byte)
            if (differing >> shift) & low == none:
                continue
            for c in range(256):
                counts[c] = 0
            for i in range(n):
                counts[(keys[source, i] >> shift) & low] += 1
            total = 0
            for c in range(256):
                total += counts[c]
                counts[c] = total - counts[c]
            target = 1 - source
            for i in range(n):
                c = (keys[source, i] >> shift) & low
                at = counts[c]
                counts[c] = at + 1
                keys[target, at] = keys[source, i]
                places[target, at] = places[source, i]
            source = target
        for i in range(n):
            order[lo + i] = places[source, i]


def rank_by_score(score: Array, start: Array, first: int, last: int, order: Array) -> None:
    """Rank rows within each label by descending score; ties keep their order. -0.0 ties with 0.0.

    Args:
        order: int32 [n], written between ``start[first]`` and ``start[last]``: ``order[i]`` is the
            place of the i-th best row.
    """
    longest = int(np.diff(start[first : last + 1]).max(initial=0))
    keys, places = np.empty((2, longest), np.uint64), np.empty((2, longest), np.int32)
    _rank(score, start, first, last, order, keys, places)


@kernel
def _segments(
    start: I64, datum: I32, group: I32, n_groups: int, offsets: Array, order: Array
) -> None:
    """Count, then place; see :func:`group_rows`."""
    n_labels = start.size - 1
    for k in range(n_labels):
        for i in range(start[k], start[k + 1]):
            g = group[datum[i]]
            if g >= 0:
                offsets[g * n_labels + k + 1] += 1
    for s in range(n_groups * n_labels):
        offsets[s + 1] += offsets[s]
    # Each segment's offset becomes its end, the start of the next one.
    for k in range(n_labels):
        for i in range(start[k], start[k + 1]):
            g = group[datum[i]]
            if g >= 0:
                s = g * n_labels + k
                order[offsets[s]] = i
                offsets[s] += 1
    for s in range(n_groups * n_labels, 0, -1):
        offsets[s] = offsets[s - 1]
    offsets[0] = 0


def group_rows(start: Array, datum: Array, group: Array, n_groups: int) -> tuple[Array, Array]:
    """Group rows by group of their datum, then label, in their order.

    Returns:
        ``offsets``, int64 [groups * labels + 1]; ``order``, int32 [n], the rows by segment up to
        the last offset.
    """
    offsets = np.zeros(n_groups * (start.size - 1) + 1, np.int64)
    order = np.empty(datum.size, np.int32)
    _segments(start, datum, group, n_groups, offsets, order)
    return offsets, order


# Sort scores in place: many short ranges by quicksort, since a NumPy call for each is too slow;
# millions of values by radix sort (least significant digit first: Knuth, The Art of Computer
# Programming 3, 5.2.5) on processors where it is faster than NumPy's sort, which takes half or
# twice its time; NumPy otherwise.

_SHORT_RUN = 24
_DEPTH = 64
_LONG = 1 << 17  # scores from which digits are counted, whose tables stay in the cache
_DIGIT, _DIGITS = np.uint64(11), 6
_FIRST = 4  # digits by which millions of scores that differ are in order, but for a few neighbours
_MOVES = 1  # per score, up to which those are put in order one by one
_LOW, _SIGN = np.uint64((1 << 11) - 1), np.uint64(1 << 63)


@kernel
def sort_short(start: I64, first: int, last: int, longest: int, score: Array) -> None:
    """Sort ranges of at most ``longest`` values in place, ascending; skip longer ones."""
    lows, highs = np.empty(_DEPTH, np.int64), np.empty(_DEPTH, np.int64)
    for s in range(first, last):
        if start[s + 1] - start[s] > longest:
            continue
        lows[0], highs[0] = start[s], start[s + 1] - 1
        top = 1
        while top > 0:
            top -= 1
            low, high = lows[top], highs[top]
            while high - low >= _SHORT_RUN:
                middle = (low + high) // 2
                a, b, c = score[low], score[middle], score[high]
                pivot = max(min(a, b), min(max(a, b), c))
                i, j = low, high
                while i <= j:
                    while score[i] < pivot:
                        i += 1
                    while score[j] > pivot:
                        j -= 1
                    if i <= j:
                        score[i], score[j] = score[j], score[i]
                        i += 1
                        j -= 1
                # the longer part waits, so that the stack stays as deep as the logarithm
                if j - low > high - i:
                    lows[top], highs[top] = low, j
                    low = i
                else:
                    lows[top], highs[top] = i, high
                    high = j
                top += 1
            for i in range(low + 1, high + 1):
                value = score[i]
                j = i
                while j > low and score[j - 1] > value:
                    score[j] = score[j - 1]
                    j -= 1
                score[j] = value


@kernel
def _count_digits(bits: Array, count: Array) -> None:
    """Convert the bits of doubles to integers of the same order, in place, and count each digit."""
    for i in range(bits.size):
        b = bits[i]
        b = ~b if b & _SIGN else b | _SIGN
        bits[i] = b
        for d in range(_DIGITS):
            count[d, np.int64(b & _LOW)] += 1
            b >>= _DIGIT


@kernel
def _by_digit(
    source: Array,
    free: Array,
    shift: np.uint64,
    target: Array,
    extra: Array,
    target_companions: Array,
) -> None:
    """Sort values, and their companions, stably by one digit."""
    has_companions = extra.size > 0
    for i in range(source.size):
        digit = np.int64((source[i] >> shift) & _LOW)
        at = free[digit]
        free[digit] = at + 1
        target[at] = source[i]
        if has_companions:
            target_companions[at] = extra[i]


@kernel
def _finish(bits: Array, extra: Array, moves: int) -> bool:
    """Sort values that are nearly sorted, stably; False after too many moves."""
    has_companions = extra.size > 0
    for i in range(1, bits.size):
        value = bits[i]
        if bits[i - 1] <= value:
            continue
        with_it = extra[i] if has_companions else 0
        j = i
        while j > 0 and bits[j - 1] > value and moves > 0:
            bits[j] = bits[j - 1]
            if has_companions:
                extra[j] = extra[j - 1]
            j -= 1
            moves -= 1
        bits[j] = value
        if has_companions:
            extra[j] = with_it
        if moves == 0:
            return False
    return True


@kernel
def _as_doubles(source: Array, target: Array) -> None:
    """Convert integers back to the bits of doubles."""
    for i in range(source.size):
        b = source[i]
        target[i] = b & ~_SIGN if b & _SIGN else ~b


def sort_ranges(score: Array, starts: Array, stops: Array) -> None:
    """Sort ranges of contiguous scores in place, ascending; -0.0 and 0.0 in any order.

    Long ranges need as much memory again, unless NumPy sorts them.
    """
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        if stop - start < _LONG or _numpy_is_faster():
            score[start:stop].sort()
        else:
            _sort_digits(score[start:stop], None)


@lru_cache
def _numpy_is_faster() -> bool:
    """Return whether this processor sorts faster with NumPy than by digits."""
    sorts: tuple[Callable[[Array], None], ...] = (
        np.ndarray.sort,
        partial(_sort_digits, extra=None),
    )
    seconds = [math.inf, math.inf]
    for _ in range(3):
        for i, sort in enumerate(sorts):
            values = np.sin(np.arange(_LONG))
            begin = time.thread_time()
            sort(values)
            seconds[i] = min(seconds[i], time.thread_time() - begin)
    return seconds[0] < seconds[1]


def sort_with(start: Array, first: int, last: int, score: Array, extra: Array) -> None:
    """Sort ranges of contiguous scores in place, ascending, and ``extra`` with them.

    Args:
        extra: float64 or int64 [n], a weight or row of each score.
    """
    long = np.flatnonzero(np.diff(start[first : last + 1]) >= _LONG) + first
    for a, b in zip(start[long].tolist(), start[long + 1].tolist(), strict=True):
        _sort_digits(score[a:b], extra[a:b])
    for low, high in zip([first, *(long + 1)], [*long, last], strict=True):
        a, b = int(start[low]), int(start[high])
        if a < b:
            down, order = -score[a:b], np.empty(b - a, np.int32)
            rank_by_score(down, start[low : high + 1] - a, 0, high - low, order)
            np.negative(down[order], out=score[a:b])
            extra[a:b] = extra[a:b][order]


def _sort_digits(score: Array, extra: Array | None) -> None:
    bits = score.view(np.uint64)
    count = np.zeros((_DIGITS, int(_LOW) + 1), np.int64)
    _count_digits(bits, count)
    source, target = bits, np.empty_like(bits)
    payload = np.zeros(0, np.int64) if extra is None else extra.view(np.int64)
    current, spare = payload, np.empty_like(payload)
    places = np.flatnonzero(count.max(axis=1) < bits.size)  # of the others all digits are alike
    for some in (places[-_FIRST:], places):
        for place in some:
            free = np.cumsum(count[place]) - count[place]
            _by_digit(source, free, np.uint64(place) * _DIGIT, target, current, spare)
            source, target = target, source
            current, spare = spare, current
        if some.size == places.size or _finish(source, current, _MOVES * bits.size):
            break
    _as_doubles(source, bits)
    if current is not payload:
        payload[:] = current


# Merging of the rows of several arrays by ranges of their scores, each of which is sorted
# afterwards. Sorting the arrays first would cost as much again.


class Cuts(NamedTuple):
    """Ascending scores between ranges, with a table of the range at which a search begins.

    Attributes:
        cuts: float64 [ranges + 1], NaN at both ends, with which every comparison is false.
        low: score at which the first cell of the table begins.
        scale: cells per unit of score.
        guide: int32 [cells], range in which the scores of a cell are, or a near one.
    """

    cuts: F64
    low: float
    scale: float
    guide: I32

    @property
    def ranges(self) -> int:
        """Number of ranges."""
        return self.cuts.size - 1


def cuts_of(sample: Array, n: int) -> Cuts:
    """Return cuts between n ranges of about as many scores each.

    Args:
        sample: float64 [m], m > 0, scores in any order.
    """
    shares = np.linspace(0.0, 1.0, n, endpoint=False)[1:]
    cuts = np.unique(np.quantile(sample, shares, method="lower"))
    low, high = np.quantile(sample, [0.01, 0.99], method="lower")
    limits = np.finfo(np.float64)  # differences may overflow, and so may the inverse of a tiny one
    width = float(np.clip(high / _CELLS - low / _CELLS, limits.tiny, limits.max / _CELLS))
    guide = np.searchsorted(cuts, low + width * np.arange(_CELLS), "right").astype(np.int32)
    return Cuts(np.pad(cuts, 1, constant_values=np.nan), low, 1 / width, guide)


_CELLS = 4096  # few of them contain a cut, at which the branches of a search are unpredictable


@inner
def _range_of(score: float, ranges: Cuts) -> int:
    """Number of cuts that are not above a score."""
    cuts = ranges.cuts
    cell = min(max((score - ranges.low) * ranges.scale, 0.0), _CELLS - 1.0)
    r = int(ranges.guide[int(cell)])
    while cuts[r + 1] <= score:
        r += 1
    while cuts[r] > score:
        r -= 1
    return r


@kernel
def count_in_ranges(score: F64, ranges: Cuts, count: Array) -> None:
    """Count scores by range: below the first cut, then from each cut on.

    Args:
        count: int64 [ranges], added to.
    """
    for value in score:
        count[_range_of(value, ranges)] += 1


@kernel
def places_in_ranges(score: F64, ranges: Cuts, free: Array, place: Array) -> None:
    """Find the next free place in the range of every score; see :func:`count_in_ranges`.

    Args:
        free: int64 [ranges], the first free place of each, advanced here.
        place: int64 [n], written.
    """
    for i in range(score.size):
        r = _range_of(score[i], ranges)
        place[i] = free[r]
        free[r] += 1


@kernel
def append_segments(start: I64, value: F64, free: I64, out: Array) -> None:
    """Copy the values of every segment to its free places.

    Args:
        start: int64 [segments + 1], CSR offsets of ``value``.
        free: int64 [segments], the first free place of each in ``out``.
    """
    for s in range(free.size):
        to = free[s] - start[s]
        for i in range(start[s], start[s + 1]):
            out[to + i] = value[i]


# Partition: values by segment (group, label, outcome) in their order, by a counting sort. Sorting
# each segment afterwards stays in the cache.

_MANY = 4096  # segments from which values are laid out in two rounds
_BUCKETS = 512  # of the first round


Places = tuple[U8, MaybeI32, MaybeI32, MaybeI32]
"""Outcome, label, datum and its group of rows, which give the segment of each."""


@kernel
def _segment_starts(rows: Places, n_groups: int, n_labels: int, n_outcomes: int) -> Array:
    """CSR offsets of the segments; see :func:`partition`."""
    outcome, label, datum, group = rows
    start = np.zeros(n_groups * n_labels * n_outcomes + 1, np.int64)
    for i in range(outcome.size):
        g = 0
        if group.size:
            g = group[datum[i] if datum.size else i]
            if g < 0:
                continue
        s = g * n_labels + (label[i] if label.size else 0)
        start[s * n_outcomes + outcome[i] + 1] += 1
    for s in range(start.size - 1):
        start[s + 1] += start[s]
    return start


@kernel
def _count_three(outcome: Array, count: Array) -> None:
    """Rows of one segment by outcome; sums of comparisons, several rows at a time."""
    ones, twos = 0, 0
    for i in range(outcome.size):
        ones += int(outcome[i] == 1)
        twos += int(outcome[i] == 2)
    count[0] += outcome.size - ones - twos
    count[1] += ones
    count[2] += twos


@kernel
def _three(outcome: Array, offset: int, value: Array, free: Array, out: Array) -> None:
    """Values of one segment by outcome; places in registers, without unpredictable branches."""
    at0, at1, at2 = free[0], free[1], free[2]
    for i in range(value.size):
        is1 = np.int64(outcome[offset + i] == 1)
        is2 = np.int64(outcome[offset + i] == 2)
        is0 = 1 - is1 - is2
        out[at0 * is0 + at1 * is1 + at2 * is2] = value[i]
        at0 += is0
        at1 += is1
        at2 += is2
    free[0], free[1], free[2] = at0, at1, at2


@kernel
def _two(outcome: Array, offset: int, value: Array, begin: int, free: Array, out: Array) -> None:
    """Values by outcome 0 or 1, for adjacent segments.

    The place of one outcome follows from that of the other, so only one is stored.
    """
    at0 = free[0]
    after = free[1] - (offset - (at0 - begin))  # target of row 0 if all rows were 1
    for i in range(value.size):
        row = offset + i
        hit = np.int64(outcome[row])
        at1 = after + row - (at0 - begin)
        out[at0 + (at1 - at0) * hit] = value[i]
        at0 += 1 - hit
    free[1] = after + offset + value.size - (at0 - begin)
    free[0] = at0


@kernel
def _lay_out(
    rows: Places,
    n_labels: int,
    n_outcomes: int,
    offset: int,
    value: F64,
    free: Array,
    out: Array,
    row: Array,
) -> None:
    """Values by segment, and their rows if ``row`` is not empty."""
    outcome, label, datum, group = rows
    for i in range(offset, offset + value.size):
        g = 0
        if group.size:
            g = group[datum[i] if datum.size else i]
            if g < 0:
                continue
        s = (g * n_labels + (label[i] if label.size else 0)) * n_outcomes + outcome[i]
        at = free[s]
        free[s] = at + 1
        out[at] = value[i - offset]
        if row.size:
            row[at] = i


@kernel
def _to_buckets(
    rows: Places,
    n_labels: int,
    n_outcomes: int,
    offset: int,
    value: F64,
    shift: int,
    free: Array,
    out: tuple[Array, Array],
) -> None:
    """Values and their segments, roughly by segment: by its number shifted by ``shift``."""
    outcome, label, datum, group = rows
    segment, laid = out
    for i in range(offset, offset + value.size):
        g = group[datum[i] if datum.size else i]
        if g < 0:
            continue
        s = (g * n_labels + (label[i] if label.size else 0)) * n_outcomes + outcome[i]
        at = free[s >> shift]
        free[s >> shift] = at + 1
        segment[at] = s
        laid[at] = value[i - offset]


@kernel
def _from_buckets(segment: Array, value: Array, free: Array, out: Array) -> None:
    """Values by segment, from a layout in which nearby segments are adjacent."""
    for i in range(segment.size):
        s = segment[i]
        at = free[s]
        free[s] = at + 1
        out[at] = value[i]


def partition(
    parts: Sequence[Array],
    outcome: Array,
    label: Array | None,
    datum: Array | None,
    group: Array | None,
    shape: tuple[int, int, int],
    *,
    want_rows: bool = False,
) -> tuple[Array, Array, Array]:
    """Lay values out by (group, label, outcome).

    Args:
        parts: float64 arrays of n values together, in row order.
        outcome: uint8 [n], below ``n_outcomes``.
        label: None if there is one label. See :func:`only_label` too.
        datum: None if row i is datum i.
        group: None for one group of all.
        shape: (n_groups, n_labels, n_outcomes).
        want_rows: whether to return the rows of the values.

    Returns:
        ``start``, int64 [groups * labels * outcomes + 1], CSR offsets of the segments, outcome
        fastest; the values float64 [m] by segment, in row order within each; their rows int64 [m],
        or empty.
    """
    _, n_labels, n_outcomes = shape
    only = only_label(label)
    if group is None and only is not None and n_outcomes == 3:
        start, out = _of_one_label(parts, outcome, only, n_labels)
        if not want_rows:
            return start, out, np.empty(0, np.int64)
        row = np.arange(outcome.size)  # the bits of integers are moved as those of doubles
        return start, out, _of_one_label([row.view(float)], outcome, only, n_labels)[1].view(int)
    columns = [None if one is None else frozen(one, np.int32) for one in (label, datum, group)]
    rows: Any = (frozen(outcome, np.uint8), *columns)
    start = _segment_starts(rows, *shape)
    out = np.empty(int(start[-1]), np.float64)
    row = np.empty(out.size if want_rows else 0, np.int64)
    free = start[:-1].copy()
    offset = 0
    if start.size > _MANY and group is not None and not want_rows:
        # Writing to very many places at once misses the cache at every row; two rounds do not.
        shift = int(start.size).bit_length() - _BUCKETS.bit_length() + 1
        rough = free[:: 1 << shift].copy()
        segment, staged = np.empty(out.size, np.int32), np.empty_like(out)
        for part in parts:
            to = rough, (segment, staged)
            _to_buckets(rows, n_labels, n_outcomes, offset, part, shift, *to)
            offset += part.size
        _from_buckets(segment, staged, free, out)
        return start, out, row
    for part in parts:
        _lay_out(rows, n_labels, n_outcomes, offset, part, free, out, row)
        offset += part.size
    return start, out, row


def only_label(label: Array | None) -> int | None:
    """Code of all rows if the array is one value repeated by ``broadcast_to``, otherwise None.

    Without an array (one label) the code is 0.
    """
    if label is None:
        return 0
    return int(label[0]) if label.size and label.strides == (0,) else None


def _of_one_label(
    parts: Sequence[Array], outcome: Array, label: int, n_labels: int
) -> tuple[Array, Array]:
    """Values of one label's rows by outcome, among the segments of all labels."""
    outcome = frozen(outcome, np.uint8)
    start = np.zeros(n_labels * 3 + 1, np.int64)
    _count_three(outcome, start[3 * label + 1 : 3 * label + 4])
    np.cumsum(start, out=start)
    out = np.empty(outcome.size, np.float64)
    begin, _, third, end = (int(place) for place in start[3 * label : 3 * label + 4])
    free = start[3 * label : 3 * label + 3].copy()
    offset = 0
    for part in parts:
        value = frozen(part, np.float64)
        if third == end:
            _two(outcome, offset, value, begin, free, out)
        else:
            _three(outcome, offset, value, free, out)
        offset += value.size
    return start, out


# Rows by outcome at each of a few distinct scores, counted instead of sorted, in a hash table of
# the scores' bits that fits the cache (open addressing, Fibonacci hashing: Knuth, The Art of
# Computer Programming 3, 6.4).

MOST = 4096
"""Most distinct scores."""
_BITS = 14  # of the table's places: four for each of its scores
_FIBONACCI = np.uint64(0x9E3779B97F4A7C15)
_NEGATIVE_ZERO = np.uint64(1 << 63)


@kernel
def _count_few(
    bits: Array, outcome: Array, n_seen: int, place: Array, key: Array, count: Array
) -> int:
    """Count rows by score and outcome; scores are numbered in order of appearance.

    Returns the number of distinct scores; -1 if there are too many, or a zero is negative (it
    equals the other zero).
    """
    shift = np.uint64(64 - _BITS)
    last = place.size - 1
    for i in range(bits.size):
        b = bits[i]
        at = np.int64((b * _FIBONACCI) >> shift)
        c = np.int64(place[at])
        while c >= 0 and key[c] != b:
            at = (at + 1) & last
            c = np.int64(place[at])
        if c < 0:
            if n_seen == MOST or b == _NEGATIVE_ZERO:
                return -1
            c = np.int64(n_seen)
            n_seen += 1
            place[at] = c
            key[c] = b
        count[c, outcome[i]] += 1
    return n_seen


def count_few(
    parts: Sequence[Array], outcome: Array, n_outcomes: int
) -> tuple[Array, Array] | None:
    """Count rows of each outcome by score.

    Args:
        parts: float64 arrays of n scores together, without NaN.
        outcome: uint8 [n], below ``n_outcomes``.

    Returns:
        the distinct scores ascending, float64 [m]; rows, int64 [n_outcomes, m]. None if more than
        ``MOST`` scores differ or a score is -0.0.
    """
    place, key = np.full(1 << _BITS, -1, np.int16), np.zeros(MOST, np.uint64)
    count = np.zeros((MOST, n_outcomes), np.int64)
    seen, offset = 0, 0
    for part in parts:
        bits = frozen(np.ascontiguousarray(part, np.float64).view(np.uint64), np.uint64)
        here = frozen(outcome[offset : offset + bits.size], np.uint8)
        seen = _count_few(bits, here, seen, place, key, count)
        if seen < 0:
            return None
        offset += bits.size
    values = key[:seen].view(np.float64)
    order = np.argsort(values)
    return values[order], count[order].T


# Merge sorted runs of rows, label by label, in pairs. The order is descending score, then
# descending tie, then ascending datum. Keys move with the rows, so memory is read in order. No two
# runs share a datum.


@kernel
def _merge(
    begin: I64, end: I64, score: F64, tie: F64, datum: I32, order: Array, longest: int
) -> None:
    n_runs, n_labels = begin.shape
    tied = tie.size > 0
    rows = np.empty((2, longest), np.int64)
    scores = np.empty((2, longest), np.float64)
    ties = np.empty((2, longest if tied else 1), np.float64)
    datums = np.empty((2, longest), np.int32)
    bound = np.empty((2, n_runs + 1), np.int64)
    out = 0
    for k in range(n_labels):
        n = 0
        many = 0
        bound[0, 0] = 0
        for r in range(n_runs):
            if end[r, k] == begin[r, k]:
                continue
            for i in range(begin[r, k], end[r, k]):
                rows[0, n] = i
                scores[0, n] = score[i]
                datums[0, n] = datum[i]
                if tied:
                    ties[0, n] = tie[i]
                n += 1
            many += 1
            bound[0, many] = n
        a = 0
        while many > 1:
            b = 1 - a
            left = 0
            for pair in range((many + 1) // 2):
                i = bound[a, 2 * pair]
                middle = bound[a, 2 * pair + 1]
                stop = bound[a, min(2 * pair + 2, many)]
                j = middle
                for at in range(i, stop):
                    second = i >= middle
                    if not second and j < stop:
                        if scores[a, j] != scores[a, i]:
                            second = scores[a, j] > scores[a, i]
                        elif tied and ties[a, j] != ties[a, i]:
                            second = ties[a, j] > ties[a, i]
                        else:
                            second = datums[a, j] < datums[a, i]
                    take = j if second else i
                    rows[b, at] = rows[a, take]
                    scores[b, at] = scores[a, take]
                    datums[b, at] = datums[a, take]
                    if tied:
                        ties[b, at] = ties[a, take]
                    if second:
                        j += 1
                    else:
                        i += 1
                bound[b, left] = bound[a, 2 * pair]
                left += 1
                bound[b, left] = stop
            many = left
            a = b
        for i in range(n):
            order[out + i] = rows[a, i]
        out += n


def merge_runs(begin: Array, end: Array, score: Array, tie: Array, datum: Array) -> Array:
    """Merged order of sorted runs, label by label.

    Args:
        begin: int64 [runs, labels], first row of each run's part of a label.
        end: int64 [runs, labels], one past its last row.
        score: rows of all runs; within a run and label descending.
        tie: float64 [n], orders equal scores, higher first; or [0] without ties.
        datum: orders the remaining ties, ascending; runs share no datum.

    Returns:
        int64 [n], rows by label, then score, tie and datum.
    """
    sizes = (end - begin).sum(axis=0) if begin.size else np.zeros(0, np.int64)
    order = np.empty(int(sizes.sum()), np.int64)
    _merge(begin, end, score, tie, datum, order, max(1, int(sizes.max(initial=0))))
    return order
