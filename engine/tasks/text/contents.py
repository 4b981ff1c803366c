"""What single texts hold: prediction and reference, word by word."""

from __future__ import annotations

from typing import Any

import polars as pl

from ...ingest.frames import Frames
from ..contents import Content, beside, by_datum
from ..workers import Workers


def contents(
    frames: Frames, settings: Any, ids: list[str], made_with: dict[str, Any], workers: Workers
) -> list[Content | None]:
    """See :attr:`..contents.Contents.of_tables`; None where there are vectors alone."""
    if frames.table is not None:
        sides = [(by_datum(frames.table), name) for name in ("text", "reference")]
    else:
        sides = [(by_datum(side), "text") for side in (frames.predictions, frames.ground_truths)]
    out: list[Content | None] = []
    for one in ids:
        ours, theirs = (_texts(rows.get(one), name) for rows, name in sides)
        out.append(beside(ours, theirs) if ours or theirs else None)
    return out


def _texts(rows: pl.DataFrame | None, name: str) -> list[str]:
    """Texts of a datum, of a column of texts or of lists of them."""
    if rows is None or name not in rows.columns:
        return []
    column = rows[name]
    if isinstance(column.dtype, pl.List):
        column = column.explode(empty_as_null=False, keep_nulls=False)
    return [str(text) for text in column.drop_nulls().to_list()]
