"""panopticapi's shape: PQ, SQ, RQ and n of all labels, things and stuff, and of each class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from ..schemas.errors import ResultError

if TYPE_CHECKING:
    from ..scorecard.card import Scorecard

_QUALITIES = ("PQ", "SQ", "RQ")
_GROUPS = {None: "All", "things": "Things", "stuff": "Stuff"}
_UNDEFINED = 0.0
"""panopticapi's value for a class without segments."""


def to_panoptic(card: Scorecard) -> dict[str, Any]:
    """Convert to the result of ``pq_compute``: ``All``, ``Things``, ``Stuff`` and ``per_class``.

    Args:
        card: a scorecard of panoptic segmentation.

    Returns:
        pq, sq, rq and n of each; None without segments, for which panopticapi divides by 0.

    Raises:
        ResultError: PQ, SQ or RQ was not computed.
    """
    whole = card.metrics.filter(pl.col("slice").is_null(), pl.col("metric").is_in(_QUALITIES))
    lacking = [name for name in _QUALITIES if name not in whole["metric"]]
    if lacking:
        raise ResultError(
            f"to_panoptic() shows PQ, SQ and RQ, and this run has no {lacking[0]}: ask for all"
            " three, or for no metric by name."
        )
    means = whole.filter(pl.col("label_value").is_null())
    made: dict[str, Any] = {name: {} for name in _GROUPS.values()}
    for row in means.iter_rows(named=True):
        group = made[_GROUPS[row["average"]]]
        group[row["metric"].lower()] = row["value"]
        group["n"] = group.pop("n", row["support"])
    made = {name: group for name, group in made.items() if group}
    classes: dict[Any, dict[str, float]] = {}
    for row in whole.filter(pl.col("label_value").is_not_null()).iter_rows(named=True):
        value = _UNDEFINED if row["value"] is None else row["value"]
        classes.setdefault(row["label_value"], {})[row["metric"].lower()] = value
    return made | {"per_class": classes}
