"""Options by topic, and the tasks that read them."""

from __future__ import annotations

import msgspec


class Group(msgspec.Struct, frozen=True):
    """Options that are documented together.

    Attributes:
        title: their topic.
        options: their names.
        tasks: tasks that read them; empty for all.
    """

    title: str
    options: tuple[str, ...]
    tasks: tuple[str, ...] = ()


GROUPS: tuple[Group, ...] = (
    Group("What is computed", ("task", "dialect", "metrics", "by", "where")),
    Group(
        "Matching and thresholds",
        (
            "iou_thresholds",
            "iou_thresholds_to_return",
            "recall_score_threshold",
            "pr_curve_iou_threshold",
            "max_detections",
            "area_ranges",
            "background_iou",
        ),
        ("detection",),
    ),
    Group(
        "Matching and thresholds",
        ("iou_thresholds", "iou_thresholds_to_return", "match_threshold"),
        ("tracking",),
    ),
    Group(
        "Classes and scores",
        (
            "beta",
            "average",
            "positive_label",
            "zero_division",
            "k",
            "score_columns",
            "multilabel",
            "decision_threshold",
            "n_bins",
            "max_fpr",
            "target_fpr",
            "thin_curves",
        ),
        ("classification",),
    ),
    Group("Curves", ("score_thresholds", "pr_curve_max_examples"), ("classification", "detection")),
    Group("Chosen thresholds", ("beta",), ("detection",)),
    Group("Calibration", ("n_bins", "box_bins", "least_in_bin"), ("detection",)),
    Group(
        "Chosen thresholds",
        ("thresholds", "target_precision", "target_recall", "false_positive_cost", "miss_cost"),
        ("classification", "detection"),
    ),
    Group(
        "Geometry", ("box_format", "angle_format", "convert_to", "keypoint_sigmas"), ("detection",)
    ),
    Group("Geometry", ("pck_threshold", "head_segment", "mirrored_keypoints"), ("detection",)),
    Group("Geometry", ("box_format",), ("tracking",)),
    Group("Geometry", ("iou_type",), ("detection", "panoptic", "tracking")),
    Group("Geometry", ("boundary_ratio",), ("detection", "segmentation", "panoptic")),
    Group("Geometry", ("invalid_polygons",), ("detection", "segmentation")),
    Group("Pixels", ("ignore_index", "background", "resample"), ("segmentation",)),
    Group("Outlines", ("pixel_spacing", "surface_tolerance"), ("segmentation",)),
    Group(
        "Raster files",
        ("remote_rasters", "raster_root"),
        ("detection", "segmentation", "panoptic"),
    ),
    Group(
        "Ranked lists",
        (
            "k",
            "match",
            "match_threshold",
            "ties",
            "complete",
            "judged_only",
            "relevance_levels",
            "gains",
            "discount",
            "ideal",
            "persistence",
            "ignore_identical_ids",
        ),
        ("retrieval",),
    ),
    Group(
        "Verdicts",
        ("mode", "beta", "atomicity", "coverage", "strict_mode", "penalize_ambiguous"),
        ("judged",),
    ),
    Group(
        "Errors of numbers",
        ("huber_delta", "tweedie_power", "quantile", "interval_level", "n_features"),
        ("regression",),
    ),
    Group("Forecasts", ("training", "seasonality"), ("regression",)),
    Group("ROUGE", ("rouge_types", "use_stemmer", "rouge_tokenizer"), ("text",)),
    Group("BLEU", ("bleu_weights", "smoothing", "tokenizer"), ("text",)),
    Group(
        "TER",
        ("ter_normalized", "ter_no_punct", "ter_asian_support", "ter_case_sensitive"),
        ("text",),
    ),
    Group(
        "Texts and vectors",
        (
            "lowercase",
            "stop_words",
            "faithfulness_threshold",
            "embedder",
            "similarity_threshold",
            "nulls",
        ),
        ("text",),
    ),
    Group("Names", ("columns", "label_map", "id_format", "label_format")),
    Group("What tables leave open", ("limits",), ("detection", "retrieval")),
    Group("Intervals", ("intervals", "draws", "seed", "cluster", "method")),
    Group("Where it runs", ("threads", "memory_limit", "scratch")),
)
"""Every option, in the order of the help."""


def _tasks_of() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for group in GROUPS:
        for name in group.options if group.tasks else ():
            found[name] = (*found.get(name, ()), *group.tasks)
    return found


TASKS_OF = _tasks_of()
"""Options that not every task reads -> the tasks that do."""
