"""How the command ends: at once, but never before its output is out and exit handlers have run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "detection"
TABLES = [str(EXAMPLE / f"{side}.parquet") for side in ("predictions", "groundtruths")]

# SIGINT is set, as what a script's shell starts in the background inherits it as ignored.
CODE = """
import atexit, signal, sys
from evalengine.cli import process
signal.signal(signal.SIGINT, signal.default_int_handler)
{before}
class Marked:
    def __del__(self): print("taken apart", flush=True)
marked = Marked()
atexit.register(lambda: print("exit handler"))
sys.argv[1:] = {arguments!r}
sys.exit(process.command())
"""


def ended(before: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    code = CODE.format(before=before, arguments=arguments)
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.parametrize(
    ("arguments", "status"), [(("score", *TABLES), 0), (("score", "no-such.parquet"), 2)]
)
def test_it_ends_at_once_with_output_and_exit_handlers(
    arguments: tuple[str, ...], status: int
) -> None:
    done = ended("", *arguments)
    assert done.returncode == status
    assert ("mAPAveragedOverIOUs" in done.stdout) == (status == 0)
    assert ("no-such.parquet" in done.stderr) == (status == 2)
    assert done.stdout.splitlines()[-1] == "exit handler"


@pytest.mark.parametrize(
    "before",
    [
        "import threading as t; t.Thread(target=t.main_thread().join).start()",
        "import atexit; del atexit._run_exitfuncs",
        "import multiprocessing as m, time; m.Process(target=time.sleep, args=(2,)).start()",
    ],
    ids=["thread", "atexit", "process"],
)
def test_python_ends_in_its_own_way_where_something_is_left(before: str) -> None:
    done = ended(before, "--version")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-2:] == ["exit handler", "taken apart"]


INTERRUPT = (
    "import signal, threading\n"
    "interrupt = lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)\n"
)
"""To the main thread: a signal to the process may reach another, a moment after the call."""


@pytest.mark.parametrize(
    "before",
    [
        "atexit.register(interrupt)",
        "leave = process.leave; process.leave = lambda status: (interrupt(), leave(status))",
        "import threading as t, time\n"
        "t.Thread(target=lambda: (t.main_thread().join(), time.sleep(5))).start()\n"
        "process.leave = lambda status: t.Timer(1, interrupt).start()",
        "main = process.main; process.main = lambda: (main(), interrupt())[0]",
    ],
    ids=["exit handler", "before leaving", "waiting for a thread", "after the command"],
)
def test_an_interrupt_at_the_very_end_is_130_without_a_traceback(before: str) -> None:
    done = ended(INTERRUPT + before, "--version")
    assert (done.returncode, done.stderr) == (130, "")


@pytest.mark.parametrize("hook", ["setprofile", "settrace"])
def test_profilers_and_debuggers_are_left_to_finish(hook: str) -> None:
    code = f"import sys; from evalengine.cli import process; sys.{hook}(lambda *told: None)"
    code += f"; process.leave(3); sys.{hook}(None); print('still here'); process.leave(4)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (4, "still here\n", "")


@pytest.mark.parametrize("merged", [True, False])
def test_a_job_goes_on_if_nobody_reads_its_output(tmp_path: Path, merged: bool) -> None:
    predictions, truths = TABLES
    (tmp_path / "job.toml").write_text(
        f'name = "job"\ngates = ["mAP[iou=0.5] > 0.99"]\n[inputs]\npredictions = "{predictions}"\n'
        f'ground_truths = "{truths}"\n[outputs]\nfolder = "out"\n',
        "utf-8",
    )
    assert unread(tmp_path, merged, "run", "job.toml") == 1
    assert (tmp_path / "out" / "_SUCCESS").is_file()


@pytest.mark.parametrize("merged", [True, False])
def test_gates_are_judged_if_nobody_reads_the_table(tmp_path: Path, merged: bool) -> None:
    gate = ("--fail-under", "mAP[iou=0.5] > 0.99")
    assert unread(tmp_path, merged, "score", *TABLES, *gate) == 1
    assert unread(tmp_path, merged, "score", *TABLES) == 0


def unread(folder: Path, merged: bool, *arguments: str) -> int:
    """The status of a command whose pipe is closed."""
    read, write = os.pipe()
    os.close(read)
    error = subprocess.STDOUT if merged else subprocess.DEVNULL
    command = [sys.executable, "-m", "evalengine", *arguments]
    done = subprocess.run(command, stdout=write, stderr=error, cwd=folder, check=False, timeout=120)
    os.close(write)
    return done.returncode
