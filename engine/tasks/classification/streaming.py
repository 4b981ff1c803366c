"""Large binary tables scored without holding their columns: batches are checked and kept small.

One table of labels 0 and 1 with their scores, and slices of integers or texts if there are any; or
two tables in which every datum, an integer of a range without gaps, has one truth and one score of
the same label. Few distinct scores become counts, and codes where rows are needed, slices become
codes, ids become places in a table of bytes. Where anything else stands in a row the tables are
read whole instead, which takes every kind of row and names those that are wrong.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from ...inputs.batches import Batches, in_batches, told_by
from ...inputs.collecting import Prepared
from ...inputs.frames import Frames
from ...inputs.slices import SlicePlan
from ...kernels.few_scores import FewScores
from ...kernels.label_matching import N_OUTCOMES
from ...kernels.pairing import HIGHEST, labels_of, meet, write_truths
from ...readers.tables import READ_FAILURES
from ...schemas.contract import GROUND_TRUTHS, PREDICTIONS, TABLE
from ...schemas.options import Options
from ...tally.datums import CodedDatums, Datums
from ...tally.units import Few, Scored, Units
from ..workers import Workers
from .coded_slices import SLICED, Coded, CodedSlices, slice_columns
from .counting import thresholds_of
from .encode import encode_batch
from .settings import Settings
from .tallies import Tallies
from .whole_counts import count_whole

Array = np.ndarray[Any, Any]

_LARGE = 1 << 20  # rows from which tables are read in batches
_EXACT = 1 << 26  # rows below which counts of scores are as exact as the scores themselves
_LOWEST = -(1 << 63)  # of all ids
_SCORES = (pl.Float32, pl.Float64)
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
    ready: Prepared,
    options: Options,
    settings: Settings,
    needs: frozenset[str],
    counter: Workers | None = None,
) -> Streamed | None:
    """Tables read in batches and tallied; None where they have to be read whole.

    Args:
        ready: the tables, their columns recognised.
        options: those of the run.
        settings: the run's settings.
        needs: what must be tallied.
        counter: where scores are sorted, if counts are all that is asked of the whole set.

    Raises:
        InputError: what the columns alone tell is wrong.
    """
    if needs != {"scores"} or settings.multilabel:
        return None
    batches = in_batches(ready, options, _LARGE, sliced=TABLE in ready.sides)
    if batches is None:
        return None
    try:
        if TABLE in batches:
            return _one_table(ready, batches, options, settings, counter)
        return _two_tables(ready, batches, options)
    except READ_FAILURES:
        return None  # reading whole tables says what is wrong


def _one_table(
    ready: Prepared,
    batches: dict[str, Batches],
    options: Options,
    settings: Settings,
    counter: Workers | None,
) -> Streamed | None:
    """One table of labels 0 and 1 and the scores of one of them, with slices if there are any."""
    table, by = batches[TABLE], ready.plan.by
    pieces = slice_columns(ready.plan, TABLE)
    wanted = {"actual": _WHOLE, "score": _SCORES}
    if pieces is None or not _fits(table, {**wanted, **dict.fromkeys(pieces, SLICED)}):
        return None
    read = _rows(table, ready.plan, coded=counter is None or bool(by))
    if isinstance(read, _Scores):  # few scores at first, whose rows are needed after all
        read = _rows(table, ready.plan, coded=True)
    if not isinstance(read, _Rows):
        return None
    few: dict[str, list[object]] = {
        "actual": read.labels.tolist(),
        "score": [0.5] * read.labels.size,
        **{
            name: ["" if table.schema[name] == pl.String else 0] * read.labels.size
            for name in pieces
        },
    }
    frames = told_by(ready, batches, {TABLE: few}, options)
    fit = encode_batch(_copy(frames), positive_label=settings.positive_label)
    assert fit.rows is not None
    hit = read.truth if fit.rows.only == 1 else 1 - read.truth
    shown = np.zeros(len(fit.labels), bool)
    shown[fit.rows.only] = True
    scored = Scored(
        read.scores.parts, hit, None, None, fit.rows.only, shown, fit.rows.single,
        few=read.scores.few(swapped=fit.rows.only == 0),
    )  # fmt: skip
    datums = Datums(None, pl.DataFrame(), rows=table.rows)
    if by:
        columns = pl.DataFrame(schema={name: table.schema.get(name, pl.String()) for name in by})
        datums = CodedDatums(None, columns, rows=table.rows, coded=read.groups)
    counted = None
    if counter is not None and (by or scored.few is not None):
        thresholds = thresholds_of(settings, single=scored.single)
        counted = count_whole(scored, fit.labels, thresholds, counter)
    units = Units(None, None, read.truth, None, None, None, None, by_row=True)
    tallies = Tallies(datums, fit.labels, None, units, scored, {}, counted=counted)
    return Streamed(frames, {TABLE: table.rows}, tallies)


class _Rows(NamedTuple):
    """Rows of one table.

    Attributes:
        truth: uint8 [n], 0 or 1; empty where scores were counted and their rows are gone.
        labels: those of the two that are true of some row.
        scores: their scores.
        groups: slice to the group code of every row and the groups' names.
    """

    truth: Array
    labels: Array
    scores: _Scores
    groups: dict[str, Coded]


def _rows(table: Batches, plan: SlicePlan, *, coded: bool) -> _Rows | _Scores | None:
    """All rows of one table; None where one of them is not fit to be scored.

    Args:
        table: of labels and scores.
        plan: which slices there are, of columns beside them.
        coded: whether rows are needed of scores that are counted.

    Returns:
        the scores alone where rows were let go that turned out to be needed.
    """
    truth, at = np.empty(table.rows, np.uint8), 0
    scores = _Scores(may_count=table.rows < _EXACT, coded=coded)
    slices = CodedSlices({name: table.schema[name] for name in plan.pieces}, table.rows)
    seen = np.zeros(2, np.bool_)
    for batch in table:
        actual = _small(batch, "actual")
        score = _score(batch)
        if actual is None or score is None or actual.max(initial=0) > 1:
            return None
        if not actual.size:
            continue
        if not slices.add(batch, at):
            return None
        seen[[actual.min(), actual.max()]] = True
        if not scores.add(score, actual):
            return scores
        if scores.kept:
            truth[at : at + actual.size] = actual
        at += actual.size
    groups = slices.groups(plan.parts)
    if groups is None:
        return None
    return _Rows(truth if scores.kept else truth[:0], np.flatnonzero(seen), scores, groups)


def _two_tables(
    ready: Prepared,
    batches: dict[str, Batches],
    options: Options,
) -> Streamed | None:
    """Two tables of the same datums, one of the scores of one label."""
    ours, theirs = batches[PREDICTIONS], batches[GROUND_TRUTHS]
    keys = {"datum_id": (pl.Int64,), "label_value": _WHOLE}
    if ours.rows != theirs.rows or not _fits(theirs, keys):
        return None
    if not _fits(ours, {**keys, "score": _SCORES}):
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
    """Scores of one table: counted while few differ, pieces of the column from then on.

    Args:
        may_count: whether counts of them are exact.
        coded: whether codes of scores that are counted are kept, row by row.
    """

    def __init__(self, *, may_count: bool, coded: bool) -> None:
        self._counts = FewScores(N_OUTCOMES) if may_count else None
        self._coded = coded
        self._pieces: list[Array] = []

    @property
    def kept(self) -> bool:
        """Whether there is something of every row."""
        return self._coded or self._counts is None

    def add(self, score: Array, outcome: Array) -> bool:
        """Take over the scores of a batch, float64 [n], and its labels, uint8 [n].

        Returns:
            whether they go with those of the batches before: not if more differ than are counted,
            and no codes of those were kept.
        """
        if self._counts is not None:
            values = self._counts.values
            codes = self._counts.add(score, outcome, coded=self._coded)
            if codes is not None:
                if self._coded:
                    self._pieces.append(codes)
                return True
            self._counts = None
            if values.size and not self._coded:
                return False
            self._pieces = [values[codes] for codes in self._pieces]
        self._pieces.append(score)
        return True

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
