"""Names of the options in other tools."""

from __future__ import annotations

from .wording import option

ELSEWHERE = {
    "metric": "metrics",
    "metric_names": "metrics",
    "metrics_to_return": "metrics",
    "measures": "metrics",
    "k_list": "k",
    "k_values": "k",
    "top_k": "k",
    "cutoffs": "k",
    "matching_strategy": "match",
    "iou": "iou_thresholds",
    "iou_thrs": "iou_thresholds",
    "iouthrs": "iou_thresholds",
    "iou_thresholds_to_compute": "iou_thresholds",
    "score_threshold": "score_thresholds",
    "confidence_threshold": "score_thresholds",
    "confidence_thresholds": "score_thresholds",
    "convert_annotations_to_type": "convert_to",
    "number_of_examples": "pr_curve_max_examples",
    "filters": "where",
    "filter_by": "where",
    "filter": "where",
    "maxdets": "max_detections",
    "max_dets": "max_detections",
    "max_detection_thresholds": "max_detections",
    "arearng": "area_ranges",
    "area_range": "area_ranges",
    "ioutype": "iou_type",
    "pos_label": "positive_label",
    "threshold": "decision_threshold",
    "rel": "relevance_levels",
    "relevance_level": "relevance_levels",
    "column_map": "columns",
    "rename": "columns",
    "weights": "bleu_weights",
    "smoothing_function": "smoothing",
    "smooth_method": "smoothing",
    "tokenize": "tokenizer",
    "embeddings": "embedder",
    "slices": "by",
    "group_by": "by",
    "slice_by": "by",
    "n_jobs": "threads",
}
"""Name of an option in other tools or the shell, in lower case -> its name here."""


def meant(name: str) -> str | None:
    """Return the message for another tool's name of an option; None for unknown names."""
    ours = ELSEWHERE.get(name.lower().replace("-", "_"))
    return None if ours is None else f"{name!r} is not a known option. It is {option(ours)} here."
