"""Encoding of boxes and masks of both sides."""

from __future__ import annotations

import msgspec
import numpy as np
import polars as pl

from ...geometry.columns import Place
from ...geometry.masks import Masks, concat, intersections, read_masks, refuse_sizes
from ...geometry.polygons import rasterise, read_polygons
from ...ingest.frames import Frames
from ...ingest.geometry import CORNER_NAMES
from ...ingest.ids import encode
from ...ingest.problems import count_of
from ...schemas.arrays import Array
from ...schemas.contract import GROUND_TRUTHS, PREDICTIONS
from ...schemas.errors import N_EXAMPLES, InputError
from ...schemas.wording import option
from ...tallies.datums import Datums, Labels
from ..encoding import (
    Workers,
    declared_codes,
    declared_sizes,
    encode_labels,
    encode_sides,
    pop_column,
    pop_numbers,
)

# Masks in place of boxes: those that rows have, and polygons as pixels.

SHAPES = ("mask", "polygon")
"""Columns that masks are made of."""


def read(frame: pl.DataFrame, role: str, sizes: Array, workers: Workers) -> Masks:
    """Read the masks of all rows, and remove their columns.

    Args:
        role: name of the side.
        sizes: int64 [n, 2], image height and width of each row's sequence, 0 if the table of datums
            does not contain them; used for rasterising polygons.

    Raises:
        InputError: rows with neither mask nor polygon, masks that cannot be read, and polygons on
            images of unknown size.
    """
    unread = np.arange(frame.height)
    parts: list[Masks] = []
    rows: list[Array] = []
    for name in SHAPES:
        if name not in frame.columns:
            continue
        column = pop_column(frame, name)
        filled = unread[column.is_not_null().to_numpy()[unread]]
        unread = np.setdiff1d(unread, filled, assume_unique=True)
        some = column.gather(filled)
        if name == "mask":
            parts.append(read_masks(some, side=role, over=workers.over, rows=filled))
        else:
            polygons = read_polygons(some, side=role, rows=filled)
            parts.append(rasterise(polygons, sizes[filled, 0], sizes[filled, 1], workers.over))
        rows.append(filled)
    if unread.size:
        raise InputError(
            f"{role.replace('_', ' ')}: {count_of(unread.size, 'row')} without a mask or a polygon,"
            f" first row {unread[0]:,} (counted from 0). Give each row one, or compare boxes.",
            code="geometry_missing",
            side=role,
            count=unread.size,
            rows=unread[:1].tolist(),
        )
    order = np.concatenate([np.zeros(0, np.int64), *rows])
    return concat(parts).take(np.argsort(order))


def shared(predicted: Masks, truth: Masks, row: Array, other: Array, workers: Workers) -> Array:
    """Return shared pixels of pairs of predictions and ground truths, int64 [k].

    Args:
        row: int [k], the prediction of each pair.
        other: int [k], its ground truth.

    Raises:
        InputError: masks of one frame that differ in size.
    """
    places = Place("predictions", "mask"), Place("ground_truths", "mask")
    refuse_sizes(predicted, truth, row, other, a_place=places[0], b_place=places[1])
    return intersections(predicted, truth, row, other, workers.over)


# Encode: rows of both sides become boxes with codes of sequence, label, frame and object.

NAMES = {GROUND_TRUTHS: "object_id", PREDICTIONS: "track_id"}
"""Names of the ids of each side."""
UNNAMED = "object"
"""Label of all rows if tables have none."""


class Side(msgspec.Struct, frozen=True):
    """One side's rows as arrays, in the order of its table.

    Attributes:
        datum: int32 [n], code of the sequence.
        label: int32 [n], label code.
        frame: int64 [n], number of the video frame.
        id: int32 [n], code of the object or track.
        ids: ids of these codes.
        boxes: float64 [n, 4]: xmin, ymin, xmax, ymax; bounding boxes of masks.
        masks: of all rows, if compared.
        ignored: bool [n], ground truths that absorb predictions.
        left_out: bool [n], ground truths that are dropped without absorbing any.
        region: bool [n], ground truths that are regions.
        hidden: float64 [n, 2], levels of occlusion and truncation, 0 if unknown.
        score: of predictions, if they have one.
    """

    datum: Array
    label: Array
    frame: Array
    id: Array
    ids: pl.Series
    boxes: Array
    masks: Masks | None
    ignored: Array
    left_out: Array
    region: Array
    hidden: Array
    score: pl.Series | None

    def some(self, rows: Array) -> Side:
        """Some of the rows, in ascending order."""
        if rows.size == self.datum.size:
            return self
        names = (
            "datum",
            "label",
            "frame",
            "id",
            "boxes",
            "ignored",
            "left_out",
            "region",
            "hidden",
        )
        chosen = {name: getattr(self, name)[rows] for name in names}
        score = None if self.score is None else self.score.gather(rows)
        masks = None if self.masks is None else self.masks.take(rows)
        return msgspec.structs.replace(self, **chosen, score=score, masks=masks)


class Batch(msgspec.Struct, frozen=True):
    """Tracking input as arrays.

    Attributes:
        datums: the sequences and their slices.
        labels: of both sides and the declared ones.
        declared: bool [n_labels], labels that were declared.
        labelled: the tables have labels.
        truth: ground truths.
        predicted: predictions.
        length: int64 [n_datums], frames of each sequence, 0 if unknown.
    """

    datums: Datums
    labels: Labels
    declared: Array
    labelled: bool
    truth: Side
    predicted: Side
    length: Array


def encode_batch(frames: Frames, iou_type: str | None, workers: Workers) -> Batch:
    """Encode checked tables as arrays; columns are consumed as they are encoded.

    Args:
        frames: both sides, checked; consumed. Their label map is applied.
        iou_type: ``bbox``, ``segm``, or None: boxes, if both sides have such columns.

    Raises:
        InputError: only one side has labels, or rows without the compared geometry.
    """
    roles = (GROUND_TRUTHS, PREDICTIONS)
    sides = [frames.sides[role] for role in roles]
    masked = iou_type == "segm" or (iou_type is None and _only_masks(sides))
    if not masked:
        for side, role in zip(sides, roles, strict=True):
            _refuse_boxless(side, role)
    datums, datum = encode_sides(frames)
    length = _length(frames, datums)
    labelled = _labelled(sides)
    values = [
        pop_column(side, "label_value")
        if labelled
        else pl.Series([UNNAMED], dtype=pl.String).new_from_index(0, side.height)
        for side in sides
    ]
    labels, label = encode_labels(values, [None, None], frames)
    sizes = declared_sizes(frames, datums)
    masks = [
        read(side, role, sizes[code], workers) if masked else None
        for side, role, code in zip(sides, roles, datum, strict=True)
    ]
    coded = zip(sides, roles, datum, label, masks, strict=True)
    truth, predicted = (_side(*one) for one in coded)
    declared = declared_codes(frames, labels)
    declared = np.zeros(len(labels), bool) if declared is None else declared
    return Batch(datums, labels, declared, labelled, truth, predicted, length)


def refuse_frames(batch: Batch, first: int) -> None:
    """Raise InputError for frame numbers outside a sequence of known length.

    Args:
        first: the number of the first frame.
    """
    parts = []
    count = 0
    for role, side in ((GROUND_TRUTHS, batch.truth), (PREDICTIONS, batch.predicted)):
        last = batch.length[side.datum]
        wrong = np.flatnonzero((last > 0) & ((side.frame < first) | (side.frame >= first + last)))
        if wrong.size:
            at = wrong[0]
            count += wrong.size
            name = batch.datums.id[int(side.datum[at])]
            parts.append(
                f"{role.replace('_', ' ')}: {count_of(wrong.size, 'row')} of frames that their"
                f" sequence does not have, first frame {side.frame[at]:,} of {name!r}, whose frames"
                f" are {first} to {first + last[at] - 1:,}"
            )
    if parts:
        raise InputError(
            f"{'; '.join(parts)}. Number frames from {first}; or correct the sequence's length"
            " (seqLength in seqinfo.ini, column frames of the datums).",
            code="frames_beyond",
            count=count,
        )


def refuse_short(batch: Batch, n_frames: Array) -> None:
    """Raise InputError for sequences with rows of more frames than their length.

    Args:
        n_frames: int64 [n_datums], frames of each that have a row.
    """
    short = np.flatnonzero((batch.length > 0) & (batch.length < n_frames))
    if short.size:
        first = [
            f"{batch.datums.id[int(at)]!r} ({batch.length[at]:,} of {n_frames[at]:,})"
            for at in short[:N_EXAMPLES]
        ]
        more = ", ..." if short.size > N_EXAMPLES else ""
        raise InputError(
            f"datums: column 'frames': {count_of(short.size, 'sequence')} shorter than the frames"
            f" that have rows, first {', '.join(first)}{more}. Correct the lengths, or remove"
            " them: then frames with rows are counted.",
            code="sequence_short",
            column="frames",
            count=short.size,
        )


def _only_masks(sides: list[pl.DataFrame]) -> bool:
    """Return True if both sides have masks or polygons, and one of them no columns of boxes."""
    boxed = all({*CORNER_NAMES} <= {*side.columns} for side in sides)
    return not boxed and all({*SHAPES} & {*side.columns} for side in sides)


def _refuse_boxless(side: pl.DataFrame, role: str) -> None:
    """Raise InputError for rows without a box."""
    has_boxes = {*CORNER_NAMES} <= {*side.columns}
    boxless = side.height
    if has_boxes:
        boxless = side.select(pl.any_horizontal(pl.col(CORNER_NAMES).is_null()).sum()).item()
    if boxless or not has_boxes:
        raise InputError(
            f"{role.replace('_', ' ')}: {count_of(boxless, 'row')} without a box. Write columns"
            " xmin, ymin, xmax and ymax; or give both sides masks or polygons, and write"
            f" {option('iou_type', 'segm')}.",
            code="geometry_missing",
            side=role,
            count=boxless,
        )


def _length(frames: Frames, datums: Datums) -> Array:
    """Frames of each sequence as the table of datums has them, int64 [n_datums], else 0."""
    if frames.datums is None or "frames" not in frames.datums.columns:
        return np.zeros(len(datums), np.int64)
    lengths = frames.datums.select(
        pl.col("datum_id").cast(datums.id.dtype), pl.col("frames").cast(pl.Int64)
    )
    joined = datums.id.to_frame().join(lengths, on="datum_id", how="left", maintain_order="left")
    return joined["frames"].fill_null(0).to_numpy()


def _labelled(sides: list[pl.DataFrame]) -> bool:
    """Return True if rows have labels."""
    have = ["label_value" in side.columns for side in sides]
    if any(have) and not all(have):
        other, unlabelled = (
            ("ground truths", "predictions") if have[0] else ("predictions", "ground truths")
        )
        raise InputError(
            f"{unlabelled}: no labels, and the {other} have a column label_value. Objects and"
            f" tracks are matched within their label: give the {unlabelled} the column, too, or"
            f" remove it from the {other}.",
            code="column_missing",
            column="label_value",
        )
    return all(have)


def _side(frame: pl.DataFrame, role: str, datum: Array, label: Array, masks: Masks | None) -> Side:
    if masks is not None:
        boxes = masks.boxes
    else:
        boxes = np.stack([pop_numbers(frame, name) for name in CORNER_NAMES], axis=1)
    ids, (code,) = encode([pop_column(frame, NAMES[role])])

    def flags(name: str, absent: bool = False) -> Array:
        if name not in frame.columns:
            return np.full(datum.size, absent)
        return pop_column(frame, name).cast(pl.Boolean).to_numpy()

    def levels(name: str) -> Array:
        return np.zeros(datum.size) if name not in frame.columns else pop_numbers(frame, name)

    return Side(
        datum=datum,
        label=label,
        frame=pop_column(frame, "frame").cast(pl.Int64).to_numpy(),
        id=code,
        ids=ids,
        boxes=boxes,
        masks=masks,
        ignored=flags("ignored"),
        left_out=~flags("considered", absent=True),
        region=flags("region"),
        hidden=np.stack([levels("occluded"), levels("truncated")], axis=1),
        score=pop_column(frame, "score") if "score" in frame.columns else None,
    )
