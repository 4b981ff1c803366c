"""Binary tables: which of the two labels the one score column speaks of."""

from __future__ import annotations

from typing import Any

import polars as pl

from ...ingest.measured import or_measured
from ...schemas.arrays import Array
from ...schemas.errors import InputError
from ...schemas.wording import option
from ...tally.datums import Labels


def positive_code(
    labels: Labels, truth: Array, hard: Array | None, positive_label: Any
) -> int | None:
    """Return the code of the label that the score column refers to.

    Args:
        truth: int32 [n], true labels.
        hard: int32 [n], predicted labels, or None.
        positive_label: label given by the user, or None.

    Returns:
        the code; None if there are more than two labels and a column of predicted labels, to which
        the scores then belong.

    Raises:
        InputError: the positive label is unknown or missing.
    """
    values = labels.frame["label_value"]
    if positive_label is not None:
        return find_label(values, positive_label)
    if len(labels) > 2:
        if hard is not None:
            return None
        measured = or_measured(["actual"]) if values.dtype.is_integer() else ""
        raise InputError(
            f"table: {len(labels)} labels ({_some(values)}) and one score column: of which label"
            " is it? Add a column 'predicted' if it is the predicted label's, give"
            f" {option('score_columns')} with one column a label, or"
            f" {option('positive_label')} to score one label against the rest.{measured}"
        )
    # 1 and 2 are class numbers: scikit-learn scores the greater, but reports F1 of label 1.
    if values.dtype == pl.String or (values.dtype.is_integer() and 1 in values and max(values) > 1):
        if len(labels) == 2 or hard is None:
            raise InputError(
                f"table: the labels are {_some(values)}: which of them is the score the score of?"
                f" Write {option('positive_label')}, for instance"
                f" {option('positive_label', values[-1] if len(values) else 'yes')}."
            )
        return None
    found = values.index_of(True if values.dtype == pl.Boolean else 1)
    if found is None:
        raise InputError(
            f"table: no label is 1 (labels: {_some(values)}), so nothing says which one the score"
            f" is of. Write {option('positive_label')}."
        )
    return int(found)


def both_classes(actual: pl.Series, predicted: pl.Series | None) -> pl.Series | None:
    """Return the labels 0 and 1 if a table has no others, since one of them may not occur."""
    if actual.dtype == pl.Boolean:
        return pl.Series("label_value", [False, True])
    if not actual.dtype.is_integer():
        return None
    columns = [actual] if predicted is None else [actual, predicted]
    for column in columns:
        if len(column) and not (column.min() >= 0 and column.max() <= 1):  # type: ignore[operator]
            return None
    return pl.Series("label_value", [0, 1]).cast(actual.dtype)


def find_label(values: pl.Series, wanted: Any) -> int:
    """Return the code of a label by value, whatever its type on the command line.

    Raises:
        InputError: no such label; the message lists the labels.
    """
    listed = values.to_list()
    for code, value in enumerate(listed):
        if type(value) is type(wanted) and value == wanted:
            return code
    by_text = {str(value).lower(): code for code, value in enumerate(listed)}
    found = by_text.get(str(wanted).lower())
    if found is None:
        raise InputError(
            f"{option('positive_label', wanted)}: no such label; there are {_some(values)}."
        )
    return found


def _some(values: pl.Series) -> str:
    from ...ingest.problems import listing

    return listing(values.head(5).to_list(), len(values))
