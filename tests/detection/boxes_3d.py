"""Small random tables of 3-D boxes with ties, crowds and boxes without volume."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

ANGLES = (0.0, np.pi / 2, -np.pi / 2, np.pi, np.pi / 4, 0.3)
SEVEN = ("cx", "cy", "cz", "length", "width", "height", "yaw")


def _boxes(rng: np.random.Generator, n: int) -> Any:
    boxes = np.empty((n, 7))
    boxes[:, :3] = rng.uniform(0, 1, (n, 3)) * [12, 12, 2]
    boxes[:, 3:6] = rng.uniform(0.3, 1.0, (n, 3)) * [5, 2, 2]
    boxes[:, 6] = rng.choice(ANGLES, n) + rng.choice([0.0, 1.0], n) * rng.normal(size=n)
    return boxes


def random_tables(seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Make predictions and ground truths: datum_id, label_value, box3d; score; iscrowd.

    Some predictions are slightly moved ground truths, and some are exact copies.
    """
    rng = np.random.default_rng(seed)
    n, m = rng.integers(0, 40), rng.integers(0, 25)
    truth, result = _boxes(rng, m), _boxes(rng, n)
    datum, label = rng.integers(0, 4, n), rng.choice(["a", "b"], n)
    theirs = rng.integers(0, 4, m), rng.choice(["a", "b"], m)
    if m:
        of = rng.integers(0, m, n)
        moved = rng.random(n) < 0.7
        shift = rng.normal(size=(n, 7)) * [0.3, 0.3, 0.1, 0.1, 0.1, 0.1, 0.1]
        shift *= rng.choice([0.0, 1.0], (n, 1), p=[0.1, 0.9])
        result[moved] = (truth[of] + shift)[moved]
        result[:, 3:6] = np.abs(result[:, 3:6])
        datum[moved], label[moved] = theirs[0][of][moved], theirs[1][of][moved]
    if rng.random() < 0.3:
        for side in (truth, result):
            side[rng.random(len(side)) < 0.2, rng.integers(3, 6)] = 0.0
    schema = {"datum_id": pl.Int64, "label_value": pl.String, "box3d": pl.List(pl.Float64)}
    predictions = pl.DataFrame(
        {"datum_id": datum, "label_value": label, "box3d": result.tolist()}, schema=schema
    ).with_columns(score=pl.Series(rng.choice(np.arange(8) / 8, n)))
    truths = pl.DataFrame(
        {"datum_id": theirs[0], "label_value": theirs[1], "box3d": truth.tolist()}, schema=schema
    )
    if rng.random() < 0.5:
        truths = truths.with_columns(iscrowd=pl.Series(rng.random(m) < 0.2))
    return predictions, truths


def in_columns(frame: pl.DataFrame) -> pl.DataFrame:
    """Split the boxes into columns."""
    numbers = frame["box3d"].list.to_struct(fields=SEVEN).struct.unnest()
    return frame.drop("box3d").hstack(numbers)
