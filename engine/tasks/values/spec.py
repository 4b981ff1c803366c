"""Values as a task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
import polars as pl

from ...ingest.frames import Frames
from ...ingest.problems import Note, listing
from ...metrics.registry import Metric
from ...schemas.arrays import Array
from ...schemas.contract import TABLE
from ...schemas.errors import InputError, did_you_mean
from ...schemas.tables import PASSES
from ...schemas.wording import option
from ...tallies.stats import Column, Stats
from ..contents import Contents, contents_of_table
from ..encoding import Workers
from ..per_datum import OF_VALUES, StatsTallies
from ..per_datum import common as common_values
from ..per_datum import merge as merge_tallies
from ..task import Common, FittedByRows, Sample, Task
from .dialects import Settings
from .encode import Findings, encode, merge_findings, notes, wide_names, written
from .metrics import ABSENT, STATUS, ValuesView, family, is_share, weight_of

# The metrics of a run: those asked for, or all of the table.


def fit(
    metrics: tuple[Metric, ...], frames: Frames, settings: Settings, *, asked_for: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """Return the requested metrics, or all of the table.

    Raises:
        InputError: the table has no metric that an option names.
    """
    return fit_written(
        metrics, written(frames.sides[TABLE], settings), settings, asked_for=asked_for
    )


def fit_written(
    metrics: tuple[Metric, ...], rows: Mapping[str, int], settings: Settings, *, asked_for: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """Return the requested metrics, or all of the table; see :func:`fit`."""
    named = [metric.name for metric in metrics] if asked_for else [*rows]
    for what, names in (("metrics", named), ("better", settings.better)):
        lacking = [name for name in names if name not in rows]
        if "passed" in rows:
            lacking = [name for name in lacking if not PASSES.fullmatch(name)]
        if lacking and rows:
            raise InputError(
                f"{option(what)}: the table has no metric {listing(lacking)}."
                f"{did_you_mean(lacking[0], rows)} Metrics there: {listing([*rows], most=12)}."
                f" Statistics of them are chosen with {option('statistics')}.",
                code="unknown_name",
                option=what,
                value=lacking[0],
            )
    return (metrics if asked_for else tuple(map(family, named))), []


AHEAD = ("metric",)
"""Columns whose distinct values decide in advance which metrics to tally."""


def may_fit(
    metrics: tuple[Metric, ...], needs: frozenset[str], ahead: pl.DataFrame, *, asked_for: bool
) -> tuple[tuple[Metric, ...], bool]:
    """Return the metrics that the rows may have, before checks.

    Args:
        ahead: distinct values of ``AHEAD``; of a wide table its columns, without rows.
    """
    if asked_for:
        return metrics, False
    if set(ahead.columns) == set(AHEAD):
        names = ahead["metric"].cast(pl.String).drop_nulls().unique().sort().to_list()
    else:
        names = wide_names(ahead.columns)
    return tuple(map(family, names)), False


def tally(
    frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers
) -> StatsTallies:
    """Encode the values of a run in memory."""
    tallies, findings = encode(frames, settings, needs)
    frames.notes += notes(findings, settings, needs)
    return tallies


def tally_part(
    frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers, *, several: bool
) -> tuple[StatsTallies, Findings]:
    """Encode the values of some datums; also return findings to merge over parts."""
    return encode(frames, settings, needs)


def merge(parts: Sequence[StatsTallies], settings: Settings) -> StatsTallies:
    """Merge tallies; a part without a metric of another has datums without a row of it.

    Args:
        parts: see :func:`..per_datum.merge`.
    """
    needs = sorted({need for part in parts for need in part.stats.columns})
    if any(len(part.stats.columns) != len(needs) for part in parts):
        parts = [
            msgspec.structs.replace(part, stats=_with_columns(part.stats, needs)) for part in parts
        ]
    return merge_tallies(parts, settings)


def _with_columns(stats: Stats, needs: Sequence[str]) -> Stats:
    n = stats.counted.size
    columns: dict[str, tuple[Column, ...]] = {}
    for need in needs:
        name, _, weighs = need.partition("\t")
        absent = STATUS, np.full(n, STATUS.index(ABSENT), np.int8)
        columns[need] = stats.columns.get(need) or (
            Column(metric=name, statistic="weight", values=np.ones((n, 1, 1)))
            if weighs
            else Column(metric=name, values=np.full((n, 1, 1), np.nan), status=absent),
        )
    return Stats(stats.counted, columns, stats.status)


def weights(tallies: StatsTallies) -> Array | None:
    """See :attr:`..task.Task.weights`."""
    for need, (column, *_) in tallies.stats.columns.items():
        if need == weight_of(column.metric):
            return column.values[:, 0, 0]
    return None


def view(
    tallies: StatsTallies,
    settings: Settings,
    group: Array | None = None,
    n_groups: int = 1,
    weights: Array | None = None,
    threads: Workers | None = None,
) -> ValuesView:
    """Return the values by groups of datums."""
    return ValuesView(
        tallies.stats, tallies.labels, group=group, n_groups=n_groups, weights=weights
    )


def range_of(tallies: StatsTallies, metric: Metric) -> tuple[float, float]:
    """Return the range of a metric: 0 to 1 if its values are those of a yes or no."""
    if metric.name in tallies.stats.columns and is_share(tallies.stats, metric.name):
        return 0.0, 1.0
    return metric.range


# The plan in words, a tiny run, and contents of single datums: their rows.


def explain(settings: Settings, needs: frozenset[str]) -> list[str]:
    """Return one line per step."""
    return [
        "encode    one value per datum and metric; several rows of a datum are averaged",
        f"tally     values of {', '.join(sorted(needs)) or 'every metric of the table'}",
        f"sums      {', '.join(settings.statistics)} over datums with a value",
    ]


def samples() -> Iterator[Sample]:
    """Values of a wide table, with a gap, with weights and without."""
    table = pl.DataFrame({"datum_id": [1, 2, 3, 4], "a": [0.5, 2.0, None, 1.0]})
    named = {
        "value_columns": ["a"],
        "statistics": ["mean", "sum", "median", "p95", "std", "min", "max"],
    }
    yield table, None, named
    yield table.with_columns(weight=pl.Series([1.0, 2.0, 3.0, 1.0])), None, named


TASK = Task(
    name="values",
    settings=Settings,
    fit=fit,
    tally=tally,
    explain=explain,
    samples=samples,
    contents=Contents(of_tables=contents_of_table),
    truths=False,
    no_limits="every datum has its values, so no choice is open",
    fitted_by_rows=FittedByRows(
        AHEAD, may_fit, fit_written, tally_part, Findings, merge_findings, notes
    ),
    **{
        **OF_VALUES,
        "merge": merge,
        "view": view,
        "drawn": ValuesView.drawn,
        "weights": weights,
        "common": Common(common_values, ranges=range_of),
    },
)
