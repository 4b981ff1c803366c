"""Small random detection tables on which ties, exact thresholds and degenerate boxes happen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from hypothesis import strategies as st

GRID_IOUS = (0.25, 1 / 3, 0.5, 0.6, 0.75, 1.0)
"""Thresholds that boxes of the grid meet exactly."""

GRID_SCORES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Scores drawn, which are thresholds too; negative ones and -0.0 are drawn beside them."""

_INTEGER_LABELS = (-1, 3, 12)
_STRING_LABELS = ("a", "b", "ab")
_INTEGER_DATUMS = (0, 2, 10, 11)
_STRING_DATUMS = ("10", "2", "é", "Y")


@dataclass(frozen=True)
class Tables:
    """Both sides, as ``score`` takes them."""

    predictions: pl.DataFrame
    truths: pl.DataFrame

    @property
    def datums(self) -> list[Any]:
        """Every datum id of either side, sorted."""
        return sorted({*self.predictions["datum_id"], *self.truths["datum_id"]})

    def on(self, datums: Sequence[Any]) -> Tables:
        """The rows of some datums."""
        return Tables(
            self.predictions.filter(pl.col("datum_id").is_in(list(datums))),
            self.truths.filter(pl.col("datum_id").is_in(list(datums))),
        )


_corner = st.sampled_from((0.0, 1.0, 1.0, 2.0, 3.0))
_extent = st.sampled_from((4.0, 3.0, 2.0, 4.0, 2.0, 1.0, 0.0))
_score = st.sampled_from((*GRID_SCORES, *GRID_SCORES, -0.0, -0.5))


def _rows(
    draw: st.DrawFn, n: int, datums: Sequence[Any], keys: Sequence[str], labels: Sequence[Any]
) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {
        "datum_id": [draw(st.sampled_from(datums)) for _ in range(n)],
        "label_key": [draw(st.sampled_from(keys)) for _ in range(n)],
        "label_value": [draw(st.sampled_from(labels)) for _ in range(n)],
        "xmin": [draw(_corner) for _ in range(n)],
        "ymin": [draw(_corner.map(lambda y: y // 2)) for _ in range(n)],
    }
    columns["xmax"] = [x + draw(_extent) for x in columns["xmin"]]
    columns["ymax"] = [y + draw(_extent) for y in columns["ymin"]]
    return columns


@st.composite
def tables(
    draw: st.DrawFn, *, crowd: bool = False, area: bool = False, most: int = 12, keys: int = 2
) -> Tables:
    """Both sides, one of which may be empty; otherwise they have a datum in common.

    Args:
        draw: given by hypothesis.
        crowd: whether ground truths may have the column ``iscrowd``.
        area: whether they may have ``area``, unlike the box's.
        most: largest number of rows of a side.
        keys: largest number of label keys; with 1, the column is missing.
    """
    datums = draw(st.sampled_from((_INTEGER_DATUMS, _STRING_DATUMS)))
    datums = datums[: draw(st.sampled_from((1, 1, 2, 2, 4)))]
    labels = draw(st.sampled_from((_INTEGER_LABELS, _STRING_LABELS)))
    labels = labels[: draw(st.sampled_from((1, 2, 2, 3)))]
    names = ("k", "j")[: draw(st.sampled_from((1, 1, keys)))]
    n = draw(st.integers(0, most))
    m = draw(st.integers(0 if n else 1, most))
    predictions = _rows(draw, n, datums, names, labels)
    predictions["score"] = [draw(_score) for _ in range(n)]
    truths = _rows(draw, m, datums, names, labels)
    truths["annotation_id"] = list(range(100, 100 + m))
    if crowd and draw(st.booleans()):
        truths["iscrowd"] = [draw(st.sampled_from((0, 0, 1))) for _ in range(m)]
    if area and draw(st.booleans()):
        truths["area"] = [draw(st.sampled_from((0.0, 1.0, 2.0, 4.0, 9.0))) for _ in range(m)]
    if n and m:
        predictions["datum_id"][0] = truths["datum_id"][0]
    return Tables(
        _frame(predictions, datums, labels, one_key=keys == 1),
        _frame(truths, datums, labels, one_key=keys == 1),
    )


def _frame(
    columns: dict[str, list[Any]], datums: Sequence[Any], labels: Sequence[Any], *, one_key: bool
) -> pl.DataFrame:
    integers = {"annotation_id": pl.Int64(), "iscrowd": pl.Int64()}
    schema = {name: integers.get(name, pl.Float64()) for name in columns}
    schema["label_key"] = pl.String()
    for name, values in (("datum_id", datums), ("label_value", labels)):
        schema[name] = pl.Int64() if isinstance(values[0], int) else pl.String()
    frame = pl.DataFrame(columns, schema=schema)
    return frame.drop("label_key") if one_key else frame


def crowded_tables(
    seed: int, *, strings: bool = False, datums: int = 30, labels: int = 6
) -> Tables:
    """Larger random tables with crowds, areas unlike the boxes' and repeated scores.

    Ground truths stand close to one another; predictions are shifted ground truths of the same
    or another label, or stray boxes. Coordinates are arbitrary floats. Some labels and datums
    stand on one side only.

    Args:
        seed: of the random generator.
        strings: whether ids and labels are strings.
        datums: number of datums.
        labels: number of labels.
    """
    rng = np.random.default_rng(seed)
    n_truths = 12 * datums
    corner = rng.uniform(0, 250, (n_truths, 2))
    extent = rng.choice([8.0, 20.0, 40.0, 90.0, 150.0], (n_truths, 1)) * rng.uniform(
        0.7, 1.4, (n_truths, 2)
    )
    truth_datum = rng.integers(0, datums - 1, n_truths)
    truth_label = rng.integers(0, labels - 1, n_truths)
    source = rng.integers(0, n_truths, 2 * n_truths)
    shift = rng.normal(0, 0.15, (source.size, 2)) * extent[source]
    scale = rng.choice([1.0, 1.0, 0.9, 1.2], (source.size, 1))
    moved = rng.random(source.size) < 0.15
    datum = np.where(moved, rng.integers(1, datums, source.size), truth_datum[source])
    relabelled = rng.random(source.size) < 0.2
    label = np.where(relabelled, rng.integers(1, labels, source.size), truth_label[source])
    predictions = _table(corner[source] + shift, extent[source] * scale, datum, label, strings)
    truths = _table(corner, extent, truth_datum, truth_label, strings)
    box_area = extent[:, 0] * extent[:, 1]
    shrunk = rng.choice([1.0, 0.6], n_truths) * box_area
    return Tables(
        predictions.with_columns(score=pl.Series(np.round(rng.random(source.size), 2))),
        truths.with_columns(
            area=pl.Series(np.where(rng.random(n_truths) < 0.1, 1024.0, shrunk)),
            iscrowd=pl.Series((rng.random(n_truths) < 0.08).astype(np.int64)),
        ),
    )


def _table(corner: Any, extent: Any, datum: Any, label: Any, strings: bool) -> pl.DataFrame:
    frame = pl.DataFrame(
        {
            "datum_id": datum.astype(np.int64),
            "label_value": label.astype(np.int64),
            "xmin": corner[:, 0],
            "ymin": corner[:, 1],
            "xmax": corner[:, 0] + extent[:, 0],
            "ymax": corner[:, 1] + extent[:, 1],
        }
    )
    if strings:
        frame = frame.with_columns(
            ("image " + pl.col("datum_id").cast(pl.String)).alias("datum_id"),
            ("class " + pl.col("label_value").cast(pl.String)).alias("label_value"),
        )
    return frame
