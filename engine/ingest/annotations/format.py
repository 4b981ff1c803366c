"""What a format of annotations is: how it is recognised, and what reading it gives."""

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
"""Kind of the note that nothing beside a side's files names their classes."""


class Other(msgspec.Struct, frozen=True):
    """The other side, as evidence for formats that look alike.

    Attributes:
        title: what it was read as, and its path.
        points: number of key points of an object, and of numbers of each, as its description has
            it; None if there is none.
        box_format: xywh or xyxy if its boxes were read as one of them without names of columns.
        names: returns the names of its images and of its classes.
    """

    title: str
    points: tuple[int, int] | None
    box_format: str | None
    names: Callable[[], tuple[frozenset[str], frozenset[str]]]


class Look(msgspec.Struct):
    """What somebody gave as annotations: a folder or files, of which nothing is read yet.

    Attributes:
        given: the path as given, for messages.
        root: the folder that names of files are told from: the given one, or that of the file.
        files: every file of it, hidden ones left out, in order of their names.
        other: the other side; None if it is not open.
        box_format: of the options.
        room: memory that reading may take; None if nothing is known of it.
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
        """The first files that hold anything and their first bytes, without a byte-order mark.

        Args:
            suffixes: of the files wanted.
            most: how many files are looked into; formats of a file an image have empty ones.
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
        """Whether at least half of the first files that hold anything are of a format.

        So that one broken file among many is told of as what it is.

        Args:
            says: whether a file's first bytes are.
            suffixes: of the files looked at.
        """
        found = [says(head) for _, head in self.heads(*suffixes)]
        return bool(found) and 2 * sum(found) >= len(found)

    def relative(self, file: str) -> str:
        """A file's name below the root, with slashes."""
        return os.path.relpath(file, self.root).replace(os.sep, "/")


class Annotations(msgspec.Struct, kw_only=True):
    """One side as a format holds it.

    Attributes:
        rows: a row an object in canonical columns: ``datum_id`` (the image), ``label_value`` (the
            class by name, by number where the format has no names), ``score`` where these are
            detections, ``xmin ymin xmax ymax`` (Float64; null where there is a shape alone),
            ``polygon`` (List of rings, each a List of [x, y]) or ``mask`` (a COCO run-length
            struct) where there are shapes, and whatever else the format says of an object.
        datums: a row an image, those without objects among them: ``datum_id``, ``file_name``
            where it is known, ``width`` and ``height`` (Int64, pixels; null where nothing says),
            and whatever else the format says of an image, such as ``split``.
        labels: ``label_value`` of all declared classes in their order, and ``label_name`` where
            the values are numbers that have names; None where nothing declares them.
        found: the detections of a file that holds both sides, ``rows`` being the ground truths.
        shares: whether coordinates are shares of the image's width and height.
        firsts: first rows of each file, where several may speak of the same images.
        notes: what had to be decided, as (kind, message, count).
        warnings: what makes numbers of it meaningless, alike.
        points: number of key points of an object, and of numbers of each, where a description of
            the data set says it; None elsewhere.
        evidence: why it is read so, if another format has lines alike.
        pixels: whether corners are pixels that count from 1, of which the last is in the box:
            ``yes``, ``as truths`` (if those of the ground truths are), or empty for edges.
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
    """A format of annotations, as data.

    Attributes:
        name: what it is called in the shell; one of ``TITLES``.
        suffixes: of the files it is made of, in lower case, with the dot.
        detect: whether what was given is of this format, told by content.
        read: all of it.
        datum: the column of its rows that names datums: images, or sequences of tracks.
    """

    name: str
    suffixes: tuple[str, ...]
    detect: Callable[[Look], bool]
    read: Callable[[Look], Annotations]
    datum: str = "datum_id"

    @property
    def title(self) -> str:
        """What people call it, for messages."""
        return TITLES[self.name]


def head_of(file: str, size: int = _HEAD) -> bytes:
    """The first bytes of a file, without a byte-order mark.

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
    """A file open for reading, decompressed where it is gzip's."""
    if file.lower().endswith(PACKED):
        return _Inflated(file)  # type: ignore[return-value]  # of bytes, whatever its stub says
    return open(file, "rb")  # closed by who asked for it


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def text_of(file: str) -> str:
    """All text of a file.

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
    """The error of a file that does not fit its format.

    Args:
        file: which.
        line: counted from 1; None where the format has no lines.
        wrong: what is wrong there, without a stop at its end.
        repair: what to do, as a sentence.
    """
    place = file if line is None else f"{file}, line {line:,}"
    return ReadError(f"{place}: {wrong}. {repair}", code="file_malformed", file=file, line=line)


def image_ids(look: Look, files: tuple[str, ...], *, below: str = "") -> list[str]:
    """The datum of each file of a format that has a file an image.

    It is the file's name without folders and extension, as the image's is; where two files of
    different folders are called alike, all are told with their folders.

    Args:
        look: what was given.
        files: of one image each.
        below: a folder that every path has and that says nothing, such as ``labels``.
    """
    named = [look.relative(name) for name in files]
    return stems_or_paths([name.replace(f"{below}/", "", 1) if below else name for name in named])


def stems_or_paths(names: list[str]) -> list[str]:
    """What images are called by: names without folder and extension, or with the folder.

    Args:
        names: of images, with slashes between folders.

    Returns:
        names without folders where these tell all apart, else with them.
    """
    paths = [os.path.splitext(name.removesuffix(PACKED))[0] for name in names]
    stems = [path.rsplit("/", 1)[-1] for path in paths]
    return stems if len({*stems}) == len(stems) else paths
