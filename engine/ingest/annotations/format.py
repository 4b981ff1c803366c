"""Formats of annotations: recognition, helpers of their readers, safe XML."""

from __future__ import annotations

import glob
import gzip
import io
import math
import os
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, BinaryIO
from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser

import msgspec
import numpy as np
import polars as pl

from ...schemas.arrays import Array
from ...schemas.contract import words
from ...schemas.errors import ReadError
from ..files import Room, Source, by_extension, files_below, unreadable
from ..geometry import CORNER_NAMES
from ..problems import Note, count_of
from .titles import PACKED, TITLES, may_be_annotations

# Interface of annotation formats.

_HEAD = 1 << 16

FIRST = 500
"""Rows of each of several files that are looked at."""
RINGS = pl.List(pl.List(pl.List(pl.Float64())))
"""Dtype of polygons: rings of points x and y."""
IMAGES: dict[str, Any] = {
    "datum_id": pl.String,
    "file_name": pl.String,
    "width": pl.Int64,
    "height": pl.Int64,
}
"""Schema of images."""
_TABLES = ("parquet", "ipc", "ipc_stream", "ndjson")
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
        count = 0
        for name in self.of(*suffixes):
            head = head_of(name)
            if head.strip():
                count += 1
                yield name, head
            if count >= most:
                return

    def mostly(
        self,
        says: Callable[[str, bytes], bool],
        *suffixes: str,
        selects: Callable[[str], bool] = bool,
    ) -> bool:
        """Return whether at least half of the first non-empty files are of a format.

        So a single broken file among many is still reported as one of the format.

        Args:
            says: takes the name and the first bytes of a file.
            selects: names of files that count.
        """
        fits = [says(name, head) for name, head in self.heads(*suffixes) if selects(name)]
        return bool(fits) and 2 * sum(fits) >= len(fits)

    def relative(self, file: str) -> str:
        """A file's name below the root, with slashes."""
        return os.path.relpath(file, self.root).replace(os.sep, "/")


class Format(msgspec.Struct, frozen=True):
    """Annotation format.

    Attributes:
        name: name in the shell; one of ``TITLES``.
        detects_head: detects the format from a file's first bytes; at least half of the files are
            of it.
        detects: detects the format from all files, if the first bytes do not suffice.
        datum: column of its rows that names datums: images, or sequences of tracks.
    """

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[Look], Source]
    detects_head: Callable[[bytes], bool] = lambda head: False
    detects: Callable[[Look], bool] | None = None
    datum: str = "datum_id"

    def detect(self, look: Look) -> bool:
        """Return whether files are of this format."""
        if self.detects is not None:
            return self.detects(look)
        return look.mostly(lambda name, head: self.detects_head(head), *self.suffixes)

    @property
    def title(self) -> str:
        """Display name."""
        return TITLES[self.name]


def look_at(paths: list[str]) -> Look | None:
    """Return the files of paths that may be annotations; None for tables and missing paths."""
    description = paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
    paths = [os.path.expanduser(path.removeprefix("file://")) for path in paths]
    if len(paths) == 1 and os.path.isdir(paths[0]):
        files = (*files_below(paths[0]),)
        tables = any(by_extension(name) in _TABLES for name in files)
        if tables or not any(map(may_be_annotations, files)):
            return None
        return Look(description, paths[0], files)
    if not all(map(may_be_annotations, paths)):
        return None
    matches = [
        [path] if os.path.isfile(path) else sorted(glob.glob(path, recursive=True))
        for path in paths
    ]
    files = tuple(file for of_path in matches for file in of_path if os.path.isfile(file))
    if not files:
        return None
    folders = [os.path.dirname(os.path.abspath(file)) for file in files]
    return Look(description, os.path.commonpath(folders), files)


def head_of(file: str, size: int = _HEAD) -> bytes:
    """Return the first bytes of a file, without a byte-order mark."""
    try:
        with plain(file) as opened:
            return opened.read(size).removeprefix(b"\xef\xbb\xbf")
    except (EOFError, zlib.error):  # the reader reports a file that is cut off
        return b""
    except OSError as error:
        raise unreadable(file, error) from None


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

    def _counted(self, data: bytes) -> bytes:
        if self.tell() > self._most:
            raise OSError(f"it expands to more than {self._most >> 20} MiB")
        return data


_INFLATED, _RATIO = 1 << 28, 200
UNPACKED = (OSError, EOFError, zlib.error)
"""Errors of a compressed file that is damaged."""


def plain(file: str) -> IO[bytes]:
    """Open a file for reading, decompressed if gzipped."""
    if file.lower().endswith(PACKED):
        return _Inflated(file)  # type: ignore[return-value]  # binary, despite its stub
    return open(file, "rb")  # closed by who asked for it


def text_of(file: str) -> str:
    """Return the text of a file."""
    try:
        with io.TextIOWrapper(plain(file), "utf-8-sig", newline=None) as opened:
            return opened.read()
    except UNPACKED as error:
        raise unreadable(file, error) from None
    except UnicodeDecodeError as error:
        raise ReadError(
            f"{file}: is not UTF-8 (byte {error.start:,}). Save it as UTF-8; of Latin-1: iconv -f"
            " LATIN1 -t UTF-8 OLD > NEW.",
            code="file_encoding",
            file=file,
        ) from None


def json_of(file: str, kind: Any, wrong: str, repair: str) -> Any:
    """Decode a file as JSON of a type."""
    try:
        return msgspec.json.decode(text_of(file), type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise broken(file, None, f"{wrong} ({error})", repair) from None


def broken(file: str, line: int | None, wrong: str, repair: str) -> ReadError:
    """Make the error for a file that violates its format.

    Args:
        line: from 1; None if the format has no lines.
    """
    place = file if line is None else f"{file}, line {line:,}"
    return ReadError(f"{place}: {wrong}. {repair}", code="file_malformed", file=file, line=line)


def images_of(ids: Sequence[str]) -> pl.DataFrame:
    """A table of images without properties."""
    return pl.DataFrame({"datum_id": ids}, {"datum_id": pl.String})


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


# Rows of objects that are boxes, polygons or masks, as one table.

PIXELS = 1 << 29
"""Pixels of one mask at most."""
Point = list[float]
OBJECTS: dict[str, Any] = {
    "datum_id": pl.String,
    "label_value": pl.String,
    "score": pl.Float64,
    **dict.fromkeys(CORNER_NAMES, pl.Float64),
}
"""Schema of boxes."""
_MASK = pl.Struct({"size": pl.List(pl.Int64()), "counts": pl.List(pl.Int64())})


def box_row(xmin: float, ymin: float, xmax: float, ymax: float) -> dict[str, Any]:
    """Make a box from two corners in any order."""
    return {
        "xmin": min(xmin, xmax),
        "ymin": min(ymin, ymax),
        "xmax": max(xmin, xmax),
        "ymax": max(ymin, ymax),
    }


def polygon_row(ring: list[Point]) -> dict[str, Any]:
    """A polygon of one ring of three points or more, and the box around it."""
    xs, ys = zip(*ring, strict=True)
    return {**box_row(min(xs), min(ys), max(xs), max(ys)), "polygon": [ring]}


def turned_row(centre: Point, width: float, height: float, degrees: float) -> dict[str, Any]:
    """A box turned clockwise about its centre, as a polygon."""
    angle = np.deg2rad(degrees)
    cos, sin = float(np.cos(angle)), float(np.sin(angle))
    x, y = centre
    return polygon_row(
        [
            [x + cos * dx - sin * dy, y + sin * dx + cos * dy]
            for dx, dy in (
                (-width / 2, -height / 2),
                (width / 2, -height / 2),
                (width / 2, height / 2),
                (-width / 2, height / 2),
            )
        ]
    )


def mask_row(pixels: Array, left: int, top: int, width: int, height: int) -> dict[str, Any]:
    """Make a mask from part of an image, and the box around its pixels.

    Args:
        pixels: bool [h, w], of the part.
    """
    columns, rows = np.nonzero(pixels.T)  # runs go down the columns
    columns, rows = columns + left, rows + top
    inside = (columns >= 0) & (columns < width) & (rows >= 0) & (rows < height)
    columns, rows = columns[inside], rows[inside]
    if not rows.size:
        return {
            **box_row(0.0, 0.0, 0.0, 0.0),
            "mask": {"size": [height, width], "counts": [height * width]},
        }
    at = columns * height + rows
    last = np.flatnonzero(np.diff(at, append=-2) != 1)
    stops = at[last] + 1
    first = at[np.concatenate([[0], last[:-1] + 1])]
    counts = np.diff(np.stack([first, stops], axis=1).reshape(-1), prepend=0).tolist()
    if stops[-1] < height * width:
        counts.append(height * width - int(stops[-1]))
    box = box_row(
        float(columns.min()), float(rows.min()), float(columns.max() + 1), float(rows.max() + 1)
    )
    return {**box, "mask": {"size": [height, width], "counts": counts}}


def frame_of(rows: list[dict[str, Any]], more: Mapping[str, Any] | None = None) -> pl.DataFrame:
    """Build a table of rows without columns that no row has.

    If some objects are polygons, boxes become polygons of four corners, so that all have a shape.
    """
    if any("polygon" in row for row in rows):
        for row in rows:
            if "polygon" not in row and "mask" not in row:
                row["polygon"] = [corners_of(row)]
    schema = OBJECTS | {"polygon": RINGS, "mask": _MASK} | dict(more or {})
    required = ("datum_id", "label_value", *CORNER_NAMES)
    frame = pl.DataFrame(rows, schema=schema)
    return without_empty(frame, [name for name in frame.columns if name not in required])


def corners_of(box: Mapping[str, Any]) -> list[Point]:
    """The ring of a box."""
    xs, ys = (box["xmin"], box["xmax"]), (box["ymin"], box["ymax"])
    return [[xs[0], ys[0]], [xs[1], ys[0]], [xs[1], ys[1]], [xs[0], ys[1]]]


def without_empty(frame: pl.DataFrame, names: Iterable[str]) -> pl.DataFrame:
    """Drop those of some columns that have no values."""
    return frame.drop([name for name in names if frame[name].null_count() == frame.height])


def scored_or_not(frame: pl.DataFrame, look: Look) -> pl.DataFrame:
    """Drop an empty column ``score``."""
    n_unscored = frame["score"].null_count()
    if 0 < n_unscored < frame.height:
        wrong = f"{n_unscored:,} of {frame.height:,} lines have no score"
        raise broken(look.given, None, wrong, "Write it on every line, or on none.")
    return frame.drop("score") if n_unscored else frame


def skipped_note(skipped: Counter[str]) -> tuple[Note, ...]:
    """Note skipped objects that are neither boxes nor areas."""
    if not skipped:
        return ()
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in skipped.most_common())
    message = f"objects that are neither boxes nor areas are skipped: {kinds}."
    return (Note("objects_left_out", message, skipped.total()),)


# Text files with an object a line.

_LONGEST = 60
_WHOLE = 2.0**53  # below which floats represent whole numbers exactly


class Layout(msgspec.Struct, frozen=True):
    """Fields of the lines of a text file.

    Attributes:
        names: of the fields, in order.
        counts: possible numbers of fields of a line.
        expected: the fields, for messages.
        separator: a comma, or blanks of any length.
        texts: fields that are words; the others are finite numbers.
        whole: numbers without a fraction.
        ranges: lowest and highest values of numbers.
        headers: beginnings of lines before the first object, in lower case.
    """

    names: tuple[str, ...]
    counts: tuple[int, ...]
    expected: str
    separator: str = " "
    texts: frozenset[str] = frozenset()
    whole: frozenset[str] = frozenset()
    ranges: dict[str, tuple[float, float]] = {}
    headers: tuple[str, ...] = ()

    def lines(self, text: str) -> Iterator[tuple[int, list[str]]]:
        """Yield the number, from 1, and the fields of every object's line."""
        for number, line in enumerate(text.splitlines(), 1):
            fields = line.split()
            if fields and not (self.headers and fields[0].lower().startswith(self.headers)):
                if self.separator != " ":
                    fields = [*map(str.strip, line.strip().rstrip(",").split(self.separator))]
                yield number, fields

    def fault(self, fields: Sequence[str]) -> str:
        """Return the fault of a line; empty if it has these fields."""
        if len(fields) not in self.counts:
            return count_of(len(fields), "field")
        for name, field in zip(self.names, fields, strict=False):
            if name in self.texts:
                continue
            if not is_number(field):
                return f"{field!r} is not a number"
            low, high = self.ranges.get(name, (-math.inf, math.inf))
            if name in self.whole and not (
                float(field).is_integer() and abs(float(field)) < _WHOLE
            ):
                return f"{field!r} is not a whole number"
            if not low <= float(field) <= high:
                return f"{name} {field} is not from {low:g} to {high:g}"
        return ""

    def rows(self, file: str) -> pl.DataFrame:
        """Read a file, one column per field, null where a line ends before it."""
        text = text_of(file)
        table = self._table(text)
        if table is None:  # blanks around fields, blank lines or headers
            lines = (self.separator.join(fields) for _, fields in self.lines(text))
            table = self._table("\n".join(lines))
        if table is not None:
            return table
        for number, fields in self.lines(text):
            if why := self.fault(fields):
                raise broken(file, number, f"{why}: {quoted(fields)}", self.expected)
        raise broken(file, None, "lines that do not fit", self.expected)

    def _table(self, text: str) -> pl.DataFrame | None:
        """Parse lines with single separators; None if one has other fields."""
        schema = {name: pl.String if name in self.texts else pl.Float64 for name in self.names}
        if not text.strip():
            return pl.DataFrame(schema=schema)
        widest = self.separator.join("0" * len(self.names))  # Polars counts those of the first line
        try:
            table = pl.read_csv(
                f"{widest}\n{text}".encode(),
                has_header=False,
                separator=self.separator,
                quote_char=None,
                schema=schema,
            ).slice(1)
        except pl.exceptions.PolarsError:
            return None
        return table if self._fits(table) else None

    def _fits(self, table: pl.DataFrame) -> bool:
        """Return True if no line has a fault: :meth:`fault` of parsed lines, by arrays."""
        numbers = [name for name in self.names if name not in self.texts]
        missing = [column.null_count() for column in table]
        if {*missing} <= {0, len(table)}:  # one row of flags is that of all
            filled = np.equal([missing], 0)
        else:
            filled = np.column_stack([column.is_not_null().to_numpy() for column in table])
        values = table[numbers].to_numpy()  # NaN if missing
        expected = filled[:, [name in numbers for name in self.names]]
        integral = [name in self.whole for name in numbers]
        some = values[:, integral]
        broken_off = (filled[:, 1:] > filled[:, :-1]).any()
        fraction = (some != np.floor(some)) | (np.abs(some) >= _WHOLE)
        if broken_off or not np.isin(filled.sum(axis=1), self.counts).all():
            return False
        if (np.isfinite(values) != expected).any() or (fraction & expected[:, integral]).any():
            return False
        for name, (low, high) in self.ranges.items():
            i = numbers.index(name)
            if ((values[:, i] < low) | (values[:, i] > high)).any():
                return False
        return True

    def of_files(self, files: Sequence[str], ids: Sequence[str], datum: str) -> pl.DataFrame:
        """Read several files, with the datum of each in a first column."""
        return pl.concat(
            self.rows(file).select(pl.lit(one, pl.String).alias(datum), pl.all())
            for file, one in zip(files, ids, strict=True)
        )


def is_number(field: str | bytes) -> bool:
    """Return whether a field is a finite number."""
    try:
        number = float(field)
    except ValueError:
        return False
    underscore = "_" if isinstance(field, str) else b"_"
    return math.isfinite(number) and field.isascii() and underscore not in field  # type: ignore[operator]


def quoted(fields: Sequence[str]) -> str:
    """A line for a message, shortened."""
    text = " ".join(fields)
    return repr(text if len(text) <= _LONGEST else text[:_LONGEST] + "...")


# Width and height of image files, from their headers.
#
# JPEG and PNG are parsed here, as GDAL takes ten times as long to open them; other and unusual
# files use GDAL. JPEG: ITU-T T.81, annex B; orientation: Exif 2.32, tag 0x0112; PNG: W3C, section
# 5.

IMAGE_SUFFIXES = words(".jpg .jpeg .png .bmp .webp .tif .tiff .gif .jp2 .pgm .ppm")
_TURNED = (5, 6, 7, 8)  # orientations of EXIF in which width is height
_HEADER_BYTES = 4096  # bytes in which most headers end
_PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR"
_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}  # markers of an image's size
_EXIF = 0xE1
_ORIENTATION = 0x0112


def sizes_of(images: Mapping[str, str]) -> dict[str, tuple[int, int]]:
    """Return width and height of each readable image as displayed, in pixels."""
    sizes = {}
    for key, path in images.items():
        try:
            size = _size(path)
            if size is None:
                from ...geometry.rasters import opened  # rasterio takes a while to import

                with opened(path) as image:
                    turned = image.tags().get("EXIF_Orientation") in map(str, _TURNED)
                    size = (image.height, image.width) if turned else (image.width, image.height)
        except OSError:
            continue
        sizes[key] = size
    return sizes


def _size(path: str) -> tuple[int, int] | None:
    """Return the size of a plain JPEG or PNG; None for other files."""
    with open(path, "rb", buffering=_HEADER_BYTES) as file:
        head = file.read(24)
        try:
            if head.startswith(_PNG):
                width, height = struct.unpack(">II", head[16:])
                # An orientation, if any, comes before the pixels.
                return None if b"eXIf" in file.read(_HEADER_BYTES - len(head)) else (width, height)
            return _of_jpeg(file) if head.startswith(b"\xff\xd8\xff") else None
        except (struct.error, IndexError):  # cut off, or unknown
            return None


def _of_jpeg(file: BinaryIO) -> tuple[int, int] | None:
    """Skip segments up to the frame header; read an orientation on the way."""
    turned, at = False, 2
    while True:
        file.seek(at)
        mark, marker, length = struct.unpack(">BBH", file.read(4))
        if mark != 0xFF:
            return None
        if marker == 0xFF:  # a byte that fills
            at += 1
            continue
        if marker in _FRAMES:
            _, height, width = struct.unpack(">BHH", file.read(5))
            size = (height, width) if turned else (width, height)
            return size if height and width else None
        if marker == _EXIF:
            turned = _orientation(file.read(length - 2)) in _TURNED or turned
        at += 2 + length


def _orientation(exif: bytes) -> int:
    """The orientation of an Exif segment; 0 without one."""
    if not exif.startswith(b"Exif\0\0"):
        return 0
    tiff = exif[6:]
    order = "<" if tiff[:2] == b"II" else ">"
    (first,) = struct.unpack_from(f"{order}I", tiff, 4)
    (entries,) = struct.unpack_from(f"{order}H", tiff, first)
    for i in range(entries):
        tag, kind, _, value = struct.unpack_from(f"{order}HHIH", tiff, first + 2 + 12 * i)
        if tag == _ORIENTATION and kind == 3:
            return int(value)
    return 0


# XML, without external entities and other unsafe features.


class _Refused(Exception):
    """A document type, which may have entities."""


class _Builder(TreeBuilder):
    """A tree of a document without a document type."""

    def doctype(self, name: str, public: str | None, system: str | None) -> None:
        raise _Refused


def read_tree(file: str, root: str) -> Element:
    """Return the root of an XML file."""
    parser = XMLParser(target=_Builder())
    try:
        with plain(file) as opened:
            while block := opened.read(1 << 20):
                parser.feed(block)
        tree: Element = parser.close()
    except UNPACKED as error:
        raise unreadable(file, error) from None
    except ParseError as error:
        reason = str(error).partition(":")[0]
        raise broken(file, error.position[0], f"broken XML ({reason})", "Write it again.") from None
    except (LookupError, ValueError) as error:  # an encoding that does not exist, or does not fit
        raise broken(file, None, f"broken XML ({error})", "Save it as UTF-8.") from None
    except _Refused:
        raise broken(
            file, None, "XML with a document type (<!DOCTYPE>), which is not read", "Take it out."
        ) from None
    if tree.tag != root:
        raise broken(file, None, f"its root is <{tree.tag}>, not <{root}>", "Give one format.")
    return tree


def text_in(element: Element, name: str) -> str | None:
    """The text of the first child of a name, without blanks around; None without any."""
    text = element.findtext(name)
    return (text.strip() or None) if text is not None else None


def number_of(element: Element, name: str, file: str) -> float | None:
    """Return the number in the first child of a name; None without that child."""
    text = text_in(element, name)
    return None if text is None else number(text, f"<{name}>", file)


def number(text: str, called: str, file: str) -> float:
    """Parse a finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise broken(file, None, f"{called} is {text!r}, which is not a number", "Correct it.")
    return value


_LARGEST = 1 << 53


def whole(text: str, called: str, file: str) -> int:
    """Parse a whole number; decimals are truncated."""
    value = number(text, called, file)
    if abs(value) > _LARGEST:
        raise broken(file, None, f"{called} is {text!r}, which is too large", "Correct it.")
    return int(value)
