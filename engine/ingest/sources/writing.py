"""Atomic writes of converted tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import polars as pl

from ...atomic import guarding, sweep, whole_file
from ...schemas.errors import InputError, ReadError
from .tables import open_source, schema_of

# Files written whole or not at all.


def write_files(writers: Mapping[str, Callable[[IO[bytes]], object]], out: Path) -> None:
    """Write files of any format into a folder, all or none."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            for name in writers:
                (out / name).parent.mkdir(parents=True, exist_ok=True)
            for folder in {(out / name).parent for name in writers}:
                sweep(folder, {Path(name).name for name in writers})
            files = {name: stack.enter_context(whole_file(out / name)) for name in writers}
            for name, write in writers.items():
                write(files[name])
    except (OSError, pl.exceptions.PolarsError) as error:  # Polars' own of a disk that is full
        told = getattr(error, "strerror", None) or error
        raise InputError(f"{out}: cannot be written: {told}.", code="write_failed") from None


# ``evalengine convert trec``: runs and qrels to Parquet in canonical columns, all or none.

_FORMATS = ("trec", "mapping")


@guarding
def convert_trec(
    run: str | os.PathLike[str],
    qrels: str | os.PathLike[str] | None = None,
    *,
    out: str | os.PathLike[str],
) -> dict[str, int]:
    """Write ``run.parquet`` and, with qrels, ``qrels.parquet``.

    Files get temporary names, and are renamed after all are complete.

    Args:
        run: a run in the format of TREC, MS MARCO (3 columns) or BEIR (JSON).
        qrels: judgments in the format of TREC, MS MARCO, BEIR (TSV with a header) or pytrec_eval
            (JSON).
        out: folder, created if missing.

    Returns:
        File name to number of rows.

    Raises:
        ReadError: no run or no qrels, or an invalid line.
        InputError: a folder that cannot be written.
    """
    frames = {"run.parquet": _open(run, ("score", "rank"), "a run")}
    if qrels is not None:
        frames["qrels.parquet"] = _open(qrels, ("relevance",), "qrels")
    write_files({name: frame.write_parquet for name, frame in frames.items()}, Path(out))
    return {name: frame.height for name, frame in frames.items()}


def _open(path: str | os.PathLike[str], wanted: tuple[str, ...], what: str) -> pl.DataFrame:
    source = open_source(path)
    if source.format not in _FORMATS:
        raise ReadError(
            f"{source.description}: {what} as TREC, BEIR or MS MARCO write it is needed, but this"
            f" file is read as {source.format}.",
            code="wrong_format",
            format=source.format,
        )
    frame = source.frame
    if source.format == "mapping" and "score" not in wanted:
        frame = frame.rename({"score": wanted[0]})
    elif not set(wanted) & schema_of(source).keys():
        raise ReadError(
            f"{source.description}: {what} is needed, but the file has the columns"
            f" {', '.join(schema_of(source))}. The run comes first, then the qrels.",
            code="wrong_format",
        )
    return frame.collect()
