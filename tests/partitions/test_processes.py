"""Spawned processes: killed ones, the run itself killed, errors that cross, scripts as main."""

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
from partitions.cases import await_that, die, die_once, raise_os_error, tell_process
from refusals import refused

import evalengine as ee
from evalengine.executors.processes import LEAST_SHARE, Processes

RUN = """
import sys
from evalengine.executors.processes import Processes
from partitions.cases import stay
if __name__ == "__main__":
    print("here", flush=True)
    Processes(2).run(stay, [(sys.argv[1],), (sys.argv[1],)])
"""


@pytest.mark.slow
def test_a_killed_process_costs_the_call_it_had(tmp_path: Path) -> None:
    """Its call begins twice, every other one once: the other process went on with its own."""
    places = [tmp_path / f"{i}" for i in range(6)]
    with closing(Processes(2)) as pool:
        found = pool.run(die_once, [(str(tmp_path / "mark"), str(one)) for one in places])
    assert found == [None] * 6
    assert sorted(one.read_text().count("began") for one in places) == [1, 1, 1, 1, 1, 2]


@pytest.mark.slow
def test_a_call_that_kills_every_process_is_given_up() -> None:
    with refused("workers_died", ee.ExecutorError, count=8, status=-9):
        Processes(2).run(die, [("it",)])


@pytest.mark.slow
def test_a_process_that_is_killed_as_it_starts_is_replaced(tmp_path: Path) -> None:
    with closing(Processes(1)) as pool:
        pool.prepare(tell_process)
        (own,) = multiprocessing.active_children()
        os.kill(own.pid or 0, signal.SIGKILL)
        assert pool.run(tell_process, [(str(tmp_path / "it"),)]) == [None]
        assert int((tmp_path / "it").read_text()) != own.pid


def test_what_a_process_raises_is_raised_here() -> None:
    """A full disk is told as one, wherever it was met."""
    with pytest.raises(OSError, match="of a stage") as found:
        Processes(1).run(raise_os_error, [(errno.ENOSPC,), (errno.EIO,)])
    assert found.value.errno == errno.ENOSPC


def test_processes_stay_from_stage_to_stage(tmp_path: Path) -> None:
    """Started early, used by every stage, ended with the pool; one that died is replaced."""
    mark = tmp_path / "mark"
    mark.touch()
    with closing(Processes(1)) as pool:
        pool.prepare(tell_process)
        (own,) = multiprocessing.active_children()
        for stage in range(2):
            assert pool.run(tell_process, [(str(tmp_path / f"{stage}"),)]) == [None]
        os.kill(own.pid or 0, signal.SIGKILL)
        own.join()
        assert pool.run(tell_process, [(str(tmp_path / "2"),)]) == [None]
        first, second, third = (int((tmp_path / f"{i}").read_text()) for i in range(3))
        assert first == second == own.pid
        assert third not in (own.pid, os.getpid())
    assert multiprocessing.active_children() == []


@pytest.mark.slow
def test_processes_end_with_a_run_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(RUN)
    pids = tmp_path / "pids"
    pids.mkdir()
    with subprocess.Popen(
        [sys.executable, str(script), str(pids)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as run:
        await_that(lambda: len(list(pids.iterdir())) == 2)
        run.send_signal(signal.SIGKILL)
    for one in pids.iterdir():
        await_that(lambda one=one: not _works(int(one.name)), 20)  # type: ignore[misc]


def _works(pid: int) -> bool:
    """Whether a process is there and no zombie that nobody has taken note of."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("name", ["Processes(1)", "OnDask(None, 1)"])
@pytest.mark.slow
def test_a_script_without_a_guard_is_told_of_it(name: str, tmp_path: Path) -> None:
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


def test_no_more_processes_than_the_limit_has_room_for() -> None:
    pool = Processes(8)
    assert pool.share(100 * LEAST_SHARE) == 100 * LEAST_SHARE // 9
    assert pool.share(4 * LEAST_SHARE) == LEAST_SHARE
    assert (pool.workers, pool.least) == (3, 6)
    assert pool.share(LEAST_SHARE) == LEAST_SHARE // 2
    assert pool.workers == 1
