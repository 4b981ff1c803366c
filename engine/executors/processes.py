"""Pools of processes and of a Dask cluster, by name."""

from __future__ import annotations

import logging
import multiprocessing
import os
import pickle
import signal
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

from ..metrics.own import loaded, plugins
from ..progress import one_done
from ..schemas.errors import ExecutorError, OptionError, invalid, unknown
from ..schemas.wording import option
from .pools import ATTEMPTS, Call, InTurn, Pool, available_cores, caught

# Local processes, each with a pipe: if one dies, only its current call is lost.
#
# They start while rows are still being shuffled, and stay for all stages: starting one takes one
# to two seconds.

LEAST_SHARE = 512 << 20
"""Bytes below which a process has no room for rows in addition to interpreter and libraries."""

GUARD = (
    "Started from a script, each process imports that script: put its code under `if __name__ =="
    " '__main__':`, in a file rather than on standard input."
)

_READY = "ready"


class _Worker:
    """A spawned process, its pipe, and the call it has."""

    def __init__(self, context: SpawnContext) -> None:
        self.pipe, theirs = context.Pipe()
        self.process: SpawnProcess = context.Process(target=_serve, args=(theirs,), daemon=True)
        self.ready = False
        self.call: int | None = None
        try:
            self.process.start()
        finally:
            theirs.close()  # so that the pipe ends when the process does

    def give(self, number: int, function: Callable[..., None], call: Call) -> None:
        self.call = number
        with suppress(OSError):  # it died meanwhile, and its pipe reports that
            self.pipe.send((function, call))

    def prepare(self, function: Callable[..., None]) -> None:
        """Import the module of a function before its first call arrives."""
        with suppress(OSError):
            self.pipe.send((function, None))

    def dismiss(self) -> None:
        self.pipe.close()
        self.process.kill()
        self.process.join()


class Processes:
    """Pool of local processes, which end when it is closed or a stage fails.

    Args:
        workers: number of processes; all cores by default.
    """

    apart = True
    reads_tables = True
    threads = 1

    def __init__(self, workers: int | None = None) -> None:
        if imports_main():
            raise ExecutorError(f"executor 'processes': {GUARD}")
        self.workers = workers or available_cores()
        self._idle: list[_Worker] = []

    @property
    def least(self) -> int:
        """Minimum number of buckets: two per process, so that an uneven one does not delay the
        rest.
        """
        return 2 * self.workers

    def share(self, limit: int) -> int:
        """A process's part of the limit, of which this process has one, too."""
        self.workers = max(1, min(self.workers, limit // LEAST_SHARE - 1))
        return limit // (self.workers + 1)

    def run(
        self, function: Callable[..., None], calls: Sequence[Call]
    ) -> list[BaseException | None]:
        """See :class:`~evalengine.executors.pools.Pool`."""
        found: dict[int, BaseException | None] = {}
        waiting = deque(range(len(calls)))
        deaths, unborn = [0] * len(calls), 0
        workers: dict[Connection, _Worker] = {}
        try:
            while len(found) < len(calls):
                busy = len(calls) - len(found)
                while len(workers) < min(self.workers, busy):
                    worker = self._idle.pop() if self._idle else _started()
                    workers[worker.pipe] = worker
                    if worker.ready and waiting:
                        number = waiting.popleft()
                        worker.give(number, function, calls[number])
                for pipe in wait(list(workers)):
                    worker = workers[pipe]  # type: ignore[index]
                    try:
                        answer = worker.pipe.recv()
                    except (EOFError, OSError):
                        del workers[worker.pipe]
                        worker.process.join()
                        unborn += not worker.ready
                        _mourn(worker, deaths, waiting, unborn)
                        worker.dismiss()
                        continue
                    worker.ready = True
                    if answer != _READY:
                        assert worker.call is not None
                        raised, pickled = answer
                        error: BaseException | None = pickle.loads(pickled)
                        if raised and error is not None:
                            raise error
                        found[worker.call] = error
                        worker.call = None
                        one_done()
                    if waiting:
                        number = waiting.popleft()
                        worker.give(number, function, calls[number])
                    else:
                        del workers[worker.pipe]
                        self._idle.append(worker)
        except BaseException:
            self.close()
            for worker in workers.values():
                worker.dismiss()
            raise
        self._idle += workers.values()  # those that were not ready before all was done
        return [found[i] for i in range(len(calls))]

    def prepare(self, function: Callable[..., None]) -> None:
        """See :class:`~evalengine.executors.pools.Pool`."""
        while len(self._idle) < self.workers:
            worker = _started()
            self._idle.append(worker)
            worker.prepare(function)

    def close(self) -> None:
        """End all processes."""
        while self._idle:
            self._idle.pop().dismiss()


def _started() -> _Worker:
    return _Worker(multiprocessing.get_context("spawn"))


def imports_main() -> bool:
    """Return whether this is a started process that still imports its parent's script."""
    return bool(getattr(multiprocessing.current_process(), "_inheriting", False))


def _mourn(worker: _Worker, deaths: list[int], waiting: deque[int], unborn: int) -> None:
    """Put the call of a dead worker first in the queue, unless it has cost too many."""
    code = worker.process.exitcode
    if not worker.ready:
        if code is not None and code < 0 and unborn < ATTEMPTS:
            return  # killed, not by a fault of its imports: replace it
        raise ExecutorError(
            f"executor 'processes': a process ended as it started (exit code {code}). {GUARD}",
            code="workers_died",
            status=code,
        )
    if worker.call is None:
        return
    deaths[worker.call] += 1
    if deaths[worker.call] == ATTEMPTS:
        raise ExecutorError(
            f"executor 'processes': {ATTEMPTS} processes died over the same bucket, the last with"
            f" exit code {code}{' (killed)' if code == -9 else ''}. If memory ran out, lower"
            f" {option('memory_limit')} or {option('threads')}.",
            code="workers_died",
            count=ATTEMPTS,
            status=code,
        )
    waiting.appendleft(worker.call)


def _serve(pipe: Connection) -> None:
    """Run the calls that arrive through a pipe until it closes."""
    # Ctrl-C in a terminal reaches the whole group; the first process ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    pipe.send(_READY)
    while True:
        try:
            function, call = pipe.recv()
        except EOFError:
            return
        if call is not None:  # else the function's module was to be imported, and is
            pipe.send(_answer(function, call))


def _answer(function: Callable[..., None], call: Call) -> tuple[bool, bytes]:
    """Run a call; return whether it raised, and its pickled error (pickling may fail too)."""
    raised = False
    try:
        error = caught(function, call)
    except Exception as other:
        raised, error = True, other
    try:
        pickled = pickle.dumps(error)
        pickle.loads(pickled)
    except Exception:
        raised = True
        pickled = pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))
    return raised, pickled


def _end_with_parent() -> None:
    """Exit when the parent process is gone: there is no recipient for results."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


# Workers of a Dask cluster: one that is there, or one of this machine's processes.

TICK = 5.0  # seconds after which it is looked whether all workers of a cluster made here are alive
_LOOPBACK = "127.0.0.1"
PATIENCE = 30.0  # seconds without a finished stage after which missing workers are reported


class OnDask:
    """Workers of a Dask cluster that share a file system with this machine.

    Args:
        address: of the scheduler; by default a local cluster of processes.
        workers: number of local workers; by default all cores.

    Raises:
        OptionError: the package is not installed, or the address is invalid.
        ExecutorError: the address does not answer, or processes cannot be started.
    """

    apart = True
    threads = 1

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        try:
            import distributed
        except ImportError as error:
            raise OptionError(
                "executor 'dask': the package distributed is not installed: pip install"
                " 'evalengine[dask]'.",
                code="package_missing",
                package="distributed",
            ) from error
        self._address = address
        self.reads_tables = address is None
        self._workers = workers or available_cores()
        self._cluster: Any = None
        self._client: Any = None
        if address is not None:
            try:
                self._client = distributed.Client(address)
            except ValueError as error:
                raise invalid(
                    "address",
                    address,
                    f"no address of a scheduler: {error}. Write it as `dask scheduler` prints it:"
                    f" {option('address', 'tcp://10.0.0.7:8786')}.",
                ) from error
            except (OSError, TimeoutError) as error:
                raise ExecutorError(
                    f"{option('address', address)}: no Dask scheduler answers: {error}. Start one"
                    " with `dask scheduler`, or omit the address for a cluster of this machine.",
                    code="scheduler_unreachable",
                    address=address,
                ) from error

    @property
    def least(self) -> int:
        """Minimum number of buckets: four per worker, so that a slow worker does not delay the
        rest.
        """
        return 4 * max(1, len(self._known()) if self._address else self._workers)

    def share(self, limit: int) -> int:
        """The limit for each worker of a cluster that is there; a part of it for one made here."""
        if self._address is not None:
            return limit // max((one["nthreads"] for one in self._known().values()), default=1)
        self._workers = max(1, min(self._workers, limit // LEAST_SHARE - 1))
        return limit // (self._workers + 1)

    def run(
        self, function: Callable[..., None], calls: Sequence[Call]
    ) -> list[BaseException | None]:
        """See :class:`~evalengine.executors.pools.Pool`."""
        if self._client is None:
            self._start()
        self._check_packages()
        from distributed import KilledWorker
        from distributed.comm import CommClosedError

        # One retry, for transient errors of network file systems; input errors are return values.
        futures = [
            self._client.submit(caught, function, call, pure=False, retries=1) for call in calls
        ]
        try:
            self._finish(futures)
            result: list[BaseException | None] = self._client.gather(futures)
        except KilledWorker as error:
            raise ExecutorError(
                "executor 'dask': several workers died over the same bucket, the last"
                f" {error.last_worker.address}. If memory ran out, lower {option('memory_limit')},"
                " which is that of each worker.",
                code="workers_died",
            ) from error
        except CommClosedError as error:
            raise self._gone() from error
        finally:
            self._client.cancel([one for one in futures if not one.done()], force=True)
        return result

    def prepare(self, function: Callable[..., None]) -> None:
        """Skip: the first stage starts a local cluster."""

    def _check_packages(self) -> None:
        """Refuse workers without evalengine: unpickling our calls would kill them one by one."""
        # Only Python built-ins can be unpickled by such workers.
        found = self._client.run(eval, "bool(__import__('evalengine'))", on_error="return")
        for worker, answer in found.items():
            if isinstance(answer, ImportError):
                raise ExecutorError(
                    f"executor 'dask': worker {worker} cannot import evalengine: {answer}. Client"
                    " and workers need the same versions of evalengine, Polars and NumPy.",
                    code="versions_differ",
                    package="evalengine",
                )

    def _finish(self, futures: list[Any]) -> None:
        """Wait until all are done or one has failed."""
        from concurrent.futures import CancelledError

        from distributed import wait

        left, since, told = set(futures), time.monotonic(), False
        while left:
            if self._cluster is not None:
                # Replace workers that nannies did not restart in time.
                self._cluster.scale(self._workers)
            try:
                done = wait(left, timeout=TICK, return_when="FIRST_COMPLETED").done
            except TimeoutError:
                waited = time.monotonic() - since
                if self._address and not told and waited > PATIENCE and not self._known():
                    told = True
                    warnings.warn(
                        f"no worker has joined the scheduler at {self._address} yet; the run goes"
                        " on when one does.",
                        RuntimeWarning,
                        stacklevel=2,
                    )
                continue
            except CancelledError as error:
                raise self._gone() from error
            since = time.monotonic()
            for future in done:
                if future.status == "cancelled":
                    raise self._gone()
                if future.status != "finished":
                    future.result()  # raises
                one_done()
            left -= done

    def _gone(self) -> ExecutorError:
        return ExecutorError(
            f"executor 'dask': the scheduler{f' at {self._address}' if self._address else ''} went"
            " away during the run, and its results are lost. Run it again.",
            code="scheduler_lost",
        )

    def _known(self) -> dict[str, Any]:
        """Workers that the scheduler knows now."""
        return self._client.scheduler_info(n_workers=-1)["workers"]

    def _start(self) -> None:
        """A cluster of this machine's processes."""
        from dask import config
        from distributed import Client, LocalCluster

        if imports_main():
            raise ExecutorError(f"executor 'dask': {GUARD}")
        try:
            with config.set({"distributed.scheduler.http.routes": []}):
                self._cluster = LocalCluster(
                    n_workers=self._workers,
                    threads_per_worker=1,
                    host=_LOOPBACK,
                    # The HTTP server cannot be disabled and is not authenticated, so it gets no
                    # pages. Any port: another cluster may use the default one.
                    dashboard_address=f"{_LOOPBACK}:0",
                    worker_dashboard_address=None,
                    scheduler_kwargs={"dashboard": False},
                    # A scheduler executes arbitrary code in its workers; a throw-away certificate
                    # keeps other users of this machine out.
                    protocol="tls://",
                    security=True,
                    memory_limit=0,  # the run has its own limit, which pauses no worker
                    silence_logs=logging.ERROR,
                )
        except ImportError as error:
            raise ExecutorError(
                f"executor 'dask': {error}. The cluster of this machine is reached with a"
                " throw-away certificate: pip install 'evalengine[dask]' installs the library for"
                " it."
            ) from error
        except RuntimeError as error:
            raise ExecutorError(
                f"executor 'dask': its processes do not start: {error} {GUARD}"
            ) from error
        self._client = Client(self._cluster)

    def close(self) -> None:
        """Disconnect from the cluster, and stop it if it was started here."""
        if self._client is not None:
            self._client.close()
        if self._cluster is not None:
            self._cluster.close()


# The pool of a name.

NAMES = ("threads", "processes", "dask")


def pool_of(name: str | None, address: str | None, threads: int | None) -> Pool:
    """Return the pool of a name.

    Args:
        name: one of :data:`NAMES`, or an entry point ``evalengine.executors``: a function of
            ``address`` and ``threads`` that returns a :class:`Pool`; threads by default.

    Raises:
        OptionError: no such pool, or one that is not installed.
        ExecutorError: the address does not answer.
    """
    if name not in (None, *NAMES):
        if name in plugins("executors"):
            made: Pool = loaded("executors", str(name))(address=address, threads=threads)
            return made
        raise unknown("executor", str(name), NAMES, before="executor: ")
    if address is not None and name != "dask":
        raise OptionError(
            "address: only executor='dask' has one.", code="option_unread", option="address"
        )
    # Imported here: a run in this process needs neither.
    if name == "dask":
        return OnDask(address, threads)
    if name == "processes":
        return Processes(threads)
    return InTurn(threads)
