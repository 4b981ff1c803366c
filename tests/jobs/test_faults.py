"""Faults of disks, links, locks and long names: named in messages, or handled."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from io import FileIO
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from refusals import refused

import evalengine as ee
from evalengine import atomic, run
from evalengine.cli import main
from evalengine.ingest.sources import tables as readers
from evalengine.jobs import process
from evalengine.jobs.process import WARNING, locked
from evalengine.schemas.errors import ReadError, ResultError, WriteError
from evalengine.scorecard import storage

Write = Callable[..., Path]
FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def failing_sync(monkeypatch: pytest.MonkeyPatch, folder: Path, number: int) -> None:
    """Make ``fsync`` of a folder fail, as on a disk that loses its connection."""
    sync = storage.sync

    def failing(path: Path) -> None:
        if path == folder:
            raise OSError(number, os.strerror(number))
        sync(path)

    monkeypatch.setattr(storage, "sync", failing)
    monkeypatch.setattr(atomic, "sync", failing)


class TestNamesThatMayBeLost:
    def test_a_job_warns(self, write: Write, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        failing_sync(monkeypatch, folder / "runs", errno.EIO)
        log: list[tuple[str, Any]] = []
        path = write()
        result = ee.run_job(path, tell=lambda text, **facts: log.append((text, facts.get("level"))))
        assert result.ran
        ((message, level),) = [one for one in log if "on disk" in one[0]]
        assert level == WARNING
        assert str(folder / "runs") in message
        assert os.strerror(errno.EIO) in message

    @pytest.mark.parametrize(("number", "times"), [(errno.EIO, 1), (errno.EINVAL, 0)])
    def test_save_warns(
        self, number: int, times: int, write: Write, tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
    ) -> None:  # fmt: skip
        card = ee.run_job(write()).card
        failing_sync(monkeypatch, tmp_path, number)
        card.save(tmp_path / "other")
        assert caplog.text.count("on disk") == times
        assert ee.load(tmp_path / "other").metrics.equals(card.metrics)


class TestLocks:
    def test_a_lock_file_that_cannot_be_written(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(process, "_write", lambda file, text: (_ for _ in ()).throw(FULL))
        with refused("write_failed", WriteError), locked(tmp_path / "run", "a"):
            pass

    def test_a_full_device(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Closing the file raises no further error."""
        if not os.path.exists("/dev/full"):
            pytest.skip("no device that is always full")
        full = FileIO("/dev/full", "r+")
        monkeypatch.setattr(process, "open", lambda *args, **named: full, raising=False)
        monkeypatch.setattr(process, "_holder", lambda file: None)
        monkeypatch.setattr(process, "_write", lambda file, text: file.write(text))
        with pytest.raises(WriteError, match="No space left"), locked(tmp_path / "run", "a"):
            pass

    def test_a_lock_that_cannot_be_taken_is_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refused(*_: object) -> None:
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

        fcntl = pytest.importorskip("fcntl")
        monkeypatch.setattr(fcntl, "flock", refused)
        with pytest.raises(WriteError, match=r"\.run\.lock"), locked(tmp_path / "run", "a"):
            pass

    def test_a_lock_file_that_cannot_be_emptied_is_noted(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write, messages = process._write, []

        def refuses_at_the_end(file: Any, text: bytes) -> None:
            if not text:
                raise FULL
            write(file, text)

        monkeypatch.setattr(process, "_write", refuses_at_the_end)
        with locked(tmp_path / "run", "a", tell=messages.append):
            pass
        assert ".run.lock still" in messages[0]

    def test_a_folder_with_a_long_name(self, write: Write) -> None:
        path = write(('folder = "runs/{date}"', f'folder = "runs/{"n" * 253}"'))
        assert ee.run_job(path).ran
        assert not ee.run_job(path).ran


@pytest.mark.parametrize("below", [False, True])
def test_links_in_a_ring(below: bool, write: Write, folder: Path) -> None:
    (folder / "a").symlink_to(folder / "b")
    (folder / "b").symlink_to(folder / "a")
    card = ee.run_job(write()).card
    target = folder / "a" / "x" if below else folder / "a"
    with refused("write_failed", ResultError):
        card.save(target)
    path = write(("runs/{date}", str(target)))
    with pytest.raises(ResultError, match=r"cannot write .*/a"):
        ee.run_job(path)
    assert main(["run", str(path)]) == 2


def test_a_full_disk_of_results_ends_the_command_with_3(
    folder: Path, write: Write, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both ``score`` and ``run`` report a temporary failure."""

    def full(*_: object) -> None:
        raise FULL

    monkeypatch.setattr(storage, "sync", full)
    tables = folder / "tables" / "date=2026-11-20"
    sides = [str(tables / f"{side}.parquet") for side in ("predictions", "truths")]
    assert main(["score", *sides, "--out", str(folder / "out")]) == 3
    message = capsys.readouterr().err
    assert "cannot write" in message
    assert "should not happen" not in message
    assert main(["run", str(write())]) == 3


def test_a_full_scratch_disk_ends_the_command_with_3(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object, **__: object) -> None:
        raise ee.ScratchError("the disk is full")

    monkeypatch.setattr(run, "score_tables", full)
    assert main(["score", str(folder / "x"), str(folder / "y")]) == 3
    assert "disk is full" in capsys.readouterr().err


def test_files_that_are_nested_too_deeply_are_named(write: Write, folder: Path) -> None:
    deep = "[" * 20_000 + "]" * 20_000
    (folder / "map.json").write_text(deep)
    tables = folder / "tables" / "date=2026-11-20"
    sides = [str(tables / f"{side}.parquet") for side in ("predictions", "truths")]
    with pytest.raises(ReadError, match=r"map\.json"):
        ee.score(*sides, label_map=str(folder / "map.json"))
    path = write()
    path.write_text(f"a = {deep}")
    with refused("file_malformed", ReadError):
        ee.run_job(path)


@pytest.mark.parametrize("command", ["score", "run"])
def test_a_panic_of_compiled_code_is_never_a_failed_gate(
    command: str,
    folder: Path,
    write: Write,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """While a file is read, it is an input error that names the file; otherwise an internal one."""

    def panic(*_: object, **__: object) -> None:
        raise pl.exceptions.PanicException("assertion failed")

    tables = folder / "tables" / "date=2026-11-20"
    sides = [str(tables / f"{side}.parquet") for side in ("predictions", "truths")]
    args = ["score", *sides] if command == "score" else ["run", str(write())]
    with monkeypatch.context() as patch:
        patch.setattr(readers, "scan", panic)
        assert main(args) == 2
        assert "predictions.parquet: cannot be" in capsys.readouterr().err
    monkeypatch.setattr(run, "score_tables", panic)
    assert main(args) == 3
    assert "assertion failed" in capsys.readouterr().err
