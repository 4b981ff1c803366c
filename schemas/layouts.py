"""What a person sees first of a result: which numbers lead, which stand in the table of labels."""

from __future__ import annotations

import msgspec

WHOLE = "whole"
PARTS = "parts"
LARGEST = "largest"
EACH = "each"


class Entry(msgspec.Struct, frozen=True):
    """One metric's place in a layout; it makes one number per IoU threshold, area, cap it has.

    Attributes:
        metric: metric name.
        title: a template over the row: ``iou`` (0.5), ``percent`` (50), ``area``, ``cap``, ``k``.
        area: ``whole`` for the row over all areas, ``parts`` for the named ranges.
        cap: ``largest`` for the largest cap on detections (none being the largest), ``each``.
    """

    metric: str
    title: str
    area: str = WHOLE
    cap: str = LARGEST


class Spread(msgspec.Struct, frozen=True):
    """A metric whose rows over one column are a table of its own, not one number.

    Attributes:
        metric: metric name.
        by: what tells its rows apart, a number: a column of the metrics frame, or one of what its
            ``parameters`` hold.
        title: header of that column.
    """

    metric: str
    by: str
    title: str


class Layout(msgspec.Struct, frozen=True):
    """How the numbers of one task are shown.

    Attributes:
        headline: aggregates, in order.
        label_columns: columns of the per-label table; labels are sorted by the first.
        slice_columns: columns of the tables of slices.
        tables: metrics with a table of their own, one column per statistic.
        exact: show every digit of the headline beside the rounded number, for those who compare.
    """

    headline: tuple[Entry, ...]
    label_columns: tuple[Entry, ...]
    slice_columns: tuple[Entry, ...]
    tables: tuple[Spread, ...] = ()
    exact: bool = False
