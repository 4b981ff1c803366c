"""The frame of single datums of texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

from .. import stats_views

UNDEFINED = "undefined"
"""Standing of a text that was scored and has no value in one metric."""


def own_frames(
    frame: str,
    tallies: stats_views.StatsTallies,
    settings: Any,
    each_view: Callable[[Callable[..., pl.DataFrame]], list[pl.DataFrame]],
    *,
    cuts: Mapping[str, set[int | None]],
) -> pl.DataFrame:
    """Return per-datum values; ``status`` marks datums for which a metric is undefined.

    Arguments are those of ``stats_views.own_frames``.
    """
    single = stats_views.own_frames(frame, tallies, settings, each_view, cuts=cuts)
    undefined = pl.col("value").is_null() & (pl.col("status") == "scored")
    status = pl.when(undefined).then(pl.lit(UNDEFINED)).otherwise("status")
    return single.with_columns(status=status)
