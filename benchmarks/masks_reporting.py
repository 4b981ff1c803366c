"""Results of masks.py as Markdown."""

from __future__ import annotations

from functools import partial
from typing import Any

import section_reporting
from polygon_pairs import PREDICTED, TRUTHS, images_at
from section_reporting import OURS, Line, Words, ratio

NOTES = {
    "segm": (
        "Ground truths are polygons of 8 to 40 corners, three in a hundred crowd regions in"
        " uncompressed code; detections are compressed run-length codes. Peers read COCO's two JSON"
        " files, as does evalengine in the rows from JSON; the other rows of evalengine read"
        " Parquet"
        " with columns of masks and polygons, as `evalengine convert coco` writes them."
    ),
    "pairs": (
        "IoU of every pair of polygons of one image and label, of 8 to 40 corners; the sums of"
        " each image are compared. evalengine's part is that of its geometry: polygons read,"
        " checked and measured, pairs found and intersected, 5,000 images at a time. The peers do"
        " one image after the other, every 100th of them; their figures are an estimate, 100"
        " times that sample, plus reading once. Rasterising counts whole pixels, so its numbers"
        " are"
        " others."
    ),
}


def title(result: dict[str, Any]) -> str:
    scale = result["scale"]
    if result["section"] == "pairs":
        images = images_at(scale)
        return (
            f"Pairs of polygons, {images:,} images: {images * TRUTHS:,} ground truths,"
            f" {images * PREDICTED:,} detections"
        )
    return (
        f"Masks, {round(5_000 * scale):,} images: {round(35_500 * scale):,} ground truths,"
        f" {round(250_000 * scale):,} detections"
    )


def goals(result: dict[str, Any], peers: list[str]) -> list[Line]:
    """Ratios to the best peers: half the lowest CPU, and no slower than the fastest."""
    contenders = result["contenders"]
    if result["section"] == "pairs":
        return [
            (f"{what}, against a loop over shapely", ratio(contenders, kind, figure, peers), None)
            for what, kind, figure in (
                ("in process, CPU", "in_process", "total_cpu"),
                ("in process, wall", "in_process", "total_wall"),
            )
        ]
    return [
        (what, ratio(contenders, kind, figure, peers), limit)
        for what, kind, figure, limit in (
            ("in process, CPU, against the thriftiest peer", "in_process", "total_cpu", 0.5),
            ("in process, wall, against the fastest peer", "in_process", "total_wall", 1.0),
            ("whole process, wall, against the fastest peer", "whole", "wall", 1.0),
            ("peak memory, against the leanest peer", "whole", "peak_mb", None),
        )
    ]


page = partial(
    section_reporting.page,
    Words(
        "masks",
        title,
        goals,
        names=OURS | {"evalengine-2-json": "**evalengine**, 2 threads, from JSON"},
        notes=NOTES,
    ),
)
