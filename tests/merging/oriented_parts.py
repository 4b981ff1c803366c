"""Random tables of oriented boxes for the tests of merging."""

from __future__ import annotations

import numpy as np
import polars as pl
from merging import parts

DIALECTS = ("dota", "mmrotate", "detectron2")
"""Those that compare nothing else."""


def oriented(seed: int) -> parts.Case:
    """The same boxes, turned."""
    case = parts.detection(seed)
    rng = np.random.default_rng(seed)
    sides = []
    for side in case.sides:
        extents = [pl.col(f"{axis}max") - pl.col(f"{axis}min") for axis in "xy"]
        centres = [(pl.col(f"{axis}max") + pl.col(f"{axis}min")) / 2 for axis in "xy"]
        angles = pl.Series(rng.choice([0.0, 30.0, 90.0], side.height))
        turned = side.with_columns(obb=pl.concat_list(*centres, *extents, angles))
        gone = ["xmin", "ymin", "xmax", "ymax", *(["iscrowd"] if seed % 5 in (1, 4) else [])]
        sides.append(turned.drop(gone, strict=False))  # probiou and detectron2 know no crowds
    options = {**case.options, "iou_type": "obb", "angle_format": "degrees-clockwise"}
    options |= {"metrics": parts.of_any_geometry(), "iou_thresholds": [0.3, 0.5]}
    options |= [{}, {"iou_type": "probiou"}, *({"dialect": d} for d in DIALECTS)][seed % 5]
    return parts.Case(tuple(sides), options, tables=case.tables)
