"""Encoding of classification tables as arrays."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...geometry.columns import offsets_of
from ...ingest.dtypes import or_measured
from ...ingest.frames import Frames
from ...ingest.ids import encode
from ...schemas.arrays import Array
from ...schemas.contract import DEFAULT_LABEL_KEY, GROUND_TRUTHS, PREDICTIONS
from ...schemas.errors import InputError
from ...schemas.wording import option
from ...tallies.datums import Datums, Labels
from ...tallies.units import Grid, Listed
from ..encoding import (
    dataset_of,
    declared_places,
    encode_datums,
    encode_labels,
    pop_column,
    pop_if_present,
    row_numbers,
    table_datums,
    weights_of,
)

# Binary tables: which of the two labels the one score column speaks of.


def positive_code(labels: Labels, hard: Array | None, positive_label: Any) -> int | None:
    """Return the code of the label that the score column refers to.

    Args:
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
    # 1 and 2 are class numbers: scikit-learn scores the greater, but reports F1 of label 1.
    either = values.dtype == pl.String or (
        values.dtype.is_integer() and 1 in values and max(values) > 1
    )
    if hard is None and (either or len(labels) > 2):
        raise unclear(values)
    if either and len(labels) == 2:
        raise unclear(values)
    if either or len(labels) > 2:
        return None
    code = values.index_of(True if values.dtype == pl.Boolean else 1)
    if code is None:
        raise InputError(
            f"table: no label is 1 (labels: {_some(values)}), so the label of the score is"
            f" unknown. Write {option('positive_label')}."
        )
    return int(code)


def unclear(values: pl.Series) -> InputError:
    """Return the error for labels of which any may be the one of the scores."""
    if len(values) > 2:
        measured = or_measured(["actual"]) if values.dtype.is_integer() else ""
        message = (
            f"table: {len(values)} labels ({_some(values)}) and one score column: Which label does"
            " it belong to? Add a column 'predicted' if it is the predicted label's, give"
            f" {option('score_columns')} with one column per label, or"
            f" {option('positive_label')} to score one label against the rest.{measured}"
        )
    else:
        message = (
            f"table: the labels are {_some(values)}. Which label does 'score' belong to? Write"
            f" {option('positive_label')}, for instance"
            f" {option('positive_label', values[-1] if len(values) else 'yes')}."
        )
    facts = {"count": len(values)} if len(values) > 2 else {}
    return InputError(message, code="option_missing", option="positive_label", **facts)


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


def find_label(values: pl.Series, label: Any) -> int:
    """Return the code of a label by value, whatever its type on the command line.

    Raises:
        InputError: no such label; the message lists the labels.
    """
    listed = values.to_list()
    for code, value in enumerate(listed):
        if type(value) is type(label) and value == label:
            return code
    by_text = {str(value).lower(): code for code, value in enumerate(listed)}
    result = by_text.get(str(label).lower())
    if result is None:
        raise InputError(
            f"{option('positive_label', label)}: no such label; there are {_some(values)}.",
            code="unknown_label",
            option="positive_label",
            value=label,
        )
    return result


def _some(values: pl.Series) -> str:
    from ...ingest.problems import listing

    return listing(values.head(5).to_list(), len(values))


# Predictions that list the same labels in the same order for every datum: found, and cut short.

_WIDEST = 1 << 14  # labels of a datum at most
_ROWS = 1 << 16  # rows compared at a time


def labels_per_datum(datum: pl.Series, label: pl.Series) -> int:
    """Return the number of labels per datum, if all datums list the same ones in order; else 0.

    One pass compares neighbouring rows, which is cheaper than coding either column.

    Args:
        datum: n datum ids, without nulls.
        label: n label values, without nulls, unique per datum.
    """
    n = len(label)
    head = label.head(_WIDEST + 1)
    if n < 4:
        return 0
    again = head.slice(1).index_of(head[0])
    if again is None:
        return 0
    width = again + 1
    if width < 2 or n % width or n == width:
        return 0
    step = max(1, _ROWS // width) * width
    tile = head.gather(np.arange(min(step, n)) % width)
    for first in range(0, n, step):
        rows = min(step, n - first)
        if not (label.slice(first, rows) == tile.slice(0, rows)).all():
            return 0
        some = datum.slice(first, rows).rechunk()
        same = np.ones(rows, np.bool_)
        same[1:] = (some.slice(1) == some.slice(0, rows - 1)).to_numpy()
        by_datum = same.reshape(-1, width)
        if not by_datum[:, 1:].all() or by_datum[1:, 0].any():
            return 0
    return width


_BLOCK = 1 << 16  # places brought to the machine's integers at a time, which stay in the cache
_DENSE = 4  # units are numbered without a look at them while at most this many per row would be


class Rows(Listed, msgspec.Struct, frozen=True, dict=True):
    """Scored labels, one row per prediction.

    Attributes:
        parts: float64 arrays, n scores in total, cast from the column's dtype.
        label: int32 [n], label codes; None if all rows have the label ``only``, or there is a
            ``grid``.
        unit: int32 [n], unit of each row; None if row i is unit i, or there is a ``grid``.
        only: the scored label if ``several`` is False.
        single: scores came in single precision.
        ranked: there are scores; otherwise every row is predicted, and its score infinite.
        grid: labels and units of the rows, if every unit lists the same labels in one order.
    """

    parts: tuple[Array, ...]
    label: Array | None
    unit: Array | None
    only: int
    single: bool
    ranked: bool = True
    grid: Grid | None = None


class Batch(msgspec.Struct, frozen=True):
    """Classification input as arrays. A unit is one datum under one label key.

    Attributes:
        labels: codes ascending by key and value.
        declared: int32 [l], position of each label among the declared ones, -1 for others; or None.
        datum: int32 [u], datum of each unit; None if unit u is datum u.
        key: int32 [u], label key of each unit; None if there is one key.
        truth: true labels: int32 [u], -1 for none, or [m] with offsets ``truth_start``.
        truth_start: int64 [u + 1], or None if units have at most one true label.
        hard: int32 [u], predicted label from a column, -1 for none; else None.
        rows: scored labels, or None without scores.
        weight: float64 [u], sample weights, or None.
        sequences: a row of the table was a whole sequence of labels.
        by_row: units are in the order of one table's rows.
    """

    datums: Datums
    labels: Labels
    declared: Array | None
    datum: Array | None
    key: Array | None
    truth: Array
    truth_start: Array | None
    hard: Array | None
    rows: Rows | None
    weight: Array | None
    sequences: bool = False
    by_row: bool = False


def encode_batch(frames: Frames, *, positive_label: Any = None, multilabel: bool = False) -> Batch:
    """Encode checked tables as arrays; columns are consumed as they are encoded.

    Args:
        frames: both sides or the single table; consumed. Their label map is applied.
        positive_label: positive class of a binary table; default 1 / true.
        multilabel: units may have several true labels.

    Raises:
        InputError: the predicted label, or the label of a score, is ambiguous.
    """
    if frames.table is None:
        return _from_sides(frames, multilabel=multilabel)
    if multilabel:
        return _from_sets(frames, frames.table)
    return _from_table(frames, frames.table, positive_label)


# -- two tables --------------------------------------------------------------------------------


def _from_sides(frames: Frames, *, multilabel: bool) -> Batch:
    predictions, truths = frames.predictions, frames.ground_truths
    row_numbers(predictions), row_numbers(truths)  # ids order the datums of two tables
    wide = frames.score_labels is not None
    sides = [truths] if wide else [predictions, truths]
    width = 0 if wide or frames.same_order else _repeated_labels(frames, predictions)
    keys = [pop_if_present(side, "label_key") for side in sides]
    values = [pop_column(side, "label_value") for side in sides]
    if width:
        values[0] = values[0].gather(np.arange(width))
    extra, extra_key, key_of_row = frames.score_labels, None, None
    if extra is not None and "label_key" in predictions.columns:
        extra, extra_key, key_of_row = _by_key(extra, pop_column(predictions, "label_key"))
    labels, codes = encode_labels(values, keys, frames, extra, extra_key)
    declared = _declared(frames, labels)
    dataset = dataset_of(frames)
    ids = [pop_column(truths, "datum_id"), pop_column(predictions, "datum_id")]
    roles = [GROUND_TRUTHS, PREDICTIONS]
    if width:
        ids[1] = ids[1].gather_every(width)
        if frames.ids is not None:
            of_datums = {PREDICTIONS: frames.ids.codes[PREDICTIONS][::width]}
            codes_of_rows = frames.ids.codes | of_datums
            frames.ids = msgspec.structs.replace(frames.ids, codes=codes_of_rows)
    if frames.same_order:  # paired row by row, so one side's codes are the other's
        datums, (t_datum,) = encode_datums(ids[:1], frames, dataset, [GROUND_TRUTHS])
        p_datum = t_datum
    else:
        datums, (t_datum, p_datum) = encode_datums(ids, frames, dataset, roles)
    score: tuple[Array, ...] | None
    if wide:
        t_label, p_label = codes
        width = len(frames.score_labels)  # type: ignore[arg-type]
        score, single = _matrix(predictions, width)
    else:
        p_label, t_label = codes
        score, single = _scores(predictions)
    # Score columns without rows have no label key.
    one_key = len(labels.key_names) == 1 and p_label.size == width
    tiled = width > 0 and one_key and not frames.label_map
    if wide and not tiled:
        p_label = _spread(p_label, key_of_row, p_datum.size, width)
        p_datum = np.repeat(p_datum, width)
    elif width and not tiled:
        p_label, p_datum = np.tile(p_label, p_datum.size), np.repeat(p_datum, width)
    unit_datum, unit_key, (p_unit, t_unit) = _units(
        labels, len(datums), (p_datum, p_label), (t_datum, t_label)
    )
    n_units = len(datums) if unit_datum is None else unit_datum.size
    truth, start = _truths(t_unit, t_label, n_units, multilabel=multilabel)
    if start is None and frames.label_map:  # keys were proved unique before labels were mapped
        _check_single_label(datums, unit_datum, t_unit[truth[t_unit] != t_label], _TRUE)
    weight = weights_of(truths)
    if weight is not None:
        weight = _weights(datums, weight, t_datum, t_unit, unit_datum)
    hard, rows = None, None
    if score is None and multilabel:
        rows = Rows((np.full(p_label.size, np.inf),), p_label, p_unit, -1, False, ranked=False)
    elif score is None:
        hard = np.full(n_units, -1, np.int32)
        hard[p_unit] = p_label
        _check_single_label(datums, unit_datum, p_unit[hard[p_unit] != p_label], _PREDICTED)
    elif tiled:
        rows = Rows(score, None, None, -1, single, grid=Grid(p_label, p_unit))
    else:
        rows = Rows(score, p_label, p_unit, -1, single)
    return Batch(datums, labels, declared, unit_datum, unit_key, truth, start, hard, rows, weight)


def _repeated_labels(frames: Frames, predictions: pl.DataFrame) -> int:
    """Return the labels per datum if all list the same ones in order, of one key; else 0."""
    columns = predictions.columns
    if frames.label_map or "score" not in columns or "label_key" in columns:
        return 0
    return labels_per_datum(predictions["datum_id"], predictions["label_value"])


def _by_key(values: pl.Series, key: pl.Series) -> tuple[pl.Series, pl.Series, Array]:
    """Labels of score columns once for every label key, their keys, and the key of each row."""
    names, (key_of_row,) = encode([key])
    at = np.repeat(np.arange(len(names)), len(values))
    return values.gather(np.tile(np.arange(len(values)), len(names))), names.gather(at), key_of_row


def _spread(codes: Array, key_of_row: Array | None, n: int, width: int) -> Array:
    """Labels of all cells of a score matrix of n rows, row by row."""
    return np.tile(codes, n) if key_of_row is None else codes.reshape(-1, width)[key_of_row].ravel()


def _of_columns(
    frames: Frames,
    table: pl.DataFrame,
    codes: Array,
    key_of_row: Array | None,
    n: int,
    *,
    one_key: bool,
) -> Rows:
    """The score columns of a single table of n rows, whose labels have the codes."""
    assert frames.score_labels is not None
    width, unit = len(frames.score_labels), np.arange(n, dtype=np.int32)
    score, single = _matrix(table, width)
    if 0 < width == codes.size and one_key and not frames.label_map:
        return Rows(score, None, None, -1, single, grid=Grid(codes, unit))
    label = _spread(codes, key_of_row, n, width)
    return Rows(score, label, np.repeat(unit, width), -1, single)


def _weights(
    datums: Datums, row_weights: Array, datum: Array, unit: Array, unit_datum: Array | None
) -> Array:
    """Return the weight of every unit, float64 [u], from the weights of the truth rows.

    A unit without truth gets its datum's weight if all rows of the datum agree, else 1.
    """
    n_units = len(datums) if unit_datum is None else unit_datum.size
    weight = np.ones(n_units)
    weight[unit] = row_weights
    torn = np.flatnonzero(weight[unit] != row_weights)
    if torn.size:
        raise InputError(
            f"ground truths: column 'weight' differs between the labels of one datum, first of"
            f" {datums.id[int(datum[torn[0]])]!r} ({torn.size:,} rows). A datum has one weight.",
            code="not_constant",
            column="weight",
            count=int(torn.size),
        )
    if unit_datum is None:
        return weight
    low, high = np.full(len(datums), np.inf), np.full(len(datums), -np.inf)
    np.minimum.at(low, datum, row_weights)
    np.maximum.at(high, datum, row_weights)
    untold = np.ones(n_units, bool)
    untold[unit] = False
    of_datum = np.where(low == high, high, 1.0)
    weight[untold] = of_datum[unit_datum[untold]]
    return weight


def _units(
    labels: Labels, n_datums: int, *sides: tuple[Array, Array]
) -> tuple[Array | None, Array | None, list[Array]]:
    """Units of (datum, label key): their datums, their keys, and the unit of each side's rows."""
    n_keys = len(labels.key_names)
    if n_keys <= 1:
        return None, None, [datum for datum, _ in sides]
    joint = [datum.astype(np.int64) * n_keys + labels.key[label] for datum, label in sides]
    if n_datums * n_keys <= _DENSE * sum(array.size for array in joint):
        every = np.arange(n_datums * n_keys)
        units = [array.astype(np.int32) for array in joint]
    else:
        distinct, units = encode([pl.Series("unit", array) for array in joint])
        every = distinct.to_numpy()
    return (every // n_keys).astype(np.int32), (every % n_keys).astype(np.int32), units


_PREDICTED = (
    "predictions: {} with several labels and no column 'score', first datum_id {}. Which of them is"
    f" predicted? Add their scores; or, if all of them are, write {option('multilabel', True)}."
)
_TRUE = (
    "ground truths: {} with several labels of one key after the label map, first datum_id {}. If a"
    f" datum may have several labels, write {option('multilabel', True)}."
)


def _check_single_label(
    datums: Datums, unit_datum: Array | None, wrong: Array, message: str
) -> None:
    """Raise InputError for units that have several labels but may have only one."""
    if wrong.size:
        units = np.unique(wrong)
        ids = datums.id.gather(units[:3] if unit_datum is None else unit_datum[units[:3]])
        first = ", ".join(map(repr, ids.to_list()))
        raise InputError(
            message.format(f"{units.size:,} datum{'s'[: units.size > 1]}", first),
            code="several_labels",
            count=int(units.size),
        )


def _truths(
    unit: Array, label: Array, n_units: int, *, multilabel: bool
) -> tuple[Array, Array | None]:
    """True labels by unit, one each or as many as there are."""
    if not multilabel:
        truth = np.full(n_units, -1, np.int32)
        for at in range(0, unit.size, _BLOCK):
            truth[unit[at : at + _BLOCK].astype(np.intp)] = label[at : at + _BLOCK]
        return truth, None
    order = np.argsort(unit, kind="stable")
    return label[order], offsets_of(np.bincount(unit, minlength=n_units))


def _scores(frame: pl.DataFrame) -> tuple[tuple[Array, ...] | None, bool]:
    """The score column piece by piece, as it was read, and whether it is of single precision."""
    if "score" not in frame.columns:
        return None, False
    score = pop_column(frame, "score")
    pieces = score.cast(pl.Float64).get_chunks()
    return tuple(piece.to_numpy() for piece in pieces), score.dtype == pl.Float32


def _matrix(frame: pl.DataFrame, n_labels: int) -> tuple[tuple[Array, ...], bool]:
    """Score columns as one array, row by row."""
    names = frame.columns
    places = [at for at, name in enumerate(names) if name.startswith("score:")][:n_labels]
    out = np.empty((frame.height, len(places)))
    single, blank = True, pl.Series([None] * frame.height)
    for at, place in enumerate(places):
        column = frame.to_series(place)
        single &= column.dtype == pl.Float32
        out[:, at] = column.cast(pl.Float64).to_numpy()
        # Not removed, which takes time for all columns after it, but no longer in memory.
        frame.replace_column(place, blank.alias(names[place]))
    return (out.ravel(),), single


# -- one table ---------------------------------------------------------------------------------


def _from_table(frames: Frames, table: pl.DataFrame, positive_label: Any) -> Batch:
    lengths: Array | None = None
    height = table.height
    row = row_numbers(table)
    actual, predicted = pop_column(table, "actual"), pop_if_present(table, "predicted")
    if isinstance(actual.dtype, pl.List):
        lengths = actual.list.len().to_numpy()
        actual = actual.explode(empty_as_null=False)
        predicted = None if predicted is None else predicted.explode(empty_as_null=False)
    key = _stretched(pop_if_present(table, "label_key"), lengths)
    values = [actual] if predicted is None else [actual, predicted]
    wide = frames.score_labels is not None
    scored = frames.score_labels
    if scored is None and "score" in table.columns:
        seen = actual if frames.all_labels is None else frames.all_labels["label_value"]
        scored = both_classes(seen, predicted)
        scored = None if scored is None else scored.cast(actual.dtype)
    plain = key is None and frames.labels is None and not frames.label_map and not wide
    if plain and scored is not None and predicted is None:
        labels, codes = _zero_one(scored), [actual.cast(pl.UInt8).to_numpy()]
        key_of_row = None
    else:
        extra_key, key_of_row = None, None
        if scored is not None and key is not None:
            scored, extra_key, key_of_row = _by_key(scored, key)
        labels, codes = encode_labels(values, [key] * len(values), frames, scored, extra_key)
    declared = _declared(frames, labels)
    if positive_label is not None and len(labels):
        find_label(labels.frame["label_value"], positive_label)  # raises if the label is missing
    truth = codes[0]
    hard = codes[1] if predicted is not None else None
    datums, datum = _datums_of(frames, table, height, row)
    n = truth.size
    unit_key = labels.key[truth] if len(labels.key_names) > 1 else None
    if lengths is not None:
        of_row = np.repeat(np.arange(lengths.size, dtype=np.int32), lengths)
        datum = of_row if datum is None else datum[of_row]
    weight = weights_of(table)
    if weight is not None and lengths is not None:
        weight = np.repeat(weight, lengths)
    rows = None
    if wide:
        one_key = len(labels.key_names) == 1
        rows = _of_columns(frames, table, codes[-1], key_of_row, n, one_key=one_key)
    elif not len(labels):  # no rows and no declared labels
        hard = np.zeros(0, np.int32)
    elif "score" in table.columns:
        scores, single = _scores(table)
        assert scores is not None
        only = positive_code(labels, hard, positive_label)
        if only is not None and len(labels.key_names) > 1:
            raise InputError(
                f"table: {len(labels.key_names)} label keys and one score column of the positive"
                f" label: score each key by itself ({option('where')}), or give two"
                " tables with a score for each label.",
                code="several_keys",
                count=len(labels.key_names),
            )
        if only is None:  # several classes: the score is the predicted label's
            assert hard is not None
            rows = Rows(scores, hard, None, -1, single)
        else:
            rows = Rows(scores, None, None, only, single)
    return Batch(
        datums,
        labels,
        declared,
        datum,
        unit_key,
        truth,
        None,
        hard,
        rows,
        weight,
        sequences=lengths is not None,
        by_row=True,
    )


def _from_sets(frames: Frames, table: pl.DataFrame) -> Batch:
    """Lists of all labels that are true of each row, and of those predicted or a score of every."""
    n, row = table.height, row_numbers(table)
    sides = [pop_column(table, name) for name in ("actual", "predicted") if name in table.columns]
    flat = [side.explode(empty_as_null=False) for side in sides]
    labels, codes = encode_labels(flat, [None] * len(flat), frames, frames.score_labels, None)
    datums, datum = _datums_of(frames, table, n, row)
    lengths = [side.list.len().to_numpy().astype(np.int64) for side in sides]
    if frames.score_labels is not None:
        rows = _of_columns(frames, table, codes[-1], None, n, one_key=True)
    else:
        unit = np.repeat(np.arange(n, dtype=np.int32), lengths[1])
        rows = Rows((np.full(unit.size, np.inf),), codes[1], unit, -1, False, ranked=False)
    return Batch(
        datums,
        labels,
        _declared(frames, labels),
        datum,
        None,
        codes[0],
        offsets_of(lengths[0]),
        None,
        rows,
        weights_of(table),
        by_row=True,
    )


def _datums_of(
    frames: Frames, table: pl.DataFrame, height: int, row: Array | None
) -> tuple[Datums, Array | None]:
    """The datums of the single table, by the number of their row if they have no id."""
    datums, datum = table_datums(frames, table, height, row)
    if datums.ids is None and row is not None:
        datums = msgspec.structs.replace(datums, ids=pl.Series("datum_id", row))
    return datums, datum


def _zero_one(values: pl.Series) -> Labels:
    """The labels 0 and 1 (or false and true), whose values are their codes."""
    n = len(values)
    return Labels.of(
        pl.DataFrame(
            {
                "label_key": [DEFAULT_LABEL_KEY] * n,
                "label_value": values,
                "label_name": pl.Series([None] * n, dtype=pl.String),
            }
        )
    )


def _stretched(values: pl.Series | None, lengths: Array | None) -> pl.Series | None:
    if values is None or lengths is None:
        return values
    return values.gather(np.repeat(np.arange(lengths.size), lengths))


def _declared(frames: Frames, labels: Labels) -> Array | None:
    """Place of every label among those the user declared, int32 [l], -1 for others; or None."""
    table = declared_places(frames, labels)
    return None if table is None else table["place"].cast(pl.Int32).fill_null(-1).to_numpy()


# After a label map: labels that became one, each of which may appear once in a unit.


def without_repeats(batch: Batch) -> Batch:
    """Drop repeated labels within a unit, keeping the best score, the first of equals.

    Raises:
        InputError: the map puts the truth and the prediction of one row under different keys.
    """
    rows, truth, start = batch.rows, batch.truth, batch.truth_start
    if batch.key is not None and batch.hard is not None:
        _check_keys(batch, batch.hard)
    if rows is not None and rows.label_codes is not None:
        rows = _strongest(rows, rows.label_codes, len(batch.labels))
    if start is not None:
        unit = np.repeat(np.arange(start.size - 1), np.diff(start))
        pair = np.unique(unit * len(batch.labels) + truth)
        unit, truth = pair // len(batch.labels), (pair % len(batch.labels)).astype(np.int32)
        start = np.searchsorted(unit, np.arange(start.size))
    return msgspec.structs.replace(batch, rows=rows, truth=truth, truth_start=start)


def _strongest(rows: Rows, label: Array, n_labels: int) -> Rows:
    unit = np.arange(label.size) if rows.unit_codes is None else rows.unit_codes
    pair = unit.astype(np.int64) * n_labels + label
    order = np.lexsort((-rows.score, pair))  # stable: of equal scores the first row
    first = np.ones(order.size, bool)
    first[1:] = np.diff(pair[order]) != 0
    if first.all():
        return rows
    best = np.sort(order[first])
    return msgspec.structs.replace(
        rows,
        parts=(rows.score[best],),
        label=label[best],
        unit=unit[best].astype(np.int32),
        grid=None,
    )


def _check_keys(batch: Batch, hard: Array) -> None:
    assert batch.key is not None
    predicted = np.flatnonzero(hard >= 0)
    wrong = predicted[batch.labels.key[hard[predicted]] != batch.key[predicted]]
    if wrong.size:
        labels = batch.labels.frame
        actual, other = (labels.row(code[wrong[0]]) for code in (batch.truth, hard))
        raise InputError(
            f"label_map: {wrong.size:,} rows have their two labels under different label keys"
            f" ({actual[:2]} and {other[:2]}). Map both labels to one key."
        )
