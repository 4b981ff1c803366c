"""Reference of semantic segmentation, in plain Python by pixel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

Pixel = tuple[Any, Any]
"""True and predicted label; None for the background."""


def pairs(truth: Any, predicted: Any, ignore: int | None, background: int | None) -> Counter[Pixel]:
    """Count the pairs of labels in the pixels of two label maps."""
    counts: Counter[Pixel] = Counter()
    for line, other in zip(truth.tolist(), predicted.tolist(), strict=True):
        for t, p in zip(line, other, strict=True):
            if t != ignore or ignore is None:
                counts[None if t == background else t, None if p == background else p] += 1
    return counts


def over(a: float, b: float) -> float | None:
    return a / b if b else None


def mean(values: Iterable[float | None]) -> float | None:
    defined = [value for value in values if value is not None]
    return over(sum(defined), len(defined))


def labels_in(counts: Counter[Pixel]) -> list[Any]:
    return sorted({label for pair, n in counts.items() if n for label in pair} - {None})


def of_label(counts: Counter[Pixel], label: Any) -> dict[str, float | None]:
    truth = sum(n for (t, _), n in counts.items() if t == label)
    predicted = sum(n for (_, p), n in counts.items() if p == label)
    right = counts[label, label]
    return {
        "IOU": over(right, truth + predicted - right),
        "Precision": over(right, predicted),
        "Recall": over(right, truth),
        "F1": over(2 * right, truth + predicted),
        "Dice": over(2 * right, truth + predicted),
        "truth": truth,
        "found": predicted,
        "right": right,
    }


def accuracy(counts: Counter[Pixel]) -> float | None:
    """Compute the share of pixels with equal labels, including background."""
    return over(sum(n for (t, p), n in counts.items() if t == p), counts.total())


def of_key(counts: Counter[Pixel]) -> dict[str, float | None]:
    """Compute means over labels with ground truth."""
    true = [one for one in (of_label(counts, x) for x in labels_in(counts)) if one["truth"]]
    total = sum(one["truth"] or 0 for one in true)
    return {
        "MeanClassAccuracy": mean(one["Recall"] for one in true),
        "FrequencyWeightedIoU": over(
            sum((one["IOU"] or 0.0) * (one["truth"] or 0) for one in true), total
        ),
    }
