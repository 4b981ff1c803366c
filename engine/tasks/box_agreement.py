"""Warnings about boxes that would overlap in another unit or format, or with other labels or ids.

A sample of datums is checked. If boxes hardly overlap but would after reinterpreting one side, a
warning names the interpretation. If boxes overlap and labels differ, it names the pairs of labels.
The numbers are unaffected.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
import polars as pl

from ..ingest.mismatch import numbers_of
from ..ingest.problems import Note
from ..schemas.arrays import Array
from ..schemas.wording import option
from ..tally.datums import Datums, Labels
from .renamed import renamed

_DATUMS = 200  # looked at, evenly spaced among those of both sides
_ROWS = 100  # of a datum and side
LEAST = 10  # boxes on each side, below which only few readings are tried
FEWEST = 3  # of which other forms can be told, if they fit well
POOR, GOOD = 0.25, 0.5  # mean of the best IoU of each ground truth, as they are and otherwise
FAIR, _GAIN = 0.7, 0.25  # fit from which no other is tried, and what another has to gain
WELL = 0.8  # the latter of few boxes
_FEW_PAIRS = 4  # boxes on boxes, of which exchanged labels can be told: chance exchanges three
_ON = 0.5  # IoU from which a box lies on another
_SHARE = 1.5  # coordinates up to here may be shares of an image
_PIXELS = 8.0  # medians from here on are not shares


_PAIRS = (("predictions", "ground truths"), ("ground truths", "predictions"))


class Rows(Protocol):
    """Rows of one side.

    Attributes:
        datum: integers [n], datum codes.
        label: int32 [n], label codes.
    """

    @property
    def datum(self) -> Array: ...

    @property
    def label(self) -> Array: ...

    def boxes(self, rows: Array) -> Array:
        """Corners of some rows, float64 [k, 4]."""
        ...


Reading = Callable[[Array], Array]
"""Reinterpretation of boxes, float64 [k, 4], read as corners."""


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


def _forms(held: str, expected: str, numbers: str, form: str, other: str) -> tuple[str, str]:
    """Say what one side seems to do, and what the other may do instead."""
    ours, theirs = (option("box_format", one) for one in (form, other))
    return (
        f"hold {held} where {expected} are expected ({numbers}{ours})",
        f"hold {expected.removeprefix('the ')} where {held} are expected ({theirs})",
    )


_WIDE = "widths and heights"
_READINGS: tuple[tuple[str, str, Reading], ...] = (
    (*_forms("centres", "corners", "cx, cy, width, height: ", "cxcywh", "xywh"), _from_centre),
    (*_forms(_WIDE, "the second corners", "x, y, width, height: ", "xywh", "xyxy"), _from_extents),
    (*_forms(f"centres, {_WIDE}", "corners", "", "cxcywh", "xyxy"), _from_centre_and_extents),
    ("have x and y exchanged", "", _transposed),
)
"""Apparent format of one side, alternative format of the other, and the first as a function."""


def apart(predictions: Rows, truths: Rows, datums: Datums, labels: Labels) -> Note | None:
    """Return a warning about boxes or labels that do not match but would if reinterpreted, or None.

    Args:
        datums: of both sides.
        labels: of both sides.
    """
    ours, theirs = sample(predictions, truths, np.arange(len(datums), dtype=np.int64))
    fewest = _fewest(ours, theirs)
    if not fewest:
        return _shifted_ids(predictions, truths, datums)
    as_is = fit(ours.boxes, theirs.boxes)
    doubt = boxes_apart(ours.boxes, theirs.boxes, fewest, as_is) if as_is < FAIR else None
    if as_is >= POOR:
        return doubt or labels_apart(ours, theirs, labels)
    return doubt or _shifted_ids(predictions, truths, datums)


def _fewest(ours: Sample, theirs: Sample) -> int:
    return min(sum(map(len, ours.boxes)), sum(map(len, theirs.boxes)))


def boxes_apart(
    ours: list[Array], theirs: list[Array], fewest: int, as_is: float = 0.0
) -> Note | None:
    """A warning of boxes that would meet in another unit or form, much better than they do."""
    boxes = {"predictions": ours, "ground truths": theirs}
    extreme = {name: np.abs(np.concatenate(side)) for name, side in boxes.items()}
    for name, other in _PAIRS:
        shares = extreme[name].max() <= _SHARE and (_extents(boxes[name]) > 0).any()
        if shares and np.median(extreme[other]) >= _PIXELS:
            return _warning(
                f"the {name} lie within 0 to {_SHARE:g}, as shares of an image do, and the {other}"
                " in pixels. Multiply x by the image's width and y by its height"
            )
    if fewest < FEWEST:
        return None
    good = max(good_fit(fewest), as_is + _GAIN)
    for name, other in _PAIRS:

        def fitted(reading: Reading, name: str = name) -> float:
            read = {**boxes, name: [reading(one) for one in boxes[name]]}
            return fit(*read.values())

        for said, instead, reading in _READINGS:
            if fitted(reading) >= good:
                told = f", or the {other} {instead}" if instead else ""
                return _warning(
                    f"the {name} seem to {said}{told}. {option('box_format')} is for lists of both"
                    " sides; to mend one side only, rename its columns to what they hold (cx, cy,"
                    " box_width, box_height), or convert them"
                )
        if fewest < LEAST:  # a factor fits any few
            continue
        mine, others = (np.median(_extents(boxes[side]), axis=0) for side in (name, other))
        with np.errstate(divide="ignore", invalid="ignore"):  # boxes without area have no factor
            factor = others / mine
        scale = np.concatenate([factor, factor])
        if np.isfinite(scale).all() and fitted(partial(np.multiply, scale)) >= good:
            return _warning(
                f"the {name} overlap the {other} once x is multiplied by about {factor[0]:.3g} and"
                f" y by about {factor[1]:.3g}: the images were scaled"
            )
    moved = _offset(ours, theirs) if fewest >= LEAST else None
    if moved is not None and fit([one + moved for one in ours], theirs) >= good:
        return _warning(
            f"the predictions overlap the ground truths once {moved[0]:+.4g} is added to x and"
            f" {moved[1]:+.4g} to y: one side counts from another origin, as after a crop"
        )
    return None


def _offset(ours: list[Array], theirs: list[Array]) -> Array | None:
    """The commonest offset of ground truths from predictions of about their size, float64 [4]."""
    pairs = [other[None] - mine[:, None] for mine, other in zip(ours, theirs, strict=True)]
    corners = np.concatenate([one.reshape(-1, 4) for one in pairs])
    near = _ALIKE * np.median(_extents(theirs), axis=0)
    same = (np.abs(corners[:, 2:] - corners[:, :2]) <= near).all(axis=1)
    offsets = corners[same][:_OFFSETS, :2]
    if not len(offsets):
        return None
    around = (np.abs(offsets[:, None] - offsets) <= near).all(axis=2)
    common: Array = np.median(offsets[around[around.sum(axis=1).argmax()]], axis=0)
    return np.tile(common, 2)


_ALIKE = 0.1  # of the median width and height: boxes of one size, offsets that are one
_OFFSETS = 1_000  # that are compared with each other


def _warning(said: str) -> Note:
    return Note(
        "boxes_apart",
        f"boxes of the two sides overlap too little, and the numbers mean little: {said}.",
        warning=True,
    )


def _shifted_ids(predictions: Rows, truths: Rows, datums: Datums) -> Note | None:
    """A warning of numbers in ids that are one higher or lower on one side."""
    text = datums.id.dtype == pl.String
    ids = numbers_of(datums.id) if text else datums.id
    if ids is None or not ids.dtype.is_integer():
        return None
    known = ids.cast(pl.Int64).to_numpy()
    order = np.argsort(known, kind="stable")
    for step in (1, -1):
        at = np.searchsorted(known[order], known + step)
        at = order[np.minimum(at, known.size - 1)]
        places = np.where(known[at] == known + step, at, -1)
        ours, theirs = sample(predictions, truths, places)
        fewest = _fewest(ours, theirs)
        if fewest >= FEWEST and fit(ours.boxes, theirs.boxes) >= good_fit(fewest):
            return _warning(
                f"they overlap once the ids of the predictions are changed by {step:+d}, so one"
                f" side counts them from another number; write"
                f" {option('id_format', [*['number'] * text, f'{step:+d}'])}"
            )
    return None


def labels_apart(ours: Sample, theirs: Sample, labels: Labels) -> Note | None:
    """Return a warning about overlapping boxes with different labels, with the label pairs."""
    mine, other = [], []
    for i, (boxes, truths) in enumerate(zip(ours.boxes, theirs.boxes, strict=True)):
        iou = _iou(boxes, truths)
        best = iou.argmax(axis=0)
        on = iou.max(axis=0) >= _ON
        mine.append(ours.labels[i][best[on]])
        other.append(theirs.labels[i][on])
    pairs = pl.DataFrame({"mine": np.concatenate(mine), "other": np.concatenate(other)})
    counted = pairs.group_by("mine", "other").len()
    if pairs.height < LEAST and not (pairs.height >= _FEW_PAIRS and _exchanged(counted)):
        return None
    met = "boxes of the two sides lie on each other, but"
    return renamed(counted, labels.frame["label_value"], met)


def _exchanged(pairs: pl.DataFrame) -> bool:
    """Return True if at least two labels are consistently paired with another label, one to one."""
    apart = pairs.filter(pl.col("mine") != pl.col("other")).height
    return (
        apart >= 2
        and apart == pairs.height == pairs["mine"].n_unique() == pairs["other"].n_unique()
    )


class Sample(NamedTuple):
    """Rows of some datums, of one side.

    Attributes:
        boxes: corners, float64 [k, 4] per datum.
        labels: label codes, int32 [k] per datum.
    """

    boxes: list[Array]
    labels: list[Array]


def good_fit(fewest: int) -> float:
    """Return the fit from which another reading is named, given the boxes on the smaller side."""
    return GOOD if fewest >= LEAST else WELL


def sample(predictions: Rows, truths: Rows, places: Array) -> tuple[Sample, Sample]:
    """Return rows of some datums that both sides have.

    Args:
        places: int64 [n_datums], ground-truth datum of each datum of the predictions; -1 for none.
    """
    n_datums = places.size
    here = np.bincount(predictions.datum, minlength=n_datums) > 0
    there = np.bincount(truths.datum, minlength=n_datums) > 0
    common = np.flatnonzero(here & (places >= 0) & there[places])
    chosen = common[:: max(1, common.size // _DATUMS)]
    found = []
    for side, datums in ((predictions, chosen), (truths, places[chosen])):
        place = np.full(n_datums, -1, np.int32)
        place[datums] = np.arange(chosen.size)
        rows = np.flatnonzero(place[side.datum] >= 0)
        at = place[side.datum[rows]]
        order = np.argsort(at, kind="stable")
        cuts = np.searchsorted(at[order], np.arange(1, chosen.size))
        rows = rows[order]
        found.append(
            Sample(
                *(
                    [part[:_ROWS] for part in np.split(values, cuts)] if chosen.size else []
                    for values in (side.boxes(rows), side.label[rows])
                )
            )
        )
    return found[0], found[1]


def _extents(side: list[Array]) -> Array:
    boxes: Array = np.concatenate(side)
    extents: Array = boxes[:, 2:] - boxes[:, :2]
    return extents


def fit(predictions: list[Array], truths: list[Array]) -> float:
    """Mean over the ground truths of the best IoU that a prediction of their datum has."""
    total, n = 0.0, 0
    for ours, theirs in zip(predictions, truths, strict=True):
        total += float(_iou(ours, theirs).max(axis=0).sum())
        n += len(theirs)
    return total / n


def _iou(ours: Array, theirs: Array) -> Array:
    """IoU of every prediction with every ground truth of one datum, float64 [k, m]."""
    low = np.maximum(ours[:, None, :2], theirs[None, :, :2])
    high = np.minimum(ours[:, None, 2:], theirs[None, :, 2:])
    shared = np.clip(high - low, 0, None).prod(axis=-1)
    area = [np.clip(one[:, 2:] - one[:, :2], 0, None).prod(axis=-1) for one in (ours, theirs)]
    union = area[0][:, None] + area[1][None, :] - shared
    iou: Array = np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)
    return iou
