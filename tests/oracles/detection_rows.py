"""Rows of detection tables as plain objects, and IoU of boxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

Box = tuple[float, float, float, float]
Label = tuple[str, Any]
"""Label key and label value."""


@dataclass(frozen=True)
class Prediction:
    """One predicted box."""

    row: int
    datum: Any
    label: Label
    box: Box
    score: float

    @property
    def area(self) -> float:
        """Width times height."""
        return box_area(self.box)


@dataclass(frozen=True)
class Truth:
    """One annotated box."""

    row: int
    datum: Any
    label: Label
    box: Box
    crowd: bool
    area: float
    annotation_id: Any = None


@dataclass(frozen=True)
class Sides:
    """Both sides of an evaluation."""

    predictions: tuple[Prediction, ...]
    truths: tuple[Truth, ...]

    @property
    def labels(self) -> list[Label]:
        """All labels of both sides, sorted."""
        return sorted({row.label for row in (*self.predictions, *self.truths)})

    def of(self, label: Label) -> Sides:
        """Return the rows of one label."""
        return Sides(
            tuple(p for p in self.predictions if p.label == label),
            tuple(g for g in self.truths if g.label == label),
        )

    def on(self, datums: set[Any]) -> Sides:
        """Return the rows of some datums."""
        return Sides(
            tuple(p for p in self.predictions if p.datum in datums),
            tuple(g for g in self.truths if g.datum in datums),
        )


@dataclass(frozen=True)
class Fate:
    """Outcome of a prediction at one IoU threshold and area range.

    Attributes:
        prediction: the prediction.
        status: ``tp``, ``fp`` or ``ignored``.
        truth: matched ground truth, or None.
        rank: rank within its datum and label, from 0.
        left_out: True if average precision and recall skip it (``valor-docs``).
    """

    prediction: Prediction
    status: str
    truth: Truth | None
    rank: int
    left_out: bool = False


def box_area(box: Box) -> float:
    """Compute width times height."""
    return (box[2] - box[0]) * (box[3] - box[1])


def box_iou(a: Box, b: Box, *, crowd: bool = False) -> float:
    """Compute IoU; if ``b`` is a crowd, divide by the area of ``a`` instead."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    overlap = width * height
    return overlap / (box_area(a) if crowd else box_area(a) + box_area(b) - overlap)


def outside(area: float, limits: tuple[float, float] | None) -> bool:
    """Return True if an area is outside a closed range."""
    return limits is not None and (area < limits[0] or area > limits[1])


def to_sides(predictions: pl.DataFrame, truths: pl.DataFrame, *, crowd: bool = True) -> Sides:
    """Convert tables of canonical columns to plain objects.

    Args:
        predictions: one row per prediction.
        truths: one row per ground truth; annotation_id defaults to the row number.
        crowd: True if the column ``iscrowd`` is used.
    """
    return Sides(
        tuple(
            Prediction(i, row["datum_id"], _label(row), _box(row), float(row["score"]))
            for i, row in enumerate(predictions.iter_rows(named=True))
        ),
        tuple(
            Truth(
                i,
                row["datum_id"],
                _label(row),
                _box(row),
                crowd and bool(row.get("iscrowd", 0)),
                float(row["area"]) if "area" in row else box_area(_box(row)),
                row.get("annotation_id", i),
            )
            for i, row in enumerate(truths.iter_rows(named=True))
        ),
    )


def _label(row: Mapping[str, Any]) -> Label:
    return row.get("label_key", "label"), row["label_value"]


def _box(row: Mapping[str, Any]) -> Box:
    return float(row["xmin"]), float(row["ymin"]), float(row["xmax"]), float(row["ymax"])


def groups(sides: Sides) -> list[tuple[list[Prediction], list[Truth]]]:
    """Group rows by datum and label, in row order."""
    keys = sorted({(row.label, row.datum) for row in (*sides.predictions, *sides.truths)})
    return [
        (
            [p for p in sides.predictions if (p.label, p.datum) == key],
            [g for g in sides.truths if (g.label, g.datum) == key],
        )
        for key in keys
    ]


def mean(values: Sequence[float | None]) -> float | None:
    """Compute the mean of defined values, or None without any."""
    defined = [v for v in values if v is not None]
    return sum(defined) / len(defined) if defined else None
