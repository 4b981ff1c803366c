"""Regression as a task: pairs of a predicted and a true number, by datum and label key."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ... import metrics
from ...dialects import Dialect
from ...ingest.frames import Frames
from ...ingest.ids import encode
from ...ingest.problems import Note, note_of
from ...metrics import Metric
from ...schemas.arrays import Array
from ...schemas.contract import DEFAULT_LABEL_KEY
from ...schemas.errors import N_NAMES, InputError
from ...schemas.results import frame_schema, in_schema
from ...schemas.wording import option
from ...tallies.datums import Labels
from ...tallies.paired_values import Paired, PairedView
from ...tallies.registry import stored_as
from ...tallies.stats import Column, Fill, Stats, row_places
from ..contents import ROWS, Content, Contents, Rows
from ..counted import CountTallies, cells_per_group, counts_in_parts, merge_by, view_of
from ..encoding import (
    SENTINELS,
    Workers,
    encode_sides,
    hashes_of,
    is_usual,
    pop_column,
    pop_if_present,
    pop_numbers,
    row_numbers,
    table_datums,
    weights_of,
)
from ..per_datum import FRAME, per_datum_frame
from ..rules import out_of_step
from ..task import Common, Cuts, EachView, Losses, PageFrame, Sample, Task, Unanswered
from .dialects import (
    GROUP,
    IDS,
    INTERVALS,
    PLAIN,
    QUANTILES,
    SAMPLES,
    SCALES,
    Settings,
    intervals_of,
    numbers_of,
    quantiles_of,
    read_of,
)
from .metrics.distributions import of_quantiles, of_samples, winkler

# Encoding: tables become pairs of a predicted and a true number.

STATUS = ("scored", "no_prediction", "no_target", "no_values")
"""Standing of a datum; those of the first have a number."""


@stored_as("regression.run/1")
class Tallies(CountTallies, frozen=True, kw_only=True):
    """Tally of a regression run, whose labels are the targets: ``support`` counts rows.

    Attributes:
        paired: rows of both sides, :class:`~evalengine.tallies.paired_values.Paired`, or on disk
            :class:`~evalengine.tallies.tables.InFiles`.
    """

    paired: Any


def encode_batch(frames: Frames) -> Tallies:
    """Pair the numbers of checked tables, as a tally without errors of single datums."""
    return _from_table(frames, frames.table) if frames.table is not None else _from_sides(frames)


def _keys(columns: list[pl.Series | None], sizes: list[int]) -> tuple[Labels, list[Array]]:
    """The label keys of all rows, ascending, and int32 codes of each column's rows."""
    default = pl.Series("label_key", [DEFAULT_LABEL_KEY], dtype=pl.String)
    if all(column is None for column in columns):
        names, codes = default, [np.zeros(n, np.int32) for n in sizes]
    else:
        names, codes = encode(
            [
                default.new_from_index(0, n) if column is None else column
                for column, n in zip(columns, sizes, strict=True)
            ]
        )
    if not len(names):
        names = default
    none = pl.lit(None, pl.String).alias("label_name")
    table = pl.DataFrame({"label_key": names, "label_value": names}).with_columns(none)
    return Labels.of(table), [code.astype(np.int32, copy=False) for code in codes]


def _predicted(table: pl.DataFrame) -> Array:
    """Return the predictions, NaN if only distributions were predicted."""
    if "prediction" in table.columns:
        return pop_numbers(table, "prediction")
    return np.full(table.height, np.nan)


def _listed(column: pl.Series) -> Array:
    """Lists of as many numbers each, float64 [n, m]."""
    flat = column.explode(empty_as_null=False, keep_nulls=False).cast(pl.Float64).to_numpy()
    return flat.reshape(len(column), -1) if len(column) else flat.reshape(0, 1)


def _further_columns(*tables: pl.DataFrame) -> dict[str, tuple[int, Array]]:
    """Further columns by name: which table has them, and their numbers."""
    columns: dict[str, tuple[int, Array]] = {}
    for i, table in enumerate(tables):
        if PLAIN.issuperset(table.columns):
            continue
        for name in numbers_of(table.columns):
            columns[name] = i, pop_numbers(table, name)
        if SAMPLES in table.columns:
            columns[SAMPLES] = i, _listed(pop_column(table, SAMPLES))
        for name in IDS:
            if name in table.columns:
                columns[name] = i, hashes_of(pop_column(table, name))
    return columns


def _from_table(frames: Frames, table: pl.DataFrame) -> Tallies:
    height = table.height
    numbers = row_numbers(table)
    key = pop_if_present(table, "label_key")
    datums, codes = table_datums(frames, table, height, numbers)
    datum = (
        np.arange(height, dtype=np.int32) if codes is None else codes.astype(np.int32, copy=False)
    )
    labels, (key_code,) = _keys([key], [height])
    paired = Paired(
        datum,
        key_code,
        pop_numbers(table, "target"),
        _predicted(table),
        weights_of(table),
        {name: values for name, (_, values) in _further_columns(table).items()},
    )
    status = np.full(len(datums), STATUS.index("no_values"), np.int8)
    status[datum] = STATUS.index("scored")
    paired = paired if codes is None and key is None else _in_order(paired)
    return Tallies(datums=datums, labels=labels, paired=paired, present=status)


def _in_order(paired: Paired) -> Paired:
    """Rows by datum and label key."""
    place = paired.datum.astype(np.int64) * (int(paired.key.max(initial=0)) + 1) + paired.key
    return paired if bool((np.diff(place) > 0).all()) else paired.take(np.argsort(place))


def _from_sides(frames: Frames) -> Tallies:
    predictions, truths = frames.predictions, frames.ground_truths
    row_numbers(predictions), row_numbers(truths)
    sides = (truths, predictions)
    keys = [pop_if_present(side, "label_key") for side in sides]
    labels, key_codes = _keys(keys, [side.height for side in sides])
    datums, codes = encode_sides(frames)
    pairs, places = _pairs(len(labels), codes, key_codes)
    true, predicted = (np.full(pairs.size, -1, np.int64) for _ in sides)
    for side, place in zip((true, predicted), places, strict=True):
        side[place] = np.arange(place.size)
    matched = np.flatnonzero((true >= 0) & (predicted >= 0))
    rows = true[matched], predicted[matched]
    weight = weights_of(truths)
    paired = Paired(
        (pairs[matched] // len(labels)).astype(np.int32),
        (pairs[matched] % len(labels)).astype(np.int32),
        pop_numbers(truths, "target")[rows[0]],
        _predicted(predictions)[rows[1]],
        None if weight is None else weight[rows[0]],
        {name: values[rows[side]] for name, (side, values) in _further_columns(*sides).items()},
    )
    has_target, answered = (np.zeros(len(datums), np.bool_) for _ in sides)
    has_target[codes[0]], answered[codes[1]] = True, True
    status = np.where(has_target, STATUS.index("no_prediction"), STATUS.index("no_target"))
    status = np.where(has_target | answered, status, STATUS.index("no_values")).astype(np.int8)
    status[paired.datum] = STATUS.index("scored")
    if len(labels) > 1:  # otherwise whole datums are missing, which checks report
        single = pairs[(true >= 0) != (predicted >= 0)] // len(labels)
        single = single[(has_target & answered)[single]]
        if single.size:
            ids = datums.id.gather(np.unique(single)[:N_NAMES]).to_list()
            words = ("target", "targets", "on only one side, of datums")
            frames.notes.append(note_of("keys_of_one_side", int(single.size), words, ids))
    return Tallies(datums=datums, labels=labels, paired=paired, present=status)


def _pairs(width: int, datums: list[Array], keys: list[Array]) -> tuple[Array, list[Array]]:
    """Return the pairs of datum and label key of both sides, ascending, and the pair of each row.

    Args:
        width: number of label keys; a pair is datum * width + key.
        datums: codes of each side's rows.
        keys: codes of each side's rows.
    """
    if width == 1:
        n = max((int(codes.max(initial=-1)) for codes in datums), default=-1) + 1
        return np.arange(n), datums
    every = [code.astype(np.int64) * width + key for code, key in zip(datums, keys, strict=True)]
    distinct, places = encode([pl.Series("pair", pairs) for pairs in every])
    return distinct.to_numpy(), places


# Tally: pairs of numbers, and the errors of single datums.

ERROR = "AbsoluteError"
"""The number of single datums that have a prediction."""
_OTHERS = {
    SAMPLES: ("CRPS", of_samples),
    QUANTILES: ("CRPSFromQuantiles", of_quantiles),
    INTERVALS: ("Winkler", winkler),
}
"""Input of distributions -> per-datum number if there is no prediction."""


def tally(frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers) -> Tallies:
    """Encode, match and tally.

    Args:
        needs: columns that metrics read in addition to predictions and targets.
    """
    begun = time.perf_counter()
    here = {name for side in frames.sides.values() for name in side.columns}
    read = [] if "prediction" in here else read_of(here)
    error = _OTHERS[read[0]][0] if read else ERROR
    batch = _noted(frames, settings)
    matched = time.perf_counter()
    stats = stats_of(batch.present, batch.paired, error, settings)
    seconds = {"match": matched - begun, "measure": time.perf_counter() - matched}
    return msgspec.structs.replace(batch, stats=stats, seconds=seconds)


def _noted(frames: Frames, settings: Settings) -> Tallies:
    """Encode, and add the notes on values."""
    batch = encode_batch(frames)
    if settings.training is None:  # else a rule names the series
        _note_zero_scale(frames, batch)
    _warn_of_units(frames, batch)
    _warn_of_sentinels(frames, batch.paired)
    return batch


def _note_zero_scale(frames: Frames, batch: Tallies) -> None:
    """Add a note of rows whose scale is 0."""
    for name in SCALES:
        if name not in batch.paired.beside:
            continue
        zero = np.flatnonzero(batch.paired.beside[name] == 0)
        if zero.size:
            ids = batch.datums.id.gather(np.unique(batch.paired.datum[zero])[:5]).to_list()
            words = ("row", "rows", f"whose {name!r} is 0, so that numbers with it are undefined")
            frames.notes.append(note_of("zero_scale", int(zero.size), words, ids))


_LEAST, _SAMPLED, _LINEAR = 20, 100_000, 0.9  # rows, rows at most, correlation
_TARGETS = 20  # looked at, at most


def _correlation(ours: Array, theirs: Array) -> float:
    """Return Pearson's correlation; 0 if one side is constant."""
    a, b = ours - ours.mean(), theirs - theirs.mean()
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale else 0.0


def _warn_of_units(frames: Frames, batch: Tallies) -> None:
    """Add a warning of predictions in another unit: far off, but on a line with the targets."""
    paired, names = batch.paired, batch.labels.key_names
    for code, name in enumerate(names[:_TARGETS]):
        rows = slice(None) if len(names) == 1 else paired.key == code
        target, prediction = paired.target[rows], paired.prediction[rows]
        if target.size < _LEAST:
            continue
        step = max(1, target.size // _SAMPLED)
        target, prediction = target[::step], prediction[::step]
        with np.errstate(all="ignore"):
            spread = target - target.mean()
            if not ((prediction - target) ** 2).sum() > (spread**2).sum() > 0:
                continue
            centred = prediction - prediction.mean()
            covariance, own_spread = float((spread * centred).sum()), float((centred**2).sum())
            r = covariance / np.sqrt(own_spread * float((spread**2).sum()))
        if not abs(r) >= _LINEAR:
            ours, theirs = paired.prediction[rows], paired.target[rows]
            naive = (ours[1:] == theirs[:-1]).mean() > _NAIVE
            if frames.whole and not naive and (note := out_of_step(ours, theirs, _correlation)):
                frames.notes.append(note)
            continue
        factor = covariance / own_spread
        offset = float(target.mean() - factor * prediction.mean())
        of = f"targets {name!r}" if len(names) > 1 else "targets"
        facts = {"correlation": float(r), "factor": factor, "offset": offset}
        message = (
            f"errors are larger than the spread of the {of}, but predictions x {factor:.4g}"
            f" {offset:+.4g} nearly fit them (correlation {r:.2f}):"
            f" {'is the sign flipped' if r < 0 else 'are the units different'}?"
        )
        kind = "sign_flipped" if r < 0 else "units_differ"
        frames.notes.append(Note(kind, message, facts={**facts, "target": str(name)}, warning=True))


_NAIVE = 0.5  # share of predictions that are the target of the row before
_QUARTILES = 10_000  # rows whose quartiles are computed
_REPEATED, _FAR = 3, 10.0  # rows of a sentinel, and interquartile ranges to all other values


@np.errstate(all="ignore")
def _warn_of_sentinels(frames: Frames, paired: Paired) -> None:
    """Add a warning of one value that repeats far outside all others, such as -999.

    Usual marks are far if they are beyond the range of all others, other values if they are beyond
    ten interquartile ranges.
    """
    if paired.target.size < _LEAST:
        return
    step = max(1, paired.target.size // _QUARTILES)
    for side, values, others in (
        ("predictions", paired.prediction, paired.target),
        ("targets", paired.target, paired.prediction),
    ):
        low, middle, high = np.quantile(values[::step], [0.25, 0.5, 0.75])
        far = _FAR * (high - low)
        for extreme in (values.min(), values.max()):
            usual = float(extreme) in SENTINELS
            if usual:
                rest = values[values != extreme]
                usual = rest.size > 0 and is_usual(float(extreme), rest.min(), rest.max())
            if not usual and not 0 < far < abs(extreme - middle) < np.inf:
                continue
            same = values == extreme
            n = int(np.count_nonzero(same))
            if (n < _REPEATED and frames.whole) or 2 * n >= same.size:
                continue
            rest = values[~same]
            gap = min(far or np.inf, np.ptp(rest) or np.inf) if usual else far
            # A true extreme has neighbours, or the other side is extreme there too.
            if np.abs(rest - extreme).min() <= gap:
                continue
            opposite = others[same]
            if not (opposite == extreme).all() and np.abs(np.median(opposite) - extreme) <= gap:
                continue
            what = (
                f"whose {side[:-1]} is {extreme:g}, far outside all others: a mark of missing"
                " values? Remove these rows"
            )
            note = note_of("sentinel_values", n, ("row", "rows", what))
            facts = {"side": side, "value": str(extreme), "count": n, "least": _REPEATED}
            frames.notes.append(msgspec.structs.replace(note, warning=True, facts=facts))


def errors_of(paired: Paired, error: str, settings: Settings) -> Array:
    """Return the error of each row, float64 [n]."""
    of = dict(_OTHERS.values()).get(error)
    if of is not None:
        return of(paired, settings)
    errors = paired.error
    return np.abs(errors, out=errors)


def stats_of(present: Array, paired: Paired, error: str, settings: Settings) -> Stats:
    """Return the error of every datum, the largest over its targets.

    Args:
        present: int8 [n_datums], status of each datum.
        paired: rows that both sides have, by datum.
        error: name of the error.
    """
    value = errors_of(paired, error, settings)
    if value.size != present.size or paired.key.any():  # else row i is datum i
        begins = np.flatnonzero(np.diff(paired.datum, prepend=-1))
        worst = np.full(present.size, np.nan)
        if begins.size:
            worst[paired.datum[begins]] = np.fmax.reduceat(value, begins)
        value = worst
    value[np.isinf(value)] = np.nan  # beyond the range of float64
    column = Column(metric=error, values=value[:, None, None], reason="not on both sides")
    return Stats(present == 0, {error: (column,)}, (STATUS, present))


merge = merge_by(
    "paired",
    lambda whole, settings: stats_of(
        whole.present, whole.paired, next(iter(whole.stats.columns)), settings
    ),
)


def counted(tallies: Tallies) -> Array:
    """Return the datums that enter means, bool [n_datums]."""
    return tallies.stats.counted


def common(tallies: Sequence[Tallies], codes: Sequence[Array], fill: Fill) -> list[Tallies] | None:
    """The tallies with the targets of datums that all runs predict; see :class:`..task.Common`."""
    places = row_places(tallies, [one.paired for one in tallies], codes, "key")
    totals = np.zeros(2 + max(int(place.max(initial=-1)) for place in places), np.int64)
    for place in places:
        totals[place] += 1  # of rows that are not compared in the last
    totals[-1] = len(tallies)
    if (totals[:-1] == len(tallies)).all():
        return None
    return [
        msgspec.structs.replace(one, paired=one.paired.take(totals[place] == len(tallies)))
        for one, place in zip(tallies, places, strict=True)
    ]


# The metrics that tables can carry: those of columns that are there.


_CALLED = {
    QUANTILES: "columns of quantiles ('q0.1', 'q0.9', ...)",
    INTERVALS: "columns 'lower' and 'upper' (or 'lo0.8' and 'hi0.8', of a level)",
}
_USUAL = {QUANTILES: "q0.5", INTERVALS: "lower"}
_OF_TRUTHS = {*SCALES, GROUP}


def _called(missing: list[str]) -> str:
    """Return advice on naming the missing columns, and the table for columns of the truth."""
    name = next((one for one in missing if one not in _CALLED), _USUAL.get(missing[0], ""))
    truths = [f"{one!r}" for one in dict.fromkeys(missing) if one in _OF_TRUTHS]
    side = (
        f" Of two tables, {' and '.join(truths)} is read from the ground truths." if truths else ""
    )
    trained = (
        f" {' and '.join(repr(one) for one in SCALES if one in missing)} may come from"
        f" {option('training', 'train.parquet')}."
        if set(SCALES) & set(missing)
        else ""
    )
    return f"{side}{trained} Under another name, write {option('columns', {'mine': name})}, or"


def fit(
    metrics: tuple[Metric, ...], frames: Frames, settings: Settings, *, requested: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """Return the metrics as planned, after checking that the tables have their columns.

    Raises:
        InputError: the columns of a metric named by the user are missing.
    """
    here = {name for side in frames.sides.values() for name in side.columns}
    if distributed := not here <= PLAIN:
        here |= {QUANTILES} if quantiles_of(here) else set()
        here |= {INTERVALS} if intervals_of(here) else set()
    if not all(side.height for side in frames.sides.values()):
        here.add("prediction")  # no column is missing on a side without rows
    unfit, all_missing = [], []
    for one in metrics:
        missing = [name for name in one.needs if name not in here]
        if missing and requested:
            all_missing += missing
            columns = " and ".join(_CALLED.get(name, f"column {name!r}") for name in missing)
            unfit.append(f"{one.name} needs {columns}")
        if "n_features" in one.params and settings.n_features is None:
            unfit.append(f"{one.name} needs {option('n_features', 12)}, the model's own number")
    if unfit:
        raise InputError(
            f"{'; '.join(unfit)}. Columns there: {', '.join(sorted(here))}."
            + (_called(all_missing) if all_missing else " Or")
            + " remove these metrics.",
            code="column_missing" if all_missing else "option_missing",
            columns=sorted(all_missing),
        )
    fitting = tuple(one for one in metrics if set(one.needs) <= here)
    return fitting, _note_of_level(fitting, here, settings) if distributed else []


def _note_of_level(metrics: tuple[Metric, ...], here: set[str], settings: Settings) -> list[Note]:
    """Return a note if the level of an interval is a default."""
    ranged = "prediction" not in here and read_of(here)[:1] == [INTERVALS]  # judges single datums
    read = ranged or any("interval_level" in one.params for one in metrics)
    if settings.level_given or not read or all(level for *_, level in intervals_of(here)):
        return []
    message = (
        f"lower and upper are taken for a {settings.interval_level * 100:g} % interval"
        f" ({option('interval_level', settings.interval_level)}), which Winkler needs."
    )
    return [Note("interval_level", message)]


def weights(tallies: Tallies) -> Array | None:
    """See :attr:`..task.Task.weights`."""
    paired = tallies.paired
    if paired.weight is None:
        return None
    return np.bincount(paired.datum, paired.weight, len(tallies.datums))


def truth(tallies: Tallies) -> Array:
    """See :attr:`..task.Task.truth`: sums of targets, each times a number that its key determines.

    Unknown for datums without a row of every label key, whose targets are not in the tally.
    """
    paired, names = tallies.paired, pl.Series(tallies.labels.key_names).cast(pl.String)
    n = len(tallies.datums)
    factor = 0.5 + np.ldexp(hashes_of(names).astype(np.float64), -65)
    values = np.bincount(paired.datum, paired.target * factor[paired.key], n)
    return np.where(np.bincount(paired.datum, minlength=n) < len(names), np.nan, values)


# Loss of single datums, their error; and their contents.


def losses(
    tallies: Tallies, settings: Settings, metrics: Sequence[Metric], dialect: Dialect, *, cuts: Cuts
) -> Losses:
    """See :class:`..task.JudgeDatums`; of several targets the worst counts."""
    ((error, (column,)),) = tallies.stats.columns.items()
    value = column.values[:, 0, 0]
    paired, names = tallies.paired, tallies.labels.key_names

    def why(codes: Array) -> list[str]:
        sentences = []
        for code in codes.tolist():
            rows = _rows(paired.datum, code)
            each = errors_of(paired.take(rows), error, settings)
            at = rows[int(np.argmax(each))]
            of = f"{names[paired.key[at]]}: " if len(names) > 1 else ""
            error_text = f"predicted {paired.prediction[at]:.6g}"
            if error != ERROR:
                error_text = f"{error} {each.max():.6g}"
            sentences.append(f"{of}{error_text} instead of {paired.target[at]:.6g}")
        return sentences

    return Losses(metric=error, value=value, higher=False, best=0.0, ties=lambda codes: [], why=why)


def contents(tallies: Tallies, settings: Settings, codes: Array) -> list[Content]:
    """See :attr:`..contents.Contents.of_tally`: targets of datums, the worst first."""
    paired, names = tallies.paired, tallies.labels.key_names
    (error,) = tallies.stats.columns
    out: list[Content] = []
    for code in codes.tolist():
        rows = _rows(paired.datum, code)
        each = errors_of(paired.take(rows), error, settings)
        order = np.argsort(-each, kind="stable")
        listed = tuple(
            (
                str(names[paired.key[at]]),
                f"{paired.target[at]:.6g}",
                *(
                    (
                        f"{paired.prediction[at]:.6g}",
                        f"{paired.prediction[at] - paired.target[at]:+.6g}",
                    )
                    if error == ERROR
                    else (f"{value:.6g}",)
                ),
            )
            for at, value in zip(rows[order].tolist(), each[order].tolist(), strict=True)
        )
        columns = ("target", "true", *(("predicted", "error") if error == ERROR else (error,)))
        out.append(Rows(columns=columns, rows=listed[:ROWS], left_out=max(0, rows.size - ROWS)))
    return out


def _rows(datum: Array, code: int) -> Array:
    """The rows of a datum; rows go by datum."""
    return np.arange(np.searchsorted(datum, code), np.searchsorted(datum, code, side="right"))


# Errors of single datums: a row each, or one a target that both sides have.


def own_frames(
    frame: str,
    tallies: Tallies,
    settings: Settings,
    each_view: EachView,
    *,
    cuts: Mapping[str, set[int | None]],
) -> pl.DataFrame:
    """See :class:`..task.OwnFrames`: the frame of single datums."""
    (error,) = tallies.stats.columns
    if len(tallies.labels.key_names) == 1:
        return per_datum_frame(tallies.stats, tallies.datums, {error: {None}})
    return _of_several(tallies, error, settings)


def _of_several(tallies: Tallies, error: str, settings: Settings) -> pl.DataFrame:
    """Return rows by datum and label key; datums without any have a row with the reason."""
    paired: Paired = tallies.paired
    empty = np.flatnonzero(tallies.present)
    datum = np.append(paired.datum, empty)
    order = np.argsort(datum, kind="stable")
    size = errors_of(paired, error, settings)
    value = np.append(np.where(np.isinf(size), np.nan, size), np.full(empty.size, np.nan))
    key = np.append(paired.key, np.full(empty.size, len(tallies.labels.key_names)))
    names = [
        json.dumps({"label_key": name}, ensure_ascii=False) for name in tallies.labels.key_names
    ]
    schema = {**frame_schema(FRAME, datum=tallies.datums.id_dtype), "parameters": pl.String()}
    columns = {
        "datum_id": tallies.datums.id.gather(datum[order]),
        "value": pl.Series(value[order], nan_to_null=True),
        "status": pl.Series(STATUS, dtype=pl.String).gather(tallies.present[datum[order]]),
        "parameters": pl.Series([*names, None], dtype=pl.String).gather(key[order]),
    }
    return in_schema(columns, schema, metric=error)


def rows_of_frame(tallies: Tallies) -> int:
    """Return the number of rows of the per-datum frame, for a tally on disk."""
    if len(tallies.labels.key_names) == 1:
        return len(tallies.datums)
    rows: int = sum(paired.datum.size for paired, _, _ in tallies.paired.blocks(None))
    for stats, _, _ in tallies.stats.blocks(None):
        rows += int(np.count_nonzero(stats.status[1]))
    return rows


# Tiny tables that make every kernel of regression run once.


def samples() -> Iterator[Sample]:
    """Values with ties, of one target and of two, with weights and without."""
    n = 8
    values = np.arange(n) / 2 + 0.5
    table = pl.DataFrame(
        {
            "datum_id": np.arange(n),
            "prediction": values[::-1].round(),
            "target": values,
            "scale": np.ones(n),
            "squared_scale": np.ones(n),
            "group_id": ["a", "b"] * (n // 2),
            "series": ["a", "b"] * (n // 2),
            "samples": np.ones((n, 2)),
            "q0.1": values - 1,
            "q0.9": values,
            "lower": values - 1,
            "upper": values,
        }
    )
    given = {"metrics": metrics.names("regression"), "n_features": 1}
    yield table, None, given
    keys = pl.DataFrame({"label_key": ["a", "b"], "weight": [1.0, 0.5]})
    yield table.join(keys, how="cross"), None, given


# The plan of a regression run in words.


def explain(settings: Settings, needs: frozenset[str]) -> list[str]:
    """Return one line per step."""
    return [
        "match     rows of both sides by datum and label key",
        f"tally     {', '.join(sorted(needs))} of every row",
        "sums      exact, over rows with a prediction and a target, each times its weight",
    ]


TASK = Task(
    name="regression",
    settings=Settings,
    fit=fit,
    tally=tally,
    merge=merge,
    view=view_of(PairedView, "paired"),
    cells_per_group=cells_per_group,
    own_frames=own_frames,
    explain=explain,
    samples=samples,
    losses=losses,
    contents=Contents(of_tally=contents),
    no_limits="every row has one prediction and one target, so no choice is open",
    drawn=PairedView.drawn,
    warm=("parts", "errors"),
    examine=lambda frames, settings, needs, workers: _noted(frames, settings),
    truth=truth,
    weights=weights,
    in_parts=counts_in_parts("paired", merge, rows_of_frame),
    unanswered=Unanswered(counted),
    common=Common(common, fills=False),
    page=(PageFrame(name="actual_by_prediction", metrics=("ActualByPrediction",)),),
)
