"""TREC runs and qrels."""

from __future__ import annotations

import gzip
import itertools
import re
import zlib
from pathlib import Path

import msgspec
import polars as pl

from ...schemas.errors import N_EXAMPLES, ReadError
from ..files import Source, unreadable
from ..problems import Note

# Line layouts of retrieval tools, and their detection from a file's first line.

_NUMBER = re.compile(
    r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.IGNORECASE
)
_WHOLE = re.compile(r"[+-]?\d+")
_DECIMAL = re.compile(r"[+-]?\d*\.\d+")
_PLACE = re.compile(r"[+-]?\d+|-")
_KINDS = {"whole": _WHOLE, "place": _PLACE, "number": _NUMBER}
_SHORT = re.compile(r"[A-Za-z0-9]{1,3}")
COMMENT = "#"
"""Prefix of ignored lines."""


class Field(msgspec.Struct, frozen=True):
    """One field of a line.

    Attributes:
        column: resulting column; None for an ignored field.
        kind: ``text``, ``whole`` (a whole number), ``number``, or ``place``: a whole number or
            ``-`` for unknown.
    """

    words: str
    column: str | None
    kind: str = "text"

    def fits(self, text: str) -> bool:
        if self.kind == "text":
            return True
        return bool(_KINDS[self.kind].fullmatch(text))


class Layout(msgspec.Struct, frozen=True):
    """Fields of a line, and the name of files with such lines."""

    name: str
    fields: tuple[Field, ...]
    header: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that come out."""
        return tuple(field.column for field in self.fields if field.column is not None)

    @property
    def unplaced(self) -> Layout | None:
        """Layout that ignores an optional rank; None without such a rank."""
        fields = tuple(
            msgspec.structs.replace(field, column=None, kind="text")
            if field.kind == "place"
            else field
            for field in self.fields
        )
        return None if fields == self.fields else msgspec.structs.replace(self, fields=fields)


_QUERY = Field("query", "query_id")
_DOCUMENT = Field("document", "doc_id")
_Q0 = Field("Q0", None)
_RANK = Field("rank", "rank", "whole")
_EXTRA_RANK = Field("rank", "rank", "place")  # scores decide, as in trec_eval
_SCORE = Field("score", "score", "number")
_TAG = Field("tag", "run_id")
_RELEVANCE = Field("relevance", "relevance", "number")

RUN = Layout("TREC run", (_QUERY, _Q0, _DOCUMENT, _EXTRA_RANK, _SCORE, _TAG))
UNTAGGED_RUN = Layout("TREC run without tag", (_QUERY, _Q0, _DOCUMENT, _EXTRA_RANK, _SCORE))
QRELS = Layout("TREC qrels", (_QUERY, Field("iteration", None), _DOCUMENT, _RELEVANCE))
MARCO_RUN = Layout("MS MARCO run", (_QUERY, _DOCUMENT, _RANK))
BEIR = Layout("BEIR run or qrels", (_QUERY, _DOCUMENT, _SCORE), header=True)

_BY_COUNT = {6: RUN, 5: UNTAGGED_RUN, 4: QRELS}
_BEIR_HEADER = ["query-id", "corpus-id", "score"]


def layout_of(head: bytes, *, named: bool = False) -> Layout | None:
    """Detect the layout of a file from its first line that is neither blank nor a comment.

    Fields after a run's tag are ignored, as in trec_eval's ``get_trec_results.c``. Tables of other
    tools begin with names, so numbers in the positions of a run or qrels identify them. A counting
    line (``0 1 2 3``) is the header of a table without names.

    Args:
        head: the file's first bytes, decompressed.
        named: whether the file name already identifies a run or qrels; then the number of fields
            decides, and the reader reports wrong fields.
    """
    text = head.decode("utf-8-sig", "replace")
    lines = [line for line in text.splitlines() if line.strip()]
    line = next((line for line in lines if not line.startswith(COMMENT)), "")
    fields = line.split()
    if not named and lines and lines[0] != line and len(lines[0].split()) == len(fields):
        return None  # names of columns behind a hash
    if [field.casefold() for field in fields] == _BEIR_HEADER:
        return BEIR
    if not named and fields == [str(i) for i in range(len(fields))]:
        return None
    if len(fields) == len(MARCO_RUN.fields):
        ids = all(_WHOLE.fullmatch(field) for field in fields)
        return MARCO_RUN if ids and (named or ("\t" in line and fields[2] == "1")) else None
    if len(fields) > len(RUN.fields) and (named or fields[1] == "Q0"):
        fields = without_more(fields)
        if len(fields) > len(RUN.fields) and fields[1] == "Q0":
            return RUN  # whose reader counts the fields
    layout = _BY_COUNT.get(len(fields))
    if layout is None:
        return None
    fits = all(field.fits(text) for field, text in zip(layout.fields, fields, strict=True))
    if fits and (named or _SHORT.fullmatch(fields[1])):
        return layout
    numbers = any(_NUMBER.fullmatch(field) for field in fields)
    return layout if named and numbers else None


def without_more(fields: list[str]) -> list[str]:
    """Drop the fields of a line after a run's tag.

    Only if the rank is valid, and the next two fields are not rank and a score with decimals:
    otherwise an id may contain a blank, which shifts fields.
    """
    shifted = _WHOLE.fullmatch(fields[4]) and _DECIMAL.fullmatch(fields[5])
    sound = _PLACE.fullmatch(fields[3]) and not shifted
    return fields[: len(RUN.fields)] if sound else fields


def start_of(head: bytes) -> bytes:
    """Return a file's first bytes, decompressed if gzipped."""
    if not head.startswith(b"\x1f\x8b"):
        return head
    try:
        return zlib.decompressobj(wbits=31).decompress(head, 1 << 16)
    except zlib.error:
        return b""


# TREC runs and qrels, and those of BEIR and MS MARCO, to canonical columns.
#
# Ids are always strings: ``007`` and ``7`` are two documents. Scores and relevance are Float64.

_DTYPES = {"text": pl.String, "whole": pl.Int64, "place": pl.Int64, "number": pl.Float64}
_BLANKS = bytes.maketrans(b"\t\r\v\f", b"    ")
_COMMENTS = re.compile(rb"(?:\A(?:\xef\xbb\xbf)?|(?<=\n))#[^\n]*")
_MORE = re.compile(
    rb"^((?:[^ \n]+ ){3}(?:[+-]?\d+|-) (?![+-]?\d+ %b )[^ \n]+ [^ \n]+) [^\n]*$"
    % _DECIMAL.pattern.encode(),
    re.MULTILINE,
)
"""A line of a run with fields behind its tag, blanks single; see :func:`without_more`."""
_HEAD = 1 << 16


def open_trec(files: list[str], description: str) -> Source:
    """Open runs or qrels as one source; read immediately, so that errors name the line.

    Columns: ``query_id``, ``doc_id`` (String) and, depending on the layout, ``rank`` (Int64),
    ``score`` (Float64), ``run_id`` (String) or ``relevance`` (Float64). The side of a file with
    BEIR's header decides if its ``score`` is relevance. Ranks that are not whole
    numbers are dropped with a note if there are scores, which define the order. The run's tag in
    the first line is also a fact of the source. Lines that begin with ``#`` and fields after the
    tag are ignored, with a note if they look like rows.
    """
    first: Layout | None = None
    pieces = []
    notes: list[Note] = []
    for file in files:
        data = _bytes(file)
        layout = _layout(file, data[:_HEAD])
        if first is not None and layout.columns != first.columns:
            raise ReadError(
                f"{description}: files of several layouts: {files[0]} is a {first.name}, {file} a"
                f" {layout.name}. Give files of one layout.",
                code="formats_differ",
                files=[files[0], file],
            )
        first = first or layout
        piece, file_notes = _rows(file, data, layout)
        pieces.append(piece)
        notes += file_notes
    unplaced = sum("rank" not in piece.columns for piece in pieces)
    if first is not None and "rank" in first.columns and unplaced:
        pieces = [piece.drop("rank", strict=False) for piece in pieces]
        notes.append(
            Note(
                "ranks_not_read",
                f"{description}: ranks that are not whole numbers are not read; the"
                " scores decide the order.",
                unplaced,
            )
        )
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
        raise unreadable(file, error) from None


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


def _rows(file: str, data: bytes, layout: Layout) -> tuple[pl.DataFrame, list[Note]]:
    """One file, first as lines with one separator; only if that fails any blanks separate."""
    notes: list[Note] = []
    hashed = COMMENT.encode()
    if b"\n" + hashed in data or data.removeprefix(b"\xef\xbb\xbf").startswith(hashed):
        comments = [comment.decode("utf-8", "replace") for comment in _COMMENTS.findall(data)]
        data = _COMMENTS.sub(b"", data)  # blank lines: others keep their numbers
        rows = [line for line in comments if _misfit(line.lstrip("\ufeff"), layout) is None]
        if rows:
            notes.append(
                Note(
                    "comments_not_read",
                    f"{file}: {len(rows):,} lines that begin with {COMMENT!r} are"
                    f" not read though they look like rows, first {_short(rows[0])}.",
                    len(rows),
                )
            )
    before = 1
    if layout.header:
        rest = data.lstrip().partition(b"\n")[2]
        before += data[: len(data) - len(rest)].count(b"\n")
        data = rest
    line = data[: data.find(b"\n") + 1] or data
    parsed = _parse(data, layout, "\t" if b"\t" in line else " ")
    if parsed is None:
        text = data.removeprefix(b"\xef\xbb\xbf").translate(_BLANKS)
        for double, single in ((b"  ", b" "), (b" \n", b"\n"), (b"\n ", b"\n"), (b"\n\n", b"\n")):
            while double in text:
                text = text.replace(double, single)
        spaced = text.strip()
        parsed = _parse(spaced, layout, " ")
        if parsed is None and layout is RUN:
            spaced, longer = _MORE.subn(rb"\1", spaced)
            parsed = _parse(spaced, layout, " ") if longer else None
            if longer:
                message = f"{file}: text after the tag of {longer:,} lines is not read."
                notes.append(Note("fields_not_read", message, longer))
        if parsed is None and layout.unplaced is not None:
            parsed = _parse(spaced, layout.unplaced, " ")
    if parsed is None:
        raise _wrong(file, data, layout, before)
    return parsed, notes


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


def _wrong(file: str, data: bytes, layout: Layout, before: int) -> ReadError:
    """Make the error for lines that do not fit their layout, their number, and a remedy.

    ``before`` is the number of the first line of the data.
    """
    kind = layout.name
    try:
        lines = data.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        place = data.count(b"\n", 0, error.start) + before
        message = f"{file}: line {place:,} of this {kind} is not UTF-8. Write the file in UTF-8."
        return ReadError(message, code="not_utf8", lines=[place])
    faults = (
        (number, line, why)
        for number, line in enumerate(lines, before)
        if line.strip() and (why := _misfit(line, layout)) is not None
    )
    first = list(itertools.islice(faults, N_EXAMPLES))
    if not first:
        message = f"{file}: cannot be read as a {kind}: a number is too large for its column."
        return ReadError(message, code="number_too_large")
    count = len(first) + sum(1 for _ in faults)
    examples = "; ".join(f"line {number:,}: {why}: {_short(line)}" for number, line, why in first)
    many = f"{count:,} lines do not fit" if count > 1 else "1 line does not fit"
    expected = ", ".join(field.words for field in layout.fields)
    return ReadError(
        f"{file}: {many} a {kind} (fields {expected}): {examples}. Correct the file, or write it"
        " again as a table with named columns.",
        code="file_malformed",
        count=count,
        lines=[number for number, _, _ in first],
    )


def _misfit(line: str, layout: Layout) -> str | None:
    """Return the fault of a line, or None."""
    texts = re.split(r"[ \t\r\v\f]+", line.strip(" \t\r\v\f"))
    if layout is RUN and len(texts) > len(layout.fields):
        texts = without_more(texts)
    if len(texts) != len(layout.fields):
        return f"{len(texts)} field{'s'[: len(texts) > 1]} instead of {len(layout.fields)}"
    for field, text in zip((layout.unplaced or layout).fields, texts, strict=True):
        if not field.fits(text):
            kind = "a whole number" if field.kind == "whole" else "a number"
            return f"{field.words} {_short(text)} is not {kind}"
    return None


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
