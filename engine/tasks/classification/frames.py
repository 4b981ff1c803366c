"""Views of classification, and frames such as the confusion matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ...exports.rows import automatic_positive
from ...geometry.columns import offsets_of
from ...kernels.labels import N_CELLS, detailed_cells
from ...kernels.sums import ExactSums
from ...metrics import get
from ...metrics.averages import in_use
from ...schemas.arrays import Array
from ...schemas.label_errors import OTHER_LABEL, WAYS
from ...schemas.option_values import in_name
from ...schemas.results import empty_frame, frame_schema, in_schema
from ...tallies.scored_view import ScoredView
from ...tallies.sorted_scores import Sorted
from ...tallies.stored import PartGroups
from ..encoding import Workers
from .dialects import Settings
from .encode import find_label
from .tallies import Tallies, decision_of

# Views of a classification tally, and the frames that are not made of cells.

EachView = Callable[[Callable[..., pl.DataFrame]], list[pl.DataFrame]]
"""Calls a function with slice column (None for the whole set), group names and view of each."""


def view(
    tallies: Tallies,
    settings: Settings,
    group: Array | PartGroups | None = None,
    n_groups: int = 1,
    weights: Array | None = None,
    threads: Workers | None = None,
) -> ScoredView:
    """Return the tally by groups of datums.

    Args:
        group: int32 [n_datums], -1 for none; for tallies on disk, the groups of their datums; None
            for a single group.
        threads: used for sorting segments; serial if None.
    """
    return ScoredView(
        tallies.units,
        tallies.scored,
        tallies.labels,
        parts=tallies.parts,
        declared=None if tallies.declared is None else tallies.declared >= 0,
        order=tallies.declared,
        decision=decision_of(settings, tallies.labels),
        **({} if threads is None else {"over": threads.over}),
        group=group,
        n_groups=n_groups,
        weights=weights,
    )


def one_draw(view: ScoredView, weights: Array) -> ScoredView:
    """Return the view of one resample, which shares the sorted scores."""
    one = view.like(view.units, view.scored, weights=weights)
    if view.scored is not None:
        rows = view.ordered_rows
        drawn = weights[rows.datum].astype(np.float64)
        weight = drawn if rows.own is None else drawn * rows.own
        one.__dict__["sorted"] = Sorted(rows.sorted.start, rows.sorted.score, weight)
    return one


def whole_datums(tallies: Tallies, of: ScoredView) -> Iterator[tuple[Tallies, ScoredView]]:
    """Yield tallies and views of disjoint sets of datums: for a tally on disk, its parts.

    Args:
        of: view of the tally, whose groups the others use.
    """
    parts = [tallies] if tallies.parts is None else tallies.parts.frame_data()
    yield from zip(parts, of.blocks(), strict=True)


def cells_per_group(n_labels: int, settings: Settings, needs: frozenset[str]) -> int:
    """Return the curve cells per group of datums, which limits the groups in memory."""
    of_curve = n_labels * len(settings.score_thresholds)
    if "details" not in needs:
        return of_curve
    return of_curve * N_CELLS * (1 + settings.pr_curve_max_examples)


# The detailed precision-recall curve: every outcome by kind, with examples, per threshold.

CELLS = (
    ("tp", "all"),
    ("fp", "misclassifications"),
    ("fp", "hallucinations"),
    ("fn", "misclassifications"),
    ("fn", "no_predictions"),
    ("tn", "all"),
)
"""Outcome and observation, in the order of rows and of the kernel's kinds."""


def detailed_frames(
    tallies: Tallies, settings: Settings, each_view: EachView
) -> list[pl.DataFrame]:
    """Build the ``examples`` rows of the detailed curve, for the whole set and every slice.

    Counts ignore weights.
    """
    if tallies.scored is None or not len(tallies.labels):
        return []
    inputs = _KernelInputs(tallies, settings) if tallies.parts is None else None
    return each_view(partial(_of_view, tallies, settings, inputs))


class _KernelInputs:
    """Inputs of the kernel, shared by all slices.

    Attributes:
        places: see :func:`detailed_cells`, as for the others.
        rows: scored rows by label, for labels that are scored.
        truths: true labels by label.
        judged: bool [u].
    """

    def __init__(self, tallies: Tallies, settings: Settings) -> None:
        units, scored, labels = tallies.units, tallies.scored, tallies.labels
        assert scored is not None
        n, n_labels = len(units), len(labels)
        grid = np.array([scored.comparable(t) for t in settings.score_thresholds])
        unit = np.arange(n) if scored.unit_codes is None else scored.unit_codes
        label = scored.label_codes
        if label is None:
            label = np.full(unit.size, scored.only, np.int32)
        by_label = np.argsort(label, kind="stable")
        level = np.searchsorted(grid, scored.score[by_label], side="right")
        self.rows = offsets_of(np.bincount(label, minlength=n_labels)), unit[by_label], level
        truth_unit, truth_label = units.truth_rows()
        used = scored.labels[truth_label]
        truth_unit, truth_label = truth_unit[used], truth_label[used]
        order = np.argsort(truth_label, kind="stable")
        self.truths = offsets_of(np.bincount(truth_label, minlength=n_labels)), truth_unit[order]
        self.judged = units.n_truths > 0
        present = self.judged.copy()
        present[unit] = True
        self.places = _places(tallies, present, every_datum=settings.rules.curve_every_datum)


def _places(tallies: Tallies, defined: Array, *, every_datum: bool) -> tuple[Array, Array, Array]:
    """Datums that have something under each key, and their units; or all that have something."""
    units, n_keys = tallies.units, len(tallies.labels.key_names)
    order = np.argsort(units.datum_of(), kind="stable")
    order = order[defined[order]]
    datum = units.datum_of(order)
    if units.key is None:
        return np.array([0, order.size]), datum, order
    every = np.unique(datum)
    datums, codes = [], []
    for k in range(n_keys):
        inside = units.key[order] == k
        if not every_datum:
            datums.append(datum[inside])
            codes.append(order[inside])
            continue
        code = np.full(every.size, -1, np.int64)
        code[np.searchsorted(every, datum[inside])] = order[inside]
        datums.append(every)
        codes.append(code)
    start = offsets_of(np.array([part.size for part in codes]))
    return start, np.concatenate(datums), np.concatenate(codes)


class _DatumCells(NamedTuple):
    """Cells of some datums.

    Attributes:
        present: see :func:`detailed_cells`.
        counts: see :func:`detailed_cells`.
        first: see :func:`detailed_cells`; indices into ``datum_id``.
        datum_id: ids, ascending.
        dataset: dataset of each; None without datasets.
    """

    present: Array
    counts: Array
    first: Array
    datum_id: pl.Series
    dataset: pl.Series | None


def _cells_of(
    part: Tallies, settings: Settings, inputs: _KernelInputs, view: ScoredView, *, only_tally: bool
) -> _DatumCells:
    """Compute the cells of the datums of one tally; ``only_tally``: it is the only one."""
    cells = detailed_cells(
        inputs.places,
        part.labels.key,
        view.group,
        inputs.rows,
        inputs.truths,
        inputs.judged,
        len(settings.score_thresholds),
        view.n_groups,
        settings.pr_curve_max_examples,
        absent_too=not only_tally,
    )
    return _DatumCells(*cells, part.datums.id, part.datums.dataset)


def _merged_cells(one: _DatumCells, other: _DatumCells) -> _DatumCells:
    """Cells of two disjoint sets of datums: counts add up, and the first of all are shown."""
    most = one.first.shape[-1]
    sizes = len(one.datum_id), len(other.datum_id)
    ids = pl.concat([one.datum_id, other.datum_id])
    order = ids.arg_sort().to_numpy()
    rank = np.full(sum(sizes) + 1, sum(sizes))  # of places in both, one after the other; last none
    rank[order] = np.arange(order.size)
    places = np.concatenate(
        [one.first, np.where(other.first < 0, -1, other.first + sizes[0])], axis=-1, dtype=np.int64
    )
    first = np.sort(rank[places], axis=-1)[..., :most]
    used = np.unique(first[first < order.size])  # others are shown nowhere, and let go
    merged = np.where(first < order.size, np.searchsorted(used, first), -1)
    rows = order[used]
    dataset = None
    if one.dataset is not None and other.dataset is not None:
        dataset = pl.concat([one.dataset, other.dataset]).gather(rows)
    return _DatumCells(
        one.present | other.present, one.counts + other.counts, merged, ids.gather(rows), dataset
    )


def _of_view(
    tallies: Tallies,
    settings: Settings,
    inputs: _KernelInputs | None,
    column: str | None,
    names: list[str],
    view: ScoredView,
) -> pl.DataFrame:
    """Rows of one view: by group, label, threshold and kind, one per example or one without."""
    labels = tallies.labels
    thresholds = np.array(settings.score_thresholds)
    cells: _DatumCells | None = None
    for part, few in whole_datums(tallies, view):
        kernel_inputs = inputs or _KernelInputs(part, settings)
        part_cells = _cells_of(part, settings, kernel_inputs, few, only_tally=inputs is not None)
        cells = part_cells if cells is None else _merged_cells(cells, part_cells)
    assert cells is not None
    present, counts, first, datum_id, dataset = cells
    group, label = np.nonzero(present)
    counts = counts[group, label].swapaxes(1, 2)  # [curve, threshold, kind]
    first = first[group, label].swapaxes(1, 2)
    n_first = np.minimum(counts, first.shape[-1])
    curve, at, cell = (
        np.repeat(index.ravel(), np.maximum(n_first, 1).ravel())
        for index in np.indices(counts.shape)
    )
    datum = np.full(curve.size, -1, np.int64)
    some = np.repeat(n_first.ravel() > 0, np.maximum(n_first, 1).ravel())
    datum[some] = first[first >= 0]
    index = pl.Series(np.maximum(datum, 0)).set(pl.Series(~some), None)
    outcome, observation = (np.array(words)[cell] for words in zip(*CELLS, strict=True))
    columns = {
        "dataset": None if dataset is None else dataset.gather(index),
        "label_key": labels.frame["label_key"].gather(label[curve]),
        "label_value": labels.frame["label_value"].gather(label[curve]),
        "score_threshold": thresholds[at],
        "outcome": outcome,
        "observation": observation,
        "count": counts[curve, at, cell],
        "datum_id": datum_id.gather(index),
        "slice": pl.Series([column], dtype=pl.String).new_from_index(0, curve.size),
        "slice_value": pl.Series(names or [None], dtype=pl.String).gather(group[curve]),
    }
    return as_examples(tallies, columns)


def as_examples(tallies: Tallies, columns: dict[str, Any]) -> pl.DataFrame:
    """Return columns in the schema of the ``examples`` frame; missing ones are null.

    Args:
        tallies: give the dtypes of labels and ids.
        columns: arrays and series by name.
    """
    schema = frame_schema("examples", label=tallies.labels.dtype, datum=tallies.datums.id_dtype)
    return in_schema(columns, schema)


# The confusion matrix: units by true and predicted label, and examples of its cells.

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
        cell[units.hard < 0] += n  # -1 indexes code n - 1
        mask = cell != n * n - 1
        if view.unit_group is not None:
            mask &= view.unit_group >= 0
            cell += view.unit_group.astype(np.int64) * (n * n)
        everything = bool(mask.all())  # of which no copies are made
        self.unit = np.arange(cell.size) if everything else np.flatnonzero(mask)
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
    schema = frame_schema("confusion", label=tallies.labels.dtype, weighted=tallies.weighted)
    existing, sums = np.zeros(0, np.int64), ExactSums(0)
    for few in view.blocks():
        cells = _Cells(tallies, few)
        weight = few.unit_weight
        each = None if weight is None else weight[cells.unit]
        existing, sums = _added(existing, sums, cells.cell, each)
    return in_schema({**_named(tallies, existing, column, names), "count": sums.rounded()}, schema)


def _added(
    existing: Array, sums: ExactSums, cell: Array, each: Array | None
) -> tuple[Array, ExactSums]:
    """Add units to sums by cell.

    Args:
        existing: int64 [c], existing cells, ascending.
        sums: sums of the existing cells.
        cell: int64 [m], cells of further units.
        each: float64 [m], summands; None for 1 each.
    """
    many = cell.size and int(cell.max()) >= max(_DENSE, 4 * cell.size)
    distinct = np.unique(cell) if many else np.flatnonzero(np.bincount(cell))
    every = np.union1d(existing, distinct)
    at = np.searchsorted(every, cell) if many else _cell_places(every)[cell]
    total = sums.gathered(np.searchsorted(every, existing), every.size)
    if each is None:
        counts = np.bincount(at, minlength=every.size).astype(np.float64)
        return every, total.add(counts, np.arange(every.size))
    return every, total.add(each, at)


def _cell_places(cell: Array) -> Array:
    """Return a look-up table from cell to its index."""
    out = np.zeros(int(cell[-1]) + 1 if cell.size else 0, np.int64)
    out[cell] = np.arange(cell.size)
    return out


_DENSE = 1 << 20  # cells up to which a table of them is cheap


def _examples_of(
    tallies: Tallies, settings: Settings, column: str | None, names: list[str], view: ScoredView
) -> pl.DataFrame:
    """Return the first datums of every cell of one view; one row without datums if empty."""
    labels, most = tallies.labels, settings.pr_curve_max_examples
    first: pl.DataFrame | None = None
    existing, sums = np.zeros(0, np.int64), ExactSums(0)
    for part, few in whole_datums(tallies, view):
        part_examples, cell, count = _first_of(part, few, max(most, 1))
        existing, sums = _added(existing, sums, cell, count)
        first = (
            part_examples
            if first is None
            else _first(pl.concat([first, part_examples]), max(most, 1))
        )
    assert first is not None
    cell = first["cell"].to_numpy()
    nothing = [pl.lit(None).alias(name) for name in first.columns if name != "cell" and not most]
    first = first.with_columns(nothing)
    _, actual, predicted = _split(tallies, cell)
    none = len(tallies.labels)
    kind = np.select([actual == predicted, predicted == none, actual == none], [0, 2, 3], 1)
    outcome, observation = (np.array(words)[kind] for words in zip(*KINDS, strict=True))
    named = np.where(actual == none, predicted, actual)
    columns = _named(tallies, cell, column, names) | {
        "label_value": labels.frame["label_value"].gather(named),
        "outcome": outcome,
        "observation": observation,
        "count": sums.rounded()[np.searchsorted(existing, cell)],
        **{column.name: column for column in first.drop("cell")},
    }
    return as_examples(tallies, columns)


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
    mask = np.arange(cell.size) - np.repeat(first, count) < most
    datum = units.datum_of(unit[mask])
    columns = {"cell": pl.Series(cell[mask]), "datum_id": datums.id.gather(datum)}
    if datums.dataset is not None:
        columns["dataset"] = datums.dataset.gather(datum)
    if units.hard_score is not None:
        columns["score"] = pl.Series(units.hard_score[unit[mask]], nan_to_null=True)
    return pl.DataFrame(columns), every, count.astype(np.float64)


def _first(rows: pl.DataFrame, most: int) -> pl.DataFrame:
    """The first datums of every cell, by id."""
    ordered = rows.sort("cell", "datum_id", maintain_order=True)
    return ordered.filter(pl.int_range(pl.len()).over("cell") < most)


# Likely wrong labels, by confident learning: Northcutt, Jiang, Chuang (JAIR 70, 2021), with filters
# and scores of cleanlab 2.9, except that datums tied with the last one picked are picked too.


_CLOSE = 1e-6
"""Probabilities closer than this are treated as equal."""
_LEAST = 2 * _CLOSE
_NEVER = 2.0
"""Threshold of labels that no datum is given: no probability reaches it."""


class _Judged(NamedTuple):
    """Datums of one label key whose labels are assessed.

    Attributes:
        datum_id: ids [m].
        given: int64 [m], index of the given label.
        chance: float64 [m, labels], probabilities.
    """

    datum_id: pl.Series
    given: Array
    chance: Array

    @property
    def own(self) -> Array:
        """Probability of the given label, float64 [m]."""
        return self.chance[np.arange(self.given.size), self.given]


def label_errors_frame(tallies: Tallies, settings: Settings, each_view: EachView) -> pl.DataFrame:
    """Build the ``label_errors`` frame: datums whose given label is likely wrong.

    Empty for multi-label data, or if scores do not cover all labels.
    """
    labels, id_dtype = tallies.labels, tallies.datums.id_dtype
    empty = empty_frame("label_errors", label=labels.dtype, datum=id_dtype)
    if tallies.scored is None or settings.multilabel or tallies.units.truth_start is not None:
        return empty
    rows = [empty]
    for key in range(len(labels.key_names)):
        codes = np.flatnonzero(labels.key == key)
        # One score a datum is that of one of two labels.
        one = not tallies.scored.several
        if codes.size >= 2 and not (one and (codes.size > 2 or tallies.scored.only not in codes)):
            rows.append(_of_key(tallies, key, codes, empty))
    return pl.concat(rows).sort(
        ["label_key", "suspicion", "datum_id"], descending=[False, True, False]
    )


def _of_key(tallies: Tallies, key: int, codes: Array, empty: pl.DataFrame) -> pl.DataFrame:
    n = codes.size
    sums, counts = ExactSums(n), np.zeros(n, np.int64)
    for block in _blocks(tallies, codes):
        sums.add(block.own, block.given)
        counts += np.bincount(block.given, minlength=n)
    mean = sums.rounded() / np.maximum(counts, 1)
    limit = np.maximum(np.where(counts > 0, mean, _NEVER), _LEAST)
    joint = np.zeros((n, n), np.int64)
    for block in _blocks(tallies, codes):
        guess, sure = sure_labels(block.chance, limit)
        np.add.at(joint, (block.given[sure], guess[sure]), 1)
    cuts = _cuts(tallies, key, codes, to_prune(calibrated(joint, counts)), counts)
    frames = [_rows(block, limit, cuts) for block in _blocks(tallies, codes)]
    if not frames:
        return empty
    suspects = pl.concat(frames)
    value = tallies.labels.frame["label_value"]
    frame = suspects.with_columns(
        label_key=pl.lit(tallies.labels.key_names[key]),
        label_value=value.gather(codes[suspects["given"].to_numpy()]),
        suggested=value.gather(codes[suspects["other"].to_numpy()]),
        reason=pl.lit(OTHER_LABEL),
    )
    return in_schema(frame, empty.schema)


def _blocks(tallies: Tallies, codes: Array) -> Iterator[_Judged]:
    """Datums of a key that have a label and scores, a part of the run after the other."""
    place = np.full(len(tallies.labels), -1, np.int64)
    place[codes] = np.arange(codes.size)
    for part in [tallies] if tallies.parts is None else tallies.parts.frame_data():
        units, scored = part.units, part.scored
        assert scored is not None
        chance = np.zeros((len(units), codes.size))
        seen = np.zeros(len(units), np.bool_)
        unit = slice(None) if scored.unit_codes is None else scored.unit_codes
        if scored.label_codes is None:
            chance[unit, place[scored.only]] = scored.score
            chance[unit, 1 - place[scored.only]] = 1 - scored.score
            seen[unit] = True
        else:
            column = place[scored.label_codes]
            rows = np.flatnonzero(column >= 0)
            of = rows if scored.unit_codes is None else scored.unit_codes[rows]
            chance[of, column[rows]] = scored.score[rows]
            seen[of] = True
        judged = np.flatnonzero(seen & (units.truth >= 0) & (place[units.truth] >= 0))
        ids = part.datums.id.gather(units.datum_of(judged)).alias("datum_id")
        yield _Judged(ids, place[units.truth[judged]], chance[judged])


def sure_labels(chance: Array, limit: Array) -> tuple[Array, Array]:
    """Return the confident label of each datum, int64 [m], and a mask of those with one.

    Args:
        chance: float64 [m, labels], probabilities.
        limit: float64 [labels], threshold of confidence per label.
    """
    reached = chance >= limit - _CLOSE
    several = reached.sum(axis=1)
    return np.where(several > 1, chance.argmax(axis=1), reached.argmax(axis=1)), several > 0


def calibrated(joint: Array, counts: Array) -> Array:
    """Calibrate the confident joint to integers over all datums, int64 [given, sure].

    Args:
        joint: int64 [given, sure], datums with a confident label.
        counts: int64 [given], all datums.
    """
    filled = joint.T.astype(np.float64, order="C")
    np.fill_diagonal(filled, np.maximum(filled.diagonal(), 1))
    # Turned, so that the sum adds in cleanlab's order: halves are rounded by its last bit.
    of_all = filled / np.maximum(filled.sum(axis=0), 1e-100) * counts
    of_all = of_all / max(of_all.sum(), 1e-100) * counts.sum()
    return np.stack([_whole(row) for row in of_all.T])


def _whole(row: Array) -> Array:
    """Numbers rounded so that their sum is the rounded sum."""
    out: Array = row.round()
    total = row.sum().round()
    while abs(missing := total - out.sum()) > _CLOSE:
        order = np.argsort(row - out)  # of equal ones whichever NumPy's sort, and cleanlab, takes
        changed = (order[::-1] if missing > 0 else order)[: int(abs(missing))]
        out[changed] += np.sign(missing)
    return out.astype(np.int64)


def to_prune(joint: Array) -> Array:
    """Return how many datums of each given label to keep and to assign to others, [other, given].

    Args:
        joint: int64 [given, sure], calibrated.
    """
    counts = joint.T.astype(np.float64)
    diagonal = np.maximum(counts.diagonal(), 1)
    others = np.maximum(np.count_nonzero(counts, axis=0) - 1, 1)
    counts = np.maximum(counts - (diagonal - counts.diagonal()) / others, 0)
    np.fill_diagonal(counts, diagonal)
    return counts.astype(np.int64)


class _Cuts(NamedTuple):
    """Thresholds for datums of each given label to be picked.

    Attributes:
        own: float64 [given], highest probability of the given label; -inf for none.
        margin: (given, other) -> minimum by which the other is more probable.
    """

    own: Array
    margin: dict[tuple[int, int], float]


def _cuts(tallies: Tallies, key: int, codes: Array, retained: Array, counts: Array) -> _Cuts:
    n = codes.size
    pairs = [
        (given, other)
        for other, given in np.argwhere(retained > 0).tolist()
        if given != other and counts[given] > 1
    ]
    pruned = {given: int(counts[given] - retained[given, given]) for given in range(n)}
    lowest: dict[int, Array] = {g: np.zeros(0) for g, m in pruned.items() if m and counts[g] > 1}
    highest = {pair: np.zeros(0) for pair in pairs}
    for block in _blocks(tallies, codes):
        order = np.argsort(block.given, kind="stable")
        start = np.searchsorted(block.given[order], np.arange(n + 1))
        own = block.own
        for given in lowest:
            rows = order[start[given] : start[given + 1]]
            lowest[given] = np.sort(np.r_[lowest[given], own[rows]])[: pruned[given]]
        for given, other in pairs:
            rows = order[start[given] : start[given + 1]]
            candidates = np.r_[highest[given, other], block.chance[rows, other] - own[rows]]
            highest[given, other] = np.sort(candidates)[::-1][: retained[other, given]]
    limit = np.full(n, -np.inf)
    for given, values in lowest.items():
        limit[given] = values[-1]
    return _Cuts(limit, {pair: float(values[-1]) for pair, values in highest.items()})


def _rows(block: _Judged, limit: Array, cuts: _Cuts) -> pl.DataFrame:
    """Datums whose label is not the most probable one, and how each way takes them."""
    own, m = block.own, np.arange(block.given.size)
    raised = block.chance.copy()
    raised[m, block.given] += _CLOSE
    rows = np.flatnonzero(raised.argmax(axis=1) != block.given)
    chance, given, own = block.chance[rows], block.given[rows], own[rows]
    others = chance.copy()
    others[np.arange(rows.size), given] = -np.inf
    other = others.argmax(axis=1)
    guess, sure = sure_labels(chance, limit)
    by_class = own <= cuts.own[given]
    by_noise = np.zeros(rows.size, np.bool_)
    for (label, rival), least in cuts.margin.items():
        by_noise |= (given == label) & (chance[:, rival] - own >= least)
    masks = by_class, by_noise, by_class & by_noise, sure & (guess != given), own > -np.inf
    names = [
        pl.when(pl.Series(mask)).then(pl.lit(name)) for name, mask in zip(WAYS, masks, strict=True)
    ]
    margin = (own - chance[np.arange(rows.size), other] + 1) / 2
    logs = np.log(np.where(chance > 0, chance, 1))
    weighed = -(chance * logs).sum(axis=1) / np.log(chance.shape[1]) / np.maximum(own, _CLOSE)
    return pl.DataFrame({"datum_id": block.datum_id.gather(rows)}).with_columns(
        given=given,
        other=other,
        score=chance[np.arange(rows.size), other],
        given_score=own,
        normalized_margin=margin,
        confidence_weighted_entropy=np.log(weighed + 1) / np.maximum(weighed, _CLOSE),
        suspicion=1 - margin,
        found_by=pl.concat_str(names, separator=" ", ignore_nulls=True),
    )


# Rows of label sequences: precision, recall and F of every row by itself, as Phoenix has them.


_CELLS = 4_000_000  # counts of (row, label) in memory at once


def per_datum_frame(tallies: Tallies, settings: Settings, each_view: EachView) -> pl.DataFrame:
    """Build the per-datum frame: one row per sequence and metric, of the requested average.

    Rows whose labels are 0 and 1 are scored for label 1, unless an average or positive label was
    given (Phoenix).
    """
    if tallies.parts is not None:  # all rows of a datum are in one part
        every = [per_datum_frame(part, settings, each_view) for part in tallies.parts.frame_data()]
        in_turn = pl.col("metric").cast(pl.Enum(_names(settings)))
        return pl.concat(every).sort(in_turn, "datum_id")
    blank = pl.DataFrame(schema={"value": pl.Float64})
    n, n_labels = len(tallies.datums), max(1, len(tallies.labels))
    schema = frame_schema("per_datum", datum=tallies.datums.id_dtype)
    each = max(1, _CELLS // n_labels)
    parts: dict[str, list[pl.DataFrame]] = {name: [] for name in _names(settings)}
    for first in range(0, n, each):
        last = min(first + each, n)
        code = np.arange(n, dtype=np.int32)
        group = np.where((code >= first) & (code < last), code - first, -1).astype(np.int32)
        of_rows = view(tallies, settings, group, last - first)
        for name, frames in parts.items():
            value = _values(of_rows, settings, name)
            frames.append(
                pl.DataFrame(
                    {
                        "datum_id": tallies.datums.id[first:last],
                        "metric": pl.Series([name]).new_from_index(0, last - first),
                        "value": pl.Series(value, nan_to_null=True),
                    }
                )
            )
    frame = pl.concat([part for frames in parts.values() for part in frames]) if n else blank
    undefined = pl.col("value").is_null()
    status = pl.when(undefined).then(pl.lit("undefined")).otherwise(pl.lit("scored"))
    return in_schema(frame.with_columns(status=status), schema)


def _names(settings: Settings) -> tuple[str, str, str]:
    """The metrics of a row, in their order."""
    return "Precision", "Recall", f"F{in_name(settings.beta)}"


def _values(of_rows: ScoredView, settings: Settings, name: str) -> Array:
    """Return the metric of every row, float64 [rows]; NaN if undefined."""
    compute = get("classification", name).compute
    assert compute is not None
    cells = {
        cell.columns.get("average"): np.asarray(cell.columns["value"])
        for cell in compute(of_rows, settings)
    }
    averaged, labelled = cells[settings.average], cells[None]
    if not averaged.size:
        return np.full(of_rows.n_groups, np.nan)
    values = of_rows.labels.frame["label_value"].to_list()
    if settings.positive_label is not None:
        code = find_label(of_rows.labels.frame["label_value"], settings.positive_label)
        return np.asarray(labelled[:, code])
    bits = [code for code, value in enumerate(values) if value in (0, 1)]
    if automatic_positive([values[code] for code in bits], None, settings.average) is None:
        return np.asarray(averaged[:, 0])
    used = in_use(of_rows)
    binary = (used.sum(axis=1) == 2) & used[:, bits].all(axis=1)
    return np.where(binary, labelled[:, bits[-1]], averaged[:, 0])


def examples_frame(tallies: Tallies, settings: Settings, each_view: EachView) -> pl.DataFrame:
    """Examples of the detailed curve, then of the confusion matrix; of whichever was asked for."""
    parts = []
    if tallies.details:
        parts += detailed_frames(tallies, settings, each_view)
    if tallies.confusion_examples:
        parts += confusion_examples(tallies, settings, each_view)
    if not parts:
        return empty_frame("examples", label=tallies.labels.dtype, datum=tallies.datums.id_dtype)
    return pl.concat(parts)


_OUTCOMES = pl.Enum(["tp", "fp_misclassified", "fp_hallucination", "fn_misclassified", "fn_missed"])


def outcomes_frame(tallies: Tallies, settings: Settings, each_view: EachView) -> pl.DataFrame:
    """Build the outcomes frame: one row per hard prediction, and per truth without one."""
    labels, datums = tallies.labels, tallies.datums
    schema = frame_schema("outcomes", label=labels.dtype, datum=datums.id_dtype)
    if tallies.units.hard is None:
        return empty_frame("outcomes", label=labels.dtype, datum=datums.id_dtype)
    if tallies.parts is None:
        rows = _outcomes_of(tallies)
    else:  # all rows of a datum are in one part; short until they are in order
        parts = (_outcomes_of(part) for part in tallies.parts.frame_data())
        rows = pl.concat(list(parts)).sort("datum_id", maintain_order=True)
    label = rows["label"]
    columns = {
        "datum_id": rows["datum_id"],
        "label_key": labels.frame["label_key"].gather(label),
        "label_value": labels.frame["label_value"].gather(label),
        "outcome": rows["outcome"].cast(pl.String),
        "score": rows["score"],
    }
    return in_schema(columns, schema)


def _outcomes_of(part: Tallies) -> pl.DataFrame:
    """Outcomes of one tally in the order of its datums: datum_id, label code, outcome, score."""
    units = part.units
    assert units.hard is not None
    hit = (units.truth == units.hard) & (units.hard >= 0)
    score = units.hard_score
    parts = []
    for outcome, mask, code in (
        ("tp", hit, units.hard),
        ("fp_misclassified", ~hit & (units.hard >= 0) & (units.truth >= 0), units.hard),
        ("fp_hallucination", (units.hard >= 0) & (units.truth < 0), units.hard),
        ("fn_misclassified", ~hit & (units.hard >= 0) & (units.truth >= 0), units.truth),
        ("fn_missed", (units.hard < 0) & (units.truth >= 0), units.truth),
    ):
        rows = np.flatnonzero(mask)
        predicted = not outcome.startswith("fn")
        parts.append(
            pl.DataFrame(
                {
                    "datum": units.datum_of(rows),
                    "label": code[rows],
                    "outcome": pl.Series([outcome], dtype=_OUTCOMES).new_from_index(0, rows.size),
                    "score": pl.Series(score[rows], nan_to_null=True)
                    if predicted and score is not None
                    else pl.Series([None], dtype=pl.Float64).new_from_index(0, rows.size),
                },
                schema_overrides={"label": pl.Int32, "datum": pl.Int32},
            )
        )
    ordered = pl.concat(parts).sort("datum", maintain_order=True)
    datum_id = part.datums.id.gather(ordered["datum"]).alias("datum_id")
    return ordered.select(datum_id, "label", "outcome", "score")


MAKERS: dict[str, Callable[[Tallies, Settings, EachView], pl.DataFrame]] = {
    "confusion": confusion_frame,
    "examples": examples_frame,
    "label_errors": label_errors_frame,
    "outcomes": outcomes_frame,
    "per_datum": per_datum_frame,
}
"""Frame name -> function that builds it."""


def own_frames(
    frame: str,
    tallies: Tallies,
    settings: Settings,
    each_view: EachView,
    *,
    cuts: Mapping[str, set[int | None]],
) -> pl.DataFrame:
    """See :class:`..task.OwnFrames`: one of :data:`MAKERS`."""
    make = MAKERS.get(frame)
    if make is None:
        return empty_frame(frame, label=tallies.labels.dtype, datum=tallies.datums.id_dtype)
    return make(tallies, settings, each_view)
