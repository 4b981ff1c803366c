"""Killed runs, full disks and damaged files: messages and cleanup."""

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
from partitions.cases import boxes, in_buckets, same_as_in_memory, wait_until, write_sides
from refusals import noted, refused

import evalengine as ee
from evalengine.atomic import try_lock
from evalengine.outofcore import memory, shuffle, stages
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
    sides = write_sides(Case(boxes(), {}), tmp_path)
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


def test_too_small_a_disk_is_refused_before_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_buckets(monkeypatch, memory.Sizes(4, 10**18, 20, 3, 8))
    sides = write_sides(Case(boxes(), {}), tmp_path)
    with refused("scratch_too_small", ScratchError, needed=10**18):
        ee.score(*sides, task="detection", memory_limit="1GB", scratch=str(tmp_path / "s"))
    assert list((tmp_path / "s").iterdir()) == []


def test_a_run_on_a_full_disk_cleans_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit of the file size makes writing fail as on a full disk."""
    in_buckets(monkeypatch)
    sides = write_sides(Case(boxes(3000), {}), tmp_path, rows=100)
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
    sides = write_sides(Case(boxes(), {}), tmp_path, files=20)
    broken = Path(sides[0][13])
    broken.write_bytes(broken.read_bytes()[:-40])
    with pytest.raises(ee.ReadError, match=broken.name):
        ee.score(*sides, task="detection", memory_limit="1GB", scratch=str(tmp_path / "s"))
    assert not (tmp_path / "s").exists() or list((tmp_path / "s").iterdir()) == []


def test_a_file_with_damaged_pages_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file with an intact footer fails only while its rows are shuffled."""
    in_buckets(monkeypatch)
    sides = write_sides(Case(boxes(), {}), tmp_path, files=8)
    broken = Path(sides[0][5])
    data = bytearray(broken.read_bytes())
    data[4:200] = bytes(196)
    broken.write_bytes(data)
    with pytest.raises(ee.ReadError, match=broken.name):
        ee.score(*sides, task="detection", memory_limit="1GB", scratch=str(tmp_path / "s"))
    assert not (tmp_path / "s").exists() or list((tmp_path / "s").iterdir()) == []


def test_a_locked_folder_is_not_deleted(tmp_path: Path) -> None:
    """The owner may be invisible, such as a process of a container with the same host name."""
    folder = tmp_path / f"{memory.PREFIX}999999999-cd"
    folder.mkdir()
    owner = folder / memory.OWNER
    owner.write_text(f'{{"pid": 999999999, "host": "{memory.socket.gethostname()}"}}')
    with owner.open() as file:
        assert try_lock(file)
        assert memory.sweep(tmp_path) == []
    assert memory.sweep(tmp_path) == [folder]
    assert list(tmp_path.iterdir()) == []


def test_a_late_worker_cannot_write_into_a_deleted_folder(tmp_path: Path) -> None:
    """Remains of a folder whose deletion failed are deleted by the next run."""
    with memory.scratch_folder(str(tmp_path), 0) as folder:
        (folder / "parts").mkdir()
    with pytest.raises(FileNotFoundError):
        (folder / "parts" / "0.tally").touch()
    (tmp_path / f"{memory.GONE}1-ab").mkdir()
    with memory.scratch_folder(str(tmp_path), 0) as other:
        assert list(tmp_path.iterdir()) == [other]


def test_a_bucket_that_another_worker_has_finished_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that was taken for dead continues after another has consumed its rows."""
    in_buckets(monkeypatch)
    tally = stages.tally_bucket
    rows = shuffle.read_rows

    def late(files: list[Path], before: list[int]) -> pl.DataFrame:
        monkeypatch.setattr(shuffle, "read_rows", rows)
        folder, bucket = files[0].parents[2], int(files[0].stem)
        digest = sha256((folder / "job.pickle").read_bytes()).hexdigest()
        tally(str(folder), bucket, 1, digest)  # the other worker runs to completion
        return rows(files, before)

    monkeypatch.setattr(shuffle, "read_rows", late)
    task, draw = CASES["detection"]
    same_as_in_memory(draw(6), task, tmp_path)


def test_a_bucket_with_deleted_rows_is_not_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_buckets(monkeypatch)
    sides = write_sides(Case(boxes(), {}), tmp_path)

    def delete(step: str) -> None:
        if step == "matching" and not getattr(step, "done", 0):
            next((tmp_path / "s").glob("*/buckets/predictions-0/2.arrow")).unlink()

    with refused("scratch_deleted", ScratchError, bucket=2):
        ee.score(
            *sides,
            task="detection",
            memory_limit="1GB",
            scratch=str(tmp_path / "s"),
            progress=delete,
        )


@pytest.mark.parametrize("step", ["shuffling", "matching", "merging", "making"])
def test_a_scratch_folder_deleted_during_a_run_is_reported(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Temporary folders may be emptied at any step."""
    in_buckets(monkeypatch)
    sides = write_sides(Case(boxes(), {}), tmp_path)

    def wipe(now: str) -> None:
        if now.startswith(step):
            for run in (tmp_path / "s").iterdir():
                shutil.rmtree(run)

    with refused("scratch_deleted", ScratchError):
        ee.score(
            *sides, task="detection", memory_limit="1GB", scratch=str(tmp_path / "s"), progress=wipe
        ).make()
    assert list((tmp_path / "s").iterdir()) == []


@pytest.mark.slow
def test_sigterm_cleans_up(tmp_path: Path) -> None:
    """Slurm, Kubernetes and ``timeout`` send SIGTERM before SIGKILL."""
    sides = write_sides(Case(boxes(20_000), {}), tmp_path, rows=1000)
    home = tmp_path / "scratch"
    command = "from evalengine.cli import main; raise SystemExit(main())"
    with subprocess.Popen(
        [sys.executable, "-c", command, "score", *sides, "--executor", "processes",
         "--threads", "1", "--scratch", str(home)],
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as run:  # fmt: skip
        wait_until(lambda: any(home.glob("*/parts/*.tally")))
        run.send_signal(signal.SIGTERM)
        assert run.wait(60) == 128 + signal.SIGTERM
    assert list(home.iterdir()) == []


def test_a_memory_limit_with_a_callers_executor_is_noted_as_ignored(tmp_path: Path) -> None:
    sides = write_sides(Case(boxes(), {}), tmp_path)
    with ThreadPoolExecutor(1) as executor:
        card = ee.score(*sides, task="detection", memory_limit="1MB", executor=executor)
    noted(card, "not_in_parts")


def test_a_forked_process_does_not_delete_the_folder(tmp_path: Path) -> None:
    """Closing the copied context in the child is without effect."""
    context = memory.scratch_folder(str(tmp_path), 0)
    folder = context.__enter__()
    child = os.fork()
    if not child:
        context.__exit__(None, None, None)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert folder.is_dir()
    context.__exit__(None, None, None)
    assert list(tmp_path.iterdir()) == []
