"""Small random tables with KITTI's labels, in which every rule of its benchmark matters."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

CORNERS = ("xmin", "ymin", "xmax", "ymax")
LABELS = ("Car", "Van", "Pedestrian", "Person_sitting", "Cyclist", "DontCare", "Truck")
_SHARES = (0.35, 0.12, 0.16, 0.08, 0.09, 0.13, 0.07)
SCHEMA: dict[str, Any] = {
    "datum_id": pl.String,
    "label_value": pl.String,
    **dict.fromkeys((*CORNERS, "alpha", "truncated"), pl.Float64),
    "occluded": pl.Int64,
    "box3d": pl.List(pl.Float64),
    "score": pl.Float64,
}


def _box(rng: np.random.Generator) -> dict[str, float]:
    left, top = rng.integers(0, 90, 2)
    wide, tall = rng.choice([20, 24, 25, 30, 39, 40, 41, 60, 80], 2)
    return dict(zip(CORNERS, map(float, (left, top, left + wide, top + tall)), strict=True))


def random_tables(seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Make predictions and ground truths, in the order of files.

    Most predictions are slightly moved ground truths or exact copies.
    """
    rng = np.random.default_rng(seed)
    truths, predictions = [], []
    for datum in "abcd"[: rng.integers(1, 5)]:
        own = []
        for _ in range(rng.integers(0, 12)):
            row: dict[str, Any] = {"datum_id": datum, **_box(rng)}
            row["label_value"] = rng.choice(LABELS, p=_SHARES)
            row["occluded"] = int(rng.choice([0, 0, 0, 1, 2, 3]))
            row["truncated"] = float(rng.choice([0, 0, 0, 0.15, 0.2, 0.3, 0.5, 0.6]))
            row["alpha"] = float(rng.uniform(-3, 3))
            row["box3d"] = [*rng.uniform(0, 9, 2), 1.0, *rng.uniform(1, 4, 3), rng.uniform(-3, 3)]
            own.append(row)
        for _ in range(rng.integers(0, 20)):
            row = {"datum_id": datum, "label_value": rng.choice(["Car", "Pedestrian", "Cyclist"])}
            row |= _box(rng)
            row["box3d"] = [*rng.uniform(0, 9, 2), 1.0, *rng.uniform(1, 4, 3), 0.0]
            if own and rng.random() < 0.8:
                of = own[rng.integers(len(own))]
                moved = rng.choice([0, 0, 1, 2, 4], 4)
                row |= {name: of[name] + by for name, by in zip(CORNERS, moved, strict=True)}
                row["xmax"], row["ymax"] = row["xmax"] + 4.0, row["ymax"] + 4.0 * rng.integers(2)
                if rng.random() < 0.7 and of["label_value"] != "DontCare":
                    row["label_value"] = of["label_value"]
                shift = np.array([0.2, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1]) * rng.normal(size=7)
                row["box3d"] = (np.array(of["box3d"]) + shift * rng.integers(0, 2)).tolist()
                row["box3d"][3:6] = [abs(extent) for extent in row["box3d"][3:6]]
            row["score"] = float(rng.integers(0, 12) / 16)
            row["alpha"] = float(rng.uniform(-3, 3))
            predictions.append(row)
        truths += own
    ours, theirs = pl.DataFrame(predictions, SCHEMA), pl.DataFrame(truths, SCHEMA)
    return ours.drop("occluded", "truncated"), theirs.drop("score")
