"""Interface of annotation formats: detection, and the result of reading."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any

import msgspec
import polars as pl

from evalengine.schemas.errors import ReadError

from ..file_memory import Room
from .titles import PACKED, TITLES

_HEAD = 1 << 16

Note = tuple[str, str, int | None]
FIRST = 500
"""Rows of each of several files that are looked at."""
RINGS = pl.List(pl.List(pl.List(pl.Float64())))
"""Dtype of polygons: rings of points x and y."""
IMAGES: dict[str, Any] = {
    "datum_id": pl.String, "file_name": pl.String, "width": pl.Int64, "height": pl.Int64,
}  # fmt: skip
"""Schema of images."""
NAMELESS = "classes_without_names"
"""Kind of the note that no file names the classes of a side."""


class Other(msgspec.Struct, frozen=True):
    """The other side, as evidence for ambiguous formats.

    Attributes:
        points: number of key points per object, and of numbers per point, as described in the data
            set; or None.
        box_format: xywh or xyxy if its boxes were read so without column names.
        names: returns the names of its images and of its classes.
    """

    title: str
    points: tuple[int, int] | None
    box_format: str | None
    names: Callable[[], tuple[frozenset[str], frozenset[str]]]


class Look(msgspec.Struct):
    """Folder or files given as annotations, not yet read.

    Attributes:
        root: base folder of relative names: the given one, or that of the file.
        files: all files except hidden ones, sorted by name.
        other: the other side; None if it is not open.
        room: memory limit for reading; None if unknown.
    """

    given: str
    root: str
    files: tuple[str, ...]
    other: Other | None = None
    room: Room | None = None
    box_format: str | None = None

    def named(self) -> tuple[frozenset[str], frozenset[str]]:
        """Names of images and of classes of the other side."""
        return self.other.names() if self.other else (frozenset(), frozenset())

    def of(self, *suffixes: str) -> tuple[str, ...]:
        """The files whose names end so, whatever their case, and whether compressed or not."""
        return tuple(
            name for name in self.files if name.lower().removesuffix(PACKED).endswith(suffixes)
        )

    def heads(self, *suffixes: str, most: int = 20) -> Iterator[tuple[str, bytes]]:
        """Yield the first non-empty files and their first bytes, without a byte-order mark.

        Args:
            most: maximum number of files; formats with one file per image have empty ones.
        """
        found = 0
        for name in self.of(*suffixes):
            head = head_of(name)
            if head.strip():
                found += 1
                yield name, head
            if found >= most:
                return

    def mostly(self, says: Callable[[bytes], bool], *suffixes: str) -> bool:
        """Return whether at least half of the first non-empty files are of a format.

        So a single broken file among many is still reported as one of the format.

        Args:
            says: detects the format from a file's first bytes.
        """
        found = [says(head) for _, head in self.heads(*suffixes)]
        return bool(found) and 2 * sum(found) >= len(found)

    def relative(self, file: str) -> str:
        """A file's name below the root, with slashes."""
        return os.path.relpath(file, self.root).replace(os.sep, "/")


class Annotations(msgspec.Struct, kw_only=True):
    """One side as read from a format.

    Attributes:
        rows: one row per object in canonical columns: ``datum_id`` (the image), ``label_value``
            (class name, or number if the format has no names), ``score`` for detections, ``xmin
            ymin xmax ymax`` (Float64; null if there is only a shape), ``polygon`` (List of rings,
            each a List of [x, y]) or ``mask`` (a COCO run-length struct) for shapes, and further
            properties of objects.
        datums: one row per image, including those without objects: ``datum_id``, ``file_name`` if
            known, ``width`` and ``height`` (Int64, pixels; null if unknown), and further properties
            of images, such as ``split``.
        labels: ``label_value`` of all declared classes in their order, and ``label_name`` if the
            values are numbers with names; None without a declaration.
        found: detections of a file that contains both sides; ``rows`` are then the ground truths.
        shares: whether coordinates are relative to the image's width and height.
        firsts: first rows of each file, if several may describe the same images.
        warnings: reasons why numbers may be meaningless, as (kind, message, count).
        points: number of key points per object, and of numbers per point, if the data set describes
            them; otherwise None.
        evidence: reason for this format, if another one has similar lines.
        pixels: whether corners are 1-based pixels, the last included: ``yes``, ``as truths`` (if
            those of the ground truths are), or empty for edges.
    """

    rows: pl.DataFrame
    datums: pl.DataFrame
    labels: pl.DataFrame | None = None
    found: pl.DataFrame | None = None
    shares: bool = False
    firsts: dict[str, pl.DataFrame] = {}
    notes: tuple[Note, ...] = ()
    warnings: tuple[Note, ...] = ()
    points: tuple[int, int] | None = None
    evidence: str = ""
    pixels: str = ""


class Format(msgspec.Struct, frozen=True):
    """Annotation format.

    Attributes:
        name: name in the shell; one of ``TITLES``.
        datum: column of its rows that names datums: images, or sequences of tracks.
    """

    name: str
    suffixes: tuple[str, ...]
    detect: Callable[[Look], bool]
    read: Callable[[Look], Annotations]
    datum: str = "datum_id"

    @property
    def title(self) -> str:
        """Display name."""
        return TITLES[self.name]


def head_of(file: str, size: int = _HEAD) -> bytes:
    """Return the first bytes of a file, without a byte-order mark.

    Raises:
        ReadError: it cannot be read.
    """
    try:
        with plain(file) as opened:
            return opened.read(size).removeprefix(b"\xef\xbb\xbf")
    except (EOFError, zlib.error):  # the reader reports a file that is cut off
        return b""
    except OSError as error:
        raise ReadError(
            f"{file}: cannot be read: {error.strerror or error}.", code="file_unreadable", file=file
        ) from None


def lines_in(head: bytes, most: int = 500) -> list[str]:
    """The lines of a file's first bytes that are not blank, without one that is cut off."""
    lines = head.decode("utf-8", "replace").splitlines()
    return [
        line for line in (lines[:-1] if len(head) >= _HEAD - 3 else lines)[:most] if line.strip()
    ]


class _Inflated(gzip.GzipFile):
    """A compressed file that expands no more than text does."""

    def __init__(self, file: str) -> None:
        super().__init__(file, "rb")
        self._most = max(_INFLATED, _RATIO * os.path.getsize(file))

    def read(self, size: int | None = -1) -> bytes:
        return self._counted(super().read(self._most + 1 if size is None or size < 0 else size))

    def read1(self, size: int = -1) -> bytes:
        return self._counted(super().read1(size))

    def _counted(self, found: bytes) -> bytes:
        if self.tell() > self._most:
            raise OSError(f"it expands to more than {self._most >> 20} MiB")
        return found


_INFLATED, _RATIO = 1 << 28, 200
UNPACKED = (OSError, EOFError, zlib.error)
"""Errors of a compressed file that is damaged."""


def plain(file: str) -> IO[bytes]:
    """Open a file for reading, decompressed if gzipped."""
    if file.lower().endswith(PACKED):
        return _Inflated(file)  # type: ignore[return-value]  # of bytes, whatever its stub says
    return open(file, "rb")  # closed by who asked for it


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def text_of(file: str) -> str:
    """Return the text of a file.

    Raises:
        ReadError: it cannot be read, or is not UTF-8.
    """
    try:
        with io.TextIOWrapper(plain(file), "utf-8-sig", newline=None) as opened:
            return opened.read()
    except UNPACKED as error:
        raise ReadError(
            f"{file}: cannot be read: {_why(error)}.", code="file_unreadable", file=file
        ) from None
    except UnicodeDecodeError as error:
        raise ReadError(
            f"{file}: is not UTF-8 (byte {error.start:,}). Save it as UTF-8; of Latin-1: iconv -f"
            " LATIN1 -t UTF-8 OLD > NEW.",
            code="file_unreadable",
            file=file,
        ) from None


def broken(file: str, line: int | None, wrong: str, repair: str) -> ReadError:
    """Make the error for a file that violates its format.

    Args:
        line: from 1; None if the format has no lines.
        wrong: the problem, without a full stop.
    """
    place = file if line is None else f"{file}, line {line:,}"
    return ReadError(f"{place}: {wrong}. {repair}", code="file_malformed", file=file, line=line)


def image_ids(look: Look, files: tuple[str, ...], *, below: str = "") -> list[str]:
    """Return the datum id of each file, for formats with one file per image.

    It is the file name without folders and suffix, as for the image. If two files in different
    folders have the same name, all ids include their folders.

    Args:
        below: a folder that every path has and that carries no information, such as ``labels``.
    """
    named = [look.relative(name) for name in files]
    return stems_or_paths([name.replace(f"{below}/", "", 1) if below else name for name in named])


def stems_or_paths(names: list[str]) -> list[str]:
    """Return names without folder and suffix if unique, otherwise without suffix only."""
    paths = [os.path.splitext(name.removesuffix(PACKED))[0] for name in names]
    stems = [path.rsplit("/", 1)[-1] for path in paths]
    return stems if len({*stems}) == len(stems) else paths
