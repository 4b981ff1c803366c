"""``evalengine convert coco``: COCO JSON to Parquet in canonical columns, all or nothing."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path

import polars as pl

from evalengine.schemas.errors import ReadError

from .coco_masks import said_plainly
from .json_files import sniff
from .source import Source
from .tables import open_source
from .writing import write_tables


def convert_coco(
    ground_truths: str | os.PathLike[str],
    predictions: str | os.PathLike[str] | None = None,
    *,
    out: str | os.PathLike[str],
    tell: Callable[[str], None] | None = None,
) -> dict[str, int]:
    """Write groundtruths, datums, labels and, with results, predictions as Parquet.

    Every file is written under another name first; they take their names once all are whole.

    Args:
        ground_truths: COCO ground-truth JSON.
        predictions: COCO results JSON.
        out: folder, made if it is not there.
        tell: takes what tables cannot say any more, as that a file is LVIS's; a Python warning
            unless given.

    Returns:
        File name to rows written.

    Raises:
        ReadError: not COCO, malformed or truncated.
        InputError: rows without boxes, or a folder that cannot be written.
    """
    truths = _open(ground_truths, "coco", "COCO ground truths (an object with annotations)")
    for _, message, _ in truths.warnings:
        if tell is None:
            warnings.warn(message, stacklevel=2)
        else:
            tell(message)
    frames: dict[str, pl.DataFrame] = {}
    if predictions is not None:
        results = _open(predictions, "coco_results", "COCO results (an array of results)")
        with said_plainly():
            frames["predictions.parquet"] = results.frame.collect()
    with said_plainly():
        frames["groundtruths.parquet"] = truths.frame.collect()
    for name, frame in (("datums", truths.datums), ("labels", truths.labels)):
        if frame is not None:
            frames[f"{name}.parquet"] = frame
    write_tables({name: _with_columns(frame) for name, frame in frames.items()}, Path(out))
    return {name: frame.height for name, frame in frames.items()}


def _open(path: str | os.PathLike[str], kind: str, wanted: str) -> Source:
    local = Path(path).expanduser()
    if not local.is_file():
        open_source(path)  # says what is there instead
    found = sniff(local)
    if found != kind:
        raise ReadError(f"{local}: {wanted} are needed, but this file holds {_NAMES[found]}.")
    return open_source(local)


_NAMES = {
    "coco": "one object, as COCO ground truths do",
    "coco_results": "COCO results",
    "coco_annotations": "COCO annotations alone",
    "records": "other records",
    "lines": "JSON Lines",
    "mapping": "a mapping of queries to documents",
}
_EMPTY = {
    "datum_id": pl.Int64, "label_value": pl.Int64, "score": pl.Float64,
    "xmin": pl.Float64, "ymin": pl.Float64, "xmax": pl.Float64, "ymax": pl.Float64,
    "box_width": pl.Float64, "box_height": pl.Float64,
}  # fmt: skip


def _with_columns(frame: pl.DataFrame) -> pl.DataFrame:
    """An empty file still has its columns."""
    return frame if frame.width else pl.DataFrame(schema=_EMPTY)
