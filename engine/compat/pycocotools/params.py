"""``Params``: settings of an evaluation, with the names and defaults of pycocotools."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from ...schemas.errors import OptionError, unknown
from ...tasks.detection.sigmas import NAMED

_SIDE = 1e5
_DETECTION = {
    "maxDets": [1, 10, 100],
    "areaRng": [[0**2, _SIDE**2], [0**2, 32**2], [32**2, 96**2], [96**2, _SIDE**2]],
    "areaRngLbl": ["all", "small", "medium", "large"],
}
_KEYPOINTS = {
    "maxDets": [20],
    "areaRng": [[0**2, _SIDE**2], [32**2, 96**2], [96**2, _SIDE**2]],
    "areaRngLbl": ["all", "medium", "large"],
    "kpt_oks_sigmas": np.array(NAMED["coco"]),
}
_DEFAULTS: dict[str, dict[str, Any]] = {
    "bbox": _DETECTION,
    "segm": _DETECTION,
    "keypoints": _KEYPOINTS,
}
"""``iouType`` -> attributes that differ by it."""


class Params:
    """Settings of an evaluation.

    Args:
        iouType: ``bbox``, ``segm`` or ``keypoints``.

    Attributes:
        imgIds: ids of the images.
        catIds: ids of the categories.
        iouThrs: float64 [T], IoU thresholds.
        recThrs: float64 [R], ascending recall levels.
        maxDets: numbers of results per image and category that count.
        areaRng: [low, high] each, squared pixels, both included.
        areaRngLbl: their names.
        useCats: 1 to match within categories, 0 to ignore them.
        iouType: kind of comparison.
        kpt_oks_sigmas: float64 [k], only for ``keypoints``.
        useSegm: None; 0 or 1 are bbox and segm.

    Raises:
        OptionError: another ``iouType``.
    """

    imgIds: list[Any]
    catIds: list[Any]
    iouThrs: Any
    recThrs: Any
    maxDets: list[int]
    areaRng: list[Any]
    areaRngLbl: list[str]
    useCats: int
    useSegm: int | None
    kpt_oks_sigmas: Any

    def __init__(self, iouType: str = "segm") -> None:
        if iouType not in _DEFAULTS:
            raise unknown("iouType", iouType, _DEFAULTS, before="iouType not supported: ")
        self.imgIds, self.catIds = [], []
        self.iouThrs = np.linspace(0.5, 0.95, 10)
        self.recThrs = np.linspace(0.0, 1.0, 101)
        self.useCats = 1
        self.__dict__.update(copy.deepcopy(_DEFAULTS[iouType]))
        self.iouType = iouType
        self.useSegm = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Params:
        made = copy.copy(self)
        for name, value in self.__dict__.items():
            # Ids are never changed in place, and there may be very many of them.
            plain = name in ("imgIds", "catIds") and isinstance(value, list)
            made.__dict__[name] = list(value) if plain else copy.deepcopy(value, memo)
        return made


def thresholds(params: Params) -> list[float]:
    """Return the IoU thresholds.

    Raises:
        OptionError: none given, or one that is not above 0.
    """
    found = [float(iou) for iou in params.iouThrs]
    wrong = [iou for iou in found if not iou > 0]
    if wrong or not found:
        raise OptionError(f"params.iouThrs={found}: IoU thresholds lie above 0.")
    return found
