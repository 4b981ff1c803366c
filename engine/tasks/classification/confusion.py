"""The confusion matrix: units by true and predicted label, and examples of its cells."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import polars as pl

from ...kernels.sums import ExactSums
from ...schemas.arrays import Array
from ...schemas.results import empty_frame, frame_schema
from ...tally.scored_view import ScoredView
from .detailed import as_examples
from .settings import Settings
from .tallies import Tallies
from .views import EachView, whole_datums

KINDS = (
    ("tp", "all"),
    ("fn", "misclassifications"),
    ("fn", "no_predictions"),
    ("fp", "hallucinations"),
)
"""Outcome and observation of cells on the diagonal, off it, without prediction, without truth."""


def confusion_frame(tallies: Tallies, settings: Settings, each_view: EachView) -> pl.DataFrame:
    """Build the confusion frame: units by true and predicted label, null if missing, per slice."""
    labels = tallies.labels
    if tallies.units.hard is None or len(labels) == 0:
        return empty_frame("confusion", label=labels.dtype)
    return pl.concat(each_view(partial(_counts_of, tallies)))


def confusion_examples(
    tallies: Tallies, settings: Settings, each_view: EachView
) -> list[pl.DataFrame]:
    """Build the ``examples`` rows of the confusion matrix, for the whole set and every slice.

    They are the first datums of every non-empty cell; counts ignore weights.
    """
    if tallies.units.hard is None or len(tallies.labels) == 0:
        return []
    return each_view(partial(_examples_of, tallies, settings))


class _Cells:
    """Units of one view with their confusion cells.

    Attributes:
        unit: int64 [m], units with a truth or a prediction, in a group.
        cell: int64 [m], (group * n + actual) * n + predicted; code n - 1 means none.
    """

    def __init__(self, tallies: Tallies, view: ScoredView) -> None:
        units = view.units
        assert units.hard is not None
        n = len(tallies.labels) + 1
        cell = units.truth.astype(np.int64)
        cell[cell < 0] = n - 1
        cell *= n
        cell += units.hard
        cell[units.hard < 0] += n  # -1 stands for code n - 1
        kept = cell != n * n - 1
        if view.unit_group is not None:
            kept &= view.unit_group >= 0
            cell += view.unit_group.astype(np.int64) * (n * n)
        everything = bool(kept.all())  # of which no copies are made
        self.unit = np.arange(cell.size) if everything else np.flatnonzero(kept)
        self.cell = cell if everything else cell[self.unit]


def _split(tallies: Tallies, cell: Array) -> tuple[Array, Array, Array]:
    """Group, actual and predicted of some cells."""
    n = len(tallies.labels) + 1
    return cell // (n * n), cell // n % n, cell % n


def _named(tallies: Tallies, cell: Array, column: str | None, names: list[str]) -> dict[str, Any]:
    """Return the columns that identify cells."""
    group, actual, predicted = _split(tallies, cell)
    labels = tallies.labels.frame
    values = labels["label_value"].extend_constant(None, 1)
    return {
        "label_key": labels["label_key"].gather(
            np.where(actual == len(tallies.labels), predicted, actual)
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
    there, sums = np.zeros(0, np.int64), ExactSums(0)
    for few in view.blocks():
        cells = _Cells(tallies, few)
        weight = few.unit_weight
        each = None if weight is None else weight[cells.unit]
        there, sums = _added(there, sums, cells.cell, each)
    count = sums.rounded()
    made = _named(tallies, there, column, names)
    nothing = pl.Series([None], dtype=pl.Float64).new_from_index(0, there.size)
    made |= {"iou_threshold": nothing, "score_threshold": nothing, "count": count}
    return pl.DataFrame(made).select(list(schema)).cast(schema)  # type: ignore[arg-type]


def _added(
    there: Array, sums: ExactSums, cell: Array, each: Array | None
) -> tuple[Array, ExactSums]:
    """Add units to sums by cell.

    Args:
        there: int64 [c], existing cells, ascending.
        sums: sums of the existing cells.
        cell: int64 [m], cells of further units.
        each: float64 [m], summands; None for 1 each.
    """
    many = cell.size and int(cell.max()) >= max(_DENSE, 4 * cell.size)
    found = np.unique(cell) if many else np.flatnonzero(np.bincount(cell))
    every = np.union1d(there, found)
    at = np.searchsorted(every, cell) if many else _places(every)[cell]
    whole = sums.gathered(np.searchsorted(every, there), every.size)
    if each is None:
        counts = np.bincount(at, minlength=every.size).astype(np.float64)
        return every, whole.add(counts, np.arange(every.size))
    return every, whole.add(each, at)


def _places(cell: Array) -> Array:
    """Return a look-up table from cell to its index."""
    out = np.zeros(int(cell[-1]) + 1 if cell.size else 0, np.int64)
    out[cell] = np.arange(cell.size)
    return out


_DENSE = 1 << 20  # cells up to which a table of them costs nothing


def _examples_of(
    tallies: Tallies, settings: Settings, column: str | None, names: list[str], view: ScoredView
) -> pl.DataFrame:
    """Return the first datums of every cell of one view; one row without datums if empty."""
    labels, most = tallies.labels, settings.pr_curve_max_examples
    shown: pl.DataFrame | None = None
    there, sums = np.zeros(0, np.int64), ExactSums(0)
    for part, few in whole_datums(tallies, settings, view):
        more, cell, count = _first_of(part, few, max(most, 1))
        there, sums = _added(there, sums, cell, count)
        shown = more if shown is None else _first(pl.concat([shown, more]), max(most, 1))
    assert shown is not None
    cell = shown["cell"].to_numpy()
    nothing = [pl.lit(None).alias(name) for name in shown.columns if name != "cell" and not most]
    shown = shown.with_columns(nothing)
    _, actual, predicted = _split(tallies, cell)
    none = len(tallies.labels)
    kind = np.select([actual == predicted, predicted == none, actual == none], [0, 2, 3], 1)
    outcome, observation = (np.array(words)[kind] for words in zip(*KINDS, strict=True))
    named = np.where(actual == none, predicted, actual)
    made = _named(tallies, cell, column, names) | {
        "label_value": labels.frame["label_value"].gather(named),
        "outcome": outcome,
        "observation": observation,
        "count": sums.rounded()[np.searchsorted(there, cell)],
        **{column.name: column for column in shown.drop("cell")},
    }
    return as_examples(tallies, made)


def _first_of(part: Tallies, view: ScoredView, most: int) -> tuple[pl.DataFrame, Array, Array]:
    """Return the first datums of every cell of one tally.

    Returns:
        rows by cell and datum: cell, datum_id, and dataset and score if available; int64 [c], the
        cells, ascending; float64 [c], number of datums in each.
    """
    units, datums = part.units, part.datums
    cells = _Cells(part, view)
    order = np.lexsort((units.datum_of(cells.unit), cells.cell))
    cell, unit = cells.cell[order], cells.unit[order]
    every, first, count = np.unique(cell, return_index=True, return_counts=True)
    kept = np.arange(cell.size) - np.repeat(first, count) < most
    datum = units.datum_of(unit[kept])
    made = {"cell": pl.Series(cell[kept]), "datum_id": datums.id.gather(datum)}
    if datums.dataset is not None:
        made["dataset"] = datums.dataset.gather(datum)
    if units.hard_score is not None:
        made["score"] = pl.Series(units.hard_score[unit[kept]], nan_to_null=True)
    return pl.DataFrame(made), every, count.astype(np.float64)


def _first(rows: pl.DataFrame, most: int) -> pl.DataFrame:
    """The first datums of every cell, by id."""
    ordered = rows.sort("cell", "datum_id", maintain_order=True)
    return ordered.filter(pl.int_range(pl.len()).over("cell") < most)
