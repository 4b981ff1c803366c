"""Long tables of scores read in batches: every label once on each datum, datum after datum.

Scores are laid out label by label and the best label of each datum is found while a batch is in the
cache; of ids one a datum stays, of labels one block's. Where rows do not repeat the labels of the
first datum, or anything else than that stands in a table, tables are read whole instead, which
takes every kind of row and names those that are wrong.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...inputs.batches import Batches, in_batches
from ...inputs.collecting import Prepared
from ...inputs.frames import Frames, assemble
from ...kernels.columns import lay_columns
from ...kernels.label_matching import HIT, STRAY
from ...kernels.score_grid import best_of_blocks
from ...readers.tables import READ_FAILURES
from ...schemas.contract import GROUND_TRUTHS, PREDICTIONS
from ...schemas.errors import InputError
from ...schemas.options import Options
from ...tally.columns import Columns
from ...tally.grid import Grid
from ...tally.precision import comparable
from ...tally.units import Scored, Units
from .encode import encode_batch
from .settings import Settings
from .streaming import Streamed, sums_up
from .tallies import Tallies
from .weightless import weightless_notes

Array = np.ndarray[Any, Any]

_LARGE = 1 << 20  # rows from which tables are read in batches
_WIDEST = 1 << 14  # labels of a datum at most
_NEEDS = frozenset({"hard", "scores"})
_IDS = (pl.Int64, pl.String)
_SCORES = (pl.Float32, pl.Float64)


def stream_grid(
    ready: Prepared, options: Options, settings: Settings, needs: frozenset[str]
) -> Streamed | None:
    """Long tables read in batches and tallied; None where they have to be read whole.

    Args:
        ready: the tables, their columns recognised.
        options: those of the run.
        settings: the run's settings.
        needs: what must be tallied.
    """
    if "scores" not in needs or not needs <= _NEEDS or settings.multilabel:
        return None
    if {PREDICTIONS, GROUND_TRUTHS} != set(ready.sides):
        return None
    batches = in_batches(ready, options, _LARGE)
    if batches is None:
        return None
    ours, theirs = batches[PREDICTIONS], batches[GROUND_TRUTHS]
    if not _fits(ours, {"datum_id": _IDS, "label_value": _IDS, "score": _SCORES}):
        return None
    if not _fits(theirs, {"datum_id": _IDS, "label_value": _IDS}):
        return None
    try:
        read = _read(ours)
        if read is None:
            return None
        held = list(theirs)
        if not held:
            return None
        truths = pl.concat(held).cast(theirs.schema)  # type: ignore[arg-type]
        return _tallied(ready, options, settings, read, truths, ours, "hard" in needs)
    except READ_FAILURES:
        return None  # reading whole tables says what is wrong
    except InputError:
        return None  # and names the rows as they stand there


class _Read(msgspec.Struct):
    """A table of predictions.

    Attributes:
        ids: id of every datum, in the order of the rows.
        labels: the labels of each.
        score: float64 [labels, datums].
        place: int32 [datums], place of the highest score's label among them, the first of equals.
        best: float64 [datums], that score.
    """

    ids: pl.Series
    labels: pl.Series
    score: Array
    place: Array
    best: Array


def _read(table: Batches) -> _Read | None:
    """All rows; None where they are no grid, or one of them is not fit to be scored."""
    labels: pl.Series | None = None
    ids: list[pl.Series] = []
    width, row = 0, 0
    for batch in table:
        if not batch.height:
            continue
        if labels is None:
            labels = _first_labels(batch["label_value"])
            if labels is None or table.rows % len(labels) or table.rows == len(labels):
                return None
            width = len(labels)
            column = np.empty((width, table.rows // width))
            place, best = np.empty(column.shape[1], np.int32), np.empty(column.shape[1])
            repeated = labels
        while len(repeated) < batch.height + width:
            repeated = pl.concat([repeated, repeated], rechunk=True)
        if not _repeats(batch, repeated.slice(row % width, batch.height)):
            return None
        if not _follow(batch["datum_id"], ids[-1][-1] if ids else None, row, width):
            return None
        score = _finite(batch["score"])
        if score is None:
            return None
        first = -row % width
        if first < batch.height:
            ids.append(batch["datum_id"].slice(first).gather_every(width))
        for at, piece in score:
            lay_columns(piece, row + at, column)
            best_of_blocks(piece, row + at, width, place, best)
        row += batch.height
    if labels is None or row != table.rows:
        return None
    every = pl.concat(ids, rechunk=True)
    if every.n_unique() != len(every):
        return None
    return _Read(every, labels, column, place, best)


def _first_labels(label: pl.Series) -> pl.Series | None:
    """Labels up to the first that comes again; None where none does, or one is null."""
    head = label.head(_WIDEST + 1)
    if head.null_count():
        return None
    again = head.slice(1).index_of(head[0])
    if again is None or again == 0:
        return None
    labels = head.head(again + 1).rechunk()
    return labels if labels.n_unique() == len(labels) else None


def _repeats(batch: pl.DataFrame, labels: pl.Series) -> bool:
    """Whether the rows have these labels."""
    column = batch["label_value"]
    return not column.null_count() and bool((column == labels).all())


def _follow(datum: pl.Series, last: Any, row: int, width: int) -> bool:
    """Whether ids change where a datum begins and nowhere else.

    Args:
        datum: ids of rows from ``row`` on.
        last: id of the last datum that began before, None in the first row.
        row: the first row.
        width: rows of a datum.

    Whether the first row begins another datum is left to the caller, who sees whether ids of
    datums come again.
    """
    if datum.null_count() or (row % width and datum[0] != last):
        return False
    n = len(datum)
    first = width - row % width  # where the first datum behind the first row begins
    begin = datum.slice(first).gather_every(width)
    before = datum.slice(first - 1).gather_every(width).head(len(begin))
    if not (begin != before).all():
        return False
    return int((datum.slice(1) == datum.slice(0, n - 1)).sum()) == n - 1 - len(begin)


def _finite(score: pl.Series) -> list[tuple[int, Array]] | None:
    """Scores in pieces, float64, and the row that each begins at; None if one is not a number."""
    if score.null_count():
        return None
    found, at = [], 0
    for chunk in score.cast(pl.Float64).get_chunks():
        piece = chunk.to_numpy()
        if not sums_up(piece):
            return None
        found.append((at, piece))
        at += piece.size
    return found


def _tallied(
    ready: Prepared,
    options: Options,
    settings: Settings,
    read: _Read,
    truths: pl.DataFrame,
    table: Batches,
    want_hard: bool,
) -> Streamed | None:
    """Tallies of all rows; a few of them go the ordinary way: each datum and each label once."""
    width, blocks = read.score.shape
    few = pl.DataFrame(
        {
            "datum_id": read.ids.gather(np.r_[np.zeros(width - 1, np.int64), np.arange(blocks)]),
            "label_value": read.labels.gather(
                np.r_[np.arange(1, width), np.zeros(blocks, np.int64)]
            ),
            "score": pl.repeat(0.5, width - 1 + blocks, dtype=table.schema["score"], eager=True),
        }
    ).cast(table.schema)  # type: ignore[arg-type]
    rows = {PREDICTIONS: table.rows, GROUND_TRUTHS: truths.height}
    frames = assemble(ready, {PREDICTIONS: few, GROUND_TRUTHS: truths}, {}, options)
    fit = encode_batch(_copy(frames))
    if fit.rows is None or fit.rows.unit is None or fit.rows.label is None or fit.datum is not None:
        return None  # units would be of several keys
    label, unit = fit.rows.label, fit.rows.unit[width - 1 :]
    grid = Grid(np.r_[label[width - 1], label[: width - 1]].astype(np.int32), unit)
    hard, hard_score = None, None
    if want_hard:
        hard, hard_score = np.full(fit.truth.size, -1, np.int32), np.full(fit.truth.size, np.nan)
        hard[unit] = grid.label[read.place]
        hard_score[unit] = read.best
    units = Units(None, None, fit.truth, None, hard, hard_score, fit.weight)
    cuts = [comparable(t, single=fit.rows.single) for t in settings.score_thresholds]
    scored = Scored(
        (), _outcomes(grid, fit.truth), None, None, -1, np.ones(len(fit.labels), bool),
        fit.rows.single, grid=grid, columns=Columns(read.score, np.array(cuts)),
    )  # fmt: skip
    frames.notes += weightless_notes(units, fit.labels, fit.datums)
    tallies = Tallies(fit.datums, fit.labels, fit.declared, units, scored, {})
    return Streamed(frames, rows, tallies)


def _outcomes(grid: Grid, truth: Array) -> Array:
    """Outcome of every row, uint8 [b * w]; see ``match_labels``.

    Most are of labels that are not true, and zero: of pages that are never touched the system
    holds no memory.
    """
    width, blocks = grid.label.size, grid.unit.size
    out = np.zeros((blocks, width), np.uint8)
    true = truth[grid.unit]
    column = np.full(int(max(grid.label.max(), true.max(initial=-1))) + 2, -1, np.int64)
    column[grid.label] = np.arange(width)  # the last one stays for -1
    at = column[true]
    hit = np.flatnonzero(at >= 0)
    out[hit, at[hit]] = HIT
    out[true < 0] = STRAY
    return out.ravel()


def _fits(table: Batches, wanted: dict[str, tuple[Any, ...]]) -> bool:
    """Whether a table has these columns and no others, of these dtypes."""
    return table.schema.keys() == wanted.keys() and all(
        table.schema[name] in dtypes for name, dtypes in wanted.items()
    )


def _copy(frames: Frames) -> Frames:
    """Frames that may be used up."""
    return msgspec.structs.replace(
        frames, sides={role: frame.clone() for role, frame in frames.sides.items()}
    )
