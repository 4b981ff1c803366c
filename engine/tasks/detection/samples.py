"""Tiny tables that make every kernel of detection run once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from ... import dialects, metrics

Sample = tuple[pl.DataFrame, pl.DataFrame | None, dict[str, Any]]


def samples() -> Iterator[Sample]:
    """Yield predictions, ground truths and options: each dialect, resamples, masks, keypoints."""
    box = {"xmin": [0.0, 0.0], "ymin": [0.0, 0.0], "xmax": [9.0, 9.0], "ymax": [9.0, 8.0]}
    visible = {"occluded": 0.0, "truncated": 0.0, "alpha": 0.0}
    truth = pl.DataFrame({"datum_id": [1, 1], "label_value": ["a", "b"], **box, **visible})
    predicted = truth.with_columns(score=pl.Series([0.9, 0.8]))
    for dialect in dialects.names("detection"):
        if "bbox" not in dialects.get("detection", dialect).rules.compares:
            continue
        yield (
            predicted,
            truth,
            {
                "dialect": dialect,
                "metrics": metrics.names("detection"),
                "by": "slice",
                "datums": pl.DataFrame(
                    {
                        "datum_id": [1],
                        "slice": ["one"],
                        "height": [9],
                        "width": [9],
                        "negative_labels": [["b"]],
                        "partial_labels": [["a"]],
                    }
                ),
            },
        )
    yield predicted, truth, {"intervals": 0.95, "draws": 20}
    square = {"size": [9, 9], "counts": [9, 36, 36]}
    shapes = truth.select("datum_id", "label_value").with_columns(
        polygon=pl.Series([[[0.0, 0.0, 9.0, 0.0, 9.0, 8.0]], None]),
        mask=pl.Series([None, square]),
    )
    found = predicted.select("datum_id", "label_value", "score").with_columns(
        mask=pl.Series([square, square])
    )
    turned = pl.Series("obb", [[4.5, 4.5, 9.0, 5.0, 0.3]] * 2)
    one, other = (side.drop(*box).with_columns(turned) for side in (predicted, truth))
    for dialect in ("standard", "detectron2"):
        how = {"iou_type": "obb", "angle_format": "radians-clockwise"}
        yield one, other, {**how, "dialect": dialect}
    solid = pl.Series("box3d", [[4.5, 4.5, 1.0, 9.0, 5.0, 2.0, 0.3]] * 2)
    one, other = (side.drop(*box).with_columns(solid) for side in (predicted, truth))
    yield one, other, {"iou_type": "3d", "angle_format": "radians-z-up"}
    yield one, other, {"iou_type": "distance", "angle_format": "radians-z-up",
                       "dialect": "nuscenes"}  # fmt: skip
    size = pl.DataFrame({"datum_id": [1], "height": [9], "width": [9]})
    yield found, shapes, {"iou_type": "boundary", "datums": size}
    person = [5.0, 5.0, 2.0, 6.0, 6.0, 0.0]
    people = truth.with_columns(keypoints=pl.Series([person, None]), area=pl.lit(9.0))
    seen = predicted.with_columns(keypoints=pl.Series([person, person]))
    yield (
        seen,
        people.with_columns(head_size=4.0),
        {
            "iou_type": "keypoints",
            "keypoint_sigmas": 0.1,
            "metrics": ["mAP", "PCKh", "KeypointErrors"],
        },
    )


def warm_large() -> None:
    """Run the kernels that only large tables reach."""
    from ...kernels import warm, warm_masks

    warm.parts()
    warm.fits()
    warm.boxes()
    warm_masks.warm_masks()
