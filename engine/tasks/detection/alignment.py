"""Whether the rasters of one datum lie on one grid: only then do their pixels meet."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ingest.problems import count_of
from ...schemas.errors import InputError
from .geometry import MASK
from .shapes import Objects

Array = np.ndarray[Any, Any]
_SHOWN = 3


def refuse_apart(sides: tuple[Objects, Objects], codes: tuple[Array, Array]) -> None:
    """Refuse rasters of a datum whose pixels lie elsewhere than those of its first one.

    Within a side and across sides; ground truths come first. Pictures without a place on Earth
    lie anywhere: only their size counts, which masks are held to where they are compared.

    Args:
        sides: predictions and ground truths.
        codes: datum codes of their rows, int32 [n] each.

    Raises:
        InputError: rasters of one datum with another projection, place or resolution, with both
            grids and rows; or a file that cannot be read.
    """
    found: dict[int, tuple[Any, Objects, int]] = {}  # by datum: its first grid, whose and row
    known: dict[tuple[Any, Any], str] = {}
    for objects, of_row in reversed(list(zip(sides, codes, strict=True))):
        rows = _filed(objects)
        if not rows.size:
            continue
        wrong: list[str] = []
        n = 0
        for row, grid in zip(rows.tolist(), _grids(objects, rows), strict=True):
            if not grid.placed:
                continue
            datum = int(of_row[row])
            first, other, first_row = found.setdefault(datum, (grid, objects, row))
            if first is grid:
                continue
            if (first, grid) not in known:
                known[first, grid] = first.differs(grid)
            if known[first, grid]:
                n += 1
                if n <= _SHOWN:
                    wrong.append(
                        f"{objects.origin.told(row)} is {grid.told()}, row"
                        f" {other.origin.number(first_row)} of the"
                        f" {other.side.replace('_', ' ')} {first.told()}"
                    )
        if n:
            raise InputError(
                f"{objects.side.replace('_', ' ')}: column 'raster': {count_of(n, 'raster')}"
                " whose pixels do not line up with those of another one of the same datum, first"
                f" (rows count from 0): {'; '.join(wrong)}. Write all rasters of a datum on one"
                " grid."
            )


def _grids(objects: Objects, rows: Array) -> list[Any]:
    from ...geometry.rasters import grids  # rasterio only where it is used

    paths = objects.paths(rows)
    return grids(
        paths, side=objects.side, rows=rows, origin=objects.origin, remote=objects.files.remote
    )


def _filed(objects: Objects) -> Array:
    """Rows that are read from raster files, int64 [k]."""
    if "raster" not in objects.frame.columns:
        return np.empty(0, np.int64)
    filed = objects.frame["raster"].is_not_null().to_numpy() & (objects.kind == MASK)
    if "mask" in objects.frame.columns:
        filed &= objects.frame["mask"].is_null().to_numpy()
    return np.flatnonzero(filed)
