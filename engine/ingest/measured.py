"""Numbers with fractions: no labels, but what a task measures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from evalengine.schemas.contract import TABLE
from evalengine.schemas.errors import InputError
from evalengine.schemas.options import Options
from evalengine.schemas.tables import contracts, task_names
from evalengine.schemas.wording import option

from .problems import listing


def fractional(values: pl.Series) -> bool:
    """Whether values are floats or decimals, or lists of them, and one finite and not whole."""
    if values.dtype.is_nested() and isinstance(values.dtype, (pl.List, pl.Array)):
        return fractional(values.explode(empty_as_null=False))
    if values.dtype.is_decimal():
        values = values.cast(pl.Float64)
    return values.dtype.is_float() and (values.is_finite() & (values != values.floor())).any()


_COMMAS = r"^\s*[-+]?[\d.]*(,\d+)?\s*$"


def refuse_commas(texts: Sequence[pl.Series], task: str) -> None:
    """Refuse columns of texts that are numbers with decimal commas, which would be labels.

    Args:
        texts: the first values of columns of text that a task measures.
        task: which.

    Raises:
        InputError: all of them are such numbers.
    """
    for one in texts:
        known = one.drop_nulls()
        if not known.str.contains(_COMMAS).all() or not known.str.contains(",").any():
            return
    first = texts[0].drop_nulls()
    shown = first.filter(first.str.contains(",")).head(3).to_list()
    raise InputError(
        f"columns {listing([one.name for one in texts])}: texts that look like numbers with decimal"
        f" commas, first {listing(shown)}. Write decimal points, or read the file with"
        " polars.read_csv(..., decimal_comma=True) and give the table; if they are labels, say"
        f" which task it is instead of {task}: {option('task')}."
    )


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
