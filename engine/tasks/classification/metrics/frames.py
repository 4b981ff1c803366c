"""Classification metrics with separate frames: confusion, detailed curves, outcomes."""

from __future__ import annotations

from ....metrics.registry import Metric

METRICS = (
    Metric(
        name="ConfusionMatrix",
        task="classification",
        frame="confusion",
        needs=("hard", "confusion"),
        params=("pr_curve_max_examples",),
        range=(0.0, float("inf")),
        better="neither",
        definition="Datums by true and hard-predicted label; null where either is missing. With"
        " pr_curve_max_examples, examples of each cell too.",
        formula=r"C_{ij} = \sum_d [y_d = i]\, [\hat{y}_d = j]",
        source="Valor metrics document, Confusion Matrix; scikit-learn metrics.confusion_matrix",
    ),
    Metric(
        name="DetailedPrecisionRecallCurve",
        task="classification",
        frame="examples",
        needs=("hard", "scores", "details"),
        params=("score_thresholds", "pr_curve_max_examples"),
        range=(0.0, float("inf")),
        better="neither",
        definition="tp, fp, fn and tn per label and score threshold, false ones by kind"
        " (misclassifications, hallucinations, no_predictions), with examples.",
        formula="",
        source="Valor metrics document, Detailed Precision-Recall Curves",
    ),
    Metric(
        name="Outcomes",
        task="classification",
        frame="outcomes",
        needs=("hard",),
        better="neither",
        definition="One row per hard prediction or missed truth and what became of it.",
        formula="",
        source="evalengine",
    ),
    Metric(
        name="LabelErrors",
        task="classification",
        frame="label_errors",
        needs=("scores", "probabilities"),
        better="neither",
        definition="Datums whose label is likely wrong by confident learning, with three qualities"
        " of the label and the ways that pick it.",
        formula="",
        source="Northcutt, Jiang, Chuang, Confident Learning (JAIR 2021); cleanlab 2.9",
    ),
    Metric(
        name="PerDatum",
        task="classification",
        frame="per_datum",
        needs=("hard",),
        aliases=("PerSample",),
        better="neither",
        range=(0.0, float("inf")),
        definition="What every datum is judged by: its log loss, where LogLoss or another metric"
        " of probabilities is computed; F1 of its labels, where it may have several; else the"
        " score of its wrong label, 0 for a right one, or without scores the share that is right.",
        formula="",
        source="evalengine; the order of its worst datums",
    ),
)
