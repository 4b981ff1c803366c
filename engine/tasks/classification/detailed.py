"""The detailed precision-recall curve: every outcome by kind, with examples, per threshold."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ...kernels.detailed_cells import detailed_cells
from ...schemas.arrays import Array
from ...schemas.results import frame_schema
from ...tally.scored_view import ScoredView
from .settings import Settings
from .tallies import Tallies
from .views import EachView, whole_datums

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
    laid = _LaidOut(tallies, settings) if tallies.parts is None else None
    return each_view(partial(_of_view, tallies, settings, laid))


class _LaidOut:
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
        self.rows = _starts(label, n_labels), unit[by_label], level
        truth_unit, truth_label = units.truth_rows()
        shown = scored.labels[truth_label]
        truth_unit, truth_label = truth_unit[shown], truth_label[shown]
        order = np.argsort(truth_label, kind="stable")
        self.truths = _starts(truth_label, n_labels), truth_unit[order]
        self.judged = units.n_truths > 0
        known = self.judged.copy()
        known[unit] = True
        self.places = _places(tallies, known, every_datum=settings.rules.curve_every_datum)


def _starts(code: Array, n: int) -> Array:
    out = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(code, minlength=n), out=out[1:])
    return out


def _places(tallies: Tallies, known: Array, *, every_datum: bool) -> tuple[Array, Array, Array]:
    """Datums that have something under each key, and their units; or all that have something."""
    units, n_keys = tallies.units, len(tallies.labels.key_names)
    order = np.argsort(units.datum_of(), kind="stable")
    order = order[known[order]]
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
    start = np.r_[0, np.cumsum([part.size for part in codes])]
    return start, np.concatenate(datums), np.concatenate(codes)


class _Found(NamedTuple):
    """Cells of some datums.

    Attributes:
        present: see :func:`detailed_cells`.
        counts: see :func:`detailed_cells`.
        shown: see :func:`detailed_cells`; indices into ``datum_id``.
        datum_id: ids, ascending.
        dataset: dataset of each; None without datasets.
    """

    present: Array
    counts: Array
    shown: Array
    datum_id: pl.Series
    dataset: pl.Series | None


def _found(
    part: Tallies, settings: Settings, laid: _LaidOut, view: ScoredView, *, alone: bool
) -> _Found:
    """Compute the cells of the datums of one tally; ``alone``: it is the only tally."""
    cells = detailed_cells(
        laid.places,
        part.labels.key,
        view.group,
        laid.rows,
        laid.truths,
        laid.judged,
        len(settings.score_thresholds),
        view.n_groups,
        settings.pr_curve_max_examples,
        absent_too=not alone,
    )
    return _Found(*cells, part.datums.id, part.datums.dataset)


def _together(one: _Found, other: _Found) -> _Found:
    """Cells of two disjoint sets of datums: counts add up, and the first of all are shown."""
    most = one.shown.shape[-1]
    sizes = len(one.datum_id), len(other.datum_id)
    ids = pl.concat([one.datum_id, other.datum_id])
    order = ids.arg_sort().to_numpy()
    rank = np.full(sum(sizes) + 1, sum(sizes))  # of places in both, one after the other; last none
    rank[order] = np.arange(order.size)
    places = np.concatenate(
        [one.shown, np.where(other.shown < 0, -1, other.shown + sizes[0])], axis=-1, dtype=np.int64
    )
    first = np.sort(rank[places], axis=-1)[..., :most]
    used = np.unique(first[first < order.size])  # others are shown nowhere, and let go
    shown = np.where(first < order.size, np.searchsorted(used, first), -1)
    kept = order[used]
    dataset = None
    if one.dataset is not None and other.dataset is not None:
        dataset = pl.concat([one.dataset, other.dataset]).gather(kept)
    return _Found(
        one.present | other.present, one.counts + other.counts, shown, ids.gather(kept), dataset
    )


def _of_view(
    tallies: Tallies,
    settings: Settings,
    laid: _LaidOut | None,
    column: str | None,
    names: list[str],
    view: ScoredView,
) -> pl.DataFrame:
    """Rows of one view: by group, label, threshold and kind, one per example or one without."""
    labels = tallies.labels
    thresholds = np.array(settings.score_thresholds)
    found: _Found | None = None
    for part, few in whole_datums(tallies, settings, view):
        own = laid or _LaidOut(part, settings)
        more = _found(part, settings, own, few, alone=laid is not None)
        found = more if found is None else _together(found, more)
    assert found is not None
    present, counts, shown, datum_id, dataset = found
    group, label = np.nonzero(present)
    counts = counts[group, label].swapaxes(1, 2)  # [curve, threshold, kind]
    shown = shown[group, label].swapaxes(1, 2)
    n_shown = np.minimum(counts, shown.shape[-1])
    curve, at, cell = (
        np.repeat(index.ravel(), np.maximum(n_shown, 1).ravel())
        for index in np.indices(counts.shape)
    )
    datum = np.full(curve.size, -1, np.int64)
    some = np.repeat(n_shown.ravel() > 0, np.maximum(n_shown, 1).ravel())
    datum[some] = shown[shown >= 0]
    index = pl.Series(np.maximum(datum, 0)).set(pl.Series(~some), None)
    outcome, observation = (np.array(words)[cell] for words in zip(*CELLS, strict=True))
    made = {
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
    return as_examples(tallies, made)


def as_examples(tallies: Tallies, columns: dict[str, Any]) -> pl.DataFrame:
    """Return columns in the schema of the ``examples`` frame; missing ones are null.

    Args:
        tallies: give the dtypes of labels and ids.
        columns: arrays and series by name.
    """
    schema = frame_schema("examples", label=tallies.labels.dtype, datum=tallies.datums.id_dtype)
    frame = pl.DataFrame({name: column for name, column in columns.items() if column is not None})
    missing = [pl.lit(None).alias(name) for name in schema if name not in frame.columns]
    return frame.with_columns(missing).select(list(schema)).cast(schema)  # type: ignore[arg-type]
