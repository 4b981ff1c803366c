"""Scorecards made by hand, from frames of the contract without any engine."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import polars as pl

from evalengine.exports import makers
from evalengine.schemas.option_values import make_options
from evalengine.schemas.results import frame_schema
from evalengine.scorecard.card import Scorecard

PRIMARY = ("mAPAveragedOverIOUs", "mAP", "mAR")
_UP = ("AP", "APAveragedOverIOUs", "AR", "mAP", "mAPAveragedOverIOUs", "mAR", "F1")
DIRECTIONS = dict.fromkeys(_UP, "higher")


def frame(
    name: str,
    rows: Iterable[dict[str, Any]],
    *,
    label: pl.DataType | None = None,
    datum: pl.DataType | None = None,
) -> pl.DataFrame:
    """Make an output frame; columns that are missing in a row are null."""
    schema = frame_schema(name, label=label, datum=datum)
    rows = [{column: row.get(column) for column in schema} for row in rows]
    for row in rows:
        assert set(row) == set(schema)
    return pl.DataFrame(rows, schema=schema, orient="row")


def aggregates(key: str = "label", shift: float = 0.0, **more: Any) -> list[dict[str, Any]]:
    """Rows of mAP, averaged and at two thresholds, and of mAR, for one label key."""
    common = {"label_key": key, "support": 30, **more}
    return [
        {"metric": "mAPAveragedOverIOUs", "value": 0.5 + shift, **common},
        {"metric": "mAP", "iou_threshold": 0.5, "value": 0.7 + shift, **common},
        {"metric": "mAP", "iou_threshold": 0.75, "value": 0.4 + shift, **common},
        {"metric": "mAR", "value": 0.6 + shift, **common},
    ]


def of_label(
    value: Any, number: float | None, key: str = "label", support: int = 10, **more: Any
) -> list[dict[str, Any]]:
    """Rows of AP, averaged and at two thresholds, and of AR, for one label."""
    common = {
        "label_key": key,
        "label_value": value,
        "support": support,
        "reason": "no ground truth" if number is None else None,
        **more,
    }

    def at(shift: float) -> float | None:
        return None if number is None else number + shift

    return [
        {"metric": "APAveragedOverIOUs", "value": at(0.0), **common},
        {"metric": "AP", "iou_threshold": 0.5, "value": at(0.1), **common},
        {"metric": "AP", "iou_threshold": 0.75, "value": at(-0.05), **common},
        {"metric": "AR", "value": at(0.02), **common},
    ]


def labels_of(
    rows: Iterable[tuple[str, Any, str | None]], dtype: pl.DataType | None = None
) -> pl.DataFrame:
    """Make a labels frame from tuples (key, value, name)."""
    return pl.DataFrame(
        list(rows),
        schema={
            "label_key": pl.String(),
            "label_value": dtype or pl.String(),
            "label_name": pl.String(),
        },
        orient="row",
    )


def card(
    metrics: Iterable[dict[str, Any]] | None = None,
    *,
    dialect: str = "standard",
    labels: Iterable[tuple[str, Any, str | None]] | None = None,
    label: pl.DataType | None = None,
    datum: pl.DataType | None = None,
    notes: tuple[str, ...] = (),
    warnings: tuple[str, ...] = (),
    options: dict[str, Any] | None = None,
    **frames: Iterable[dict[str, Any]],
) -> Scorecard:
    """Make a detection scorecard of given rows; by default of three labels and a label key."""
    if metrics is None:
        metrics = [
            *aggregates(),
            *of_label("cat", 0.8),
            *of_label("dog", 0.2),
            *of_label("owl", None, support=0),
        ]
    made = {"metrics": metrics, **frames}
    built = {name: frame(name, rows, label=label, datum=datum) for name, rows in made.items()}
    if labels is None:
        found = built["metrics"].select("label_key", "label_value").drop_nulls().unique()
        labels = [(key, value, None) for key, value in found.sort("label_value").iter_rows()]
    return Scorecard(
        task="detection",
        dialect=dialect,
        options=make_options(dialect=dialect, **(options or {})),
        frames={name: (lambda made=made: made) for name, made in built.items()},
        labels=labels_of(labels, label),
        run={"versions": {"evalengine": "0"}, "inputs": {"predictions": {"rows": 3}}},
        notes=notes,
        warnings=warnings,
        exports=makers("detection", dialect),
        primary=PRIMARY,
        directions=DIRECTIONS,
    )
