"""Files of a run's folder in addition to the scorecard, and lookup of earlier runs.

``_SUCCESS`` is written last, before the folder is moved into place: if it exists, the folder is
complete.
"""

from __future__ import annotations

import glob
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from ..atomic import sync, whole_file
from ..schemas.errors import ResultError
from ..scorecard.card import Scorecard, load
from ..scorecard.storage import write_into
from .verdicts import Verdict

SUCCESS = "_SUCCESS"
JOB_FILE = "job.json"
BASELINE_FILE = "baseline.parquet"
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
    try:
        return msgspec.json.decode((folder / SUCCESS).read_bytes(), type=Success)
    except (OSError, msgspec.DecodeError, RecursionError):
        return None


def finished_as(folder: Path, run_id: str) -> Success | None:
    """Return the mark of a run whose complete result exists, or None."""
    found = read_success(folder)
    if found is None or found.run_id != run_id:
        return None
    try:
        load(folder)
    except ResultError:  # damaged since: it is made again
        return None
    return found


def last_passed(
    pattern: str, job: str, run_id: str, until: str | None, warn: Callable[[str], None]
) -> tuple[Path, Success] | None:
    """Return the newest other finished run of a job whose gates passed and whose result is
    complete.

    Damaged ones, and those in the future (a wrong clock), are skipped with a warning.

    Args:
        until: runs finished later do not count; now if None.
        warn: called with warnings.

    Returns:
        its folder, and its mark.
    """
    end = datetime.now(UTC).isoformat() if until is None else until
    found: list[tuple[str, str, Success]] = []
    for name in glob.glob(pattern):
        success = read_success(Path(name))
        if (
            success
            and (success.job, success.gates) == (job, "passed")
            and success.run_id != run_id
            and success.finished <= end
        ):
            found.append((success.finished, name, success))
    for _, name, success in sorted(found, key=lambda one: one[:2], reverse=True):
        try:
            _ = load(name).metrics
        except ResultError as error:
            warn(f"not taken as baseline: {error.said}")
            continue
        return Path(name), success
    return None


def last_partitions(pattern: str, job: str, run_id: str) -> tuple[list[str], str]:
    """Return the partitions of the newest other finished run of a job.

    Returns:
        their values, and its end time; empty if no run recorded any.
    """
    found = [(success.finished, name) for name in glob.glob(pattern)
             if (success := read_success(Path(name)))
             and success.job == job and success.run_id != run_id]  # fmt: skip
    finished, folder = max(found, default=("", ""))
    try:
        told = msgspec.json.decode((Path(folder) / JOB_FILE).read_bytes(), type=_Partitions)
    except (OSError, msgspec.DecodeError, RecursionError):
        return [], finished
    return told.partitions, finished


def recorded(folder: Path) -> list[Verdict]:
    """Return the verdicts in a run's ``job.json``; empty if they cannot be read."""
    try:
        return msgspec.json.decode((folder / JOB_FILE).read_bytes(), type=_Gates).gates
    except (OSError, msgspec.DecodeError, RecursionError):
        return []


class _Gates(msgspec.Struct):
    gates: list[Verdict] = []


class _Partitions(msgspec.Struct):
    partitions: list[str] = []


def write_records(
    folder: Path,
    details: dict[str, Any],
    baseline: pl.DataFrame | None,
    success: Success,
    kept: Scorecard | None = None,
) -> None:
    """Complete a folder with a scorecard; all is synced to disk on return, ``_SUCCESS`` last.

    Args:
        details: of ``job.json``.
        kept: the baseline, if its tallies are needed again.
    """
    (folder / JOB_FILE).write_bytes(_text(details))
    sync(folder / JOB_FILE)
    if baseline is not None:
        baseline.write_parquet(folder / BASELINE_FILE)
        sync(folder / BASELINE_FILE)
    if kept is not None:
        write_into(kept, folder / BASELINE_FOLDER)
    sync(folder)
    replace_success(folder, success)


def replace_success(folder: Path, success: Success) -> None:
    """Write the mark of a finished run, or replace it, in one step."""
    with whole_file(folder / SUCCESS, lasting=True, draft=folder / f"{SUCCESS}.new") as file:
        file.write(_text(success))


def _text(told: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(told), indent=2) + b"\n"
