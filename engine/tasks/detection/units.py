"""Boxes of the two sides in different units: the commonest cause of a mAP of 0.

Some datums are looked at. Where boxes hardly meet as they are, and meet well once those of one side
are read in another way, that way is told; the numbers themselves stay what the tables say.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ingest.problems import Note
from ...schemas.wording import option

if TYPE_CHECKING:
    from .encode import Side

Array = np.ndarray[Any, Any]

_DATUMS = 200  # looked at, evenly spaced among those of both sides
_ROWS = 100  # of a datum and side
_LEAST = 10  # boxes on each side, below which little is said
_FEWEST = 3  # of which shares beside pixels can be told, which no model gives by chance
_POOR, _GOOD = 0.25, 0.5  # mean of the best IoU of each ground truth, as they are and otherwise
_SHARE = 1.5  # coordinates up to here may be shares of an image
_PIXELS = 8.0  # medians from here on are no shares


_PAIRS = (("predictions", "ground truths"), ("ground truths", "predictions"))
Reading = Callable[[Array], Array]
"""From boxes as corners, float64 [k, 4], to what else the four numbers may mean."""


def _from_centre(boxes: Array) -> Array:
    """Boxes whose first corner is a centre, the second lying as far from it as they are wide."""
    half = (boxes[:, 2:] - boxes[:, :2]) / 2
    return np.concatenate([boxes[:, :2] - half, boxes[:, :2] + half], axis=1)


def _from_extents(boxes: Array) -> Array:
    """Boxes whose second corner is a width and a height."""
    return np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], axis=1)


def _from_centre_and_extents(boxes: Array) -> Array:
    half = boxes[:, 2:] / 2
    return np.concatenate([boxes[:, :2] - half, boxes[:, :2] + half], axis=1)


def _transposed(boxes: Array) -> Array:
    return boxes[:, [1, 0, 3, 2]]


_READINGS: tuple[tuple[str, Reading], ...] = (
    (
        "hold centres where corners are expected (cx, cy, width, height: "
        + option("box_format", "cxcywh")
        + ")",
        _from_centre,
    ),
    (
        "hold widths and heights where the second corners are expected (x, y, width, height: "
        + option("box_format", "xywh")
        + ")",
        _from_extents,
    ),
    (
        "hold centres, widths and heights where corners are expected ("
        + option("box_format", "cxcywh")
        + ")",
        _from_centre_and_extents,
    ),
    ("have x and y exchanged", _transposed),
)


def apart(predictions: Side, truths: Side, n_datums: int) -> Note | None:
    """A warning of boxes that do not meet but would in another unit or form; None without one.

    Args:
        predictions: rows of the predictions.
        truths: rows of the ground truths.
        n_datums: number of datums.
    """
    ours, theirs = _sample(predictions, truths, n_datums)
    fewest = min(sum(map(len, ours)), sum(map(len, theirs)))
    if fewest < _FEWEST:
        return None
    if _fit(ours, theirs) >= _POOR:
        return None
    boxes = {"predictions": ours, "ground truths": theirs}
    extreme = {name: np.abs(np.concatenate(side)) for name, side in boxes.items()}
    for name, other in _PAIRS:
        shares = extreme[name].max() <= _SHARE and (_extents(boxes[name]) > 0).any()
        if shares and np.median(extreme[other]) >= _PIXELS:
            return _warning(
                f"the {name} lie within 0 to {_SHARE:g}, as shares of an image do, and the {other}"
                " in pixels. Multiply x by the image's width and y by its height"
            )
    if fewest < _LEAST:
        return None
    for name, other in _PAIRS:

        def fit(reading: Reading, name: str = name) -> float:
            read = {**boxes, name: [reading(one) for one in boxes[name]]}
            return _fit(*read.values())

        for said, reading in _READINGS:
            if fit(reading) >= _GOOD:
                return _warning(f"the {name} seem to {said}")
        mine, others = (np.median(_extents(boxes[side]), axis=0) for side in (name, other))
        with np.errstate(divide="ignore", invalid="ignore"):  # boxes without area have no factor
            factor = others / mine
        scale = np.concatenate([factor, factor])
        if np.isfinite(scale).all() and fit(partial(np.multiply, scale)) >= _GOOD:
            return _warning(
                f"the {name} meet the {other} once x is multiplied by about {factor[0]:.1g} and y"
                f" by about {factor[1]:.1g}: the images were scaled"
            )
    return None


def _warning(said: str) -> Note:
    return Note(
        "boxes_apart",
        f"boxes of the two sides hardly meet, and the numbers mean little: {said}.",
        warning=True,
    )


def _sample(predictions: Side, truths: Side, n_datums: int) -> tuple[list[Array], list[Array]]:
    """Boxes of some datums that both sides have, float64 [k, 4] a datum and side."""
    both = np.bincount(predictions.datum, minlength=n_datums) > 0
    both &= np.bincount(truths.datum, minlength=n_datums) > 0
    common = np.flatnonzero(both)
    chosen = common[:: max(1, common.size // _DATUMS)]
    place = np.full(n_datums, -1, np.int32)
    place[chosen] = np.arange(chosen.size)
    found = []
    for side in (predictions, truths):
        rows = np.flatnonzero(place[side.datum] >= 0)
        boxes, at = side.boxes(rows), place[side.datum[rows]]
        order = np.argsort(at, kind="stable")
        cuts = np.searchsorted(at[order], np.arange(1, chosen.size))
        found.append([part[:_ROWS] for part in np.split(boxes[order], cuts)] if chosen.size else [])
    return found[0], found[1]


def _extents(side: list[Array]) -> Array:
    boxes: Array = np.concatenate(side)
    extents: Array = boxes[:, 2:] - boxes[:, :2]
    return extents


def _fit(predictions: list[Array], truths: list[Array]) -> float:
    """Mean over the ground truths of the best IoU that a prediction of their datum has."""
    total, n = 0.0, 0
    for ours, theirs in zip(predictions, truths, strict=True):
        low = np.maximum(ours[:, None, :2], theirs[None, :, :2])
        high = np.minimum(ours[:, None, 2:], theirs[None, :, 2:])
        shared = np.clip(high - low, 0, None).prod(axis=-1)
        area = [np.clip(one[:, 2:] - one[:, :2], 0, None).prod(axis=-1) for one in (ours, theirs)]
        union = area[0][:, None] + area[1][None, :] - shared
        iou = np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)
        total += float(iou.max(axis=0).sum())
        n += len(theirs)
    return total / n
