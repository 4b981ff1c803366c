"""Kernels of masks and polygons, run on two pixels, so that a warm-up compiles them."""

from __future__ import annotations

import numpy as np

from .polygon_overlaps import areas, edges, shared_areas
from .polygon_runs import rasterise_rings
from .run_counts import decode, encode, from_counts
from .run_erosion import erode_lines
from .run_extents import extents
from .run_layout import closed, take_runs
from .run_overlaps import overlaps
from .run_pixels import paint, scan
from .run_sets import subtract, unite
from .run_transpose import transpose


def warm_masks() -> None:
    """Run them all."""
    one, two = np.array([1]), np.array([2])
    ends = np.array([0, 1])
    runs, _ = from_counts(np.array([1, 1]), np.array([0, 2]), two)
    _, text = encode(runs, two)
    decode(text, np.array([0, text.size]), two)
    _, box = extents(runs, two)
    row = np.zeros(1, np.int32)
    overlaps(runs, box, runs, box, row, row)
    unite(runs, row, 1)
    subtract(runs, runs)
    take_runs(runs, np.zeros(1, np.int64))
    closed(np.array([0, 2]), one, np.zeros(2, np.uint32), np.ones(2, np.uint32))
    scan(np.ones(2, np.uint8), np.array([0, 2]))
    paint(runs[1], runs[2], 2)
    transpose(runs, two, one)
    erode_lines(runs, two, one)
    triangle = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    rasterise_rings(triangle, 3 * ends, two, two)
    sides, around = edges(triangle, 3 * ends, ends, ends), np.array([[0.0, 0.0, 2.0, 2.0]])
    polygon = sides, areas(sides, around), around
    shared_areas(polygon, polygon, row, row)
