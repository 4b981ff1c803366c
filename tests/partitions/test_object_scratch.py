"""Scratch in an object store: numbers equal those in memory, and no objects remain."""

from __future__ import annotations

import errno
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from merging.parts import Case
from merging.test_parts import CASES, KINDS
from object_store import Store, object_store
from partitions.cases import (
    WIDE,
    boxes,
    in_buckets,
    in_row_ranges,
    next_seed,
    raise_os_error,
    same_as_in_memory,
    wait_until,
    write_sides,
)
from refusals import refused
from sizes import tune

import evalengine as ee
from evalengine import scratch
from evalengine.atomic import whole_file
from evalengine.outofcore.memory import run_place
from evalengine.schemas.errors import ScratchError
from evalengine.tallies import stored
from evalengine.tallies.ranked import Ranked, Variants, of_labels

pytest.importorskip("obstore", reason="an extra: evalengine[objects]")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Yield an object store, and check at the end that runs wrote and deleted objects."""
    folder = tmp_path / "objects"
    folder.mkdir()
    with object_store(folder) as server:
        yield server
        assert [path for path in folder.rglob("*") if path.is_file()] == []
        assert "PUT" in {method for method, _ in server.asked}


def scratch_in(store: Store) -> dict[str, Any]:
    """Return the options of a run with its scratch in a store."""
    return {
        "memory_limit": "1GB",
        "scratch": store.path("some/place"),
        "storage_options": store.options,
    }


@pytest.mark.parametrize("name", KINDS)
def test_every_task_is_as_in_memory(
    name: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small sizes make the run write each table in several objects."""
    in_buckets(monkeypatch, WIDE)
    tune(object_bytes=500, shuffle_rows=10)
    task, draw = CASES[name]
    same_as_in_memory(draw(next_seed()), task, tmp_path, **scratch_in(store))
    assert not list(tmp_path.glob("s3*"))
    assert not list(Path().glob("s3*"))


def test_workers_are_as_in_memory(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_buckets(monkeypatch, WIDE)
    in_row_ranges(monkeypatch, 20)
    how = {**scratch_in(store), "executor": "processes"}
    same_as_in_memory(Case(boxes(), {}), "detection", tmp_path, files=3, **how)


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["processes", "dask"])
def test_a_killed_worker_is_replaced(
    executor: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is killed as soon as the first bucket is tallied."""
    sides = write_sides(Case(boxes(3000), {}), tmp_path, rows=500)
    whole = ee.score(*sides, task="detection")
    killed: list[int] = []

    def kill() -> None:
        tallies = store.folder / "some/place"
        wait_until(lambda: any(tallies.rglob("*.tally")))
        children = subprocess.run(
            ["pgrep", "-f", "spawn_main"], capture_output=True, text=True, check=False
        ).stdout.split()
        ours = [int(one) for one in children if _descends(int(one))]
        os.kill(ours[-1], signal.SIGKILL)
        killed.append(ours[-1])

    thread = threading.Thread(target=kill)
    thread.start()
    how = {**scratch_in(store), "memory_limit": "2GB"}
    card = ee.score(*sides, task="detection", executor=executor, threads=2, **how)
    thread.join()
    assert killed
    assert card.metrics.equals(whole.metrics)


def _descends(pid: int) -> bool:
    """Return True if a process is a descendant of this one."""
    while pid > 1:
        if pid == os.getpid():
            return True
        status = Path(f"/proc/{pid}/status")
        if not status.exists():
            return False
        pid = int(status.read_text().partition("PPid:")[2].split()[0])
    return False


@pytest.mark.parametrize("error", [KeyboardInterrupt, ee.InputError])
@pytest.mark.parametrize("step", ["shuffling", "matching", "merging", "making frames"])
def test_a_run_that_ends_early_leaves_no_object(
    step: str,
    error: type[BaseException],
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    in_buckets(monkeypatch, WIDE)
    sides = write_sides(Case(boxes(), {}), tmp_path)

    def stop(now: str) -> None:
        if now.startswith(step):
            raise error("stopped")

    with pytest.raises(error, match="stopped"):
        ee.score(*sides, task="detection", progress=stop, **scratch_in(store))


_KILLED = """
import os, signal, sys
import evalengine as ee

def told(step):
    if step.startswith(sys.argv[3]):
        os.kill(os.getpid(), int(sys.argv[4]))

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell ignore it
    options = dict(one.split("=", 1) for one in sys.argv[6:])
    try:
        ee.score(*sys.argv[1:3], task="detection", memory_limit="1GB", progress=told,
                 executor="processes", threads=1, scratch=sys.argv[5], storage_options=options)
    finally:
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
"""


@pytest.mark.parametrize("step", ["shuffling", "merging"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_program_that_is_sent_a_signal_leaves_no_object(
    step: str, number: signal.Signals, store: Store, tmp_path: Path
) -> None:
    """The handler of SIGTERM is restored to the default after the run."""
    script = tmp_path / "killed.py"
    script.write_text(_KILLED)
    options = [f"{name}={value}" for name, value in store.options.items()]
    run = subprocess.run(
        [sys.executable, script, *write_sides(Case(boxes(), {}), tmp_path), step, str(int(number)),
         store.path("some/place"), *options],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert run.returncode == {signal.SIGTERM: 143, signal.SIGINT: -2}[number], run.stderr


@pytest.mark.parametrize("step", ["shuffling", "matching", "merging", "making"])
def test_objects_deleted_during_a_run_are_reported(
    step: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error does not claim that a worker cannot see the store."""
    in_buckets(monkeypatch, WIDE)
    sides = write_sides(Case(boxes(), {}), tmp_path)

    def delete(now: str) -> None:
        if now.startswith(step):
            shutil.rmtree(store.folder / "some", ignore_errors=True)

    with refused("scratch_deleted", ScratchError):
        ee.score(*sides, task="detection", progress=delete, **scratch_in(store)).make()


def test_a_full_disk_of_local_copies_has_another_remedy(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The temporary folder is full, not the scratch, which is in the store."""
    in_buckets(monkeypatch, WIDE)
    sides = write_sides(Case(boxes(), {}), tmp_path)
    monkeypatch.setattr(scratch._Copy, "fetch", lambda *_: raise_os_error(errno.ENOSPC))
    with refused("scratch_full", ScratchError) as full:
        ee.score(*sides, task="detection", **scratch_in(store))
    assert "TMPDIR" in str(full.value)


def test_problems_of_rows_are_those_of_a_run_in_memory(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_buckets(monkeypatch, WIDE)
    predictions, truths = boxes()
    wrong = predictions.with_columns(pl.when(pl.int_range(pl.len()) != 70).then("score"))
    sides = write_sides(Case((wrong, truths), {}), tmp_path)
    with pytest.raises(ee.InputError) as whole:
        ee.score(*sides, task="detection")
    with pytest.raises(ee.InputError) as bounded:
        ee.score(*sides, task="detection", **scratch_in(store))
    assert str(bounded.value) == str(whole.value)


def test_concurrent_runs_in_one_place_are_independent(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A barrier makes both runs write their buckets before either merges."""
    in_buckets(monkeypatch, WIDE)
    sides = write_sides(Case(boxes(), {}), tmp_path)
    whole = ee.score(*sides, task="detection")
    both = threading.Barrier(2, timeout=60)

    def score(_: int) -> ee.Scorecard:
        def wait(now: str) -> None:
            if now == "merging":
                both.wait()

        return ee.score(*sides, task="detection", progress=wait, **scratch_in(store))

    with ThreadPoolExecutor(2) as pool:
        cards = [*pool.map(score, range(2))]
    assert [card.metrics.equals(whole.metrics) for card in cards] == [True, True]


def test_the_first_of_two_writers_counts(store: Store) -> None:
    with run_place(store.path("place"), 0, store.options, 1000) as (folder, _):
        for content in (b"first", b"second"):
            with whole_file(folder / "parts" / "0.tally") as file:
                file.write(content)
        assert scratch.read(folder / "parts" / "0.tally") == b"first"
        assert not scratch.exists(folder / "parts" / "1.tally")
        with pytest.raises(FileNotFoundError, match=r"1\.tally"):
            scratch.read(folder / "parts" / "1.tally")


def test_a_late_worker_writes_no_object(store: Store) -> None:
    """A worker that was taken for dead writes after the end of the run."""
    with run_place(store.path("place"), 0, store.options, 1000) as (folder, place):
        late = pickle.loads(pickle.dumps(place))
    with (
        scratch.attached(late),
        refused("scratch_deleted", ScratchError),
        whole_file(folder / "parts" / "0.tally") as file,
    ):
        file.write(b"late")


def test_rows_of_labels_are_read_by_byte_ranges(store: Store) -> None:
    """A query of few labels fetches a small part of an object of 40 MB."""
    n = 500_000
    numbers = np.arange(n)
    ranked = Ranked(
        variants=Variants((0.5,), ((None, 0.0, 1e10),)),
        start=np.array([0, n // 2, n // 2 + 9, n]),
        score=numbers / n,
        datum=numbers.astype(np.int32),
        row=numbers,
        rank=np.zeros(n, np.int32),
        hit=numbers.astype(np.uint64)[None].repeat(2, axis=0),
        ignored=np.zeros((2, n), np.uint64),
        gt_start=np.array([0, 0, 2, 3]),
        gt_datum=np.arange(3, dtype=np.int32),
        gt_row=np.arange(3),
        gt_counted=np.zeros((2, 3), np.uint64),
        single=False,
    )
    with run_place(store.path("place"), 0, store.options, 1 << 20) as (folder, _):
        path = folder / "0.tally"
        stored.save(ranked, path, lasting=False)
        before = store.sent
        few = stored.mapped_rows(
            path, stored.WHOLE, lambda rows: of_labels(rows, 1, 2), ("start", "gt_start")
        )
        assert store.sent - before < scratch.size(path) // 2
        expected = of_labels(ranked, 1, 2)
        for name in ("start", "score", "datum", "row", "hit", "gt_start", "gt_datum", "gt_counted"):
            assert np.array_equal(getattr(few, name), getattr(expected, name)), name
        every = stored.mapped(path)
        assert np.array_equal(every.hit, ranked.hit)
        assert np.array_equal(every.score, ranked.score)


def test_local_copies_stay_within_their_limit(store: Store) -> None:
    """Copies are deleted open files of this process; older ones are dropped."""
    contents = {f"parts/{n}": bytes([n]) * 100_000 for n in range(20)}
    with run_place(store.path("place"), 0, store.options, 350_000) as (folder, _):
        for name, content in contents.items():
            scratch.write(folder / name, content)
        before = _bytes_without_names()
        for name, content in [*contents.items()] * 2:
            assert scratch.read(folder / name) == content
        assert _bytes_without_names() - before <= 450_000
    assert _bytes_without_names() == before


def _bytes_without_names() -> int:
    """Return the bytes of deleted files that this process has open."""
    sizes = []
    for one in Path("/proc/self/fd").iterdir():
        try:
            if os.readlink(one).endswith("(deleted)"):
                sizes.append(os.stat(one).st_blocks * 512)
        except OSError:
            continue
    return sum(sizes)


def test_a_store_that_refuses_is_reported(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the message nor the repr of the place contains the keys."""
    in_buckets(monkeypatch, WIDE)
    sides = write_sides(Case(boxes(), {}), tmp_path)
    store.failing = lambda key: key.endswith("1.tally")
    with refused("scratch_unusable", ScratchError) as raised:
        ee.score(*sides, task="detection", **scratch_in(store))
    assert "something" not in str(raised.value)
    place = scratch.ObjectPlace(store.path("place"), store.options, 0)
    assert "something" not in repr(place)


def test_invalid_places_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_buckets(monkeypatch, WIDE)
    sides = write_sides(Case(boxes(), {}), tmp_path)

    def score(place: str, **options: str) -> None:
        how: dict[str, Any] = {"memory_limit": "1GB", "scratch": place}
        ee.score(*sides, task="detection", storage_options=options, **how)

    with refused("scratch_unusable", ScratchError, file="ftp://host/place"):
        score("ftp://host/place")
    with pytest.raises(ee.OptionError, match="bogus"):
        score("s3://bucket/place", bogus="1")
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(ee.OptionError, match=r"pip install 'evalengine\[objects\]'"):
        score("s3://bucket/place")
