"""Faults of tallies that are merged in files: repeated stages, killed workers, full disks."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import resource
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from merging.parts import Case
from merging.test_parts import CASES
from msgspec import structs
from partitions.cases import (
    FEW,
    InlinePool,
    boxes,
    in_buckets,
    same_as_in_memory,
    wait_until,
    work_in,
    write_sides,
)
from partitions.test_classification_frames import one_table
from refusals import refused
from sizes import tune

import evalengine as ee
from evalengine.executors.pools import caught
from evalengine.ingest.problems import ChecksFailed, PartRefused, Problem, Words
from evalengine.outofcore import bucket_files as repeats
from evalengine.outofcore.stages import collected
from evalengine.schemas.contract import ROW


class Twice(InlinePool):
    """Pool that runs every batch of calls twice."""

    def run(self, function: Any, calls: Any) -> list[BaseException | None]:
        first = super().run(function, [*calls])
        return [
            one or other for one, other in zip(first, super().run(function, calls), strict=True)
        ]


class AtOnce(InlinePool):
    """Pool that runs every call in two threads at the same time."""

    def run(self, function: Any, calls: Any) -> list[BaseException | None]:
        self.called += [(function.__name__, call) for call in calls]
        results = []
        with ThreadPoolExecutor(2) as two:
            for call in calls:
                both = [two.submit(caught, function, call) for _ in range(2)]
                results += [next(filter(None, [one.result() for one in both]), None)]
        return results


@pytest.mark.parametrize(("name", "pool"), [("lists", AtOnce), ("panoptic", Twice)])
def test_a_stage_run_by_two_workers_counts_once(
    name: str, pool: type[InlinePool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_buckets(monkeypatch)
    here = pool()
    work_in(monkeypatch, here)
    tune(range_rows=13)
    task, draw = CASES[name]
    same_as_in_memory(draw(3), task, tmp_path, executor="processes")
    stages = {name for name, _ in here.called}
    assert {"shuffle_range", "tally_bucket"} <= stages


@pytest.mark.parametrize(("pool", "twice"), [(Twice, True), (AtOnce, False), (AtOnce, True)])
def test_two_workers_find_the_same_repeats(
    pool: type[InlinePool], twice: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_buckets(monkeypatch)
    here = pool()
    work_in(monkeypatch, here)
    predictions, truths = boxes()
    sides = (predictions, truths.with_columns(annotation_id=pl.int_range(pl.len()) % 170))
    if not twice:
        sides = (predictions, truths.with_columns(annotation_id=pl.int_range(pl.len())))
        case = Case(sides, {"metrics": ["mAP"]})
        same_as_in_memory(case, "detection", tmp_path, executor="processes")
        return
    paths = write_sides(Case(sides, {}), tmp_path)
    with refused(
        "repeated_values",
        side="ground_truths",
        column="annotation_id",
        count=20,
        rows=[0, 1, 2],
        values=10,
        key=["annotation_id"],
    ):
        ee.score(*paths, task="detection", executor="processes", scratch=str(tmp_path / "s"))


@pytest.mark.parametrize("twice", [False, True])
def test_a_second_worker_keeps_the_result_of_the_first(
    twice: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first has deleted its input; its result file exists even if there are no repeats."""
    (tmp_path / "repeats").mkdir()
    units = []
    for unit in range(3):
        folder = tmp_path / f"unit-{unit}"
        folder.mkdir()
        values = pl.DataFrame({"annotation_id": [unit if twice else 10 * unit, 1], ROW: [0, 1]})
        values = values if twice or not unit else values.head(1)
        with ExitStack() as stack:
            path_of = partial(repeats.values_file, folder, "annotation_id")
            files = repeats.BucketFiles(stack, path_of)
            repeats.write_values(files, values["annotation_id"], values[ROW].to_numpy(), 1)
        units.append((str(folder), 2 * unit))
    read, call = repeats._numbered, (str(tmp_path), "ground_truths", "annotation_id", 0, units)

    def late(path: Path, before: int) -> pl.DataFrame:
        monkeypatch.setattr(repeats, "_numbered", read)
        repeats.find_repeats(*call)  # the other worker runs to completion
        return read(path, before)

    monkeypatch.setattr(repeats, "_numbered", late)
    repeats.find_repeats(*call)
    target = repeats.repeats_file(tmp_path, "ground_truths", "annotation_id", 0)
    result = repeats.msgspec.json.decode(target.read_bytes(), type=repeats.Repeats)
    assert (result.values, result.rows, result.first) == (
        (1, 4, [1, 2, 3]) if twice else (0, 0, [])
    )
    repeats.find_repeats(*call)
    assert [file.name for file in (tmp_path / "repeats").iterdir()] == [target.name]
    target.unlink()
    repeats.find_repeats(*call)  # no values were written: the result file records that
    assert target.exists()


def scored(n: int) -> Case:
    """Return a weighted, sliced table of n datums whose metrics need scored rows."""
    few = one_table(1, weighted=True, named=True).drop("datum_id")
    table = few[[i % few.height for i in range(n)]].with_columns(datum_id=pl.int_range(n))
    return Case((table,), {"metrics": ["AP", "F1", "LogLoss"], "by": ["kind"]})


def large_case(name: str, n: int = 300) -> Case:
    """Return a table of n datums, for runs with many rows to merge."""
    ids = pl.Series("datum_id", np.random.default_rng(1).permutation(n))
    words = (ids % 7).cast(pl.String) + " a b c"
    tables = {
        "text": pl.DataFrame({"datum_id": ids, "text": words, "reference": words.reverse()}),
        "judged": pl.DataFrame(
            {"datum_id": ids, "metric": "Bias", "verdict": ["yes", "no"] * (n // 2)}
        ),
    }  # fmt: skip
    return Case((tables[name],), {"metrics": ["BLEU"]} if name == "text" else {})


@contextmanager
def small_files(size: int, pids: list[int] | None = None) -> Iterator[None]:
    """Limit the size of files that processes write, by default this one.

    Writing fails as it does on a full disk.
    """
    chosen = [os.getpid()] if pids is None else pids
    before = [resource.prlimit(pid, resource.RLIMIT_FSIZE) for pid in chosen]
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        for pid, (_, hard) in zip(chosen, before, strict=True):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))
        yield
    finally:
        signal.signal(signal.SIGXFSZ, handler)
        if pids is None:
            resource.prlimit(os.getpid(), resource.RLIMIT_FSIZE, before[0])


def check_full_disk(case: Case, task: str, folder: Path, **how: Any) -> None:
    """Check that a run fails with a full disk and that its scratch folder is empty."""
    sides = write_sides(case, folder, rows=1000)
    with refused("scratch_full", ee.ScratchError):
        ee.score(*sides, task=task, **case.options, scratch=str(folder / "s"), **how)
    assert os.listdir(folder / "s") == []


@pytest.mark.slow
def test_a_disk_that_runs_full_while_a_worker_shuffles_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_buckets(monkeypatch)
    shuffle: list[Any] = []

    def report(step: str) -> None:
        if step.startswith("shuffling"):
            wait_until(lambda: bool(multiprocessing.active_children()))
            limit = small_files(5_000, [one.pid or 0 for one in multiprocessing.active_children()])
            limit.__enter__()
            shuffle.append(limit)

    how = {"executor": "processes", "threads": 1, "progress": report}
    try:
        check_full_disk(large_case("judged", 6000), "judged", tmp_path, **how)
    finally:
        for limit in shuffle:
            limit.__exit__(None, None, None)
    assert shuffle


def test_a_disk_that_runs_full_while_runs_are_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tallies of buckets are smaller than the limit and are written before it is set."""
    in_buckets(monkeypatch, structs.replace(FEW, run_rows=100))
    limits: list[Any] = []

    def report(step: str) -> None:
        if step == "making frames":
            limits.append(small_files(3_000))
            limits[-1].__enter__()

    try:
        check_full_disk(
            scored(3000), "classification", tmp_path, memory_limit="1GB", progress=report
        )
    finally:
        for limit in limits:
            limit.__exit__(None, None, None)
    assert limits


def test_a_frame_that_a_disk_has_no_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scratch folder is deleted if the frame does not fit."""
    in_buckets(monkeypatch)
    tune(datum_bytes=10**9)
    limits: list[Any] = []

    def report(step: str) -> None:
        if step == "making frames":
            limits.append(small_files(3_000))
            limits[-1].__enter__()

    try:
        check_full_disk(
            large_case("text", 3000), "text", tmp_path, memory_limit="1GB", progress=report
        )
    finally:
        for limit in limits:
            limit.__exit__(None, None, None)


def test_errors_of_buckets_are_raised_in_the_order_of_a_run_in_memory() -> None:
    """Failures of the run come first, then invalid rows, slices, and other refusals."""
    words = Words("", "row", "rows", " of a", "")
    rows = [ChecksFailed([Problem("table", "", "", n, words=words)], {}) for n in (1, 2)]
    slices = [
        PartRefused(step, n, place, "by: ", ("one", "several"), f", first {place}", "differ")
        for step, n, place in (((1, 0), 2, 9), ((0, 1), 2, 7), ((0, 1), 3, 4))
    ]
    others = [ee.OptionError("of options"), ee.InputError("of tables")]
    failures = [others[0], slices[0], rows[0], None, slices[1], ee.ScratchError("full"), *rows[1:]]
    with pytest.raises(ee.ScratchError):
        collected([*failures, slices[2], others[1]])
    failures.pop(5)
    with pytest.raises(ChecksFailed, match="3 rows of a"):
        collected([*failures, slices[2], others[1]])
    without_rows = [failure for failure in failures if failure not in rows]
    with pytest.raises(PartRefused, match="by: 5 several, first 4"):
        collected([*without_rows, pickle.loads(pickle.dumps(slices[2])), others[1]])
    with pytest.raises(ee.OptionError, match="of options"):
        collected(others)
    collected([None])
