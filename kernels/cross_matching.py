"""Cross-label matching for the confusion matrix, all score thresholds at once.

What label-wise matching leaves over, at a given IoU and score threshold, is matched greedily
across the labels of a key: leftover predictions by descending score take the leftover ground
truth they overlap most. Score thresholds are bits of one word: a prediction takes part where its
score reaches the threshold, a ground truth is left over where its own match does not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, kernel

Array = np.ndarray[Any, Any]


@kernel
def _cross(
    start: Array,
    prediction: Array,
    ground_truth: Array,
    iou: Array,
    threshold: float,
    bit: Any,
    hit: Array,
    ignored: Array,
    p_bits: Array,
    p_label: Array,
    g_label: Array,
    g_free: Array,
) -> Any:
    """Events of one IoU threshold; see :func:`match_across_labels`."""
    capacity = 256
    p_out = np.empty(capacity, np.int32)
    g_out = np.empty(capacity, np.int32)
    bits_out = np.empty(capacity, np.uint64)
    n = 0
    for s in range(start.size - 1):
        wanted = np.uint64(0)
        before = -1
        for i in range(start[s], start[s + 1]):
            p = prediction[i]
            g = ground_truth[i]
            if p != before:
                before = p
                wanted = p_bits[p]
                if (hit[p] | ignored[p]) & bit != 0:
                    wanted = np.uint64(0)
            if wanted == 0 or not iou[i] >= threshold or p_label[p] == g_label[g]:
                continue
            taken = wanted & g_free[g]
            if taken == 0:
                continue
            g_free[g] &= ~taken
            wanted &= ~taken
            if n == capacity:
                capacity *= 2
                p_out = np.concatenate((p_out, np.empty(n, np.int32)))
                g_out = np.concatenate((g_out, np.empty(n, np.int32)))
                bits_out = np.concatenate((bits_out, np.empty(n, np.uint64)))
            p_out[n] = p
            g_out[n] = g
            bits_out[n] = taken
            n += 1
    return p_out[:n], g_out[:n], bits_out[:n]


def match_across_labels(
    pairs: tuple[Array, Array, Array, Array],
    threshold: float,
    bit: int,
    predictions: tuple[Array, Array, Array, Array],
    g_label: Array,
    g_free: Array,
) -> tuple[Array, Array, Array]:
    """Match leftovers across labels at one IoU threshold.

    Args:
        pairs: start int64 [d + 1], offsets by datum; prediction int32, ground truth int32, IoU
            float64: within a datum by descending score of the prediction, then descending IoU.
        threshold: IoU threshold.
        bit: position of the threshold's bit in ``hit`` and ``ignored``.
        predictions: hit uint64 [n], ignored uint64 [n], score bits uint64 [n] (thresholds the
            score reaches), label int32 [n].
        g_label: int32 [m].
        g_free: uint64 [m], thresholds at which the ground truth is left over; used up here.

    Returns:
        prediction int32, ground truth int32, and uint64 score thresholds at which they met, one
        entry per event.
    """
    start, prediction, ground_truth, iou = pairs
    hit, ignored, p_bits, p_label = predictions
    p, g, bits = _cross(
        frozen(start, np.int64),
        frozen(prediction, np.int32),
        frozen(ground_truth, np.int32),
        frozen(iou, np.float64),
        threshold,
        np.uint64(1 << bit),
        frozen(hit, np.uint64),
        frozen(ignored, np.uint64),
        frozen(p_bits, np.uint64),
        frozen(p_label, np.int32),
        frozen(g_label, np.int32),
        g_free,
    )
    return p, g, bits
