"""Encode: checked detection tables become arrays; names, ids and labels become codes."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...inputs.codes import encode
from ...inputs.frames import Frames
from ...inputs.problems import Note
from ...schemas.tables import DEFAULT_LABEL_KEY
from ...tally.datums import Datums, Labels

Array = np.ndarray[Any, Any]


class Side(msgspec.Struct, frozen=True):
    """One side's rows as arrays, in the order of its table.

    Attributes:
        datum: int32 [n], datum codes.
        label: int32 [n], label codes.
        corners: xmin, ymin, xmax, ymax, float64 [n] each, pixels.
        extent: width and height as annotated, float64 [n] each, or None.
        frame: what is left of the checked table: columns only some outputs need.
    """

    datum: Array
    label: Array
    corners: tuple[Array, Array, Array, Array]
    extent: tuple[Array, Array] | None
    frame: pl.DataFrame


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
        area: float64 [m], annotated area, or None to use the box's.
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


def _taken(frame: pl.DataFrame, name: str) -> pl.Series:
    """A column taken out of the frame, so that it and its array are not held at once."""
    return frame.drop_in_place(name)


def _floats(frame: pl.DataFrame, name: str) -> Array:
    return _taken(frame, name).cast(pl.Float64).to_numpy()


def _encode_labels(frames: Frames) -> tuple[Labels, Array, Array]:
    """Labels over both sides, mapped, with the codes of both sides' rows."""
    sides = [frames.predictions, frames.ground_truths]
    values, codes = encode([_taken(side, "label_value") for side in sides])
    if not any("label_key" in side.columns for side in sides):
        pairs = pl.DataFrame(
            {"label_key": [DEFAULT_LABEL_KEY] * len(values), "label_value": values},
            schema={"label_key": pl.String, "label_value": values.dtype},
        )
        pair_codes = codes
    else:
        keys, key_codes = encode(
            [
                _taken(side, "label_key")
                if "label_key" in side.columns
                else pl.Series("label_key", [DEFAULT_LABEL_KEY], dtype=pl.String).new_from_index(
                    0, side.height
                )
                for side in sides
            ]
        )
        joint = [
            k.astype(np.int64) * len(values) + v for k, v in zip(key_codes, codes, strict=True)
        ]
        distinct, pair_codes = encode([pl.Series("pair", array) for array in joint])
        at = distinct.to_numpy()
        width = max(1, len(values))
        pairs = pl.DataFrame(
            {"label_key": keys.gather(at // width), "label_value": values.gather(at % width)}
        )
    mapped = _mapped(pairs, frames.label_map)
    declared = _declared(frames.labels, mapped)
    table = (
        pl.concat(
            [mapped.select("label_key", "label_value"), declared.select("label_key", "label_value")]
        )
        .unique()
        .sort("label_key", "label_value")
    )
    code_of = table.with_row_index("code")
    new = (
        mapped.join(code_of, on=["label_key", "label_value"], how="left", maintain_order="left")[
            "code"
        ]
        .cast(pl.Int32)
        .to_numpy()
    )
    named = table.join(declared, on=["label_key", "label_value"], how="left", maintain_order="left")
    identity = new.size == 0 or bool((new == np.arange(new.size)).all())
    p, g = (codes if identity else new.take(codes) for codes in pair_codes)
    return Labels.of(named), p, g


def _mapped(pairs: pl.DataFrame, maps: dict[str, pl.DataFrame] | None) -> pl.DataFrame:
    """Labels as the label map renames them, row by row."""
    if not maps:
        return pairs
    key = ["label_key", "label_value"]
    table = pl.concat(list(maps.values()), how="vertical_relaxed").unique(key)
    return pairs.join(table, on=key, how="left", maintain_order="left").select(
        pl.coalesce("new_label_key", "label_key").alias("label_key"),
        pl.coalesce("new_label_value", "label_value").alias("label_value"),
    )


def _declared(labels: pl.DataFrame | None, pairs: pl.DataFrame) -> pl.DataFrame:
    """Declared labels as label_key, label_value, label_name."""
    dtype = pairs.schema["label_value"]
    schema: dict[str, Any] = {
        "label_key": pl.String,
        "label_value": dtype,
        "label_name": pl.String,
    }
    if labels is None or labels.is_empty():
        return pl.DataFrame(schema=schema)
    key = pl.col("label_key") if "label_key" in labels.columns else pl.lit(DEFAULT_LABEL_KEY)
    name = (
        pl.col("label_name").cast(pl.String)
        if "label_name" in labels.columns
        else pl.lit(None, dtype=pl.String)
    )
    return labels.select(
        key.alias("label_key"), pl.col("label_value").cast(dtype), name.alias("label_name")
    ).unique(["label_key", "label_value"], keep="first", maintain_order=True)


def _encode_datums(frames: Frames) -> tuple[Datums, Array, Array]:
    """Datums over both sides and the datum table, with the codes of both sides' rows."""
    dataset = _dataset(frames)
    columns = [_taken(side, "datum_id") for side in (frames.predictions, frames.ground_truths)]
    if frames.datums is not None:
        columns.append(frames.datums["datum_id"].cast(columns[0].dtype))
    ids, codes = encode(columns)
    ids = ids.alias("datum_id")
    slices = frames.slices
    if slices is None:
        aligned = pl.DataFrame({"datum_id": ids}).select()
    else:
        aligned = (
            ids.to_frame()
            .join(slices, on="datum_id", how="left", maintain_order="left")
            .drop("datum_id")
        )
    if dataset is not None:
        joined = ids.to_frame().join(dataset, on="datum_id", how="left", maintain_order="left")
        return Datums(ids, aligned, joined["dataset"]), codes[0], codes[1]
    return Datums(ids, aligned), codes[0], codes[1]


def _dataset(frames: Frames) -> pl.DataFrame | None:
    """datum_id and dataset; of several tables the first that knows a datum tells."""
    told = [
        table.select("datum_id", pl.col("dataset").cast(pl.String)).drop_nulls()
        for table in (frames.datums, frames.ground_truths, frames.predictions)
        if table is not None and "dataset" in table.columns
    ]
    if not told:
        return None
    return pl.concat(told, how="vertical_relaxed").unique(
        "datum_id", keep="first", maintain_order=True
    )


def _side(frame: pl.DataFrame, datum: Array, label: Array) -> Side:
    corners = tuple(_floats(frame, name) for name in ("xmin", "ymin", "xmax", "ymax"))
    extent = None
    if "box_width" in frame.columns and "box_height" in frame.columns:
        extent = (_floats(frame, "box_width"), _floats(frame, "box_height"))
    return Side(datum, label, corners, extent, frame)  # type: ignore[arg-type]


def _declared_rows(frames: Frames) -> None:
    """Leave out rows of undeclared datums and labels, and say so."""
    for column, table in (("datum_id", frames.datums), ("label_value", frames.labels)):
        if table is None or column not in table.columns:
            continue
        known = table[column].implode()
        for side in ("predictions", "ground_truths"):
            frame = getattr(frames, side)
            kept = frame.filter(pl.col(column).is_in(known))
            left_out = frame.height - kept.height
            if left_out:
                setattr(frames, side, kept)
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


def encode_batch(frames: Frames, *, declared_only: bool = False) -> Batch:
    """Arrays from checked tables, whose columns are taken out as they are encoded.

    Args:
        frames: both sides, checked, used up here; their label map is applied.
        declared_only: leave out rows of datums and labels that are not declared.
    """
    if declared_only:
        _declared_rows(frames)
    labels, p_label, g_label = _encode_labels(frames)
    datums, p_datum, g_datum = _encode_datums(frames)
    ground_truths = frames.ground_truths
    score = _taken(frames.predictions, "score")
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
        predictions=_side(frames.predictions, p_datum, p_label),
        ground_truths=_side(ground_truths, g_datum, g_label),
        score=values,
        single=score.dtype == pl.Float32,
        crowd=crowd,
        ignore=ignore,
        area=_floats(ground_truths, "area") if "area" in ground_truths.columns else None,
    )
