"""Regression as a task."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from ... import metrics
from ...dialects import Dialect
from ...ingest.frames import Frames
from ...ingest.problems import Note
from ...metrics import Metric
from ...schemas.arrays import Array
from ...schemas.errors import InputError
from ...schemas.results import frame_schema, in_schema
from ...schemas.wording import option
from ...tally.paired_values import Paired, PairedView
from ..contents import ROWS, Content, Contents, Rows
from ..counted import cells_per_group, counts_in_parts, view_of
from ..per_datum import FRAME, per_datum_frame
from ..task import Common, Cuts, EachView, Losses, PageFrame, Sample, Task, Unanswered
from .dialects import (
    GROUP,
    INTERVALS,
    PLAIN,
    QUANTILES,
    SCALES,
    Settings,
    intervals_of,
    quantiles_of,
    read_of,
)
from .encode import STATUS, Tallies, encode_batch
from .tallies import ERROR, common, counted, errors_of, merge, tally

# The metrics that tables can carry: those of columns that are there.

_CALLED = {
    QUANTILES: "columns of quantiles ('q0.1', 'q0.9', ...)",
    INTERVALS: "columns 'lower' and 'upper' (or 'lo0.8' and 'hi0.8', of a level)",
}
_MEANT = {QUANTILES: "q0.5", INTERVALS: "lower"}
_OF_TRUTHS = {*SCALES, GROUP}


def _called(lacking: list[str]) -> str:
    """Return advice on naming the missing columns, and the table for columns of the truth."""
    name = next((one for one in lacking if one not in _CALLED), _MEANT.get(lacking[0], ""))
    truths = [f"{one!r}" for one in dict.fromkeys(lacking) if one in _OF_TRUTHS]
    side = (
        f" Of two tables, {' and '.join(truths)} is read from the ground truths." if truths else ""
    )
    trained = (
        f" {' and '.join(repr(one) for one in SCALES if one in lacking)} may come from"
        f" {option('training', 'train.parquet')}."
        if set(SCALES) & set(lacking)
        else ""
    )
    return f"{side}{trained} Under another name, write {option('columns', {'mine': name})}, or"


def fit(
    metrics: tuple[Metric, ...], frames: Frames, settings: Settings, *, asked_for: bool
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
    unfit, columns_lacking = [], []
    for one in metrics:
        lacking = [name for name in one.needs if name not in here]
        if lacking and asked_for:
            columns_lacking += lacking
            columns = " and ".join(_CALLED.get(name, f"column {name!r}") for name in lacking)
            unfit.append(f"{one.name} needs {columns}")
        if "n_features" in one.params and settings.n_features is None:
            unfit.append(f"{one.name} needs {option('n_features', 12)}, the model's own number")
    if unfit:
        raise InputError(
            f"{'; '.join(unfit)}. Columns there: {', '.join(sorted(here))}."
            + (_called(columns_lacking) if columns_lacking else " Or")
            + " remove these metrics.",
            code="column_missing" if columns_lacking else "option_missing",
            columns=sorted(columns_lacking),
        )
    fitting = tuple(one for one in metrics if set(one.needs) <= here)
    return fitting, _note_of_level(fitting, here, settings) if distributed else []


def _note_of_level(metrics: tuple[Metric, ...], here: set[str], settings: Settings) -> list[Note]:
    """Return a note if the level of an interval is a default."""
    alone = "prediction" not in here and read_of(here)[:1] == [INTERVALS]  # judges single datums
    read = alone or any("interval_level" in one.params for one in metrics)
    if settings.level_given or not read or all(level for *_, level in intervals_of(here)):
        return []
    message = (
        f"lower and upper are taken for a {settings.interval_level * 100:g} % interval"
        f" ({option('interval_level', settings.interval_level)}), which Winkler needs."
    )
    return [Note("interval_level", message)]


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
            own = _rows(paired.datum, code)
            each = errors_of(paired.take(own), error, settings)
            at = own[int(np.argmax(each))]
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
        own = _rows(paired.datum, code)
        each = errors_of(paired.take(own), error, settings)
        order = np.argsort(-each, kind="stable")
        shown = tuple(
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
            for at, value in zip(own[order].tolist(), each[order].tolist(), strict=True)
        )
        columns = ("target", "true", *(("predicted", "error") if error == ERROR else (error,)))
        out.append(Rows(columns=columns, rows=shown[:ROWS], left_out=max(0, own.size - ROWS)))
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
    lone = np.flatnonzero(tallies.present)
    datum = np.append(paired.datum, lone)
    order = np.argsort(datum, kind="stable")
    size = errors_of(paired, error, settings)
    value = np.append(np.where(np.isinf(size), np.nan, size), np.full(lone.size, np.nan))
    key = np.append(paired.key, np.full(lone.size, len(tallies.labels.key_names)))
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
    asked = {"metrics": metrics.names("regression"), "n_features": 1}
    yield table, None, asked
    keys = pl.DataFrame({"label_key": ["a", "b"], "weight": [1.0, 0.5]})
    yield table.join(keys, how="cross"), None, asked


# The plan of a regression run in words.


def explain(settings: Settings, needs: frozenset[str]) -> list[str]:
    """Return one line per step.

    Args:
        needs: columns that are read.
    """
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
    examine=lambda frames, settings, needs, workers: encode_batch(frames),
    in_parts=counts_in_parts("paired", merge, rows_of_frame),
    unanswered=Unanswered(counted),
    common=Common(common, fills=False),
    page=(PageFrame(name="actual_by_prediction", metrics=("ActualByPrediction",)),),
)
