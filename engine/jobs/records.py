"""What stands in a run's folder beside the scorecard, and finding earlier runs by it.

``_SUCCESS`` comes last into a folder that is not in its place yet: where it stands, all stands.
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
"""The baseline as a result of its own, where gates ask how sure the difference to it is."""


class Success(msgspec.Struct, frozen=True, kw_only=True):
    """A finished run.

    Attributes:
        run_id: hash of its inputs, options and version.
        job: the job's name.
        evalengine: the version it ran with.
        started: UTC, ISO 8601.
        finished: UTC, ISO 8601.
        gates: ``passed`` or ``failed``; passed where there are none.
        baseline: what the job file said of a baseline.
        baseline_folder: the earlier run that it was held against; None where there was none.
        baseline_finished: when that one was finished; None where there was none.
        baseline_id: its run id; None where there was none, or in marks of earlier versions.
        untold: run id of lineage whose COMPLETE has not been sent; None where nothing is open.
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
    """The mark of a finished run; None where there is none."""
    try:
        return msgspec.json.decode((folder / SUCCESS).read_bytes(), type=Success)
    except (OSError, msgspec.DecodeError, RecursionError):
        return None


def finished_as(folder: Path, run_id: str) -> Success | None:
    """The mark of a run whose result stands there whole; None for any other."""
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
    """The newest finished run of a job whose gates passed, other than this one, and that is whole.

    A damaged one is passed over with a warning, and one of the future, of a clock that was ahead.

    Args:
        pattern: glob of the folders its results have had.
        job: its name.
        run_id: this run, which does not count.
        until: nor do runs that were finished after this; now where None.
        warn: called with what is worth a warning.

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
    """The partitions of the newest finished run of a job other than this one.

    Args:
        pattern: glob of the folders its results have had.
        job: its name.
        run_id: this run, which does not count.

    Returns:
        their values, and when it was finished; none where no run tells of any.
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
    """The verdicts in a run's ``job.json``; none where they cannot be read."""
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
    """Complete a folder that holds a scorecard; all is on disk on return, ``_SUCCESS`` last.

    Args:
        folder: the scorecard's.
        details: of ``job.json``.
        baseline: the numbers that gates were held against.
        success: the mark.
        kept: the baseline, where what its numbers were made of is needed again.
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
