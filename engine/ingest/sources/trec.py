"""TREC runs and qrels, and those of BEIR and MS MARCO, to canonical columns.

Ids are always strings: ``007`` and ``7`` are two documents. Scores and relevance are Float64.
"""

from __future__ import annotations

import gzip
import itertools
import re
import zlib
from pathlib import Path

import polars as pl

from evalengine.schemas.errors import ReadError

from .source import Source
from .trec_layouts import COMMENT, RUN, Field, Layout, layout_of, without_more

_DTYPES = {"text": pl.String, "whole": pl.Int64, "place": pl.Int64, "number": pl.Float64}
_BLANKS = bytes.maketrans(b"\t\r\v\f", b"    ")
_COMMENTS = re.compile(rb"(?:\A(?:\xef\xbb\xbf)?|(?<=\n))#[^\n]*")
_MORE = re.compile(rb"^((?:[^ \n]+ ){3}(?:[+-]?\d+|-) [^ \n]+ [^ \n]+) [^\n]*$", re.MULTILINE)
"""A line of a run with fields behind its tag, blanks single."""
_HEAD = 1 << 16
_SHOWN = 3


def open_trec(files: list[str], description: str) -> Source:
    """Open runs or qrels as one source; read immediately, so that errors name the line.

    Columns: ``query_id``, ``doc_id`` (String) and, depending on the layout, ``rank`` (Int64),
    ``score`` (Float64), ``run_id`` (String) or ``relevance`` (Float64). Ranks that are not whole
    numbers are dropped with a note if there are scores, which define the order. The run's tag in
    the first line is also a fact of the source. Lines that begin with ``#`` and fields after the
    tag are ignored, with a note if they look like rows.

    Args:
        files: local files of one layout, plain or gzip-compressed, in row order.

    Raises:
        ReadError: a line that does not fit its layout, or files of several layouts.
    """
    first: Layout | None = None
    pieces = []
    notes: list[tuple[str, str, int | None]] = []
    for file in files:
        data = _bytes(file)
        layout = _layout(file, data[:_HEAD])
        if first is not None and layout.columns != first.columns:
            raise ReadError(
                f"{description}: files of several layouts: {files[0]} is a {first.name}, {file} a"
                f" {layout.name}. Give files of one layout."
            )
        first = first or layout
        piece, told = _rows(file, data, layout)
        pieces.append(piece)
        notes += told
    unplaced = sum("rank" not in piece.columns for piece in pieces)
    if first is not None and "rank" in first.columns and unplaced:
        pieces = [piece.drop("rank", strict=False) for piece in pieces]
        notes.append(
            ("ranks_not_read", f"{description}: ranks that are not whole numbers are not read; the"
             " scores decide the order.", unplaced)
        )  # fmt: skip
    frame = pieces[0] if len(pieces) == 1 else pl.concat(pieces)
    facts = {}
    if "run_id" in frame.columns and frame.height:
        facts["run_id"] = str(frame["run_id"][0])
    return Source(frame.lazy(), description, "trec", tuple(files), notes=tuple(notes), facts=facts)


def _bytes(file: str) -> bytes:
    """Return the file's bytes, decompressed if gzipped."""
    try:
        data = Path(file).read_bytes()
        return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    except (OSError, EOFError, zlib.error) as error:
        raise ReadError(f"{file}: cannot be read: {error}. Write or copy it again.") from None


def _layout(file: str, head: bytes) -> Layout:
    layout = layout_of(head, named=True)
    if layout is None:
        line = next((line for line in head.decode("utf-8", "replace").splitlines() if line), "")
        raise ReadError(
            f"{file}: its first line {_short(line)} is of no run or qrels. A TREC run has the"
            " fields query, Q0, document, rank, score and tag; qrels have query, iteration,"
            " document and relevance."
        )
    return layout


def _rows(
    file: str, data: bytes, layout: Layout
) -> tuple[pl.DataFrame, list[tuple[str, str, int | None]]]:
    """One file, first as lines with one separator; only if that fails any blanks separate."""
    notes: list[tuple[str, str, int | None]] = []
    hashed = COMMENT.encode()
    if b"\n" + hashed in data or data.removeprefix(b"\xef\xbb\xbf").startswith(hashed):
        comments = [found.decode("utf-8", "replace") for found in _COMMENTS.findall(data)]
        data = _COMMENTS.sub(b"", data)  # blank lines: others keep their numbers
        rows = [line for line in comments if _misfit(line.lstrip("\ufeff"), layout) is None]
        if rows:
            notes.append(
                ("comments_not_read", f"{file}: {len(rows):,} lines that begin with {COMMENT!r} are"
                 f" not read though they look like rows, first {_short(rows[0])}.", len(rows))
            )  # fmt: skip
    before = 1
    if layout.header:
        rest = data.lstrip().partition(b"\n")[2]
        before += data[: len(data) - len(rest)].count(b"\n")
        data = rest
    line = data[: data.find(b"\n") + 1] or data
    whole = _parse(data, layout, "\t" if b"\t" in line else " ")
    if whole is None:
        spaced = _single_spaced(data)
        whole = _parse(spaced, layout, " ")
        if whole is None and layout is RUN:
            spaced, longer = _MORE.subn(rb"\1", spaced)
            whole = _parse(spaced, layout, " ") if longer else None
            if longer:
                notes.append(
                    ("fields_not_read", f"{file}: what follows the tag of {longer:,} lines is"
                     " not read.", longer)
                )  # fmt: skip
        if whole is None and layout.unplaced is not None:
            whole = _parse(spaced, layout.unplaced, " ")
    if whole is None:
        raise ReadError(_wrong(file, data, layout, before))
    return whole, notes


def _parse(data: bytes, layout: Layout, separator: str) -> pl.DataFrame | None:
    """Parse the rows; None if one has other fields than the layout."""
    names = [field.column or field.words for field in layout.fields]
    schema = dict(zip(names, (_DTYPES[field.kind] for field in layout.fields), strict=True))
    if not data.strip():
        return pl.DataFrame(schema=schema).select(layout.columns)
    try:
        frame = pl.read_csv(
            data, has_header=False, separator=separator, quote_char=None, schema=schema
        )
    except pl.exceptions.PolarsError:
        return None
    if any(count for count in frame.null_count().row(0)):
        return None
    if separator == "\t" and b" " in data:  # blanks separate as well
        texts = pl.col(pl.String)
        frame = frame.with_columns(texts.str.strip_chars(" "))
        if frame.select(pl.any_horizontal((texts == "").any())).item():
            return None
    return frame.select(layout.columns)


def _single_spaced(data: bytes) -> bytes:
    """The same lines without blank ones, one space between fields and none at the ends."""
    text = data.removeprefix(b"\xef\xbb\xbf").translate(_BLANKS)
    for double, single in ((b"  ", b" "), (b" \n", b"\n"), (b"\n ", b"\n"), (b"\n\n", b"\n")):
        while double in text:
            text = text.replace(double, single)
    return text.strip()


def _wrong(file: str, data: bytes, layout: Layout, before: int) -> str:
    """Describe the lines that do not fit their layout, their number, and a remedy.

    ``before`` is the number of the first line of the data.
    """
    kind = layout.name
    try:
        lines = data.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        place = data.count(b"\n", 0, error.start) + before
        return f"{file}: line {place:,} of this {kind} is not UTF-8. Write the file in UTF-8."
    found = (
        (number, line, why)
        for number, line in enumerate(lines, before)
        if line.strip() and (why := _misfit(line, layout)) is not None
    )
    first = list(itertools.islice(found, _SHOWN))
    if not first:
        return f"{file}: cannot be read as a {kind}: a number is too large for its column."
    count = len(first) + sum(1 for _ in found)
    shown = "; ".join(f"line {number:,}: {why}: {_short(line)}" for number, line, why in first)
    many = f"{count:,} lines do not fit" if count > 1 else "1 line does not fit"
    wanted = ", ".join(field.words for field in layout.fields)
    return (
        f"{file}: {many} a {kind} (fields {wanted}): {shown}. Correct the file, or write it again"
        " as a table with named columns."
    )


def _misfit(line: str, layout: Layout) -> str | None:
    """Return the fault of a line, or None."""
    found = re.split(r"[ \t\r\v\f]+", line.strip(" \t\r\v\f"))
    if layout is RUN and len(found) > len(layout.fields):
        found = without_more(found)
    if len(found) != len(layout.fields):
        return f"{len(found)} field{'s'[: len(found) > 1]} instead of {len(layout.fields)}"
    for field, text in zip((layout.unplaced or layout).fields, found, strict=True):
        if not field.fits(text):
            return f"{field.words} {_short(text)} is not {_said(field)}"
    return None


def _said(field: Field) -> str:
    return "a whole number" if field.kind == "whole" else "a number"


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
