"""Files of one format as one lazy table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from .paths import looks_wild


def scan(
    files: Sequence[str],
    format_: str,
    storage_options: dict[str, str] | None = None,
    *,
    remote: bool = False,
) -> pl.LazyFrame:
    """Files of one format as one lazy table, in the order given."""
    paths = list(files)
    if format_ == "parquet":
        return pl.scan_parquet(paths, glob=remote, storage_options=storage_options)
    if format_ == "ipc":
        # Older Polars has no such option; it is needed only for names that look like patterns.
        literal: dict[str, Any] = {} if remote or not looks_wild(paths) else {"glob": False}
        return pl.scan_ipc(paths, storage_options=storage_options, **literal)
    if format_ == "ipc_stream":
        return pl.concat([pl.read_ipc_stream(path).lazy() for path in paths])
    if format_ == "csv":
        from .csv import scan_csv

        return scan_csv(paths, storage_options, remote=remote)
    assert format_ == "ndjson", format_  # others are opened by readers of their own
    return pl.scan_ndjson(paths, infer_schema_length=None, storage_options=storage_options)
