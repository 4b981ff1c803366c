"""Checks of keypoint lists: finite numbers, three per point."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from evalengine.geometry.columns import flat

from .problems import count_of

if TYPE_CHECKING:
    from .checks import Check

_NAME = "keypoints"


def check(check: Check) -> None:
    """Refuse lists that are not triples, numbers that are not finite, predictions without"
    " points."""
    if _NAME not in check.frame.columns:
        return
    column = check.frame[_NAME]
    length = column.list.len().fill_null(0).to_numpy()
    if check.side == "predictions" and (length == 0).any():
        _tell(
            check,
            "geometry_missing",
            length == 0,
            "without keypoints",
            "Give each row its points, or remove it.",
        )
    odd = length % 3 != 0
    if odd.any():
        pairs = bool((length[odd] % 2 == 0).all())
        missing = " These are pairs of x and y: the visibility of each point is missing; write 2"
        missing += " for points that are labelled and 0 for others."
        _tell(
            check,
            "not_triples",
            odd,
            f"with {length[odd][0]} numbers, which are not three for each point",
            "Write x, y and visibility of every point." + (missing if pairs else ""),
        )
    values, (offsets,) = flat(column)
    finite = np.isfinite(values.cast(pl.Float64).to_numpy())
    if not finite.all():
        wrong = np.zeros(len(column), bool)
        wrong[np.searchsorted(offsets, np.flatnonzero(~finite), side="right") - 1] = True
        _tell(
            check,
            "not_finite",
            wrong,
            "with null, NaN or infinity among the numbers",
            "Write 0, 0, 0 for points that are not labelled, or remove these rows.",
        )


def _tell(
    check: Check, code: str, wrong: np.ndarray[tuple[int], np.dtype[np.bool_]], what: str, way: str
) -> None:
    shown = check.rows(pl.lit(pl.Series(wrong)), [])
    n = int(wrong.sum())
    check.add(
        code, _NAME, n, f"{check.named([_NAME])}: {count_of(n, 'row')} {what}, {shown}. {way}"
    )
