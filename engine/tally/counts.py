"""Counts: sparse integer counts by key."""

from __future__ import annotations

import msgspec

from ..schemas.arrays import Array
from .registry import stored_as


@stored_as("detection.confusion/1")
class Counts(msgspec.Struct, frozen=True):
    """Pairs of predictions and ground truths with different labels, for the confusion matrix.

    One entry is one pair at one IoU threshold, for all score thresholds of ``scores``.

    Attributes:
        actual: int32 [n], label code of the ground truth.
        predicted: int32 [n], label code of the prediction.
        threshold: int32 [n], index of the IoU threshold.
        scores: uint64 [words, n], one bit per score threshold, 64 per word.
        datum: int32 [n], datum code.
    """

    actual: Array
    predicted: Array
    threshold: Array
    scores: Array
    datum: Array
