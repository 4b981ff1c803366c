"""Detection of file formats, by suffix or first bytes, and of truncated files."""

from __future__ import annotations

from pathlib import Path

from evalengine.schemas.errors import ReadError

from ..files import Held, Room, by_extension, text_held
from .footers import refuse_miscounted
from .scanning import foreign
from .trec import layout_of, start_of

NAMES = {
    "parquet": "Parquet",
    "ipc": "Arrow IPC",
    "ipc_stream": "Arrow IPC stream",
    "csv": "CSV",
    "ndjson": "JSON Lines",
    "json": "JSON",
    "trec": "TREC",
    "raster": "a label map",
}
_KNOWN = (
    "Parquet, Arrow IPC (feather), CSV, TSV, JSON Lines, JSON, runs and qrels as TREC has them, and"
    " label maps of segmentation (PNG, TIFF, BMP, GIF, PGM)"
)
_MAGIC = {
    b"PAR1": "parquet",
    b"ARROW1": "ipc",
    b"\xff\xff\xff\xff": "ipc_stream",
    b"\x89PNG\r\n\x1a\n": "raster",
}
_PACKED = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
}


def detect(path: str, held: dict[str, Held] | None = None, room: Room | None = None) -> str:
    """Return the format of a local file, after checking that it looks complete.

    Args:
        held: receives the memory size of its columns, added to that of other files; the name of
            text columns is empty.
        room: memory limit for reading; None if unknown.

    Raises:
        ReadError: empty, truncated, damaged in its footer, compressed, or of unknown format.
    """
    head, tail, size = _ends(path)
    format_ = by_extension(path)
    if size == 0:
        of = f" {NAMES[format_]}" if format_ else ""
        raise ReadError(
            f"{path}: the{of} file is empty (0 bytes). Write it again.",
            code="file_empty",
            file=str(path),
        )
    magic = next((name for mark, name in _MAGIC.items() if head.startswith(mark)), None)
    if magic is None and _is_trec(path, format_, head):
        return "trec"
    if magic is None and format_ in (None, "csv", "json", "ndjson"):
        other = foreign(head, path)
        if other is not None:
            raise ReadError(f"{path}: {other}", code="format_unknown", file=str(path))
    if format_ is None or format_ == "trec":
        format_ = magic or _text_format(path, head)
    if format_ == "ipc" and magic == "ipc_stream":
        format_ = "ipc_stream"
    if format_ in ("parquet", "ipc") and magic != format_:
        raise ReadError(
            _not_what_it_says(path, format_, head, magic),
            code="wrong_format",
            file=str(path),
            format=magic,
        )
    if format_ == "parquet" and (tail[-4:] != b"PAR1" or size < 12):
        raise ReadError(
            _truncated(path, "Parquet", "its end mark 'PAR1' is missing"),
            code="file_truncated",
            file=str(path),
        )
    if format_ == "parquet":
        _note(held, refuse_miscounted(path))
    if format_ == "ipc" and tail[-6:] != b"ARROW1":
        raise ReadError(_truncated(path, "Arrow IPC", "its end mark 'ARROW1' is missing"))
    if format_ in ("csv", "ndjson", "json") and magic:
        raise ReadError(
            _not_what_it_says(path, format_, head, magic),
            code="wrong_format",
            file=str(path),
            format=magic,
        )
    if format_ in ("csv", "ndjson") and held is not None:
        _note(held, {"": text_held(path, room)})
    return format_


def _note(held: dict[str, Held] | None, found: dict[str, Held]) -> None:
    if held is not None:
        for name, one in found.items():
            held[name] = held.get(name, Held()) | one


def _is_trec(path: str, format_: str | None, head: bytes) -> bool:
    """Return whether a file is a run or qrels, by its first line if its name does not decide."""
    if format_ not in (None, "csv", "trec") or ".csv" in Path(path).name.lower():
        return False
    return layout_of(start_of(head), named=format_ == "trec") is not None


def _ends(path: str) -> tuple[bytes, bytes, int]:
    try:
        with open(path, "rb") as file:
            head = file.read(4096)
            size = file.seek(0, 2)
            file.seek(max(0, size - 8))
            return head, file.read(8), size
    except OSError as error:
        raise ReadError(f"{path}: cannot be read: {error.strerror or error}.") from None


def _text_format(path: str, head: bytes) -> str:
    packed = _packed(head)
    if packed:
        raise ReadError(
            f"{path}: the file is {packed}-compressed. Decompress it first.",
            code="compressed",
            file=str(path),
        )
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if start[:1] == b"[":
        return "json"
    if start[:1] == b"{":
        first_line = start.split(b"\n", 1)[0].rstrip()
        return "ndjson" if first_line.endswith(b"}") and len(first_line) < len(start) else "json"
    line = head.split(b"\n", 1)[0]
    if b"\x00" not in head and (b"," in line or b"\t" in line or b";" in line):
        return "csv"
    raise ReadError(
        f"{path}: of no known format. Readable are {_KNOWN}; give the file the extension of its"
        " format if it is one of these.",
        code="format_unknown",
        file=str(path),
    )


def _packed(head: bytes) -> str | None:
    return next((name for mark, name in _PACKED.items() if head.startswith(mark)), None)


def _not_what_it_says(path: str, format_: str, head: bytes, magic: str | None) -> str:
    packed = _packed(head)
    if packed:
        seen = f"it is {packed}-compressed; decompress it first"
    elif magic:
        seen = f"it holds {NAMES[magic]}; rename it"
    else:
        seen = f"it begins with {head[:8]!r}; write it again, or give it its format's extension"
    return f"{path}: not a {NAMES[format_]} file though its name says so: {seen}."


def _truncated(path: str, name: str, why: str) -> str:
    return f"{path}: the {name} file is truncated ({why}). Write or copy it again."
