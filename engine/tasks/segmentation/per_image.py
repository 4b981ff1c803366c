"""Metrics of single datums, as the registry has them: a column each."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ...tally.datums import Labels
from ...tally.pixels import Images, Pixels
from ...tally.stats import Column, Stats
from .encode import Batch
from .metrics.images import OF_IMAGE
from .settings import Settings

Array = np.ndarray[Any, Any]

STATUS = ("scored", "not_predicted", "no_ground_truth", "no_pixels")
"""Standing of a datum; those of the last have no number."""


def stats_of(batch: Batch, settings: Settings) -> Stats:
    """mIOU, macro Dice and pixel accuracy of every datum, one parameter a label key."""
    return stats_from(presence(batch), batch.labels, batch.pixels, settings)


def stats_from(present: Array, labels: Labels, pixels: Pixels, settings: Settings) -> Stats:
    """The same from counts alone.

    Args:
        present: as :func:`presence` tells it.
        labels: of the run.
        pixels: the counts.
        settings: the run's settings.
    """
    columns = columns_of(present.size, labels, pixels, settings)
    status = status_of(present, pixels.images)
    return Stats(np.ones(present.size, bool), columns, (STATUS, status))


def columns_of(
    n: int, labels: Labels, pixels: Pixels, settings: Settings
) -> dict[str, tuple[Column, ...]]:
    """Every metric of single images, from their pixels alone.

    Args:
        n: number of datums.
        labels: of the run.
        pixels: the counts.
        settings: the run's settings.
    """
    keys = labels.key_names
    parameters: tuple[str | None, ...] = (None,) * len(keys)
    if len(keys) > 1:
        parameters = tuple(json.dumps({"label_key": name}, ensure_ascii=False) for name in keys)
    return {
        one.name: (
            Column(
                metric=one.name,
                parameters=parameters,
                values=one.compute(pixels, labels, n, settings)[:, :, None],
                reason=one.reason,
            ),
        )
        for one in OF_IMAGE
    }


def presence(batch: Batch) -> Array:
    """Standing of every datum by the sides that it stands in, int8 [n]: one of the first three."""
    found = np.zeros(len(batch.datums), np.int8)
    found[~batch.answered] = 1
    found[~batch.known] = 2
    return found


def status_of(present: Array, images: Images) -> Array:
    """Standing of every datum, int8 [n].

    Args:
        present: as :func:`presence` tells it.
        images: by datum and label key.
    """
    some = np.zeros(present.size, bool)
    some[images.datum[images.pixels > 0]] = True
    return np.where(some, present, np.int8(3))
