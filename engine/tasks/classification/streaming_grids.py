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
from ...kernels.held_values import hold
from ...kernels.label_matching import HIT, STRAY
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
from .streaming import Streamed
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
    rows: _Rows | None = None
    for batch in table:
        if not batch.height:
            continue
        if rows is None:
            labels = _first_labels(batch["label_value"])
            if labels is None or table.rows % len(labels) or table.rows == len(labels):
                return None
            rows = _Rows(labels, table.rows // len(labels), batch.schema["datum_id"])
        if not rows.add(batch):
            return None
    if rows is None or rows.row != table.rows:
        return None
    ids = rows.ids.found()
    if ids.n_unique() != len(ids):
        return None
    return _Read(ids, rows.labels, rows.column, rows.place, rows.best)


class _Rows:
    """Rows of a grid, taken over batch by batch.

    Args:
        labels: those of every datum, in their order.
        blocks: number of datums.
        dtype: of the ids.

    Attributes:
        labels: as given.
        row: how many rows there were.
        ids: of the datums.
        column: float64 [labels, blocks], scores.
        place: int32 [blocks], place of each datum's highest score among the labels.
        best: float64 [blocks], that score.
    """

    def __init__(self, labels: pl.Series, blocks: int, dtype: pl.DataType) -> None:
        self.labels, self.row = labels, 0
        width = len(labels)
        self.ids: _Texts | _Integers = (
            _Integers(width, blocks) if dtype.is_integer() else _Texts(width)
        )
        self._tile = _Tile(labels)
        self.column = np.empty((width, blocks))
        self.place, self.best = np.empty(blocks, np.int32), np.empty(blocks)

    def add(self, batch: pl.DataFrame) -> bool:
        """Take over the next rows; false where one of them is not what it has to be."""
        datum, label, score = (batch[name] for name in ("datum_id", "label_value", "score"))
        if datum.null_count() or label.null_count() or score.null_count():
            return False
        if not self._tile.repeats(label, self.row) or not self.ids.add(datum, self.row):
            return False
        row = self.row
        for piece in score.cast(pl.Float64).get_chunks():
            if not lay_columns(piece.to_numpy(), row, self.column, self.place, self.best):
                return False
            row += len(piece)
        self.row = row
        return True


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


class _Tile:
    """Labels one after the other over and over, as the rows should have them.

    Args:
        labels: those of one datum.
    """

    def __init__(self, labels: pl.Series) -> None:
        self._width = len(labels)
        # NumPy compares integers, Polars texts; either without a word to the other.
        self._every: Any = labels.to_numpy() if labels.dtype.is_integer() else labels

    def repeats(self, label: pl.Series, row: int) -> bool:
        """Whether rows from ``row`` on have these labels."""
        n, first = len(label), row % self._width
        texts = isinstance(self._every, pl.Series)
        while len(self._every) < n + self._width:
            two = [self._every, self._every]
            self._every = pl.concat(two, rechunk=True) if texts else np.concatenate(two)
        if texts:
            return bool((label == self._every.slice(first, n)).all())
        return np.array_equal(label.to_numpy(), self._every[first : first + n])


class _Integers:
    """Ids of datums that are integers, each on as many rows as there are labels.

    Args:
        width: rows of a datum.
        blocks: number of datums.
    """

    def __init__(self, width: int, blocks: int) -> None:
        self._width, self._held = width, np.empty(blocks, np.int64)

    def add(self, datum: pl.Series, row: int) -> bool:
        """Take over the ids of rows from ``row`` on; whether they change with the datums alone.

        That two datums beside each other differ is left to whoever sees whether ids come again.
        """
        return hold(datum.to_numpy(), row, self._width, self._held)

    def found(self) -> pl.Series:
        """The id of every datum."""
        return pl.Series("datum_id", self._held)


class _Texts:
    """Ids of datums that are texts, each on as many rows as there are labels.

    Args:
        width: rows of a datum.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._found: list[pl.Series] = []

    def add(self, datum: pl.Series, row: int) -> bool:
        """Take over the ids of rows from ``row`` on; whether they change with the datums alone."""
        width, n = self._width, len(datum)
        at = row % width
        if at and datum[0] != self._found[-1][-1]:
            return False
        same = (datum.slice(1) == datum.slice(0, n - 1)).to_numpy()
        changed = same[width - 1 - at :: width]  # where a datum behind the first row begins
        if changed.any() or np.count_nonzero(same) != n - 1 - changed.size:
            return False
        first = -row % width
        if first < n:
            self._found.append(datum.gather(np.arange(first, n, width)))
        return True

    def found(self) -> pl.Series:
        """The id of every datum."""
        return pl.concat(self._found, rechunk=True)


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
