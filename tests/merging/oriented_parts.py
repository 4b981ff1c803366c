"""Random tables of oriented boxes, 3-D boxes and KITTI's columns."""

from __future__ import annotations

import numpy as np
import polars as pl
from merging import parts

DIALECTS = ("dota", "mmrotate", "detectron2")
"""Dialects of oriented boxes only."""


def oriented(seed: int) -> parts.Case:
    """Generate the boxes of ``detection`` with angles."""
    case = parts.detection(seed)
    rng = np.random.default_rng(seed)
    sides = []
    for side in case.sides:
        extents = [pl.col(f"{axis}max") - pl.col(f"{axis}min") for axis in "xy"]
        centres = [(pl.col(f"{axis}max") + pl.col(f"{axis}min")) / 2 for axis in "xy"]
        angles = pl.Series(rng.choice([0.0, 30.0, 90.0], side.height))
        rotated = side.with_columns(obb=pl.concat_list(*centres, *extents, angles))
        dropped = ["xmin", "ymin", "xmax", "ymax", *(["iscrowd"] if seed % 5 in (1, 4) else [])]
        sides.append(rotated.drop(dropped, strict=False))  # probiou and detectron2 know no crowds
    options = {**case.options, "iou_type": "obb", "angle_format": "degrees-clockwise"}
    options |= {"metrics": parts.of_any_geometry(), "iou_thresholds": [0.3, 0.5]}
    options |= [{}, {"iou_type": "probiou"}, *({"dialect": d} for d in DIALECTS)][seed % 5]
    return parts.Case(tuple(sides), options, tables=case.tables)


def solid(seed: int) -> parts.Case:
    """Generate the boxes of ``oriented`` with heights."""
    case = oriented(5 * (seed // 5))
    rng = np.random.default_rng(seed)
    sides = []
    for side in case.sides:
        x, y, w, h, angle = (pl.col("obb").list.get(i) for i in range(5))
        z, tall = (pl.Series(rng.integers(1, 3, side.height).astype(float)) for _ in range(2))
        sides.append(
            side.select(pl.exclude("obb"), box3d=pl.concat_list(x, y, z, w, h, tall, angle))
        )
    options = {**case.options, "iou_type": "3d", "angle_format": "degrees-z-up"}
    options |= [{"dialect": "standard"}, {"dialect": "coco", "iou_type": "bev"}][seed % 2]
    return parts.Case(tuple(sides), options, tables=case.tables)


def centres(seed: int) -> parts.Case:
    """Generate the boxes of ``solid`` for nuScenes: velocities and attributes, some missing."""
    case = solid(2 * (seed // 2))
    rng = np.random.default_rng(seed)
    label = {"a": "barrier", "b": "traffic_cone", "x": "barrier"}
    sides = [
        side.with_columns(
            pl.col("label_value").replace(label),
            vx=pl.Series(rng.choice([0.0, 1.5, None], side.height).astype(float), nan_to_null=True),
            vy=pl.Series(rng.choice([0.0, 1.5], side.height)),
            attribute=pl.Series(rng.choice(["", "moving", "parked"], side.height)),
            ego_distance=pl.Series(rng.uniform(0, 35, side.height)),
        )
        for side in case.sides
    ]
    sides[1] = sides[1].with_columns(num_points=pl.Series(rng.integers(0, 4, sides[1].height)))
    options = {**case.options, "dialect": "nuscenes", "iou_type": "distance"}
    options |= {"iou_thresholds": [0.5, 2.0], "metrics": _CENTRES}
    options.pop("area_ranges", None)
    return parts.Case(tuple(sides), options, tables=case.tables)


def seen(seed: int) -> parts.Case:
    """Generate 2-D or 3-D boxes for KITTI, with regions in the table of datums."""
    case = parts.detection(seed) if seed % 3 else solid(2 * (seed // 2))
    rng = np.random.default_rng(seed)
    names = dict(zip(("a", "b", "c", "x", "y", "zz"), ("Car", "Van", "Truck") * 2, strict=True))
    sides = []
    for side in case.sides:
        n = side.height
        side = side.drop("area", "iscrowd", strict=False).with_columns(
            pl.col("label_value").replace(names),
            pl.col("xmin", "ymin", "xmax", "ymax") * 15 if seed % 3 else pl.lit(30.0),
            occluded=pl.Series(rng.integers(0, 4, n).astype(float)),
            truncated=pl.Series(rng.choice([0.0, 0.2, 0.6], n)),
            alpha=pl.Series(rng.uniform(-3, 3, n)),
        )
        tall = pl.Series(rng.choice([20.0, 30.0, 50.0], n))
        sides.append(side if seed % 3 else side.drop("literal").with_columns(height_2d=tall))
    options = {**case.options, "dialect": "kitti-r11" if seed % 2 else "kitti", "metrics": _SEEN}
    for name in ("area_ranges", "max_detections", "iou_thresholds"):
        options.pop(name, None)
    options |= {"iou_thresholds": [0.3, 0.5]} if seed % 4 else {}
    datums = case.tables["datums"]
    lists = [[0.0, 0.0, 40.0, 30.0] if rng.random() < 0.5 else [] for _ in range(datums.height)]
    regions = pl.Series("regions", lists, dtype=pl.List(pl.Float64))
    tables = {"datums": datums.select("datum_id", "weather").with_columns(regions)}
    return parts.Case(tuple(sides), options, tables=tables)


_SEEN = ["AP", "mAP", "mAPAveragedOverIOUs", "AOS", "Counts", "Outcomes", "ConfusionMatrix", "mAR",
         "InterpolatedPrecisionRecallCurve", "PrecisionRecallCurve"]  # fmt: skip
_CENTRES = ["mAP", "AP", "mAPAveragedOverIOUs", "ATE", "ASE", "AOE", "AVE", "AAE", "NDS", "Counts",
            "Outcomes", "TIDECounts", "Errors", "InterpolatedPrecisionRecallCurve"]  # fmt: skip
