"""Counts by score threshold: the table of the report that a slider moves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ..scorecard.lookup import whole
from .page import Cell, Table
from .summary import UNDEFINED, number, plain

_COUNTS = ("tp", "fp", "fn")
_HALF = 0.5
_LABELS = 20


class Counts(msgspec.Struct, frozen=True):
    """Counts of all labels together and of some, at many thresholds.

    Attributes:
        thresholds: as they are shown, ascending.
        at: the place of the one that is shown first, the nearest to 0.5.
        table: the counts there.
        data: ``thresholds``, and ``rows``: of each row of the table tp, fp and fn by threshold.
    """

    thresholds: list[str]
    at: int
    table: Table
    data: dict[str, Any]

    @property
    def shown(self) -> str:
        """The threshold that is shown first."""
        return self.thresholds[self.at]


def counts(
    frame: pl.DataFrame | None, names: Mapping[tuple[str | None, Any], str]
) -> Counts | None:
    """Counts of a run at a hundred thresholds; None without any.

    Args:
        frame: ``thresholds`` of the report, the ``curves`` frame at many thresholds.
        names: (label key, label value) -> name, where labels have names.
    """
    if frame is None or not frame.height:
        return None
    frame = whole(
        frame.filter(pl.col("slice").is_null(), pl.col("score_threshold").is_not_null()),
        ("area", "max_detections"),
    )
    every = frame["score_threshold"].unique().sort().to_numpy()
    hundredths = every[np.isclose(every * 100, np.round(every * 100), atol=1e-9)]
    inside = hundredths.size and every[0] >= 0 and every[-1] <= 1  # else scores are not shares
    chosen = hundredths if inside else every[:: max(1, every.size // 100)]
    frame = frame.filter(pl.col("score_threshold").is_in(chosen.tolist()))
    keys = ["label_key", "label_value"]
    labels = (
        frame.group_by(keys, maintain_order=True)
        .agg(support=(pl.col("tp") + pl.col("fn")).max())
        .sort("support", descending=True, maintain_order=True)
    )
    named = labels["label_key"].n_unique() > 1
    rows = []
    for key in labels["label_key"].unique(maintain_order=True):
        of_key = frame.filter(pl.col("label_key").eq_missing(pl.lit(key, pl.String)))
        if of_key["label_value"].n_unique() > 1:
            sums = of_key.group_by("score_threshold").agg(pl.col(*_COUNTS).sum())
            whole_of = f"all labels of {key}" if named else "all labels"
            rows.append((plain(whole_of), sums.sort("score_threshold")))
    for key, value in labels.head(_LABELS).select(keys).iter_rows():
        of = pl.col("label_key").eq_missing(pl.lit(key)) & (pl.col("label_value") == value)
        called = names.get((key, value), str(value))
        name = f"{key} {called}" if named else called
        rows.append((plain(name), frame.filter(of).sort("score_threshold")))
    at = int(np.abs(chosen - _HALF).argmin())
    data = [[[_plain(v) for v in one[name].to_list()] for name in _COUNTS] for _, one in rows]
    left = labels.height - min(labels.height, _LABELS)
    notes = [f"{left:,} labels of less support are not in this table."] if left else []
    table = Table(
        id="counts",
        caption="True positives, false positives and what was missed",
        header=["label", "TP", "FP", "FN", "precision", "recall", "F1"],
        rows=[[Cell(name, kind="name"), *_cells([c[at] for c in columns])]
              for (name, _), columns in zip(rows, data, strict=True)],
        notes=notes,
    )  # fmt: skip
    said = [f"{threshold:.6g}" for threshold in chosen.tolist()]
    return Counts(said, at, table, {"thresholds": said, "rows": data})


def _plain(value: float) -> float:
    """A count as JSON holds it in fewest characters."""
    return int(value) if float(value).is_integer() else round(float(value), 3)


def _cells(counted: list[float]) -> list[Cell]:
    tp, fp, fn = counted
    shares = [(tp, tp + fp), (tp, tp + fn), (2 * tp, 2 * tp + fp + fn)]
    cells = [Cell(f"{one:,.10g}", one) for one in counted]
    for part, every in shares:
        share = part / every if every else None
        cells.append(Cell(UNDEFINED if share is None else number(share), share))
    return cells
