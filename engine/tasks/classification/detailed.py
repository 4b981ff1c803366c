"""The detailed precision-recall curve: every outcome by kind, with examples, per threshold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from ...schemas.results import empty_frame, frame_schema
from .settings import Settings
from .tallies import Tallies
from .views import EachView

Array = np.ndarray[Any, Any]

CELLS = (
    ("tp", "all"),
    ("fp", "misclassifications"),
    ("fp", "hallucinations"),
    ("fn", "misclassifications"),
    ("fn", "no_predictions"),
    ("tn", "all"),
)
"""Outcome and observation, in the order of rows."""


def examples_frame(tallies: Tallies, settings: Settings, each_view: EachView) -> pl.DataFrame:
    """The ``examples`` frame of the whole set.

    A false positive on a datum with a truth of the key is a misclassification, on one without a
    hallucination; a false negative is a misclassification where some value of the key reaches the
    threshold, else there is no prediction (Valor metrics document).
    """
    labels, datums = tallies.labels, tallies.datums
    schema = frame_schema("examples", label=labels.dtype, datum=datums.id_dtype)
    parts: list[tuple[int, float, int, int, Array]] = []
    for label, facts in _labels(tallies, every_datum=settings.rules.curve_every_datum):
        for threshold in settings.score_thresholds:
            for cell, (count, first) in enumerate(
                facts.cells(threshold, settings.pr_curve_max_examples)
            ):
                parts.append((label, threshold, cell, count, first))
    if not parts:
        return empty_frame("examples", label=labels.dtype, datum=datums.id_dtype)
    sizes = [max(1, part[4].size) for part in parts]
    of_label, at, cells, counts = (
        np.repeat(np.array([part[i] for part in parts]), sizes) for i in range(4)
    )
    none = np.array([-1])
    datum = np.concatenate([part[4] if part[4].size else none for part in parts])
    index = pl.Series(np.maximum(datum, 0)).set(pl.Series(datum < 0), None)
    outcome, observation = (np.array(names)[cells] for names in zip(*CELLS, strict=True))
    dataset = datums.dataset
    made = {
        "dataset": None if dataset is None else dataset.gather(index),
        "label_key": labels.frame["label_key"].gather(of_label),
        "label_value": labels.frame["label_value"].gather(of_label),
        "iou_threshold": None,
        "score_threshold": at,
        "outcome": outcome,
        "observation": observation,
        "count": counts,
        "datum_id": datums.id.gather(index),
        "geometry": None,
    }
    return pl.DataFrame(made, schema_overrides={"geometry": pl.String}).cast(schema)  # type: ignore[arg-type]


class _Facts:
    """All datums that count for one label, ascending.

    Attributes:
        datum: int32 [u], datums that have something under the label's key, or all.
        score: float64 [u], the label's score, -inf where it is not listed.
        best: float64 [u], the best score of any label of the key, -inf without any.
        true: bool [u], the label is true.
        judged: bool [u], some label is.
    """

    def __init__(
        self, datum: Array, score: Array, best: Array, true: Array, judged: Array, single: bool
    ) -> None:
        self.datum = datum
        self.score = score
        self.best = best
        self.true = true
        self.judged = judged
        self.single = single

    def cells(self, threshold: float, n_examples: int) -> Iterator[tuple[int, Array]]:
        """Count and first datums of every cell, in the order of ``CELLS``."""
        limit = float(np.float32(threshold)) if self.single else threshold
        positive = self.score >= limit
        some = self.best >= limit
        wrong = positive & ~self.true
        lost = self.true & ~positive
        for mask in (
            positive & self.true,
            wrong & self.judged,
            wrong & ~self.judged,
            lost & some,
            lost & ~some,
            ~positive & ~self.true,
        ):
            rows = np.flatnonzero(mask)
            yield rows.size, self.datum[rows[:n_examples]]


def _labels(tallies: Tallies, *, every_datum: bool) -> Iterator[tuple[int, _Facts]]:
    """Labels that are true or scored somewhere, with the facts of their key's units.

    Args:
        tallies: the tallies.
        every_datum: whether datums without anything under the key are there as well.
    """
    units, scored = tallies.units, tallies.scored
    if scored is None:
        return
    n = len(units)
    order = np.argsort(units.datum_of(), kind="stable")
    row_unit = np.arange(n) if scored.unit is None else scored.unit
    row_label = (
        np.full(scored.score.size, scored.only, np.int32) if scored.label is None else scored.label
    )
    best = np.full(n, -np.inf)
    np.maximum.at(best, row_unit, scored.score)
    judged = units.n_truths > 0
    listed = np.zeros(n, bool)
    listed[row_unit] = True
    known = judged | listed
    datums = np.unique(units.datum_of(np.flatnonzero(known)))
    truth_unit, truth_label = units.truth_rows()
    by_label = np.argsort(row_label, kind="stable")
    starts = np.searchsorted(row_label[by_label], np.arange(len(tallies.labels) + 1))
    truths = np.argsort(truth_label, kind="stable")
    truth_starts = np.searchsorted(truth_label[truths], np.arange(len(tallies.labels) + 1))
    for label in np.flatnonzero(scored.labels):
        rows = by_label[starts[label] : starts[label + 1]]
        of_truth = truths[truth_starts[label] : truth_starts[label + 1]]
        if not rows.size and not of_truth.size:
            continue
        score = np.full(n, -np.inf)
        score[row_unit[rows]] = scored.score[rows]
        true = np.zeros(n, bool)
        true[truth_unit[of_truth]] = True
        of_key = known if units.key is None else known & (units.key == tallies.labels.key[label])
        inside = order[of_key[order]]
        datum = units.datum_of(inside)
        parts = [score[inside], best[inside], true[inside], judged[inside]]
        if every_datum and units.key is not None:
            place = np.searchsorted(datums, datum)
            for i, (part, fill) in enumerate(zip(parts, (-np.inf, -np.inf, 0, 0), strict=True)):
                parts[i] = np.full(datums.size, fill, part.dtype)
                parts[i][place] = part
            datum = datums
        yield int(label), _Facts(datum, parts[0], parts[1], parts[2], parts[3], scored.single)
