"""What a run of a job would do: its inputs, its id and where its result goes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from .._version import __version__
from ..plan import planner
from ..schemas.errors import InputError, OptionError
from .history import check_history
from .loading import RUN_ID, LoadedJob, load_job
from .sources import Found, find_inputs
from .variables import filled


class JobPlan(msgspec.Struct, frozen=True):
    """What a run would do.

    Attributes:
        loaded: the job.
        found: its inputs.
        run_id: hash of inputs, options and version: 16 hexadecimal digits.
        folder: where its result goes, as seen from the working folder.
        shown: the same as the job file writes it.
    """

    loaded: LoadedJob
    found: Found
    run_id: str
    folder: Path
    shown: str


def plan_job(path: str | Path, variables: Mapping[str, str] | None = None) -> JobPlan:
    """Read a job file, find its inputs and name its run; nothing is written.

    Args:
        path: a TOML file.
        variables: values for its ``[variables]``.

    Raises:
        EvalengineError: the file or its inputs are not what they should be.
    """
    return planned(load_job(path, variables))


def planned(loaded: LoadedJob) -> JobPlan:
    """The plan of a job file that is read; see :func:`plan_job`."""
    outputs = loaded.job.outputs
    if "://" in outputs.folder:
        raise OptionError(
            f"{loaded.path}: outputs.folder: {outputs.folder} is remote, where nothing can be"
            " renamed; write to a local folder, and copy it from there."
        )
    if outputs.history is not None:
        check_history(outputs.history, outputs.history_format)
    if loaded.options.task is not None:
        # Wrong names of metrics and dialects are told before any table is read.
        planner.make_plan(loaded.options, loaded.options.task)
    found = find_inputs(loaded)
    run_id = _run_id(loaded, found)
    shown = filled(outputs.folder, {RUN_ID: run_id})
    return JobPlan(loaded, found, run_id, Path(loaded.beside(shown)), shown)


def planned_again(plan: JobPlan) -> JobPlan:
    """The same plan, by what stands there now.

    Raises:
        InputError: other inputs, whose result has another folder, which is not the one locked.
    """
    if not plan.found.changed():
        return plan
    now = planned(plan.loaded)
    if now.folder != plan.folder:
        raise InputError("input files changed while this run waited for another: run it again.")
    return now


def _run_id(loaded: LoadedJob, found: Found) -> str:
    """Same for the same inputs, options and version of one job; threads change no number."""
    files = [[role, file.name, *file.digests] for role, own in found.files.items() for file in own]
    key = [__version__, loaded.job.name, repr(loaded.deciding), found.partitions, files]
    return hashlib.sha256(msgspec.json.encode(key)).hexdigest()[:16]
