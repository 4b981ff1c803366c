"""Files written whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import polars as pl

from evalengine.atomic import sweep, whole_file
from evalengine.schemas.errors import InputError


def write_tables(frames: Mapping[str, pl.DataFrame], out: Path) -> None:
    """Write Parquet files into a folder, all or none.

    Files get temporary names, and are renamed after all are complete.

    Args:
        frames: file name to table.
        out: folder, created if missing.

    Raises:
        InputError: the folder cannot be written.
    """
    write_files({name: frame.write_parquet for name, frame in frames.items()}, out)


def write_files(writers: Mapping[str, Callable[[IO[bytes]], object]], out: Path) -> None:
    """Write files of any format into a folder, all or none.

    Args:
        writers: file name to its writer.
        out: folder, created if missing.

    Raises:
        InputError: the folder cannot be written.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            for name in writers:
                (out / name).parent.mkdir(parents=True, exist_ok=True)
            for folder in {(out / name).parent for name in writers}:
                sweep(folder, {Path(name).name for name in writers})
            files = {name: stack.enter_context(whole_file(out / name)) for name in writers}
            for name, write in writers.items():
                write(files[name])
    except (OSError, pl.exceptions.PolarsError) as error:  # Polars' own of a disk that is full
        told = getattr(error, "strerror", None) or error
        raise InputError(f"{out}: cannot be written: {told}.") from None
