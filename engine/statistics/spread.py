"""Spread of numbers over the groups of a slice column, next to what equal groups would show."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np
import polars as pl

from ..evaluation.summary import Result, Tallied, summarise
from ..ingest.problems import Note, count_of
from ..schemas.arrays import Array
from ..schemas.errors import N_EXAMPLES, OptionError
from ..schemas.options import Options
from ..schemas.results import METRICS, frame_schema, in_schema
from ..schemas.wording import option
from ..tasks.encoding import cluster_codes

_NUMBERS = ("value", "lower", "upper", "support", "scored", "reason", "slice_value")
NUMBER_KEYS = tuple(name for name in METRICS if name not in _NUMBERS)
"""Columns that identify a number, other than its group."""
DRAWS = 200
"""Maximum number of times that groups are mixed, each a summary of the whole run."""
_TITLE = ("metric", "statistic", "average", "label_value")


def add_spread(result: Result, options: Options) -> None:
    """Add the frame ``spread`` to a run.

    Raises:
        OptionError: the rows are not in memory.
    """
    column = options.spread
    assert column is not None
    if result.tallied is None:
        raise OptionError(
            f"{option('spread', column)} needs the rows in memory: raise"
            f" {option('memory_limit')}, or omit it.",
            code="options_conflict",
            options=["spread", "memory_limit"],
        )
    metrics = result.frames["metrics"]()
    result.frames["metrics"] = metrics.clone
    counts = [metric.name for metric in result.plan.metrics if metric.counts]
    named = result.plan.does.fairness
    rows = metrics.filter(~pl.col("metric").is_in(counts))
    differences = _differences(rows, column, named)
    by_chance = _by_chance(result.tallied, options, column, counts, named)
    joined = differences.join(
        by_chance, on=NUMBER_KEYS, how="left", nulls_equal=True, maintain_order="left"
    )
    excess = pl.max_horizontal(pl.col("difference") - pl.col("expected"), 0.0)
    frame = in_schema(
        joined.with_columns(excess=pl.when(pl.col("expected").is_not_null()).then(excess)),
        frame_schema("spread", label=metrics.schema["label_value"]),
    )
    result.frames["spread"] = frame.clone
    unequal = frame.filter(pl.col("difference") > pl.col("expected_95")).sort(
        "excess", descending=True, maintain_order=True
    )
    if unequal.height:
        examples = [
            f"{' '.join(str(row[name]) for name in _TITLE if row[name] is not None)}"
            f" {row['lowest']:.4g} ({row['lowest_group']}) to {row['highest']:.4g}"
            f" ({row['highest_group']})"
            for row in unequal.head(N_EXAMPLES).iter_rows(named=True)
        ]
        more = "; ..." if unequal.height > N_EXAMPLES else ""
        message = (
            f"{column}: its groups differ more than equal groups would in 95 % of cases, in"
            f" {unequal.height:,} of {count_of(frame.height, 'number')}: {'; '.join(examples)}"
            f"{more}. See frame spread."
        )
        result.notes = [*result.notes, Note("groups_differ", message, unequal.height)]


def _differences(
    metrics: pl.DataFrame, column: str, named: Mapping[str, tuple[str, ...]]
) -> pl.DataFrame:
    """Return lowest, highest, difference and ratio of every number over the groups of a column.

    Args:
        metrics: the metrics frame of a run.
        named: name of a criterion -> metrics whose largest difference it is.
    """
    value, group = pl.col("value"), pl.col("slice_value")
    defined = metrics.filter(pl.col("slice") == column, value.is_not_null())
    result = (
        defined.group_by(NUMBER_KEYS, maintain_order=True)
        .agg(
            pl.len().cast(pl.Int64).alias("groups"),
            value.min().alias("lowest"),
            value.max().alias("highest"),
            group.sort_by(value, group).first().alias("lowest_group"),
            group.sort_by(value, group, descending=[True, False]).first().alias("highest_group"),
        )
        .filter(pl.col("groups") > 1)
        .with_columns(difference=pl.col("highest") - pl.col("lowest"))
        .with_columns(
            ratio=pl.when(pl.col("lowest") >= 0, pl.col("highest") > 0).then(
                pl.col("lowest") / pl.col("highest")
            )
        )
    )
    parts = [result]
    others = [name for name in NUMBER_KEYS if name != "metric"]
    for name, needed in named.items():
        labelled = result.filter(pl.col("metric").is_in(needed), pl.col("average").is_null())
        worst = (
            labelled.group_by(others, maintain_order=True)
            .agg(
                pl.len().alias("_found"),
                *(
                    pl.col(one).sort_by("difference", descending=True).first()
                    for one in ("groups", "lowest", "highest", "lowest_group", "highest_group")
                ),
                pl.col("difference").max(),
                pl.col("ratio").min(),
            )
            .filter(pl.col("_found") == len(needed))
            .with_columns(metric=pl.lit(name))
        )
        parts.append(worst.select(result.columns))
    return pl.concat(parts)


def _by_chance(
    tallied: Tallied,
    options: Options,
    column: str,
    counts: list[str],
    named: Mapping[str, tuple[str, ...]],
) -> pl.DataFrame:
    """Return mean and 95 % point of the difference if groups of these sizes were equal.

    Clusters exchange their groups; a cluster of several groups is one unit per group.
    """
    datums = tallied.tallies.datums
    codes, names = datums.groups(column)
    cluster: Array = np.arange(codes.size)
    if options.cluster is not None:
        cluster = cluster_codes(datums.slices, options.cluster)
    inside = np.flatnonzero(codes >= 0)
    # Units are ordered by id, so that the order of rows does not matter.
    unit = cluster[inside] * max(len(names), 1) + codes[inside]
    units, of_datum = np.unique(unit, return_inverse=True)
    group_of_unit = units % max(len(names), 1)
    plan = msgspec.structs.replace(
        tallied.plan, options=options.replace(by=(column,), intervals=None)
    )
    rng = np.random.default_rng(options.seed or 0)
    texts = pl.Series(column, [*names, None], dtype=pl.String)
    every = []
    for _ in range(min(DRAWS, options.draws or DRAWS)):
        mixed = np.full(codes.size, len(names), np.int64)
        mixed[inside] = rng.permutation(group_of_unit)[of_datum]
        slices = datums.slices.with_columns(texts.gather(mixed))
        sliced = msgspec.structs.replace(datums, slices=slices)
        tallies = msgspec.structs.replace(tallied.tallies, datums=sliced)
        frames, _ = summarise(plan, tallies, threads=tallied.threads)
        rows = frames["metrics"]().filter(~pl.col("metric").is_in(counts))
        every.append(_differences(rows, column, named).select(*NUMBER_KEYS, "difference"))
    return (
        pl.concat(every)
        .group_by(NUMBER_KEYS, maintain_order=True)
        .agg(
            pl.col("difference").mean().alias("expected"),
            pl.col("difference").quantile(0.95, "linear").alias("expected_95"),
        )
    )
