"""Line layouts of retrieval tools, and their detection from a file's first line."""

from __future__ import annotations

import re
import zlib

import msgspec

_NUMBER = re.compile(
    r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.IGNORECASE
)
_WHOLE = re.compile(r"[+-]?\d+")
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
_PLACE_BESIDE = Field("rank", "rank", "place")  # scores decide, as in trec_eval
_SCORE = Field("score", "score", "number")
_TAG = Field("tag", "run_id")
_RELEVANCE = Field("relevance", "relevance", "number")

RUN = Layout("TREC run", (_QUERY, _Q0, _DOCUMENT, _PLACE_BESIDE, _SCORE, _TAG))
UNTAGGED_RUN = Layout("TREC run without tag", (_QUERY, _Q0, _DOCUMENT, _PLACE_BESIDE, _SCORE))
QRELS = Layout("TREC qrels", (_QUERY, Field("iteration", None), _DOCUMENT, _RELEVANCE))
MARCO_RUN = Layout("MS MARCO run", (_QUERY, _DOCUMENT, _RANK))
BEIR_QRELS = Layout("BEIR qrels", (_QUERY, _DOCUMENT, _RELEVANCE), header=True)

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

    Returns:
        None for any other line.
    """
    text = head.decode("utf-8-sig", "replace")
    lines = [line for line in text.splitlines() if line.strip()]
    line = next((line for line in lines if not line.startswith(COMMENT)), "")
    found = line.split()
    if not named and lines and lines[0] != line and len(lines[0].split()) == len(found):
        return None  # names of columns behind a hash
    if [field.casefold() for field in found] == _BEIR_HEADER:
        return BEIR_QRELS
    if not named and found == [str(i) for i in range(len(found))]:
        return None
    if len(found) == len(MARCO_RUN.fields):
        ids = all(_WHOLE.fullmatch(field) for field in found)
        return MARCO_RUN if ids and (named or ("\t" in line and found[2] == "1")) else None
    if len(found) > len(RUN.fields) and (named or found[1] == "Q0"):
        found = without_more(found)
    layout = _BY_COUNT.get(len(found))
    if layout is None:
        return None
    fits = all(field.fits(text) for field, text in zip(layout.fields, found, strict=True))
    if fits and (named or _SHORT.fullmatch(found[1])):
        return layout
    numbers = any(_NUMBER.fullmatch(field) for field in found)
    return layout if named and numbers else None


def without_more(found: list[str]) -> list[str]:
    """Drop the fields of a line after a run's tag.

    Only if the rank is valid: otherwise an id may contain a blank, which shifts fields.
    """
    return found[: len(RUN.fields)] if _PLACE.fullmatch(found[3]) else found


def start_of(head: bytes) -> bytes:
    """Return a file's first bytes, decompressed if gzipped."""
    if not head.startswith(b"\x1f\x8b"):
        return head
    try:
        return zlib.decompressobj(wbits=31).decompress(head, 1 << 16)
    except zlib.error:
        return b""
