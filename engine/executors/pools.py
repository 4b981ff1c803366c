"""Where stages over files run: one after the other, in processes of this machine, or on Dask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ..schemas.errors import OptionError, unknown
from .threads import available_cores

NAMES = ("threads", "processes", "dask")
Call = tuple[Any, ...]


class Pool(Protocol):
    """Runs stages.

    Attributes:
        workers: stages that run at once on this machine, which share its memory limit.
        threads: threads that each may use.
        least: buckets worth having.
        apart: whether stages run outside this process.
    """

    workers: int
    threads: int
    least: int
    apart: bool

    def run(
        self, function: Callable[..., None], calls: Sequence[Call]
    ) -> list[BaseException | None]:
        """Call a function with each tuple of arguments; what each raised, in order."""
        ...

    def close(self) -> None:
        """Stop what was started for it."""
        ...


class InTurn:
    """One stage after the other in this process, with all of its threads.

    Args:
        threads: how many; all cores unless given.
    """

    workers = 1
    least = 1
    apart = False

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or available_cores()

    def run(
        self, function: Callable[..., None], calls: Sequence[Call]
    ) -> list[BaseException | None]:
        """See :class:`Pool`."""
        return [_caught(function, call) for call in calls]

    def close(self) -> None:
        """Nothing was started."""


def _caught(function: Callable[..., None], call: Call) -> BaseException | None:
    """What an input error of a call is; anything else goes on at once."""
    try:
        function(*call)
    except ValueError as error:
        return error
    return None


class Processes:
    """Processes of this machine, started afresh; what one did not finish when it died is repeated.

    Args:
        workers: how many; all cores unless given.
    """

    apart = True
    threads = 1

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or available_cores()
        self.least = 2 * self.workers

    def run(
        self, function: Callable[..., None], calls: Sequence[Call]
    ) -> list[BaseException | None]:
        """See :class:`Pool`."""
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor
        from concurrent.futures.process import BrokenProcessPool

        found: dict[int, BaseException | None] = {}
        for attempt in range(_ATTEMPTS):
            left = [i for i in range(len(calls)) if i not in found]
            if not left:
                break
            context = multiprocessing.get_context("spawn")
            try:
                with ProcessPoolExecutor(self.workers, mp_context=context) as pool:
                    futures = {i: pool.submit(_caught, function, calls[i]) for i in left}
                    for i, future in futures.items():
                        found[i] = future.result()
            except BrokenProcessPool:
                if attempt == _ATTEMPTS - 1:
                    raise
        return [found[i] for i in range(len(calls))]

    def close(self) -> None:
        """Processes end with each stage."""


_ATTEMPTS = 4  # runs of a stage, workers being killed in all but the last


class OnDask:
    """Workers of a Dask cluster, which share a file system with this machine.

    Args:
        address: of the scheduler; a cluster of this machine's processes unless given.
        workers: of that cluster; all cores unless given.
    """

    apart = True
    threads = 1

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        try:
            from distributed import Client, LocalCluster
        except ImportError as error:
            raise OptionError(
                "executor 'dask': the package distributed is not installed: pip install"
                " 'evalengine[dask]'."
            ) from error
        self._cluster: Any = None
        if address is None:
            self._cluster = LocalCluster(
                n_workers=workers or available_cores(),
                threads_per_worker=1,
                dashboard_address=None,
            )
        self._client: Any = Client(self._cluster if address is None else address)
        known = self._client.scheduler_info(n_workers=-1)["workers"]
        self.workers = max(1, len(known)) if address is None else 1
        self.least = 4 * max(1, len(known))

    def run(
        self, function: Callable[..., None], calls: Sequence[Call]
    ) -> list[BaseException | None]:
        """See :class:`Pool`."""
        futures = [
            self._client.submit(_caught, function, call, pure=False, retries=_ATTEMPTS)
            for call in calls
        ]
        found: list[BaseException | None] = self._client.gather(futures)
        return found

    def close(self) -> None:
        """Leave the cluster, and stop it if it was made here."""
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()


def pool_of(name: str | None, address: str | None, threads: int | None) -> Pool:
    """The pool of a name.

    Args:
        name: one of :data:`NAMES`; threads unless given.
        address: of a Dask scheduler.
        threads: threads, or processes.

    Raises:
        OptionError: no such pool, or one that is not installed.
    """
    if name not in (None, *NAMES):
        raise OptionError(f"executor: {unknown('executor', str(name), NAMES)}")
    if address is not None and name != "dask":
        raise OptionError("address: only executor='dask' has one.")
    if name == "dask":
        return OnDask(address, threads)
    return Processes(threads) if name == "processes" else InTurn(threads)
