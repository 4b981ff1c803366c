"""Results of the segmentation benchmark as Markdown."""

from __future__ import annotations

from functools import partial
from typing import Any

import section_reporting
from section_reporting import Line, Words, ratio

TITLES = {
    "counts": "Label maps in memory, {pairs:,} pairs of 1,024 x 1,024, 19 classes",
    "noise": "Label maps without regions, {pairs:,} pairs of 1,024 x 1,024, 19 classes",
    "png": "Label maps in PNG, {pairs:,} pairs of 1,024 x 1,024",
    "geotiff": "Label maps in GeoTIFF, {pairs:,} pairs of 1,024 x 1,024",
    "windows": "One pair of GeoTIFF, {side:,} x {side:,}",
}
WAYS = {
    "opencv": "OpenCV {}, calcHist of two channels",
    "torchmetrics": "torchmetrics {}, multiclass_confusion_matrix",
    "polars": "Polars {}, group_by and len",
    "scikit-learn": "scikit-learn {}, confusion_matrix",
    "numpy": "NumPy {}, bincount",
    "rasterio": "rasterio {} and NumPy's bincount",
    "read-once": "every byte read once (NumPy {}, max of words)",
}
ABOUT = """\
IoU of every class and their mean. Every measurement in a fresh process, contenders taking turns.
CPU is user and system seconds over all threads. *Relative* is to the best peer's figure of the same
column: below 1 is better than every peer. Peers use as many threads as they like. *Values* are
compared with {reference}'s, in every run.
"""
LOADED = (
    "Both sides are arrays of bytes in memory before the clock starts; whole processes load them."
)
NOTES = {
    "counts": f"Regions with wavy borders, as labels have them. {LOADED}",
    "noise": f"A class drawn for every pixel, so that nothing repeats: the worst case. {LOADED}",
    "png": "From files to numbers, which is decoding above all.",
    "geotiff": "From files to numbers; deflate, in strips, with a projection.",
    "windows": "Tiles of 512 x 512, deflate. rasterio reads strips of 512 lines, one after the "
    "other.",
}
FASTER = {"counts": 1 / 3}
PEAK = 500.0  # MB, of the large pair


def title(result: dict[str, Any]) -> str:
    scale = result["scale"]
    return TITLES[result["section"]].format(
        pairs=max(1, round(500 * scale)), side=round(40_000 * scale**0.5)
    )


def goals(result: dict[str, Any], peers: list[str]) -> list[Line]:
    """Ratios to the best peers, to the least possible work, and of two threads to one."""
    contenders, section = result["contenders"], result["section"]
    ours = contenders["evalengine-2"]
    lines: list[Line] = [
        ("in process, wall, against the fastest peer",
         ratio(contenders, "in_process", "total_wall", peers), None),
        ("in process, CPU, against the thriftiest peer",
         ratio(contenders, "in_process", "total_cpu", peers), FASTER.get(section)),
    ]  # fmt: skip
    if "read-once" in contenders:
        least = ratio(contenders, "in_process", "total_cpu", ["read-once"])
        lines.append(("in process, CPU, against reading the bytes once", least, 3.0))
    if "evalengine-1" in contenders:
        alone = ratio(contenders, "in_process", "total_wall", ["evalengine-1"])
        lines.append(("in process, wall, against one thread", alone, None))
    if section == "windows":
        lines.append(("peak memory, MB", ours["whole"]["peak_mb"], PEAK))
    return lines


page = partial(
    section_reporting.page,
    Words(
        "segmentation",
        title,
        goals,
        ways=WAYS,
        about=ABOUT,
        notes=NOTES,
        options=dict.fromkeys(("counts", "noise"), " --torch-python TORCH/bin/python"),
    ),
)
