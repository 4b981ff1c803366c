"""Small random tables of oriented boxes with ties, crowds and degenerate boxes."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

ANGLES = (0.0, np.pi / 2, -np.pi / 2, np.pi, np.pi / 4, 0.3)


def _boxes(rng: np.random.Generator, n: int, size: float) -> Any:
    boxes = np.empty((n, 5))
    boxes[:, :2] = rng.uniform(0, 3 * size, (n, 2))
    boxes[:, 2:4] = rng.uniform(0.3, 1.0, (n, 2)) * size
    boxes[:, 4] = rng.choice(ANGLES, n) + rng.choice([0.0, 1.0], n) * rng.normal(size=n)
    return boxes


def random_tables(seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Make predictions and ground truths: datum_id, label_value, obb; score; iscrowd, area.

    Some predictions are slightly moved ground truths, and some are exact copies. There are few
    distinct scores, and sizes are close to the bounds of COCO's area ranges.
    """
    rng = np.random.default_rng(seed)
    n, m = rng.integers(0, 40), rng.integers(0, 25)
    size = float(rng.choice([4.0, 36.0, 110.0]))
    truth, result = _boxes(rng, m, size), _boxes(rng, n, size)
    rows = rng.integers(0, 4, n), rng.choice(["a", "b"], n)
    theirs = rng.integers(0, 4, m), rng.choice(["a", "b"], m)
    datum, label = rows[0].copy(), rows[1].copy()
    if m:
        of = rng.integers(0, m, n)
        moved = rng.random(n) < 0.7
        shift = rng.normal(size=(n, 5)) * [0.1 * size, 0.1 * size, 0, 0, 0.1]
        shift *= rng.choice([0.0, 1.0], (n, 1), p=[0.1, 0.9])
        result[moved] = (truth[of] + shift)[moved]
        datum[moved], label[moved] = theirs[0][of][moved], theirs[1][of][moved]
    if rng.random() < 0.3:
        for side in (truth, result):
            side[rng.random(len(side)) < 0.2, 3] = 0.0
    predictions = pl.DataFrame(
        {"datum_id": datum, "label_value": label, "obb": result.tolist(),
         "score": rng.choice(np.arange(8) / 8, n)},
        schema={"datum_id": pl.Int64, "label_value": pl.String, "obb": pl.List(pl.Float64),
                "score": pl.Float64},
    )  # fmt: skip
    truths = pl.DataFrame(
        {"datum_id": theirs[0], "label_value": theirs[1], "obb": truth.tolist()},
        schema={"datum_id": pl.Int64, "label_value": pl.String, "obb": pl.List(pl.Float64)},
    )
    if rng.random() < 0.5:
        truths = truths.with_columns(iscrowd=pl.Series(rng.random(m) < 0.2))
    if rng.random() < 0.3:
        truths = truths.with_columns(area=pl.Series(rng.uniform(0, 2 * size**2, m)))
    return predictions, truths
