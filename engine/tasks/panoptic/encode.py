"""Encoding of segments, and counts of pixels by pairs of ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...geometry.masks import Masks, read_masks, to_pixels
from ...ingest.frames import Frames
from ...ingest.problems import Note, count_of, note_of
from ...schemas.arrays import Array
from ...schemas.contract import GROUND_TRUTHS, PREDICTIONS
from ...schemas.errors import InputError
from ...tallies.counts import THING, UNKNOWN
from ...tallies.datums import Datums, Labels
from ..encoding import Workers, declared_places, encode_labels, encode_sides
from ..pixels.maps import IdMap, Opens, count_maps, edge_maps
from ..pixels.rasters import NOTHING, MapRow, Pairs, Side, side_of
from .dialects import Settings

# Sources of each image's map: a file, an array, or masks painted into one.

_SHOWN = 3


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
    if side.frame["raster"].dtype != pl.String:  # pixels: that of the first row counts
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
                f" width): {', '.join(f'{h} x {w}' for h, w in size.T[:_SHOWN])}. Write all at the"
                " size of the image.",
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
        wanted = _keys(datum, ids)
        at = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
        return np.where(keys[at] == wanted, at, -1)


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
        found: predictions.
        pairs: pixels by pair of ids.
        edges: same for boundaries; None if only whole segments are compared.
    """

    datums: Datums
    labels: Labels
    declared: Array
    kind: Array
    truth: Segmented
    found: Segmented
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
    counted = _counted(places, workers, IdMap)
    edges = None
    if settings.boundary_ratio is not None:
        edges = _counted(places, workers, edge_maps(settings.boundary_ratio))
    _refuse_unknown(predicted, counted)
    frames.notes += _notes(truth, counted)
    declared, kind = _kinds(frames, labels)
    if (kind == UNKNOWN).all():
        frames.notes.append(_things_unknown(settings))
    return Batch(datums, labels, declared, kind, truth, predicted, counted, edges)


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
    here = np.flatnonzero((pairs.found != NOTHING) & (pairs.found != VOID))
    unknown = here[predicted.of(pairs.place[here], pairs.found[here]) < 0]
    if unknown.size:
        keys, first = np.unique(_keys(pairs.place, pairs.found)[unknown], return_index=True)
        shown = "; ".join(
            f"datum {predicted.side.ids[int(pairs.place[at])]!r}: id {pairs.found[at]}"
            for at in unknown[first][:_SHOWN]
        )
        raise InputError(
            f"predictions: {count_of(keys.size, 'segment')} in the maps without a row in the"
            f" table: {shown}. Give each its row, or make its pixels 0 (void).",
            code="segments_without_row",
            count=keys.size,
        )
    pixels = np.zeros(predicted.id.size, np.int64)
    segment = predicted.of(pairs.place, pairs.found)
    np.add.at(pixels, segment[segment >= 0], pairs.count[segment >= 0])
    empty = np.flatnonzero(pixels == 0)
    if empty.size:
        shown = "; ".join(
            f"{predicted.side.numbered(int(predicted.row[at]))}: segment {predicted.id[at]}"
            for at in empty[:_SHOWN]
        )
        raise InputError(
            f"predictions: {count_of(empty.size, 'segment')} without a pixel in the map of the"
            f" image: {shown}. Remove these rows, or write their pixels.",
            code="segments_without_pixels",
            count=empty.size,
        )


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
