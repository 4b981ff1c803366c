"""Numbers with fractions: no labels, but what a task measures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from evalengine import metrics
from evalengine.schemas.contract import TABLE
from evalengine.schemas.errors import InputError
from evalengine.schemas.options import Options
from evalengine.schemas.tables import contracts, task_names
from evalengine.schemas.wording import option

from .problems import Note, count_of, listing


def fractional(values: pl.Series) -> bool:
    """Whether values are floats or decimals, or lists of them, and one finite and not whole."""
    if values.dtype.is_nested() and isinstance(values.dtype, (pl.List, pl.Array)):
        return fractional(values.explode(empty_as_null=False))
    if values.dtype.is_decimal():
        values = values.cast(pl.Float64)
    return values.dtype.is_float() and (values.is_finite() & (values != values.floor())).any()


def inferred_note(sides: Mapping[str, Any]) -> list[Note]:
    """That numbers with fractions were taken for what a task measures, where they may be labels.

    Args:
        sides: role to its contract and what was recognised in it.
    """
    own: list[str] = []
    others = set(task_names())
    for side in sides.values():
        names = {to: mine for mine, to in side.naming.recognised.items()}
        for name in side.table.measured:
            if name not in side.naming.exprs:
                return []  # distributions alone are of no other task
            own.append(names.get(name, name))
            others = {one for one in others if _knows(one, own[-1].casefold())}
        others -= {side.table.task} if side.table.measured else set()
    if not own or not others:
        return []
    ways = " or ".join(option("task", one) for one in sorted(others))
    tasks = dict.fromkeys(side.table.task for side in sides.values() if side.table.measured)
    said = (
        f"task: {listing(own)} are numbers with fractions, taken for {', '.join(tasks)}. If they"
        f" are classes or scores, write {ways}."
    )
    return [Note("task_inferred", said)]


def _knows(task: str, name: str, role: str = TABLE) -> bool:
    """Whether a task knows a name for a column of labels that it cannot lack."""
    table = contracts(task).get(role)
    if table is None or (role == TABLE and not table.wide):
        return False
    needed = (one for one in table.columns if one in table.required or one.name in table.any_of)
    return any(name in (one.name, *one.aliases) for one in needed)


def known_alone(task: str, role: str, names: Iterable[str]) -> bool:
    """Whether a table's own names are words of one task alone, whatever their values are."""
    others = [one for one in task_names() if one != task]
    return not any(
        _knows(one, name.casefold(), at) for one in others for name in names for at in (role, TABLE)
    )


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
        options: ``task`` takes whole numbers for what they are measured as, too; it, or metrics
            that no other task has, say so of rows of several numbers.
    """
    for task in task_names():
        table = contracts(task).get(TABLE)
        if table is None or not table.measured or options.task not in (None, task):
            continue
        if options.task == task:
            fits = numbers(ours) and numbers(theirs)
        else:
            fits = fractional(ours) and fractional(theirs)
            if ours.dtype.is_nested():
                fits = fits and bool(options.metrics) and _alone(task, options)
        return table.values[0] if fits else None
    return None


def _alone(task: str, options: Options) -> bool:
    """Whether a task has all metrics asked for, and no other has."""
    able = [
        one for one in task_names() if all(metrics.has(one, name) for name in options.metrics or ())
    ]
    return able == [task]


def numbers(values: pl.Series) -> bool:
    """Whether values are numbers, or rows of several."""
    if not isinstance(values.dtype, (pl.Array, pl.List)):
        return values.dtype.is_numeric()
    inner = values.dtype.inner
    return isinstance(inner, pl.DataType) and inner.is_numeric()


def several_targets(
    ours: pl.Series, theirs: pl.Series, names: pl.Series | None, pair: tuple[str, str]
) -> pl.DataFrame:
    """Rows of several numbers as a table with a row a datum and target.

    Args:
        ours: what was predicted, lists or arrays.
        theirs: what is true, likewise.
        names: of the targets; their numbers where nobody named them.
        pair: the columns of both.

    Raises:
        InputError: the two are not of one shape, or names are not as many.
    """
    sides = [_matrix(one) for one in (ours, theirs)]
    shapes = [side.shape for side in sides]
    if shapes[0] != shapes[1]:
        raise InputError(
            f"the predictions have the shape {shapes[0]}, the ground truths {shapes[1]}. Give both"
            " a row a datum and a column a target."
        )
    rows, wide = shapes[0]
    if names is not None and len(names) != wide:
        raise InputError(
            f"the arrays have {count_of(wide, 'target')} a datum, and labels names {len(names):,}."
            " Name each column's target, in their order."
        )
    digits = len(str(wide - 1))
    keys = [f"{i:0{digits}d}" for i in range(wide)] if names is None else names.to_list()
    key = pl.Series("label_key", keys, dtype=pl.String)
    return pl.DataFrame(
        {
            "datum_id": np.repeat(np.arange(rows), wide),
            "label_key": key.gather(np.tile(np.arange(wide), rows)),
            pair[0]: sides[0].ravel(),
            pair[1]: sides[1].ravel(),
        }
    )


def _matrix(values: pl.Series) -> np.ndarray[Any, Any]:
    """Rows of as many numbers each as an array of two dimensions; of single ones a column."""
    if not values.dtype.is_nested():
        return values.cast(pl.Float64).to_numpy().reshape(-1, 1)
    lengths = values.list.len() if isinstance(values.dtype, pl.List) else values.arr.len()
    if lengths.null_count() or lengths.n_unique() > 1:
        raise InputError("rows have unlike many numbers: give each datum a number a target.")
    flat = values.explode(empty_as_null=False).cast(pl.Float64).to_numpy()
    return flat.reshape(len(values), -1)
