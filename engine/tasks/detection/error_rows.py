"""Rows of the ``errors`` frame, with prediction and ground truth."""

from __future__ import annotations

import numpy as np
import polars as pl

from ...ingest.boxes import CORNER_NAMES
from ...schemas.arrays import Array
from ...tally.ranked import Ranked
from .encode import Batch, Side
from .outcomes import annotation_ids
from .overlaps import label_of

IDS = ("annotation_id", "swapped_annotation_id")
"""Columns of ground-truth ids, or of their rows if there are no ids."""


def error_rows(
    batch: Batch,
    ranked: Ranked,
    *,
    predictions: Array,
    truths: Array,
    error: Array,
    iou: Array,
    threshold: float,
    mended: Array | None = None,
    keypoint: Array | None = None,
    swapped: Array | None = None,
) -> pl.DataFrame:
    """Build the rows of the ``errors`` frame.

    Args:
        predictions: int [k], ranked predictions, -1 for none.
        truths: int [k], layout indices of the compared ground truths, -1 for none.
        error: names [k].
        iou: float64 [k], NaN for none.
        threshold: the IoU threshold.
        mended: bool [k]; null if unknown.
        keypoint: int64 [k], from 1; null by default.
        swapped: int [k], layout indices of other ground truths, -1 for none.
    """
    n, table = error.size, batch.labels.frame
    ours, theirs = predictions >= 0, truths >= 0
    p_label, g_label = label_of(ranked.start), label_of(ranked.gt_start)
    nobody = np.full(n, -1)
    label = _at(g_label, truths)
    label[ours] = p_label[predictions[ours]]
    datum = _at(ranked.gt_datum, truths)
    datum[ours] = ranked.datum[predictions[ours]]
    p_row, g_row = _at(ranked.row, predictions), _at(ranked.gt_row, truths)
    score = np.full(n, np.nan)
    score[ours] = ranked.score[predictions[ours]]
    ids = annotation_ids(batch)
    beside = _at(ranked.gt_row, nobody if swapped is None else swapped)
    return pl.DataFrame(
        {
            "datum_id": batch.datums.id.gather(datum),
            "label_key": table["label_key"].gather(label),
            "label_value": table["label_value"].gather(label),
            "iou_threshold": np.full(n, threshold),
            "error": pl.Series(error, dtype=pl.String),
            "score": pl.Series(score, nan_to_null=True),
            "iou": pl.Series(iou, nan_to_null=True),
            "prediction_row": _series(p_row, ours),
            "annotation_id": ids.gather(_series(g_row, theirs)),
            "annotation_label": table["label_value"].gather(_series(_at(g_label, truths), theirs)),
            "mended": pl.Series([None] * n if mended is None else mended, dtype=pl.Boolean),
            "keypoint": pl.Series([None] * n if keypoint is None else keypoint, dtype=pl.Int64),
            "swapped_annotation_id": ids.gather(_series(beside, beside >= 0)),
            **corners_of("", batch.predictions, p_row[ours], np.flatnonzero(ours), n),
            **corners_of(
                "annotation_", batch.ground_truths, g_row[theirs], np.flatnonzero(theirs), n
            ),
        }
    )


def _at(values: Array, places: Array) -> Array:
    """Gather values, int64 [k]; -1 for index -1."""
    out = np.full(places.size, -1, np.int64)
    there = places >= 0
    out[there] = values[places[there]]
    return out


def _series(values: Array, there: Array) -> pl.Series:
    return pl.Series(values).set(pl.Series(~there), None)


def corners_of(before: str, side: Side, rows: Array, places: Array, n: int) -> dict[str, pl.Series]:
    """Corners of some rows of a table at some of ``n`` places, null at all others."""
    corners = np.full((n, 4), np.nan)
    corners[places] = side.boxes(rows)
    return {
        before + name: pl.Series(column, nan_to_null=True)
        for name, column in zip(CORNER_NAMES, corners.T, strict=True)
    }


def in_order(frame: pl.DataFrame) -> pl.DataFrame:
    """Rows as the ``errors`` frame has them; of equal ones the order stays."""
    return frame.sort(
        ["iou_threshold", "datum_id", "score", "label_key", "label_value"],
        descending=[False, False, True, False, False],
        nulls_last=True,
        maintain_order=True,
    )
