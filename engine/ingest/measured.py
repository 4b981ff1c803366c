"""Numbers with fractions: no labels, but what a task measures."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from evalengine.schemas.contract import TABLE
from evalengine.schemas.options import Options
from evalengine.schemas.tables import contracts, task_names
from evalengine.schemas.wording import option


def fractional(values: pl.Series) -> bool:
    """Whether values are floats or decimals, and one of them finite and no whole number."""
    if values.dtype.is_decimal():
        values = values.cast(pl.Float64)
    return values.dtype.is_float() and (values.is_finite() & (values != values.floor())).any()


def or_measured(names: Iterable[str]) -> str:
    """What to write where columns taken for labels hold numbers that a task measures.

    Args:
        names: own names of the columns; nothing is said where none is a name of such numbers.
    """
    tasks: dict[str, str] = {}
    for task in task_names():
        for table in contracts(task).values():
            columns = (one for one in table.columns if one.name in table.measured)
            for known in (known for one in columns for known in (one.name, *one.aliases)):
                tasks.setdefault(known, task)
    found = {tasks[name.casefold()] for name in names if name.casefold() in tasks}
    ways = " or ".join(option("task", task) for task in sorted(found))
    return f" If they are measured numbers, write {ways}." if ways else ""


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
