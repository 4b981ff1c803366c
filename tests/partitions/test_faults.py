"""Killed runs, full disks and broken files: what is left behind, and what is said."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import polars as pl
import pytest
from merging.parts import Case
from merging.test_parts import CASES
from partitions.cases import await_that, boxes, in_buckets, same_as_in_memory, written
from refusals import noted, refused

import evalengine as ee
from evalengine.atomic import try_lock
from evalengine.outofcore import memory, stages
from evalengine.schemas.errors import ScratchError

RUN = """
import sys, time
import evalengine as ee
from evalengine.outofcore import driver, memory
driver.bucket_count = lambda *_, **__: memory.Sizes(4, 1000, 20, 3)
def told(step):
    if step == sys.argv[4]:
        print("here", flush=True)
        time.sleep(60)
ee.score(sys.argv[1], sys.argv[2], task="detection", memory_limit="1GB", scratch=sys.argv[3],
         progress=told)
"""


@pytest.mark.slow
@pytest.mark.parametrize("step", ["matching", "merging"])
def test_a_killed_run_is_cleaned_up_by_the_next(step: str, tmp_path: Path) -> None:
    sides = written(Case(boxes(), {}), tmp_path)
    home = tmp_path / "scratch"
    with subprocess.Popen(
        [sys.executable, "-c", RUN, *sides, str(home), step],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline().strip() == b"here"
        assert memory.sweep(home) == []  # it is alive
        killed.send_signal(signal.SIGKILL)
        killed.wait()
    assert len(list(home.iterdir())) == 1
    with memory.scratch_folder(str(home), 0) as folder:
        assert list(home.iterdir()) == [folder]
    assert list(home.iterdir()) == []


def test_folders_of_other_machines_stay(tmp_path: Path) -> None:
    other = tmp_path / f"{memory.PREFIX}1-ab"
    other.mkdir()
    (other / memory.OWNER).write_text('{"pid": 1, "host": "another", "began": null}')
    assert memory.sweep(tmp_path) == []
    assert other.is_dir()


def test_too_small_a_disk_is_told_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_buckets(monkeypatch, memory.Sizes(4, 10**18, 20, 3, 8))
    sides = written(Case(boxes(), {}), tmp_path)
    with refused("scratch_too_small", ScratchError, needed=10**18):
        ee.score(*sides, task="detection", memory_limit="1GB", scratch=str(tmp_path / "s"))
    assert list((tmp_path / "s").iterdir()) == []


def test_a_disk_that_runs_full_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files may not grow beyond a few kilobytes: writing fails as it does on a full disk."""
    in_buckets(monkeypatch)
    sides = written(Case(boxes(3000), {}), tmp_path, rows=100)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(ScratchError, match="disk is full"):
            ee.score(*sides, task="detection", memory_limit="1GB", scratch=str(tmp_path / "s"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert list((tmp_path / "s").iterdir()) == []


def test_one_truncated_file_among_many_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_buckets(monkeypatch)
    sides = written(Case(boxes(), {}), tmp_path, files=20)
    broken = Path(sides[0][13])
    broken.write_bytes(broken.read_bytes()[:-40])
    with pytest.raises(ee.ReadError, match=broken.name):
        ee.score(*sides, task="detection", memory_limit="1GB", scratch=str(tmp_path / "s"))
    assert not (tmp_path / "s").exists() or list((tmp_path / "s").iterdir()) == []


def test_pages_that_are_broken_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file whose footer is whole and whose rows are not fails while rows are dealt out."""
    in_buckets(monkeypatch)
    sides = written(Case(boxes(), {}), tmp_path, files=8)
    broken = Path(sides[0][5])
    data = bytearray(broken.read_bytes())
    data[4:200] = bytes(196)
    broken.write_bytes(data)
    with pytest.raises(ee.ReadError, match=broken.name):
        ee.score(*sides, task="detection", memory_limit="1GB", scratch=str(tmp_path / "s"))
    assert not (tmp_path / "s").exists() or list((tmp_path / "s").iterdir()) == []


def test_a_folder_is_left_alone_while_its_lock_is_held(tmp_path: Path) -> None:
    """Of a process that is not seen here, too: another container, named as its machine is."""
    folder = tmp_path / f"{memory.PREFIX}999999999-cd"
    folder.mkdir()
    mark = folder / memory.OWNER
    mark.write_text(f'{{"pid": 999999999, "host": "{memory.socket.gethostname()}"}}')
    with mark.open() as held:
        assert try_lock(held)
        assert memory.sweep(tmp_path) == []
    assert memory.sweep(tmp_path) == [folder]
    assert list(tmp_path.iterdir()) == []


def test_a_worker_that_still_writes_does_not_keep_a_folder(tmp_path: Path) -> None:
    """It finds no folder of that name any more; what was left of one goes with the next run."""
    with memory.scratch_folder(str(tmp_path), 0) as folder:
        (folder / "parts").mkdir()
    with pytest.raises(FileNotFoundError):
        (folder / "parts" / "0.tally").touch()
    (tmp_path / f"{memory.GONE}1-ab").mkdir()
    with memory.scratch_folder(str(tmp_path), 0) as other:
        assert list(tmp_path.iterdir()) == [other]


def test_a_bucket_that_another_worker_finished_meanwhile_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker taken for dead goes on, and another does its bucket: the rows are gone for one."""
    in_buckets(monkeypatch)
    tally = stages.tally_bucket
    rows = stages.read_rows

    def late(files: list[Path], before: list[int]) -> pl.DataFrame:
        monkeypatch.setattr(stages, "read_rows", rows)
        folder, bucket = files[0].parents[2], int(files[0].stem)
        digest = sha256((folder / "job.pickle").read_bytes()).hexdigest()
        tally(str(folder), bucket, 1, digest)  # the other one, from beginning to end
        return rows(files, before)

    monkeypatch.setattr(stages, "read_rows", late)
    task, draw = CASES["detection"]
    same_as_in_memory(draw(6), task, tmp_path)


def test_a_bucket_whose_rows_are_lost_is_no_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_buckets(monkeypatch)
    sides = written(Case(boxes(), {}), tmp_path)

    def told(step: str) -> None:
        if step == "matching" and not getattr(step, "done", 0):
            next((tmp_path / "s").glob("*/buckets/predictions-0/2.arrow")).unlink()

    with refused("scratch_deleted", ScratchError, bucket=2):
        ee.score(
            *sides, task="detection", memory_limit="1GB", scratch=str(tmp_path / "s"), progress=told
        )


@pytest.mark.parametrize("step", ["shuffling", "matching", "merging", "making"])
def test_a_scratch_folder_that_is_deleted_under_a_run_is_said(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever misses it first: as when temporary folders are emptied at night."""
    in_buckets(monkeypatch)
    sides = written(Case(boxes(), {}), tmp_path)

    def told(now: str) -> None:
        if now.startswith(step):
            for run in (tmp_path / "s").iterdir():
                shutil.rmtree(run)

    with refused("scratch_deleted", ScratchError):
        ee.score(
            *sides, task="detection", memory_limit="1GB", scratch=str(tmp_path / "s"), progress=told
        ).make()
    assert list((tmp_path / "s").iterdir()) == []


@pytest.mark.slow
def test_a_polite_kill_cleans_up(tmp_path: Path) -> None:
    """Slurm, Kubernetes and ``timeout`` send SIGTERM first."""
    sides = written(Case(boxes(20_000), {}), tmp_path, rows=1000)
    home = tmp_path / "scratch"
    command = "from evalengine.cli import main; raise SystemExit(main())"
    with subprocess.Popen(
        [sys.executable, "-c", command, "score", *sides, "--executor", "processes",
         "--threads", "1", "--scratch", str(home)],
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as run:  # fmt: skip
        await_that(lambda: any(home.glob("*/parts/*.tally")))
        run.send_signal(signal.SIGTERM)
        assert run.wait(60) == 128 + signal.SIGTERM
    assert list(home.iterdir()) == []


def test_a_limit_beside_a_given_executor_is_not_said_to_hold(tmp_path: Path) -> None:
    sides = written(Case(boxes(), {}), tmp_path)
    with ThreadPoolExecutor(1) as executor:
        card = ee.score(*sides, task="detection", memory_limit="1MB", executor=executor)
    noted(card, "not_in_parts")


def test_a_fork_leaves_the_folder_to_its_owner(tmp_path: Path) -> None:
    """Its copies of what holds the folder end with it."""
    held = memory.scratch_folder(str(tmp_path), 0)
    folder = held.__enter__()
    child = os.fork()
    if not child:
        held.__exit__(None, None, None)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert folder.is_dir()
    held.__exit__(None, None, None)
    assert list(tmp_path.iterdir()) == []
