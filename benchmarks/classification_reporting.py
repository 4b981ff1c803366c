"""Results of the classification benchmark as Markdown."""

from __future__ import annotations

from functools import partial
from typing import Any

import section_reporting
from section_reporting import OURS, Line, Words, ratio

TITLES = {
    "binary": "ROC AUC of {m:g} M rows",
    "distinct": "ROC AUC of {m:g} M rows with 1,000 distinct scores",
    "two-tables": "ROC AUC of two tables, {m:g} M rows each, in different order",
    "grouped": "ROC AUC of each of {groups:,} groups, {half:g} M rows",
    "long": "Classification, {datums:,} datums x 100 labels, {m:g} M rows",
}
NAMES = {
    **OURS,
    "evalengine-2-labels": "**evalengine**, 2 threads, string labels",
    "evalengine-2-ids": "**evalengine**, 2 threads, string ids",
}
WAYS = {  # names in tables of peers with several methods, or without a method of their own
    "sklearnex": "scikit-learn-intelex {}",
    "polars-rank": "Polars {}, average ranks",
    "polars-places": "Polars {}, places among sorted negatives",
    "polars-counts": "Polars {}, counts per score",
    "polars-window": "Polars {}, ranks over a window",
    "polars-aggregate": "Polars {}, ranks in the aggregation",
    "polars-long": "Polars {}, a sort per label",
    "numpy-matrix": "NumPy {}, a sort per column of the matrix",
}
NOTES = {
    "two-tables": "Ids are in random order on both sides; every id is on both.",
    "grouped": (
        "Groups have about 200 rows and are in random order. scikit-learn scores every 50th "
        "group in a loop; its figures are 50 times that sample, plus reading once."
    ),
    "long": (
        "Precision, recall and F1 of the best label per datum, one-against-rest areas and their "
        "mean, and counts, precision and recall at 19 score thresholds, all per label. The two "
        "scikit-learns and NumPy put the scores into a matrix, knowing that ids and labels count "
        "from 0; Polars' expressions do not use that."
    ),
}
LIMITS = {  # section: comparison, figure, peers (all, or those with these names), maximum
    "binary": ("in process, CPU, against the thriftiest peer", "cpu", "", 0.2),
    "distinct": ("in process, wall, against the fastest peer", "wall", "", 1.0),
    "two-tables": ("in process, CPU, against Polars", "cpu", "polars-", 0.5),
    "grouped": ("in process, CPU, against the thriftiest peer", "cpu", "", 0.5),
    "long": ("in process, CPU, against the thriftiest peer", "cpu", "", 0.33),
}


def title(result: dict[str, Any]) -> str:
    millions = 20 * result["scale"]
    return TITLES[result["section"]].format(
        m=millions,
        half=millions / 2,
        groups=round(millions / 2 * 1e6 / 200),
        datums=round(millions * 1e6 / 100),
    )


def goals(result: dict[str, Any], peers: list[str]) -> list[Line]:
    """Project targets of this section next to the measured figures."""
    contenders, section = result["contenders"], result["section"]
    what, key, group, most = LIMITS[section]
    against = [peer for peer in peers if peer.startswith(group)]
    lines: list[Line] = [(what, ratio(contenders, "in_process", f"total_{key}", against), most)]
    if section == "long" and "polars-long" in peers:
        alone = ratio(contenders, "in_process", "total_cpu", ["polars-long"])
        lines.append(("the same against Polars alone", alone, None))
    for variant, what, most in (("labels", "labels", 1.5), ("ids", "ids", 3.0)):
        if other := contenders.get(f"evalengine-2-{variant}"):
            for key, word in (("wall", "wall"), ("cpu", "CPU")):
                cost = (
                    c["in_process"][f"total_{key}"] for c in (other, contenders["evalengine-2"])
                )
                lines.append(
                    (f"string {what} against integers, {word}", next(cost) / next(cost), most)
                )
    peak = ratio(contenders, "whole", "peak_mb", peers)
    lines.append(("peak memory, against the leanest peer", peak, 1.0))
    return lines


TORCH = " --torch-python TORCH/bin/python"
page = partial(
    section_reporting.page,
    Words(
        "classification",
        title,
        goals,
        names=NAMES,
        ways=WAYS,
        more=", and joins",
        notes=NOTES,
        options={"binary": TORCH, "distinct": TORCH},
    ),
)
