"""Killed runs, full disks and broken files: what is left behind, and what is said."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from merging.parts import Case
from partitions.cases import boxes, in_buckets, written

import evalengine as ee
from evalengine.partitions import scratch, sizing
from evalengine.schemas.errors import ScratchError

RUN = """
import sys, time
import evalengine as ee
from evalengine.partitions import running, sizing
running.buckets = lambda *_, **__: sizing.Sizes(4, 1000, 20, 3, 8)
def told(step):
    if step == sys.argv[4]:
        print("here", flush=True)
        time.sleep(60)
ee.score(sys.argv[1], sys.argv[2], task="detection", memory_limit="1GB", scratch=sys.argv[3],
         progress=told)
"""


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
        assert scratch.sweep(home) == []  # it is alive
        killed.send_signal(signal.SIGKILL)
        killed.wait()
    assert len(list(home.iterdir())) == 1
    with scratch.scratch_folder(str(home), 0) as folder:
        assert list(home.iterdir()) == [folder]
    assert list(home.iterdir()) == []


def test_folders_of_other_machines_stay(tmp_path: Path) -> None:
    other = tmp_path / f"{scratch.PREFIX}1-ab"
    other.mkdir()
    (other / scratch.OWNER).write_text('{"pid": 1, "host": "another", "began": null}')
    assert scratch.sweep(tmp_path) == []
    assert other.is_dir()


def test_too_small_a_disk_is_told_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_buckets(monkeypatch, sizing.Sizes(4, 10**18, 20, 3, 8))
    sides = written(Case(boxes(), {}), tmp_path)
    with pytest.raises(ScratchError, match=r"about 1,000,000,000\.0 GB of scratch are needed"):
        ee.score(*sides, task="detection", memory_limit="1GB", scratch=str(tmp_path / "s"))
    assert list((tmp_path / "s").iterdir()) == []


def test_a_disk_that_runs_full_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files may not grow beyond a few kilobytes: writing fails as it does on a full disk."""
    in_buckets(monkeypatch)
    sides = written(Case(boxes(3000), {}), tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(ScratchError, match="ran full"):
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
