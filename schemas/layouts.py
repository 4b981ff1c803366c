"""Layouts of results: headline numbers, and columns of the tables of labels and slices."""

from __future__ import annotations

import msgspec

WHOLE = "whole"
PARTS = "parts"
LARGEST = "largest"
EACH = "each"


class Entry(msgspec.Struct, frozen=True):
    """One metric's entry in a layout; gives one number per IoU threshold, area and cap.

    Attributes:
        metric: metric name.
        title: a template over the row: ``iou`` (0.5), ``percent`` (50), ``area``, ``cap``, ``k``.
        area: ``whole`` for the row over all areas, ``parts`` for the named ranges.
        cap: ``largest`` for the largest cap on detections (no cap being the largest), ``each``.
        known: name in other tools, a template as ``title`` that may also have ``low`` and ``high``,
            the first and last IoU threshold in percent.
    """

    metric: str
    title: str
    area: str = WHOLE
    cap: str = LARGEST
    known: str = ""


class Spread(msgspec.Struct, frozen=True):
    """A metric shown as a table over one column instead of as one number.

    Attributes:
        metric: metric name.
        by: numeric column of the table: a column of the metrics frame, or an entry of its
            ``parameters``.
        title: header of that column.
    """

    metric: str
    by: str
    title: str


class Layout(msgspec.Struct, frozen=True):
    """Display of the numbers of one task.

    Attributes:
        headline: aggregates, in order.
        label_columns: columns of the per-label table; labels are sorted by the first.
        slice_columns: columns of the tables of slices.
        tables: metrics with a separate table, one column per statistic.
        exact: show every digit of the headline next to the rounded number.
        best_first: labels and slices are sorted as in a leaderboard; otherwise the worst is first.
    """

    headline: tuple[Entry, ...]
    label_columns: tuple[Entry, ...]
    slice_columns: tuple[Entry, ...]
    tables: tuple[Spread, ...] = ()
    exact: bool = False
    best_first: bool = False
