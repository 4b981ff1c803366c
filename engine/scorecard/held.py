"""Frames stored in files until they are requested."""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import polars as pl

from ..schemas.errors import ScratchError


class Paged(msgspec.Struct, frozen=True):
    """Frames for the report.

    Attributes:
        makers: frame -> provider.
        lacking: frame -> why it is missing, and how to get it.
    """

    makers: Mapping[str, Callable[[], pl.DataFrame]] = {}
    lacking: Mapping[str, str] = {}


class FrameFile:
    """A frame in a Parquet file that is deleted with this object."""

    def __init__(self, path: Path, height: int, let_go: Callable[[], object]) -> None:
        """Take ownership of the file.

        Args:
            height: number of rows.
            let_go: deletes the file; called once, at the latest when the process ends.
        """
        self.path = path
        self.height = height
        weakref.finalize(self, let_go)

    def __call__(self) -> pl.DataFrame:
        """Read the frame.

        Raises:
            ScratchError: the file was deleted from outside.
        """
        try:
            return pl.read_parquet(self.path, glob=False)
        except FileNotFoundError as error:
            raise ScratchError(
                f"{self.path}: the file of this frame, which was too large to be held, was deleted."
                " Save results before scratch folders are emptied, or run again."
            ) from error

    def copy_to(self, target: Path) -> None:
        """Copy the file.

        A hard link would not do: a change to the saved result would also change this frame and
        every other
        result saved from it.

        Args:
            target: path that does not exist yet.

        Raises:
            OSError: it cannot be written.
        """
        shutil.copyfile(self.path, target)
