"""Hashes of datum ids, resampling weights, sums per resample, and slices of datums."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import F64, I32, I64, U8, U64, Array, MaybeI32, MaybeMatrix, frozen, inner, kernel

# A hash of datum ids that never changes: it says in which bucket a datum's rows are.
#
# Integers go through the finaliser of SplitMix64; text through FNV-1a over its bytes, then the same
# finaliser, so that the low bits are as good as any.
# Source: G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators" (2014);
# G. Fowler, L. C. Noll, P. Vo, "The FNV non-cryptographic hash algorithm".


@inner
def mixed(value: Any) -> Any:
    """The finaliser of SplitMix64."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@kernel
def _of_integers(values: U64, out: Array) -> None:
    for i in range(values.size):
        out[i] = mixed(values[i] + np.uint64(0x9E3779B97F4A7C15))


@kernel
def _of_texts(offsets: I64, data: U8, out: Array) -> None:
    for i in range(out.size):
        state = np.uint64(0xCBF29CE484222325)
        for at in range(offsets[i], offsets[i + 1]):
            state = (state ^ np.uint64(data[at])) * np.uint64(0x100000001B3)
        out[i] = mixed(state)


def hash_integers(values: Array) -> Array:
    """Hashes of integers; equal ones of either signedness have equal hashes.

    Args:
        values: int64 or uint64 [n].

    Returns:
        uint64 [n].
    """
    out = np.empty(values.size, np.uint64)
    _of_integers(values.view(np.uint64), out)
    return out


def hash_texts(offsets: Array, data: Array) -> Array:
    """Hashes of texts.

    Args:
        offsets: int64 [n + 1], where each text begins in the bytes.
        data: uint8, UTF-8.

    Returns:
        uint64 [n].
    """
    out = np.empty(offsets.size - 1, np.uint64)
    _of_texts(offsets, data, out)
    return out


@kernel
def _by_bucket(bucket: Array, start: Array, order: Array) -> None:
    for i in range(bucket.size):
        start[bucket[i] + 1] += 1
    for b in range(start.size - 1):
        start[b + 1] += start[b]
    free = start[:-1].copy()
    for i in range(bucket.size):
        order[free[bucket[i]]] = i
        free[bucket[i]] += 1


def by_bucket(hashes: Array, n: int) -> tuple[Array, Array]:
    """Rows by bucket, in their order within one.

    Args:
        hashes: uint64 [rows].
        n: number of buckets.

    Returns:
        ``start``, int64 [n + 1], offsets by bucket; ``order``, uint32 [rows].
    """
    bucket = (hashes % np.uint64(n)).astype(np.int32)
    start = np.zeros(n + 1, np.int64)
    order = np.empty(bucket.size, np.uint32)
    _by_bucket(bucket, start, order)
    return start, order


# Dense codes of values by their hashes: open addressing with linear probing.
#
# Two values are taken as one where both of their 64-bit hashes agree. Integers give themselves as
# the second, so their codes are exact; strings give an independent second hash, so that a million
# of them collide with a chance below 1e-26.

_SMALLEST = 1 << 12


@kernel
def _encode(
    first: Array,
    second: Array,
    begin: int,
    known: int,
    table: Array,
    seen: Array,
    codes: Array,
    rows: Array,
) -> tuple[int, int]:
    """Code rows from ``begin`` on until the table is half full; return the next row and count."""
    mask = np.uint64(table.size - 1)
    room = table.size // 2
    previous = -1
    for i in range(begin, first.size):
        a, b = first[i], second[i]
        if previous >= 0 and seen[0, previous] == a and seen[1, previous] == b:
            codes[i] = previous
            continue
        at = a & mask
        while True:
            code = table[at] - 1
            if code < 0:
                if known == room:
                    return i, known
                code = known
                known += 1
                table[at] = known
                seen[0, code] = a
                seen[1, code] = b
                rows[code] = i
                break
            if seen[0, code] == a and seen[1, code] == b:
                break
            at = (at + np.uint64(1)) & mask
        codes[i] = code
        previous = code
    return first.size, known


@kernel
def _place_again(seen: Array, known: int, table: Array) -> None:
    """Enter known hashes into an empty table."""
    mask = np.uint64(table.size - 1)
    for code in range(known):
        at = seen[0, code] & mask
        while table[at] > 0:
            at = (at + np.uint64(1)) & mask
        table[at] = code + 1


def hash_codes(first: Array, second: Array) -> tuple[Array, Array]:
    """Codes of values in the order in which they first appear.

    Args:
        first: uint64 [n], well mixed hashes.
        second: uint64 [n], the values themselves or other hashes of them.

    Returns:
        codes int32 [n]; the row of each code's first appearance int64 [k].
    """
    first, second = frozen(first, np.uint64), frozen(second, np.uint64)
    size = _SMALLEST
    seen = np.empty((2, size // 2), np.uint64)
    rows = np.empty(size // 2, np.int64)
    table = np.zeros(size, np.int32)
    codes = np.empty(first.size, np.int32)
    done, known = 0, 0
    while True:
        done, known = _encode(first, second, done, known, table, seen, codes, rows)
        if done == first.size:
            return codes, rows[:known].copy()
        size *= 4
        table = np.zeros(size, np.int32)
        more_seen, more_rows = np.empty((2, size // 2), np.uint64), np.empty(size // 2, np.int64)
        more_seen[:, :known], more_rows[:known] = seen[:, :known], rows[:known]
        seen, rows = more_seen, more_rows
        _place_again(seen, known, table)


# How often a datum stands in each draw of a Poisson bootstrap, told by its key alone.
#
# Every weight is a function of (seed, draw, key), so that it is the same whatever rows, threads,
# parts or workers ask for it, and in either of two runs that are compared. A stream of SplitMix64
# belongs to each key; each of its words gives the weights of four draws, 16 bits each.
#
# Weights are Poisson with mean 1: sums of them over n datums differ from those of a multinomial
# bootstrap by the size of the draw alone, and no size has to be known beforehand.
# Source: A. Chamandy et al., "Estimating uncertainty for massive data streams" (2012); G. Steele,
# D. Lea, C. Flood, "Fast splittable pseudorandom number generators" (2014).

PER_WORD = 4
"""Draws whose weights come from one word: blocks of draws begin at multiples of it."""

_GOLDEN = 0x9E3779B97F4A7C15
# Of 65,536 equally likely values, how many stand for the weights 0, 1, 2, ...: Poisson(1) rounded
# so that the mean is 1 exactly; the variance is 1.00003.
_COUNTS = (24109, 24110, 12055, 4018, 1004, 201, 33, 5, 1)
MOST = len(_COUNTS) - 1
"""The largest weight."""


_FIRST = tuple(sum(_COUNTS[: k + 1]) for k in range(MOST))
"""The first of these values that stands for the weights 1, 2, ..."""


@inner
def draw_one(
    key: Any, seed: Any, first_word: int, words: Array, values: Array, first: Array, out: Array
) -> None:
    """Weights of one key in a block of resamples; see :func:`state_of_draws`."""
    state = mixed(key ^ seed)
    for j in range(words.size):
        words[j] = mixed(state + np.uint64(first_word + j + 1) * np.uint64(_GOLDEN))
    # Comparisons of 16 bits, which go many at a time, where a table is looked up one by one.
    for d in range(out.size):
        out[d] = values[d] >= first[0]
    for k in range(1, first.size):
        for d in range(out.size):
            out[d] += values[d] >= first[k]


@kernel
def _draw(
    keys: U64, seed: Any, first_word: int, words: Array, values: Array, first: Array, out: Array
) -> None:
    # As draw_one, but not by it: rows of an array that are handed on cost three times as much.
    golden = np.uint64(_GOLDEN)
    for i in range(keys.size):
        state = mixed(keys[i] ^ seed)
        for j in range(words.size):
            words[j] = mixed(state + np.uint64(first_word + j + 1) * golden)
        for d in range(out.shape[1]):
            out[i, d] = values[d] >= first[0]
        for k in range(1, first.size):
            for d in range(out.shape[1]):
                out[i, d] += values[d] >= first[k]


def state_of_draws(seed: int, first: int, last: int) -> tuple[Any, int, Array, Array, Array]:
    """Arguments of :func:`draw_one` other than the key.

    These are the seed, the first word, room for words, the same as 16-bit values, and the first
    value of every weight.
    """
    assert first % PER_WORD == 0
    words = np.empty(-(-(last - first) // PER_WORD), np.uint64)
    seed_word = np.uint64(seed * 0xD1342543DE82EF95 & 0xFFFFFFFFFFFFFFFF)
    return seed_word, first // PER_WORD, words, words.view("<u2"), np.array(_FIRST, np.uint16)


def draw_weights(keys: Array, seed: int, first: int, last: int) -> Array:
    """Weights of datums per resample.

    Args:
        keys: uint64 [n], hash of each datum or of its cluster; equal keys have equal weights.
        seed: of the draws.
        first: the first draw, a multiple of :data:`PER_WORD`.
        last: one past the last.

    Returns:
        uint8 [n, last - first], 0 to :data:`MOST`.
    """
    out = np.empty((keys.size, last - first), np.uint8)
    _draw(keys, *state_of_draws(seed, first, last), out)
    return out


@kernel
def _swap(keys: U64, seed: Any, first: int, out: Array) -> None:
    golden = np.uint64(_GOLDEN)
    for i in range(keys.size):
        state = mixed(keys[i] ^ seed)
        word = np.uint64(0)
        for d in range(out.shape[1]):
            at = first + d
            if d == 0 or at % 64 == 0:
                word = mixed(state + np.uint64(at // 64 + 1) * golden)
            out[i, d] = (word >> np.uint64(at % 64)) & np.uint64(1)


def swap_bits(keys: Array, seed: int, first: int, last: int) -> Array:
    """Flags of datums that are swapped between two runs, per resample, each with probability 1/2.

    Args:
        keys: uint64 [n], as :func:`draw_weights` has them.
        seed: of the draws; other bits than those of its weights.
        first: the first draw.
        last: one past the last.

    Returns:
        uint8 [n, last - first], 0 or 1.
    """
    out = np.empty((keys.size, last - first), np.uint8)
    word = np.uint64(~(seed * 0xD1342543DE82EF95) & 0xFFFFFFFFFFFFFFFF)
    _swap(keys, word, first, out)
    return out


# Sums over rows under the weights of many draws at once.
#
# A row is visited once for a whole block of draws, whose weights lie side by side. Values are kept
# on a grid so coarse that every sum of them is exact in a double: the sums of a draw do not depend
# on the order of rows.


def step_of_grid(largest: Array | float, n: Array | int) -> Array:
    """The step of a grid on which n weighted values add up exactly in doubles.

    Args:
        largest: of the absolute values, finite.
        n: how many values enter one sum.

    Returns:
        a power of two, float64 of their shape; 0 where all values are 0.
    """
    bits = np.frexp(largest)[1] + np.frexp(np.asarray(n, np.float64) * MOST)[1] - 53
    return np.where((np.asarray(largest) == 0) | (np.asarray(n) == 0), 0.0, np.ldexp(1.0, bits))


def on_grid(values: Array, step: Array | float) -> Array:
    """The values rounded to whole steps, float64; NaN stays."""
    step = np.asarray(step)
    fine = step == 0  # all values are 0, or so small that each is whole steps of what doubles have
    if not fine.any():
        return np.rint(values / step) * step
    own = np.where(fine, 1.0, step)
    return np.where(fine, values, np.rint(values / own) * own)


@kernel
def largest_of_cells(cell: I32, values: F64, n: Array, most: Array) -> None:
    """Count the values of each cell, and find the largest absolute one, NaN where one is.

    Args:
        cell: int32 [m], -1 for values that count nowhere.
        values: float64 [m].
        n: float64 [cells], added to.
        most: float64 [cells], what it was before.
    """
    largest = most.view(np.int64)
    bits = values.view(np.int64)  # in the order of absolute values, NaN above all
    for r in range(cell.size):
        c = cell[r]
        if c >= 0:
            n[c] += 1.0
            largest[c] = max(largest[c], bits[r] & 0x7FFFFFFFFFFFFFFF)


@kernel
def count_tiny(cell: I32, values: F64, least: F64, few: Array) -> None:
    """Count the values of each cell, but 0, that are smaller than one of the cell's own.

    Args:
        cell: int32 [m], -1 for values that count nowhere.
        values: float64 [m].
        least: float64 [cells].
        few: float64 [cells], added to.
    """
    for r in range(cell.size):
        c = cell[r]
        if c >= 0 and values[r] != 0.0 and abs(values[r]) < least[c]:
            few[c] += 1.0


@kernel
def drawn_sums(datum: MaybeI32, cell: I64, values: F64, weights: U8, sums: Array) -> None:
    """Add weighted values to the sums of their cells, leaving out NaN.

    Args:
        datum: int32 [m], datum of each row; None where row i is datum i.
        cell: int64 [m], -1 for rows that count nowhere.
        values: float64 [m, c], on a grid (see :func:`step_of_grid`).
        weights: uint8 [n_datums, b].
        sums: float64 [cells, c, b], added to.
    """
    n_draws = weights.shape[1]
    for r in range(cell.size):
        c = cell[r]
        if c < 0:
            continue
        w = weights[datum[r] if datum.size else r]
        for j in range(values.shape[1]):
            value = values[r, j]
            if value == value and value != 0:
                out = sums[c, j]
                for d in range(n_draws):
                    out[d] += value * w[d]


@kernel
def drawn_counts(datum: MaybeI32, cell: I64, values: MaybeMatrix, weights: U8, sums: Array) -> None:
    """Add weights to the counts of their cells.

    Args:
        datum: as :func:`drawn_sums` has it.
        cell: likewise.
        values: float64 [m, c], of which NaN does not count; None where every row does.
        weights: uint8 [n_datums, b].
        sums: float64 [cells, c, b], added to.
    """
    n_draws = weights.shape[1]
    for r in range(cell.size):
        c = cell[r]
        if c < 0:
            continue
        w = weights[datum[r] if datum.size else r]
        for j in range(sums.shape[1]):
            if values.size == 0 or values[r, j] == values[r, j]:
                out = sums[c, j]
                for d in range(n_draws):
                    out[d] += w[d]


# Slices by several conditions: which may be bad enough to look at, and what each comes to.
#
# A slice is a set of items (column = value), at most one a column. Of every slice of one level the
# rows, the size, the sum and the highest of the errors are known; a slice of the next level joins
# two that differ in their last item. It can be no larger than the smallest of all slices it lies
# in, and no worse than their sums and highest errors allow. Its size is the sum of the weights of
# its rows, each of which counts in the sum of errors by its weight.
#
# Source: S. Sagadeeva, M. Boehm, "SliceLine: Fast, Linear-Algebra-based Slice Finding for ML Model
# Debugging" (SIGMOD 2021), sections 3 and 4.


class Scoring(NamedTuple):
    """Score of slices.

    Attributes:
        n: sum of all weights, the number of rows where each weighs 1.
        total: sum of all errors, above 0.
        alpha: weight of the mean error against the size, in (0, 1].
        least: rows that a slice has at least.
        lightest: size that so many rows have at least, above 0.
        beat: score below which a slice is of no account.
    """

    n: float
    total: float
    alpha: float
    least: int
    lightest: float
    beat: float


class Level(NamedTuple):
    """Slices of one level, in ascending order of their items.

    Attributes:
        items: int32 [m, level], of ascending columns.
        key: int64 [m], the items as digits of one number, ascending.
        rows: int64 [m].
        size: float64 [m], sum of their weights.
        total: float64 [m], sum of their errors, each by its weight.
        worst: float64 [m], highest of their errors, without weights.
    """

    items: I32
    key: I64
    rows: I64
    size: F64
    total: F64
    worst: F64


@inner
def _score(size: float, total: float, scoring: Any) -> float:
    n, every, alpha = scoring.n, scoring.total, scoring.alpha
    return alpha * (total / size * (n / every) - 1.0) - (1.0 - alpha) * (n / size - 1.0)


@inner
def _highest_score(size: float, total: float, worst: float, scoring: Any) -> float:
    """The highest score of a slice of at most that size, errors in all, and error of a row."""
    low = scoring.lightest
    best = _score(size, min(total, size * worst), scoring)
    best = max(best, _score(low, min(total, low * worst), scoring))
    if worst > 0.0:
        turn = min(max(total / worst, low), size)
        best = max(best, _score(turn, min(total, turn * worst), scoring))
    return best


@inner
def _place(keys: Array, key: int) -> int:
    """Position of a key among ascending ones; -1 if it is missing."""
    low, high = 0, keys.size
    while low < high:
        middle = (low + high) // 2
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low if low < keys.size and keys[low] == key else -1


@kernel
def _join_slices(
    first: int,
    last: int,
    level: Level,
    column: I32,
    scoring: Scoring,
    start: Array,
    children: Array,
) -> None:
    """Last items of the slices that each slice grows into: counted, or written where there is room.

    ``start`` int64 [last - first + 1] is written where ``children`` is empty, and read else.
    """
    items, key, rows, size, total, worst = level
    n_items, deep = column.size, items.shape[1]
    counting = children.size == 0
    made = 0
    for p in range(first, last):
        if counting:
            start[p - first] = made
        own = column[items[p, deep - 1]]
        for q in range(p + 1, items.shape[0]):
            alike = True
            for j in range(deep - 1):
                if items[p, j] != items[q, j]:
                    alike = False
                    break
            if not alike:
                break
            item = items[q, deep - 1]
            if column[item] == own:
                continue
            fewest, most, errors, high = (
                min(rows[p], rows[q]),
                min(size[p], size[q]),
                min(total[p], total[q]),
                min(worst[p], worst[q]),
            )
            whole = True
            for left_out in range(deep - 1):
                parent = 0
                for j in range(deep):
                    if j != left_out:
                        parent = parent * n_items + items[p, j]
                parent = parent * n_items + item
                at = _place(key, parent)
                if at < 0:
                    whole = False
                    break
                fewest = min(fewest, rows[at])
                most = min(most, size[at])
                errors = min(errors, total[at])
                high = min(high, worst[at])
            if not whole or fewest < scoring.least or errors <= 0.0:
                continue
            bound = _highest_score(most, errors, high, scoring)
            if bound + 1e-9 * (1.0 + abs(bound)) < scoring.beat:  # sums are rounded
                continue
            if not counting:
                children[start[p - first] + made] = item
            made += 1
        if not counting:
            made = 0
    if counting:
        start[last - first] = made


def join_slices(
    first: int, last: int, level: Level, column: Array, scoring: Scoring
) -> tuple[Array, Array]:
    """Slices of the next level that some slices of one level grow into.

    Args:
        first: first slice.
        last: one past the last.
        level: all slices of that level that are of account.
        column: int32 [items], column of each item, ascending.
        scoring: what makes a slice bad.

    Returns:
        int64 [last - first + 1] offsets, and int32 last items of the new slices, ascending within
        each.
    """
    start = np.zeros(last - first + 1, np.int64)
    _join_slices(first, last, level, column, scoring, start, np.zeros(0, np.int32))
    children = np.zeros(start[-1], np.int32)
    if children.size:
        _join_slices(first, last, level, column, scoring, start, children)
    return start, children


@kernel
def _measure_slices(
    code: I32,
    error: F64,
    weight: F64,
    column: I32,
    items: I32,
    start: I64,
    children: I32,
    rows: Array,
    cells: Any,
    out: Any,
) -> None:
    """Rows, sizes, sums and highest errors of children; see :func:`measure_slices`."""
    n, deep = error.size, items.shape[1]
    weighed = weight.size > 0
    held = np.zeros(deep, np.int64)
    many, heavy, errors, high = cells
    count, size, total, worst = out
    for p in range(items.shape[0]):
        if start[p] == start[p + 1]:
            continue
        same = 0
        if p > 0:
            while same < deep and held[same] >= 0 and rows[same, n] == items[p, same]:
                same += 1
        for j in range(same, deep):
            item = items[p, j]
            own = code[column[item]]
            k = 0
            if j == 0:
                for r in range(n):
                    if own[r] == item:
                        rows[0, k] = r
                        k += 1
            else:
                for i in range(held[j - 1]):
                    r = rows[j - 1, i]
                    if own[r] == item:
                        rows[j, k] = r
                        k += 1
            held[j] = k
            rows[j, n] = item
            for later in range(j + 1, deep):
                rows[later, n] = -1
        at = start[p]
        while at < start[p + 1]:
            c = column[children[at]]
            own = code[c]
            for i in range(held[deep - 1]):
                r = rows[deep - 1, i]
                item = own[r]
                if item >= 0:
                    many[item] += 1
                    if weighed:
                        heavy[item] += weight[r]
                        errors[item] += weight[r] * error[r]
                    else:
                        errors[item] += error[r]
                    high[item] = max(high[item], error[r])
            while at < start[p + 1] and column[children[at]] == c:
                item = children[at]
                count[at], size[at] = many[item], heavy[item] if weighed else many[item]
                total[at], worst[at] = errors[item], high[item]
                at += 1
            for i in range(held[deep - 1]):
                item = own[rows[deep - 1, i]]
                if item >= 0:
                    many[item] = 0
                    heavy[item] = 0.0
                    errors[item] = 0.0
                    high[item] = 0.0


def measure_slices(
    code: Array,
    error: Array,
    weight: Array,
    column: Array,
    items: Array,
    start: Array,
    children: Array,
) -> tuple[Array, Array, Array, Array]:
    """Rows, size, sum and highest of the errors of slices, each given by the slice it grows from.

    Args:
        code: int32 [columns, n], item of each row, -1 for none that counts.
        error: float64 [n], not below 0.
        weight: float64 [n], above 0; [0] where each row weighs 1.
        column: int32 [items], column of each item.
        items: int32 [m, level], the slices that grow.
        start: int64 [m + 1], offsets of their new slices.
        children: int32 [k], last items of the new slices.

    Returns:
        int64, and thrice float64 [k], as :class:`Level` has them; sums are added by ascending row.
    """
    n_items, n = column.size, error.size
    cells, out = (
        (np.zeros(m, np.int64), np.zeros(m), np.zeros(m), np.zeros(m))
        for m in (n_items, children.size)
    )
    _measure_slices(
        code,
        error,
        weight,
        column,
        items,
        start,
        children,
        np.full((items.shape[1], n + 1), -1, np.int32),  # behind its rows the item they have
        cells,
        out,
    )
    return out
