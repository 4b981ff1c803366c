"""Workers of a Dask cluster: one that is there, or one of this machine's processes."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ..progress import one_done
from ..schemas.errors import ExecutorError, OptionError
from ..schemas.wording import option
from .pools import Call, caught
from .processes import GUARD, LEAST_SHARE, imports_main
from .threads import available_cores

TICK = 5.0  # seconds after which it is looked whether all workers of a cluster made here are alive
_LOOPBACK = "127.0.0.1"
PATIENCE = 30.0  # seconds without a finished stage after which a cluster without workers is told of


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
                " 'evalengine[dask]'."
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
                raise OptionError(
                    f"{option('address', address)}: no address of a scheduler: {error}. Write it as"
                    f" `dask scheduler` prints it: {option('address', 'tcp://10.0.0.7:8786')}."
                ) from error
            except (OSError, TimeoutError) as error:
                raise ExecutorError(
                    f"{option('address', address)}: no Dask scheduler answers: {error}. Start one"
                    " with `dask scheduler`, or leave the address out for a cluster of this"
                    " machine."
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
            found: list[BaseException | None] = self._client.gather(futures)
        except KilledWorker as error:
            raise ExecutorError(
                "executor 'dask': several workers died over the same bucket, the last"
                f" {error.last_worker.address}. If memory ran out, lower {option('memory_limit')},"
                " which is that of each worker."
            ) from error
        except CommClosedError as error:
            raise self._gone() from error
        finally:
            self._client.cancel([one for one in futures if not one.done()], force=True)
        return found

    def prepare(self, function: Callable[..., None]) -> None:
        """Do nothing: a local cluster is started by its first stage."""

    def _check_packages(self) -> None:
        """Refuse workers without evalengine: unpickling our calls would kill them one by one."""
        # Only Python built-ins can be unpickled by such workers.
        found = self._client.run(eval, "bool(__import__('evalengine'))", on_error="return")
        for worker, answer in found.items():
            if isinstance(answer, ImportError):
                raise ExecutorError(
                    f"executor 'dask': worker {worker} cannot import evalengine: {answer}. Client"
                    " and workers need the same versions of evalengine, Polars and NumPy."
                )

    def _finish(self, futures: list[Any]) -> None:
        """Wait until all are done or one has failed."""
        from concurrent.futures import CancelledError

        from distributed import wait

        left, since, told = set(futures), time.monotonic(), False
        while left:
            if self._cluster is not None:
                self._cluster.scale(self._workers)  # what its nannies did not restart in time
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
            " away in the middle of the run, of which nothing is left. Run it again."
        )

    def _known(self) -> dict[str, Any]:
        """Workers that the scheduler knows now."""
        found: dict[str, Any] = self._client.scheduler_info(n_workers=-1)["workers"]
        return found

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
                    memory_limit=0,  # the run has its own, by which nobody is paused
                    silence_logs=logging.ERROR,
                )
        except ImportError as error:
            raise ExecutorError(
                f"executor 'dask': {error}. The cluster of this machine is reached with a throw-"
                "away certificate: pip install 'evalengine[dask]' brings what makes one."
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
