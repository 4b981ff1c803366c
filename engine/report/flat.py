"""A scorecard as a flat dict of plain numbers, as loggers of experiments take it."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from ..schemas.contract import DEFAULT_LABEL_KEY
from ..scorecard.lookup import KEYS
from .grids import chosen, titled
from .layouts import own_layout

if TYPE_CHECKING:
    from ..scorecard.card import Scorecard

_REFUSED = re.compile(r"[^\w.-]+")
"""Characters that MLflow and TensorBoard do not accept in a name, except for the slash."""
_PARTS = (
    ("statistic", "{}"),
    ("average", "{}"),
    ("k", "{}"),
    ("iou_threshold", "iou_{:g}"),
    ("score_threshold", "score_{:g}"),
    ("area", "{}"),
    ("max_detections", "max_{}"),
)
"""Components of a name after the metric, in this order, if the row has them."""
_USUAL = {"area": "all"}
_DIGITS = 6  # of a digest

Spot = tuple[Any, ...]
"""Values of the columns that identify a number."""


def as_dict(
    card: Scorecard,
    prefix: str = "",
    step: int | float | None = None,
    *,
    labels: bool = False,
    slices: bool = False,
    intervals: bool = True,
    undefined: float | None = None,
) -> dict[str, float]:
    """See :meth:`evalengine.Scorecard.to_dict`."""
    rows = card.metrics
    spelt = set(rows["metric"]) if labels else set[str]()
    named = _named(rows, card)
    if not slices:
        rows = rows.filter(pl.col("slice").is_null())
    if not labels:
        # A metric of a single label, such as the positive class, has only this number.
        label = pl.col("label_value")
        none = label.is_null().any().not_()
        single = (none & (label.n_unique() == 1)).over("metric", "slice", "slice_value")
        # Metrics that were named and have numbers of labels only would not be there at all. AP
        # counts as there if mAP is.
        means = [name[1:] for name in rows["metric"].unique() if name.startswith("m")]
        named_alone = none.over("metric") & ~single & ~pl.col("metric").is_in(means)
        named_alone &= pl.lit(card.options.metrics is not None)
        rows = rows.filter(label.is_null() | single | named_alone)
        spelt = set(rows.filter(named_alone)["metric"])
    found: dict[str, float] = {} if step is None else {f"{prefix}step": step}
    every = [*rows.iter_rows(named=True)]
    for row, name in zip(every, _names(every, named, spelt), strict=True):
        bounds = {"_lower": row["lower"], "_upper": row["upper"]} if intervals else {}
        value = undefined if row["value"] is None else row["value"]
        for end, number in {"": value, **bounds}.items():
            if number is not None:
                found[f"{prefix}{name}{end}"] = float(number)
    return found


def _spot(row: Mapping[str, Any]) -> Spot:
    return (row["metric"], *(row[column] for column in KEYS))


def _named(rows: pl.DataFrame, card: Scorecard) -> dict[Spot, str]:
    """Return titles of numbers that the dialect names differently, such as AP50."""
    layout = own_layout(card.task, card.dialect)
    if layout is None:
        return {}
    label, part = pl.col("label_value"), pl.col("slice")
    found = {}
    for entries, some in (
        (layout.label_columns, rows.filter(label.is_not_null())),
        (layout.slice_columns, rows.filter(label.is_null(), part.is_not_null())),
        (layout.headline, rows.filter(label.is_null(), part.is_null())),
    ):
        for entry in entries:
            for row in chosen(some, entry).iter_rows(named=True):
                found[_spot(row)] = titled(entry, row)
    return found


def _names(
    rows: list[dict[str, Any]], named: Mapping[Spot, str], spelt: Collection[str]
) -> list[str]:
    """Return a unique name per row; ambiguous ones include more of their thresholds."""
    told = [_told(row, named.get(_spot(row)), labels=row["metric"] in spelt) for row in rows]
    often = Counter(map(_joined, told))
    for one, row in zip(told, rows, strict=True):
        if often[_joined(one)] > 1 and row["parameters"]:
            said = json.loads(row["parameters"])
            one[0] = "_".join([one[0], *(f"{name}_{value}" for name, value in said.items())])
    often = Counter(map(_joined, told))
    return [
        _joined(one)
        if often[_joined(one)] == 1
        else f"{_joined(one)}.{hashlib.sha256(repr(_spot(row)).encode()).hexdigest()[:_DIGITS]}"
        for one, row in zip(told, rows, strict=True)
    ]


def _joined(parts: list[str]) -> str:
    return "/".join(_REFUSED.sub("_", part).strip("_") or "_" for part in parts)


def _told(row: Mapping[str, Any], title: str | None, *, labels: bool) -> list[str]:
    """Return the components of a name: the metric and its thresholds, the slice, the label."""
    if title is None:
        parts = [
            form.format(row[column])
            for column, form in _PARTS
            if row[column] is not None and row[column] != _USUAL.get(column)
        ]
        title = "_".join([row["metric"], *parts])
    found = [title]
    if row["slice"] is not None:
        found.append(f"{row['slice']}_{row['slice_value']}")
    if row["label_key"] not in (None, DEFAULT_LABEL_KEY):
        found.append(row["label_key"])
    if labels and row["label_value"] is not None:
        found.append(str(row["label_value"]))
    return found
