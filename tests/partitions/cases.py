"""Helpers that score the tables of the merging tests in memory and in a few buckets on disk."""

from __future__ import annotations

import os
import pickle
import secrets
import signal
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from merging.parts import Case
from numpy.testing import assert_array_equal
from polars.testing import assert_frame_equal
from sizes import tune

import evalengine as ee
from evalengine import run
from evalengine.evaluation import summary
from evalengine.executors.pools import caught
from evalengine.outofcore import driver, memory

FEW = memory.Sizes(n=3, scratch=1000, group_rows=25, datums_at_once=5, run_rows=25)
"""Three buckets; label groups and sorted runs of 25 rows. Small tables are split too."""
WIDE = memory.Sizes(n=3, scratch=1000, group_rows=200, datums_at_once=5, run_rows=25)
"""As FEW, with larger label groups and so fewer files, for tests that do not split labels."""


SEED = "EVALENGINE_TESTS_SEED"
"""Environment variable with the seed to repeat a run; ``new`` for a random one."""


def next_seed(environ: Mapping[str, str] = os.environ) -> int:
    """Return the seed of random tables: from the environment, else a hash of the test's name.

    Hypothesis is no alternative: it tries its simplest example first, so that with one example
    per test the seed would always be 0.
    """
    given = environ.get(SEED)
    if given == "new":
        return secrets.randbits(32)
    test = environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    return int(given) if given else zlib.crc32(test.encode())


def in_buckets(patch: pytest.MonkeyPatch, sizes: memory.Sizes = FEW) -> None:
    """Make every run with a memory limit use buckets."""
    patch.setattr(driver, "bucket_count", lambda *_, **__: sizes)


def write_sides(case: Case, folder: Path, files: int = 1, rows: int = 7) -> list[Any]:
    """Write the sides as Parquet files with row groups of ``rows`` rows; return their paths."""
    given: list[Any] = []
    for i, side in enumerate(case.sides):
        step = -(-max(1, side.height) // files)
        paths = []
        for part in range(files):
            path = folder / f"{i}-{part:02}.parquet"
            side.slice(part * step, step).write_parquet(path, row_group_size=rows)
            paths.append(str(path))
        given.append(paths[0] if files == 1 else paths)
    return given


def same_as_in_memory(
    case: Case, task: str, folder: Path, *, files: int = 1, **how: Any
) -> ee.Scorecard:
    """Check that a run in buckets has the frames and notes of the run in memory."""
    sides = write_sides(case, folder, files)
    whole = ee.score(*sides, task=task, **case.options, **case.tables)
    assert "buckets" not in whole.run
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    given = {"memory_limit": "1GB", "scratch": str(scratch), **how}
    card = ee.score(*sides, task=task, **case.options, **case.tables, **given)
    assert card.run["buckets"] == FEW.n
    assert card.frames == whole.frames
    for name in whole.frames:
        assert_frame_equal(card.frame(name), whole.frame(name), check_exact=True)
    assert sorted(card.notes) == sorted(whole.notes)
    assert card.labels.equals(whole.labels)
    assert (card.run["datums"], card.run["inputs"]) == (whole.run["datums"], whole.run["inputs"])
    assert os.listdir(scratch) == []
    _same_tally(card, whole)
    return card


def _same_tally(card: ee.Scorecard, whole: ee.Scorecard) -> None:
    """Check that the merged tally of all buckets equals the tally of the run in memory."""
    merged = card.tallied.tallies
    assert merged.datums.id.equals(whole.tallied.tallies.datums.id)
    if (truth_of := card.tallied.plan.does.truth) is not None:
        assert_array_equal(truth_of(merged), truth_of(whole.tallied.tallies))
    if whole.options.intervals is None:
        makers, _ = summary.summarise(card.tallied.plan, merged)
        assert_frame_equal(makers["metrics"](), whole.metrics, check_exact=True)


def boxes(n: int = 60) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return predictions and ground truths of n images with three boxes each."""
    index = pl.int_range(3 * n, eager=True)
    rows = pl.DataFrame(
        {
            "datum_id": index // 3,
            "label_value": index % 5,
            "xmin": (index % 7).cast(pl.Float64),
            "ymin": (index % 3).cast(pl.Float64),
        }
    ).with_columns(xmax=pl.col("xmin") + 5, ymax=pl.col("ymin") + 4)
    return rows.with_columns(score=(index % 11) / 11, xmin=pl.col("xmin") - 0.5), rows


class InlinePool:
    """Stand-in for a pool of processes that runs every call in this process."""

    threads, least, apart, reads_tables = 1, 4, True, True

    def __init__(self) -> None:
        self.called: list[tuple[str, Any]] = []

    def refusal(self, function: Any, call: Any) -> str:
        return ""

    def share(self, limit: int) -> int:
        return limit // 2

    def run(self, function: Any, calls: Any) -> list[BaseException | None]:
        self.called += [(function.__name__, call) for call in calls]
        # Calls to real processes are pickled.
        received, given = pickle.loads(pickle.dumps((function, list(calls))))
        return [caught(received, call) for call in given]

    def prepare(self, function: Any) -> None:
        pass

    def close(self) -> None:
        pass


def work_in(patch: pytest.MonkeyPatch, pool: Any) -> None:
    """Make runs with ``executor="processes"`` use the given pool."""
    usual = run.pool_of

    def pool_of(executor: str | None, *rest: Any) -> Any:
        return pool if executor == "processes" else usual(executor, *rest)

    patch.setattr(run, "pool_of", pool_of)


def in_row_ranges(patch: pytest.MonkeyPatch, rows: int) -> InlinePool:
    """Shuffle tables in ranges of ``rows`` rows, with workers in this process."""
    pool = InlinePool()
    work_in(patch, pool)
    tune(range_rows=rows)
    return pool


def die_once(mark: str, place: str) -> None:
    """Kill the first worker of a stage half way through, and log each start in ``place``."""
    with open(place, "a") as file:
        file.write("began ")
    with suppress(FileExistsError):  # two workers may start at once
        Path(mark).touch(exist_ok=False)
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.2)


def die(_: str) -> None:
    """Kill every worker of a stage."""
    os.kill(os.getpid(), signal.SIGKILL)


def write_pid(place: str) -> None:
    """Write the process id of a stage to a file."""
    Path(place).write_text(str(os.getpid()))


def raise_os_error(number: int) -> None:
    """Raise the OSError of this number, such as that of a full disk."""
    raise OSError(number, "of a stage")


def sleep_a_minute(folder: str) -> None:
    """Create a file named by the process id, then sleep for a minute."""
    Path(folder, str(os.getpid())).touch()
    time.sleep(60)


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Wait until a condition is true, or fail after ``seconds``."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.01)
