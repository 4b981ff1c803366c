"""The metrics that tables can carry: those of columns that are there."""

from __future__ import annotations

from ...ingest.frames import Frames
from ...ingest.problems import Note
from ...metrics.registry import Metric
from ...schemas.errors import InputError
from ...schemas.wording import option
from .columns import QUANTILES, quantiles_of
from .settings import Settings

_CALLED = {QUANTILES: "columns of quantiles ('q0.1', 'q0.9', ...)"}


def fit(
    metrics: tuple[Metric, ...], frames: Frames, settings: Settings, *, asked_for: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """The metrics as planned, where the tables have the columns that they need.

    Args:
        metrics: as planned.
        frames: checked tables.
        settings: the run's settings.
        asked_for: whether the user named them.

    Raises:
        InputError: a metric that the user named, without what it is computed from.
    """
    here = {name for side in frames.sides.values() for name in side.columns}
    if quantiles_of(here):
        here.add(QUANTILES)
    told = []
    for one in metrics:
        lacking = [name for name in one.needs if name not in here]
        if lacking and asked_for:
            columns = " and ".join(_CALLED.get(name, f"column {name!r}") for name in lacking)
            told.append(f"{one.name} needs {columns}")
        if "n_features" in one.params and settings.n_features is None:
            told.append(f"{one.name} needs {option('n_features', 12)}, the model's own number")
    if told:
        raise InputError(
            f"{'; '.join(told)}. Columns there: {', '.join(sorted(here))}. If one of them is it,"
            f" write {option('columns', {'mine': 'lower'})}, or leave these metrics out."
        )
    return tuple(one for one in metrics if set(one.needs) <= here), []
