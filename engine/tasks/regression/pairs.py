"""Errors of single datums: a row each, or one a target that both sides have."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...schemas.results import frame_schema
from ...tally.paired_rows import Paired, merge_paired
from ..per_datum import FRAME, per_datum_frame
from ..task import EachView
from .encode import STATUS
from .settings import Settings
from .tallies import Tallies, errors_of

Array = np.ndarray[Any, Any]


def own_frames(
    frame: str,
    tallies: Tallies,
    settings: Settings,
    each_view: EachView,
    *,
    cuts: Mapping[str, set[int | None]],
) -> pl.DataFrame:
    """See :class:`..task.OwnFrames`: the frame of single datums."""
    (error,) = tallies.stats.columns
    if len(tallies.labels.key_names) == 1:
        return per_datum_frame(tallies.stats, tallies.datums, {error: {None}})
    return _of_several(tallies, error, settings)


def _of_several(tallies: Tallies, error: str, settings: Settings) -> pl.DataFrame:
    """Rows by datum and label key; datums without any have a row that says why."""
    paired: Paired = tallies.paired
    lone = np.flatnonzero(tallies.present)
    datum = np.append(paired.datum, lone)
    order = np.argsort(datum, kind="stable")
    size = errors_of(paired, error, settings)
    value = np.append(np.where(np.isinf(size), np.nan, size), np.full(lone.size, np.nan))
    key = np.append(paired.key, np.full(lone.size, len(tallies.labels.key_names)))
    told = [
        json.dumps({"label_key": name}, ensure_ascii=False) for name in tallies.labels.key_names
    ]
    schema = {**frame_schema(FRAME, datum=tallies.datums.id_dtype), "parameters": pl.String()}
    return pl.DataFrame(
        {
            "datum_id": tallies.datums.id.gather(datum[order]),
            "value": pl.Series(value[order], nan_to_null=True),
            "status": pl.Series(STATUS, dtype=pl.String).gather(tallies.present[datum[order]]),
            "parameters": pl.Series([*told, None], dtype=pl.String).gather(key[order]),
        }
    ).select(
        pl.lit(error if name == "metric" else None, dtype=dtype).alias(name)
        if name in ("metric", "statistic", "k")
        else pl.col(name).cast(dtype)
        for name, dtype in schema.items()
    )


def few_pairs(some: Sequence[tuple[Paired, slice]], codes: Sequence[Array]) -> Paired:
    """The rows of a few datums.

    Args:
        some: rows of parts, and which datums of each.
        codes: the new codes of these datums.
    """
    parts, keys = [], []
    for paired, datums in some:
        first, last = np.searchsorted(paired.datum, [datums.start, datums.stop])
        own = paired.chosen(slice(first, last))
        parts.append(msgspec.structs.replace(own, datum=own.datum - datums.start))
        keys.append(np.arange(int(own.key.max(initial=0)) + 1))
    return merge_paired(parts, codes, keys)


def rows_of_frame(tallies: Tallies) -> int:
    """How many rows the frame of single datums has, of a tally in files."""
    if len(tallies.labels.key_names) == 1:
        return len(tallies.datums)
    rows: int = sum(paired.datum.size for paired, _, _ in tallies.paired.blocks(None))
    for stats, _, _ in tallies.stats.blocks(None):
        rows += int(np.count_nonzero(stats.status[1]))
    return rows
