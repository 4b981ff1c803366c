"""Paths and globs, CSV, partitions, and files as one lazy table."""

from __future__ import annotations

import atexit
import csv
import difflib
import glob
import gzip
import io
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote

import polars as pl

from ...schemas.errors import ReadError
from ...schemas.tables import TABLES
from ...schemas.wording import option
from ..files import LONG, MemorySize, by_extension, files_below
from ..label_map_files import LISTED, MAPS
from ..problems import Note, count_of, listing, note_of

# CSV and TSV: separator by extension or header, and ids with leading zeros stay strings.

_AGAIN = re.compile(r"_duplicated_\d+$")  # how Polars names another column of one name
_INTEGER = r"^-?\d+$"
_ZEROS = r"^-?0\d"
_FLOAT = r"^[-+]?((\d*\.\d+)([eE][-+]?\d+)?|inf|NaN|\d+[eE][-+]?\d+|\d+\.)$"
_SEPARATOR = re.compile(r'\ufeff?"?sep=([,\t;|])"?\s*$', re.I)
"""A first line that names the separator, as Excel writes it."""
_TRUTH = r"(?i)^(true|false)$"
_WHOLE, _NAME, _NUMBER, _BOOL, _TEXT = 1, 2, 4, 8, 16
"""Kinds of values as bits; the kinds of a column are their sum."""
_LONG = 18  # digits that every integer of 64 bits has room for
_LONGEST_QUOTE = 40  # characters of a line
_LOOKED_AT = 65_536  # characters after the first line
_COMPARED = 20  # rows that tell the separator if the header has several candidates
_SEPARATORS = ",\t;|"


def scan_csv(
    paths: list[str],
    storage_options: dict[str, str] | None = None,
    *,
    remote: bool = False,
    path: str | None = None,
    sizes: dict[str, MemorySize] | None = None,
    notes: list[Note] | None = None,
) -> pl.LazyFrame:
    """Scan CSV files as a lazy table.

    Types are inferred from all rows, not the first hundred, with the rules of Polars. Rows are read
    in batches, so that large or highly compressed files are not loaded at once. A column of whole
    numbers with leading zeros (``007``), or with integers too large for any type, stays a string.
    Blank lines are skipped, and so is a first line ``sep=;``, as Excel writes it.

    Args:
        sizes: receives the sizes of columns of long texts.
        notes: receives the note on blank lines.

    Raises:
        ReadError: lines are comments, or a name is twice in the header.
    """
    before_header = 0 if remote else _lines_before_header(paths)

    def scan(dtypes: dict[str, pl.DataType], path: str | None = None) -> pl.LazyFrame:
        return pl.scan_csv(
            paths,
            separator="," if remote else separator(paths[0]),
            skip_rows=before_header,
            infer_schema=False,
            schema_overrides=dtypes,
            storage_options=storage_options,
            glob=remote,
            include_file_paths=path,
        )

    def file_of(row: pl.Expr) -> str:
        first = scan({}, "file of a row").filter(row).select("file of a row").head(1)
        return str(first.collect(engine="streaming").item())

    dtypes, blank, full = _dtypes(scan({}), paths[0], file_of, sizes)
    frame = scan(dtypes, path)
    if not blank or (len(dtypes) == 2 and not remote and _has_unquoted_separators(paths)):
        return frame
    if notes is not None:
        what = f"{os.path.basename(paths[0])}: " if len(paths) == 1 else ""
        words = ("blank line", "blank lines", "skipped")
        notes.append(note_of("blank_lines", blank, words, before=what))
    return frame.filter(pl.any_horizontal(pl.col(*full).is_not_null()))


def _lines_before_header(paths: list[str]) -> int:
    """Return 1 if the first line of all files names the separator, otherwise 0.

    Raises:
        ReadError: a first line is a comment, only some name the separator, or separators differ.
    """
    naming: dict[bool, str] = {}
    first: dict[str, str] = {}
    for path in paths:
        line, following = _first_lines(path)
        naming.setdefault(_SEPARATOR.match(line) is not None, path)
        mark = _separator(path, line, following)
        first.setdefault(mark, path)
        if line[:1] != "#":
            continue
        separators = mark if mark in line else _SEPARATORS
        fields = max(
            len(
                next(
                    (
                        row
                        for row in csv.reader([*following.splitlines(True)], delimiter=one)
                        if row
                    ),
                    [],
                )
            )
            for one in separators
        )
        if following.lstrip()[:1] == "#" or fields > len(next(csv.reader([line], delimiter=mark))):
            raise _comments(path, f"line 1 is a comment ({line.strip()[:_LONGEST_QUOTE]!r})")
    if len(naming) > 1:
        raise ReadError(
            f"{naming[True]}: line 1 names the separator, and that of {naming[False]} is the"
            " header. Remove such lines, or write them in all files.",
            code="files_differ",
            file=naming[True],
        )
    if len(first) > 1:
        (one, a), (two, b), *_ = first.items()
        raise ReadError(
            f"{b}: fields are separated by {two!r}, and those of {a} by {one!r}. Write all files"
            " with the same separator.",
            code="files_differ",
            file=b,
        )
    return int(True in naming)


def _comments(path: str, syntax: str) -> ReadError:
    return ReadError(
        f"{path}: {syntax}, which CSV does not have. Remove such lines, e.g. grep -v '^#' OLD > NEW"
        ", or give the table that polars.read_csv(..., comment_prefix='#') returns.",
        code="comment_lines",
        file=path,
    )


def _has_unquoted_separators(paths: list[str]) -> bool:
    """Return whether a line of files of two columns consists of two empty cells."""
    lines = pl.scan_csv(
        paths, separator="\x1f", quote_char=None, has_header=False, infer_schema=False, glob=False
    )
    cell = pl.nth(0).str.strip_chars() == separator(paths[0])
    return bool(lines.select(cell.any()).collect(engine="streaming").item())


def _dtypes(
    texts: pl.LazyFrame,
    path: str,
    file_of: Callable[[pl.Expr], str],
    sizes: dict[str, MemorySize] | None = None,
) -> tuple[dict[str, pl.DataType], int, list[str]]:
    """Infer the type of every column from all of its values, and count blank lines.

    Args:
        texts: the table, all columns strings; nulls are ignored.
        path: the first file.
        file_of: returns the file of the first row that satisfies a condition.

    Returns:
        Types; number of rows without any value; columns of which one has a value in other rows.
    """
    names = texts.collect_schema().names()
    if any("\r" in name.replace("\r\n", "") for name in names):  # those of quoted names are fine
        raise ReadError(
            f"{path}: lines end with a carriage return without a line feed. Write line feeds, e.g."
            r" tr '\r' '\n' < OLD > NEW.",
            code="file_malformed",
            file=path,
        )
    twice = [
        name[: match.start()]
        for name in names
        if (match := _AGAIN.search(name)) and name[: match.start()] in names
    ]
    if any(twice):  # unnamed columns, as of commas at the line's end, are none
        named = ", ".join(map(repr, dict.fromkeys(filter(None, twice))))
        raise ReadError(
            f"{path}: the header names {named} more than once. Rename the columns, so that it"
            " is clear which is meant. If line 1 is data, add a line with names.",
            code="column_twice",
            columns=sorted({*filter(None, twice)}),
        )
    exprs = [pl.col(name) for name in names]
    row_counts: list[pl.Expr] = []
    if len(names) > 1:  # a blank line of a single column is a missing value
        rest_null = pl.all_horizontal(column.is_null() for column in exprs[1:])
        marked = exprs[0].str.starts_with("#")
        prose = marked & exprs[0].str.contains(r"\s")  # unlike the id #12
        header = pl.all_horizontal(pl.col(name) == name for name in names)
        rows = (exprs[0].is_null() & rest_null, prose & rest_null, marked & ~rest_null, header)
        row_counts = [row.sum().alias(f"rows {i}") for i, row in enumerate(rows)]
        row_counts += [column.null_count().alias(f"nulls {i}") for i, column in enumerate(exprs)]
    seen = texts.select(
        *(_kind(column).bitwise_or().alias(f"kind {i}") for i, column in enumerate(exprs)),
        *(column.str.len_bytes().max().alias(f"length {i}") for i, column in enumerate(exprs)),
        *row_counts,
    )
    row = seen.collect(engine="streaming").row(0) if names else ()
    kinds, lengths = row[: len(names)], row[len(names) : 2 * len(names)]
    blank, comments, other, headers, *nulls = row[2 * len(names) :] or (0, 0, 0, 0)
    if headers:
        path = file_of(header)
        raise ReadError(
            f"{path}: {count_of(headers, 'row repeats', 'rows repeat')} the header, as in files"
            " that were joined. Remove such rows, e.g. awk 'NR == 1 {h = $0} NR == 1 || $0 != h'"
            " OLD > NEW, or give the files that were joined.",
            code="header_repeated",
            count=headers,
            file=path,
        )
    if comments and not other:
        raise _comments(
            file_of(prose & rest_null),
            f"{count_of(comments, 'line is a comment', 'lines are comments')} (#)",
        )
    if sizes is not None:
        long_texts = ((name, n) for name, n in zip(names, lengths, strict=True) if n and n > LONG)
        sizes.update((name, MemorySize(cell=n, least=n)) for name, n in long_texts)
    dtypes = {name: _dtype(kind or 0) for name, kind in zip(names, kinds, strict=True)}
    of_both = [
        name
        for name, kind in zip(names, kinds, strict=True)
        if dtypes[name] == pl.Float64 and kind & _NAME
    ]
    if of_both:  # leading zeros next to fractions are no names; next to 1.0 they are
        fractions = pl.col(of_both).cast(pl.Float64, strict=False) % 1 != 0
        has_some = texts.select(fractions.any()).collect(engine="streaming").row(0)
        dtypes |= {n: pl.String() for n, some in zip(of_both, has_some, strict=True) if not some}
    long = [
        name
        for name, length in zip(names, lengths, strict=True)
        if dtypes[name] == pl.Int64 and length > _LONG
    ]
    # One column that is null only in blank lines shows them without reading the others.
    full = [name for name, n in zip(names, nulls, strict=False) if n == blank][:1] or names
    return dtypes | (_long_integers(texts, long) if long else {}), blank, full


def _kind(column: pl.Expr) -> pl.Expr:
    """Return the kind of each text, uint8; 0 for nulls."""
    text = column.str
    return (
        pl.when(text.contains(_INTEGER))
        .then(pl.when(text.contains(_ZEROS)).then(_NAME).otherwise(_WHOLE))
        .when(text.contains(_FLOAT))
        .then(_NUMBER)
        .when(text.contains(_TRUTH))
        .then(_BOOL)
        .when(column.is_not_null())
        .then(_TEXT)
        .otherwise(0)
        .cast(pl.UInt8)
    )


def _dtype(kinds: int) -> pl.DataType:
    """The type of a column whose values are of these kinds."""
    if kinds == _WHOLE:
        return pl.Int64()
    if kinds & _NUMBER and not kinds & (_BOOL | _TEXT):
        return pl.Float64()
    return pl.Boolean() if kinds == _BOOL else pl.String()


def _long_integers(texts: pl.LazyFrame, names: list[str]) -> dict[str, pl.DataType]:
    """Return the narrowest integer type for columns of many digits.

    Integers too large for any type stay strings.
    """
    dtypes: tuple[pl.DataType, ...] = (pl.Int64(), pl.UInt64(), pl.Int128())
    fits = texts.select(
        (pl.col(name).is_null() | pl.col(name).cast(dtype, strict=False).is_not_null())
        .all()
        .alias(f"{i} {dtype}")
        for i, name in enumerate(names)
        for dtype in dtypes
    )
    row = iter(fits.collect(engine="streaming").row(0))
    return {
        name: next((dtype for dtype, fit in fits_of if fit), pl.String())
        for name in names
        for fits_of in ([(dtype, next(row)) for dtype in dtypes],)
    }


def separator(path: str) -> str:
    """Return the separator of a CSV file: that of its line ``sep=``, or the header's."""
    return _separator(path, *_first_lines(path))


def _first_lines(path: str) -> tuple[str, str]:
    """Return the first line of a CSV file, and the text behind it if that is looked at."""
    with _open_text(path) as file:
        line = file.readline().removeprefix("\ufeff")
        looked_at = line[:1] == "#" or sum(mark in line for mark in _SEPARATORS) > 1
        text = file.read(_LOOKED_AT) if looked_at else ""
        return line, text[: text.rfind("\n") + 1] if len(text) == _LOOKED_AT else text


def _separator(path: str, header: str, following: str) -> str:
    """Return the separator.

    Of several marks in the header, it is the first that gives the next rows as many fields as the
    header, the most frequent one first.
    """
    if named := _SEPARATOR.match(header):
        return named[1]
    if not {".tsv", ".tab"}.isdisjoint(suffix.lower() for suffix in Path(path).suffixes):
        return "\t"
    separators = sorted(_SEPARATORS, key=header.count, reverse=True)
    candidates = [mark for mark in separators if mark in header and following]
    rows = [header, *following.split("\n", _COMPARED)[:_COMPARED]]
    for mark in candidates:
        with suppress(csv.Error):  # a field above the reader's limit
            lengths = {len(row) for row in csv.reader(rows, delimiter=mark) if row}
            if len(lengths) == 1:
                return mark
    return separators[0]


def _open_text(path: str) -> IO[str]:
    """Open a text file, compressed or not."""
    with open(path, "rb") as plain:
        start = plain.read(4)
    if start[:2] == b"\x1f\x8b":
        return gzip.open(path, "rt", encoding="utf-8", errors="replace", newline="")
    if start == b"\x28\xb5\x2f\xfd":
        import pyarrow as pa  # only here

        packed = pa.input_stream(path, compression="zstd")
        return io.TextIOWrapper(packed, encoding="utf-8", errors="replace", newline="")
    return open(path, encoding="utf-8", errors="replace", newline="")


# Hive-partitioned columns, stored only in paths: ``year=2024/month=1/part.parquet``.

PATH = "__evalengine_path"
"""Helper column of a scan: the file of each row, as given."""

_PARTITIONS_WHOLE = re.compile(r"[+-]?\d{1,18}")
_NULL = "__HIVE_DEFAULT_PARTITION__"


def partitions_of(files: Sequence[str], description: str) -> dict[str, pl.DataType]:
    """Return the partition columns of files, and their dtypes: Int64, or String."""
    parts = [_values(file) for file in files]
    first = next((i for i, values in enumerate(parts) if values), None)
    if first is None:
        return {}
    odd = next((i for i, values in enumerate(parts) if [*values] != [*parts[first]]), None)
    if odd is not None:
        others = ", ".join(parts[odd]) or "none"
        raise ReadError(
            f"{description}: {files[first]} is in partitions ({', '.join(parts[first])}), and "
            f"{files[odd]} in others ({others}). Give the files of one table, whose folders name "
            "the same columns.",
            code="partitions_differ",
            files=[files[first], files[odd]],
        )
    result: dict[str, pl.DataType] = {}
    for name in parts[first]:
        filled = [value for values in parts if (value := values[name]) is not None]
        integral = bool(filled) and all(map(_PARTITIONS_WHOLE.fullmatch, filled))
        result[name] = pl.Int64() if integral else pl.String()
    return result


def with_partitions(
    frame: pl.LazyFrame, files: Sequence[str], partitions: dict[str, pl.DataType]
) -> pl.LazyFrame:
    """Replace the path column of a scan by its partition columns.

    Args:
        partitions: columns to their dtypes; a column in the files takes precedence.
    """
    schema = frame.collect_schema()
    parts = [_values(file) for file in files]
    exprs = [
        pl.col(PATH)
        .replace_strict(list(files), [values[name] for values in parts], return_dtype=pl.String)
        .cast(dtype)
        .alias(name)
        for name, dtype in partitions.items()
        if name not in schema
    ]
    return frame.with_columns(exprs).drop(PATH)


def _values(file: str) -> dict[str, str | None]:
    result: dict[str, str | None] = {}
    for folder in os.path.dirname(file).split(os.sep):
        name, sign, value = folder.partition("=")
        if sign and name:
            result[unquote(name)] = None if value == _NULL else unquote(value)
    return result


# Unsupported formats of other tools, by name, with alternatives.

_BOXES = "a table of datum_id, label_value, xmin, ymin, xmax, ymax (and score), or COCO JSON"
_TEXTS = "a table of datum_id and text"
_SAMPLES = "a table with a row per sample, an id, and a column per metric, to be scored with"
_SAMPLES += f" {option('task', 'values')}"
_READABLE = (
    (
        "GeoJSON",
        rb'^\{[^{}]{0,200}?"type"\s*:\s*"(FeatureCollection|Feature)"',
        "a table of datum_id, label_value and polygon (WKT or GeoJSON texts; GeoPandas: to_wkt())",
    ),
    (
        "VGG Image Annotator's JSON",
        rb'^\{\s*"(_via_\w+"\s*:|[^"]+"\s*:\s*\{\s*("fileref"\s*:|"filename"\s*:\s*"[^"]*",\s*"size"\s*:))',
        _BOXES,
    ),
    ("VGG Image Annotator's CSV", rb"^[^\n]*\bregion_shape_attributes\b", _BOXES),
    (
        "MegaDetector's JSON",
        rb'^\{.*("(detection_categories|max_detection_conf)"\s*:|"detections"\s*:\s*\[\s*\{\s*"category")',
        _BOXES,
    ),
    ("odgt (CrowdHuman)", rb'^\{.*"(gtboxes|dtboxes)"\s*:\s*\[', _BOXES),
    (
        "a log of Inspect",
        rb'^\{\s*"version"\s*:\s*\d+,\s*"status"\s*:\s*"\w+",\s*"eval"\s*:\s*\{',
        f"{_SAMPLES} (inspect_ai.analysis.samples_df writes one)",
    ),
    ("a test run of deepeval", rb'^\{[^{}\[\]]*"testCases"\s*:\s*\[', _SAMPLES),
    ("results of promptfoo", rb'^\{\s*"evalId"\s*:[^{}]*"results"\s*:\s*\{', _SAMPLES),
    (
        "run-length codes of a competition",
        rb"^[^\n]*\bEncodedPixels\b[^\n]*[\r\n]",
        "a table of datum_id, label_value and mask (COCO's run lengths)",
    ),
    ("a competition's PredictionString", rb"^[^\n]*\bPredictionString\b", _BOXES),
    (
        "hubverse model output",
        rb"^[^\n]*\boutput_type_id\b",
        "a table with a row per forecast: series, time, target, a column per quantile (q0.1, ...)",
    ),
    (
        "a spreadsheet",
        rb"^(PK\x03\x04.{26,}?(\[Content_Types\]\.xml|_rels/|xl/|docProps/|mimetypeapplication/vnd\.oasis)"
        rb"|\xd0\xcf\x11\xe0)",  # of Excel until 2003
        "the sheet as CSV (UTF-8) or Parquet",
    ),
    ("a pointer of Git LFS", rb"^version https://git-lfs", "the file itself: git lfs pull"),
    (
        "UTF-16 text",
        rb"^(\xff\xfe|\xfe\xff|[^\0]\0[^\0]\0|\0[^\0]\0[^\0])",
        "the same as UTF-8 (Excel: CSV UTF-8; iconv -f UTF-16 -t UTF-8)",
    ),
)
"""Name, first bytes, and alternative."""
_NAMED = {
    ".trn": ("trn transcripts", _TEXTS),
    ".ctm": ("ctm transcripts", _TEXTS),
    ".stm": ("stm transcripts", _TEXTS),
    ".conll": ("CoNLL", "a table with a list of tags per sentence"),
    ".conllu": ("CoNLL-U", "a table with a list of tags per sentence"),
}
"""Suffixes of formats without marks in their content."""
_SENTENCE = re.compile(r"[^\W\d_][^\s,]* [^\W\d_][^\s,]* [^\W\d_]")
_SEPARATED = re.compile(r"[\t;|]|,\S")


def _sentences(head: bytes) -> bool:
    """Return whether at least half of the first lines have three words in a row and no columns."""
    lines = head.decode(errors="replace").splitlines()[:10]
    matches = [bool(_SENTENCE.search(line)) for line in lines if not _SEPARATED.search(line)]
    return 2 * sum(matches) >= len(lines) > 0 and len(matches) == len(lines)


def foreign(head: bytes, name: str = "") -> str | None:
    """Return the name of an unsupported format, and the alternative; None for others."""
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if start[:1] == b"<":
        return (
            "is XML, and neither an annotation of Pascal VOC (<annotation>) nor of CVAT"
            " (<annotations> with images or tracks). Bring one of these, or a table."
        )
    formats = [(title, way) for title, mark, way in _READABLE if re.match(mark, start, re.DOTALL)]
    formats += [named for end, named in _NAMED.items() if name.lower().endswith(end)]
    if name.lower().endswith(".txt") and _sentences(start):
        return f"has lines of text and no columns. Bring {_TEXTS}."
    return f"is {formats[0][0]}, which is not read. Bring {formats[0][1]}." if formats else None


# Expansion of paths and globs to files, with suggestions for missing ones.

_REMOTE = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+://")
_MASKS = "SegmentationClass"  # of Pascal VOC's layout: one of several folders of PNGs
_WILD = re.compile(r"[*?\[]")


def is_remote(path: str) -> bool:
    """Return whether a path is that of an object store or server, such as ``s3://``."""
    return bool(_REMOTE.match(path)) and not path.startswith("file://")


def looks_wild(paths: Sequence[str]) -> bool:
    return any(_WILD.search(path) for path in paths)


def is_stream(path: str) -> bool:
    """Return whether a path can be read only once: standard input, or a shell's ``<(...)``."""
    mode = os.stat(path).st_mode if os.path.exists(path) else 0
    return path == "-" or stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISSOCK(mode)


def expand(path: str) -> list[str]:
    """Return the local files of a path, folder or glob, sorted by name."""
    path = os.path.expanduser(path.removeprefix("file://"))
    if is_stream(path):
        return [_copy_of_stream(path)]
    if os.path.isfile(path):
        return [path]
    if os.path.isdir(path):
        return _in_folder(path)
    if not _WILD.search(path):
        raise ReadError(
            f"{path}: no such file.{_similar_paths(path)}", code="file_missing", file=str(path)
        )
    result = sorted(name for name in glob.glob(path, recursive=True) if os.path.isfile(name))
    if not result:
        raise ReadError(
            f"{path}: no file matches.{_similar_paths(path)}", code="file_missing", file=path
        )
    return result


def _copy_of_stream(path: str) -> str:
    """Copy a stream, which can be read only once, to a temporary file."""
    folder = tempfile.mkdtemp(prefix="evalengine-stream-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    name = os.path.join(folder, "stdin" if path == "-" else os.path.basename(path))
    stream = sys.stdin.buffer if path == "-" else open(path, "rb")  # noqa: SIM115
    try:
        with open(name, "wb") as file:
            shutil.copyfileobj(stream, file)
    except OSError as error:
        raise ReadError(f"{path}: cannot be read: {error.strerror or error}.") from None
    finally:
        if path != "-":
            stream.close()
    if not os.path.getsize(name):
        raise ReadError(f"{path}: it is empty.")
    return name


def _in_folder(path: str) -> list[str]:
    """Return the readable files of a folder; if there are none, those of its subfolders."""
    entries = [entry for entry in os.scandir(path) if not entry.name.startswith((".", "_"))]
    files = sorted(entry.path for entry in entries if entry.is_file())
    readable = _of_one_kind(files)
    hive = sorted(entry.name for entry in entries if entry.is_dir() and "=" in entry.name)
    if readable and hive:
        raise ReadError(
            f"{path}: the folder contains both files ({os.path.basename(readable[0])!r}, ...) "
            f"and partitions ({hive[0]!r}, ...). Name one of them: "
            f"{os.path.join(path, '*' + os.path.splitext(readable[0])[1])!r} or "
            f"{os.path.join(path, '*=*', '**', '*.parquet')!r}.",
            code="partitions_differ",
        )
    folders = any(entry.is_dir() for entry in entries)
    if not readable or (folders and not any(map(_may_be_table, readable))):
        below = _of_one_kind(list(files_below(path, _HIDDEN)))
        if not readable or all(by_extension(name) == "raster" for name in below):
            readable = below
    kinds = {by_extension(name) for name in readable}
    if len(kinds) == 1:
        return readable
    if not readable:
        fault = _foreign(files)
        jpegs = [name for name in files if name.lower().endswith((".jpg", ".jpeg"))]
        if fault is None and jpegs:
            fault = (
                f"{path}: the folder contains JPEG files ({os.path.basename(jpegs[0])!r}, ...)."
                " They lose values of pixels: label maps are written as PNG or TIFF."
            )
        fault = (
            fault or f"{path}: the folder contains no readable file.{_similar_paths(path + os.sep)}"
        )
        raise ReadError(fault, code="format_unknown", file=path)
    some = ", ".join(repr(os.path.relpath(name, path)) for name in readable[:5])
    raise ReadError(
        f"{path}: the folder contains several formats ({some}); name the files, e.g. "
        f"{os.path.join(path, '*.parquet')!r}.",
        code="formats_differ",
        files=readable,
    )


def _of_one_kind(files: Sequence[str]) -> list[str]:
    """Return the tables among files, or the label maps if there is no table."""
    readable = [name for name in files if by_extension(name) and os.path.basename(name) != LISTED]
    for end in MAPS:  # other files of a data set are neither tables nor maps
        maps = [name for name in readable if os.path.splitext(name)[0].endswith(end)]
        if maps:
            return maps
    maps = [name for name in readable if os.path.basename(os.path.dirname(name)) == _MASKS]
    if maps:
        return maps
    tables = [name for name in readable if by_extension(name) != "raster"]
    maps = [name for name in readable if by_extension(name) == "raster"]
    if tables and len(maps) >= len(tables) and not any(map(_may_be_table, tables)):
        return maps
    return tables or readable  # a chart next to tables is not a label map


def _may_be_table(file: str) -> bool:
    """Return whether a file next to label maps may be a table, unlike a text or metadata.

    Tables have several columns, or a column of a known name.
    """
    format_ = by_extension(file)
    if format_ not in ("csv", "json", "ndjson"):
        return True
    with _open_text(file) as lines:
        head = lines.readline(_LOOKED_AT) if format_ == "csv" else lines.read(_LOOKED_AT)
    names = [name.strip().casefold() for name in re.split(r'[,\t;|"]', head)]
    if len(head) == _LOOKED_AT or (format_ == "csv" and len([*filter(None, names)]) > 1):
        return True
    columns = [column for table in TABLES for column in table.columns]
    return any(not {column.name, *column.aliases}.isdisjoint(names) for column in columns)


def note_unread(files: Sequence[str]) -> list[Note]:
    """Note tables in folders of label maps, and JPEG files numbered like maps, that are not read.

    Files with the name of a map are not noted, nor JPEG files if one has such a name: they are the
    images.

    Args:
        files: label maps. Data sets with several files per image get no note.
    """
    stems = {os.path.splitext(file)[0] for file in files}
    folders = sorted({*map(os.path.dirname, files)})
    if any(stem.endswith(MAPS) for stem in stems) or _MASKS in map(os.path.basename, folders):
        return []
    unread, jpegs = [], []
    for folder in folders:
        for name in sorted(os.listdir(folder)):
            stem, end = os.path.splitext(name)
            if not name.startswith(_HIDDEN) and end.lower() in (".jpg", ".jpeg"):
                jpegs.append(name)
            elif name.startswith(_HIDDEN) or name == LISTED or not by_extension(name):
                continue
            elif os.path.join(folder, stem) not in stems:
                unread.append(name)
    if jpegs:
        names = {*map(os.path.basename, stems)}
        numbered = {re.sub(r"\d+", "0", name) for name in names}
        by_stem = {os.path.splitext(name)[0]: name for name in jpegs}
        if names.isdisjoint(by_stem):
            like_maps = [stem for stem in by_stem if re.sub(r"\d+", "0", stem) in numbered]
            unread = sorted(unread + [by_stem[stem] for stem in like_maps])
    if not unread:
        return []
    are = "is" if len(unread) == 1 else "are"
    message = (
        f"{count_of(len(unread), 'file')} next to label maps {are} not read: {listing(unread)}."
    )
    return [Note("files_unread", message, len(unread), facts={"files": unread[:5]})]


_HIDDEN = (".", "_")
"""Prefixes of names that are no data, such as bookkeeping."""


def _foreign(files: Sequence[str]) -> str | None:
    """Describe the first XML file of a folder if another tool's format is recognised."""
    for name in files:
        if name.lower().endswith(".xml"):
            with open(name, "rb") as file:
                other = foreign(file.read(4096))
            return f"{name}: {other}" if other else None
    return None


def _similar_paths(path: str) -> str:
    """Return a sentence on existing names similar to a missing path."""
    folder, name = os.path.split(path)
    while _WILD.search(folder) or (folder and not os.path.exists(folder)):
        folder, name = os.path.split(folder)
    if not os.path.isdir(folder or "."):
        return ""
    names = sorted(one for one in os.listdir(folder or ".") if one[0] != "." or name[:1] == ".")
    where = f"the folder {folder!r}" if folder else "the working folder"
    if not names:
        return f" {where[0].upper()}{where[1:]} is empty."
    similar = difflib.get_close_matches(name, names, n=3, cutoff=0.5) or names[:5]
    more = ", ..." if len(names) > len(similar) else ""
    return f" In {where} there are: {', '.join(repr(entry) for entry in similar)}{more}."


# Files of one format as one lazy table.


def scan(
    files: Sequence[str],
    format_: str,
    storage_options: dict[str, str] | None = None,
    *,
    remote: bool = False,
    partitions: dict[str, pl.DataType] | None = None,
    sizes: dict[str, MemorySize] | None = None,
    notes: list[Note] | None = None,
) -> pl.LazyFrame:
    """Scan files of one format as one lazy table, in the order given.

    Args:
        sizes: receives the sizes of columns of long texts.
        notes: receives notes on lines that are skipped.
    """
    path = PATH if partitions else None
    if format_ == "csv":
        frame = scan_csv(
            [*files], storage_options, remote=remote, path=path, sizes=sizes, notes=notes
        )
    else:
        frame = _scan([*files], format_, storage_options, remote=remote, path=path)
    return with_partitions(frame, files, partitions) if partitions else frame


def _scan(
    paths: list[str],
    format_: str,
    storage_options: dict[str, str] | None,
    *,
    remote: bool,
    path: str | None,
) -> pl.LazyFrame:
    if format_ == "parquet":
        return pl.scan_parquet(
            paths,
            glob=remote,
            storage_options=storage_options,
            include_file_paths=path,
            hive_partitioning=remote and any("=" in one or "**" in one for one in paths),
        )
    if format_ == "ipc":
        # Older Polars has no such option; it is needed only for names that look like patterns.
        literal: dict[str, Any] = {} if remote or not looks_wild(paths) else {"glob": False}
        return pl.scan_ipc(
            paths, storage_options=storage_options, include_file_paths=path, **literal
        )
    if format_ == "ipc_stream":
        streams = [pl.read_ipc_stream(one) for one in paths]
        if path is not None:
            pairs = zip(paths, streams, strict=True)
            streams = [stream.with_columns(pl.lit(one).alias(path)) for one, stream in pairs]
        return pl.concat([stream.lazy() for stream in streams])
    assert format_ == "ndjson", format_  # others have separate readers
    from .json_rows import scan_lines

    return scan_lines(paths, storage_options, path, remote=remote)
