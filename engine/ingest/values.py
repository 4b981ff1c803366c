"""Arguments that are lists, arrays and series instead of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np
import polars as pl

from .. import metrics
from ..schemas.arrays import Array
from ..schemas.contract import GROUND_TRUTHS, PREDICTIONS, TABLE, Column, Table
from ..schemas.errors import InputError
from ..schemas.options import Options
from ..schemas.tables import contracts, task_names
from ..schemas.wording import option
from . import dtypes, recognise
from .dtypes import measured_pair, several_targets
from .files import Source
from .label_map_files import open_set
from .problems import Note, listing
from .sources.objects import column_of, name_of, open_label_maps
from .sources.table_formats import of_features
from .sources.tables import open_source

# Arrays of 0 and 1, one row per datum and one column per class, as in scikit-learn.

_NARROW = 32
"""Columns below which no picture is thought of."""
_TALL = 4
"""Rows a column above which none is."""


def indicator(series: pl.Series) -> Array | None:
    """Convert rows of 0 and 1 to bool [n, classes]; None for other values or unequal rows."""
    if not isinstance(series.dtype, (pl.Array, pl.List)):
        return None
    inner = series.dtype.inner
    if not len(series):
        return np.zeros((0, dtypes.width_of(series)), bool) if inner == pl.Int64 else None
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
    ours: Array,
    theirs: Array,
    pictures: tuple[Any, Any],
    classes: pl.Series | None,
    options: Options,
) -> dict[str, Source]:
    """Convert both sides to lists of labels per datum; to pictures if they may be some.

    Args:
        ours: bool [n, classes].
        theirs: bool [n, classes].
        classes: names of the columns; by default their numbers.
    """
    rows, wide = theirs.shape
    text = f"arrays of 0 and 1 of shape ({rows:,}, {wide:,})"
    if not options.multilabel:
        if options.task is None and wide >= _NARROW and rows <= _TALL * wide:
            note = (
                f"the {text} are read as one label map of {rows:,} x {wide:,} pixels each; with"
                f" {option('multilabel', True)} they are the labels of {rows:,} datums."
            )
            sides = dict(
                zip((PREDICTIONS, GROUND_TRUTHS), map(open_label_maps, pictures), strict=True)
            )
            sides[GROUND_TRUTHS].notes = (Note("arrays_of_two_kinds", note),)
            return sides
        raise InputError(
            f"{text} may be the labels of {rows:,} datums, one column per class, or an image. To "
            f"choose, write {option('multilabel', True)}, or {option('task', 'segmentation')}.",
            code="task_ambiguous",
            count=rows,
        )
    if ours.shape != theirs.shape:
        raise InputError(
            f"the predictions are an array of shape {ours.shape}, the ground truths {text}. Give"
            " both a row for every datum and a column for every class."
        )
    names = pl.Series(np.arange(wide)) if classes is None else classes
    if len(names) != wide:
        raise InputError(
            f"the arrays have {wide:,} columns, and labels names {len(names):,} classes. Name each"
            " column's class, in their order."
        )
    table = pl.DataFrame({"actual": _lists(theirs, names), "predicted": _lists(ours, names)})
    return {TABLE: Source(table.lazy(), f"{text}, one row per datum")}


def _lists(flags: Array, names: pl.Series) -> pl.Series:
    """Return the names of the set columns of each row."""
    _, place = np.nonzero(flags)
    stops = np.cumsum(flags.sum(axis=1))
    selected = names.gather(place).to_list()
    starts = np.concatenate([[0], stops[:-1]])
    lists = [selected[a:b] for a, b in zip(starts.tolist(), stops.tolist(), strict=True)]
    return pl.Series(lists, dtype=pl.List(names.dtype))


# ``datums=`` and ``labels=``: any table, or a plain list of ids or values.


def open_datums(thing: Any, storage_options: dict[str, str] | None = None) -> Source:
    """A table of datums, or a plain list of their ids."""
    return _open(thing, "datum_id", "datums", storage_options)


def open_labels(thing: Any, storage_options: dict[str, str] | None = None) -> Source:
    """A table of labels, a list of their values, a dict of value and name, or a set's name."""
    if (
        isinstance(thing, Mapping)
        and thing
        and not any(
            hasattr(one, "__len__") and not isinstance(one, (str, bytes)) for one in thing.values()
        )
    ):
        frame = _frame({"label_value": list(thing), "label_name": list(thing.values())}, "labels")
        return Source(frame.lazy(), f"dict of {frame.height:,} labels")
    source = open_set(thing) if isinstance(thing, str) else None
    return source or _open(thing, "label_value", "labels", storage_options)


def _open(thing: Any, column: str, role: str, storage_options: dict[str, str] | None) -> Source:
    values = _values(thing)
    if values is None:
        return open_source(thing, storage_options=storage_options)
    frame = _frame({column: values}, role)
    return Source(frame.lazy(), f"list of {frame.height:,} {role}")


def _values(thing: Any) -> list[Any] | pl.Series | None:
    """The thing as plain values, or None if it is a table or a path."""
    if isinstance(thing, pl.Series):
        return thing
    if isinstance(thing, (str, bytes, Mapping)):
        return None
    if getattr(thing, "ndim", 0) == 1 and hasattr(thing, "tolist"):
        thing = thing.tolist()
    if isinstance(thing, (Sequence, Set)):
        items = list(thing)
        return items if all(isinstance(item, (str, int)) for item in items) else None
    return None


def _frame(columns: dict[str, Any], role: str) -> pl.DataFrame:
    try:
        return pl.DataFrame(columns)
    except (pl.exceptions.PolarsError, TypeError) as error:
        raise InputError(
            f"{role}: a list must contain integers or strings, not both: {error}"
        ) from None


# Plain values of both sides, row by row: lists, arrays and series instead of tables.

_WORDS = {PREDICTIONS: "predictions", GROUND_TRUTHS: "ground truths"}


def paired_values(
    predictions: Any, truths: Any, labels: Any, options: Options
) -> dict[str, Source] | None:
    """Convert two columns of values to tables, matched by position.

    Values are classes (integers, strings, booleans), scores of the positive class (floats), scores
    [n, classes], texts, or lists of ids. If ``labels`` are names, whole numbers are indices into
    them.

    Args:
        predictions: list, NumPy array, tensor, or series of Polars, pandas or pyarrow.
        labels: as ``score`` takes them: the classes of the score columns, in their order.

    Returns:
        Role to source; None unless both sides are values.
    """
    if (ranked := _by_pipeline(predictions, truths)) is not None:
        return ranked
    notes = differing_indexes(predictions, truths)
    classes = None
    if (
        labels is not None
        and "label_value" in (declared := open_labels(labels).frame).collect_schema()
    ):
        classes = declared.select("label_value").collect().to_series()
    if (framed := _framed(predictions, truths)) is not None:
        scores, named, theirs = framed
        if named is not None:  # classes that columns of scores are named after
            true = theirs.drop_nulls().unique().sort()
            classes = recognise.label_series(named, true.dtype, true)
            recognise.check_scored(named, classes, true)
        return _scores(scores, theirs, classes, notes)
    if (flags := _flags(predictions, truths, options)) is not None:
        return several(*flags, (predictions, truths), classes, options)
    pair = value_pair(*_by_class_names(predictions, truths))
    if pair is None:
        return None
    ours, theirs = pair
    numbers = measured_pair(ours, theirs, options)
    if numbers is not None and (ours.dtype.is_nested() or theirs.dtype.is_nested()):
        table = several_targets(ours, theirs, classes, numbers)
        message = f"{name_of(predictions)} and {name_of(truths)} of {len(ours):,} rows of numbers"
        return {TABLE: Source(table.lazy(), message, notes=notes)}
    theirs = theirs if numbers is not None else _whole(theirs)
    many = _by_class(ours)
    if many is not None and theirs.dtype.is_nested():
        marked = indicator(theirs) if may_be_labels(options) else None
        if marked is not None and options.multilabel and marked.shape == many.shape:
            return _scores(many, pl.Series(np.arange(many.shape[1])), classes, notes, marked)
        if marked is not None or not _fractions(theirs):
            raise InputError(_several_classes(many, marked, theirs), code="several_classes")
    if many is not None and not theirs.dtype.is_nested():
        if classes is not None and options.label_map is None:
            true = _named(theirs, classes, GROUND_TRUTHS).unique()
            recognise.check_scored(classes.to_list(), classes, true.drop_nulls())
        return _scores(many, theirs, classes, notes)
    if numbers is None and ours.dtype.is_float():
        ours = _classes_of(ours, theirs, options)
    columns = numbers or _columns(ours, theirs, classes, options)
    if columns is None:
        return None
    names = {columns[0]: _named(ours, classes, PREDICTIONS), columns[1]: theirs}
    names[columns[1]] = _named(theirs, classes, GROUND_TRUTHS)
    frame = pl.DataFrame([series.alias(name) for name, series in names.items()])
    message = f"{name_of(predictions)} and {name_of(truths)} of {len(ours):,} values"
    notes += (*_order(ours, theirs, columns), *_swapped(ours.name, theirs.name, columns))
    return {TABLE: Source(frame.lazy(), message, notes=notes)}


def _by_pipeline(predictions: Any, truths: Any) -> dict[str, Source] | None:
    """Read ``{label, score}`` of every datum, or a list of them for all labels, and true labels.

    So the text-classification pipeline of Hugging Face returns them. A single score is that of the
    predicted label, not of the positive one, and is not read.
    """
    rows = predictions
    if isinstance(rows, pl.Series):
        _, inner = dtypes.within(rows.dtype)
        rows = rows.to_list() if isinstance(inner, pl.Struct) else None
    if not isinstance(rows, (list, tuple)) or not rows:
        return None
    first = rows[0][0] if isinstance(rows[0], list) and rows[0] else rows[0]
    if not isinstance(first, dict):  # decides nearly all inputs
        return None
    lists = [[row] if isinstance(row, dict) else row for row in rows]
    if not all(
        isinstance(row, list)
        and row
        and all(isinstance(one, dict) and {*one} == {"label", "score"} for one in row)
        for row in lists
    ):
        return None
    true = column_of(truths)
    if true is None or true.dtype.is_nested():
        return None
    _refuse_lengths(len(rows), len(true))
    title = f"{{label, score}} and {name_of(truths)} of {len(rows):,} datums"
    scored = _scored_rows(lists, title)
    if all(len(row) == 1 for row in lists):
        note = Note(
            "confidence_not_read",
            "predictions: 'score' is not read: of one score a datum it is that of the predicted"
            " label. For metrics of scores give those of all labels (top_k=None).",
        )
        frame = pl.DataFrame({"predicted": scored["label_value"], "actual": _whole(true)})
        return {TABLE: Source(frame.lazy(), title, notes=(note,))}
    sides = {
        PREDICTIONS: scored,
        GROUND_TRUTHS: pl.DataFrame({"label_value": _whole(true)}).with_row_index("datum_id"),
    }
    return {role: Source(side.lazy(), title) for role, side in sides.items()}


def _scored_rows(lists: Sequence[list[dict[str, Any]]], title: str) -> pl.DataFrame:
    """One row per datum and label of a pipeline's output."""
    rows = [(i, one["score"]) for i, row in enumerate(lists) for one in row]
    try:
        labels = pl.Series("label_value", [one["label"] for row in lists for one in row])
        return pl.DataFrame(rows, ["datum_id", "score"], orient="row").with_columns(labels)
    except (AttributeError, TypeError, pl.exceptions.PolarsError) as error:
        raise InputError(
            f"{title}: labels or scores are of several types: {str(error).splitlines()[0]}",
            code="types_mixed",
        ) from error


def _flags(predictions: Any, truths: Any, options: Options) -> tuple[np.ndarray, np.ndarray] | None:
    """Return both sides as bool [n, classes] if they are arrays of 0 and 1 that may be labels."""
    if not may_be_labels(options):
        return None
    sides = column_of(predictions), column_of(truths)
    if not all(side is not None and isinstance(side.dtype, pl.Array) for side in sides):
        return None
    ours, theirs = (None if side is None else indicator(side) for side in sides)
    return None if ours is None or theirs is None else (ours, theirs)


def _several_classes(many: np.ndarray, marked: np.ndarray | None, theirs: pl.Series) -> str:
    """Return the error for scores by class with truths other than one class per datum."""
    message = (
        f"the predictions are scores of {many.shape[1]:,} classes a datum, and the ground truths"
        f" {_kind(theirs)}. Give one class a datum"
    )
    if marked is not None and bool((marked.sum(axis=1) == 1).all()):
        message += " (of these, one of which is 1 in each row, .argmax(axis=1))"
    ways = "give tables of datum_id, label_value and score, and"
    if marked is not None:
        ways = "write" if marked.shape == many.shape else ways
    message += f"; if a datum may have several, {ways} {option('multilabel', True)}."
    if _fractions(theirs):
        message += f" If both are embeddings, write {option('task', 'text')}."
    return message


TRUE, PREDICTED, SCORED = "y_true", "y_pred", "y_score"
"""scikit-learn's names of the sides, also used for series."""


def sides_by_name(
    predictions: Any, truths: Any, y_true: Any, y_pred: Any, y_score: Any
) -> tuple[Any, Any]:
    """Return the two sides as :func:`evalengine.score` takes them, by position or scikit-learn's
    names.

    Args:
        predictions: by position; None with names.
        truths: by position; None with names.
        y_score: scores; with ``y_pred`` those of the positive class.
    """
    if y_true is None and y_pred is None and y_score is None:
        if predictions is None:
            raise InputError(
                "the predictions are missing: give them, then the ground truths.",
                code="sides_given",
            )
        return predictions, truths
    arguments = {TRUE: y_true, PREDICTED: y_pred, SCORED: y_score}
    named = {name: one for name, one in arguments.items() if one is not None}
    if predictions is not None or truths is not None:
        raise InputError(
            "both sides are given once: as predictions and ground truths, or as"
            f" {', '.join(arguments)}.",
            code="given_twice",
            options=list(arguments),
        )
    if TRUE not in named or len(named) < 2:
        raise InputError(
            f"{TRUE} belongs to {PREDICTED} or {SCORED}: give both sides.", code="sides_given"
        )
    if len(named) == 3:
        series = {name: column_of(one) for name, one in named.items()}
        lengths = {name: None if one is None else len(one) for name, one in series.items()}
        nested = any(one is not None and one.dtype.is_nested() for one in series.values())
        if nested or None in lengths.values() or len({*lengths.values()}) > 1:
            raise InputError(
                f"{TRUE}, {PREDICTED} and {SCORED} together are one value each for every datum:"
                f" {lengths}. Scores by class go without {PREDICTED}.",
                code="lengths_differ",
                lengths=lengths,
            )
        columns = {"actual": TRUE, "predicted": PREDICTED, "score": SCORED}
        return pl.DataFrame({mine: series[name] for mine, name in columns.items()}), None
    other = PREDICTED if PREDICTED in named else SCORED
    mine, true = _by_class_names(named[other], y_true)
    mine, true = _called(mine, other), _called(true, TRUE)
    return _as_floats(mine) if other == SCORED else mine, true


def _as_floats(scores: Any) -> Any:
    """Cast whole numbers and booleans, which are classes otherwise, to floats."""
    series = None if hasattr(type(scores), "columns") else column_of(scores)
    if series is None or not (series.dtype.is_integer() or series.dtype == pl.Boolean):
        return scores
    return scores.astype(float) if hasattr(scores, "index") else series.cast(pl.Float64)


def _by_class_names(predictions: Any, truths: Any) -> tuple[Any, Any]:
    """Columns of Hugging Face as names of classes, if the other side has others, or strings."""
    features = [{"": getattr(side, "features", None)} for side in (predictions, truths)]
    names = [of_features(feature).get("") for feature in features]
    pair = value_pair(predictions, truths) if any(names) else None
    if pair is None or (pl.String not in [one.dtype for one in pair] and len({*names, None}) < 3):
        return predictions, truths
    ours, theirs = (
        _named(one, None if classes is None else pl.Series(classes), side)
        for one, classes, side in zip(pair, names, (PREDICTIONS, GROUND_TRUTHS), strict=True)
    )
    return ours, theirs


def _called(values: Any, name: str) -> Any:
    """Name values after their side, if they can have a name."""
    if hasattr(values, "index") and hasattr(values, "rename") and hasattr(values, "dtype"):
        return values.rename(name)  # of pandas, whose index is looked at
    series = None if hasattr(type(values), "columns") else column_of(values)
    return values if series is None else series.alias(name)


def _order(ours: pl.Series, theirs: pl.Series, columns: tuple[str, str]) -> tuple[Note, ...]:
    """Return a note on the order of two columns of classes, if only the order defines it."""
    tables = _one_tables().values()
    kinds = {one.kind for table in tables for one in table.columns if one.name in columns}
    if ours.name or theirs.name or "label" not in kinds:
        return ()
    first, second = (listing(side.head(3).to_list(), len(side), most=3) for side in (ours, theirs))
    message = (
        f"the first values ({first}) are read as predictions and the second ({second}) as ground"
        f" truths; scikit-learn has the other order. To be sure, write {TRUE}= and {PREDICTED}=."
    )
    return (Note("order_of_values", message),)


def _swapped(mine: str, other: str, columns: tuple[str, str]) -> tuple[Note, ...]:
    """Warn if each of two series has a name of the other side's column."""
    names: dict[str, set[str]] = {}
    for table in _one_tables().values():
        for one in table.columns:
            names.setdefault(one.name, set()).update((one.name, *one.aliases))
    if mine not in names[columns[1]] or other not in names[columns[0]]:
        return ()
    message = (
        f"the predictions are called {mine!r} and the ground truths {other!r}: are the two sides"
        f" swapped? The predictions come first, or write {TRUE}= and {PREDICTED}=."
    )
    return (Note("values_swapped", message, warning=True),)


def _framed(predictions: Any, truths: Any) -> tuple[np.ndarray, list[str] | None, pl.Series] | None:
    """Parse a frame with one score column per class, and the true classes.

    Returns:
        scores, names of the columns (None if they are only numbered), and classes.
    """
    if not hasattr(predictions, "to_numpy") or not hasattr(type(predictions), "columns"):
        return None  # no frame in memory
    values = column_of(truths)
    if values is None or values.dtype.is_nested():
        return None
    scores = predictions.to_numpy()
    if scores.ndim != 2 or scores.dtype.kind != "f" or scores.shape[1] < 2:
        return None
    if len(scores) != len(values):
        raise InputError(
            f"the predictions are {len(scores):,} rows of scores and the ground truths"
            f" {len(values):,} values. Give one of each for every datum, in the same order.",
            code="lengths_differ",
            lengths=[len(scores), len(values)],
        )
    columns = [str(name) for name in predictions.columns]
    numbered = columns == [str(i) for i in range(len(columns))]
    return scores, None if numbered else columns, _whole(values)


def value_pair(predictions: Any, truths: Any) -> tuple[pl.Series, pl.Series] | None:
    """Return plain values of both sides as series; None unless both are values."""
    ours, theirs = column_of(predictions), column_of(truths)
    if ours is None or theirs is None:
        return None
    if all(isinstance(side.dtype, pl.Array) and not _fractions(side) for side in (ours, theirs)):
        return None  # label maps
    _refuse_lengths(len(ours), len(theirs))
    return ours.cast(dtypes.widened(ours.dtype)), theirs.cast(dtypes.widened(theirs.dtype))


def _refuse_lengths(ours: int, theirs: int) -> None:
    if ours != theirs:
        raise InputError(
            f"the predictions are {ours:,} values and the ground truths {theirs:,}. Give one of"
            " each for every datum, in the same order.",
            code="lengths_differ",
            lengths=[ours, theirs],
        )


def _columns(
    ours: pl.Series, theirs: pl.Series, classes: pl.Series | None, options: Options
) -> tuple[str, str] | None:
    """Return the columns of two series for the only task they fit; None without values."""
    able = {task: table for task, table in _one_tables().items() if table.values}
    if options.task is not None:
        if options.task not in able:
            return None
        able = {options.task: able[options.task]}
    elif options.metrics:
        named = [task for task in able if all(metrics.has(task, one) for one in options.metrics)]
        able = {task: able[task] for task in named} or able
    fits = {
        task: pair
        for task, table in able.items()
        if (pair := _fitting(table, ours.dtype, theirs.dtype)) is not None
    }
    if len(fits) > 1 and classes is not None:
        fits = {task: pair for task, pair in fits.items() if able[task].wide} or fits
    if len(fits) > 1 and theirs.name == TRUE and theirs.n_unique() < len(theirs):
        named = [
            task
            for task, (_, true) in fits.items()
            if any(one.name == true and TRUE in one.aliases for one in able[task].columns)
        ]
        fits = {task: fits[task] for task in named} or fits
    text = f"the predictions are {_kind(ours)}, the ground truths {_kind(theirs)}"
    if _fractions(ours) and _fractions(theirs) and options.task is None and not options.metrics:
        many = [option("task", task) for task, table in _one_tables().items() if table.measured]
        text += f". If they are several targets a datum, write {' or '.join(many)}; if both are"
        raise InputError(
            f"{text} embeddings, write {option('task', 'text')}.", code="task_ambiguous"
        )
    if len(fits) == 1:
        return next(iter(fits.values()))
    if fits:
        ways = " or ".join(option("task", task) for task in fits)
        raise InputError(
            f"{text}: the task may be {listing(list(fits))}. Write {ways}.",
            code="task_ambiguous",
            tasks=list(fits),
        )
    raise InputError(
        f"{text}. Plain values are classes (integers, strings, booleans), scores (floats), texts,"
        " or lists of ids; give all else as tables, whose columns have names.",
        code="task_unknown",
    )


def _one_tables() -> dict[str, Table]:
    """The contract of one table with both sides, by the task that has one."""
    tables = {task: contracts(task).get(TABLE) for task in task_names()}
    return {task: table for task, table in tables.items() if table is not None}


def _fitting(table: Table, ours: pl.DataType, theirs: pl.DataType) -> tuple[str, str] | None:
    columns = {column.name: column for column in table.columns}
    for pair in table.values:
        first, second = (columns[name] for name in pair)
        same_nesting = first.kind != second.kind or ours.is_nested() == theirs.is_nested()
        if same_nesting and _fits(first, ours) and _fits(second, theirs):
            return pair
    return None


def _fits(column: Column, dtype: pl.DataType) -> bool:
    if column.kind in ("text", "texts") and dtype.is_integer():
        return False  # classes, unless a table has scores
    if column.kind == "number" and not dtype.is_float():
        return False
    if column.kind == "label" and dtypes.within(dtype)[1].is_float():
        return False
    return dtypes.canonical_dtype(column, dtype) is not None


def _scores(
    many: np.ndarray,
    truths: pl.Series,
    classes: pl.Series | None,
    notes: tuple[Note, ...],
    marked: np.ndarray | None = None,
) -> dict[str, Source]:
    """Make two tables of scores and true classes.

    One row per score [n, classes] and one per datum; with ``marked``, bool [n, classes], one row
    per true class.
    """
    rows, wide = many.shape
    if classes is None:
        classes, sort = _score_classes(truths, wide)
        notes += sort
    elif len(classes) != wide:
        raise InputError(
            f"the predictions are scores of {wide:,} classes a datum, and labels names"
            f" {len(classes):,}. Name each column's class, in their order."
        )
    truths = _named(truths, classes, GROUND_TRUTHS)
    datums = np.arange(rows)
    scored = pl.DataFrame(
        {
            "datum_id": np.repeat(datums, wide),
            "label_value": classes.gather(np.tile(np.arange(wide), rows)),
            "score": np.ascontiguousarray(many).ravel(),
        }
    )
    if marked is not None:
        datum, place = np.nonzero(marked)
        true = pl.DataFrame({"datum_id": datum, "label_value": classes.gather(place)})
    else:
        true = pl.DataFrame({"datum_id": datums, "label_value": truths})
    message = f"scores of {rows:,} datums x {wide:,} classes"
    return {
        PREDICTIONS: Source(scored.lazy(), message, notes=notes),
        GROUND_TRUTHS: Source(true.lazy(), f"{rows:,} true classes"),
    }


def _score_classes(truths: pl.Series, wide: int) -> tuple[pl.Series, tuple[Note, ...]]:
    """Return the classes of unnamed score columns: 0 to n - 1, or the sorted true ones."""
    if truths.dtype.is_integer():
        low, high = truths.min(), truths.max()
        if low is None or high is None or (low >= 0 and high < wide):  # type: ignore[operator]
            return pl.Series(np.arange(wide)), ()
    labels = truths.drop_nulls().unique().sort()
    if len(labels) == wide:
        message = f"columns of scores are the true classes in order: {listing(labels.to_list())}."
        return labels, (Note("classes_in_order", message, wide),)
    raise InputError(
        f"the predictions are scores of {wide:,} classes a datum, and the ground truths have"
        f" {len(labels):,} ({listing(labels.to_list())}). Name the classes of the columns in their"
        " order: labels=[...].",
        code="classes_differ",
        counts=[wide, len(labels)],
    )


def _named(series: pl.Series, classes: pl.Series | None, side: str) -> pl.Series:
    """Replace whole numbers by the labels at these indices, if labels are names."""
    if classes is None or classes.dtype != pl.String or not series.dtype.is_integer():
        return series
    beyond = series.filter((series < 0) | (series >= len(classes)))
    if len(beyond):
        raise InputError(
            f"labels names {len(classes):,} classes, so that numbers go from 0 to"
            f" {len(classes) - 1:,}; {len(beyond):,} of the {_WORDS[side]} do not, first"
            f" {listing(beyond.unique(maintain_order=True).to_list())}.",
            code="classes_differ",
            counts=[len(classes), len(beyond)],
        )
    return classes.gather(series)


_BEYOND = 2.0**63  # numbers from here on, infinity among them, are not integers of 64 bits


def _whole(series: pl.Series, *, strict: bool = True) -> pl.Series:
    """Cast floats that are all whole numbers to integers: arithmetic turns classes into floats."""
    if not series.dtype.is_float():
        return series
    odd = series.filter(~((series == series.floor()) & (series.abs() < _BEYOND)))
    if not len(odd):
        return series.cast(pl.Int64)
    if strict:
        if not odd.is_finite().any():
            raise InputError(
                f"{len(odd):,} of {len(series):,} ground truths are {odd[0]}, so the true class is"
                " missing there: remove these datums, or give them a class.",
                code="not_whole",
                side="ground_truths",
                count=len(odd),
            )
        raise InputError(
            f"the ground truths are floats, and {len(odd):,} of {len(series):,} are not whole"
            f" numbers, first {odd[0]}. True classes are integers, strings or booleans; are the two"
            " sides swapped? The predictions come first.",
            code="not_whole",
            side="ground_truths",
            count=len(odd),
        )
    return series


def _classes_of(ours: pl.Series, theirs: pl.Series, options: Options) -> pl.Series:
    """Convert floats of one side to classes if they are class numbers; scores are unchanged.

    A name decides first (``y_pred``, ``y_score``), then values other than 0 and 1, then a metric
    that needs scores.
    """
    integers = _whole(ours, strict=False)
    names = {task: table.names for task, table in _one_tables().items()}
    task = next(task for task in names if "actual" in names[task])  # of classes
    names_of = {one.name: (one.name, *one.aliases) for one in _one_tables()[task].columns}
    if integers is ours or not len(integers) or options.task not in (None, task):
        return ours
    if ours.name in names_of["score"] or options.positive_label is not None:
        return ours
    if theirs.dtype == pl.Boolean and integers.is_in([0, 1]).all():
        integers = integers.cast(pl.Boolean)
    if theirs.n_unique() > 2 or ours.name in names_of["predicted"]:
        return integers
    if theirs.dtype.is_integer() and not integers.cast(pl.Int64).is_in([0, 1]).all():
        matches = integers.is_in(theirs.implode()).sum()
        if 2 * matches >= len(integers):
            return integers
        reason = f"{matches:,} of {len(integers):,} are true classes"
    elif any(
        metrics.has(task, one) and "scores" in metrics.metric_of(task, one).needs
        for one in options.metrics or ()
    ):
        return ours
    else:
        reason = "all are 0 or 1"
    first = listing(ours.head(3).to_list(), len(ours), most=3)
    raise InputError(
        f"the predictions are whole floats ({first}; {reason}), which may be classes or scores "
        f"of the positive class. Choose: {PREDICTED}=... (with {TRUE}=...), or integers in place "
        f"of floats, for classes; {SCORED}=..., or {option('positive_label', 1)}, for scores."
    )


def _by_class(series: pl.Series) -> np.ndarray | None:
    """Convert a series of lists of floats to scores [n, classes]; None for other series."""
    if not _fractions(series):
        return None
    lengths = series.arr.len() if isinstance(series.dtype, pl.Array) else series.list.len()
    if lengths.n_unique() > 1 or lengths.null_count():
        first = int((lengths.ne_missing(lengths[0])).arg_max() or 0)
        raise InputError(
            f"the predictions are lists of scores, of {lengths[0]} and of {lengths[first]} (place"
            f" {first:,}). Give each datum a score for every class.",
            code="lengths_differ",
            lengths=[lengths[0], lengths[first]],
            row=first,
        )
    flat = series.explode().to_numpy()
    return flat.reshape(len(series), dtypes.width_of(series))


def _fractions(series: pl.Series) -> bool:
    return series.dtype.is_nested() and dtypes.within(series.dtype)[1].is_float()


def differing_indexes(predictions: Any, truths: Any) -> tuple[Note, ...]:
    """Note series or tables of pandas with different indexes: matching is by position."""
    first, second = (getattr(side, "index", None) for side in (predictions, truths))
    if not all(hasattr(index, "equals") for index in (first, second)):
        return ()
    if first.equals(second):  # type: ignore[union-attr]
        return ()
    message = (
        "the two sides have different indexes, and are paired by position. To pair by index, "
        "write predictions.loc[ground_truths.index]."
    )
    return (Note("indexes_differ", message),)


def _kind(series: pl.Series) -> str:
    many = "lists of " if series.dtype.is_nested() else ""
    _, dtype = dtypes.within(series.dtype)
    for word, fits in _KINDS:
        if fits(dtype):
            return many + word
    return f"{many}{dtype}"


_KINDS: Sequence[tuple[str, Any]] = (
    ("integers", lambda dtype: dtype.is_integer()),
    ("floats", lambda dtype: dtype.is_float()),
    ("strings", lambda dtype: isinstance(dtype, dtypes.TEXTS)),
    ("booleans", lambda dtype: dtype == pl.Boolean),
    ("nulls", lambda dtype: dtype == pl.Null),
)
