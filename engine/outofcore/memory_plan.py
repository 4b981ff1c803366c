"""Number of buckets for a run, from its rows and its memory limit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
import polars as pl

from .. import tasks
from ..ingest.collecting import Prepared
from ..ingest.problems import Note
from ..plan import planner
from ..schemas.contract import DATUMS, GROUND_TRUTHS, LABELS, PREDICTIONS, TABLE
from ..schemas.errors import OptionError
from ..schemas.options import Options
from ..schemas.wording import option
from .free_memory import free_memory
from .scratch import gigabytes

BASE = 400 << 20
"""Bytes that a process uses before reading rows: the interpreter, Polars, compiled kernels."""

LEAST = 448 << 20
"""Smallest memory limit of a process that allows any rows."""

MOST_BUCKETS = 400  # files held open at once
_HELD_FULL = 3  # bytes held of a byte of a bucket of few datums while it is matched
_GROWTH = 6  # bytes held while a bucket is matched, of a byte of its columns
_HELD_SCORE = 72
"""Bytes per score of classification, in addition to its columns, while a part's scores are sorted
by label and then by label key.
"""
_SHARE = 0.6  # of the memory beyond BASE that one bucket or label group may take
_RANKED_ROW = 220  # bytes held of a ranked row while label groups are merged
_RUN_ROW = 96  # bytes held of a row of a run while runs are merged
_SCRATCH_ROW = 120  # bytes on disk of a row beyond its columns: values of every metric
_CELL, _CELL_ROW = 8, 350  # bytes of a number, and of a row of a frame while it is made
_STEP = 64 << 20  # to which limits in messages are rounded up
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


class Sizes(msgspec.Struct):
    """Partitioning of a run.

    Attributes:
        scratch: approximate bytes on disk.
        group_rows: maximum number of ranked rows per label group, unless a single label has more.
        at_once: label groups in memory at the same time if no worker is busy.
    """

    n: int
    scratch: int
    group_rows: int
    datums_at_once: int
    at_once: int = 1
    run_rows: int = 1


def limit_of(given: str | int | None) -> int:
    """Return a limit in bytes; by default 70 % of free memory.

    Args:
        given: bytes, or text such as ``2GB``, ``512MiB`` or ``1.5 g``.

    Raises:
        OptionError: not a size, or not above 0.
    """
    if given is None:
        return int(free_memory() * 0.7)
    text = str(given).strip().lower()
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]*)?)\s*([kmgt]?)(i?)b?", text)
    if found is None:
        raise OptionError(
            f"{option('memory_limit', given)}: no size. Write bytes, or a number and a unit:"
            f" {option('memory_limit', '2GB')}.",
            code="option_value",
            option="memory_limit",
            value=given,
        )
    number, unit, binary = found.groups()
    scale = 1024 ** "kmgt".index(unit) * 1024 if binary and unit else _UNITS[unit]
    size = int(float(number) * scale)
    if size <= 0:
        raise OptionError(
            f"{option('memory_limit', given)}: must be above 0.",
            code="option_value",
            option="memory_limit",
            value=given,
        )
    return size


def sufficient_limit(given: str | int | None) -> int:
    """Return a limit in bytes that suffices for a process.

    Raises:
        OptionError: the given limit is too small for the process itself.
    """
    limit = limit_of(given)
    if given is not None and limit < LEAST:
        raise OptionError(
            f"{option('memory_limit', given)}: too small to work in. The interpreter, Polars and"
            f" compiled kernels take about {BASE >> 20} MiB before any row is read. Give at least"
            f" {option('memory_limit', f'{LEAST >> 20}MiB')}.",
            code="memory_limit_too_small",
            least=f"{LEAST >> 20}MiB",
        )
    return limit


def refused(ready: Prepared, options: Options) -> str:
    """Return why these tables cannot be shuffled to buckets; empty if they can."""
    schemas = {role: side.schema for role, side in ready.sides.items()}
    if any(dtype == pl.Object for schema in schemas.values() for dtype in schema.values()):
        return "the tables hold arrays, which are in memory already"
    wide = any(side.naming.wide for side in ready.sides.values())
    if wide and options.label_map is not None:
        return "score columns under a label map depend on all rows"
    for role in ready.plan.extra:
        for expr in ready.plan.extra[role]:
            name = expr.meta.output_name()
            if ready.sides[role].schema[name].is_float():
                return f"slices by column {name!r} of floats are written as all of them allow"
    return ""


def unclear(plan: planner.Plan, ready: Prepared, heads: Mapping[str, pl.DataFrame]) -> str:
    """Return why the tables can only be interpreted from all rows; empty if the first ones
    suffice.
    """
    asked = plan.does.needs_all_rows
    return "" if asked is None else asked(ready, heads, plan.settings, plan.options)


def buckets(
    ready: Prepared,
    heads: Mapping[str, pl.DataFrame],
    heights: Mapping[str, int],
    limit: int,
    *,
    task: str,
    least: int = 1,
    workers: int = 1,
    given: str | int | None = None,
    filed: tuple[int, int] | None = None,
) -> Sizes:
    """Partition a run so that it stays within a memory limit.

    Args:
        heads: the first rows of each, from which the size of all is estimated.
        heights: role to number of rows.
        limit: bytes of one worker.
        least: minimum number of buckets.
        given: that limit; None if the limit is a share of free memory, which is then a best effort.
        filed: bytes on disk per unit and per scored label whose parts stay in files.

    Raises:
        OptionError: the given limit would need too many buckets.
    """
    room = max(limit - BASE, limit // 8) * _SHARE
    size = sum(
        (heads[role].estimated_size() / max(1, heads[role].height) + 8) * rows
        for role, rows in heights.items()
        if role in heads and role != LABELS
    )
    held = size * (tasks.get(task).growth or _GROWTH)
    if filed is not None:
        scores = sum(_scores_of(ready, role) * rows for role, rows in heights.items())
        held = max(held, size + _HELD_SCORE * scores)
    n = max(least, -(-int(held) // max(1, int(room))))
    if n > MOST_BUCKETS and given is not None:
        enough = (int(held / MOST_BUCKETS / _SHARE) + BASE) * workers
        enough = -(-enough // _STEP) * _STEP
        raise OptionError(
            f"{option('memory_limit', given)}: too small for these tables, whose"
            f" {sum(heights.values()):,} rows would be shuffled to {n:,} files, and {MOST_BUCKETS}"
            f" can be open at once. Give at least {option('memory_limit', f'{enough >> 20}MiB')}.",
            code="memory_limit_too_small",
            least=f"{enough >> 20}MiB",
        )
    ranked = sum(rows for role, rows in heights.items() if role != DATUMS)
    beyond = (tasks.get(task).scratch_row or _SCRATCH_ROW) * ranked
    if filed is not None:
        beyond = sum(_filed_row(ready, role, *filed) * rows for role, rows in heights.items())
    group_rows = max(1000, int(room / _RANKED_ROW))
    return Sizes(
        n=min(n, MOST_BUCKETS),
        scratch=int(size) + beyond,
        group_rows=group_rows,
        datums_at_once=max(1000, int(room / 64)),
        at_once=max(1, workers - 1),
        run_rows=max(1000, int(room) // _RUN_ROW),
    )


def too_full(fullest: int, limit: int, share: int, options: Options) -> list[Note]:
    """Check the size of the largest bucket against the limit: the rows of a datum stay together.

    Args:
        fullest: bytes of the rows of the largest bucket.
        limit: memory limit of the run in bytes.

    Returns:
        a note, if no limit was given.

    Raises:
        OptionError: the given limit would be exceeded.
    """
    needed = BASE + _HELD_FULL * fullest
    if needed <= share:
        return []
    enough = -(-needed * limit // (share * _STEP)) * _STEP >> 20
    said = (
        "rows of one datum stay together, and those of the largest (or of the few that share its"
        f" bucket) take, with the process, about {gigabytes(needed)} of {gigabytes(share)}"
    )
    if options.memory_limit is None:
        return [Note("datum_beyond_memory", f"{said} that are free.")]
    raise OptionError(
        f"{option('memory_limit', options.memory_limit)}: {said}. Give at least"
        f" {option('memory_limit', f'{enough}MiB')}, or look at the largest datums.",
        code="memory_limit_too_small",
        least=f"{enough}MiB",
    )


def too_many_labels(plan: planner.Plan, tallies: Any, options: Options) -> None:
    """Refuse frames with rows of so many labels that they would exceed the given limit.

    Raises:
        OptionError: names a sufficient limit.
    """
    if options.memory_limit is None:
        return
    limit, held = limit_of(options.memory_limit), _held_by_labels(plan, tallies)
    if BASE + held <= limit:
        return
    enough = -(-(BASE + held) // _STEP) * _STEP >> 20
    raise OptionError(
        f"{option('memory_limit', options.memory_limit)}: {len(tallies.labels):,} labels make"
        f" frames that take about {gigabytes(held)} while they are made, beside the"
        f" {gigabytes(BASE)} of the process. Give at least"
        f" {option('memory_limit', f'{enough}MiB')}, or ask for fewer metrics, thresholds or"
        " slices.",
        code="memory_limit_too_small",
        least=f"{enough}MiB",
        count=len(tallies.labels),
    )


def _held_by_labels(plan: planner.Plan, tallies: Any) -> int:
    """Estimate the bytes of frames with rows of every label, during their computation."""
    columns = tallies.datums.slices.columns
    groups = 1 + sum(len(tallies.datums.groups(column)[1]) for column in columns)
    curve = len(getattr(plan.settings, "score_thresholds", ()))
    each = sum(
        max(1, curve) if metric.frame == "curves" else len(plan.cuts.get(metric.name, (None,)))
        for metric in plan.metrics
        if metric.frame in ("metrics", "curves")
    )
    cells = int(plan.does.cells_per_group(tallies, plan.settings))
    return _CELL * cells + _CELL_ROW * each * groups * len(tallies.labels)


def _scores_of(ready: Prepared, role: str) -> int:
    """Scores of a row of a table."""
    naming = ready.sides[role].naming
    if role not in (PREDICTIONS, TABLE):
        return 0
    return len(naming.labels) if naming.wide else 1


def _filed_row(ready: Prepared, role: str, unit: int, score: int) -> int:
    """Bytes on disk, beyond its columns, of a row of a table whose run is merged in files."""
    return score * _scores_of(ready, role) + (unit if role in (GROUND_TRUTHS, TABLE) else 0)
