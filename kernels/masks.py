"""Masks as runs of pixels, and polygons.

Arguments of these names are the same everywhere:

    runs: masks as :data:`Runs`.
    pixels: int64 [n], height * width of each mask, below 2^32.
    offset: int64 [n + 1], offsets of the codes of each mask; need not start at 0.
    row, other: int32 [k], indices of the two members of each pair.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import F64, I32, I64, U8, U32, Array, allocating, inner, kernel

# Masks as runs of ones. Run i is the pixels [begin[i], end[i]), counted down the columns of the
# image as in COCO unless stated otherwise. Runs of one mask ascend and never touch, so equal masks
# have equal runs.

Runs = tuple[I64, U32, U32]
"""Offsets of each mask's runs int64 [n + 1], begin uint32 [r], end uint32 [r]."""


@inner
def put(begin: Array, end: Array, first: int, at: int, low: int, high: int) -> Any:
    """Write the run [low, high) as number ``at`` of a mask whose runs start at ``first``.

    An empty run is skipped; one that touches the previous run extends it. Returns the number of the
    next run.
    """
    if high <= low:
        return at
    if at > first and np.int64(end[at - 1]) >= low:
        if high > np.int64(end[at - 1]):
            end[at - 1] = np.uint32(high)
        return at
    begin[at] = np.uint32(low)
    end[at] = np.uint32(high)
    return at + 1


@allocating
def longer(old: Array, size: int) -> Any:
    """Copy an array into a larger one."""
    new = np.empty(size, np.uint32)
    for i in range(old.size):  # compiles faster than a slice
        new[i] = old[i]
    return new


@kernel
def _close_gaps(room: I64, used: I64, begin: Array, end: Array) -> int:
    at = 0
    for i in range(used.size):
        first = room[i]
        for k in range(used[i]):
            begin[at] = begin[first + k]
            end[at] = end[first + k]
            at += 1
    return at


def closed(room: Array, used: Array, begin: Array, end: Array) -> Runs:
    """Remove the gaps between runs that were written into ranges larger than needed.

    Args:
        room: int64 [n + 1], offsets of each mask's range.
        used: int64 [n], number of runs written.
        begin: uint32 [room[n]], changed.
        end: uint32 [room[n]], changed.
    """
    start = np.zeros(used.size + 1, np.int64)
    np.cumsum(used, out=start[1:])
    n = int(start[-1])
    if n < int(room[-1]):
        _close_gaps(room, used, begin, end)
        begin, end = begin[:n], end[:n]
        if 4 * n < 3 * int(room[-1]):  # else the view is worth its waste
            begin, end = begin.copy(), end.copy()
    return start, begin, end


def sliced(runs: Runs) -> Runs:
    """Shift the offsets of a range of masks to begin at 0."""
    start, begin, end = runs
    first, last = int(start[0]), int(start[-1])
    return start - first, begin[first:last], end[first:last]


def joined(parts: list[Runs]) -> Runs:
    """Concatenate the masks of several parts; a single one is not copied."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return np.zeros(1, np.int64), np.empty(0, np.uint32), np.empty(0, np.uint32)
    counts = np.concatenate([np.diff(start) for start, _, _ in parts])
    start = np.zeros(counts.size + 1, np.int64)
    np.cumsum(counts, out=start[1:])
    begins = [part[1] for part in parts]
    stops = [part[2] for part in parts]
    return start, np.concatenate(begins), np.concatenate(stops)


@kernel
def _take(runs: Runs, rows: I64, to: I64, b: Array, e: Array) -> None:
    start, begin, end = runs
    for i in range(rows.size):
        first = start[rows[i]]
        at = to[i]
        for k in range(to[i + 1] - at):
            b[at + k] = begin[first + k]
            e[at + k] = end[first + k]


def take_runs(runs: Runs, rows: Array) -> Runs:
    """Masks at some rows, integer [k], in their order."""
    start = runs[0]
    to = np.zeros(rows.size + 1, np.int64)
    np.cumsum((start[1:] - start[:-1])[rows], out=to[1:])
    b, e = np.empty(int(to[-1]), np.uint32), np.empty(int(to[-1]), np.uint32)
    _take(runs, rows, to, b, e)
    return to, b, e


# COCO's run-length codes, as compressed strings or lists of counts. Counts are the lengths of runs
# of zeros and ones in turn, zeros first. A character of a string minus 48 has five bits of a
# number, lowest first, and a flag for more; the last fifth bit is the sign; from the fourth number
# on it is the difference to the count two before. Source: pycocotools ``rleFrString``,
# ``rleToString``.

FILLS, MALFORMED, CUT, NEGATIVE, SHORT, LONG = range(6)
"""Outcome of reading a code: it fills its size, or has an invalid character, ends inside a number,
has a negative run, or has fewer or more pixels than its size.
"""


@inner
def _number(data: Array, p: int, stop: int) -> tuple[Any, Any]:
    """Number that starts at ``p`` and its characters, or -1 or -2 for an invalid one."""
    value: Any = 0
    shift, at = 0, p
    while at < stop:
        c = np.int64(data[at]) - 48
        if c < 0 or c > 63 or shift > 50:
            return 0, -1
        value |= (c & 31) << shift
        shift += 5
        at += 1
        if c & 32 == 0:
            return (value | (-1 << shift) if c & 16 else value), at - p
    return 0, -2


Written = tuple[I64, Array, Array, Array, Array]
"""Offsets of the places for each mask's runs, int64 [n + 1]; written: begin and end of runs, number
of runs of each mask, and the outcome of reading it.
"""


@kernel
def _decode(data: U8, offset: I64, pixels: I64, out: Written) -> None:
    room, begin, end, used, fault = out
    for i in range(pixels.size):
        first, at = room[i], room[i]
        p, stop = offset[i], offset[i + 1]
        position, m, before, last, wrong, reach = 0, 0, 0, 0, 0, -1
        while p < stop:
            # Most numbers have one or two characters: read without a loop.
            c = np.int64(data[p]) - 48
            d = np.int64(data[p + 1]) - 48 if p + 1 < stop else 64
            if c & ~31 == 0:
                value: Any = (c << 59) >> 59
                p += 1
            elif c & ~63 == 0 and d & ~31 == 0:
                value = ((c & 31 | d << 5) << 54) >> 54
                p += 2
            else:
                value, size = _number(data, p, stop)
                if size < 0:
                    wrong = -size
                    break
                p += size
            if m > 2:
                value += before
            if value < 0 or value > pixels[i] - position:
                wrong = 3 if value < 0 else 5
                break
            before, last = last, value
            if m & 1 and value > 0:
                if reach == position:
                    at -= 1  # no zeros in between: the run before goes on
                else:
                    begin[at] = np.uint32(position)
                reach = position + value
                end[at] = np.uint32(reach)
                at += 1
            position += value
            m += 1
        if wrong == 0 and position < pixels[i]:
            wrong = 4
        used[i] = at - first
        fault[i] = wrong


@kernel
def _from_counts(count: I64, offset: I64, pixels: I64, out: Written) -> None:
    room, begin, end, used, fault = out
    for i in range(pixels.size):
        first, at = room[i], room[i]
        position, wrong = 0, 0
        for k in range(offset[i], offset[i + 1]):
            if count[k] < 0:
                wrong = 3  # takes precedence over an excess that a negative run cancels
        for k in range(offset[i], offset[i + 1]):
            value = count[k]
            if wrong == 0 and value > pixels[i] - position:  # a sum could be too large a number
                wrong = 5
            if wrong != 0:
                break
            if (k - offset[i]) & 1:
                at = put(begin, end, first, at, position, position + value)
            position += value
        if wrong == 0 and position < pixels[i]:
            wrong = 4
        used[i] = at - first
        fault[i] = wrong


class Room:
    """Memory for the runs of codes; ranges can be read in parallel.

    A code of n numbers usually has n / 2 runs, the maximum, so parts need not be copied to join
    them.

    Args:
        numbers: int64 [n], number of counts in each code.
    """

    def __init__(self, numbers: Array) -> None:
        n = numbers.size
        self._start = np.zeros(n + 1, np.int64)
        np.cumsum(numbers >> 1, out=self._start[1:])
        runs = int(self._start[-1])
        self._begin, self._end = np.empty(runs, np.uint32), np.empty(runs, np.uint32)
        self._used = np.empty(n, np.int64)
        self.fault = np.empty(n, np.uint8)
        """Outcome of each code (:data:`FILLS` and so on)."""

    def decode(self, first: int, last: int, data: Array, offset: Array, pixels: Array) -> None:
        """Read the compressed strings [first, last); ``data`` uint8 has their characters."""
        self._read(_decode, first, last, data, offset, pixels)

    def from_counts(
        self, first: int, last: int, count: Array, offset: Array, pixels: Array
    ) -> None:
        """Read the lists of counts [first, last) of ``count`` int64."""
        self._read(_from_counts, first, last, count, offset, pixels)

    def _read(
        self, function: Any, first: int, last: int, values: Array, offset: Array, pixels: Array
    ) -> None:
        some, edges = slice(first, last), slice(first, last + 1)
        runs = self._start[edges], self._begin, self._end
        function(values, offset[edges], pixels[some], (*runs, self._used[some], self.fault[some]))

    def runs(self) -> Runs:
        """Runs of all codes, once every range was read; to be called once."""
        return closed(self._start, self._used, self._begin, self._end)


@kernel
def numbers_of(data: U8, offset: I64) -> Array:
    """Count the numbers of each compressed string, int64 [n]."""
    numbers = np.empty(offset.size - 1, np.int64)
    for i in range(numbers.size):
        count: Any = 0
        for p in range(offset[i], offset[i + 1]):
            count += (((np.int64(data[p]) - 48) >> 5) & 1) ^ 1
        numbers[i] = count
    return numbers


def decode(data: Array, offset: Array, pixels: Array) -> tuple[Runs, Array]:
    """Runs of compressed strings, and the outcome of each, uint8 [n] (:data:`FILLS` and so on)."""
    room = Room(numbers_of(data, offset))
    room.decode(0, offset.size - 1, data, offset, pixels)
    return room.runs(), room.fault


def from_counts(count: Array, offset: Array, pixels: Array) -> tuple[Runs, Array]:
    """Runs of lists of counts, ``count`` int64, and the outcome of each."""
    room = Room(np.diff(offset))
    room.from_counts(0, offset.size - 1, count, offset, pixels)
    return room.runs(), room.fault


@kernel
def _encode(runs: Runs, pixels: I64, offset: Array, data: Array) -> int:
    """Write strings, or only their lengths into ``offset`` if ``data`` is empty."""
    start, begin, end = runs
    write = data.size > 0
    total = 0
    for i in range(pixels.size):
        first, last = start[i], start[i + 1]
        position, older, old = 0, 0, 0
        # zeros and ones in turn, then the zeros after the last run
        n = 2 * (last - first)
        for k in range(n + 1):
            if k == n:
                value = pixels[i] - position
                if value == 0 and n > 0:
                    break
            else:
                run = first + (k >> 1)
                value = (
                    np.int64(end[run] - begin[run]) if k & 1 else np.int64(begin[run]) - position
                )
            position += value
            left = value - older if k > 2 else value
            older, old = old, value
            more = True
            while more:
                c = left & 31
                left >>= 5
                more = left != -1 if c & 16 else left != 0
                if write:
                    data[total] = np.uint8((c | 32 if more else c) + 48)
                total += 1
        offset[i + 1] = total
    return total


def encode(runs: Runs, pixels: Array) -> tuple[Array, Array]:
    """Compressed strings of masks, identical to those of pycocotools ``encode``.

    Returns:
        offsets int64 [n + 1] of the strings; uint8, their characters.
    """
    offset = np.zeros(runs[0].size, np.int64)
    data = np.empty(_encode(runs, pixels, offset, np.empty(0, np.uint8)), np.uint8)
    if data.size:
        _encode(runs, pixels, offset, data)
    return offset, data


# Runs of ones in pixels, and pixels of runs.


@kernel
def _count(pixel: U8, offset: I64, start: Array) -> None:
    """Offsets of the runs of each image."""
    for i in range(start.size - 1):
        n, before = 0, False
        for p in range(offset[i], offset[i + 1]):
            here = pixel[p] != 0
            n += here and not before
            before = here
        start[i + 1] = start[i] + n


@kernel
def _scan(pixel: U8, offset: I64, start: I64, begin: Array, end: Array) -> None:
    for i in range(start.size - 1):
        p, last, at = offset[i], offset[i + 1], start[i]
        while at < start[i + 1]:
            while pixel[p] == 0:
                p += 1
            begin[at] = np.uint32(p - offset[i])
            while p < last and pixel[p] != 0:
                p += 1
            end[at] = np.uint32(p - offset[i])
            at += 1


def scan(pixel: Array, offset: Array) -> Runs:
    """Runs of the pixels that are not 0, along the lines in which the pixels are given.

    Args:
        pixel: uint8, the pixels of all images.
        offset: offsets of the images in them; none has 2^32 pixels.
    """
    start = np.zeros(offset.size, np.int64)
    _count(pixel, offset, start)
    begin, end = np.empty(int(start[-1]), np.uint32), np.empty(int(start[-1]), np.uint32)
    _scan(pixel, offset, start, begin, end)
    return start, begin, end


@kernel
def paint(begin: U32, end: U32, pixels: int) -> Array:
    """Pixels of one mask, uint8 [pixels]: 1 on its runs, 0 elsewhere, along their lines."""
    out = np.zeros(pixels, np.uint8)
    for k in range(begin.size):
        for p in range(np.int64(begin[k]), np.int64(end[k])):
            out[p] = 1
    return out


# Unions of masks by group, and differences of masks, by merging runs.


@inner
def _merge(begin: Array, end: Array, i: int, middle: int, last: int, first: int) -> Any:
    """Write the union of runs [i, middle) and [middle, last) from ``first`` on; return its end."""
    j = middle
    at = first
    while i < middle or j < last:
        if j == last or (i < middle and begin[i] <= begin[j]):
            k = i
            i += 1
        else:
            k = j
            j += 1
        at = put(begin, end, first, at, np.int64(begin[k]), np.int64(end[k]))
    return at


@kernel
def _unite(
    runs: Runs, order: I64, group_start: I64, room: I64, to_begin: Array, to_end: Array, used: Array
) -> None:
    """Merge neighbouring masks in rounds until one per group remains."""
    start, begin, end = runs
    for g in range(used.size):
        members = group_start[g + 1] - group_start[g]
        size = room[g + 1] - room[g]
        cut = np.zeros(members + 1, np.int64)
        at = room[g]
        for m in range(members):
            row = order[group_start[g] + m]
            for k in range(start[row], start[row + 1]):
                to_begin[at] = begin[k]
                to_end[at] = end[k]
                at += 1
            cut[m + 1] = at - room[g]
        used[g] = size
        if members < 2:
            continue
        # From one half of a buffer into the other, and back.
        buffer_begin, buffer_end = np.empty(2 * size, np.uint32), np.empty(2 * size, np.uint32)
        for k in range(size):
            buffer_begin[k] = to_begin[room[g] + k]
            buffer_end[k] = to_end[room[g] + k]
        source, target = 0, size
        while members > 1:
            half = (members + 1) >> 1
            at = target
            for m in range(half):
                low, middle = source + cut[2 * m], source + cut[2 * m + 1]
                last = source + cut[2 * m + 2] if 2 * m + 2 <= members else middle
                cut[m] = at - target
                at = _merge(buffer_begin, buffer_end, low, middle, last, at)
            cut[half] = at - target
            members = half
            source, target = target, source
        used[g] = cut[1]
        for k in range(used[g]):
            to_begin[room[g] + k] = buffer_begin[source + k]
            to_end[room[g] + k] = buffer_end[source + k]


def unite(runs: Runs, group: Array, n_groups: int) -> Runs:
    """Union of the masks of each group.

    Args:
        runs: n masks, those of a group of equal size.
        group: int32 [n], in [0, n_groups).
        n_groups: number of masks to make; one of a group without members is empty.
    """
    codes = np.ascontiguousarray(group, np.int64)
    order = np.argsort(codes, kind="stable")
    group_start, room = np.zeros(n_groups + 1, np.int64), np.zeros(n_groups + 1, np.int64)
    np.cumsum(np.bincount(codes, minlength=n_groups), out=group_start[1:])
    sizes = np.zeros(codes.size + 1, np.int64)
    np.cumsum(np.diff(runs[0])[order], out=sizes[1:])
    room[:] = sizes[group_start]
    total = int(room[-1])
    to_begin, to_end = np.empty(total, np.uint32), np.empty(total, np.uint32)
    used = np.zeros(n_groups, np.int64)
    _unite(runs, order, group_start, room, to_begin, to_end, used)
    return closed(room, used, to_begin, to_end)


@kernel
def _subtract(
    runs: Runs, less: Runs, room: I64, to_begin: Array, to_end: Array, used: Array
) -> None:
    start, begin, end = runs
    less_start, less_begin, less_end = less
    for i in range(used.size):
        first, at = room[i], room[i]
        j, last = less_start[i], less_start[i + 1]
        for k in range(start[i], start[i + 1]):
            low, high = np.int64(begin[k]), np.int64(end[k])
            while j < last and np.int64(less_end[j]) <= low:
                j += 1
            while j < last and np.int64(less_begin[j]) < high:
                at = put(to_begin, to_end, first, at, low, np.int64(less_begin[j]))
                low = np.int64(less_end[j])
                if low >= high:
                    break  # it may reach into the next run
                j += 1
            at = put(to_begin, to_end, first, at, low, high)
        used[i] = at - first


def subtract(runs: Runs, less: Runs) -> Runs:
    """Subtract from each mask its partner in another set of as many masks."""
    room = (runs[0] - runs[0][0]) + (less[0] - less[0][0])  # a removed run may split one
    total = int(room[-1])
    to_begin, to_end = np.empty(total, np.uint32), np.empty(total, np.uint32)
    used = np.zeros(room.size - 1, np.int64)
    _subtract(runs, less, room, to_begin, to_end, used)
    return closed(room, used, to_begin, to_end)


# Runs along the rows of images to runs down their columns, or the reverse. The stretches on which
# neighbouring lines differ come from merging the ends of their runs; every pixel of a stretch
# begins or ends a run across the lines. The cost depends on the number of runs, not on the size of
# the image.


@inner
def _line_cuts(
    begin: Array, end: Array, k: int, last: int, line_begin: Any, length: Any, cuts: Array
) -> tuple[Any, Any]:
    """Begins and ends of runs within one line, their number, and the first run after it."""
    n = 0
    line_end = line_begin + length
    while k < last and np.int64(begin[k]) < line_end:
        cuts[n] = max(np.int64(begin[k]) - line_begin, 0)
        cuts[n + 1] = min(np.int64(end[k]) - line_begin, length)
        n += 2
        if np.int64(end[k]) > line_end:
            break
        k += 1
    return n, k


@inner
def _changes(one: Array, n: int, two: Array, m: int, out: Array) -> Any:
    """Begins and ends of the stretches on which exactly one of two lines has a run."""
    i, j, at = 0, 0, 0
    while i < n or j < m:
        if j == m or (i < n and one[i] <= two[j]):
            value = one[i]
            i += 1
        else:
            value = two[j]
            j += 1
        if at & 1 and out[at - 1] == value:
            at -= 1
        else:
            out[at] = value
            at += 1
    return at


@allocating
def _stretches(begin: Array, end: Array, size: int, stretch: Array, place: Array) -> Any:
    """Write first pixel, end and line of every stretch of a mask's runs.

    Also count opened minus closed stretches per pixel.
    """
    last = begin.size
    line, last_line = np.int64(begin[0]) // size, (np.int64(end[last - 1]) - 1) // size
    one, two = np.empty(size + 2, np.int64), np.empty(size + 2, np.int64)
    changes = np.empty(2 * size + 4, np.int64)
    n, m, k, used = 0, 0, 0, 0
    for y in range(line, last_line + 2):
        m = 0
        if y <= last_line:
            m, k = _line_cuts(begin, end, k, last, y * size, size, two)
        count = _changes(one, n, two, m, changes)
        for c in range(0, count, 2):
            stretch[used], stretch[used + 1], stretch[used + 2] = changes[c], changes[c + 1], y
            place[changes[c]] += 1
            place[changes[c + 1]] -= 1
            used += 3
        one, two = two, one
        n = m
    return used


@inner
def _positions(stretch: Array, filled: int, place: Array, n_lines: int, position: Array) -> None:
    """Begins and ends of runs across the lines, ascending."""
    for s in range(0, filled, 3):
        for x in range(stretch[s], stretch[s + 1]):
            position[place[x]] = x * n_lines + stretch[s + 2]
            place[x] += 1


@kernel
def transpose(runs: Runs, length: I64, lines: I64) -> Runs:
    """Runs of the same masks across the lines of the given ones.

    Args:
        length: int64 [n], pixels of a line: the width for runs along rows, the height for runs down
            columns.
        lines: int64 [n], number of lines.
    """
    start, begin, end = runs
    to_start = np.zeros(length.size + 1, np.int64)
    to_begin = np.empty(2 * begin.size + 16, np.uint32)
    to_end = np.empty(2 * begin.size + 16, np.uint32)
    at = 0
    for i in range(length.size):
        first, last = start[i], start[i + 1]
        to_start[i] = at
        if first == last:
            continue
        size = length[i]
        line = np.int64(begin[first]) // size
        last_line = (np.int64(end[last - 1]) - 1) // size
        # A run is a piece in every line it touches, and a piece is part of two stretches at most.
        stretch = np.empty(6 * (last - first + last_line - line + 1), np.int64)
        place = np.zeros(size + 1, np.int64)
        used = _stretches(begin[first:last], end[first:last], size, stretch, place)
        total, here = 0, 0
        for x in range(size):
            here += place[x]
            place[x] = total
            total += here
        position = np.empty(total, np.int64)
        _positions(stretch, used, place, lines[i], position)
        if at + total > to_begin.size:
            to_begin, to_end = longer(to_begin, 2 * (at + total)), longer(to_end, 2 * (at + total))
        first_run = at
        for p in range(0, total, 2):
            at = put(to_begin, to_end, first_run, at, position[p], position[p + 1])
    to_start[length.size] = at
    return to_start, to_begin[:at], to_end[:at]


# Erosion of masks along the lines of their runs.


@kernel
def erode_lines(runs: Runs, length: I64, depth: I64) -> Runs:
    """Remove pixels that are nearer than ``depth`` to a zero on their line, or to its ends.

    Args:
        length: int64 [n], pixels of a line.
        depth: int64 [n], 1 or more.
    """
    start, begin, end = runs
    to_start = np.zeros(length.size + 1, np.int64)
    to_begin = np.empty(begin.size + 16, np.uint32)
    to_end = np.empty(begin.size + 16, np.uint32)
    at = 0
    for i in range(length.size):
        to_start[i] = at
        size, d, line = length[i], depth[i], 0
        first_run = at
        for k in range(start[i], start[i + 1]):
            low, high = np.int64(begin[k]), np.int64(end[k])
            if low >= line + size:
                line = low - low % size
            while low < high:  # a piece in each line that the run touches
                stop = min(high, line + size)
                if at == to_begin.size:
                    to_begin, to_end = longer(to_begin, 2 * at), longer(to_end, 2 * at)
                at = put(to_begin, to_end, first_run, at, low + d, stop - d)
                low = stop
                if stop == line + size:
                    line += size
    to_start[length.size] = at
    return to_start, to_begin[:at], to_end[:at]


# Area and bounding box of masks. Source: pycocotools ``rleArea``, ``rleToBbox``.


@kernel
def mask_extents(runs: Runs, height: I64) -> tuple[Array, Array]:
    """Area int64 [n] and bounding box float64 [n, 4] of each mask, pixels.

    The box is xmin, ymin, xmax, ymax of the set pixels with their full extent. As in pycocotools, a
    run that continues in another column makes it as high as the image, and an empty mask has zeros.

    Args:
        height: int64 [n], pixels.
    """
    start, begin, end = runs
    area, box = np.zeros(height.size, np.int64), np.zeros((height.size, 4), np.float64)
    for i in range(area.size):
        h = height[i]
        total: Any = 0
        top = h
        bottom: Any = 0
        first, last = start[i], start[i + 1]
        # A column costs a division; runs ascend, so most are in the column found last.
        column: Any = -1
        for k in range(first, last):
            low, high = np.int64(begin[k]), np.int64(end[k]) - 1
            total += high + 1 - low
            if column < 0 or low >= column + h:
                column = low - low % h
            if high >= column + h:
                top, bottom = 0, h
                column = high - high % h
            else:
                top = min(top, low - column)
                bottom = max(bottom, high - column + 1)
        area[i] = total
        if total > 0:
            box[i, 0] = np.int64(begin[first]) // h
            box[i, 1] = top
            box[i, 2] = (np.int64(end[last - 1]) - 1) // h + 1
            box[i, 3] = bottom
    return area, box


# Pixels that pairs of masks share, counted on their runs. Source: pycocotools ``rleIou``.


@inner
def _first_after(end: Array, low: int, high: int, position: Any) -> Any:
    while low < high:
        middle = (low + high) >> 1
        if end[middle] <= position:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def shared(runs: Any, row: int, other_runs: Any, other: int) -> Any:
    """Pixels that a mask shares with another one."""
    (start, begin, end), (other_start, other_begin, other_end) = runs, other_runs
    i: Any = start[row]
    j: Any = other_start[other]
    last, other_last = start[row + 1], other_start[other + 1]
    if i == last or j == other_last:
        return 0
    i = _first_after(end, i, last, other_begin[j])
    if i == last:
        return 0
    j = _first_after(other_end, j, other_last, begin[i])
    total: Any = 0
    while i < last and j < other_last:
        e, f = np.int64(end[i]), np.int64(other_end[j])
        common: Any = min(e, f) - max(np.int64(begin[i]), np.int64(other_begin[j]))
        total += max(common, 0)
        i += np.int64(e <= f)
        j += np.int64(f <= e)
    return total


@kernel
def mask_overlaps(
    runs: Runs, box: F64, other_runs: Runs, other_box: F64, row: I32, other: I32
) -> Array:
    """Shared pixels of pairs of masks of equal size, int64 [k].

    Args:
        box: float64 [n, 4], their bounding boxes; pairs with disjoint boxes are skipped.
        other_runs: m masks.
        other_box: float64 [m, 4].
    """
    n = np.empty(row.size, np.int64)
    for k in range(n.size):
        a, b = row[k], other[k]
        n[k] = 0
        if min(box[a, 2], other_box[b, 2]) > max(box[a, 0], other_box[b, 0]) and min(
            box[a, 3], other_box[b, 3]
        ) > max(box[a, 1], other_box[b, 1]):
            n[k] = shared(runs, a, other_runs, b)
    return n


# Rings of polygons to runs, exactly as pycocotools rasterises them: vertices are scaled by 5, and
# edges are sampled along their longer axis. An edge crosses the image's column x between the fine
# columns 5 x + 2 and 5 x + 3, at the smaller y of both samples, clamped and rounded up. Runs
# alternately begin and end at the sorted crossings of a column.
# Only these samples are computed, so the cost of an edge is the number of columns it crosses.
# Source: pycocotools ``rleFrPoly``.

_SCALE = 5.0
_FAR = 1 << 30  # in fifths of a pixel; beyond it integers of the C source overflow


@inner
def _fine(value: float) -> Any:
    """A coordinate in fifths of a pixel, rounded half up, and towards zero if negative."""
    return np.int64(min(max(_SCALE * value + 0.5, -1.0 * _FAR), 1.0 * _FAR))


@inner
def _columns(a: int, b: int, width: int) -> tuple[Any, Any]:
    """Columns [first, last) of the image whose middle is between two fine columns."""
    low, high = min(a, b), max(a, b)
    first = max((low + 2) // 5, 0)  # smallest x with 5 x + 2 >= low
    last = min((high - 3) // 5 + 1, width) if high >= 3 else 0
    return first, last


@inner
def _pixel(v: int, height: int) -> Any:
    """A fine row as a row of the image, rounded up."""
    return np.int64(np.ceil(min(max((v + 0.5) / _SCALE - 0.5, 0.0), 1.0 * height)))


@inner
def sort_range(values: Array, first: int, last: int) -> None:
    """Sort a few values in place with Shell's sort."""
    gap = 1
    while gap < (last - first) // 9:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(first + gap, last):
            value = values[i]
            k = i
            while k >= first + gap and values[k - gap] > value:
                values[k] = values[k - gap]
                k -= gap
            values[k] = value
        gap //= 3


@inner
def _cross(
    xs: Any,
    ys: Any,
    xe: Any,
    ye: Any,
    height: int,
    first: int,
    last: int,
    place: Array,
    base: int,
    y: Array,
) -> None:
    """Write the crossings of an edge with the columns [first, last)."""
    dx, dy = abs(xe - xs), abs(ye - ys)
    if (dx >= dy and xs > xe) or (dx < dy and ys > ye):
        xs, xe, ys, ye = xe, xs, ye, ys
    slope = (ye - ys) / dx if dx >= dy else (xe - xs) / dy
    for column in range(first, last):
        u = 5 * column + 2
        if dx >= dy:
            t: Any = u - xs
            v: Any = min(np.int64(ys + slope * t + 0.5), np.int64(ys + slope * (t + 1) + 0.5))
        else:
            # First sample on the other side of the middle: estimated, then made exact with the
            # very expression of the samples.
            rising = slope > 0
            t = min(max(np.int64((u + 0.5 - xs) / slope), 1), dy)
            while t > 1 and (np.int64(xs + slope * (t - 1) + 0.5) > u) == rising:
                t -= 1
            while t < dy and (np.int64(xs + slope * t + 0.5) > u) != rising:
                t += 1
            v = ys + t - 1
        y[place[column - base]] = _pixel(v, height)
        place[column - base] += 1


@kernel
def _count_crossings(
    xy: F64, ring_start: I64, width: I64, n: Array, low: Array, high: Array
) -> None:
    """Crossings of each ring, and their columns [low, high)."""
    for r in range(n.size):
        begin, end = ring_start[r], ring_start[r + 1]
        low[r], high[r], n[r] = width[r], 0, 0
        if begin == end:
            continue
        a = _fine(xy[end - 1, 0])
        for i in range(begin, end):
            b = _fine(xy[i, 0])
            first, last = _columns(a, b, width[r])
            if first < last:
                n[r] += last - first
                low[r] = min(low[r], first)
                high[r] = max(high[r], last)
            a = b


@kernel
def _fill(
    xy: F64,
    ring_start: I64,
    size: tuple[I64, I64],
    bounds: tuple[I64, I64],
    room: I64,
    out: tuple[Array, Array, Array],
) -> None:
    (height, width), (low, high) = size, bounds
    to_begin, to_end, used = out
    place, y = np.empty(0, np.int64), np.empty(0, np.int64)
    for r in range(used.size):
        used[r] = 0
        columns, base = high[r] - low[r], low[r]
        if columns <= 0:
            continue
        begin, end = ring_start[r], ring_start[r + 1]
        if place.size < columns + 1:
            place = np.empty(2 * columns + 1, np.int64)
        if y.size < 2 * (room[r + 1] - room[r]):
            y = np.empty(4 * (room[r + 1] - room[r]), np.int64)
        place[: columns + 1] = 0
        # first the offset of each column's crossings ...
        a = _fine(xy[end - 1, 0])
        for i in range(begin, end):
            b = _fine(xy[i, 0])
            first, last = _columns(a, b, width[r])
            if first < last:
                place[first - base] += 1
                place[last - base] -= 1
            a = b
        total, crossing = 0, 0
        for c in range(columns):
            crossing += place[c]
            place[c] = total
            total += crossing
        # ... then the crossings
        xs, ys = _fine(xy[end - 1, 0]), _fine(xy[end - 1, 1])
        for i in range(begin, end):
            xe, ye = _fine(xy[i, 0]), _fine(xy[i, 1])
            first, last = _columns(xs, xe, width[r])
            if first < last:
                _cross(xs, ys, xe, ye, height[r], first, last, place, base, y)
            xs, ys = xe, ye
        at = room[r]
        k = 0
        for c in range(columns):
            column_end = place[c]
            sort_range(y, k, column_end)
            line = (base + c) * height[r]
            while k + 1 < column_end:
                at = put(to_begin, to_end, room[r], at, line + y[k], line + y[k + 1])
                k += 2
            k = column_end
        used[r] = at - room[r]


def rasterise_rings(xy: Array, ring_start: Array, height: Array, width: Array) -> Runs:
    """Rasterise rings, one mask each, down the columns.

    Args:
        xy: float64 [p, 2], vertices in pixels, finite, clamped to 2^30 fifths of a pixel; the last
            one of a ring need not repeat the first.
        ring_start: int64 [n + 1], offsets of the rings' vertices; need not start at 0.
        height: int64 [n], of the image of each ring, pixels.
        width: int64 [n].
    """
    n = np.empty(height.size, np.int64)
    low, high = np.empty_like(n), np.empty_like(n)
    _count_crossings(xy, ring_start, width, n, low, high)
    room = np.zeros(n.size + 1, np.int64)
    np.cumsum(n >> 1, out=room[1:])  # a closed ring crosses a column an even number of times
    begin, end = np.empty(int(room[-1]), np.uint32), np.empty(int(room[-1]), np.uint32)
    used = np.empty(n.size, np.int64)
    _fill(xy, ring_start, (height, width), (low, high), room, (begin, end, used))
    return closed(room, used, begin, end)


# Shared areas of valid polygons by Green's theorem: the sum, over all pairs of edges whose extents
# in x overlap, of the product of both signs (+1 for upper, -1 for lower edges) and the integral of
# the lower edge over that overlap. Holes and parts are only more edges, and no crossing points are
# computed. Source: O'Rourke, Computational Geometry in C, 1998, 1.3, extended to two polygons.

Edges = tuple[I64, F64]
"""int64 [n + 1], offsets of each polygon's edges; float64 [e, 5]: left x and y, right x and y, and
1 or -1 for an upper or a lower edge, by ascending left x.
"""

_WHOLE = 1e-12  # relative to the smaller area: a smaller difference from 0 or all of it is rounding


@kernel
def _edges(
    xy: F64,
    ring_start: I64,
    part_start: I64,
    start: I64,
    loose: Array,
    edge_start: Array,
    edge: Array,
) -> int:
    end = 0
    for i in range(start.size - 1):
        at = 0
        for part in range(start[i], start[i + 1]):
            for ring in range(part_start[part], part_start[part + 1]):
                low, high = ring_start[ring], ring_start[ring + 1]
                twice, k = 0.0, high - 1
                x, y = xy[low, 0], xy[low, 1]  # near the origin areas are more exact
                for p in range(low, high):
                    twice += (xy[k, 0] - x) * (xy[p, 1] - y) - (xy[p, 0] - x) * (xy[k, 1] - y)
                    k = p
                # anticlockwise outside and clockwise holes have upper edges that lead left
                outside = 1.0 if (twice > 0) == (ring == part_start[part]) else -1.0
                k = high - 1
                for p in range(low, high):
                    if xy[k, 0] != xy[p, 0]:
                        leads_left = xy[p, 0] < xy[k, 0]
                        left, right = (p, k) if leads_left else (k, p)
                        loose[at, 0], loose[at, 1] = xy[left, 0], xy[left, 1]
                        loose[at, 2], loose[at, 3] = xy[right, 0], xy[right, 1]
                        loose[at, 4] = outside if leads_left else -outside
                        at += 1
                    k = p
        order = np.argsort(loose[:at, 0])
        for k in range(at):
            for field in range(5):
                edge[end + k, field] = loose[order[k], field]
        end += at
        edge_start[i + 1] = end
    return end


def edges(xy: Array, ring_start: Array, part_start: Array, start: Array) -> Edges:
    """Edges of polygons that are not vertical.

    Args:
        xy: float64 [p, 2].
        ring_start: int64 [r + 1], offsets of the rings' points, from 0.
        part_start: int64 [q + 1], offsets of the parts' rings, the outer ring first.
        start: int64 [n + 1], offsets of the polygons' parts.
    """
    edge_start = np.zeros(start.size, np.int64)
    edge = np.empty((xy.shape[0], 5), np.float64)
    most = int(np.diff(ring_start[part_start[start]]).max(initial=0))
    n = _edges(xy, ring_start, part_start, start, np.empty((most, 5), np.float64), edge_start, edge)
    return edge_start, edge[:n]


@kernel
def polygon_areas(edges: Edges, box: F64) -> Array:
    """Areas of polygons, float64 [n], bit-identical for any first point and direction of the rings.

    Args:
        box: float64 [n, 4], their xmin, ymin, xmax, ymax.
    """
    area = np.empty(box.shape[0], np.float64)
    start, edge = edges
    for i in range(area.size):
        first, base = start[i], box[i, 1]
        terms = np.empty(start[i + 1] - first, np.float64)
        for k in range(terms.size):
            left, y, right, far_y, sign = edge[first + k]
            terms[k] = sign * (right - left) * ((y - base) + (far_y - base))
        sort_range(terms, 0, terms.size)  # the order of a ring's points makes no difference
        total = 0.0
        for term in terms:
            total += term
        area[i] = max(0.5 * total, 0.0)
    return area


@inner
def _height(edge: Array, i: int, x: float, base: float) -> Any:
    """An edge's height above ``base`` at x, exact at its ends.

    ``base`` is subtracted before multiplying, to keep digits far from the origin (map coordinates).
    """
    if x == edge[i, 0]:
        return edge[i, 1] - base
    if x == edge[i, 2]:
        return edge[i, 3] - base
    share = (x - edge[i, 0]) / (edge[i, 2] - edge[i, 0])
    return (edge[i, 1] - base) + share * (edge[i, 3] - edge[i, 1])


@inner
def _below_both(a: Array, i: int, b: Array, j: int, base: float) -> Any:
    """Integral of the lower of two edges, above ``base``, over their overlap in x."""
    left, right = max(a[i, 0], b[j, 0]), min(a[i, 2], b[j, 2])
    one, two = _height(a, i, left, base), _height(b, j, left, base)
    far_one, far_two = _height(a, i, right, base), _height(b, j, right, base)
    gap_left, gap_right = one - two, far_one - far_two
    low, far_low = min(one, two), min(far_one, far_two)
    width = 0.5 * (right - left)
    if gap_left * gap_right >= 0:
        return width * (low + far_low)
    share = gap_left / (gap_left - gap_right)
    crossing = one + share * (far_one - one)
    return width * (share * (low + crossing) + (1.0 - share) * (crossing + far_low))


@kernel
def shared_polygon_areas(
    one: tuple[Edges, F64, F64], two: tuple[Edges, F64, F64], row: I32, other: I32
) -> Array:
    """Areas that pairs of polygons share.

    Args:
        one: edges, areas float64 [n] and boxes float64 [n, 4] (xmin, ymin, xmax, ymax) of n valid
            polygons, whose rings cross neither themselves nor each other.
        two: the same of ``other``.

    Returns:
        float64 [k]; exactly 0, or the whole smaller area, if the difference is at most 1e-12 of it.
    """
    (start, edge), area, box = one
    (other_start, other_edge), other_area, other_box = two
    shared = np.empty(row.size, np.float64)
    longest = 0
    for j in range(other_start.size - 1):
        longest = max(longest, other_start[j + 1] - other_start[j])
    following = np.empty(longest + 1, np.int64)
    for k in range(row.size):
        a, b = row[k], other[k]
        shared[k] = 0.0
        left, right = max(box[a, 0], other_box[b, 0]), min(box[a, 2], other_box[b, 2])
        base, top = max(box[a, 1], other_box[b, 1]), min(box[a, 3], other_box[b, 3])
        if left >= right or base >= top:
            continue
        total = 0.0
        # Edges ascend by their left ends: an edge of the other polygon that ends before this one
        # begins overlaps no later one either, and is unlinked.
        first, last = other_start[b], other_start[b + 1]
        for j in range(last - first + 1):
            following[j] = j  # the head at 0, then of each edge
        for i in range(start[a], start[a + 1]):
            if edge[i, 0] >= right:
                break
            if edge[i, 2] <= left:
                continue
            before = 0
            at: Any = following[0]
            while at < last - first:
                j = first + at
                if other_edge[j, 0] >= edge[i, 2]:
                    break
                after: Any = following[at + 1]
                if other_edge[j, 2] > edge[i, 0]:
                    sign = edge[i, 4] * other_edge[j, 4]
                    total += sign * _below_both(edge, i, other_edge, j, base)
                    before = at + 1
                else:
                    following[before] = after
                at = after
        most = min(area[a], other_area[b])
        if total > _WHOLE * most:
            shared[k] = total if total < most - _WHOLE * most else most
    return shared
