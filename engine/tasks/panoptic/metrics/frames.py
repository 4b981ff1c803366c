"""Panoptic outputs with separate frames."""

from __future__ import annotations

from ....metrics.registry import Metric

METRICS = (
    Metric(
        name="ConfusionMatrix",
        task="panoptic",
        frame="confusion",
        needs=("segments", "crossings"),
        params=("iou_type", "boundary_ratio"),
        range=(0.0, float("inf")),
        better="neither",
        definition="Segments by true and predicted label: matches within the label first, then"
        " those left over whose IoU exceeds 0.5 across labels; null for unmatched.",
        formula=r"C_{ij} = |\{(g, p) \text{ matched} : \ell_g = i, \ell_p = j\}|",
        source="evalengine; the diagonal is the true positives",
    ),
    Metric(
        name="Outcomes",
        task="panoptic",
        frame="outcomes",
        needs=("segments", "outcomes"),
        params=("iou_type", "boundary_ratio"),
        range=(0.0, float("inf")),
        better="neither",
        definition="One row per predicted segment or missed ground truth: what became of it.",
        formula="",
        source="evalengine",
    ),
)
