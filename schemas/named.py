"""The options as keywords of the public calls, for type checkers: accepted types are wider than the
stored ones of :class:`evalengine.Options`. A test compares the names of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict


class Named(TypedDict, total=False):
    """Every field of :class:`evalengine.Options`; also a single value for a tuple, or None."""

    task: str | None
    dialect: str | None
    metrics: Iterable[str] | None
    by: Iterable[str] | None
    where: Mapping[str, str] | str | None
    columns: Mapping[str, str] | None
    label_map: Any
    box_format: str | None
    angle_format: str | None
    id_format: str | Iterable[str] | None
    label_format: str | Iterable[str] | None
    iou_type: str | None
    iou_thresholds: float | Iterable[float] | None
    iou_thresholds_to_return: float | Iterable[float] | None
    score_thresholds: float | Iterable[float] | None
    recall_score_threshold: float | None
    pr_curve_iou_threshold: float | None
    pr_curve_max_examples: int | None
    max_detections: int | Iterable[int] | None
    area_ranges: Mapping[str, Sequence[float]] | None
    convert_to: str | None
    invalid_polygons: str | None
    background_iou: float | None
    boundary_ratio: float | None
    keypoint_sigmas: Any
    pck_threshold: float | None
    head_segment: Iterable[int] | None
    mirrored_keypoints: Mapping[int, int] | None
    pixel_spacing: float | Iterable[float] | None
    surface_tolerance: float | None
    ignore_index: int | None
    background: int | None
    resample: bool | None
    remote_rasters: bool | None
    raster_root: str | None
    beta: float | None
    average: str | None
    positive_label: str | int | bool | None
    zero_division: float | None
    k: int | Iterable[int] | None
    score_columns: Any
    multilabel: bool | None
    decision_threshold: float | None
    n_bins: int | None
    box_bins: int | None
    least_in_bin: int | None
    max_fpr: float | None
    target_precision: float | None
    target_recall: float | None
    target_fpr: float | None
    thresholds: Any
    false_positive_cost: float | None
    miss_cost: float | None
    thin_curves: bool | None
    match: str | None
    match_threshold: float | None
    ties: str | None
    complete: bool | None
    judged_only: bool | None
    relevance_levels: float | Iterable[float] | None
    gains: Any
    discount: str | None
    ideal: str | None
    persistence: float | None
    ignore_identical_ids: bool | None
    mode: str | None
    atomicity: str | None
    coverage: str | None
    strict_mode: bool | None
    penalize_ambiguous: bool | None
    rouge_types: Iterable[str] | None
    use_stemmer: bool | None
    rouge_tokenizer: str | None
    bleu_weights: float | Iterable[float] | None
    smoothing: str | None
    tokenizer: str | None
    lowercase: bool | None
    stop_words: Any
    faithfulness_threshold: float | None
    ter_normalized: bool | None
    ter_no_punct: bool | None
    ter_asian_support: bool | None
    ter_case_sensitive: bool | None
    embedder: Any
    similarity_threshold: float | None
    nulls: str | None
    huber_delta: float | None
    tweedie_power: float | None
    quantile: float | None
    interval_level: float | None
    n_features: int | None
    training: Any
    seasonality: int | None
    limits: bool | None
    intervals: float | None
    draws: int | None
    seed: int | None
    cluster: str | None
    method: str | None
    threads: int | None
    memory_limit: str | int | None
    scratch: str | None
