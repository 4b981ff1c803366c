"""Stored tallies: exact round trip, older versions, damaged and other files."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from merging import parts
from merging.test_parts import CASES, every_case
from msgspec import structs
from refusals import refused

import evalengine as ee
from evalengine import atomic
from evalengine.tallies import stored


@every_case
@settings(max_examples=1)
@given(seed=st.integers(0, 2**32 - 1))
def test_stored_parts_equal_one_tally(
    name: str, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Tallies are saved and loaded before they are merged."""
    task, draw = CASES[name]
    folder = tmp_path_factory.mktemp("tallies")

    def store(tallies: Any) -> Any:
        path = folder / "one.tally"
        stored.save(tallies, path, fingerprint="f")
        return stored.load(path, fingerprint="f")

    parts.check(draw(seed), task, seed, 3, store)


@pytest.mark.parametrize("name", ["classification", "binary"])
@pytest.mark.parametrize("first", [True, False])
def test_files_of_earlier_versions_are_read(name: str, first: bool, tmp_path: Path) -> None:
    """Earlier versions have other names of fields, additional fields and missing ones."""
    task, draw = CASES[name]
    case = draw(7)
    tallies = parts.tallied(case, parts.fitted(case, task))
    rows = tallies.scored
    plain = structs.replace(rows, grid=None, label=rows.label_codes, unit=rows.unit_codes)
    tallies = structs.replace(tallies, scored=plain)
    new, old = tmp_path / "new.tally", tmp_path / "old.tally"
    stored.save(tallies, new)
    with zipfile.ZipFile(new) as source, zipfile.ZipFile(old, "w") as target:
        for member in source.namelist():
            content = source.read(member)
            if member == "about.json":
                content = json.dumps(json.loads(content) | {"format": 1}).encode()
            if member == f"{stored.WHOLE}/tree.json":
                tree = json.loads(content)
                whole = tree["root"]["fields"]
                fields = whole["scored"]["fields"]
                if first:
                    assert fields.pop("grid") is None
                else:
                    fields["given"] = fields.pop("parts")
                    fields |= {"few": None, "columns": None}
                    whole["datums"]["fields"]["low"] = 0
                content = json.dumps(tree).encode()
            target.writestr(member, content)
    loaded = stored.load(old)
    for field in (
        *loaded.scored.__struct_fields__,
        "parts",
        "several",
        "label_codes",
        "unit_codes",
    ):
        one, other = getattr(loaded.scored, field), getattr(tallies.scored, field)
        assert np.array_equal(one, other), field
    assert np.array_equal(loaded.units.truth, tallies.units.truth)


def _stored(folder: Path) -> Path:
    case = parts.detection(1)
    path = folder / "one.tally"
    stored.save(
        parts.tallied(case, parts.fitted(case, "detection")),
        path,
        fingerprint="abc",
        about={"rows": 3},
    )
    return path


def test_the_head_of_a_file(tmp_path: Path) -> None:
    head = stored.head_of(_stored(tmp_path))
    assert (head["fingerprint"], head["about"]) == ("abc", {"rows": 3})
    assert [path.name for path in tmp_path.iterdir()] == ["one.tally"]


def test_another_plan_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ee.ResultError, match="another plan"):
        stored.load(_stored(tmp_path), fingerprint="def")


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_a_truncated_file_is_refused(tmp_path: Path, share: float) -> None:
    path = _stored(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    with refused("file_damaged", ee.ReadError):
        stored.load(path)


def test_concatenated_files_are_refused(tmp_path: Path) -> None:
    one = _stored(tmp_path).read_bytes()
    for name, joined in (("two", one + one), ("after", one + one[:500]), ("before", b"PK" + one)):
        path = tmp_path / name
        path.write_bytes(joined)
        with refused("file_damaged", file=str(path)):
            stored.load(path)


def test_a_changed_byte_is_detected(tmp_path: Path) -> None:
    path = _stored(tmp_path)
    whole = bytearray(path.read_bytes())
    at = whole.index(np.float64(0.75).tobytes())
    whole[at] ^= 1
    path.write_bytes(whole)
    with refused("file_damaged", ee.ReadError):
        stored.load(path)


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _stored(tmp_path)
    before = path.read_bytes()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        _stored(tmp_path)
    assert [one.name for one in tmp_path.iterdir()] == ["one.tally"]
    assert path.read_bytes() == before


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ee.ReadError, match="no such file"):
        stored.load(tmp_path / "none.tally")
    other = tmp_path / "other.tally"
    other.write_text("something else")
    with refused("file_damaged", ee.ReadError):
        stored.load(other)


def test_numbers_are_stored_without_pandas(tmp_path: Path) -> None:
    """Importing pandas would slow down every process of a run."""
    code = f"""
import sys
import numpy as np
from evalengine.tallies import stored
from evalengine.tallies.ranked import ConfusedPairs
numbers = np.arange(5, dtype=np.int32)
for some in (numbers, numbers[:0], numbers[::2]):
    kept = ConfusedPairs(some, some, some > 1, some / 2, some.astype(np.uint64))
    stored.save(kept, {str(tmp_path / "one")!r}, lasting=False)
    back = stored.load({str(tmp_path / "one")!r})
    for name in kept.__struct_fields__:
        ours, theirs = getattr(kept, name), getattr(back, name)
        assert ours.dtype == theirs.dtype and (ours == theirs).all(), name
assert "pandas" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
