"""Tiny tables that make every kernel of panoptic segmentation run once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from ... import metrics

Sample = tuple[Any, Any, dict[str, Any]]


def samples() -> Iterator[Sample]:
    """Maps of few ids and of many, whole segments and their boundaries."""
    every = metrics.names("panoptic")
    for factor in (1, 1000):
        ids = (np.arange(64) // 16 + 1).reshape(8, 8) * factor
        side = pl.DataFrame(
            {
                "datum_id": [0] * 4,
                "segment_id": np.unique(ids),
                "label_value": [1, 1, 2, 2],
                "raster": pl.Series([ids.tolist()] * 4, dtype=pl.List(pl.List(pl.Int64))),
            }
        )
        for kind in ("segm", "boundary"):
            yield side, side, {"metrics": every, "iou_type": kind}


def warm_large() -> None:
    """Run the kernels that only files and masks reach."""
    from ...kernels import warm, warm_masks
    from ...kernels.segment_edges import colour_ids

    warm.parts()
    warm_masks.warm_masks()
    colour_ids(np.zeros((3, 2, 2), np.uint8))
