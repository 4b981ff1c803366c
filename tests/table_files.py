"""One table written in every format that is read."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.feather


def write_tsv(frame: pl.DataFrame, path: Path) -> None:
    frame.write_csv(path, separator="\t")


def write_records(frame: pl.DataFrame, path: Path) -> None:
    path.write_text(json.dumps(frame.to_dicts()))


def write_packed_csv(frame: pl.DataFrame, path: Path) -> None:
    path.write_bytes(gzip.compress(frame.write_csv().encode()))


def write_packed_lines(frame: pl.DataFrame, path: Path) -> None:
    path.write_bytes(gzip.compress(frame.write_ndjson().encode()))


def write_old_feather(frame: pl.DataFrame, path: Path) -> None:
    pyarrow.feather.write_feather(frame.to_arrow(), str(path), compression="lz4")


Writer = Callable[[pl.DataFrame, Path], Any]
FILES: dict[str, Writer] = {
    "t.parquet": pl.DataFrame.write_parquet,
    "t.pq": pl.DataFrame.write_parquet,
    "t.arrow": pl.DataFrame.write_ipc,
    "t.ipc": pl.DataFrame.write_ipc,
    "t.feather": write_old_feather,
    "stream.arrow": pl.DataFrame.write_ipc_stream,
    "t.arrows": pl.DataFrame.write_ipc_stream,
    "t.csv": pl.DataFrame.write_csv,
    "t.tsv": write_tsv,
    "semicolons.csv": lambda frame, path: frame.write_csv(path, separator=";"),
    "t.csv.gz": write_packed_csv,
    "t.jsonl": pl.DataFrame.write_ndjson,
    "t.ndjson": pl.DataFrame.write_ndjson,
    "t.jsonl.gz": write_packed_lines,
    "t.json": write_records,
    "lines.json": pl.DataFrame.write_ndjson,
    "parquet_without_extension": pl.DataFrame.write_parquet,
    "ipc.bin": pl.DataFrame.write_ipc,
    "csv_without_extension": pl.DataFrame.write_csv,
    "lines.dat": pl.DataFrame.write_ndjson,
    "records.dat": write_records,
}
