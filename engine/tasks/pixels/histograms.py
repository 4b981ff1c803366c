"""Joint histograms of pairs of label maps with arbitrary integers."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from ...kernels.pair_counts import count_wide
from ...kernels.pixel_counts import ByteCounter
from ...schemas.arrays import Array
from ...schemas.errors import InputError

NOTHING = np.iinfo(np.int32).min
"""Index for "no label": pixels of a datum that a side does not have."""
_INT32 = np.iinfo(np.int32)
_BYTE, _FAR = 255, 16


class Pairs(msgspec.Struct, frozen=True):
    """Number of pixels by pair of indices, per pair of maps.

    Attributes:
        place: int64 [n], index of the pair of maps.
        truth: int64 [n], index in the ground truth, or ``NOTHING``.
        found: int64 [n], index in the prediction, or ``NOTHING``.
        count: int64 [n], pixels.
    """

    place: Array
    truth: Array
    found: Array
    count: Array

    @staticmethod
    def joined(parts: Sequence[Pairs]) -> Pairs:
        """All of them in one."""
        none = np.empty(0, np.int64)
        return Pairs(
            *(
                np.concatenate([none, *(getattr(part, name) for part in parts)])
                for name in Pairs.__struct_fields__
            )
        )


class Counter:
    """Counts pairs of maps, or of parts of them; one for each thread."""

    def __init__(self) -> None:
        self._bytes: ByteCounter | None = None
        self._places: list[int] = []
        self._parts: list[Array] = []

    def add(self, place: int, truth: Array | None, found: Array | None) -> None:
        """Count a pair of maps; for a side that is None every pixel is ``NOTHING``.

        Args:
            place: index of the pair.
            truth: integers [h, w].
            found: integers [h, w], of the same shape.
        """
        given = [narrowed(side) for side in (truth, found) if side is not None]
        first, second = given if len(given) == 2 else (given[0], np.zeros_like(given[0]))
        if truth is None:
            first, second = second, first
        if first.dtype == second.dtype == np.uint8:
            if self._bytes is None:
                self._bytes = ByteCounter()
            self._bytes.add(first, second)
            part = self._bytes.take()
        else:
            part = np.stack(count_wide(first, second))
        if truth is None:
            part[0] = NOTHING
        if found is None:
            part[1] = NOTHING
        self._places.append(place)
        self._parts.append(part)

    def taken(self) -> Pairs:
        """All that was counted."""
        many = [part.shape[1] for part in self._parts]
        place = np.repeat(np.array(self._places, np.int64), many)
        return Pairs(place, *np.concatenate([np.empty((3, 0), np.int64), *self._parts], axis=1))


def narrowed(side: Array) -> Array:
    """Return indices as bytes if they fit, else as int32.

    Raises:
        InputError: an index beyond int32.
    """
    if side.dtype == np.uint8:
        return side
    if side.dtype == np.bool_:
        return side.view(np.uint8)
    if (
        side[::_FAR, ::_FAR].max(initial=0) <= _BYTE
    ):  # ids of segments show at once that they are not
        small = side.astype(np.uint8)
        if bool((small == side).all()):
            return small
    if side.dtype.itemsize > 4 or side.dtype == np.uint32:
        low, high = int(side.min()), int(side.max())
        if low <= _INT32.min or high > _INT32.max:
            raise InputError(
                f"label indices from {low} to {high}: they must lie within 32 bits with a sign."
                " Give labels smaller indices.",
                code="too_high",
                low=low,
                high=high,
            )
    return side.astype(np.int32, copy=False)
