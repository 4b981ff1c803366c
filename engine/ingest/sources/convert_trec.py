"""``evalengine convert trec``: runs and qrels to Parquet in canonical columns, all or none."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl

from evalengine.overwriting import guarding
from evalengine.schemas.errors import ReadError

from .tables import open_source, schema_of
from .writing import write_tables

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
    write_tables(frames, Path(out))
    return {name: frame.height for name, frame in frames.items()}


def _open(path: str | os.PathLike[str], wanted: tuple[str, ...], what: str) -> pl.DataFrame:
    source = open_source(path)
    if source.format not in _FORMATS:
        raise ReadError(
            f"{source.description}: {what} as TREC, BEIR or MS MARCO write it is needed, but this"
            f" file is read as {source.format}."
        )
    frame = source.frame
    if source.format == "mapping" and "score" not in wanted:
        frame = frame.rename({"score": wanted[0]})
    elif not set(wanted) & schema_of(source).keys():
        raise ReadError(
            f"{source.description}: {what} is needed, but the file has the columns"
            f" {', '.join(schema_of(source))}. The run comes first, then the qrels."
        )
    return frame.collect()
