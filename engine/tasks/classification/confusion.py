"""The confusion matrix: units by true and predicted label, and examples of its cells."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import polars as pl

from ...schemas.results import empty_frame, frame_schema
from ...tally.scored_view import ScoredView
from .detailed import as_examples
from .settings import Settings
from .tallies import Tallies
from .views import EachView

Array = np.ndarray[Any, Any]

KINDS = (
    ("tp", "all"),
    ("fn", "misclassifications"),
    ("fn", "no_predictions"),
    ("fp", "hallucinations"),
)
"""Outcome and observation of cells on the diagonal, off it, without prediction, without truth."""


def confusion_frame(tallies: Tallies, settings: Settings, each_view: EachView) -> pl.DataFrame:
    """Units by true and predicted label, null where either is missing, per slice."""
    labels = tallies.labels
    if tallies.units.hard is None or len(labels) == 0:
        return empty_frame("confusion", label=labels.dtype)
    return pl.concat(each_view(partial(_counts_of, tallies)))


def confusion_examples(
    tallies: Tallies, settings: Settings, each_view: EachView
) -> list[pl.DataFrame]:
    """Rows of the ``examples`` frame for the confusion matrix, of the whole set and every slice.

    The first datums of every cell that has some; counts are of datums, whatever they weigh.
    """
    if tallies.units.hard is None or len(tallies.labels) == 0:
        return []
    return each_view(partial(_examples_of, tallies, settings))


class _Cells:
    """Units of one view that are in some cell, and names of cells.

    Attributes:
        unit: int64 [m], units with a truth or a prediction, in a group.
        cell: int64 [m], (group * n + actual) * n + predicted; code n - 1 stands for none.
    """

    def __init__(self, tallies: Tallies, view: ScoredView) -> None:
        self._tallies = tallies
        units = tallies.units
        assert units.hard is not None
        n = self.n = len(tallies.labels) + 1
        actual = np.where(units.truth < 0, n - 1, units.truth).astype(np.int64)
        predicted = np.where(units.hard < 0, n - 1, units.hard).astype(np.int64)
        cell = actual * n + predicted
        unit = np.flatnonzero(cell != n * n - 1)
        if view.unit_group is not None:
            unit = unit[view.unit_group[unit] >= 0]
            cell = cell + view.unit_group.astype(np.int64) * (n * n)
        self.unit, self.cell = unit, cell[unit]

    def split(self, cell: Array) -> tuple[Array, Array, Array]:
        """Group, actual and predicted of some cells."""
        return cell // (self.n * self.n), cell // self.n % self.n, cell % self.n

    def named(self, cell: Array, column: str | None, names: list[str]) -> dict[str, Any]:
        """The columns that say what each of some cells is."""
        group, actual, predicted = self.split(cell)
        labels = self._tallies.labels.frame
        values = labels["label_value"].extend_constant(None, 1)
        return {
            "label_key": labels["label_key"].gather(
                np.where(actual == self.n - 1, predicted, actual)
            ),
            "actual": values.gather(actual),
            "predicted": values.gather(predicted),
            "slice": pl.Series([column], dtype=pl.String).new_from_index(0, cell.size),
            "slice_value": pl.Series(names or [None], dtype=pl.String).gather(group),
        }


def _counts_of(
    tallies: Tallies, column: str | None, names: list[str], view: ScoredView
) -> pl.DataFrame:
    """The cells of one view."""
    schema = frame_schema("confusion", label=tallies.labels.dtype, weighted=tallies.weighted)
    cells = _Cells(tallies, view)
    weight = view.unit_weight
    each = np.ones(cells.unit.size) if weight is None else weight[cells.unit]
    counted = (
        pl.DataFrame({"cell": cells.cell, "count": each})
        .group_by("cell")
        .agg(pl.col("count").sum())
        .sort("cell")
    )
    made = cells.named(counted["cell"].to_numpy(), column, names)
    nothing = pl.Series([None], dtype=pl.Float64).new_from_index(0, counted.height)
    made |= {"iou_threshold": nothing, "score_threshold": nothing, "count": counted["count"]}
    return pl.DataFrame(made).select(list(schema)).cast(schema)  # type: ignore[arg-type]


def _examples_of(
    tallies: Tallies, settings: Settings, column: str | None, names: list[str], view: ScoredView
) -> pl.DataFrame:
    """The first datums of every cell of one view, or one row without any where none is shown."""
    units, datums, labels = tallies.units, tallies.datums, tallies.labels
    cells = _Cells(tallies, view)
    order = np.lexsort((units.datum_of(cells.unit), cells.cell))
    cell, unit = cells.cell[order], cells.unit[order]
    _, first, count = np.unique(cell, return_index=True, return_counts=True)
    most = settings.pr_curve_max_examples
    within = np.arange(cell.size) - np.repeat(first, count)
    kept = within < max(most, 1)
    unit, count = unit[kept], np.repeat(count, np.minimum(count, max(most, 1)))
    cell = cell[kept]
    _, actual, predicted = cells.split(cell)
    none = cells.n - 1
    kind = np.select([actual == predicted, predicted == none, actual == none], [0, 2, 3], 1)
    index = pl.Series(units.datum_of(unit)).set(pl.Series(np.full(unit.size, most == 0)), None)
    score = None
    if units.hard_score is not None:
        given = np.where(most == 0, np.nan, units.hard_score[unit])
        score = pl.Series(given, nan_to_null=True)
    outcome, observation = (np.array(words)[kind] for words in zip(*KINDS, strict=True))
    shown = np.where(actual == none, predicted, actual)
    made = cells.named(cell, column, names) | {
        "dataset": None if datums.dataset is None else datums.dataset.gather(index),
        "label_value": labels.frame["label_value"].gather(shown),
        "outcome": outcome,
        "observation": observation,
        "count": count,
        "datum_id": datums.id.gather(index),
        "score": score,
    }
    return as_examples(tallies, made)
