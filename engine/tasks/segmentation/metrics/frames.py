"""Segmentation outputs with separate frames."""

from __future__ import annotations

from .parts import metric

METRICS = (
    metric(
        "ConfusionMatrix",
        "Pixels by true and predicted label, null for none, with the IoU of each pair of labels"
        " and the share of a label's pixels that the other side leaves without one.",
        "valor-lite 0.39",
        None,
        frame="confusion",
        needs=("areas", "crossings"),
        range=(0.0, float("inf")),
        better="neither",
        formula=r"C_{ij} = |T_i \cap P_j|, \quad \text{IOU}_{ij} = \frac{|T_i \cap P_j|}{|T_i"
        r" \cup P_j|}",
    ),
)
