"""Tables of the merging tests as files, scored in memory and through a few buckets on disk."""

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
"""Three buckets, label groups and runs of 25 rows, however small the tables."""
WIDE = memory.Sizes(n=3, scratch=1000, group_rows=200, datums_at_once=5, run_rows=25)
"""The same with groups of more rows, where cutting labels is not the point: fewer files."""


SEED = "EVALENGINE_TESTS_SEED"
"""Environment variable with the seed of a run that is to be repeated; ``new`` for another one."""


def next_seed(environ: Mapping[str, str] = os.environ) -> int:
    """A seed of random tables, that of the test's name unless the environment has one.

    One table a test is drawn; Hypothesis tries its simplest example first, so that with one
    example a test the seed would be 0 in every test.
    """
    given = environ.get(SEED)
    if given == "new":
        return secrets.randbits(32)
    test = environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    return int(given) if given else zlib.crc32(test.encode())


def in_buckets(patch: pytest.MonkeyPatch, sizes: memory.Sizes = FEW) -> None:
    """Have every run with a limit go through buckets."""
    patch.setattr(driver, "bucket_count", lambda *_, **__: sizes)


def written(case: Case, folder: Path, files: int = 1, rows: int = 7) -> list[Any]:
    """The sides as Parquet files of row groups of so many rows; paths as ``score`` takes them."""
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
    """Every frame and note of a run through buckets is that of the run in memory."""
    sides = written(case, folder, files)
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
    """What is kept of all buckets is the tally of the run in memory."""
    kept = card.tallied.tallies
    assert kept.datums.id.equals(whole.tallied.tallies.datums.id)
    if (truth_of := card.tallied.plan.does.truth) is not None:
        assert_array_equal(truth_of(kept), truth_of(whole.tallied.tallies))
    if whole.options.intervals is None:
        makers, _ = summary.summarise(card.tallied.plan, kept)
        assert_frame_equal(makers["metrics"](), whole.metrics, check_exact=True)


def boxes(n: int = 60) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Predictions and ground truths of n images, three boxes each."""
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


class Here:
    """A pool of workers that are told to be other processes, and work in this one."""

    threads, least, apart, reads_tables = 1, 4, True, True

    def __init__(self) -> None:
        self.called: list[tuple[str, Any]] = []

    def refusal(self, function: Any, call: Any) -> str:
        return ""

    def share(self, limit: int) -> int:
        return limit // 2

    def run(self, function: Any, calls: Any) -> list[BaseException | None]:
        self.called += [(function.__name__, call) for call in calls]
        # Through a pickle, as what is sent to a process goes.
        again, given = pickle.loads(pickle.dumps((function, list(calls))))
        return [caught(again, call) for call in given]

    def prepare(self, function: Any) -> None:
        pass

    def close(self) -> None:
        pass


def work_in(patch: pytest.MonkeyPatch, pool: Any) -> None:
    """Have runs in processes use a pool; others stay as they are."""
    usual = run.pool_of

    def pool_of(executor: str | None, *rest: Any) -> Any:
        return pool if executor == "processes" else usual(executor, *rest)

    patch.setattr(run, "pool_of", pool_of)


def in_units(patch: pytest.MonkeyPatch, rows: int) -> Here:
    """Have tables dealt out in units of so many rows, by workers that work here."""
    pool = Here()
    work_in(patch, pool)
    tune(range_rows=rows)
    return pool


def die_once(mark: str, place: str) -> None:
    """A stage whose first worker is killed half way through; its place tells how often it began."""
    with open(place, "a") as file:
        file.write("began ")
    with suppress(FileExistsError):  # of two workers that begin at once one is the first
        Path(mark).touch(exist_ok=False)
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.2)


def die(_: str) -> None:
    """A stage that no worker survives."""
    os.kill(os.getpid(), signal.SIGKILL)


def tell_process(place: str) -> None:
    """A stage that leaves the number of its process in a file."""
    Path(place).write_text(str(os.getpid()))


def raise_os_error(number: int) -> None:
    """A stage that fails as a full disk has it fail."""
    raise OSError(number, "of a stage")


def stay(folder: str) -> None:
    """A stage that leaves the number of its process, and takes a minute."""
    Path(folder, str(os.getpid())).touch()
    time.sleep(60)


def await_that(told: Callable[[], bool], seconds: float = 60) -> None:
    """Wait for something that must become true."""
    end = time.monotonic() + seconds
    while not told():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.01)
