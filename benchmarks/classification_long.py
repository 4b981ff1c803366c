"""Peers on the long tables: every label's score for every datum, one true label each.

Values, in this order: precision, recall, F1 at the best label per datum and the area under the
one-against-rest ROC curve, label after label; the mean of the areas; tp, fp, fn, tn, precision and
recall at each score threshold, label after label and by ascending threshold.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

THRESHOLDS = [i / 20 for i in range(1, 20)]

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


def ratio(part: Any, whole: Any) -> F64:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(part, dtype=np.float64) / whole


def assembled(at_best: list[F64], areas: F64, hits: I64, reached: I64, true: I64, n: int) -> F64:
    """Assemble all values from `hits` and `reached`, counts per label and threshold."""
    misses = true[:, None] - hits
    false = reached - hits
    counts = [hits, false, misses, n - hits - false - misses]
    curve = [*counts, ratio(hits, reached), ratio(hits, true[:, None])]
    parts = [*at_best, areas, np.array([np.mean(areas)]), *curve]
    return np.concatenate([np.asarray(part, dtype=np.float64).ravel() for part in parts])


def from_counts(tp: I64, predicted: I64, true: I64) -> list[F64]:
    """Compute precision, recall and F1 per label."""
    return [ratio(tp, predicted), ratio(tp, true), ratio(2 * tp, predicted + true)]


def polars_expressions() -> Callable[[Path], Any]:
    """One sort per label; positives and thresholds are looked up among its sorted scores."""
    thresholds = pl.Series("score", THRESHOLDS)

    def run(folder: Path) -> Any:
        predictions = pl.scan_parquet(folder / "predictions.parquet").collect()
        truths = pl.scan_parquet(folder / "groundtruths.parquet").rename({"label_value": "truth"})
        best = (
            predictions.lazy()
            .group_by("datum_id")
            .agg(pl.col("label_value").sort_by("score").last())
        )
        hard = (
            best.join(truths, on="datum_id")
            .group_by("label_value")
            .agg(tp=(pl.col("label_value") == pl.col("truth")).sum(), predicted=pl.len())
        )
        marked = (
            predictions.lazy()
            .join(truths, on="datum_id")
            .select("label_value", "score", hit=pl.col("label_value") == pl.col("truth"))
        )
        counted = hard.collect()
        labels = marked.collect().partition_by("label_value", as_dict=True)
        tp, predicted, true, areas, hits, reached = [], [], [], [], [], []
        datums = 0
        by_label = {row[0]: row[1:] for row in counted.iter_rows()}
        for (label,), rows in sorted(labels.items()):
            every = rows["score"].sort()
            positives = rows["score"].filter(rows["hit"]).sort()
            datums, ones = len(every), len(positives)
            places = sum(
                every.search_sorted(positives, side=side).cast(pl.Float64).sum()
                for side in ("left", "right")
            )
            zeros = datums - ones
            areas.append(
                (places / 2 - ones * ones / 2) / (ones * zeros) if ones and zeros else np.nan
            )
            hits.append(ones - positives.search_sorted(thresholds).to_numpy().astype(np.int64))
            reached.append(datums - every.search_sorted(thresholds).to_numpy().astype(np.int64))
            counts = by_label.get(label, (0, 0))
            tp.append(counts[0])
            predicted.append(counts[1])
            true.append(ones)
        ones = np.array(true)
        at_best = from_counts(np.array(tp), np.array(predicted), ones)
        return assembled(at_best, np.array(areas), np.array(hits), np.array(reached), ones, datums)

    return run


def pivoted(folder: Path) -> tuple[F64, I64]:
    """Return scores [datums, labels] and true labels [datums]; ids and labels count from 0."""
    predictions = pl.read_parquet(folder / "predictions.parquet")
    truths = pl.read_parquet(folder / "groundtruths.parquet")
    truth = np.empty(len(truths), dtype=np.int64)
    truth[truths["datum_id"].to_numpy()] = truths["label_value"].to_numpy()
    labels = predictions["label_value"].to_numpy()
    matrix = np.full((len(truth), int(labels.max()) + 1), -np.inf)
    matrix[predictions["datum_id"].to_numpy(), labels] = predictions["score"].to_numpy()
    return matrix, truth


def numpy_matrix() -> Callable[[Path], Any]:
    """The same sorts on a NumPy matrix; Polars reads the files."""

    def run(folder: Path) -> Any:
        matrix, truth = pivoted(folder)
        datums, labels = matrix.shape
        best = matrix.argmax(axis=1)
        true = np.bincount(truth, minlength=labels)
        at_best = from_counts(
            np.bincount(truth[best == truth], minlength=labels),
            np.bincount(best, minlength=labels),
            true,
        )
        areas = np.full(labels, np.nan)
        hits = np.empty((labels, len(THRESHOLDS)), dtype=np.int64)
        reached = np.empty_like(hits)
        for label in range(labels):
            every = np.ascontiguousarray(matrix[:, label])
            positives = np.sort(every[truth == label])
            every.sort()
            ones = len(positives)
            places = sum(np.searchsorted(every, positives, s).sum() for s in ("left", "right"))
            if 0 < ones < datums:
                areas[label] = (places - ones * ones) / 2 / (ones * (datums - ones))
            hits[label] = ones - np.searchsorted(positives, THRESHOLDS)
            reached[label] = datums - np.searchsorted(every, THRESHOLDS)
        return assembled(at_best, areas, hits, reached, true, datums)

    return run


def scikit_learn() -> Callable[[Path], Any]:
    """Functions of scikit-learn on the same matrix, thresholds by NumPy; patched before."""
    from sklearn.metrics import precision_recall_fscore_support, roc_auc_score

    def run(folder: Path) -> Any:
        matrix, truth = pivoted(folder)
        datums, labels = matrix.shape
        *at_best, true = precision_recall_fscore_support(
            truth, matrix.argmax(axis=1), labels=range(labels), average=None, zero_division=np.nan
        )
        areas = roc_auc_score(truth, matrix, multi_class="ovr", average=None)
        own = matrix[np.arange(datums), truth]
        reached = np.stack([(matrix >= t).sum(axis=0) for t in THRESHOLDS], axis=1)
        hits = np.stack(
            [np.bincount(truth[own >= t], minlength=labels) for t in THRESHOLDS], axis=1
        )
        return assembled(at_best, np.asarray(areas), hits, reached, true, datums)

    return run
