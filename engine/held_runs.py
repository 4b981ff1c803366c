"""Runs as users give them, scored, saved or as tables, and the tallies they hold."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
import polars as pl

from . import scoring
from .executors import Threads
from .ingest.problems import listing
from .plan import planner
from .plan.summary import Tallied
from .report.provenance import command
from .schemas.errors import EvalengineError, InputError, OptionError, ResultError
from .schemas.intervals import LEVEL, Wanted, wanted
from .schemas.options import FIELDS, Options
from .schemas.wording import option
from .scorecard.card import Scorecard, load
from .scorecard.storage import RUN_FILE, TALLY_FILE
from .tally import stored
from .tally.ranked import UnmatchedError
from .tasks.encoding import draw_keys

R = TypeVar("R")

DRAWS = 200
"""Draws behind intervals of what is found, unless others are asked for."""

READ_BESIDE = ("metrics", "intervals", "draws", "seed", "method", "cluster", "threads")
"""Options of what is found with intervals that are read beside a scored run, too."""


def is_saved(run: Any) -> bool:
    """Whether a run is the folder of a saved result."""
    return isinstance(run, (str, Path)) and (Path(run) / RUN_FILE).is_file()


def is_scored(run: Any) -> bool:
    """Whether a run is a scorecard or the folder of one."""
    return isinstance(run, Scorecard) or is_saved(run)


def refuse_tables(**tables: Any) -> None:
    """Refuse tables beside a run that is scored already.

    Raises:
        OptionError: names the first that is given.
    """
    for name, given in tables.items():
        if given is not None:
            raise OptionError(
                f"{option(name)} is given, but the run is scored already: leave it out.",
                code="option_unread",
                option=name,
            )


def _unset(value: Any) -> bool:
    return value in (None, (), {})


def with_or_without(field: str, value: Any) -> str:
    """How a run was scored, for messages: with an option's value, or without it."""
    return f"without {option(field)}" if _unset(value) else f"with {option(field, value)}"


def refuse_options(card: Scorecard, options: Options, settable: Collection[str]) -> None:
    """Refuse options beside a run that is scored already, but for those that it was scored with.

    Args:
        card: the run.
        options: as given.
        settable: those that are read beside it.

    Raises:
        OptionError: names the first that would not be read, and what the run has instead.
    """
    plain = Options()
    for field in FIELDS:
        given, theirs = getattr(options, field), getattr(card.options, field)
        if field == "task" and theirs is None:
            theirs = card.task
        if field in settable or given in (getattr(plain, field), theirs):
            continue
        told = "without it" if _unset(theirs) else f"with {option(field, theirs)}"
        raise OptionError(
            f"{option(field, given)} is given, but the run is scored already, {told}: leave it out,"
            " or give the tables.",
            code="option_unread",
            option=field,
            value=given,
        )


def card_of(
    run: Any,
    ground_truths: Any,
    options: Options,
    datums: Any,
    labels: Any,
    storage_options: dict[str, str] | None,
    *,
    showing: Collection[str] = (),
    held: bool = True,
    settable: Collection[str] = (),
    progress: Any = None,
) -> Scorecard:
    """A run's scorecard: as it is, loaded, or scored, with its tally held unless told otherwise,
    and with some frames.

    Raises:
        OptionError: an option beside a scored run that is not ``settable``.
    """
    if is_scored(run):
        card: Scorecard = run if isinstance(run, Scorecard) else load(run)
        refuse_options(card, options, settable)
        return card
    return scoring.run(
        run,
        ground_truths,
        options,
        datums=datums,
        labels=labels,
        storage_options=storage_options,
        held=held,
        showing=showing,
        progress=progress,
    )


def class_names(*cards: Scorecard) -> dict[str, str]:
    """Names of classes that are numbers or codes, by label value as text; of the first run that
    has one, and none of a value that names two classes of one run.

    Args:
        *cards: the runs.
    """
    found: dict[str, str] = {}
    for card in reversed(cards):
        known = card.labels.select(pl.col("label_value").cast(pl.String), "label_name")
        pairs = known.drop_nulls().unique().filter(~pl.col("label_value").is_duplicated())
        found |= {value: name for value, name in pairs.iter_rows() if value != name}
    return found


def tallied_of(
    name: str, card: Scorecard, step: str = "comparing", threads: int | None = None
) -> Tallied:
    """What a run's numbers were made of.

    Args:
        name: of the run, in messages.
        card: the run.
        step: what needs it, in messages.
        threads: where the work runs; as the run was scored unless given.

    Raises:
        ResultError: it was not kept.
        InputError: another version kept it, in a form that this one does not read.
    """
    if card.tallied is not None:
        kept: Tallied = card.tallied
        return kept if threads is None else msgspec.structs.replace(kept, threads=Threads(threads))
    way = (
        f"Score it without {option('memory_limit')} and {option('executor')}, or give the tables"
        " themselves."
    )
    if card.folder is None:
        raise ResultError(
            f"{name}: this scorecard does not hold what {step} needs, as none does that was copied,"
            f" or whose tally was too large to keep. {way}",
            code="not_kept",
            step=step,
        )
    path = card.folder / TALLY_FILE
    if not path.is_file():
        raise ResultError(
            f"{card.folder} does not keep what {step} needs: its tally was too large, or it was"
            f" made of a copied scorecard or by an earlier version. {way}",
            code="not_kept",
            step=step,
        )
    plan = planner.narrowed(planner.make_plan(card.options, card.task), list(card.directions))
    again = command(card.task, card.options, card.run.get("inputs", {}))
    tallies = stored.load(path, again=f"Score it again: {again}")
    return Tallied(plan, tallies, Threads(threads or card.options.threads))


def keyed(tallied: Tallied, cluster: str | None) -> Tallied:
    """A run whose datums have the keys that draws and halves are made of.

    Raises:
        InputError: it was scored without the column of the clusters.
    """
    datums = tallied.tallies.datums
    if cluster is not None and cluster not in datums.slices.columns:
        raise InputError(
            f"{option('cluster', cluster)}: the run was scored without that column. Score it with"
            f" {option('cluster', cluster)}."
        )
    rows = pl.Series(np.arange(len(datums), dtype=np.int64)) if datums.ids is None else datums.ids
    with_keys = msgspec.structs.replace(datums, keys=draw_keys(rows, datums.slices, cluster))
    tallies = msgspec.structs.replace(tallied.tallies, datums=with_keys)
    return msgspec.structs.replace(tallied, tallies=tallies)


def intervals_of(options: Options) -> Wanted:
    """Level, draws and seed of the intervals of found numbers, each of which has its own kind.

    Raises:
        OptionError: a kind of interval.
    """
    options = options if options.drawn else options.replace(intervals=LEVEL)
    asked = wanted(options.replace(draws=DRAWS if options.draws is None else options.draws))
    assert asked is not None
    if asked.method is not None:
        raise OptionError(
            f"{option('method', asked.method)}: found numbers have intervals of one kind; leave it"
            " out.",
            code="option_unread",
            option="method",
            value=asked.method,
        )
    return asked


def hits_at(settings: Any) -> dict[str, Any]:
    """At what boxes hit, as users write it, and whether that is a distance."""
    at = getattr(settings, "pr_curve_iou_threshold", None)
    if at is None:
        return {"iou_threshold": None}
    return {"iou_threshold": settings.told(at), "by_distance": settings.by_distance}


def own_ious(settings: Any, labels: pl.Series, at: Any, way: str) -> list[str]:
    """Which labels have their average precision at another IoU than hits are looked at.

    Args:
        settings: of the run.
        labels: of the run, their values.
        at: IoU of the hits, as users write it.
        way: the option that sets it.
    """
    own: dict[str, float] = getattr(settings, "label_ious", {})
    there = {*labels.cast(pl.String)}
    said = []
    for iou in sorted({settings.told(one) for one in own.values()} - {at}):
        named = [name for name, one in own.items() if settings.told(one) == iou and name in there]
        if named:
            value = [iou] if way == "iou_thresholds" else iou
            said.append(
                f"AP of {listing(named)} is at IoU {iou:g}, and hits are looked at here at IoU"
                f" {at:g}: write {option(way, value)} for those of that AP."
            )
    return said


def ious_of(tallied: Tallied) -> list[str]:
    """The same of what is found at ``pr_curve_iou_threshold``."""
    settings = tallied.plan.settings
    at = hits_at(settings)["iou_threshold"]
    values = tallied.tallies.labels.frame["label_value"]
    return own_ious(settings, values, at, "pr_curve_iou_threshold")


def refusal(frame: str, task: str, options: Options, run: Any, truths: Any, **tables: Any) -> str:
    """Why tables cannot carry the first metric that fills a frame; empty where they can.

    Args:
        frame: the frame.
        task: the task of the tables.
        options: as given.
        run: predictions.
        truths: ground truths.
        **tables: further arguments of :func:`.scoring.run`.
    """
    names = (planner.filling(task, frame)[0].name,)
    try:
        scoring.run(run, truths, options.replace(metrics=names, task=task), **tables)
    except EvalengineError as error:
        return error.said
    return ""


def tallied_through(
    run: Any,
    ground_truths: Any,
    options: Options,
    asked: Wanted,
    *,
    metrics: scoring.Metrics,
    settable: Collection[str],
    then: Callable[[Tallied, Options], R],
    step: str,
    tables: Mapping[str, Any],
    tell: Callable[[str], None],
    unread: Collection[str] = (),
) -> tuple[R, tuple[str, ...]]:
    """What is found in the tallies of a run, scored, saved or as tables, in files too.

    Args:
        run: as users give it.
        ground_truths: of tables.
        options: as given.
        asked: intervals, which datums have keys for.
        metrics: what tables are scored with, from their task.
        settable: options that may be other than those of a scored run.
        then: finds it, from tallies whose datums have keys, and options.
        step: what it does, for progress.
        tables: further arguments of tables, by name.
        tell: told each step.
        unread: options that scoring does not read.

    Returns:
        what was found; notes of scoring.

    Raises:
        ResultError: a saved run without what this needs.
    """
    found: list[R] = []

    def look(plan: planner.Plan, tallies: Any, threads: Threads) -> None:
        tell(step)
        try:
            found.append(then(Tallied(plan, tallies, threads), changed))
        except UnmatchedError as error:
            at = plan.settings.pr_curve_iou_threshold
            raise ResultError(
                f"{error.args[0]} in this run: score the tables with"
                f" {option('pr_curve_iou_threshold', at)}.",
                code="not_kept",
                option="pr_curve_iou_threshold",
                value=at,
            ) from None

    if not is_scored(run):
        changed = options
        plain = options.replace(intervals=asked.level, draws=asked.draws, **dict.fromkeys(unread))
        tell("scoring")
        card = scoring.run(run, ground_truths, plain, looked=look, metrics=metrics, **tables)
        return found[0], card.notes
    refuse_tables(ground_truths=ground_truths, datums=tables["datums"], labels=tables["labels"])
    read = (*settable, *READ_BESIDE)
    card = card_of(run, None, options, None, None, None, settable=read)
    tallied = keyed(tallied_of("the run", card, step, options.threads), asked.cluster)
    given = {name: getattr(options, name) for name in settable}
    changed = card.options.replace(
        **{name: value for name, value in given.items() if value is not None}
    )
    plan = planner.make_plan(changed, card.task)
    changed = changed.replace(metrics=options.metrics)
    look(plan, tallied.tallies, tallied.threads)
    return found[0], ()
