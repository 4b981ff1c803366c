"""Files written whole or not at all."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from pathlib import Path

import polars as pl

from evalengine.schemas.errors import InputError


def write_tables(frames: Mapping[str, pl.DataFrame], out: Path) -> None:
    """Parquet files into a folder, all or nothing.

    Every file is written under another name first; they take their names once all are whole.

    Args:
        frames: file name to table.
        out: folder, made if it is not there.

    Raises:
        InputError: the folder cannot be written.
    """
    write_files({name: frame.write_parquet for name, frame in frames.items()}, out)


def write_files(writers: Mapping[str, Callable[[Path], object]], out: Path) -> None:
    """The same for files of any format.

    Args:
        writers: file name to what writes it to a path.
        out: folder, made if it is not there.

    Raises:
        InputError: the folder cannot be written.
    """
    token = secrets.token_hex(4)
    parts = {name: out / f".{name}.{token}.part" for name in writers}
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, write in writers.items():
            write(parts[name])
        for name, part in parts.items():
            part.replace(out / name)
    except OSError as error:
        raise InputError(f"{out}: cannot be written: {error.strerror or error}.") from None
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)
