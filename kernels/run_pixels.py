"""Runs of ones in pixels, and pixels of runs."""

from __future__ import annotations

import numpy as np

from .jit import frozen, kernel
from .run_layout import Array, Runs


@kernel
def _count(pixel: Array, offset: Array, start: Array) -> None:
    """Offsets of the runs of each image."""
    for i in range(start.size - 1):
        n, before = 0, False
        for p in range(offset[i], offset[i + 1]):
            here = pixel[p] != 0
            n += here and not before
            before = here
        start[i + 1] = start[i] + n


@kernel
def _scan(pixel: Array, offset: Array, start: Array, begin: Array, end: Array) -> None:
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
    """Runs of the pixels that are not 0, in the order they stand in.

    Args:
        pixel: uint8, the pixels of all images.
        offset: int64 [n + 1], where each image starts in them; none has 2^32 pixels.

    Returns:
        runs of n masks, along the lines in which the pixels are given.
    """
    pixels, at = frozen(pixel, np.uint8), frozen(offset, np.int64)
    start = np.zeros(at.size, np.int64)
    _count(pixels, at, start)
    begin, end = np.empty(int(start[-1]), np.uint32), np.empty(int(start[-1]), np.uint32)
    _scan(pixels, at, frozen(start, np.int64), begin, end)
    return start, begin, end


@kernel
def _paint(begin: Array, end: Array, pixel: Array) -> None:
    for k in range(begin.size):
        for p in range(np.int64(begin[k]), np.int64(end[k])):
            pixel[p] = 1


def paint(begin: Array, end: Array, pixels: int) -> Array:
    """The pixels of one mask, uint8 [pixels]: 1 on its runs, 0 elsewhere, along their lines.

    Args:
        begin: uint32 [r].
        end: uint32 [r].
        pixels: height * width.
    """
    out = np.zeros(pixels, np.uint8)
    _paint(frozen(begin, np.uint32), frozen(end, np.uint32), out)
    return out
