"""Metrics of single datums, as the registry has them: a column each."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ...metrics.segmentation_images import OF_IMAGE
from ...tally.stats import Column, Stats
from .encode import Batch
from .settings import Settings

Array = np.ndarray[Any, Any]

STATUS = ("scored", "not_predicted", "no_ground_truth", "no_pixels")
"""Standing of a datum; those of the last have no number."""


def stats_of(batch: Batch, settings: Settings) -> Stats:
    """Every metric of single images, of every datum, one parameter a label key."""
    n, keys = len(batch.datums), batch.labels.key_names
    parameters: tuple[str | None, ...] = (None,) * len(keys)
    if len(keys) > 1:
        parameters = tuple(json.dumps({"label_key": name}, ensure_ascii=False) for name in keys)
    columns: dict[str, tuple[Column, ...]] = {
        one.name: (
            Column(
                metric=one.name,
                parameters=parameters,
                values=one.compute(batch.pixels, batch.labels, n, settings)[:, :, None],
                reason=one.reason,
            ),
        )
        for one in OF_IMAGE
    }
    return Stats(np.ones(n, bool), columns, (STATUS, _status(batch)))


def _status(batch: Batch) -> Array:
    images = batch.pixels.images
    status = np.zeros(len(batch.datums), np.int8)
    status[~batch.answered] = 1
    status[~batch.known] = 2
    some = np.zeros(status.size, bool)
    some[images.datum[images.pixels > 0]] = True
    status[~some] = 3
    return status
