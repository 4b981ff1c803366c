"""Files of one format as one lazy table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from ..file_memory import Held
from .partitions import PATH, with_partitions
from .paths import looks_wild


def scan(
    files: Sequence[str],
    format_: str,
    storage_options: dict[str, str] | None = None,
    *,
    remote: bool = False,
    partitions: dict[str, pl.DataType] | None = None,
    held: dict[str, Held] | None = None,
) -> pl.LazyFrame:
    """Scan files of one format as one lazy table, in the order given.

    Args:
        remote: whether paths are of an object store.
        partitions: partition columns to their dtypes.
        held: receives the sizes of columns of long texts.
    """
    if partitions:
        with_paths = _scan(
            list(files), format_, storage_options, remote=remote, path=PATH, held=held
        )
        return with_partitions(with_paths, files, partitions)
    return _scan(list(files), format_, storage_options, remote=remote, held=held)


def _scan(
    paths: list[str],
    format_: str,
    storage_options: dict[str, str] | None,
    *,
    remote: bool,
    path: str | None = None,
    held: dict[str, Held] | None = None,
) -> pl.LazyFrame:
    if format_ == "parquet":
        return pl.scan_parquet(
            paths, glob=remote, storage_options=storage_options, include_file_paths=path,
            hive_partitioning=remote and any("=" in one or "**" in one for one in paths),
        )  # fmt: skip
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
    if format_ == "csv":
        from .csv import scan_csv

        return scan_csv(paths, storage_options, remote=remote, path=path, held=held)
    assert format_ == "ndjson", format_  # others are opened by readers of their own
    return pl.scan_ndjson(
        paths, infer_schema_length=None, storage_options=storage_options, include_file_paths=path
    )
