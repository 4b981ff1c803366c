"""The public calls: score, check, explain and their small kin."""

from __future__ import annotations

import hashlib
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import msgspec
import polars as pl

from . import dialects, metrics, tasks
from ._version import __version__
from .executors import Threads
from .exports import makers
from .ingest.frames import Frames, checked_frames
from .ingest.infer import infer_task
from .ingest.opening import Inputs, open_inputs
from .ingest.problems import Note
from .ingest.sources.held import Room
from .plan import planner
from .schemas.contract import GROUND_TRUTHS, PREDICTIONS, TABLE
from .schemas.errors import OptionError
from .schemas.option_values import make_options
from .schemas.options import Options
from .schemas.wording import in_python
from .scorecard.card import Scorecard
from .statistics.asked import wanted as wanted_intervals

if TYPE_CHECKING:
    from . import outofcore as partitions
    from .schemas.named import Named

Progress = Callable[[str], None]


class Told(msgspec.Struct, frozen=True):
    """What there is to tell of a run's inputs and options.

    Attributes:
        notes: one sentence each, warnings among them.
        warnings: those of the notes that make the result meaningless.
    """

    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class CheckReport(msgspec.Struct, frozen=True):
    """What ``check`` found; tables that break their contract raise instead.

    Attributes:
        rows: rows of each table.
        sources: where each table came from.
        recognised: table -> own column name -> canonical name, where they differ.
        notes: what is worth knowing.
        warnings: those of the notes that would make a result meaningless.
    """

    rows: dict[str, int]
    sources: dict[str, str]
    recognised: dict[str, dict[str, str]]
    notes: list[str]
    warnings: list[str] = []


def _open(
    predictions: Any,
    ground_truths: Any,
    options: Options,
    datums: Any,
    labels: Any,
    storage_options: dict[str, str] | None,
) -> tuple[planner.Plan, Inputs]:
    """The plan and the open tables; a task that is given is planned before any file is read."""
    plan = planner.make_plan(options, options.task) if options.task is not None else None
    inputs = open_inputs(
        predictions,
        ground_truths,
        datums=datums,
        labels=labels,
        options=options,
        storage_options=storage_options,
        room=_room(options),
    )
    return plan or planner.make_plan(options, infer_task(inputs, options)), inputs


def _room(options: Options) -> Room | None:
    """The memory that a limit leaves; None without one."""
    if options.memory_limit is None:
        return None
    from .outofcore.memory_plan import BASE, limit_of

    return Room(limit_of(options.memory_limit), BASE)


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


def _rows(frames: Frames) -> dict[str, int]:
    tables = {**frames.sides, "datums": frames.datums, "labels": frames.labels}
    return {name: table.height for name, table in tables.items() if table is not None}


def _recognised(recognised: dict[str, dict[str, str]]) -> list[str]:
    """One sentence a table whose columns go by other names."""
    return [
        f"{table.replace('_', ' ')}: read "
        + ", ".join(f"{own} as {canonical}" for own, canonical in names.items())
        + "."
        for table, names in recognised.items()
        if names
    ]


_HASHED_BYTES = 1 << 30  # larger files are told apart by size and time alone


def _digest(source: Any) -> dict[str, Any]:
    """Size, time and SHA-256 of a single local file; nothing for anything else."""
    if not isinstance(source, (str, Path)) or not Path(source).is_file():
        return {}
    found = Path(source).stat()
    facts: dict[str, Any] = {"bytes": found.st_size, "modified": found.st_mtime}
    if found.st_size <= _HASHED_BYTES:
        with open(source, "rb") as file:
            facts["sha256"] = hashlib.file_digest(file, "sha256").hexdigest()
    return facts


def score(
    predictions: Any,
    ground_truths: Any = None,
    *,
    options: Options | Mapping[str, Any] | None = None,
    datums: Any = None,
    labels: Any = None,
    storage_options: dict[str, str] | None = None,
    executor: Executor | str | None = None,
    address: str | None = None,
    progress: Progress | None = None,
    **named: Unpack[Named],
) -> Scorecard:
    """Score predictions against ground truths.

    Args:
        predictions: a path, glob or list of paths (Parquet, Arrow IPC, CSV, JSONL, COCO results
            JSON), a Polars DataFrame or LazyFrame, a pyarrow Table, pandas, or anything with the
            Arrow stream interface. One table may hold both sides, where the task allows it.
        ground_truths: the same; a COCO ground-truth JSON also brings its images and categories.
        options: options to start from; those named here win.
        datums: table or list of all datum ids, with slice columns; datums without boxes count.
        labels: table or list of declared classes.
        storage_options: for remote paths, as Polars takes them.
        executor: where the work runs: ``threads`` (unless given), ``processes`` of this machine,
            or ``dask``; or a thread-based ``concurrent.futures.Executor`` instead of own threads.
        address: of a Dask scheduler, whose workers share a file system with this machine.
        progress: called with the name of each step as it starts.
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
    chosen = make_options(options, **named)
    wanted_intervals(chosen)  # what is wrong with them is told before anything is read
    tell = progress or (lambda step: None)
    begun = time.perf_counter()
    tell("reading and checking")
    plan, inputs = _open(predictions, ground_truths, chosen, datums, labels, storage_options)
    first = TABLE if TABLE in inputs.sources else PREDICTIONS
    paths = {first: predictions, GROUND_TRUTHS: ground_truths, "datums": datums}
    pool = executor if isinstance(executor, str) else None
    unlimited = ""
    if executor is None or pool or address:
        done, unlimited = _in_parts(plan, inputs, chosen, pool, address, tell)
        if done is not None:
            seconds = {**done.seconds, "total": time.perf_counter() - begun}
            told = {"inputs": _sources(done.sources, done.rows), "datums": done.n_datums,
                    "recognised": done.recognised, "buckets": done.buckets}  # fmt: skip
            return _card(
                done.plan,
                chosen,
                done.frames,
                done.labels,
                _run(done.plan, told, seconds, paths),
                _told(done.recognised, done.notes),
                makers(done.plan.task, done.plan.dialect.name),
                _read(done.rows, done.n_datums),
                _files(inputs),
            )
    elif chosen.memory_limit is not None:
        unlimited = "the threads of a given executor work on them together"
    threads = Threads(chosen.threads, None if isinstance(executor, str) else executor)
    frames = checked_frames(inputs, plan.task, chosen, threads.each)
    plan = planner.fitted(plan, frames)
    if unlimited:
        said = f"all rows are held in the memory of one process: {unlimited}."
        frames.notes.append(Note("not_in_parts", said))
    rows = _rows(frames)
    loaded = time.perf_counter()
    tell("matching")
    tallies = planner.run(plan, frames, threads)
    if chosen.memory_limit is not None and not unlimited:
        from .outofcore.memory_plan import too_many_labels

        too_many_labels(plan, tallies, chosen)
    estimate = _estimates(plan, tallies, threads.own(), chosen)
    frame_makers, whole = planner.summarise(plan, tallies, threads=threads.own(), estimate=estimate)
    frame_makers, notes = _estimated(frame_makers, estimate)
    frames.notes += notes
    seconds = {"read": loaded - begun, **tallies.seconds, "total": time.perf_counter() - begun}
    told = {"inputs": _sources(frames.sources, rows), "datums": len(tallies.datums),
            "recognised": frames.recognised, **frames.facts}  # fmt: skip
    return _card(
        plan,
        chosen,
        frame_makers,
        tallies.labels.frame,
        _run(plan, told, seconds, paths),
        told_of(frames),
        makers(plan.task, plan.dialect.name, (whole, plan.settings)),
        _read(rows, len(tallies.datums)),
        _files(inputs),
    )


def _estimates(
    plan: planner.Plan, tallies: Any, threads: Threads, options: Options
) -> planner.Estimate | None:
    """What adds intervals to numbers; None where none were asked for."""
    asked = wanted_intervals(options)
    if asked is None:
        return None
    from .statistics.estimates import Estimates

    return Estimates(plan, tallies, asked, threads)


def _estimated(
    frames: Mapping[str, Callable[[], pl.DataFrame]], estimate: planner.Estimate | None
) -> tuple[Mapping[str, Callable[[], pl.DataFrame]], list[Note]]:
    """Frames whose intervals are made, so that what there is to tell of them is known."""
    if estimate is None:
        return frames, []
    metrics = frames["metrics"]()
    return {**frames, "metrics": lambda: metrics}, estimate.notes()


def _in_parts(
    plan: planner.Plan,
    inputs: Inputs,
    options: Options,
    executor: str | None,
    address: str | None,
    tell: Progress,
) -> tuple[partitions.Done | None, str]:
    """A run through buckets on disk; where none is due nothing, and why not if it was asked for."""
    from . import outofcore as partitions
    from .executors.named import pool_of

    pool = pool_of(executor, address, options.threads)
    try:
        found, reason = partitions.wanted(plan, inputs, options, pool)
        if found is None:
            return None, reason
        estimates = partial(_estimates, options=options)
        return partitions.run(found, plan, options, pool, tell, estimates), ""
    finally:
        pool.close()


def _read(rows: Mapping[str, int], datums: int) -> dict[str, int]:
    """Rows of both sides, and datums, as people are told of them."""
    shown = {"rows" if name == TABLE else name: rows[name] for name in _SIDES if name in rows}
    return {**shown, "datums": datums}


def _files(inputs: Inputs) -> dict[str, int]:
    """Files behind both sides, of those that were not given as one file by its name."""
    there = {name: inputs.sources[name] for name in _SIDES if name in inputs.sources}
    return {
        "rows" if name == TABLE else name: len(source.files)
        for name, source in there.items()
        if source.files and source.files != (source.description,)
    }


_SIDES = (TABLE, PREDICTIONS, GROUND_TRUTHS)


def _sources(sources: dict[str, str], rows: dict[str, int]) -> dict[str, Any]:
    return {name: {"source": sources.get(name), "rows": count} for name, count in rows.items()}


def _run(
    plan: planner.Plan, told: dict[str, Any], seconds: dict[str, float], paths: dict[str, Any]
) -> Callable[[], dict[str, Any]]:
    """What makes ``run.json``, with digests of the files."""
    run: dict[str, Any] = {
        "evalengine": __version__,
        "python": platform.python_version(),
        "polars": pl.__version__,
        "fingerprint": plan.fingerprint,
        **told,
        "seconds": {step: round(value, 6) for step, value in seconds.items()},
    }

    def with_digests() -> dict[str, Any]:
        for name, path in paths.items():
            if name in run["inputs"]:
                run["inputs"][name].update(_digest(path))
        return run

    return with_digests


def _card(
    plan: planner.Plan,
    options: Options,
    frames: Mapping[str, Callable[[], pl.DataFrame]],
    labels: pl.DataFrame,
    run: Callable[[], dict[str, Any]],
    said: Told,
    exports: Mapping[str, Callable[[Scorecard], Any]],
    read: Mapping[str, int],
    files: Mapping[str, int] | None = None,
) -> Scorecard:
    return Scorecard(
        task=plan.task,
        dialect=plan.dialect.name,
        options=options,
        frames=frames,
        labels=labels,
        run=run,
        notes=said.notes,
        warnings=said.warnings,
        exports=exports,
        read=read,
        files=files,
        directions={
            metric.name: plan.dialect.better.get(metric.name, metric.better)
            for metric in plan.metrics
        },
    )


def told_of(frames: Frames) -> Told:
    """What there is to tell of checked tables."""
    return _told(frames.recognised, frames.notes)


def _told(recognised: dict[str, dict[str, str]], notes: Sequence[Note]) -> Told:
    return Told(
        notes=(*_recognised(recognised), *(in_python(note.message) for note in notes)),
        warnings=tuple(in_python(note.message) for note in notes if note.warning),
    )


def card_of(
    plan: planner.Plan,
    options: Options,
    tallies: Any,
    threads: Threads,
    told: dict[str, Any],
    seconds: dict[str, float],
    said: Told,
) -> Scorecard:
    """The scorecard of tallies that are there already; its frames are made when asked for.

    Args:
        plan: what was tallied.
        options: as they were given.
        tallies: the task's.
        threads: what frames are made on.
        told: what ``run.json`` says of the inputs.
        seconds: wall time by step.
        said: what there is to tell.
    """
    estimate = _estimates(plan, tallies, threads.own(), options)
    frames, whole = planner.summarise(plan, tallies, threads=threads.own(), estimate=estimate)
    frames, notes = _estimated(frames, estimate)
    more = _told({}, notes)
    said = Told((*said.notes, *more.notes), (*said.warnings, *more.warnings))
    shapes = makers(plan.task, plan.dialect.name, (whole, plan.settings))
    run = _run(plan, told, seconds, {})
    rows = {name: one["rows"] for name, one in told["inputs"].items()}
    read = _read(rows, len(tallies.datums))
    return _card(plan, options, frames, tallies.labels.frame, run, said, shapes, read)


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
    plan, inputs = _open(predictions, ground_truths, chosen, datums, labels, storage_options)
    frames = checked_frames(inputs, plan.task, chosen)
    plan = planner.fitted(plan, frames)
    report = _report(frames)
    planner.examine(plan, frames, Threads(chosen.threads))
    said = _told({}, frames.notes)  # what only examining told is among it now
    return msgspec.structs.replace(report, notes=[*said.notes], warnings=[*said.warnings])


def _report(frames: Frames) -> CheckReport:
    said = _told({}, frames.notes)
    return CheckReport(
        rows=_rows(frames),
        sources=frames.sources,
        recognised=frames.recognised,
        notes=[*said.notes],
        warnings=[*said.warnings],
    )


def explain(
    predictions: Any = None,
    ground_truths: Any = None,
    *,
    options: Options | Mapping[str, Any] | None = None,
    datums: Any = None,
    labels: Any = None,
    storage_options: dict[str, str] | None = None,
    **named: Unpack[Named],
) -> str:
    """What :func:`score` would do, step by step.

    Tables that are given are read and checked, as :func:`check` does; without any, the plan that
    the options make is told alone.
    """
    from . import outofcore as partitions

    chosen = make_options(options, **named)
    if predictions is None:
        return planner.explain(planner.make_plan(chosen, _task_of(chosen)))
    plan, opened = _open(predictions, ground_truths, chosen, datums, labels, storage_options)
    memory = partitions.told_of_memory(plan, opened, chosen)
    frames = checked_frames(opened, plan.task, chosen)
    plan = planner.fitted(plan, frames)
    report = _report(frames)
    said = "\n".join([planner.explain(plan), *memory])
    inputs = [
        f"input     {name.replace('_', ' ')}: {count} rows from {report.sources.get(name)}"
        for name, count in report.rows.items()
    ]
    return "\n".join([*inputs, said])


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
