"""Found thresholds: what ``find_thresholds`` returns."""

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
    """Score thresholds by rule and label.

    Attributes:
        frame: a row a rule and label, and one for all labels of a key (``average`` micro):
            ``metric`` (the rule), ``parameters`` (what it is held to, JSON), ``label_key,
            label_value, label_name, average``, ``threshold`` with ``lower, upper`` (of thresholds
            chosen anew in draws of the datums), ``tp, fp, fn, tn`` (at or above the threshold; tn
            null where nothing is negative), ``precision, recall, fpr, f`` with ``_lower`` and
            ``_upper`` (at this threshold), ``cost``, the same as ``held_out_...`` (chosen on one
            half of the datums, counted on the other, both ways), ``flattery`` (by how much what the
            rule serves looks better here than held out), ``kept`` (whether what it is held to is
            kept there), ``reason`` (why there is no threshold).
        metrics: the rules, in order.
        beta: weight of recall in ``f``.
        level: confidence of the intervals, in (0, 1).
        iou_threshold: at which boxes hit, metres with ``by_distance``; None where there are none.
        by_distance: whether boxes are compared by how far apart their centres are.
        n: datums.
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
        """The thresholds that one rule chose, as ``thresholds`` of :func:`evalengine.score` takes.

        Args:
            metric: the rule; may be left out where there is one.

        Returns:
            label_key, label_value, label_name (where labels have names), threshold; the row of a
            key without label_value, where there is one, is of its labels that have no row.

        Raises:
            OptionError: several rules and none named, or one that was not asked for.
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
        """Write the thresholds of one rule to a file, JSON, CSV or Parquet by its name.

        Args:
            path: the file, which is replaced.
            metric: as of :meth:`table`.

        Returns:
            how many rows it has.

        Raises:
            OptionError: another ending, or as :meth:`table`.
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
