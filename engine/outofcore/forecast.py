"""Forecast of a large run: CPU, time, memory and scratch, from recorded slopes."""

from __future__ import annotations

import math
import shutil
import tempfile
from functools import lru_cache
from importlib.resources import files
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import msgspec

from ..evaluation.planner import Plan
from ..executors.processes import LEAST_SHARE, shared
from ..ingest.problems import count_of
from ..schemas.errors import OptionError, invalid
from ..scratch import local
from .memory import MOST_BUCKETS, Sizes, bucket_room, gigabytes, least_limit, sufficient_limit


class Slope(msgspec.Struct):
    """Cost of one kind of run, recorded by ``benchmarks/slopes.py``.

    Attributes:
        metrics: as they were requested; empty for the task's default.
        needs: tallies that these metrics need.
        rows: number of rows of the larger of the two runs behind the slopes, all tables together.
        start: seconds of a run without rows.
        cpu_first: CPU seconds per million rows of the first process.
        cpu_workers: CPU seconds per million rows of all workers.
        held: bytes of memory per row that all buckets would take together.
        scratch: peak bytes on disk per row.
        tally: peak bytes on disk per row except those of shuffled rows.
        reserved: bytes on disk per row that had to be free before the run.
    """

    task: str
    metrics: list[str]
    needs: list[str]
    rows: int
    start: float
    cpu_first: float
    cpu_workers: float
    held: float
    scratch: float
    tally: float
    reserved: float


class Slopes(msgspec.Struct):
    """Recorded slopes, with the machine and the day of the recording."""

    machine: str
    measured: str
    evalengine: str
    runs: list[Slope]


@lru_cache(maxsize=1)
def recorded() -> Slopes:
    """Load the recorded slopes of the package."""
    return msgspec.json.decode(files(__package__).joinpath("slopes.json").read_bytes(), type=Slopes)


def closest(plan: Plan) -> Slope | None:
    """Return the recorded run of the plan's task with the most similar tallies, if any.

    The smallest run that covers the plan's tallies is preferred; otherwise the one that shares the
    most.
    """
    runs = [one for one in recorded().runs if one.task == plan.task]
    covering = [one for one in runs if plan.needs <= {*one.needs}]
    if covering:
        return min(covering, key=lambda one: (len(one.needs), one.cpu_first + one.cpu_workers))
    return max(runs, key=lambda one: len(plan.needs & {*one.needs}), default=None)


def tally_bytes(plan: Plan) -> int:
    """Recorded bytes on disk per row of the plan's tallies; 0 if no recorded run covers them."""
    slope = closest(plan)
    return int(slope.tally) if slope is not None and plan.needs <= {*slope.needs} else 0


SCRATCH, ONE_MACHINE, EACH_MACHINE = "scratch", "memory of one machine", "memory of a worker"
"""Resources of a run: disk, memory if all workers share a machine, and if each has its own."""


class Forecast(msgspec.Struct):
    """Cost of a run in bounded memory.

    Attributes:
        rows: of all tables together.
        slope: the recorded run that was extrapolated.
        cpu_first: CPU seconds of the first process.
        cpu_workers: CPU seconds of all workers together.
        seconds: duration of the run.
        least_seconds: duration with any number of workers.
        memory: least memory limit of a worker in bytes.
        limit: memory limit of a machine.
        fitting: number of workers that fit into the limit on one machine.
        share: bytes of each of them, and of the first process.
        reserved: bytes on disk that must be free.
        scratch: bytes on disk that the recorded run suggests.
        disk: existing folder on the disk of the scratch folder, or address of an object store, and
            its free bytes.
        suffices_for: resource -> number of rows for which it suffices.
    """

    rows: float
    workers: int
    slope: Slope
    cpu_first: float
    cpu_workers: float
    seconds: float
    least_seconds: float
    memory: int
    limit: int
    fitting: int
    share: int
    reserved: int
    scratch: int
    disk: tuple[Path | str, float]
    suffices_for: dict[str, float]

    def lines(self) -> list[str]:
        """The forecast in words."""
        slope, about, (disk, free) = self.slope, recorded(), self.disk
        one_machine, each = self._end(ONE_MACHINE), self._end(EACH_MACHINE)
        memory = f"limit {gigabytes(self.limit)}"
        if self.workers > 1:
            memory += f" per machine: {gigabytes(self.share)} each"
            memory += f" for {count_of(self.fitting, 'worker')} of one machine"
        short = "" if self.suffices_for[one_machine] >= self.rows else "too little for this run: "
        end_text = f"{short}{one_machine}, at {self.suffices_for[one_machine]:,.0f} rows"
        if each != one_machine:
            end_text += (
                f"; with a machine per worker: {each}, at {self.suffices_for[each]:,.0f} rows"
            )
        room = f"must be free, {gigabytes(int(free))} are in {disk}"
        if free == math.inf:
            room = f"at most in {disk}"
        of_metrics = ", ".join(slope.metrics) or "the default metrics"
        return [
            _on_workers(self.rows, self.workers),
            f"CPU       {_time(self.cpu_first)} in the first process, {_time(self.cpu_workers)} in"
            " workers",
            f"time      about {_time(self.seconds)}; with any number of workers at least"
            f" {_time(self.least_seconds)}",
            f"memory    {gigabytes(self.memory)} or more for each worker and the first process;"
            f" {memory}",
            f"scratch   {gigabytes(self.reserved)} {room}; measured use {gigabytes(self.scratch)}",
            f"ends      {end_text}",
            f"measured  {slope.task}, {of_metrics}, {slope.rows:,} rows, {about.machine},"
            f" {about.measured}, evalengine {about.evalengine}",
        ]

    def _end(self, memory: str) -> str:
        """Return the resource that ends first: scratch or a memory."""
        return min(SCRATCH, memory, key=lambda name: self.suffices_for[name])


def describe_forecast(
    plan: Plan, rows: float | None, workers: int | None, read: tuple[Sizes, int] | None = None
) -> list[str]:
    """Return lines on the cost of a run on so many rows and workers.

    Args:
        rows: of all tables together; by default those of the tables that were read.
        workers: number of processes or of single-threaded cluster workers; 1 by default.
        read: sizes and rows of the tables, whose columns then decide memory and scratch.

    Raises:
        OptionError: no number of rows, or too small a memory limit.
    """
    if rows is None:
        if read is None:
            raise OptionError(
                "rows: give the number of rows of all tables together, or tables.",
                code="option_missing",
                option="rows",
            )
        rows = read[1]
    prediction = forecast(plan, rows, workers or 1, read)
    if prediction is not None:
        return prediction.lines()
    cost = f"cost      no run of {plan.task} is recorded"
    return [_on_workers(rows, workers or 1), cost]


_MOST_ROWS = 1e15
"""Rows of a forecast: 10 bytes of each would fill 10 PB."""


def refuse_unfit(rows: Any, workers: Any) -> None:
    """Refuse numbers of rows and workers that are out of range; None for those not given."""
    limits: tuple[tuple[str, Any, Any, float], ...] = (
        ("rows", rows, Real, _MOST_ROWS),
        ("workers", workers, Integral, math.inf),
    )
    for name, value, kind, most in limits:
        unfit = not isinstance(value, kind) or not 1 <= value <= most or value % 1
        if value is not None and unfit:
            end = "" if most == math.inf else f" and at most {most:g}"
            raise invalid(name, value, f"must be a whole number, at least 1{end}.")


def forecast(
    plan: Plan, rows: float, workers: int, read: tuple[Sizes, int] | None = None
) -> Forecast | None:
    """Extrapolate the closest recorded run; None if no run of the plan's task is recorded.

    Args:
        read: see :func:`describe_forecast`.

    Raises:
        OptionError: too small a memory limit.
    """
    slope = closest(plan)
    if slope is None:
        return None
    held, reserved = slope.held, slope.reserved
    if read is not None:
        held, reserved = read[0].held / read[1], read[0].scratch / read[1]
    limit = sufficient_limit(plan.options.memory_limit)
    # A single worker is the first process.
    fitting, share = shared(limit, workers) if workers > 1 else (1, limit)
    scratch = plan.options.scratch
    place = Path(local(scratch) or tempfile.gettempdir()).absolute()
    while not place.exists():  # the run creates it
        place = place.parent
    disk: tuple[Path | str, float] = place, shutil.disk_usage(place).free
    if scratch is not None and local(scratch) is None:
        disk = scratch, math.inf
    first, spread = (slope.cpu_first * rows / 1e6, slope.cpu_workers * rows / 1e6)
    return Forecast(
        rows,
        workers,
        slope,
        cpu_first=first,
        cpu_workers=spread,
        seconds=slope.start + first + spread / min(workers, MOST_BUCKETS),
        least_seconds=slope.start + first + spread / MOST_BUCKETS,
        memory=max(LEAST_SHARE, least_limit(held * rows)),
        limit=limit,
        fitting=fitting,
        share=share,
        reserved=int(reserved * rows),
        scratch=int(slope.scratch * rows),
        disk=disk,
        suffices_for={
            SCRATCH: disk[1] / reserved,
            ONE_MACHINE: MOST_BUCKETS * bucket_room(share) / held,
            EACH_MACHINE: MOST_BUCKETS * bucket_room(limit) / held,
        },
    )


def _on_workers(rows: float, workers: int) -> str:
    return f"rows      {rows:,.0f} of all tables, on {count_of(workers, 'worker')}"


def _time(seconds: float) -> str:
    """``0.42 s``, ``40 s``, ``12 min``, ``3.5 h``."""
    if seconds < 120:
        return f"{_two_digits(seconds)} s"
    minutes = seconds / 60
    return f"{_two_digits(minutes)} min" if minutes < 120 else f"{_two_digits(minutes / 60)} h"


def _two_digits(number: float) -> str:
    """Write a number with two significant digits or more."""
    digits = 1 - math.floor(math.log10(number)) if 0 < number < 10 else 0
    return f"{number:,.{digits}f}"
