"""Encode: checked detection tables become arrays; names, ids and labels become codes."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...inputs.frames import Frames
from ...inputs.geometry_columns import GEOMETRY_NAMES
from ...inputs.kept import Kept
from ...inputs.problems import Note
from ...tally.datums import Datums, Labels
from ..encoding import dataset_of, encode_datums, encode_labels, row_numbers, taken
from ..workers import Workers
from .comparing import compared
from .settings import Settings
from .shapes import Shapes

Array = np.ndarray[Any, Any]


class Side(msgspec.Struct, frozen=True):
    """One side's rows as arrays, in the order of its table.

    Attributes:
        datum: int32 [n], datum codes.
        label: int32 [n], label codes.
        corners: xmin, ymin, xmax, ymax, float64 [n] each, pixels.
        extent: width and height as annotated, float64 [n] each, or None.
        shapes: polygons or masks where those are compared; ``corners`` are then their bounding
            boxes. None where boxes are.
        frame: what is left of the checked table: columns only some outputs need.
        rows: int64 [n], where each row stands in the whole input; None where the table is that.
    """

    datum: Array
    label: Array
    corners: tuple[Array, Array, Array, Array]
    extent: tuple[Array, Array] | None
    shapes: Shapes | None
    frame: pl.DataFrame
    rows: Array | None = None


class Batch(msgspec.Struct, frozen=True):
    """Everything detection works on, as arrays.

    Attributes:
        datums: the datums, codes ascending by id.
        labels: the labels, codes ascending by key and value.
        predictions: rows of the predictions.
        ground_truths: rows of the ground truths.
        score: float64 [n], widened from the score column's own dtype.
        single: whether that dtype was single precision.
        crowd: bool [m].
        ignore: bool [m].
        area: float64 [m], annotated area, or None to use that of what is compared.
    """

    datums: Datums
    labels: Labels
    predictions: Side
    ground_truths: Side
    score: Array
    single: bool
    crowd: Array
    ignore: Array
    area: Array | None


def _floats(frame: pl.DataFrame, name: str) -> Array:
    return taken(frame, name).cast(pl.Float64).to_numpy()


def _side(frame: pl.DataFrame, datum: Array, label: Array, shapes: Shapes | None) -> Side:
    rows = row_numbers(frame)
    if shapes is not None:
        corners: Any = tuple(np.ascontiguousarray(shapes.boxes.T, np.float64))
        for name in GEOMETRY_NAMES:  # nothing reads them any more
            if name in frame.columns:
                frame.drop_in_place(name)
        return Side(datum, label, corners, None, shapes, frame, rows)
    corners = tuple(_floats(frame, name) for name in ("xmin", "ymin", "xmax", "ymax"))
    extent = None
    if "box_width" in frame.columns and "box_height" in frame.columns:
        extent = (_floats(frame, "box_width"), _floats(frame, "box_height"))
    return Side(datum, label, corners, extent, None, frame, rows)


def _declared_rows(frames: Frames) -> None:
    """Leave out rows of undeclared datums and labels, and say so."""
    for column, table in (("datum_id", frames.datums), ("label_value", frames.labels)):
        if table is None or column not in table.columns:
            continue
        known = table[column].implode()
        for side in ("predictions", "ground_truths"):
            frame = getattr(frames, side)
            there = frame.select(pl.col(column).is_in(known)).to_series()
            left_out = frame.height - int(there.sum())
            if left_out:
                setattr(frames, side, frame.filter(there))
                frames.kept.setdefault(side, Kept()).only(there)
                what = "datums" if column == "datum_id" else "labels"
                frames.notes.append(
                    Note(
                        "undeclared_left_out",
                        f"{side.replace('_', ' ')}: {left_out} rows of undeclared {what} are left"
                        " out, as COCO does.",
                        left_out,
                    )
                )


def _note_scores(frames: Frames, score: Array) -> None:
    """Say so where scores are no probabilities, since the default thresholds lie in 0 to 1."""
    if score.size:
        low, high = float(score.min()), float(score.max())
        if low < 0 or high > 1:
            frames.notes.append(
                Note(
                    "scores_beyond_one",
                    f"scores run from {low:g} to {high:g}: the default score_thresholds lie"
                    " between 0 and 1.",
                    None,
                )
            )


def encode_batch(frames: Frames, settings: Settings, threads: Workers) -> Batch:
    """Arrays from checked tables, whose columns are taken out as they are encoded.

    Args:
        frames: both sides, checked, used up here; their label map is applied.
        settings: whether rows of undeclared datums and labels are left out; which geometry is
            compared.
        threads: where heavy work runs.

    Raises:
        InputError: polygons or masks that cannot be read, or not be compared.
    """
    if settings.rules.declared_only:
        _declared_rows(frames)
    sides = [frames.predictions, frames.ground_truths]
    labels, (p_label, g_label) = encode_labels(
        [taken(side, "label_value") for side in sides],
        [taken(side, "label_key") if "label_key" in side.columns else None for side in sides],
        frames,
    )
    dataset = dataset_of(frames)
    datums, (p_datum, g_datum) = encode_datums(
        [taken(side, "datum_id") for side in sides], frames, dataset
    )
    shapes = compared(frames, datums, (p_datum, g_datum), settings, threads) or (None, None)
    ground_truths = frames.ground_truths
    score = taken(frames.predictions, "score")
    values = score.cast(pl.Float64).to_numpy()
    _note_scores(frames, values)
    crowd, ignore = (
        ground_truths[name].cast(pl.Boolean).to_numpy()
        if name in ground_truths.columns
        else np.zeros(g_datum.size, bool)
        for name in ("iscrowd", "ignore")
    )
    return Batch(
        datums=datums,
        labels=labels,
        predictions=_side(frames.predictions, p_datum, p_label, shapes[0]),
        ground_truths=_side(ground_truths, g_datum, g_label, shapes[1]),
        score=values,
        single=score.dtype == pl.Float32,
        crowd=crowd,
        ignore=ignore,
        area=_floats(ground_truths, "area") if "area" in ground_truths.columns else None,
    )
