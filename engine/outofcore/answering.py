"""What views ask of groups of labels, computed by workers: a file for each group's answer."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from ..atomic import whole_file
from ..executors.pools import Pool
from ..tally.ranked_groups import Asked, Group, answer
from .sealed import leave, taken
from .stages import collected

Array = np.ndarray[Any, Any]


def answer_group(home: str, number: int, group: Group, digest: str) -> None:
    """Compute what is asked of one group of labels.

    Args:
        home: a folder of one question, with the file that asks it.
        number: of the group.
        group: which labels, and where their rows stand.
        digest: of what is asked.
    """
    target = _answer_file(home, number)
    if target.exists():
        return
    asked: Asked = taken(Path(home) / _ASKED, digest)
    with whole_file(target) as file:
        np.savez(file, *answer(asked, group))


_ASKED = "asked.pickle"


def _answer_file(home: str | Path, number: int) -> Path:
    return Path(home) / f"{number}.npz"


class OnWorkers:
    """Has workers answer, the largest groups first.

    Args:
        folder: the scratch folder.
        pool: where stages run.
    """

    def __init__(self, folder: str, pool: Pool) -> None:
        self._home = Path(folder) / "answers"
        self._pool = pool
        self._numbers = count()
        self._lock = Lock()  # views of several slices may ask at a time

    def __call__(self, asked: Asked, groups: Sequence[Group]) -> list[tuple[Array, ...]]:
        """Arrays of every group, in their order."""
        with self._lock:
            home = self._home / str(next(self._numbers))
            home.mkdir(parents=True)
            digest = leave(home / _ASKED, asked)
            sizes = [-sum(os.path.getsize(file) for file in group.files) for group in groups]
            order = np.argsort(sizes, kind="stable").tolist()
            collected(
                self._pool.run(
                    answer_group, [(str(home), one, groups[one], digest) for one in order]
                )
            )
            found = [_answer(_answer_file(home, number)) for number in range(len(groups))]
            shutil.rmtree(home)
        return found


def _answer(file: Path) -> tuple[Array, ...]:
    """Arrays as they were written, in their order."""
    with np.load(file, allow_pickle=False) as arrays:
        return tuple(arrays[name] for name in arrays.files)
