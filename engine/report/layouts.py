"""Display layouts by task and dialect, if users know numbers by names.

A task without one uses the scorecard's ``primary`` metrics.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from importlib import import_module
from typing import Any

from ..schemas.layouts import Entry, Layout
from ..schemas.task_names import NAMES

USUAL_K = 10
"""Preferred cut-off if there are several."""

_NONE = Layout((), (), ())


def layout_of(task: str, dialect: str) -> Layout:
    """Return the layout of a task in a dialect; an empty one if there is none."""
    layouts = _of(task)
    return layouts.get(dialect) or layouts.get(None) or _NONE


def own_layout(task: str, dialect: str) -> Layout | None:
    """Return the layout of a dialect, or None if it uses the task's."""
    return _of(task).get(dialect)


def exact_layout(task: str, dialect: str) -> Layout:
    """Return the layout of a dialect if it shows every digit; otherwise the task's first one that
    does.
    """
    own = layout_of(task, dialect)
    return next((one for one in (own, *_of(task).values()) if one.exact), own)


def _of(task: str) -> dict[str | None, Layout]:
    """By dialect; None is the task's own."""
    found: dict[str | None, Layout] = import_module(f"..tasks.{task}.layouts", __package__).LAYOUTS
    return found


_PLACES = {
    "{iou:g}": r"(?P<iou_threshold>\d*\.?\d+)",
    "{percent:g}": r"(?P<percent>\d+)",
    "{area}": r"(?P<area>small|medium|large|easy|moderate|hard)",
    "{cap}": r"(?P<max_detections>\d+)",
}


def by_title(
    task: str, dialect: str, title: str, settled: Collection[str], there: Collection[str]
) -> tuple[str, dict[str, Any]] | None:
    """Return the rows for a title of the tables, so that gates and look-ups have the same meaning.

    COCO's ``AP`` is the mean over thresholds and labels; for one label the mean over thresholds,
    and at a threshold the metric of that name.

    Args:
        there: metrics of the run; columns of other metrics are in no table.

    Returns:
        metric and values of further columns; None if no table has such a title.
    """
    if "iou_threshold" in settled:
        return None
    layout = layout_of(task, dialect)
    labelled = "label_value" in settled or "label_name" in settled
    entries = layout.label_columns if labelled else (*layout.headline, *layout.slice_columns)
    for entry in entries:
        found = _matching(entry, title) if entry.metric in there else None
        if found is not None:
            return entry.metric, found
    return None


def any_title(title: str) -> bool:
    """Return whether the tables of some task and dialect have a title, except those with spaces."""
    return any(
        _matching(entry, title) is not None
        for task in NAMES
        for layout in _of(task).values()
        for entry in (*layout.headline, *layout.label_columns, *layout.slice_columns)
    )


def _matching(entry: Entry, title: str) -> dict[str, Any] | None:
    pattern = re.escape(entry.title)
    for place, group in _PLACES.items():
        pattern = pattern.replace(re.escape(place), group)
    found = re.fullmatch(pattern, title, re.IGNORECASE)
    if found is None:
        return None
    values: dict[str, Any] = {}
    for name, text in found.groupdict().items():
        if name == "percent":
            values["iou_threshold"] = int(text) / 100
        elif name == "area":
            values[name] = text.lower()
        else:
            values[name] = float(text) if name == "iou_threshold" else int(text)
    return values
