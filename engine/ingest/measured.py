"""Numbers with fractions: no labels, but what a task measures."""

from __future__ import annotations

import polars as pl

from evalengine.schemas.contract import TABLE
from evalengine.schemas.options import Options
from evalengine.schemas.tables import contracts, task_names


def fractional(values: pl.Series) -> bool:
    """Whether values are floats, and one of them finite and no whole number."""
    return values.dtype.is_float() and (values.is_finite() & (values != values.floor())).any()


def measured_pair(ours: pl.Series, theirs: pl.Series, options: Options) -> tuple[str, str] | None:
    """The columns of two series of numbers, of a task that measures them; None for other values.

    Args:
        ours: what was predicted.
        theirs: what is true.
        options: ``task`` takes whole numbers for what they are measured as, too.
    """
    for task in task_names():
        table = contracts(task).get(TABLE)
        if table is None or not table.measured or options.task not in (None, task):
            continue
        if options.task == task:
            fits = ours.dtype.is_numeric() and theirs.dtype.is_numeric()
        else:
            fits = fractional(ours) and fractional(theirs)
        return table.values[0] if fits else None
    return None
