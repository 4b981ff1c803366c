"""One run of a job, from its file to its exit status."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from glob import escape
from pathlib import Path
from urllib.parse import quote

import msgspec
import polars as pl

from .. import run
from .._version import __version__
from ..atomic import (
    fresh_name,
    is_abandoned,
    mend,
    name_within,
    refuse,
    refuse_remote,
    swap,
    written,
)
from ..comparing import note_changes
from ..evaluation import planner
from ..evaluation.summary import Tallied
from ..ingest.opening import Tables
from ..progress import reminded
from ..reporting import make_report
from ..schemas.errors import ChangedError, EvalengineError, InputError
from ..schemas.options import Options
from ..schemas.results import FAILED, PASSED, UNJUDGED
from ..scorecard.card import Scorecard, load
from ..scorecard.storage import REPORT_FILE, check_target, real_folder, write_into
from .gates import refuse_unknown
from .loading import RUN_ID, LoadedJob, filled, load_job
from .process import (
    ABORT,
    ERROR,
    FAIL,
    INFO,
    WARNING,
    Lineage,
    LockedError,
    Stopped,
    Tell,
    aside,
    deferred_signals,
    locked,
    nothing,
)
from .records import (
    Baseline,
    Nights,
    Success,
    append_history,
    baseline_of,
    check_history,
    earlier_nights,
    finished_as,
    history_rows,
    last_partitions,
    read_success,
    recorded,
    replace_success,
    shorten_nights,
    write_nights,
    write_records,
)
from .reports import gate_lines
from .sources import OPTIONS, File, JobTables, Part, find_inputs, in_window, listed, score_parts
from .verdicts import (
    Verdict,
    Watch,
    compare_with,
    failed,
    judge_gates,
    keeping,
    means_differ_in_datums,
    needing_margins,
    numbers_of,
    watch_of,
)

# The partitions of a job as parts, whose tallies are kept between nights.

FOLDER = ".tallies"
_DAY = 86400.0  # seconds
_LONGEST = 190  # bytes of a partition's name that the names of its tally and draft contain


def parts_of(loaded: LoadedJob, tables: JobTables, *, again: bool) -> list[Part]:
    """Return the partitions of a job, in order.

    A tally's key covers its dependencies: the partition's and the shared files, options except
    threads, the files that define own metrics, and the version. Any other change makes another key
    and file.

    Args:
        tables: its inputs, with partitions.
        again: recompute every tally.
    """
    outputs = loaded.job.outputs
    name = name_within(quote(loaded.job.name, safe=""), _LONGEST)
    folder = Path(loaded.resolve(outputs.tallies or f"{FOLDER}/{name}"))
    options = repr(loaded.deciding)
    functions = _digests(loaded)
    parts = []
    for value in tables.partitions:
        depends = [__version__, options, tables.key_of(value), *functions]
        key = hashlib.sha256(msgspec.json.encode(depends)).hexdigest()[:16]
        part = Part(
            name=value,
            predictions=tables.of_partition("predictions", value),
            ground_truths=tables.of_partition("ground_truths", value),
            datums=tables.of_partition("datums", value),
            key=key,
            tally=folder / f"{name_within(value, _LONGEST)}.{key}.tally",
        )
        if again:
            with suppress(OSError):
                part.tally.unlink()
        parts.append(part)
    return parts


def _digests(loaded: LoadedJob) -> list[str]:
    """Digests of the files that define the job's own metrics."""
    return [metric.digest for metric in run.split_metrics(loaded.options)[1]]


def describe_lost(loaded: LoadedJob, tables: JobTables, run_id: str) -> str | None:
    """Return a sentence on partitions of the previous run that no longer exist, or None.

    Args:
        loaded: the job; partitions outside its window are ignored.
        tables: its inputs.
        run_id: of this run.
    """
    inputs = loaded.job.inputs
    earlier, finished = last_partitions(loaded.matching(loaded.earlier), loaded.job.name, run_id)
    gone = [
        value for value in earlier if value not in tables.partitions and in_window(inputs, value)
    ]
    if not gone:
        return None
    many, are = ("partition", "is") if len(gone) == 1 else ("partitions", "are")
    return (
        f"{len(gone)} {many} of {inputs.partition} that the run of {finished[:19]} UTC had {are}"
        f" missing now and skipped: {listed(gone)}. Require partitions with inputs.required."
    )


def clear_older(parts: Sequence[Part]) -> None:
    """Remove tallies of the same partitions under outdated keys.

    Also removes drafts of killed runs; those of other machines only after a day, as younger ones
    may be in use.
    """
    begun = time.time() - _DAY
    for folder in {part.tally.parent for part in parts}:
        for path in folder.glob(".*.tally.*"):
            with suppress(OSError):
                if is_abandoned(path) or path.stat().st_mtime <= begun:
                    path.unlink()
    for part in parts:
        # A glob is not sufficient: partition "v1" would match "v1.2".
        label = part.tally.name.removesuffix(f".{part.key}.tally")
        pattern = re.compile(re.escape(label) + r"\.[0-9a-f]{16}\.tally")
        for path in part.tally.parent.glob(f"{escape(label)}.*.tally"):
            with suppress(OSError):
                if pattern.fullmatch(path.name) and path != part.tally:
                    path.unlink()


# Plan of a job's run: inputs, id, and folder of its result.


class JobPlan(msgspec.Struct, frozen=True):
    """Plan of a run.

    Attributes:
        loaded: the job.
        tables: its inputs.
        run_id: hash of inputs, options and version: 16 hexadecimal digits.
        folder: of its result, relative to the working folder.
        path: the folder as written in the job file.
    """

    loaded: LoadedJob
    tables: JobTables
    run_id: str
    folder: Path
    path: str


def plan_job(path: str | Path, variables: Mapping[str, str] | None = None) -> JobPlan:
    """Read a job file, find its inputs and compute its run id, without writing.

    Args:
        path: a TOML file.
        variables: values for its ``[variables]``.

    Raises:
        EvalengineError: the file or its inputs are invalid.
    """
    loaded, _ = _opened(path, variables, nothing)
    plan = planned(loaded)
    _refuse_tables(plan)
    return plan


def _opened(
    path: str | Path, variables: Mapping[str, str] | None, tell: Tell
) -> tuple[LoadedJob, Lineage]:
    """Read a job file, and refuse a target of lineage that cannot be written."""
    loaded = load_job(path, variables)
    _refuse_inputs(loaded, [loaded.path])
    job, target = loaded.job, loaded.job.outputs.lineage
    if target is not None and not target.startswith(("http://", "https://")):
        refuse_remote(target, "outputs.lineage")
    file = None if target is None else loaded.resolve(target)
    return loaded, Lineage(job.outputs, file, job.name, partial(tell, job=job.name, level=WARNING))


def planned(loaded: LoadedJob) -> JobPlan:
    """The plan of a job file that is read; see :func:`plan_job`."""
    outputs = loaded.job.outputs
    refuse_remote(outputs.folder, "outputs.folder")
    refuse_remote(outputs.tallies or "", "outputs.tallies")
    if outputs.history is not None:
        check_history(outputs.history, outputs.history_format)
    report = loaded.job.report
    if report is not None and report.images is not None:
        pictures = loaded.resolve(report.images)
        if not os.path.isdir(pictures):
            raise InputError(f"report.images: {pictures!r} is not a folder.", code="file_missing")
    if loaded.options.task is not None:
        # Report wrong names of metrics and dialects before any table is read.
        planner.make_plan(loaded.options, loaded.options.task)
    inputs = find_inputs(loaded)
    files = [
        [role, file.name, *file.digests]
        for role, files_of_role in inputs.files.items()
        for file in files_of_role
    ]
    # Threads are not in it: they change no number.
    key = [__version__, loaded.job.name, repr(loaded.deciding), inputs.partitions, files]
    key += _digests(loaded)
    run_id = hashlib.sha256(msgspec.json.encode(key)).hexdigest()[:16]
    path = filled(outputs.folder, {RUN_ID: run_id})
    return JobPlan(loaded, inputs, run_id, Path(loaded.resolve(path)), path)


def planned_again(plan: JobPlan) -> JobPlan:
    """Recompute a plan from the present inputs.

    Raises:
        InputError: the inputs changed, so the result has another folder than the locked one.
    """
    if not plan.tables.changed():
        return plan
    now = planned(plan.loaded)
    if now.folder != plan.folder:
        raise InputError(
            "input files changed while this run waited for another: run it again.",
            code="inputs_changed",
        )
    return now


STRICT = "strict"
"""Name of verdicts on warnings."""


class JobResult(msgspec.Struct, frozen=True):
    """Result of a job.

    Attributes:
        plan: the plan of the run.
        ran: True if it was scored now, False if the result existed.
        verdicts: of its gates.
    """

    plan: JobPlan
    ran: bool
    verdicts: list[Verdict]

    @property
    def gate_failed(self) -> bool:
        """True if a gate failed."""
        return bool(failed(self.verdicts))

    @property
    def card(self) -> Scorecard:
        """The result."""
        return load(self.plan.folder)


def run_job(
    path: str | Path,
    *,
    variables: Mapping[str, str] | None = None,
    force: bool = False,
    wait: float = 0.0,
    tell: Tell = nothing,
) -> JobResult:
    """Run a job, unless its result already exists.

    Args:
        path: a TOML file; paths in it are relative to it.
        variables: values for its ``[variables]``.
        force: score again even if finished.
        wait: seconds to wait for another run that writes the same folder.
        tell: log callback.

    Returns:
        the result; failed gates are part of it, not raised.

    Raises:
        LockedError: another run writes the same folder.
        EvalengineError: job file, inputs, options or gates are invalid.

    Example:
        >>> import evalengine as ee
        >>> result = ee.run_job("job.toml", variables={"date": "2026-11-20"})  # doctest: +SKIP
        >>> result.gate_failed  # doctest: +SKIP
        False
    """
    started = datetime.now(UTC).isoformat()
    loaded, lineage = _opened(path, variables, tell)
    job = loaded.job
    tell = partial(tell, job=job.name)
    try:
        plan = planned(loaded)
    except EvalengineError as error:
        lineage.never_began(str(error))
        raise
    _refuse_tables(plan)
    tell(
        "planned",
        run_id=plan.run_id,
        folder=plan.path,
        files=sum(map(len, plan.tables.files.values())),
    )
    with locked(plan.folder, job.name, wait=wait, tell=partial(tell, level=WARNING)):
        cleared = mend(real_folder(plan.folder))
        if cleared:
            tell("deleted files of a run that died", level=WARNING, folders=cleared)
        # Waiting may have taken long enough for other tables to come.
        plan = planned_again(plan) if wait else plan
        before = read_success(plan.folder)
        if not force and finished_as(plan.folder, plan.run_id):
            return _again(plan, tell, lineage)
        lineage.start(plan.tables, plan.folder)
        try:
            verdicts, wrong = _score(plan, before, started, force, tell, lineage)
        except BaseException as error:
            stopped = isinstance(error, (Stopped, KeyboardInterrupt))
            message = str(error) or type(error).__name__
            tell("stopped" if stopped else "failed", level=ERROR)
            lineage.stop(ABORT if stopped else FAIL, message)
            raise
    if wrong is not None:
        raise wrong
    tell("done", gates=FAILED if failed(verdicts) else PASSED, folder=plan.path)
    return JobResult(plan, True, verdicts)


def _refuse_inputs(loaded: LoadedJob, files: list[Path | str]) -> None:
    """Refuse outputs of a job that would be written into one of its inputs."""
    outputs = loaded.job.outputs
    folders = [*files, *{os.path.dirname(os.path.abspath(file)) for file in files}]
    for name, targets in (("lineage", files), ("history", folders), ("tallies", folders)):
        output = getattr(outputs, name)
        if output is not None:
            refuse(loaded.resolve(output), targets, f"outputs.{name}")


def _refuse_tables(plan: JobPlan) -> None:
    """Refuse outputs of a job that would be written into its tables."""
    tables = plan.tables.files.values()
    _refuse_inputs(plan.loaded, [file.path for files in tables for file in files])


def _again(plan: JobPlan, tell: Tell, lineage: Lineage) -> JobResult:
    """Return the result of a finished run; gates changed since are evaluated again on its numbers.

    Also completes its lineage if it died after the final rename.
    """
    success = finished_as(plan.folder, plan.run_id)
    assert success is not None
    tell("finished before; no work to do", finished=success.finished)
    card = load(plan.folder)
    verdicts, watch = _before(plan, success), None
    if verdicts is None:
        baseline = baseline_of(
            plan.loaded, plan.folder, plan.run_id, success, partial(tell, level=WARNING)
        )
        watch = _watch(plan, card, baseline, tell)
        verdicts = _verdicts(plan, card, baseline, watch)
    verdicts += _warned(plan, card)
    status = FAILED if failed(verdicts) else PASSED
    with deferred_signals():
        if watch is not None:
            write_nights(plan.folder, _nights(plan, baseline, watch))
        if not (plan.folder / REPORT_FILE).is_file():
            _report(plan, card, Baseline(), verdicts, plan.folder, tell)
        if status != success.gates:
            success = msgspec.structs.replace(success, gates=status)
            replace_success(plan.folder, success)
            _remember(plan, card, success, again=True)
        else:
            _remember(plan, card, success, again=False)
        if success.untold is not None and lineage.run_id is not None:
            lineage.resume(success.untold, plan.tables, plan.folder)
            _complete(plan, success, verdicts, lineage)
    return JobResult(plan, False, verdicts)


def _before(plan: JobPlan, success: Success) -> list[Verdict] | None:
    """Return the recorded verdicts of a run if they would be the same again, otherwise None."""
    gates = plan.loaded.gates
    reused = needing_margins(gates) or any(gate.always for gate in gates)
    if not reused or success.baseline != plan.loaded.job.baseline:
        return None
    if recorded(plan.folder).false_alarms != plan.loaded.job.false_alarms:
        return None
    verdicts = [one for one in recorded(plan.folder).gates if one.gate != STRICT]
    return verdicts if {one.gate for one in verdicts} == {gate.title for gate in gates} else None


def _watch(
    plan: JobPlan,
    card: Scorecard,
    baseline: Baseline,
    tell: Tell,
    parts: Mapping[str, Tallied] | None = None,
) -> Watch | None:
    """Return the nights of this run and of earlier ones, if gates need them.

    Args:
        parts: tallies of the run's partitions, each of which is a night.
    """
    loaded = plan.loaded
    tables = loaded.job.inputs.predictions
    night = tables if isinstance(tables, str) else " ".join(tables)
    watch = watch_of(loaded.gates, card, baseline.card, night, parts)
    if watch is None:
        return None
    watch.finished = datetime.now(UTC).isoformat()
    pattern = loaded.matching(loaded.earlier)
    earlier, skipped = earlier_nights(pattern, loaded.job.name, _origin(plan, baseline))
    watch.shares, watch.read = earlier.shares, earlier.read
    if skipped:
        why = "another model, path, option or baseline"
        tell(f"earlier nights do not count for always: {why}", runs=skipped)
    if not loaded.job.inputs.partition:
        watch.nights = earlier.seen
        watch.digest = watch.digest or plan.tables.digest
    return watch


def _origin(plan: JobPlan, baseline: Baseline) -> str:
    """Hash of what gates with ``always`` are about, with the run of a fixed baseline."""
    compared = any(gate.always and gate.needs_baseline for gate in plan.loaded.gates)
    fixed = compared and not plan.loaded.moving
    return f"{plan.loaded.origin} {baseline.run_id or '' if fixed else ''}"


def _nights(plan: JobPlan, baseline: Baseline, watch: Watch) -> Nights:
    return Nights(_origin(plan, baseline), watch.nights, watch.shares, watch.read)


def _verdicts(
    plan: JobPlan, card: Scorecard, baseline: Baseline, watch: Watch | None
) -> list[Verdict]:
    return judge_gates(
        plan.loaded.gates,
        numbers_of(card),
        baseline.numbers(card),
        first=baseline.first,
        compare=compare_with(baseline.card, card),
        differ=means_differ_in_datums(baseline.card, card),
        watch=watch,
        budget=plan.loaded.job.false_alarms,
    )


def _complete(plan: JobPlan, success: Success, verdicts: list[Verdict], lineage: Lineage) -> None:
    """Report completion to lineage, and record that."""
    if lineage.complete(verdicts) and success.untold is not None:
        replace_success(plan.folder, msgspec.structs.replace(success, untold=None))


def _score(
    plan: JobPlan, before: Success | None, started: str, force: bool, tell: Tell, lineage: Lineage
) -> tuple[list[Verdict], EvalengineError | None]:
    """Score, judge, and move the result into place; return verdicts, or the error in the gates."""
    target = check_target(plan.folder, overwrite=True)
    fresh = fresh_name(target)
    # Before the work: a baseline that is not there is not to cost a night.
    baseline = baseline_of(
        plan.loaded, plan.folder, plan.run_id, before, partial(tell, level=WARNING)
    )
    try:
        with written(plan.folder, pl.exceptions.PolarsError):
            try:
                parts: dict[str, Tallied] = {}
                card = aside(lambda left: _scored(plan, fresh, left, force, tell, parts, baseline))
            except EvalengineError:
                _refuse_changed(plan)  # which explains whatever was found in them
                raise
            _refuse_changed(plan)
            watch = _watch(plan, card, baseline, tell, parts)
            verdicts, wrong = _judged(plan, card, baseline, watch)
            _report(plan, card, baseline, verdicts, fresh, tell)
            status = UNJUDGED if wrong else (FAILED if failed(verdicts) else PASSED)
            success = Success(
                run_id=plan.run_id,
                job=plan.loaded.job.name,
                evalengine=__version__,
                started=started,
                finished=datetime.now(UTC).isoformat(),
                gates=status,
                baseline=plan.loaded.job.baseline,
                baseline_folder=baseline.folder,
                baseline_finished=baseline.finished,
                baseline_id=baseline.run_id,
                untold=lineage.run_id,
            )
            with deferred_signals():
                reference = baseline.stored_card if keeping(plan.loaded.gates, card.task) else None
                nights = None if watch is None else _nights(plan, baseline, watch)
                details = _details(plan, verdicts)
                write_records(fresh, details, baseline.metrics, success, reference, nights)
                swap(fresh, target, partial(tell, level=WARNING))
                if nights is not None:
                    loaded = plan.loaded
                    shorten_nights(loaded.matching(loaded.earlier), loaded.job.name, nights.read)
                _remember(plan, card, success, again=True)  # replaces an entry
                _complete(plan, success, verdicts, lineage)
    finally:
        _discard(fresh)
    return verdicts, wrong


def _refuse_changed(plan: JobPlan) -> None:
    changed = plan.tables.changed()
    if changed:
        raise ChangedError(
            f"{len(changed)} input files changed while they were read, {changed[0]} first: run"
            " the job again when they are whole.",
            code="inputs_changed",
            count=len(changed),
        )


def _scored(
    plan: JobPlan,
    fresh: Path,
    left: threading.Event,
    force: bool,
    tell: Tell,
    parts: dict[str, Tallied],
    baseline: Baseline,
) -> Scorecard:
    """The scorecard, written under another name."""
    loaded, inputs = plan.loaded, plan.tables
    options = loaded.options
    files = {role: paths for role in OPTIONS if (paths := inputs.paths(role)) is not None}
    options = msgspec.structs.replace(options, **files)
    if options.scratch is not None:
        options = msgspec.structs.replace(options, scratch=loaded.resolve(options.scratch))

    def report_step(step: str) -> None:
        if not left.is_set():
            tell(step)

    with reminded(report_step) as progress:
        card = _read_and_scored(plan, options, progress, left, force, tell, parts)
    card.make()
    gated = any(gate.needs_baseline for gate in loaded.gates)
    note_changes(baseline.card, card, gated=gated)
    for note in card.notes:
        tell(note, level=WARNING if note in card.warnings else INFO)
    if not left.is_set():
        tell("writing")
        write_into(card, fresh)
    return card


def _read_and_scored(
    plan: JobPlan,
    options: Options,
    progress: Callable[[str], None],
    left: threading.Event,
    force: bool,
    tell: Tell,
    tallied: dict[str, Tallied],
) -> Scorecard:
    """The scorecard of a job's inputs; tallies of partitions are added to ``tallied``."""
    loaded, inputs, tables = plan.loaded, plan.loaded.job.inputs, plan.tables
    if tables.partitions:
        if options.memory_limit is not None:
            message = "memory_limit is ignored: the rows of a partition are read at once"
            tell(message, level=WARNING)
        parts = parts_of(loaded, tables, again=force)
        card = score_parts(
            parts,
            options,
            labels=tables.paths("labels"),
            tell=progress,
            left=left.is_set,
            tallied=tallied if any(gate.always for gate in loaded.gates) else None,
        )
        clear_older(parts)
        gone = describe_lost(loaded, tables, plan.run_id)
        if gone is not None:
            card.notes, card.warnings = (*card.notes, gone), (*card.warnings, gone)
    else:
        card = run.score_tables(
            Tables(
                tables.paths("predictions"),
                tables.paths("ground_truths"),
                tables.paths("datums"),
                tables.paths("labels"),
                inputs.storage_options,
            ),
            options,
            executor=loaded.job.executor,
            address=loaded.job.address,
            progress=progress,
            paged=loaded.job.report is not None or options.metrics is None,
            planned=partial(refuse_unknown, loaded.gates),
        )
    return card


def _judged(
    plan: JobPlan, card: Scorecard, baseline: Baseline, watch: Watch | None
) -> tuple[list[Verdict], EvalengineError | None]:
    """Verdicts, or why the gates could not be judged: the numbers are kept either way."""
    try:
        return _verdicts(plan, card, baseline, watch) + _warned(plan, card), None
    except EvalengineError as error:
        reason, repair = error.message, "correct the gate"
        if not card.metrics.height:
            reason, repair = "the result has no numbers, so no gate can be judged.", "give rows"
        message = f"{reason} The result is kept in {plan.path}: {repair} and run again."
        return [], type(error)(message, code=error.code, **error.facts)


def _warned(plan: JobPlan, card: Scorecard) -> list[Verdict]:
    """A failed verdict for each warning, of jobs that are strict."""
    warnings = card.warnings if plan.loaded.job.strict else ()
    return [Verdict(STRICT, "", FAILED, None, None, reason=warning) for warning in warnings]


def _report(
    plan: JobPlan,
    card: Scorecard,
    baseline: Baseline,
    verdicts: list[Verdict],
    folder: Path,
    tell: Tell,
) -> None:
    """Write the report of a run into its folder, if the job requests it."""
    requested = plan.loaded.job.report
    if requested is None:
        return
    tell("writing the report")
    write = partial(
        make_report,
        card,
        folder / REPORT_FILE,
        names=(baseline.folder or "baseline", plan.path),
        title=requested.title or f"{plan.loaded.job.name}: {plan.folder.name}",
        gates=gate_lines(verdicts),
        folder=plan.path,
        again=shlex.join(["evalengine", "report", plan.path, "-o", f"{plan.path}/{REPORT_FILE}"]),
        images=None if requested.images is None else plan.loaded.resolve(requested.images),
    )
    try:
        write(baseline=baseline.card)
    except InputError as error:  # of other rules: the run itself is sound
        tell(f"the report has no baseline: {error.message}", level=WARNING)
        write()


def _remember(plan: JobPlan, card: Scorecard, success: Success, *, again: bool) -> None:
    outputs = plan.loaded.job.outputs
    if outputs.history is None:
        return
    rows = history_rows(
        card.metrics,
        success,
        folder=plan.path,
        task=card.task,
        dialect=card.dialect,
        variables=plan.loaded.variables,
    )
    target = plan.loaded.resolve(outputs.history)
    append_history(rows, success.run_id, target, outputs.history_format, again=again)


def _details(plan: JobPlan, verdicts: list[Verdict]) -> dict[str, object]:
    """Return the content of ``job.json``: files, variables, verdicts."""
    return {
        "job": plan.loaded.job.name,
        "run_id": plan.run_id,
        "variables": plan.loaded.variables,
        "partitions": plan.tables.partitions,
        "inputs": {
            role: [
                {
                    "name": file.name,
                    "bytes": file.bytes,
                    "sha256": file.sha256,
                    "partition": file.partition,
                    **_rasters(file),
                }
                for file in files
            ]
            for role, files in plan.tables.files.items()
        },
        "false_alarms": plan.loaded.job.false_alarms,
        "gates": verdicts,
    }


def _rasters(file: File) -> dict[str, object]:
    """Return the number of rasters of a table, and the digest of their sizes and times; or {}."""
    count = len(file.rasters.files)
    return {"rasters": count, "rasters_digest": file.rasters.digest} if count else {}


def _discard(fresh: Path) -> None:
    """Remove a folder that did not get into its place, though a thread may still write into it."""
    if not fresh.exists():
        return
    # After the rename, writes by path no longer arrive; open files move with the folder.
    gone = fresh_name(fresh)
    try:
        fresh.rename(gone)
    except OSError:
        gone = fresh
    shutil.rmtree(gone, ignore_errors=True)
    shutil.rmtree(gone, ignore_errors=True)


__all__ = ["JobPlan", "JobResult", "LockedError", "plan_job", "run_job"]
