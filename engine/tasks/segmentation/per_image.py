"""Metrics of single datums: means over the labels of one datum and key."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ...dialects.segmentation import DECLARED, TRUE
from ...metrics.segmentation_parts import dice, iou, ratio
from ...tally.stats import Column, Stats
from .encode import Batch
from .settings import Settings

Array = np.ndarray[Any, Any]

STATUS = ("scored", "not_predicted", "no_ground_truth", "no_pixels")
"""Standing of a datum; those of the last have no number."""

NEEDS = ("mIOU", "Dice", "PixelAccuracy")
_NO_LABEL = "no label to average over"
_NO_PIXEL = "no pixel that counts"


def stats_of(batch: Batch, settings: Settings) -> Stats:
    """mIOU, macro Dice and pixel accuracy of every datum, one parameter a label key."""
    n, keys = len(batch.datums), batch.labels.key_names
    areas, images = batch.pixels.areas, batch.pixels.images
    parameters: tuple[str | None, ...] = (None,) * len(keys)
    if len(keys) > 1:
        parameters = tuple(json.dumps({"label_key": name}, ensure_ascii=False) for name in keys)
    width = len(keys)
    columns: dict[str, tuple[Column, ...]] = {}
    undefined = settings.rules.undefined
    for name, of in (("mIOU", iou), ("Dice", dice)):
        value = ratio(*of(areas.right, areas.found, areas.truth), undefined)
        if of is iou and not settings.rules.ignored_in_iou:
            value[batch.pixels.ignored[areas.label]] = np.nan
        columns[name] = (_column(name, _means(batch, settings, value, width), parameters),)
    accuracy = np.full((n, width), np.nan)
    agreeing = ratio(images.right, images.pixels)
    accuracy[images.datum, images.key] = np.where(images.overlapping, np.nan, agreeing)
    columns["PixelAccuracy"] = (_column("PixelAccuracy", accuracy, parameters, _NO_PIXEL),)
    return Stats(np.ones(n, bool), columns, (STATUS, _status(batch)))


def _column(
    name: str, values: Array, parameters: tuple[str | None, ...], reason: str = _NO_LABEL
) -> Column:
    return Column(metric=name, parameters=parameters, values=values[:, :, None], reason=reason)


def _means(batch: Batch, settings: Settings, value: Array, width: int) -> Array:
    """Means over the labels of each datum and key that enter means, float64 [datum, key]."""
    areas, images, labels = batch.pixels.areas, batch.pixels.images, batch.labels
    key = labels.key[areas.label]
    chosen = areas.truth > 0 if settings.rules.means == TRUE else np.ones(value.size, bool)
    chosen &= ~np.isnan(value)
    total, many = np.zeros((2, len(batch.datums), width))
    np.add.at(total, (areas.datum[chosen], key[chosen]), value[chosen])
    np.add.at(many, (areas.datum[chosen], key[chosen]), 1)
    if settings.rules.means == DECLARED:
        # Every declared label counts in every datum, those it lacks with the value of 0 / 0.
        declared = batch.pixels.declared
        if declared is not None:
            beyond = chosen & ~declared[areas.label]
            many[:] = 0
            np.add.at(many, (areas.datum[beyond], key[beyond]), 1)
            of_key = np.bincount(labels.key[declared], minlength=width)
            many[images.datum, images.key] += of_key[images.key]
    return ratio(total, many)


def _status(batch: Batch) -> Array:
    images = batch.pixels.images
    status = np.zeros(len(batch.datums), np.int8)
    status[~batch.answered] = 1
    status[~batch.known] = 2
    some = np.zeros(status.size, bool)
    some[images.datum[images.pixels > 0]] = True
    status[~some] = 3
    return status
