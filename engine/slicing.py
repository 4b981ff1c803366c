"""From a run and a table of its datums to its worst slices."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec
import numpy as np
import polars as pl

from . import scoring
from .analysis.slice_columns import conditions_of
from .analysis.slice_table import SCHEMA, FoundSlices
from .analysis.worst import losses_of
from .analysis.worst_slices import Slice, errors_of, worst_slices
from .held_runs import READ_BESIDE, card_of, is_scored, keyed, refuse_tables, tallied_of
from .ingest.names import recognise
from .ingest.problems import count_of, listing
from .ingest.sources.tables import open_source
from .plan.summary import Tallied
from .progress import heard, silent
from .schemas.arrays import Array
from .schemas.contract import DATUMS, TABLE
from .schemas.errors import InputError, OptionError, did_you_mean
from .schemas.intervals import FEW_CLUSTERS, LEVEL, Wanted, wanted
from .schemas.options import Options
from .schemas.tables import contracts
from .schemas.wording import option
from .scorecard.card import Scorecard
from .statistics.multiple import benjamini_hochberg
from .statistics.slice_tests import Held, hold, leading
from .tally.datums import half_of

Progress = scoring.Progress

DRAWS = 200
LEVELS = 3
TOP = 20
_SHARE = 100  # one datum of so many is the least that a slice has
_FEWEST = 10


@heard
def found_slices(
    run: Any,
    ground_truths: Any,
    options: Options,
    *,
    datums: Any,
    top: int,
    levels: int,
    least: int | None,
    alpha: float,
    confirm: bool,
    labels: Any = None,
    storage_options: dict[str, str] | None = None,
    progress: Progress | bool | None = None,
) -> FoundSlices:
    """Find the worst slices; arguments as :func:`evalengine.find_slices`, options made."""
    _hold(top=top, levels=levels, least=1 if least is None else least)
    if not 0 < alpha <= 1:
        raise OptionError(
            f"{option('alpha', alpha)}: write a weight above 0, at most 1.",
            code="option_value",
            option="alpha",
            value=alpha,
        )
    tell = progress if callable(progress) else silent
    asked = _asked(options)
    card, table = _scored(run, ground_truths, options, datums, labels, storage_options, tell)
    tallied = tallied_of("the run", card, "finding slices", options.threads)
    if options.metrics is not None:
        tallied = _narrowed(tallied, options.metrics)
    metric = leading(tallied)
    run_of = keyed(tallied, asked.cluster)
    tell("reading the datums")
    values, notes = _columns(tallied, table, options, _read(card), storage_options)
    losses = losses_of(tallied)
    error, known = errors_of(losses, metric.range[1])
    unknown = int((~known).sum())
    if losses.weight is not None:
        none = int((losses.weight == 0).sum())
        known &= losses.weight > 0
        notes.append(
            "mean losses, by which slices are searched, are weighted as the metric is; sizes are"
            f" datums{f', without {none:,} of weight 0' if none else ''}."
        )
    keys = run_of.tallies.datums.keys
    searched, judged = known, np.ones(error.size, np.bool_)
    if confirm:
        half = half_of(keys, 0)
        searched, judged = known & half, ~half
        notes.append(
            f"slices were searched in {int(searched.sum()):,} datums, and their numbers are of the"
            f" {int(judged.sum()):,} others."
        )
    n = int(searched.sum())
    if least is None:
        least = max(_FEWEST, -(-n // _SHARE))
    if unknown:
        notes.append(f"{count_of(unknown, 'datum')} without a loss: {losses.metric} is undefined.")
    made = conditions_of(values, least)
    notes += made.notes
    if not made.every:
        raise InputError(
            "no column of the datums parts them: every value is too rare, or the same for all."
            f" Name others in {option('datums')}, or lower {option('least', least)}.",
            code="nothing_to_slice",
        )
    tell("searching")
    found, measured = worst_slices(
        made, error, searched, losses.weight, top=top, levels=levels, least=least, alpha=alpha,
        threads=tallied.threads,
    )  # fmt: skip
    held = []
    for i, one in enumerate(found):
        tell(f"slice {i + 1} of {len(found)}")
        held.append(hold(run_of, metric, one.inside, judged, asked))
    better = tallied.plan.dialect.better.get(metric.name, metric.better)
    frame = _frame(found, held, made.every, metric.name, n)
    gain = pl.col("difference") if better == "higher" else -pl.col("difference")
    worse = frame.filter(~(gain > 0).fill_null(value=False))
    if fewer := frame.height - worse.height:
        notes.append(
            f"left out: {count_of(fewer, 'slice')} with a higher mean loss whose {metric.name} is"
            " better than elsewhere."
        )
    return FoundSlices(
        worse,
        metric=metric.name,
        better=better,
        loss=losses.metric,
        level=asked.level,
        n=n,
        measured=measured,
        notes=[*notes, *_weak(keys, asked, confirm=confirm)],
    )


def _hold(**numbers: int) -> None:
    for name, number in numbers.items():
        if number < 1:
            raise OptionError(
                f"{option(name, number)}: write 1 or more.",
                code="option_value",
                option=name,
                value=number,
            )


def _asked(options: Options) -> Wanted:
    options = options if options.drawn else options.replace(intervals=LEVEL)
    draws = DRAWS if options.draws is None else options.draws
    asked = wanted(options.replace(draws=draws))
    assert asked is not None
    return asked


def _scored(
    run: Any,
    ground_truths: Any,
    options: Options,
    datums: Any,
    labels: Any,
    storage_options: dict[str, str] | None,
    tell: Any,
) -> tuple[Scorecard, Any]:
    """Return the run, and its table of datums; None if it has only its slice columns."""
    if is_scored(run):
        refuse_tables(ground_truths=ground_truths, labels=labels)
        read = (*READ_BESIDE, "by", "columns")
        return card_of(run, None, options, None, None, None, settable=read), datums
    tell("scoring")
    plain = options.replace(draws=None, seed=None, method=None)
    if options.cluster is None:
        plain = plain.replace(intervals=None)
    if datums is not None:
        plain = plain.replace(by=())
    card = card_of(run, ground_truths, plain, datums, labels, storage_options)
    one_table = datums is None and not options.by and ground_truths is None
    return card, run if one_table else datums


def _narrowed(tallied: Tallied, names: Collection[str]) -> Tallied:
    from .plan import planner

    own = {metric.name for metric in tallied.plan.metrics}
    plan = planner.make_plan(Options(metrics=tuple(names)), tallied.plan.task)
    asked = [metric.name for metric in plan.metrics]
    lacking = [name for name in asked if name not in own]
    if lacking:
        raise OptionError(
            f"{option('metrics', lacking)}: the run does not have it; it has"
            f" {', '.join(sorted(own))}."
        )
    return msgspec.structs.replace(tallied, plan=planner.narrowed(tallied.plan, asked))


def _read(card: Scorecard) -> set[str]:
    """Columns of one table with both sides that the run itself read."""
    table = contracts(card.task).get(TABLE)
    own = {*(table.names if table is not None else ())}
    return own | {*card.run["recognised"].get(TABLE, ())}


def _columns(
    tallied: Tallied,
    table: Any,
    options: Options,
    read: Collection[str],
    storage_options: dict[str, str] | None,
) -> tuple[pl.DataFrame, list[str]]:
    """Return the candidate slice columns, one row per datum of the run, and notes on them.

    Args:
        table: table of datums; None if the run has only its slice columns.
        options: ``by`` names the requested columns.
        read: columns already used to describe datums, not candidates.
    """
    datums = tallied.tallies.datums
    own = [name for name in datums.slices.columns if name != options.cluster]
    values = datums.slices.select(own)
    notes: list[str] = []
    there = [*own]
    if table is not None:
        source = open_source(table, storage_options=storage_options)
        told = source.frame if source.datums is None else source.datums.lazy()
        schema = told.collect_schema()
        own_options = {**(tallied.plan.options.columns or {}), **(options.columns or {})}
        naming = recognise(schema, contracts(tallied.plan.task)[DATUMS], own_options or None)
        known = {*naming.exprs, *naming.recognised, *own_options, *read}
        there = [name for name in schema if name not in known or name in options.by]
        free = [name for name in there if not options.by or name in options.by]
        ids = [expr for name, expr in naming.exprs.items() if name == "datum_id"]
        frame = told.select(*ids, *(pl.col(name).alias(f"_{name}") for name in free)).collect()
        joined, notes = _joined(frame, datums, source.description)
        new = joined.select(
            pl.col(f"_{name}").alias(name) for name in free if f"_{name}" in joined.columns
        )
        values = values.drop(name for name in values.columns if name in new.columns)
        values = pl.concat([values, new], how="horizontal")
    if options.by:
        missing = [name for name in options.by if name not in values.columns]
        if missing:
            raise InputError(
                f"{option('by', missing)}: the datums have no such column."
                f"{did_you_mean(missing[0], there)} Columns there: {', '.join(there) or 'none'}.",
                code="column_missing",
                column=missing[0],
            )
        values = values.select(options.by)
    if not values.width:
        raise InputError(
            "the run knows nothing of its datums to part them by: give a table with a row for each"
            f" in {option('datums')}, or score with {option('by')}.",
            code="nothing_to_slice",
        )
    return values, notes


def _joined(frame: pl.DataFrame, datums: Any, description: str) -> tuple[pl.DataFrame, list[str]]:
    """Return the table's rows in the order of the run's datums, and notes on missing ones."""
    if "datum_id" not in frame.columns:
        if frame.height != len(datums):
            raise InputError(
                f"{description} has {frame.height:,} rows and no ids that the run knows, which has"
                f" {len(datums):,} datums: give the table a column datum_id.",
                code="column_missing",
                column="datum_id",
                rows=frame.height,
                of=len(datums),
            )
        return frame, []
    ids = datums.id
    frame, said = _one_row_a_datum(frame)
    if frame.schema["datum_id"].is_integer() != ids.dtype.is_integer():
        frame = frame.with_columns(pl.col("datum_id").cast(pl.String))
        ids = ids.cast(pl.String)
    else:
        frame = frame.with_columns(pl.col("datum_id").cast(ids.dtype))
    joined = (
        ids.rename("datum_id")
        .to_frame()
        .join(
            frame.with_columns(pl.lit(value=True).alias("__there")),
            on="datum_id",
            how="left",
            maintain_order="left",
        )
    )
    lacking = joined.filter(pl.col("__there").is_null())["datum_id"]
    if len(lacking) == len(ids):
        raise InputError(
            f"{description}: none of the run's {len(ids):,} datums is in it; ids there"
            f" {listing(frame['datum_id'].head(3).to_list())}, in the run"
            f" {listing(ids.head(3).to_list())}.",
            code="ids_unmatched",
            of=len(ids),
        )
    if len(lacking):
        said.append(
            f"{count_of(len(lacking), 'datum')} of the run without a row in {description}:"
            f" {listing(lacking.head(3).to_list())}."
        )
    return joined, said


def _one_row_a_datum(frame: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Reduce to one row per id, with notes on columns that differ within an id.

    Raises:
        InputError: all columns differ.
    """
    ids = frame["datum_id"]
    if not ids.is_duplicated().any():
        return frame, []
    names = [name for name in frame.columns if name != "datum_id"]
    distinct = frame.group_by("datum_id").agg(pl.col(names).n_unique())
    torn = [name for name in names if (distinct[name] > 1).any()]
    many = int(ids.is_duplicated().sum())
    if len(torn) == len(names):
        first = distinct.filter(pl.any_horizontal(pl.col(torn) > 1))["datum_id"].min()
        raise InputError(
            f"{option('datums')}: {many:,} rows share their datum_id with others, the first is"
            f" {first!r}, and no column is the same in all rows of a datum. Give one row a datum.",
            code="repeated_values",
            column="datum_id",
            count=many,
        )
    said = []
    if torn:
        told = listing([name.removeprefix("_") for name in torn])
        said.append(f"left out, since their values differ within a datum: {told}.")
    kept = frame.drop(torn).unique("datum_id", keep="first", maintain_order=True)
    return kept, said


def _weak(keys: Array, asked: Wanted, *, confirm: bool) -> list[str]:
    notes = []
    clusters = np.unique(keys).size
    if clusters < FEW_CLUSTERS:
        notes.append(f"intervals rest on {clusters} datums or clusters: they are often too narrow.")
    if not confirm:
        notes.append(
            "slices were found and measured on the same datums, which makes them look worse than"
            f" they are; {option('confirm', True)} searches one half and measures the other."
        )
    return notes


def _frame(
    found: list[Slice], held: list[Held], conditions: Any, metric: str, n: int
) -> pl.DataFrame:
    p = np.array([one.p for one in held], np.float64)
    adjusted = np.full(p.size, np.nan)
    tested = ~np.isnan(p)
    adjusted[tested] = benjamini_hochberg(p[tested])
    rows = []
    for one, of_run, adjusted_p in zip(found, held, adjusted.tolist(), strict=True):
        parts = [conditions[item] for item in one.items]
        rows.append(
            {
                "slice": " and ".join(part.said for part in parts),
                "where": " AND ".join(part.sql for part in parts),
                "conditions": len(parts),
                "size": one.size,
                "share": one.size / n,
                "metric": metric,
                "value": of_run.value,
                "lower": of_run.lower,
                "upper": of_run.upper,
                "elsewhere": of_run.elsewhere,
                "difference": of_run.value - of_run.elsewhere,
                "p": of_run.p,
                "p_adjusted": adjusted_p,
                "loss": one.loss,
                "loss_elsewhere": one.elsewhere,
                "score": one.score,
            }
        )
    return pl.DataFrame(rows, schema=SCHEMA).fill_nan(None)
