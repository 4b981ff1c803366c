"""The public calls score, check, explain, metrics_table and warmup."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import msgspec
import polars as pl

from . import dialects, metrics, tasks
from .evaluation import planner
from .executors import Threads
from .ingest.opening import Tables
from .ingest.problems import count_of
from .ingest.rules.columns import describe_columns
from .ingest.values import sides_by_name
from .progress import Progress
from .run import checked_rows, messages_of, open_tables, rows_of, score_tables, unanswered
from .schemas.errors import OptionError
from .schemas.option_values import make_options
from .schemas.options import Options
from .schemas.results import Finding
from .schemas.wording import option
from .scorecard.card import Scorecard

if TYPE_CHECKING:
    from .schemas.named import Named, Task


class CheckReport(msgspec.Struct, frozen=True):
    """Result of ``check``; tables that break their contract raise instead.

    Attributes:
        rows: number of rows of each table.
        sources: origin of each table.
        recognised: table -> column name in the input -> canonical name, if they differ.
        notes: information and warnings.
        warnings: the notes that would make a result meaningless.
        findings: the notes as data: code, severity, count and facts of each.
    """

    rows: dict[str, int]
    sources: dict[str, str]
    recognised: dict[str, dict[str, str]]
    notes: list[str]
    warnings: list[str] = []
    findings: list[Finding] = []


def score(
    predictions: Any = None,
    ground_truths: Any = None,
    *,
    y_true: Any = None,
    y_pred: Any = None,
    y_score: Any = None,
    options: Options | Mapping[str, Any] | None = None,
    datums: Any = None,
    labels: Any = None,
    storage_options: dict[str, str] | None = None,
    executor: Executor | str | None = None,
    address: str | None = None,
    progress: Progress | bool | None = None,
    report: str | Path | None = None,
    **named: Unpack[Named],
) -> Scorecard:
    """Score predictions against ground truths.

    Args:
        predictions: a path, glob or list of paths (Parquet, Arrow IPC, CSV, JSONL, COCO results
            JSON), a Polars DataFrame or LazyFrame, a pyarrow Table, pandas, or anything with the
            Arrow stream interface. One table may contain both sides, if the task allows it.
        ground_truths: the same; a COCO ground-truth JSON also brings its images and categories.
        y_true: scikit-learn's name for ``ground_truths``.
        y_pred: scikit-learn's name for ``predictions``.
        y_score: scikit-learn's name for scores; with ``y_pred``, those of the positive class.
        options: options to start from; named ones take precedence.
        datums: table or list of all datum ids, with slice columns; datums without boxes count.
        labels: table or list of declared classes.
        storage_options: for remote paths, as Polars takes them.
        executor: ``threads`` (default), ``processes`` on this machine, ``dask``, ``ray``, or a
            thread-based ``concurrent.futures.Executor``.
        address: of a Dask scheduler, or of a Ray cluster (``auto`` on one of its nodes), whose
            workers share a file system with this machine.
        progress: True shows the progress; or a callable that receives the name of each step as it
            starts, a str with the attributes ``done``, ``total`` and ``unit`` if these are known.
        report: an HTML file to write about the run; everything it shows is computed too, whatever
            the metrics.
        **named: any field of :class:`evalengine.Options`.

    Returns:
        a :class:`evalengine.Scorecard`, whose frames are computed on first use.

    Raises:
        InputError: the tables break their contract; the message lists every problem.
        ReadError: a file is missing or cannot be read.
        OptionError: an option, metric, dialect or column that does not exist.
        ScratchError: rows do not fit into memory, nor on the disk of the scratch folder.

    Example:
        >>> import evalengine as ee
        >>> card = ee.score("preds.parquet", "gts.parquet", by="weather")  # doctest: +SKIP
        >>> card.value("mAP", iou_threshold=0.5)  # doctest: +SKIP
        0.63
    """
    if predictions is None or not (y_true is None and y_pred is None and y_score is None):
        predictions, ground_truths = sides_by_name(
            predictions, ground_truths, y_true, y_pred, y_score
        )
    if report is not None:
        from .reporting import check_report

        check_report(report)
    tables = Tables(predictions, ground_truths, datums, labels, storage_options)
    card = score_tables(
        tables,
        make_options(options, **named),
        executor=executor,
        address=address,
        progress=progress,
        paged=report is not None,
    )
    if report is not None:
        from .reporting import make_report

        make_report(card, report, tables=tables, progress=progress)
    return card


def check(
    predictions: Any,
    ground_truths: Any = None,
    *,
    options: Options | Mapping[str, Any] | None = None,
    datums: Any = None,
    labels: Any = None,
    storage_options: dict[str, str] | None = None,
    **named: Unpack[Named],
) -> CheckReport:
    """Read and check tables and options without scoring; arguments as :func:`score`.

    Raises:
        InputError: the tables break their contract; the message lists every problem.
    """
    chosen = make_options(options, **named)
    opened = open_tables(
        Tables(predictions, ground_truths, datums, labels, storage_options), chosen
    )
    frames = checked_rows(opened)
    heights = rows_of(frames)
    planner.examine(opened.plan, frames, Threads(chosen.threads))
    messages = messages_of(unanswered(opened.plan, frames.notes))
    return CheckReport(
        rows=heights,
        sources=frames.sources,
        recognised=frames.recognised,
        notes=[*messages.notes],
        warnings=[*messages.warnings],
        findings=[*messages.findings],
    )


def _task_of(options: Options) -> str:
    """Return the task whose dialect and metrics match options given without tables.

    Raises:
        OptionError: several tasks match.
    """
    fitting = planner.fitting_tasks(options)
    if len(fitting) > 1:
        raise OptionError(f"task: choose one of {', '.join(fitting)}, or give the tables.")
    return fitting[0] if fitting else tasks.NAMES[0]


def explain(
    predictions: Any = None,
    ground_truths: Any = None,
    *,
    number: str | None = None,
    rows: float | None = None,
    workers: int | None = None,
    options: Options | Mapping[str, Any] | None = None,
    datums: Any = None,
    labels: Any = None,
    storage_options: dict[str, str] | None = None,
    **named: Unpack[Named],
) -> str:
    """Describe the steps that :func:`score` would take.

    Tables are read and checked, as in :func:`check`; without tables only the plan is described.
    With ``rows`` (of all tables together; by default those of the given tables) or ``workers``, the
    cost of a run in bounded memory is forecast from measured runs: CPU, time, memory, scratch, and
    the resource that ends first. Tables show how large a row is.
    With ``number``, such as ``"AP[label=car, iou=0.5]"``, that number is explained instead: its
    definition and rules, the data behind it, the rows that were excluded, and its bounds. A scored
    run may then replace the tables.

    Raises:
        OptionError: ``rows`` or ``workers`` out of range, or together with ``number``.
    """
    from .outofcore.driver import describe_memory

    chosen = make_options(options, **named)
    tables = Tables(predictions, ground_truths, datums, labels, storage_options)
    forecast = rows is not None or workers is not None
    if number is not None:
        if forecast:
            raise OptionError(
                f"{option('number', number)} explains a number, and {option('rows')} and"
                f" {option('workers')} forecast a run: omit one of them.",
                code="options_conflict",
                options=["number", "rows", "workers"],
            )
        from .findings.explain import explain_number

        return explain_number(tables, number, chosen)
    if forecast:
        from .outofcore.memory import describe_forecast, refuse_unfit

        refuse_unfit(rows, workers)
    if predictions is None:
        plan = planner.make_plan(chosen, _task_of(chosen))
        lines = [planner.explain(plan)]
        if forecast:
            lines += describe_forecast(plan, rows, workers)
        return "\n".join(lines)
    opened = open_tables(tables, chosen)
    memory = describe_memory(opened.plan, opened.inputs, opened.options, rows, workers)
    frames = checked_rows(opened)
    message = "\n".join([planner.explain(opened.plan), *memory])
    inputs = [
        f"input     {name.replace('_', ' ')}: {count_of(count, 'row')}"
        f" from {frames.sources.get(name)}"
        for name, count in rows_of(frames).items()
    ]
    return "\n".join([*inputs, *describe_columns(frames.columns()), message])


def metrics_table() -> pl.DataFrame:
    """Every metric with its definition, range, direction and source.

    Returns:
        columns name, task, frame, averages, aliases, range, better, definition, formula, source,
        options.
    """
    rows = [
        {
            "name": metric.name,
            "task": task,
            "frame": metric.frame,
            "averages": ", ".join(metric.averages) or None,
            "aliases": ", ".join(metric.aliases) or None,
            "range": f"{metric.range[0]:g} to {metric.range[1]:g}",
            "better": metric.better,
            "definition": metric.definition,
            "formula": metric.formula or None,
            "source": metric.source,
            "options": ", ".join(metric.params) or None,
        }
        for task in tasks.NAMES
        for metric in metrics.all_metrics(task).values()
    ]
    return pl.DataFrame(rows)


def warmup(task: Task | None = None) -> None:
    """Compile every kernel and cache it, for image builds and first runs.

    Args:
        task: compile only the kernels of this task; by default all.

    Raises:
        OptionError: no task of that name.
    """
    requested = tasks.NAMES if task is None else (task,)
    runs = [(name, run) for name in requested for run in tasks.get(name).samples()]
    from .kernels import warm  # with NumPy, which asking for help does without

    warm.inputs()
    for name in requested:
        for kernels in tasks.get(name).warm:
            getattr(warm, kernels)()
    for name, (predictions, ground_truths, named) in runs:
        card = score(predictions, ground_truths, **{"task": name, **named})
        for frame in card.frames:
            card.frame(frame)
        shape = dialects.get(name, card.dialect).export
        exported = None if shape is None else getattr(card, f"to_{shape}")()
        if isinstance(exported, Mapping):  # arrays made on access
            list(exported.values())
