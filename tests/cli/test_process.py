"""Exit of the command's process: at once, but with flushed output and after exit handlers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "detection"
TABLES = [str(EXAMPLE / f"{side}.parquet") for side in ("predictions", "groundtruths")]

# Set SIGINT: background processes of a script's shell inherit it as ignored.
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
def test_exit_flushes_output_and_runs_exit_handlers(
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
def test_open_work_uses_the_exit_of_python(before: str) -> None:
    done = ended(before, "--version")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-2:] == ["exit handler", "taken apart"]


INTERRUPT = (
    "import signal, threading\n"
    "interrupt = lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)\n"
)
"""Signal the main thread: a signal to the process may reach another thread, slightly later."""


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
def test_profilers_and_debuggers_finish(hook: str) -> None:
    code = f"import sys; from evalengine.cli import process; sys.{hook}(lambda *told: None)"
    code += f"; process.leave(3); sys.{hook}(None); print('still here'); process.leave(4)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (4, "still here\n", "")


@pytest.mark.parametrize("merged", [True, False])
def test_a_job_continues_without_a_reader(tmp_path: Path, merged: bool) -> None:
    predictions, truths = TABLES
    (tmp_path / "job.toml").write_text(
        f'name = "job"\ngates = ["mAP[iou=0.5] > 0.99"]\n[inputs]\npredictions = "{predictions}"\n'
        f'ground_truths = "{truths}"\n[outputs]\nfolder = "out"\n',
        "utf-8",
    )
    assert unread(tmp_path, merged, "run", "job.toml") == 1
    assert (tmp_path / "out" / "_SUCCESS").is_file()


@pytest.mark.parametrize("merged", [True, False])
def test_gates_are_checked_without_a_reader(tmp_path: Path, merged: bool) -> None:
    gate = ("--fail-under", "mAP[iou=0.5] > 0.99")
    assert unread(tmp_path, merged, "score", *TABLES, *gate) == 1
    assert unread(tmp_path, merged, "score", *TABLES) == 0


def unread(folder: Path, merged: bool, *arguments: str) -> int:
    """Run a command whose output pipe is closed, and return its status."""
    read, write = os.pipe()
    os.close(read)
    error = subprocess.STDOUT if merged else subprocess.DEVNULL
    command = [sys.executable, "-m", "evalengine", *arguments]
    done = subprocess.run(command, stdout=write, stderr=error, cwd=folder, check=False, timeout=120)
    os.close(write)
    return done.returncode
