"""Frames that stand in files of their own until they are asked for."""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import polars as pl

from ..schemas.errors import ScratchError


class Paged(msgspec.Struct, frozen=True):
    """What the report draws from.

    Attributes:
        makers: frame -> what makes it.
        lacking: frame -> why there is none, and how to get it.
    """

    makers: Mapping[str, Callable[[], pl.DataFrame]] = {}
    lacking: Mapping[str, str] = {}


class FrameFile:
    """A frame in a Parquet file, which is there as long as this object is.

    Attributes:
        path: the file.
        height: rows of the frame.
    """

    def __init__(self, path: Path, height: int, let_go: Callable[[], object]) -> None:
        """Keep the file.

        Args:
            path: the file.
            height: rows of the frame.
            let_go: deletes the file; called once, at the end of the process at the latest.
        """
        self.path = path
        self.height = height
        weakref.finalize(self, let_go)

    def __call__(self) -> pl.DataFrame:
        """The frame, in memory.

        Raises:
            ScratchError: the file was deleted by somebody else.
        """
        try:
            return pl.read_parquet(self.path, glob=False)
        except FileNotFoundError as error:
            raise ScratchError(
                f"{self.path}: the file of this frame, which was too large to be held, was deleted."
                " Save results before scratch folders are emptied, or run again."
            ) from error

    def copy_to(self, target: Path) -> None:
        """Make another file of the same content.

        It is not a second name of this file: what somebody writes into saved results would show in
        this frame, and in all other results that were saved of it.

        Args:
            target: its path, where nothing stands.

        Raises:
            OSError: it cannot be written.
        """
        shutil.copyfile(self.path, target)
