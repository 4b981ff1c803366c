"""Formats whose files are held as a whole while they are read; whether there is room for that."""

from __future__ import annotations

import gzip
import os
from collections.abc import Sequence

import msgspec

from evalengine.schemas.errors import OptionError, ReadError
from evalengine.schemas.wording import option

_HELD = {"json": 5, "trec": 5, "duckdb": 8}
"""Bytes held of a byte of a file while it is read, at most: measured of COCO files and runs; of
DuckDB's, whose columns are compressed, an estimate."""
_BLOCK = 1 << 20
_STEP = 64 << 20  # to which limits in messages are rounded up


class Room(msgspec.Struct, frozen=True):
    """What memory there is.

    Attributes:
        limit: bytes that the run may take.
        base: of which, what the process takes before it has any row.
    """

    limit: int
    base: int


def refuse_beyond(room: Room, files: Sequence[str], format_: str, description: str) -> None:
    """Refuse files that cannot be read within a limit, before they are.

    Args:
        room: what there is.
        files: local files of one format.
        format_: as :mod:`.formats` calls it.
        description: of the files, for messages.

    Raises:
        OptionError: reading them would pass the limit.
        ReadError: a compressed file is cut off or damaged.
    """
    each = _HELD.get(format_)
    if each is None:
        return
    taken = each * sum(_unpacked(file) for file in files)
    if room.base + taken <= room.limit:
        return
    enough = -(-(room.base + taken) // _STEP) * _STEP >> 20
    raise OptionError(
        f"{option('memory_limit')}: {description} is read as a whole, which takes about"
        f" {(room.base + taken) / 1e9:.1f} GB with the process, and the limit is"
        f" {room.limit / 1e9:.1f} GB. Give at least {option('memory_limit', f'{enough}MiB')}, or"
        " write it as Parquet once, which is read in parts."
    )


def _unpacked(file: str) -> int:
    """Bytes that a file holds once it is decompressed; found in blocks, as a footer may lie."""
    with open(file, "rb") as plain:
        if plain.read(2) != b"\x1f\x8b":
            return os.path.getsize(file)
    size = 0
    try:
        with gzip.open(file) as packed:
            while block := packed.read(_BLOCK):
                size += len(block)
    except (OSError, EOFError) as error:
        raise ReadError(f"{file}: gzip that cannot be decompressed: {error}.") from error
    return size
