"""Scratch in an object store: the numbers of a run in memory, and no object after the run."""

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
    await_that,
    boxes,
    in_buckets,
    in_units,
    next_seed,
    raise_os_error,
    same_as_in_memory,
    written,
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
    """A store whose only objects are those of runs, which are gone at the end."""
    folder = tmp_path / "objects"
    folder.mkdir()
    with object_store(folder) as server:
        yield server
        assert [path for path in folder.rglob("*") if path.is_file()] == []
        assert "PUT" in {method for method, _ in server.asked}


def there(store: Store) -> dict[str, Any]:
    """Options of a run with its scratch in a store."""
    return {
        "memory_limit": "1GB",
        "scratch": store.path("some/place"),
        "storage_options": store.options,
    }


@pytest.mark.parametrize("name", KINDS)
def test_every_task_is_as_in_memory(
    name: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of this process, which writes its rows in several ranges of a table."""
    in_buckets(monkeypatch, WIDE)
    tune(object_bytes=500, shuffle_rows=10)
    task, draw = CASES[name]
    same_as_in_memory(draw(next_seed()), task, tmp_path, **there(store))
    assert not list(tmp_path.glob("s3*"))
    assert not list(Path().glob("s3*"))


def test_workers_are_as_in_memory(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_buckets(monkeypatch, WIDE)
    in_units(monkeypatch, 20)
    how = {**there(store), "executor": "processes"}
    same_as_in_memory(Case(boxes(), {}), "detection", tmp_path, files=3, **how)


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["processes", "dask"])
def test_a_killed_worker_is_replaced(
    executor: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is killed as soon as there is a tally of a bucket, whose others are then missing."""
    sides = written(Case(boxes(3000), {}), tmp_path, rows=500)
    whole = ee.score(*sides, task="detection")
    killed: list[int] = []

    def kill() -> None:
        tallies = store.folder / "some/place"
        await_that(lambda: any(tallies.rglob("*.tally")))
        children = subprocess.run(
            ["pgrep", "-f", "spawn_main"], capture_output=True, text=True, check=False
        ).stdout.split()
        ours = [int(one) for one in children if _descends(int(one))]
        os.kill(ours[-1], signal.SIGKILL)
        killed.append(ours[-1])

    thread = threading.Thread(target=kill)
    thread.start()
    how = {**there(store), "memory_limit": "2GB"}
    card = ee.score(*sides, task="detection", executor=executor, threads=2, **how)
    thread.join()
    assert killed
    assert card.metrics.equals(whole.metrics)


def _descends(pid: int) -> bool:
    """Whether a process was started by this one, or by one that was."""
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
def test_nothing_remains_of_a_run_that_ends_early(
    step: str,
    error: type[BaseException],
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    in_buckets(monkeypatch, WIDE)
    sides = written(Case(boxes(), {}), tmp_path)

    def stop(now: str) -> None:
        if now.startswith(step):
            raise error("stopped")

    with pytest.raises(error, match="stopped"):
        ee.score(*sides, task="detection", progress=stop, **there(store))


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
def test_nothing_remains_of_a_program_that_is_sent_a_signal(
    step: str, number: signal.Signals, store: Store, tmp_path: Path
) -> None:
    """It has no handler of SIGTERM, and again none after the run."""
    script = tmp_path / "killed.py"
    script.write_text(_KILLED)
    options = [f"{name}={value}" for name, value in store.options.items()]
    run = subprocess.run(
        [sys.executable, script, *written(Case(boxes(), {}), tmp_path), step, str(int(number)),
         store.path("some/place"), *options],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert run.returncode == {signal.SIGTERM: 143, signal.SIGINT: -2}[number], run.stderr


@pytest.mark.parametrize("step", ["shuffling", "matching", "merging", "making"])
def test_objects_that_are_deleted_under_a_run_are_said(
    step: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No worker is said not to see the place, which it once was."""
    in_buckets(monkeypatch, WIDE)
    sides = written(Case(boxes(), {}), tmp_path)

    def told(now: str) -> None:
        if now.startswith(step):
            shutil.rmtree(store.folder / "some", ignore_errors=True)

    with refused("scratch_deleted", ScratchError):
        ee.score(*sides, task="detection", progress=told, **there(store)).make()


def test_a_full_disk_of_copies_has_another_remedy(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scratch is in the store already; what is full is the temporary folder."""
    in_buckets(monkeypatch, WIDE)
    sides = written(Case(boxes(), {}), tmp_path)
    monkeypatch.setattr(scratch._Copy, "fetch", lambda *_: raise_os_error(errno.ENOSPC))
    with refused("scratch_full", ScratchError) as full:
        ee.score(*sides, task="detection", **there(store))
    assert "TMPDIR" in str(full.value)


def test_problems_of_rows_are_those_of_a_run_in_memory(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_buckets(monkeypatch, WIDE)
    predictions, truths = boxes()
    wrong = predictions.with_columns(pl.when(pl.int_range(pl.len()) != 70).then("score"))
    sides = written(Case((wrong, truths), {}), tmp_path)
    with pytest.raises(ee.InputError) as whole:
        ee.score(*sides, task="detection")
    with pytest.raises(ee.InputError) as bounded:
        ee.score(*sides, task="detection", **there(store))
    assert str(bounded.value) == str(whole.value)


def test_runs_in_one_place_do_not_meet(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has written its buckets before one of them goes on."""
    in_buckets(monkeypatch, WIDE)
    sides = written(Case(boxes(), {}), tmp_path)
    whole = ee.score(*sides, task="detection")
    both = threading.Barrier(2, timeout=60)

    def score(_: int) -> ee.Scorecard:
        def wait(now: str) -> None:
            if now == "merging":
                both.wait()

        return ee.score(*sides, task="detection", progress=wait, **there(store))

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


def test_a_late_worker_leaves_nothing(store: Store) -> None:
    """It has been taken for dead, and writes when the run is over."""
    with run_place(store.path("place"), 0, store.options, 1000) as (folder, place):
        late = pickle.loads(pickle.dumps(place))
    with (
        scratch.attached(late),
        refused("scratch_deleted", ScratchError),
        whole_file(folder / "parts" / "0.tally") as file,
    ):
        file.write(b"late")


def test_rows_of_labels_are_ranges_of_bytes(store: Store) -> None:
    """Of an object of 40 MB a few are fetched; all of them if they are asked for."""
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
        known = of_labels(ranked, 1, 2)
        for name in ("start", "score", "datum", "row", "hit", "gt_start", "gt_datum", "gt_counted"):
            assert np.array_equal(getattr(few, name), getattr(known, name)), name
        every = stored.mapped(path)
        assert np.array_equal(every.hit, ranked.hit)
        assert np.array_equal(every.score, ranked.score)


def test_copies_take_as_much_of_the_disk_as_they_may(store: Store) -> None:
    """Descriptors of this process are its copies: those of other objects are dropped."""
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
    """Bytes of deleted files that this process has open."""
    sizes = []
    for one in Path("/proc/self/fd").iterdir():
        try:
            if os.readlink(one).endswith("(deleted)"):
                sizes.append(os.stat(one).st_blocks * 512)
        except OSError:
            continue
    return sum(sizes)


def test_a_store_that_refuses_is_told(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the message nor what is logged of a place has its keys."""
    in_buckets(monkeypatch, WIDE)
    sides = written(Case(boxes(), {}), tmp_path)
    store.failing = lambda key: key.endswith("1.tally")
    with refused("scratch_unusable", ScratchError) as told:
        ee.score(*sides, task="detection", **there(store))
    assert "something" not in str(told.value)
    place = scratch.ObjectPlace(store.path("place"), store.options, 0)
    assert "something" not in repr(place)


def test_places_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_buckets(monkeypatch, WIDE)
    sides = written(Case(boxes(), {}), tmp_path)

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
