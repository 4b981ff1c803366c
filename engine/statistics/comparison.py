"""Comparison, the result of ``compare``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from ..schemas.options import Options


class Comparison:
    """Differences between runs over the same datums, with their statistical uncertainty.

    Attributes:
        task: the task of all runs.
        dialect: their rule set.
        options: their options, with level, draws and seed of the comparison.
        runs: name -> source of each run.
        adjust: adjustment of p-values for many rows.
        test: source of the p-values.
        n: number of compared datums.
        differences: one row per pair of runs and number of the metrics frame: ``run_a, run_b``, the
            columns that identify a number, ``a, b, difference`` (b minus a), ``lower, upper`` (of
            the difference), ``se``, ``p`` (randomisation), ``p_adjusted``, ``wins, ties, losses``
            (datums that run b does better, equally, worse), ``detectable`` (the smallest difference
            detected with 80% power), ``support``, ``missing_a, missing_b`` (datums for which only
            the other run has a value), ``coverage`` (compared share of the datums with a value in
            either run).
        flips: one row per datum and aggregate that differs: ``run_a, run_b, datum_id``, the columns
            that identify a number, ``a, b, change`` (better or worse in run b).
        directions: metric -> ``higher`` or ``lower``, whichever is better.
        notes: information for the reader; includes the warnings.
        warnings: notes that make the comparison doubtful.
        names: label value, as text -> class name, if it differs.
        units: effective number of datums or clusters of each difference; None if saved.
        cites: line to cite of each run that was scored before.
    """

    def __init__(
        self,
        *,
        task: str,
        dialect: str,
        options: Options,
        runs: Mapping[str, str],
        adjust: str,
        test: str,
        n: int,
        differences: pl.DataFrame,
        flips: pl.DataFrame,
        directions: Mapping[str, str],
        notes: tuple[str, ...] = (),
        warnings: tuple[str, ...] = (),
        names: Mapping[str, str] | None = None,
        units: pl.Series | None = None,
        cites: Mapping[str, str] | None = None,
    ) -> None:
        self.task = task
        self.dialect = dialect
        self.options = options
        self.runs = dict(runs)
        self.adjust = adjust
        self.test = test
        self.n = n
        self.differences = differences
        self.flips = flips
        self.directions = dict(directions)
        self.notes = tuple(notes)
        self.warnings = tuple(warnings)
        self.names = dict(names or {})
        self.units = units
        self.cites = dict(cites or {})

    @property
    def level(self) -> float:
        """Confidence of the intervals, in (0, 1)."""
        from ..schemas.option_values import parse_intervals

        requested = parse_intervals(self.options)
        assert requested is not None
        return requested.level

    @property
    def verdict(self) -> str:
        """Outcome, in a sentence a pair."""
        from ..report.verdicts import verdict

        return verdict(self)

    def save(self, directory: str | Path, *, overwrite: bool = False) -> Path:
        """Write the frames as Parquet and ``comparison.json`` into a folder, atomically.

        Args:
            overwrite: replace an earlier comparison there.

        Raises:
            ResultError: the path is occupied.
            WriteError: the folder cannot be written.
        """
        from ..scorecard.storage import save_comparison

        return save_comparison(self, directory, overwrite=overwrite)

    def __repr__(self) -> str:
        from ..report.show import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from ..report.show import as_html

        return as_html(self)
