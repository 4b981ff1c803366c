"""KITTI's numbers in percent, under the names that OpenPCDet gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ..schemas.errors import ResultError
from ..tasks.detection.dialects import DIALECTS

if TYPE_CHECKING:
    from ..scorecard.card import Scorecard

_COMPARED = {"bbox": "image", "bev": "bev", "3d": "3d"}
_SUFFIX = {"kitti": "_R40", "kitti-r11": ""}


def to_kitti(card: Scorecard) -> dict[str, float]:
    """Convert to each label's AP, and AOS if computed, easy first.

    Args:
        card: a scorecard of dialect ``kitti`` or ``kitti-r11``.

    Returns:
        ``Car_3d/easy_R40`` and so on, in percent; 0 without ground truths.

    Raises:
        ResultError: AP was not computed, or has several IoU thresholds per label.
    """
    unscored = DIALECTS[card.dialect].rules.unscored
    rows = card.metrics.filter(
        ~pl.col("label_value").cast(pl.String).is_in(unscored),
        pl.col("slice").is_null(),
        pl.col("metric").is_in(["AP", "AOS"]),
        pl.col("area") != "all",
    )
    if "AP" not in rows["metric"]:
        raise ResultError("to_kitti() shows AP, and this run has none: ask for AP.")
    if rows.select("label_key", "label_value", "metric", "area").is_duplicated().any():
        raise ResultError(
            "to_kitti() shows one IoU threshold a label, and this run has several: leave"
            " iou_thresholds out, or give one."
        )
    kinds = {"AP": _COMPARED[card.options.iou_type or "bbox"], "AOS": "aos"}
    made = {}
    for row in rows.iter_rows(named=True):
        name = f"{row['label_value']}_{kinds[row['metric']]}/{row['area']}{_SUFFIX[card.dialect]}"
        made[name] = 100 * (row["value"] or 0.0)
    return made
