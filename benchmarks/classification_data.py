"""Make the classification benchmark's data as Parquet.

    python benchmarks/classification_data.py binary long --scale 0.02

writes `benchmarks/.data/classification/<section>/`, with the suffix `-<scale>` unless that is 1:

- binary, distinct: table.parquet (actual, score); distinct's scores have 1,000 values
- two-tables: predictions.parquet (datum_id, label_value, score), label_value always 1, and
  groundtruths.parquet (datum_id, label_value), 0 or 1; each has the ids in another order
- grouped: table.parquet (group, actual, score), groups of about 200 rows, rows in random order
- long: predictions.parquet (datum_id, label_value, score), datum after datum, all labels of each,
  scores that add up to 1, and groundtruths.parquet (datum_id, label_value); files with the prefix
  `labels-` or `ids-` have strings instead

A seed fixes everything.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from making import Frames, Maker, main
from numpy.typing import NDArray

ROWS = 20_000_000
ROWS_PER_GROUP = 200
LABELS = 100


def scored(rng: np.random.Generator, rows: int) -> tuple[NDArray[np.int8], NDArray[np.float64]]:
    """Return labels 0 and 1, three tenths of them 1, and distinct scores between 0 and 1."""
    actual = (rng.random(rows) < 0.3).astype(np.int8)
    logit = rng.standard_normal(rows) + 1.1 * actual - 0.5
    score = 1.0 / (1.0 + np.exp(-logit))
    assert pl.Series(score).n_unique() == rows
    return actual, score


def binary(rng: np.random.Generator, scale: float) -> Frames:
    actual, score = scored(rng, round(ROWS * scale))
    return {"table": pl.DataFrame({"actual": actual, "score": score})}


def distinct(rng: np.random.Generator, scale: float) -> Frames:
    actual, score = scored(rng, round(ROWS * scale))
    score = np.clip(np.round(score, 3), 0.001, 1.0)
    return {"table": pl.DataFrame({"actual": actual, "score": score})}


def two_tables(rng: np.random.Generator, scale: float) -> Frames:
    rows = round(ROWS * scale)
    actual, score = scored(rng, rows)
    datum = np.arange(rows, dtype=np.int64)
    here, there = rng.permutation(rows), rng.permutation(rows)
    one = np.ones(rows, dtype=np.int8)
    return {
        "predictions": pl.DataFrame(
            {"datum_id": datum[here], "label_value": one, "score": score[here]}
        ),
        "groundtruths": pl.DataFrame({"datum_id": datum[there], "label_value": actual[there]}),
    }


def grouped(rng: np.random.Generator, scale: float) -> Frames:
    rows = round(ROWS / 2 * scale)
    actual, score = scored(rng, rows)
    group = rng.integers(0, max(rows // ROWS_PER_GROUP, 1), rows, dtype=np.int32)
    return {"table": pl.DataFrame({"group": group, "actual": actual, "score": score})}


def long(rng: np.random.Generator, scale: float) -> Frames:
    datums = round(ROWS / LABELS * scale)
    truth = rng.permutation(np.arange(datums, dtype=np.int32) % LABELS)
    logit = rng.standard_normal((datums, LABELS))
    logit[np.arange(datums), truth] += 3.0 + rng.standard_normal(datums)
    score = np.exp(1.5 * logit)
    score /= score.sum(axis=1, keepdims=True)
    datum = np.arange(datums, dtype=np.int64)
    frames = {
        "predictions": pl.DataFrame(
            {
                "datum_id": np.repeat(datum, LABELS),
                "label_value": np.tile(np.arange(LABELS, dtype=np.int32), datums),
                "score": score.ravel(),
            }
        ),
        "groundtruths": pl.DataFrame({"datum_id": datum, "label_value": truth}),
    }
    names = {
        "labels": ("label_value", "class_", 3),  # class_042
        "ids": ("datum_id", "image_", 5),  # image_00042
    }
    for variant, (column, prefix, digits) in names.items():
        text = pl.lit(prefix) + pl.col(column).cast(pl.String).str.zfill(digits)
        for side in ("predictions", "groundtruths"):
            frames[f"{variant}-{side}"] = frames[side].with_columns(text.alias(column))
    return frames


SECTIONS: dict[str, Maker] = {
    "binary": binary,
    "distinct": distinct,
    "two-tables": two_tables,
    "grouped": grouped,
    "long": long,
}


if __name__ == "__main__":
    main("classification", SECTIONS)
