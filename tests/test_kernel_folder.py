"""Compiled code is executed, so it is only read from folders that no other user can write."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from new_process import python

from evalengine.kernels import folder
from evalengine.kernels.folder import cache_folder, distrusted

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "geteuid"), reason="folders have no owners here"),
    pytest.mark.slow,
]

CODE = """
import json, sys
import numpy as np
from numba.core.codegen import CPUCodeLibrary
finalize, made = CPUCodeLibrary.finalize, []
CPUCodeLibrary.finalize = lambda self: (made.append(self.name), finalize(self))[1]
from evalengine.kernels.order import group_by_label
codes = np.array([0, 0, 1], np.int32), np.array([1, 0, 1], np.int32)
start, place = group_by_label(*codes, 2, 2)
assert (start.tolist(), place.tolist()) == ([0, 1, 3], [1, 0, 2])
print(json.dumps(made))
"""


@pytest.fixture
def candidates(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Put all candidate folders into the test's folder."""
    monkeypatch.delenv("EVALENGINE_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(folder.tempfile, "gettempdir", lambda: str(tmp_path / "temporary"))
    cache_folder.cache_clear()
    yield tmp_path
    cache_folder.cache_clear()


def compiled(cache: Path, home: Path) -> tuple[list[str], str]:
    """Return the functions that a new process compiled, and its output."""
    done = python(CODE, EVALENGINE_CACHE_DIR=str(cache), HOME=str(home))
    return json.loads(done.stdout), done.stderr


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that one process found empty and filled."""
    folder = tmp_path_factory.mktemp("filled") / "kernels"
    assert "nrt" in compiled(folder, folder.parent)[0]
    return folder


@pytest.fixture
def warm(filled: Path, tmp_path: Path) -> Path:
    """Copy it to another place: neither its path nor file times are part of the key."""
    shutil.copytree(filled, tmp_path / "warm", copy_function=shutil.copyfile)
    (tmp_path / "home").mkdir()
    return tmp_path / "warm"


def test_a_folder_that_was_warmed_up_and_is_read_only_is_used(warm: Path, tmp_path: Path) -> None:
    for path in [*warm.rglob("*"), warm]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        assert compiled(warm, tmp_path / "home") == ([], "")
    finally:
        for path in [warm, *warm.rglob("*")]:
            path.chmod(0o755)


@pytest.mark.parametrize("mode", [0o757, 0o1777])
def test_a_folder_that_others_may_write_is_not_used(mode: int, warm: Path, tmp_path: Path) -> None:
    (kernels,) = warm.iterdir()
    kernels.chmod(mode)
    made, message = compiled(warm, tmp_path / "home")
    assert made
    assert f"{warm} (others may" in message
    assert str(tmp_path / "home") in message.replace(str(warm), "")


def test_a_file_that_others_may_write_is_not_read(warm: Path, tmp_path: Path) -> None:
    for path in warm.rglob("*.nbi"):
        path.chmod(0o666)
    made, message = compiled(warm, tmp_path / "home")
    assert made
    assert message.count("others may write") == 1
    assert compiled(warm, tmp_path / "home") == ([], "")  # written again, for the owner only


def altered(data: bytes) -> bytes:
    """Flip one bit in the middle of the file; executing such code may crash the process."""
    at = len(data) // 2
    return data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]


HARMS: dict[str, Callable[[bytes], bytes]] = {
    "altered": altered,
    "cut short": lambda data: data[: len(data) // 2],
    "emptied": lambda data: b"",
    "another": lambda data: b"no pickle",
}


@pytest.mark.parametrize(
    ("harm", "kind"),
    [
        *product(("altered",), ("nbi", "nbc", "bin")),
        ("emptied", "nbi"),
        ("cut short", "nbc"),
        ("another", "bin"),
    ],
)
def test_altered_files_are_compiled_again(harm: str, kind: str, warm: Path, tmp_path: Path) -> None:
    assert {path.suffix for path in warm.rglob("*") if path.is_file()} == {".nbi", ".nbc", ".bin"}
    size = {}
    for path in warm.rglob(f"*.{kind}"):
        data = path.read_bytes()
        size[path] = len(data)
        path.write_bytes(HARMS[harm](data))
    made, message = compiled(warm, tmp_path / "home")
    assert ("nrt" in made) == (kind == "bin")
    assert len(made) >= 1
    assert message.count("altered or cut") == 1
    assert message.count(f".{kind} (") == 1
    assert {path: len(path.read_bytes()) for path in size} == size
    assert compiled(warm, tmp_path / "home") == ([], "")


def test_cached_files_are_writable_only_by_their_owner(tmp_path: Path) -> None:
    """The umask of the process does not matter; otherwise no file would be read again."""
    warm, home = tmp_path / "a" / "warm", tmp_path / "home"
    previous = os.umask(0)
    try:
        compiled(warm, home)
    finally:
        os.umask(previous)
    assert {path.stat().st_mode & 0o022 for path in (tmp_path / "a").rglob("*")} == {0}
    assert compiled(warm, home) == ([], "")


def test_trusted_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert distrusted(inner) is None
    inner.parent.chmod(0o777)
    assert str(inner.parent) in (distrusted(inner) or "")
    inner.parent.chmod(0o1777)  # like /tmp: files of others stay
    assert distrusted(inner) is None
    inner.parent.chmod(0o755)
    (tmp_path / "link").symlink_to(inner)
    assert distrusted(tmp_path / "link") is None
    if os.stat(inner).st_uid:  # folders of root are trusted
        monkeypatch.setattr(os, "geteuid", lambda: 987654)
        assert "another user" in (distrusted(inner) or "")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives away")
def test_a_folder_of_another_user_is_not_used(
    candidates: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither is one inside another user's folder, as for root in a user's home under sudo."""
    for one in ("xdg", "home"):
        (candidates / one).mkdir()
        os.chown(candidates / one, 12345, 12345)
    found = cache_folder()
    assert found is not None
    assert found.is_relative_to(candidates / "temporary")
    for one in ("xdg", "home"):
        assert not list((candidates / one).iterdir())  # files of root would block that user
        assert f"{candidates / one} belongs to" in caplog.text


def test_a_folder_that_others_may_write_is_skipped_with_a_warning(
    candidates: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (candidates / "xdg").mkdir()
    (candidates / "xdg").chmod(0o777)
    found = cache_folder()
    assert found is not None
    assert found.is_relative_to(candidates / "home")
    assert not list((candidates / "xdg").iterdir())
    (message,) = caplog.messages
    assert f"may write to {candidates / 'xdg'}" in message
    assert str(found) in message


def test_a_read_only_home_is_reported_only_without_an_alternative(
    candidates: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (candidates / "xdg").touch()
    (candidates / "home").touch()
    found = cache_folder()
    assert found is not None
    assert found.is_relative_to(candidates / "temporary")
    assert caplog.messages == []


def test_a_named_folder_that_cannot_be_written_is_reported(
    candidates: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (candidates / "named").touch()
    monkeypatch.setenv("EVALENGINE_CACHE_DIR", str(candidates / "named"))
    found = cache_folder()
    assert found is not None
    (message,) = caplog.messages
    assert str(candidates / "named") in message


def test_changing_a_link_afterwards_has_no_effect(
    candidates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (candidates / "mine").mkdir()
    (candidates / "theirs").mkdir()
    link = candidates / "link"
    link.symlink_to(candidates / "mine")
    monkeypatch.setenv("EVALENGINE_CACHE_DIR", str(link))
    found = cache_folder()
    link.unlink()
    link.symlink_to(candidates / "theirs")
    assert found is not None
    assert found == found.resolve()
    assert found.parent == candidates / "mine"


@pytest.mark.parametrize("shape", ["ring", "dangling", "file"])
def test_files_in_place_of_folders_are_skipped(
    shape: str, candidates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = candidates / "named"
    if shape == "ring":
        named.symlink_to(candidates / "back")
        (candidates / "back").symlink_to(named)
    else:
        first = candidates / "xdg" / "evalengine"
        first.mkdir(parents=True)
        inside = cache_folder()
        assert inside is not None
        cache_folder.cache_clear()
        inside.rmdir()
        if shape == "file":
            inside.touch()
        else:
            inside.symlink_to(candidates / "nowhere")
        named = first
    monkeypatch.setenv("EVALENGINE_CACHE_DIR", str(named))
    found = cache_folder()
    assert found is not None
    assert found.is_dir()
    assert not found.is_relative_to(named)


def test_missing_folders_are_reported(
    candidates: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for one in ("xdg", "home", "temporary"):
        (candidates / one).touch()
    assert cache_folder() is None
    (message,) = caplog.messages
    assert "process compiles them" in message
    assert str(candidates / "home") in message
