"""Pool of spawned processes: killed processes and runs, errors, scripts without a guard."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from partitions.cases import die, die_once, raise_os_error, wait_until, write_pid
from refusals import refused

import evalengine as ee
from evalengine.executors.processes import LEAST_SHARE, Processes

RUN = """
import sys
from evalengine.executors.processes import Processes
from partitions.cases import sleep_a_minute
if __name__ == "__main__":
    print("here", flush=True)
    Processes(2).run(sleep_a_minute, [(sys.argv[1],), (sys.argv[1],)])
"""


@pytest.mark.slow
def test_a_killed_process_costs_the_call_it_had(tmp_path: Path) -> None:
    """Only the call of the killed process starts twice."""
    places = [tmp_path / f"{i}" for i in range(6)]
    with closing(Processes(2)) as pool:
        results = pool.run(die_once, [(str(tmp_path / "mark"), str(one)) for one in places])
    assert results == [None] * 6
    assert sorted(one.read_text().count("began") for one in places) == [1, 1, 1, 1, 1, 2]


@pytest.mark.slow
def test_a_call_that_kills_every_process_is_given_up() -> None:
    with refused("workers_died", ee.ExecutorError, count=8, status=-9):
        Processes(2).run(die, [("it",)])


@pytest.mark.slow
def test_a_process_killed_at_its_start_is_replaced(tmp_path: Path) -> None:
    with closing(Processes(1)) as pool:
        pool.prepare(write_pid)
        (process,) = multiprocessing.active_children()
        os.kill(process.pid or 0, signal.SIGKILL)
        assert pool.run(write_pid, [(str(tmp_path / "it"),)]) == [None]
        assert int((tmp_path / "it").read_text()) != process.pid


def test_errors_of_a_process_are_raised_by_the_caller() -> None:
    """The error keeps its number, so that a full disk is reported as such."""
    with pytest.raises(OSError, match="of a stage") as raised:
        Processes(1).run(raise_os_error, [(errno.ENOSPC,), (errno.EIO,)])
    assert raised.value.errno == errno.ENOSPC


def test_processes_are_reused_between_stages(tmp_path: Path) -> None:
    """A pool starts its processes early, uses them for every stage and replaces dead ones."""
    mark = tmp_path / "mark"
    mark.touch()
    with closing(Processes(1)) as pool:
        pool.prepare(write_pid)
        (process,) = multiprocessing.active_children()
        for stage in range(2):
            assert pool.run(write_pid, [(str(tmp_path / f"{stage}"),)]) == [None]
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
        assert pool.run(write_pid, [(str(tmp_path / "2"),)]) == [None]
        first, second, third = (int((tmp_path / f"{i}").read_text()) for i in range(3))
        assert first == second == process.pid
        assert third not in (process.pid, os.getpid())
    assert multiprocessing.active_children() == []


@pytest.mark.slow
def test_processes_end_if_the_run_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(RUN)
    pids = tmp_path / "pids"
    pids.mkdir()
    with subprocess.Popen(
        [sys.executable, str(script), str(pids)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as run:
        wait_until(lambda: len(list(pids.iterdir())) == 2)
        run.send_signal(signal.SIGKILL)
    for one in pids.iterdir():
        wait_until(lambda one=one: not _is_alive(int(one.name)), 20)  # type: ignore[misc]


def _is_alive(pid: int) -> bool:
    """Return True if a process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("name", ["Processes(1)", "OnDask(None, 1)"])
@pytest.mark.slow
def test_a_script_without_a_main_guard_is_refused(name: str, tmp_path: Path) -> None:
    script = tmp_path / "bare.py"
    script.write_text(
        "from evalengine.executors.processes import Processes\n"
        "from evalengine.executors.processes import OnDask\n"
        f"{name}.run(print, [('never said',)])\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=90)
    assert done.returncode == 1
    assert "never said" not in done.stdout
    last = done.stderr.strip().splitlines()[-1]
    assert "ExecutorError" in last
    assert "`if __name__ == '__main__':`" in last


def test_the_memory_limit_bounds_the_number_of_processes() -> None:
    pool = Processes(8)
    assert pool.share(100 * LEAST_SHARE) == 100 * LEAST_SHARE // 9
    assert pool.share(4 * LEAST_SHARE) == LEAST_SHARE
    assert (pool.workers, pool.least) == (3, 6)
    assert pool.share(LEAST_SHARE) == LEAST_SHARE // 2
    assert pool.workers == 1
