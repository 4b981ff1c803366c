"""Lines that ``summarize`` prints: numbers of ``eval``, by ``iouType``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ...schemas.arrays import Array
from .params import Params


class Line(NamedTuple):
    """One printed number.

    Attributes:
        of: ``precision`` or ``recall``, an array of ``eval``.
        place: index of the cap in ``maxDets``; None if ``cap`` is given.
        iou: the IoU threshold; None for the mean of all.
        area: name of the area range.
        cap: the cap itself, independent of ``maxDets``.
    """

    of: str
    place: int | None = None
    iou: float | None = None
    area: str = "all"
    cap: int = 0


_SIZES = ("small", "medium", "large")
_DETECTION = (
    Line("precision", cap=100),
    Line("precision", 2, 0.5),
    Line("precision", 2, 0.75),
    *(Line("precision", 2, area=size) for size in _SIZES),
    *(Line("recall", place) for place in range(3)),
    *(Line("recall", 2, area=size) for size in _SIZES),
)
_KEYPOINTS = tuple(
    Line(of, cap=20, **chosen)
    for of in ("precision", "recall")
    for chosen in ({}, {"iou": 0.5}, {"iou": 0.75}, {"area": "medium"}, {"area": "large"})
)
SUMMARIES = {"bbox": _DETECTION, "segm": _DETECTION, "keypoints": _KEYPOINTS}
"""``iouType`` -> its lines."""

_TITLES = {"precision": ("Average Precision", "(AP)"), "recall": ("Average Recall", "(AR)")}


def number(line: Line, found: Mapping[str, Any], params: Params) -> tuple[float, str]:
    """Return a number, -1 if undefined, and its printed line.

    Args:
        found: ``eval``.
        params: defines the axes of the arrays.
    """
    cap = line.cap if line.place is None else params.maxDets[line.place]
    values: Array = found[line.of]
    if line.iou is not None:
        values = values[np.flatnonzero(np.asarray(params.iouThrs) == line.iou)]
    areas = [i for i, name in enumerate(params.areaRngLbl) if name == line.area]
    caps = [i for i, one in enumerate(params.maxDets) if one == cap]
    values = values[..., areas, caps]
    defined = values[values > -1]
    mean: Any = np.mean(defined) if defined.size else -1
    iou = f"{line.iou:0.2f}" if line.iou is not None else _span(params)
    title, short = _TITLES[line.of]
    said = f"IoU={iou:<9} | area={line.area:>6s} | maxDets={cap:>3d} ] = {mean:0.3f}"
    return mean, f" {title:<18} {short} @[ {said}"


def _span(params: Params) -> str:
    return f"{params.iouThrs[0]:0.2f}:{params.iouThrs[-1]:0.2f}"
