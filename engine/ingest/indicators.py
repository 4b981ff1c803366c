"""Arrays of 0 and 1 with a row a datum and a column a class, as scikit-learn has several labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from evalengine import metrics
from evalengine.schemas.contract import GROUND_TRUTHS, PREDICTIONS, TABLE
from evalengine.schemas.errors import InputError
from evalengine.schemas.options import Options
from evalengine.schemas.tables import contracts, task_names
from evalengine.schemas.wording import option

from ..schemas.arrays import Array
from .sources.objects import open_label_maps
from .sources.source import Source

_NARROW = 32
"""Columns below which no picture is thought of."""
_TALL = 4
"""Rows a column above which none is."""


def indicator(series: pl.Series) -> Array | None:
    """Convert rows of 0 and 1 to bool [n, classes]; None for other values or unequal rows."""
    if not isinstance(series.dtype, (pl.Array, pl.List)) or not len(series):
        return None
    inner = series.dtype.inner
    lengths = series.arr.len() if isinstance(series.dtype, pl.Array) else series.list.len()
    if isinstance(inner, (pl.Array, pl.List)) or lengths.null_count() or lengths.n_unique() > 1:
        return None
    flat = series.explode(empty_as_null=False, keep_nulls=False)
    if not (flat.dtype.is_numeric() or flat.dtype == pl.Boolean) or len(flat) < len(series):
        return None
    values = flat.to_numpy().reshape(len(series), -1)
    return values != 0 if bool(((values == 0) | (values == 1)).all()) else None


def may_be_labels(options: Options) -> bool:
    """Return whether rows of 0 and 1 may be labels, as far as the options allow."""
    able = [task for task in task_names() if (one := contracts(task).get(TABLE)) and one.wide]
    if options.task is not None:
        return options.task in able
    named = options.metrics or ()
    return any(all(metrics.has(task, name) for name in named) for task in able)


def several(
    ours: Array, theirs: Array, given: tuple[Any, Any], classes: pl.Series | None, options: Options
) -> dict[str, Source]:
    """Convert both sides to lists of labels per datum; to pictures if they may be some.

    Args:
        ours: bool [n, classes].
        theirs: bool [n, classes].
        classes: names of the columns; by default their numbers.
        options: ``multilabel`` marks them as labels.

    Raises:
        InputError: their meaning is ambiguous, or their shapes differ.
    """
    rows, wide = theirs.shape
    said = f"arrays of 0 and 1 of shape ({rows:,}, {wide:,})"
    if not options.multilabel:
        if options.task is None and wide >= _NARROW and rows <= _TALL * wide:
            note = (
                f"the {said} are read as one label map of {rows:,} x {wide:,} pixels each; with"
                f" {option('multilabel', True)} they are the labels of {rows:,} datums."
            )
            sides = dict(
                zip((PREDICTIONS, GROUND_TRUTHS), map(open_label_maps, given), strict=True)
            )
            sides[GROUND_TRUTHS].notes = (("arrays_of_two_kinds", note, None),)
            return sides
        raise InputError(
            f"{said} may be the labels of {rows:,} datums, a column a class, or a picture. Say"
            f" which: write {option('multilabel', True)}, or {option('task', 'segmentation')}.",
            code="task_ambiguous",
            count=rows,
        )
    if ours.shape != theirs.shape:
        raise InputError(
            f"the predictions are an array of shape {ours.shape}, the ground truths {said}. Give"
            " both a row for every datum and a column for every class."
        )
    names = _names(classes, wide)
    table = pl.DataFrame({"actual": _lists(theirs, names), "predicted": _lists(ours, names)})
    return {TABLE: Source(table.lazy(), f"{said}, a row a datum")}


def long_truths(theirs: Array, classes: pl.Series | None) -> pl.DataFrame:
    """Return one row per true label of a datum.

    Args:
        theirs: bool [n, classes].
        classes: names of the columns, or None.
    """
    datum, place = np.nonzero(theirs)
    names = _names(classes, theirs.shape[1])
    return pl.DataFrame({"datum_id": datum, "label_value": names.gather(place)})


def _names(classes: pl.Series | None, wide: int) -> pl.Series:
    if classes is None:
        return pl.Series(np.arange(wide))
    if len(classes) != wide:
        raise InputError(
            f"the arrays have {wide:,} columns, and labels names {len(classes):,} classes. Name"
            " each column's class, in their order."
        )
    return classes


def _lists(flags: Array, names: pl.Series) -> pl.Series:
    """Return the names of the set columns of each row."""
    _, place = np.nonzero(flags)
    ends = np.cumsum(flags.sum(axis=1))
    taken = names.gather(place).to_list()
    starts = np.concatenate([[0], ends[:-1]])
    lists = [taken[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
    return pl.Series(lists, dtype=pl.List(names.dtype))
