"""Tiny tables that make every kernel of tracking run once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from ... import metrics

Sample = tuple[Any, Any, dict[str, Any]]


def samples() -> Iterator[Sample]:
    """Two objects of two labels in two frames, one ignored."""
    truth = pl.DataFrame(
        {
            "sequence": ["a"] * 4,
            "frame": [1, 1, 2, 2],
            "object_id": [1, 2, 1, 2],
            "xmin": [0.0, 9.0, 1.0, 9.0],
            "ymin": [0.0] * 4,
            "xmax": [4.0, 12.0, 5.0, 12.0],
            "ymax": [4.0] * 4,
            "label_value": ["x", "y", "x", "y"],
            "ignored": [0, 1, 0, 0],
        }
    )
    found = truth.drop("ignored").rename({"object_id": "track_id"})
    yield found, truth, {"metrics": metrics.names("tracking")}
    square = [[0.0, 0.0, 4.0, 0.0, 4.0, 4.0, 0.0, 4.0]]
    mask = {"size": [8, 8], "counts": [0, 8, 56]}
    shaped = truth.drop("xmin", "ymin", "xmax", "ymax").with_columns(
        polygon=pl.Series([square, None] * 2),
        mask=pl.Series([None, mask] * 2),
        region=pl.Series([0, 0, 0, 1]),
    )
    tracks = shaped.drop("ignored", "region").rename({"object_id": "track_id"})
    sizes = pl.DataFrame({"sequence": ["a"], "height": [8], "width": [8]})
    yield tracks, shaped, {"metrics": ["HOTA"], "iou_type": "segm", "datums": sizes}


def warm_large() -> None:
    """Run the kernels that only files reach."""
    from ...kernels import warm

    warm.parts()
