"""Bounds of each number under choices that the tables do not fix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import polars as pl

from ..evaluation import planner
from ..evaluation.limits import FRAME, refuse
from ..ingest.opening import Tables
from ..ingest.problems import count_of, listing
from ..run import card_of_run, is_scored, refuse_tables
from ..schemas.errors import ResultError
from ..schemas.named import Named
from ..schemas.option_values import make_options
from ..schemas.options import Options
from ..schemas.wording import option
from . import FindingResult

# Result class of ``find_limits``.

_SAME = 1e-12
"""Ends closer than this are one number."""
_MOVES = pl.col("value").is_not_null() & (
    (pl.col("highest") - pl.col("lowest") > _SAME).fill_null(value=True)
)


class FoundLimits(FindingResult, eq=False):
    """Bounds of numbers under choices that the protocol does not fix.

    Attributes:
        frame: one row per number and kind of choice: the key columns of the frame ``metrics``,
            ``value``, ``limit`` (String), ``lowest`` and ``highest`` (Float64), and ``bound``
            (String), see :func:`evalengine.find_limits`.
        every: whether all rows are shown; otherwise only numbers over all labels and datums that
            some choice moves, widest first.
    """

    frame: pl.DataFrame
    every: bool = False
    _name = "limits"

    def __post_init__(self) -> None:
        self.displayed = self.frame
        if not self.every:
            self.displayed, self.messages = _widest_rows(self.moving)

    def __len__(self) -> int:
        return self.displayed.height

    @property
    def moving(self) -> pl.DataFrame:
        """Rows of numbers that some choice moves, or of which no ends are known."""
        return self.frame.filter(_MOVES)

    @property
    def moved(self) -> int:
        """Count the numbers that some choice moves."""
        return self._numbers(self.moving).height

    @property
    def unmoved(self) -> int:
        """Count the numbers that no tried choice moved; untried ones might."""
        tried = self.frame.filter(bound="at least").drop_nulls("value")
        others = self._numbers(tried).join(
            self._numbers(self.moving), on=self._names, how="anti", nulls_equal=True
        )
        return others.height

    def _numbers(self, rows: pl.DataFrame) -> pl.DataFrame:
        return rows.select(self._names).unique()

    @property
    def _names(self) -> list[str]:
        return self.frame.columns[: self.frame.columns.index("value")]

    @property
    def whole(self) -> FoundLimits:
        """The same, showing every row."""
        return FoundLimits(self.frame, every=True)

    def _heading(self) -> str:
        moved, others = self.moved, self.unmoved
        if not moved:
            return "no number could move" if not others else "no number moved"
        message = f"{count_of(moved, 'number')} could move, the widest first"
        return f"{message}; {others:,} more did not move" if others else message

    def _rows(self) -> pl.DataFrame:
        return self.frame if self.every else self.moving

    def _table_rows(self) -> pl.DataFrame:
        """Rows with ``parameters`` only if they distinguish rows."""
        others = self.displayed.drop("parameters", "lowest", "highest")
        repeats = others.is_duplicated().any()
        return self.displayed if repeats else self.displayed.drop("parameters")


def _widest_rows(rows: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Return the numbers over all labels and datums, widest first, and notes about the others."""
    notes = []
    single = pl.col("label_value").is_not_null() | pl.col("slice").is_not_null()
    if rows.filter(~single).height and (left := rows.filter(single).height):
        rows = rows.filter(~single)
        notes.append(f"skipped {count_of(left, 'number')} of single labels and slices.")
    blind = pl.col("bound").is_in(["range", "unknown"])
    for (limit,), group in rows.filter(blind).group_by("limit", maintain_order=True):
        names = list(dict.fromkeys(group["metric"]))
        notes.append(f"{limit}: no bounds are known of {listing(names)}, but their range.")
    rows = rows.filter(~blind)
    if notes:
        notes.append("all rows are in frame, and shown by --all.")
    width = pl.col("highest") - pl.col("lowest")
    return rows.sort(width, descending=True, maintain_order=True), tuple(notes)


# Implementation of ``find_limits``.


def find_limits(
    run: Any,
    ground_truths: Any = None,
    *,
    datums: Any = None,
    labels: Any = None,
    options: Options | Mapping[str, Any] | None = None,
    storage_options: dict[str, str] | None = None,
    **named: Unpack[Named],
) -> FoundLimits:
    """Compute how far each number could move under choices that the tables do not determine.

    ``ties``: the order of equal scores, per label in detection and per query in retrieval. ``cap``,
    in detection: without the cap on detections. ``unjudged``, in retrieval: every retrieved
    document without a judgment, in queries that have some, gets any of the grades that occur in the
    judgments, or no grade.

    Args:
        run: predictions, as :func:`evalengine.score` takes them, or a :class:`evalengine.Scorecard`
            or the folder of a saved one that was scored with ``limits``.
        ground_truths: if the run is predictions.
        datums: table of all datums, if the run is predictions.
        labels: table or list of declared classes, if the run is predictions.
        options: options to start from; named ones take precedence.
        storage_options: for remote paths, as Polars takes them.
        **named: any field of :class:`evalengine.Options`.

    Returns:
        :class:`evalengine.findings.bounds.FoundLimits`, whose ``frame`` has one row per number
        and kind of choice: the key columns of the ``metrics`` frame, ``value``, ``limit`` (String),
        ``lowest`` and ``highest`` (Float64), and ``bound`` (String), which qualifies these two:

        - ``exact``: both are reached and never passed.
        - ``at most``: never passed, but perhaps not reached, such as nDCG with several possible
          grades.
        - ``at least``: the extremes of the choices tried; others may go further. In detection if
          two equal scores belong to one datum, so that their matches change as well, or if some hit
          at one IoU threshold and others at another.
        - ``range``: the range of the metric itself, null if unbounded; no tighter bound is known.
        - ``unknown``: both are null.

    Raises:
        ResultError: a task without such choices, or a scored run without limits.
        OptionError: options that contradict those of a scored run.
        InputError: the tables break their contract.

    Example:
        >>> import evalengine as ee
        >>> ee.find_limits("run.txt", "qrels.txt", metrics=["nDCG@10"]).frame  # doctest: +SKIP
    """
    chosen = make_options(options, **named)
    tables = Tables(run, ground_truths, datums, labels, storage_options)
    if is_scored(run):
        refuse_tables(tables)
    else:
        chosen = chosen.replace(limits=True)
    card = card_of_run(tables, chosen, in_memory=False)
    if FRAME not in card.frames:
        refuse(planner.make_plan(card.options, card.task))
        raise ResultError(
            f"the run keeps no limits, and not the rows to compute them from: score it with"
            f" {option('limits', True)}, or give the tables.",
            code="not_kept",
        )
    return FoundLimits(card.frame(FRAME))
