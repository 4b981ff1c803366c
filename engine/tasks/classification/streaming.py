"""Large binary tables scored without holding their columns: batches are checked and kept small.

One table of labels 0 and 1 with their scores; or two tables in which every datum, an integer of a
range without gaps, has one truth and one score of the same label. Few distinct scores become codes
and counts, ids become places in a table of bytes. Where anything else stands in a row the tables
are read whole instead, which takes every kind of row and names those that are wrong.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from ...inputs.batches import Batches, in_batches, told_by
from ...inputs.collecting import Prepared
from ...inputs.frames import Frames
from ...kernels.few_scores import FewScores
from ...kernels.label_matching import N_OUTCOMES
from ...kernels.pairing import HIGHEST, labels_of, meet, write_truths
from ...readers.tables import READ_FAILURES
from ...schemas.contract import GROUND_TRUTHS, PREDICTIONS, TABLE
from ...schemas.options import Options
from ...tally.datums import Datums
from ...tally.units import Few, Scored, Units
from .encode import encode_batch
from .settings import Settings
from .tallies import Tallies

Array = np.ndarray[Any, Any]

_LARGE = 1 << 20  # rows from which tables are read in batches
_EXACT = 1 << 26  # rows below which counts of scores are as exact as the scores themselves
_LOWEST = -(1 << 63)  # of all ids
_WHOLE = (pl.Int8, pl.UInt8, pl.Int64, pl.Boolean)  # labels of tables, or what they are cast to


class Streamed(NamedTuple):
    """What tables read in batches left behind.

    Attributes:
        frames: a few of their rows, checked: they tell what a run has to tell of its inputs.
        rows: role to the rows of the table.
        tallies: of all rows.
    """

    frames: Frames
    rows: dict[str, int]
    tallies: Tallies


def stream(
    ready: Prepared, options: Options, settings: Settings, needs: frozenset[str]
) -> Streamed | None:
    """Tables read in batches and tallied; None where they have to be read whole.

    Args:
        ready: the tables, their columns recognised.
        options: those of the run.
        settings: the run's settings.
        needs: what must be tallied.

    Raises:
        InputError: what the columns alone tell is wrong.
    """
    if needs != {"scores"} or settings.multilabel:
        return None
    batches = in_batches(ready, options, _LARGE)
    if batches is None:
        return None
    read = _one_table if TABLE in batches else _two_tables
    try:
        return read(ready, batches, options, settings)
    except READ_FAILURES:
        return None  # reading whole tables says what is wrong


def _one_table(
    ready: Prepared,
    batches: dict[str, Batches],
    options: Options,
    settings: Settings,
) -> Streamed | None:
    """One table of labels 0 and 1 and the scores of one of them."""
    table = batches[TABLE]
    if not _fits(table, {"actual": _WHOLE, "score": (pl.Float32, pl.Float64)}):
        return None
    truth, at = np.empty(table.rows, np.uint8), 0
    scores = _Scores(may_count=table.rows < _EXACT)
    for batch in table:
        actual = _small(batch, "actual")
        score = _score(batch)
        if actual is None or score is None or actual.max(initial=0) > 1:
            return None
        truth[at : at + actual.size] = actual
        at += actual.size
        scores.add(score, actual)
    labels = np.unique([truth.min(), truth.max()])
    few: dict[str, list[object]] = {"actual": labels.tolist(), "score": [0.5] * labels.size}
    frames = told_by(ready, batches, {TABLE: few}, options)
    fit = encode_batch(_copy(frames), positive_label=settings.positive_label)
    assert fit.rows is not None
    hit = truth if fit.rows.only == 1 else 1 - truth
    shown = np.zeros(len(fit.labels), bool)
    shown[fit.rows.only] = True
    scored = Scored(
        scores.parts, hit, None, None, fit.rows.only, shown, fit.rows.single,
        few=scores.few(swapped=fit.rows.only == 0),
    )  # fmt: skip
    datums = Datums(None, pl.DataFrame(), rows=table.rows)
    units = Units(None, None, truth, None, None, None, None, by_row=True)
    tallies = Tallies(datums, fit.labels, None, units, scored, {})
    return Streamed(frames, {TABLE: table.rows}, tallies)


def _two_tables(
    ready: Prepared,
    batches: dict[str, Batches],
    options: Options,
    settings: Settings,
) -> Streamed | None:
    """Two tables of the same datums, one of the scores of one label."""
    ours, theirs = batches[PREDICTIONS], batches[GROUND_TRUTHS]
    keys = {"datum_id": (pl.Int64,), "label_value": _WHOLE}
    if ours.rows != theirs.rows or not _fits(theirs, keys):
        return None
    if not _fits(ours, {**keys, "score": (pl.Float32, pl.Float64)}):
        return None
    found = _truths(theirs)
    if found is None:
        return None
    table, low, values = found
    n = ours.rows
    unit, outcome, at = np.empty(n, np.int32), np.empty(n, np.uint8), 0
    parts: list[Array] = []
    one = -1
    for batch in ours:
        label, datum, score = _small(batch, "label_value"), _ids(batch), _score(batch)
        if label is None or datum is None or score is None:
            return None
        one = int(label[0]) if one < 0 and label.size else one
        here = slice(at, at + label.size)
        if not meet(datum, label, low, one, table, unit[here], outcome[here]):
            return None
        at += label.size
        parts.append(score)
    ids: list[object] = [*range(low, low + values.size)]
    few: dict[str, dict[str, list[object]]] = {
        PREDICTIONS: {
            "datum_id": ids,
            "label_value": [one] * len(ids),
            "score": [0.5] * len(ids),
        },
        GROUND_TRUTHS: {"datum_id": ids, "label_value": values.tolist()},
    }
    frames = told_by(ready, batches, few, options)
    fit = encode_batch(_copy(frames))
    assert fit.rows is not None
    assert fit.rows.label is not None
    code_of = np.zeros(HIGHEST + 1, np.uint8)
    code_of[values] = fit.truth
    truth = code_of[labels_of(table)]
    del table
    label = np.broadcast_to(np.int32(fit.rows.label[0]), n)
    shown = np.ones(len(fit.labels), bool)
    scored = Scored(tuple(parts), outcome, label, unit, -1, shown, fit.rows.single)
    datums = Datums(None, pl.DataFrame(), rows=n, low=low)
    units = Units(None, None, truth, None, None, None, None)
    tallies = Tallies(datums, fit.labels, None, units, scored, {})
    return Streamed(frames, {role: table.rows for role, table in batches.items()}, tallies)


def _truths(batches: Batches) -> tuple[Array, int, Array] | None:
    """Label of every datum, one more than itself, uint8 [n], the lowest id, and the labels.

    None where ids leave gaps in their range, or one stands twice.
    """
    n = batches.rows
    # As many datums as rows reach no further than that from any one of them, on either side.
    # Of bytes that are never touched the system holds no memory.
    room, first = np.zeros(0, np.uint8), 0
    seen = np.zeros(256, np.bool_)
    for batch in batches:
        label, datum = _small(batch, "label_value"), _ids(batch)
        if label is None or datum is None:
            return None
        if not room.size and datum.size:
            first = max(int(datum[0]) - n, _LOWEST)
            room = np.zeros(min(2 * n, -_LOWEST - first), np.uint8)  # no place above the last id
        if not write_truths(datum, label, first, seen, room):
            return None
    low = int((room[: n + 1] != 0).argmax())
    table = room[low : low + n]
    return (table, first + low, np.flatnonzero(seen)) if table.all() else None


class _Scores:
    """Scores of one table: codes while few differ, pieces of the column from then on."""

    def __init__(self, *, may_count: bool) -> None:
        self._counts = FewScores(N_OUTCOMES) if may_count else None
        self._pieces: list[Array] = []

    def add(self, score: Array, outcome: Array) -> None:
        """The scores of a batch, float64 [n], and its labels, uint8 [n]."""
        if self._counts is not None:
            values = self._counts.values
            codes = self._counts.add(score, outcome, coded=True)
            if codes is not None:
                self._pieces.append(codes)
                return
            self._counts = None
            self._pieces = [values[codes] for codes in self._pieces]
        self._pieces.append(score)

    @property
    def parts(self) -> tuple[Array, ...]:
        """The pieces, unless they are codes."""
        return () if self._counts is not None else tuple(self._pieces)

    def few(self, *, swapped: bool) -> Few | None:
        """The codes, if they are; ``swapped`` where label 0 is the one that scores are of."""
        if self._counts is None:
            return None
        score, count = self._counts.ascending
        count = count[[1, 0, 2]] if swapped else count
        return Few(self._counts.values, tuple(self._pieces), score, count)


def _copy(frames: Frames) -> Frames:
    """Frames that may be used up."""
    return msgspec.structs.replace(
        frames, sides={role: frame.clone() for role, frame in frames.sides.items()}
    )


def _fits(table: Batches, wanted: dict[str, tuple[Any, ...]]) -> bool:
    """Whether a table has these columns and no others, of these dtypes."""
    return table.schema.keys() == wanted.keys() and all(
        table.schema[name] in dtypes for name, dtypes in wanted.items()
    )


def _small(batch: pl.DataFrame, name: str) -> Array | None:
    """Labels as bytes, uint8 [n]; None with nulls, or labels below 0 or above ``HIGHEST``."""
    column = batch[name]
    if column.null_count():
        return None
    if column.dtype == pl.Boolean:
        return column.cast(pl.UInt8).to_numpy()
    values = column.to_numpy()
    if values.itemsize > 1 and values.size and (values.min() < 0 or values.max() > HIGHEST):
        return None
    label: Array = values.view(np.uint8) if values.itemsize == 1 else values.astype(np.uint8)
    return label if label.max(initial=0) <= HIGHEST else None


def _ids(batch: pl.DataFrame) -> Array | None:
    """Ids, int64 [n]; None with nulls."""
    column = batch["datum_id"]
    return None if column.null_count() else column.to_numpy()


def _score(batch: pl.DataFrame) -> Array | None:
    """Scores, float64 [n]; None with nulls, NaN or infinity."""
    column = batch["score"]
    if column.null_count():
        return None
    score = column.cast(pl.Float64).to_numpy()
    return score if sums_up(score) else None


def sums_up(score: Array) -> bool:
    """Whether the sum is finite: then no value is NaN or infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(score.sum()))
