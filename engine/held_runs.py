"""Runs as users pass them, scored, saved or as tables, and their tallies."""

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
"""Default number of resamples for intervals of analyses."""

READ_BESIDE = ("metrics", "intervals", "draws", "seed", "method", "cluster", "threads")
"""Options of analyses with intervals that also apply to a scored run."""


def is_saved(run: Any) -> bool:
    return isinstance(run, (str, Path)) and (Path(run) / RUN_FILE).is_file()


def is_scored(run: Any) -> bool:
    return isinstance(run, Scorecard) or is_saved(run)


def refuse_tables(**tables: Any) -> None:
    """Refuse tables given together with a run that is already scored.

    Raises:
        OptionError: names the first one.
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
    """Return a phrase for messages: with an option's value, or without the option."""
    return f"without {option(field)}" if _unset(value) else f"with {option(field, value)}"


def refuse_options(card: Scorecard, options: Options, settable: Collection[str]) -> None:
    """Refuse options that differ from those of a run that is already scored.

    Raises:
        OptionError: names the first such option, and the run's value.
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
    """Return a run's scorecard: unchanged, loaded, or scored.

    It has tallies (unless ``held`` is False) and some frames.

    Raises:
        OptionError: an option that contradicts a scored run and is not ``settable``.
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
    """Return names of classes by label value as text, if different from the value.

    The first run with a name decides; values with two names in one run are skipped.
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
    """Return the tallies of a run.

    Args:
        threads: by default as the run was scored.

    Raises:
        ResultError: they were not kept.
        InputError: they are in the format of another version.
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
    """Add the keys for resamples and halves to a run's datums.

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
    """Return level, resamples and seed for intervals of analyses, whose method is fixed.

    Raises:
        OptionError: a method is given.
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
    """Return the threshold at which boxes hit, in user units, and whether it is a distance."""
    at = getattr(settings, "pr_curve_iou_threshold", None)
    if at is None:
        return {"iou_threshold": None}
    return {"iou_threshold": settings.told(at), "by_distance": settings.by_distance}


def own_ious(settings: Any, labels: pl.Series, at: Any, way: str) -> list[str]:
    """Report labels whose average precision has another IoU than the hits."""
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
    """Report labels whose average precision has another IoU than ``pr_curve_iou_threshold``."""
    settings = tallied.plan.settings
    at = hits_at(settings)["iou_threshold"]
    values = tallied.tallies.labels.frame["label_value"]
    return own_ious(settings, values, at, "pr_curve_iou_threshold")


def refusal(frame: str, task: str, options: Options, run: Any, truths: Any, **tables: Any) -> str:
    """Return why tables cannot be scored by the first metric that fills a frame; empty if they
    can.
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
    """Run an analysis on the tallies of a run: scored, saved or as tables, also on disk.

    Args:
        then: the analysis, a function of tallies with keys, and options.

    Returns:
        the result of ``then``; notes of scoring.

    Raises:
        ResultError: a saved run without the required data.
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
