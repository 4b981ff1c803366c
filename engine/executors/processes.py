"""Pools of processes, of a Dask cluster and of a Ray cluster, by name."""

from __future__ import annotations

import logging
import multiprocessing
import os
import pickle
import signal
import socket
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

from ..metrics.own import loaded, plugins
from ..progress import one_done
from ..schemas.errors import ExecutorError, OptionError, invalid, not_installed, unknown
from ..schemas.wording import option
from .pools import Call, InTurn, Losses, Pool, available_cores, caught, error_of

# Local processes, each with a pipe: if one dies, only its current call is lost.
#
# They start while rows are still being shuffled, and stay for all stages: starting one takes one
# to two seconds.

LEAST_SHARE = 512 << 20
"""Bytes below which a process has no room for rows in addition to interpreter and libraries."""


def shared(limit: int, workers: int) -> tuple[int, int]:
    """Return the number of local workers that fit into a memory limit, and bytes for each.

    The first process has a part of the limit, too.
    """
    fitting = max(1, min(workers, limit // LEAST_SHARE - 1))
    return fitting, limit // (fitting + 1)


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
        self.workers, share = shared(limit, self.workers)
        return share

    def run(
        self, function: Callable[..., None], calls: Sequence[Call]
    ) -> list[BaseException | None]:
        """See :class:`~evalengine.executors.pools.Pool`."""
        outcomes: dict[int, BaseException | None] = {}
        waiting = deque(range(len(calls)))
        losses = Losses("processes", self.least)
        workers: dict[Connection, _Worker] = {}
        try:
            while len(outcomes) < len(calls):
                busy = len(calls) - len(outcomes)
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
                        _mourn(worker, losses, waiting)
                        worker.dismiss()
                        continue
                    worker.ready = True
                    if answer != _READY:
                        assert worker.call is not None
                        raised, pickled = answer
                        error: BaseException | None = pickle.loads(pickled)
                        if raised and error is not None:
                            raise error
                        outcomes[worker.call] = error
                        worker.call = None
                        losses.finished()
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
        return [outcomes[i] for i in range(len(calls))]

    def refusal(self, function: Callable[..., None], call: Call) -> str:
        """Skip: what this process can read, its children can."""
        return ""

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


def _mourn(worker: _Worker, losses: Losses, waiting: deque[int]) -> None:
    """Put the call of a dead worker last in the queue, unless there is no progress."""
    code = worker.process.exitcode
    if not worker.ready and (code is None or code >= 0):  # not killed
        raise ExecutorError(
            f"executor 'processes': a process ended as it started (exit code {code}). {GUARD}",
            code="workers_died",
            status=code,
        )
    if worker.ready and worker.call is None:
        return
    killed = f"exit code {code}{' (killed)' if code == -9 else ''}"
    less = f"{option('memory_limit')} or {option('threads')}"
    losses.lost(-1 if worker.call is None else worker.call, killed, options=less, status=code)
    if worker.call is not None:
        waiting.append(worker.call)


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


def _package(executor: str, name: str) -> Any:
    """Import the package of an executor."""
    try:
        return import_module(name)
    except ImportError as error:
        raise OptionError(
            f"executor {executor!r} needs {not_installed(name, executor)}.",
            code="package_missing",
            package=name,
        ) from error


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
    reads_tables = True
    threads = 1

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        distributed = _package("dask", "distributed")
        self._address = address
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
        return 4 * max(1, len(self._list_workers()) if self._address else self._workers)

    def share(self, limit: int) -> int:
        """The limit for each worker of a cluster that is there; a part of it for one made here."""
        if self._address is not None:
            return limit // max(
                (one["nthreads"] for one in self._list_workers().values()), default=1
            )
        self._workers, share = shared(limit, self._workers)
        return share

    def run(
        self, function: Callable[..., None], calls: Sequence[Call]
    ) -> list[BaseException | None]:
        """See :class:`~evalengine.executors.pools.Pool`."""
        if self._client is None:
            self._start()
        self._check_packages()
        return self._results(caught, function, calls)

    def _results(
        self, task: Callable[..., Any], function: Callable[..., None], calls: Sequence[Call]
    ) -> list[Any]:
        """Submit ``task(function, call)`` for each call, again after workers died over it."""
        from distributed import KilledWorker
        from distributed.comm import CommClosedError

        numbers: dict[Any, int] = {}
        results: list[Any] = [None] * len(calls)
        losses = Losses("dask", self.least)

        def submit(number: int) -> None:
            # One retry, for transient errors of network file systems; input errors are results.
            future = self._client.submit(task, function, calls[number], pure=False, retries=1)
            numbers[future] = number

        try:
            for number in range(len(calls)):
                submit(number)
            while numbers:
                for future in self._done(numbers):
                    number = numbers.pop(future)
                    try:
                        results[number] = future.result()
                    except KilledWorker as error:
                        # Dask itself started it this often, also counting calls that waited on
                        # a worker that died.
                        times = error.allowed_failures + 1
                        less = f"{option('memory_limit')}, which is that of each worker"
                        losses.lost(number, error.last_worker.address, times, less)
                        submit(number)
                    else:
                        losses.finished()
                        one_done()
        except CommClosedError as error:
            raise self._cluster_lost() from error
        finally:
            self._client.cancel([*numbers], force=True)
        return results

    def refusal(self, function: Callable[..., None], call: Call) -> str:
        """See :class:`~evalengine.executors.pools.Pool`; one worker is awaited."""
        if self._address is None:
            return ""
        from concurrent.futures import CancelledError

        from distributed import KilledWorker

        self._check_packages()
        self._results(isinstance, print, [(type,)])  # built-ins, which any worker can unpickle
        answers = self._client.run(error_of, function, call, on_error="return")
        for worker, answer in answers.items():
            if isinstance(answer, ExecutorError):
                raise answer
            if isinstance(answer, (OSError, CancelledError, KilledWorker)):
                continue  # the worker died meanwhile, or is being restarted
            if isinstance(answer, BaseException):
                # Errors outside of the function arrive as their text, such as those of unpickling.
                if any(word in str(answer) for word in ("shutdown", "CommClosed", "Cancelled")):
                    continue
                raise ExecutorError(
                    f"executor 'dask': worker {worker} cannot run a function of this evalengine:"
                    f" {str(answer).rstrip('.')}. Install the same version there.",
                    code="versions_differ",
                    package="evalengine",
                ) from answer
            if answer:
                return f"{worker}: {answer}"
        return ""

    def prepare(self, function: Callable[..., None]) -> None:
        """Skip: the first stage starts a local cluster."""

    def _check_packages(self) -> None:
        """Refuse workers without evalengine: unpickling our calls would kill them one by one."""
        # Only Python built-ins can be unpickled by such workers.
        answers = self._client.run(eval, "bool(__import__('evalengine'))", on_error="return")
        for worker, answer in answers.items():
            if isinstance(answer, ImportError):
                raise ExecutorError(
                    f"executor 'dask': worker {worker} cannot import evalengine: {answer}. Install"
                    " evalengine there, too.",
                    code="versions_differ",
                    package="evalengine",
                )

    def _done(self, futures: Iterable[Any]) -> set[Any]:
        """Wait until the first future is done or has failed; return all that are."""
        from concurrent.futures import CancelledError

        from distributed import wait

        since, reported = time.monotonic(), False
        while True:
            if self._cluster is not None:
                # Replace workers that nannies did not restart in time.
                self._cluster.scale(self._workers)
            try:
                done: set[Any] = wait([*futures], timeout=TICK, return_when="FIRST_COMPLETED").done
            except TimeoutError:
                waited = time.monotonic() - since
                if (
                    self._address
                    and not reported
                    and waited > PATIENCE
                    and not self._list_workers()
                ):
                    reported = True
                    warnings.warn(
                        f"no worker has joined the scheduler at {self._address} yet; the run goes"
                        " on when one does.",
                        RuntimeWarning,
                        stacklevel=2,
                    )
                continue
            except CancelledError as error:
                raise self._cluster_lost() from error
            if any(one.status == "cancelled" for one in done):
                raise self._cluster_lost()
            return done

    def _cluster_lost(self) -> ExecutorError:
        return ExecutorError(
            f"executor 'dask': the scheduler{f' at {self._address}' if self._address else ''} went"
            " away during the run, and its results are lost. Run it again.",
            code="scheduler_lost",
        )

    def _list_workers(self) -> dict[str, Any]:
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
                f" throw-away certificate, which needs {not_installed('cryptography', 'dask')}."
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


# Workers of Ray.


class OnRay:
    """Tasks of a Ray cluster whose nodes share a file system with this machine.

    Args:
        address: of a cluster, ``auto`` for the one that this machine is a node of; by default a
            local one.
        workers: number of local workers; by default all cores.

    Raises:
        OptionError: the package is not installed, or the calling program is connected to another
            cluster.
        ExecutorError: the address does not answer.
    """

    apart = True
    reads_tables = True
    threads = 1

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        self._ray = _package("ray", "ray")
        self._address = address
        self._workers = workers or available_cores()
        self._started = False
        if address is not None:
            self._connect(address=address)

    def _connect(self, **how: Any) -> None:
        if self._ray.is_initialized():  # by the program that calls, which chose the cluster
            if self._is_elsewhere:
                raise OptionError(
                    f"{option('address', self._address)}: this program is already connected to Ray,"
                    f" at {self._here}. Omit the address, or call ray.shutdown() before.",
                    code="option_unfit",
                    option="address",
                    value=self._address,
                )
            return
        try:
            self._ray.init(include_dashboard=False, log_to_driver=False, **how)
        except (ConnectionError, TimeoutError, RuntimeError, ValueError) as error:
            raise ExecutorError(
                f"executor 'ray': no cluster answers at {self._address or 'this machine'}: {error}",
                code="scheduler_unreachable",
                address=self._address,
            ) from error
        self._started = True

    @property
    def _here(self) -> str:
        """Address of the cluster that this program is connected to."""
        return str(self._ray.get_runtime_context().gcs_address)

    @property
    def _is_elsewhere(self) -> bool:
        """True if the given host and port are not those of this program's cluster."""
        if self._address in (None, "auto") or "://" in self._address:  # of a proxy
            return False
        host, _, port = self._address.rpartition(":")
        cluster_host, _, port_there = self._here.rpartition(":")
        try:
            hosts = {one[4][0] for one in socket.getaddrinfo(host, port)}
        except OSError:
            hosts = {host}
        local = any(str(one) in ("127.0.0.1", "::1") for one in hosts)
        return port != port_there or not (local or cluster_host in hosts)

    @property
    def least(self) -> int:
        """Minimum number of buckets: four per core, so that a slow one does not delay the rest."""
        if self._address is None:
            return 4 * self._workers
        return 4 * max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def share(self, limit: int) -> int:
        """The limit for each task of a cluster that is there; a part of it for one made here."""
        if self._address is not None:
            return limit
        self._workers, share = shared(limit, self._workers)
        return share

    def run(
        self, function: Callable[..., None], calls: Sequence[Call]
    ) -> list[BaseException | None]:
        """See :class:`~evalengine.executors.pools.Pool`."""
        if self._address is None:
            if imports_main():
                raise ExecutorError(f"executor 'ray': {GUARD}")
            self._connect(
                address="local",  # not a cluster that happens to run here
                num_cpus=self._workers,
                object_store_memory=_OBJECTS,
                _node_ip_address=_LOOPBACK,
            )
        task = self._ray.remote(num_cpus=1, max_retries=0)(caught)
        results: list[BaseException | None] = [None] * len(calls)
        numbers: dict[Any, int] = {}
        losses = Losses("ray", self.least)

        def submit(number: int) -> None:
            try:
                numbers[task.remote(function, calls[number])] = number
            except (self._ray.exceptions.RayError, OSError, RuntimeError) as error:
                raise ExecutorError(
                    f"executor 'ray': a call cannot be submitted: {str(error).rstrip('.')}. The"
                    " cluster may have gone away. Run it again.",
                    code="scheduler_lost",
                ) from error

        try:
            for number in range(len(calls)):
                submit(number)
            while numbers:
                (done,), _ = self._ray.wait([*numbers], num_returns=1)
                number = numbers.pop(done)
                try:
                    results[number] = self._ray.get(done)
                except self._ray.exceptions.RayTaskError as error:
                    raise _error_of_task(error.cause) from error
                except self._ray.exceptions.RayError as error:
                    less = f"{option('memory_limit')}, which is that of each task"
                    losses.lost(number, str(error), options=less)
                    submit(number)
                else:
                    losses.finished()
                    one_done()
        finally:
            for future in numbers:
                with suppress(Exception):  # the cluster may be gone
                    self._ray.cancel(future, force=True)
        return results

    def refusal(self, function: Callable[..., None], call: Call) -> str:
        """See :class:`~evalengine.executors.pools.Pool`; asks every node."""
        if self._address is None:
            return ""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        requested = []
        for node in self._ray.nodes():
            if node["Alive"] and node["Resources"].get("CPU"):
                where = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
                task = self._ray.remote(num_cpus=0, scheduling_strategy=where)(error_of)
                requested.append((node["NodeManagerAddress"], task.remote(function, call)))
        for name, future in requested:
            try:
                reason = self._ray.get(future, timeout=_ANSWER)
            except self._ray.exceptions.RayTaskError as error:
                raise _error_of_task(error.cause) from error
            except self._ray.exceptions.RayError as error:
                reason = str(error) or "no answer."
            if reason:
                return f"{name}: {reason}"
        return ""

    def prepare(self, function: Callable[..., None]) -> None:
        """Skip: the first stage starts a local cluster."""

    def close(self) -> None:
        """Disconnect from the cluster, and stop it if it was started here."""
        if self._started:
            self._ray.shutdown()


def _error_of_task(cause: BaseException) -> BaseException:
    """Return what a task of Ray raised, or that its node lacks this package."""
    if not isinstance(cause, ImportError):
        return cause
    return ExecutorError(
        f"executor 'ray': a node cannot import evalengine: {cause}. Install evalengine there, too.",
        code="versions_differ",
        package="evalengine",
    )


_ANSWER = 120.0  # seconds that a node may take to say whether it reads a table
_OBJECTS = 100 << 20  # bytes of Ray's object store, which holds only names of files here

# The pool of a name.

NAMES = ("threads", "processes", "dask", "ray")


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
            return loaded("executors", str(name))(address=address, threads=threads)
        raise unknown("executor", str(name), NAMES, before="executor: ")
    if address is not None and name not in ("dask", "ray"):
        raise OptionError(
            "address: only executor='dask' and executor='ray' have one.",
            code="option_unread",
            option="address",
        )
    # Imported here: a run in this process needs neither.
    if name == "dask":
        return OnDask(address, threads)
    if name == "ray":
        return OnRay(address, threads)
    if name == "processes":
        return Processes(threads)
    return InTurn(threads)
