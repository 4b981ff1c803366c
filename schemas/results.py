"""Output frames: their columns and dtypes, in order.

``datum_id``, ``label_value``, ``actual``, ``predicted`` and ``matched_annotation_id`` keep the
dtype of the input (integer or string); they are ``None`` here and filled in when a frame is built.
Frames contain null, never NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import polars as pl

Schema = dict[str, pl.DataType | type[pl.DataType] | None]

PASSED, FAILED, SKIPPED, UNJUDGED = "passed", "failed", "skipped", "unjudged"
"""Statuses of gates, and of runs by their gates."""


class Finding(msgspec.Struct, frozen=True):
    """A note of a run as data.

    Attributes:
        code: kind of the note, such as ``unread_columns_differ``; stable between releases.
        severity: ``note`` or ``warning``.
        message: the sentence in ``notes``.
        count: number of affected rows, labels or datums; None without a number.
        facts: details as plain values, such as ``columns`` and ``rows``.
    """

    code: str
    severity: str
    message: str
    count: int | None = None
    facts: dict[str, Any] = {}


METRICS: Schema = {
    "metric": pl.String,
    "statistic": pl.String,
    "label_key": pl.String,
    "label_value": None,
    "average": pl.String,
    "iou_threshold": pl.Float64,
    "score_threshold": pl.Float64,
    "k": pl.Int64,
    "area": pl.String,
    "max_detections": pl.Int64,
    "slice": pl.String,
    "slice_value": pl.String,
    "value": pl.Float64,
    "lower": pl.Float64,
    "upper": pl.Float64,
    "support": pl.Int64,
    "scored": pl.Int64,
    "reason": pl.String,
    "parameters": pl.String,
}
"""One row per number; columns that do not apply are null; an undefined value has a reason.

Means of judged metrics also have a reason if some of their rows could not be scored.
"""

CURVES: Schema = {
    "curve": pl.String,
    "label_key": pl.String,
    "label_value": None,
    "iou_threshold": pl.Float64,
    "score_threshold": pl.Float64,
    "area": pl.String,
    "max_detections": pl.Int64,
    "slice": pl.String,
    "slice_value": pl.String,
    "tp": pl.Int64,
    "fp": pl.Int64,
    "fn": pl.Int64,
    "tn": pl.Int64,
    "precision": pl.Float64,
    "recall": pl.Float64,
    "f1": pl.Float64,
    "fpr": pl.Float64,
    "accuracy": pl.Float64,
}
"""One row per point of a curve."""

EXAMPLES: Schema = {
    "dataset": pl.String,
    "label_key": pl.String,
    "label_value": None,
    "iou_threshold": pl.Float64,
    "score_threshold": pl.Float64,
    "outcome": pl.String,
    "observation": pl.String,
    "count": pl.Int64,
    "datum_id": None,
    "geometry": pl.String,
    "slice": pl.String,
    "slice_value": pl.String,
    "actual": None,
    "predicted": None,
    "score": pl.Float64,
}
"""Cells of the detailed curve: one row per example; a cell without examples has null datum_id.

``outcome`` is tp, fp, fn or tn; ``observation`` is all, misclassifications, hallucinations,
duplicates or no_predictions; ``count`` is the whole cell's, repeated on each of its examples.
Rows of a confusion matrix have ``actual`` and ``predicted``, as in the confusion frame, and the
``score`` of the prediction; in classification their ``score_threshold`` is null.
"""

CONFUSION: Schema = {
    "label_key": pl.String,
    "actual": None,
    "predicted": None,
    "iou_threshold": pl.Float64,
    "score_threshold": pl.Float64,
    "slice": pl.String,
    "slice_value": pl.String,
    "count": pl.Int64,
}
"""Sparse confusion counts; null actual = hallucination, null predicted = missed."""

OUTCOMES: Schema = {
    "datum_id": None,
    "label_key": pl.String,
    "label_value": None,
    "iou_threshold": pl.Float64,
    "score_threshold": pl.Float64,
    "outcome": pl.String,
    "score": pl.Float64,
    "iou": pl.Float64,
    "matched_annotation_id": None,
}
"""One row per prediction or missed ground truth."""
RIGHT = ("tp", "tn", "ignored", "match", "fragment")
"""Outcomes of rows without errors."""

ERRORS: Schema = {
    "datum_id": None,
    "label_key": pl.String,
    "label_value": None,
    "iou_threshold": pl.Float64,
    "error": pl.String,
    "score": pl.Float64,
    "iou": pl.Float64,
    "prediction_row": pl.Int64,
    "annotation_id": None,
    "annotation_label": None,
    "mended": pl.Boolean,
    "keypoint": pl.Int64,
    "swapped_annotation_id": None,
    **dict.fromkeys(("xmin", "ymin", "xmax", "ymax"), pl.Float64),
    **dict.fromkeys(
        (f"annotation_{side}" for side in ("xmin", "ymin", "xmax", "ymax")), pl.Float64
    ),
}
"""One row per wrong prediction (Cls, Loc, Both, Dupe, Bkg) or missed ground truth (Miss).

``label_value`` is the label of the prediction, or of the missed ground truth; ``annotation_id`` and
``annotation_label`` identify the compared ground truth, ``mended`` is True if the prediction would
hit it once fixed. Boxes are those of the tables, or bounding boxes. Rows of keypoints (jitter,
inversion, swap, miss) have the point's number from 1 and its similarity (``iou``);
``swapped_annotation_id`` is the person on which the point is instead.
"""

_BOXES: Schema = {name: ERRORS[name] for name in list(ERRORS)[-8:]}

LABEL_ERRORS: Schema = {
    "datum_id": None,
    "label_key": pl.String,
    "label_value": None,
    "reason": pl.String,
    "suggested": None,
    "suspicion": pl.Float64,
    "score": pl.Float64,
    "given_score": pl.Float64,
    "iou": pl.Float64,
    "normalized_margin": pl.Float64,
    "confidence_weighted_entropy": pl.Float64,
    "found_by": pl.String,
    "prediction_row": pl.Int64,
    "annotation_id": None,
    **_BOXES,
}
"""One row per ground truth whose label is likely wrong, or that is likely missing.

``label_value`` is the given label, null if it is missing, ``suggested`` the one predicted
instead; ``score`` is the prediction's, ``given_score`` that of the given label; ``suspicion`` is
between 0 and 1. In detection ``xmin`` and the like are of the prediction, or of the other ground
truth of a duplicate; in classification they and the IoU are null.
"""

PER_DATUM: Schema = {
    "datum_id": None,
    "metric": pl.String,
    "statistic": pl.String,
    "k": pl.Int64,
    "value": pl.Float64,
    "status": pl.String,
}
"""One row per datum, metric, statistic and k."""

LIMITS: Schema = {
    **{
        name: METRICS[name]
        for name in METRICS
        if name not in ("value", "lower", "upper", "support", "scored", "reason")
    },
    "value": pl.Float64,
    "limit": pl.String,
    "lowest": pl.Float64,
    "highest": pl.Float64,
    "bound": pl.String,
}
"""Bounds: one row per number and choice that the tables do not specify."""

TO_LABEL: Schema = {
    "datum_id": None,
    "metric": pl.String,
    "value": pl.Float64,
    "judge": pl.Float64,
    "stratum": pl.Int64,
    "probability": pl.Float64,
    "label_weight": pl.Float64,
}
"""Rows that people should label next (``value`` is null), then those labelled already.

``judge`` is the judge's value; rows of one ``stratum`` were chosen with the same ``probability``.
Filled in, the table is that of the option ``human``.
"""

SPREAD: Schema = {
    **{
        name: METRICS[name]
        for name in METRICS
        if name not in ("value", "lower", "upper", "support", "scored", "reason", "slice_value")
    },
    "groups": pl.Int64,
    "lowest": pl.Float64,
    "lowest_group": pl.String,
    "highest": pl.Float64,
    "highest_group": pl.String,
    "difference": pl.Float64,
    "ratio": pl.Float64,
    "expected": pl.Float64,
    "expected_95": pl.Float64,
    "excess": pl.Float64,
}
"""Differences of each number between groups: one row per number, over the values of one slice.

``expected`` and ``expected_95`` are mean and 95 % point of the difference between groups of these
sizes that are equal; ``excess`` is the difference minus ``expected``, at least 0.
"""

FRAMES: dict[str, Schema] = {
    "metrics": METRICS,
    "curves": CURVES,
    "examples": EXAMPLES,
    "confusion": CONFUSION,
    "outcomes": OUTCOMES,
    "errors": ERRORS,
    "label_errors": LABEL_ERRORS,
    "per_datum": PER_DATUM,
    "limits": LIMITS,
    "to_label": TO_LABEL,
    "spread": SPREAD,
}


ESTIMATES: dict[str, pl.DataType] = {
    "se": pl.Float64(),
    "bias": pl.Float64(),
    "draws": pl.Int64(),
    "trials": pl.Int64(),
    "corrected": pl.Float64(),
    "corrected_lower": pl.Float64(),
    "corrected_upper": pl.Float64(),
}
"""Columns of ``metrics`` with intervals: standard error, mean of the resamples minus the
value, number of resamples that define the value, the independent datums of a proportion whose
interval is Wilson's (null for any other), and mAP without the part that small sets add (likewise),
with its interval.
"""

COUNTS = ("tp", "fp", "fn", "tn", "count", "support")
"""Columns of counts: integers, or sums of weights if rows have them."""


def frame_schema(
    name: str,
    *,
    label: pl.DataType | None = None,
    datum: pl.DataType | None = None,
    weighted: bool = False,
    intervals: bool = False,
) -> dict[str, pl.DataType]:
    """Return the schema of an output frame with the input's dtypes filled in.

    Args:
        name: a key of :data:`FRAMES`.
        label: dtype of label values (``label_value``, ``actual``, ``predicted``); String if None.
        datum: dtype of datum and annotation ids; String if None.
        weighted: counts are sums of weights, Float64 instead of Int64.
        intervals: ``metrics`` has :data:`ESTIMATES` after ``upper``.
    """
    fill = {
        "label_value": label,
        "actual": label,
        "predicted": label,
        "annotation_label": label,
        "suggested": label,
        "datum_id": datum,
    }
    schema: dict[str, pl.DataType] = {}
    for column, dtype in FRAMES[name].items():
        chosen = dtype if dtype is not None else fill.get(column) or pl.String()
        schema[column] = chosen() if isinstance(chosen, type) else chosen
        if intervals and (name, column) == ("metrics", "upper"):
            schema |= ESTIMATES
        if weighted and column in COUNTS:
            schema[column] = pl.Float64()
    return schema


def empty_frame(
    name: str, *, label: pl.DataType | None = None, datum: pl.DataType | None = None
) -> pl.DataFrame:
    """An output frame of the right schema without rows."""
    return pl.DataFrame(schema=frame_schema(name, label=label, datum=datum))


def in_schema(
    columns: pl.DataFrame | Mapping[str, Any], schema: Mapping[str, Any], **constants: Any
) -> pl.DataFrame:
    """Return columns in the order and dtypes of a schema; missing ones, and None, become null.

    Args:
        constants: values of further columns.
    """
    if isinstance(columns, Mapping):
        columns = pl.DataFrame({name: one for name, one in columns.items() if one is not None})
    return columns.select(
        (pl.col(name) if name in columns.columns else pl.lit(constants.get(name)))
        .cast(dtype)
        .alias(name)
        for name, dtype in schema.items()
    )
