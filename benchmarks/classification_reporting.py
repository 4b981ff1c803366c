"""The classification benchmark's results as Markdown."""

from __future__ import annotations

from textwrap import fill
from typing import Any

from reporting import (
    IN_PROCESS,
    WHOLE,
    agreement,
    best,
    footer,
    relative,
    seconds,
    table,
    whole_table,
)

AGREE = 1e-9  # a peer whose numbers are further off is measured, but none to be measured against
TITLES = {
    "binary": "ROC AUC of {m:g} M rows",
    "distinct": "ROC AUC of {m:g} M rows with 1,000 distinct scores",
    "two-tables": "ROC AUC of two tables, {m:g} M rows each, in different order",
    "grouped": "ROC AUC of each of {groups:,} groups, {half:g} M rows",
    "long": "Classification, {datums:,} datums x 100 labels, {m:g} M rows",
}
NAMES = {
    "evalengine-1": "**evalengine**, 1 thread",
    "evalengine-2": "**evalengine**, 2 threads",
    "evalengine-2-labels": "**evalengine**, 2 threads, string labels",
    "evalengine-2-ids": "**evalengine**, 2 threads, string ids",
}
WAYS = {  # how peers that have several ways, or none of their own, are named in tables
    "sklearnex": "scikit-learn-intelex {}",
    "polars-rank": "Polars {}, average ranks",
    "polars-places": "Polars {}, places among sorted negatives",
    "polars-counts": "Polars {}, counts per score",
    "polars-window": "Polars {}, ranks over a window",
    "polars-aggregate": "Polars {}, ranks in the aggregation",
    "polars-long": "Polars {}, a sort per label",
    "numpy-matrix": "NumPy {}, a sort per column of the matrix",
}
ABOUT = """\
From Parquet to numbers, every measurement in a fresh process, contenders taking turns. CPU is
user and system seconds over all threads. *Relative* is to the best peer's figure of the same
column: below 1 is better than every peer. Peers use as many threads as they like; for those
without a reader of their own Polars reads, and joins. *Values* are compared with {reference}'s,
in every run.
"""
NOTES = {
    "two-tables": "Ids stand in random order on both sides; every id is on both.",
    "grouped": (
        "Groups have about 200 rows and stand in random order. scikit-learn scores every 50th "
        "group in a loop; its figures are 50 times what that took, and reading once."
    ),
    "long": (
        "Precision, recall and F1 of the best label per datum, one-against-rest areas and their "
        "mean, and counts, precision and recall at 19 score thresholds, all per label. The two "
        "scikit-learns and NumPy put the scores into a matrix, knowing that ids and labels count "
        "from 0; Polars' way knows nothing of them."
    ),
}
LIMITS = {  # section: what is compared, the figure, the peers (all, or those so named), at most
    "binary": ("in process, CPU, against the thriftiest peer", "cpu", "", 0.2),
    "distinct": ("in process, wall, against the fastest peer", "wall", "", 1.0),
    "two-tables": ("in process, CPU, against Polars", "cpu", "polars-", 0.5),
    "grouped": ("in process, CPU, against the thriftiest peer", "cpu", "", 0.5),
    "long": ("in process, CPU, against the thriftiest peer", "cpu", "", 0.33),
}


def names_of(contenders: dict[str, Any]) -> dict[str, str]:
    """What each contender is called."""
    return NAMES | {
        name: WAYS.get(name, name + " {}").format(contender["version"])
        for name, contender in contenders.items()
        if name not in NAMES
    }


def peers_of(contenders: dict[str, Any]) -> list[str]:
    """The peers that did all the work and agree."""
    return [
        name
        for name, contender in contenders.items()
        if name not in NAMES and not contender["sampled"] and contender["difference"] <= AGREE
    ]


def in_process_table(result: dict[str, Any], peers: list[str], names: dict[str, str]) -> str:
    contenders = result["contenders"]
    wall, cpu = (best(contenders, "in_process", f"total_{k}", peers) for k in ("wall", "cpu"))
    rows = []
    for name, contender in contenders.items():
        f = contender["in_process"]
        rows.append(
            [
                names[name] + (", estimated" if contender["sampled"] else ""),
                seconds(f["total_wall"]),
                relative(f["total_wall"], wall),
                seconds(f["total_cpu"]),
                relative(f["total_cpu"], cpu),
                "reference" if name == result["reference"] else agreement(contender),
            ]
        )
    return table(["", "wall s", "relative", "CPU s", "relative", "values"], rows)


def goals(result: dict[str, Any], peers: list[str]) -> str:
    """The project's targets for this section beside what was measured."""
    contenders, section = result["contenders"], result["section"]
    ours = contenders.get("evalengine-2")
    what, key, group, most = LIMITS[section]
    against = [peer for peer in peers if peer.startswith(group)]
    if not ours or not ours["whole"] or not against:
        return ""

    def ratio(kind: str, figure: str, peers: list[str]) -> float | None:
        peer = best(contenders, kind, figure, peers)
        return ours[kind][figure] / peer if peer else None

    lines: list[tuple[str, float | None, float | None]]
    lines = [(what, ratio("in_process", f"total_{key}", against), most)]
    if section == "long" and "polars-long" in peers:
        what = "the same against Polars alone"
        lines.append((what, ratio("in_process", "total_cpu", ["polars-long"]), None))
    for variant, what, most in (("labels", "labels", 1.5), ("ids", "ids", 3.0)):
        if other := contenders.get(f"evalengine-2-{variant}"):
            for key, word in (("wall", "wall"), ("cpu", "CPU")):
                cost = (c["in_process"][f"total_{key}"] for c in (other, ours))
                lines.append(
                    (f"string {what} against integers, {word}", next(cost) / next(cost), most)
                )
    lines.append(("peak memory, against the leanest peer", ratio("whole", "peak_mb", peers), 1.0))
    rows = []
    for name, value, limit in lines:
        if value is not None:
            verdict = "" if limit is None else "met" if value <= limit else "**missed**"
            rows.append([name, f"{value:.2f}", "" if limit is None else f"{limit:.2f}", verdict])
    # Speed counts for nothing if the numbers are others.
    gap = max(contender["difference"] for name, contender in contenders.items() if name in NAMES)
    verdict = "met" if gap <= AGREE else "**missed**"
    rows.append(["largest difference in the values", f"{gap:.1e}", f"{AGREE:.0e}", verdict])
    return table(["evalengine, 2 threads", "measured", "at most", ""], rows)


def page(result: dict[str, Any]) -> str:
    """One section, heading and body."""
    contenders, section = result["contenders"], result["section"]
    names, peers = names_of(contenders), peers_of(contenders)
    millions = 20 * result["scale"]
    title = TITLES[section].format(
        m=millions,
        half=millions / 2,
        groups=round(millions / 2 * 1e6 / 200),
        datums=round(millions * 1e6 / 100),
    )
    reference = names.get(result["reference"], "none").split(",")[0]
    parts = [f"## {title}", fill(ABOUT.format(reference=reference), 100)]
    parts += [fill(NOTES[section], 100)] if section in NOTES else []
    parts += [IN_PROCESS, in_process_table(result, peers, names)]
    if any(contender["whole"] for contender in contenders.values()):
        parts += [WHOLE, whole_table(contenders, peers, names)]
    apart = [
        names[name]
        for name, contender in contenders.items()
        if name not in NAMES and contender["difference"] > AGREE
    ]
    if apart:
        parts.append(
            f"{', '.join(apart)}: further than {AGREE:.0e} from the reference, "
            "so no peer to be measured against."
        )
    if met := goals(result, peers):
        parts.append(met)
    for name, failure in result["failures"].items():
        parts.append(f"{name} could not be measured ({failure.split(':')[0]}).")
    more = " --torch-python TORCH/bin/python" if section in ("binary", "distinct") else ""
    more += "" if result["scale"] == 1 else f" --scale {result['scale']:g}"
    runs = f"medians of {result['runs']} runs"
    parts.append(footer(result, runs, "classification", more))
    return "\n\n".join(part.rstrip() for part in parts)
