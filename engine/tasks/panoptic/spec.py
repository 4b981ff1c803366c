"""Panoptic segmentation as a task: encoding, matching, and outcomes of unmatched segments.

Source: Kirillov et al., "Panoptic Segmentation", CVPR 2019, and panopticapi's ``evaluation.py``;
Cheng et al., "Boundary IoU", CVPR 2021, and boundary-iou-api for boundaries; torchmetrics 1.9 for
void of both sides.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ... import metrics
from ...dialects import Dialect
from ...geometry.masks import Masks, read_masks, to_pixels
from ...ingest.frames import Frames
from ...ingest.problems import Note, count_of, note_of
from ...metrics import Metric
from ...schemas.arrays import Array
from ...schemas.contract import GROUND_TRUTHS, PREDICTIONS
from ...schemas.errors import N_EXAMPLES, InputError
from ...schemas.results import empty_frame, frame_schema, in_schema
from ...tallies.counts import STUFF, THING, UNKNOWN, Crossings, SegmentRows, Segments, SegmentView
from ...tallies.datums import Datums, Labels
from ...tallies.registry import stored_as
from ...tallies.stats import Column, Stats
from ..contents import Content, Contents
from ..counted import (
    CountTallies,
    cells_per_group,
    counts_in_parts,
    crossing_frame,
    frames_of,
    in_order,
    label_tables,
    merge_by,
    sides_of,
    view_of,
)
from ..encoding import Workers, declared_places, encode_labels, encode_sides
from ..pixels import NOTHING, EdgeMap, IdMap, MapRow, Opens, Pairs, Side, count_maps, side_of
from ..rules import LEAST, counted, renamed
from ..task import Cuts, Losses, PageFrame, Sample, Task
from .dialects import Settings
from .metrics import OF_IMAGE

# Sources of each image's map: a file, an array, or masks painted into one.


def map_places(
    side: Side, ids: Array, n_datums: int, workers: Workers
) -> tuple[list[MapRow | None], Array]:
    """Return the map of every datum, and the id of every row in it.

    Args:
        side: rows of segments.
        ids: int64 [n], id of each row, -1 for none.
        n_datums: number of datums.

    Returns:
        for each datum its map, None if the side does not have it; int64 [n], ids, with masks
        without one numbered in row order, from 1.

    Raises:
        InputError: an image with two maps, or with masks of two sizes.
        ReadError: missing files.
    """
    out: list[MapRow | None] = [None] * n_datums
    none = np.zeros(side.frame.height, bool)
    masked, mapped = (
        side.frame[name].is_not_null().to_numpy() if name in side.frame.columns else none
        for name in ("mask", "raster")
    )
    of_masks = np.zeros(n_datums, bool)
    of_masks[side.datum[masked]] = True
    painted = np.flatnonzero(of_masks[side.datum])
    if painted.size:
        ids = _paint(side, painted[masked[painted]], ids, out, workers)
    rows = np.flatnonzero(mapped & ~of_masks[side.datum])
    if rows.size:
        _refuse_two_maps(side, rows)
        codes, first = np.unique(side.datum[rows], return_index=True)
        places = side.places(rows[first])
        for code, row in zip(codes.tolist(), rows[first].tolist(), strict=True):
            out[code] = places[row]
    return out, ids


def _refuse_two_maps(side: Side, rows: Array) -> None:
    """Refuse an image whose rows name several maps."""
    names = [name for name in ("raster", "raster_band") if name in side.frame.columns]
    if side.frame["raster"].dtype != pl.String:  # pixels: those of the first row count
        names = names[1:]
    if not names:
        return
    seen = side.frame[rows].select(names).with_columns(datum=side.datum[rows], row=rows)
    several = (
        seen.group_by("datum", maintain_order=True)
        .agg(pl.col("row").first(), pl.struct(names).n_unique().alias("n"))
        .filter(pl.col("n") > 1)
    )
    if several.height:
        raise InputError(
            f"{side.row(several['row'][0])}: {count_of(several.height, 'image')} whose rows name"
            " several maps. All segments of an image are in one: was an image predicted twice?",
            code="repeated_values",
            column="raster",
            count=several.height,
        )


def _paint(
    side: Side, rows: Array, ids: Array, out: list[MapRow | None], workers: Workers
) -> Array:
    """Places of images whose segments are masks, painted when they are looked at."""
    masks = read_masks(
        side.frame["mask"].gather(rows), side=side.role, over=workers.over, rows=rows
    )
    order = np.argsort(side.datum[rows], kind="stable")
    codes, first = np.unique(side.datum[rows][order], return_index=True)
    ids = ids.copy()
    for code, at in zip(codes.tolist(), np.split(order, first[1:]), strict=True):
        if (ids[rows[at]] < 0).all():
            ids[rows[at]] = np.arange(1, at.size + 1)
        size = np.unique(np.stack([masks.height[at], masks.width[at]]), axis=1)
        if size.shape[1] > 1:
            raise InputError(
                f"{side.row(int(rows[at[0]]))}: masks of one image are of several sizes (height x"
                f" width): {', '.join(f'{h} x {w}' for h, w in size.T[:N_EXAMPLES])}. Write all at"
                " the size of the image.",
                code="sizes_differ",
                rows=[int(rows[at[0]])],
            )
        if (ids[rows[at]] < 0).any():
            raise InputError(
                f"{side.row(int(rows[at[0]]))}: some masks of the image have a segment_id and some"
                " have none. Give each one, or none.",
                code="null_values",
                column="segment_id",
            )
        pixels = _Painted(side, masks, at, rows, ids[rows[at]])
        out[code] = MapRow(int(rows[at[0]]), side.row, pixels)
    return ids


class _Painted:
    """The map of one image, painted from its masks on access.

    Args:
        side: for messages.
        masks: of all images.
        own: indices of the image's masks.
        rows: row of each mask in its table.
        ids: of the image's masks.
    """

    dtype = np.dtype(np.int64)

    def __init__(self, side: Side, masks: Masks, indices: Array, rows: Array, ids: Array) -> None:
        self._side, self._masks, self._own, self._rows, self._ids = side, masks, indices, rows, ids
        self.shape = int(masks.height[indices[0]]), int(masks.width[indices[0]])
        self.size = self.shape[0] * self.shape[1]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return the ids, int64 [height, width].

        Raises:
            InputError: masks that overlap.
        """
        here = np.zeros(self.shape, np.int64)
        for i, one in zip(self._own.tolist(), self._ids.tolist(), strict=True):
            pixels = to_pixels(self._masks, i) != 0
            common = int((here[pixels] != 0).sum())
            if common:
                raise InputError(
                    f"{self._side.row(int(self._rows[i]))}: its mask shares"
                    f" {count_of(common, 'pixel')} with another one of the image. A pixel is of one"
                    " segment: take them off one of the two.",
                    code="segments_overlap",
                    count=common,
                )
            here[pixels] = one
        return here


# Encode: rows of both sides become segments, and pixels are counted by pairs of their ids.

VOID = 0


class Segmented(msgspec.Struct, frozen=True):
    """Segments of one side, by datum and id.

    Attributes:
        side: its rows.
        row: int64 [n], row of each segment.
        datum: int32 [n], datum code.
        id: int64 [n], id in the map of its datum.
        label: int32 [n], label code.
        crowd: bool [n].
        area: float64 [n], annotated area, NaN if missing.
        present: bool [n_datums], datums that the side has.
    """

    side: Side
    row: Array
    datum: Array
    id: Array
    label: Array
    crowd: Array
    area: Array
    present: Array

    def of(self, datum: Array, ids: Array) -> Array:
        """The segment that each pair of a datum and an id is, int64 [m]; -1 for none."""
        if not self.id.size:
            return np.full(datum.size, -1, np.int64)
        keys = _keys(self.datum, self.id)
        sought = _keys(datum, ids)
        at = np.minimum(np.searchsorted(keys, sought), keys.size - 1)
        return np.where(keys[at] == sought, at, -1)


def _keys(datum: Array, ids: Array) -> Array:
    return (datum.astype(np.int64) << 32) + ids


class Batch(msgspec.Struct, frozen=True):
    """Panoptic input as arrays.

    Attributes:
        datums: ids and slices.
        labels: of both sides and the declared ones.
        declared: bool [n_labels], labels that were declared.
        kind: int8 [n_labels]: things, stuff, or unknown.
        truth: ground truths.
        predicted: predictions.
        pairs: pixels by pair of ids.
        edges: same for boundaries; None if only whole segments are compared.
    """

    datums: Datums
    labels: Labels
    declared: Array
    kind: Array
    truth: Segmented
    predicted: Segmented
    pairs: Pairs
    edges: Pairs | None


def encode_batch(frames: Frames, settings: Settings, workers: Workers) -> Batch:
    """Code the segments of both sides, and count pixels by pairs of ids.

    Raises:
        InputError: maps that cannot be read or compared, or unknown ids.
    """
    datums, coded = encode_sides(frames)
    roles = (GROUND_TRUTHS, PREDICTIONS)
    sides = [
        side_of(frames, role, codes, datums.id) for role, codes in zip(roles, coded, strict=True)
    ]
    places, read = zip(
        *(map_places(side, _ids(side), len(datums), workers) for side in sides), strict=True
    )
    rows = [np.flatnonzero(side.frame["label_value"].is_not_null().to_numpy()) for side in sides]
    labels, codes = encode_labels(
        [side.frame["label_value"].gather(here) for side, here in zip(sides, rows, strict=True)],
        [None, None],
        frames,
    )
    truth, predicted = (
        _segmented(side, here, ids, code, len(datums))
        for side, here, ids, code in zip(sides, rows, read, codes, strict=True)
    )
    pixels = _counted(places, workers, IdMap)
    edges = None
    if settings.boundary_ratio is not None:
        edges = _counted(places, workers, partial(EdgeMap, ratio=settings.boundary_ratio))
    _refuse_unknown(predicted, pixels)
    frames.notes += _notes(truth, pixels)
    doubt = _other_labels(truth, predicted, pixels, labels)
    frames.notes += [] if doubt is None else [doubt]
    declared, kind = _kinds(frames, labels)
    if (kind == UNKNOWN).all():
        frames.notes.append(_things_unknown(settings))
    return Batch(datums, labels, declared, kind, truth, predicted, pixels, edges)


def _counted(places: Sequence[list[MapRow | None]], workers: Workers, opens: Opens) -> Pairs:
    """Pixels by pair of ids of every datum that some side has."""
    pairs = list(zip(*places, strict=True))
    present = [code for code, pair in enumerate(pairs) if pair != (None, None)]
    counted, _ = count_maps([pairs[code] for code in present], workers, resample=False, opens=opens)
    datum = np.array(present, np.int64)[counted.place]
    return msgspec.structs.replace(counted, place=datum)


def _ids(side: Side) -> Array:
    if "segment_id" not in side.frame.columns:
        return np.full(side.frame.height, -1, np.int64)
    return side.frame["segment_id"].cast(pl.Int64).fill_null(-1).to_numpy()


def _segmented(side: Side, rows: Array, ids: Array, code: Array, n_datums: int) -> Segmented:
    datum, segment = side.datum[rows], ids[rows]
    order = np.lexsort((segment, datum))
    rows = rows[order]
    frame = side.frame
    crowd, area = np.zeros(rows.size, bool), np.full(rows.size, np.nan)
    if "iscrowd" in frame.columns:
        crowd = frame["iscrowd"].fill_null(value=False).to_numpy()[rows]
    if "area" in frame.columns:
        area = frame["area"].cast(pl.Float64).fill_null(np.nan).to_numpy()[rows]
    present = np.bincount(side.datum, minlength=n_datums) > 0
    return Segmented(side, rows, datum[order], segment[order], code[order], crowd, area, present)


def _refuse_unknown(predicted: Segmented, pairs: Pairs) -> None:
    """Raise InputError for ids of predicted maps without a row, and rows without a pixel."""
    here = np.flatnonzero((pairs.predicted != NOTHING) & (pairs.predicted != VOID))
    unknown = here[predicted.of(pairs.place[here], pairs.predicted[here]) < 0]
    if unknown.size:
        keys, first = np.unique(_keys(pairs.place, pairs.predicted)[unknown], return_index=True)
        named = "; ".join(
            f"datum {predicted.side.ids[int(pairs.place[at])]!r}: id {pairs.predicted[at]}"
            for at in unknown[first][:N_EXAMPLES]
        )
        raise InputError(
            f"predictions: {count_of(keys.size, 'segment')} in the maps without a row in the"
            f" table: {named}. Give each its row, or make its pixels 0 (void).",
            code="segments_without_row",
            count=keys.size,
        )
    pixels = np.zeros(predicted.id.size, np.int64)
    segment = predicted.of(pairs.place, pairs.predicted)
    np.add.at(pixels, segment[segment >= 0], pairs.count[segment >= 0])
    empty = np.flatnonzero(pixels == 0)
    if empty.size:
        named = "; ".join(
            f"{predicted.side.numbered(int(predicted.row[at]))}: segment {predicted.id[at]}"
            for at in empty[:N_EXAMPLES]
        )
        raise InputError(
            f"predictions: {count_of(empty.size, 'segment')} without a pixel in the map of the"
            f" image: {named}. Remove these rows, or write their pixels.",
            code="segments_without_pixels",
            count=empty.size,
        )


def _other_labels(
    truth: Segmented, predicted: Segmented, pairs: Pairs, labels: Labels
) -> Note | None:
    """Return a warning about overlapping segments with different labels, or None."""
    shared = shared_pixels(pairs, truth, predicted)
    iou = _ious(shared, shared.truth_area.astype(np.float64), void_of_both=True)
    on = np.flatnonzero((iou > THRESHOLD) & ~truth.crowd[shared.truth])
    of_labels = predicted.label[shared.predicted[on]], truth.label[shared.truth[on]]
    pairs_of_labels = counted(*of_labels) if on.size >= LEAST else None
    if pairs_of_labels is None:
        return None
    intro = "segments of the two sides overlap, but"
    return renamed(pairs_of_labels, labels.frame["label_value"], intro)


def _notes(truth: Segmented, pairs: Pairs) -> list[Note]:
    """Return notes on disagreements of the ground truths' maps and rows."""
    here = np.flatnonzero((pairs.truth != NOTHING) & (pairs.truth != VOID))
    segment = truth.of(pairs.place[here], pairs.truth[here])
    unknown = here[segment < 0]
    counted = np.zeros(truth.id.size, np.int64)
    np.add.at(counted, segment[segment >= 0], pairs.count[here[segment >= 0]])
    differ = ~np.isnan(truth.area) & (truth.area != counted)
    return [
        note_of(kind, n, ("segment", "segments", what), (), "ground truths: ")
        for kind, n, what in (
            (
                "segments_without_row",
                np.unique(_keys(pairs.place, pairs.truth)[unknown]).size,
                "in the maps and not in the table: neither void nor a segment, so every prediction"
                " there is wrong",
            ),
            (
                "segments_without_pixels",
                int((counted == 0).sum()),
                "in the table and not in the maps: missed",
            ),
            (
                "areas_differ",
                int(differ.sum()),
                "whose annotated area is not the number of pixels in the map; dialect coco goes by"
                " the area, others by the pixels",
            ),
        )
        if n
    ]


def _things_unknown(settings: Settings) -> Note:
    message = (
        "things and stuff are unknown: means are only over all labels. Give a table of labels with"
        " a column isthing."
    )
    if settings.rules.joined_stuff:
        message += " No segments of stuff are joined."
    return Note("things_unknown", message)


def _kinds(frames: Frames, labels: Labels) -> tuple[Array, Array]:
    """Return the mask of declared labels, and their kind (thing or stuff)."""
    kind = np.full(len(labels), UNKNOWN, np.int8)
    table = declared_places(frames, labels, "isthing")
    if table is None:
        return np.zeros(len(labels), bool), kind
    if "isthing" in table.columns:
        kind = table["isthing"].cast(pl.Int8).fill_null(UNKNOWN).to_numpy().astype(np.int8)
    return table["place"].is_not_null().to_numpy(), np.minimum(kind, THING)


# Matching of segments, and outcomes of the unmatched ones.

THRESHOLD = 0.5
"""IoU that a pair has to exceed to match, and share of a segment that void or crowds have to
exceed to let it go."""


class Shared(msgspec.Struct, frozen=True):
    """Shared and total pixels of segments.

    Attributes:
        truth: int64 [n], ground-truth segment of each pair that shares pixels, ascending.
        predicted: int64 [n], predicted segment.
        pixels: int64 [n], shared ones.
        truth_area: int64 [t], pixels of each ground truth.
        predicted_area: int64 [f], of each prediction.
        truth_void: int64 [t], pixels that are void in the prediction.
        predicted_void: int64 [f], pixels that are void in the ground truth.
    """

    truth: Array
    predicted: Array
    pixels: Array
    truth_area: Array
    predicted_area: Array
    truth_void: Array
    predicted_void: Array


class Matched(msgspec.Struct, frozen=True):
    """Outcomes of segments.

    Attributes:
        truth: int64 [m], ground truth of each matched pair.
        predicted: int64 [m], its prediction.
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
    predicted: Array
    iou: Array
    touching: Array
    touched: Array
    missed: Array
    wrong: Array
    mistaken: Array
    mistaken_iou: Array


def shared_pixels(pairs: Pairs, truth: Segmented, predicted: Segmented) -> Shared:
    """Count pixels of segments from counts of pairs of ids."""
    t, f = truth.of(pairs.place, pairs.truth), predicted.of(pairs.place, pairs.predicted)
    many, count = max(1, predicted.id.size), pairs.count
    labelled = np.flatnonzero((t >= 0) & (f >= 0))
    key, at = np.unique(t[labelled] * many + f[labelled], return_inverse=True)
    return Shared(
        truth=key // many,
        predicted=key % many,
        pixels=_summed(at, count[labelled], key.size),
        truth_area=_summed(t, count, truth.id.size),
        predicted_area=_summed(f, count, predicted.id.size),
        truth_void=_summed(np.where(pairs.predicted == VOID, t, -1), count, truth.id.size),
        predicted_void=_summed(np.where(pairs.truth == VOID, f, -1), count, predicted.id.size),
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
    for name in ("truth", "predicted"):
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
    rules, truth, predicted = settings.rules, batch.truth, batch.predicted
    shared = shared_pixels(batch.pairs, truth, predicted)
    t, f = shared.truth, shared.predicted
    area = shared.truth_area.astype(np.float64)
    if rules.annotated_areas:
        area = np.where(np.isnan(truth.area), area, truth.area)
    iou = _ious(shared, area, void_of_both=rules.void_predictions)
    if batch.edges is not None:
        edges = shared_pixels(batch.edges, truth, predicted)
        at = _places(edges, shared, max(1, predicted.id.size))
        pixels = np.append(edges.pixels, 0)[at]  # at -1 is the 0: no boundary pixel in common
        inside = msgspec.structs.replace(edges, truth=t, predicted=f, pixels=pixels)
        narrow = _ious(inside, edges.truth_area.astype(np.float64), void_of_both=False)
        iou = np.minimum(iou, narrow)  # every ground truth has a boundary: no union is 0
    crowd = truth.crowd if rules.crowds else np.zeros_like(truth.crowd)
    same = (truth.label[t] == predicted.label[f]) & ~crowd[t]
    hit = same & (iou > THRESHOLD)
    matched, used = np.zeros(truth.id.size, bool), np.zeros(predicted.id.size, bool)
    matched[t[hit]], used[f[hit]] = True, True
    absorbing = _absorbing(truth, crowd) if rules.one_crowd else crowd
    absorbed = shared.predicted_void.copy()
    of_crowd = absorbing[t] & (truth.label[t] == predicted.label[f])
    np.add.at(absorbed, f[of_crowd], shared.pixels[of_crowd])
    wrong = ~used & ~(absorbed / np.maximum(shared.predicted_area, 1) > THRESHOLD)
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
        predicted=f[hit],
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
    t, f = shared.truth, shared.predicted
    union = shared.predicted_area[f] + area[t] - shared.pixels - shared.predicted_void[f]
    if void_of_both:
        union = union - shared.truth_void[t]
    with np.errstate(divide="ignore", invalid="ignore"):
        out: Array = shared.pixels / union
    return out


def _places(edges: Shared, shared: Shared, many: int) -> Array:
    """Return the index of each pair of whole segments among those of boundaries, -1 for none."""
    existing, sought = edges.truth * many + edges.predicted, shared.truth * many + shared.predicted
    if not existing.size:
        return np.full(sought.size, -1, np.int64)
    at = np.minimum(np.searchsorted(existing, sought), existing.size - 1)
    return np.where(existing[at] == sought, at, -1)


def _absorbing(truth: Segmented, crowd: Array) -> Array:
    """Return a mask of the last crowd per label and image, in row order."""
    out = np.zeros(crowd.size, bool)
    here = np.flatnonzero(crowd)
    order = here[np.lexsort((truth.row[here], truth.label[here], truth.datum[here]))]
    last = np.ones(order.size, bool)
    last[:-1] = (np.diff(truth.label[order]) != 0) | (np.diff(truth.datum[order]) != 0)
    out[order[last]] = True
    return out


# Tally: outcomes of segments by datum and label, and per-datum values.


STATUS = ("scored", "not_predicted", "no_ground_truth", "no_segments")
"""Standing of a datum; those of the last have no number."""


@stored_as("panoptic.run/1")
class Tallies(CountTallies, frozen=True, kw_only=True):
    """Tally of a panoptic run.

    Attributes:
        segments: the counts, :class:`~evalengine.tallies.counts.Segments`, or on disk
            :class:`~evalengine.tallies.tables.InFiles`.
        outcomes: the ``outcomes`` frame, or None.
    """

    segments: Any
    outcomes: pl.DataFrame | None


def tally(frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers) -> Tallies:
    """Encode, match and tally.

    Raises:
        InputError: maps that cannot be read or compared, or unknown ids.
    """
    begun = time.perf_counter()
    batch = encode_batch(frames, settings, workers)
    if settings.rules.joined_stuff:
        batch = joined_stuff(batch)
    read = time.perf_counter()
    matched = match(batch, settings)
    rows = _rows(batch, matched)
    segments = Segments(rows, _crossings(batch, matched), batch.declared, batch.kind)
    present = sides_of(batch.predicted.present, batch.truth.present)
    listed = _outcomes(batch, matched) if "outcomes" in needs else None
    seconds = {"match": read - begun, "measure": time.perf_counter() - read}
    return Tallies(
        datums=batch.datums,
        labels=batch.labels,
        segments=segments,
        stats=stats_from(present, segments),
        present=present,
        outcomes=listed,
        seconds=seconds,
    )


def _rows(batch: Batch, matched: Matched) -> SegmentRows:
    """Counts and sums by datum and label."""
    truth, predicted = batch.truth, batch.predicted
    many = max(1, len(batch.labels))

    def place(side: Any, at: Array) -> Array:
        return side.datum[at].astype(np.int64) * many + side.label[at]

    counted = {
        "tp": place(truth, matched.truth),
        "fp": place(predicted, np.flatnonzero(matched.wrong)),
        "fn": place(truth, np.flatnonzero(matched.missed)),
        "touched": place(truth, matched.touching),
        "truth": place(truth, np.flatnonzero(~truth.crowd)),
    }
    code = np.unique(np.concatenate(list(counted.values())))

    def summed(name: str, values: Array | int = 1) -> Array:
        out = np.zeros(code.size, np.int64 if isinstance(values, int) else np.float64)
        np.add.at(out, np.searchsorted(code, counted[name]), values)
        return out

    return SegmentRows(
        datum=(code // many).astype(np.int32),
        label=(code % many).astype(np.int32),
        tp=summed("tp"),
        fp=summed("fp"),
        fn=summed("fn"),
        iou=summed("tp", matched.iou),
        touched=summed("touched", matched.touched),
        truth=summed("truth"),
    )


def _crossings(batch: Batch, matched: Matched) -> Crossings:
    """Segments by datum and pair of labels."""
    truth, predicted_side = batch.truth, batch.predicted
    missed, wrong = matched.missed.copy(), matched.wrong.copy()
    t, f = matched.mistaken.T
    missed[t], wrong[f] = False, False
    unmatched, astray = np.flatnonzero(missed), np.flatnonzero(wrong)
    none = np.full(unmatched.size, -1, np.int32), np.full(astray.size, -1, np.int32)
    truth_rows = np.r_[matched.truth, t]
    actual = np.r_[truth.label[truth_rows], truth.label[unmatched], none[1]]
    predicted = np.r_[
        predicted_side.label[np.r_[matched.predicted, f]], none[0], predicted_side.label[astray]
    ]
    datum = np.r_[truth.datum[truth_rows], truth.datum[unmatched], predicted_side.datum[astray]]
    rows, count = np.unique(
        np.stack([datum, actual, predicted]).astype(np.int32), axis=1, return_counts=True
    )
    return Crossings(rows[0], rows[1], rows[2], count.astype(np.int64))


OUTCOMES = (
    "tp",
    "fp_misclassified",
    "fp_hallucination",
    "ignored",
    "fn_misclassified",
    "fn_missed",
)


def _outcomes(batch: Batch, matched: Matched) -> pl.DataFrame:
    """One row a predicted segment, and one a missed ground truth."""
    truth, predicted = batch.truth, batch.predicted
    code = np.where(matched.wrong, 2, 3)
    partner, iou = np.full(predicted.id.size, -1, np.int64), np.full(predicted.id.size, np.nan)
    t, f = matched.mistaken.T
    code[matched.predicted], code[f] = 0, 1
    partner[matched.predicted], iou[matched.predicted] = matched.truth, matched.iou
    partner[f], iou[f] = t, matched.mistaken_iou
    missed = np.flatnonzero(matched.missed)
    lost = np.full(truth.id.size, 5)
    lost[t] = 4
    partners = np.r_[partner, missed]
    label = np.r_[predicted.label, truth.label[missed]]
    table = batch.labels.frame
    ids = np.r_[truth.id, -1][partners]
    columns = {
        "datum_id": batch.datums.id.gather(np.r_[predicted.datum, truth.datum[missed]]),
        "label_key": table["label_key"].gather(label),
        "label_value": table["label_value"].gather(label),
        "outcome": np.array(OUTCOMES)[np.r_[code, lost[missed]]],
        "iou": pl.Series(np.r_[iou, np.full(missed.size, np.nan)], nan_to_null=True),
        "matched_annotation_id": pl.Series(ids).set(pl.Series(partners < 0), None),
        "segment_id": pl.Series(np.r_[predicted.id, np.full(missed.size, -1)]).replace(-1, None),
    }
    schema = frame_schema("outcomes", label=batch.labels.dtype, datum=batch.datums.id_dtype)
    schema |= {"matched_annotation_id": pl.Int64(), "segment_id": pl.Int64()}
    return in_order(in_schema(columns, schema, iou_threshold=THRESHOLD), _KEYS)


def outcomes(tallies: Tallies) -> pl.DataFrame:
    """Return the ``outcomes`` frame; empty if not requested."""
    if tallies.outcomes is not None:
        return tallies.outcomes
    return empty_frame("outcomes", label=tallies.labels.dtype, datum=tallies.datums.id_dtype)


_KEYS = ("datum_id", "segment_id", "matched_annotation_id")


def stats_from(present: Array, segments: Segments) -> Stats:
    """Compute PQ, SQ and RQ of every datum: means over its labels.

    Args:
        present: status of each datum: on both sides or only one.
    """
    rows = segments.rows
    some = np.zeros(present.size, bool)
    some[rows.datum[rows.tp + rows.fp + rows.fn > 0]] = True
    columns: dict[str, tuple[Column, ...]] = {
        name: (Column(metric=name, values=of(rows, present.size)[:, None, None], reason=why),)
        for name, of, why in OF_IMAGE
    }
    status = np.where(some, present, np.int8(3))
    return Stats(np.ones(present.size, bool), columns, (STATUS, status))


merge = merge_by(
    "segments", lambda whole, settings: stats_from(whole.present, whole.segments), "outcomes", _KEYS
)


# Loss of single images: PQ over their labels; and their contents.


def losses(
    tallies: Tallies, settings: Settings, metrics: Sequence[Metric], dialect: Dialect, *, cuts: Cuts
) -> Losses:
    """See :class:`..task.JudgeDatums`."""
    (column,) = tallies.stats.columns["PQ"]
    value = column.values[:, 0, 0]
    rows = tallies.segments.rows
    fp, fn = (
        np.bincount(rows.datum, getattr(rows, name), minlength=value.size) for name in ("fp", "fn")
    )

    def why(codes: Array) -> list[str]:
        return [f"{int(fn[code]):,} missed, {int(fp[code]):,} too many" for code in codes.tolist()]

    return Losses(
        metric="PQ",
        value=value,
        higher=True,
        best=1.0,
        ties=lambda codes: [fp[codes] + fn[codes]],
        why=why,
    )


def contents(tallies: Tallies, settings: Settings, codes: Array) -> list[Content]:
    """See :attr:`..contents.Contents.of_tally`: labels of images, those with most errors first."""
    rows = tallies.segments.rows
    columns: dict[str, Callable[[int], str | None]] = {
        "matched": lambda at: str(rows.tp[at]),
        "missed": lambda at: str(rows.fn[at]),
        "too many": lambda at: str(rows.fp[at]),
        "mean IoU": lambda at: f"{rows.iou[at] / rows.tp[at]:.3f}" if rows.tp[at] else None,
    }
    return label_tables(tallies, rows, codes, rows.fp + rows.fn, columns)


# Tiny tables that make every kernel of panoptic segmentation run once.


def samples() -> Iterator[Sample]:
    """Maps of few ids and of many, whole segments and their boundaries."""
    every = metrics.names("panoptic")
    for factor in (1, 1000):
        ids = (np.arange(64) // 16 + 1).reshape(8, 8) * factor
        side = pl.DataFrame(
            {
                "datum_id": [0] * 4,
                "segment_id": np.unique(ids),
                "label_value": [1, 1, 2, 2],
                "raster": pl.Series([ids.tolist()] * 4, dtype=pl.List(pl.List(pl.Int64))),
            }
        )
        for kind in ("segm", "boundary"):
            yield side, side, {"metrics": every, "iou_type": kind}


# The plan of a panoptic run in words.


def explain(settings: Settings, needs: frozenset[str]) -> list[str]:
    """Return one line per step."""
    rules = settings.rules
    what = "IoU of whole segments"
    if settings.boundary_ratio is not None:
        what = (
            "the smaller of the IoU of segments and of their boundaries, of"
            f" {settings.boundary_ratio:g} of the diagonal"
        )
    void = "of either side" if rules.void_predictions else "of the ground truths"
    areas = "annotated" if rules.annotated_areas else "counted"
    return [
        f"match     {what} above 0.5; void {void} taken off; areas of ground truths {areas}",
        f"tally     {', '.join(sorted(needs))} by datum and label",
        "mean      over labels with segments: all, things, stuff",
    ]


# The metrics of a run: any segments can carry all of them.


def fit(
    metrics: tuple[Metric, ...], frames: Frames, settings: Settings, *, requested: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """Return the metrics as planned, and notes on columns that the dialect ignores."""
    notes = []
    if not settings.rules.crowds and "iscrowd" in frames.ground_truths.columns:
        message = "column 'iscrowd' is not read: the dialect knows no crowds."
        notes.append(Note("crowds_unread", message))
    return metrics, notes


TASK = Task(
    name="panoptic",
    settings=Settings,
    fit=fit,
    tally=tally,
    merge=merge,
    view=view_of(SegmentView, "segments"),
    cells_per_group=cells_per_group,
    own_frames=frames_of(crossing_frame, outcomes=outcomes),
    explain=explain,
    samples=samples,
    losses=losses,
    contents=Contents(of_tally=contents),
    drawn=SegmentView.drawn,
    warm=("parts", "masks", "label_maps"),
    examine=lambda frames, settings, _, workers: encode_batch(frames, settings, workers),
    in_parts=counts_in_parts("segments", merge),
    page=(PageFrame(name="confusion", metrics=("ConfusionMatrix",)),),
)
