"""Maps of segments: ids from colours, and which pixels lie near the edge of their segment."""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, kernel

Array = np.ndarray[Any, Any]

INSIDE = -1
"""What stands for pixels that are far from the edge of their segment."""


@kernel
def _join(red: Any, green: Any, blue: Any, out: Any) -> None:
    for i in range(out.size):
        out[i] = np.int32(red[i]) | np.int32(green[i]) << 8 | np.int32(blue[i]) << 16


def colour_ids(colours: Array) -> Array:
    """R + 256 G + 65536 B of every pixel, int32 [height, width].

    Args:
        colours: uint8 [3 or more, height, width], red, green and blue first.
    """
    planes = [frozen(plane.reshape(-1), np.uint8) for plane in colours[:3]]
    out = np.empty(planes[0].size, np.int32)
    _join(*planes, out)
    return out.reshape(colours.shape[1:])


@kernel
def _edges(ids: Any, depth: Any, out: Any) -> None:
    """Ids where some pixel within a square around has another one, else ``INSIDE``.

    A pixel is inside if the pixels beside it in its row have its id, as far as ``depth``, and all
    of that holds of the pixels above and below it as well. Both are runs: of equal ids along a
    row, then of pixels that are inside their row down a column.

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
    """The map with ``INSIDE`` for pixels farther than a distance from every other segment.

    Of each segment that leaves its boundary: the mask less what d erosions by 3 x 3 pixels leave
    of it, what lies around the image being no part of it. Pixels of id 0 stay as they are.

    Args:
        ids: int32 [height, width], 0 or more.
        depth: d, 1 or more.

    Returns:
        int32 [height, width].
    """
    out = np.empty(ids.shape, np.int32)
    _edges(frozen(ids, np.int32), depth, out)
    return out
