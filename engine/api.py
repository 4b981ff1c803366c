"""The public calls: score, check, explain and their small kin."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import msgspec
import polars as pl

from . import dialects, metrics, scoring, tasks
from .executors import Threads
from .ingest.frames import Frames, checked_frames
from .ingest.problems import count_of
from .ingest.rules.columns import columns_told
from .ingest.values import sides_by_name
from .plan import planner
from .schemas.contract import DATUMS, GROUND_TRUTHS, LABELS, PREDICTIONS, TABLE
from .schemas.errors import OptionError
from .schemas.option_values import make_options
from .schemas.options import Options
from .schemas.results import Finding
from .scorecard.card import Scorecard

if TYPE_CHECKING:
    from .analysis.error_table import FoundErrors
    from .analysis.slice_table import FoundSlices
    from .schemas.named import Named
    from .statistics.comparison import Comparison

Progress = Callable[[str], None]


class CheckReport(msgspec.Struct, frozen=True):
    """What ``check`` found; tables that break their contract raise instead.

    Attributes:
        rows: rows of each table.
        sources: where each table came from.
        recognised: table -> own column name -> canonical name, where they differ.
        notes: what is worth knowing.
        warnings: those of the notes that would make a result meaningless.
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
            Arrow stream interface. One table may hold both sides, where the task allows it.
        ground_truths: the same; a COCO ground-truth JSON also brings its images and categories.
        y_true: the ground truths by scikit-learn's name, in place of ``ground_truths``.
        y_pred: the predictions by scikit-learn's name, in place of ``predictions``.
        y_score: scores, likewise; beside ``y_pred`` those of the positive class.
        options: options to start from; those named here win.
        datums: table or list of all datum ids, with slice columns; datums without boxes count.
        labels: table or list of declared classes.
        storage_options: for remote paths, as Polars takes them.
        executor: where the work runs: ``threads`` (unless given), ``processes`` of this machine,
            or ``dask``; or a thread-based ``concurrent.futures.Executor`` instead of own threads.
        address: of a Dask scheduler, whose workers share a file system with this machine.
        progress: True shows what the run is at; or called with the name of each step as it starts,
            a str that has ``done``, ``total`` and ``unit`` where these are known.
        report: an HTML file to write about the run; what it shows is counted too, whatever the
            metrics.
        **named: any field of :class:`evalengine.Options`.

    Returns:
        a :class:`evalengine.Scorecard`, whose frames are made when asked for.

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
    predictions, ground_truths = sides_by_name(predictions, ground_truths, y_true, y_pred, y_score)
    if report is not None:
        from .reporting import check_report

        check_report(report)
    card = scoring.run(
        predictions,
        ground_truths,
        make_options(options, **named),
        datums=datums,
        labels=labels,
        storage_options=storage_options,
        executor=executor,
        address=address,
        progress=progress,
        paged=report is not None,
    )
    if report is not None:
        from .reporting import make_report

        tables = {
            name: given
            for name, given in (
                (PREDICTIONS if ground_truths is not None else TABLE, predictions),
                (GROUND_TRUTHS, ground_truths),
                (DATUMS, datums),
                (LABELS, labels),
            )
            if given is not None
        }
        make_report(card, report, tables=tables, progress=progress)
    return card


def compare(
    first: Any,
    second: Any,
    *more: Any,
    ground_truths: Any = None,
    names: Sequence[str] | None = None,
    common: bool = False,
    adjust: str = "holm",
    test: str = "randomisation",
    missing: str = "skip",
    options: Options | Mapping[str, Any] | None = None,
    datums: Any = None,
    labels: Any = None,
    storage_options: dict[str, str] | None = None,
    progress: Progress | bool | None = None,
    **named: Unpack[Named],
) -> Comparison:
    """Compare runs over the same datums: differences, their intervals, and what luck could do.

    Every draw of the bootstrap is the same for all runs, so that what they share cancels.

    Args:
        first: predictions, as :func:`score` takes them, or one table with both sides; a
            :class:`Scorecard`; or the folder of a saved one.
        second: the same; differences are of the second less the first.
        *more: others; every pair is compared.
        ground_truths: of runs that are predictions.
        names: what the runs are called; by their files unless given.
        common: leave datums out that not all runs have, in place of refusing them.
        adjust: how p-values of many rows are adjusted: holm, bh (Benjamini-Hochberg) or none.
        test: where p-values come from: randomisation (of any number), t (paired, of means over
            datums) or mcnemar (exact, of shares of datums that are right).
        missing: how means count datums of which only some runs have a value: skip (in no run),
            zero, or worst (the worse end of the metric's range).
        options: options to start from; those named here win.
        datums: table or list of all datum ids; see :func:`score`.
        labels: table or list of declared classes.
        storage_options: for remote paths, as Polars takes them.
        progress: True shows what the run is at; or called with the name of each step as it starts,
            a str that has ``done``, ``total`` and ``unit`` where these are known.
        **named: any field of :class:`evalengine.Options`; ``intervals`` is 0.95 unless given.

    Returns:
        a :class:`evalengine.Comparison`.

    Raises:
        InputError: runs over other datums, ground truths or rules; names the first.
        ResultError: a saved run without what comparing needs.

    Example:
        >>> import evalengine as ee
        >>> ee.compare("a.parquet", "b.parquet", ground_truths="gts.parquet")  # doctest: +SKIP
    """
    from .comparing import compared

    return compared(
        (first, second, *more),
        ground_truths,
        make_options(options, **named),
        names=names,
        common=common,
        adjust=adjust,
        test=test,
        missing=missing,
        datums=datums,
        labels=labels,
        storage_options=storage_options,
        progress=progress,
    )


def find_errors(
    run: Any,
    ground_truths: Any = None,
    *,
    top: int = 50,
    sort: str = "loss",
    datums: Any = None,
    labels: Any = None,
    options: Options | Mapping[str, Any] | None = None,
    storage_options: dict[str, str] | None = None,
    progress: Progress | bool | None = None,
    **named: Unpack[Named],
) -> FoundErrors:
    """Find what is wrong in a run, the worst datums first.

    Args:
        run: a :class:`Scorecard`, the folder of a saved one, or predictions, as :func:`score` takes
            them. Rows of errors of a scored run are there where it has the metric that makes them
            (``Errors`` in detection).
        ground_truths: of predictions that are not scored yet.
        top: how many datums, and how many rows.
        sort: order of the rows: ``loss``, by how wrong their datums are, or ``score``, by how sure
            predictions were, with what was missed at the end.
        datums: table of all datums, of predictions that are not scored yet.
        labels: table or list of declared classes, of predictions that are not scored yet.
        options: options to start from; those named here win.
        storage_options: for remote paths, as Polars takes them.
        progress: True shows what the run is at; or called with the name of each step.
        **named: any field of :class:`evalengine.Options`.

    Returns:
        :class:`evalengine.analysis.error_table.FoundErrors`: ``datums``, and ``rows`` in tasks
        where rows are right or wrong, those that the number of ``datums`` counts.

    Raises:
        OptionError: the order of rows that a scored run lacks; options beside a scored run that are
            not its own.
        ResultError: a run whose tally was too large to keep.

    Example:
        >>> import evalengine as ee
        >>> ee.find_errors("preds.parquet", "gts.parquet").rows  # doctest: +SKIP
    """
    from .finding_errors import found_errors

    return found_errors(
        run,
        ground_truths,
        make_options(options, **named),
        top=top,
        sort=sort,
        datums=datums,
        labels=labels,
        storage_options=storage_options,
        progress=progress,
    )


def find_slices(
    run: Any,
    ground_truths: Any = None,
    *,
    datums: Any = None,
    labels: Any = None,
    top: int = 20,
    levels: int = 3,
    least: int | None = None,
    alpha: float = 0.95,
    confirm: bool = False,
    options: Options | Mapping[str, Any] | None = None,
    storage_options: dict[str, str] | None = None,
    progress: Progress | bool | None = None,
    **named: Unpack[Named],
) -> FoundSlices:
    """Find the slices in which a run is worst.

    Single datums are judged by a loss of their own, as for :func:`worst datums
    <evalengine.analysis.worst.worst>`; every slice of up to ``levels`` conditions on the columns of
    ``datums`` is searched, exactly, for those with the highest losses for their size. A slice is
    left out where one of its conditions adds nothing. The first metric of the run that is one
    number of all datums, and no count, is then computed within each slice, with its interval, and
    in all other datums; a slice in which it is better than there is left out, and a note says so.

    Args:
        run: a :class:`Scorecard`, the folder of a saved one, or predictions, as :func:`score` takes
            them; of one table that holds both sides its own other columns are searched.
        ground_truths: of predictions that are not scored yet.
        datums: table of all datums whose columns are searched; beside the slice columns of the run.
        labels: table or list of declared classes, of predictions that are not scored yet.
        top: how many slices at most.
        levels: conditions of a slice at most.
        least: datums of a slice at least; a hundredth of all, and 10, unless given.
        alpha: weight of how bad a slice is against how large it is, in (0, 1]; 1 for bad alone.
        confirm: search one half of the datums, told apart by a hash of their ids, and measure the
            other: slices measured where they were found look worse than they are.
        options: options to start from; those named here win.
        storage_options: for remote paths, as Polars takes them.
        progress: True shows what the run is at; or called with the name of each step.
        **named: any field of :class:`evalengine.Options`; ``by`` names the columns to search,
            ``metrics`` the number to tell, ``draws`` is 200 unless given.

    Returns:
        :class:`evalengine.analysis.slice_table.FoundSlices`, whose ``frame`` has a row a slice.

    Raises:
        InputError: no column to part the datums by; datums that the table does not know.
        OptionError: options beside a scored run that it does not read.
        ResultError: a saved run without what this needs, or a run without anything wrong.

    Example:
        >>> import evalengine as ee
        >>> ee.find_slices("runs/monday", datums="images.parquet").frame  # doctest: +SKIP
    """
    from .slicing import found_slices

    return found_slices(
        run,
        ground_truths,
        make_options(options, **named),
        datums=datums,
        labels=labels,
        top=top,
        levels=levels,
        least=least,
        alpha=alpha,
        confirm=confirm,
        storage_options=storage_options,
        progress=progress,
    )


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
    plan, inputs = scoring.open_tables(
        predictions, ground_truths, chosen, datums, labels, storage_options
    )
    frames = checked_frames(inputs, plan.task, plan.options)
    plan = planner.fitted(plan, frames)
    report = _report(frames)
    planner.examine(plan, frames, Threads(chosen.threads))
    frames.notes[:] = scoring.unanswered(plan, frames.notes)
    said = scoring.told_of_notes(frames.notes)  # what only examining told is among it now
    return msgspec.structs.replace(
        report, notes=[*said.notes], warnings=[*said.warnings], findings=[*said.findings]
    )


def _report(frames: Frames) -> CheckReport:
    said = scoring.told_of_notes(frames.notes)
    return CheckReport(
        rows=scoring.rows_of(frames),
        sources=frames.sources,
        recognised=frames.recognised,
        notes=[*said.notes],
        warnings=[*said.warnings],
        findings=[*said.findings],
    )


def _task_of(options: Options) -> str:
    """The task that options without tables are for: the one with their dialect and metrics.

    Raises:
        OptionError: several have them.
    """
    if options.task is not None:
        return options.task
    fitting = [
        task
        for task in tasks.NAMES
        if options.dialect in dialects.names(task)
        and all(metrics.has(task, name) for name in options.metrics or ())
    ]
    if len(fitting) > 1:
        raise OptionError(f"task: say which, one of {', '.join(fitting)}; or give the tables.")
    return fitting[0] if fitting else tasks.NAMES[0]


def explain(
    predictions: Any = None,
    ground_truths: Any = None,
    *,
    number: str | None = None,
    options: Options | Mapping[str, Any] | None = None,
    datums: Any = None,
    labels: Any = None,
    storage_options: dict[str, str] | None = None,
    **named: Unpack[Named],
) -> str:
    """What :func:`score` would do, step by step.

    Tables that are given are read and checked, as :func:`check` does; without any, the plan that
    the options make is told alone. With ``number``, such as ``"AP[label=car, iou=0.5]"``, it is
    one number's story instead: its definition and rules, what it rests on, what was left out, the
    rows behind it, and how far it could move. A scored run may then stand for the tables.
    """
    from . import outofcore as partitions

    chosen = make_options(options, **named)
    if number is not None:
        from .explaining import number_told

        return number_told(
            predictions, ground_truths, number, chosen, datums, labels, storage_options
        )
    if predictions is None:
        return planner.explain(planner.make_plan(chosen, _task_of(chosen)))
    plan, opened = scoring.open_tables(
        predictions, ground_truths, chosen, datums, labels, storage_options
    )
    memory = partitions.told_of_memory(plan, opened, plan.options)
    frames = checked_frames(opened, plan.task, plan.options)
    plan = planner.fitted(plan, frames)
    report = _report(frames)
    said = "\n".join([planner.explain(plan), *memory])
    inputs = [
        f"input     {name.replace('_', ' ')}: {count_of(count, 'row')}"
        f" from {report.sources.get(name)}"
        for name, count in report.rows.items()
    ]
    return "\n".join([*inputs, *columns_told(frames.columns()), said])


def metrics_table() -> pl.DataFrame:
    """Every metric with its definition, range, direction and source."""
    return metrics.table()


def warmup(task: str | None = None) -> None:
    """Compile every kernel and keep the result, for image builds and first runs.

    Args:
        task: compile what this task runs, and no more; every task unless given.

    Raises:
        OptionError: no task of that name.
    """
    wanted = tasks.NAMES if task is None else (task,)
    runs = [(name, run) for name in wanted for run in tasks.get(name).samples()]
    from .kernels import warm  # with NumPy, which asking for help does without

    warm.inputs()
    for task in wanted:
        warm_large = tasks.get(task).warm_large
        if warm_large is not None:
            warm_large()
    for task, (predictions, ground_truths, named) in runs:
        card = score(predictions, ground_truths, task=task, **named)
        for frame in card.frames:
            card.frame(frame)
        shape = dialects.get(task, card.dialect).export
        exported = None if shape is None else getattr(card, f"to_{shape}")()
        if isinstance(exported, Mapping):  # arrays made on access
            list(exported.values())
