"""File formats by suffix."""

from __future__ import annotations

from pathlib import Path

EXTENSIONS = {
    ".parquet": "parquet", ".pq": "parquet", ".parq": "parquet",
    ".arrow": "ipc", ".ipc": "ipc", ".feather": "ipc", ".arrows": "ipc_stream",
    ".csv": "csv", ".tsv": "csv", ".tab": "csv", ".txt": "csv",
    ".jsonl": "ndjson", ".ndjson": "ndjson", ".json": "json",
    ".run": "trec", ".qrels": "trec", ".qrel": "trec", ".trec": "trec", ".res": "trec",
    ".png": "raster", ".tif": "raster", ".tiff": "raster", ".bmp": "raster", ".gif": "raster",
    ".pgm": "raster",
}  # fmt: skip


def by_extension(path: str) -> str | None:
    """Return the format of a suffix; ``.csv.gz`` counts by the inner one."""
    suffixes = [suffix.lower() for suffix in Path(path.split("?")[0]).suffixes]
    if suffixes and suffixes[-1] in (".gz", ".zst"):
        inner = EXTENSIONS.get(suffixes[-2]) if len(suffixes) > 1 else None
        json = ("json",) if suffixes[-1] == ".gz" else ()
        return inner if inner in ("csv", "ndjson", "trec", *json) else None
    return EXTENSIONS.get(suffixes[-1]) if suffixes else None
