"""Result class of ``find_thresholds``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from ..atomic import whole_file, written
from ..overwriting import refuse
from ..schemas.errors import OptionError, unknown
from ..schemas.wording import option
from .found import Found

if TYPE_CHECKING:
    from ..report.found_rows import Layout

FILE_COLUMNS = ("label_key", "label_value", "label_name", "threshold")


class FoundThresholds(Found):
    """Score thresholds per rule and label.

    Attributes:
        frame: one row per rule and label, and one for all labels of a key (``average`` micro):
            ``metric`` (the rule), ``parameters`` (its target, JSON), ``label_key, label_value,
            label_name, average``, ``threshold`` with ``lower, upper`` (of thresholds chosen again
            in each resample), ``tp, fp, fn, tn`` (at or above the threshold; tn null without
            negatives), ``precision, recall, fpr, f`` with ``_lower`` and ``_upper`` (at this
            threshold), ``cost``, the same as ``held_out_...`` (chosen on one half of the datums,
            counted on the other, then the reverse), ``flattery`` (by how much the rule's objective
            looks better here than held out), ``kept`` (whether held-out data reach the target),
            ``reason`` (why there is no threshold).
        metrics: the rules, in order.
        beta: weight of recall in ``f``.
        level: confidence of the intervals, in (0, 1).
        iou_threshold: IoU from which a box is a hit, metres with ``by_distance``; None without
            boxes.
        by_distance: whether boxes are compared by the distance of their centres.
        n: number of datums.
    """

    def __init__(
        self,
        frame: pl.DataFrame,
        *,
        metrics: Sequence[str],
        beta: float,
        level: float,
        iou_threshold: float | None,
        by_distance: bool = False,
        n: int,
        notes: Sequence[str] = (),
    ) -> None:
        self.frame = frame
        self.metrics = tuple(metrics)
        self.beta = beta
        self.level = level
        self.iou_threshold = iou_threshold
        self.by_distance = by_distance
        self.n = n
        self.said = tuple(notes)

    def table(self, metric: str | None = None) -> pl.DataFrame:
        """Return the thresholds of one rule, as :func:`evalengine.score` takes them for
        ``thresholds``.

        Args:
            metric: the rule; optional if there is only one.

        Returns:
            label_key, label_value, label_name (if labels have names), threshold. A row without
            label_value applies to the labels of its key that have no row.

        Raises:
            OptionError: several rules and none named, or a rule that was not requested.
        """
        if metric is None and len(self.metrics) > 1:
            raise OptionError(
                f"several rules chose thresholds ({', '.join(self.metrics)}): name one,"
                f" {option('metrics', self.metrics[0])}.",
                code="ambiguous",
                metrics=list(self.metrics),
            )
        named = metric or self.metrics[0]
        if named not in self.metrics:
            raise unknown("metric", named, self.metrics)
        table = self.frame.filter(
            (pl.col("metric") == named) & pl.col("threshold").is_not_null()
        ).select(FILE_COLUMNS)
        unnamed = table["label_name"].null_count() == table.height
        return table.drop("label_name") if unnamed else table

    def save(self, path: str | Path, metric: str | None = None) -> int:
        """Write the thresholds of one rule to a JSON, CSV or Parquet file, by its suffix.

        Args:
            path: the file; an existing one is replaced.
            metric: see :meth:`table`.

        Returns:
            number of rows.

        Raises:
            OptionError: another suffix, or as in :meth:`table`.
        """
        table, path = self.table(metric), Path(path)
        writers: dict[str, Callable[..., Any]] = {
            ".json": table.write_json, ".csv": table.write_csv, ".parquet": table.write_parquet,
        }  # fmt: skip
        if path.suffix not in writers:
            raise OptionError(
                f"{path.name}: write a file that ends in {', '.join(writers)}.",
                code="format_unknown",
                file=str(path),
            )
        refuse(path, self.inputs)
        with written(path), whole_file(path, sweeps=True) as file:
            writers[path.suffix](file)
        return table.height

    def __len__(self) -> int:
        return self.frame.height

    def _layout(self) -> Layout:
        from ..report.found_thresholds import LAYOUT

        return LAYOUT
