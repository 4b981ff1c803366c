"""Rows of label sequences: precision, recall and F of every row by itself, as Phoenix has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ...exports.phoenix import automatic_positive
from ...metrics import get
from ...metrics.label_averages import in_use
from ...schemas.asked import in_name
from ...schemas.results import frame_schema
from ...tally.scored_view import ScoredView
from .binary import find_label
from .settings import Settings
from .tallies import Tallies
from .views import EachView, view

Array = np.ndarray[Any, Any]

_CELLS = 4_000_000  # counts of (row, label) held at once


def per_datum_frame(tallies: Tallies, settings: Settings, each_view: EachView) -> pl.DataFrame:
    """One row per sequence and metric, of the average asked for or the positive label.

    A row whose labels are 0 and 1 is scored for 1, where neither average nor positive label was
    given (Phoenix).
    """
    if tallies.parts is not None:  # all rows of a datum are in one part
        every = [per_datum_frame(part, settings, each_view) for part in tallies.parts.shown()]
        in_turn = pl.col("metric").cast(pl.Enum(_names(settings)))
        return pl.concat(every).sort(in_turn, "datum_id")
    blank = pl.DataFrame(schema={"value": pl.Float64})
    n, n_labels = len(tallies.datums), max(1, len(tallies.labels))
    schema = frame_schema("per_datum", datum=tallies.datums.id_dtype)
    each = max(1, _CELLS // n_labels)
    parts: dict[str, list[pl.DataFrame]] = {name: [] for name in _names(settings)}
    for first in range(0, n, each):
        last = min(first + each, n)
        code = np.arange(n, dtype=np.int32)
        group = np.where((code >= first) & (code < last), code - first, -1).astype(np.int32)
        of_rows = view(tallies, settings, group, last - first)
        for name, found in parts.items():
            value = _values(of_rows, settings, name)
            found.append(
                pl.DataFrame(
                    {
                        "datum_id": tallies.datums.id[first:last],
                        "metric": pl.Series([name]).new_from_index(0, last - first),
                        "value": pl.Series(value, nan_to_null=True),
                    }
                )
            )
    frame = pl.concat([part for found in parts.values() for part in found]) if n else blank
    empty = [pl.lit(None).alias(name) for name in schema if name not in frame.columns]
    undefined = pl.col("value").is_null()
    status = pl.when(undefined).then(pl.lit("undefined")).otherwise(pl.lit("scored"))
    return (
        frame.with_columns(*empty)
        .with_columns(status.alias("status"))
        .select(list(schema))
        .cast(schema)  # type: ignore[arg-type]
    )


def _names(settings: Settings) -> tuple[str, str, str]:
    """The metrics of a row, in their order."""
    return "Precision", "Recall", f"F{in_name(settings.beta)}"


def _values(of_rows: ScoredView, settings: Settings, name: str) -> Array:
    """The metric of every row, float64 [rows]; NaN where it is undefined."""
    compute = get("classification", name).compute
    assert compute is not None
    cells = {
        cell.columns.get("average"): np.asarray(cell.columns["value"])
        for cell in compute(of_rows, settings)
    }
    averaged, labelled = cells[settings.average], cells[None]
    if not averaged.size:
        return np.full(of_rows.n_groups, np.nan)
    values = of_rows.labels.frame["label_value"].to_list()
    if settings.positive_label is not None:
        code = find_label(of_rows.labels.frame["label_value"], settings.positive_label)
        return np.asarray(labelled[:, code])
    bits = [code for code, value in enumerate(values) if value in (0, 1)]
    if automatic_positive([values[code] for code in bits], None, settings.average) is None:
        return np.asarray(averaged[:, 0])
    used = in_use(of_rows)
    binary = (used.sum(axis=1) == 2) & used[:, bits].all(axis=1)
    return np.where(binary, labelled[:, bits[-1]], averaged[:, 0])
