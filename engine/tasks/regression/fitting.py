"""The metrics that tables can carry: those of columns that are there."""

from __future__ import annotations

from ...ingest.frames import Frames
from ...ingest.problems import Note
from ...metrics.registry import Metric
from ...schemas.errors import InputError
from ...schemas.wording import option
from .dialects import GROUP, INTERVALS, QUANTILES, SCALES, intervals_of, quantiles_of, read_of
from .settings import Settings

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
    return f"{side}{trained} If one of them is it, write {option('columns', {'mine': name})}, or"


def fit(
    metrics: tuple[Metric, ...], frames: Frames, settings: Settings, *, asked_for: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """Return the metrics as planned, after checking that the tables have their columns.

    Args:
        asked_for: the user named the metrics.

    Raises:
        InputError: the columns of a metric named by the user are missing.
    """
    here = {name for side in frames.sides.values() for name in side.columns}
    if quantiles_of(here):
        here.add(QUANTILES)
    if intervals_of(here):
        here.add(INTERVALS)
    if not all(side.height for side in frames.sides.values()):
        here.add("prediction")  # a side without rows lacks no column
    told, columns_lacking = [], []
    for one in metrics:
        lacking = [name for name in one.needs if name not in here]
        if lacking and asked_for:
            columns_lacking += lacking
            columns = " and ".join(_CALLED.get(name, f"column {name!r}") for name in lacking)
            told.append(f"{one.name} needs {columns}")
        if "n_features" in one.params and settings.n_features is None:
            told.append(f"{one.name} needs {option('n_features', 12)}, the model's own number")
    if told:
        raise InputError(
            f"{'; '.join(told)}. Columns there: {', '.join(sorted(here))}."
            + (_called(columns_lacking) if columns_lacking else " Or")
            + " leave these metrics out.",
            code="column_missing" if columns_lacking else "option_missing",
            columns=sorted(columns_lacking),
        )
    fitting = tuple(one for one in metrics if set(one.needs) <= here)
    return fitting, _told_of_level(fitting, here, settings)


def _told_of_level(metrics: tuple[Metric, ...], here: set[str], settings: Settings) -> list[Note]:
    """Return a note if the level of an interval is a default."""
    alone = "prediction" not in here and read_of(here)[:1] == [INTERVALS]  # judges single datums
    read = alone or any("interval_level" in one.params for one in metrics)
    if settings.level_said or not read or all(level for *_, level in intervals_of(here)):
        return []
    said = (
        f"lower and upper are taken for a {settings.interval_level * 100:g} % interval"
        f" ({option('interval_level', settings.interval_level)}), which Winkler needs."
    )
    return [Note("interval_level", said)]
