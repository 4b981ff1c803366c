"""Hashes of datum ids, resampling weights, sums per resample, slices of datums, and digests.

Arguments of these names are the same everywhere:

    keys: uint64 [n], hash of each datum or of its cluster; equal keys have equal weights.
    first, last: range [first, last) of resamples or slices.
    weights: uint8 [n_datums, b], weight of each datum in each of b resamples.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .bits import ABOVE_NINE, HIGH_BITS, POWERS_OF_TEN, ZERO_DIGITS, decimal, set_bits, word
from .jit import F64, I32, I64, U8, U64, Array, Bools, MaybeI32, MaybeMatrix, frozen, inner, kernel

# A stable hash of datum ids, which selects the bucket of a datum: SplitMix64's finaliser for
# integers, FNV-1a and the same finaliser for text.
# Source: G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators" (2014); G.
# Fowler, L. C. Noll, P. Vo, "The FNV non-cryptographic hash algorithm".


@inner
def mixed(value: Any) -> Any:
    """Apply the finaliser of SplitMix64."""
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
    """Hashes of int64 or uint64 integers, uint64 [n]; equal for equal values of either type."""
    out = np.empty(values.size, np.uint64)
    _of_integers(values.view(np.uint64), out)
    return out


def hash_texts(offsets: Array, data: Array) -> Array:
    """Hashes of texts, uint64 [n].

    Args:
        offsets: int64 [n + 1], start of each text in the bytes.
        data: uint8, UTF-8.
    """
    out = np.empty(offsets.size - 1, np.uint64)
    _of_texts(offsets, data, out)
    return out


@kernel
def _by_bucket(hashes: U64, bucket: Array, start: Array, order: Array) -> None:
    n = np.uint64(start.size - 1)
    for i in range(hashes.size):
        bucket[i] = hashes[i] if hashes[i] < n else hashes[i] % n
        start[bucket[i] + 1] += 1
    for b in range(start.size - 1):
        start[b + 1] += start[b]
    free = start[:-1].copy()
    for i in range(bucket.size):
        order[free[bucket[i]]] = i
        free[bucket[i]] += 1


def by_bucket(hashes: Array, n: int) -> tuple[Array, Array]:
    """Group rows by bucket, in their order.

    Args:
        hashes: uint64 [rows].
        n: number of buckets.

    Returns:
        ``start``, int64 [n + 1], offsets by bucket; ``order``, uint32 [rows].
    """
    start = np.zeros(n + 1, np.int64)
    order = np.empty(hashes.size, np.uint32)
    _by_bucket(hashes, np.empty(hashes.size, np.int32), start, order)
    return start, order


@kernel
def deal(values: I64, of: int, buckets: Array) -> None:
    """Write the bucket of every integer: consecutive ones go to one bucket each, in turn.

    Args:
        of: number of buckets.
        buckets: uint64 [n], written.
    """
    start, first, known = np.int64(0), np.int64(0), False
    for i in range(values.size):
        value = values[i]
        # Differences of unsigned integers, because those of signed ones may overflow.
        place = np.int64(np.uint64(value) - np.uint64(start))
        if not (known and start <= value and 0 <= place < of):  # another turn
            turn = value // of
            start = np.int64(np.uint64(turn) * np.uint64(of))
            known = start <= value  # False if the turn begins below the lowest integer
            place = np.int64(np.uint64(value) - np.uint64(start))
            hashed = mixed(np.uint64(turn) + np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)
            first = np.int64(hashed * np.uint64(of) >> np.uint64(32))
        place += first
        buckets[i] = place if place < of else place - of


# Bitmaps of integers, and codes looked up in one. Integers in random order miss the cache, so flags
# are bits. The range is checked: Polars' minimum is wrong if a column is wrongly flagged as sorted.


@kernel
def mark(values: I64, low: int, bits: Array) -> None:
    """Set the bit of every integer from ``low`` on; the lowest bit of a byte is the first."""
    previous = low - 1
    for value in values:
        if value != previous:
            previous = value
            at = value - low
            if np.uint64(at) >> np.uint64(3) >= np.uint64(bits.size):
                raise IndexError
            bits[at >> 3] |= np.uint8(1 << (at & 7))


@kernel
def look_up(values: I64, low: int, codes: I32, out: Array) -> None:
    """Write the code of every integer from ``low`` on."""
    for i in range(values.size):
        at = values[i] - low
        if np.uint64(at) >= np.uint64(codes.size):
            raise IndexError
        out[i] = codes[at]


# Dense codes of values by their hashes: open addressing with linear probing. Values are equal if
# both 64-bit hashes are: exact for integers, which are their second hash; for a million strings the
# chance of a collision is below 1e-26.

_SMALLEST = 1 << 12


@kernel
def _encode(
    first: Array,
    second: Array,
    begin: int,
    n_codes: int,
    table: Array,
    hashes: Array,
    codes: Array,
    rows: Array,
) -> tuple[int, int]:
    """Code rows from ``begin`` on until the table is half full; return the next row and count."""
    mask = np.uint64(table.size - 1)
    room = table.size // 2
    previous = -1
    for i in range(begin, first.size):
        a, b = first[i], second[i]
        if previous >= 0 and hashes[0, previous] == a and hashes[1, previous] == b:
            codes[i] = previous
            continue
        at = a & mask
        while True:
            code = table[at] - 1
            if code < 0:
                if n_codes == room:
                    return i, n_codes
                code = n_codes
                n_codes += 1
                table[at] = n_codes
                hashes[0, code] = a
                hashes[1, code] = b
                rows[code] = i
                break
            if hashes[0, code] == a and hashes[1, code] == b:
                break
            at = (at + np.uint64(1)) & mask
        codes[i] = code
        previous = code
    return first.size, n_codes


@kernel
def _place_again(hashes: Array, n_codes: int, table: Array) -> None:
    """Enter known hashes into an empty table."""
    mask = np.uint64(table.size - 1)
    for code in range(n_codes):
        at = hashes[0, code] & mask
        while table[at] > 0:
            at = (at + np.uint64(1)) & mask
        table[at] = code + 1


def hash_codes(first: Array, second: Array) -> tuple[Array, Array]:
    """Codes of values in order of first appearance.

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
    done, distinct = 0, 0
    while True:
        done, distinct = _encode(first, second, done, distinct, table, seen, codes, rows)
        if done == first.size:
            return codes, rows[:distinct].copy()
        size *= 4
        table = np.zeros(size, np.int32)
        more_seen, more_rows = np.empty((2, size // 2), np.uint64), np.empty(size // 2, np.int64)
        more_seen[:, :distinct], more_rows[:distinct] = seen[:, :distinct], rows[:distinct]
        seen, rows = more_seen, more_rows
        _place_again(seen, distinct, table)


# Poisson bootstrap weights as a function of (seed, resample, key), independent of rows, threads,
# parts and workers. Each word of a key's SplitMix64 stream gives the weights of four resamples, 16
# bits each.
# Source: A. Chamandy et al., "Estimating uncertainty for massive data streams" (2012); G. Steele,
# D. Lea, C. Flood, "Fast splittable pseudorandom number generators" (2014).

PER_WORD = 4
"""Resamples whose weights come from one word: blocks of resamples begin at multiples of it."""

_GOLDEN = 0x9E3779B97F4A7C15
# Number of the 65,536 equally likely values that give the weights 0, 1, 2, ...: Poisson(1) rounded
# so that the mean is 1 exactly; the variance is 1.00003.
_COUNTS = (24109, 24110, 12055, 4018, 1004, 201, 33, 5, 1)
MOST = len(_COUNTS) - 1
_FLIP = 0x8000800080008000  # signs of four values: processors compare signed integers faster
# First values that give the weights 1, 2, ..., with the sign flipped.
_F1, _F2, _F3, _F4, _F5, _F6, _F7, _F8 = (np.cumsum(_COUNTS[:-1]) - 0x8000).astype(np.int16)
_ROWS = 16  # keys whose words are made before they are compared: waiting for one key's costs more


class Stream(NamedTuple):
    """Source of the weights of a block of resamples; made by :func:`stream_of_draws`."""

    seed: Any  # uint64
    steps: Array  # uint64 [n], added to the state of a key to make its words
    words: Array  # uint64 [rows, n], memory for the words of some keys
    values: Array  # int16, the same as values


@inner
def draw_rows(keys: Array, first: int, last: int, stream: Stream, out: Array) -> None:
    """Write the weights of the keys [first, last) to ``out``, uint8 [last - first or more, b]."""
    seed, steps, words, values = stream
    flip = np.uint64(_FLIP)
    for begin in range(first, last, words.shape[0]):
        many = min(words.shape[0], last - begin)
        for i in range(many):
            state = mixed(keys[begin + i] ^ seed)
            for j in range(words.shape[1]):
                words[i, j] = mixed(state + steps[j]) ^ flip
        for i in range(many):
            for d in range(values.shape[1]):
                v = values[i, d]
                # One expression of comparisons with constants is vectorised; table look-ups are
                # not. It is as wide as the values: to narrow each comparison costs more.
                values[i, d] = (
                    np.int16(v >= _F1) + np.int16(v >= _F2) + np.int16(v >= _F3)
                    + np.int16(v >= _F4) + np.int16(v >= _F5) + np.int16(v >= _F6)
                    + np.int16(v >= _F7) + np.int16(v >= _F8)
                )  # fmt: skip
        for i in range(many):
            for d in range(out.shape[1]):
                out[begin - first + i, d] = values[i, d]


@kernel
def _draw(keys: U64, stream: Any, out: Array) -> None:
    draw_rows(keys, 0, keys.size, stream, out)


def stream_of_draws(seed: int, first: int, last: int) -> Stream:
    """Source of the weights of resamples ``first`` to ``last``, a multiple of :data:`PER_WORD`."""
    assert first % PER_WORD == 0
    word = np.arange(first // PER_WORD, -(-last // PER_WORD), dtype=np.uint64)
    words = np.empty((_ROWS, word.size), np.uint64)
    seed_word = np.uint64(seed * 0xD1342543DE82EF95 & 0xFFFFFFFFFFFFFFFF)
    steps = (word + np.uint64(1)) * np.uint64(_GOLDEN)
    return Stream(seed_word, steps, words, words.view("<i2"))


def draw_weights(keys: Array, seed: int, first: int, last: int) -> Array:
    """Weights of datums per resample, uint8 [n, last - first], 0 to :data:`MOST`.

    Args:
        first: a multiple of :data:`PER_WORD`.
    """
    out = np.empty((keys.size, last - first), np.uint8)
    _draw(keys, stream_of_draws(seed, first, last), out)
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

    They use other bits than the weights of the same seed.

    Returns:
        uint8 [n, last - first], 0 or 1.
    """
    out = np.empty((keys.size, last - first), np.uint8)
    word = np.uint64(~(seed * 0xD1342543DE82EF95) & 0xFFFFFFFFFFFFFFFF)
    _swap(keys, word, first, out)
    return out


# Sums over rows under the weights of many resamples, stored side by side. Values are rounded to a
# grid so coarse that sums are exact in doubles: the order of rows does not matter.


def step_of_grid(largest: Array | float, n: Array | int) -> Array:
    """Step of a grid on which n weighted values add up exactly in doubles.

    Args:
        largest: largest absolute value, finite.
        n: how many values enter one sum.

    Returns:
        a power of two, float64 of their shape; 0 if all values are 0.
    """
    bits = np.frexp(largest)[1] + np.frexp(np.asarray(n, np.float64) * MOST)[1] - 53
    return np.where((np.asarray(largest) == 0) | (np.asarray(n) == 0), 0.0, np.ldexp(1.0, bits))


def on_grid(values: Array, step: Array | float) -> Array:
    """Round values to whole steps, float64; NaN stays."""
    step = np.asarray(step)
    fine = step == 0  # all 0, or whole numbers of the smallest double
    if not fine.any():
        return np.rint(values / step) * step
    safe_step = np.where(fine, 1.0, step)
    return np.where(fine, values, np.rint(values / safe_step) * safe_step)


@kernel
def largest_of_cells(cell: I32, values: F64, n: Array, most: Array) -> None:
    """Count the values of each cell, and find the largest absolute one, NaN if one is NaN.

    Args:
        cell: int32 [m], -1 for values to skip.
        values: float64 [m].
        n: float64 [cells], added to.
        most: float64 [cells], updated.
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
    """Count the nonzero values of each cell below the cell's limit ``least``.

    Args:
        cell: int32 [m], -1 for values to skip.
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
    """Add weighted values to the sums of their cells, skipping NaN.

    Args:
        datum: int32 [m], datum of each row; None if row i is datum i.
        cell: int64 [m], -1 for rows to skip.
        values: float64 [m, c], on a grid (see :func:`step_of_grid`).
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
    """Add weights to the counts of their cells; arguments as in :func:`drawn_sums`.

    Args:
        values: float64 [m, c], of which NaN does not count; None if every row counts.
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


# Sums by distinct vectors: what datums add to all sums, as a hash; numbers of datums per vector in
# resamples. A hash is the sum of the hashes of single rows, so that their order does not matter.
# Hashes of 64 bits: the chance that two of a million distinct vectors are equal is below 1e-7.


@kernel
def hash_rows(
    datum: MaybeI32,
    cell: I64,
    values: MaybeMatrix,
    counts: bool,
    turn: int,
    hashes: Array,
    total: Array,
) -> None:
    """Add rows to the hashes of their datums, and to the sums of their cells.

    Args:
        datum: as in :func:`drawn_sums`, as ``cell``.
        values: float64 [m, c], of which NaN and 0 do not count; None for 1 each.
        counts: every value that is not NaN counts 1.
        turn: number of the sum.
        hashes: uint64 [n_datums].
        total: float64 [cells, c].
    """
    golden = np.uint64(_GOLDEN)
    bits = values.view(np.uint64)
    salt = mixed(np.uint64(turn) + golden)
    for r in range(cell.size):
        c = cell[r]
        if c < 0:
            continue
        d = datum[r] if datum.size else r
        for j in range(total.shape[1]):
            word, value = np.uint64(1), 1.0
            if values.size > 0:
                value = values[r, j]
                if value != value or (value == 0.0 and not counts):
                    continue
                word = np.uint64(1) if counts else bits[r, j]
                value = 1.0 if counts else value
            total[c, j] += value
            place = np.uint64(c * total.shape[1] + j)
            hashes[d] += mixed(mixed(place ^ salt) + word * golden)


@kernel
def class_counts(code: I32, keys: U64, first: int, out: Array) -> None:
    """Count units per class, and find the smallest key of each and the unit that has it.

    Args:
        code: int32 [n], class of each unit.
        keys: uint64 [n], a key per unit.
        first: number of the first unit.
        out: uint64 [3, classes].
    """
    out[0] = 0
    for i in range(code.size):
        k = code[i]
        if out[0, k] == 0 or keys[i] < out[1, k]:
            out[1, k] = keys[i]
            out[2, k] = np.uint64(first + i)
        out[0, k] += np.uint64(1)


@inner
def _uniform(state: Any, step: int) -> float:
    """A number in (0, 1) of a key's stream."""
    word = mixed(state + np.uint64(step) * np.uint64(_GOLDEN))
    return (float(word >> np.uint64(12)) + 0.5) * 2.0**-52


@inner
def _poisson(mean: float, state: Any) -> float:
    """Poisson variate: multiplication, or transformed rejection for means of 10 and more.

    Source: W. Hoermann, "The transformed rejection method for generating Poisson random variables"
    (1993), algorithm PTRS.
    """
    step = 0
    if mean < 10.0:
        limit, product, count = math.exp(-mean), 1.0, -1.0
        while product > limit or count < 0.0:
            step += 1
            product *= _uniform(state, step)
            count += 1.0
        return count
    b = 0.931 + 2.53 * math.sqrt(mean)
    a = -0.059 + 0.02483 * b
    inverse = math.log(1.1239 + 1.1328 / (b - 3.4))
    surely = 0.9277 - 3.6224 / (b - 2.0)
    log_mean = math.log(mean)
    while True:
        u, v = _uniform(state, step + 1) - 0.5, _uniform(state, step + 2)
        step += 2
        edge = 0.5 - abs(u)
        k = math.floor((2.0 * a / edge + b) * u + mean + 0.43)
        if edge >= 0.07 and v <= surely:
            return k
        if k < 0.0 or (edge < 0.013 and v > edge):
            continue
        density = k * log_mean - mean - math.lgamma(k + 1.0)
        if math.log(v) + inverse - math.log(a / (edge * edge) + b) <= density:
            return k


@kernel
def _poissons(keys: U64, units: I64, seed: Any, first: int, out: Array) -> None:
    for i in range(keys.size):
        state = mixed(keys[i] ^ seed)
        mean = float(units[i])
        for d in range(out.shape[1]):
            draw_state = mixed(state + np.uint64(first + d + 1) * np.uint64(_GOLDEN))
            out[i, d] = _poisson(mean, draw_state)


def poisson_counts(keys: Array, units: Array, seed: int, first: int, last: int) -> Array:
    """Number of units of each class in resamples, float64 [classes, last - first].

    Args:
        keys: uint64 [classes].
        units: int64 [classes], units of each class: the mean.
    """
    out = np.empty((keys.size, last - first))
    word = np.uint64((seed * 0xD1342543DE82EF95 + 0x632BE59BD9B4E019) & 0xFFFFFFFFFFFFFFFF)
    _poissons(keys, units, word, first, out)
    return out


@kernel
def _swapped_units(keys: U64, units: I64, seed: Any, first: int, out: Array) -> None:
    for i in range(keys.size):
        state = mixed(keys[i] ^ seed)
        words, rest = units[i] // 64, np.uint64(units[i] % 64)
        last = (np.uint64(1) << rest) - np.uint64(1)
        for d in range(out.shape[1]):
            draw_state = mixed(state + np.uint64(first + d + 1) * np.uint64(_GOLDEN))
            many = set_bits(mixed(draw_state) & last)
            for j in range(words):
                many += set_bits(mixed(draw_state + np.uint64(j + 1) * np.uint64(_GOLDEN)))
            out[i, d] = np.float64(many)


def swap_counts(keys: Array, units: Array, seed: int, first: int, last: int) -> Array:
    """Number of units of each class that are swapped, float64 [classes, last - first].

    Each is binomial, exactly: one random bit per unit. Arguments as in :func:`poisson_counts`.
    """
    out = np.empty((keys.size, last - first))
    word = np.uint64(~(seed * 0xD1342543DE82EF95 + 0x632BE59BD9B4E019) & 0xFFFFFFFFFFFFFFFF)
    _swapped_units(keys, units, word, first, out)
    return out


@kernel
def drawn_classes(of: I64, cell: I64, values: F64, drawn: F64, sums: Array) -> None:
    """Add values times the number of units of their class in each resample.

    Args:
        of: int64 [m], class of each row.
        cell: int64 [m].
        values: float64 [m], on a grid.
        drawn: float64 [classes, b].
        sums: float64 [cells, b], added to.
    """
    for r in range(of.size):
        value, w, out = values[r], drawn[of[r]], sums[cell[r]]
        for d in range(out.size):
            out[d] += value * w[d]


# Slices by several conditions (column = value), at most one per column. A slice of the next level
# joins two that differ in their last item; its size, sum and highest error bound its score. Rows
# count by their weights.
# Source: S. Sagadeeva, M. Boehm, "SliceLine: Fast, Linear-Algebra-based Slice Finding for ML Model
# Debugging" (SIGMOD 2021), sections 3 and 4.


class Scoring(NamedTuple):
    """Score of slices."""

    n: float  # sum of all weights; the number of rows if each weighs 1
    total: float  # sum of all errors, above 0
    alpha: float  # weight of the mean error against the size, in (0, 1]
    least: int  # fewest rows of a slice
    lightest: float  # smallest size of that many rows, above 0
    beat: float  # score below which a slice is dropped


class Level(NamedTuple):
    """Slices of one level, in ascending order of their items."""

    items: I32  # int32 [m, level], of ascending columns
    key: I64  # int64 [m], the items as digits of one number, ascending
    rows: I64  # int64 [m]
    size: F64  # float64 [m], sum of their weights
    total: F64  # float64 [m], sum of their weighted errors
    worst: F64  # float64 [m], highest of their errors, without weights


@inner
def _score(size: float, total: float, scoring: Any) -> float:
    n, every, alpha = scoring.n, scoring.total, scoring.alpha
    return alpha * (total / size * (n / every) - 1.0) - (1.0 - alpha) * (n / size - 1.0)


@inner
def _highest_score(size: float, total: float, worst: float, scoring: Any) -> float:
    """Upper bound of the score, given bounds of size, sum of errors and highest error."""
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
def join_slices(
    first: int, last: int, level: Level, column: I32, scoring: Scoring
) -> tuple[Array, Array]:
    """Slices of the next level that grow from slices [first, last).

    Args:
        level: all slices of that level that were not dropped.
        column: int32 [items], column of each item, ascending.

    Returns:
        int64 [last - first + 1] offsets, and int32 last items of the new slices, ascending within
        each.
    """
    items, key, rows, size, total, worst = level
    n_items, deep = column.size, items.shape[1]
    start, children = np.zeros(last - first + 1, np.int64), np.empty(256, np.int32)
    n_children = 0
    for p in range(first, last):
        last_column = column[items[p, deep - 1]]
        for q in range(p + 1, items.shape[0]):
            equal = True
            for j in range(deep - 1):
                if items[p, j] != items[q, j]:
                    equal = False
                    break
            if not equal:
                break
            item = items[q, deep - 1]
            if column[item] == last_column:
                continue
            fewest, most, errors, high = (
                min(rows[p], rows[q]),
                min(size[p], size[q]),
                min(total[p], total[q]),
                min(worst[p], worst[q]),
            )
            complete = True
            for left_out in range(deep - 1):
                parent = 0
                for j in range(deep):
                    if j != left_out:
                        parent = parent * n_items + items[p, j]
                parent = parent * n_items + item
                at = _place(key, parent)
                if at < 0:
                    complete = False
                    break
                fewest = min(fewest, rows[at])
                most = min(most, size[at])
                errors = min(errors, total[at])
                high = min(high, worst[at])
            if not complete or fewest < scoring.least or errors <= 0.0:
                continue
            bound = _highest_score(most, errors, high, scoring)
            if bound + 1e-9 * (1.0 + abs(bound)) < scoring.beat:  # sums are rounded
                continue
            if n_children == children.size:
                children = np.concatenate((children, np.empty(n_children, np.int32)))
            children[n_children] = item
            n_children += 1
        start[p - first + 1] = n_children
    return start, children[:n_children].copy()


@kernel
def measure_slices(
    code: I32, error: F64, weight: F64, column: I32, items: I32, start: I64, children: I32
) -> tuple[Array, Array, Array, Array]:
    """Rows, size, sum and highest of the errors of new slices.

    Args:
        code: int32 [columns, n], item of each row, -1 for no item.
        error: float64 [n], not below 0.
        weight: float64 [n], above 0; [0] if each row weighs 1.
        column: int32 [items], column of each item.
        items: int32 [m, level], the slices that grow.
        start: int64 [m + 1], offsets of their new slices.
        children: int32 [k], last items of the new slices.

    Returns:
        int64, and three float64 [k], as in :class:`Level`; sums are added by ascending row.
    """
    n, deep = error.size, items.shape[1]
    weighed = weight.size > 0
    n_rows = np.zeros(deep, np.int64)
    rows = np.empty((deep, n + 1), np.int32)  # behind its rows the item they have
    rows[:, n] = -1
    many, count = np.zeros(column.size, np.int64), np.zeros(children.size, np.int64)
    heavy, errors, high = np.zeros(column.size), np.zeros(column.size), np.zeros(column.size)
    size, total, worst = np.zeros(children.size), np.zeros(children.size), np.zeros(children.size)
    for p in range(items.shape[0]):
        if start[p] == start[p + 1]:
            continue
        same = 0
        if p > 0:
            while same < deep and n_rows[same] >= 0 and rows[same, n] == items[p, same]:
                same += 1
        for j in range(same, deep):
            item = items[p, j]
            codes = code[column[item]]
            k = 0
            if j == 0:
                for r in range(n):
                    if codes[r] == item:
                        rows[0, k] = r
                        k += 1
            else:
                for i in range(n_rows[j - 1]):
                    r = rows[j - 1, i]
                    if codes[r] == item:
                        rows[j, k] = r
                        k += 1
            n_rows[j] = k
            rows[j, n] = item
            for later in range(j + 1, deep):
                rows[later, n] = -1
        at = start[p]
        while at < start[p + 1]:
            c = column[children[at]]
            codes = code[c]
            for i in range(n_rows[deep - 1]):
                r = rows[deep - 1, i]
                item = codes[r]
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
            for i in range(n_rows[deep - 1]):
                item = codes[rows[deep - 1, i]]
                if item >= 0:
                    many[item] = 0
                    heavy[item] = 0.0
                    errors[item] = 0.0
                    high[item] = 0.0
    return count, size, total, worst


# Digests of tables: sums of the hashes of their rows, free of the order of rows and columns.
#
# The hashes are fixed: lines to cite contain their sums. Values become 64-bit hashes (SplitMix64's
# finaliser, Steele, Lea, Flood 2014). A row is the sum of the hashes of its values, salted by their
# columns; two finalisers of that sum are the 128 bits that are added, modulo 2^128.

_PRIME = 0x100000001B3
_EXACT = 2.0**53
_DIGITS = 19
_LARGEST = 2**63 - 1


@kernel
def add_integers(values: U64, present: Bools, salt: int, rows: Array) -> None:
    """Add a column of integers, as their 64 bits, to the sums of rows.

    Args:
        present: False for nulls, which add nothing; empty if there are none.
        rows: uint64 [n].
    """
    start = np.uint64(salt)
    for i in range(values.size):
        if present.size == 0 or present[i]:
            rows[i] += mixed((values[i] + start) * np.uint64(_GOLDEN))


@kernel
def add_floats(values: F64, present: Bools, salt: int, rows: Array) -> None:
    """Add a column of floats; whole ones as integers, NaN as a null."""
    start = np.uint64(salt)
    bits = values.view(np.uint64)
    for i in range(values.size):
        value = values[i]
        if value != value or (present.size and not present[i]):
            continue
        own = bits[i]
        if abs(value) < _EXACT and value == np.floor(value):
            own = np.uint64(np.int64(value))
        rows[i] += mixed((own + start) * np.uint64(_GOLDEN))


@inner
def _some(data: U8, at: int, n: int) -> Any:
    """Up to eight bytes as the low bytes of a word."""
    if at + 8 <= data.size:
        unused = np.uint64(64 - 8 * n)
        return word(data, np.uint64(at)) << unused >> unused if n else np.uint64(0)
    few = np.uint64(0)
    for k in range(n):
        few |= np.uint64(data[at + k]) << np.uint64(8 * k)
    return few


@inner
def _integer(data: U8, at: int, end: int) -> tuple[bool, Any]:
    """Read bytes as the one way to write an int64 in decimal: no zeros in front, no plus."""
    value, negative = np.uint64(0), data[at] == ord("-")
    first = at + 1 if negative else at
    if not 0 < end - first <= _DIGITS or (data[first] == ord("0") and end - at > 1):
        return False, value
    while first < end:
        n = min(8, end - first)
        unused = np.uint64(64 - 8 * n)
        digits = (_some(data, first, n) << unused) ^ (ZERO_DIGITS << unused)
        if (digits | (digits + ABOVE_NINE)) & HIGH_BITS:
            return False, value
        value = value * POWERS_OF_TEN[n] + decimal(digits)
        first += n
    if value > np.uint64(_LARGEST):
        return False, value
    return True, np.uint64(0) - value if negative else value


@kernel
def hash_bytes(offsets: I64, data: U8, out: Array) -> None:
    """Hash texts, 8 bytes at a time; arguments as in :func:`.datums.hash_texts`.

    The hash of an integer's decimal text is the integer: CSV does not say which of both it is.
    """
    for i in range(out.size):
        at, end = offsets[i], offsets[i + 1]
        if at < end and data[at] <= ord("9"):
            is_integer, value = _integer(data, at, end)
            if is_integer:
                out[i] = value
                continue
        state = np.uint64(end - at)
        while at + 8 <= end:
            eight = word(data, np.uint64(at))
            state = mixed(state ^ eight) * np.uint64(_PRIME) + np.uint64(_GOLDEN)
            at += 8
        out[i] = mixed(state ^ _some(data, at, end - at))


@kernel
def hash_lists(offsets: I64, items: U64, out: Array) -> None:
    """Hash lists from the hashes of their items, in order.

    Args:
        offsets: int64 [n + 1].
        items: uint64 [offsets[n]].
        out: uint64 [n].
    """
    for i in range(out.size):
        state = np.uint64(offsets[i + 1] - offsets[i])
        for at in range(offsets[i], offsets[i + 1]):
            state = mixed(state + items[at]) * np.uint64(_PRIME) + np.uint64(_GOLDEN)
        out[i] = state


@kernel
def sum_rows(rows: U64, total: Array) -> None:
    """Add the 128 bits of each row.

    Args:
        rows: uint64 [n].
        total: uint64 [2], low and high word.
    """
    low, high = total[0], total[1]
    for i in range(rows.size):
        first = mixed(rows[i] + np.uint64(_GOLDEN))
        low += first
        high += mixed(rows[i] ^ np.uint64(0xD1B54A32D192ED03)) + np.uint64(low < first)
    total[0], total[1] = low, high
