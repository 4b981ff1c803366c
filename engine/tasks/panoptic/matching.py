"""Matching of segments, and outcomes of the unmatched ones.

Source: Kirillov et al., "Panoptic Segmentation", CVPR 2019, and panopticapi's ``evaluation.py``;
Cheng et al., "Boundary IoU", CVPR 2021, and boundary-iou-api for boundaries; torchmetrics 1.9 for
void of both sides.
"""

from __future__ import annotations

import msgspec
import numpy as np

from ...schemas.arrays import Array
from ...tallies.counts import STUFF
from ..pixels.rasters import Pairs
from .dialects import Settings
from .encode import VOID, Batch, Segmented

THRESHOLD = 0.5
"""IoU that a pair has to exceed to match, and share of a segment that void or crowds have to
exceed to let it go."""


class Shared(msgspec.Struct, frozen=True):
    """Shared and total pixels of segments.

    Attributes:
        truth: int64 [n], ground-truth segment of each pair that shares pixels, ascending.
        found: int64 [n], predicted segment.
        pixels: int64 [n], shared ones.
        truth_area: int64 [t], pixels of each ground truth.
        found_area: int64 [f], of each prediction.
        truth_void: int64 [t], pixels that are void in the prediction.
        found_void: int64 [f], pixels that are void in the ground truth.
    """

    truth: Array
    found: Array
    pixels: Array
    truth_area: Array
    found_area: Array
    truth_void: Array
    found_void: Array


class Matched(msgspec.Struct, frozen=True):
    """Outcomes of segments.

    Attributes:
        truth: int64 [m], ground truth of each matched pair.
        found: int64 [m], its prediction.
        iou: float64 [m].
        touching: int64 [k], ground truth of each pair of one label that shares pixels.
        touched: float64 [k], IoU of those.
        missed: bool [t], ground truths that are false negatives.
        wrong: bool [f], predictions that are false positives.
        mistaken: int64 [c, 2], unmatched ground truth and prediction of different labels with an
            IoU above the threshold.
        mistaken_iou: float64 [c].
    """

    truth: Array
    found: Array
    iou: Array
    touching: Array
    touched: Array
    missed: Array
    wrong: Array
    mistaken: Array
    mistaken_iou: Array


def shared_pixels(pairs: Pairs, truth: Segmented, predicted: Segmented) -> Shared:
    """Count pixels of segments from counts of pairs of ids."""
    t, f = truth.of(pairs.place, pairs.truth), predicted.of(pairs.place, pairs.found)
    many, count = max(1, predicted.id.size), pairs.count
    labelled = np.flatnonzero((t >= 0) & (f >= 0))
    key, at = np.unique(t[labelled] * many + f[labelled], return_inverse=True)
    return Shared(
        truth=key // many,
        found=key % many,
        pixels=_summed(at, count[labelled], key.size),
        truth_area=_summed(t, count, truth.id.size),
        found_area=_summed(f, count, predicted.id.size),
        truth_void=_summed(np.where(pairs.found == VOID, t, -1), count, truth.id.size),
        found_void=_summed(np.where(pairs.truth == VOID, f, -1), count, predicted.id.size),
    )


def _summed(at: Array, count: Array, size: int) -> Array:
    out = np.zeros(size, np.int64)
    here = at >= 0
    np.add.at(out, at[here], count[here])
    return out


def joined_stuff(batch: Batch) -> Batch:
    """The batch in which stuff of one label of an image is one segment, the first of them."""
    sides = {}
    pairs = {name: getattr(batch.pairs, name) for name in Pairs.__struct_fields__}
    for name in ("truth", "found"):
        side: Segmented = getattr(batch, name)
        stuff = batch.kind[side.label] == STUFF
        key = np.where(stuff, side.datum.astype(np.int64) * len(batch.labels) + side.label, -1)
        _, first, of = np.unique(key, return_index=True, return_inverse=True)
        to = np.where(stuff, first[of], np.arange(side.id.size))
        segment = side.of(pairs["place"], pairs[name])
        inside = segment >= 0
        pairs[name] = pairs[name].copy()
        pairs[name][inside] = side.id[to[segment[inside]]]
        rows = np.flatnonzero(to == np.arange(side.id.size))
        columns = ("row", "datum", "id", "label", "crowd", "area")
        sides[name] = msgspec.structs.replace(
            side, **{column: getattr(side, column)[rows] for column in columns}
        )
    return msgspec.structs.replace(batch, pairs=Pairs(**pairs), **sides)


def match(batch: Batch, settings: Settings) -> Matched:
    """Match segments and classify the others.

    Args:
        batch: encoded tables, with joined stuff if the dialect requires it.
    """
    rules, truth, predicted = settings.rules, batch.truth, batch.found
    shared = shared_pixels(batch.pairs, truth, predicted)
    t, f = shared.truth, shared.found
    area = shared.truth_area.astype(np.float64)
    if rules.annotated_areas:
        area = np.where(np.isnan(truth.area), area, truth.area)
    iou = _ious(shared, area, void_of_both=rules.void_predictions)
    if batch.edges is not None:
        edges = shared_pixels(batch.edges, truth, predicted)
        at = _places(edges, shared, max(1, predicted.id.size))
        pixels = np.append(edges.pixels, 0)[at]  # at -1 is the 0: no boundary pixel in common
        inside = msgspec.structs.replace(edges, truth=t, found=f, pixels=pixels)
        narrow = _ious(inside, edges.truth_area.astype(np.float64), void_of_both=False)
        iou = np.minimum(iou, narrow)  # every ground truth has a boundary: no union is 0
    crowd = truth.crowd if rules.crowds else np.zeros_like(truth.crowd)
    same = (truth.label[t] == predicted.label[f]) & ~crowd[t]
    hit = same & (iou > THRESHOLD)
    matched, used = np.zeros(truth.id.size, bool), np.zeros(predicted.id.size, bool)
    matched[t[hit]], used[f[hit]] = True, True
    absorbing = _absorbing(truth, crowd) if rules.one_crowd else crowd
    absorbed = shared.found_void.copy()
    of_crowd = absorbing[t] & (truth.label[t] == predicted.label[f])
    np.add.at(absorbed, f[of_crowd], shared.pixels[of_crowd])
    wrong = ~used & ~(absorbed / np.maximum(shared.found_area, 1) > THRESHOLD)
    if not rules.unannotated:
        wrong &= truth.present[predicted.datum]
    missed = ~matched & ~crowd
    if rules.void_predictions:
        missed &= ~(shared.truth_void / np.maximum(shared.truth_area, 1) > THRESHOLD)
    # IoU > 0.5 is possible with only one other segment, unless annotated areas are wrong.
    other = np.flatnonzero(
        (truth.label[t] != predicted.label[f]) & missed[t] & wrong[f] & (iou > THRESHOLD)
    )
    other = other[np.unique(t[other], return_index=True)[1]]
    other = other[np.sort(np.unique(f[other], return_index=True)[1])]
    return Matched(
        truth=t[hit],
        found=f[hit],
        iou=iou[hit],
        touching=t[same],
        touched=np.nan_to_num(iou[same]),
        missed=missed,
        wrong=wrong,
        mistaken=np.stack([t[other], f[other]], axis=1),
        mistaken_iou=iou[other],
    )


def _ious(shared: Shared, area: Array, *, void_of_both: bool) -> Array:
    """IoU of each pair, void of the other side being taken off; NaN for 0 / 0."""
    t, f = shared.truth, shared.found
    union = shared.found_area[f] + area[t] - shared.pixels - shared.found_void[f]
    if void_of_both:
        union = union - shared.truth_void[t]
    with np.errstate(divide="ignore", invalid="ignore"):
        out: Array = shared.pixels / union
    return out


def _places(edges: Shared, shared: Shared, many: int) -> Array:
    """Return the index of each pair of whole segments among those of boundaries, -1 for none."""
    existing, wanted = edges.truth * many + edges.found, shared.truth * many + shared.found
    if not existing.size:
        return np.full(wanted.size, -1, np.int64)
    at = np.minimum(np.searchsorted(existing, wanted), existing.size - 1)
    return np.where(existing[at] == wanted, at, -1)


def _absorbing(truth: Segmented, crowd: Array) -> Array:
    """Return a mask of the last crowd per label and image, in row order."""
    out = np.zeros(crowd.size, bool)
    here = np.flatnonzero(crowd)
    order = here[np.lexsort((truth.row[here], truth.label[here], truth.datum[here]))]
    last = np.ones(order.size, bool)
    last[:-1] = (np.diff(truth.label[order]) != 0) | (np.diff(truth.datum[order]) != 0)
    out[order[last]] = True
    return out
