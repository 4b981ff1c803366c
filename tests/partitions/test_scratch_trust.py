"""Other users cannot read, enter or replace the scratch folder of a run."""

from __future__ import annotations

import os
import pickle
import stat
from pathlib import Path

import msgspec
import polars as pl
import pytest
from refusals import refused

from evalengine.outofcore import shuffle, stages
from evalengine.outofcore.memory import OWNER, PREFIX, scratch_folder, sweep
from evalengine.schemas.errors import ScratchError

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="folders have no owners here")


def test_other_users_cannot_enter_a_runs_folder(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with scratch_folder(str(tmp_path), 0) as folder:
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    finally:
        os.umask(before)


@pytest.mark.parametrize(("mode", "unsafe"), [(0o777, True), (0o1777, False), (0o755, False)])
def test_a_parent_folder_that_others_may_write_is_refused(
    mode: int, unsafe: bool, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(mode)
    if unsafe:
        with refused("scratch_unsafe", ScratchError, file=str(home)), scratch_folder(str(home), 0):
            pass
    else:
        with scratch_folder(str(home), 0) as folder:
            assert folder.is_dir()
    assert list(home.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_a_pipe_or_link_in_place_of_the_owner_file_is_ignored(tmp_path: Path) -> None:
    folder = tmp_path / f"{PREFIX}1-abc"
    folder.mkdir()
    os.mkfifo(folder / OWNER)
    assert sweep(tmp_path) == []
    assert folder.is_dir()
    (folder / OWNER).unlink()
    (folder / OWNER).symlink_to("/etc/hostname")
    assert sweep(tmp_path) == []


class _Planted:
    def __init__(self, mark: Path) -> None:
        self._mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self._mark,)


def test_a_replaced_job_file_is_not_unpickled(tmp_path: Path) -> None:
    digest = stages.write_pickle(tmp_path / "orders", {"a": 1})
    assert stages.read_pickle(tmp_path / "orders", digest) == {"a": 1}
    mark = tmp_path / "ran"
    (tmp_path / "orders").write_bytes(pickle.dumps(_Planted(mark)))
    with refused("scratch_unsafe", ScratchError):
        stages.read_pickle(tmp_path / "orders", digest)
    assert not mark.exists()


def test_summaries_of_row_ranges_are_not_pickles(tmp_path: Path) -> None:
    pairs = pl.DataFrame({"label_key": ["k"], "label_value": [7]})
    keys, ahead = pl.Series(["k", "l"]), pl.DataFrame({"metric": ["m"]})
    summary = shuffle.Shuffled(9, {"predictions": pairs}, keys, [0, 2], ahead)
    home = shuffle.range_folder(tmp_path, "predictions", 0)
    home.mkdir(parents=True)
    shuffle._write_summary(home, summary)
    loaded = shuffle.load_summary(tmp_path, "predictions", 0)
    assert (loaded.rows, loaded.buckets) == (9, [0, 2])
    assert loaded.pairs["predictions"].equals(pairs)
    assert loaded.keys is not None
    assert loaded.keys.to_list() == ["k", "l"]
    assert loaded.ahead is not None
    assert loaded.ahead.equals(ahead)
    mark = tmp_path / "ran"
    (home / shuffle._SUMMARY).write_bytes(pickle.dumps(_Planted(mark)))
    with pytest.raises(msgspec.DecodeError):
        shuffle.load_summary(tmp_path, "predictions", 0)
    assert not mark.exists()
