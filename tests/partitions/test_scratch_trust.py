"""Nobody else may read, enter or replace what a run in bounded memory leaves on disk."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from evalengine.partitions.scratch import OWNER, PREFIX, scratch_folder, sweep
from evalengine.schemas.errors import ScratchError

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="folders have no owners here")


def test_nobody_else_can_enter_a_runs_folder(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with scratch_folder(str(tmp_path), 0) as folder:
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    finally:
        os.umask(before)


@pytest.mark.parametrize(("mode", "refused"), [(0o777, True), (0o1777, False), (0o755, False)])
def test_a_folder_in_which_others_may_replace_it_is_refused(
    mode: int, refused: bool, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(mode)
    if refused:
        said = pytest.raises(ScratchError, match=r"others may write there.*sticky")
        with said, scratch_folder(str(home), 0):
            pass
    else:
        with scratch_folder(str(home), 0) as folder:
            assert folder.is_dir()
    assert list(home.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_a_pipe_in_place_of_a_mark_keeps_nobody_waiting(tmp_path: Path) -> None:
    left = tmp_path / f"{PREFIX}1-abc"
    left.mkdir()
    os.mkfifo(left / OWNER)
    assert sweep(tmp_path) == []
    assert left.is_dir()
    (left / OWNER).unlink()
    (left / OWNER).symlink_to("/etc/hostname")
    assert sweep(tmp_path) == []
