"""Dask clusters of real processes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def start_command(
    *command: str, before: str = "", python: str = sys.executable, first: str = ""
) -> subprocess.Popen[bytes]:
    """Start a Dask command.

    Args:
        command: name of the command and its arguments.
        before: Python statement to execute first.
        python: interpreter.
        first: folder to put in front of the import path.
    """
    code = before + "from distributed.cli import dask_{0}; dask_{0}.main()".format(command[0])
    return subprocess.Popen(
        [python, "-c", code, *command[1:]],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [first, *sys.path]))},
    )


@contextmanager
def cluster(
    n: int, before: str = "", threads: int = 1
) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Run a scheduler and workers as separate processes on loopback.

    Args:
        n: number of workers.
        before: a statement that each worker executes first.
        threads: threads per worker.

    Yields:
        the address and the processes: the workers, then the scheduler.
    """
    address = f"tcp://127.0.0.1:{free_port()}"
    port = address.rpartition(":")[2]
    scheduler = start_command("scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard")
    workers = [
        start_command("worker", address, "--nthreads", str(threads), "--no-nanny", "--host",
                 "127.0.0.1", "--no-dashboard", before=before)
        for _ in range(n)
    ]  # fmt: skip
    try:
        _await(address, n)
        yield address, [*workers, scheduler]
    finally:
        for process in [*workers, scheduler]:
            process.kill()
            process.wait()


def _await(address: str, n: int) -> None:
    from distributed import Client

    with Client(address, timeout=60) as client:
        if n:
            client.wait_for_workers(n, timeout=90)
