"""Memory limit, scratch folder and number of buckets; forecast of CPU, time and memory."""

from __future__ import annotations

import errno
import json
import math
import os
import secrets
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from importlib.resources import files
from numbers import Integral, Real
from operator import attrgetter, methodcaller
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from .. import scratch, tasks
from ..atomic import try_lock
from ..evaluation import planner
from ..evaluation.planner import Plan
from ..executors.processes import LEAST_SHARE, shared
from ..ingest.collecting import Prepared
from ..ingest.opening import Inputs
from ..ingest.problems import Note, count_of
from ..ingest.sources.formats import explain
from ..ingest.sources.tables import READ_FAILURES
from ..kernels.folder import own_group
from ..schemas.contract import DATUMS, GROUND_TRUTHS, LABELS, PREDICTIONS, TABLE
from ..schemas.errors import EvalengineError, OptionError, ReadError, ScratchError, invalid
from ..schemas.option_values import parse_size
from ..schemas.options import Options
from ..schemas.wording import option
from ..scratch import OWNER, local

# Free memory for a process: of the machine, and of every control group it is in.

_UNKNOWN = 4 << 30
_FILES = (
    ("memory.max", "memory.current"),  # version 2
    ("memory.high", "memory.current"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes"),  # version 1
)
"""Files of a control group with its limit and its usage."""


def free_memory(root: Path = Path("/")) -> int:
    """Return the bytes that this process may still use.

    A limit of a group applies to all groups within it (systemd's slices, Slurm's steps, pods), so
    the minimum over all groups up to the root counts.

    Args:
        root: parent of ``/proc`` and ``/sys``.
    """
    free = _of_machine(root)
    for group in _groups(root):
        for limit, usage in _FILES:
            with suppress(OSError, ValueError):
                most = int((group / limit).read_text())  # "max" for none
                used = int((group / usage).read_text())
                free = min(free, max(0, most - used))
    return free


def large(inputs: Inputs) -> bool:
    """Return whether tables may not fit into memory.

    Estimated from file sizes; for Parquet in an object store from the rows in footers. Other remote
    formats cannot be estimated.
    """
    size = 0
    for source in inputs.sources.values():
        if not source.files and source.format == "parquet":
            try:
                rows = int(source.frame.select(pl.len()).collect().item())  # from the footers
                size += rows * _CELL * len(source.frame.collect_schema()) // _PACKED
            except READ_FAILURES as error:
                raise explain(source, error) from error
        try:
            packed = sum(map(os.path.getsize, source.files))
        except OSError:
            return False
        size += max(packed, sum(map(attrgetter("total"), source.footprints.values())) // _PACKED)
    return size > 0 and size * _FILE_GROWTH > free_memory() // 2


_FILE_GROWTH = 12  # bytes in memory, at most, of a byte of compressed columns during matching
_PACKED = 2  # bytes of columns in memory of a byte of them in a file, at least


def _of_machine(root: Path) -> int:
    with suppress(OSError, ValueError):
        for line in (root / "proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    if hasattr(os, "sysconf"):
        with suppress(OSError, ValueError):
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    return _UNKNOWN


def _groups(root: Path) -> Iterator[Path]:
    """Folders of this process's memory groups, of both versions, each up to the root."""
    hierarchies = {"": root / "sys/fs/cgroup", "memory": root / "sys/fs/cgroup/memory"}
    places = dict.fromkeys(hierarchies, "/")
    with suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, place = line.split(":", 2) if line.count(":") > 1 else ("", "-", "")
            if controllers == "" or "memory" in controllers.split(","):
                places["memory" if controllers else ""] = place
    for name, top in hierarchies.items():
        # In a container the place may be the host's, and only the top is to be seen.
        inner = top / places[name].strip("/")
        yield top
        while inner != top and top in inner.parents:
            yield inner
            inner = inner.parent


# The scratch folder of one run: made with a mark of its owner, and gone when the run is over.

PREFIX = "evalengine-scratch-"
GONE = "evalengine-gone-"
"""Prefix of a scratch folder between the end of its run and its deletion."""


@contextmanager
def scratch_folder(base: str | None, needed: int) -> Iterator[Path]:
    """Create a folder for one run, deleted afterwards however the run ends.

    Remains of killed runs on this machine are deleted first.

    Args:
        base: parent folder; by default, and for an address of an object store, the system's
            temporary folder.
        needed: approximate number of bytes that the run will write.

    Raises:
        ScratchError: the folder cannot be written, its disk has no room or runs full, or the folder
            is deleted meanwhile.
    """
    home = Path(
        scratch.local(base) or tempfile.gettempdir()
    ).absolute()  # workers have other working folders
    folder = home / f"{PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
    with ExitStack() as stack:
        try:
            home.mkdir(exist_ok=True)  # not its parents: a disk that is not mounted has none
            sweep(home)
            look_for_room(home, needed, base)
            _refuse_shared(home)
            folder.mkdir(mode=0o700)
            _OPEN[folder] = os.getpid()
            stack.callback(_delete_own, folder)
            _mark(folder, stack)
        except OSError as error:
            raise ScratchError(
                f"{home}: no scratch folder can be made there: {error}. Name another:"
                f" {option('scratch', '/mnt/large')}.",
                code="scratch_unusable",
                file=str(home),
            ) from error
        try:
            yield folder
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise ScratchError(
                    f"{home}: the disk is full; scratch needs about {gigabytes(needed)}. All"
                    f" scratch files were deleted. {_larger(base)}",
                    code="scratch_full",
                ) from error
            _refuse_deleted(folder, error)
            raise
        except Exception as error:
            _refuse_deleted(folder, error)
            raise


@contextmanager
def run_place(
    base: str | None, needed: int, storage: dict[str, str] | None, room: int
) -> Iterator[tuple[Path, scratch.ObjectPlace | None]]:
    """Create the place of a run's files, a folder or in an object store; see
    :func:`scratch_folder`.

    Args:
        storage: options of the object store.
        room: bytes of copies of objects in a process.

    Yields:
        its path, and the place if it is in an object store.
    """
    if base is None or "://" not in base:
        with scratch_folder(base, needed) as folder:
            yield folder, None
        return
    if base.partition("://")[0] not in _SCHEMES:
        raise ScratchError(
            f"{option('scratch', base)}: neither a folder nor an address of an object store, such"
            f" as {option('scratch', 's3://bucket/folder')}, gs:// or az://.",
            code="scratch_unusable",
            file=base,
        )
    url = f"{base.rstrip('/')}/{PREFIX}{os.getpid()}-{secrets.token_hex(8)}"
    place = scratch.ObjectPlace(url, storage, room)
    folder = Path(place.path)
    with ExitStack() as stack:
        # Files of this machine: ranges of rows before they are written, and copies of objects.
        stack.enter_context(scratch_folder(base, min(needed, room)))
        stack.enter_context(scratch.attached(place))
        place.put({OWNER: _owner()})
        _OPEN[folder] = os.getpid()
        stack.callback(_delete_own, folder)
        try:
            yield folder, place
        except Exception as error:
            named = isinstance(error, FileNotFoundError | ReadError) and folder.name in str(error)
            unseen = isinstance(error, ScratchError) and error.code == "scratch_unseen"
            if named or (unseen and place.size(OWNER) is None):
                raise place.deleted() from error
            raise


_SCHEMES = ("s3", "s3a", "gs", "az", "abfs", "abfss")


def _refuse_deleted(folder: Path, error: Exception) -> None:
    """Explain an error of a run whose folder was deleted, completely or partly, from outside.

    Raises:
        ScratchError: it was.
    """
    other = isinstance(error, EvalengineError) and not isinstance(error, ScratchError)
    named = isinstance(error, FileNotFoundError) and str(error.filename).startswith(str(folder))
    read = isinstance(error, ReadError) and str(folder) in str(error)
    if named or read or (not other and not (folder / OWNER).exists()):
        raise ScratchError(
            f"{folder}: files of this run were deleted during the run ({error}). Run it again, and"
            " do not touch its scratch folder; the run deletes it at its end.",
            code="scratch_deleted",
        ) from error


def _refuse_shared(home: Path) -> None:
    """Refuse a folder in which other users could replace a run's folder.

    Stages read their parameters from the run's folder, which other users cannot enter; but if they
    may write to its parent and that is not sticky, they could put another one there.
    """
    if not hasattr(os, "geteuid"):
        return  # a system whose folders have no such owners
    status = home.stat()
    sticky = bool(status.st_mode & stat.S_ISVTX)
    shared = bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)) and not own_group(status)
    if sticky or (status.st_uid in (os.geteuid(), 0) and not shared):
        return
    raise ScratchError(
        f"{home}: others may write there, and could put work of theirs into the run's place. Name a"
        f" folder of your own, {option('scratch', '/mnt/large/mine')}, or make this one sticky"
        " (chmod +t).",
        code="scratch_unsafe",
        file=str(home),
    )


def _larger(base: str | None) -> str:
    """Return the remedy for a disk without room.

    Args:
        base: of the run's scratch; a folder, or an address of an object store.
    """
    if base is None or "://" not in base:
        return f"Name a folder on a larger disk: {option('scratch', '/mnt/large')}."
    return (
        f"With {option('scratch', base)}, frames and copies of objects are in the temporary folder"
        " of each machine. Set TMPDIR to a folder on a larger disk, for workers too."
    )


def look_for_room(home: Path, needed: int, base: str | None = None) -> None:
    """Check that the disk has room.

    Args:
        needed: approximate number of bytes to be written.
        base: of the run's scratch, for the error.

    Raises:
        ScratchError: there is less free space.
    """
    free = shutil.disk_usage(home).free
    if free < needed:
        raise ScratchError(
            f"{home}: about {gigabytes(needed)} of scratch are needed and {gigabytes(free)}"
            f" are free. {_larger(base)}",
            code="scratch_too_small",
            needed=needed,
            free=free,
        )


def _mark(folder: Path, stack: ExitStack) -> None:
    """Write the owner of a folder to a mark file, and keep it locked until the run is over."""
    mark = stack.enter_context((folder / OWNER).open("w"))
    with suppress(OSError):  # without locks, it is never swept
        try_lock(mark)
    mark.write(_owner().decode())
    mark.flush()


def _owner() -> bytes:
    return json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode()


_OPEN: dict[Path, int] = {}
"""Folders of runs that are at work in this process, and the process that made them."""


def _delete_own(folder: Path) -> None:
    """Delete a folder, but only in the process that created it, not in a fork."""
    if _OPEN.pop(folder, None) == os.getpid() and not scratch.delete_place(folder):
        _delete(folder)


def delete_open() -> None:
    """Delete the folders of unfinished runs before the process ends."""
    for folder in list(_OPEN):
        _delete_own(folder)


def _delete(folder: Path) -> None:
    """Delete a folder that a worker may still write into, because it does not know that the run is
    over.

    The rename hides it; files that cannot be deleted now are removed by a later run.
    """
    gone = folder.with_name(f"{GONE}{folder.name.removeprefix(PREFIX)}")
    with suppress(OSError):
        folder.rename(gone)
    for one in (gone, folder):
        shutil.rmtree(one, ignore_errors=True)


def sweep(home: Path) -> list[Path]:
    """Delete scratch folders whose runs are dead; return them.

    A running process has a lock on its mark, in any container; the system releases it when the
    process dies. Folders of other machines, whose locks may be invisible here, and those without a
    mark yet are kept.
    """
    for folder in home.glob(f"{GONE}*"):
        shutil.rmtree(folder, ignore_errors=True)
    result = []
    for folder in home.glob(f"{PREFIX}*"):
        with (
            suppress(OSError, ValueError, KeyError, TypeError),
            open(folder / OWNER, "rb", opener=_plain_file) as mark,
        ):
            if json.load(mark)["host"] == socket.gethostname() and try_lock(mark):
                result.append(folder)
    for folder in result:
        _delete(folder)
    return result


def _plain_file(path: str, flags: int) -> int:
    """Open a regular file of this user; other users' pipes cannot block the run.

    Raises:
        OSError: not a regular file, or another user's.
    """
    opened = os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))
    status = os.fstat(opened)
    ours = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
    if not (ours and stat.S_ISREG(status.st_mode)):
        os.close(opened)
        raise OSError(errno.EACCES, "no file of this user's", path)
    return opened


def gigabytes(size: int) -> str:
    """``1.5 GB``."""
    return f"{size / 1e6:,.1f} MB" if size < 10**8 else f"{size / 1e9:,.1f} GB"


# Number of buckets for a run, from its rows and its memory limit.

BASE = 400 << 20
"""Bytes that a process uses before reading rows: the interpreter, Polars, compiled kernels."""

LEAST = 448 << 20
"""Smallest memory limit of a process that allows any rows."""

MOST_BUCKETS = 400  # files open at once
_GROWTH = 6  # bytes of memory per byte of a bucket's columns during matching, with some to spare
_FULL = 0.7  # of that growth, without any to spare
_SCORE_ROW = 72
"""Bytes per score of classification, in addition to its columns, while a part's scores are sorted
by label and then by label key.
"""
_SHARE = 0.6  # of the memory beyond BASE that one bucket or label group may take
_RANKED_ROW = 220  # bytes of memory per ranked row during the merge of label groups
_RUN_ROW = 96  # bytes of memory per row during the merge of runs
_SCRATCH_ROW = 120  # bytes on disk of a row beyond its columns: values of every metric
_UNIQUE = 16  # bytes on disk of a value that may occur once, and of the number of its row
_STRING, _INLINE = 16, 12  # bytes of a string, of which so many characters are a part
_CELL, _CURVE_ROW = 8, 350  # bytes of a number, and of a row of a curve while it is made
_CELL_ROW = 600  # bytes of a row of metrics while it is made and shown
_COPIES = 3  # of the outcomes of a row while they are matched and merged
_STEP = 64 << 20  # to which limits in messages are rounded up


class Sizes(msgspec.Struct):
    """Partitioning of a run.

    Attributes:
        scratch: approximate bytes on disk.
        group_rows: maximum number of ranked rows per label group, unless a single label has more.
        at_once: label groups in memory at the same time if no worker is busy.
        held: bytes of memory that all buckets would take together.
    """

    n: int
    scratch: int
    group_rows: int
    datums_at_once: int
    at_once: int = 1
    run_rows: int = 1
    held: int = 0


def bytes_of_limit(limit: str | int | None) -> int:
    """Return a limit in bytes; by default 70 % of free memory.

    Raises:
        OptionError: not a size, or not above 0.
    """
    return int(free_memory() * 0.7) if limit is None else parse_size(limit)


def sufficient_limit(memory_limit: str | int | None) -> int:
    """Return a limit in bytes that suffices for a process.

    Raises:
        OptionError: the given limit is too small for the process itself.
    """
    limit = bytes_of_limit(memory_limit)
    if memory_limit is not None and limit < LEAST:
        raise OptionError(
            f"{option('memory_limit', memory_limit)}: too small to work in. The interpreter, Polars"
            f" and compiled kernels take about {BASE >> 20} MiB before any row is read. Give at"
            f" least {option('memory_limit', f'{LEAST >> 20}MiB')}.",
            code="memory_limit_too_small",
            least=f"{LEAST >> 20}MiB",
        )
    return limit


def refused(ready: Prepared, options: Options) -> str:
    """Return why these tables cannot be shuffled to buckets; empty if they can."""
    schemas = {role: side.schema for role, side in ready.sides.items()}
    if any(dtype == pl.Object for schema in schemas.values() for dtype in schema.values()):
        return "the tables contain arrays, which are in memory already"
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
    """Return why tables can only be interpreted from all rows; empty if the first suffice."""
    whole = plan.does.needs_all_rows
    return "" if whole is None else whole(ready, heads, plan.settings, plan.options)


def bucket_count(
    ready: Prepared,
    heads: Mapping[str, pl.DataFrame],
    heights: Mapping[str, int],
    limit: int,
    *,
    task: str,
    least: int = 1,
    plain: bool = False,
    workers: int = 1,
    given: str | int | None = None,
    filed: tuple[int, int] | None = None,
    outcomes: tuple[int, int] = (0, 0),
    tally_row: int = 0,
) -> Sizes:
    """Partition a run so that it stays within a memory limit.

    Args:
        heads: the first rows of each, from which the size of all is estimated.
        heights: role to number of rows.
        limit: bytes of one worker.
        least: minimum number of buckets.
        plain: without slices, intervals and other work on the tally after its metrics.
        given: that limit; None if the limit is a share of free memory, which is then a best effort.
        filed: bytes on disk per unit and per scored label whose parts stay in files.
        outcomes: bytes of a row's outcomes beyond the usual, in buckets and in memory.
        tally_row: recorded bytes on disk of a row's tallies.

    Raises:
        OptionError: the given limit would need too many buckets.
    """
    room = bucket_room(limit)
    size = sum(
        (row_bytes(heads[role]) + 8) * rows
        for role, rows in heights.items()
        if role in heads and role != LABELS
    )
    needed = size * (tasks.get(task).growth or _GROWTH)
    if filed is not None:
        scores = sum(_scores_of(ready, role) * rows for role, rows in heights.items())
        needed = max(needed, size + _SCORE_ROW * scores)
    ranked = sum(rows for role, rows in heights.items() if role != DATUMS)
    of_row, of_row_in_memory = (_COPIES * size for size in outcomes)
    for head in heads.values():
        plain = plain and not any(map(methodcaller("is_nested"), head.dtypes))
    in_memory, fitting = needed, room
    if plain:
        in_memory, fitting = (
            size * (tasks.get(task).growth or tasks.get(task).plain_growth),
            limit - BASE,
        )
    fits = in_memory + of_row_in_memory * ranked <= fitting
    needed += of_row * ranked
    n = least if fits else max(least, 2, -(-int(needed) // max(1, int(room))))
    if n > MOST_BUCKETS and given is not None:
        enough = least_limit(needed) * workers
        raise OptionError(
            f"{option('memory_limit', given)}: too small for these tables, whose"
            f" {sum(heights.values()):,} rows would be shuffled to {n:,} files, and {MOST_BUCKETS}"
            f" can be open at once. Give at least {option('memory_limit', f'{enough >> 20}MiB')}.",
            code="memory_limit_too_small",
            least=f"{enough >> 20}MiB",
        )
    of_tally = max(tally_row, tasks.get(task).scratch_row or _SCRATCH_ROW)
    beyond = (of_tally + outcomes[0]) * ranked
    if filed is not None:
        unit, score = filed
        beyond = sum(
            rows * (score * _scores_of(ready, role) + unit * (role in (GROUND_TRUTHS, TABLE)))
            for role, rows in heights.items()
        )
    group_rows = max(1000, int(room / (_RANKED_ROW + of_row)))
    n = min(n, MOST_BUCKETS)
    shuffled = int(size)
    for role, head in heads.items():
        table = ready.sides[role].table
        names = {column.name for column in table.columns if column.unique} - {table.datum}
        shuffled += _UNIQUE * heights[role] * len(names.intersection(head.columns))
    # The rows of a bucket are deleted when its tally is written, at most `least` at a time.
    return Sizes(
        n=n,
        scratch=max(shuffled, beyond) + min(shuffled, beyond) * min(n, least) // n,
        group_rows=group_rows,
        datums_at_once=max(1000, int(room / 64)),
        at_once=max(1, workers - 1),
        run_rows=max(1000, int(room) // _RUN_ROW),
        held=int(needed),
    )


def row_bytes(head: pl.DataFrame) -> float:
    """Bytes in memory of a row of a table, from its first rows.

    Polars keeps 16 bytes per string, in addition to the characters of longer ones, and estimates
    only the characters.
    """
    size = head.estimated_size()
    for text in head.select(pl.col(pl.String)).iter_columns():
        lengths = text.drop_nulls().str.len_bytes()
        size += _STRING * len(text) - int(lengths.filter(lengths <= _INLINE).sum())
    return size / max(1, head.height)


def bucket_room(limit: int) -> float:
    """Bytes of memory that one bucket may take within the limit of a worker."""
    return max(limit - BASE, limit // 8) * _SHARE


def least_limit(total: float) -> int:
    """Limit of a worker in bytes, rounded up, that needs at most :data:`MOST_BUCKETS` buckets.

    Args:
        total: bytes of memory that all buckets would take together.
    """
    return -(-max(LEAST, int(total / MOST_BUCKETS / _SHARE) + BASE) // _STEP) * _STEP


def too_full(fullest: int, limit: int, share: int, task: str, options: Options) -> list[Note]:
    """Check the size of the largest bucket against the limit: the rows of a datum stay together.

    Args:
        fullest: bytes of the rows of the largest bucket.
        limit: memory limit of the run in bytes.

    Returns:
        a note, if no limit was given.

    Raises:
        OptionError: the given limit would be exceeded.
    """
    needed = BASE + int(_FULL * (tasks.get(task).growth or _GROWTH) * fullest)
    if needed <= share:
        return []
    enough = -(-needed * limit // (share * _STEP)) * _STEP >> 20
    message = (
        "rows of one datum stay together, and those of the largest (or of the few that share its"
        f" bucket) take, with the process, about {gigabytes(needed)} of {gigabytes(share)}"
    )
    if options.memory_limit is None:
        return [Note("datum_beyond_memory", f"{message} that are free.")]
    raise OptionError(
        f"{option('memory_limit', options.memory_limit)}: {message}. Give at least"
        f" {option('memory_limit', f'{enough}MiB')}, or look at the largest datums.",
        code="memory_limit_too_small",
        least=f"{enough}MiB",
    )


def too_many_labels(plan: planner.Plan, tallies: Any, options: Options) -> None:
    """Refuse a tally with so many labels that its frames would exceed the given limit.

    Raises:
        OptionError: names a sufficient limit.
    """
    columns = tallies.datums.slices.columns
    groups = sum(len(tallies.datums.groups(column)[1]) for column in columns)
    refuse_labels(plan, len(tallies.labels), groups, options)


def refuse_labels(plan: planner.Plan, n_labels: int, groups: int, options: Options) -> None:
    """Refuse frames with rows of so many labels that they would exceed the given limit.

    Args:
        groups: slice values of all slice columns.

    Raises:
        OptionError: names a sufficient limit.
    """
    if options.memory_limit is None:
        return
    limit, needed = bytes_of_limit(options.memory_limit), _bytes_by_label(plan, n_labels, groups)
    if BASE + needed <= limit:
        return
    enough = -(-(BASE + needed) // _STEP) * _STEP >> 20
    of_slices = f" and {count_of(groups, 'slice value')}" if groups else ""
    raise OptionError(
        f"{option('memory_limit', options.memory_limit)}: {count_of(n_labels, 'label')}{of_slices}"
        f" need frames of about {gigabytes(needed)}, in addition to the {gigabytes(BASE)} of the"
        f" process. Give at least {option('memory_limit', f'{enough}MiB')}, or ask for fewer"
        " metrics, thresholds or slices.",
        code="memory_limit_too_small",
        least=f"{enough}MiB",
        count=n_labels,
    )


def _bytes_by_label(plan: planner.Plan, n_labels: int, groups: int) -> int:
    """Estimate the bytes of frames with rows of every label, during their computation."""
    curve = len(getattr(plan.settings, "score_thresholds", ()))
    areas = len(getattr(plan.settings, "areas", (None,)))
    each = sum(
        _CURVE_ROW * max(1, curve)
        if metric.frame == "curves"
        else _CELL_ROW * areas * len(plan.cuts.get(metric.name, (None,)))
        for metric in plan.metrics
        if metric.frame in ("metrics", "curves")
    )
    cells = int(plan.does.cells_per_group(n_labels, plan.settings, plan.needs))
    return _CELL * cells + each * (1 + groups) * n_labels


def _scores_of(ready: Prepared, role: str) -> int:
    """Scores of a row of a table."""
    naming = ready.sides[role].naming
    if role not in (PREDICTIONS, TABLE):
        return 0
    return len(naming.labels) if naming.wide else 1


# Forecast of CPU, time, memory and scratch, from recorded slopes.


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
    in_use, reserved = slope.held, slope.reserved
    if read is not None:
        in_use, reserved = read[0].held / read[1], read[0].scratch / read[1]
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
        memory=max(LEAST_SHARE, least_limit(in_use * rows)),
        limit=limit,
        fitting=fitting,
        share=share,
        reserved=int(reserved * rows),
        scratch=int(slope.scratch * rows),
        disk=disk,
        suffices_for={
            SCRATCH: disk[1] / reserved,
            ONE_MACHINE: MOST_BUCKETS * bucket_room(share) / in_use,
            EACH_MACHINE: MOST_BUCKETS * bucket_room(limit) / in_use,
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
