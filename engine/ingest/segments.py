"""Row checks of segments, beyond single columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from .problems import count_of

if TYPE_CHECKING:
    from .checks import Check

_FORMS = ("raster", "mask")


def check_segments(check: Check, seen: Mapping[str, Any]) -> None:
    """Check that every row has pixels, an id if it is in a map, and a label; ids are unique per
    datum.
    """
    columns = check.frame.columns
    forms = [name for name in _FORMS if name in columns]
    if not forms or "datum_id" not in columns:  # told by now
        return
    none = pl.lit(None, pl.Int64)
    segment = pl.col("segment_id") if "segment_id" in columns else none
    label = pl.col("label_value") if "label_value" in columns else none
    mask = pl.col("mask").is_not_null() if "mask" in columns else pl.lit(value=False)
    raster = pl.col("raster").is_not_null() if "raster" in columns else pl.lit(value=False)
    for code, where, name, said, way in (
        (
            "geometry_missing",
            ~mask & ~raster,
            forms[0],
            "without any pixels",
            "Fill or remove these rows.",
        ),
        (
            "null_values",
            mask & label.is_null(),
            "label_value",
            "with a mask and no label",
            "Name the label of each segment.",
        ),
        (
            "null_values",
            raster & ~mask & label.is_null() & segment.is_not_null(),
            "label_value",
            "with a segment and no label",
            "Name the label of each segment.",
        ),
        (
            "null_values",
            raster & ~mask & label.is_not_null() & segment.is_null(),
            "segment_id",
            "with a label and no segment_id, so that nothing says which pixels of the map it has",
            "Give each segment its id.",
        ),
    ):
        n = check.count(where)
        if n:
            check.add(
                code, name, n, f"{check.named([name])}: {count_of(n, 'row')} {said},"
                f" {check.rows(where, [])}. {way}",
            )  # fmt: skip
    if "segment_id" not in columns:
        return
    key = pl.struct("datum_id", "segment_id")
    twice = key.is_duplicated() & segment.is_not_null()
    n = check.count(twice)
    if n:
        check.add(
            "repeated_values", "segment_id", n,
            f"{check.named(['segment_id'])}: {count_of(n, 'row')} of an image in which their id"
            f" appears more than once, {check.rows(twice, ['segment_id'])}. An id is of one"
            " segment: merge these rows, or give each its own.",
        )  # fmt: skip
