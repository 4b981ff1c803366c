"""Command ``evalengine run``: exit status, output, signals, kills, concurrent runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from jobs.kills import COMMAND, Kills, trials

from evalengine import run as scoring
from evalengine.cli import main
from evalengine.outofcore.memory import PREFIX
from evalengine.schemas.errors import (
    ChangedError,
    EndpointError,
    EvalengineError,
    ExecutorError,
    ScratchError,
    WriteError,
)

Write = Callable[..., Path]
Run = tuple[int, str, str]


def run(capsys: pytest.CaptureFixture[str], *args: str) -> Run:
    status = main(["run", *args])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_status_and_output(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(write())
    status, out, err = run(capsys, path)
    assert status == 0
    assert out.startswith("nightly: done")
    assert "gates: 1 passed" in out
    assert " nightly: planned" in err
    assert " job: " not in err
    assert run(capsys, path, "--quiet") == (0, "", "")  # cron mails the output
    status, out, _ = run(capsys, path)
    assert status == 0
    assert out.startswith("nightly: finished before")
    assert "--force" in out
    write((">= 0.5", "> 1"))
    status, out, _ = run(capsys, path, "--set", "date=2026-11-19", "--log-format", "json")
    assert status == 1
    assert "gates: 1 of 1 failed\n" in out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--set", "date"], "name=value"),
        (["--set", "dte=1"], "mean 'date'"),
        (["--set", "date=2026-12-24"], "no such file"),
    ],
)
def test_usage(
    write: Write, capsys: pytest.CaptureFixture[str], args: list[str], message: str
) -> None:
    status, _, err = run(capsys, str(write()), *args)
    assert status == 2
    assert message in err


def test_dry_run_writes_nothing(
    write: Write, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(path.name for path in folder.iterdir())
    status, out, err = run(capsys, str(write()), "--dry-run")
    assert (status, err) == (0, "")
    assert "input     predictions: tables/date=2026-11-20/predictions.parquet\n" in out
    assert out.endswith("gate      mAP[iou=0.5] >= 0.5\noutput    runs/2026-11-20\n")
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.parametrize(
    "kind", [WriteError, ScratchError, EndpointError, ExecutorError, ChangedError]
)
def test_temporary_failures_end_with_3(
    write: Write,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    kind: type[EvalengineError],
) -> None:
    def full(*args: object, **named: object) -> None:
        raise kind("No space left on device")

    monkeypatch.setattr(scoring, "score_tables", full)
    status, _, err = run(capsys, str(write()))
    assert status == 3
    assert err.endswith("left on device\n")


def test_quiet_runs_print_failures_only(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    """Cron mails the output."""
    assert run(capsys, str(write()), "--quiet") == (0, "", "")
    status, out, _ = run(capsys, str(write((">= 0.5", "> 1"))), "--quiet", "--force")
    assert status == 1
    assert "gates: 1 of 1 failed" in out


def test_strict_jobs_fail_on_warnings(
    write: Write, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in (folder / "tables").rglob("predictions.parquet"):
        frame = pl.read_parquet(path)
        frame.with_columns(label_value=pl.lit("unheard of")).write_parquet(path)
    gates = ('"mAP[iou=0.5] >= 0.5"', '"mAP[iou=0.5] >= 0"')
    status, _, err = run(capsys, str(write(gates)))
    assert status == 0
    assert "WARNING nightly: no label" in err
    status, out, _ = run(capsys, str(write(gates, ("gates =", "strict = true\ngates ="))))
    assert status == 1
    assert "no label of" in out


def test_the_folder_of_the_job_file_is_refused_as_output(
    write: Write, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(("runs/{date}", "."))
    monkeypatch.chdir(folder)
    status, _, err = run(capsys, "job.toml", "--quiet")
    assert status == 2
    assert "outputs.folder" in err


SLOW = """
import signal, sys, time
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it
from evalengine import run as scoring
from evalengine.cli import main
score = scoring.score_tables
def slow(*args, progress, **named):
    progress("matching")
    {wait}
    return score(*args, progress=progress, **named)
scoring.score_tables = slow
sys.exit(main(["run", *sys.argv[1:]]))
"""
ASLEEP = "time.sleep(60)"
# One long call into compiled code, during which its thread executes no Python.
BUSY = "import polars as pl; pl.select(pl.int_range(0, 10**11, eager=False).sum()).item()"


def started(path: Path, wait: str, until: str = "matching") -> subprocess.Popen[str]:
    """Start the job in a process, and wait until its log reaches a step."""
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW.format(wait=wait), str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.rstrip().endswith(until):
            break
    return process


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "status", "wait"),
    [(signal.SIGTERM, 143, ASLEEP), (signal.SIGINT, 130, BUSY)],
    ids=["term", "int"],
)
def test_signals_end_it_within_seconds(
    write: Write, folder: Path, number: signal.Signals, status: int, wait: str
) -> None:
    process = started(write(), wait)
    time.sleep(0.3)
    begun = time.perf_counter()
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == status, err
    assert time.perf_counter() - begun < 20
    assert f"stopped by {number.name}" in err
    assert [path.name for path in (folder / "runs").iterdir()] == [".2026-11-20.lock"]
    assert (folder / "runs" / ".2026-11-20.lock").read_bytes() == b""
    assert not (folder / "history").exists()
    events = [json.loads(line) for line in (folder / "lineage.jsonl").read_text().splitlines()]
    assert [event["eventType"] for event in events] == ["START", "ABORT"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_signals_leave_no_scratch(write: Write, tmp_path: Path, name: str) -> None:
    """The working thread does not get to delete its scratch folder itself."""
    scratch, number = tmp_path / "scratch", signal.Signals[name]
    wait = (
        "from evalengine.outofcore.memory import scratch_folder\n"
        f"    with scratch_folder({str(scratch)!r}, 0): time.sleep(60)"
    )
    process = started(write(), wait)
    for _ in range(1000):
        if list(scratch.glob(f"{PREFIX}*/*")):
            break
        time.sleep(0.02)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number, err
    assert list(scratch.iterdir()) == []


@pytest.mark.slow
def test_a_second_process_names_the_first(write: Write, folder: Path) -> None:
    path = write()
    first = started(path, ASLEEP)
    second = subprocess.run(
        [*COMMAND, str(path)], capture_output=True, text=True, check=False, timeout=120
    )
    assert second.returncode == 3
    assert f"'nightly' (process {first.pid} on {os.uname().nodename}" in second.stderr
    first.kill()
    first.communicate(timeout=60)
    third = subprocess.run(
        [*COMMAND, str(path)], capture_output=True, text=True, check=False, timeout=120
    )
    assert third.returncode == 0, third.stderr
    assert f"that died: process {first.pid}" in third.stderr


@pytest.fixture(scope="module")
def kills(tmp_path_factory: pytest.TempPathFactory) -> Kills:
    """Return a folder with a job; creating it runs the job twice."""
    return Kills(tmp_path_factory.mktemp("kills"), rows=500, seed=3)


@pytest.mark.slow
def test_kills_at_random_moments_keep_a_complete_result(kills: Kills) -> None:
    counted = trials(kills, 3)
    assert counted["old"] + counted["new"] == counted["started"] >= 3
    version = kills.version()
    other = next(name for name in kills.versions if name != version)
    kills.place(other)
    subprocess.run([*COMMAND, str(kills.job)], check=True, capture_output=True, timeout=120)
    assert kills.version() == other
    assert kills.other_files() == []


@pytest.mark.slow
def test_sigterm_while_writing_keeps_a_complete_result(kills: Kills) -> None:
    for _ in range(2):
        status, seconds = kills.kill(signal.SIGTERM)
        assert status in (0, 143, -signal.SIGTERM)
        assert seconds < 20
        kills.version()
        assert kills.other_files() == []
