"""Label maps: pixel counts, borders of segments, and distances of surfaces."""

from __future__ import annotations

from typing import Any

import numpy as np

from .bits import lowest, set_bits, word
from .jit import F64, I32, I64, U8, Array, frozen, inner, instruction, kernel

# Comparisons of many bytes to the bits of one word, written in LLVM because the compiler does not
# vectorise them. Each has a Python function with the same result.

LANES = 64
"""Bytes that :func:`borders` compares: one bit each in a word."""


def _borders(builder: Any, a: Any, b: Any, at: Any) -> Any:
    from numba.core.cgutils import ir

    lanes = ir.VectorType(ir.IntType(8), LANES)
    differ = []
    for side in (a, b):
        here = builder.gep(side, [at])
        before = builder.gep(here, [at.type(-1)])
        first, second = (
            builder.load(builder.bitcast(place, lanes.as_pointer()), align=1)
            for place in (here, before)
        )
        differ.append(builder.icmp_unsigned("!=", first, second))
    return builder.bitcast(builder.or_(*differ), at.type)


@instruction(_borders)
def borders(a: Any, b: Any, at: Any) -> Any:
    """Bits of 64 bytes that differ from the byte before them, in either of two arrays.

    Bounds are not checked: bytes ``at - 1`` to ``at + 63`` must exist.

    Args:
        a: uint8 [n], C-contiguous.
        b: uint8 [n], C-contiguous.
        at: uint64, the first of the bytes, from 1.

    Returns:
        uint64, bit ``k`` for byte ``at + k``.
    """
    here, before = (slice(int(at) - back, int(at) - back + LANES) for back in (0, 1))
    differs = (a[here] != a[before]) | (b[here] != b[before])
    return np.uint64(sum(1 << k for k in np.flatnonzero(differs).tolist()))


# Joint histogram of two label maps: pixels per pair of indices. Runs of equal pairs, found 64
# pixels at a time by a vector comparison, are counted at once. Noisy stretches are counted pixel by
# pixel.

BYTES = 256
"""Number of values of a byte; the table of pairs has that many rows and columns."""

_TABLES = 4  # neighbouring pixels often add to one pair, so each adds to a separate table
_PLACE = BYTES * BYTES + 24  # from one table to the next: not the same lines of the cache again
_MANY = 24  # changes among 64 pixels from which each pixel is counted, rather than each run
_EVEN = 0x00FF00FF00FF00FF


@inner
def _packed(byte_a: Any, byte_b: Any) -> Any:
    """Four places in a table, 16 bits each, of bytes in such lanes.

    The row is the index of the first map. The column is that of the second, shifted by the row,
    since first columns of rows a power of two long would share few cache lines.
    """
    moved = (byte_b ^ (byte_a << np.uint64(3))) & np.uint64(_EVEN)
    return (byte_a << np.uint64(8)) | moved


@inner
def _add_seven(word_a: Any, word_b: Any, table: Any) -> Any:
    """Count seven pairs of indices, in neighbouring tables; return the place of the last."""
    even, eight, lane = np.uint64(_EVEN), np.uint64(8), np.uint64(0xFFFF)
    two, three, four = np.uint64(16), np.uint64(32), np.uint64(48)
    second, third, fourth = np.uint64(_PLACE), np.uint64(2 * _PLACE), np.uint64(3 * _PLACE)
    pairs = _packed(word_a & even, word_b & even)
    table[pairs & lane] += 1
    table[second + ((pairs >> two) & lane)] += 1
    table[third + ((pairs >> three) & lane)] += 1
    table[fourth + (pairs >> four)] += 1
    pairs = _packed((word_a >> eight) & even, (word_b >> eight) & even)
    table[pairs & lane] += 1
    table[second + ((pairs >> two) & lane)] += 1
    table[third + ((pairs >> three) & lane)] += 1
    return fourth + (pairs >> four)


@inner
def _place(byte_a: Any, byte_b: Any) -> Any:
    """Place in a table of one pair of indices, uint64, as in :func:`_packed`."""
    moved = (byte_b ^ (byte_a << np.uint64(3))) & np.uint64(0xFF)
    return (byte_a << np.uint64(8)) | moved


@inner
def _add_all(a: Any, b: Any, first: Any, table: Any, seen_a: Any, seen_b: Any) -> Any:
    """Count 64 pixels one by one; return the bits that occur on either side."""
    for at in range(first, first + np.uint64(LANES), np.uint64(8)):
        word_a, word_b = word(a, at), word(b, at)
        table[_add_seven(word_a, word_b, table)] += 1
        seen_a, seen_b = seen_a | word_a, seen_b | word_b
    return seen_a, seen_b


@kernel
def _count_bytes(a: Any, b: Any, table: Any, used_bits: Any) -> None:
    """Add the pixels of two maps to tables of pairs.

    Args:
        a: uint8 [n], indices.
        b: uint8 [n], indices of the same pixels in the other map.
        table: int64 [4 * 65560], counts of pairs, in four parts; added to.
        used_bits: uint64 [2], bits that occur on either side, in any of eight bytes; added to.
    """
    zero, one, lanes, size = np.uint64(0), np.uint64(1), np.uint64(LANES), np.uint64(a.size)
    seen_a, seen_b, end = used_bits[0], used_bits[1], zero
    if size > lanes:
        # Pixels from ``since`` on have the pair at ``held`` and are counted when it ends.
        seen_a, seen_b = seen_a | np.uint64(a[0]), seen_b | np.uint64(b[0])
        pair, since = _place(np.uint64(a[0]), np.uint64(b[0])), zero
        end = one + (size - one) // lanes * lanes
        for first in range(one, end, lanes):
            changed = borders(a, b, first)
            if set_bits(changed) > np.uint64(_MANY):
                # From the one before, that the last of them begins a run as a border does.
                table[pair] += np.int64(first - one - since)
                seen_a, seen_b = _add_all(a, b, first - one, table, seen_a, seen_b)
                since, changed = first - one + lanes, one << (lanes - one)
            while changed != zero:
                at = first + lowest(changed)
                changed &= changed - one
                index_a, index_b = np.uint64(a[at]), np.uint64(b[at])
                seen_a, seen_b = seen_a | index_a, seen_b | index_b
                table[pair] += np.int64(at - since)
                pair, since = _place(index_a, index_b), at
        table[pair] += np.int64(end - since)
    for i in range(end, size):
        seen_a, seen_b = seen_a | np.uint64(a[i]), seen_b | np.uint64(b[i])
        table[_place(np.uint64(a[i]), np.uint64(b[i]))] += 1
    used_bits[0], used_bits[1] = seen_a, seen_b


@kernel
def _take_pairs(table: Any, used_bits: Any, out: Any) -> int:
    """Move the tables into lists and empty them; return the number of pairs.

    Args:
        table: int64 [4 * 65560]; zeros afterwards.
        used_bits: uint64 [2], bits that occur on either side, which bound the indices; zeros
            afterwards.
        out: int64 [3, 65536], written: index of the first map, of the second, and pixels, of the
            pairs that occur, ascending.
    """
    for side in range(2):
        for half in (np.uint64(32), np.uint64(16), np.uint64(8)):
            used_bits[side] |= used_bits[side] >> half
    rows, columns = (
        np.int64(used_bits[0] & np.uint64(0xFF)),
        np.int64(used_bits[1] & np.uint64(0xFF)),
    )
    used_bits[:] = np.uint64(0)
    n_pairs = 0
    for a in range(rows + 1):
        for b in range(columns + 1):
            at = np.int64(_place(np.uint64(a), np.uint64(b)))
            total = 0
            for part in range(_TABLES):
                total += table[_PLACE * part + at]
                table[_PLACE * part + at] = 0
            if total != 0:
                out[0, n_pairs], out[1, n_pairs], out[2, n_pairs] = a, b, total
                n_pairs += 1
    return n_pairs


class ByteCounter:
    """Joint histograms of pairs of byte maps in reused tables."""

    def __init__(self) -> None:
        self._table = np.zeros(_TABLES * _PLACE, np.int64)
        self._seen = np.zeros(2, np.uint64)
        self._out = np.empty((3, BYTES * BYTES), np.int64)

    def add(self, a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> None:
        """Count the pixels of two maps of the same shape, uint8, or of a part of them."""
        a, b = frozen(a.reshape(-1), np.uint8), frozen(b.reshape(-1), np.uint8)
        _count_bytes(a, b, self._table, self._seen)

    def take(self) -> np.ndarray[Any, Any]:
        """Counts since the last call.

        Returns:
            int64 [3, m]: indices of the first map, of the second, and pixels.
        """
        n = _take_pairs(self._table, self._seen, self._out)
        return self._out[:, :n].copy()


# Joint histogram of two maps of any integers: each run of equal pairs is looked up once, in a
# growing hash table of pairs.

_FIRST = 1 << 10  # places of the table at first
_LOW = 1 << 31  # brings the second number of a pair above 0, so that pairs sort as they should


@inner
def _place_of_pair(pair: Any, pairs: Any, counts: Any) -> Any:
    mask = np.uint64(pairs.size - 1)
    mixed = np.uint64(pair) * np.uint64(0x9E3779B97F4A7C15)
    at = (mixed ^ (mixed >> np.uint64(32))) & mask
    while counts[at] != 0 and pairs[at] != pair:
        at = (at + np.uint64(1)) & mask
    return at


@inner
def _pair(a: Any, b: Any) -> Any:
    return (np.int64(a) << np.int64(32)) + (np.int64(b) + np.int64(_LOW))


@kernel
def _count(a: I32, b: I32) -> Any:
    """Pairs and their counts, unordered; places with a count of 0 are unused.

    Args:
        a: int32 [n].
        b: int32 [n], n at least 1.

    Returns:
        int64 [m], int64 [m].
    """
    pairs, counts = np.empty(_FIRST, np.int64), np.zeros(_FIRST, np.int64)
    used, since, i = 0, 0, 0
    while i < a.size:
        first, second = a[i], b[i]
        i += 1
        while i < a.size and (a[i] ^ first) | (b[i] ^ second) == 0:
            i += 1
        pair = _pair(first, second)
        at = _place_of_pair(pair, pairs, counts)
        if counts[at] == 0:
            used += 1
            pairs[at] = pair
        counts[at] += i - since
        since = i
        if 2 * used > pairs.size:
            larger, moved = np.empty(2 * pairs.size, np.int64), np.zeros(2 * pairs.size, np.int64)
            for k in range(pairs.size):
                if counts[k] != 0:
                    to = _place_of_pair(pairs[k], larger, moved)
                    larger[to], moved[to] = pairs[k], counts[k]
            pairs, counts = larger, moved
    return pairs, counts


def count_wide(a: Array, b: Array) -> tuple[Array, Array, Array]:
    """Joint histogram of two maps whose numbers need not fit into bytes.

    Args:
        a: integers within int32, any shape.
        b: the same of the same shape.

    Returns:
        numbers of the first map int64 [m], of the second int64 [m], pixels int64 [m]; by the first
        and then the second, ascending.
    """
    if a.size == 0:
        none = np.empty(0, np.int64)
        return none, none.copy(), none.copy()
    pairs, counts = _count(*(frozen(side.reshape(-1), np.int32) for side in (a, b)))
    here = np.flatnonzero(counts)
    order = here[np.argsort(pairs[here])]
    pair = pairs[order]
    return pair >> 32, (pair & 0xFFFFFFFF) - _LOW, counts[order]


# Maps of segments: ids from colours, and pixels near the edge of their segment.

INSIDE = -1
"""Id of pixels that are far from the edge of their segment."""


@kernel
def _join(red: U8, green: U8, blue: U8, out: Array) -> None:
    for i in range(out.size):
        out[i] = np.int32(red[i]) | np.int32(green[i]) << 8 | np.int32(blue[i]) << 16


def colour_ids(colours: Array) -> Array:
    """R + 256 G + 65536 B of every pixel, int32 [height, width].

    Args:
        colours: uint8 [3 or more, height, width], red, green and blue first.
    """
    red, green, blue = (plane.reshape(-1) for plane in colours[:3])
    out = np.empty(red.size, np.int32)
    _join(red, green, blue, out)
    return out.reshape(colours.shape[1:])


@kernel
def _edges(ids: I32, depth: Any, out: Any) -> None:
    """Ids of pixels with another id in a square around them, otherwise ``INSIDE``.

    The square is separable: runs of equal ids along rows, then runs of inner pixels down columns.

    Args:
        ids: int32 [height, width].
        depth: 1 or more.
        out: int32 [height, width].
    """
    height, width = ids.shape
    down = np.zeros(width, np.int64)  # pixels of the column that are inside their row, of one id
    for r in range(height):
        begin = 0
        while begin < width:
            end = begin + 1
            while end < width and ids[r, end] == ids[r, begin]:
                end += 1
            for c in range(begin, end):
                out[r, c] = ids[r, c]
                if begin + depth <= c < end - depth:
                    same = down[c] > 0 and ids[r, c] == ids[r - 1, c]
                    down[c] = down[c] + 1 if same else 1
                else:
                    down[c] = 0
                if down[c] > 2 * depth and ids[r, c] != 0:
                    out[r - depth, c] = INSIDE
            begin = end


def segment_edges(ids: Array, depth: int) -> Array:
    """Map with ``INSIDE`` for pixels farther than a distance from every other segment.

    The rest is the boundary of each segment: its mask minus the mask after d erosions by 3 x 3
    pixels, with the outside of the image as background. Pixels of id 0 are unchanged.

    Args:
        ids: int32 [height, width], 0 or more.
        depth: d, 1 or more.

    Returns:
        int32 [height, width].
    """
    out = np.empty(ids.shape, np.int32)
    _edges(ids, depth, out)
    return out


# Outlines of masks, and distances between the pixels of two outlines.

_FAR = np.iinfo(np.int32).max // 4  # rows: farther than any image is high


@kernel
def _outline(mask: U8, rows: Any, columns: Any) -> int:
    """Find set pixels with an unset neighbour in the row or column; return their number."""
    height, width = mask.shape
    n = 0
    for r in range(height):
        for c in range(width):
            if mask[r, c] == 0:
                continue
            inside = 0 < r < height - 1 and 0 < c < width - 1
            if (
                inside
                and mask[r - 1, c] != 0
                and mask[r + 1, c] != 0
                and mask[r, c - 1] != 0
                and mask[r, c + 1] != 0
            ):
                continue
            rows[n], columns[n] = r, c
            n += 1
    return n


def outline(mask: Array) -> tuple[Array, Array]:
    """Pixels of a mask that one erosion by a cross removes; outside of the image is background.

    Args:
        mask: uint8 [height, width], not 0 if set.

    Returns:
        rows int32 [n] and columns int32 [n], row by row.
    """
    most = int(np.count_nonzero(mask))
    rows, columns = np.empty(most, np.int32), np.empty(most, np.int32)
    n = _outline(mask, rows, columns)
    return rows[:n], columns[:n]


@kernel
def _nearest(
    rows: I32, columns: I32, to_rows: I32, to_columns: I32, steps: F64, size: I64, out: Array
) -> None:
    """Distance of each pixel to the nearest of others.

    The nearest pixel of each column is found going down and up; a search then proceeds from the
    pixel's own column outwards, as long as a nearer one is possible.

    Args:
        rows: int32 [n], from 0, below the height.
        columns: int32 [n].
        to_rows: int32 [m], m at least 1.
        to_columns: int32 [m].
        steps: float64 [2], height and width of a pixel.
        size: int64 [2], height and width of the image.
        out: float64 [n].
    """
    height, width = size
    away = np.full((height, width), _FAR, np.int32)
    for k in range(to_rows.size):
        away[to_rows[k], to_columns[k]] = 0
    for r in range(1, height):
        for c in range(width):
            away[r, c] = min(away[r, c], away[r - 1, c] + 1)
    for r in range(height - 2, -1, -1):
        for c in range(width):
            away[r, c] = min(away[r, c], away[r + 1, c] + 1)
    for k in range(rows.size):
        r, c = rows[k], columns[k]
        least = np.inf
        for aside in range(width):
            across = (steps[1] * aside) ** 2
            if across >= least:
                break
            if c >= aside and away[r, c - aside] < _FAR:
                least = min(least, across + (steps[0] * away[r, c - aside]) ** 2)
            if c + aside < width and away[r, c + aside] < _FAR:
                least = min(least, across + (steps[0] * away[r, c + aside]) ** 2)
        out[k] = np.sqrt(least)


def distances(
    pixels: tuple[Array, Array], others: tuple[Array, Array], steps: tuple[float, float]
) -> Array:
    """Distance of each pixel to the nearest of others, float64 [n].

    Args:
        pixels: rows int32 [n] and columns int32 [n].
        others: the same of others, at least one.
        steps: height and width of a pixel; distances are in their unit.
    """
    low = [min(a.min(), b.min()) for a, b in zip(pixels, others, strict=True)]
    high = [max(a.max(), b.max()) for a, b in zip(pixels, others, strict=True)]
    moved: list[Any] = [
        one - np.int32(least)
        for side in (pixels, others)
        for one, least in zip(side, low, strict=True)
    ]
    size = np.array(high, np.int64) - low + 1
    out = np.empty(pixels[0].size)
    _nearest(*[*moved, steps, size, out])
    return out
