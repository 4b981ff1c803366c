"""Both sides of a call as a table: a label a row, or an indicator matrix of several."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from ...schemas.arrays import Array
from ...schemas.errors import InputError
from ...scorecard.card import Scorecard
from ..arrays import alike, classify, column, weights


class Sides:
    """Table of both sides of a call.

    Attributes:
        table: actual, predicted, weight (if there are weights).
        kind: original type of the labels: bool, float, int or str.
        whole: True if counts are integers: no weights, or only integer weights.
        several: whether a row may have several labels.
    """

    several = False

    def __init__(
        self, y_true: Any, y_pred: Any, sample_weight: Any = None, names: str = "y_true y_pred"
    ) -> None:
        first, second = names.split()
        truth, predicted = column(first, y_true), column(second, y_pred)
        alike({first: truth.values, second: predicted.values})
        kinds = {truth.kind, predicted.kind}
        self.kind = kinds.pop() if len(kinds) == 1 else float if float in kinds else int
        of_row = weights(sample_weight, len(truth.values))
        self.table = pl.DataFrame({"actual": truth.values, "predicted": predicted.values, **of_row})
        self.whole = sample_weight is None or np.asarray(sample_weight).dtype.kind in "iub"

    @cached_property
    def present(self) -> list[Any]:
        """Labels of either side, in their order."""
        both = (self.table["actual"].unique(), self.table["predicted"].unique())
        return pl.concat(both).unique().sort().to_list()

    def subset(self, labels: Any) -> list[Any]:
        """Return the requested labels, or all, in the table's type.

        Raises:
            InputError: none, a duplicate, or another type.
        """
        if labels is None:
            return self.present
        asked = column("labels", labels).values
        alike({"labels": asked})
        if asked.dtype != self.table["actual"].dtype:
            raise InputError(f"labels are {asked.dtype}, y_true {self.table['actual'].dtype}.")
        return _once(asked)

    @cached_property
    def dtype(self) -> type:
        """Dtype of counts: int64 without weights if any prediction is right, as in scikit-learn."""
        hit = (self.table["actual"] == self.table["predicted"]).any()
        return np.int64 if hit and "weight" not in self.table.columns else np.float64

    @cached_property
    def total(self) -> float:
        """Rows, or their weight."""
        if "weight" in self.table.columns:
            return math.fsum(self.table["weight"])
        return float(self.table.height)

    def card(self, metrics: Iterable[str], **options: Any) -> Scorecard:
        return classify(self.table, *metrics, dialect="sklearn", **options)

    def value(self, metric: str, **options: Any) -> float:
        """Return one number of the whole table; NaN if undefined."""
        found = self.card([metric], **options).value(metric)
        return math.nan if found is None else found


class Sets(Sides):
    """Both sides of one call as lists of the columns that are 1; labels are columns, from 0."""

    several = True

    def __init__(self, truth: Array, predicted: Array, sample_weight: Any = None) -> None:
        if truth.shape != predicted.shape:
            raise InputError(f"y_true has the shape {truth.shape}, y_pred {predicted.shape}.")
        self.kind = int
        self._sides = {"actual": truth, "predicted": predicted}
        self._weight = weights(sample_weight, len(truth))
        self.table = pl.DataFrame(
            {name: lists(side) for name, side in self._sides.items()} | self._weight
        )
        self.whole = sample_weight is None or np.asarray(sample_weight).dtype.kind in "iub"

    @cached_property
    def present(self) -> list[Any]:
        return [*range(self._sides["actual"].shape[1])]

    @cached_property
    def dtype(self) -> type:
        """Dtype of counts: int64 without weights."""
        return np.float64 if self._weight else np.int64

    def subset(self, labels: Any) -> list[Any]:
        if labels is None:
            return self.present
        asked = _once(column("labels", labels).values)
        strange = [one for one in asked if one not in self.present]
        if strange:
            raise InputError(
                f"labels {strange[:5]}: y_true has the columns 0 to {len(self.present) - 1}."
            )
        return asked

    def card(self, metrics: Iterable[str], labels: Any = None, **options: Any) -> Scorecard:
        """Score the columns of the requested labels."""
        asked = self.present if labels is None else labels
        table = self.table
        if len(asked) < len(self.present):
            kept = np.isin(self.present, asked)
            table = table.with_columns(
                **{name: lists(side & kept) for name, side in self._sides.items()}
            )
        options = {**options, "labels": asked, "multilabel": True}
        return classify(table, *metrics, dialect="sklearn", **options)


def _once(asked: pl.Series) -> list[Any]:
    if asked.n_unique() != len(asked):
        raise InputError("labels: each may appear once.")
    return asked.to_list()


def sides(y_true: Any, y_pred: Any, sample_weight: Any = None) -> Sides:
    """Build the table of two label columns, or of two indicator matrices.

    Raises:
        InputError: only one of the two is a matrix.
    """
    truth, predicted = indicator("y_true", y_true), indicator("y_pred", y_pred)
    if truth is None and predicted is None:
        return Sides(y_true, y_pred, sample_weight)
    if truth is None or predicted is None:
        raise InputError(
            "one of y_true and y_pred has a column for each label, and the other one label a row."
        )
    return Sets(truth, predicted, sample_weight)


def indicator(name: str, values: Any) -> Array | None:
    """Convert a dense or sparse indicator matrix to bool [N, L]; None for other input.

    Raises:
        InputError: a matrix with values other than 0 and 1, or without rows.
    """
    if hasattr(values, "toarray"):
        values = values.toarray()
    elif isinstance(values, (pl.Series, str, bytes, dict)):
        return None
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths, which `column` tells of
        return None
    if array.ndim != 2 or array.shape[1] < 2:
        return None
    if array.dtype.kind == "O":
        array = np.array(array.tolist())
    if array.dtype.kind not in "biuf" or not ((array == 0) | (array == 1)).all():
        raise InputError(
            f"{name} has the shape {array.shape}: of several labels a row each column says with 0"
            " and 1 whether the row has its label."
        )
    if not len(array):
        raise InputError(f"{name} is empty: at least one row is needed.")
    return array.astype(bool)


def lists(matrix: Array) -> pl.Series:
    """The columns that are true of each row, as lists."""
    import pyarrow as pa

    rows, columns = np.nonzero(matrix)
    starts = np.searchsorted(rows, np.arange(len(matrix) + 1))
    found = pl.from_arrow(pa.LargeListArray.from_arrays(starts, columns))
    assert isinstance(found, pl.Series)
    return found
