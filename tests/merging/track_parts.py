"""Random tables of tracks, with gaps, switches, ignored objects and one-sided sequences."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from merging.parts import Case, _slices, ids_of

from evalengine import metrics


def tracking(seed: int) -> Case:
    """Generate objects that move on a small grid, where ties are common, and their tracks."""
    rng = np.random.default_rng(seed)
    ids = ids_of(rng, 7)
    truth: list[tuple[Any, ...]] = []
    tracks: list[tuple[Any, ...]] = []
    for datum in ids:
        n = int(rng.integers(0, 5))
        place, track = rng.integers(0, 8, (n, 2)), np.arange(n)
        label, ignored = rng.integers(0, 3, n), rng.random(n) < 0.15
        one_side = rng.random()
        for frame in range(int(rng.integers(1, 7))):
            place = place + rng.integers(-1, 2, (n, 2))
            track = rng.permutation(track) if rng.random() < 0.2 else track
            for i in np.flatnonzero(rng.random(n) < 0.8):
                box = (*place[i], *(place[i] + 4))
                if one_side > 0.1:
                    truth.append((datum, frame, f"o{i}", *box, label[i], bool(ignored[i])))
            for i in np.flatnonzero(rng.random(n) < 0.8):
                moved = place[i] + rng.integers(-1, 2, 2)
                if one_side < 0.9:
                    tracks.append((datum, frame, int(track[i]), *moved, *(moved + 4), label[i]))
    corners = dict.fromkeys(("xmin", "ymin", "xmax", "ymax"), pl.Float64)
    place_of = {"sequence": ids.dtype, "frame": pl.Int64}
    label_of = {"label_value": pl.Int64}
    sides = (
        pl.DataFrame(
            tracks, {**place_of, "track_id": pl.Int64, **corners, **label_of}, orient="row"
        ),
        pl.DataFrame(
            truth,
            {**place_of, "object_id": pl.String, **corners, **label_of, "ignored": pl.Boolean},
            orient="row",
        ),
    )
    slices = _slices(ids, rng).rename({"datum_id": "sequence"})
    options: dict[str, Any] = {"metrics": metrics.names("tracking"), "by": ["weather"]}
    if rng.random() < 0.3:
        sides = (sides[0].drop("label_value"), sides[1].drop("label_value"))
    elif rng.random() < 0.5:
        options["iou_thresholds_to_return"] = [0.5]
    if rng.random() < 0.3:
        sides = (_as_masks(sides[0]), _as_masks(sides[1]))
    return Case(sides, options, datum="sequence", tables={"datums": slices})


def _as_masks(side: pl.DataFrame) -> pl.DataFrame:
    """Convert boxes of 4 x 4 pixels to masks in an image that contains all of them."""
    size, shift, width = 40, 16, 4
    starts = [
        (int(x) + shift) * size + int(y) + shift for x, y in side.select("xmin", "ymin").rows()
    ]
    lines = [width, size - width] * width
    masks = [
        {"size": [size, size], "counts": [first, *lines, size * size - first - width * size]}
        for first in starts
    ]
    dtype = pl.Struct({"size": pl.List(pl.Int64), "counts": pl.List(pl.Int64)})
    return side.drop("xmin", "ymin", "xmax", "ymax").with_columns(
        mask=pl.Series(masks, dtype=dtype)
    )
