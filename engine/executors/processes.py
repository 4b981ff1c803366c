"""Local processes, each with a pipe: if one dies, only its current call is lost.

They start while rows are still being shuffled, and stay for all stages: starting one takes one to
two seconds.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext, SpawnProcess

from ..progress import one_done
from ..schemas.errors import ExecutorError
from ..schemas.wording import option
from .pools import ATTEMPTS, Call, caught
from .threads import available_cores

LEAST_SHARE = 512 << 20
"""Bytes below which a process has no room for rows in addition to interpreter and libraries."""

GUARD = (
    "Started from a script, each process imports that script: put what it does under"
    " `if __name__ == '__main__':`, in a file rather than on standard input."
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
        with suppress(OSError):  # it died meanwhile: its pipe tells
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
                        found[worker.call] = _taken(answer)
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
            return  # killed, by no fault of what it imports: another takes its place
        raise ExecutorError(
            f"executor 'processes': a process ended as it started (exit code {code}). {GUARD}"
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


def _taken(answer: tuple[bool, bytes]) -> BaseException | None:
    """Return a worker's input error or None; raise its other errors."""
    raised, pickled = answer
    error: BaseException | None = pickle.loads(pickled)
    if raised and error is not None:
        raise error
    return error


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
