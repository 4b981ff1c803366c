"""LVIS's shape: the thirteen numbers of ``LVISEval``, and its precision and recall arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from ..schemas.errors import ResultError
from ..tasks.detection.metrics.averages import FREQUENCIES, of_frequency
from . import coco
from .coco import CocoResult

if TYPE_CHECKING:
    from ..scorecard.card import Scorecard
    from ..tally.ranked_view import RankedView
    from ..tasks.detection.settings import Settings

_MOST = 300
"""Default of ``Params.max_dets``; lvis-api prints it whatever the cap was."""


def _named(coco_names: Mapping[str, float], frequent: Mapping[str, float]) -> dict[str, float]:
    """LVIS's names in LVIS's order, from COCO's: APsmall is APs, the last AR is AR@300."""
    out: dict[str, float] = {}
    for name, value in coco_names.items():
        kind, rest = name[:2], name[2:]
        if kind == "AR" and (not rest or rest.isdecimal()):
            if not out.keys() & frequent.keys():
                out.update(frequent)
            out[f"AR@{rest or _MOST}"] = value
            continue
        short = rest[:1] if rest in ("small", "medium", "large") else rest
        out[f"{kind}{short}" + (f"@{_MOST}" if kind == "AR" else "")] = value
    return out


def from_view(view: RankedView, settings: Settings) -> CocoResult:
    """Build LVIS's result from a run.

    Args:
        view: the whole set.

    Returns:
        names, stats (Python floats), precision float64 [T, R, K, A], recall [T, K, A] and params; K
        is the labels in ascending order. Undefined is -1.
    """
    made = coco.from_view(view, settings)

    def numbers() -> dict[str, float]:
        frequent = {
            f"AP{name}": coco.first(of_frequency(view, settings, name)[0][..., 0])
            for name in FREQUENCIES
        }
        return _named(dict(zip(made["names"], made["stats"], strict=True)), frequent)

    return CocoResult(
        {
            "names": lambda: list(numbers()),
            "stats": lambda: list(numbers().values()),
            "precision": lambda: made["precision"][..., -1],
            "recall": lambda: made["recall"][..., -1],
            "params": lambda: made["params"],
        }
    )


def from_frames(card: Scorecard) -> CocoResult:
    """Build LVIS's result from a stored scorecard: only names and stats.

    Raises:
        ResultError: on access to an array, which is not stored.
    """
    made = coco.from_frames(card)

    def numbers() -> dict[str, float]:
        rows = card.metrics.filter(
            pl.col("slice").is_null() & (pl.col("area").is_null() | (pl.col("area") == "all"))
        )
        of = dict(rows.select("metric", "value").iter_rows())
        frequent = {
            f"AP{name}": -1.0 if of.get(f"AP{name}") is None else of[f"AP{name}"]
            for name in FREQUENCIES
        }
        return _named(dict(zip(made["names"], made["stats"], strict=True)), frequent)

    def missing() -> Any:
        raise ResultError(
            "A stored scorecard holds frames, not LVIS's arrays: score again to have them."
        )

    return CocoResult(
        {
            "names": lambda: list(numbers()),
            "stats": lambda: list(numbers().values()),
            **dict.fromkeys(("precision", "recall", "params"), missing),
        }
    )
