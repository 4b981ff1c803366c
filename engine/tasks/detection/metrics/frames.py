"""Detection outputs with separate frames, built by the match."""

from __future__ import annotations

from ....metrics.registry import Metric

METRICS = (
    Metric(
        name="DetailedPrecisionRecallCurve",
        task="detection",
        frame="examples",
        needs=("pr_curve_iou_threshold", "detailed"),
        params=("pr_curve_iou_threshold", "score_thresholds", "pr_curve_max_examples"),
        better="neither",
        range=(0.0, float("inf")),
        definition="Counts of tp, of fp by misclassifications, duplicates and hallucinations, and"
        " of fn by misclassifications and no_predictions, with examples, per label and score"
        " threshold.",
        formula="",
        source="Valor metrics document, DetailedPrecisionRecallCurve",
    ),
    Metric(
        name="ConfusionMatrix",
        task="detection",
        frame="confusion",
        needs=("spot_ious", "confusion"),
        params=("iou_thresholds", "pr_curve_iou_threshold", "score_thresholds"),
        better="neither",
        range=(0.0, float("inf")),
        definition="Ground truths by predicted label: matches within the label first, then"
        " leftovers greedily across the labels of the key; null for unmatched.",
        formula=r"C_{ij} = |\{(g, p) \text{ matched} : \ell_g = i, \ell_p = j\}|",
        source="evalengine; the diagonal is the true positives",
    ),
    Metric(
        name="Outcomes",
        task="detection",
        frame="outcomes",
        needs=("spot_ious", "outcomes"),
        params=("iou_thresholds", "pr_curve_iou_threshold", "score_thresholds"),
        better="neither",
        range=(0.0, float("inf")),
        definition="One row per prediction or missed ground truth: what became of it.",
        formula="",
        source="evalengine",
    ),
    Metric(
        name="LabelErrors",
        task="detection",
        frame="label_errors",
        needs=("spot_ious", "label errors"),
        params=("iou_thresholds", "pr_curve_iou_threshold", "background_iou"),
        better="neither",
        range=(0.0, float("inf")),
        definition="Ground truths that are likely wrong (other label, location, duplicate, tiny,"
        " unfound) and objects that they likely lack (missing), by how suspicious they are.",
        formula="",
        source="evalengine",
    ),
    Metric(
        name="PerDatum",
        task="detection",
        frame="per_datum",
        needs=("pr_curve_iou_threshold", "single datums"),
        params=("pr_curve_iou_threshold",),
        aliases=("PerImage",),
        better="neither",
        definition="F1 = 2 tp / (2 tp + fp + fn) of every datum over its labels, at the IoU"
        " threshold of the run nearest to 0.5 (distances: at pr_curve_iou_threshold) and the score"
        " threshold at which F1 of the whole run is highest.",
        formula="",
        source="evalengine; the order of its worst datums",
    ),
)
