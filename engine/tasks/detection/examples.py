"""Examples of the detailed curve: counts of every cell and the first rows in it, as a tally."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import polars as pl

from ...schemas.arrays import Array
from ...schemas.results import empty_frame, frame_schema
from ...tally.datums import Datums, Labels
from ...tally.registry import stored_as

CELLS = (
    ("tp", "all"),
    ("fp", "misclassifications"),
    ("fp", "hallucinations"),
    ("fp", "duplicates"),
    ("fn", "misclassifications"),
    ("fn", "no_predictions"),
)
"""Outcome and observation, in the order of rows."""


@stored_as("detection.examples/1")
class Examples(msgspec.Struct, frozen=True):
    """Examples of the detailed curve of one bucket, one row per example.

    Attributes:
        counts: int64 [cells, labels, scores], rows of each cell.
        present: bool [labels], labels that have any row.
        cell: int32 [n], index in ``CELLS``.
        label: int32 [n], label code.
        at: int32 [n], index of the score threshold.
        datum: int32 [n], datum code.
        score: float64 [n], sort key of the example; 0 for missed ground truths.
        tie: float64 [n], orders equal scores, higher first.
        row: int64 [n], row of its table, the last sort key.
        geometry: String [n], GeoJSON.
    """

    counts: Array
    present: Array
    cell: Array
    label: Array
    at: Array
    datum: Array
    score: Array
    tie: Array
    row: Array
    geometry: pl.Series


def no_examples(n_scores: int) -> Examples:
    """Return the examples of a run without labels."""
    none, code = np.zeros(0), np.zeros(0, np.int32)
    return Examples(
        counts=np.zeros((len(CELLS), 0, n_scores), np.int64),
        present=np.zeros(0, bool),
        cell=code,
        label=code,
        at=code,
        datum=code,
        score=none,
        tie=none,
        row=np.zeros(0, np.int64),
        geometry=pl.Series("geometry", [], dtype=pl.String),
    )


_ROWS = ("cell", "label", "at", "datum", "score", "tie", "row")


def merge_examples(
    parts: Sequence[Examples],
    datums: Sequence[Array],
    labels: Sequence[Array],
    n_labels: int,
    most: int,
) -> Examples:
    """Add up the counts of all parts, and merge the first examples of each cell.

    Args:
        parts: of disjoint sets of datums, at the same thresholds.
        datums: new datum codes per part.
        labels: new label codes per part.
        n_labels: labels of the whole.
        most: examples per cell.
    """
    n_cells, _, n_scores = parts[0].counts.shape
    counts = np.zeros((n_cells, n_labels, n_scores), np.int64)
    present = np.zeros(n_labels, bool)
    columns: dict[str, list[Array]] = {name: [] for name in _ROWS}
    for part, datum, label in zip(parts, datums, labels, strict=True):
        counts[:, label] += part.counts
        present[label[part.present]] = True
        own = {name: getattr(part, name) for name in _ROWS}
        own |= {"datum": datum[part.datum], "label": label[part.label]}
        for name in _ROWS:
            columns[name].append(own[name])
    rows = {name: np.concatenate(found) for name, found in columns.items()}
    geometry = pl.concat([part.geometry for part in parts])
    order = np.lexsort(
        (
            rows["row"],
            rows["datum"],
            -rows["tie"],
            -rows["score"],
            rows["at"],
            rows["label"],
            rows["cell"],
        )
    )
    place = (rows["cell"][order].astype(np.int64) * n_labels + rows["label"][order]) * n_scores
    place += rows["at"][order]
    first = np.searchsorted(place, place)
    kept = order[np.arange(place.size) - first < most]
    return Examples(
        counts=counts,
        present=present,
        geometry=geometry.gather(kept),
        **{name: column[kept] for name, column in rows.items()},
    )


def examples_frame(
    examples: Examples,
    datums: Datums,
    labels: Labels,
    iou: float,
    score_thresholds: tuple[float, ...],
) -> pl.DataFrame:
    """Build the ``examples`` frame: one row per example, and one per cell without any.

    Args:
        score_thresholds: ascending, before rounding.
    """
    if not len(labels):
        return empty_frame("examples", label=labels.dtype, datum=datums.id_dtype)
    bare = np.broadcast_to(examples.present[None, :, None], examples.counts.shape).copy()
    bare[examples.cell, examples.label, examples.at] = False
    lone = np.nonzero(bare)
    cell, label, at = (
        np.concatenate([getattr(examples, name), more.astype(np.int32)])
        for name, more in zip(("cell", "label", "at"), lone, strict=True)
    )
    n = examples.cell.size
    index = pl.Series(np.r_[examples.datum, np.zeros(lone[0].size, np.int32)])
    index = index.set(pl.Series(np.arange(cell.size) >= n), None)
    outcome, observation = (np.array(names)[cell] for names in zip(*CELLS, strict=True))
    dataset = datums.dataset
    table = labels.frame
    frame = pl.DataFrame(
        {
            "dataset": None if dataset is None else dataset.gather(index),
            "label_key": table["label_key"].gather(label),
            "label_value": table["label_value"].gather(label),
            "iou_threshold": np.full(cell.size, round(iou, 10)),
            "score_threshold": np.asarray(score_thresholds)[at],
            "outcome": outcome,
            "observation": observation,
            "count": examples.counts[cell, label, at],
            "datum_id": datums.id.gather(index),
            "geometry": examples.geometry.extend_constant(None, lone[0].size),
        }
    )
    schema = frame_schema("examples", label=labels.dtype, datum=datums.id_dtype)
    missing = [pl.lit(None).alias(name) for name in schema if name not in frame.columns]
    whole = frame.with_columns(missing).cast(schema)  # type: ignore[arg-type]
    # By label, threshold and cell; examples of one cell stay in their order.
    return whole[np.lexsort((cell, at, label))]
