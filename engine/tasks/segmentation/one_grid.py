"""Rasters of one label each: those of one datum must cover the same ground, pixel by pixel."""

from __future__ import annotations

from ...geometry.grids import Grid, grid_of, opened
from ...ingest.problems import count_of
from ...schemas.errors import InputError
from ..pixels.sides import Side

_SHOWN = 3


def refuse_other_grids(sides: tuple[Side, Side]) -> None:
    """Hold the raster files of each datum against the first one of them that has a place on earth.

    Masks meet by row and column, so that files of another projection, place or resolution would
    be compared as if they lay upon each other. Pictures without a place lie anywhere.

    Args:
        sides: ground truths and predictions; their files are known to be readable.

    Raises:
        InputError: grids of one datum that differ, the first few named.
    """
    files: dict[int, dict[str, str]] = {}
    for side in sides:
        forms = side.form()
        for row, place in enumerate(side.places()):
            if place is not None and place.path and forms[row] == 0:
                files.setdefault(int(side.datum[row]), {}).setdefault(place.path, place.named)
    grids: dict[str, Grid] = {}
    wrong: list[str] = []
    for named in files.values():
        if len(named) < 2:
            continue
        first: str | None = None
        for path, who in named.items():
            if path not in grids:
                with opened(path, remote=True) as dataset:  # vetted by its side
                    grids[path] = grid_of(dataset)
            grid = grids[path]
            if not grid.placed:
                continue
            if first is None:
                first = path
                continue
            why = grids[first].differs(grid)
            if why:
                wrong.append(f"{who}: {path!r} does not lie upon {first!r} ({named[first]}): {why}")
    if wrong:
        more = f"\n- and {len(wrong) - _SHOWN:,} more." if len(wrong) > _SHOWN else ""
        shown = "\n".join(f"- {message}" for message in wrong[:_SHOWN])
        raise InputError(
            f"column 'raster': {count_of(len(wrong), 'file')} whose pixels do not line up with"
            f" those of the"
            f" same datum:\n{shown}{more}\nWrite the rasters of a datum on one grid; only label"
            " maps can be resampled."
        )
