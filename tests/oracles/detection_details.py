"""Reference of detailed curves, confusion matrices and outcomes of detection."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .detection_metrics import DetectionOracle
from .detection_rows import Box, Fate, Label, Prediction, Truth, box_iou


def _may_confuse(p: Prediction, g: Truth, iou: float) -> bool:
    """Return True if both overlap and have the same label key and different values."""
    return (
        p.datum == g.datum
        and p.label[0] == g.label[0]
        and p.label != g.label
        and box_iou(p.box, g.box) >= iou
    )


def _why_false(oracle: DetectionOracle, p: Prediction, iou: float) -> str:
    truths = [g for g in oracle.sides.truths if not g.crowd and g.datum == p.datum]
    if any(_may_confuse(p, g, iou) for g in truths):
        return "misclassifications"
    own = any(g.label == p.label and box_iou(p.box, g.box) >= iou for g in truths)
    return "duplicates" if own else "hallucinations"


def _why_missed(oracle: DetectionOracle, g: Truth, iou: float, score: float) -> str:
    confused = any(p.score >= score and _may_confuse(p, g, iou) for p in oracle.sides.predictions)
    return "misclassifications" if confused else "no_predictions"


def _hits(oracle: DetectionOracle, label: Label, iou: float, score: float) -> list[Fate]:
    """Return the fates in the first area range with at least the given score."""
    fates = oracle.fates(label, iou, oracle.asked.area_ranges[0][1])
    return [f for f in fates if f.prediction.score >= score]


def _missed(oracle: DetectionOracle, fates: list[Fate], label: Label) -> list[Truth]:
    matched = {f.truth.row for f in fates if f.status == "tp" and f.truth is not None}
    return [g for g in oracle.sides.of(label).truths if not g.crowd and g.row not in matched]


def detailed_cells(
    oracle: DetectionOracle, iou: float, scores: tuple[float, ...]
) -> dict[tuple[Any, ...], Counter[tuple[Any, Box]]]:
    """Map (label key, label value, score, outcome, observation) to counts of datums and boxes.

    The box is that of the prediction for false positives, otherwise that of the ground truth.
    """
    out: dict[tuple[Any, ...], Counter[tuple[Any, Box]]] = {}

    def add(row: Prediction | Truth, *cell: Any) -> None:
        out.setdefault(cell, Counter())[row.datum, row.box] += 1

    for label in oracle.sides.labels:
        for s in scores:
            fates = _hits(oracle, label, iou, s)
            for f in fates:
                if f.status == "tp" and f.truth is not None:
                    add(f.truth, *label, s, "tp", "all")
                elif f.status == "fp":
                    add(f.prediction, *label, s, "fp", _why_false(oracle, f.prediction, iou))
            for g in _missed(oracle, fates, label):
                add(g, *label, s, "fn", _why_missed(oracle, g, iou, s))
    return out


_OUTCOME = {
    "misclassifications": "misclassified",
    "hallucinations": "hallucination",
    "duplicates": "duplicate",
    "no_predictions": "missed",
}


def outcome_rows(oracle: DetectionOracle, iou: float, score: float) -> Counter[tuple[Any, ...]]:
    """Count (datum, label key, label value, outcome, score, IoU, annotation id).

    The annotation id is that of the matched or missed ground truth. The IoU of a
    misclassification or duplicate is the highest one with a ground truth that causes it.
    """
    out: Counter[tuple[Any, ...]] = Counter()
    for label in oracle.sides.labels:
        fates = _hits(oracle, label, iou, score)
        for f in fates:
            p, outcome, overlap, matched = f.prediction, f.status, None, None
            if outcome == "tp" and f.truth is not None:
                overlap, matched = box_iou(p.box, f.truth.box), f.truth.annotation_id
            if outcome == "fp":
                why = _why_false(oracle, p, iou)
                outcome = "fp_" + _OUTCOME[why]
                overlap = _closest(oracle, p, own=why == "duplicates")
                overlap = None if why == "hallucinations" else overlap
            out[p.datum, *label, outcome, p.score, overlap, matched] += 1
        for g in _missed(oracle, fates, label):
            outcome = "fn_" + _OUTCOME[_why_missed(oracle, g, iou, score)]
            out[g.datum, *label, outcome, None, None, g.annotation_id] += 1
    return out


def _closest(oracle: DetectionOracle, p: Prediction, *, own: bool) -> float:
    """Return the highest IoU with a ground truth of the same key and the same or another value."""
    return max(
        (
            box_iou(p.box, g.box)
            for g in oracle.sides.truths
            if not g.crowd
            and g.datum == p.datum
            and g.label[0] == p.label[0]
            and (g.label == p.label) == own
        ),
        default=0.0,
    )


def confusion_cells(oracle: DetectionOracle, iou: float, score: float) -> Counter[tuple[Any, ...]]:
    """Count (label key, actual or None, predicted or None).

    Matches within a label are the diagonal. Each other prediction, by descending score, datum id
    and row, takes the free ground truth of another value that it overlaps most.
    """
    out: Counter[tuple[Any, ...]] = Counter()
    free: list[Prediction] = []
    missed: list[Truth] = []
    for label in oracle.sides.labels:
        fates = _hits(oracle, label, iou, score)
        hits = sum(f.status == "tp" for f in fates)
        if hits:
            out[label[0], label[1], label[1]] = hits
        free += [f.prediction for f in fates if f.status == "fp"]
        missed += _missed(oracle, fates, label)
    missed.sort(key=lambda g: g.row)
    for p in sorted(free, key=lambda p: (-p.score, p.datum, p.row)):
        candidates = [g for g in missed if _may_confuse(p, g, iou)]
        if not candidates:
            out[p.label[0], None, p.label[1]] += 1
            continue
        truth = max(candidates, key=lambda g: box_iou(p.box, g.box))
        missed.remove(truth)
        out[p.label[0], truth.label[1], p.label[1]] += 1
    for g in missed:
        out[g.label[0], g.label[1], None] += 1
    return out
