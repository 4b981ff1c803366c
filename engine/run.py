"""One run, from tables or a saved folder to a scorecard."""

from __future__ import annotations

import hashlib
import platform
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from operator import attrgetter
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar
from weakref import ReferenceType, ref

import msgspec
import numpy as np
import polars as pl

from ._version import __version__
from .evaluation import limits, planner, summary
from .evaluation import own as own_values
from .evaluation.paging import page_frames, with_distribution, worst
from .evaluation.summary import Result, Tallied
from .executors import Threads
from .executors.processes import pool_of
from .exports import makers
from .ingest.files import Room
from .ingest.frames import Each, Frames, checked_frames, in_turn
from .ingest.geometry import needed_fields
from .ingest.infer import infer_task, with_canonical_columns
from .ingest.opening import Inputs, Tables, open_inputs
from .ingest.preparing import POINTS, only_keypoints
from .ingest.problems import MANY, Note, listing
from .metrics import own as own_metrics
from .metrics import registry
from .metrics.own import OwnMetric
from .outofcore.memory import (
    BASE,
    bytes_of_limit,
    free_memory,
    large,
    scratch_folder,
    too_many_labels,
)
from .progress import Progress, reports_progress, step
from .report.provenance import command
from .schemas.contract import GROUND_TRUTHS, NAMES, PREDICTIONS, TABLE
from .schemas.errors import EvalengineError, InputError, OptionError, ResultError, invalid
from .schemas.option_values import LEVEL, Intervals, parse_intervals
from .schemas.options import FIELDS, TABLE_OPTIONS, Options
from .schemas.results import Finding
from .schemas.tuning import tuning
from .schemas.wording import option, render
from .scorecard.card import Scorecard, load
from .scorecard.storage import OWN_FILE, RUN_FILE, TALLY_FILE, Paged
from .scratch import local
from .tallies import stored
from .tallies.datums import Deferred
from .tallies.ranked import UnmatchedError
from .tasks.encoding import draw_keys

# A run from tables to a scorecard.


class Messages(msgspec.Struct, frozen=True):
    """Notes on a run's inputs and options.

    Attributes:
        notes: one sentence each; includes the warnings.
        warnings: notes that may make the result meaningless.
        findings: the notes as data, except those on recognised columns.
    """

    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    def __add__(self, other: Messages) -> Messages:
        return Messages(
            self.notes + other.notes, self.warnings + other.warnings, self.findings + other.findings
        )


class Opened(msgspec.Struct):
    """A run whose tables are open and whose rows are not yet read.

    Attributes:
        plan: what is computed; may be replaced until the run is scored.
        begun: time at which it was opened.
        own: own metrics, which ``options`` do not name.
        options_with_own: the options with them; None without any.
    """

    tables: Tables
    options: Options
    plan: planner.Plan
    inputs: Inputs
    begun: float
    own: tuple[OwnMetric, ...] = ()
    options_with_own: Options | None = None


def open_tables(tables: Tables, options: Options, *, built_in_only: bool = False) -> Opened:
    """Open tables and plan their run; an explicit task is planned before any file is read.

    If a side has only keypoints and the options do not name the compared geometry, keypoints are
    compared.

    Args:
        built_in_only: no name is looked up among own metrics.
    """
    begun = time.perf_counter()
    if not built_in_only and options.metrics and ":" in "\n".join(options.metrics):
        return _with_own_metrics(tables, options)
    try:
        plan = None if options.task is None else planner.make_plan(options, options.task)
        if options.memory_limit is None:
            room = Room(free_memory, BASE, given=False)  # the system is asked on demand
        else:
            limit = bytes_of_limit(options.memory_limit)
            room = Room(lambda: limit, BASE)
        inputs = open_inputs(tables, options, room=room)
        if options.columns:
            prior, options = options, with_canonical_columns(inputs, options)
            plan = plan if options is prior else plan and planner.make_plan(options, plan.task)
        task = infer_task(inputs, options)
        only_points = options.iou_type is None and only_keypoints(inputs, task, options)
        if only_points:
            options = options.replace(iou_type=POINTS)
            inputs = open_inputs(tables, options, room=room)
            first = inputs.sources[next(iter(inputs.sources))]
            first.notes += (Note("points_alone", _POINTS_ONLY),)
            task = infer_task(inputs, options)
        if plan is None or only_points:
            plan = planner.make_plan(options, task)
        now = needed_fields(plan.options.iou_type, plan.options.convert_to)
        if now != needed_fields(options.iou_type, options.convert_to):  # the dialect changed them
            inputs = open_inputs(tables, plan.options, room=room)
        return Opened(tables, plan.options, plan, inputs, begun)
    except OptionError as error:
        unknown = error.facts.get("value") if error.code == "unknown_name" else None
        if built_in_only or unknown is None or unknown not in own_metrics.plugins("metrics"):
            raise
    return _with_own_metrics(tables, options)


def split_metrics(options: Options) -> tuple[tuple[str, ...] | None, tuple[OwnMetric, ...]]:
    """Return the names of built-in metrics that options name, and the own metrics."""
    return own_metrics.split(
        options.metrics, lambda name: any(registry.has(task, name) for task in NAMES)
    )


def _with_own_metrics(tables: Tables, options: Options) -> Opened:
    """Open tables for the built-in metrics of the options; keep the own ones apart.

    Raises:
        OptionError: an own metric has the name of another.
    """
    names, custom_metrics = split_metrics(options)
    opened = open_tables(tables, options.replace(metrics=names or None), built_in_only=True)
    strange = [name for name in names or () if own_metrics.is_reference(name)]
    if strange and not registry.is_open(opened.plan.task):
        raise OptionError(
            f"{option('metrics', strange)}: no such module in the working folder, next to the job"
            " file or in PYTHONPATH. An own metric is named by its module and function.",
            code="unknown_name",
            value=strange[0],
        )
    if not custom_metrics:
        return opened
    if not names:
        opened.plan = planner.narrowed(opened.plan, ())
    used_names = [
        *registry.names(opened.plan.task),
        *(metric.name for metric in opened.plan.metrics),
    ]
    for i, one in enumerate(custom_metrics):
        if one.name in (*used_names, *(other.name for other in custom_metrics[:i])):
            raise OptionError(
                f"metric {one.reference}: {one.name!r} is the name of another metric of this run."
                " Rename the function.",
                code="reserved_name",
                value=one.name,
            )
    references = (*(names or ()), *(one.reference for one in custom_metrics))
    opened.own, opened.options_with_own = custom_metrics, options.replace(metrics=references)
    return opened


def checked_rows(run: Opened, each: Each = in_turn) -> Frames:
    """Read and check the rows of open tables, and fit the plan of the run to them.

    Args:
        each: runs functions at the same time.
    """
    frames = checked_frames(run.inputs, run.plan.task, run.plan.options, each)
    run.plan = planner.fitted(run.plan, frames)
    return frames


_POINTS_ONLY = (
    "keypoints are compared, since one side has only keypoints (like"
    f" {option('iou_type', POINTS)})."
)


def rows_of(frames: Frames) -> dict[str, int]:
    return {name: table.height for name, table in frames.tables.items()}


_HASHED_BYTES = 1 << 30  # larger files are identified by size and time


def _digest(source: Any) -> dict[str, Any]:
    """Return size, modification time and SHA-256 of a single local file; otherwise empty."""
    if not isinstance(source, (str, Path)) or not Path(source).is_file():
        return {}
    stat = Path(source).stat()
    facts: dict[str, Any] = {"bytes": stat.st_size, "modified": stat.st_mtime}
    if stat.st_size <= _HASHED_BYTES:
        with open(source, "rb") as file:
            facts["sha256"] = hashlib.file_digest(file, "sha256").hexdigest()
    return facts


@reports_progress
def score_tables(
    tables: Tables,
    options: Options,
    *,
    executor: Executor | str | None = None,
    address: str | None = None,
    progress: Progress | bool | None = None,
    paged: bool = False,
    planned: Callable[[planner.Plan, Sequence[str]], None] | None = None,
) -> Scorecard:
    """Score tables, with the arguments of :func:`evalengine.score` and validated options.

    Args:
        paged: count data for the report whatever the metrics. The default metrics do so anyway if
            rows are in memory.
        planned: checks the plan and the names of own metrics, before rows are read.
    """
    parse_intervals(options)  # raises before any table is read
    step("reading and checking")
    run = open_tables(tables, options)
    if planned is not None:
        planned(run.plan, [one.name for one in run.own])
    if paged:
        run.plan = msgspec.structs.replace(run.plan, paged=True)
    return score_opened(run, executor=executor, address=address)


def score_opened(
    run: Opened,
    *,
    executor: Executor | str | None = None,
    address: str | None = None,
    in_memory: bool = False,
    disk: ExitStack | None = None,
) -> Scorecard:
    """Score open tables.

    Args:
        in_memory: keep the tally in memory, within its share of a memory limit, and skip intervals;
            for comparisons and searches.
        disk: receives the files of a tally that is too large for memory, which the scorecard has
            until they are closed; skips intervals.
    """
    plan, inputs, options = run.plan, run.inputs, run.options
    if options.limits:
        limits.refuse(plan)
    if run.own:
        own_metrics.refuse_workers(run.own, executor if isinstance(executor, str) else None)
    for_search = in_memory or disk is not None
    intervals = None if for_search else parse_intervals(options)
    pool = executor if isinstance(executor, str) else None
    unlimited = ""
    limited = not in_memory or options.memory_limit is not None
    if limited and (executor is None or pool or address):
        by_buckets = pool or address is not None or options.memory_limit is not None
        formats = {*map(attrgetter("format"), inputs.sources.values())}
        if by_buckets or (formats != {"memory"} and large(inputs)):
            from .outofcore import driver  # no other run needs it

            workers, own_files = pool_of(pool, address, options.threads), ExitStack()
            n_own = len(run.own)
            try:
                bucket_plan, unlimited = driver.plan_buckets(
                    plan, inputs, options, workers, n_own, in_memory=in_memory
                )
                if bucket_plan is not None:
                    estimates = None if intervals is None else partial(_estimates, intervals)
                    place = None
                    if run.own:
                        scratch = own_files.enter_context(scratch_folder(options.scratch, 0))
                        place = scratch / _OWN_VALUES
                    result = driver.run(
                        bucket_plan,
                        plan,
                        options,
                        workers,
                        estimates,
                        in_memory=in_memory,
                        disk=disk,
                        own=run.own,
                        own_values=place,
                        storage=run.tables.storage_options,
                    )
                    return _scored(run, result, options, for_search=for_search)
            finally:
                own_files.close()
                workers.close()
    elif options.memory_limit is not None:
        unlimited = "the threads of a given executor work on them together"
    threads = Threads(options.threads, None if isinstance(executor, str) else executor)
    if options.metrics is None and not in_memory and not plan.paged:
        run.plan = msgspec.structs.replace(plan, paged=True)
    frames = checked_rows(run, threads.each)
    plan = run.plan
    if unlimited:
        message = f"all rows are kept in the memory of one process: {unlimited}."
        frames.notes.append(Note("not_in_parts", message))
    rows = rows_of(frames)  # the match may drop some
    content = dict if for_search else _digests(frames.tables, options, run.tables)
    values = own_values.measured(run.own, frames) if run.own else None
    loaded = time.perf_counter()
    step("matching")
    if options.limits:
        tallies, (free_choices, extremes) = limits.matched(plan, frames, threads)
    else:
        tallies = planner.run(plan, frames, threads)
    if options.memory_limit is not None and not unlimited:
        too_many_labels(plan, tallies, options)
    result = _summarised(plan, tallies, threads, intervals)
    if options.limits:
        bounds = limits.table(
            plan, result.frames["metrics"](), free_choices, extremes, threads.own()
        )
        result.frames[limits.FRAME] = lambda: bounds
    result.notes = frames.notes + result.notes
    result.rows = rows
    result.content = content
    result.recognised, result.sources = frames.recognised, frames.sources
    result.facts = {**frames.facts, "columns": frames.columns}
    result.seconds = {"read": loaded - run.begun, **tallies.seconds}
    if values is not None:
        result.values = own_values.with_slices(values, run.own, tallies.datums, None)
    return _scored(run, result, options, for_search=for_search)


_OWN_VALUES = "values.parquet"
"""File of the values of own metrics in bounded memory."""


def _add_analyses(result: Result, options: Options) -> None:
    """Add what human labels say of a judge, and the spread over groups."""
    if result.plan.does.judge:
        _add_human_labels(result, options)
    if options.spread is not None:
        from .statistics.tests import add_spread

        step("comparing groups")
        add_spread(result, options)


def _add_human_labels(result: Result, options: Options) -> None:
    """Add what human labels say of a judge, or a note that intervals say nothing of that."""
    if options.human is None and options.label_next is None:
        if options.drawn:
            result.notes = [*result.notes, Note("judge_not_checked", _NOT_CHECKED)]
        return
    from .statistics.human import add_human

    def verdicts(table: pl.DataFrame) -> tuple[pl.DataFrame, Sequence[Finding]]:
        plain = Options()
        label_options = options.replace(**{name: getattr(plain, name) for name in _NOT_OF_LABELS})
        card = score_tables(
            Tables(table), label_options.replace(task=result.plan.task, metrics=None)
        )
        return card.per_datum, card.findings

    add_human(result, options, verdicts)


_NOT_OF_LABELS = (
    *("by", "spread", "where", "columns", "human", "label_next", "memory_limit", "scratch"),
    *("intervals", "draws", "seed", "cluster", "method"),
)
"""Options of a run that do not apply to its table of human labels."""
_NOT_CHECKED = (
    "intervals describe what the judge would say of more such rows, not whether it is right. Give"
    f" human labels of some rows: {option('human', 'labels.parquet')}."
)


def _scored(run: Opened, result: Result, options: Options, *, for_search: bool) -> Scorecard:
    """Return the scorecard of a run, with the numbers of own metrics, from their values.

    Args:
        for_search: skip intervals and analyses.
    """
    if not for_search and (result.plan.does.judge or options.spread is not None):
        _add_analyses(result, options)
    result.notes = unanswered(result.plan, result.notes)
    result.seconds["total"] = time.perf_counter() - run.begun
    card = _card(result, options, messages_of(result.notes, result.recognised), run)
    if result.values is not None:
        facts = own_values.facts_of(run.own)
        add_own(card, run.options, facts, result.values, in_memory=for_search)
        card.options = run.options_with_own or card.options
    return card


def add_own(
    card: Scorecard,
    options: Options,
    facts: Mapping[str, Mapping[str, Any]],
    table: Any,
    *,
    in_memory: bool = False,
) -> None:
    """Add the numbers of own metrics to a scorecard, by scoring their values.

    Args:
        facts: name of every own metric -> its reference, direction and range.
        table: frame or file of the values.
        in_memory: skip intervals.
    """
    run = _values_run(options, card.task, facts, table)
    card.add_own(score_opened(run, in_memory=in_memory), dict(facts))


def _values_run(
    options: Options, task: str, facts: Mapping[str, Mapping[str, Any]], table: Any
) -> Opened:
    """Return the run that scores values of own metrics: a frame or a file of them."""
    run_options, options = options, own_values.options_of(options, task, facts)
    if isinstance(table, Path):
        here = local(run_options.scratch)  # the file is on this machine, too
        table, options = (
            str(table),
            options.replace(memory_limit=run_options.memory_limit, scratch=here),
        )
    opened = open_tables(Tables(table), options, built_in_only=True)
    opened.plan = own_values.with_ranges(opened.plan, facts)
    return opened


def tally_run(run: Opened, threads: Threads) -> tuple[Frames, Tallied]:
    """Tally the rows of open tables, and the values of own metrics; intervals are not made.

    Returns:
        the checked rows, and tallies in memory.
    """
    frames = checked_rows(run)
    values = own_values.measured(run.own, frames) if run.own else None
    tallies = planner.run(run.plan, frames, threads)
    own_tallied = None
    if values is not None:
        table = own_values.with_slices(values, run.own, tallies.datums, None)
        facts = own_values.facts_of(run.own)
        values_run = _values_run(run.options, run.plan.task, facts, table)
        own_tallied = tally_run(values_run, threads)[1]
    return frames, Tallied(run.plan, tallies, threads, own_tallied)


def _estimates(
    intervals: Intervals, plan: planner.Plan, tallies: Any, threads: Threads
) -> summary.Estimate:
    """Return the estimator of intervals."""
    from .statistics.resamples import Estimates

    return Estimates(plan, tallies, intervals, threads)


def _summarised(
    plan: planner.Plan, tallies: Any, threads: Threads, intervals: Intervals | None
) -> Result:
    """Return the frames of tallies in memory, computed on first access.

    Metrics with intervals are computed now, so that the notes on them are known.
    """
    threads = threads.own()
    estimate = None if intervals is None else _estimates(intervals, plan, tallies, threads)
    frames, view = summary.summarise(plan, tallies, threads=threads, estimate=estimate)
    if estimate is not None:
        metrics = frames["metrics"]()
        frames = {**frames, "metrics": lambda: metrics}
    return Result(
        plan=plan,
        frames=dict(frames),
        labels=tallies.labels.frame,
        notes=[] if estimate is None else estimate.notes(),
        n_datums=len(tallies.datums),
        view=view,
        tallied=Tallied(plan, tallies, threads),
    )


def unanswered(plan: planner.Plan, notes: Sequence[Note]) -> list[Note]:
    """Return the notes; that on datums without predictions becomes a warning if there are many.

    Datums with ground truths count. Other warnings about missing datums come first.
    """
    rule, kind = plan.does.unanswered, f"datums_without_{PREDICTIONS}"
    if rule is not None and not rule.leaves(plan.settings):
        return [*notes]
    way = " Their ground truths count as missed."
    if rule is not None:
        way = f" Means skip them, so they may be too high{rule.advice}."
    result = []
    for note in notes:
        if note.kind in _EXPLAINED:
            return [*notes]
        if note.kind == kind and note.facts:
            n, of = note.facts["with_ground_truths"], note.facts["ground_truths"]
            many = n >= MANY * of and n > 0
            if many and rule is None:  # objects that are missed honestly are few in their datum
                many = n >= min(of, 2) and _busy_are_missing(note.facts.get("sizes", {}))
                many |= note.facts.get("lost", 0) >= max(1, MANY * of)
            if many:
                note = msgspec.structs.replace(note, message=note.message + way, warning=True)
        result.append(note)
    return result


def _busy_are_missing(sizes: Mapping[str, Sequence[int]]) -> bool:
    """Return whether a tenth of the datums with many ground truths lack predictions.

    Many are as many as the median datum has, or more.

    Args:
        sizes: number of ground truths -> datums, and those of them without predictions.
    """
    if not sizes:
        return True
    size, datums, missing = np.array(sorted((int(n), *counts) for n, counts in sizes.items())).T
    rank, total = datums.cumsum(), datums.sum()
    middle = size[np.searchsorted(rank, [(total - 1) // 2, total // 2], side="right")].mean()
    busy = size >= middle
    return bool(missing[busy].sum() >= MANY * datums[busy].sum())


_EXPLAINED = ("splits_without_predictions", "ids_hardly_meet")
"""Warnings that explain why datums have no predictions."""


def _run_facts(result: Result, tables: Tables | None, scored: datetime) -> dict[str, Any]:
    """Return the content of ``run.json``: facts of tables, versions, timings."""
    paths = {}
    if tables is not None:
        first = TABLE if TABLE in result.rows else PREDICTIONS
        paths = {
            first: tables.predictions,
            GROUND_TRUTHS: tables.ground_truths,
            "datums": tables.datums,
            "labels": tables.labels,
        }
    inputs: dict[str, Any] = {}
    counts = {note.kind: note.count for note in result.notes if note.count is not None}
    for name, height in result.rows.items():
        inputs[name] = {"source": result.sources.get(name), "rows": height}
        if (kind := f"datums_without_{name}") in counts:
            inputs[name]["lacking"] = counts[kind]
        if isinstance(path := paths.get(name), (str, Path)):
            inputs[name] |= {"path": str(path), **_digest(path)}
    return {
        "evalengine": __version__,
        "python": platform.python_version(),
        "polars": pl.__version__,
        "fingerprint": result.plan.fingerprint,
        "inputs": inputs,
        "datums": result.n_datums,
        "content": _content(result, tables),
        "recognised": result.recognised,
        **{name: fact() if callable(fact) else fact for name, fact in result.facts.items()},
        "scored": scored.isoformat(timespec="seconds"),
        "seconds": {step: round(value, 6) for step, value in result.seconds.items()},
    }


_TABLE_OPTIONS = attrgetter(*TABLE_OPTIONS)
_LARGE: list[ReferenceType[Deferred[Any]]] = []
"""Digests of the large tables that were scored last."""
_SHARE = 4  # of free memory, which large tables may fill


def _digests(
    tables: Mapping[str, pl.DataFrame], options: Options, inputs: Tables
) -> Callable[[], Any]:
    """Return a function for the digests of tables and options.

    They take up to a third as long as a fast run. So rows of data frames, which the caller has, and
    of small files are kept until digests are asked for. Those of large files are kept until the
    next large files are scored; the largest are digested at once.
    """
    tables_of_caller = pl.DataFrame, NoneType
    of_caller = isinstance(inputs.predictions, tables_of_caller) and isinstance(
        inputs.ground_truths, tables_of_caller
    )
    size = sum(map(pl.DataFrame.estimated_size, tables.values()))
    later = Deferred(partial(_digests_now, tables, options))
    has_tables = {*map(type, _TABLE_OPTIONS(options))} != {type(None)}  # may change until then
    large_files = not of_caller and size > tuning().undigested_bytes
    if has_tables or (large_files and size > free_memory() // _SHARE):
        return dict(later.value).copy
    if large_files:
        for earlier in tuple(_LARGE):
            digests = earlier()
            if digests is not None:
                _ = digests.value  # frees its rows
        _LARGE[:] = [ref(later)]
    return partial(getattr, later, "value")


def _digests_now(tables: Mapping[str, pl.DataFrame], options: Options) -> Mapping[str, str]:
    from .ingest.digests import digests_of

    return digests_of(tables, options)


def _content(result: Result, tables: Tables | None) -> dict[str, str]:
    """Return the digests of a run; without those of datums and labels that came with a table."""
    excluded = {
        name for name in ("datums", "labels") if tables is None or getattr(tables, name) is None
    }
    return {name: digest for name, digest in result.content().items() if name not in excluded}


def _page(result: Result) -> Paged:
    """Return the report's frames, with the worst datums if there is a tally."""
    page, tallied = result.page, result.tallied
    if page is None:
        assert tallied is not None
        page = page_frames(result.plan, tallied.tallies, tallied.threads)
    elif not result.plan.paged:
        tallied = None
    if tallied is not None:
        missing = {name: why for name, why in page.missing.items() if name != "worst"}
        page = Paged({**page.makers, "worst": partial(worst, tallied)}, missing)
    return with_distribution(page, result.frames)


def _exports(result: Result) -> dict[str, Callable[[Any], Any]]:
    """Return the exporters; of a run in bounded memory they read the tally if it is in memory."""
    plan, tallied, view = result.plan, result.tallied, result.view
    if view is None and tallied is not None:
        view = plan.does.view(tallied.tallies, plan.settings, threads=tallied.threads)
    return makers(plan.task, plan.dialect.name, None if view is None else (view, plan.settings))


def _card(
    result: Result, options: Options, messages: Messages, run: Opened | None = None
) -> Scorecard:
    plan = result.plan
    read, files = {}, {}
    for name in (TABLE, PREDICTIONS, GROUND_TRUTHS):
        title = "rows" if name == TABLE else name
        if name in result.rows:
            read[title] = result.rows[name]
        source = None if run is None else run.inputs.sources.get(name)
        if source is not None and source.files and source.files != (source.description,):
            files[title] = len(source.files)  # given as more than the name of one file
    tables = None if run is None else run.tables
    return Scorecard(
        tallied=result.tallied,
        page=partial(_page, result),
        content=partial(_content, result, tables),
        task=plan.task,
        dialect=plan.dialect.name,
        options=options,
        frames=result.frames,
        labels=result.labels,
        run=partial(_run_facts, result, tables, datetime.now(UTC)),
        notes=messages.notes,
        warnings=messages.warnings,
        findings=messages.findings,
        exports=partial(_exports, result),
        read={**read, "datums": result.n_datums},
        files=files,
        directions={
            metric.name: plan.dialect.better.get(metric.name, metric.better)
            for metric in plan.metrics
        },
    )


def messages_of(
    notes: Sequence[Note], recognised: Mapping[str, Mapping[str, str]] | None = None
) -> Messages:
    """Return notes, and names of recognised columns, in public form."""
    sentences: list[str] = []
    for table, names in (recognised or {}).items():
        if names:
            read = ", ".join(f"{original} as {canonical}" for original, canonical in names.items())
            sentences.append(f"{table.replace('_', ' ')}: read {read}.")
    warnings, findings = [], []
    for note in notes:
        message, severity = render(note.message), "warning" if note.warning else "note"
        sentences.append(message)
        warnings += [message] * note.warning
        findings.append(Finding(note.kind, severity, message, note.count, note.facts))
    return Messages(tuple(sentences), tuple(warnings), tuple(findings))


def card_of_tallies(
    plan: planner.Plan,
    options: Options,
    tallies: Any,
    threads: Threads,
    messages: Messages,
    **fields: Any,
) -> Scorecard:
    """Return a scorecard from existing tallies; frames are computed on first access.

    Args:
        threads: threads for computing frames.
        messages: notes of the run.
        **fields: of :class:`~evalengine.evaluation.summary.Result`.
    """
    result = _summarised(plan, tallies, threads, parse_intervals(options))
    result = msgspec.structs.replace(result, **fields)
    _add_analyses(result, options)
    return _card(result, options, messages + messages_of(result.notes))


# Runs as users pass them, scored, saved or as tables, and their tallies.

R = TypeVar("R")

DRAWS = 200
"""Default number of resamples for intervals of analyses."""

SETTABLE = ("metrics", "intervals", "draws", "seed", "method", "cluster", "threads")
"""Options of analyses with intervals that also apply to a scored run."""


def is_saved(run: Any) -> bool:
    return isinstance(run, (str, Path)) and (Path(run) / RUN_FILE).is_file()


def is_scored(run: Any) -> bool:
    return isinstance(run, Scorecard) or is_saved(run)


def refuse_tables(tables: Tables, *, datums: bool = True) -> None:
    """Refuse tables given together with a run that is already scored.

    Raises:
        OptionError: names the first one.
    """
    for name in ("ground_truths", *(["datums"] * datums), "labels"):
        if getattr(tables, name) is not None:
            raise OptionError(
                f"{option(name)} is given, but the run is scored already: omit it.",
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
        requested, theirs = getattr(options, field), getattr(card.options, field)
        if field == "task" and theirs is None:
            theirs = card.task
        if field in settable or requested in (getattr(plain, field), theirs):
            continue
        text = "without it" if _unset(theirs) else f"with {option(field, theirs)}"
        raise OptionError(
            f"{option(field, requested)} is given, but the run is scored already, {text}: omit it,"
            " or give the tables.",
            code="option_unread",
            option=field,
            value=requested,
        )


def card_of_run(
    tables: Tables,
    options: Options,
    *,
    showing: Collection[str] = (),
    in_memory: bool = True,
    settable: Collection[str] = (),
) -> Scorecard:
    """Return a run's scorecard: unchanged, loaded, or scored.

    Args:
        showing: additional frames to compute, if the task has them.
        in_memory: see :func:`score_opened`.

    Raises:
        OptionError: an option that contradicts a scored run and is not ``settable``.
    """
    run = tables.predictions
    if is_scored(run):
        card: Scorecard = run if isinstance(run, Scorecard) else load(run)
        refuse_options(card, options, settable)
        return card
    parse_intervals(options)
    step("reading and checking")
    opened = open_tables(tables, options)
    if showing:
        opened.plan = planner.showing(opened.plan, showing)
    return score_opened(opened, in_memory=in_memory)


def class_names(*cards: Scorecard) -> dict[str, str]:
    """Return names of classes by label value as text, if different from the value.

    The first run with a name decides; values with two names in one run are skipped.
    """
    result: dict[str, str] = {}
    for card in reversed(cards):
        names = card.labels.select(pl.col("label_value").cast(pl.String), "label_name")
        pairs = names.drop_nulls().unique().filter(~pl.col("label_value").is_duplicated())
        result |= {value: name for value, name in pairs.iter_rows() if value != name}
    return result


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
        tally: Tallied = card.tallied
        return (
            tally if threads is None else msgspec.structs.replace(tally, threads=Threads(threads))
        )
    way = (
        f"Score it without {option('memory_limit')} and {option('executor')}, or give the tables"
        " themselves."
    )
    if card.folder is None:
        raise ResultError(
            f"{name}: this scorecard has no tally, which {step} needs: it is a copy, or the tally"
            f" was too large to keep. {way}",
            code="not_kept",
            step=step,
        )
    path = card.folder / TALLY_FILE
    if not path.is_file():
        raise ResultError(
            f"{card.folder} has no tally, which {step} needs: it was too large, or the folder was"
            f" written from a copied scorecard or by an earlier version. {way}",
            code="not_kept",
            step=step,
        )
    own_facts: dict[str, Any] = card.run.get("own_metrics") or {}
    built_in = [name for name in card.directions if name not in own_facts]
    plan = planner.narrowed(planner.make_plan(card.options, card.task), built_in)
    again = f"Score it again: {command(card.task, card.options, card.run.get('inputs', {}))}"
    workers = Threads(threads or card.options.threads)
    tallied = Tallied(plan, stored.load(path, again=again), workers)
    if not (card.folder / OWN_FILE).is_file():
        return tallied
    values = own_values.plan_of(card.options, card.task, own_facts)
    of_own = Tallied(values, stored.load(card.folder / OWN_FILE, again=again), workers)
    return msgspec.structs.replace(tallied, own=of_own)


def with_keys(
    tallied: Tallied, cluster: str | None, by: tuple[str, ...] | None = None, name: str = "the run"
) -> Tallied:
    """Add the keys for resamples and halves to a run's datums.

    Args:
        by: slices to keep, in place of the cluster in the plan's options; all unless given.

    Raises:
        InputError: it was scored without the column of the clusters.
    """
    datums, options = tallied.tallies.datums, tallied.plan.options
    if cluster is not None and cluster not in datums.slices.columns:
        raise InputError(
            f"{option('cluster', cluster)}: {name} was scored without that column. Score it"
            f" with {option('cluster', cluster)} or {option('by', cluster)}."
        )
    keys = draw_keys(datums.id, datums.slices, cluster)
    slices = datums.slices if by is None else datums.slices.select(by)
    datums = msgspec.structs.replace(datums, keys=keys, slices=slices)
    options = options.replace(cluster=cluster) if by is None else options.replace(by=by)
    plan = msgspec.structs.replace(tallied.plan, options=options)
    tallies = msgspec.structs.replace(tallied.tallies, datums=datums)
    return msgspec.structs.replace(tallied, plan=plan, tallies=tallies)


def intervals_of(options: Options) -> Intervals:
    """Return level, resamples and seed for intervals of analyses, whose method is fixed.

    Raises:
        OptionError: a method is given.
    """
    options = options if options.drawn else options.replace(intervals=LEVEL)
    intervals = parse_intervals(
        options.replace(draws=DRAWS if options.draws is None else options.draws)
    )
    assert intervals is not None
    if intervals.method is not None:
        raise invalid(
            "method",
            intervals.method,
            "findings have intervals of one kind; omit it.",
            code="option_unread",
        )
    return intervals


def hits_at(settings: Any) -> dict[str, Any]:
    """Return the threshold at which boxes hit, in user units, and whether it is a distance."""
    at = getattr(settings, "pr_curve_iou_threshold", None)
    if at is None:
        return {"iou_threshold": None}
    return {"iou_threshold": settings.in_user_unit(at), "by_distance": settings.by_distance}


def own_ious(settings: Any, labels: pl.Series, at: Any, way: str) -> list[str]:
    """Report labels whose average precision has another IoU than the hits."""
    thresholds: dict[str, float] = getattr(settings, "label_ious", {})
    present = {*labels.cast(pl.String)}
    notes = []
    for iou in sorted({settings.in_user_unit(one) for one in thresholds.values()} - {at}):
        names = [
            name
            for name, one in thresholds.items()
            if settings.in_user_unit(one) == iou and name in present
        ]
        if names:
            value = [iou] if way == "iou_thresholds" else iou
            notes.append(
                f"AP of {listing(names)} is at IoU {iou:g}, and hits are looked at here at IoU"
                f" {at:g}: write {option(way, value)} for those of that AP."
            )
    return notes


def ious_of(tallied: Tallied) -> list[str]:
    """Report labels whose average precision has another IoU than ``pr_curve_iou_threshold``."""
    settings = tallied.plan.settings
    at = hits_at(settings)["iou_threshold"]
    values = tallied.tallies.labels.frame["label_value"]
    return own_ious(settings, values, at, "pr_curve_iou_threshold")


def refuse_own(tallied: Tallied, options: Options) -> None:
    """Refuse own metrics that an analysis of losses is asked for, and runs without others.

    Raises:
        OptionError: names the first one.
    """
    own_names = [] if tallied.own is None else [metric.name for metric in tallied.own.plan.metrics]
    requested = {*(options.metrics or ()), *own_metrics.names(options.metrics or ())}
    refused = [name for name in own_names if name in requested or not tallied.plan.metrics]
    if refused:
        raise OptionError(
            f"{option('metrics', refused)}: datums have no loss by an own metric, since only its"
            " values are known. Name a built-in metric, or score the values as a table:"
            f" {option('task', own_values.TASK)}.",
            code="option_unfit",
            option="metrics",
            value=refused[0],
        )


def refusal(frame: str, task: str, options: Options, tables: Tables) -> str:
    """Return why the first metric that fills a frame cannot score tables; empty if it can."""
    names = (planner.filling(task, frame)[0].name,)
    try:
        score_tables(tables, options.replace(metrics=names, task=task))
    except EvalengineError as error:
        return error.message
    return ""


def tallied_through(
    tables: Tables,
    options: Options,
    intervals: Intervals,
    *,
    metrics: Callable[[str], tuple[str, ...]],
    settable: Collection[str],
    then: Callable[[Tallied, Options], R],
    name: str,
    unread: Collection[str] = (),
) -> tuple[R, tuple[str, ...]]:
    """Run an analysis on the tallies of a run: scored, saved or as tables, also on disk.

    Args:
        metrics: the metrics to score with, from the task.

    Returns:
        the result of ``then``; notes of scoring.

    Raises:
        ResultError: a saved run without the required data.
    """

    def analyse(tallied: Tallied, changed: Options) -> R:
        step(name)
        try:
            return then(tallied, changed)
        except UnmatchedError as error:
            at = tallied.plan.settings.pr_curve_iou_threshold
            raise ResultError(
                f"{error.args[0]} in this run: score the tables with"
                f" {option('pr_curve_iou_threshold', at)}.",
                code="not_kept",
                option="pr_curve_iou_threshold",
                value=at,
            ) from None

    if not is_scored(tables.predictions):
        plain = options.replace(
            intervals=intervals.level, draws=intervals.draws, **dict.fromkeys(unread)
        )
        step("scoring")
        if plain.task is not None:
            metrics(plain.task)
        opened = open_tables(tables, plain)
        task = opened.plan.task
        opened.options = opened.options.replace(metrics=metrics(task))
        plan = planner.make_plan(opened.options, task)
        opened.plan = msgspec.structs.replace(plan, named=options.metrics is not None)
        with ExitStack() as disk:
            card = score_opened(opened, disk=disk)
            return analyse(tallied_of("the run", card), options), card.notes
    refuse_tables(tables)
    card = card_of_run(tables, options, settable=(*settable, *SETTABLE))
    tallied = with_keys(tallied_of("the run", card, name, options.threads), intervals.cluster)
    values = {name: getattr(options, name) for name in settable}
    changed = card.options.replace(
        **{name: value for name, value in values.items() if value is not None}
    )
    tallied = msgspec.structs.replace(tallied, plan=planner.make_plan(changed, card.task))
    return analyse(tallied, changed.replace(metrics=options.metrics)), ()
