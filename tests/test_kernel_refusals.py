"""Files of compiled kernels that are whole and yet not to be run, and folders that are not ours."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalengine.kernels import folder
from evalengine.kernels.objects import calls, image, place
from evalengine.kernels.objects.image import Contract, Image, Value

pytestmark = pytest.mark.skipif(
    place.processor() is None, reason="no compiled kernel is run without the compiler here"
)

KERNEL = "evalengine.kernels.none.at_all"
PLACE = np.array([[8, 0]], np.int64)
TARGET = np.array([-1], np.int64)


def made(**changes: Any) -> Image:
    """An image that may be loaded, though it must not be called."""
    contract = Contract(KERNEL, str(place.processor()), (Value("int64", 1),), (), False)
    code = np.full(32, 0xC3, np.uint8)
    return replace(Image(contract, 0, 4, code, PLACE, TARGET, ("free",)), **changes)


def loaded(one: Image, at: Path) -> int:
    """How many files are taken of a folder with this image alone."""
    one.written(place.folder_of(KERNEL, at))
    return len(calls.Files(KERNEL, at, lambda: None))


def test_a_sound_image_is_loaded(tmp_path: Path) -> None:
    assert loaded(made(), tmp_path) == 1
    assert len(list(tmp_path.rglob("*.code"))) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"places": np.array([[24 + 1, 0]], np.int64)},
        {"places": np.array([[-8, 0]], np.int64)},
        {"places": np.array([[1 << 40, 0]], np.int64)},
        {"targets": np.array([1], np.int64)},
        {"targets": np.array([-2], np.int64)},
        {"entry": 32},
        {"entry": -1},
        {"entry": 1 << 40},
        {"entry": None},
        {"entry": True},
        {"release": 32},
        {"code": np.zeros(0, np.uint8)},
        {"symbols": (5,)},
        {"symbols": ("system",)},
    ],
    ids=str,
)
def test_offsets_beyond_the_code_are_refused(changes: dict[str, Any], tmp_path: Path) -> None:
    assert loaded(made(**changes), tmp_path) == 0
    assert not list(tmp_path.rglob("*.code"))


@pytest.mark.parametrize(
    "changes",
    [
        {"arguments": (Value("float16", 1),)},
        {"arguments": (Value("int32"),)},
        {"arguments": (Value("int64", 5),)},
        {"arguments": (Value("int64", 0),)},
        {"results": (Value("complex128"),)},
    ],
    ids=str,
)
def test_unknown_kinds_are_refused(changes: dict[str, Any], tmp_path: Path) -> None:
    assert loaded(made(contract=replace(made().contract, **changes)), tmp_path) == 0


@pytest.mark.parametrize("body", [b"[]", b"[" * 100_000, b"{}", b""])
def test_other_heads_are_refused(body: bytes, tmp_path: Path) -> None:
    data = len(body).to_bytes(8, "little") + body
    file = tmp_path / made().contract.file_name
    folder.put_whole(file, image._MAGIC + data)
    with pytest.raises(image.Unusable, match="another kind"):
        image.read_image(file)


def test_whoever_reads_the_folder_reads_the_files(tmp_path: Path) -> None:
    """As Numba's own: a folder warmed by one user serves others."""
    plain = tmp_path / "plain"
    plain.touch()
    made().written(tmp_path)
    (file,) = tmp_path.glob("*.code")
    assert stat.S_IMODE(file.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "file"
    folder.put_whole(target, b"first")
    with pytest.raises(TypeError):
        folder.put_whole(target, "no bytes")  # type: ignore[arg-type]
    assert folder.read_whole(target) == b"first"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("fault", [None, "open", "link", "file", "foreign"])
def test_the_temporary_folder_is_this_users_own(
    fault: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    if fault == "foreign":
        user = os.geteuid()
        (tmp_path / f"evalengine-{user + 1}").mkdir(mode=0o700)
        monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    own = tmp_path / f"evalengine-{os.geteuid()}"
    if fault == "open":
        own.mkdir()
        own.chmod(0o777)
    elif fault == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        own.symlink_to(tmp_path / "elsewhere")
    elif fault == "file":
        own.touch()
    assert folder._own_temporary() == (None if fault else own)
    if not fault:
        assert stat.S_IMODE(own.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("name", "told"), [("NUMBA_NUM_THREADS", False), ("NUMBA_CPU_NAME", True), ("NUMBA_OPT", True)]
)
def test_variables_that_change_code(name: str, told: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for given in [one for one in os.environ if one.startswith("NUMBA_")]:
        monkeypatch.delenv(given)
    monkeypatch.setitem(sys.modules, "numba", None)
    assert not place._numba_told()
    monkeypatch.setenv(name, "1")
    assert place._numba_told() is told
