"""Detailed precision-recall curve, with examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...geometry.polygons import corners_of_upright
from ...schemas.arrays import Array
from ...schemas.results import empty_frame, frame_schema
from ...tallies.datums import Datums, Labels
from ...tallies.registry import stored_as
from .encode import Batch, Side
from .layers import quads_as_geojson
from .matching import Matched, SortedRows
from .overlaps import Facts, Pairs

# Examples of the detailed curve: counts of every cell and the first rows in it, as a tally.

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
        fields = {name: getattr(part, name) for name in _ROWS}
        fields |= {"datum": datum[part.datum], "label": label[part.label]}
        for name in _ROWS:
            columns[name].append(fields[name])
    rows = {name: np.concatenate(pieces) for name, pieces in columns.items()}
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
    chosen = order[np.arange(place.size) - first < most]
    return Examples(
        counts=counts,
        present=present,
        geometry=geometry.gather(chosen),
        **{name: column[chosen] for name, column in rows.items()},
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
    without_example = np.broadcast_to(examples.present[None, :, None], examples.counts.shape).copy()
    without_example[examples.cell, examples.label, examples.at] = False
    empty = np.nonzero(without_example)
    cell, label, at = (
        np.concatenate([getattr(examples, name), places.astype(np.int32)])
        for name, places in zip(("cell", "label", "at"), empty, strict=True)
    )
    n = examples.cell.size
    index = pl.Series(np.r_[examples.datum, np.zeros(empty[0].size, np.int32)])
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
            "geometry": examples.geometry.extend_constant(None, empty[0].size),
        }
    )
    schema = frame_schema("examples", label=labels.dtype, datum=datums.id_dtype)
    missing = [pl.lit(None).alias(name) for name in schema if name not in frame.columns]
    complete = frame.with_columns(missing).cast(schema)  # type: ignore[arg-type]
    # By label, threshold and cell; examples of one cell stay in their order.
    return complete[np.lexsort((cell, at, label))]


# Detailed curve: kind of each false positive (misclassification, duplicate, hallucination) and
# false negative (misclassification, no_predictions). Source: Valor, "DetailedPrecisionRecallCurve".

_NONE = -1


def _first_by_label(label: Array, rows: Array, n_labels: int, n: int) -> Array:
    """Return the first n of ``rows`` (ascending in label) of each label, padded with -1."""
    out = np.full((n_labels, n), _NONE, np.int64)
    if rows.size and n:
        of_row = label[rows]
        start = np.searchsorted(of_row, np.arange(n_labels))
        within = np.arange(rows.size) - start[of_row]
        few = within < n
        out[of_row[few], within[few]] = rows[few]
    return out


def _examples(
    facts: Facts, pairs: Pairs, kinds: dict[str, Array], reached: dict[str, Array], shape: Any
) -> Array:
    """Rows shown as examples, int64 [cells, labels, scores, n]; of ground truths for tp and fn."""
    n_labels, n_scores, n = shape
    out = np.full((len(CELLS), n_labels, n_scores, n), _NONE, np.int64)
    if n == 0:
        return out
    levels = np.arange(n_scores)[None, :, None]
    hits = np.flatnonzero(facts.gt_regular & (reached["taken"] > 0))
    hits = hits[np.lexsort((facts.gt_taker[hits], pairs.g_label[hits]))]
    best = {0: (_first_by_label(pairs.g_label, hits, n_labels, n), reached["taken"])}
    for cell in (1, 2, 3):
        wrong = np.flatnonzero(kinds[CELLS[cell][1]])
        best[cell] = (_first_by_label(pairs.p_label, wrong, n_labels, n), reached["score"])
    for cell, (rows, at) in best.items():
        if at.size:
            rows = np.where((rows >= 0) & (at[np.maximum(rows, 0)] > 0), rows, _NONE)
            enough = at[np.maximum(rows, 0)][:, None, :] > levels
            out[cell] = np.where(enough & (rows >= 0)[:, None, :], rows[:, None, :], _NONE)
    for k in range(n_scores):
        missed = facts.gt_regular & (reached["taken"] <= k)
        other = reached["other"] > k
        for cell, mask in ((4, missed & other), (5, missed & ~other)):
            out[cell, :, k] = _first_by_label(pairs.g_label, np.flatnonzero(mask), n_labels, n)
    return out


def _geometry_of(sorted_rows: SortedRows, places: Array, batch: Batch, side: str) -> pl.Series:
    """Return rows as GeoJSON: polygons and boxes, and bounding boxes of masks."""
    source: Side = getattr(batch, side)
    rows = sorted_rows.row[places]
    if source.shapes is not None:
        drawn = source.shapes.geojson(rows)
        if drawn is not None:
            return drawn
    return quads_as_geojson(corners_of_upright(source.boxes(rows)))


def detailed_examples(
    batch: Batch,
    matched: Matched,
    pairs: Pairs,
    facts: Facts,
    *,
    score_thresholds: tuple[float, ...],
    max_examples: int,
) -> Examples:
    """Count the cells of the detailed curve at one IoU threshold, with their first examples.

    Args:
        pairs: overlaps, for the labels of rows.
        facts: facts of each row at the IoU threshold.
        score_thresholds: ascending, before rounding to the scores' dtype.
        max_examples: examples per cell.
    """
    labels, ranked = batch.labels, matched.ranked
    n_labels, n_scores = len(labels), len(score_thresholds)
    if not n_labels:
        return no_examples(n_scores)
    grid = np.asarray([ranked.comparable(t) for t in score_thresholds])
    reached = {
        name: np.searchsorted(grid, scores, side="right")
        for name, scores in (
            ("score", ranked.score),
            ("taken", facts.gt_taken),
            ("other", facts.gt_other),
        )
    }
    wrong = ~facts.hit & ~facts.ignored
    on_other, on_own = facts.on_other, facts.on_own
    kinds = {
        "misclassifications": wrong & on_other,
        "duplicates": wrong & ~on_other & on_own,
        "hallucinations": wrong & ~on_other & ~on_own,
    }
    regular = facts.gt_regular
    size = (n_labels, n_scores)

    def count(label: Array, mask: Array, at: Array) -> Array:
        """Rows per label that reach each score threshold, int64 [labels, scores]."""
        flat = label[mask].astype(np.int64) * (n_scores + 1) + at[mask]
        histogram = np.bincount(flat, minlength=n_labels * (n_scores + 1)).reshape(n_labels, -1)
        return histogram[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:]

    tp = count(pairs.g_label, regular, reached["taken"])
    total = np.bincount(pairs.g_label[regular], minlength=n_labels)[:, None]
    crossed = regular & (reached["other"] > reached["taken"])
    confused = count(pairs.g_label, crossed, reached["other"]) - count(
        pairs.g_label, crossed, reached["taken"]
    )
    counts = np.stack(
        [tp]
        + [count(pairs.p_label, kinds[name], reached["score"]) for _, name in CELLS[1:4]]
        + [confused, total - tp - confused]
    )
    first = _examples(facts, pairs, kinds, reached, (*size, max_examples))
    present = (total[:, 0] > 0) | (np.diff(ranked.start) > 0)
    return _chosen(batch, matched, facts, counts, first, present)


def _chosen(
    batch: Batch, matched: Matched, facts: Facts, counts: Array, first: Array, present: Array
) -> Examples:
    """Return the selected rows with geometry and sort keys."""
    cell, label, at, _ = np.nonzero(first >= 0)
    row = first[first >= 0]
    ranked = matched.ranked
    of_prediction = np.isin(cell, (1, 2, 3))
    datum = np.empty(cell.size, np.int32)
    datum[of_prediction] = ranked.datum[row[of_prediction]]
    datum[~of_prediction] = ranked.gt_datum[row[~of_prediction]]
    geometry = pl.repeat(None, cell.size, dtype=pl.String, eager=True)
    for side, sorted_rows, mask, places in (
        ("predictions", matched.predictions, of_prediction, matched.order[row[of_prediction]]),
        ("ground_truths", matched.ground_truths, ~of_prediction, row[~of_prediction]),
    ):
        looks = _geometry_of(sorted_rows, places, batch, side)
        geometry = geometry.scatter(np.flatnonzero(mask), looks)
    # Hits and false positives are sorted by rank of the prediction, missed ones by row.
    by = np.full(cell.size, _NONE, np.int64)
    by[of_prediction] = row[of_prediction]
    by[cell == 0] = facts.gt_taker[row[cell == 0]]
    score, tie = np.zeros(cell.size), np.zeros(cell.size)
    place = np.zeros(cell.size, np.int64)
    paired = by >= 0
    score[paired] = ranked.score[by[paired]]
    place[paired] = ranked.row[by[paired]]
    if ranked.tie.size:
        tie[paired] = ranked.tie[by[paired]]
    place[~paired] = ranked.gt_row[row[~paired]]
    return Examples(
        counts=counts,
        present=present,
        cell=cell.astype(np.int32),
        label=label.astype(np.int32),
        at=at.astype(np.int32),
        datum=datum,
        score=score,
        tie=tie,
        row=place,
        geometry=geometry.alias("geometry"),
    )
