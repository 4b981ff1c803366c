"""Reference of IoU of 3-D boxes, with Shapely."""

from __future__ import annotations

from typing import Any

import shapely

from .oriented import corners


def ground(box: Any) -> shapely.Polygon:
    """Return the footprint of cx, cy, cz, length, width, height, yaw (radians, x towards y)."""
    return shapely.Polygon(corners((box[0], box[1], box[3], box[4], box[6])))


def iou_3d(one: Any, two: Any, crowd: bool = False) -> float:
    """Compute IoU of volumes; for a crowd, the shared volume over that of the first box."""
    a, b = ground(one), ground(two)
    top = min(one[2] + one[5] / 2, two[2] + two[5] / 2)
    both = max(0.0, top - max(one[2] - one[5] / 2, two[2] - two[5] / 2))
    shared = a.intersection(b).area * both
    first, second = a.area * one[5], b.area * two[5]
    union = first if crowd else first + second - shared
    return float(shared / union) if union > 0 else 0.0


def iou_bev(one: Any, two: Any, crowd: bool = False) -> float:
    """Compute IoU of footprints."""
    flat = (0.0, 1.0)
    a, b = ((*box[:2], flat[0], *box[3:5], flat[1], box[6]) for box in (one, two))
    return iou_3d(a, b, crowd)
