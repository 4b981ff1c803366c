"""Small random detection tables with ties, exact thresholds and degenerate boxes."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from hypothesis import strategies as st

import evalengine as ee
from evalengine import dialects

GRID_IOUS = (0.25, 1 / 3, 0.5, 0.6, 0.75, 1.0)
"""Thresholds that IoUs of the grid equal exactly."""

GRID_SCORES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Random scores, which are also thresholds; negative ones and -0.0 occur in addition."""

_INTEGER_LABELS = (-1, 3, 12)
_STRING_LABELS = ("a", "b", "ab")
_INTEGER_DATUMS = (0, 2, 10, 11)
_STRING_DATUMS = ("10", "2", "é", "Y")

BOX_DIALECTS = [
    name
    for name in dialects.names("detection")
    if "bbox" in (rules := dialects.get("detection", name).rules).compares
    and not rules.difficulties  # need columns that these tables do not have
]
"""Dialects that compare boxes."""


Row = tuple[Any, str, tuple[float, float, float, float]]
"""Datum, label and box."""


@dataclass(frozen=True)
class Tables:
    """Both sides, as ``score`` accepts them."""

    predictions: pl.DataFrame
    truths: pl.DataFrame

    @property
    def datums(self) -> list[Any]:
        """Every datum id of either side, sorted."""
        return sorted({*self.predictions["datum_id"], *self.truths["datum_id"]})

    def where(self, condition: pl.Expr) -> Tables:
        """Select rows of both sides."""
        return Tables(self.predictions.filter(condition), self.truths.filter(condition))

    def on(self, datums: Sequence[Any]) -> Tables:
        """Select the rows of some datums."""
        return self.where(pl.col("datum_id").is_in(list(datums)))

    def score(self, **options: Any) -> ee.Scorecard:
        """Score the tables."""
        return ee.score(self.predictions, self.truths, task="detection", **options)


def more_tables(dialect: str, ids: pl.Series, labels: pl.Series) -> dict[str, pl.DataFrame]:
    """Make the tables that a dialect needs: all labels are verified, some not exhaustively."""
    if not dialect.startswith(("lvis", "openimages")):
        return {}
    every, ids = labels.unique().sort().implode(), ids.unique().sort()
    own = ids.cast(pl.String).str.split("#").list.first()  # id of the original of a repeated datum
    some = own.str.contains("[0369]$")
    lists = pl.select(negative_labels=every, partial_labels=every.list.head(1))
    datums = pl.DataFrame({"datum_id": ids, "some": some}).join(lists, how="cross")
    partial = (
        pl.when("some").then("partial_labels").otherwise(pl.col("partial_labels").list.head(0))
    )
    return {"datums": datums.select("datum_id", "negative_labels", partial)}


_BOXES = (
    (0.0, 0.0, 4.0, 4.0),
    (1.0, 0.0, 5.0, 4.0),
    (2.0, 0.0, 6.0, 4.0),
    (0.0, 0.0, 4.0, 2.0),
    (0.0, 2.0, 4.0, 4.0),
    (0.0, 0.0, 4.0, 3.0),
    (1.0, 1.0, 3.0, 3.0),
    (2.0, 2.0, 3.0, 4.0),
    (1.0, 2.0, 4.0, 2.0),
    (9.0, 9.0, 9.0, 9.0),
    (7.0, 0.0, 9.0, 1.0),
)
"""Few boxes, so that overlaps are often equal; some are empty."""

_SIZES = (0, 1, 2, 4, 6, 9, 12, 12)
_SCORES = (*GRID_SCORES, *GRID_SCORES, -0.0, -0.5)


def _rows(
    pick: Callable[[Sequence[Any]], list[Any]],
    datums: Sequence[Any],
    keys: Sequence[str],
    labels: Sequence[Any],
) -> dict[str, list[Any]]:
    columns = {"datum_id": pick(datums), "label_key": pick(keys), "label_value": pick(labels)}
    boxes = pick(_BOXES)
    for i, name in enumerate(("xmin", "ymin", "xmax", "ymax")):
        columns[name] = [box[i] for box in boxes]
    return columns


@st.composite
def tables(
    draw: st.DrawFn, *, crowd: bool = False, area: bool = False, most: int = 12, keys: int = 2
) -> Tables:
    """Make both sides, of which one may be empty; otherwise they share a datum.

    Args:
        draw: given by hypothesis.
        crowd: whether ground truths may have the column ``iscrowd``.
        area: whether they may have ``area``, different from the box's.
        most: largest number of rows of a side.
        keys: largest number of label keys; with 1, the column is missing.
    """
    datums = draw(st.sampled_from((_INTEGER_DATUMS, _STRING_DATUMS)))
    datums = datums[: draw(st.sampled_from((1, 1, 2, 2, 4)))]
    labels = draw(st.sampled_from((_INTEGER_LABELS, _STRING_LABELS)))
    labels = labels[: draw(st.sampled_from((1, 2, 2, 3)))]
    names = ("k", "j")[: draw(st.sampled_from((1, 1, keys)))]
    sizes = tuple(size for size in _SIZES if size <= most)
    n = draw(st.sampled_from(sizes))
    m = draw(st.sampled_from(sizes if n else sizes[1:]))
    # Values from separate draws repeat too rarely for ties within a datum and label.
    rng = random.Random(draw(st.integers(0, 10**6)))

    def pick(values: Sequence[Any]) -> list[Any]:
        return rng.choices(values, k=most)

    predictions = _rows(pick, datums, names, labels) | {"score": pick(_SCORES)}
    truths = _rows(pick, datums, names, labels)
    if crowd and draw(st.booleans()):
        truths["iscrowd"] = pick((0, 0, 1))
    if area and draw(st.booleans()):
        truths["area"] = pick((0.0, 1.0, 2.0, 4.0, 12.0))
    predictions = {name: column[:n] for name, column in predictions.items()}
    truths = {name: column[:m] for name, column in truths.items()}
    truths["annotation_id"] = list(range(100, 100 + m))
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


def table(rows: Sequence[Row], scores: Sequence[float] | None = None) -> pl.DataFrame:
    """Make a table by hand; ground truths, without scores, get annotation ids 0, 1, ..."""
    frame = pl.DataFrame(
        {
            "datum_id": [row[0] for row in rows],
            "label_value": [row[1] for row in rows],
            **{
                name: [row[2][i] for row in rows]
                for i, name in enumerate(("xmin", "ymin", "xmax", "ymax"))
            },
        }
    )
    if scores is None:
        return frame.with_columns(annotation_id=pl.Series(range(frame.height), dtype=pl.Int64))
    return frame.with_columns(score=pl.Series(scores, dtype=pl.Float64))


def crowded_tables(
    seed: int, *, strings: bool = False, datums: int = 30, labels: int = 6
) -> Tables:
    """Larger random tables with crowds, areas unlike the boxes' and repeated scores.

    Ground truths are close to one another. Predictions are shifted ground truths of the same or
    another
    label, or stray boxes. Coordinates are arbitrary floats. Some labels and datums occur on one
    side
    only.

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
