"""Encode: rows of both sides become segments, and pixels are counted by pairs of their ids."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import polars as pl

from ...ingest.frames import Frames
from ...ingest.problems import Note, count_of, note_of
from ...schemas.arrays import Array
from ...schemas.contract import GROUND_TRUTHS, PREDICTIONS
from ...schemas.errors import InputError
from ...tally.datums import Datums, Labels
from ...tally.segments import THING, UNKNOWN
from ..encoding import dataset_of, declared_labels, encode_datums, encode_labels, taken
from ..pixels.histograms import NOTHING, Pairs
from ..pixels.id_maps import IdMap, edge_maps
from ..pixels.maps import Opens, count_maps
from ..pixels.rasters import MapRow
from ..pixels.sides import Side, side_of
from ..workers import Workers
from .places import map_places
from .settings import Settings

VOID = 0
_SHOWN = 3


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
    keys: Array = (datum.astype(np.int64) << 32) + ids
    return keys


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

    Args:
        frames: checked tables; consumed, except their notes.

    Raises:
        InputError: maps that cannot be read or compared, or unknown ids.
    """
    dataset = dataset_of(frames)
    roles = (GROUND_TRUTHS, PREDICTIONS)
    ids = [taken(frames.sides[role], "datum_id") for role in roles]
    datums, coded = encode_datums(ids, frames, dataset, roles)
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
    truth, found = (
        _segmented(side, here, own, code, len(datums))
        for side, here, own, code in zip(sides, rows, read, codes, strict=True)
    )
    counted = _counted(places, workers, IdMap)
    edges = None
    if settings.boundary_ratio is not None:
        edges = _counted(places, workers, edge_maps(settings.boundary_ratio))
    _refuse_unknown(found, counted)
    frames.notes += _notes(truth, counted)
    declared, kind = _kinds(frames, labels)
    if (kind == UNKNOWN).all():
        frames.notes.append(_things_unknown(settings))
    return Batch(datums, labels, declared, kind, truth, found, counted, edges)


def _counted(places: Sequence[list[MapRow | None]], workers: Workers, opens: Opens) -> Pairs:
    """Pixels by pair of ids of every datum that some side has."""
    pairs = list(zip(*places, strict=True))
    there = [code for code, pair in enumerate(pairs) if pair != (None, None)]
    counted, _ = count_maps([pairs[code] for code in there], workers, resample=False, opens=opens)
    datum = np.array(there, np.int64)[counted.place]
    return msgspec.structs.replace(counted, place=datum)


def _ids(side: Side) -> Array:
    if "segment_id" not in side.frame.columns:
        return np.full(side.frame.height, -1, np.int64)
    return side.frame["segment_id"].cast(pl.Int64).fill_null(-1).to_numpy()


def _segmented(side: Side, rows: Array, ids: Array, code: Array, n_datums: int) -> Segmented:
    datum, own = side.datum[rows], ids[rows]
    order = np.lexsort((own, datum))
    rows = rows[order]
    frame = side.frame
    crowd, area = np.zeros(rows.size, bool), np.full(rows.size, np.nan)
    if "iscrowd" in frame.columns:
        crowd = frame["iscrowd"].fill_null(value=False).to_numpy()[rows]
    if "area" in frame.columns:
        area = frame["area"].cast(pl.Float64).fill_null(np.nan).to_numpy()[rows]
    present = np.bincount(side.datum, minlength=n_datums) > 0
    return Segmented(side, rows, datum[order], own[order], code[order], crowd, area, present)


def _refuse_unknown(found: Segmented, pairs: Pairs) -> None:
    """Raise InputError for ids of predicted maps without a row, and rows without a pixel.

    Raises:
        InputError: with the count; the message names the first.
    """
    here = np.flatnonzero((pairs.found != NOTHING) & (pairs.found != VOID))
    unknown = here[found.of(pairs.place[here], pairs.found[here]) < 0]
    if unknown.size:
        keys, first = np.unique(_keys(pairs.place, pairs.found)[unknown], return_index=True)
        shown = "; ".join(
            f"datum {found.side.ids[int(pairs.place[at])]!r}: id {pairs.found[at]}"
            for at in unknown[first][:_SHOWN]
        )
        raise InputError(
            f"predictions: {count_of(keys.size, 'segment')} in the maps without a row in the"
            f" table: {shown}. Give each its row, or make its pixels 0 (void).",
            code="segments_without_row",
            count=keys.size,
        )
    pixels = np.zeros(found.id.size, np.int64)
    segment = found.of(pairs.place, pairs.found)
    np.add.at(pixels, segment[segment >= 0], pairs.count[segment >= 0])
    empty = np.flatnonzero(pixels == 0)
    if empty.size:
        shown = "; ".join(
            f"{found.side.numbered(int(found.row[at]))}: segment {found.id[at]}"
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
                "in the maps and not in the table: neither void nor a segment, where every"
                " prediction is wrong",
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
    said = (
        "nothing says which labels are things and which are stuff: means are over all labels alone."
        " A table of labels with a column isthing says it."
    )
    if settings.rules.joined_stuff:
        said += " No segments of stuff are joined."
    return Note("things_unknown", said)


def _kinds(frames: Frames, labels: Labels) -> tuple[Array, Array]:
    """Return the mask of declared labels, and their kind (thing or stuff)."""
    kind = np.full(len(labels), UNKNOWN, np.int8)
    if frames.labels is None or frames.labels.is_empty():
        return np.zeros(len(labels), bool), kind
    key = ["label_key", "label_value"]
    told = declared_labels(frames, labels.frame, "isthing").with_columns(
        pl.lit(value=True).alias("declared")
    )
    joined = labels.frame.select(key).join(told, on=key, how="left", maintain_order="left")
    declared: Array = joined["declared"].fill_null(value=False).to_numpy()
    if "isthing" in joined.columns:
        kind = joined["isthing"].cast(pl.Int8).fill_null(UNKNOWN).to_numpy().astype(np.int8)
    return declared, np.minimum(kind, THING)
