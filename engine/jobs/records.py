"""Records of runs, the history table and baselines."""

from __future__ import annotations

import glob
import json
import os
import secrets
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from glob import escape
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import polars as pl

from ..atomic import refuse_remote, sync, whole_file, written
from ..schemas.errors import OptionError, ResultError, WriteError, not_installed
from ..schemas.results import METRICS, PASSED
from ..scorecard.card import Scorecard, load
from ..scorecard.storage import write_into
from ..statistics.sequences import Night, without_repeats
from .loading import LAST, LoadedJob
from .verdicts import Numbers, Verdict, can_be_compared, hold, keeping, needing_margins, unkept

# Files of a run's folder in addition to the scorecard, and lookup of earlier runs.
#
# ``_SUCCESS`` is written last, before the folder is moved into place: if it exists, the folder is
# complete.

R = TypeVar("R")

SUCCESS = "_SUCCESS"
JOB_FILE = "job.json"
BASELINE_FILE = "baseline.parquet"
NIGHTS_FILE = "nights.json"
"""Observations of gates with ``always``: of this run and of all earlier ones."""
BASELINE_FOLDER = "baseline"
"""Subfolder for the baseline's result, if gates need the interval of the difference."""


class Success(msgspec.Struct, frozen=True, kw_only=True):
    """Mark of a finished run.

    Attributes:
        started: UTC, ISO 8601.
        finished: UTC, ISO 8601.
        gates: ``passed`` or ``failed``; passed if there are none.
        baseline_folder: the baseline run, or None.
        baseline_finished: its end time, or None.
        baseline_id: its run id; None without a baseline, or in marks of earlier versions.
        untold: run id of lineage whose COMPLETE has not been sent, or None.
    """

    run_id: str
    job: str
    evalengine: str
    started: str
    finished: str
    gates: str
    baseline: str | None = None
    baseline_folder: str | None = None
    baseline_finished: str | None = None
    baseline_id: str | None = None
    untold: str | None = None


def read_success(folder: Path) -> Success | None:
    """Return the mark of a finished run, or None."""
    return _read(folder / SUCCESS, Success)


def _read(file: Path, kind: type[R]) -> R | None:
    try:
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError, RecursionError):
        return None


def finished_as(folder: Path, run_id: str) -> Success | None:
    """Return the mark of a run whose complete result exists, or None."""
    result = read_success(folder)
    if result is None or result.run_id != run_id:
        return None
    try:
        load(folder)
    except ResultError:  # damaged since: it is made again
        return None
    return result


def last_passed(
    pattern: str, job: str, run_id: str, until: str | None, warn: Callable[[str], None]
) -> tuple[Path, Success] | None:
    """Return the newest other finished run of a job whose gates passed and whose result is
    complete.

    Damaged ones, and those in the future (a wrong clock), are skipped with a warning.

    Args:
        until: runs finished later do not count; now if None.
    """
    end = datetime.now(UTC).isoformat() if until is None else until
    runs: list[tuple[str, str, Success]] = []
    for name in glob.glob(pattern):
        success = read_success(Path(name))
        if (
            success
            and (success.job, success.gates) == (job, "passed")
            and success.run_id != run_id
            and success.finished <= end
        ):
            runs.append((success.finished, name, success))
    for _, name, success in sorted(runs, key=lambda one: one[:2], reverse=True):
        try:
            _ = load(name).metrics
        except ResultError as error:
            warn(f"not taken as baseline: {error.message}")
            continue
        return Path(name), success
    return None


def last_partitions(pattern: str, job: str, run_id: str) -> tuple[list[str], str]:
    """Return the partitions of the newest other finished run of a job.

    Returns:
        their values, and its end time; empty if no run recorded any.
    """
    runs = [
        (success.finished, name)
        for name in glob.glob(pattern)
        if (success := read_success(Path(name))) and success.job == job and success.run_id != run_id
    ]
    finished, folder = max(runs, default=("", ""))
    return recorded(Path(folder)).partitions, finished


class Recorded(msgspec.Struct):
    """Verdicts in ``job.json``, the budget that they share, and what was scored."""

    gates: list[Verdict] = []
    false_alarms: float | None = None
    variables: dict[str, str] = {}
    partitions: list[str] = []


def recorded(folder: Path) -> Recorded:
    """Return the record of a run in its ``job.json``; empty if it cannot be read."""
    return _read(folder / JOB_FILE, Recorded) or Recorded()


def write_records(
    folder: Path,
    details: dict[str, Any],
    baseline: pl.DataFrame | None,
    success: Success,
    stored_card: Scorecard | None = None,
    nights: Nights | None = None,
) -> None:
    """Complete a folder with a scorecard; all is synced to disk on return, ``_SUCCESS`` last.

    Args:
        details: of ``job.json``.
        kept: the baseline, if its tallies are needed again.
        nights: observations of gates with ``always``, if there are any.
    """
    (folder / JOB_FILE).write_bytes(_text(details))
    sync(folder / JOB_FILE)
    if baseline is not None:
        baseline.write_parquet(folder / BASELINE_FILE)
        sync(folder / BASELINE_FILE)
    if stored_card is not None:
        write_into(stored_card, folder / BASELINE_FOLDER)
    if nights is not None:
        write_nights(folder, nights)
    sync(folder)
    replace_success(folder, success)


class Nights(msgspec.Struct, frozen=True):
    """Observations of gates with ``always``.

    Attributes:
        origin: hash of what the numbers are about: model, data set, baseline and options.
        seen: gate and row -> name of a night -> observation.
        shares: see :class:`Watch`.
        read: id of a run -> time of change, in ns, of its file, which is included here or has
            another origin.
    """

    origin: str
    seen: dict[str, dict[str, Night]] = {}
    shares: dict[str, dict[str, float]] = {}
    read: dict[str, int] = {}


def earlier_nights(pattern: str, job: str, origin: str) -> tuple[Nights, int]:
    """Return the observations of all finished runs of a job; the latest of each night.

    Reads the newest file, and those that it does not include.

    Args:
        origin: runs with another one are skipped.

    Returns:
        the observations, and the number of runs that were skipped for the first time.
    """
    skipped = 0
    merged = Nights(origin)
    for changed, run_id, file in _night_files(pattern, job):
        if merged.read.get(run_id) == changed:
            continue
        try:
            nights = msgspec.json.decode(file.read_bytes(), type=Nights)
        except (OSError, msgspec.DecodeError, RecursionError):
            continue
        merged.read[run_id] = changed
        if nights.origin != origin:
            skipped += 1
            continue
        for other, time_ns in nights.read.items():
            merged.read[other] = max(time_ns, merged.read.get(other, 0))
        for gate, shares in nights.shares.items():
            merged.shares.setdefault(gate, {}).update(shares)
        for key, by_name in nights.seen.items():
            latest = merged.seen.setdefault(key, {})
            for night, one in by_name.items():
                if night not in latest or latest[night].finished < one.finished:
                    latest[night] = one
    for key, by_name in merged.seen.items():
        merged.seen[key] = without_repeats(by_name)
    return merged, skipped


def _night_files(pattern: str, job: str) -> list[tuple[int, str, Path]]:
    """Time of change, run id and path of the observations of all finished runs, newest first."""
    files = []
    for name in glob.glob(pattern):
        success, file = read_success(Path(name)), Path(name) / NIGHTS_FILE
        if success is not None and success.job == job and file.is_file():
            files.append((file.stat().st_mtime_ns, success.run_id, file))
    return sorted(files, reverse=True)


def write_nights(folder: Path, nights: Nights) -> None:
    """Write observations into the folder of a run, in one step."""
    _replace(folder / NIGHTS_FILE, msgspec.json.encode(nights))


def shorten_nights(pattern: str, job: str, read: Mapping[str, int]) -> None:
    """Reduce observations in the folders of earlier runs to those that each run made itself.

    The two newest files keep those of all nights, so that either folder may be deleted. Stops at
    the first file that is short already.

    Args:
        read: see :class:`Nights`; only files that the newest one includes are changed.
    """
    for changed, run_id, file in _night_files(pattern, job)[2:]:
        try:
            nights = msgspec.json.decode(file.read_bytes(), type=Nights)
            if read.get(run_id) != changed or not nights.read:
                return
            every = [night for by_name in nights.seen.values() for night in by_name.values()]
            last = max((night.finished for night in every), default="")
            newest = {
                key: {name: night for name, night in by_name.items() if night.finished == last}
                for key, by_name in nights.seen.items()
            }
            write_nights(file.parent, msgspec.structs.replace(nights, seen=newest, read={}))
            os.utime(file, ns=(changed, changed))
        except (OSError, WriteError, msgspec.DecodeError, RecursionError):
            return  # larger than it need be


def replace_success(folder: Path, success: Success) -> None:
    """Write the mark of a finished run, or replace it, in one step."""
    _replace(folder / SUCCESS, _text(success))


def _replace(path: Path, content: bytes) -> None:
    with whole_file(path, lasting=True, draft=path.with_name(f"{path.name}.new")) as file:
        file.write(content)


def _text(record: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"


# History of metrics over time: a folder of Parquet files, or a Delta table.
#
# A run is one file, or one set of rows, under its id; adding it twice has no effect.

RUN_COLUMNS: dict[str, pl.DataType | type[pl.DataType]] = {
    "run_id": pl.String,
    "job": pl.String,
    "finished": pl.Datetime("us", "UTC"),
    "evalengine": pl.String,
    "folder": pl.String,
    "task": pl.String,
    "dialect": pl.String,
    "variables": pl.String,
    "gates": pl.String,
}
"""Columns about the run, before those of the metrics frame."""


_ATTEMPTS, _PAUSE = 8, 0.1
"""Attempts to commit to a Delta table after conflicts, and the seconds between."""


def history_rows(
    metrics: pl.DataFrame,
    success: Success,
    *,
    folder: str,
    task: str,
    dialect: str,
    variables: Mapping[str, str],
) -> pl.DataFrame:
    """Return a run's metrics with columns that identify it; label values as text, since tasks
    differ.
    """
    run: dict[str, Any] = {
        "run_id": success.run_id,
        "job": success.job,
        "finished": datetime.fromisoformat(success.finished),
        "evalengine": success.evalengine,
        "folder": folder,
        "task": task,
        "dialect": dialect,
        "variables": json.dumps(dict(variables), sort_keys=True, ensure_ascii=False),
        "gates": success.gates,
    }
    columns = [pl.lit(run[name]).cast(dtype).alias(name) for name, dtype in RUN_COLUMNS.items()]
    values = [
        pl.col(name).cast(pl.Float64 if name == "support" else dtype or pl.String)
        for name, dtype in METRICS.items()
    ]
    return metrics.select(*columns, *values)


def check_history(target: str, form: str) -> None:
    """Check that a history can be written, before any work.

    Raises:
        OptionError: an address for Parquet files, or the library for Delta tables is missing.
    """
    if form == "delta":
        _deltalake()
    else:
        way = 'A Delta table may have an address: history_format = "delta".'
        refuse_remote(target, "outputs.history", way)


def append_history(rows: pl.DataFrame, run_id: str, target: str, form: str, *, again: bool) -> bool:
    """Add a run to a history, atomically.

    Args:
        rows: result of :func:`history_rows`.
        form: ``parquet`` or ``delta``.
        again: replace existing rows with this id; otherwise they are kept if their finish time is
            the same, and replaced if the run has been repeated since.

    Returns:
        whether anything was written.

    Raises:
        WriteError: it could not be written.
    """
    with written(f"history {target}", pl.exceptions.PolarsError):
        if form == "delta":
            return _into_delta(rows, run_id, target, again)
        return _into_parquet(rows, run_id, Path(target), again)


def _into_parquet(rows: pl.DataFrame, run_id: str, folder: Path, again: bool) -> bool:
    path = folder / f"{run_id}.parquet"
    if path.exists() and not again and _as_late(path, rows):
        return False
    folder.mkdir(parents=True, exist_ok=True)
    # Written next to the folder: readers of the folder must not see remains of a crashed run.
    fresh = folder.with_name(f".{folder.name}.{run_id}.{secrets.token_hex(4)}.new")
    for left in folder.parent.glob(f".{escape(folder.name)}.{run_id}.*.new"):
        left.unlink(missing_ok=True)
    with whole_file(path, lasting=True, draft=fresh) as file:
        rows.write_parquet(file)
    return True


def _as_late(path: Path, rows: pl.DataFrame) -> bool:
    """Return whether the rows of a run in a file have the same finish time as these."""
    try:
        finished = pl.read_parquet(path, columns=["finished"], glob=False)
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return False
    return finished["finished"].equals(rows["finished"])


def _into_delta(rows: pl.DataFrame, run_id: str, target: str, again: bool) -> bool:
    delta = _deltalake()
    for left in reversed(range(_ATTEMPTS)):
        try:
            return _commit(delta, rows, run_id, target, again)
        except delta.exceptions.DeltaError as error:
            # Another job made the table, or wrote to it, since this one looked.
            conflict = isinstance(error, delta.exceptions.CommitFailedError)
            if not conflict or not left:
                raise WriteError(f"cannot write history {target}: {error}.") from error
            time.sleep(_PAUSE)
    raise AssertionError


def _commit(delta: Any, rows: pl.DataFrame, run_id: str, target: str, again: bool) -> bool:
    # Columns that a later version of evalengine has more are added: null in rows before it.
    if not delta.DeltaTable.is_deltatable(target):
        delta.write_deltalake(target, rows.to_arrow(), mode="append", schema_mode="merge")
        return True
    existing = pl.scan_delta(delta.DeltaTable(target)).filter(pl.col("run_id") == run_id).collect()
    times = [one["finished"].unique() for one in (existing, rows) if "finished" in one.columns]
    if not again and existing.height > 0 and all(time.equals(times[0]) for time in times):
        return False
    delta.write_deltalake(
        target,
        rows.to_arrow(),
        mode="overwrite",
        predicate=f"run_id = '{run_id}'",
        schema_mode="merge",
    )
    return True


def _deltalake() -> Any:
    try:
        import deltalake
        import deltalake.exceptions
    except ImportError:
        raise OptionError(
            f'outputs.history_format = "delta" needs {not_installed("deltalake", "delta")}.',
            code="package_missing",
            package="deltalake",
        ) from None
    return deltalake


# The earlier run that gates speak of.


class Baseline(msgspec.Struct, frozen=True):
    """Numbers of an earlier run.

    Attributes:
        metrics: its metrics frame, or None.
        labels: its labels; None if only its metrics were kept.
        folder: its location, even if it no longer exists.
        finished: its end time, if known.
        run_id: its run id, if known.
        first: whether there is none because no earlier run passed its gates.
        card: its scorecard, if its result still exists.
    """

    metrics: pl.DataFrame | None = None
    labels: pl.DataFrame | None = None
    folder: str | None = None
    finished: str | None = None
    run_id: str | None = None
    first: bool = False
    card: Scorecard | None = None

    @property
    def stored_card(self) -> Scorecard | None:
        """Return the data of the baseline that a run keeps for later comparison: metrics, labels,
        tallies.
        """
        card = self.card
        if card is None or not can_be_compared(card):
            return None
        return Scorecard(
            task=card.task,
            dialect=card.dialect,
            options=card.options,
            frames={"metrics": lambda: card.metrics},
            labels=card.labels,
            run=card.run,
            directions=card.directions,
            read=card.read,
            folder=card.folder,
        )

    def numbers(self, card: Scorecard) -> Numbers | None:
        """Return the numbers for gates; names of labels are the run's if none were kept."""
        if self.metrics is None:
            return None
        labels = card.labels if self.labels is None else self.labels
        return Numbers(card.task, self.metrics, labels)


def baseline_of(
    loaded: LoadedJob,
    folder: Path,
    run_id: str,
    before: Success | None,
    warn: Callable[[str], None],
) -> Baseline:
    """Return the baseline of a run.

    A repeated run keeps its baseline: the last run of that time may have been replaced, and later
    runs do not count. A run whose gates failed passes its baseline on to the run that replaces it:
    if every night uses the same folder, that is the only trace of the last one that passed.

    Raises:
        ResultError: the named folder contains no result, or no data for gates with ``surely``.
    """
    result = _baseline_of(loaded, folder, run_id, before, warn)
    if result.card is not None and keeping(loaded.gates, result.card.task):
        if loaded.job.baseline != LAST:
            hold(loaded.gates, result.card)
        elif needing_margins(loaded.gates) and not can_be_compared(result.card):
            warn(unkept(result.card))
    return result


def _baseline_of(
    loaded: LoadedJob,
    folder: Path,
    run_id: str,
    before: Success | None,
    warn: Callable[[str], None],
) -> Baseline:
    requested = loaded.job.baseline
    if requested is None:
        return Baseline()
    if before is not None and (before.run_id, before.baseline) == (run_id, requested):
        if before.baseline_folder is None:
            return Baseline(first=True)
        stored = folder / BASELINE_FILE
        if stored.is_file():
            return _stored_baseline(folder, before)
    if requested == LAST:
        return _last(loaded, folder, run_id, before, warn)
    card = load(loaded.resolve(requested))
    success = read_success(Path(loaded.resolve(requested)))
    finished, its_id = (None, None) if success is None else (success.finished, success.run_id)
    return Baseline(
        card.metrics, card.labels, loaded.resolve(requested), finished, its_id, card=card
    )


def _last(
    loaded: LoadedJob,
    folder: Path,
    run_id: str,
    before: Success | None,
    warn: Callable[[str], None],
) -> Baseline:
    """Return the newest run that passed, or the baseline of a failed run in this folder."""
    until = before.finished if before is not None and before.run_id == run_id else None
    passed = last_passed(loaded.matching(loaded.earlier), loaded.job.name, run_id, until, warn)
    if (
        before is not None
        and (before.job, before.baseline) == (loaded.job.name, LAST)
        and before.gates != PASSED
        and before.baseline_folder is not None
        and (folder / BASELINE_FILE).is_file()
        and (passed is None or (before.baseline_finished or "") > passed[1].finished)
    ):
        if before.baseline_id != run_id:
            return _stored_baseline(folder, before)
        warn("the last run that passed is this one, which cannot be its own baseline")
    if passed is None:
        return Baseline(first=True)
    card = load(passed[0])
    success = passed[1]
    return Baseline(
        card.metrics, card.labels, str(passed[0]), success.finished, success.run_id, card=card
    )


def _stored_baseline(folder: Path, before: Success) -> Baseline:
    """Return the baseline that is stored with a run's numbers."""
    try:
        metrics = pl.read_parquet(folder / BASELINE_FILE, glob=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise ResultError(f"{folder / BASELINE_FILE} cannot be read: {error}.") from error
    stored = folder / BASELINE_FOLDER
    return Baseline(
        metrics,
        None,
        before.baseline_folder,
        before.baseline_finished,
        before.baseline_id,
        card=load(stored) if stored.is_dir() else None,
    )
