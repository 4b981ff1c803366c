"""Dask clusters: results equal to one process, and errors of clusters and workers."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dask
import distributed
import psutil
import pytest
from merging.parts import Case
from merging.test_parts import CASES
from partitions.cases import (
    boxes,
    die,
    die_once,
    in_buckets,
    raise_os_error,
    same_as_in_memory,
    write_sides,
)
from partitions.clusters import cluster, free_port
from refusals import refused

import evalengine as ee
from evalengine.executors import processes as dask_pool
from evalengine.executors.processes import pool_of
from evalengine.outofcore import shuffle, stages


@pytest.fixture(scope="module")
def two_workers() -> Iterator[str]:
    """Yield the address of a cluster of two workers with two threads each."""
    with cluster(2, threads=2) as (address, _):
        yield address


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["detection", "classification", "segmentation", "retrieval", "text"]
)
def test_a_dask_cluster_is_as_in_memory(
    name: str, two_workers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_buckets(monkeypatch)
    task, draw = CASES[name]
    same_as_in_memory(draw(2), task, tmp_path, executor="dask", address=two_workers)


@pytest.mark.slow
def test_a_killed_dask_worker_changes_no_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of two workers gets SIGKILL while buckets are tallied."""
    in_buckets(monkeypatch)
    task, draw = CASES["detection"]
    with cluster(2) as (address, workers):

        def kill(step: str) -> None:
            if step == "matching":
                workers[0].send_signal(signal.SIGKILL)

        same_as_in_memory(draw(4), task, tmp_path, executor="dask", address=address, progress=kill)
        assert workers[0].wait(10) == -signal.SIGKILL


@pytest.mark.slow
def test_workers_read_the_tables(
    two_workers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paths may be relative; this process opens the tables but reads no range of rows."""
    in_buckets(monkeypatch)
    monkeypatch.chdir(tmp_path)
    stages_run: list[str] = []
    real = dask_pool.OnDask.run

    def run(self: Any, function: Any, calls: Any) -> Any:
        stages_run.append(function.__name__)
        return real(self, function, calls)

    monkeypatch.setattr(dask_pool.OnDask, "run", run)
    task, draw = CASES["detection"]
    card = same_as_in_memory(draw(6), task, Path(), executor="dask", address=two_workers)
    assert "client_reads" not in [one.code for one in card.findings]
    assert stages_run[0] == shuffle.shuffle_range.__name__


def test_a_worker_that_dies_during_a_check_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: dict[str, Any] = {"tcp://1": OSError("closed"), "tcp://2": ""}
    pool = object.__new__(dask_pool.OnDask)
    pool._address = "tcp://0"
    pool._client = SimpleNamespace(run=lambda *_, **__: answers)
    monkeypatch.setattr(pool, "_check_packages", lambda: None)
    monkeypatch.setattr(pool, "_results", lambda *_: None)
    assert pool.refusal(print, ()) == ""
    answers["tcp://2"] = RuntimeError("cannot schedule new futures after shutdown")
    assert pool.refusal(print, ()) == ""
    answers["tcp://2"] = "no such file"
    assert pool.refusal(print, ()) == "tcp://2: no such file"
    answers["tcp://3"] = ee.ExecutorError("other versions")
    answers["tcp://2"] = ""
    with pytest.raises(ee.ExecutorError):
        pool.refusal(print, ())
    for gone in (Exception("RuntimeError('after shutdown')"), distributed.KilledWorker("it", 1, 3)):
        answers["tcp://3"] = gone
        assert pool.refusal(print, ()) == ""
    for mismatch in (ImportError("no module"), Exception("AttributeError('no error_of')")):
        answers["tcp://3"] = mismatch
        with refused("versions_differ", ee.ExecutorError, package="evalengine"):
            pool.refusal(print, ())


@pytest.mark.slow
def test_a_worker_without_a_function_is_another_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_buckets(monkeypatch)
    before = "from evalengine.executors import pools; del pools.error_of; "
    with (
        cluster(1, before=before) as (address, _),
        refused("versions_differ", ee.ExecutorError, package="evalengine"),
    ):
        _score(tmp_path, executor="dask", address=address)


_OTHER_FILES = """import os; real = os.path.getsize
os.path.getsize = lambda file: real(file) + str(file).endswith("0-00.parquet")
"""


@pytest.mark.slow
def test_tables_that_workers_cannot_read_are_shuffled_by_the_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker sees another file of that name; a note says so, and the numbers are equal."""
    in_buckets(monkeypatch)
    predictions, truths = boxes()
    sides = write_sides(Case((predictions, truths), {}), tmp_path)
    whole = ee.score(*sides, task="detection")
    given: dict[str, Any] = {"executor": "dask", "scratch": str(tmp_path / "s")}
    with cluster(1, before=_OTHER_FILES) as (address, _):
        card = ee.score(*sides, task="detection", address=address, **given)
        quiet = ee.score(*sides, task="detection", address=address, client_reads=True, **given)
    notes = [one for one in card.findings if one.code == "client_reads"]
    assert [one.facts["side"] for one in notes] == ["predictions"]
    assert card.metrics.equals(whole.metrics)
    assert quiet.metrics.equals(whole.metrics)
    assert "client_reads" not in [one.code for one in quiet.findings]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["detection", "classification", "retrieval"])
def test_ray_is_as_in_memory(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Skipped without Ray, which itself repeats the task of a killed worker."""
    pytest.importorskip("ray", reason="Ray is not installed")
    in_buckets(monkeypatch)
    task, draw = CASES[name]
    same_as_in_memory(draw(2), task, tmp_path, executor="ray", threads=2)


# -- Faults --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_workers_have_other_working_folders(
    two_workers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative scratch folder is resolved by the client."""
    in_buckets(monkeypatch)
    monkeypatch.chdir(tmp_path)
    task, draw = CASES["classification"]
    same_as_in_memory(draw(5), task, Path(), executor="dask", address=two_workers)


@pytest.mark.slow
def test_threads_of_a_worker_share_its_limit(two_workers: str) -> None:
    pool = pool_of("dask", two_workers, None)
    try:
        assert pool.share(10**9) == 5 * 10**8
        assert pool.least == 8
    finally:
        pool.close()


@pytest.mark.slow
def test_a_worker_of_another_version_is_named(
    two_workers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_buckets(monkeypatch)
    monkeypatch.setitem(shuffle.VERSIONS, "polars", "0.0.1")
    with refused("versions_differ", ee.ExecutorError, package="polars"):
        _score(tmp_path, executor="dask", address=two_workers)
    assert os.listdir(tmp_path / "s") == []


@pytest.mark.slow
def test_a_worker_without_the_package_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_buckets(monkeypatch)
    with (
        cluster(1, before="import sys; sys.modules['evalengine'] = None; ") as (address, _),
        pytest.raises(ee.ExecutorError, match="cannot import evalengine"),
    ):
        _score(tmp_path, executor="dask", address=address)


@pytest.mark.slow
def test_a_lost_scheduler_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_buckets(monkeypatch)
    with cluster(1) as (address, processes):
        done = dask_pool.OnDask._done

        def lost(pool: Any, futures: Any) -> Any:
            os.kill(processes[-1].pid, signal.SIGKILL)
            return done(pool, futures)

        monkeypatch.setattr(dask_pool.OnDask, "_done", lost)
        with refused("scheduler_lost", ee.ExecutorError):
            _score(tmp_path, executor="dask", address=address)
    assert os.listdir(tmp_path / "s") == []


@pytest.mark.slow
def test_a_cluster_without_workers_warns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run waits for a first worker, since a cluster may still be starting."""
    in_buckets(monkeypatch)
    monkeypatch.setattr(dask_pool, "PATIENCE", 0.2)
    monkeypatch.setattr(dask_pool, "TICK", 0.2)
    with cluster(0) as (address, _):
        pool = pool_of("dask", address, None)
        threading.Thread(target=_late_worker, args=(address,), daemon=True).start()
        try:
            with pytest.warns(RuntimeWarning, match="worker has joined"):
                results = pool.run(os.utime, [(str(tmp_path),)])
        finally:
            pool.close()
    assert results == [None]


def _late_worker(address: str) -> None:
    """Run a worker in this process that joins after a second and stays for 20."""

    async def work() -> None:
        await asyncio.sleep(1)
        async with distributed.Worker(address, nthreads=1, dashboard=False):
            await asyncio.sleep(20)

    asyncio.run(work())


@pytest.mark.slow
def test_errors_of_a_worker_are_raised_by_the_client(two_workers: str) -> None:
    """The error keeps its number, so that a full disk is reported as such."""
    pool = pool_of("dask", two_workers, None)
    try:
        with pytest.raises(OSError, match="of a stage") as raised:
            pool.run(raise_os_error, [(errno.ENOSPC,)])
    finally:
        pool.close()
    assert raised.value.errno == errno.ENOSPC


@pytest.mark.slow
def test_a_bucket_that_kills_every_worker_is_given_up() -> None:
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}):
        pool = pool_of("dask", None, 1)
        try:
            with refused("workers_died", ee.ExecutorError):
                pool.run(die, [("it",)])
        finally:
            pool.close()


@pytest.mark.slow
def test_any_number_of_workers_may_die_while_buckets_make_progress(tmp_path: Path) -> None:
    """Every call kills its first worker; Dask itself would give up after the first death."""
    places = [tmp_path / f"{i}" for i in range(3)]
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}):
        pool = pool_of("dask", None, 2)
        try:
            results = pool.run(die_once, [(f"{one}.mark", str(one)) for one in places])
        finally:
            pool.close()
    assert results == [None] * 3
    assert all(one.read_text().count("began") >= 2 for one in places)


@pytest.mark.slow
def test_killed_workers_of_a_local_cluster_are_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dask gives up workers that restart slowly; the pool starts others."""
    monkeypatch.setattr(dask_pool, "TICK", 0.2)
    results: list[Any] = []

    def run() -> None:
        pool = pool_of("dask", None, 1)
        try:
            results.extend(pool.run(die_once, [(str(tmp_path / "mark"), str(tmp_path / "place"))]))
        finally:
            pool.close()

    with dask.config.set({"distributed.deploy.lost-worker-timeout": "0s"}):
        helper = threading.Thread(target=run, daemon=True)
        helper.start()
        helper.join(120)
    assert results == [None]


@pytest.mark.slow
def test_an_address_without_a_scheduler_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "500ms"}),
        refused("scheduler_unreachable", ee.ExecutorError),
    ):
        pool_of("dask", f"tcp://127.0.0.1:{free_port()}", None)
    with refused("option_value", option="address", value="nonsense"):
        pool_of("dask", "nonsense", None)


@pytest.mark.slow
def test_a_worker_that_does_not_see_the_scratch_folder_is_named(tmp_path: Path) -> None:
    with refused("scratch_unseen", ee.ScratchError, worker=socket.gethostname()):
        stages.tally_bucket(str(tmp_path / "elsewhere"), 0, 1, "")


def _score(folder: Path, **how: Any) -> ee.Scorecard:
    sides = write_sides(Case(boxes(), {}), folder)
    return ee.score(*sides, task="detection", memory_limit="1GB", scratch=str(folder / "s"), **how)


def listening() -> set[tuple[str, int]]:
    """Return the addresses on which this process and its children listen."""
    me = psutil.Process()
    return {
        (one.laddr.ip, one.laddr.port)
        for process in (me, *me.children(recursive=True))
        for one in process.net_connections("inet")
        if one.status == psutil.CONN_LISTEN
    }


@pytest.mark.slow
def test_a_local_cluster_listens_on_loopback_only() -> None:
    """The scheduler's HTTP pages return 404."""
    before = listening()
    pool = dask_pool.OnDask(workers=2)
    try:
        assert pool.run(os.getpid, [()]) == [None]
        sockets = listening() - before
        assert len(sockets) >= 3
        assert {ip for ip, _ in sockets} <= {"127.0.0.1", "::1"}
        port = pool._cluster.scheduler.http_server.port
        for path in ("/json/identity.json", "/json/counts.json", "/info/main/workers.html"):
            connection = HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("GET", path)
            assert connection.getresponse().status == 404
            connection.close()
    finally:
        pool.close()
